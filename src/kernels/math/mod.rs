//! Mathematical functions of one element: our own for `f32` and, where they are frequent, for `f64`; the system's for
//! the others.
//!
//! Our functions are branch-free where the compiler is to vectorise them: a loop over [`exp`] inside
//! [`crate::elementwise`] runs at full vector width, and a lane has the bits that the scalar call has. They are
//! within 4 units in the last place of the mathematical value, over all finite inputs, denormals included.
//! [`Real`] offers all of them over `f32`, `f64`, `f16` and `bf16` (the short ones through `f32`).
//!
//! [`coefficients`] is the one table of constants; generated code uses it too, in the same order of operations. The
//! functions of [`double`] are written once, over [`Arithmetic`].

mod arithmetic;
pub mod coefficients;
pub mod double;
mod erf;
mod exp;
mod log;
mod real;
pub mod special;
mod trig;

pub use arithmetic::{Arithmetic, Scalar};
pub use erf::{erf, erfc};
pub use exp::{exp, expm1, sigmoid, tanh};
pub use log::{log, log1p};
pub use real::Real;
pub use trig::{cos, sin};

/// `1 / sqrt(x)`.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.sqrt()
}

/// `if condition { a } else { b }`, both evaluated: a blend of vectors.
#[inline(always)]
pub(crate) fn select(condition: bool, a: f32, b: f32) -> f32 {
    if condition { a } else { b }
}
