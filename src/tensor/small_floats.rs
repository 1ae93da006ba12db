//! Numbers of the 8-bit and 4-bit float types to and from `f32` and `f64`.
//!
//! To the small type: round to nearest, ties to even, in one rounding also from `f64`. Values too large become
//! infinity (E5M2), NaN (the other 8-bit types), or the largest value (4 bits). From the small type: exact.
//! Equal to the reference on every bit, except the payload of a NaN on the wide side.

use crate::element::{
    Float4E2M1Fn, Float8E4M3B11Fnuz, Float8E4M3Fn, Float8E4M3Fnuz, Float8E5M2, Float8E5M2Fnuz,
};

/// What the codes at the edge of a format mean.
#[derive(Clone, Copy, PartialEq)]
enum Edge {
    /// An infinity, and NaNs above it.
    Infinity,
    /// One NaN above the largest value.
    Nan,
    /// No negative zero: its code is the NaN.
    NanAtNegativeZero,
    /// Neither infinity nor NaN.
    Saturates,
}

#[derive(Clone, Copy)]
struct Format {
    mantissa_bits: u32,
    bias: i32,
    /// The sign's bit.
    sign: u8,
    /// Code of the largest finite value.
    max: u8,
    edge: Edge,
}

const fn format(mantissa_bits: u32, bias: i32, max: u8, edge: Edge) -> Format {
    Format {
        mantissa_bits,
        bias,
        sign: 0x80,
        max,
        edge,
    }
}

const E5M2: Format = format(2, 15, 0x7b, Edge::Infinity);
const E4M3FN: Format = format(3, 7, 0x7e, Edge::Nan);
const E4M3FNUZ: Format = format(3, 8, 0x7f, Edge::NanAtNegativeZero);
const E4M3B11FNUZ: Format = format(3, 11, 0x7f, Edge::NanAtNegativeZero);
const E5M2FNUZ: Format = format(2, 16, 0x7f, Edge::NanAtNegativeZero);
const E2M1FN: Format = Format {
    sign: 8,
    ..format(1, 1, 7, Edge::Saturates)
};

/// Two to the power of `exponent`, for exponents of normal `f64` values.
const fn exp2(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

const fn decode(format: Format, code: u8) -> f32 {
    // Not only the bit of the sign: what lies above the four bits of the smallest type counts as a sign too.
    let negative = code >= format.sign;
    let magnitude = code & (format.sign - 1);
    if matches!(format.edge, Edge::NanAtNegativeZero) && code == format.sign {
        return f32::NAN;
    }
    if magnitude > format.max {
        let infinite = matches!(format.edge, Edge::Infinity) && magnitude == format.max + 1;
        return match (infinite, negative) {
            (false, _) => f32::NAN,
            (true, false) => f32::INFINITY,
            (true, true) => f32::NEG_INFINITY,
        };
    }
    let exponent = (magnitude >> format.mantissa_bits) as i32;
    let fraction = (magnitude & ((1 << format.mantissa_bits) - 1)) as i32;
    let (mantissa, exponent) = if exponent == 0 {
        (fraction, 1)
    } else {
        (fraction + (1 << format.mantissa_bits), exponent)
    };
    let value = mantissa as f64 * exp2(exponent - format.bias - format.mantissa_bits as i32);
    (if negative { -value } else { value }) as f32
}

const fn table(format: Format) -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = decode(format, code as u8);
        code += 1;
    }
    table
}

fn encode(format: Format, value: f64) -> u8 {
    let sign = if value.is_sign_negative() { format.sign } else { 0 };
    if value.is_nan() {
        return match format.edge {
            Edge::Infinity => sign | (format.max + 3),
            Edge::Nan => sign | (format.max + 1),
            Edge::NanAtNegativeZero => format.sign,
            Edge::Saturates => sign ^ format.sign,
        };
    }
    let overflow = match format.edge {
        Edge::Infinity | Edge::Nan => sign | (format.max + 1),
        Edge::NanAtNegativeZero => format.sign,
        Edge::Saturates => sign | format.max,
    };
    if value.is_infinite() {
        return overflow;
    }
    let magnitude = value.abs();
    let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
    let exponent = exponent.max(1 - format.bias);
    // In units of the last place; for a normal value this includes the leading one, which then counts as one exponent.
    let units = (magnitude * exp2(format.mantissa_bits as i32 - exponent)).round_ties_even() as i64;
    let code = (i64::from(exponent + format.bias - 1) << format.mantissa_bits) + units;
    if code > i64::from(format.max) {
        return overflow;
    }
    if code == 0 && format.edge == Edge::NanAtNegativeZero {
        return 0;
    }
    sign | code as u8
}

