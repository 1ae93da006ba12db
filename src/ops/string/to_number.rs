//! `StringToNumber`: numbers from their text.

use super::ELEMENTWISE;
use super::case::strip;
use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{Result, Tensor, status};
use std::str::FromStr;

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "StringToNumber",
    kernels: &[Kernel::native(to_number)],
    ..ELEMENTWISE
}];

fn to_number(context: &mut KernelContext) -> Result<()> {
    let input = context.input(0)?;
    let output = crate::match_type!(context.output_type(0), (f32, f64, i32, i64, u32, u64), T => {
        let numbers = input
            .strings()?
            .iter()
            .map(|string| {
                T::parse_text(strip(string.as_bytes())).ok_or_else(|| {
                    status!(
                        InvalidArgument,
                        "StringToNumberOp could not correctly convert string: {}",
                        string.to_str_lossy()
                    )
                })
            })
            .collect::<Result<Vec<T>>>()?;
        Tensor::from_slice(input.shape().clone(), &numbers)
    })?;
    context.set_output(0, output)
}

/// A number that text is converted to.
trait FromText: Sized {
    fn parse_text(text: &[u8]) -> Option<Self>;
}

macro_rules! integers {
    ($($name:ty),*) => {$(
        impl FromText for $name {
            fn parse_text(text: &[u8]) -> Option<$name> {
                std::str::from_utf8(text).ok()?.parse().ok()
            }
        }
    )*};
}

integers!(i32, i64, u32, u64);

impl FromText for f32 {
    fn parse_text(text: &[u8]) -> Option<f32> {
        // A hexadecimal number of up to 53 bits is exact in f64; the conversion rounds once.
        parse_float(text, |exact| exact as f32)
    }
}

impl FromText for f64 {
    fn parse_text(text: &[u8]) -> Option<f64> {
        parse_float(text, |exact| exact)
    }
}

/// Decimal numbers, `inf`, `infinity` and `nan` in any case, and hexadecimal numbers as C writes them.
fn parse_float<T: FromStr>(text: &[u8], from_f64: impl Fn(f64) -> T) -> Option<T> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(hexadecimal) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let value = parse_hexadecimal(hexadecimal)?;
        return Some(from_f64(if text.starts_with('-') { -value } else { value }));
    }
    text.parse().ok()
}

/// The digits after `0x`, with an optional point and an optional power of two after `p`.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    Some(value * 2f64.powi(exponent.saturating_sub(4 * fraction.len() as i32)))
}

crate::op_cases! {
    floats: Case::op("StringToNumber")
        .input(strings(&[10], &["  1.5 ", "0x1p3", "0x10", "-inf", "1e5", "+1", "1e400", "infinity", ".5", "5."]))
        .gives(vector(&[1.5f32, 8.0, 16.0, f32::NEG_INFINITY, 1e5, 1.0, f32::INFINITY, f32::INFINITY, 0.5, 5.0]));
    doubles: Case::op("StringToNumber").attr("out_type", DataType::DOUBLE).input(strings(&[3], &["0.1", "INF", "-NAN"]))
        .gives(vector(&[0.1f64, f64::INFINITY, f64::NAN]));
    integers: Case::op("StringToNumber").attr("out_type", DataType::INT32).input(strings(&[4], &[" 12 ", "+5", "-0", "-5"]))
        .gives(vector(&[12, 5, 0, -5]));
    unsigned: Case::op("StringToNumber").attr("out_type", DataType::UINT64)
        .input(strings(&[], &["18446744073709551615"])).gives(scalar(u64::MAX));
    empty: Case::op("StringToNumber").input(strings(&[], &[""])).fails(Code::InvalidArgument);
    rest: Case::op("StringToNumber").input(strings(&[], &["1.5f"])).fails(Code::InvalidArgument);
    too_large: Case::op("StringToNumber").attr("out_type", DataType::INT32).input(strings(&[], &["2147483648"]))
        .fails(Code::InvalidArgument);
    not_an_integer: Case::op("StringToNumber").attr("out_type", DataType::INT64).input(strings(&[], &["1.0"]))
        .fails(Code::InvalidArgument);
    nothing: Case::op("StringToNumber").input(strings(&[0], &[])).gives(vector::<f32>(&[]));
}
