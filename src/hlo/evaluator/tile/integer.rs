//! Tile functions of integers and truth values.
//!
//! Common types have loops for wide vectors, rare ones only those of the baseline: each costs code.

use super::{PLAIN, SIMPLE, TileFn, map1, map2};
use crate::evaluator::scalar::Integer;
use crate::opcode::Opcode;

/// The function of an opcode to which the sign means nothing: signed and unsigned types share it.
pub(super) fn signless<T: Integer, const W: u8>(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Add => map2::<W, T, T, T, _>(|a, b| a.plus(b)),
        Opcode::And => map2::<W, T, T, T, _>(|a, b| a.bit_and(b)),
        Opcode::Copy => map1::<PLAIN, T, T, _>(|x| x),
        Opcode::CountLeadingZeros => map1::<PLAIN, T, T, _>(|x| x.leading_zeros()),
        Opcode::Multiply => map2::<W, T, T, T, _>(|a, b| a.times(b)),
        Opcode::Negate => map1::<W, T, T, _>(|x| x.negate()),
        Opcode::Not => map1::<W, T, T, _>(|x| x.bit_not()),
        Opcode::Or => map2::<W, T, T, T, _>(|a, b| a.bit_or(b)),
        Opcode::Popcnt => map1::<PLAIN, T, T, _>(|x| x.popcnt()),
        Opcode::ShiftLeft => map2::<W, T, T, T, _>(|a, b| a.shift_left(b)),
        Opcode::ShiftRightArithmetic => map2::<W, T, T, T, _>(|a, b| a.shift_right_arithmetic(b)),
        Opcode::ShiftRightLogical => map2::<W, T, T, T, _>(|a, b| a.shift_right_logical(b)),
        Opcode::Subtract => map2::<W, T, T, T, _>(|a, b| a.minus(b)),
        Opcode::Xor => map2::<W, T, T, T, _>(|a, b| a.bit_xor(b)),
        _ => return None,
    })
}

/// The function of an opcode to which the sign means something.
pub(super) fn signed<T: Integer, const W: u8>(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Abs => map1::<W, T, T, _>(|x| x.magnitude()),
        Opcode::Divide => map2::<PLAIN, T, T, T, _>(|a, b| a.divide(b)),
        Opcode::Maximum => map2::<W, T, T, T, _>(|a, b| if a > b { a } else { b }),
        Opcode::Minimum => map2::<W, T, T, T, _>(|a, b| if a < b { a } else { b }),
        Opcode::Power => map2::<PLAIN, T, T, T, _>(|a, b| a.power(b)),
        Opcode::Remainder => map2::<PLAIN, T, T, T, _>(|a, b| a.remainder(b)),
        Opcode::Sign => map1::<W, T, T, _>(|x| x.sign()),
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
