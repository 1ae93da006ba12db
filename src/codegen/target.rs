//! What objects are made for: an operating system and processor, and what the processor must have.

use ff_kernels::cpu::Level;
use ff_tensor::{Result, bail, ensure};

/// Processors of 64-bit ARM that can be named.
const ARM_PROCESSORS: &[&str] = &[
    "generic",
    "cortex-a53",
    "cortex-a55",
    "cortex-a72",
    "cortex-a76",
    "cortex-a78",
    "neoverse-n1",
    "neoverse-n2",
    "neoverse-v1",
    "neoverse-v2",
    "apple-m1",
    "apple-m2",
];

/// A target of object files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectTarget {
    /// LLVM's triple, as `x86_64-unknown-linux-gnu`.
    pub triple: String,
    /// The processor: `x86-64-v3`, `native`, `generic`, `cortex-a72`.
    pub processor: String,
    /// What a processor must have that runs the code: a [`Level`] on x86, 0 elsewhere.
    pub level: u64,
}

impl ObjectTarget {
    /// The target of these names; this machine's system where none is given, and a processor of the last ten years.
    ///
    /// INVALID_ARGUMENT for a processor family, system or processor that there is no code for.
    pub fn new(triple: Option<&str>, processor: Option<&str>) -> Result<ObjectTarget> {
        let own = own_triple();
        let triple = triple.filter(|triple| !triple.is_empty()).unwrap_or(&own);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        ensure!(
            triple.len() < 100 && triple.chars().all(plain) && triple.contains('-'),
            InvalidArgument,
            "{triple:?} is no target triple"
        );
        let family = triple.split('-').next().unwrap_or_default();
        let (default, level) = match family {
            "x86_64" => ("x86-64-v3", None),
            "aarch64" | "arm64" => ("generic", Some(0)),
            _ => bail!(
                InvalidArgument,
                "There is no code for {family:?} (target {triple}): x86_64 and aarch64 are known"
            ),
        };
        let processor = processor.filter(|name| !name.is_empty()).unwrap_or(default);
        let native = processor == "native";
        ensure!(
            !native || family == std::env::consts::ARCH,
            InvalidArgument,
            "This machine is no {family}: name the processor of target {triple}"
        );
        let level = match (level, processor) {
            (Some(level), _) if native || ARM_PROCESSORS.contains(&processor) => level,
            (None, "native") => ff_kernels::cpu::level() as u64,
            (None, "x86-64") => Level::Baseline as u64,
            (None, "x86-64-v3") => Level::Avx2 as u64,
            (None, "x86-64-v4") => Level::Avx512 as u64,
            _ => bail!(
                InvalidArgument,
                "Processor {processor:?} is not known for {family}: use {}",
                if family == "x86_64" {
                    "x86-64, x86-64-v3, x86-64-v4 or native".to_string()
                } else {
                    format!("{} or native", ARM_PROCESSORS.join(", "))
                }
            ),
        };
        Ok(ObjectTarget {
            triple: triple.to_string(),
            processor: processor.to_string(),
            level,
        })
    }

    /// Whether fusions have code for this target; where they have none, the evaluator runs them.
    pub fn has_code(&self) -> bool {
        self.level != Level::Baseline as u64
    }

    /// Bits of the widest vector registers.
    pub fn vector_bits(&self) -> u32 {
        match self.level {
            level if level >= Level::Avx512 as u64 => 512,
            level if level >= Level::Avx2 as u64 => 256,
            _ => 128,
        }
    }
}

fn own_triple() -> String {
    let system = match std::env::consts::OS {
        "macos" => "apple-darwin",
        "windows" => "pc-windows-msvc",
        _ => "unknown-linux-gnu",
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        let arm = ObjectTarget::new(Some("aarch64-unknown-linux-gnu"), None).unwrap();
        assert_eq!(
            (arm.level, arm.vector_bits(), arm.processor.as_str()),
            (0, 128, "generic")
        );
        let x86 = ObjectTarget::new(Some("x86_64-unknown-linux-gnu"), Some("x86-64-v4")).unwrap();
        assert_eq!((x86.vector_bits(), x86.has_code()), (512, true));
        let old = ObjectTarget::new(Some("x86_64-unknown-linux-gnu"), Some("x86-64")).unwrap();
        assert!(!old.has_code());
        for (triple, processor) in [
            ("riscv64-unknown-linux-gnu", ""),
            ("x86_64", ""),
            ("x86_64-a b", ""),
            ("x86_64-unknown-linux-gnu", "cortex-a72"),
            ("aarch64-unknown-linux-gnu", "x86-64-v3"),
        ] {
            let made = ObjectTarget::new(Some(triple), Some(processor));
            assert!(made.is_err(), "{triple} {processor}");
        }
        assert!(ObjectTarget::new(None, None).is_ok());
    }
}