macro_rules! conversions {
    ($($type:ident: $format:ident),* $(,)?) => {
        $(
            impl $type {
                /// The value, exactly.
                pub fn to_f32(self) -> f32 {
                    static VALUES: [f32; 256] = table($format);
                    VALUES[usize::from(self.0)]
                }

                /// The nearest number of this type, ties to even.
                pub fn from_f32(value: f32) -> Self {
                    Self(encode($format, f64::from(value)))
                }

                /// The nearest number of this type, ties to even, in one rounding.
                pub fn from_f64(value: f64) -> Self {
                    Self(encode($format, value))
                }
            }
        )*
    };
}

conversions! {
    Float8E5M2: E5M2,
    Float8E4M3Fn: E4M3FN,
    Float8E4M3Fnuz: E4M3FNUZ,
    Float8E4M3B11Fnuz: E4M3B11FNUZ,
    Float8E5M2Fnuz: E5M2FNUZ,
    Float4E2M1Fn: E2M1FN,
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn fnv(data: impl IntoIterator<Item = u8>) -> u64 {
        data.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }

    fn sweep32() -> impl Iterator<Item = f32> {
        (0..=u32::MAX).step_by(65521).map(f32::from_bits)
    }

    fn sweep64() -> impl Iterator<Item = f64> {
        let steps = || (-4096..4096).map(f64::from);
        let scaled = (-28..8).flat_map(move |exponent| steps().map(move |step| step * exp2(exponent)));
        scaled.chain(steps().map(|step| (step + exp2(-30)) / 16.0))
    }

    /// Checksums from tools/reference/small_floats.py: all patterns to f32, a sweep of f32, a sweep of f64.
    macro_rules! check {
        ($type:ident, $decoded:expr, $from32:expr, $from64:expr, $specials:expr) => {
            let decoded = (0..=255u8).map(|code| $type(code).to_f32());
            let decoded = decoded.map(|value| if value.is_nan() { f32::NAN } else { value });
            assert_eq!(fnv(decoded.flat_map(f32::to_le_bytes)), $decoded);
            assert_eq!(
                fnv(sweep32().map(|value| $type::from_f32(value).0)),
                $from32
            );
            assert_eq!(
                fnv(sweep64().map(|value| $type::from_f64(value).0)),
                $from64
            );
            let specials = [
                f32::NAN,
                -f32::NAN,
                f32::INFINITY,
                -f32::INFINITY,
                1e9,
                -1e9,
                -0.0,
                1e-30,
                -1e-30,
            ];
            assert_eq!(specials.map(|value| $type::from_f32(value).0), $specials);
            for code in 0..=255u8 {
                let value = $type(code).to_f32();
                assert!(value.is_nan() || $type::from_f32(value).to_f32() == value);
            }
        };
    }

    #[test]
    fn equal_to_the_reference() {
        let uz = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0];
        check!(
            Float8E5M2,
            0x6c1e56b6fb09c905,
            0x9543993c7df32a5f,
            0x4ff150e614906772,
            [0x7e, 0xfe, 0x7c, 0xfc, 0x7c, 0xfc, 0x80, 0, 0x80]
        );
        check!(
            Float8E4M3Fn,
            0xdad1d9c50f749ca5,
            0xf8ae1c4b76a835e4,
            0x5f838e29c249c5a5,
            [0x7f, 0xff, 0x7f, 0xff, 0x7f, 0xff, 0x80, 0, 0x80]
        );
        check!(
            Float8E4M3Fnuz,
            0xf51851cb11c63018,
            0xa5e3b2d1635e2053,
            0xe5b11b5f8de28772,
            uz
        );
        check!(
            Float8E4M3B11Fnuz,
            0xd90d7a600530d158,
            0x322460a7a2c18d64,
            0x9f01ebb4e17afd8a,
            uz
        );
        check!(
            Float8E5M2Fnuz,
            0x94ae6fc493d49818,
            0x78a61e57f3a92249,
            0xd03052e08abb8e0b,
            uz
        );
        check!(
            Float4E2M1Fn,
            0xdbb49de4de702825,
            0x7f76194f88529fb0,
            0x46b1544ef5422a4b,
            [8, 0, 7, 15, 7, 15, 8, 0, 8]
        );
    }
}
