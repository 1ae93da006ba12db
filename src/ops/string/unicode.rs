//! Strings to code points and back, and from one encoding to another.
//!
//! Encodings: UTF-8, UTF-16 and UTF-32 in both orders of bytes, US-ASCII and ISO-8859-1.

use ff_op::{Attrs, Kernel, KernelContext, Op};
use ff_tensor::{DataType, PartialShape, Result, Shape, TString, Tensor, bail, dim, ensure, status};

const DECODE: Op = Op {
    name: "UnicodeDecode",
    shape: |context| {
        let count = match context.input(0).num_elements() {
            count if count >= 0 => count + 1,
            _ => dim::UNKNOWN,
        };
        context.set_output(0, PartialShape::new(&[count]));
        for output in 1..context.num_outputs() {
            context.set_output(output, PartialShape::new(&[dim::UNKNOWN]));
        }
        Ok(())
    },
    kernels: &[Kernel::native(decode)],
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &DECODE,
    &Op {
        name: "UnicodeDecodeWithOffsets",
        ..DECODE
    },
    &Op {
        name: "UnicodeEncode",
        shape: |context| {
            context.input_with_rank(0, 1)?;
            let rows = match context.input_with_rank(1, 1)?.dim(0) {
                extent if extent >= 0 => {
                    ensure!(
                        extent > 0,
                        InvalidArgument,
                        "Invalid input_splits value: must not be empty"
                    );
                    extent - 1
                }
                _ => dim::UNKNOWN,
            };
            context.set_output(0, PartialShape::new(&[rows]));
            Ok(())
        },
        kernels: &[Kernel::native(encode)],
        ..Op::PURE
    },
    &Op {
        name: "UnicodeTranscode",
        shape: ff_op::shapes::unchanged,
        kernels: &[Kernel::native(transcode)],
        ..Op::PURE
    },
];

/// How characters are written.
#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16 {
        big: bool,
    },
    Utf32 {
        big: bool,
    },
    /// One byte each, up to this number.
    Bytes {
        most: u32,
    },
}

impl Encoding {
    /// By name. INVALID_ARGUMENT for others than those above.
    fn of(name: &str) -> Result<Encoding> {
        let plain: String = name
            .chars()
            .filter(|letter| !matches!(letter, '-' | '_'))
            .collect::<String>()
            .to_uppercase();
        Ok(match plain.as_str() {
            "UTF8" => Encoding::Utf8,
            "UTF16" | "UTF16BE" => Encoding::Utf16 { big: true },
            "UTF16LE" => Encoding::Utf16 { big: false },
            "UTF32" | "UTF32BE" => Encoding::Utf32 { big: true },
            "UTF32LE" => Encoding::Utf32 { big: false },
            "USASCII" | "ASCII" => Encoding::Bytes { most: 0x7f },
            "ISO88591" | "LATIN1" => Encoding::Bytes { most: 0xff },
            _ => bail!(
                InvalidArgument,
                "Could not create converter for input encoding: {name}"
            ),
        })
    }

    /// Calls `found(start, character)` for every character; none for each part that is no character.
    fn decode(self, bytes: &[u8], mut found: impl FnMut(usize, Option<char>)) {
        match self {
            Encoding::Utf8 => {
                let mut at = 0;
                for chunk in bytes.utf8_chunks() {
                    for (offset, character) in chunk.valid().char_indices() {
                        found(at + offset, Some(character));
                    }
                    at += chunk.valid().len();
                    if !chunk.invalid().is_empty() {
                        found(at, None);
                        at += chunk.invalid().len();
                    }
                }
            }
            Encoding::Utf16 { big } => {
                let units = bytes.chunks(2).map(|pair| match *pair {
                    [a, b] if big => u16::from_be_bytes([a, b]),
                    [a, b] => u16::from_le_bytes([a, b]),
                    // Half a unit is no character.
                    _ => 0xd800,
                });
                let mut at = 0;
                for character in char::decode_utf16(units) {
                    found(at, character.as_ref().ok().copied());
                    at += 2 * character.map_or(1, char::len_utf16);
                }
            }
            Encoding::Utf32 { big } => {
                for (i, part) in bytes.chunks(4).enumerate() {
                    let character = <[u8; 4]>::try_from(part).ok().and_then(|part| {
                        char::from_u32(if big {
                            u32::from_be_bytes(part)
                        } else {
                            u32::from_le_bytes(part)
                        })
                    });
                    found(4 * i, character);
                }
            }
            Encoding::Bytes { most } => {
                for (i, &byte) in bytes.iter().enumerate() {
                    let number = u32::from(byte);
                    found(i, char::from_u32(number).filter(|_| number <= most));
                }
            }
        }
    }

