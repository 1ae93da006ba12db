//! Lists from tensors and tensors from lists: stack, gather, scatter, concatenate, split.

use super::element::{change, check_type, element_attrs, made, shape_input};
use super::{declared, element_shape, set_list};
use crate::array::shape_value;
use crate::movement::Writer;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext, TensorList, shapes};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, bail, dim, ensure, status};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "TensorListStack",
        shape: |context| stacked(context, 1, context.attrs().int("num_elements")?),
        kernels: &[Kernel::native(stack)],
        gradient: Gradient::Fn(stack_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListFromTensor",
        shape: from_tensor_shape,
        kernels: &[Kernel::native(from_tensor)],
        gradient: Gradient::Fn(from_tensor_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListGather",
        shape: |context| {
            let count = context.input_with_rank(1, 1)?.dim(0);
            stacked(context, 2, count)
        },
        kernels: &[Kernel::native(gather)],
        gradient: Gradient::Fn(gather_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListScatter",
        shape: |context| made(context, 2),
        kernels: &[Kernel::native(scatter)],
        gradient: Gradient::Fn(scatter_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListScatterV2",
        shape: |context| made(context, 2),
        kernels: &[Kernel::native(scatter)],
        gradient: Gradient::Fn(scatter_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListScatterIntoExistingList",
        shape: shapes::unchanged,
        kernels: &[Kernel::native(scatter_into)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "TensorListConcat",
        shape: concat_shape,
        kernels: &[Kernel::native(concat)],
        gradient: Gradient::Fn(concat_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListConcatV2",
        shape: concat_shape,
        kernels: &[Kernel::native(concat)],
        gradient: Gradient::Fn(concat_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListSplit",
        shape: |context| made(context, 1),
        kernels: &[Kernel::native(split)],
        gradient: Gradient::Fn(split_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorListConcatLists",
        shape: shapes::unchanged,
        kernels: &[Kernel::native(concat_lists)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "TensorListPushBackBatch",
        shape: shapes::unchanged,
        kernels: &[Kernel::native(push_batch)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

/// `count` elements of the list at input 0 under each other; input `shape` says more of their shape.
fn stacked(context: &mut ShapeContext, shape: usize, count: i64) -> Result<()> {
    let element = element_shape(context, 0).merge(&declared(context, shape)?)?;
    let output = PartialShape::new(&[count]).concat(&element);
    context.set_output(0, output);
    Ok(())
}

/// The elements at `indices` as one tensor.
fn stack_elements(list: &TensorList, indices: &[i64], shape: &PartialShape) -> Result<Tensor> {
    let shape = list.common_shape(shape)?;
    let element = shape.to_shape().ok_or_else(|| {
        status!(
            InvalidArgument,
            "{} non-fully-defined element_shape: {shape}",
            match list.elements.is_empty() {
                true => "Tried to stack elements of an empty list with",
                false => "Tried to stack list which only contains uninitialized tensors and has a",
            }
        )
    })?;
    let mut dims = vec![indices.len() as i64];
    dims.extend(element.dims());
    let mut writer = Writer::new(list.element_type, Shape::new(&dims)?)?;
    for (place, &index) in indices.iter().enumerate() {
        let item = list.element(index, &shape)?;
        writer.copy(place * element.num_elements(), &item, 0, element.num_elements())?;
    }
    writer.finish()
}

fn stack(context: &mut KernelContext) -> Result<()> {
    let (shape, expected) = (shape_input(context, 1)?, context.attrs().int("num_elements")?);
    let list = TensorList::of(context.input(0)?)?;
    check_type(context, list)?;
    let count = list.elements.len() as i64;
    ensure!(
        expected == -1 || expected == count,
        InvalidArgument,
        "Operation expected a list with {expected} elements but got a list with {count} elements."
    );
    let stacked = stack_elements(list, &(0..count).collect::<Vec<_>>(), &shape)?;
    context.set_output(0, stacked)
}

fn from_tensor_shape(context: &mut ShapeContext) -> Result<()> {
    let dtype = context.attrs().dtype("element_dtype")?;
    let rows = context.input_with_rank_at_least(0, 1)?.slice(1, None);
    let shape = declared(context, 1)?;
    rows.merge(&shape)?;
    set_list(context, 0, dtype, shape);
    Ok(())
}

/// The rows of a tensor as tensors of their own, which do not keep it in memory.
fn rows(tensor: &Tensor) -> Result<Vec<Tensor>> {
    ensure!(
        tensor.rank() > 0,
        InvalidArgument,
        "Tensor must be at least a vector, but saw shape: {}",
        tensor.shape()
    );
    let shape = Shape::new(&tensor.dims()[1..])?;
    let (count, width) = (tensor.dims()[0] as usize, shape.num_elements());
    let mut rows = Vec::new();
    rows.try_reserve(count)
        .map_err(|_| status!(ResourceExhausted, "OOM when taking {count} rows of a tensor"))?;
    for row in 0..count {
        let mut writer = Writer::new(tensor.dtype(), shape.clone())?;
        writer.copy(0, tensor, row * width, width)?;
        rows.push(writer.finish()?);
    }
    Ok(rows)
}

fn from_tensor(context: &mut KernelContext) -> Result<()> {
    let tensor = context.take_input(0)?;
    let element_shape = shape_input(context, 1)?;
    let list = TensorList {
        element_type: tensor.dtype(),
        element_shape,
        max_elements: -1,
        elements: rows(&tensor)?.into_iter().map(Some).collect(),
    };
    let fits = list.elements.iter().flatten().all(|row| list.check(row).is_ok());
    ensure!(
        fits,
        InvalidArgument,
        "Specified a list with shape {} from a tensor with shape {}",
        list.element_shape,
        tensor.shape()
    );
    context.set_output(0, list.into_tensor()?)
}

fn gather(context: &mut KernelContext) -> Result<()> {
    let (indices, shape) = (context.input_i64s(1)?, shape_input(context, 2)?);
    let list = TensorList::of(context.input(0)?)?;
    check_type(context, list)?;
    let count = list.elements.len();
    if let Some(index) = indices.iter().find(|&&index| !(0..count as i64).contains(&index)) {
        bail!(
            InvalidArgument,
            "{}",
            match shape.merge(&list.element_shape)?.is_fully_known() {
                true => format!("Index {index} out o range; list only has {count} elements."),
                false => format!("Trying to gather element {index} in a list with {count} elements."),
            }
        );
    }
    let gathered = stack_elements(list, &indices, &shape)?;
    context.set_output(0, gathered)
}

/// Puts the rows of a tensor at `indices` of a list, which grows as needed.
fn put_rows(list: &mut TensorList, tensor: &Tensor, indices: &[i64]) -> Result<()> {
    let rows = rows(tensor)?;
    ensure!(
        rows.len() == indices.len(),
        InvalidArgument,
        "Invalid number of rows in input tensor. Expected: {} Actual: {}",
        indices.len(),
        rows.len()
    );
    for (&index, row) in indices.iter().zip(rows) {
        let place = usize::try_from(index).map_err(|_| {
            status!(
                InvalidArgument,
                "Indices in TensorListScatter must all be non-negative."
            )
        })?;
        list.check(&row)?;
        if place >= list.elements.len() {
            list.set_len(place + 1)?;
        }
        list.elements[place] = Some(row);
    }
    Ok(())
}

fn scatter(context: &mut KernelContext) -> Result<()> {
    let (tensor, indices) = (context.take_input(0)?, context.input_i64s(1)?);
    let count = if context.num_inputs() > 3 {
        context.input_i64(3)?
    } else {
        -1
    };
    let highest = indices.iter().max().copied().unwrap_or(-1);
    ensure!(
        count < 0 || highest < count,
        InvalidArgument,
        "TensorListScatter: Trying to scatter at index {highest} in list with size {count}"
    );
    let mut list = TensorList {
        element_type: tensor.dtype(),
        element_shape: shape_input(context, 2)?,
        max_elements: -1,
        elements: Vec::new(),
    };
    list.set_len(count.max(0) as usize)?;
    put_rows(&mut list, &tensor, &indices)?;
    context.set_output(0, list.into_tensor()?)
}

fn scatter_into(context: &mut KernelContext) -> Result<()> {
    let (tensor, indices) = (context.take_input(1)?, context.input_i64s(2)?);
    change(context, |list| put_rows(list, &tensor, &indices))
}

fn concat_shape(context: &mut ShapeContext) -> Result<()> {
    let element = match context.attrs().shape("element_shape") {
        Ok(shape) => shape.clone(),
        Err(_) => declared(context, 1)?,
    };
    let element = element_shape(context, 0).merge(&element)?;
    let output = PartialShape::new(&[dim::UNKNOWN]).concat(&element.slice(1, None));
    context.set_output(0, output);
    context.set_output(1, PartialShape::of_rank(1));
    Ok(())
}

fn concat(context: &mut KernelContext) -> Result<()> {
    let shape = match context.attrs().shape("element_shape") {
        Ok(shape) => shape.clone(),
        Err(_) => shape_input(context, 1)?,
    };
    let leading = if context.num_inputs() > 2 {
        context.input_i64s(2)?
    } else {
        Vec::new()
    };
    let list = TensorList::of(context.input(0)?)?;
    check_type(context, list)?;
    let (joined, lengths) = concatenated(list, &shape, &leading)?;
    context.set_output(0, joined)?;
    context.set_output(1, shape_value(DataType::INT64, &lengths)?)
}

/// The elements one after the other along their first axis, and their extents along it. `leading` has the extents of
/// elements that have not been set.
fn concatenated(list: &TensorList, shape: &PartialShape, leading: &[i64]) -> Result<(Tensor, Vec<i64>)> {
    let mut rest = shape.merge(&list.element_shape)?.slice(1, None);
    for element in list.elements.iter().flatten() {
        ensure!(
            element.rank() > 0,
            InvalidArgument,
            "Concat saw a scalar shape at an element of the list but requires at least vectors."
        );
        rest = rest.merge(&element.partial_shape().slice(1, None))?;
    }
    let rest = rest.to_shape().ok_or_else(|| {
        status!(
            InvalidArgument,
            "All except the first dimension must be fully defined when concating an empty tensor list. element_shape: {shape}"
        )
    })?;
    let first = shape.merge(&list.element_shape)?.dim(0);
    let mut lengths = Vec::with_capacity(list.elements.len());
    for (index, element) in list.elements.iter().enumerate() {
        let length = match element {
            Some(element) => element.dims()[0],
            None => leading.get(index).copied().unwrap_or(first),
        };
        ensure!(
            length >= 0,
            InvalidArgument,
            "Concating lists with uninitialized tensors is not supported when the leading dimension is not known"
        );
        lengths.push(length);
    }
    let mut dims = vec![lengths.iter().sum::<i64>()];
    dims.extend(rest.dims());
    let mut writer = Writer::zeros(list.element_type, Shape::new(&dims)?)?;
    let mut start = 0;
    for (element, length) in list.elements.iter().zip(&lengths) {
        let count = *length as usize * rest.num_elements();
        if let Some(element) = element {
            writer.copy(start, element, 0, count)?;
        }
        start += count;
    }
    Ok((writer.finish()?, lengths))
}

fn split(context: &mut KernelContext) -> Result<()> {
    let (tensor, lengths) = (context.take_input(0)?, context.input_i64s(2)?);
    let element_shape = shape_input(context, 1)?;
    ensure!(
        tensor.rank() > 0,
        InvalidArgument,
        "Tensor must be at least a vector, but saw shape: {}",
        tensor.shape()
    );
    let used = lengths
        .iter()
        .fold(0i64, |used, &length| used.saturating_add(length));
    ensure!(
        lengths.iter().all(|&length| length >= 0) && used == tensor.dims()[0],
        InvalidArgument,
        "Unused values in tensor or too few. Length of tensor: {} Values used: {used}",
        tensor.dims()[0]
    );
    let mut list = TensorList {
        element_type: tensor.dtype(),
        element_shape,
        max_elements: -1,
        elements: Vec::with_capacity(lengths.len()),
    };
    let width: i64 = tensor.dims()[1..].iter().product();
    let mut start = 0;
    for length in lengths {
        let mut dims = tensor.dims().to_vec();
        dims[0] = length;
        let count = (length * width) as usize;
        let mut writer = Writer::new(tensor.dtype(), Shape::new(&dims)?)?;
        writer.copy(0, &tensor, start, count)?;
        let part = writer.finish()?;
        list.check(&part)?;
        list.elements.push(Some(part));
        start += count;
    }
    context.set_output(0, list.into_tensor()?)
}

/// Lists in two variant tensors of one shape, joined pair by pair.
fn concat_lists(context: &mut KernelContext) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    ensure!(
        a.shape() == b.shape(),
        InvalidArgument,
        "input_a and input_b must have the same shape, {} and {}",
        a.shape(),
        b.shape()
    );
    let mut joined = Vec::with_capacity(a.num_elements());
    for (a, b) in a.variants()?.iter().zip(b.variants()?) {
        let lists = (a.get::<TensorList>(), b.get::<TensorList>());
        let (Some(a), Some(b)) = lists else {
            ff_tensor::bail!(InvalidArgument, "input is not a list");
        };
        let mut list = a.clone();
        list.elements.extend(b.elements.iter().cloned());
        joined.push(ff_tensor::VariantValue::new(list));
    }
    let output = Tensor::from_variants(a.shape().clone(), joined)?;
    context.set_output(0, output)
}

/// Each row of a tensor becomes the last element of its list.
fn push_batch(context: &mut KernelContext) -> Result<()> {
    let (handles, items) = (context.input(0)?, rows(context.input(1)?)?);
    ensure!(
        handles.num_elements() == items.len(),
        InvalidArgument,
        "Expected tensor.shape[0] to be {}, but it is {}",
        handles.num_elements(),
        items.len()
    );
    let mut lists = Vec::with_capacity(items.len());
    for (variant, item) in handles.variants()?.iter().zip(items) {
        let list = variant.get::<TensorList>();
        let mut list = list
            .ok_or_else(|| status!(InvalidArgument, "input is not a list"))?
            .clone();
        list.check(&item)?;
        list.elements.push(Some(item));
        lists.push(ff_tensor::VariantValue::new(list));
    }
    let output = Tensor::from_variants(handles.shape().clone(), lists)?;
    context.set_output(0, output)
}

fn node_attrs(context: &GradientContext) -> Result<Attrs> {
    Ok(element_attrs(context.attrs().dtype("element_dtype")?))
}

/// The shape of a value's rows, as an int32 vector.
fn row_shape(context: &mut GradientContext, value: ff_op::OutputRef) -> Result<ff_op::OutputRef> {
    let shape = context.op("Shape", &[value], Attrs::new())?;
    let (one, zero, step) = (
        context.int32s(&[1])?,
        context.int32s(&[0])?,
        context.int32s(&[1])?,
    );
    context.op(
        "StridedSlice",
        &[shape, one, zero, step],
        Attrs::new().with("end_mask", 1i64),
    )
}

fn stack_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, attrs) = (context.incoming_or_zeros(0)?, node_attrs(context)?);
    let shape = row_shape(context, gradient)?;
    let list = context.op("TensorListFromTensor", &[gradient, shape], attrs)?;
    context.set(0, list);
    Ok(())
}

fn from_tensor_gradient(context: &mut GradientContext) -> Result<()> {
    let (list, tensor, attrs) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        node_attrs(context)?,
    );
    let shape = row_shape(context, tensor)?;
    let gradient = context.op("TensorListStack", &[list, shape], attrs)?;
    context.set(0, gradient);
    Ok(())
}

fn gather_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, list, indices) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let attrs = node_attrs(context)?;
    let shape = row_shape(context, gradient)?;
    let count = context.op("TensorListLength", &[list], Attrs::new())?;
    let scattered = context.op("TensorListScatterV2", &[gradient, indices, shape, count], attrs)?;
    context.set(0, scattered);
    Ok(())
}

fn scatter_gradient(context: &mut GradientContext) -> Result<()> {
    let (list, tensor, indices) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let attrs = node_attrs(context)?;
    let shape = row_shape(context, tensor)?;
    let gathered = context.op("TensorListGather", &[list, indices, shape], attrs)?;
    context.set(0, gathered);
    Ok(())
}

fn concat_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, list, lengths) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(1),
    );
    let attrs = node_attrs(context)?;
    let out = Attrs::new().with("shape_type", DataType::INT32);
    let shape = context.op("TensorListElementShape", &[list], out)?;
    let split = context.op("TensorListSplit", &[gradient, shape, lengths], attrs)?;
    context.set(0, split);
    Ok(())
}

fn split_gradient(context: &mut GradientContext) -> Result<()> {
    let (list, shape, lengths) = (
        context.incoming_or_zeros(0)?,
        context.input(1)?,
        context.input(2)?,
    );
    let attrs = node_attrs(context)?;
    let joined = context.op("TensorListConcatV2", &[list, shape, lengths], attrs)?;
    context.set(0, joined);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use ff_tensor::Code;

    fn ints() -> Attrs {
        element_attrs(DataType::INT32)
    }

    #[test]
    fn a_tensor_goes_into_a_list_and_comes_back() {
        let runner = OpRunner::new();
        let matrix = t(&[3, 2], &[1, 2, 3, 4, 5, 6]);
        let list = runner
            .run("TensorListFromTensor", &[matrix.clone(), vector(&[2])], ints())
            .unwrap()
            .remove(0);
        let back = runner
            .run("TensorListStack", &[list.clone(), scalar(-1)], ints())
            .unwrap();
        assert_eq!(back[0].as_slice::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
        let two = ints().with("num_elements", 2i64);
        assert_eq!(
            code(runner.run("TensorListStack", &[list.clone(), scalar(-1)], two)),
            Some(Code::InvalidArgument)
        );
        let some = runner
            .run(
                "TensorListGather",
                &[list.clone(), vector(&[2, 0]), vector(&[2])],
                ints(),
            )
            .unwrap();
        assert_eq!(some[0].as_slice::<i32>().unwrap(), [5, 6, 1, 2]);
        let joined = runner
            .run(
                "TensorListConcatV2",
                &[list, vector(&[-1]), vector::<i64>(&[])],
                ints(),
            )
            .unwrap();
        assert_eq!(joined[0].as_slice::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(joined[1].as_slice::<i64>().unwrap(), [2, 2, 2]);
        let scalar_source = runner.run("TensorListFromTensor", &[scalar(1), vector::<i32>(&[])], ints());
        assert_eq!(code(scalar_source), Some(Code::InvalidArgument));
        let misfit = runner.run("TensorListFromTensor", &[matrix, vector(&[3])], ints());
        assert_eq!(code(misfit), Some(Code::InvalidArgument));
    }

    #[test]
    fn lists_are_split_scattered_and_joined() {
        let runner = OpRunner::new();
        let source = vector(&[1, 2, 3]);
        let split = |lengths: &[i64]| {
            runner.run(
                "TensorListSplit",
                &[source.clone(), vector(&[-1]), vector(lengths)],
                ints(),
            )
        };
        let list = split(&[1, 2]).unwrap().remove(0);
        assert_eq!(code(split(&[1, 1])), Some(Code::InvalidArgument));
        let joined = runner
            .run("TensorListConcatLists", &[list.clone(), list], ints())
            .unwrap();
        assert_eq!(TensorList::of(&joined[0]).unwrap().elements.len(), 4);
        let inputs = [source.clone(), vector(&[3, 0, 1]), vector::<i32>(&[]), scalar(5)];
        let spread = runner.run("TensorListScatterV2", &inputs, ints()).unwrap();
        let all = runner
            .run(
                "TensorListStack",
                &[spread[0].clone(), vector::<i32>(&[])],
                ints(),
            )
            .unwrap();
        assert_eq!(all[0].as_slice::<i32>().unwrap(), [2, 3, 0, 1, 0]);
        let inputs = [source, vector(&[3, 0, -1]), vector::<i32>(&[]), scalar(5)];
        assert_eq!(
            code(runner.run("TensorListScatterV2", &inputs, ints())),
            Some(Code::InvalidArgument)
        );
    }
}
