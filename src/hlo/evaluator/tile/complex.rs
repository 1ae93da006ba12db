//! Tile functions of complex numbers. Functions beyond arithmetic are computed in double precision.

use super::{PLAIN, SIMPLE, TileFn, map1, map2};
use crate::attributes::Direction;
use crate::evaluator::scalar::{
    ComplexNumber, complex_cosh, complex_divide, complex_expm1, complex_log1p, complex_power,
    complex_reciprocal, complex_sign, complex_sinh, complex_tanh,
};
use crate::opcode::Opcode;
use ff_kernels::math::Real;
use ff_tensor::Complex128;

/// The tile function of `f` in double precision.
fn wide<C: ComplexNumber>(f: impl Fn(Complex128) -> Complex128 + Copy + 'static) -> TileFn {
    map1::<PLAIN, C, C, _>(move |z: C| C::narrow(f(z.wide())))
}

const ONE: Complex128 = Complex128::new(1.0, 0.0);

/// The function of a unary opcode.
pub(super) fn unary<C: ComplexNumber>(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Copy => map1::<SIMPLE, C, C, _>(|z| z),
        Opcode::Real => map1::<SIMPLE, C, C::Part, _>(|z| z.real()),
        Opcode::Imag => map1::<SIMPLE, C, C::Part, _>(|z| z.imag()),
        Opcode::Negate => map1::<SIMPLE, C, C, _>(|z| -z),
        Opcode::Abs => map1::<PLAIN, C, C::Part, _>(|z| {
            let z = z.wide();
            C::Part::from_f64(z.re.hypot(z.im))
        }),
        Opcode::Sign => wide::<C>(complex_sign),
        Opcode::Exponential => wide::<C>(|z| z.exp()),
        Opcode::ExponentialMinusOne => wide::<C>(complex_expm1),
        Opcode::Log => wide::<C>(|z| z.ln()),
        Opcode::LogPlusOne => wide::<C>(complex_log1p),
        Opcode::Logistic => wide::<C>(|z| complex_reciprocal(ONE + (-z).exp())),
        Opcode::Sqrt => wide::<C>(|z| z.sqrt()),
        Opcode::Rsqrt => wide::<C>(|z| complex_reciprocal(z.sqrt())),
        Opcode::Sine => wide::<C>(|z| z.sin()),
        Opcode::Cosine => wide::<C>(|z| z.cos()),
        Opcode::Tan => wide::<C>(|z| {
            let t = complex_tanh(Complex128::new(-z.im, z.re));
            Complex128::new(t.im, -t.re)
        }),
        Opcode::Sinh => wide::<C>(complex_sinh),
        Opcode::Cosh => wide::<C>(complex_cosh),
        Opcode::Tanh => wide::<C>(complex_tanh),
        Opcode::Asin => wide::<C>(|z| z.asin()),
        Opcode::Acos => wide::<C>(|z| z.acos()),
        Opcode::Atan => wide::<C>(|z| z.atan()),
        Opcode::Asinh => wide::<C>(|z| z.asinh()),
        Opcode::Acosh => wide::<C>(|z| z.acosh()),
        Opcode::Atanh => wide::<C>(|z| z.atanh()),
        _ => return None,
    })
}

/// The function of a binary opcode.
pub(super) fn binary<C: ComplexNumber>(opcode: Opcode) -> Option<TileFn> {
    Some(match opcode {
        Opcode::Add => map2::<SIMPLE, C, C, C, _>(|a, b| a + b),
        Opcode::Subtract => map2::<SIMPLE, C, C, C, _>(|a, b| a - b),
        Opcode::Multiply => map2::<SIMPLE, C, C, C, _>(|a, b| a * b),
        Opcode::Divide => map2::<PLAIN, C, C, C, _>(|a, b| C::narrow(complex_divide(a.wide(), b.wide()))),
        Opcode::Power => map2::<PLAIN, C, C, C, _>(|a, b| C::narrow(complex_power(a.wide(), b.wide()))),
        Opcode::Atan2 => map2::<PLAIN, C, C, C, _>(|a, b| C::narrow((a.wide() / b.wide()).atan())),
        _ => return None,
    })
}

/// The function of a comparison; complex numbers have no order.
pub(super) fn compare<C: ComplexNumber>(direction: Direction) -> Option<TileFn> {
    match direction {
        Direction::Eq => Some(map2::<SIMPLE, C, C, u8, _>(|a, b| u8::from(a == b))),
        Direction::Ne => Some(map2::<SIMPLE, C, C, u8, _>(|a, b| u8::from(a != b))),
        _ => None,
    }
}
