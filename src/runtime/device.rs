//! Devices: their names, their resources, the threads that they share, and which kernels run on them.

use ff_kernels::ThreadPool;
use ff_op::{DEFAULT_CONTAINER, NodeInfo, ResourceManager};
use ff_tensor::{Result, ensure};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock, Weak};

/// What a process is called: its job, replica and task. By itself it is replica 0 and task 0 of the job `localhost`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The job.
    pub job: String,
    /// The replica.
    pub replica: i32,
    /// The number of the task in the job.
    pub number: i32,
}

impl Default for Task {
    fn default() -> Task {
        Task {
            job: DEFAULT_CONTAINER.to_string(),
            replica: 0,
            number: 0,
        }
    }
}

impl std::fmt::Display for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "/job:{}/replica:{}/task:{}",
            self.job, self.replica, self.number
        )
    }
}

/// A device of a session. Sessions own their devices, so they share no resources.
pub struct Device {
    /// Full name: `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub name: String,
    /// Type: `CPU`, or what a plug-in calls its devices.
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
        Device::new(&Task::default(), "CPU", number)
    }

    /// All devices of a task: so many CPU devices, and those of plug-ins.
    pub fn all(task: &Task, cpus: usize) -> Vec<Device> {
        let mut devices: Vec<Device> = (0..cpus).map(|number| Device::new(task, "CPU", number)).collect();
        for (kind, count) in PLUGGED.read().iter() {
            devices.extend((0..*count).map(|number| Device::new(task, kind, number)));
        }
        devices
    }

    fn new(task: &Task, kind: &'static str, number: usize) -> Device {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        Device {
            name: format!("{task}/device:{kind}:{number}"),
            kind,
            // Odd multipliers spread the counter over all bits; 0 is never reached in practice.
            incarnation: NEXT
                .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15),
            memory_limit: 256 << 20,
            resources: Arc::new(ResourceManager::new(&task.job)),
        }
    }
}

/// Types of devices that plug-ins brought, and how many there are of each.
static PLUGGED: RwLock<Vec<(&'static str, usize)>> = RwLock::new(Vec::new());

/// Offers devices of a plug-in to sessions that are made from now on. ALREADY_EXISTS for a type that is there.
pub fn plug_in_devices(kind: &str, count: usize) -> Result<()> {
    let mut plugged = PLUGGED.write();
    ensure!(
        plugged.iter().all(|(known, _)| *known != kind),
        AlreadyExists,
        "Devices of type {kind} are there already"
    );
    // As long as the process, like the plug-in.
    plugged.push((Box::leak(kind.to_string().into_boxed_str()), count));
    Ok(())
}

/// The type of device whose kernel a node runs: that which its device names, if there is such a kernel; `CPU`; or else any
/// that has one.
pub fn kind_for(node: &NodeInfo) -> &'static str {
    let plugged = PLUGGED.read();
    if plugged.is_empty() {
        return "CPU";
    }
    let has_kernel = |kind: &str| node.op.kernel_for(node, kind).is_some();
    let is_named = |kind: &str| node.device.contains(&format!("/device:{kind}:"));
    let mut kinds = plugged.iter().map(|(kind, _)| *kind);
    if let Some(named) = kinds.clone().find(|kind| is_named(kind) && has_kernel(kind)) {
        return named;
    }
    match has_kernel("CPU") {
        true => "CPU",
        false => kinds.find(|kind| has_kernel(kind)).unwrap_or("CPU"),
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
