//! Strings of raw bytes as numbers, and compressed strings.

use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{PartialShape, Result, Shape, TString, Tensor, dim, ensure, status};
use flate2::read::{GzDecoder, ZlibDecoder};
use std::io::Read;

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "DecodeRaw",
        shape: |context| {
            let shape = context.input(0).concat(&PartialShape::new(&[dim::UNKNOWN]));
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(decode_raw)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "DecodePaddedRaw",
        shape: |context| {
            context.input_with_rank(1, 0)?;
            let mut width = dim::UNKNOWN;
            if let Some(length) = context.input_as_scalar(1)? {
                ensure!(
                    length > 0,
                    InvalidArgument,
                    "fixed_length must be greater than zero, got {length}"
                );
                let size = context.attrs().dtype("out_type")?.size() as i64;
                ensure!(
                    length % size == 0,
                    InvalidArgument,
                    "fixed_length ({length}) must be a multiple of the size of out_type ({size})"
                );
                width = length / size;
            }
            let shape = context.input(0).concat(&PartialShape::new(&[width]));
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(decode_padded)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "DecodeCompressed",
        shape: ff_op::shapes::unchanged,
        kernels: &[Kernel::native(decompress)],
        ..Op::PURE
    },
];

/// A tensor of rows of bytes, each cut or filled with zeros to the last extent.
fn fill(context: &mut KernelContext, width: usize) -> Result<()> {
    let little_endian = context.attrs().bool("little_endian")?;
    let dtype = context.output_type(0);
    let input = context.input(0)?;
    let mut dims = input.dims().to_vec();
    dims.push((width / dtype.size()) as i64);
    let mut output = Tensor::zeros(dtype, Shape::new(&dims)?)?;
    // Complex numbers are two numbers.
    let part = if dtype.is_complex() {
        dtype.size() / 2
    } else {
        dtype.size()
    };
    if let Some(bytes) = output.bytes_mut().filter(|_| width > 0) {
        for (row, text) in bytes.chunks_exact_mut(width).zip(input.strings()?) {
            let text = text.as_bytes();
            let count = text.len().min(width);
            row[..count].copy_from_slice(&text[..count]);
            if !little_endian {
                row.chunks_exact_mut(part).for_each(<[u8]>::reverse);
            }
        }
    }
    context.set_output(0, output)
}

fn decode_raw(context: &mut KernelContext) -> Result<()> {
    let (input, size) = (context.input(0)?.strings()?, context.output_type(0).size());
    let width = input.first().map_or(0, TString::len);
    for text in input {
        ensure!(
            text.len() == width,
            InvalidArgument,
            "DecodeRaw requires input strings to all be the same size, but element has size {} != {width}",
            text.len()
        );
    }
    ensure!(
        width % size == 0,
        InvalidArgument,
        "Input to DecodeRaw has length {width} that is not a multiple of {size}, the size of {}",
        context.output_type(0)
    );
    fill(context, width)
}

fn decode_padded(context: &mut KernelContext) -> Result<()> {
    let (length, size) = (context.input_i64(1)?, context.output_type(0).size() as i64);
    ensure!(
        length > 0 && length % size == 0,
        InvalidArgument,
        "fixed_length ({length}) must be a positive multiple of the size of out_type ({size})"
    );
    fill(context, length as usize)
}

fn decompress(context: &mut KernelContext) -> Result<()> {
    let kind = context.attrs().string("compression_type")?;
    ensure!(
        matches!(kind, "" | "ZLIB" | "GZIP"),
        InvalidArgument,
        "Only ZLIB, GZIP or NONE are supported compressions, got {kind}"
    );
    let input = context.input(0)?;
    let unpack = |mut reader: Box<dyn Read + '_>| -> Result<TString> {
        let mut text = Vec::new();
        reader
            .read_to_end(&mut text)
            .map_err(|error| status!(DataLoss, "cannot decompress: {error}"))?;
        Ok(text.as_slice().into())
    };
    let mut outputs = Vec::new();
    for text in input.strings()? {
        let bytes = text.as_bytes();
        outputs.push(match kind {
            "ZLIB" => unpack(Box::new(ZlibDecoder::new(bytes)))?,
            "GZIP" => unpack(Box::new(GzDecoder::new(bytes)))?,
            _ => text.clone(),
        });
    }
    let output = Tensor::from_strings(input.shape().clone(), outputs)?;
    context.set_output(0, output)
}

