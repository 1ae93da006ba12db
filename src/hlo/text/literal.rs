//! Elements of constants as text.

use ff_tensor::{
    Complex64, Complex128, DataType, Float4E2M1Fn, Float8E4M3B11Fnuz, Float8E4M3Fn, Float8E4M3Fnuz,
    Float8E5M2, Float8E5M2Fnuz, Int2, Int4, Result, Shape, Tensor, UInt2, UInt4, bf16, ensure, f16, status,
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

/// Prints the elements of a constant, nested in braces by axes.
pub(super) fn print_literal(out: &mut String, value: &Tensor) {
    let dims: Vec<usize> = value.dims().iter().map(|&extent| extent as usize).collect();
    let bytes = value.bytes();
    if dims.is_empty() {
        out.push_str(&format_element(value.dtype(), bytes, 0));
        return;
    }
    if value.num_elements() == 0 {
        out.push_str("{}");
        return;
    }
    for index in 0..value.num_elements() {
        // An axis opens where everything behind it is at its start, and closes where everything is at its end.
        let (mut inner, mut opens, mut closes) = (1, 0, 0);
        for &extent in dims.iter().rev() {
            inner *= extent;
            opens += usize::from(index % inner == 0);
            closes += usize::from((index + 1) % inner == 0);
        }
        if index > 0 {
            out.push_str(", ");
        }
        out.push_str(&"{".repeat(opens));
        out.push_str(&format_element(value.dtype(), bytes, index));
        out.push_str(&"}".repeat(closes));
    }
}

/// Reads the elements that [`print_literal`] wrote. INVALID_ARGUMENT when they do not fit the type or the extents.
pub(super) fn parse_literal(text: &str, dtype: DataType, shape: Shape) -> Result<Tensor> {
    let count = shape.num_elements();
    let cleaned = text.replace(['{', '}'], " ");
    let elements = split_elements(&cleaned);
    ensure!(
        elements.len() == count,
        InvalidArgument,
        "A constant of shape {shape} has {} elements",
        elements.len()
    );
    let mut value = Tensor::allocate(dtype, shape)?;
    let size = dtype.size();
    let bytes = value.bytes_mut().unwrap_or_default();
    for (element, out) in elements.iter().zip(bytes.chunks_exact_mut(size.max(1))) {
        parse_element(element, dtype, out)
            .ok_or_else(|| status!(InvalidArgument, "{element} is not an element of type {dtype}"))?;
    }
    Ok(value)
}

/// The elements between commas; those of complex numbers, in parentheses, stay together.
fn split_elements(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    if parts == [""] { Vec::new() } else { parts }
}

fn parse_element(text: &str, dtype: DataType, out: &mut [u8]) -> Option<()> {
    /// Stores a number of a Rust type.
    macro_rules! number {
        ($t:ty) => {
            out.copy_from_slice(&text.parse::<$t>().ok()?.to_ne_bytes())
        };
    }
    match dtype {
        DataType::BOOL => {
            out[0] = match text {
                "true" | "1" => 1,
                "false" | "0" => 0,
                _ => return None,
            }
        }
        DataType::INT8 | DataType::QINT8 => number!(i8),
        DataType::UINT8 | DataType::QUINT8 => number!(u8),
        DataType::INT16 | DataType::QINT16 => number!(i16),
        DataType::UINT16 | DataType::QUINT16 => number!(u16),
        DataType::INT32 | DataType::QINT32 => number!(i32),
        DataType::UINT32 => number!(u32),
        DataType::INT64 => number!(i64),
        DataType::UINT64 => number!(u64),
        DataType::FLOAT => number!(f32),
        DataType::DOUBLE => number!(f64),
        DataType::HALF => out.copy_from_slice(&f16::from_f32(text.parse().ok()?).to_bits().to_ne_bytes()),
        DataType::BFLOAT16 => {
            out.copy_from_slice(&bf16::from_f32(text.parse().ok()?).to_bits().to_ne_bytes())
        }
        DataType::COMPLEX64 | DataType::COMPLEX128 => {
            let (re, im) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
            let part = if dtype == DataType::COMPLEX64 {
                DataType::FLOAT
            } else {
                DataType::DOUBLE
            };
            let (first, second) = out.split_at_mut(part.size());
            parse_element(re.trim(), part, first)?;
            parse_element(im.trim(), part, second)?;
        }
        DataType::FLOAT8_E5M2 => out[0] = Float8E5M2::from_f32(text.parse().ok()?).0,
        DataType::FLOAT8_E4M3FN => out[0] = Float8E4M3Fn::from_f32(text.parse().ok()?).0,
        DataType::FLOAT8_E4M3FNUZ => out[0] = Float8E4M3Fnuz::from_f32(text.parse().ok()?).0,
        DataType::FLOAT8_E4M3B11FNUZ => out[0] = Float8E4M3B11Fnuz::from_f32(text.parse().ok()?).0,
        DataType::FLOAT8_E5M2FNUZ => out[0] = Float8E5M2Fnuz::from_f32(text.parse().ok()?).0,
        DataType::FLOAT4_E2M1FN => out[0] = Float4E2M1Fn::from_f32(text.parse().ok()?).0,
        DataType::INT4 => out[0] = Int4::from_i32(text.parse().ok()?).0,
        DataType::UINT4 => out[0] = UInt4::from_i32(text.parse().ok()?).0,
        DataType::INT2 => out[0] = Int2::from_i32(text.parse().ok()?).0,
        DataType::UINT2 => out[0] = UInt2::from_i32(text.parse().ok()?).0,
        _ => return None,
    }
    Some(())
}
