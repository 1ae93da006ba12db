//! Checks that a module is well formed.
//!
//! - There is a computation; the entry is the last, and none calls itself or a later one.
//! - Computations are not empty; root, operands and parameters exist, and operands come before their users.
//! - `parameter` instructions are numbered from 0 and listed by their numbers.
//! - Every instruction has the shape that the shape rules give it, and attributes of its opcode.
//!
//! It does not check that values are sensible, that loops end, or that an evaluator exists for each instruction.

use crate::attributes::Attributes;
use crate::module::{Computation, Module};
use crate::opcode::Opcode;
use crate::shape::HloShape;
use crate::shape_rules::{Query, infer};
use ff_tensor::{Result, ensure, status};
use smallvec::SmallVec;

/// INVALID_ARGUMENT, naming the computation and the instruction, unless the module is well formed.
pub fn verify(module: &Module) -> Result<()> {
    ensure!(
        module.entry.0 as usize + 1 == module.computations.len(),
        InvalidArgument,
        "Module {} has no entry computation, or it is not the last",
        module.name
    );
    for (index, computation) in module.computations.iter().enumerate() {
        verify_computation(computation, &module.computations[..index])
            .map_err(|error| error.prefixed(&format!("Computation {}: ", computation.name)))?;
    }
    Ok(())
}

fn verify_computation(computation: &Computation, earlier: &[Computation]) -> Result<()> {
    let count = computation.instructions.len();
    ensure!(
        (computation.root.0 as usize) < count,
        InvalidArgument,
        "the root does not exist"
    );
    for (index, instruction) in computation.instructions.iter().enumerate() {
        let name = || format!("%{}.{index}: ", instruction.base_name());
        for operand in &instruction.operands {
            ensure!(
                (operand.0 as usize) < index,
                InvalidArgument,
                "{}operand {} does not come before it",
                name(),
                operand.0
            );
        }
        verify_instruction(computation, index, earlier).map_err(|error| error.prefixed(&name()))?;
    }
    let parameters = computation
        .instructions
        .iter()
        .filter(|instruction| instruction.opcode == Opcode::Parameter);
    ensure!(
        parameters.count() == computation.parameters.len(),
        InvalidArgument,
        "parameters are missing in the list"
    );
    for (number, &id) in computation.parameters.iter().enumerate() {
        let found = computation
            .instructions
            .get(id.0 as usize)
            .map(|instruction| &instruction.attributes);
        ensure!(
            matches!(found, Some(Attributes::Parameter(own)) if *own == number),
            InvalidArgument,
            "parameter {number} is not where the list says"
        );
    }
    Ok(())
}

fn verify_instruction(computation: &Computation, index: usize, earlier: &[Computation]) -> Result<()> {
    let instruction = &computation.instructions[index];
    let operands: SmallVec<[&HloShape; 4]> = instruction
        .operands
        .iter()
        .map(|&operand| &computation.instruction(operand).shape)
        .collect();
    for called in instruction.attributes.called_computations() {
        ensure!(
            (called.0 as usize) < earlier.len(),
            InvalidArgument,
            "calls computation {}, which does not come before",
            called.0
        );
    }
    let shape = infer(&Query {
        opcode: instruction.opcode,
        operands: &operands,
        attributes: &instruction.attributes,
        declared: Some(&instruction.shape),
        computations: earlier,
    })?;
    if shape != instruction.shape {
        return Err(status!(
            InvalidArgument,
            "has shape {}, expected {shape}",
            instruction.shape
        ));
    }
    Ok(())
}
