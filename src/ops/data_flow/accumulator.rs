//! Accumulators of gradients: sums that are taken once enough gradients have come; gradients that are older than the
//! accumulator's step are dropped.

use super::handle;
use super::sparse_sum::SparseSum;
use super::stage::finish;
use crate::math::number::Number;
use ff_op::{AsyncKernelContext, Gradient, Kernel, KernelContext, Monitor, Op, Outcome, Value, shapes};
use ff_tensor::{DataType, PartialShape, Result, Tensor, ensure, status};
use std::sync::Arc;

const MAKE: Op = Op {
    shape: |context| {
        let is_name = context.node().output_types[0].is_ref();
        context.set_output(
            0,
            if is_name {
                PartialShape::new(&[2])
            } else {
                PartialShape::scalar()
            },
        );
        Ok(())
    },
    kernels: &[Kernel::native(make)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
const APPLY: Op = Op {
    shape: shapes::none,
    kernels: &[Kernel::native(apply_dense)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
const APPLY_SPARSE: Op = Op {
    kernels: &[Kernel::native(apply_sparse)],
    ..APPLY
};
const COUNT: Op = Op {
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let count = handle::at::<Accumulator>(context, 0)?
            .monitor
            .read(|state| state.count);
        context.set_output(0, Tensor::scalar(count as i32)?)
    })],
    ..APPLY
};
const SET_STEP: Op = Op {
    kernels: &[Kernel::native(|context| {
        let step = scalar_i64(context, 1, "num_required")?;
        let accumulator = handle::at::<Accumulator>(context, 0)?;
        accumulator.monitor.change(|state| state.step = step);
        Ok(())
    })],
    ..APPLY
};
const TAKE: Op = Op {
    shape: shapes::unknown,
    kernels: &[Kernel::asynchronous(take)],
    ..APPLY
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ConditionalAccumulator",
        ..MAKE
    },
    &Op {
        name: "ResourceConditionalAccumulator",
        ..MAKE
    },
    &Op {
        name: "SparseConditionalAccumulator",
        ..MAKE
    },
    &Op {
        name: "AccumulatorApplyGradient",
        ..APPLY
    },
    &Op {
        name: "ResourceAccumulatorApplyGradient",
        ..APPLY
    },
    &Op {
        name: "SparseAccumulatorApplyGradient",
        ..APPLY_SPARSE
    },
    &Op {
        name: "AccumulatorNumAccumulated",
        ..COUNT
    },
    &Op {
        name: "ResourceAccumulatorNumAccumulated",
        ..COUNT
    },
    &Op {
        name: "AccumulatorSetGlobalStep",
        ..SET_STEP
    },
    &Op {
        name: "ResourceAccumulatorSetGlobalStep",
        ..SET_STEP
    },
    &Op {
        name: "AccumulatorTakeGradient",
        ..TAKE
    },
    &Op {
        name: "ResourceAccumulatorTakeGradient",
        ..TAKE
    },
    &Op {
        name: "SparseAccumulatorTakeGradient",
        ..TAKE
    },
];

struct Accumulator {
    dtype: DataType,
    shape: PartialShape,
    /// Whether the mean is given, not the sum.
    mean: bool,
    monitor: Arc<Monitor<State>>,
}

#[derive(Default)]
struct State {
    /// Gradients of earlier steps are dropped.
    step: i64,
    count: usize,
    sum: Sum,
}

#[derive(Default)]
enum Sum {
    #[default]
    Nothing,
    Dense(Tensor),
    Sparse(SparseSum),
}

fn make(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (dtype, shape) = (attrs.dtype("dtype")?, attrs.shape("shape")?.clone());
    let reduction = attrs.string("reduction_type")?.to_string();
    let found = handle::find_or_create(context, "tensorflow::ConditionalAccumulatorBase", |_, _| {
        Ok(Accumulator {
            dtype,
            shape: shape.clone(),
            mean: reduction == "MEAN",
            monitor: Monitor::with_words(State::default(), 1, true, &["TakeGrad operation was cancelled"]),
        })
    })?;
    ensure!(
        found.dtype == dtype,
        InvalidArgument,
        "Shared conditional accumulator has type {} but requested type was {dtype}",
        found.dtype
    );
    ensure!(
        found.shape == shape,
        InvalidArgument,
        "Shared conditional accumulator has shape {} but requested shape was {shape}",
        found.shape
    );
    Ok(())
}

fn scalar_i64(context: &KernelContext, index: usize, what: &str) -> Result<i64> {
    let value = context.input(index)?;
    ensure!(
        value.rank() == 0,
        InvalidArgument,
        "Argument {what} must be scalar, but had bad shape {}",
        value.shape()
    );
    value.single::<i64>()
}

/// The accumulator at input 0, if it takes gradients of this type.
fn accumulator_at(context: &KernelContext, dtype: DataType) -> Result<Arc<Accumulator>> {
    let accumulator = handle::at::<Accumulator>(context, 0)?;
    ensure!(
        accumulator.dtype == dtype,
        InvalidArgument,
        "Expected type {}, got {dtype}",
        accumulator.dtype
    );
    Ok(accumulator)
}

