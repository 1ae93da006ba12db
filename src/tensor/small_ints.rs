//! Numbers of the 4-bit and 2-bit integer types to and from `i32`.
//!
//! To the small type: the low bits, as an integer cast does. From it: sign or zero extension; the high bits of the
//! stored byte do not matter.

use crate::element::{Int2, Int4, UInt2, UInt4};

impl Int4 {
    /// The value, -8 to 7.
    pub fn to_i32(self) -> i32 {
        i32::from(((self.0 << 4) as i8) >> 4)
    }

    /// The number with these low four bits.
    pub fn from_i32(value: i32) -> Int4 {
        Int4(value as u8 & 0xf)
    }
}

impl UInt4 {
    /// The value, 0 to 15.
    pub fn to_i32(self) -> i32 {
        i32::from(self.0 & 0xf)
    }

    /// The number with these low four bits.
    pub fn from_i32(value: i32) -> UInt4 {
        UInt4(value as u8 & 0xf)
    }
}

impl Int2 {
    /// The value, -2 to 1.
    pub fn to_i32(self) -> i32 {
        i32::from(((self.0 << 6) as i8) >> 6)
    }

    /// The number with these low two bits.
    pub fn from_i32(value: i32) -> Int2 {
        Int2(value as u8 & 3)
    }
}

impl UInt2 {
    /// The value, 0 to 3.
    pub fn to_i32(self) -> i32 {
        i32::from(self.0 & 3)
    }

    /// The number with these low two bits.
    pub fn from_i32(value: i32) -> UInt2 {
        UInt2(value as u8 & 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fnv(data: impl IntoIterator<Item = u8>) -> u64 {
        data.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }

    /// Checksums from tools/reference/small_floats.py: all patterns to i32, and -40..40 to the type.
    macro_rules! check {
        ($type:ident, $decoded:expr, $encoded:expr) => {
            let decoded = (0..=255u8).flat_map(|code| $type(code).to_i32().to_le_bytes());
            assert_eq!(fnv(decoded), $decoded);
            assert_eq!(
                fnv((-40..40).map(|value| $type::from_i32(value).0)),
                $encoded
            );
        };
    }

    #[test]
    fn equal_to_the_reference() {
        check!(Int4, 0xc000a152e238f425, 0x6e952978f0cf5675);
        check!(UInt4, 0x00e55a2f94c6c325, 0x6e952978f0cf5675);
        check!(Int2, 0xecd94b7cd91a8125, 0xe30a82c53dc38c15);
        check!(UInt2, 0xa184c39e15d83325, 0xe30a82c53dc38c15);
    }
}
