//! Dumps for people: `XLA_FLAGS="--xla_dump_to=DIR"` writes each module before and after the passes, its buffers, the plan
//! and the LLVM IR of its fusions, and a picture of its instructions.
//!
//! Files are named `module_0001.NAME.WHAT`. Further switches, as XLA has them: `--xla_dump_hlo_as_text` (on by default),
//! `--xla_dump_hlo_as_dot` adds graphs in Graphviz' language, `--xla_dump_hlo_module_re=TEXT` only writes modules whose
//! names contain the text. Failures to write are ignored: dumps never change what runs.

use ff_hlo::buffers::Assignment;
use ff_hlo::fusion::FusionPlan;
use ff_hlo::{Attributes, Module, Opcode, print};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What to write, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Dump {
    folder: Option<PathBuf>,
    dot: bool,
    modules: Option<String>,
}

/// The number of a module in the names of files.
pub(crate) type Number = u64;

impl Dump {
    /// What `XLA_FLAGS` asks for, read once.
    pub fn of_environment() -> &'static Dump {
        static DUMP: OnceLock<Dump> = OnceLock::new();
        DUMP.get_or_init(|| Dump::parse(&std::env::var("XLA_FLAGS").unwrap_or_default()))
    }

    fn parse(flags: &str) -> Dump {
        let mut dump = Dump::default();
        for flag in flags.split_whitespace() {
            let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
            match name {
                "--xla_dump_to" if !value.is_empty() => dump.folder = Some(value.into()),
                "--xla_dump_hlo_as_dot" => dump.dot = value != "false",
                "--xla_dump_hlo_module_re" if value != ".*" => dump.modules = Some(value.to_string()),
                _ => {}
            }
        }
        dump
    }

    fn wants(&self, module: &Module) -> bool {
        let named = self
            .modules
            .as_ref()
            .is_none_or(|part| module.name.contains(part.as_str()));
        self.folder.is_some() && named
    }

    /// Numbers a module, and writes it before the passes.
    pub fn begin(&self, module: &Module) -> Number {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if !self.wants(module) {
            return 0;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.module(number, module, "before_optimizations");
        number
    }

    /// Writes a module as text, and as a graph if asked to.
    pub fn module(&self, number: Number, module: &Module, when: &str) {
        if !self.wants(module) {
            return;
        }
        self.text(number, module, &format!("{when}.txt"), &print(module));
        if let Ok(assignment) = Assignment::of(module, module.entry_computation()) {
            let report = assignment.report(module.entry_computation());
            self.text(number, module, &format!("{when}-buffer-assignment.txt"), &report);
        }
        if self.dot {
            self.text(number, module, &format!("{when}.dot"), &graph(module));
        }
    }

    /// Writes the structure and the LLVM IR of each fusion.
    pub fn fusions(&self, number: Number, module: &Module) {
        if !self.wants(module) {
            return;
        }
        for instruction in module
            .computations
            .iter()
            .flat_map(|computation| &computation.instructions)
        {
            let (Opcode::Fusion, Attributes::Call(called)) = (instruction.opcode, &instruction.attributes)
            else {
                continue;
            };
            let Ok(computation) = module.computation(*called) else {
                continue;
            };
            let Ok(plan) = FusionPlan::of(&module.computations, computation) else {
                continue;
            };
            let code =
                crate::print_ir(crate::kernel::NAME, &plan).unwrap_or_else(|error| format!("; {error}\n"));
            let text = format!("; extents {:?}\n; {}\n{code}", plan.extents, plan.structure());
            self.text(number, module, &format!("{}.ll", computation.name), &text);
        }
    }

    /// Writes a file about a module.
    pub fn text(&self, number: Number, module: &Module, what: &str, text: &str) {
        let Some(folder) = self.folder.as_ref().filter(|_| self.wants(module)) else {
            return;
        };
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '.' || c == '-' {
                c
            } else {
                '_'
            }
        };
        let name: String = module.name.chars().take(80).map(plain).collect();
        let what: String = what.chars().map(plain).collect();
        let _ = std::fs::create_dir_all(folder);
        let _ = std::fs::write(folder.join(format!("module_{number:04}.{name}.{what}")), text);
    }
}

/// The instructions of the entry in Graphviz' language.
fn graph(module: &Module) -> String {
    let mut out = format!("digraph {:?} {{\n  node [shape=box];\n", module.name);
    let computation = module.entry_computation();
    for (index, instruction) in computation.instructions.iter().enumerate() {
        let label = format!("{}\n{}", instruction.base_name(), instruction.shape);
        // Writing to a string does not fail.
        let _ = writeln!(out, "  n{index} [label={label:?}];");
        for operand in &instruction.operands {
            let _ = writeln!(out, "  n{} -> n{index};", operand.0);
        }
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read() {
        assert_eq!(Dump::parse(""), Dump::default());
        let dump = Dump::parse(
            "--xla_cpu_x=1 --xla_dump_to=/tmp/d --xla_dump_hlo_as_dot --xla_dump_hlo_module_re=a",
        );
        assert_eq!(
            (dump.folder, dump.dot, dump.modules),
            (Some("/tmp/d".into()), true, Some("a".into()))
        );
    }

    #[test]
    fn files_are_written() {
        let folder = std::env::temp_dir().join(format!("ff_dump_{}", std::process::id()));
        let dump = Dump::parse(&format!(
            "--xla_dump_to={} --xla_dump_hlo_as_dot",
            folder.display()
        ));
        let mut module = ff_hlo::parse(
            "HloModule m\nENTRY %e () -> f32[8] {\n  %x = f32[8] parameter(0)\n  %a = f32[8] add(%x, %x)\n  \
             ROOT %b = f32[8] tanh(%a)\n}",
        )
        .unwrap();
        let number = dump.begin(&module);
        ff_hlo::passes::pipeline::prepare(&mut module).unwrap();
        dump.module(number, &module, "after_optimizations");
        dump.fusions(number, &module);
        let files = std::fs::read_dir(&folder).unwrap().count();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(files, 7);
    }
}
