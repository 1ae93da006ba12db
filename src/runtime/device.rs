//! A CPU device: its name, its resources, and the threads it shares.

use ff_kernels::ThreadPool;
use ff_op::ResourceManager;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock, Weak};

/// A device of a session. Sessions own their devices, so they share no resources.
pub struct Device {
    /// Full name: `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub name: String,
    /// Type: `CPU`.
    pub kind: &'static str,
    /// Number that tells incarnations of a device apart; never 0.
    pub incarnation: u64,
    /// Bytes of memory that the device admits to.
    pub memory_limit: i64,
    /// Resources by container and name.
    pub resources: Arc<ResourceManager>,
}

impl Device {
    /// The CPU device with this number.
    pub fn cpu(number: usize) -> Device {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        Device {
            name: format!("/job:localhost/replica:0/task:0/device:CPU:{number}"),
            kind: "CPU",
            // Odd multipliers spread the counter over all bits; 0 is never reached in practice.
            incarnation: NEXT
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15),
            memory_limit: 256 << 20,
            resources: Arc::default(),
        }
    }
}

/// The process-wide pool with this many threads (0: one for each core); sessions with the same number share it.
pub fn shared_pool(threads: usize) -> Arc<ThreadPool> {
    static POOLS: OnceLock<Mutex<FxHashMap<usize, Weak<ThreadPool>>>> = OnceLock::new();
    let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = if threads == 0 { cores() } else { threads };
    let mut pools = POOLS.get_or_init(Mutex::default).lock();
    if let Some(pool) = pools.get(&threads).and_then(Weak::upgrade) {
        return pool;
    }
    let pool = Arc::new(ThreadPool::new(threads));
    pools.insert(threads, Arc::downgrade(&pool));
    pool
}
