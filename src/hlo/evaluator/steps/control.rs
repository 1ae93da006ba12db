//! Loops and branches.

use crate::evaluator::code::{Code, Kernel, StepContext, with_type};
use crate::evaluator::compile::Compiler;
use crate::module::{Computation, ComputationId, Instruction};
use ff_tensor::{DataType, Result, Tensor, ensure};
use std::sync::Arc;

struct WhileLoop {
    condition: Arc<Code>,
    body: Arc<Code>,
}

/// The kernel of a loop.
pub(super) fn while_loop(
    compiler: &mut Compiler,
    condition: ComputationId,
    body: ComputationId,
) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(WhileLoop {
        condition: compiler.compile(condition)?,
        body: compiler.compile(body)?,
    }))
}

/// The operands from `first` on as arguments of `code`, owned where nobody needs them any more.
///
/// Reshapes are free, so a value may lie in its slot with other extents than the parameter's.
fn arguments(step: &mut StepContext, first: usize, code: &Code) -> Result<Vec<Tensor>> {
    let mut values = Vec::with_capacity(code.parameters.len());
    for (index, (dtype, shape)) in code.parameters.iter().enumerate() {
        values.push(with_type(step.give_input(first + index)?, *dtype, shape)?);
    }
    Ok(values)
}

/// Gives the outputs their values.
fn set_outputs(step: &mut StepContext, values: Vec<Tensor>) {
    for (index, value) in values.into_iter().enumerate() {
        step.set(index, value);
    }
}

impl Kernel for WhileLoop {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let environment = step.environment();
        let mut state = arguments(step, 0, &self.body)?;
        while holds(&self.condition.run(environment, state.clone())?)? {
            state = self.body.run(environment, state)?;
        }
        set_outputs(step, state);
        Ok(())
    }
}

/// The truth value that a condition returned.
fn holds(results: &[Tensor]) -> Result<bool> {
    ensure!(
        results.len() == 1,
        Internal,
        "A condition gives {} values",
        results.len()
    );
    results[0].to_bool()
}

struct Conditional {
    branches: Vec<Arc<Code>>,
    /// Leaves of each branch's argument.
    counts: Vec<usize>,
    by_pred: bool,
}

/// The kernel of a branch.
pub(super) fn conditional(
    compiler: &mut Compiler,
    computation: &Computation,
    instruction: &Instruction,
    branches: &[ComputationId],
) -> Result<Box<dyn Kernel>> {
    let operands = &instruction.operands;
    let counts = operands[1..]
        .iter()
        .map(|&operand| computation.instruction(operand).shape.leaves().len());
    let index = computation.instruction(operands[0]).array_shape()?;
    Ok(Box::new(Conditional {
        branches: branches
            .iter()
            .map(|&branch| compiler.compile(branch))
            .collect::<Result<_>>()?,
        counts: counts.collect(),
        by_pred: index.dtype == DataType::BOOL,
    }))
}

impl Kernel for Conditional {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let index = step.input(0)?;
        let chosen = if self.by_pred {
            usize::from(index.bytes().first() == Some(&0))
        } else {
            let value = index.as_slice::<i32>()?.first().copied().unwrap_or(0);
            let last = self.branches.len() - 1;
            usize::try_from(value).map_or(last, |value| value.min(last))
        };
        let first = 1 + self.counts[..chosen].iter().sum::<usize>();
        let branch = &self.branches[chosen];
        let arguments = arguments(step, first, branch)?;
        let results = branch.run(step.environment(), arguments)?;
        set_outputs(step, results);
        Ok(())
    }
}
