//! Eager execution: one op at a time, without a graph or a session.
//!
//! A context has devices, resources, functions and kernels. A kernel is chosen and prepared once for an op, its
//! attributes and the types of its inputs, and kept; so are the specializations for shapes that it has met. The state of
//! a stateful kernel (a random stream) belongs to the kernel that is kept, so calls that look alike share it.
//!
//! Ops run on the caller's thread, to their end, also those that wait. Any number of threads may use one context.

use crate::device::{Device, shared_pool};
use crate::functions::Functions;
use crate::options::SessionOptions;
use crate::session::SessionState;
use crate::step::{Step, Trace};
use ff_graph::{FunctionLibrary, lone_node};
use ff_op::{Attrs, Cancellation, Executable, NodeInfo, OpRecord, Registry, Specialization, Value};
use ff_proto::{FunctionDef, RunMetadata};
use ff_tensor::{DataType, Result, Tensor, bail, ensure, status};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

/// Kernels kept by a context; beyond that all are forgotten.
const KERNELS_KEPT: usize = 4096;
/// Specializations kept by a kernel.
const SPECIALIZATIONS_KEPT: usize = 16;

/// What distinguishes kernels: the op (by address; the kernel keeps it alive), attributes as given, types of inputs.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    op: usize,
    device: usize,
    attrs: Attrs,
    types: SmallVec<[DataType; 4]>,
}

/// An op with its kernel.
struct Kernel {
    node: Arc<NodeInfo>,
    /// Tells its state from that of other kernels.
    number: u64,
    executable: Executable,
    /// The last used first.
    known: Mutex<SmallVec<[Arc<Specialization>; 2]>>,
}

/// One call of an op.
pub struct Call<'a> {
    /// The op.
    pub op: &'a Arc<OpRecord>,
    /// Attributes that were set; the others follow from the inputs or have defaults.
    pub attrs: &'a Attrs,
    /// Number of the device.
    pub device: usize,
    /// The inputs, flat.
    pub inputs: SmallVec<[Value; 4]>,
    /// What ends the call early, if anything can.
    pub cancellation: Option<Cancellation>,
}

/// See the module.
pub struct EagerContext {
    registry: Arc<Registry>,
    library: Arc<FunctionLibrary>,
    state: Arc<SessionState>,
    /// How often each function was added.
    additions: Mutex<FxHashMap<String, usize>>,
    /// Functions made ready; made anew when one is removed.
    functions: RwLock<Arc<Functions>>,
    kernels: RwLock<FxHashMap<Key, Arc<Kernel>>>,
    /// Numbers of steps and of kernels.
    next: AtomicU64,
    /// While metadata is collected: what ran.
    trace: RwLock<Option<Trace>>,
}

impl EagerContext {
    /// A context over these ops, with the devices and threads that `options` ask for.
    pub fn new(registry: Arc<Registry>, options: &SessionOptions) -> EagerContext {
        let library = Arc::new(FunctionLibrary::default());
        let state = SessionState {
            devices: (0..options.cpu_devices()).map(Device::cpu).collect(),
            pool: shared_pool(options.intra_op_threads()),
            branch_pool: None,
            node_states: Mutex::default(),
            config: options.config.clone(),
        };
        EagerContext {
            functions: RwLock::new(Arc::new(Functions::new(registry.clone(), library.clone()))),
            registry,
            library,
            state: Arc::new(state),
            additions: Mutex::default(),
            kernels: RwLock::default(),
            next: AtomicU64::new(1),
            trace: RwLock::default(),
        }
    }

    /// The devices.
    pub fn devices(&self) -> &[Device] {
        &self.state.devices
    }

    /// The number of the device that a name means: full, or in part such as `CPU:0` or `/device:CPU:0`. INVALID_ARGUMENT
    /// when there is none.
    pub fn device(&self, name: &str) -> Result<usize> {
        let found = crate::placement::find_device(&self.state.devices, name);
        found.ok_or_else(|| status!(InvalidArgument, "{name} unknown device."))
    }

    /// The op, or the function as an op, with this name. NOT_FOUND when there is none.
    pub fn find_op(&self, name: &str) -> Result<Arc<OpRecord>> {
        if let Some(function) = self.library.find_op(name) {
            return Ok(function);
        }
        let unknown = |error: ff_tensor::Status| {
            let text = error.message().to_string();
            status!(
                NotFound,
                "'{name}' is neither a type of a primitive operation nor a name of a function registered in binary running on this machine. {text}"
            )
        };
        self.registry.find(name).map_err(unknown)
    }

    /// Adds a function. INVALID_ARGUMENT when another has its name.
    pub fn add_function(&self, function: Arc<FunctionDef>) -> Result<()> {
        let name = function
            .signature
            .as_ref()
            .map(|signature| signature.name.clone());
        self.library.add(function)?;
        *self.additions.lock().entry(name.unwrap_or_default()).or_insert(0) += 1;
        Ok(())
    }

    /// Takes back one addition of a function; with the last the function goes. INVALID_ARGUMENT when there is none with
    /// this name.
    pub fn remove_function(&self, name: &str) -> Result<()> {
        let mut additions = self.additions.lock();
        let Some(count) = additions.get_mut(name) else {
            bail!(InvalidArgument, "Tried to remove non-existent function '{name}'.");
        };
        *count -= 1;
        if *count > 0 {
            return Ok(());
        }
        additions.remove(name);
        self.library.remove(name);
        self.clear_kernels();
        *self.functions.write() = Arc::new(Functions::new(self.registry.clone(), self.library.clone()));
        Ok(())
    }

