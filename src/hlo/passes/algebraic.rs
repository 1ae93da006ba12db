//! Algebraic simplification.
//!
//! *Assumes* a verified module. *Guarantees* that none of the patterns below is left: neutral and absorbing elements
//! (`x + 0` of integers, `x - 0`, `x * 1`, `x / 1`, `x ^ 1`, `x & x`...), functions undone (`-(-x)`, `not(not(x))`),
//! `x` to the power of 1, 2 or 3 as products, choices that are decided (`select` of a constant, of equal
//! values), moves that do nothing or follow one another (see `algebraic_moves`), elements of known tuples. Results keep
//! their bits. *Does not* reorder sums or products, and assumes nothing
//! about NaN, infinities or signs of zero.

use super::Changed;
use super::algebraic_moves::simplify_move;
use super::rebuild::{self, Rewriter};
use crate::attributes::Attributes;
use crate::module::{Instruction, InstructionId, Module};
use crate::opcode::Opcode;
use ff_tensor::{DataType, Result, Status, Tensor};
use smallvec::SmallVec;

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for computation in &mut module.computations {
        let simplified = rebuild::rewrite(computation, |rewriter, instruction| {
            let simpler = simplify_elementwise(rewriter, instruction);
            let simpler = simpler.or_else(|| simplify_structure(rewriter, instruction));
            Ok::<_, Status>(simpler.or_else(|| simplify_move(rewriter, instruction)))
        })?;
        changed = changed.or(simplified.into());
    }
    Ok(changed)
}

/// The one value that all elements have, if it is known: a scalar constant, perhaps broadcast.
pub(super) fn splat(rewriter: &Rewriter, mut id: InstructionId) -> Option<Tensor> {
    loop {
        let instruction = rewriter.get(id);
        match (&instruction.attributes, instruction.opcode) {
            (Attributes::Constant(value), _) if value.num_elements() == 1 => return Some(value.clone()),
            (_, Opcode::Broadcast | Opcode::Reshape) => id = instruction.operands[0],
            _ => return None,
        }
    }
}

/// Whether all elements are this number.
fn is_number(rewriter: &Rewriter, id: InstructionId, number: f64) -> bool {
    let Some(value) = splat(rewriter, id) else {
        return false;
    };
    crate::builder::scalar_tensor(value.dtype(), number).is_ok_and(|expected| {
        // The literal of an integer type is cut: only whole numbers may be compared.
        (number.fract() == 0.0 || value.dtype().is_floating()) && expected.bytes() == value.bytes()
    })
}

fn simplify_elementwise(rewriter: &mut Rewriter, instruction: &Instruction) -> Option<InstructionId> {
    match instruction.operands[..] {
        [x] => simplify_unary(rewriter, instruction, x),
        [a, b] => simplify_binary(rewriter, instruction, a, b),
        [pred, on_true, on_false] if instruction.opcode == Opcode::Select => {
            if on_true == on_false {
                return Some(on_true);
            }
            let chosen = splat(rewriter, pred)?.bytes().first().copied()? != 0;
            Some(if chosen { on_true } else { on_false })
        }
        _ => None,
    }
}

fn simplify_unary(rewriter: &Rewriter, instruction: &Instruction, x: InstructionId) -> Option<InstructionId> {
    let operand = rewriter.get(x);
    let inner = operand.operands.first().copied();
    let dtype = operand.array_shape().ok()?.dtype;
    match (instruction.opcode, operand.opcode) {
        (Opcode::Copy, _) => Some(x),
        (Opcode::Negate, Opcode::Negate) | (Opcode::Not, Opcode::Not) => inner,
        (Opcode::Abs, Opcode::Abs) if !dtype.is_complex() => Some(x),
        (Opcode::Real, _) if !dtype.is_complex() => Some(x),
        (Opcode::Real, Opcode::Complex) => inner,
        (Opcode::Imag, Opcode::Complex) => operand.operands.get(1).copied(),
        (Opcode::Floor | Opcode::Ceil, Opcode::Floor | Opcode::Ceil) => Some(x),
        (Opcode::Convert, Opcode::Convert) => {
            let source = rewriter.get(inner?).array_shape().ok()?.dtype;
            let result = instruction.array_shape().ok()?.dtype;
            (source == result && widens(source, dtype)).then_some(inner?)
        }
        _ => None,
    }
}

/// Whether every value of a type is one of another.
fn widens(from: DataType, to: DataType) -> bool {
    use DataType as T;
    match from {
        T::HALF | T::BFLOAT16 => matches!(to, T::FLOAT | T::DOUBLE),
        T::FLOAT => to == T::DOUBLE,
        T::INT8 => matches!(to, T::INT16 | T::INT32 | T::INT64 | T::FLOAT | T::DOUBLE),
        T::UINT8 => matches!(
            to,
            T::UINT16 | T::INT32 | T::UINT32 | T::INT64 | T::UINT64 | T::FLOAT | T::DOUBLE
        ),
        T::INT16 => matches!(to, T::INT32 | T::INT64 | T::FLOAT | T::DOUBLE),
        T::INT32 => matches!(to, T::INT64 | T::DOUBLE),
        T::BOOL => to.is_integer() || matches!(to, T::FLOAT | T::DOUBLE),
        _ => false,
    }
}

