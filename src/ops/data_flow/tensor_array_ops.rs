//! Ops on tensor arrays, in three versions: with handles that are references to names, names, and resources.

use super::tensor_array::{Settings, TensorArray};
use super::{handle, rows, tensor_array_gradients as gradients};
use crate::movement::Writer;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, bail, ensure, status};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MAKE: Op = Op {
    shape: handle_shape,
    kernels: &[Kernel::native(make)],
    gradient: Gradient::Missing,
    ..Op::STATEFUL
};
const GRADIENT: Op = Op {
    kernels: &[Kernel::native(gradient)],
    ..MAKE
};
const WRITE: Op = Op {
    shape: flow_shape,
    kernels: &[Kernel::native(write)],
    gradient: Gradient::Missing,
    ..Op::WRITES
};
const READ: Op = Op {
    shape: read_shape,
    kernels: &[Kernel::native(read)],
    ..WRITE
};
const GATHER: Op = Op {
    shape: |_| Ok(()),
    kernels: &[Kernel::native(gather)],
    ..WRITE
};
const SCATTER: Op = Op {
    kernels: &[Kernel::native(scatter)],
    ..WRITE
};
const CONCAT: Op = Op {
    shape: |context| {
        context.set_output(1, PartialShape::of_rank(1));
        Ok(())
    },
    kernels: &[Kernel::native(concat)],
    ..WRITE
};
const SPLIT: Op = Op {
    kernels: &[Kernel::native(split)],
    ..WRITE
};
const SIZE: Op = Op {
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let size = handle::at::<TensorArray>(context, 0)?.len()?;
        context.set_output(0, Tensor::scalar(size as i32)?)
    })],
    ..WRITE
};
const CLOSE: Op = Op {
    shape: shapes::none,
    kernels: &[Kernel::native(|context| {
        handle::at::<TensorArray>(context, 0)?.close();
        Ok(())
    })],
    ..WRITE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "TensorArray",
        ..MAKE
    },
    &Op {
        name: "TensorArrayV2",
        ..MAKE
    },
    &Op {
        name: "TensorArrayV3",
        gradient: Gradient::NotDifferentiable,
        ..MAKE
    },
    &Op {
        name: "TensorArrayGrad",
        ..GRADIENT
    },
    &Op {
        name: "TensorArrayGradV2",
        ..GRADIENT
    },
    &Op {
        name: "TensorArrayGradV3",
        gradient: Gradient::NotDifferentiable,
        ..GRADIENT
    },
    &Op {
        name: "TensorArrayGradWithShape",
        gradient: Gradient::NotDifferentiable,
        ..GRADIENT
    },
    &Op {
        name: "TensorArrayWrite",
        ..WRITE
    },
    &Op {
        name: "TensorArrayWriteV2",
        ..WRITE
    },
    &Op {
        name: "TensorArrayWriteV3",
        gradient: Gradient::Fn(gradients::write),
        ..WRITE
    },
    &Op {
        name: "TensorArrayRead",
        ..READ
    },
    &Op {
        name: "TensorArrayReadV2",
        ..READ
    },
    &Op {
        name: "TensorArrayReadV3",
        gradient: Gradient::Fn(gradients::read),
        ..READ
    },
    &Op {
        name: "TensorArrayPack",
        ..GATHER
    },
    &Op {
        name: "TensorArrayGather",
        ..GATHER
    },
    &Op {
        name: "TensorArrayGatherV2",
        ..GATHER
    },
    &Op {
        name: "TensorArrayGatherV3",
        gradient: Gradient::Fn(gradients::gather),
        ..GATHER
    },
    &Op {
        name: "TensorArrayUnpack",
        ..SCATTER
    },
    &Op {
        name: "TensorArrayScatter",
        ..SCATTER
    },
    &Op {
        name: "TensorArrayScatterV2",
        ..SCATTER
    },
    &Op {
        name: "TensorArrayScatterV3",
        gradient: Gradient::Fn(gradients::scatter),
        ..SCATTER
    },
    &Op {
        name: "TensorArrayConcat",
        ..CONCAT
    },
    &Op {
        name: "TensorArrayConcatV2",
        ..CONCAT
    },
    &Op {
        name: "TensorArrayConcatV3",
        gradient: Gradient::Fn(gradients::concat),
        ..CONCAT
    },
    &Op {
        name: "TensorArraySplit",
        ..SPLIT
    },
    &Op {
        name: "TensorArraySplitV2",
        ..SPLIT
    },
    &Op {
        name: "TensorArraySplitV3",
        gradient: Gradient::Fn(gradients::split),
        ..SPLIT
    },
    &Op {
        name: "TensorArraySize",
        ..SIZE
    },
    &Op {
        name: "TensorArraySizeV2",
        ..SIZE
    },
    &Op {
        name: "TensorArraySizeV3",
        gradient: Gradient::NotDifferentiable,
        ..SIZE
    },
    &Op {
        name: "TensorArrayClose",
        ..CLOSE
    },
    &Op {
        name: "TensorArrayCloseV2",
        ..CLOSE
    },
    &Op {
        name: "TensorArrayCloseV3",
        gradient: Gradient::NotDifferentiable,
        ..CLOSE
    },
];

