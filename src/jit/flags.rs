//! Switches of the whole process: the environment variable `TF_XLA_FLAGS`, and what the C API sets.

use ff_platform::{environment, warning};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

/// See the module. Each can change at any time; a plan is made by what they are then.
#[derive(Debug)]
pub struct Flags {
    /// Whether compilation waits until code has run some times.
    pub lazy: AtomicBool,
    /// Whether the levels of the process hold for processors too; what a session asks for always does.
    pub cpu_global_jit: AtomicBool,
    /// The levels of sessions that state none: for graphs on several devices, and on one.
    pub auto_jit: [AtomicI32; 2],
    /// Whether constants are to be left as they are.
    pub folding_disabled: AtomicBool,
    /// How many operations a cluster must have.
    pub min_cluster_size: AtomicI32,
    /// How many operations a cluster may have.
    pub max_cluster_size: AtomicI32,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags {
            lazy: AtomicBool::new(true),
            cpu_global_jit: AtomicBool::new(false),
            auto_jit: [AtomicI32::new(0), AtomicI32::new(0)],
            folding_disabled: AtomicBool::new(false),
            min_cluster_size: AtomicI32::new(4),
            max_cluster_size: AtomicI32::new(i32::MAX),
        }
    }
}

static FLAGS: LazyLock<Flags> = LazyLock::new(|| {
    let flags = Flags::default();
    for unknown in flags.set(&environment::text("TF_XLA_FLAGS").unwrap_or_default()) {
        warning!("TF_XLA_FLAGS: {unknown} is not known here");
    }
    flags
});

/// The flags of this process. The environment is read when they are first asked for.
pub fn flags() -> &'static Flags {
    &FLAGS
}

impl Flags {
    /// Sets what `text` says: `--name`, `--name=value`, separated by blanks. Gives the parts that mean nothing here.
    pub fn set<'a>(&self, text: &'a str) -> Vec<&'a str> {
        text.split_whitespace()
            .filter(|part| !self.set_one(part))
            .collect()
    }

    fn set_one(&self, part: &str) -> bool {
        let name = part.trim_start_matches('-');
        let (name, value) = name.split_once('=').unwrap_or((name, "true"));
        let switch = |flag: &AtomicBool| match value {
            "true" | "1" => flag.store(true, Relaxed),
            "false" | "0" => flag.store(false, Relaxed),
            _ => (),
        };
        let number = |flag: &AtomicI32| {
            if let Ok(value) = value.parse() {
                flag.store(value, Relaxed);
            }
        };
        match name {
            "tf_xla_auto_jit" => self.set_auto_jit(value),
            "tf_xla_cpu_global_jit" => switch(&self.cpu_global_jit),
            "tf_xla_enable_lazy_compilation" => switch(&self.lazy),
            "tf_xla_disable_constant_folding" => switch(&self.folding_disabled),
            "tf_xla_min_cluster_size" => number(&self.min_cluster_size),
            "tf_xla_max_cluster_size" => number(&self.max_cluster_size),
            _ => return false,
        }
        true
    }

    /// Sets the level for sessions that state none: a number, `single-gpu(number)` or `fusible`. Other texts are ignored.
    pub fn set_auto_jit(&self, mode: &str) {
        let single = mode
            .strip_prefix("single-gpu(")
            .and_then(|rest| rest.strip_suffix(')'));
        let level = match mode {
            "fusible" => Ok(1),
            _ => single.unwrap_or(mode).parse::<i32>(),
        };
        let Ok(level) = level else { return };
        self.auto_jit[1].store(level, Relaxed);
        if single.is_none() {
            self.auto_jit[0].store(level, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_set_flags() {
        let flags = Flags::default();
        let unknown =
            flags.set("--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit  --tf_xla_min_cluster_size=7 --other=1");
        assert_eq!(unknown, ["--other=1"]);
        assert_eq!(flags.auto_jit[0].load(Relaxed), 2);
        assert!(flags.cpu_global_jit.load(Relaxed));
        assert_eq!(flags.min_cluster_size.load(Relaxed), 7);
        flags.set("--tf_xla_auto_jit=single-gpu(1) --tf_xla_enable_lazy_compilation=false");
        assert_eq!(flags.auto_jit[0].load(Relaxed), 2);
        assert_eq!(flags.auto_jit[1].load(Relaxed), 1);
        assert!(!flags.lazy.load(Relaxed));
        flags.set_auto_jit("many");
        assert_eq!(flags.auto_jit[1].load(Relaxed), 1);
    }
}
