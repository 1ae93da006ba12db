//! What a session is configured with, taken out of a ConfigProto.

use ff_graph::passes::Level;
use ff_proto::ConfigProto;
use ff_proto::optimizer_options;
use std::time::Duration;

/// Options of a session.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Where to run; empty for this process.
    pub target: String,
    /// The configuration as given.
    pub config: ConfigProto,
}

impl SessionOptions {
    /// Threads for work within an op; 0 means one for each core.
    pub fn intra_op_threads(&self) -> usize {
        usize::try_from(self.config.intra_op_parallelism_threads).unwrap_or(1)
    }

    /// Number of CPU devices, at least one.
    pub fn cpu_devices(&self) -> usize {
        let count = self.config.device_count.get("CPU").copied().unwrap_or(1);
        usize::try_from(count).unwrap_or(1).clamp(1, 1024)
    }

    /// Which passes run before a graph is planned.
    pub fn passes(&self) -> Level {
        let options = self
            .config
            .graph_options
            .as_ref()
            .and_then(|options| options.optimizer_options.as_ref());
        match options.map(|options| options.opt_level) {
            Some(level) if level == optimizer_options::Level::L0 as i32 => Level::Prune,
            _ => Level::Full,
        }
    }

    /// How long a step may take when the run itself does not say.
    pub fn operation_timeout(&self) -> Option<Duration> {
        milliseconds(self.config.operation_timeout_in_ms)
    }
}

/// A duration; none unless positive.
pub fn milliseconds(count: i64) -> Option<Duration> {
    u64::try_from(count)
        .ok()
        .filter(|&count| count > 0)
        .map(Duration::from_millis)
}