/// A handle (which the reference takes for a vector of two) and a flow; the handle knows its elements.
fn handle_shape(context: &mut ShapeContext) -> Result<()> {
    context.set_output(0, PartialShape::new(&[2]));
    context.set_output(1, PartialShape::scalar());
    let attrs = context.attrs();
    if let (Ok(dtype), Ok(shape)) = (attrs.dtype("dtype"), attrs.shape("element_shape")) {
        context.input_with_rank(0, 0)?;
        let held = vec![(dtype, shape.clone())];
        if shape.is_fully_known() || attrs.bool("identical_element_shapes").unwrap_or(false) {
            context.set_output_handle(0, held);
        }
    } else if let Some(held) = context.input_handle(0) {
        context.set_output_handle(0, held);
    }
    Ok(())
}

fn flow_shape(context: &mut ShapeContext) -> Result<()> {
    context.set_output(0, PartialShape::scalar());
    Ok(())
}

fn read_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(1, 0)?;
    if let Some([(_, shape)]) = context.input_handle(0).as_deref() {
        context.set_output(0, shape.clone());
    }
    Ok(())
}

/// Sets the handle and, where the op has one, the flow. Named arrays live in a container of the step.
fn give(context: &mut KernelContext, array: Arc<TensorArray>, name: &str) -> Result<()> {
    if context.num_outputs() > 1 {
        context.set_output(1, Tensor::scalar(0f32)?)?;
    }
    if context.node().output_types[0] == DataType::RESOURCE {
        let object: Arc<dyn Any + Send + Sync> = array;
        return handle::give(context, "", name, "tensorflow::TensorArray", Some(object));
    }
    let container = context.resources().step_container(context.host().step_id());
    let manager = context.resources().clone();
    match manager.create(&container, name, array) {
        Err(error) if error.code() != ff_tensor::Code::AlreadyExists => return Err(error),
        _ => {}
    }
    handle::give(context, &container, name, "tensorflow::TensorArray", None)
}

/// Arrays made so far in the process; their names tell them apart.
static ARRAYS: AtomicU64 = AtomicU64::new(0);

fn make(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let size = context.input(0)?;
    ensure!(
        size.rank() == 0,
        InvalidArgument,
        "TensorArray size must be scalar, but had shape: {}",
        size.shape()
    );
    let size = size.single::<i32>()?;
    let size = usize::try_from(size).map_err(|_| status!(InvalidArgument, "Size should be >= 0."))?;
    let name = match attrs.string("tensor_array_name")? {
        "" => context.node().name.as_str(),
        name => name,
    };
    let name = format!("{name}_{}", ARRAYS.fetch_add(1, Ordering::Relaxed));
    let settings = Settings {
        name: name.clone(),
        dtype: attrs.dtype("dtype")?,
        dynamic: attrs.bool("dynamic_size")?,
        clear_after_read: attrs.bool("clear_after_read")?,
        identical_shapes: attrs.bool("identical_element_shapes").unwrap_or(false),
        adds_up: false,
    };
    let array = TensorArray::new(settings, size, attrs.shape("element_shape")?.clone())?;
    give(context, Arc::new(array), &name)
}