fn simplify_binary(
    rewriter: &mut Rewriter,
    instruction: &Instruction,
    a: InstructionId,
    b: InstructionId,
) -> Option<InstructionId> {
    let dtype = instruction.array_shape().ok()?.dtype;
    let exact = dtype.is_integer();
    let pred = dtype == DataType::BOOL;
    let is = |id: InstructionId, number: f64| is_number(rewriter, id, number);
    match instruction.opcode {
        Opcode::Add if exact && is(b, 0.0) => Some(a),
        Opcode::Add if exact && is(a, 0.0) => Some(b),
        Opcode::Subtract if is(b, 0.0) => Some(a),
        Opcode::Multiply if !pred && is(b, 1.0) => Some(a),
        Opcode::Multiply if !pred && is(a, 1.0) => Some(b),
        Opcode::Multiply if exact && is(a, 0.0) => Some(a),
        Opcode::Multiply if exact && is(b, 0.0) => Some(b),
        Opcode::Divide if is(b, 1.0) => Some(a),
        Opcode::And | Opcode::Or | Opcode::Maximum | Opcode::Minimum if a == b => Some(a),
        Opcode::And if pred && is(a, 1.0) || is(b, 0.0) => Some(b),
        Opcode::And if pred && is(b, 1.0) || is(a, 0.0) => Some(a),
        Opcode::Or if is(a, 0.0) || pred && is(b, 1.0) => Some(b),
        Opcode::Or if is(b, 0.0) || pred && is(a, 1.0) => Some(a),
        Opcode::Xor if is(b, 0.0) => Some(a),
        Opcode::Xor if is(a, 0.0) => Some(b),
        Opcode::Power => simplify_power(rewriter, instruction, a, b),
        _ => None,
    }
}

/// Small powers as products.
fn simplify_power(
    rewriter: &mut Rewriter,
    instruction: &Instruction,
    x: InstructionId,
    exponent: InstructionId,
) -> Option<InstructionId> {
    let like = |opcode: Opcode, operands: &[InstructionId]| Instruction {
        opcode,
        operands: SmallVec::from_slice(operands),
        attributes: Attributes::None,
        name: None,
        ..instruction.clone()
    };
    if is_number(rewriter, exponent, 1.0) {
        return Some(x);
    }
    let dtype = instruction.array_shape().ok()?.dtype;
    if is_number(rewriter, exponent, 2.0) && !dtype.is_complex() {
        return Some(rewriter.push(like(Opcode::Multiply, &[x, x])));
    }
    // Types that are rounded after each instruction would be rounded twice.
    let plain = dtype.is_integer() || matches!(dtype, DataType::FLOAT | DataType::DOUBLE);
    if is_number(rewriter, exponent, 3.0) && plain {
        let square = rewriter.push(like(Opcode::Multiply, &[x, x]));
        return Some(rewriter.push(like(Opcode::Multiply, &[square, x])));
    }
    None
}

fn simplify_structure(rewriter: &mut Rewriter, instruction: &Instruction) -> Option<InstructionId> {
    let operand = *instruction.operands.first()?;
    match (instruction.opcode, &instruction.attributes) {
        (Opcode::GetTupleElement, Attributes::TupleIndex(index)) => {
            let tuple = rewriter.get(operand);
            (tuple.opcode == Opcode::Tuple).then(|| tuple.operands.get(*index).copied())?
        }
        (Opcode::Conditional, Attributes::Branches(branches)) => {
            let index = splat(rewriter, operand)?;
            let last = branches.len() - 1;
            let chosen = if index.dtype() == DataType::BOOL {
                usize::from(!index.to_bool().ok()?)
            } else {
                usize::try_from(index.single::<i32>().ok()?).map_or(last, |chosen| chosen.min(last))
            };
            Some(rewriter.push(Instruction {
                opcode: Opcode::Call,
                operands: SmallVec::from_slice(&[instruction.operands[chosen + 1]]),
                attributes: Attributes::Call(branches[chosen]),
                name: None,
                ..instruction.clone()
            }))
        }
        (Opcode::GetDimensionSize, Attributes::Dimension(axis)) => {
            let extent = rewriter
                .get(operand)
                .array_shape()
                .ok()?
                .dims
                .get(*axis as usize)
                .copied()?;
            let value = Tensor::scalar(i32::try_from(extent).ok()?).ok()?;
            Some(rewriter.push(Instruction {
                opcode: Opcode::Constant,
                operands: SmallVec::new(),
                attributes: Attributes::Constant(value),
                name: None,
                ..instruction.clone()
            }))
        }
        _ => None,
    }
}
