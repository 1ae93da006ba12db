//! Making lists, and reading and writing them element by element.

use super::{declared, element_shape, set_list};
use crate::array::shape_value;
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext, TensorList, shapes,
};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "EmptyTensorList",
        shape: |context| made(context, 0),
        kernels: &[Kernel::native(empty)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "TensorListReserve",
        shape: |context| made(context, 0),
        kernels: &[Kernel::native(reserve)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "TensorListPushBack",
        shape: |context| changed(context, 1),
        kernels: &[Kernel::native(push)],
        gradient: Gradient::Fn(push_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListPopBack",
        shape: pop_shape,
        kernels: &[Kernel::native(pop)],
        gradient: Gradient::Fn(pop_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListGetItem",
        shape: get_shape,
        kernels: &[Kernel::native(get)],
        gradient: Gradient::Fn(get_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListSetItem",
        shape: |context| {
            context.input_with_rank(1, 0)?;
            changed(context, 2)
        },
        kernels: &[Kernel::native(set)],
        gradient: Gradient::Fn(set_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListLength",
        shape: shapes::scalar,
        kernels: &[Kernel::native(length)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "TensorListResize",
        shape: |context| {
            context.input_with_rank(1, 0)?;
            shapes::unchanged(context)
        },
        kernels: &[Kernel::native(resize)],
        gradient: Gradient::Fn(resize_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListElementShape",
        shape: |context| {
            let rank = element_shape(context, 0).rank();
            if let Some(rank) = rank {
                context.set_output(0, PartialShape::new(&[rank as i64]));
            }
            Ok(())
        },
        kernels: &[Kernel::native(shape_of_elements)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

/// A new list whose element shape is the value of an input.
pub fn made(context: &mut ShapeContext, input: usize) -> Result<()> {
    let dtype = context.attrs().dtype("element_dtype")?;
    let shape = declared(context, input)?;
    set_list(context, 0, dtype, shape);
    Ok(())
}

/// A list that gets the tensor at an input as an element: its element shape stays.
fn changed(context: &mut ShapeContext, item: usize) -> Result<()> {
    let dtype = context.attrs().dtype("element_dtype")?;
    let shape = element_shape(context, 0);
    shape.merge(&context.input(item))?;
    set_list(context, 0, dtype, shape);
    Ok(())
}

/// The element shape in an input: extents with -1 for unknown ones, or a scalar -1.
pub fn shape_input(context: &KernelContext, index: usize) -> Result<PartialShape> {
    ff_op::shape_from_value(context.input(index)?)
}

/// Changes the list at input 0, in place if nobody shares it, and gives it as output 0.
pub fn change(context: &mut KernelContext, change: impl FnOnce(&mut TensorList) -> Result<()>) -> Result<()> {
    let mut handle = context.take_input(0)?;
    TensorList::of(&handle)?;
    let own = handle
        .variants_mut()
        .ok()
        .and_then(|variants| variants.first_mut());
    if let Some(list) = own.and_then(|variant| variant.get_mut::<TensorList>()) {
        change(list)?;
        return context.set_output(0, handle);
    }
    let mut list = TensorList::of(&handle)?.clone();
    change(&mut list)?;
    context.set_output(0, list.into_tensor()?)
}

fn empty(context: &mut KernelContext) -> Result<()> {
    let list = TensorList {
        element_type: context.attrs().dtype("element_dtype")?,
        element_shape: shape_input(context, 0)?,
        max_elements: context.input_i64(1)?,
        elements: Vec::new(),
    };
    context.set_output(0, list.into_tensor()?)
}

fn reserve(context: &mut KernelContext) -> Result<()> {
    let count = context.input_i64(1)?;
    ensure!(
        count >= 0,
        InvalidArgument,
        "The num_elements to reserve must be a non negative number, but got {count}"
    );
    let mut list = TensorList {
        element_type: context.attrs().dtype("element_dtype")?,
        element_shape: shape_input(context, 0)?,
        max_elements: -1,
        elements: Vec::new(),
    };
    list.set_len(count as usize)?;
    context.set_output(0, list.into_tensor()?)
}

fn push(context: &mut KernelContext) -> Result<()> {
    let item = context.take_input(1)?;
    change(context, |list| {
        list.check(&item)?;
        ensure!(
            list.max_elements < 0 || (list.elements.len() as i64) < list.max_elements,
            InvalidArgument,
            "Tried to push item into a full list list size: {} max_num_elements: {}",
            list.elements.len(),
            list.max_elements
        );
        list.elements.push(Some(item));
        Ok(())
    })
}

fn pop_shape(context: &mut ShapeContext) -> Result<()> {
    let dtype = context.attrs().dtype("element_dtype")?;
    let held = element_shape(context, 0);
    let item = held.merge(&declared(context, 1)?)?;
    set_list(context, 0, dtype, held);
    context.set_output(1, item);
    Ok(())
}

/// Fails unless the node and the list agree on the elements' type.
pub fn check_type(context: &KernelContext, list: &TensorList) -> Result<()> {
    let dtype = context.attrs().dtype("element_dtype")?;
    ensure!(
        dtype == list.element_type,
        InvalidArgument,
        "Invalid data types; op elements {dtype} but list elements {}",
        list.element_type
    );
    Ok(())
}

fn pop(context: &mut KernelContext) -> Result<()> {
    let shape = shape_input(context, 1)?;
    let list = TensorList::of(context.input(0)?)?;
    check_type(context, list)?;
    ensure!(
        !list.elements.is_empty(),
        InvalidArgument,
        "Trying to pop from an empty list."
    );
    let item = list.element(list.elements.len() as i64 - 1, &shape)?;
    context.set_output(1, item)?;
    change(context, |list| {
        list.elements.pop();
        Ok(())
    })
}

fn get_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(1, 0)?;
    let shape = element_shape(context, 0).merge(&declared(context, 2)?)?;
    context.set_output(0, shape);
    Ok(())
}

fn get(context: &mut KernelContext) -> Result<()> {
    let (index, shape) = (context.input_i64(1)?, shape_input(context, 2)?);
    let list = TensorList::of(context.input(0)?)?;
    check_type(context, list)?;
    let item = list.element(index, &shape)?;
    context.set_output(0, item)
}

fn set(context: &mut KernelContext) -> Result<()> {
    let grow = context
        .attrs()
        .bool("resize_if_index_out_of_bounds")
        .unwrap_or(false);
    let (index, item) = (context.input_i64(1)?, context.take_input(2)?);
    change(context, |list| {
        list.check(&item)?;
        let count = list.elements.len();
        let place = usize::try_from(index).ok().filter(|&place| place < count || grow);
        let Some(place) = place else {
            ff_tensor::bail!(
                InvalidArgument,
                "Trying to modify element {index} in a list with {count} elements."
            );
        };
        if place >= count {
            list.set_len(place + 1)?;
        }
        list.elements[place] = Some(item);
        Ok(())
    })
}

fn length(context: &mut KernelContext) -> Result<()> {
    let count = TensorList::of(context.input(0)?)?.elements.len() as i32;
    context.set_output(0, Tensor::scalar(count)?)
}

fn resize(context: &mut KernelContext) -> Result<()> {
    let size = context.input_i64(1)?;
    ensure!(
        size >= 0,
        InvalidArgument,
        "TensorListSlice expects size to be non-negative. Got: {size}"
    );
    change(context, |list| list.set_len(size as usize))
}

fn shape_of_elements(context: &mut KernelContext) -> Result<()> {
    let shape = TensorList::of(context.input(0)?)?.element_shape.clone();
    let dtype = context.output_type(0);
    let value = match shape.dims() {
        Some(dims) => shape_value(dtype, dims)?,
        None => shape_value(dtype, &[dim::UNKNOWN])?.into_shape(Shape::scalar())?,
    };
    context.set_output(0, value)
}

/// The attribute that names the elements' type.
pub fn element_attrs(dtype: DataType) -> Attrs {
    Attrs::new().with("element_dtype", dtype)
}

fn push_gradient(context: &mut GradientContext) -> Result<()> {
    let (list, item) = (context.incoming_or_zeros(0)?, context.input(1)?);
    let attrs = element_attrs(context.attrs().dtype("element_dtype")?);
    let shape = context.op("Shape", &[item], Attrs::new())?;
    let node = context.node_of("TensorListPopBack", &[list, shape], attrs)?;
    context.set(0, OutputRef { node, index: 0 });
    context.set(1, OutputRef { node, index: 1 });
    Ok(())
}

fn pop_gradient(context: &mut GradientContext) -> Result<()> {
    let (list, item) = (context.incoming_or_zeros(0)?, context.incoming_or_zeros(1)?);
    let attrs = element_attrs(context.attrs().dtype("element_dtype")?);
    let pushed = context.op("TensorListPushBack", &[list, item], attrs)?;
    context.set(0, pushed);
    Ok(())
}

fn get_gradient(context: &mut GradientContext) -> Result<()> {
    let (item, list, index) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let attrs = element_attrs(context.attrs().dtype("element_dtype")?);
    let count = context.op("TensorListLength", &[list], Attrs::new())?;
    let shape = context.op("Shape", &[item], Attrs::new())?;
    let zeros = context.op("TensorListReserve", &[shape, count], attrs.clone())?;
    let gradient = context.op("TensorListSetItem", &[zeros, index, item], attrs)?;
    context.set(0, gradient);
    Ok(())
}

fn set_gradient(context: &mut GradientContext) -> Result<()> {
    let (list, index, item) = (
        context.incoming_or_zeros(0)?,
        context.input(1)?,
        context.input(2)?,
    );
    let attrs = element_attrs(context.attrs().dtype("element_dtype")?);
    let zeros = context.op("ZerosLike", &[item], Attrs::new())?;
    let others = context.op("TensorListSetItem", &[list, index, zeros], attrs.clone())?;
    let shape = context.op("Shape", &[item], Attrs::new())?;
    let gradient = context.op("TensorListGetItem", &[list, index, shape], attrs)?;
    context.set(0, others);
    context.set(2, gradient);
    Ok(())
}

fn resize_gradient(context: &mut GradientContext) -> Result<()> {
    let (list, input) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let count = context.op("TensorListLength", &[input], Attrs::new())?;
    let gradient = context.op("TensorListResize", &[list, count], Attrs::new())?;
    context.set(0, gradient);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use ff_tensor::Code;

    fn float() -> Attrs {
        element_attrs(DataType::FLOAT)
    }

    #[test]
    fn elements_are_set_read_and_stay_what_they_were_for_others() {
        let runner = OpRunner::new();
        let list = runner
            .run("TensorListReserve", &[vector(&[-1]), scalar(2)], float())
            .unwrap()
            .remove(0);
        let item = vector(&[1.0f32, 2.0]);
        let changed = runner
            .run(
                "TensorListSetItem",
                &[list.clone(), scalar(1), item.clone()],
                float(),
            )
            .unwrap();
        let read = |list: &Tensor, index: i32| {
            runner.run(
                "TensorListGetItem",
                &[list.clone(), scalar(index), scalar(-1)],
                float(),
            )
        };
        assert_eq!(
            read(&changed[0], 1).unwrap()[0].as_slice::<f32>().unwrap(),
            [1.0, 2.0]
        );
        // Not set: zeros, if another element tells the shape.
        assert_eq!(
            read(&changed[0], 0).unwrap()[0].as_slice::<f32>().unwrap(),
            [0.0, 0.0]
        );
        assert_eq!(code(read(&list, 1)), Some(Code::InvalidArgument));
        assert_eq!(code(read(&changed[0], 2)), Some(Code::InvalidArgument));
        let wrong = runner.run("TensorListSetItem", &[list, scalar(0), scalar(1.0f32)], float());
        assert_eq!(code(wrong), Some(Code::InvalidArgument));
    }

    #[test]
    fn a_list_of_limited_length_is_pushed_and_popped() {
        let runner = OpRunner::new();
        let list = runner
            .run("EmptyTensorList", &[scalar(-1), scalar(1)], float())
            .unwrap();
        let pop = |list: &Tensor| runner.run("TensorListPopBack", &[list.clone(), scalar(-1)], float());
        assert_eq!(code(pop(&list[0])), Some(Code::InvalidArgument));
        let push = |list: &Tensor| runner.run("TensorListPushBack", &[list.clone(), scalar(3.0f32)], float());
        let one = push(&list[0]).unwrap();
        assert_eq!(code(push(&one[0])), Some(Code::InvalidArgument));
        let popped = pop(&one[0]).unwrap();
        assert_eq!(popped[1].single::<f32>().unwrap(), 3.0);
        let count = runner
            .run("TensorListLength", &popped[..1], Attrs::new())
            .unwrap();
        assert_eq!(count[0].single::<i32>().unwrap(), 0);
        let attrs = Attrs::new().with("shape_type", DataType::INT32);
        let shape = runner.run("TensorListElementShape", &popped[..1], attrs).unwrap();
        assert_eq!(shape[0].single::<i32>().unwrap(), -1);
        let sized = runner
            .run("TensorListResize", &[one[0].clone(), scalar(3)], Attrs::new())
            .unwrap();
        assert_eq!(TensorList::of(&sized[0]).unwrap().elements.len(), 3);
    }
}