/// Inputs: handle, flow, and for arrays of larger gradients what comes before the elements' shapes.
fn gradient(context: &mut KernelContext) -> Result<()> {
    let array = handle::at::<TensorArray>(context, 0)?;
    let source = context.attrs().string("source")?;
    let prepended = match context.num_inputs() {
        3 => context.input_i64s(2)?,
        _ => Vec::new(),
    };
    let gradient = array.gradient(source, &prepended)?;
    let name = gradient.name().to_string();
    give(context, gradient, &name)
}

/// The array at input 0, if it has this element type.
fn array_at(context: &KernelContext, dtype: DataType) -> Result<Arc<TensorArray>> {
    let array = handle::at::<TensorArray>(context, 0)?;
    ensure!(
        array.dtype() == dtype,
        InvalidArgument,
        "TensorArray dtype is {} but Op requested dtype {dtype}.",
        array.dtype()
    );
    Ok(array)
}

fn index_at(context: &KernelContext) -> Result<i64> {
    let index = context.input(1)?;
    ensure!(
        index.rank() == 0,
        InvalidArgument,
        "TensorArray index must be scalar, but had shape: {}",
        index.shape()
    );
    Ok(index.single::<i32>()?.into())
}

/// Hands the flow, which is the last input, on.
fn pass_flow(context: &mut KernelContext) {
    context.forward(context.num_inputs() - 1, 0);
}

fn write(context: &mut KernelContext) -> Result<()> {
    let array = array_at(context, context.attrs().dtype("T")?)?;
    let (index, value) = (index_at(context)?, context.take_input(2)?);
    array.write(context.pool(), index, value)?;
    pass_flow(context);
    Ok(())
}

fn read(context: &mut KernelContext) -> Result<()> {
    let array = array_at(context, context.output_type(0))?;
    let value = array.read([index_at(context)?])?.remove(0);
    context.set_output(0, value)
}

fn gather(context: &mut KernelContext) -> Result<()> {
    let array = array_at(context, context.output_type(0))?;
    array.learn_shape(context.attrs().shape("element_shape")?)?;
    let indices = match context.num_inputs() {
        3 => {
            let indices = context.input(1)?;
            ensure!(
                indices.rank() == 1,
                InvalidArgument,
                "Expected indices to be a vector, but received shape: {}",
                indices.shape()
            );
            indices.to_i64_vec()?
        }
        _ => (0..array.len()? as i64).collect(),
    };
    let value = array.gather(&indices)?;
    context.set_output(0, value)
}

/// Rows of a tensor to the elements that indices name, or to all elements in order.
fn scatter(context: &mut KernelContext) -> Result<()> {
    let array = array_at(context, context.attrs().dtype("T")?)?;
    let with_indices = context.num_inputs() == 4;
    let value = context.input(if with_indices { 2 } else { 1 })?;
    ensure!(
        value.rank() >= 1,
        InvalidArgument,
        "Input value for unpack must be at least a vector but received shape: {}",
        value.shape()
    );
    let (count, size) = (value.dims()[0], array.len()? as i64);
    let indices = if with_indices {
        let indices = context.input(1)?;
        ensure!(
            indices.rank() == 1,
            InvalidArgument,
            "Expected indices to be a vector, but received shape: {}",
            indices.shape()
        );
        indices.to_i64_vec()?
    } else {
        ensure!(
            array.may_grow() || size == count,
            InvalidArgument,
            "Input value must have first dimension equal to the array size ({count} vs. {size})"
        );
        (0..count).collect()
    };
    ensure!(
        indices.len() as i64 == count,
        InvalidArgument,
        "Expected len(indices) == values.shape[0], but saw: {} vs. {count}",
        indices.len()
    );
    if let Some(&largest) = indices.iter().max() {
        ensure!(
            array.may_grow() || largest < size,
            InvalidArgument,
            "Max scatter index must be < array size ({largest} vs. {size})"
        );
    }
    for (row, &index) in indices.iter().enumerate() {
        array.write(context.pool(), index, rows::row(value, row)?)?;
    }
    pass_flow(context);
    Ok(())
}

