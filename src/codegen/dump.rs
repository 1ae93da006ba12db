//! Dumps for people: `XLA_FLAGS="--xla_dump_to=DIR"` writes each module before and after the passes, its buffers, and the
//! plan, LLVM IR and assembly of its fusions.
//!
//! Files are named `module_0001.NAME.WHAT`. Further switches, as XLA has them:
//! - `--xla_dump_hlo_as_text`: modules as text, the default where no other form is asked for;
//! - `--xla_dump_hlo_as_dot`, `--xla_dump_hlo_as_html`, `--xla_dump_hlo_as_svg`: pictures: Graphviz' language, a page, SVG;
//! - `--xla_dump_hlo_module_re=RE`: only modules whose names match a regular expression;
//! - `--xla_dump_hlo_pass_re=RE`: also the module before and after each pass that changes it and whose name matches;
//! - `--xla_dump_large_constants`: constants of more than 256 elements too, which are `{...}` else;
//! - `--xla_dump_to=-`: to standard output, texts only.
//!
//! Failures to write are ignored, as are expressions that are none: dumps never change what runs.

use ff_hlo::buffers::Assignment;
use ff_hlo::fusion::FusionPlan;
use ff_hlo::text::{PrintOptions, print_with};
use ff_hlo::{Attributes, Module, Opcode, html, svg};
use regex::Regex;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Elements of the largest constant that is written without being asked for.
const LARGEST_CONSTANT: usize = 256;

