//! `check`: an error when a predicate is false anywhere.

use crate::attributes::CheckConfig;
use crate::evaluator::code::{Kernel, StepContext};
use crate::module::{Computation, Instruction};
use crate::shape::{ArrayShape, Dims};
use crate::text::format_element;
use ff_tensor::{Result, Status};

struct Check {
    config: CheckConfig,
    shapes: Vec<ArrayShape>,
}

/// The kernel of a check.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    config: &CheckConfig,
) -> Result<Box<dyn Kernel>> {
    let mut shapes = Vec::new();
    for &operand in &instruction.operands {
        shapes.push(computation.instruction(operand).array_shape()?.clone());
    }
    Ok(Box::new(Check {
        config: config.clone(),
        shapes,
    }))
}

impl Kernel for Check {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let predicate = step.input(0)?.bytes();
        match predicate.iter().position(|&value| value == 0) {
            None => Ok(()),
            Some(at) => Err(self.error(step, at)),
        }
    }
}

impl Check {
    #[cold]
    fn error(&self, step: &StepContext, at: usize) -> Status {
        let mut message = self.config.message.to_string();
        if message.contains("{index}") {
            message = message.replace("{index}", &index_text(&self.shapes[0].dims, at));
        }
        for (number, shape) in self.shapes[1..].iter().enumerate() {
            let all = format!("{{{number}*}}");
            if message.contains(&all) {
                message = message.replace(&all, &self.all_text(step, number + 1));
            }
            let pattern = format!("{{{number}}}");
            if !message.contains(&pattern) {
                continue;
            }
            let at = if shape.is_scalar() { 0 } else { at };
            let text = step.input(number + 1).map_or_else(
                |_| String::from("?"),
                |value| format_element(shape.dtype, value.bytes(), at),
            );
            message = message.replace(&pattern, &text);
        }
        Status::new(self.config.code, message)
    }
}

impl Check {
    /// All elements of an input, with spaces between them.
    fn all_text(&self, step: &StepContext, input: usize) -> String {
        let shape = &self.shapes[input];
        let count = shape.dims.iter().product::<i64>() as usize;
        let Ok(value) = step.input(input) else {
            return String::from("?");
        };
        let text = |at| format_element(shape.dtype, value.bytes(), at);
        (0..count).map(text).collect::<Vec<_>>().join(" ")
    }
}

/// The place of an element, `[1,0]`; nothing for a scalar.
fn index_text(dims: &Dims, at: usize) -> String {
    if dims.is_empty() {
        return String::new();
    }
    let mut rest = at as i64;
    let mut index: Vec<String> = Vec::with_capacity(dims.len());
    for &extent in dims.iter().rev() {
        index.push((rest % extent).to_string());
        rest /= extent;
    }
    index.reverse();
    format!("[{}]", index.join(","))
}