/// All elements along their first axis, and how long each was.
fn concat(context: &mut KernelContext) -> Result<()> {
    let array = array_at(context, context.output_type(0))?;
    let rest = context.attrs().shape("element_shape_except0")?.clone();
    let count = array.len()?;
    if count == 0 {
        let Some(rest) = rest.to_shape() else {
            bail!(
                Unimplemented,
                "TensorArray has size zero, but element_shape_except0 {rest} is not fully defined. Currently only static shapes are supported when concatenating zero-size TensorArrays."
            );
        };
        let shape = Shape::new(&[&[0], rest.dims()].concat())?;
        context.set_output(0, Tensor::zeros(array.dtype(), shape)?)?;
        return context.set_output(1, Tensor::vector::<i64>(&[])?);
    }
    let values = array.read(0..count as i64)?;
    let first = values[0].dims().get(1..).unwrap_or(&[]).to_vec();
    let mut lengths = Vec::with_capacity(count);
    for (index, value) in values.iter().enumerate() {
        let Some((&length, own)) = value.dims().split_first() else {
            bail!(
                InvalidArgument,
                "Concat saw a scalar shape at index {index} but requires at least vectors.  Did you mean to call pack?"
            );
        };
        ensure!(
            own == first && rest.is_compatible_with(&PartialShape::new(own)),
            InvalidArgument,
            "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: {} but index {index} has (excepting dimension 0) shape: {}",
            PartialShape::new(&first),
            PartialShape::new(own)
        );
        lengths.push(length);
    }
    let shape = Shape::new(&[&[lengths.iter().sum::<i64>()], &first[..]].concat())?;
    let mut writer = Writer::new(array.dtype(), shape)?;
    let mut at = 0;
    for value in &values {
        let size = value.num_elements();
        if size > 0 {
            writer.copy(at, value, 0, size)?;
        }
        at += size;
    }
    let value = writer.finish()?;
    context.set_output(0, value)?;
    context.set_output(1, Tensor::vector(&lengths)?)
}

/// Parts of a tensor along its first axis to the elements in order.
fn split(context: &mut KernelContext) -> Result<()> {
    let array = array_at(context, context.attrs().dtype("T")?)?;
    let (value, lengths) = (context.input(1)?, context.input(2)?);
    ensure!(
        lengths.rank() == 1,
        InvalidArgument,
        "Expected lengths to be a vector, received shape: {}",
        lengths.shape()
    );
    ensure!(
        value.rank() >= 1,
        InvalidArgument,
        "Expected value to be at least a vector, but received shape: {}",
        value.shape()
    );
    let (lengths, rows, size) = (lengths.to_i64_vec()?, value.dims()[0], array.len()?);
    let total = lengths.iter().try_fold(0i64, |sum, &length| match length >= 0 {
        true => sum.checked_add(length),
        false => None,
    });
    ensure!(
        total == Some(rows),
        InvalidArgument,
        "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {} and value's shape is: {} ",
        total.unwrap_or(-1),
        value.shape()
    );
    ensure!(
        array.may_grow() || size == lengths.len(),
        InvalidArgument,
        "TensorArray's size is not equal to the size of lengths ({size} vs. {}), and the TensorArray is not marked as dynamically resizeable",
        lengths.len()
    );
    let mut start = 0;
    for (index, &length) in lengths.iter().enumerate() {
        let element = value.rows(start, length as usize)?;
        array.write(context.pool(), index as i64, element)?;
        start += length as usize;
    }
    pass_flow(context);
    Ok(())
}
