//! Tile functions of the floating-point types.

use super::{PLAIN, SIMPLE, TileArgs, TileFn, WIDE, map1, map2};
use crate::attributes::Direction;
use crate::evaluator::scalar::{ComplexNumber, Float};
use crate::opcode::Opcode;

/// The function of a unary opcode.
pub(super) fn unary<T: Float>(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Abs => map1::<SIMPLE, T, T, _>(|x| x.magnitude()),
        Opcode::Negate => map1::<SIMPLE, T, T, _>(|x| -x),
        Opcode::Copy | Opcode::Real => map1::<SIMPLE, T, T, _>(|x| x),
        Opcode::Imag => map1::<SIMPLE, T, T, _>(|_| T::default()),
        Opcode::Sign => map1::<SIMPLE, T, T, _>(|x| x.sign()),
        Opcode::Floor => map1::<SIMPLE, T, T, _>(|x| x.floor()),
        Opcode::Ceil => map1::<SIMPLE, T, T, _>(|x| x.ceiling()),
        Opcode::RoundNearestEven => map1::<SIMPLE, T, T, _>(|x| x.round_even()),
        Opcode::RoundNearestAfz => map1::<SIMPLE, T, T, _>(|x| x.round_away()),
        Opcode::Sqrt => map1::<SIMPLE, T, T, _>(|x| x.square_root()),
        Opcode::Rsqrt => map1::<SIMPLE, T, T, _>(|x| x.reciprocal_square_root()),
        Opcode::IsFinite => map1::<SIMPLE, T, u8, _>(|x| u8::from(x.finite())),
        Opcode::Exponential => map1::<WIDE, T, T, _>(|x| x.exponential()),
        Opcode::ExponentialMinusOne => map1::<WIDE, T, T, _>(|x| x.exponential_minus_one()),
        Opcode::Log => map1::<WIDE, T, T, _>(|x| x.logarithm()),
        Opcode::LogPlusOne => map1::<WIDE, T, T, _>(|x| x.logarithm_plus_one()),
        Opcode::Logistic => map1::<WIDE, T, T, _>(|x| x.logistic()),
        Opcode::Tanh => map1::<WIDE, T, T, _>(|x| x.hyperbolic_tangent()),
        Opcode::Erf => map1::<WIDE, T, T, _>(|x| x.error_function()),
        Opcode::Erfc => map1::<WIDE, T, T, _>(|x| x.complementary_error_function()),
        Opcode::Sine => map1::<WIDE, T, T, _>(|x| x.sine()),
        Opcode::Cosine => map1::<WIDE, T, T, _>(|x| x.cosine()),
        Opcode::Tan => map1::<WIDE, T, T, _>(|x| x.tangent()),
        Opcode::Asin => map1::<WIDE, T, T, _>(|x| x.arc_sine()),
        Opcode::Acos => map1::<WIDE, T, T, _>(|x| x.arc_cosine()),
        Opcode::Atan => map1::<WIDE, T, T, _>(|x| x.arc_tangent()),
        Opcode::Sinh => map1::<WIDE, T, T, _>(|x| x.hyperbolic_sine()),
        Opcode::Cosh => map1::<WIDE, T, T, _>(|x| x.hyperbolic_cosine()),
        Opcode::Asinh => map1::<WIDE, T, T, _>(|x| x.area_sine()),
        Opcode::Acosh => map1::<WIDE, T, T, _>(|x| x.area_cosine()),
        Opcode::Atanh => map1::<WIDE, T, T, _>(|x| x.area_tangent()),
        _ => return library::<T>(opcode),
    })
}

/// Functions that call scalar libraries.
fn library<T: Float>(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Cbrt => map1::<PLAIN, T, T, _>(|x| x.cube_root()),
        Opcode::LogGamma => map1::<PLAIN, T, T, _>(|x| x.log_gamma()),
        Opcode::Digamma => map1::<PLAIN, T, T, _>(|x| x.digamma()),
        Opcode::ErfInv => map1::<PLAIN, T, T, _>(|x| x.inverse_error_function()),
        _ => return None,
    })
}

/// The function of a binary opcode.
pub(super) fn binary<T: Float>(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Add => map2::<SIMPLE, T, T, T, _>(|a, b| a + b),
        Opcode::Subtract => map2::<SIMPLE, T, T, T, _>(|a, b| a - b),
        Opcode::Multiply => map2::<SIMPLE, T, T, T, _>(|a, b| a * b),
        Opcode::Divide => map2::<SIMPLE, T, T, T, _>(|a, b| a / b),
        Opcode::Maximum => map2::<SIMPLE, T, T, T, _>(|a, b| a.larger(b)),
        Opcode::Minimum => map2::<SIMPLE, T, T, T, _>(|a, b| a.smaller(b)),
        Opcode::Remainder => map2::<PLAIN, T, T, T, _>(|a, b| a % b),
        Opcode::Power => map2::<WIDE, T, T, T, _>(|a, b| a.raised(b)),
        Opcode::Atan2 => map2::<WIDE, T, T, T, _>(|a, b| a.arc_tangent2(b)),
        Opcode::NextAfter => map2::<PLAIN, T, T, T, _>(|a, b| a.next_towards(b)),
        _ => return None,
    })
}

/// The function of a comparison, to bytes of 0 and 1.
pub(super) fn compare<T: PartialOrd + Copy + 'static, const W: u8>(direction: Direction) -> TileFn {
    match direction {
        Direction::Eq => map2::<W, T, T, u8, _>(|a, b| u8::from(a == b)),
        Direction::Ne => map2::<W, T, T, u8, _>(|a, b| u8::from(a != b)),
        Direction::Lt => map2::<W, T, T, u8, _>(|a, b| u8::from(a < b)),
        Direction::Le => map2::<W, T, T, u8, _>(|a, b| u8::from(a <= b)),
        Direction::Gt => map2::<W, T, T, u8, _>(|a, b| u8::from(a > b)),
        Direction::Ge => map2::<W, T, T, u8, _>(|a, b| u8::from(a >= b)),
    }
}

/// Two parts to a complex number.
pub(super) fn complex<C: ComplexNumber>() -> TileFn {
    map2::<SIMPLE, C::Part, C::Part, C, _>(|re, im| C::from_parts(re, im))
}

/// Rounds to a narrower format; the parameter is `exponent_bits << 32 | mantissa_bits`.
pub(super) fn reduce_precision<T: Float>() -> TileFn {
    unsafe fn run<T: Float>(args: &TileArgs) {
        let (exponent, mantissa) = ((args.parameter >> 32) as u32, args.parameter as u32);
        // SAFETY: passed on to the caller of a tile function.
        let (a, out) = unsafe {
            (
                std::slice::from_raw_parts(args.operands[0].cast::<T>(), args.len),
                std::slice::from_raw_parts_mut(args.out.cast::<T>(), args.len),
            )
        };
        for (out, &a) in out.iter_mut().zip(a) {
            *out = a.reduce_precision(exponent, mantissa);
        }
    }
    run::<T>
}
