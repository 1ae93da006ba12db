//! Prints modules.

use super::attributes::print_attributes;
use super::literal::print_literal;
use crate::attributes::Attributes;
use crate::module::{Computation, ComputationId, Instruction, Module};
use crate::opcode::Opcode;
use std::fmt::Write;

/// What is printed.
#[derive(Clone, Copy, Debug)]
pub struct PrintOptions {
    /// Constants with more elements are printed as `{...}`, which cannot be parsed.
    pub largest_constant: usize,
    /// Whether the graph nodes that instructions come from are printed.
    pub metadata: bool,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions {
            largest_constant: usize::MAX,
            metadata: true,
        }
    }
}

/// The whole text of a module.
pub fn print(module: &Module) -> String {
    print_with(module, PrintOptions::default())
}

/// The text of a module.
pub fn print_with(module: &Module, options: PrintOptions) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "HloModule {}", quoted_if_needed(&module.name));
    for index in 0..module.computations.len() {
        out.push('\n');
        let printer = Printer { module, options };
        printer.computation(&mut out, ComputationId(index as u32));
    }
    out
}

struct Printer<'a> {
    module: &'a Module,
    options: PrintOptions,
}

/// The name of a computation: its own, with its number where others have the same.
pub(super) fn computation_name(module: &Module, id: ComputationId) -> String {
    let Some(computation) = module.computations.get(id.0 as usize) else {
        return format!("%missing.{}", id.0);
    };
    let name = identifier(&computation.name);
    let same = module
        .computations
        .iter()
        .filter(|other| identifier(&other.name) == name)
        .count();
    if same == 1 {
        format!("%{name}")
    } else {
        format!("%{name}.{}", id.0)
    }
}

/// A name as letters, digits and `_.-` only.
pub(super) fn identifier(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let text: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    if text.is_empty() { String::from("_") } else { text }
}

/// The name of an instruction: `%add.3`.
fn instruction_name(computation: &Computation, index: usize) -> String {
    match computation.instructions.get(index) {
        Some(instruction) => format!("%{}.{index}", identifier(instruction.base_name())),
        None => format!("%missing.{index}"),
    }
}

/// A string in quotes with escapes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn quoted_if_needed(name: &str) -> String {
    if identifier(name) == name {
        name.to_owned()
    } else {
        quoted(name)
    }
}

impl Printer<'_> {
    fn computation(&self, out: &mut String, id: ComputationId) {
        let computation = &self.module.computations[id.0 as usize];
        let entry = if id == self.module.entry { "ENTRY " } else { "" };
        let parameters: Vec<String> = computation
            .parameters
            .iter()
            .map(|&parameter| {
                let instruction = computation.instruction(parameter);
                format!("{}: {}", identifier(instruction.base_name()), instruction.shape)
            })
            .collect();
        let _ = writeln!(
            out,
            "{entry}{} ({}) -> {} {{",
            computation_name(self.module, id),
            parameters.join(", "),
            computation.root_instruction().shape
        );
        for (index, instruction) in computation.instructions.iter().enumerate() {
            out.push_str("  ");
            if computation.root.0 as usize == index {
                out.push_str("ROOT ");
            }
            self.instruction(out, computation, index, instruction);
            out.push('\n');
        }
        out.push_str("}\n");
    }

    fn instruction(
        &self,
        out: &mut String,
        computation: &Computation,
        index: usize,
        instruction: &Instruction,
    ) {
        let name = instruction_name(computation, index);
        let _ = write!(out, "{name} = {} {}(", instruction.shape, instruction.opcode);
        match &instruction.attributes {
            Attributes::Parameter(number) => {
                let _ = write!(out, "{number}");
            }
            Attributes::Constant(value) if value.num_elements() > self.options.largest_constant => {
                out.push_str("{...}");
            }
            Attributes::Constant(value) => print_literal(out, value),
            _ => {
                let operands = instruction.operands.iter();
                let names: Vec<String> = operands
                    .map(|operand| instruction_name(computation, operand.0 as usize))
                    .collect();
                out.push_str(&names.join(", "));
            }
        }
        out.push(')');
        if !matches!(instruction.opcode, Opcode::Parameter | Opcode::Constant) {
            print_attributes(out, self.module, instruction);
        }
        if let (Some(node), true) = (&instruction.node, self.options.metadata) {
            let _ = write!(out, ", metadata={{op_name={}}}", quoted(node));
        }
    }
}
