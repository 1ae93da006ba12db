//! The ops of an eager context with the kernels that calls have needed so far.
//!
//! A kernel is found by a hash of what distinguishes it, without building a key; a call that has been seen before takes
//! two uncontended locks. Kernels are kept per op, specializations per kernel, both up to a bound.

use crate::eager_device::DeviceName;
use crate::eager_host::EagerHost;
use crate::letters::{Driving, Letter, Route};
use crate::loops::Tag;
use crate::session::SessionState;
use ff_op::{Attrs, Executable, NodeInfo, OpRecord, Specialization, Value};
use ff_proto::op_def::ArgDef;
use ff_tensor::{DataType, Result};
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::ffi::CString;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Kernels kept by an op; beyond that all are forgotten.
const KERNELS_KEPT: usize = 4096;
/// Specializations kept by a kernel.
const SPECIALIZATIONS_KEPT: usize = 16;

/// Element types of a call's inputs.
pub type InputTypes = SmallVec<[DataType; 4]>;
/// Inputs of a call.
pub type Inputs = SmallVec<[Value; 2]>;
/// Outputs of a call.
pub type Outputs = SmallVec<[Value; 1]>;

/// An op, or a function as an op, as a context knows it. Shared by all calls of it.
pub struct EagerOp {
    /// The op.
    pub record: Arc<OpRecord>,
    /// Its name as C reads it.
    pub name: CString,
    /// How many outputs every call gives; none where that depends on attributes.
    pub fixed_outputs: Option<usize>,
    /// How many inputs every call takes; none where that depends on attributes.
    pub fixed_inputs: Option<usize>,
    kernels: RwLock<FxHashMap<u64, SmallVec<[Arc<EagerKernel>; 1]>>>,
}

/// An op with attributes, types of inputs, and the kernel that was chosen for them.
pub struct EagerKernel {
    /// The call as a node.
    pub node: Arc<NodeInfo>,
    /// Tells its state from that of other kernels.
    pub number: u64,
    /// The devices that the context had when it was made.
    pub(crate) state: Arc<SessionState>,
    device: DeviceName,
    attrs: Attrs,
    types: InputTypes,
    executable: Executable,
    /// The last made first.
    known: Mutex<SmallVec<[Arc<Specialization>; 2]>>,
}

/// Whether an argument stands for several tensors.
pub fn is_list(arg: &ArgDef) -> bool {
    !arg.number_attr.is_empty() || !arg.type_list_attr.is_empty()
}

fn fixed_count(args: &[ArgDef]) -> Option<usize> {
    (!args.iter().any(is_list)).then_some(args.len())
}

impl EagerOp {
    /// The op without kernels.
    pub fn new(record: Arc<OpRecord>) -> EagerOp {
        EagerOp {
            name: CString::new(record.def.name.as_str()).unwrap_or_default(),
            fixed_outputs: fixed_count(&record.def.output_arg),
            fixed_inputs: fixed_count(&record.def.input_arg),
            record,
            kernels: RwLock::default(),
        }
    }

    /// The kernel for a call, made by `make` if there was none like it.
    pub fn kernel(
        &self,
        device: DeviceName,
        attrs: &Attrs,
        types: &InputTypes,
        make: impl FnOnce() -> Result<(Arc<NodeInfo>, u64, Executable, Arc<SessionState>)>,
    ) -> Result<Arc<EagerKernel>> {
        let hash = hash(device, attrs, types);
        let is_it = |kernel: &&Arc<EagerKernel>| {
            kernel.device == device && kernel.types == *types && kernel.attrs == *attrs
        };
        if let Some(list) = self.kernels.read().get(&hash)
            && let Some(found) = list.iter().find(is_it)
        {
            return Ok(found.clone());
        }
        let (node, number, executable, state) = make()?;
        let made = Arc::new(EagerKernel {
            node,
            number,
            state,
            device,
            attrs: attrs.clone(),
            types: types.clone(),
            executable,
            known: Mutex::default(),
        });
        let mut kernels = self.kernels.write();
        if kernels.len() >= KERNELS_KEPT {
            kernels.clear();
        }
        let list = kernels.entry(hash).or_default();
        // Another thread may have been faster; its kernel may have state already.
        if let Some(found) = list.iter().find(is_it) {
            return Ok(found.clone());
        }
        list.push(made.clone());
        Ok(made)
    }

    /// Forgets the kernels: they are of devices that are no longer there.
    pub(crate) fn forget_kernels(&self) {
        self.kernels.write().clear();
    }
}

fn hash(device: DeviceName, attrs: &Attrs, types: &InputTypes) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_usize(device.address());
    if !attrs.is_empty() {
        attrs.hash(&mut hasher);
    }
    types.iter().for_each(|dtype| hasher.write_i32(dtype.0));
    hasher.finish()
}

impl EagerKernel {
    /// Runs the kernel to its end, also one that waits. It may take the inputs.
    pub fn run(&self, host: &EagerHost, inputs: &mut Inputs, outputs: &mut Outputs) -> Result<()> {
        outputs.resize_with(self.node.output_types.len(), Value::default);
        ff_platform::threads::with_stack(|| self.run_here(host, inputs, outputs))
    }

    fn run_here(&self, host: &EagerHost, inputs: &mut Inputs, outputs: &mut Outputs) -> Result<()> {
        if self.executable.is_asynchronous() {
            if !self.executable.attempt(inputs, outputs, host)? {
                *outputs = self.wait(host, inputs.drain(..).collect())?;
            }
            return Ok(());
        }
        let specialization = self.specialization(host, inputs)?;
        self.executable.run(&specialization, inputs, outputs, host)
    }

    fn specialization(&self, host: &EagerHost, inputs: &[Value]) -> Result<Arc<Specialization>> {
        if let Some(known) = self.known.lock().iter().find(|known| known.fits(inputs)) {
            return Ok(known.clone());
        }
        let made = Arc::new(self.executable.specialize(inputs, host)?);
        let mut known = self.known.lock();
        known.truncate(SPECIALIZATIONS_KEPT - 1);
        known.insert(0, made.clone());
        Ok(made)
    }

    /// Runs a kernel that may wait for others.
    fn wait(&self, host: &EagerHost, inputs: Vec<Value>) -> Result<Outputs> {
        let driving = Driving::default();
        let Route { home, relay } = Route::to(&driving);
        let key = (Tag { frame: 0, turn: 0 }, 0);
        let done = move |ended| home.ended(key, ended);
        self.executable
            .start(inputs, host.step().clone(), relay, Box::new(done));
        loop {
            match driving.letters().take_one() {
                Some(Letter::Ended(_, ended)) => return Ok(ended?.into()),
                Some(Letter::Work(work)) => work(),
                None => driving.letters().wait(),
            }
        }
    }
}
