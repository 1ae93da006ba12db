//! Making lists: empty, reserved, of the rows of a tensor, resized.

use super::tensor_list::{TensorList, held, set_handle, shape_at, take_list};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, ensure};

static EMPTY: Op = Op {
    name: "EmptyTensorList",
    shape: |context| declared(context, 0),
    kernels: &[Kernel::native(|context| {
        let shape = shape_at(context, 0)?;
        let max_elements = context.input_i64(1)?;
        let list = TensorList {
            dtype: context.attrs().dtype("element_dtype")?,
            shape,
            max_elements,
            tensors: Vec::new(),
        };
        context.set_output(0, list.into_tensor()?)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static RESERVE: Op = Op {
    name: "TensorListReserve",
    shape: |context| declared(context, 0),
    kernels: &[Kernel::native(reserve)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static FROM_TENSOR: Op = Op {
    name: "TensorListFromTensor",
    shape: |context| declared(context, 1),
    kernels: &[Kernel::native(from_tensor)],
    gradient: Gradient::Missing,
    ..Op::PURE
};
static RESIZE: Op = Op {
    name: "TensorListResize",
    shape: |context| {
        let shape = held(context, 0);
        let dtype = context
            .input_handle(0)
            .and_then(|holds| holds.first().map(|(dtype, _)| *dtype));
        set_handle(context, 0, dtype.unwrap_or_default(), shape);
        Ok(())
    },
    kernels: &[Kernel::native(|context| {
        let size = context.input_i64(1)?;
        ensure!(
            size >= 0,
            InvalidArgument,
            "TensorListSlice expects size to be non-negative. Got: {size}"
        );
        let mut list = take_list(context, 0)?;
        list.tensors.resize(size as usize, None);
        context.set_output(0, list.into_tensor()?)
    })],
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&EMPTY, &RESERVE, &FROM_TENSOR, &RESIZE];

/// A handle of lists whose elements have the shape that an input says.
fn declared(context: &mut ShapeContext, index: usize) -> Result<()> {
    let shape = if context.input(index).rank() == Some(0) && context.input_value(index).is_none() {
        PartialShape::unknown()
    } else {
        context.input_as_shape(index)?
    };
    let dtype = context.attrs().dtype("element_dtype")?;
    set_handle(context, 0, dtype, shape);
    Ok(())
}

fn reserve(context: &mut KernelContext) -> Result<()> {
    let shape = shape_at(context, 0)?;
    let count = context.input_i64(1)?;
    ensure!(
        count >= 0,
        InvalidArgument,
        "The num_elements to reserve must be a non negative number, but got {count}"
    );
    ensure!(
        count < 1 << 31,
        ResourceExhausted,
        "cannot reserve a list of {count} elements"
    );
    let tensors = vec![None; count as usize];
    let list = TensorList {
        dtype: context.attrs().dtype("element_dtype")?,
        shape,
        max_elements: -1,
        tensors,
    };
    context.set_output(0, list.into_tensor()?)
}

/// One element per row, each a view of the tensor.
fn from_tensor(context: &mut KernelContext) -> Result<()> {
    let declared = shape_at(context, 1)?;
    let tensor = context.input(0)?.clone();
    ensure!(
        tensor.rank() >= 1,
        InvalidArgument,
        "Tensor must be at least a vector, but saw shape: {}",
        tensor.shape()
    );
    let row = Shape::new(&tensor.dims()[1..])?;
    ensure!(
        declared.is_compatible_with(&PartialShape::from(&row)),
        InvalidArgument,
        "Specified a list with shape {declared} from a tensor with shape {row}"
    );
    let mut tensors = Vec::with_capacity(tensor.shape().dim(0));
    for index in 0..tensor.shape().dim(0) {
        tensors.push(Some(tensor.rows(index, 1)?.into_shape(row.clone())?));
    }
    let list = TensorList {
        dtype: tensor.dtype(),
        shape: declared,
        max_elements: -1,
        tensors,
    };
    context.set_output(0, list.into_tensor()?)
}
