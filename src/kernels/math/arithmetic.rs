//! What the functions of [`super::double`] are made of, so that each is written once: numbers of double precision that
//! are computed at once ([`Scalar`]), or code that computes them in many lanes (in `ff-codegen`). Both round every
//! operation alike, so results have the same bits.

/// Operations on numbers (`F`), 64-bit integers (`I`) and truth values (`B`). Nothing is undefined for any operand but
/// shifts by 64 and more.
pub trait Arithmetic: Copy {
    /// Numbers of double precision.
    type F: Copy;
    /// 64-bit integers; sums wrap around.
    type I: Copy;
    /// Truth values.
    type B: Copy;

    /// A constant.
    fn number(self, value: f64) -> Self::F;
    /// A constant.
    fn integer(self, value: i64) -> Self::I;

    /// `x + y`
    fn add(self, x: Self::F, y: Self::F) -> Self::F;
    /// `x - y`
    fn sub(self, x: Self::F, y: Self::F) -> Self::F;
    /// `x * y`
    fn mul(self, x: Self::F, y: Self::F) -> Self::F;
    /// `x / y`
    fn div(self, x: Self::F, y: Self::F) -> Self::F;
    /// `x * y + z`, rounded once.
    fn fma(self, x: Self::F, y: Self::F, z: Self::F) -> Self::F;
    /// `-x`
    fn neg(self, x: Self::F) -> Self::F;
    /// The magnitude.
    fn abs(self, x: Self::F) -> Self::F;
    /// The magnitude of `x` with the sign of `sign`.
    fn copysign(self, x: Self::F, sign: Self::F) -> Self::F;
    /// The square root.
    fn sqrt(self, x: Self::F) -> Self::F;
    /// Rounded down.
    fn floor(self, x: Self::F) -> Self::F;

    /// Whether `x < y`; false where either is not a number.
    fn less(self, x: Self::F, y: Self::F) -> Self::B;
    /// Whether `x == y`; false where either is not a number.
    fn equal(self, x: Self::F, y: Self::F) -> Self::B;
    /// Whether both hold.
    fn both(self, x: Self::B, y: Self::B) -> Self::B;
    /// Whether it does not hold.
    fn not(self, x: Self::B) -> Self::B;
    /// `if condition { x } else { y }`
    fn choose(self, condition: Self::B, x: Self::F, y: Self::F) -> Self::F;

    /// The bits of a number.
    fn bits(self, x: Self::F) -> Self::I;
    /// The number with these bits.
    fn of_bits(self, x: Self::I) -> Self::F;
    /// `x + y`
    fn plus(self, x: Self::I, y: Self::I) -> Self::I;
    /// `x - y`
    fn minus(self, x: Self::I, y: Self::I) -> Self::I;
    /// Bitwise and.
    fn mask(self, x: Self::I, y: Self::I) -> Self::I;
    /// Bitwise exclusive or.
    fn flip(self, x: Self::I, y: Self::I) -> Self::I;
    /// Bits moved up.
    fn up(self, x: Self::I, by: u32) -> Self::I;
    /// Bits moved down, zeros after them.
    fn down(self, x: Self::I, by: u32) -> Self::I;
    /// Whether all bits are zero.
    fn is_zero(self, x: Self::I) -> Self::B;
}

/// One number at a time. Loops over it are vectorised by the compiler.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

macro_rules! operations {
    ($(fn $name:ident($($x:ident: $type:ty),*) -> $result:ty { $body:expr })*) => {
        $(#[inline(always)] fn $name(self, $($x: $type),*) -> $result { $body })*
    };
}

impl Arithmetic for Scalar {
    type F = f64;
    type I = u64;
    type B = bool;

    operations! {
        fn number(value: f64) -> f64 { value }
        fn integer(value: i64) -> u64 { value as u64 }
        fn add(x: f64, y: f64) -> f64 { x + y }
        fn sub(x: f64, y: f64) -> f64 { x - y }
        fn mul(x: f64, y: f64) -> f64 { x * y }
        fn div(x: f64, y: f64) -> f64 { x / y }
        fn fma(x: f64, y: f64, z: f64) -> f64 { x.mul_add(y, z) }
        fn neg(x: f64) -> f64 { -x }
        fn abs(x: f64) -> f64 { x.abs() }
        fn copysign(x: f64, sign: f64) -> f64 { x.copysign(sign) }
        fn sqrt(x: f64) -> f64 { x.sqrt() }
        fn floor(x: f64) -> f64 { x.floor() }
        fn less(x: f64, y: f64) -> bool { x < y }
        fn equal(x: f64, y: f64) -> bool { x == y }
        fn both(x: bool, y: bool) -> bool { x & y }
        fn not(x: bool) -> bool { !x }
        fn choose(condition: bool, x: f64, y: f64) -> f64 { if condition { x } else { y } }
        fn bits(x: f64) -> u64 { x.to_bits() }
        fn of_bits(x: u64) -> f64 { f64::from_bits(x) }
        fn plus(x: u64, y: u64) -> u64 { x.wrapping_add(y) }
        fn minus(x: u64, y: u64) -> u64 { x.wrapping_sub(y) }
        fn mask(x: u64, y: u64) -> u64 { x & y }
        fn flip(x: u64, y: u64) -> u64 { x ^ y }
        fn up(x: u64, by: u32) -> u64 { x << by }
        fn down(x: u64, by: u32) -> u64 { x >> by }
        fn is_zero(x: u64) -> bool { x == 0 }
    }
}
