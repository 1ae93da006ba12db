//! A session: runs parts of a graph on its own devices.
//!
//! Sessions are safe to use from many threads at once, also while the graph grows. Each run looks up a plan by what
//! is fed, fetched and targeted; a miss builds one from the graph as it is then.

use crate::better_plan::KeptPlan;
use crate::device::{Device, Task, shared_pool};
use crate::executor;
use crate::functions::Functions;
use crate::options::{SessionOptions, milliseconds};
use crate::partial::PartialRuns;
use crate::plan::Signature;
use crate::plans::Plans;
use crate::profile;
use crate::step::Step;
use ff_graph::{Graph, NodeId};
use ff_kernels::ThreadPool;
use ff_op::{Collectives, OutputRef, SessionTensors};
use ff_platform::threads;
use ff_proto::{ConfigProto, RunMetadata, RunOptions, run_options::TraceLevel};
use ff_tensor::{Code, Result, Status, Tensor, bail, ensure, status};
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A graph that clients extend while sessions run it.
pub type SharedGraph = Mutex<Graph>;

type NodeStates = Mutex<FxHashMap<String, Arc<dyn Any + Send + Sync>>>;

/// What outlives single steps: devices, threads, and state of stateful nodes.
pub struct SessionState {
    /// The process as the names of its devices tell it.
    pub task: Task,
    /// Devices; the first is where nodes run that ask for none.
    pub devices: Vec<Device>,
    /// Devices that were added to an eager context later.
    pub added: RwLock<Vec<Device>>,
    /// Threads for work within an op.
    pub pool: Arc<ThreadPool>,
    /// Threads for ops that do not wait for each other; none where they run one after the other.
    pub branch_pool: Option<Arc<ThreadPool>>,
    /// State of stateful nodes by node name: never in a plan, so that all plans advance the same streams.
    pub node_states: NodeStates,
    /// Values that steps have left to later ones.
    pub tensors: Arc<SessionTensors>,
    /// Where its devices meet for collective ops.
    pub collectives: Arc<Collectives>,
    /// What the session was configured with.
    pub config: ConfigProto,
}

/// See the module.
pub struct Session {
    pub(crate) graph: Arc<SharedGraph>,
    pub(crate) options: SessionOptions,
    state: Arc<SessionState>,
    functions: Arc<Functions>,
    pub(crate) partial_runs: PartialRuns,
    plans: Plans,
    next_step: AtomicU64,
    closed: AtomicBool,
    running: Mutex<FxHashMap<u64, ff_op::Cancellation>>,
}

/// What to run.
pub struct RunRequest<'a> {
    /// Outputs whose values are given, and the values.
    pub feeds: &'a [(OutputRef, Tensor)],
    /// Outputs whose values are wanted.
    pub fetches: &'a [OutputRef],
    /// Nodes to run.
    pub targets: &'a [NodeId],
    /// Options of this run.
    pub options: Option<&'a RunOptions>,
    /// Whether metadata is wanted, as far as the options ask for it.
    pub want_metadata: bool,
}

/// What a run gives.
pub struct RunResponse {
    /// One tensor per fetch.
    pub outputs: Vec<Tensor>,
    /// Present when it was wanted.
    pub metadata: Option<RunMetadata>,
}

