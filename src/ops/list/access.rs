//! One element of a list: reading, setting, pushing, popping; the length.

use super::tensor_list::{check_type, held, list_at, set_handle, shape_at, take_list};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, Tensor, ensure, status};

static LENGTH: Op = Op {
    name: "TensorListLength",
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let length = list_at(context.input(0)?)?.tensors.len();
        context.set_output(0, Tensor::scalar(length as i32)?)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static ELEMENT_SHAPE: Op = Op {
    name: "TensorListElementShape",
    shape: |context| {
        let rank = held(context, 0).rank().map_or(-1, |rank| rank as i64);
        if rank >= 0 {
            context.set_output(0, PartialShape::new(&[rank]));
        }
        Ok(())
    },
    kernels: &[Kernel::native(|context| {
        let shape = list_at(context.input(0)?)?.shape.clone();
        let dtype = context.output_type(0);
        let value = match shape.dims() {
            Some(dims) => crate::array::shape_value(dtype, dims)?,
            None => crate::array::shape_value(dtype, &[-1])?.into_shape(ff_tensor::Shape::scalar())?,
        };
        context.set_output(0, value)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static GET_ITEM: Op = Op {
    name: "TensorListGetItem",
    shape: element_shape,
    kernels: &[Kernel::native(|context| {
        let index = context.input_i64(1)?;
        let shape = shape_at(context, 2)?;
        let list = list_at(context.input(0)?)?;
        check_type(list, context.output_type(0))?;
        let element = list.element(index, &shape)?;
        context.set_output(0, element)
    })],
    gradient: Gradient::Missing,
    ..Op::PURE
};
static SET_ITEM: Op = Op {
    name: "TensorListSetItem",
    shape: |context| same_list(context, 2),
    kernels: &[Kernel::native(set_item)],
    gradient: Gradient::Missing,
    ..Op::PURE
};
static PUSH_BACK: Op = Op {
    name: "TensorListPushBack",
    shape: |context| same_list(context, 1),
    kernels: &[Kernel::native(push_back)],
    gradient: Gradient::Missing,
    ..Op::PURE
};
static POP_BACK: Op = Op {
    name: "TensorListPopBack",
    shape: |context| {
        let dtype = context.attrs().dtype("element_dtype")?;
        let shape = held(context, 0).merge(&context.input_as_shape(1)?)?;
        set_handle(context, 0, dtype, held(context, 0));
        context.set_output(1, shape);
        Ok(())
    },
    kernels: &[Kernel::native(pop_back)],
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &LENGTH,
    &ELEMENT_SHAPE,
    &GET_ITEM,
    &SET_ITEM,
    &PUSH_BACK,
    &POP_BACK,
];

fn element_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = held(context, 0).merge(&context.input_as_shape(2)?)?;
    context.set_output(0, shape);
    Ok(())
}

/// The list with an element of this input's shape in it.
fn same_list(context: &mut ShapeContext, element: usize) -> Result<()> {
    let shape = held(context, 0);
    shape.merge(&context.input(element))?;
    let dtype = context.attrs().dtype("element_dtype")?;
    set_handle(context, 0, dtype, shape);
    Ok(())
}

fn check_element(list: &super::tensor_list::TensorList, element: &Tensor) -> Result<()> {
    check_type(list, element.dtype())?;
    ensure!(
        list.shape.is_compatible_with(&element.partial_shape()),
        InvalidArgument,
        "Tried to set a tensor with incompatible shape at a list index. Item element shape: {} list shape: {}",
        element.shape(),
        list.shape
    );
    Ok(())
}

fn set_item(context: &mut KernelContext) -> Result<()> {
    let index = context.input_i64(1)?;
    let element = context.input(2)?.clone();
    let mut list = take_list(context, 0)?;
    check_element(&list, &element)?;
    let grows = context
        .attrs()
        .bool("resize_if_index_out_of_bounds")
        .unwrap_or(false);
    let length = list.tensors.len();
    if grows && index >= length as i64 && index < 1 << 31 {
        list.tensors.resize(index as usize + 1, None);
    }
    let slot = usize::try_from(index)
        .ok()
        .and_then(|index| list.tensors.get_mut(index));
    *slot.ok_or_else(|| {
        status!(
            InvalidArgument,
            "Trying to modify element {index} in a list with {length} elements."
        )
    })? = Some(element);
    context.set_output(0, list.into_tensor()?)
}

fn push_back(context: &mut KernelContext) -> Result<()> {
    let element = context.input(1)?.clone();
    let mut list = take_list(context, 0)?;
    check_element(&list, &element)?;
    ensure!(
        list.max_elements < 0 || (list.tensors.len() as i64) < list.max_elements,
        InvalidArgument,
        "Tried to push item into a full list list size: {} max_num_elements: {}",
        list.tensors.len(),
        list.max_elements
    );
    list.tensors.push(Some(element));
    context.set_output(0, list.into_tensor()?)
}

fn pop_back(context: &mut KernelContext) -> Result<()> {
    let shape = shape_at(context, 1)?;
    let mut list = take_list(context, 0)?;
    check_type(&list, context.output_type(1))?;
    ensure!(
        !list.tensors.is_empty(),
        InvalidArgument,
        "Trying to pop from an empty list."
    );
    let element = list.element(list.tensors.len() as i64 - 1, &shape)?;
    list.tensors.pop();
    context.set_output(0, list.into_tensor()?)?;
    context.set_output(1, element)
}