    /// Adds a character to a string.
    fn push(self, character: char, to: &mut Vec<u8>) {
        match self {
            Encoding::Utf8 => to.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Encoding::Utf16 { big } => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    to.extend_from_slice(&if big {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    });
                }
            }
            Encoding::Utf32 { big } => {
                let number = u32::from(character);
                to.extend_from_slice(&if big {
                    number.to_be_bytes()
                } else {
                    number.to_le_bytes()
                });
            }
            Encoding::Bytes { .. } => to.push(u32::from(character) as u8),
        }
    }
}

/// What becomes of what is no character.
struct Errors {
    strict: bool,
    replacement: Option<char>,
    replace_control: bool,
}

impl Errors {
    fn of(attrs: &Attrs) -> Result<Errors> {
        let number = attrs.int("replacement_char")?;
        let character = u32::try_from(number).ok().and_then(char::from_u32);
        ensure!(
            character.is_some(),
            InvalidArgument,
            "replacement_char out of unicode codepoint range"
        );
        let (strict, replacement) = match attrs.string("errors")? {
            "strict" => (true, None),
            "replace" => (false, character),
            "ignore" => (false, None),
            other => bail!(
                InvalidArgument,
                "errors must be one of: 'strict', 'replace', 'ignore', got {other}"
            ),
        };
        Ok(Errors {
            strict,
            replacement,
            replace_control: attrs.bool("replace_control_characters").unwrap_or(false),
        })
    }

    /// The character that stands there; none where nothing does.
    fn settle(&self, character: Option<char>) -> Result<Option<char>> {
        match character {
            Some(character) if self.replace_control && u32::from(character) <= 0x1f => Ok(self.replacement),
            Some(character) => Ok(Some(character)),
            None if self.strict => Err(status!(InvalidArgument, "Invalid formatting on input string")),
            None => Ok(self.replacement),
        }
    }

    /// All characters of a string with their starts.
    fn characters(&self, encoding: Encoding, bytes: &[u8]) -> Result<Vec<(usize, char)>> {
        let mut characters = Vec::new();
        let mut failed = None;
        encoding.decode(bytes, |start, character| match self.settle(character) {
            Ok(Some(character)) => characters.push((start, character)),
            Ok(None) => {}
            Err(error) => failed = Some(error),
        });
        failed.map_or(Ok(characters), Err)
    }
}

fn decode(context: &mut KernelContext) -> Result<()> {
    let encoding = Encoding::of(context.attrs().string("input_encoding")?)?;
    let errors = Errors::of(context.attrs())?;
    let (mut edges, mut values, mut starts) = (vec![0], Vec::new(), Vec::new());
    for text in context.input(0)?.strings()? {
        for (start, character) in errors.characters(encoding, text.as_bytes())? {
            values.push(u32::from(character) as i32);
            starts.push(start as i64);
        }
        edges.push(values.len() as i64);
    }
    let edges = if context.output_type(0) == DataType::INT64 {
        Tensor::vector(&edges)?
    } else {
        let edges: Vec<i32> = crate::wide::collected(edges.iter().map(|&edge| edge as i32))?;
        Tensor::vector(&edges)?
    };
    context.set_output(0, edges)?;
    context.set_output(1, Tensor::vector(&values)?)?;
    if context.num_outputs() > 2 {
        context.set_output(2, Tensor::vector(&starts)?)?;
    }
    Ok(())
}

fn encode(context: &mut KernelContext) -> Result<()> {
    let encoding = Encoding::of(context.attrs().string("output_encoding")?)?;
    let errors = Errors::of(context.attrs())?;
    let (values, splits) = (context.input_slice::<i32>(0)?, context.input_i64s(1)?);
    ensure!(
        splits.first() == Some(&0),
        InvalidArgument,
        "First value in input_splits must be zero."
    );
    ensure!(
        splits.windows(2).all(|pair| pair[0] <= pair[1]) && splits.last() == Some(&(values.len() as i64)),
        InvalidArgument,
        "Values in input_splits must be equal or in ascending order, and end with {}, got {splits:?}",
        values.len()
    );
    let mut texts: Vec<TString> = Vec::new();
    for pair in splits.windows(2) {
        let mut text = Vec::new();
        for &value in &values[pair[0] as usize..pair[1] as usize] {
            let character = u32::try_from(value).ok().and_then(char::from_u32);
            ensure!(
                character.is_some() || !errors.strict,
                InvalidArgument,
                "Code point is out of range for Unicode, or a noncharacter."
            );
            if let Some(character) = errors.settle(character)? {
                encoding.push(character, &mut text);
            }
        }
        texts.push(text.as_slice().into());
    }
    context.set_output(0, Tensor::from_strings(Shape::vector(texts.len()), texts)?)
}

