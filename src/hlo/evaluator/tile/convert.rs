//! Tile functions that convert between element types.
//!
//! Floating-point numbers become integers as on x86-64: cut towards zero, and what does not fit becomes the lowest
//! signed value before it is cut to fewer bits. Small float types are computed in `f32` and rounded after each
//! instruction.

use super::{PLAIN, SIMPLE, TileFn, map1};
use ff_tensor::{
    Complex64, Complex128, DataType, Float4E2M1Fn, Float8E4M3B11Fnuz, Float8E4M3Fn, Float8E4M3Fnuz,
    Float8E5M2, Float8E5M2Fnuz, Int2, Int4, UInt2, UInt4, f16,
};

/// A value on its way from one element type to another.
trait Source: Copy + 'static {
    fn to_i64(self) -> i64;
    fn to_i32(self) -> i32;
    fn to_u32(self) -> u32;
    fn to_u64(self) -> u64;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn is_true(self) -> bool;
    fn imag(self) -> f64 {
        0.0
    }
}

/// Implements [`Source`] for integers.
macro_rules! integer_source {
    ($($int:ident),*) => { $(
        impl Source for $int {
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn to_i32(self) -> i32 { self as i32 }
            #[inline(always)]
            fn to_u32(self) -> u32 { self as u32 }
            #[inline(always)]
            fn to_u64(self) -> u64 { self as u64 }
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn is_true(self) -> bool { self != 0 }
        }
    )* };
}

integer_source!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Implements [`Source`] for floating-point numbers.
macro_rules! float_source {
    ($($float:ident),*) => { $(
        impl Source for $float {
            #[inline(always)]
            fn to_i64(self) -> i64 {
                let fits = (-9223372036854775808.0..9223372036854775808.0).contains(&self);
                if fits { self as i64 } else { i64::MIN }
            }
            #[inline(always)]
            fn to_i32(self) -> i32 {
                let fits = (self > -2147483649.0) & (self < 2147483648.0);
                if fits { self as i32 } else { i32::MIN }
            }
            #[inline(always)]
            fn to_u32(self) -> u32 {
                let fits = (-9223372036854775808.0..4294967296.0).contains(&self);
                if fits { self as i64 as u32 } else { 1 << 31 }
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                if self < 9223372036854775808.0 { Source::to_i64(self) as u64 } else if self < 18446744073709551616.0 {
                    self as u64
                } else { 1 << 63 }
            }
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn is_true(self) -> bool { self != 0.0 }
        }
    )* };
}

float_source!(f32, f64);

/// Implements [`Source`] for complex numbers, by their real parts.
macro_rules! complex_source {
    ($($complex:ident),*) => { $(
        impl Source for $complex {
            fn to_i64(self) -> i64 { Source::to_i64(self.re) }
            fn to_i32(self) -> i32 { Source::to_i32(self.re) }
            fn to_u32(self) -> u32 { Source::to_u32(self.re) }
            fn to_u64(self) -> u64 { Source::to_u64(self.re) }
            fn to_f32(self) -> f32 { Source::to_f32(self.re) }
            fn to_f64(self) -> f64 { Source::to_f64(self.re) }
            fn is_true(self) -> bool { self.re != 0.0 || self.im != 0.0 }
            fn imag(self) -> f64 { Source::to_f64(self.im) }
        }
    )* };
}

complex_source!(Complex64, Complex128);

/// The function that converts from `S` to a computed type. Conversions to common types have wide loops where `S` is
/// common itself.
fn from<S: Source, const W: u8>(to: DataType) -> Option<TileFn> {
    Some(match to {
        DataType::BOOL => map1::<PLAIN, S, u8, _>(|x| u8::from(x.is_true())),
        DataType::INT8 | DataType::UINT8 => map1::<PLAIN, S, u8, _>(|x| x.to_i32() as u8),
        DataType::INT16 | DataType::UINT16 => map1::<PLAIN, S, u16, _>(|x| x.to_i32() as u16),
        DataType::INT32 => map1::<W, S, i32, _>(|x| x.to_i32()),
        DataType::INT64 => map1::<W, S, i64, _>(|x| x.to_i64()),
        DataType::UINT32 => map1::<PLAIN, S, u32, _>(|x| x.to_u32()),
        DataType::UINT64 => map1::<PLAIN, S, u64, _>(|x| x.to_u64()),
        DataType::FLOAT => map1::<W, S, f32, _>(|x| x.to_f32()),
        DataType::DOUBLE => map1::<W, S, f64, _>(|x| x.to_f64()),
        DataType::COMPLEX64 => {
            map1::<PLAIN, S, Complex64, _>(|x| Complex64::new(x.to_f32(), x.imag() as f32))
        }
        DataType::COMPLEX128 => map1::<PLAIN, S, Complex128, _>(|x| Complex128::new(x.to_f64(), x.imag())),
        _ => return None,
    })
}

