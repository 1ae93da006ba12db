//! Partial runs: a step that is set up once and then run piece by piece, as its feeds come.
//!
//! Each feed is given once and each fetch taken once, in any order that lets the fetches be computed. A partial run ends
//! with its last feed and fetch, with the first error, or with its session. The step runs on the threads of those who
//! continue it: what needs no feed runs when it is set up, the rest as soon as a call has brought what it needs.
//!
//! Not here: plans are not kept from one set-up to the next.

use crate::dataflow::{self, Progress};
use crate::executor::fetched;
use crate::frame::Frame;
use crate::letters::Driving;
use crate::plan::{Fetch, Plan, Signature};
use crate::session::{Session, timed_out};
use crate::step::Step;
use ff_graph::{Graph, NodeId};
use ff_op::{OutputRef, Value};
use ff_tensor::{Result, Status, Tensor, bail, ensure, status};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The partial runs of a session by handle.
#[derive(Default)]
pub struct PartialRuns {
    runs: Mutex<FxHashMap<String, Arc<PartialRun>>>,
    next: AtomicU64,
}

impl PartialRuns {
    /// Ends all partial runs for this cause.
    pub fn clear(&self, cause: &Status) {
        let runs = std::mem::take(&mut *self.runs.lock());
        for run in runs.values() {
            run.step.cancellation().cancel(cause.clone());
        }
    }

    fn find(&self, handle: &str) -> Result<Arc<PartialRun>> {
        let found = self.runs.lock().get(handle).cloned();
        found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Must run 'setup' before performing partial runs!"
            )
        })
    }
}

struct PartialRun {
    plan: Plan,
    step: Arc<Step>,
    state: Mutex<State>,
}

struct State {
    frame: Frame,
    progress: Progress,
    driving: Driving,
    /// Whether each feed has come, and each fetch has been taken, in the order of the plan.
    fed: FxHashMap<OutputRef, (usize, bool)>,
    taken: FxHashMap<OutputRef, (usize, bool)>,
    /// What ended the step while no call was there to hear of it.
    failed: Option<Status>,
}

impl Session {
    /// Starts a partial run; gives its handle. INVALID_ARGUMENT for what a run refuses too.
    pub fn set_up_partial_run(&self, signature: Signature) -> Result<String> {
        self.check_open()?;
        let number = self.partial_runs.next.fetch_add(1, Ordering::Relaxed);
        let step = self.new_step();
        let (plan, handle) = {
            let graph = self.graph.lock();
            let placed = self.check_and_place(&graph, &signature)?;
            let placed = placed.as_ref().unwrap_or(&graph);
            let plan = crate::planner::plan_partial(placed, &signature, &self.options, &*step)?;
            (plan, format!("{};{number}", describe(&graph, &signature)))
        };
        let numbered = |outputs: &[OutputRef]| {
            let pairs = outputs.iter().enumerate();
            pairs.map(|(index, output)| (*output, (index, false))).collect()
        };
        let flow = plan.flow()?;
        let state = State {
            frame: Frame::new(plan.slots, plan.instructions.len()),
            progress: Progress::new(&plan, flow),
            driving: Driving::default(),
            fed: numbered(&signature.feeds),
            taken: numbered(&signature.fetches),
            failed: None,
        };
        let run = Arc::new(PartialRun {
            plan,
            step,
            state: Mutex::new(state),
        });
        {
            let mut state = run.state.lock();
            let started = run.go_on(&mut state, &[], &[], &|_| true);
            state.failed = started.err();
        }
        self.partial_runs.runs.lock().insert(handle.clone(), run);
        Ok(handle)
    }

    /// Goes on with a partial run: brings `feeds` and takes `fetches`. INVALID_ARGUMENT, and nothing changes, for an
    /// unknown handle, for feeds and fetches that were not set up or have come before, and for fetches that need feeds
    /// that have not come. Any other error ends the partial run.
    pub fn partial_run(
        &self,
        handle: &str,
        feeds: &[(OutputRef, Tensor)],
        fetches: &[OutputRef],
    ) -> Result<Vec<Tensor>> {
        self.check_open()?;
        let run = self.partial_runs.find(handle)?;
        let mut state = run.state.lock();
        {
            let graph = self.graph.lock();
            state.check(&graph, feeds, fetches)?;
        }
        let result = self.advance(&run, &mut state, feeds, fetches);
        if result.is_err() || state.is_complete() {
            self.partial_runs.runs.lock().remove(handle);
        }
        if let Err(error) = &result {
            run.step.cancellation().cancel(error.clone());
        }
        result
    }

    fn advance(
        &self,
        run: &PartialRun,
        state: &mut State,
        feeds: &[(OutputRef, Tensor)],
        fetches: &[OutputRef],
    ) -> Result<Vec<Tensor>> {
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let timeout = self.time_limit(None);
        let cancellation = run.step.cancellation();
        let _watch = timeout.map(|timeout| crate::watchdog::watch(cancellation, timeout, timed_out()));
        let slots = state.bring(&run.plan, feeds)?;
        let wanted: Vec<Fetch> = fetches
            .iter()
            .map(|fetch| run.plan.fetches[state.taken[fetch].0])
            .collect();
        let there = |frame: &Frame| {
            let is_there = |fetch: &Fetch| match fetch {
                Fetch::Slot(slot) => !matches!(frame.values[*slot as usize], Value::Absent),
                Fetch::Constant(_) => true,
            };
            wanted.iter().all(is_there)
        };
        for fetch in fetches {
            state.taken.entry(*fetch).and_modify(|(_, taken)| *taken = true);
        }
        let complete = state.is_complete();
        // The last call waits for everything, also for what only targets need.
        let outputs = run.go_on(state, &slots, &wanted, &|frame| !complete && there(frame))?;
        self.keep_tensors(&run.step, fetches);
        Ok(outputs)
    }
}

