//! One step: what its kernels can reach, on each device.

use crate::device::{Device, Task};
use crate::eager_device::DeviceName;
use crate::functions::Functions;
use crate::loop_turn::LoopTurn;
use crate::session::SessionState;
pub use crate::trace::Trace;
use ff_kernels::ThreadPool;
use ff_op::{
    Cancellation, Collectives, FunctionHost, KernelHost, NodeInfo, Rendezvous, ResourceManager, StepTensors,
};
use ff_proto::ConfigProto;
use ff_tensor::{ResourceHandle, Result, Status};
use parking_lot::{Mutex, RwLock};
use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

/// A step of a session as kernels of one device see it. Kernels that wait keep it alive.
pub struct Step {
    /// What all devices have in common.
    common: Arc<Common>,
    device: usize,
    /// The step on the other devices, made when first asked for.
    others: OnceLock<Box<[OnceLock<Arc<Step>>]>>,
    this: Weak<Step>,
}

/// What a step is, whatever the device.
struct Common {
    id: u64,
    session: Arc<SessionState>,
    functions: Arc<Functions>,
    cancellation: Cancellation,
    /// Number of the eager kernel that it is a call of; 0 in a session.
    kernel: u64,
    /// The device of that call, which may be none of the session's, and its resources.
    eager_device: Option<(DeviceName, Arc<ResourceManager>)>,
    rendezvous: OnceLock<Arc<Rendezvous>>,
    /// What it leaves to its session, made when first asked for.
    tensors: OnceLock<StepTensors>,
    trace: Option<Trace>,
}

impl Drop for Common {
    fn drop(&mut self) {
        for device in &self.session.devices {
            device.resources.end_step(self.id);
        }
        if let Some((_, resources)) = &self.eager_device {
            resources.end_step(self.id);
        }
    }
}

impl Step {
    /// A step that nothing has run in; what runs is recorded if `traced`.
    pub fn new(id: u64, session: Arc<SessionState>, functions: Arc<Functions>, traced: bool) -> Arc<Step> {
        let common = Common {
            id,
            session,
            functions,
            cancellation: Cancellation::default(),
            kernel: 0,
            eager_device: None,
            rendezvous: OnceLock::new(),
            tensors: OnceLock::new(),
            trace: traced.then(Trace::default),
        };
        Step::on(Arc::new(common), 0)
    }

    /// A step that nothing has run in: one call on `device`, which has these resources, of an eager kernel, whose number tells its state from that of
    /// others with nodes of the same name; ended early by `cancellation`.
    pub fn of_kernel(
        id: u64,
        session: Arc<SessionState>,
        functions: Arc<Functions>,
        kernel: u64,
        device: (DeviceName, Arc<ResourceManager>),
        cancellation: Cancellation,
    ) -> Arc<Step> {
        let common = Common {
            id,
            session,
            functions,
            cancellation,
            kernel,
            eager_device: Some(device),
            rendezvous: OnceLock::new(),
            tensors: OnceLock::new(),
            trace: None,
        };
        Step::on(Arc::new(common), 0)
    }

    fn on(common: Arc<Common>, device: usize) -> Arc<Step> {
        Arc::new_cyclic(|this| Step {
            common,
            device,
            others: OnceLock::new(),
            this: this.clone(),
        })
    }

    /// Number, unique in the session.
    pub fn id(&self) -> u64 {
        self.common.id
    }

    /// The record of what ran, if there is one.
    pub fn recorded(&self) -> Option<&Trace> {
        self.common.trace.as_ref()
    }

    /// What it may leave to its session; none where no kernel has asked.
    pub fn left(&self) -> Option<&StepTensors> {
        let tensors = self.common.tensors.get();
        tensors.filter(|tensors| !tensors.is_empty())
    }

    /// Cancellation of this step.
    pub fn cancellation(&self) -> &Cancellation {
        &self.common.cancellation
    }
}

impl KernelHost for Step {
    fn pool(&self) -> &ThreadPool {
        &self.common.session.pool
    }

    fn resources(&self) -> &Arc<ResourceManager> {
        match &self.common.eager_device {
            Some((_, resources)) if self.device == 0 => resources,
            _ => &self.common.session.devices[self.device].resources,
        }
    }

    fn resources_elsewhere(&self, handle: &ResourceHandle) -> Option<Arc<ResourceManager>> {
        // Functions that are called eagerly may be given handles of any device.
        let (device, _) = self.common.eager_device.as_ref()?;
        if device.as_c().to_bytes() == handle.device.as_bytes() {
            return None;
        }
        self.common.session.resources_of(&handle.device)
    }

    fn functions(&self) -> &dyn FunctionHost {
        &*self.common.functions
    }

    fn cancellation(&self) -> &Cancellation {
        &self.common.cancellation
    }

