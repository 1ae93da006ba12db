//! Runs a plan: checks and sets feeds, picks the engine, collects fetches.

use crate::frame::Frame;
use crate::parallel::{self, Way};
use crate::plan::{Engine, Fetch, Plan};
use crate::step::Trace;
use crate::{dataflow, straight_line, structured_run, waiting};
use ff_op::{KernelHost, Value};
use ff_tensor::{Result, Status, Tensor, ensure, status};

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
    frame: &mut Frame,
    host: &dyn KernelHost,
    trace: Option<&Trace>,
) -> Result<Vec<Tensor>> {
    feed(plan, feeds, frame)?;
    engine(plan, frame, host, trace)?;
    plan.fetches
        .iter()
        .map(|fetch| fetched(plan, frame, *fetch))
        .collect()
}

/// Puts feeds into their slots. INVALID_ARGUMENT for another type or number.
pub fn feed(plan: &Plan, feeds: impl IntoIterator<Item = Tensor>, frame: &mut Frame) -> Result<()> {
    let mut count = 0;
    for (index, tensor) in feeds.into_iter().enumerate() {
        let Some(&(slot, dtype)) = plan.feeds.get(index) else {
            return Err(wrong_number(index + 1, plan));
        };
        ensure!(
            tensor.dtype() == dtype,
            InvalidArgument,
            "Expects arg[{index}] to be {dtype} but {} is provided",
            tensor.dtype()
        );
        frame.values[slot as usize] = Value::Tensor(tensor);
        count += 1;
    }
    if count == plan.feeds.len() {
        Ok(())
    } else {
        Err(wrong_number(count, plan))
    }
}

#[cold]
fn wrong_number(count: usize, plan: &Plan) -> Status {
    status!(
        InvalidArgument,
        "Expects {} arguments, but {count} is provided",
        plan.feeds.len()
    )
}

/// Runs a plan in a frame whose feeds are set.
pub fn engine(plan: &Plan, frame: &mut Frame, host: &dyn KernelHost, trace: Option<&Trace>) -> Result<()> {
    match &plan.engine {
        Engine::StraightLine(tuning) => {
            let pool = host.branch_pool().filter(|_| trace.is_none());
            let way = pool.map_or(Way::InOrder, |pool| tuning.way(pool.threads()));
            match (way, pool) {
                (Way::InOrder, _) | (_, None) => straight_line::run(plan, frame, host, trace),
                (way, Some(pool)) => parallel::run_tuned(plan, tuning, frame, host, way, pool),
            }
        }
        Engine::Structured(structured) => structured_run::run(plan, structured, frame, host, trace),
        Engine::Waiting(waits) => {
            let place = waiting::Place {
                plan,
                waits,
                host,
                trace,
            };
            waiting::run(&place, frame)
        }
        Engine::Dataflow(flow) => {
            let place = dataflow::Place {
                plan,
                flow,
                host,
                trace,
            };
            dataflow::run(&place, frame)
        }
    }
}

/// The value of a fetch once the plan has run.
pub fn fetched(plan: &Plan, frame: &Frame, fetch: Fetch) -> Result<Tensor> {
    match fetch {
        Fetch::Constant(constant) => Ok(plan.constants[constant as usize].clone()),
        Fetch::Slot(slot) => match &frame.values[slot as usize] {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Ref(variable) => variable.read(),
            Value::Absent => Err(status!(InvalidArgument, "Retval[0] does not have value")),
        },
    }
}