/// The text of a string of hexadecimal digits, as one string.
#[cfg(test)]
pub fn from_hex(digits: &str) -> Tensor {
    let byte = |i: usize| u8::from_str_radix(&digits[i..i + 2], 16).expect("digits of a case");
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
    Tensor::from_strings(Shape::scalar(), vec![bytes.as_slice().into()]).expect("elements of a case")
}

#[cfg(test)]
const TYPES: &[ff_tensor::DataType] = &[
    ff_tensor::DataType::FLOAT,
    ff_tensor::DataType::DOUBLE,
    ff_tensor::DataType::HALF,
    ff_tensor::DataType::BFLOAT16,
    ff_tensor::DataType::INT8,
    ff_tensor::DataType::INT16,
    ff_tensor::DataType::INT32,
    ff_tensor::DataType::INT64,
    ff_tensor::DataType::UINT8,
    ff_tensor::DataType::UINT16,
    ff_tensor::DataType::BOOL,
    ff_tensor::DataType::COMPLEX64,
    ff_tensor::DataType::COMPLEX128,
];

crate::op_cases! {
    numbers_of_bytes: family(&["DecodeRaw"], TYPES, |op, dtype| Case::op(op).input(strings(&[2], &["\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}abcdefgh", "ABCDEFGHIJKLMNOP"])).attr("out_type", dtype));
    big_end_first: family(&["DecodeRaw"], &[DataType::INT16, DataType::INT32, DataType::COMPLEX64], |op, dtype| {
        Case::op(op).input(strings(&[1], &["abcdefgh"])).attr("out_type", dtype).attr("little_endian", false)
    });
    no_multiple: Case::op("DecodeRaw").input(strings(&[1], &["abc"])).attr("out_type", DataType::INT16).fails(Code::InvalidArgument);
    of_different_size: Case::op("DecodeRaw").input(strings(&[2], &["ab", "cdef"])).attr("out_type", DataType::INT16).fails(Code::InvalidArgument);
    nothing: Case::op("DecodeRaw").input(strings(&[2], &["", ""])).attr("out_type", DataType::INT16);
    padded: family(&["DecodePaddedRaw"], &[DataType::UINT8, DataType::INT16, DataType::INT32, DataType::FLOAT], |op, dtype| {
        Case::op(op).inputs([strings(&[3], &["ab", "cdefghij", ""]), scalar(8)]).attr("out_type", dtype)
    });
    padded_to_part: Case::op("DecodePaddedRaw").inputs([strings(&[1], &["ab"]), scalar(3)]).attr("out_type", DataType::INT16).fails(Code::InvalidArgument);
    plain: Case::op("DecodeCompressed").input(strings(&[1], &["ab"])).gives(strings(&[1], &["ab"]));
    zlib: Case::op("DecodeCompressed").input(from_hex("789c4b4c4a0600024d0127")).attr("compression_type", "ZLIB").gives(strings(&[], &["abc"]));
    zlib_damaged: Case::op("DecodeCompressed").input(strings(&[1], &["ab"])).attr("compression_type", "ZLIB").fails(Code::DataLoss);
    unknown_of_nothing: Case::op("DecodeCompressed").input(strings(&[0], &[])).attr("compression_type", "LZMA").fails(Code::InvalidArgument);
    unknown: Case::op("DecodeCompressed").input(strings(&[1], &["ab"])).attr("compression_type", "LZMA").fails(Code::InvalidArgument);
}
