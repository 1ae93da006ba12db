//! Numbers to text and back, and Base64.

use super::map;
use super::text::strip;
use crate::match_type;
use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_tensor::{
    Bool, Complex64, Complex128, DataType, Result, TString, Tensor, bail, bf16, ensure, f16, status,
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "AsString",
        kernels: &[Kernel::native(as_string)],
        ..CONVERT
    },
    &Op {
        name: "StringToNumber",
        kernels: &[Kernel::native(to_number)],
        ..CONVERT
    },
    &Op {
        name: "EncodeBase64",
        kernels: &[Kernel::native(encode)],
        ..CONVERT
    },
    &Op {
        name: "DecodeBase64",
        kernels: &[Kernel::native(decode)],
        ..CONVERT
    },
];

const CONVERT: Op = Op {
    shape: shapes::unchanged,
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// How a number is written, as C's `printf` has it.
struct Style {
    precision: Option<usize>,
    form: Form,
    width: usize,
    fill: Option<char>,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Fixed,
    Scientific,
    Shortest,
}

impl Style {
    fn of(context: &KernelContext) -> Result<Style> {
        let attrs = context.attrs();
        let (precision, width, fill) = (
            attrs.int("precision")?,
            attrs.int("width")?,
            attrs.string("fill")?,
        );
        let form = match (attrs.bool("scientific")?, attrs.bool("shortest")?) {
            (true, true) => bail!(
                InvalidArgument,
                "Cannot select both scientific and shortest notation"
            ),
            (true, false) => Form::Scientific,
            (false, true) => Form::Shortest,
            (false, false) => Form::Fixed,
        };
        let dtype = context.node().input_types[0].base();
        let fractional = dtype.is_floating() || dtype.is_complex();
        ensure!(
            fractional || (form == Form::Fixed && precision < 0),
            InvalidArgument,
            "precision and notation not supported for datatype {dtype}"
        );
        let mut characters = fill.chars();
        let (fill, more) = (characters.next(), characters.next());
        ensure!(
            more.is_none(),
            InvalidArgument,
            "Fill string must be one or fewer characters"
        );
        ensure!(
            fill.is_none_or(|fill| " +-0#".contains(fill)),
            InvalidArgument,
            "Fill argument not supported: \"{}\"",
            fill.unwrap_or(' ')
        );
        Ok(Style {
            precision: usize::try_from(precision).ok(),
            form,
            width: usize::try_from(width).unwrap_or(0),
            fill,
        })
    }

    /// A number's digits with sign and padding.
    fn padded(&self, negative: bool, digits: &str, finite: bool) -> String {
        let sign = match self.fill {
            _ if negative => "-",
            Some('+') => "+",
            Some(' ') => " ",
            _ => "",
        };
        let missing = self.width.saturating_sub(sign.len() + digits.len());
        match self.fill {
            Some('0') if finite => format!("{sign}{}{digits}", "0".repeat(missing)),
            Some('-') => format!("{sign}{digits}{}", " ".repeat(missing)),
            _ => format!("{}{sign}{digits}", " ".repeat(missing)),
        }
    }

    fn float(&self, value: f64) -> String {
        let negative = value.is_sign_negative() && !value.is_nan();
        if !value.is_finite() {
            let word = if value.is_nan() { "nan" } else { "inf" };
            let sign = value.is_sign_negative();
            return self.padded(sign, word, false);
        }
        let (value, precision) = (value.abs(), self.precision.unwrap_or(6));
        let digits = match self.form {
            Form::Fixed => format!("{value:.precision$}"),
            Form::Scientific => scientific(value, precision),
            Form::Shortest => shortest(value, precision.max(1)),
        };
        self.padded(negative, &digits, true)
    }

    fn integer(&self, value: i128) -> String {
        self.padded(value < 0, &value.unsigned_abs().to_string(), true)
    }
}

/// C's `%e`: at least two digits in the exponent.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// C's `%g`: fixed or scientific, whichever is shorter, without trailing zeros.
fn shortest(value: f64, precision: usize) -> String {
    let text = format!("{value:.*e}", precision - 1);
    let exponent: i32 = text
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let text = scientific(value, precision - 1);
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        return format!("{}e{exponent}", trim(digits));
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.decimals$}"))
}

fn as_string(context: &mut KernelContext) -> Result<()> {
    let style = Style::of(context)?;
    let input = context.take_input(0)?;
    let texts: Vec<String> = match input.dtype() {
        DataType::STRING => return context.set_output(0, input),
        DataType::BOOL => input
            .as_slice::<Bool>()?
            .iter()
            .map(|x| x.get().to_string())
            .collect(),
        DataType::FLOAT => input
            .as_slice::<f32>()?
            .iter()
            .map(|&x| style.float(f64::from(x)))
            .collect(),
        DataType::DOUBLE => input.as_slice::<f64>()?.iter().map(|&x| style.float(x)).collect(),
        DataType::HALF => input
            .as_slice::<f16>()?
            .iter()
            .map(|&x| style.float(f64::from(x)))
            .collect(),
        DataType::BFLOAT16 => input
            .as_slice::<bf16>()?
            .iter()
            .map(|&x| style.float(f64::from(x)))
            .collect(),
        DataType::COMPLEX64 => {
            let pair = |x: &Complex64| {
                format!(
                    "({},{})",
                    style.float(f64::from(x.re)),
                    style.float(f64::from(x.im))
                )
            };
            input.as_slice::<Complex64>()?.iter().map(pair).collect()
        }
        DataType::COMPLEX128 => {
            let pair = |x: &Complex128| format!("({},{})", style.float(x.re), style.float(x.im));
            input.as_slice::<Complex128>()?.iter().map(pair).collect()
        }
        DataType::VARIANT => input
            .variants()?
            .iter()
            .map(|variant| format!("{variant:?}"))
            .collect(),
        dtype => match_type!(dtype, (i8, i16, i32, i64, u8, u16, u32, u64), T => {
            Ok(input.as_slice::<T>()?.iter().map(|&x| style.integer(x as i128)).collect::<Vec<_>>())
        })?,
    };
    let texts = texts.into_iter().map(TString::from).collect();
    context.set_output(0, Tensor::from_strings(input.shape().clone(), texts)?)
}