    /// Whether there is a function with this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.library.find_op(name).is_some()
    }

    /// The function with this name. NOT_FOUND when there is none.
    pub fn function(&self, name: &str) -> Result<Arc<FunctionDef>> {
        self.library.find(name)
    }

    /// Forgets all kernels, and with them the state of stateful ones.
    pub fn clear_kernels(&self) {
        self.kernels.write().clear();
        self.state.node_states.lock().clear();
    }

    /// Starts to collect what runs.
    pub fn enable_metadata(&self) {
        self.trace.write().get_or_insert_default();
    }

    /// Stops that, and forgets what was collected.
    pub fn disable_metadata(&self) {
        *self.trace.write() = None;
    }

    /// What ran since the last call, or since the start. Empty when nothing is collected.
    pub fn take_metadata(&self) -> RunMetadata {
        let taken = self.trace.write().as_mut().map(std::mem::take);
        RunMetadata {
            step_stats: taken.map(|trace| trace.into_step_stats(&self.state.devices[0].name)),
            ..RunMetadata::default()
        }
    }

    /// A node as a call would run it. INVALID_ARGUMENT when inputs or attributes do not fit the op.
    pub fn node(&self, op: &Arc<OpRecord>, attrs: &Attrs, types: &[DataType]) -> Result<NodeInfo> {
        let name = op.def.name.clone();
        let info = lone_node(op.clone(), name, attrs.clone(), types)?;
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

    /// Runs an op. The first error of its shape function or kernel; INVALID_ARGUMENT when inputs or attributes do not fit.
    pub fn execute(&self, call: Call) -> Result<SmallVec<[Tensor; 2]>> {
        let kernel = self.kernel(&call)?;
        let step = self.step(kernel.number, call.cancellation.unwrap_or_default());
        let start = self.trace.read().is_some().then(Trace::now);
        let outputs = kernel.run(&step, call.inputs)?;
        if let (Some(start), Some(trace)) = (start, &*self.trace.read()) {
            trace.record(&kernel.node, start, &outputs);
        }
        let tensor = |value| match value {
            Value::Tensor(tensor) => Ok(tensor),
            _ => Err(status!(
                Unimplemented,
                "{} has an output that is not a tensor",
                kernel.node.op_name()
            )),
        };
        outputs.into_iter().map(tensor).collect()
    }

    /// A step for one call of the kernel with this number.
    fn step(&self, kernel: u64, cancellation: Cancellation) -> Arc<Step> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let functions = self.functions.read().clone();
        Step::of_kernel(number, self.state.clone(), functions, kernel, cancellation)
    }

    fn kernel(&self, call: &Call) -> Result<Arc<Kernel>> {
        let dtype = |value: &Value| match value {
            Value::Tensor(tensor) => tensor.dtype(),
            _ => DataType::INVALID,
        };
        let key = Key {
            op: Arc::as_ptr(call.op).addr(),
            device: call.device,
            attrs: call.attrs.clone(),
            types: call.inputs.iter().map(dtype).collect(),
        };
        if let Some(kernel) = self.kernels.read().get(&key) {
            return Ok(kernel.clone());
        }
        let node = Arc::new(self.node(call.op, call.attrs, &key.types)?);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let step = self.step(number, Cancellation::default());
        let constants = vec![None; key.types.len()];
        let kernel = Arc::new(Kernel {
            executable: Executable::new(node.clone(), "CPU", &constants, &*step)?,
            node,
            number,
            known: Mutex::default(),
        });
        let mut kernels = self.kernels.write();
        if kernels.len() >= KERNELS_KEPT {
            kernels.clear();
        }
        Ok(kernels.entry(key).or_insert(kernel).clone())
    }
}

impl Kernel {
    fn run(&self, step: &Arc<Step>, mut inputs: SmallVec<[Value; 4]>) -> Result<SmallVec<[Value; 2]>> {
        if self.executable.is_asynchronous() {
            return self.wait(step, inputs.into_vec());
        }
        let specialization = self.specialization(step, &inputs)?;
        let mut outputs = SmallVec::from_elem(Value::Absent, self.node.output_types.len());
        self.executable
            .run(&specialization, &mut inputs, &mut outputs, &**step)?;
        Ok(outputs)
    }

    fn specialization(&self, step: &Arc<Step>, inputs: &[Value]) -> Result<Arc<Specialization>> {
        if let Some(known) = self.known.lock().iter().find(|known| known.fits(inputs)) {
            return Ok(known.clone());
        }
        let made = Arc::new(self.executable.specialize(inputs, &**step)?);
        let mut known = self.known.lock();
        known.truncate(SPECIALIZATIONS_KEPT - 1);
        known.insert(0, made.clone());
        Ok(made)
    }

    /// Runs a kernel that may wait for others.
    fn wait(&self, step: &Arc<Step>, inputs: Vec<Value>) -> Result<SmallVec<[Value; 2]>> {
        let (sender, receiver) = mpsc::channel();
        let done = move |result| {
            // Nobody listens any more after a cancellation.
            let _ = sender.send(result);
        };
        self.executable.start(inputs, step.clone(), Box::new(done));
        let result: Result<Vec<Value>> = receiver
            .recv()
            .map_err(|_| status!(Internal, "{} ended without a result", self.node.op_name()))?;
        Ok(result?.into())
    }
}
