//! Runs one node without a session: for constant folding, values in shape inference, and tests.

use crate::{
    Callable, Cancellation, Executable, FunctionHost, FunctionRef, FunctionSignature, HandleShapes,
    KernelHost, NodeInfo, ResourceManager, Value,
};
use ff_hlo::{Builder, Op as HloOp};
use ff_kernels::ThreadPool;
use ff_tensor::{PartialShape, Result, Tensor, status};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::sync::Arc;

/// Runs a node on `inputs` and gives its outputs. The kernel must not wait and the outputs must be tensors.
pub fn run_one(node: &Arc<NodeInfo>, inputs: Vec<Tensor>, host: &dyn KernelHost) -> Result<Vec<Tensor>> {
    let constants: Vec<Option<Tensor>> = inputs.iter().cloned().map(Some).collect();
    let executable = Executable::new(node.clone(), "CPU", &constants, host)?;
    drop(constants);
    let mut inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
    let specialization = executable.specialize(&inputs, host)?;
    let mut outputs = vec![Value::Absent; node.output_types.len()];
    executable.run(&specialization, &mut inputs, &mut outputs, host)?;
    let tensor = |value| match value {
        Value::Tensor(tensor) => Ok(tensor),
        _ => Err(status!(
            Internal,
            "{} has an output that is not a tensor",
            node.describe()
        )),
    };
    outputs.into_iter().map(tensor).collect()
}

/// A host for [`run_one`]: the caller's thread, resources of its own, no functions.
pub struct RunOneHost {
    pool: ThreadPool,
    resources: Arc<ResourceManager>,
    cancellation: Cancellation,
    states: Mutex<FxHashMap<String, Arc<dyn Any + Send + Sync>>>,
}

impl RunOneHost {
    /// A host with empty resources.
    pub fn new() -> RunOneHost {
        RunOneHost {
            pool: ThreadPool::new(1),
            resources: Arc::default(),
            cancellation: Cancellation::default(),
            states: Mutex::default(),
        }
    }
}

impl Default for RunOneHost {
    fn default() -> RunOneHost {
        RunOneHost::new()
    }
}

impl KernelHost for RunOneHost {
    fn pool(&self) -> &ThreadPool {
        &self.pool
    }

    fn resources(&self) -> &Arc<ResourceManager> {
        &self.resources
    }

    fn functions(&self) -> &dyn FunctionHost {
        &NoFunctions
    }

    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn step_id(&self) -> u64 {
        0
    }

    fn device_name(&self) -> &str {
        "/job:localhost/replica:0/task:0/device:CPU:0"
    }

    fn node_state(
        &self,
        node: &str,
        make: &mut dyn FnMut() -> Result<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<dyn Any + Send + Sync>> {
        let mut states = self.states.lock();
        if let Some(state) = states.get(node) {
            return Ok(state.clone());
        }
        let state = make()?;
        states.insert(node.to_string(), state.clone());
        Ok(state)
    }

    fn share(&self) -> Option<Arc<dyn KernelHost>> {
        None
    }
}

/// A library without functions.
struct NoFunctions;

fn no_function<T>(function: &FunctionRef) -> Result<T> {
    Err(status!(NotFound, "Function {} is not defined.", function.name))
}

impl FunctionHost for NoFunctions {
    fn signature(&self, function: &FunctionRef) -> Result<FunctionSignature> {
        no_function(function)
    }

    fn instantiate(&self, function: &FunctionRef) -> Result<Arc<dyn Callable>> {
        no_function(function)
    }

    fn infer(
        &self,
        function: &FunctionRef,
        _arguments: &[PartialShape],
        _handles: &[Option<HandleShapes>],
    ) -> Result<(Vec<PartialShape>, Vec<Option<HandleShapes>>)> {
        no_function(function)
    }

    fn lower(&self, function: &FunctionRef, _: &mut Builder, _: &[HloOp]) -> Result<Vec<HloOp>> {
        no_function(function)
    }
}
