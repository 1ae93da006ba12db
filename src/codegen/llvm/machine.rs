//! Targets: this machine's processor and NVPTX; code emission for them.
//!
//! What it does not do: no pass of LLVM runs over the IR. Its pass library alone is 14 MB (measured on the package), and
//! what it would find, our passes and emitters know before: kernels are emitted with explicit vectors, each value once,
//! and what a loop does not change before the loop. The code generator still schedules, hoists and selects.

use super::{internal, start};
use crate::target::ObjectTarget;
use ff_tensor::{Result, ensure, status};
use inkwell::OptimizationLevel;
use inkwell::module::Module;
use inkwell::targets::{CodeModel, FileType, RelocMode, Target, TargetMachine, TargetTriple};

/// The NVIDIA processors that LLVM 22 has code for. It would only warn about others and pick one itself.
pub const NVIDIA_PROCESSORS: &[&str] = &[
    "sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62", "sm_70", "sm_72", "sm_75", "sm_80", "sm_86",
    "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_101", "sm_101a", "sm_103", "sm_103a",
    "sm_120", "sm_120a", "sm_121", "sm_121a",
];

/// A code generator for one processor.
pub struct Machine {
    machine: TargetMachine,
    file: FileType,
    lanes: u32,
}

impl Machine {
    /// The processor that runs this code. Objects are ELF on every operating system, for our own loader.
    pub fn host() -> Result<Machine> {
        start::once();
        let triple = TargetTriple::create(&format!("{}-unknown-none-elf", std::env::consts::ARCH));
        let cpu = TargetMachine::get_host_cpu_name();
        let features = TargetMachine::get_host_cpu_features();
        let (cpu, features) = (cpu.to_string_lossy(), features.to_string_lossy());
        let bits = match () {
            () if features.contains("+avx512f") => 512,
            () if features.contains("+avx2") => 256,
            () => 128,
        };
        Ok(Machine {
            machine: target_machine(&triple, &cpu, &features)?,
            file: FileType::Object,
            lanes: bits / 32,
        })
    }

    /// The processor of a target, for objects in the target's own format.
    ///
    /// UNIMPLEMENTED where this build has no code generator for it.
    pub fn of_target(target: &ObjectTarget) -> Result<Machine> {
        start::once();
        let (cpu, features) = if target.processor == "native" {
            let cpu = TargetMachine::get_host_cpu_name();
            let features = TargetMachine::get_host_cpu_features();
            (
                cpu.to_string_lossy().into_owned(),
                features.to_string_lossy().into_owned(),
            )
        } else {
            (target.processor.clone(), String::new())
        };
        let triple = TargetTriple::create(&target.triple);
        ensure!(
            Target::from_triple(&triple).is_ok(),
            Unimplemented,
            "this build has no code generator for target {}; the `ferroflow` command has",
            target.triple
        );
        Ok(Machine {
            machine: target_machine(&triple, &cpu, &features)?,
            file: FileType::Object,
            lanes: target.vector_bits() / 32,
        })
    }

    /// An NVIDIA processor, named as `sm_70`. INVALID_ARGUMENT when there is no code generator for it.
    pub fn nvptx(processor: &str) -> Result<Machine> {
        ensure!(
            NVIDIA_PROCESSORS.contains(&processor),
            InvalidArgument,
            "no code generator for the processor {processor:?}"
        );
        start::once();
        let triple = TargetTriple::create("nvptx64-nvidia-cuda");
        Ok(Machine {
            machine: target_machine(&triple, processor, "")?,
            file: FileType::Assembly,
            lanes: 1,
        })
    }

    /// The same, for people to read.
    pub fn into_assembly(self) -> Machine {
        Machine {
            file: FileType::Assembly,
            ..self
        }
    }

    /// The number of lanes of the vectors that kernels use: two registers of elements of four bytes, to keep both
    /// pipes busy, and of wider elements at most two registers more.
    pub fn vector_lanes(&self, widest: u32) -> u32 {
        if widest > 4 { self.lanes } else { self.lanes * 2 }
    }

    /// The processor and its features, for telling objects apart.
    pub fn describe() -> String {
        start::once();
        let cpu = TargetMachine::get_host_cpu_name();
        let features = TargetMachine::get_host_cpu_features();
        format!("{} {}", cpu.to_string_lossy(), features.to_string_lossy())
    }

    /// Emits the module: an object for the host, text for NVPTX.
    pub fn compile(&self, module: &Module) -> Result<Vec<u8>> {
        module.set_triple(&self.machine.get_triple());
        module.set_data_layout(&self.machine.get_target_data().get_data_layout());
        module.verify().map_err(internal)?;
        let buffer = self
            .machine
            .write_to_memory_buffer(module, self.file)
            .map_err(internal)?;
        Ok(buffer.as_slice().to_vec())
    }
}

fn target_machine(triple: &TargetTriple, cpu: &str, features: &str) -> Result<TargetMachine> {
    let target = Target::from_triple(triple).map_err(internal)?;
    target
        .create_target_machine(
            triple,
            cpu,
            features,
            OptimizationLevel::Default,
            RelocMode::PIC,
            CodeModel::Small,
        )
        .ok_or_else(|| status!(Internal, "LLVM has no code generator for {cpu}"))
}
