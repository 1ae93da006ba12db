//! Functions outside of modules, which `custom-call` names: whoever makes modules says once how they are found.
//!
//! Contract: a function gives as many outputs as the call declares, of the declared types and shapes; the step checks them.

use ff_kernels::ThreadPool;
use ff_tensor::{Result, Tensor, status};
use std::sync::{Arc, OnceLock};

/// A function made ready for one call.
pub trait HostFunction: Send + Sync {
    /// The outputs for these inputs.
    fn call(&self, pool: &ThreadPool, inputs: Vec<Tensor>) -> Result<Vec<Tensor>>;
}

/// From a call's target and configuration to the function. NOT_FOUND for an unknown target.
pub type FindHostFunction = fn(target: &str, config: &str) -> Result<Arc<dyn HostFunction>>;

static FIND: OnceLock<FindHostFunction> = OnceLock::new();

/// Says how functions are found, for the whole process. Only the first call counts.
pub fn set_host_functions(find: FindHostFunction) {
    let _ = FIND.set(find);
}

/// The function of a call. UNIMPLEMENTED when nobody said how functions are found.
pub(super) fn find(target: &str, config: &str) -> Result<Arc<dyn HostFunction>> {
    let find = FIND.get().ok_or_else(|| {
        status!(
            Unimplemented,
            "Custom call {target} is not known to the evaluator"
        )
    })?;
    find(target, config)
}
