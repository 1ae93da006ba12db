//! Loops by a function and a range: `for i in (start..limit).step_by(delta) { state = body(i, state) }`.

use super::call::{arguments, instantiate, set_results};
use super::in_turn::{self, Next};
use ff_op::{AsyncKernelContext, Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Result, Tensor, ensure, status};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "For",
    shape,
    kernels: &[Kernel::calls(run, |context| in_turn::start(context, script))],
    gradient: Gradient::Missing,
    ..Op::WRITES
}];

/// Bounds and step are scalars; what the state becomes is not known.
fn shape(context: &mut ShapeContext) -> Result<()> {
    for index in 0..3 {
        context.input_with_rank(index, 0)?;
    }
    Ok(())
}

/// The turns that are left.
struct Turns {
    next: i64,
    limit: i64,
    delta: i64,
}

impl Turns {
    /// Those of the bounds and the step.
    fn of(bounds: [&Tensor; 3]) -> Result<Turns> {
        let bound = |index: usize, name: &str| -> Result<i32> {
            let value = bounds[index].single();
            value.map_err(|_| status!(InvalidArgument, "{name} must be a scalar"))
        };
        let (start, limit, delta) = (bound(0, "start")?, bound(1, "limit")?, bound(2, "delta")?);
        ensure!(
            start == limit || (delta > 0 && start < limit) || (delta < 0 && start > limit),
            InvalidArgument,
            "Invalid start/limit/delta: {start} {limit} {delta}"
        );
        Ok(Turns {
            next: start.into(),
            limit: limit.into(),
            delta: delta.into(),
        })
    }
}

impl Iterator for Turns {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        let goes_on = match self.delta > 0 {
            true => self.next < self.limit,
            false => self.next > self.limit,
        };
        let turn = self.next as i32;
        self.next += self.delta;
        goes_on.then_some(turn)
    }
}

fn check(state: &[Tensor], count: usize) -> Result<()> {
    ensure!(
        state.len() == count,
        InvalidArgument,
        "For loop body returned {} arguments. Expected: {count}",
        state.len()
    );
    Ok(())
}

fn run(context: &mut KernelContext) -> Result<()> {
    let turns = Turns::of([context.input(0)?, context.input(1)?, context.input(2)?])?;
    let body = instantiate(context, context.attrs().func("body")?)?;
    let host = context.host();
    let mut state = arguments(context, 3)?;
    let count = state.len();
    for turn in turns {
        host.cancellation().check()?;
        state.insert(0, Tensor::scalar(turn)?);
        state = body.run(host, state)?;
        check(&state, count)?;
    }
    set_results(context, state)
}

/// The loop for a body that may wait.
fn script(context: &AsyncKernelContext) -> Result<impl in_turn::Script + use<>> {
    let mut turns = Turns::of([context.input(0)?, context.input(1)?, context.input(2)?])?;
    let body = context.node.attrs.func("body")?;
    let body = context.host.functions().instantiate(body)?;
    let count = context.inputs.len() - 3;
    let mut has_begun = false;
    Ok(move |_: &AsyncKernelContext, mut state: Vec<Tensor>| {
        if !std::mem::replace(&mut has_begun, true) {
            state.drain(..3);
        }
        check(&state, count)?;
        Ok(match turns.next() {
            Some(turn) => {
                state.insert(0, Tensor::scalar(turn)?);
                Next::Call(body.clone(), state)
            }
            None => Next::End(state),
        })
    })
}
