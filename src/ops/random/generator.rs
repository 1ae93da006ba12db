//! Numbers from a stream whose position is a variable: three int64 of counter (low half first) and key.

use super::{distribution, fill_floats, fill_range};
use crate::state::variable;
use ff_kernels::random::{FullInteger, Philox, fill, stateful_steps};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, bail, ensure};

/// Inputs: variable, algorithm, shape.
const DRAWN: Op = Op {
    shape: |context| {
        context.input_with_rank(0, 0)?;
        context.input_with_rank(1, 0)?;
        let shape = context.input_as_shape(2)?;
        context.set_output(0, shape);
        Ok(())
    },
    kernels: &[Kernel::native(floats)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "StatefulUniform",
        ..DRAWN
    },
    &Op {
        name: "StatefulStandardNormalV2",
        ..DRAWN
    },
    &Op {
        name: "StatefulTruncatedNormal",
        ..DRAWN
    },
    &Op {
        name: "StatefulUniformFullInt",
        kernels: &[Kernel::native(full_integers)],
        ..DRAWN
    },
    &Op {
        name: "StatefulUniformInt",
        shape: |context| {
            context.input_with_rank(3, 0)?;
            context.input_with_rank(4, 0)?;
            (DRAWN.shape)(context)
        },
        kernels: &[Kernel::native(integers)],
        ..DRAWN
    },
    &Op {
        name: "StatefulStandardNormal",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            let shape = context.input_as_shape(1)?;
            context.set_output(0, shape);
            Ok(())
        },
        ..DRAWN
    },
    &Op {
        name: "RngSkip",
        shape: |context| skip_shape(context, false),
        kernels: &[Kernel::native(|context| {
            let delta = context.input_i64(2)? as u64;
            advance(context, delta).map(|_| ())
        })],
        ..DRAWN
    },
    &Op {
        name: "RngReadAndSkip",
        shape: |context| skip_shape(context, true),
        kernels: &[Kernel::native(|context| {
            let delta = context.input(2)?.single::<u64>()?;
            let before = advance(context, delta)?;
            let counter = before.counter();
            let value = [counter[0] as i64, counter[1] as i64, before.key() as i64];
            context.set_output(0, Tensor::vector(&value)?)
        })],
        ..DRAWN
    },
    &Op {
        name: "NonDeterministicInts",
        shape: super::shape_from_input,
        kernels: &[Kernel::native(|context| {
            let mut output = super::allocate(context)?;
            let philox = Philox::from_seeds(super::stream::entropy(), super::stream::entropy());
            fill_all(context, philox, &mut output)?;
            context.set_output(0, output)
        })],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
];

fn skip_shape(context: &mut ShapeContext, gives: bool) -> Result<()> {
    for index in 0..3 {
        context.input_with_rank(index, 0)?;
    }
    if gives {
        context.set_output(0, PartialShape::of_rank(1));
    }
    Ok(())
}

/// Fails for an algorithm that is not Philox.
pub fn check_algorithm(algorithm: i64) -> Result<()> {
    match algorithm {
        1 | 3 => Ok(()),
        2 => bail!(
            Unimplemented,
            "Non-XLA devices don't support the ThreeFry algorithm."
        ),
        other => bail!(InvalidArgument, "Unsupported algorithm id: {other}"),
    }
}

/// The position in the variable at input 0, which is moved on by what `count` elements take.
pub fn advance(context: &KernelContext, count: u64) -> Result<Philox> {
    if context.num_inputs() > 2 {
        check_algorithm(context.input_i64(1)?)?;
    }
    let state = variable(context, 0)?;
    let mut before = None;
    state.update(|value| {
        ensure!(
            value.dtype() == DataType::INT64,
            InvalidArgument,
            "dtype of RNG state variable must be int64, not {}",
            value.dtype()
        );
        ensure!(
            value.rank() == 1,
            InvalidArgument,
            "RNG state must have one and only one dimension, not {}",
            value.rank()
        );
        ensure!(
            value.num_elements() >= 3,
            InvalidArgument,
            "For the Philox algorithm, the size of state must be at least 3; got {}",
            value.num_elements()
        );
        value.make_writable()?;
        let words = value.as_mut_slice::<i64>()?;
        let philox = Philox::new(words[2] as u64, [words[0] as u64, words[1] as u64]);
        let after = philox.after(count.wrapping_mul(stateful_steps(1))).counter();
        (words[0], words[1]) = (after[0] as i64, after[1] as i64);
        before = Some(philox);
        Ok(())
    })?;
    before.ok_or_else(|| ff_tensor::status!(Internal, "no position was read"))
}

