//! `custom-call`: a function outside of the module.

use super::operands;
use crate::evaluator::code::{Kernel, StepContext, with_type};
use crate::evaluator::host::{HostFunction, find};
use crate::module::{Computation, Instruction};
use ff_tensor::{DataType, Result, Shape, ensure};
use std::sync::Arc;

struct HostCall {
    function: Arc<dyn HostFunction>,
    inputs: Vec<(DataType, Shape)>,
}

/// The kernel of a call; its operands are arrays.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    target: &str,
    config: &str,
) -> Result<Box<dyn Kernel>> {
    let mut inputs = Vec::new();
    for shape in operands(computation, instruction)? {
        inputs.push((shape.dtype, Shape::new(&shape.dims)?));
    }
    Ok(Box::new(HostCall {
        function: find(target, config)?,
        inputs,
    }))
}

impl Kernel for HostCall {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (index, (dtype, shape)) in self.inputs.iter().enumerate() {
            inputs.push(with_type(step.input(index)?.clone(), *dtype, shape)?);
        }
        let outputs = self.function.call(step.pool(), inputs)?;
        ensure!(
            outputs.len() == step.num_outputs(),
            Internal,
            "a custom call gave {} outputs instead of {}",
            outputs.len(),
            step.num_outputs()
        );
        for (index, output) in outputs.into_iter().enumerate() {
            let declared = step.output(index);
            ensure!(
                output.dtype() == declared.dtype && output.shape() == &declared.shape,
                Internal,
                "a custom call gave {} of shape {} for output {index}",
                output.dtype(),
                output.shape()
            );
            step.set(index, output);
        }
        Ok(())
    }
}
