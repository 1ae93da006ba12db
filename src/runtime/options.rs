//! What a session is configured with, taken out of a ConfigProto.

use ff_graph::passes::Level;
use ff_jit::Policy;
use ff_proto::ConfigProto;
use ff_proto::optimizer_options;
use ff_proto::rewriter_config::Toggle;
use std::time::Duration;

/// The nodes that a graph must have, where the configuration does not say.
const LEAST_NODES: usize = 4;

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

    /// Threads for ops that do not wait for each other, the caller's included; 0 means one for each core. None when the
    /// caller's thread runs all of them.
    pub fn inter_op_threads(&self) -> Option<usize> {
        usize::try_from(self.config.inter_op_parallelism_threads).ok()
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

    /// Which parts of a graph are compiled.
    pub fn clusters(&self) -> Policy {
        let policy = Policy::of_session(&self.config);
        match self.passes() {
            Level::Prune => policy.only_requests(),
            Level::Full => policy,
        }
    }

    /// The nodes that a graph must have for passes of plug-ins to run; none where they do not run at all.
    pub fn plugin_passes(&self) -> Option<usize> {
        let options = self.config.graph_options.as_ref();
        let Some(rewrite) = options.and_then(|options| options.rewrite_options.as_ref()) else {
            return Some(LEAST_NODES);
        };
        if rewrite.disable_meta_optimizer || rewrite.use_plugin_optimizers == Toggle::Off as i32 {
            return None;
        }
        match rewrite.min_graph_nodes {
            0 => Some(LEAST_NODES),
            count => Some(usize::try_from(count).unwrap_or(0)),
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
