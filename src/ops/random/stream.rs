//! The random stream of a node: it belongs to the session and advances with each run.

use ff_kernels::random::Philox;
use ff_op::KernelContext;
use ff_tensor::{Result, status};
use parking_lot::Mutex;
use std::any::Any;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// The stream's present position, after which `steps` are set aside. The seeds are the node's attributes `seed` and
/// `seed2`; when both are 0 they are drawn at random.
pub fn reserve(context: &KernelContext, steps: u64) -> Result<Philox> {
    let node = context.node();
    let (seed, seed2) = (node.attrs.int("seed")?, node.attrs.int("seed2")?);
    let mut make = || {
        let philox = match (seed, seed2) {
            (0, 0) => Philox::from_seeds(entropy(), entropy()),
            _ => Philox::from_seeds(seed as u64, seed2 as u64),
        };
        Ok(Arc::new(Mutex::new(philox)) as Arc<dyn Any + Send + Sync>)
    };
    let state = context.host().node_state(&node.name, &mut make)?;
    let stream: &Mutex<Philox> = state
        .downcast_ref()
        .ok_or_else(|| status!(Internal, "{} has state of another kind", node.describe()))?;
    let mut stream = stream.lock();
    let start = *stream;
    stream.skip(steps);
    Ok(start)
}

/// 64 bits that differ from call to call and from process to process.
pub fn entropy() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_i64(ff_platform::time::now_nanoseconds());
    hasher.finish()
}