fn apply_dense(context: &mut KernelContext) -> Result<()> {
    let step = scalar_i64(context, 1, "local_step")?;
    let gradient = context.take_input(2)?;
    let accumulator = accumulator_at(context, gradient.dtype())?;
    ensure!(
        accumulator.shape.is_compatible_with(&gradient.partial_shape()),
        InvalidArgument,
        "Shape mismatch: expected {}, got {}",
        accumulator.shape,
        gradient.shape()
    );
    accumulator.monitor.change(|state| {
        if step < state.step {
            return Ok(());
        }
        match &mut state.sum {
            Sum::Dense(sum) => add(sum, &gradient)?,
            sum => *sum = Sum::Dense(gradient),
        }
        state.count += 1;
        Ok(())
    })
}

fn add(sum: &mut Tensor, gradient: &Tensor) -> Result<()> {
    ensure!(
        sum.shape() == gradient.shape(),
        InvalidArgument,
        "Shape mismatch: expected {}, got {}",
        sum.shape(),
        gradient.shape()
    );
    sum.make_writable()?;
    crate::match_float!(sum.dtype(), T => {
        let gradient = gradient.as_slice::<T>()?;
        for (sum, &value) in sum.as_mut_slice::<T>()?.iter_mut().zip(gradient) {
            *sum = Number::add(*sum, value);
        }
        Ok(())
    })
}

/// Inputs: handle, step, indices of rows, rows, and the shape of the whole (when `has_known_shape`).
fn apply_sparse(context: &mut KernelContext) -> Result<()> {
    let step = scalar_i64(context, 1, "local_step")?;
    let (indices, values) = (context.input(2)?.clone(), context.input(3)?.clone());
    let accumulator = accumulator_at(context, values.dtype())?;
    let known = context.attrs().bool("has_known_shape")?;
    let shape = if known { context.input_i64s(4)? } else { Vec::new() };
    ensure!(
        indices.rank() == 1,
        InvalidArgument,
        "Input indices should be vector but received shape: {}",
        indices.shape()
    );
    ensure!(
        values.rank() > 0,
        InvalidArgument,
        "Values cannot be 0-dimensional."
    );
    let indices = indices.to_i64_vec()?;
    ensure!(
        values.dims()[0] == indices.len() as i64,
        InvalidArgument,
        "Expected {} non-empty input values, got {}",
        indices.len(),
        values.dims()[0]
    );
    let own = accumulator.shape.dims().unwrap_or(&[]);
    if known {
        check_dims(own, 0, &shape, "shape")?;
    }
    if let Some(&rows) = own.first().filter(|&&rows| rows >= 0) {
        let far = indices.iter().position(|&index| index >= rows);
        ensure!(
            far.is_none(),
            InvalidArgument,
            "Shape mismatch: index of slice {} exceeded limits of shape; index is {} exceeded {rows}",
            far.unwrap_or(0),
            far.map_or(0, |far| indices[far])
        );
    }
    accumulator.monitor.change(|state| {
        if step < state.step {
            return Ok(());
        }
        if !matches!(state.sum, Sum::Sparse(_)) {
            check_dims(own, 1, values.dims(), "values")?;
        }
        if let Sum::Sparse(sum) = &mut state.sum {
            sum.add(&indices, &values)?;
        } else {
            state.sum = Sum::Sparse(SparseSum::new(&indices, &values)?);
        }
        state.count += 1;
        Ok(())
    })
}

/// INVALID_ARGUMENT unless `dims` has as many extents as the accumulator's shape at least, and equal ones from `first` on.
fn check_dims(own: &[i64], first: usize, dims: &[i64], what: &str) -> Result<()> {
    ensure!(
        own.len() <= dims.len(),
        InvalidArgument,
        "Shape mismatch: expected {what} rank at least {}, got {}",
        own.len(),
        dims.len()
    );
    for (axis, (own, dim)) in own.iter().zip(dims).enumerate().skip(first) {
        let what = if first == 0 { "shape dim" } else { "values dim" };
        ensure!(
            *own < 0 || own == dim,
            InvalidArgument,
            "Shape mismatch: expected {what} {axis} to be {own}, got {dim}"
        );
    }
    Ok(())
}

fn take(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let accumulator = handle::at_waiting::<Accumulator>(context, 0)?;
        let wanted = context.input(1)?.single::<i32>()?;
        ensure!(
            wanted > 0,
            InvalidArgument,
            "Argument num_required must be positive, but was {wanted}"
        );
        Ok((accumulator, wanted as usize))
    };
    handle::or_fail(context, prepare, |context, (accumulator, wanted)| {
        let (mean, shape) = (accumulator.mean, accumulator.shape.clone());
        let attempt = move |state: &mut State| {
            if state.count < wanted {
                return Outcome::Waits;
            }
            let count = std::mem::take(&mut state.count);
            state.step += 1;
            let sum = std::mem::take(&mut state.sum);
            Outcome::Done(result(sum, if mean { count } else { 1 }, mean, &shape))
        };
        let cancellation = context.host.cancellation().clone();
        accumulator
            .monitor
            .submit(0, &cancellation, attempt, finish(context));
    });
}

fn result(sum: Sum, count: usize, mean: bool, shape: &PartialShape) -> Result<Vec<Value>> {
    match sum {
        Sum::Nothing => Err(status!(Internal, "an accumulator has counted nothing")),
        Sum::Sparse(sum) => sum.finish(mean, shape),
        Sum::Dense(mut sum) => {
            if count > 1 {
                sum.make_writable()?;
                crate::match_float!(sum.dtype(), T => {
                    let count = <T as ff_kernels::math::Real>::from_f64(count as f64);
                    sum.as_mut_slice::<T>()?.iter_mut().for_each(|value| *value = Number::div(*value, count));
                    Ok(())
                })?;
            }
            Ok(vec![Value::Tensor(sum)])
        }
    }
}