    fn step_id(&self) -> u64 {
        self.common.id
    }

    fn loop_turn(&self) -> (u64, u64) {
        let LoopTurn { frame, turn } = LoopTurn::current();
        (frame, turn)
    }

    fn device_name(&self) -> &str {
        match &self.common.eager_device {
            Some((device, _)) if self.device == 0 => device.as_str(),
            _ => &self.common.session.devices[self.device].name,
        }
    }

    fn node_state(
        &self,
        node: &str,
        make: &mut dyn FnMut() -> Result<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<dyn Any + Send + Sync>> {
        self.common.session.node_state(self.common.kernel, node, make)
    }

    fn config(&self) -> ConfigProto {
        self.common.session.config.clone()
    }

    fn share(&self) -> Option<Arc<dyn KernelHost>> {
        let this: Arc<dyn KernelHost> = self.this.upgrade()?;
        Some(this)
    }

    fn device_names(&self) -> Vec<String> {
        let devices = self.common.session.devices.iter();
        devices.map(|device| device.name.clone()).collect()
    }

    fn on_device(&self, device: usize) -> Option<&dyn KernelHost> {
        if device == self.device {
            return None;
        }
        // Each device's view keeps those that were asked of it: there are no cycles.
        let devices = self.common.session.devices.len();
        let others = self
            .others
            .get_or_init(|| (0..devices).map(|_| OnceLock::new()).collect());
        let other = others.get(device)?;
        let step: &Step = other.get_or_init(|| Step::on(self.common.clone(), device));
        Some(step)
    }

    fn rendezvous(&self) -> Option<&Arc<Rendezvous>> {
        Some(self.common.rendezvous.get_or_init(Arc::default))
    }

    fn session_tensors(&self) -> Option<&StepTensors> {
        let common = &*self.common;
        if common.eager_device.is_some() {
            return None;
        }
        let make = || StepTensors::new(common.session.tensors.clone());
        Some(common.tensors.get_or_init(make))
    }

    fn collectives(&self) -> Option<&Arc<Collectives>> {
        Some(&self.common.session.collectives)
    }

    fn trace(&self) -> Option<&(dyn Any + Send + Sync)> {
        let trace: &(dyn Any + Send + Sync) = self.common.trace.as_ref()?;
        Some(trace)
    }

    fn branch_pool(&self) -> Option<&ThreadPool> {
        self.common.session.branch_pool.as_deref()
    }
}

impl SessionState {
    /// The state of an eager context.
    pub fn eager(task: Task, cpus: usize, pool: Arc<ThreadPool>, config: &ConfigProto) -> SessionState {
        SessionState {
            devices: Device::all(&task, cpus),
            task,
            added: RwLock::default(),
            pool,
            branch_pool: None,
            node_states: Mutex::default(),
            tensors: Arc::default(),
            collectives: Arc::default(),
            config: config.clone(),
        }
    }

    /// Resources of the device with this full name, if it is there.
    pub fn resources_of(&self, device: &str) -> Option<Arc<ResourceManager>> {
        let find = |devices: &[Device]| {
            let found = devices.iter().find(|other| other.name == device)?;
            Some(found.resources.clone())
        };
        find(&self.devices).or_else(|| find(&self.added.read()))
    }

    /// The state of a stateful node, made when first asked for. `kernel` is the number of its eager kernel, or 0.
    pub fn node_state(
        &self,
        kernel: u64,
        node: &str,
        make: &mut dyn FnMut() -> Result<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<dyn Any + Send + Sync>> {
        let numbered;
        let node = match kernel {
            0 => node,
            kernel => {
                numbered = format!("{kernel}:{node}");
                &numbered
            }
        };
        if let Some(state) = self.node_states.lock().get(node) {
            return Ok(state.clone());
        }
        let state = make()?;
        let mut states = self.node_states.lock();
        Ok(states.entry(node.to_string()).or_insert(state).clone())
    }
}

/// The error with the node that it came from, as the reference's executor words it.
#[cold]
pub fn at_node(error: Status, node: &NodeInfo) -> Status {
    if node.op_name() == ff_jit::OP_NAME {
        // It names the node of the cluster that it came from.
        return error;
    }
    if error
        .message()
        .ends_with(&format!(" for node {}", node.describe()))
        || error
            .message()
            .ends_with(&format!("-th output from {}", node.describe()))
    {
        // It says so itself.
        return error;
    }
    if !error.message().contains("\n\t [[") {
        return error.suffixed(&format!("\n\t [[{}]]", node.describe()));
    }
    // It came from a function that the node runs.
    let mark = format!("\n\t [[{}]]", node.name);
    let is_there =
        error.message().contains(&mark) || error.message().ends_with(&format!("[[{}]]", node.describe()));
    if is_there { error } else { error.suffixed(&mark) }
}
