//! Computes at once what depends on constants only.
//!
//! *Assumes* a verified module. *Guarantees* that an instruction whose operands are all constants is a constant itself,
//! where the evaluator can run it and the result is small: at most [`LARGEST`] bytes, or no more than its operands.
//! *Does not* fold checks, calls, custom calls, loops, random bits, counters and broadcasts, which cost nothing where
//! they are read.

use super::{Changed, rebuild};
use crate::attributes::Attributes;
use crate::evaluator::Program;
use crate::module::{Computation, ComputationId, Instruction, InstructionId, Module};
use crate::opcode::{Class, Opcode};
use ff_kernels::ThreadPool;
use ff_tensor::{Result, Status, Tensor};

/// Bytes that a result may have although its operands have fewer.
pub const LARGEST: usize = 64 << 10;

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for index in 0..module.computations.len() {
        let (earlier, rest) = module.computations.split_at_mut(index);
        let folded = rebuild::rewrite(&mut rest[0], |rewriter, instruction| {
            if !is_foldable(instruction) {
                return Ok::<_, Status>(None);
            }
            let operands: Option<Vec<&Instruction>> = instruction
                .operands
                .iter()
                .map(|&operand| {
                    Some(rewriter.get(operand)).filter(|operand| operand.opcode == Opcode::Constant)
                })
                .collect();
            let Some(operands) = operands else { return Ok(None) };
            let Some(value) = evaluate(earlier, instruction, &operands) else {
                return Ok(None);
            };
            Ok(Some(rewriter.push(Instruction {
                opcode: Opcode::Constant,
                shape: instruction.shape.clone(),
                operands: Default::default(),
                attributes: Attributes::Constant(value),
                name: None,
                node: instruction.node.clone(),
            })))
        })?;
        changed = changed.or(folded.into());
    }
    Ok(changed)
}

fn is_foldable(instruction: &Instruction) -> bool {
    let class = instruction.opcode.class();
    !instruction.shape.is_tuple()
        && !instruction.operands.is_empty()
        && !matches!(class, Class::Control | Class::Source | Class::Structure)
        && instruction.opcode != Opcode::Broadcast
}

/// The value of an instruction on constants; none when it is too large or cannot be computed.
fn evaluate(earlier: &[Computation], instruction: &Instruction, operands: &[&Instruction]) -> Option<Tensor> {
    let result = instruction.array_shape().ok()?;
    let given: usize = operands
        .iter()
        .filter_map(|operand| operand.array_shape().ok())
        .map(|s| s.byte_size())
        .sum();
    if result.byte_size() > LARGEST.max(given) {
        return None;
    }
    let mut single = instruction.clone();
    for (number, operand) in single.operands.iter_mut().enumerate() {
        *operand = InstructionId(number as u32);
    }
    let mut instructions: Vec<Instruction> = operands.iter().map(|&operand| operand.clone()).collect();
    instructions.push(single);
    let entry = Computation {
        name: String::from("fold"),
        root: InstructionId(operands.len() as u32),
        instructions,
        parameters: Vec::new(),
    };
    // Only what calls something needs the computations before it.
    let mut computations = if instruction.attributes.called_computations().is_empty() {
        Vec::new()
    } else {
        earlier.to_vec()
    };
    computations.push(entry);
    let module = Module {
        name: String::from("fold"),
        entry: ComputationId(computations.len() as u32 - 1),
        computations,
    };
    let program = Program::compile(&module).ok()?;
    program.run(ThreadPool::serial(), Vec::new()).ok()?.pop()
}
