//! `AsString`: elements as text, in the formats of C's `printf`.

use super::ELEMENTWISE;
use ff_op::{Attrs, Kernel, KernelContext, Op, PrepareContext, Prepared};
use ff_tensor::{
    Bool, Complex64, Complex128, DataType, Element, Result, TString, Tensor, bail, bf16, ensure, f16,
    format_general,
};
use std::fmt::Display;
use std::sync::Arc;

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "AsString",
    prepare: Some(prepare),
    kernels: &[Kernel::native(as_string)],
    ..ELEMENTWISE
}];

/// What `printf` is told.
struct Format {
    /// `+`, ` `, `0`, `-`, or 0 for none.
    flag: u8,
    width: usize,
    precision: Option<usize>,
    scientific: bool,
    shortest: bool,
}

/// Reads the attributes. INVALID_ARGUMENT for combinations that the type does not allow.
fn prepare(context: &PrepareContext) -> Result<Prepared> {
    let attrs: &Attrs = &context.node.attrs;
    let dtype = attrs.dtype("T")?;
    let (scientific, shortest) = (attrs.bool("scientific")?, attrs.bool("shortest")?);
    let (precision, width) = (attrs.int("precision")?, attrs.int("width")?);
    for (name, value) in [("precision", precision), ("width", width)] {
        ensure!(
            i32::try_from(value).is_ok(),
            InvalidArgument,
            "Attr {name} has value {value} out of range for an int32"
        );
    }
    let fractional = dtype.is_floating() || dtype.is_complex() || dtype == DataType::STRING;
    if !fractional {
        ensure!(
            !(scientific || shortest),
            InvalidArgument,
            "scientific and shortest format not supported for datatype {dtype}"
        );
        ensure!(
            precision < 0,
            InvalidArgument,
            "precision not supported for datatype {dtype}"
        );
    }
    let fill = attrs.bytes("fill")?;
    ensure!(
        fill.len() <= 1,
        InvalidArgument,
        "Fill string must be one or fewer characters"
    );
    ensure!(
        !(scientific && shortest),
        InvalidArgument,
        "Cannot select both scientific and shortest notation"
    );
    let flag = fill.first().copied().unwrap_or(0);
    ensure!(
        matches!(flag, 0 | b'+' | b' ' | b'0' | b'-'),
        InvalidArgument,
        "Fill argument not supported: \"{}\"",
        String::from_utf8_lossy(fill)
    );
    Ok(Arc::new(Format {
        flag,
        width: usize::try_from(width).unwrap_or(0),
        precision: usize::try_from(precision)
            .ok()
            .map(|digits| digits.min(usize::from(u16::MAX))),
        scientific,
        shortest,
    }))
}

fn as_string(context: &mut KernelContext) -> Result<()> {
    let format = context.prepared::<Format>()?;
    let input = context.input(0)?;
    let texts = match input.dtype() {
        DataType::STRING => {
            let strings = input.strings()?.iter();
            crate::wide::try_collected(strings.map(|string| format.string(string.as_bytes())))?
        }
        DataType::BOOL => map(input, |x: Bool| Ok(x.get().to_string().into()))?,
        DataType::FLOAT => map(input, |x: f32| format.float(f64::from(x)))?,
        DataType::DOUBLE => map(input, |x: f64| format.float(x))?,
        DataType::HALF => map(input, |x: f16| format.float(f64::from(x)))?,
        DataType::BFLOAT16 => map(input, |x: bf16| format.float(f64::from(x)))?,
        DataType::COMPLEX64 => map(input, |x: Complex64| {
            format.complex(f64::from(x.re), f64::from(x.im))
        })?,
        DataType::COMPLEX128 => map(input, |x: Complex128| format.complex(x.re, x.im))?,
        dtype if dtype.is_integer() => integers(format, input)?,
        dtype => bail!(Unimplemented, "AsString of type {dtype}"),
    };
    let output = Tensor::from_strings(input.shape().clone(), texts)?;
    context.set_output(0, output)
}

fn map<T: Element>(input: &Tensor, text: impl Fn(T) -> Result<TString>) -> Result<Vec<TString>> {
    crate::wide::try_collected(input.as_slice::<T>()?.iter().map(|&x| text(x)))
}

fn integers(format: &Format, input: &Tensor) -> Result<Vec<TString>> {
    let signed = !matches!(
        input.dtype(),
        DataType::UINT8 | DataType::UINT16 | DataType::UINT32 | DataType::UINT64
    );
    crate::match_integer!(input.dtype(), T => map(input, |x: T| format.integer(x, signed)))
}

impl Format {
    fn integer(&self, value: impl Display, signed: bool) -> Result<TString> {
        let text = value.to_string();
        let text = if signed { self.with_sign(text) } else { text };
        self.pad(text, true)
    }

    fn float(&self, value: f64) -> Result<TString> {
        let text = if value.is_nan() {
            "nan".to_string()
        } else if value.is_infinite() {
            if value > 0.0 { "inf" } else { "-inf" }.to_string()
        } else if self.scientific {
            scientific(value, self.precision.unwrap_or(6))
        } else if self.shortest {
            format_general(value, self.precision.unwrap_or(6))
        } else {
            format!("{value:.*}", self.precision.unwrap_or(6))
        };
        self.pad(self.with_sign(text), value.is_finite())
    }

