//! Runs a plan: checks and sets feeds, picks the engine, collects fetches.

use crate::dataflow;
use crate::plan::{Fetch, Plan};
use crate::step::Trace;
use crate::straight_line;
use ff_op::{KernelHost, Value};
use ff_tensor::{Result, Tensor, ensure, status};

/// Runs a plan on the calling thread until its end. `feeds` are in the plan's order, and so are the results.
pub fn run(
    plan: &Plan,
    feeds: Vec<Tensor>,
    host: &dyn KernelHost,
    trace: Option<&Trace>,
) -> Result<Vec<Tensor>> {
    let mut frame = plan.take_frame();
    let result = run_in(plan, feeds, &mut frame, host, trace);
    plan.return_frame(frame);
    result
}

fn run_in(
    plan: &Plan,
    feeds: Vec<Tensor>,
    frame: &mut crate::frame::Frame,
    host: &dyn KernelHost,
    trace: Option<&Trace>,
) -> Result<Vec<Tensor>> {
    ensure!(
        feeds.len() == plan.feeds.len(),
        Internal,
        "{} values for {} feeds",
        feeds.len(),
        plan.feeds.len()
    );
    for (index, (tensor, &(slot, dtype))) in feeds.into_iter().zip(&plan.feeds).enumerate() {
        ensure!(
            tensor.dtype() == dtype,
            InvalidArgument,
            "Expects arg[{index}] to be {dtype} but {} is provided",
            tensor.dtype()
        );
        frame.values[slot as usize] = Value::Tensor(tensor);
    }
    match &plan.flow {
        Some(flow) => dataflow::run(plan, flow, frame, host, trace)?,
        None => straight_line::run(plan, frame, host, trace)?,
    }
    plan.fetches
        .iter()
        .map(|fetch| fetched(plan, frame, *fetch))
        .collect()
}

/// The value of a fetch once the plan has run.
pub fn fetched(plan: &Plan, frame: &crate::frame::Frame, fetch: Fetch) -> Result<Tensor> {
    match fetch {
        Fetch::Constant(constant) => Ok(plan.constants[constant as usize].clone()),
        Fetch::Slot(slot) => match &frame.values[slot as usize] {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Ref(variable) => variable.read(),
            Value::Absent => Err(status!(InvalidArgument, "Retval[0] does not have value")),
        },
    }
}
