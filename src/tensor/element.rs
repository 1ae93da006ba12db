//! Rust types for the elements of tensors.
//!
//! An [`Element`] is plain bytes for which every bit pattern is a value; so bool is [`Bool`], a byte.

use crate::DataType;
use half::{bf16, f16};

/// Complex number of two `f32`.
pub type Complex64 = num_complex::Complex<f32>;
/// Complex number of two `f64`.
pub type Complex128 = num_complex::Complex<f64>;

/// A plain element type.
///
/// # Safety
/// The type is `Copy`, has no padding, every bit pattern is a value, and its size is `DTYPE.size()`.
pub unsafe trait Element: Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// The tensor type with elements of this Rust type.
    const DTYPE: DataType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {
        $(
            // SAFETY: a number type of the size that `DataType::size` lists; all bit patterns are values.
            unsafe impl Element for $rust { const DTYPE: DataType = DataType::$dtype; }
        )*
    };
}

/// A one-byte or plain wrapper that gives a storage type a meaning of its own.
macro_rules! wrappers {
    ($($(#[$doc:meta])* $name:ident($storage:ty)),* $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            #[repr(transparent)]
            pub struct $name(pub $storage);
        )*
    };
}

wrappers! {
    /// A truth value: zero is false, anything else is true.
    Bool(u8),
    /// Quantized signed byte.
    QInt8(i8),
    /// Quantized unsigned byte.
    QUInt8(u8),
    /// Quantized 16-bit integer.
    QInt16(i16),
    /// Quantized unsigned 16-bit integer.
    QUInt16(u16),
    /// Quantized 32-bit integer.
    QInt32(i32),
    /// Signed 4-bit integer in the low half of a byte.
    Int4(u8),
    /// Unsigned 4-bit integer in the low half of a byte.
    UInt4(u8),
    /// Signed 2-bit integer in the low bits of a byte.
    Int2(u8),
    /// Unsigned 2-bit integer in the low bits of a byte.
    UInt2(u8),
    /// 8-bit float, 5 exponent bits, IEEE-like with infinities.
    Float8E5M2(u8),
    /// 8-bit float, 4 exponent bits, no infinities.
    Float8E4M3Fn(u8),
    /// 8-bit float, 4 exponent bits, bias 8, no infinities, no negative zero.
    Float8E4M3Fnuz(u8),
    /// 8-bit float, 4 exponent bits, bias 11, no infinities, no negative zero.
    Float8E4M3B11Fnuz(u8),
    /// 8-bit float, 5 exponent bits, bias 16, no infinities, no negative zero.
    Float8E5M2Fnuz(u8),
    /// 4-bit float in the low half of a byte.
    Float4E2M1Fn(u8),
}

elements! {
    f32 => FLOAT, f64 => DOUBLE, i32 => INT32, u8 => UINT8, i16 => INT16, i8 => INT8,
    Complex64 => COMPLEX64, i64 => INT64, Bool => BOOL, QInt8 => QINT8, QUInt8 => QUINT8,
    QInt32 => QINT32, bf16 => BFLOAT16, QInt16 => QINT16, QUInt16 => QUINT16, u16 => UINT16,
    Complex128 => COMPLEX128, f16 => HALF, u32 => UINT32, u64 => UINT64,
    Float8E5M2 => FLOAT8_E5M2, Float8E4M3Fn => FLOAT8_E4M3FN, Float8E4M3Fnuz => FLOAT8_E4M3FNUZ,
    Float8E4M3B11Fnuz => FLOAT8_E4M3B11FNUZ, Float8E5M2Fnuz => FLOAT8_E5M2FNUZ,
    Int4 => INT4, UInt4 => UINT4, Int2 => INT2, UInt2 => UINT2, Float4E2M1Fn => FLOAT4_E2M1FN,
}

impl Bool {
    /// True.
    pub const TRUE: Bool = Bool(1);
    /// False.
    pub const FALSE: Bool = Bool(0);

    /// The truth value.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(u8::from(value))
    }
}