impl PartialRun {
    fn go_on(
        &self,
        state: &mut State,
        slots: &[u32],
        wanted: &[Fetch],
        enough: &dyn Fn(&Frame) -> bool,
    ) -> Result<Vec<Tensor>> {
        let plan = &self.plan;
        let flow = plan.flow()?;
        let place = dataflow::Place {
            plan,
            flow,
            host: &*self.step,
            trace: None,
        };
        let (frame, progress) = (&mut state.frame, &mut state.progress);
        dataflow::drive(&place, frame, progress, &state.driving, slots, enough)?;
        wanted
            .iter()
            .map(|fetch| fetched(plan, &state.frame, *fetch))
            .collect()
    }
}

impl State {
    fn is_complete(&self) -> bool {
        let all = |map: &FxHashMap<OutputRef, (usize, bool)>| map.values().all(|(_, done)| *done);
        all(&self.fed) && all(&self.taken)
    }

    /// Puts feeds into their slots, whose numbers it gives, and notes that they have come.
    fn bring(&mut self, plan: &Plan, feeds: &[(OutputRef, Tensor)]) -> Result<Vec<u32>> {
        let mut slots = Vec::with_capacity(feeds.len());
        for (feed, tensor) in feeds {
            let index = self.fed[feed].0;
            let (slot, dtype) = plan.feeds[index];
            ensure!(
                tensor.dtype() == dtype,
                InvalidArgument,
                "Expects arg[{index}] to be {dtype} but {} is provided",
                tensor.dtype()
            );
            self.frame.values[slot as usize] = Value::Tensor(tensor.clone());
            self.fed.insert(*feed, (index, true));
            slots.push(slot);
        }
        Ok(slots)
    }

    fn check(&self, graph: &Graph, feeds: &[(OutputRef, Tensor)], fetches: &[OutputRef]) -> Result<()> {
        let mut given = FxHashSet::default();
        for (feed, _) in feeds {
            check_pending("feed", "fed", graph, self.fed.get(feed), *feed)?;
            ensure!(
                given.insert(*feed),
                InvalidArgument,
                "The feed {} has already been fed.",
                name(graph, *feed)
            );
        }
        let mut asked = FxHashSet::default();
        for fetch in fetches {
            check_pending("fetch", "fetched", graph, self.taken.get(fetch), *fetch)?;
            ensure!(
                asked.insert(*fetch),
                InvalidArgument,
                "The fetch {} has already been fetched.",
                name(graph, *fetch)
            );
        }
        let missing = self
            .fed
            .iter()
            .filter(|(feed, (_, done))| !done && !given.contains(feed));
        check_computable(graph, &missing.map(|(feed, _)| *feed).collect(), fetches)
    }
}

fn check_pending(
    what: &str,
    done: &str,
    graph: &Graph,
    known: Option<&(usize, bool)>,
    output: OutputRef,
) -> Result<()> {
    match known {
        None => bail!(
            InvalidArgument,
            "The {what} {} was not specified in partial_run_setup.",
            name(graph, output)
        ),
        Some((_, true)) => bail!(
            InvalidArgument,
            "The {what} {} has already been {done}.",
            name(graph, output)
        ),
        Some((_, false)) => Ok(()),
    }
}

/// INVALID_ARGUMENT when something that a fetch depends on is among the feeds that have not come.
fn check_computable(graph: &Graph, missing: &FxHashSet<OutputRef>, fetches: &[OutputRef]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let mut seen = vec![false; graph.len()];
    let mut stack: Vec<NodeId> = fetches.iter().map(|fetch| fetch.node).collect();
    while let Some(id) = stack.pop() {
        let node = graph.node(id);
        if let Some(input) = node.inputs.iter().find(|input| missing.contains(input)) {
            bail!(
                InvalidArgument,
                "Fetch {} can't be computed from the feeds that have been fed so far.",
                name(graph, *input)
            );
        }
        let before = node.inputs.iter().map(|input| input.node);
        for before in before.chain(node.control_inputs.iter().copied()) {
            if !std::mem::replace(&mut seen[before as usize], true) {
                stack.push(before);
            }
        }
    }
    Ok(())
}

fn name(graph: &Graph, output: OutputRef) -> String {
    format!("{}:{}", graph.node(output.node).info.name, output.index)
}

/// The signature in words, as handles start with: `a:0,b:0->c:0/target/1/`.
fn describe(graph: &Graph, signature: &Signature) -> String {
    let names = |outputs: &[OutputRef]| {
        let names: Vec<String> = outputs.iter().map(|output| name(graph, *output)).collect();
        names.join(",")
    };
    let targets = signature
        .targets
        .iter()
        .map(|target| &*graph.node(*target).info.name);
    format!(
        "{}->{}/{}/1/",
        names(&signature.feeds),
        names(&signature.fetches),
        targets.collect::<Vec<_>>().join(",")
    )
}
