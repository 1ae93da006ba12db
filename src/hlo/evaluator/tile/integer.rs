//! Tile functions of integers and truth values.

use super::{PLAIN, SIMPLE, TileFn, map1, map2};
use crate::evaluator::scalar::Integer;
use crate::opcode::Opcode;

/// The function of a unary opcode.
pub(super) fn unary<T: Integer>(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Abs => map1::<SIMPLE, T, T, _>(|x| x.magnitude()),
        Opcode::Copy => map1::<SIMPLE, T, T, _>(|x| x),
        Opcode::CountLeadingZeros => map1::<PLAIN, T, T, _>(|x| x.leading_zeros()),
        Opcode::Negate => map1::<SIMPLE, T, T, _>(|x| x.negate()),
        Opcode::Not => map1::<SIMPLE, T, T, _>(|x| x.bit_not()),
        Opcode::Popcnt => map1::<PLAIN, T, T, _>(|x| x.popcnt()),
        Opcode::Sign => map1::<SIMPLE, T, T, _>(|x| x.sign()),
        _ => return None,
    })
}

/// The function of a binary opcode.
pub(super) fn binary<T: Integer>(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Add => map2::<SIMPLE, T, T, T, _>(|a, b| a.plus(b)),
        Opcode::Subtract => map2::<SIMPLE, T, T, T, _>(|a, b| a.minus(b)),
        Opcode::Multiply => map2::<SIMPLE, T, T, T, _>(|a, b| a.times(b)),
        Opcode::Divide => map2::<PLAIN, T, T, T, _>(|a, b| a.divide(b)),
        Opcode::Remainder => map2::<PLAIN, T, T, T, _>(|a, b| a.remainder(b)),
        Opcode::Power => map2::<PLAIN, T, T, T, _>(|a, b| a.power(b)),
        Opcode::Maximum => map2::<SIMPLE, T, T, T, _>(|a, b| if a > b { a } else { b }),
        Opcode::Minimum => map2::<SIMPLE, T, T, T, _>(|a, b| if a < b { a } else { b }),
        Opcode::And => map2::<SIMPLE, T, T, T, _>(|a, b| a.bit_and(b)),
        Opcode::Or => map2::<SIMPLE, T, T, T, _>(|a, b| a.bit_or(b)),
        Opcode::Xor => map2::<SIMPLE, T, T, T, _>(|a, b| a.bit_xor(b)),
        Opcode::ShiftLeft => map2::<SIMPLE, T, T, T, _>(|a, b| a.shift_left(b)),
        Opcode::ShiftRightLogical => map2::<SIMPLE, T, T, T, _>(|a, b| a.shift_right_logical(b)),
        Opcode::ShiftRightArithmetic => map2::<SIMPLE, T, T, T, _>(|a, b| a.shift_right_arithmetic(b)),
        _ => return None,
    })
}

/// The function of an opcode on truth values, bytes of 0 and 1.
pub(super) fn pred(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Copy => map1::<SIMPLE, u8, u8, _>(|x| x),
        Opcode::Not => map1::<SIMPLE, u8, u8, _>(|x| u8::from(x == 0)),
        Opcode::And | Opcode::Multiply | Opcode::Minimum => map2::<SIMPLE, u8, u8, u8, _>(|a, b| a & b),
        Opcode::Or | Opcode::Add | Opcode::Maximum => map2::<SIMPLE, u8, u8, u8, _>(|a, b| a | b),
        Opcode::Xor => map2::<SIMPLE, u8, u8, u8, _>(|a, b| a ^ b),
        _ => return None,
    })
}
