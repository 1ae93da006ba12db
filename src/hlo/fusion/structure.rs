//! The structure of a plan: what code depends on, without extents, strides and constants.

use super::node::{NodeKind, Read};
use super::plan::FusionPlan;
use std::fmt::Write;

impl FusionPlan {
    /// A text that is equal for plans that one kernel serves.
    pub fn structure(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        write!(
            out,
            "rank {} row {};",
            self.extents.len(),
            u8::from(self.row() > 1)
        )?;
        for input in &self.inputs {
            let inner = inner_class(input.strides.last().copied().unwrap_or(0));
            write!(out, "input {:?} {:?} {inner};", input.dtype, input.level)?;
        }
        for counter in &self.counters {
            let inner = inner_class(counter.strides.last().copied().unwrap_or(0));
            write!(out, "counter {:?} {:?} {inner};", counter.dtype, counter.level)?;
        }
        for node in &self.nodes {
            match &node.kind {
                NodeKind::Map(opcode, attributes) => write!(out, "{opcode} {attributes:?}")?,
                NodeKind::Reduce(opcode) => write!(out, "reduce {opcode}")?,
                NodeKind::Columns(opcode) => write!(out, "columns {opcode}")?,
                NodeKind::Load(input) => write!(out, "load {input}")?,
                NodeKind::Read(read) => write_read(out, &self.reads[*read])?,
                NodeKind::Random(algorithm, counter) => write!(out, "random {algorithm:?} {counter}")?,
                NodeKind::Counter(counter) => write!(out, "count {counter}")?,
                NodeKind::Constant(constant) => write!(out, "constant {constant}")?,
            }
            write!(
                out,
                " {:?} {:?} {:?} {:?};",
                node.operands, node.operand_dtype, node.dtype, node.level
            )?;
        }
        for output in &self.outputs {
            write!(
                out,
                "output {} {:?} {:?};",
                output.node, output.dtype, output.level
            )?;
        }
        Ok(())
    }
}

fn write_read(out: &mut String, read: &Read) -> std::fmt::Result {
    write!(
        out,
        "read {} {} {}",
        read.input,
        read.starts.len(),
        read.otherwise
    )?;
    for check in &read.checks {
        let spread = check.spread.is_some();
        write!(out, " check {} {:?} {spread}", check.counter, check.start)?;
    }
    Ok(())
}

/// Strides along rows that have code of their own: 0, 1, and any other.
fn inner_class(stride: isize) -> u8 {
    match stride {
        0 => 0,
        1 => 1,
        _ => 2,
    }
}