fn to_number(context: &mut KernelContext) -> Result<()> {
    let input = context.take_input(0)?;
    let mut output = context.allocate(context.output_type(0), input.shape().clone())?;
    match_type!(output.dtype(), (f32, f64, i32, i64, u32, u64), T => {
        for (slot, text) in output.as_mut_slice::<T>()?.iter_mut().zip(input.strings()?) {
            let parsed = std::str::from_utf8(strip(text.as_bytes())).ok().and_then(|text| text.parse::<T>().ok());
            *slot = parsed.ok_or_else(|| {
                let text = text.to_str_lossy();
                status!(InvalidArgument, "StringToNumberOp could not correctly convert string: {text}")
            })?;
        }
        Ok(())
    })?;
    context.set_output(0, output)
}

/// The URL-safe alphabet.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn encode(context: &mut KernelContext) -> Result<()> {
    let pad = context.attrs().bool("pad")?;
    let encoded = map(context.input(0)?, |bytes| {
        let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
        for group in bytes.chunks(3) {
            let word =
                group.iter().fold(0u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - group.len()));
            for place in 0..=group.len() {
                text.push(ALPHABET[(word >> (18 - 6 * place) & 63) as usize]);
            }
            if pad {
                text.resize(text.len() + 3 - group.len(), b'=');
            }
        }
        Ok(text[..].into())
    })?;
    context.set_output(0, encoded)
}

fn decode(context: &mut KernelContext) -> Result<()> {
    let decoded = map(context.input(0)?, |text| {
        let invalid = || status!(InvalidArgument, "Invalid character found in base64.");
        let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
        ensure!(
            padding == 0 || (padding <= 2 && text.len().is_multiple_of(4)),
            InvalidArgument,
            "Invalid base64 padding."
        );
        let text = &text[..text.len() - padding];
        ensure!(
            text.len() % 4 != 1,
            InvalidArgument,
            "Base64 string length cannot be 1 modulo 4"
        );
        let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
        for group in text.chunks(4) {
            let mut word = 0u32;
            for place in 0..4 {
                let digit = match group.get(place) {
                    Some(byte) => ALPHABET
                        .iter()
                        .position(|digit| digit == byte)
                        .ok_or_else(invalid)?,
                    None => 0,
                };
                word = word << 6 | digit as u32;
            }
            bytes.extend(&word.to_be_bytes()[1..group.len()]);
        }
        Ok(bytes[..].into())
    })?;
    context.set_output(0, decoded)
}

crate::op_cases! {
    integers: Case::op("AsString").input(vector(&[0, -5, i32::MAX])).attr("width", 4i64).attr("fill", "0");
    integers_left: Case::op("AsString").input(vector(&[0u8, 5])).attr("width", 3i64).attr("fill", "-");
    integers_with_precision: Case::op("AsString").input(vector(&[1])).attr("precision", 2i64).fails(Code::InvalidArgument);
    floats: Case::op("AsString").input(vector(&[0.1f32, -2.5, f32::INFINITY, -0.0, 1e10]));
    floats_scientific: Case::op("AsString").input(vector(&[0.1f64, -2.5e-12, 0.0])).attr("scientific", true).attr("precision", 3i64);
    floats_shortest: Case::op("AsString").input(vector(&[0.1f64, 1e-5, 123456789.0, 100.0, 0.0])).attr("shortest", true);
    floats_wide: Case::op("AsString").input(vector(&[0.1f32, -2.5])).attr("width", 12i64).attr("fill", "+");
    truths: Case::op("AsString").input(bools(&[2], &[true, false])).gives(strings(&[2], &["true", "false"]));
    complex: Case::op("AsString").input(t(&[1], &[ff_tensor::Complex64::new(1.0, -2.0)])).attr("precision", 1i64);
    long_fill: Case::op("AsString").input(vector(&[1])).attr("fill", "ab").fails(Code::InvalidArgument);
    numbers: Case::op("StringToNumber").input(strings(&[4], &["1.5", " -2e3 ", "inf", ".25"])).gives(vector(&[1.5f32, -2000.0, f32::INFINITY, 0.25]));
    whole_numbers: Case::op("StringToNumber").input(strings(&[2], &["12", "-7"])).attr("out_type", DataType::INT64);
    no_number: Case::op("StringToNumber").input(strings(&[1], &["1x"])).fails(Code::InvalidArgument);
    too_large: Case::op("StringToNumber").input(strings(&[1], &["3000000000"])).attr("out_type", DataType::INT32).fails(Code::InvalidArgument);
    encoded: Case::op("EncodeBase64").input(strings(&[4], &["", "a", "ab", "abc?"]));
    encoded_padded: Case::op("EncodeBase64").input(strings(&[3], &["a", "ab", "abc"])).attr("pad", true);
    decoded: Case::op("DecodeBase64").input(strings(&[3], &["YQ", "YWI=", "YWJjPw"])).gives(strings(&[3], &["a", "ab", "abc?"]));
    decoded_badly: Case::op("DecodeBase64").input(strings(&[1], &["Y*"])).fails(Code::InvalidArgument);
}
