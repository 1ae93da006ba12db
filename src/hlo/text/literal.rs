//! Elements of constants as text.

use ff_tensor::{
    Complex64, Complex128, DataType, Float4E2M1Fn, Float8E4M3B11Fnuz, Float8E4M3Fn, Float8E4M3Fnuz,
    Float8E5M2, Float8E5M2Fnuz, Int2, Int4, UInt2, UInt4, bf16, f16,
};

/// One element of the bytes of an array, as short as it reads back exactly.
pub(crate) fn format_element(dtype: DataType, bytes: &[u8], index: usize) -> String {
    let size = dtype.size();
    let Some(element) = bytes.get(index * size..(index + 1) * size) else {
        return String::from("?");
    };
    /// The element as a Rust number.
    macro_rules! number {
        ($t:ty) => {
            <$t>::from_ne_bytes(element.try_into().unwrap_or_default())
        };
    }
    let byte = element.first().copied().unwrap_or(0);
    match dtype {
        DataType::BOOL => String::from(if byte != 0 { "true" } else { "false" }),
        DataType::INT8 | DataType::QINT8 => (byte as i8).to_string(),
        DataType::UINT8 | DataType::QUINT8 => byte.to_string(),
        DataType::INT16 | DataType::QINT16 => number!(i16).to_string(),
        DataType::UINT16 | DataType::QUINT16 => number!(u16).to_string(),
        DataType::INT32 | DataType::QINT32 => number!(i32).to_string(),
        DataType::UINT32 => number!(u32).to_string(),
        DataType::INT64 => number!(i64).to_string(),
        DataType::UINT64 => number!(u64).to_string(),
        DataType::FLOAT => format_float(number!(f32)),
        DataType::DOUBLE => format_float(number!(f64)),
        DataType::HALF => format_float(f16::from_bits(number!(u16)).to_f32()),
        DataType::BFLOAT16 => format_float(bf16::from_bits(number!(u16)).to_f32()),
        DataType::COMPLEX64 => {
            let (re, im) = element.split_at(4);
            let part = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().unwrap_or_default());
            let z = Complex64::new(part(re), part(im));
            format!("({}, {})", format_float(z.re), format_float(z.im))
        }
        DataType::COMPLEX128 => {
            let (re, im) = element.split_at(8);
            let part = |bytes: &[u8]| f64::from_ne_bytes(bytes.try_into().unwrap_or_default());
            let z = Complex128::new(part(re), part(im));
            format!("({}, {})", format_float(z.re), format_float(z.im))
        }
        DataType::FLOAT8_E5M2 => format_float(Float8E5M2(byte).to_f32()),
        DataType::FLOAT8_E4M3FN => format_float(Float8E4M3Fn(byte).to_f32()),
        DataType::FLOAT8_E4M3FNUZ => format_float(Float8E4M3Fnuz(byte).to_f32()),
        DataType::FLOAT8_E4M3B11FNUZ => format_float(Float8E4M3B11Fnuz(byte).to_f32()),
        DataType::FLOAT8_E5M2FNUZ => format_float(Float8E5M2Fnuz(byte).to_f32()),
        DataType::FLOAT4_E2M1FN => format_float(Float4E2M1Fn(byte).to_f32()),
        DataType::INT4 => Int4(byte).to_i32().to_string(),
        DataType::UINT4 => UInt4(byte).to_i32().to_string(),
        DataType::INT2 => Int2(byte).to_i32().to_string(),
        DataType::UINT2 => UInt2(byte).to_i32().to_string(),
        _ => String::from("?"),
    }
}

/// A number in the shortest form that reads back exactly: `1`, `0.5`, `1e-07`, `inf`, `nan`.
fn format_float(value: impl std::fmt::Display + std::fmt::LowerExp + Into<f64> + Copy) -> String {
    let wide: f64 = value.into();
    if wide.is_nan() {
        return String::from("nan");
    }
    if wide.is_infinite() {
        return String::from(if wide > 0.0 { "inf" } else { "-inf" });
    }
    let magnitude = wide.abs();
    if magnitude != 0.0 && !(1e-5..1e16).contains(&magnitude) {
        return format!("{value:e}");
    }
    value.to_string()
}
