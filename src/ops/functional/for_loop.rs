//! Loops by a function and a range: `for i in (start..limit).step_by(delta) { state = body(i, state) }`.

use super::call::{arguments, instantiate, set_results};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Result, Tensor, ensure, status};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "For",
    shape,
    kernels: &[Kernel::native(run)],
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

fn bound(context: &KernelContext, index: usize, name: &str) -> Result<i32> {
    let value = context.input(index)?;
    value
        .single()
        .map_err(|_| status!(InvalidArgument, "{name} must be a scalar"))
}

fn run(context: &mut KernelContext) -> Result<()> {
    let (start, limit, delta) = (
        bound(context, 0, "start")?,
        bound(context, 1, "limit")?,
        bound(context, 2, "delta")?,
    );
    let goes_on = |turn: i64| match delta > 0 {
        true => turn < limit.into(),
        false => turn > limit.into(),
    };
    ensure!(
        start == limit || (delta > 0 && start < limit) || (delta < 0 && start > limit),
        InvalidArgument,
        "Invalid start/limit/delta: {start} {limit} {delta}"
    );
    let body = instantiate(context, context.attrs().func("body")?)?;
    let host = context.host();
    let mut state = arguments(context, 3)?;
    let count = state.len();
    let mut turn = i64::from(start);
    while start != limit && goes_on(turn) {
        host.cancellation().check()?;
        state.insert(0, Tensor::scalar(turn as i32)?);
        state = body.run(host, state)?;
        ensure!(
            state.len() == count,
            InvalidArgument,
            "For loop body returned {} arguments. Expected: {count}",
            state.len()
        );
        turn += i64::from(delta);
    }
    set_results(context, state)
}
