//! A list as one tensor: its elements stacked.

use super::tensor_list::{check_type, held, list_at, shape_at};
use crate::movement::Writer;
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, ensure};

static STACK: Op = Op {
    name: "TensorListStack",
    shape,
    kernels: &[Kernel::native(stack)],
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&STACK];

fn shape(context: &mut ShapeContext) -> Result<()> {
    let declared = if context.input(1).rank() == Some(0) && context.input_value(1).is_none() {
        PartialShape::unknown()
    } else {
        context.input_as_shape(1)?
    };
    let element = held(context, 0).merge(&declared)?;
    let count = context.attrs().int("num_elements")?;
    context.set_output(0, PartialShape::new(&[count]).concat(&element));
    Ok(())
}

fn stack(context: &mut KernelContext) -> Result<()> {
    let declared = shape_at(context, 1)?;
    let wanted = context.attrs().int("num_elements")?;
    let list = list_at(context.input(0)?)?;
    check_type(list, context.output_type(0))?;
    ensure!(
        wanted < 0 || wanted == list.tensors.len() as i64,
        InvalidArgument,
        "Operation expected a list with {wanted} elements but got a list with {} elements.",
        list.tensors.len()
    );
    if list.tensors.is_empty() {
        let known = list.shape.merge(&declared)?;
        let rest = known.to_shape();
        let rest = rest.ok_or_else(|| {
            ff_tensor::status!(
                InvalidArgument,
                "Tried to stack elements of an empty list with non-fully-defined element_shape: {known}"
            )
        })?;
        let empty = Tensor::zeros(list.dtype, Shape::new(&[&[0], rest.dims()].concat())?)?;
        return context.set_output(0, empty);
    }
    let row = list.element_shape(&declared)?;
    let shape = Shape::new(&[&[list.tensors.len() as i64], row.dims()].concat())?;
    let size = row.num_elements();
    let mut writer = Writer::zeros(list.dtype, shape)?;
    for (index, tensor) in list.tensors.iter().enumerate() {
        let Some(tensor) = tensor else { continue };
        ensure!(
            *tensor.shape() == row,
            InvalidArgument,
            "Tried to stack list which only contains elements of different shapes: {} and {row}",
            tensor.shape()
        );
        if size > 0 {
            writer.copy(index * size, tensor, 0, size)?;
        }
    }
    let stacked = writer.finish()?;
    context.set_output(0, stacked)
}

/// The rows of the gradient as a list.
fn gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, shape) = (context.incoming_or_zeros(0)?, context.input(1)?);
    let attrs = ff_op::Attrs::new()
        .with("element_dtype", context.dtype(incoming))
        .with("shape_type", context.dtype(shape));
    let list = context.op("TensorListFromTensor", &[incoming, shape], attrs)?;
    context.set(0, list);
    Ok(())
}