/// The function that converts between two computed types.
pub(super) fn convert(from_type: DataType, to: DataType) -> Option<TileFn> {
    match from_type {
        DataType::BOOL => {
            if to == DataType::BOOL {
                return Some(map1::<SIMPLE, u8, u8, _>(|x| x));
            }
            from::<u8, SIMPLE>(to)
        }
        DataType::UINT8 => from::<u8, SIMPLE>(to),
        DataType::INT8 => from::<i8, PLAIN>(to),
        DataType::INT16 => from::<i16, PLAIN>(to),
        DataType::UINT16 => from::<u16, PLAIN>(to),
        DataType::INT32 => from::<i32, SIMPLE>(to),
        DataType::UINT32 => from::<u32, PLAIN>(to),
        DataType::INT64 => from::<i64, SIMPLE>(to),
        DataType::UINT64 => from::<u64, PLAIN>(to),
        DataType::FLOAT => from::<f32, SIMPLE>(to),
        DataType::DOUBLE => from::<f64, SIMPLE>(to),
        DataType::COMPLEX64 => from::<Complex64, PLAIN>(to),
        DataType::COMPLEX128 => from::<Complex128, PLAIN>(to),
        _ => None,
    }
}

/// The three functions of a type that is stored in fewer bits than it is computed in.
macro_rules! stored {
    ($stored:ty, $computed:ty, $load:expr, $store:expr) => {
        Stored {
            load: map1::<PLAIN, $stored, $computed, _>($load),
            store: map1::<PLAIN, $computed, $stored, _>($store),
            round: map1::<PLAIN, $computed, $computed, _>(|x| $load($store(x))),
        }
    };
}

/// How a stored type goes to its computed type and back.
#[derive(Clone, Copy)]
pub(super) struct Stored {
    /// From stored to computed.
    pub load: TileFn,
    /// From computed to stored, rounded.
    pub store: TileFn,
    /// From computed to computed, rounded to what can be stored.
    pub round: TileFn,
}

/// `f32` to the nearest bfloat16, ties to even, in bits that vectorise.
#[inline(always)]
fn to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = (bits >> 16) | 0x40;
    (if x.is_nan() { quiet } else { rounded }) as u16
}

#[inline(always)]
fn of_bf16(x: u16) -> f32 {
    f32::from_bits(u32::from(x) << 16)
}

/// The functions of a type that is not computed in itself.
pub(super) fn stored(dtype: DataType) -> Option<Stored> {
    Some(match dtype {
        DataType::BFLOAT16 => Stored {
            load: map1::<SIMPLE, u16, f32, _>(of_bf16),
            store: map1::<SIMPLE, f32, u16, _>(to_bf16),
            round: map1::<SIMPLE, f32, f32, _>(|x| of_bf16(to_bf16(x))),
        },
        DataType::HALF => stored!(f16, f32, f16::to_f32, f16::from_f32),
        DataType::FLOAT8_E5M2 => stored!(Float8E5M2, f32, Float8E5M2::to_f32, Float8E5M2::from_f32),
        DataType::FLOAT8_E4M3FN => stored!(Float8E4M3Fn, f32, Float8E4M3Fn::to_f32, Float8E4M3Fn::from_f32),
        DataType::FLOAT8_E4M3FNUZ => {
            stored!(
                Float8E4M3Fnuz,
                f32,
                Float8E4M3Fnuz::to_f32,
                Float8E4M3Fnuz::from_f32
            )
        }
        DataType::FLOAT8_E4M3B11FNUZ => {
            stored!(
                Float8E4M3B11Fnuz,
                f32,
                Float8E4M3B11Fnuz::to_f32,
                Float8E4M3B11Fnuz::from_f32
            )
        }
        DataType::FLOAT8_E5M2FNUZ => {
            stored!(
                Float8E5M2Fnuz,
                f32,
                Float8E5M2Fnuz::to_f32,
                Float8E5M2Fnuz::from_f32
            )
        }
        DataType::FLOAT4_E2M1FN => stored!(Float4E2M1Fn, f32, Float4E2M1Fn::to_f32, Float4E2M1Fn::from_f32),
        DataType::INT4 => stored!(Int4, i32, Int4::to_i32, Int4::from_i32),
        DataType::UINT4 => stored!(UInt4, i32, UInt4::to_i32, UInt4::from_i32),
        DataType::INT2 => stored!(Int2, i32, Int2::to_i32, Int2::from_i32),
        DataType::UINT2 => stored!(UInt2, i32, UInt2::to_i32, UInt2::from_i32),
        _ => return None,
    })
}
