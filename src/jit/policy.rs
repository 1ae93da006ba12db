//! What is clustered, and when it is compiled.

use crate::flags::{Flags, flags};
use ff_platform::environment;
use ff_proto::ConfigProto;
use std::sync::atomic::Ordering::Relaxed;

/// How much is clustered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Off,
    /// What nodes ask for themselves (`ff_op::CompileRequest`).
    Asked,
    /// What was seen to be large and gains by running in one pass over memory; all of it behind the scenes.
    Auto,
    /// Whatever has a lowering.
    On,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// How much is clustered.
    pub mode: Mode,
    /// How many operations that compute a cluster must have.
    pub least_members: usize,
    /// How many nodes a cluster may have.
    pub most_members: usize,
    /// Runs with one set of shapes before these are compiled; 0 to compile at once, before the first run.
    pub runs_before: u32,
    /// Elements of a cluster's largest input from which it is compiled.
    pub least_elements: usize,
    /// Whether nodes that ask for it are clustered, compiled at once, whatever the mode.
    pub heeds_requests: bool,
}

impl Policy {
    /// Nothing is clustered.
    pub const OFF: Policy = Policy {
        mode: Mode::Off,
        least_members: usize::MAX,
        most_members: 0,
        runs_before: u32::MAX,
        least_elements: usize::MAX,
        heeds_requests: false,
    };

    /// Nothing but what asks for it.
    const UNLESS_ASKED: Policy = Policy {
        heeds_requests: true,
        ..Policy::OFF
    };

    /// What pays without being asked for.
    pub const AUTO: Policy = Policy {
        mode: Mode::Auto,
        least_members: 2,
        most_members: 256,
        runs_before: 1,
        least_elements: 4096,
        heeds_requests: true,
    };

    /// Everything that can be, compiled at once.
    pub const ON: Policy = Policy {
        mode: Mode::On,
        least_members: 1,
        most_members: 10_000,
        runs_before: 0,
        least_elements: 0,
        heeds_requests: true,
    };

    /// What asks for it, compiled at once.
    const ASKED: Policy = Policy {
        mode: Mode::Asked,
        ..Policy::ON
    };

    /// The same without what nobody asks for.
    pub fn only_requests(&self) -> Policy {
        Policy {
            heeds_requests: self.heeds_requests,
            ..Policy::OFF
        }
    }

    /// What is clustered before the first run: all that can be, or what asks for it; none where nothing is.
    pub fn at_once(&self) -> Option<Policy> {
        match self.mode {
            Mode::On => Some(*self),
            _ => self.heeds_requests.then_some(Policy::ASKED),
        }
    }

    /// The policy of a session. The environment variable `FF_JIT` (`off`, `auto`, `on`) decides; else the configuration's
    /// `global_jit_level` and `TF_XLA_FLAGS`, as in TensorFlow. Without any of them, [`Policy::unasked`]. Only `FF_JIT=off`
    /// keeps nodes that ask for it from being clustered.
    pub fn of_session(config: &ConfigProto) -> Policy {
        match environment::text("FF_JIT").as_deref() {
            Some("off" | "0" | "false") => Policy::OFF,
            Some("on" | "1" | "true") => Policy::ON,
            Some("auto") => Policy::AUTO,
            _ => Policy::by_level(config, flags()),
        }
    }

    /// What pays, in a library that can make code; evaluated programs were measured to take as long as the kernels of
    /// their ops.
    fn unasked() -> Policy {
        if ff_codegen::HAS_LLVM {
            Policy::AUTO
        } else {
            Policy::UNLESS_ASKED
        }
    }

    fn by_level(config: &ConfigProto, flags: &Flags) -> Policy {
        let options = config.graph_options.as_ref();
        let options = options.and_then(|options| options.optimizer_options.as_ref());
        let stated = options.map_or(0, |options| options.global_jit_level);
        // The process's level goes first, as in TensorFlow. It holds for processors only if a flag says so; what a session
        // asks for itself does so at once.
        let level = match flags.auto_jit[1].load(Relaxed) {
            0 => stated,
            level if level > 0 && !flags.cpu_global_jit.load(Relaxed) => 0,
            level => level,
        };
        if level < 0 {
            return Policy::UNLESS_ASKED;
        }
        if level == 0 {
            return Policy::unasked();
        }
        let size = |flag: i32| usize::try_from(flag).unwrap_or(0);
        Policy {
            mode: Mode::On,
            least_members: size(flags.min_cluster_size.load(Relaxed)).max(1),
            most_members: size(flags.max_cluster_size.load(Relaxed)),
            runs_before: if flags.lazy.load(Relaxed) { 2 } else { 0 },
            ..Policy::ON
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_proto::optimizer_options::GlobalJitLevel;

    fn config(level: GlobalJitLevel) -> ConfigProto {
        let mut config = ConfigProto::default();
        let options = config.graph_options.get_or_insert_default();
        let options = options.optimizer_options.get_or_insert_default();
        options.global_jit_level = level as i32;
        config
    }

    #[test]
    fn levels_of_the_process_hold_for_processors_only_if_a_flag_says_so() {
        let flags = Flags::default();
        let unasked = Policy::unasked().mode;
        let default = Policy::by_level(&ConfigProto::default(), &flags);
        assert_eq!(default.mode, unasked);
        assert_eq!(
            Policy::by_level(&config(GlobalJitLevel::Off), &flags).mode,
            Mode::Off
        );
        assert_eq!(
            Policy::by_level(&config(GlobalJitLevel::On1), &flags).mode,
            Mode::On
        );
        flags.set("--tf_xla_auto_jit=2");
        assert_eq!(Policy::by_level(&ConfigProto::default(), &flags).mode, unasked);
        flags.set("--tf_xla_cpu_global_jit --tf_xla_min_cluster_size=3");
        let policy = Policy::by_level(&config(GlobalJitLevel::On1), &flags);
        assert_eq!((policy.mode, policy.least_members), (Mode::On, 3));
        flags.set("--tf_xla_auto_jit=-1");
        assert_eq!(
            Policy::by_level(&config(GlobalJitLevel::On1), &flags).mode,
            Mode::Off
        );
    }
}
