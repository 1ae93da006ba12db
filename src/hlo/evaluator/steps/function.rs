//! Computations of scalars as functions on rows of elements: reducers, comparators, combiners.

use crate::attributes::{Attributes, Direction};
use crate::evaluator::tile::{Access, TileBuilder, TileProgram, ValueId};
use crate::module::{Computation, InstructionId};
use crate::opcode::Opcode;
use ff_tensor::{Result, Tensor, bail};
use smallvec::SmallVec;

/// A function from scalars to scalars, applied to rows.
pub(super) struct RowFunction {
    program: TileProgram,
    parameters: usize,
    constants: Vec<Tensor>,
}

impl RowFunction {
    /// Compiles a computation of elementwise instructions on scalars. UNIMPLEMENTED for any other.
    pub fn compile(computation: &Computation) -> Result<RowFunction> {
        let mut builder = TileBuilder::default();
        let mut values: Vec<SmallVec<[ValueId; 1]>> = vec![SmallVec::new(); computation.instructions.len()];
        for &parameter in &computation.parameters {
            let dtype = computation.instruction(parameter).array_shape()?.dtype;
            values[parameter.0 as usize].push(builder.input(dtype, Access::Direct));
        }
        let mut constants = Vec::new();
        let live = crate::passes::dce::live(computation);
        for (index, instruction) in computation.instructions.iter().enumerate() {
            if !live[index] || instruction.opcode == Opcode::Parameter {
                continue;
            }
            let args = |operand: &InstructionId| values[operand.0 as usize].clone();
            let result: SmallVec<[ValueId; 1]> = match (instruction.opcode, &instruction.attributes) {
                (Opcode::Constant, Attributes::Constant(value)) => {
                    constants.push(value.clone());
                    SmallVec::from_slice(&[builder.input(value.dtype(), Access::Splat(0))])
                }
                (Opcode::Tuple, _) => instruction.operands.iter().flat_map(args).collect(),
                (Opcode::GetTupleElement, Attributes::TupleIndex(which)) => {
                    SmallVec::from_slice(&[args(&instruction.operands[0])[*which]])
                }
                (Opcode::Copy | Opcode::Reshape | Opcode::Broadcast, _) => args(&instruction.operands[0]),
                (opcode, attributes) if opcode.is_elementwise() && opcode != Opcode::BitcastConvert => {
                    let operands: SmallVec<[ValueId; 3]> =
                        instruction.operands.iter().flat_map(args).collect();
                    let typed = if opcode == Opcode::Select { 1 } else { 0 };
                    let operand = computation
                        .instruction(instruction.operands[typed])
                        .array_shape()?
                        .dtype;
                    let result = instruction.array_shape()?.dtype;
                    SmallVec::from_slice(&[builder.map(opcode, attributes, &operands, operand, result)?])
                }
                (other, _) => {
                    bail!(
                        Unimplemented,
                        "{other} in called computation {} is not implemented",
                        computation.name
                    )
                }
            };
            values[index] = result;
        }
        let root = computation.root_instruction();
        for (value, leaf) in values[computation.root.0 as usize]
            .clone()
            .iter()
            .zip(root.shape.leaves())
        {
            builder.output(*value, leaf.dtype);
        }
        Ok(RowFunction {
            program: builder.finish(),
            parameters: computation.parameters.len(),
            constants,
        })
    }

    /// Applies the function to `len` elements of each parameter.
    ///
    /// # Safety
    /// Parameters hold and outputs have room for `len` elements of the computation's types; outputs overlap nothing.
    pub unsafe fn call(&self, parameters: &[*const u8], outputs: &[*mut u8], len: usize) {
        debug_assert_eq!(parameters.len(), self.parameters);
        let mut inputs: SmallVec<[*const u8; 8]> = SmallVec::from_slice(parameters);
        inputs.extend(
            self.constants
                .iter()
                .map(|constant| constant.data_ptr().cast_const()),
        );
        // SAFETY: passed on to the caller.
        unsafe { self.program.run_serial(&inputs, outputs, len) }
    }
}

/// A computation that is one well-known instruction on its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::evaluator) enum Known {
    /// A binary opcode of the first and second parameter, in either order for commutative ones.
    Binary(Opcode),
    /// A comparison of the first two parameters.
    Compare(Direction),
    /// Not a comparison of the first two parameters.
    CompareNot(Direction),
    /// The second parameter, if it is greater than the first one; else the first.
    Greater,
    /// The second parameter.
    Second,
}

/// What a computation is, if it is well known.
pub(in crate::evaluator) fn recognize(computation: &Computation) -> Option<Known> {
    let root = computation.root_instruction();
    let number = |id: InstructionId| match computation.instruction(id).attributes {
        Attributes::Parameter(number) => Some(number),
        _ => None,
    };
    let compared = |id: InstructionId| {
        let instruction = computation.instruction(id);
        let (Attributes::Compare(direction), [a, b]) = (&instruction.attributes, &instruction.operands[..])
        else {
            return None;
        };
        match (number(*a)?, number(*b)?) {
            (0, 1) => Some(*direction),
            (1, 0) => Some(flipped(*direction)),
            _ => None,
        }
    };
    match (&root.attributes, &root.operands[..]) {
        (Attributes::Parameter(1), _) => Some(Known::Second),
        (_, [compare]) if root.opcode == Opcode::Not => compared(*compare).map(Known::CompareNot),
        (_, [compare, on_true, on_false]) if root.opcode == Opcode::Select => {
            let greater = compared(*compare) == Some(Direction::Lt)
                && number(*on_true) == Some(1)
                && number(*on_false) == Some(0);
            greater.then_some(Known::Greater)
        }
        (attributes, [a, b]) => {
            let order = (number(*a)?, number(*b)?);
            let straight = order == (0, 1);
            match attributes {
                Attributes::Compare(direction) if straight => Some(Known::Compare(*direction)),
                Attributes::Compare(direction) if order == (1, 0) => {
                    Some(Known::Compare(flipped(*direction)))
                }
                Attributes::None if straight || (order == (1, 0) && root.opcode.is_symmetric()) => {
                    Some(Known::Binary(root.opcode))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The comparison with its operands swapped.
fn flipped(direction: Direction) -> Direction {
    match direction {
        Direction::Lt => Direction::Gt,
        Direction::Le => Direction::Ge,
        Direction::Gt => Direction::Lt,
        Direction::Ge => Direction::Le,
        other => other,
    }
}
