//! Tensors that a session keeps from step to step, under handles.
//!
//! A step offers values by node. The session keeps those whose node was fetched; the others end with the step.

use ff_tensor::{Result, Tensor, ensure, status};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a session keeps, by handle. All operations may be called from any thread.
#[derive(Default)]
pub struct SessionTensors {
    kept: Mutex<FxHashMap<String, Tensor>>,
    next: AtomicU64,
}

/// What one step offers to its session.
pub struct StepTensors {
    session: Arc<SessionTensors>,
    /// Handle and value by the name of the node that made them.
    offered: Mutex<FxHashMap<String, (String, Tensor)>>,
}

impl StepTensors {
    /// Nothing offered to this session.
    pub fn new(session: Arc<SessionTensors>) -> StepTensors {
        StepTensors {
            session,
            offered: Mutex::default(),
        }
    }

    /// Offers the value of a node of this device; gives its handle, `node;number;device`. INVALID_ARGUMENT when the node has
    /// offered one in this step.
    pub fn offer(&self, node: &str, device: &str, value: Tensor) -> Result<String> {
        let number = self.session.next.fetch_add(1, Ordering::Relaxed);
        let handle = format!("{node};{number};{device}");
        let mut offered = self.offered.lock();
        ensure!(
            !offered.contains_key(node),
            InvalidArgument,
            "Failed to add a tensor with name '{node}' to the tensor store."
        );
        offered.insert(node.to_string(), (handle.clone(), value));
        Ok(handle)
    }

    /// Whether nothing is on offer.
    pub fn is_empty(&self) -> bool {
        self.offered.lock().is_empty()
    }

    /// Has the session keep what this node offers, if it offers anything.
    pub fn keep(&self, node: &str) {
        if let Some((handle, value)) = self.offered.lock().remove(node) {
            self.session.kept.lock().insert(handle, value);
        }
    }

    /// The value with this handle that a step before has left. INVALID_ARGUMENT when there is none.
    pub fn get(&self, handle: &str) -> Result<Tensor> {
        let found = self.session.kept.lock().get(handle).cloned();
        found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "The tensor with handle '{handle}' is not in the session store."
            )
        })
    }

    /// Ends the keeping of the value with this handle. INVALID_ARGUMENT when there is none.
    pub fn delete(&self, handle: &str) -> Result<()> {
        let removed = self.session.kept.lock().remove(handle);
        ensure!(
            removed.is_some(),
            InvalidArgument,
            "Failed to delete a tensor with handle '{handle}' in the session store."
        );
        Ok(())
    }
}
