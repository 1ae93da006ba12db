//! The record of what the nodes of a step did, and when.

use crate::plan::Instruction;
use ff_op::{NodeInfo, Value};
use ff_proto::{
    AllocationDescription, AllocatorMemoryUsed, DeviceStepStats, MemoryStats, NodeExecStats, NodeOutput,
    StepStats, TensorDescription,
};
use ff_tensor::Tensor;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Microseconds and nanoseconds since the epoch.
pub type Moment = (i64, i64);

/// Records what each node of a step did and when. Any thread may write to it.
#[derive(Default)]
pub struct Trace(Mutex<Vec<Entry>>);

/// What one node did.
struct Entry {
    device: String,
    stats: NodeExecStats,
}

impl Trace {
    /// Now.
    pub fn now() -> Moment {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        (now.as_micros() as i64, now.as_nanos() as i64)
    }

    /// Records an instruction that ran from `start` until now; `values` starts with its outputs.
    pub fn record_on(&self, instruction: &Instruction, device: &str, start: Moment, values: &[Value]) {
        self.add(instruction.executable.node(), device, start, values);
    }

    /// Records a node that ran from `start` until now, of which the device is said later; `values` starts with its outputs.
    pub fn record(&self, node: &NodeInfo, start: Moment, values: &[Value]) {
        self.add(node, "", start, values);
    }

    fn add(&self, node: &NodeInfo, device: &str, start: Moment, values: &[Value]) {
        let end = Trace::now();
        let tensors = values.iter().take(node.output_types.len()).enumerate();
        let tensors: Vec<(usize, &Tensor)> = tensors
            .filter_map(|(slot, value)| match value {
                Value::Tensor(tensor) => Some((slot, tensor)),
                _ => None,
            })
            .collect();
        let bytes: i64 = tensors.iter().map(|(_, tensor)| tensor.byte_size() as i64).sum();
        let is_constant = node.op_name() == "Const";
        let stats = NodeExecStats {
            node_name: node.name.clone(),
            all_start_micros: start.0,
            op_end_rel_micros: end.0 - start.0,
            all_end_rel_micros: end.0 - start.0,
            scheduled_micros: start.0,
            all_start_nanos: start.1,
            op_end_rel_nanos: end.1 - start.1,
            all_end_rel_nanos: end.1 - start.1,
            scheduled_nanos: start.1,
            timeline_label: format!("{} = {}()", node.name, node.op_name()),
            thread_id: thread_number(),
            memory: vec![AllocatorMemoryUsed {
                allocator_name: "cpu".to_string(),
                total_bytes: bytes,
                peak_bytes: bytes,
                ..AllocatorMemoryUsed::default()
            }],
            memory_stats: Some(MemoryStats {
                persistent_memory_size: if is_constant { bytes } else { 0 },
                ..MemoryStats::default()
            }),
            output: tensors
                .iter()
                .map(|(slot, tensor)| output(*slot, tensor))
                .collect(),
            ..NodeExecStats::default()
        };
        self.0.lock().push(Entry {
            device: device.to_string(),
            stats,
        });
    }

    /// The record as a message; empty afterwards. What was recorded without a device ran on `device`.
    pub fn take_step_stats(&self, device: &str) -> StepStats {
        let mut devices: BTreeMap<String, Vec<NodeExecStats>> = BTreeMap::new();
        for entry in std::mem::take(&mut *self.0.lock()) {
            let its = if entry.device.is_empty() {
                device.to_string()
            } else {
                entry.device
            };
            devices.entry(its).or_default().push(entry.stats);
        }
        let device = |(device, node_stats)| DeviceStepStats {
            device,
            node_stats,
            ..DeviceStepStats::default()
        };
        StepStats {
            dev_stats: devices.into_iter().map(device).collect(),
        }
    }

    /// As [`Trace::take_step_stats`].
    pub fn into_step_stats(self, device: &str) -> StepStats {
        self.take_step_stats(device)
    }
}

fn output(slot: usize, tensor: &Tensor) -> NodeOutput {
    NodeOutput {
        slot: slot as i32,
        tensor_description: Some(TensorDescription {
            dtype: tensor.dtype().0,
            shape: Some(tensor.partial_shape().to_proto()),
            allocation_description: Some(AllocationDescription {
                requested_bytes: tensor.byte_size() as i64,
                allocated_bytes: tensor.byte_size() as i64,
                allocator_name: "cpu".to_string(),
                ptr: tensor.data_ptr() as u64,
                ..AllocationDescription::default()
            }),
        }),
    }
}

/// A small number that tells threads apart.
fn thread_number() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    thread_local! {
        static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}