/// What to write, and where.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dump {
    folder: Option<PathBuf>,
    text: bool,
    dot: bool,
    html: bool,
    svg: bool,
    large_constants: bool,
    modules: Option<Regex>,
    passes: Option<Regex>,
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
            let on = !matches!(value, "false" | "0");
            match name {
                "--xla_dump_to" if !value.is_empty() => dump.folder = Some(value.into()),
                "--xla_dump_hlo_as_text" => dump.text = on,
                "--xla_dump_hlo_as_dot" => dump.dot = on,
                "--xla_dump_hlo_as_html" => dump.html = on,
                "--xla_dump_hlo_as_svg" => dump.svg = on,
                "--xla_dump_large_constants" => dump.large_constants = on,
                "--xla_dump_hlo_module_re" => dump.modules = Regex::new(value).ok(),
                "--xla_dump_hlo_pass_re" => dump.passes = Regex::new(value).ok(),
                _ => {}
            }
        }
        dump.text |= !(dump.dot || dump.html || dump.svg);
        dump
    }

    fn wants(&self, module: &Module) -> bool {
        let named = self
            .modules
            .as_ref()
            .is_none_or(|wanted| wanted.is_match(&module.name));
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

    /// Whether passes are to be watched.
    pub fn watches_passes(&self, module: &Module) -> bool {
        self.passes.is_some() && self.wants(module)
    }

    /// Writes a module before and after a pass, if that pass was asked for and changed it.
    pub fn pass(&self, number: Number, (turn, name): (usize, &str), before: &Module, after: &Module) {
        let wanted = self.passes.as_ref().is_some_and(|wanted| wanted.is_match(name));
        if !wanted || !self.wants(after) || self.print(before) == self.print(after) {
            return;
        }
        for (module, when) in [(before, "before"), (after, "after")] {
            self.forms(number, module, &format!("{turn:03}.{when}_{name}"));
        }
    }

    fn print(&self, module: &Module) -> String {
        let mut options = PrintOptions::default();
        if !self.large_constants {
            options.largest_constant = LARGEST_CONSTANT;
        }
        print_with(module, options)
    }

    /// Writes a module in the forms that were asked for.
    fn forms(&self, number: Number, module: &Module, when: &str) {
        if self.text {
            self.text(number, module, &format!("{when}.txt"), &self.print(module));
        }
        let pictures = [
            (self.dot, "dot", graph as fn(&Module) -> String),
            (self.html, "html", html),
            (self.svg, "svg", svg),
        ];
        for (_, ending, make) in pictures.into_iter().filter(|(on, ..)| *on) {
            self.text(number, module, &format!("{when}.{ending}"), &make(module));
        }
    }

    /// Writes a module, and where its values would lie in memory.
    pub fn module(&self, number: Number, module: &Module, when: &str) {
        if !self.wants(module) {
            return;
        }
        self.forms(number, module, when);
        if let Ok(assignment) = Assignment::of(module, module.entry_computation()) {
            let report = assignment.report(module.entry_computation());
            self.text(number, module, &format!("{when}-buffer-assignment.txt"), &report);
        }
    }

    /// Writes the structure, the LLVM IR and the assembly of each fusion.
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
            if let Ok(code) = crate::print_assembly(crate::kernel::NAME, &plan) {
                self.text(number, module, &format!("{}.s", computation.name), &code);
            }
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
        if folder.as_os_str() == "-" {
            println!("// module_{number:04}.{name}.{what}\n{text}");
            return;
        }
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
        let none = Dump::parse("");
        assert!(none.folder.is_none() && none.text && !none.dot);
        let dump = Dump::parse(
            "--xla_cpu_x=1 --xla_dump_to=/tmp/d --xla_dump_hlo_as_dot --xla_dump_hlo_module_re=^a.*z$ \
             --xla_dump_hlo_as_html=false --xla_dump_hlo_pass_re=(",
        );
        assert_eq!(dump.folder, Some("/tmp/d".into()));
        assert!(dump.dot && !dump.html && !dump.text && dump.passes.is_none());
        let modules = dump.modules.unwrap();
        assert!(modules.is_match("a_z") && !modules.is_match("b_a_z"));
    }

    #[test]
    fn large_constants_are_written_when_asked_for() {
        let text = |flags: &str| {
            let numbers = vec!["1"; 257].join(", ");
            let module = format!(
                "HloModule m\nENTRY %e () -> f32[257] {{\n  ROOT %c = f32[257] constant({{{numbers}}})\n}}"
            );
            Dump::parse(flags).print(&ff_hlo::parse(&module).unwrap())
        };
        assert!(text("").contains("constant({...})"));
        assert!(ff_hlo::parse(&text("--xla_dump_large_constants")).is_ok());
    }

    /// What a compilation with these flags writes: the parts of the names after the module's.
    fn written(flags: &str) -> Vec<String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("ff_dump_{}_{unique}", std::process::id()));
        let dump = Dump::parse(&format!("--xla_dump_to={} {flags}", folder.display()));
        let module = ff_hlo::parse(
            "HloModule m\nENTRY %e () -> f32[8] {\n  %x = f32[8] parameter(0)\n  %y = f32[8] add(%x, %x)\n  \
             %a = f32[8] add(%x, %x)\n  %s = f32[8] multiply(%a, %y)\n  ROOT %b = f32[8] tanh(%s)\n}",
        )
        .unwrap();
        crate::compiler::prepare(&module, &dump);
        let mut names = Vec::new();
        for file in std::fs::read_dir(&folder).into_iter().flatten() {
            let file = file.unwrap();
            assert!(file.metadata().unwrap().len() > 0);
            let name = file.file_name().to_string_lossy().into_owned();
            names.push(name.splitn(3, '.').nth(2).unwrap_or_default().to_string());
        }
        let _ = std::fs::remove_dir_all(&folder);
        names.sort();
        names
    }

    #[cfg(feature = "llvm")]
    #[test]
    fn files_are_written() {
        let names = written("--xla_dump_hlo_as_text --xla_dump_hlo_as_dot --xla_dump_hlo_as_svg");
        for ending in ["txt", "dot", "svg"] {
            for when in ["before", "after"] {
                assert!(
                    names.contains(&format!("{when}_optimizations.{ending}")),
                    "{names:?}"
                );
            }
        }
        for part in ["after_optimizations-buffer-assignment.txt", ".ll", ".s"] {
            assert!(names.iter().any(|name| name.ends_with(part)), "{part} {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("cse")));
    }

    #[test]
    fn passes_are_written_when_asked_for() {
        let names = written("--xla_dump_hlo_pass_re=^(cse|fusion)$");
        for part in [
            "before_cse.txt",
            "after_cse.txt",
            "before_fusion.txt",
            "after_fusion.txt",
        ] {
            assert!(names.iter().any(|name| name.ends_with(part)), "{part} {names:?}");
        }
        // The pass that removes what CSE left over was not asked for.
        assert!(!names.iter().any(|name| name.contains("dce")), "{names:?}");
        assert!(written("--xla_dump_hlo_module_re=^other$").is_empty());
    }
}