/// A tensor of the shape in the input before the distribution's own, and the position to fill it from.
pub fn start(context: &KernelContext) -> Result<(Tensor, Philox)> {
    let index = if context.num_inputs() > 2 { 2 } else { 1 };
    let dims = context.input_i64s(index)?;
    if let Some(bad) = dims.iter().find(|&&dim| dim < 0) {
        bail!(InvalidArgument, "Dimension {bad} must be >= 0");
    }
    let output = context.allocate(context.output_type(0), Shape::new(&dims)?)?;
    let philox = advance(context, output.num_elements() as u64)?;
    Ok((output, philox))
}

fn floats(context: &mut KernelContext) -> Result<()> {
    let (mut output, philox) = start(context)?;
    fill_floats(
        context,
        distribution(context.node().op_name()),
        philox,
        &mut output,
    )?;
    context.set_output(0, output)
}

fn integers(context: &mut KernelContext) -> Result<()> {
    let (mut output, philox) = start(context)?;
    fill_range(context, 3, philox, &mut output)?;
    context.set_output(0, output)
}

fn fill_all(context: &KernelContext, philox: Philox, output: &mut Tensor) -> Result<()> {
    crate::match_type!(output.dtype(), (i32, i64, u32, u64), T => {
        fill(context.pool(), philox, &FullInteger, output.as_mut_slice::<T>()?);
        Ok(())
    })
}

fn full_integers(context: &mut KernelContext) -> Result<()> {
    let (mut output, philox) = start(context)?;
    fill_all(context, philox, &mut output)?;
    context.set_output(0, output)
}

crate::op_cases! {
    any_number: Case::op("NonDeterministicInts").input(vector(&[0])).attr("dtype", DataType::INT64).gives(vector::<i64>(&[]));
    any_negative: Case::op("NonDeterministicInts").input(vector(&[-1])).attr("dtype", DataType::INT64).fails(Code::InvalidArgument);
}

#[cfg(test)]
pub mod tests {
    use crate::testing::{OpRunner, code, scalar, vector};
    use ff_op::Attrs;
    use ff_tensor::{Code, DataType, Tensor};

    /// A runner and the handle of a variable with this value.
    pub fn with_state(value: Tensor) -> (OpRunner, Tensor) {
        let runner = OpRunner::new();
        let attrs = Attrs::new()
            .with("dtype", value.dtype())
            .with("shape", value.partial_shape());
        let handle = runner.run("VarHandleOp", &[], attrs).unwrap().remove(0);
        let attrs = Attrs::new().with("dtype", value.dtype());
        runner
            .run("AssignVariableOp", &[handle.clone(), value], attrs)
            .unwrap();
        (runner, handle)
    }

    fn state(runner: &OpRunner, handle: &Tensor) -> Vec<i64> {
        let attrs = Attrs::new().with("dtype", DataType::INT64);
        let value = runner
            .run("ReadVariableOp", std::slice::from_ref(handle), attrs)
            .unwrap();
        value[0].to_i64_vec().unwrap()
    }

    /// The numbers and positions that the reference gives.
    #[test]
    fn positions_move_on() {
        let (runner, handle) = with_state(vector(&[1i64, 2, 3]));
        let inputs = [handle.clone(), scalar(1i64), vector(&[3])];
        let attrs = Attrs::new().with("dtype", DataType::FLOAT);
        let made = runner.run("StatefulUniform", &inputs, attrs).unwrap();
        assert_eq!(
            made[0].as_slice::<f32>().unwrap(),
            [0.459_011_67, 0.533_424_85, 0.962_773_2]
        );
        assert_eq!(state(&runner, &handle), [769, 2, 3]);
        let inputs = [handle.clone(), scalar(1), scalar(2u64)];
        let before = runner.run("RngReadAndSkip", &inputs, Attrs::new()).unwrap();
        assert_eq!(before[0].to_i64_vec().unwrap(), [769, 2, 3]);
        let inputs = [handle.clone(), scalar(1i64), scalar(2i64)];
        runner.run("RngSkip", &inputs, Attrs::new()).unwrap();
        assert_eq!(state(&runner, &handle), [1793, 2, 3]);
    }

    #[test]
    fn wrong_states_and_algorithms() {
        let draw = |state: Tensor, algorithm: i64| {
            let (runner, handle) = with_state(state);
            let inputs = [handle, scalar(algorithm), vector(&[3])];
            code(runner.run(
                "StatefulUniform",
                &inputs,
                Attrs::new().with("dtype", DataType::FLOAT),
            ))
        };
        assert_eq!(draw(vector(&[1i64, 2, 3]), 2), Some(Code::Unimplemented));
        assert_eq!(draw(vector(&[1i64, 2, 3]), 9), Some(Code::InvalidArgument));
        assert_eq!(draw(vector(&[1i64, 2]), 1), Some(Code::InvalidArgument));
        assert_eq!(draw(vector(&[1.0f32, 2.0, 3.0]), 1), Some(Code::InvalidArgument));
    }
}
