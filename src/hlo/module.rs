//! The program: a module of computations, each a list of instructions.
//!
//! All of it is plain data. Instructions lie in an order in which operands come before their users, and computations
//! come before their callers; the entry is the last. [`crate::verify`] checks that.

use crate::attributes::Attributes;
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, HloShape};
use ff_tensor::{Result, status};
use smallvec::SmallVec;
use std::sync::Arc;

/// Place of an instruction in its computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstructionId(pub u32);

/// Place of a computation in its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComputationId(pub u32);

/// A whole program.
#[derive(Clone, Debug)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// The computations, callees before callers.
    pub computations: Vec<Computation>,
    /// The computation that runs: the last one.
    pub entry: ComputationId,
}

/// A function of its parameters.
#[derive(Clone, Debug)]
pub struct Computation {
    /// Its name.
    pub name: String,
    /// The instructions, operands before users.
    pub instructions: Vec<Instruction>,
    /// The `parameter` instructions, by number.
    pub parameters: Vec<InstructionId>,
    /// The instruction whose value is returned.
    pub root: InstructionId,
}

/// One operation with its result.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// What it does.
    pub opcode: Opcode,
    /// The shape of its result.
    pub shape: HloShape,
    /// What it reads.
    pub operands: SmallVec<[InstructionId; 2]>,
    /// What else it needs.
    pub attributes: Attributes,
    /// A name for people; the opcode's when there is none.
    pub name: Option<Arc<str>>,
    /// The graph node that it comes from.
    pub node: Option<Arc<str>>,
}

/// The shapes that a computation takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramShape {
    /// Shapes of the parameters.
    pub parameters: Vec<HloShape>,
    /// Shape of the result.
    pub result: HloShape,
}

impl Module {
    /// The computation that runs.
    pub fn entry_computation(&self) -> &Computation {
        &self.computations[self.entry.0 as usize]
    }

    /// The computation that runs, for changing it.
    pub fn entry_computation_mut(&mut self) -> &mut Computation {
        &mut self.computations[self.entry.0 as usize]
    }

    /// A computation. INTERNAL when there is none.
    pub fn computation(&self, id: ComputationId) -> Result<&Computation> {
        self.computations
            .get(id.0 as usize)
            .ok_or_else(|| status!(Internal, "Module {} has no computation {}", self.name, id.0))
    }
}

impl Computation {
    /// An instruction. Panics when there is none, which a verified module excludes.
    pub fn instruction(&self, id: InstructionId) -> &Instruction {
        &self.instructions[id.0 as usize]
    }

    /// The root instruction.
    pub fn root_instruction(&self) -> &Instruction {
        self.instruction(self.root)
    }

    /// The shapes of parameters and result.
    pub fn program_shape(&self) -> ProgramShape {
        ProgramShape {
            parameters: self
                .parameters
                .iter()
                .map(|&id| self.instruction(id).shape.clone())
                .collect(),
            result: self.root_instruction().shape.clone(),
        }
    }

    /// How many operands of instructions (and the root) each instruction is.
    pub fn use_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.instructions.len()];
        for instruction in &self.instructions {
            for operand in &instruction.operands {
                counts[operand.0 as usize] += 1;
            }
        }
        if let Some(root) = counts.get_mut(self.root.0 as usize) {
            *root += 1;
        }
        counts
    }
}

impl Instruction {
    /// The shape of an array result. INVALID_ARGUMENT for a tuple.
    pub fn array_shape(&self) -> Result<&ArrayShape> {
        self.shape.as_array()
    }

    /// The name for people.
    pub fn base_name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.opcode.name())
    }
}
