//! A fusion that runs as code, see [`crate::fusion`].

use crate::evaluator::code::{Kernel, StepContext, with_type};
use crate::fusion::{FusionKernel, FusionPlan};
use ff_tensor::{Result, Tensor};
use smallvec::SmallVec;
use std::sync::Arc;

/// Code with the plan that it runs. Operand `i` of the step is parameter `i` of the plan.
pub(in crate::evaluator) struct Compiled {
    plan: Arc<FusionPlan>,
    kernel: Arc<dyn FusionKernel>,
    /// Outputs and the dying operands that they may replace.
    replaceable: SmallVec<[(usize, usize); 2]>,
}

impl Compiled {
    pub fn new(plan: Arc<FusionPlan>, kernel: Arc<dyn FusionKernel>) -> Compiled {
        Compiled {
            plan,
            kernel,
            replaceable: SmallVec::new(),
        }
    }
}

impl Kernel for Compiled {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let mut parameters: SmallVec<[*const u8; 8]> = SmallVec::new();
        for operand in 0..step.num_inputs() {
            parameters.push(step.input_ptr(operand)?);
        }
        let mut taken: SmallVec<[usize; 2]> = SmallVec::new();
        let mut tensors: SmallVec<[Tensor; 2]> = SmallVec::new();
        for output in 0..step.num_outputs() {
            let mut tensor = None;
            for &(_, operand) in self.replaceable.iter().filter(|pair| pair.0 == output) {
                if taken.contains(&operand) {
                    continue;
                }
                if let Some(candidate) = step.take_if_writable(operand)? {
                    taken.push(operand);
                    let array = step.output(output);
                    tensor = Some(with_type(candidate, array.dtype, &array.shape)?);
                    break;
                }
            }
            tensors.push(match tensor {
                Some(tensor) => tensor,
                None => step.allocate(output)?,
            });
        }
        let outputs: SmallVec<[*mut u8; 4]> = tensors.iter().map(Tensor::data_ptr).collect();
        // SAFETY: operands and outputs have the shapes of the fusion that the plan was made of; replaced operands are
        // kept alive as outputs, all others by their slots.
        unsafe {
            self.kernel.run(step.pool(), &self.plan, &parameters, &outputs)?;
        }
        for (output, tensor) in tensors.into_iter().enumerate() {
            step.set(output, tensor);
        }
        Ok(())
    }

    fn note_dying(&mut self, dying: u64) {
        for output in 0..self.plan.outputs.len() {
            for parameter in 0..self.plan.parameters.min(64) {
                if dying >> parameter & 1 == 1 && self.plan.may_replace(output, parameter) {
                    self.replaceable.push((output, parameter));
                }
            }
        }
    }
}
