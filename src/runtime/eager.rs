//! Eager execution: one op at a time, without a graph or a session.
//!
//! A context has devices, resources, functions and ops with their kernels. A kernel is chosen and prepared once for an
//! op, its device, its attributes and the types of its inputs, and kept; so are the specializations for shapes that it has
//! met. The state of a stateful kernel (a random stream) belongs to the kernel that is kept, so calls that look alike share it.
//!
//! Calls run on the executor of the calling thread, or else on the context's. Any number of threads may use one context.

use crate::device::{Task, shared_pool};
use crate::eager_cluster::Membership;
use crate::eager_device::DeviceName;
use crate::eager_executor::Executor;
use crate::eager_host::EagerHost;
use crate::eager_kernel::{EagerKernel, EagerOp, InputTypes, Inputs, Outputs};
use crate::eager_tensor::{EagerTensor, Pending};
use crate::functions::Functions;
use crate::options::SessionOptions;
use crate::session::SessionState;
use crate::step::Trace;
use ff_graph::{FunctionLibrary, lone_node};
use ff_op::{Attrs, Cancellation, CompileRequest, Executable, NodeInfo, OpRecord, Registry, Value};
use ff_tensor::{DataType, Result, Tensor, ensure, status};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;

/// See the module.
pub struct EagerContext {
    pub(crate) registry: Arc<Registry>,
    pub(crate) library: Arc<FunctionLibrary>,
    /// Devices and what is on them; another one once the context is a task of a cluster.
    pub(crate) state: RwLock<Arc<SessionState>>,
    /// Whether that has happened.
    pub(crate) joined: AtomicBool,
    /// What the context has as a task of a cluster.
    pub(crate) membership: Mutex<Option<Membership>>,
    /// How often each function was added.
    pub(crate) additions: Mutex<FxHashMap<String, usize>>,
    /// Functions made ready; made anew when one is removed.
    pub(crate) functions: RwLock<Arc<Functions>>,
    /// Ops and functions that were called.
    pub(crate) ops: RwLock<FxHashMap<Box<str>, Arc<EagerOp>>>,
    /// The next number of a step or kernel.
    next: AtomicU64,
    /// Whether what runs is recorded.
    pub(crate) tracing: AtomicBool,
    /// What ran.
    pub(crate) trace: RwLock<Option<Trace>>,
    /// Whether graphs of functions are collected, and those that were.
    pub(crate) collecting: AtomicBool,
    pub(crate) collected: Mutex<Vec<ff_proto::GraphDef>>,
    /// Whether an op whose device is not there runs on another.
    soft_placement: AtomicBool,
    /// Whether the device of each call is logged.
    log_placement: AtomicBool,
    executor: Arc<Executor>,
    /// Executors of threads.
    executors: Mutex<FxHashMap<ThreadId, Weak<Executor>>>,
    has_executors: AtomicBool,
}