impl Session {
    /// A session on a graph. NOT_FOUND for a target that no runtime serves, and for a configuration without processors.
    pub fn new(graph: Arc<SharedGraph>, options: SessionOptions) -> Result<Session> {
        ensure!(
            matches!(options.target.as_str(), "" | "local"),
            NotFound,
            "No session factory registered for the given session options: {{target: \"{}\"}}",
            options.target
        );
        ensure!(
            options
                .config
                .device_count
                .get("CPU")
                .is_none_or(|&count| count > 0),
            NotFound,
            "No CPU devices are available in this process"
        );
        let devices = Device::all(&Task::default(), options.cpu_devices());
        let pool = shared_pool(options.intra_op_threads());
        let branch_pool = options.inter_op_threads().filter(|&threads| threads != 1);
        let branch_pool = branch_pool.map(shared_pool).filter(|pool| pool.threads() > 1);
        let state = Arc::new(SessionState {
            task: Task::default(),
            devices,
            added: RwLock::default(),
            pool,
            branch_pool,
            node_states: NodeStates::default(),
            tensors: Arc::default(),
            collectives: Arc::default(),
            config: options.config.clone(),
        });
        let functions = {
            let graph = graph.lock();
            Arc::new(Functions::new(
                graph.registry().clone(),
                graph.functions().clone(),
            ))
        };
        Ok(Session {
            graph,
            options,
            state,
            functions,
            partial_runs: PartialRuns::default(),
            plans: Plans::default(),
            next_step: AtomicU64::new(1),
            closed: AtomicBool::new(false),
            running: Mutex::default(),
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<SharedGraph> {
        &self.graph
    }

    /// The devices.
    pub fn devices(&self) -> &[Device] {
        &self.state.devices
    }

    /// Runs what `request` names. INVALID_ARGUMENT for outputs that do not exist or are both fed and fetched;
    /// otherwise the first error of a node, with its name.
    pub fn run(&self, request: &RunRequest) -> Result<RunResponse> {
        threads::with_stack(|| self.run_here(request))
    }

    fn run_here(&self, request: &RunRequest) -> Result<RunResponse> {
        self.check_open()?;
        let signature = Signature {
            feeds: request.feeds.iter().map(|(output, _)| *output).collect(),
            fetches: request.fetches.into(),
            targets: request.targets.into(),
        };
        let step = self.step(traced(request) || self.builds_cost_model(request));
        let timeout = self.time_limit(request.options);
        let _watch = timeout.map(|timeout| crate::watchdog::watch(step.cancellation(), timeout, timed_out()));
        let kept = self.plan(&signature, &step)?;
        let feeds = request.feeds.iter().map(|(_, tensor)| tensor.clone()).collect();
        let outputs = self.execute(&kept, feeds, &step)?;
        self.keep_tensors(&step, request.fetches);
        let metadata = if request.want_metadata {
            Some(self.metadata(&signature, &step, request)?)
        } else {
            None
        };
        Ok(RunResponse { outputs, metadata })
    }

    /// CANCELLED once the session has been closed.
    pub fn check_open(&self) -> Result<()> {
        ensure!(
            !self.closed.load(Ordering::Acquire),
            Cancelled,
            "Session has been closed."
        );
        Ok(())
    }

    /// A step of this session.
    pub(crate) fn new_step(&self) -> Arc<Step> {
        self.step(false)
    }

    fn step(&self, traced: bool) -> Arc<Step> {
        let number = self.next_step.fetch_add(1, Ordering::Relaxed);
        Step::new(number, self.state.clone(), self.functions.clone(), traced)
    }

    /// Whether the costs of nodes are wanted of a run, as the session's options say.
    fn builds_cost_model(&self, request: &RunRequest) -> bool {
        let options = self.options.config.graph_options.as_ref();
        request.want_metadata && options.is_some_and(|options| options.build_cost_model > 0)
    }

    /// How long a step may take.
    pub(crate) fn time_limit(&self, options: Option<&RunOptions>) -> Option<std::time::Duration> {
        let own = options.and_then(|options| milliseconds(options.timeout_in_ms));
        own.or_else(|| self.options.operation_timeout())
    }

    /// Keeps for later steps what nodes that were fetched of this one have offered.
    pub(crate) fn keep_tensors(&self, step: &Step, fetches: &[OutputRef]) {
        let Some(offered) = step.left() else { return };
        let graph = self.graph.lock();
        for fetch in fetches {
            offered.keep(&graph.node(fetch.node).info.name);
        }
    }

    fn execute(&self, kept: &Arc<KeptPlan>, feeds: Vec<Tensor>, step: &Arc<Step>) -> Result<Vec<Tensor>> {
        let cancellation = step.cancellation();
        self.running.lock().insert(step.id(), cancellation.clone());
        // One that was closed since this run began has not seen it.
        if self.closed.load(Ordering::Acquire) {
            cancellation.cancel(status!(Cancelled, "Session was closed"));
        }
        let choice = kept.choose(&feeds, step.recorded().is_some());
        let result = executor::run(choice.plan, feeds, &**step, step.recorded());
        choice.ended(result.is_ok());
        self.running.lock().remove(&step.id());
        // Which node was waiting says nothing: all were stopped.
        let is_late =
            |error: &Status| error.code() == Code::DeadlineExceeded && error.message().starts_with(TIMED_OUT);
        result.map_err(|error| if is_late(&error) { timed_out() } else { error })
    }

    /// The plan for a signature: a kept one, or a new one.
    fn plan(&self, signature: &Signature, step: &Arc<Step>) -> Result<Arc<KeptPlan>> {
        if let Some(kept) = self.plans.find(signature, step.id()) {
            return Ok(kept);
        }
        let kept = {
            let graph = self.graph.lock();
            let placed = self.check_and_place(&graph, signature)?;
            let policy = self.options.clusters();
            let graph = placed.as_ref().unwrap_or(&graph);
            crate::planner::plan(graph, signature, &self.options, &policy, &**step)?
        };
        self.plans.keep(signature, &kept, step.id());
        Ok(kept)
    }

    /// Whether a signature fits the graph, and the graph with its nodes placed; none when all run on the first device.
    pub(crate) fn check_and_place(&self, graph: &Graph, signature: &Signature) -> Result<Option<Graph>> {
        check(graph, signature)?;
        let placement = self.placement(graph)?;
        crate::placement::placed(graph, &placement, &self.state.devices)
    }

    fn placement(&self, graph: &Graph) -> Result<Vec<u32>> {
        let soft = self.options.config.allow_soft_placement;
        crate::placement::place_graph(graph, &self.state.devices, soft)
    }

    fn metadata(&self, signature: &Signature, step: &Step, request: &RunRequest) -> Result<RunMetadata> {
        let mut metadata = RunMetadata::default();
        let wants_parts = request
            .options
            .is_some_and(|options| options.output_partition_graphs);
        let (wants_costs, wants_trace) = (self.builds_cost_model(request), traced(request));
        let stats = step
            .recorded()
            .map(|trace| trace.take_step_stats(&self.state.devices[0].name));
        if wants_parts || wants_costs {
            let graph = self.graph.lock();
            let placed = self.check_and_place(&graph, signature)?;
            let graph = placed.as_ref().unwrap_or(&graph);
            let (graph, goal) = crate::planner::optimized(graph, signature, &self.options, step)?;
            if wants_parts {
                metadata.partition_graphs = profile::partition_graphs(&graph, &goal, &self.state.devices)?;
            }
            if let (true, Some(stats)) = (wants_costs, &stats) {
                metadata.cost_graph = Some(profile::cost_graph(&graph, stats, &self.state.devices));
            }
        }
        metadata.step_stats = stats.filter(|_| wants_trace);
        Ok(metadata)
    }

    /// Ends the session: running steps are cancelled, later ones refused. Closing twice is fine.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let running: Vec<_> = self.running.lock().values().cloned().collect();
        for cancellation in running {
            cancellation.cancel(status!(Cancelled, "Session was closed"));
        }
        self.partial_runs.clear(&status!(Cancelled, "Session was closed"));
        self.plans.clear();
        for device in &self.state.devices {
            device.resources.clear();
        }
    }
}

const TIMED_OUT: &str = "Timed out waiting for notification";

pub(crate) fn timed_out() -> Status {
    Status::new(Code::DeadlineExceeded, TIMED_OUT)
}

fn traced(request: &RunRequest) -> bool {
    let level = request.options.map_or(0, |options| options.trace_level);
    request.want_metadata && level > TraceLevel::NoTrace as i32
}

/// OUT_OF_RANGE for an output that its node does not have.
fn check_exists(graph: &Graph, output: OutputRef) -> Result<()> {
    let node = graph
        .get(output.node)
        .ok_or_else(|| status!(InvalidArgument, "node {} is not in the graph", output.node))?;
    let count = node.info.output_types.len();
    ensure!(
        (output.index as usize) < count,
        OutOfRange,
        "Node '{}' (type: '{}', num of outputs: {count}) does not have output {}",
        node.info.name,
        node.info.op_name(),
        output.index
    );
    Ok(())
}

/// Whether feeds, fetches and targets are of this graph and go together.
fn check(graph: &Graph, signature: &Signature) -> Result<()> {
    let name = |output: &OutputRef| format!("{}:{}", graph.node(output.node).info.name, output.index);
    let mut fed = FxHashSet::default();
    ensure!(
        !signature.fetches.is_empty() || !signature.targets.is_empty(),
        InvalidArgument,
        "Must specify at least one target to fetch or execute."
    );
    for feed in &signature.feeds {
        check_exists(graph, *feed)?;
        ensure!(
            fed.insert(*feed),
            InvalidArgument,
            "Endpoint \"{}\" fed more than once.",
            name(feed)
        );
    }
    for fetch in &signature.fetches {
        check_exists(graph, *fetch)?;
        if fed.contains(fetch) {
            bail!(InvalidArgument, "{} is both fed and fetched.", name(fetch));
        }
    }
    for target in &signature.targets {
        ensure!(
            graph.get(*target).is_some(),
            InvalidArgument,
            "target {target} is not in the graph"
        );
    }
    Ok(())
}
