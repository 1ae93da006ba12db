//! Switch, Merge, Enter, Exit, NextIteration, LoopCond, ControlTrigger, Abort, and their reference forms.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, Tensor, bail, status};

const PASS_ON: Op = Op {
    shape: shapes::unchanged,
    kernels: &[Kernel::native(|context| {
        context.forward(0, 0);
        Ok(())
    })],
    gradient: Gradient::Missing,
    ..Op::PURE
};

static SWITCH: Op = Op {
    name: "Switch",
    shape: switch_shape,
    kernels: &[Kernel::native(switch)],
    ..PASS_ON
};
static REF_SWITCH: Op = Op {
    name: "RefSwitch",
    ..SWITCH
};
static SWITCH_N: Op = Op {
    name: "_SwitchN",
    kernels: &[Kernel::native(|context| {
        let (index, count) = (context.input_i64(1)?, context.num_outputs());
        let index = usize::try_from(index).map_or(count, |index| index);
        context.forward(0, index.min(count.saturating_sub(1)));
        Ok(())
    })],
    ..SWITCH
};
/// The variable that an index names.
static REF_SELECT: Op = Op {
    name: "RefSelect",
    shape: |context| {
        let index = context.input(0);
        context.input_with_rank(0, 0).map_err(|error| {
            let words = || format!("Index must be a scalar, but it has shape {index}");
            context.in_words_of_kernel(error, words)
        })?;
        let same = context.inputs()[1..].windows(2).all(|pair| pair[0] == pair[1]);
        if same {
            let shape = context.input(1);
            context.set_output(0, shape);
        }
        Ok(())
    },
    kernels: &[Kernel::native(|context| {
        let (index, count) = (context.input_i64(0)?, context.num_inputs() as i64 - 1);
        ff_tensor::ensure!(
            (0..count).contains(&index),
            InvalidArgument,
            "Index must be in the range [0, {count}) but got {index}"
        );
        context.forward(index as usize + 1, 0);
        Ok(())
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static MERGE: Op = Op {
    name: "Merge",
    shape: merge_shape,
    kernels: &[Kernel::native(merge)],
    ..PASS_ON
};
static REF_MERGE: Op = Op {
    name: "RefMerge",
    ..MERGE
};
static ENTER: Op = Op {
    name: "Enter",
    shape: enter_shape,
    ..PASS_ON
};
static REF_ENTER: Op = Op {
    name: "RefEnter",
    ..ENTER
};
static EXIT: Op = Op {
    name: "Exit",
    ..PASS_ON
};
static REF_EXIT: Op = Op {
    name: "RefExit",
    ..PASS_ON
};
static NEXT_ITERATION: Op = Op {
    name: "NextIteration",
    ..PASS_ON
};
static REF_NEXT_ITERATION: Op = Op {
    name: "RefNextIteration",
    ..PASS_ON
};
static LOOP_COND: Op = Op {
    name: "LoopCond",
    shape: |context| {
        if context.in_step() {
            // Only Switch asks whether there is one truth value.
            return shapes::unchanged(context);
        }
        context.input_with_rank(0, 0)?;
        shapes::scalar(context)
    },
    ..PASS_ON
};
static CONTROL_TRIGGER: Op = Op {
    name: "ControlTrigger",
    shape: shapes::none,
    kernels: &[Kernel::native(|_| Ok(()))],
    ..PASS_ON
};
static ABORT: Op = Op {
    name: "Abort",
    shape: shapes::none,
    // A library must not end its host's process: the op is an error of the step.
    kernels: &[Kernel::native(|context| {
        bail!(
            Aborted,
            "Abort Op: {}",
            context.attrs().string("error_msg").unwrap_or("")
        )
    })],
    ..Op::WRITES
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &SWITCH,
    &REF_SWITCH,
    &REF_SELECT,
    &SWITCH_N,
    &MERGE,
    &REF_MERGE,
    &ENTER,
    &REF_ENTER,
    &EXIT,
    &REF_EXIT,
    &NEXT_ITERATION,
    &REF_NEXT_ITERATION,
    &LOOP_COND,
    &CONTROL_TRIGGER,
    &ABORT,
];

fn switch_shape(context: &mut ShapeContext) -> Result<()> {
    let predicate = context.input(1);
    context.input_with_rank(1, 0).map_err(|error| {
        let words = || format!("The second input must be a scalar, but it has shape {predicate}");
        context.in_words_of_kernel(error, words)
    })?;
    shapes::unchanged(context)
}

/// The value goes to output 1 if the predicate holds, else to output 0; the other is dead.
fn switch(context: &mut KernelContext) -> Result<()> {
    let predicate = context.input(1)?;
    let taken = predicate.to_bool().map_err(|_| {
        status!(
            InvalidArgument,
            "The second input must be a scalar, but it has shape {}",
            predicate.shape()
        )
    })?;
    context.forward(0, usize::from(taken));
    Ok(())
}

/// What is common to all inputs that are known; unknown where one of them comes around a loop.
fn merge_shape(context: &mut ShapeContext) -> Result<()> {
    let mut shape = context.input(0);
    for input in context.inputs() {
        shape = shape.relax(input);
    }
    context.set_output(0, shape);
    context.set_output(1, PartialShape::scalar());
    if let Some(handle) = context.input_handle(0) {
        context.set_output_handle(0, handle);
    }
    Ok(())
}

/// The first input that is there, and which it was.
fn merge(context: &mut KernelContext) -> Result<()> {
    let chosen = (0..context.num_inputs()).find(|&index| context.has_input(index));
    let chosen =
        chosen.ok_or_else(|| status!(Internal, "{} has no live input", context.node().describe()))?;
    context.forward(chosen, 0);
    context.set_output(1, Tensor::scalar(chosen as i32)?)
}

/// A loop variable may change its shape from turn to turn, a constant may not.
fn enter_shape(context: &mut ShapeContext) -> Result<()> {
    if let Some(handle) = context.input_handle(0) {
        context.set_output_handle(0, handle);
    }
    if context.attrs().bool("is_constant")? {
        context.set_output(0, context.input(0));
    }
    Ok(())
}
