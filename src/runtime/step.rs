//! One step: what its kernels can reach, and the record of what they did.

use crate::functions::Functions;
use crate::session::SessionState;
use ff_kernels::ThreadPool;
use ff_op::{Cancellation, FunctionHost, KernelHost, NodeInfo, ResourceManager, Value};
use ff_proto::{ConfigProto, DeviceStepStats, NodeExecStats, StepStats};
use ff_tensor::{Result, Status};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::{Arc, Weak};

/// A step of a session. Kernels that wait keep it alive.
pub struct Step {
    /// Number, unique in the session.
    pub id: u64,
    /// The session's devices, threads and states.
    pub session: Arc<SessionState>,
    /// Functions of the session's graph.
    pub functions: Arc<Functions>,
    /// Cancellation of this step.
    pub cancellation: Cancellation,
    /// Number of the eager kernel that it is a call of; 0 in a session.
    kernel: u64,
    this: Weak<Step>,
}

impl Step {
    /// A step that nothing has run in.
    pub fn new(id: u64, session: Arc<SessionState>, functions: Arc<Functions>) -> Arc<Step> {
        Step::of_kernel(id, session, functions, 0, Cancellation::default())
    }

    /// A step that nothing has run in: one call of an eager kernel, whose number tells its state from that of others with
    /// nodes of the same name; ended early by `cancellation`.
    pub fn of_kernel(
        id: u64,
        session: Arc<SessionState>,
        functions: Arc<Functions>,
        kernel: u64,
        cancellation: Cancellation,
    ) -> Arc<Step> {
        Arc::new_cyclic(|this| Step {
            id,
            session,
            functions,
            kernel,
            cancellation,
            this: this.clone(),
        })
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        for device in &self.session.devices {
            device.resources.end_step(self.id);
        }
    }
}

impl KernelHost for Step {
    fn pool(&self) -> &ThreadPool {
        &self.session.pool
    }

    fn resources(&self) -> &Arc<ResourceManager> {
        &self.session.devices[0].resources
    }

    fn functions(&self) -> &dyn FunctionHost {
        &*self.functions
    }

    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn step_id(&self) -> u64 {
        self.id
    }

    fn device_name(&self) -> &str {
        &self.session.devices[0].name
    }

    fn node_state(
        &self,
        node: &str,
        make: &mut dyn FnMut() -> Result<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<dyn Any + Send + Sync>> {
        let numbered;
        let node = match self.kernel {
            0 => node,
            kernel => {
                numbered = format!("{kernel}:{node}");
                &numbered
            }
        };
        if let Some(state) = self.session.node_states.lock().get(node) {
            return Ok(state.clone());
        }
        let state = make()?;
        Ok(self
            .session
            .node_states
            .lock()
            .entry(node.to_string())
            .or_insert(state)
            .clone())
    }

    fn config(&self) -> ConfigProto {
        self.session.config.clone()
    }

    fn share(&self) -> Option<Arc<dyn KernelHost>> {
        let this: Arc<dyn KernelHost> = self.this.upgrade()?;
        Some(this)
    }
}

/// The error with the node that it came from, as the reference's executor words it.
#[cold]
pub fn at_node(error: Status, node: &NodeInfo) -> Status {
    if node.op_name() == ff_jit::OP_NAME {
        // It names the node of the cluster that it came from.
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

/// Records what each node of a step did and when.
#[derive(Default)]
pub struct Trace(Mutex<Vec<NodeExecStats>>);

impl Trace {
    /// Microseconds and nanoseconds of now, since the epoch.
    pub fn now() -> (i64, i64) {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        (now.as_micros() as i64, now.as_nanos() as i64)
    }

    /// Records a node that ran from `start` until now; `values` starts with its outputs.
    pub fn record(&self, node: &NodeInfo, start: (i64, i64), values: &[Value]) {
        let end = Trace::now();
        let outputs = values
            .iter()
            .take(node.output_types.len())
            .enumerate()
            .filter_map(|(slot, value)| {
                let Value::Tensor(tensor) = value else { return None };
                let description = ff_proto::TensorDescription {
                    dtype: tensor.dtype().0,
                    shape: Some(tensor.partial_shape().to_proto()),
                    allocation_description: Some(ff_proto::AllocationDescription {
                        requested_bytes: tensor.byte_size() as i64,
                        allocator_name: "cpu".to_string(),
                        ..Default::default()
                    }),
                };
                Some(ff_proto::NodeOutput {
                    slot: slot as i32,
                    tensor_description: Some(description),
                })
            });
        let stats = NodeExecStats {
            node_name: node.name.clone(),
            all_start_micros: start.0,
            op_end_rel_micros: end.0 - start.0,
            all_end_rel_micros: end.0 - start.0,
            all_start_nanos: start.1,
            op_end_rel_nanos: end.1 - start.1,
            all_end_rel_nanos: end.1 - start.1,
            timeline_label: format!("{} = {}()", node.name, node.op_name()),
            output: outputs.collect(),
            ..Default::default()
        };
        self.0.lock().push(stats);
    }

    /// The record as a message.
    pub fn into_step_stats(self, device: &str) -> StepStats {
        let stats = DeviceStepStats {
            device: device.to_string(),
            node_stats: self.0.into_inner(),
            ..Default::default()
        };
        StepStats {
            dev_stats: vec![stats],
        }
    }
}