    fn complex(&self, real: f64, imaginary: f64) -> Result<TString> {
        let (real, imaginary) = (self.float(real)?, self.float(imaginary)?);
        TString::concatenated(&[b"(", real.as_bytes(), b",", imaginary.as_bytes(), b")"])
    }

    /// At most `precision` bytes.
    fn string(&self, bytes: &[u8]) -> Result<TString> {
        let bytes = &bytes[..self.precision.unwrap_or(usize::MAX).min(bytes.len())];
        let padding = crate::wide::filled(self.width.saturating_sub(bytes.len()), b' ')?;
        if self.flag == b'-' {
            TString::concatenated(&[bytes, &padding])
        } else {
            TString::concatenated(&[&padding, bytes])
        }
    }

    /// A sign or a space before numbers that are not negative, where the flag asks for it.
    fn with_sign(&self, text: String) -> String {
        match self.flag {
            b'+' | b' ' if !text.starts_with('-') => format!("{}{text}", self.flag as char),
            _ => text,
        }
    }

    fn pad(&self, text: String, zeros: bool) -> Result<TString> {
        let missing = self.width.saturating_sub(text.len());
        let padding = |with: u8| crate::wide::filled(missing, with);
        match self.flag {
            b'-' => TString::concatenated(&[text.as_bytes(), &padding(b' ')?]),
            b'0' if zeros => {
                let (sign, digits) = text.split_at(usize::from(text.starts_with('-')));
                TString::concatenated(&[sign.as_bytes(), &padding(b'0')?, digits.as_bytes()])
            }
            _ => TString::concatenated(&[&padding(b' ')?, text.as_bytes()]),
        }
    }
}

/// As `%e`: an exponent of a sign and at least two digits.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

#[cfg(test)]
fn floats() -> Tensor {
    crate::testing::vector(&[
        1.5f32,
        -2.25,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        -0.0,
        1e-10,
    ])
}

crate::op_cases! {
    wider_than_memory: Case::op("AsString").attr("width", i64::MAX).input(vector(&[1.5f32])).fails(Code::InvalidArgument);
    fixed: Case::op("AsString").input(floats())
        .gives(strings(&[7], &["1.500000", "-2.250000", "inf", "-inf", "nan", "-0.000000", "0.000000"]));
    scientific_notation: Case::op("AsString").attr("scientific", true).input(vector(&[1.5f64, -0.0, 1e300, 1e-10]))
        .gives(strings(&[4], &["1.500000e+00", "-0.000000e+00", "1.000000e+300", "1.000000e-10"]));
    shortest_notation: Case::op("AsString").attr("shortest", true).input(vector(&[1.5f64, 1e10, 0.1, -0.0]))
        .gives(strings(&[4], &["1.5", "1e+10", "0.1", "-0"]));
    zeros_before: Case::op("AsString").attr("width", 12i64).attr("fill", "0").input(floats()).gives(strings(&[7], &[
        "00001.500000", "-0002.250000", "         inf", "        -inf", "         nan", "-0000.000000", "00000.000000",
    ]));
    signs: Case::op("AsString").attr("width", 4i64).attr("fill", "+").input(vector(&[5, -7]))
        .gives(strings(&[2], &["  +5", "  -7"]));
    left: Case::op("AsString").attr("width", 4i64).attr("fill", "-").input(vector(&[5i8, -7]))
        .gives(strings(&[2], &["5   ", "-7  "]));
    space_for_signs: Case::op("AsString").attr("fill", " ").input(vector(&[5i64, -7])).gives(strings(&[2], &[" 5", "-7"]));
    unsigned: Case::op("AsString").attr("fill", "+").input(scalar(u64::MAX))
        .gives(strings(&[], &["18446744073709551615"]));
    truth: Case::op("AsString").attr("width", 9i64).input(bools(&[2], &[true, false]))
        .gives(strings(&[2], &["true", "false"]));
    complex: Case::op("AsString").attr("precision", 2i64).input(scalar(Complex64::new(1.5, -2.0)))
        .gives(strings(&[], &["(1.50,-2.00)"]));
    half: Case::op("AsString").attr("precision", 1i64).input(scalar(f16::from_f32(0.25))).gives(strings(&[], &["0.2"]));
    string_itself: Case::op("AsString").attr("precision", 1i64).attr("width", 3i64).input(strings(&[], &["ab"]))
        .gives(strings(&[], &["  a"]));
    precision_of_integers: Case::op("AsString").attr("precision", 2i64).input(scalar(1)).fails(Code::InvalidArgument);
    scientific_truth: Case::op("AsString").attr("scientific", true).input(bools(&[], &[true]))
        .fails(Code::InvalidArgument);
    both_notations: Case::op("AsString").attr("scientific", true).attr("shortest", true).input(floats())
        .fails(Code::InvalidArgument);
    unknown_fill: Case::op("AsString").attr("fill", "x").input(scalar(1)).fails(Code::InvalidArgument);
}