impl EagerContext {
    /// A context over these ops, with the devices and threads that `options` ask for, whose executor is asynchronous if
    /// `is_async`.
    pub fn new(registry: Arc<Registry>, options: &SessionOptions, is_async: bool) -> EagerContext {
        let library = Arc::new(FunctionLibrary::default());
        let pool = shared_pool(options.intra_op_threads());
        let state = SessionState::eager(Task::default(), options.cpu_devices(), pool, &options.config);
        EagerContext {
            functions: RwLock::new(Arc::new(Functions::new(registry.clone(), library.clone()))),
            registry,
            library,
            state: RwLock::new(Arc::new(state)),
            joined: AtomicBool::new(false),
            membership: Mutex::default(),
            additions: Mutex::default(),
            ops: RwLock::default(),
            next: AtomicU64::new(1),
            tracing: AtomicBool::new(false),
            trace: RwLock::default(),
            collecting: AtomicBool::new(false),
            collected: Mutex::default(),
            soft_placement: AtomicBool::new(options.config.allow_soft_placement),
            log_placement: AtomicBool::new(options.config.log_device_placement),
            executor: Executor::new(is_async, 0),
            executors: Mutex::default(),
            has_executors: AtomicBool::new(false),
        }
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The devices that there are now, and what is on them.
    pub(crate) fn state(&self) -> Arc<SessionState> {
        self.state.read().clone()
    }

    /// The first device, where calls run that ask for none.
    #[inline]
    pub fn home(&self) -> DeviceName {
        match self.joined.load(Ordering::Acquire) {
            false => DeviceName::host(),
            true => DeviceName::of(&self.state.read().devices[0].name),
        }
    }

    pub(crate) fn current_functions(&self) -> Arc<Functions> {
        self.functions.read().clone()
    }

    /// Whether an op whose device is not there runs on another, from now on.
    pub fn set_soft_placement(&self, enable: bool) {
        self.soft_placement.store(enable, Ordering::Relaxed);
    }

    /// Whether an op whose device is not there runs on another.
    pub fn soft_placement(&self) -> bool {
        self.soft_placement.load(Ordering::Relaxed)
    }

    /// Whether the device of each call is logged, from now on.
    pub fn set_log_placement(&self, enable: bool) {
        self.log_placement.store(enable, Ordering::Relaxed);
    }

    /// Where calls of this thread run.
    #[inline]
    pub fn executor(&self) -> Arc<Executor> {
        self.thread_executor().unwrap_or_else(|| self.executor.clone())
    }

    fn thread_executor(&self) -> Option<Arc<Executor>> {
        if !self.has_executors.load(Ordering::Acquire) {
            return None;
        }
        let executors = self.executors.lock();
        executors.get(&std::thread::current().id())?.upgrade()
    }

    /// Lets the calls of this thread run on an executor, while that lives; none for the context's.
    pub fn set_executor(&self, executor: Option<&Arc<Executor>>) {
        let mut executors = self.executors.lock();
        executors.retain(|_, executor| executor.strong_count() > 0);
        match executor {
            Some(executor) => executors.insert(std::thread::current().id(), Arc::downgrade(executor)),
            None => executors.remove(&std::thread::current().id()),
        };
        self.has_executors.store(!executors.is_empty(), Ordering::Release);
    }

    /// The context's own executor and those of threads.
    fn executors(&self) -> Vec<Arc<Executor>> {
        let mut all: Vec<_> = self.executors.lock().values().filter_map(Weak::upgrade).collect();
        all.push(self.executor.clone());
        all
    }

    /// Waits until all calls have run. The first error that is pending.
    pub fn wait(&self) -> Result<()> {
        let results: Vec<_> = self.executors().iter().map(|executor| executor.wait()).collect();
        results.into_iter().collect()
    }

    /// Waits until nothing runs any more, whatever came of it.
    pub fn drain(&self) {
        self.executors().iter().for_each(|executor| executor.drain());
    }

    /// The op, or the function as an op, with this name. NOT_FOUND when there is none.
    pub fn find_op(&self, name: &str) -> Result<Arc<EagerOp>> {
        if let Some(op) = self.ops.read().get(name) {
            return Ok(op.clone());
        }
        let record = self.find_record(name)?;
        let mut ops = self.ops.write();
        let op = ops
            .entry(name.into())
            .or_insert_with(|| Arc::new(EagerOp::new(record)));
        Ok(op.clone())
    }

    fn find_record(&self, name: &str) -> Result<Arc<OpRecord>> {
        if let Some(function) = self.library.find_op(name) {
            return Ok(function);
        }
        self.registry.find(name).map_err(|_| {
            status!(
                NotFound,
                "'{name}' is neither a type of a primitive operation nor a name of a function registered in binary running on {}. Make sure the operation or function is registered in the binary running in this process.",
                ff_platform::environment::host_name()
            )
        })
    }

    /// Forgets all kernels, and with them the state of stateful ones. Waits for calls that run.
    pub fn clear_kernels(&self) {
        self.drain();
        self.ops.write().clear();
        self.state().node_states.lock().clear();
    }

    /// A node as a call would run it. INVALID_ARGUMENT when inputs or attributes do not fit the op.
    pub fn node(&self, op: &EagerOp, attrs: &Attrs, types: &[DataType]) -> Result<NodeInfo> {
        let name = op.record.def.name.clone();
        let mut attrs = attrs.clone();
        // What a function asks for itself holds unless its call says otherwise.
        if CompileRequest::says_must(&attrs).is_none() && self.asks_to_be_compiled(&name) {
            CompileRequest::Must.write(&mut attrs);
        }
        let info = lone_node(op.record.clone(), name, attrs, types)?;
        for (index, (expected, actual)) in info.input_types.iter().zip(types).enumerate() {
            ensure!(
                expected == actual,
                InvalidArgument,
                "cannot compute {} as input #{index}(zero-based) was expected to be a {expected} tensor but is a {actual} tensor",
                info.op_name()
            );
        }
        Ok(info)
    }

    /// Runs a kernel, from [`EagerContext::kernel`], on these inputs, flat; or queues that where the executor is
    /// asynchronous. `cancellation` ends it early. The first error of its inputs, shape function or kernel.
    pub fn execute(
        self: &Arc<Self>,
        kernel: &Arc<EagerKernel>,
        device: DeviceName,
        inputs: impl Iterator<Item = Result<EagerTensor>>,
        cancellation: Option<Cancellation>,
    ) -> Result<EagerOutputs> {
        if self.log_placement.load(Ordering::Relaxed) {
            let op = kernel.node.op_name();
            ff_platform::info!("Executing op {op} in device {}", device.as_str());
        }
        if let Some(executor) = self.thread_executor() {
            if executor.is_async() {
                return self.queue(
                    &executor,
                    kernel.clone(),
                    device,
                    inputs.collect::<Result<_>>()?,
                    cancellation,
                );
            }
        } else if self.executor.is_async() {
            return self.queue(
                &self.executor,
                kernel.clone(),
                device,
                inputs.collect::<Result<_>>()?,
                cancellation,
            );
        }
        // One by one into where the kernel has them: each move of a tensor is felt in a call of a small op.
        let (mut values, mut outputs) = (Inputs::new(), Outputs::new());
        for input in inputs {
            values.push(ready(input?)?);
        }
        self.run(kernel, device, &mut values, &mut outputs, cancellation)?;
        let mut tensors = EagerOutputs::new();
        for value in outputs.drain(..) {
            tensors.push(EagerTensor::Ready(tensor(value, kernel)?));
        }
        Ok(tensors)
    }

    /// Queues a call. Its outputs are there once it has run.
    fn queue(
        self: &Arc<Self>,
        executor: &Executor,
        kernel: Arc<EagerKernel>,
        device: DeviceName,
        inputs: Vec<EagerTensor>,
        cancellation: Option<Cancellation>,
    ) -> Result<EagerOutputs> {
        let types = kernel.node.output_types.iter();
        let places: Vec<_> = types.map(|dtype| Pending::new(*dtype)).collect();
        let handles = places.iter().map(|place| EagerTensor::Pending(place.clone()));
        let handles = handles.collect();
        let context = self.clone();
        executor.add(Box::new(move |go| {
            let mut outputs = Outputs::new();
            let ran = go
                .and_then(|()| inputs.into_iter().map(ready).collect::<Result<Inputs>>())
                .and_then(|mut inputs| context.run(&kernel, device, &mut inputs, &mut outputs, cancellation));
            match ran {
                Ok(()) => {
                    let pairs = places.iter().zip(outputs);
                    pairs.for_each(|(place, output)| place.set(tensor(output, &kernel)));
                    Ok(())
                }
                Err(error) => {
                    places.iter().for_each(|place| place.set(Err(error.clone())));
                    Err(error)
                }
            }
        }))?;
        Ok(handles)
    }

    fn run(
        &self,
        kernel: &EagerKernel,
        device: DeviceName,
        inputs: &mut Inputs,
        outputs: &mut Outputs,
        cancellation: Option<Cancellation>,
    ) -> Result<()> {
        let child = cancellation.map(Child::of);
        let own = child.as_ref().map(|child| child.own.clone());
        let host = EagerHost::new(self, &kernel.state, kernel.number, device, own);
        let tracing = self.tracing.load(Ordering::Relaxed);
        let start = tracing.then(Trace::now);
        kernel.run(&host, inputs, outputs)?;
        if let Some(start) = start
            && let Some(trace) = &*self.trace.read()
        {
            trace.record(&kernel.node, start, outputs);
        }
        Ok(())
    }

    /// The kernel for calls of an op with these attributes and types of inputs. INVALID_ARGUMENT when they do not fit the
    /// op; NOT_FOUND when there is no kernel for them.
    pub fn kernel(
        &self,
        op: &EagerOp,
        device: DeviceName,
        attrs: &Attrs,
        types: &InputTypes,
    ) -> Result<Arc<EagerKernel>> {
        op.kernel(device, attrs, types, || {
            let state = self.state();
            self.check_is_there(&state, device)?;
            let node = Arc::new(self.node(op, attrs, types)?);
            let number = self.next_number();
            let host = EagerHost::new(self, &state, number, device, None);
            let constants = vec![None; types.len()];
            let executable =
                Executable::new(node.clone(), crate::device::kind_for(&node), &constants, &host)?;
            self.collect(op);
            Ok((node, number, executable, state.clone()))
        })
    }
}

/// Outputs of a call.
pub type EagerOutputs = SmallVec<[EagerTensor; 1]>;

/// The tensor among what a kernel may give.
fn tensor(value: Value, kernel: &EagerKernel) -> Result<Tensor> {
    match value {
        Value::Tensor(tensor) => Ok(tensor),
        _ => Err(status!(
            Unimplemented,
            "{} has an output that is not a tensor",
            kernel.node.op_name()
        )),
    }
}

/// An input, once it is there.
#[inline]
fn ready(input: EagerTensor) -> Result<Value> {
    match input {
        EagerTensor::Ready(tensor) => Ok(Value::Tensor(tensor)),
        pending => pending.wait().map(Value::Tensor),
    }
}

/// A cancellation of one call: it follows that of a client, which a failure of the call leaves alone.
struct Child {
    own: Cancellation,
    parent: Cancellation,
    number: u64,
}

impl Child {
    fn of(parent: Cancellation) -> Child {
        let own = Cancellation::default();
        let follower = own.clone();
        let number = parent.on_cancel(move || {
            follower.cancel(status!(Cancelled, "Operation was cancelled"));
        });
        Child { own, parent, number }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.parent.forget(self.number);
    }
}