fn transcode(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let from = Encoding::of(attrs.string("input_encoding")?)?;
    let to = Encoding::of(attrs.string("output_encoding")?)?;
    let errors = Errors::of(attrs)?;
    let input = context.input(0)?;
    let mut texts: Vec<TString> = Vec::new();
    for text in input.strings()? {
        let mut made = Vec::new();
        for (_, character) in errors.characters(from, text.as_bytes())? {
            to.push(character, &mut made);
        }
        texts.push(made.as_slice().into());
    }
    let output = Tensor::from_strings(input.shape().clone(), texts)?;
    context.set_output(0, output)
}

#[cfg(test)]
fn broken() -> Tensor {
    let bytes: [&[u8]; 2] = [b"a\xffb\xe2\x82", b"\x01\xf0\x9f\x98\x80\xed\xa0\x80z"];
    let texts = bytes.iter().map(|&bytes| bytes.into()).collect();
    Tensor::from_strings(Shape::vector(2), texts).expect("elements of a case")
}

crate::op_cases! {
    decoded: family(&["UnicodeDecode"], &[DataType::INT32, DataType::INT64], |op, dtype| {
        Case::op(op).input(strings(&[3], &["aé", "", "日本😀"])).attr("input_encoding", "UTF-8").attr("Tsplits", dtype)
    });
    decoded_with_starts: Case::op("UnicodeDecodeWithOffsets").input(strings(&[3], &["aé", "", "日本😀"])).attr("input_encoding", "UTF-8");
    decoded_broken: family(&["UnicodeDecode", "UnicodeDecodeWithOffsets"], &[DataType::INT64], |op, _| {
        Case::op(op).input(broken()).attr("input_encoding", "UTF-8").attr("replace_control_characters", true)
    });
    decoded_ignored: Case::op("UnicodeDecode").input(broken()).attr("input_encoding", "UTF-8").attr("errors", "ignore");
    decoded_strict: family(&["UnicodeDecode", "UnicodeDecodeWithOffsets"], &[DataType::INT64], |op, _| {
        Case::op(op).input(broken()).attr("input_encoding", "UTF-8").attr("errors", "strict").fails(Code::InvalidArgument)
    });
    decoded_wide: Case::op("UnicodeDecodeWithOffsets").input(strings(&[1], &["\u{0}a\u{0}b"])).attr("input_encoding", "UTF-16-BE");
    encoded: family(&["UnicodeEncode"], &[DataType::INT32], |op, _| {
        Case::op(op).inputs([vector(&[97, 233, 0x1f600, 0xd800, -1, 0x110000]), vector(&[0i64, 2, 2, 6])]).attr("output_encoding", "UTF-8")
    });
    encoded_wide: family(&["UnicodeEncode"], &[DataType::INT32], |op, _| {
        Case::op(op).inputs([vector(&[97, 233, 0x1f600]), vector(&[0, 3])]).attr("output_encoding", "UTF-16-BE").attr("errors", "ignore")
    });
    encoded_strict: Case::op("UnicodeEncode").inputs([vector(&[97, 0xd800]), vector(&[0i64, 2])]).attr("output_encoding", "UTF-8").attr("errors", "strict").fails(Code::InvalidArgument);
    encoded_beyond: Case::op("UnicodeEncode").inputs([vector(&[97]), vector(&[0i64, 2])]).attr("output_encoding", "UTF-8").fails(Code::InvalidArgument);
    transcoded: family(&["UnicodeTranscode"], &[DataType::STRING], |op, _| {
        Case::op(op).input(broken()).attr("input_encoding", "UTF-8").attr("output_encoding", "UTF-32-BE")
    });
    transcoded_strict: Case::op("UnicodeTranscode").input(broken()).attr("input_encoding", "UTF-8").attr("output_encoding", "UTF-8").attr("errors", "strict").fails(Code::InvalidArgument);
    transcoded_from_bytes: Case::op("UnicodeTranscode").input(broken()).attr("input_encoding", "ISO-8859-1").attr("output_encoding", "UTF-8");
    unknown_encoding: Case::op("UnicodeTranscode").input(broken()).attr("input_encoding", "nothing").attr("output_encoding", "UTF-8").fails(Code::InvalidArgument);
}
