//! Base 64 in the alphabet for names of files and resources (RFC 4648, section 5), with or without padding.

use super::{ELEMENTWISE, map_strings};
use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{Result, bail, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "EncodeBase64",
        kernels: &[Kernel::native(encode_op)],
        ..ELEMENTWISE
    },
    &Op {
        name: "DecodeBase64",
        kernels: &[Kernel::native(|context| {
            map_strings(context, |text| Ok(decode(text)?[..].into()))
        })],
        ..ELEMENTWISE
    },
];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn encode_op(context: &mut KernelContext) -> Result<()> {
    let pad = context.attrs().bool("pad")?;
    map_strings(context, |bytes| Ok(encode(bytes, pad)[..].into()))
}

fn encode(bytes: &[u8], pad: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= group.len() {
                text.push(ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize]);
            } else if pad {
                text.push(b'=');
            }
        }
    }
    text
}

fn digit(byte: u8) -> Result<u32> {
    Ok(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => bail!(InvalidArgument, "Invalid character found in base64."),
    }))
}

/// Padding may be there in full or not at all; bits left over are ignored.
fn decode(text: &[u8]) -> Result<Vec<u8>> {
    ensure!(
        text.len() % 4 != 1,
        InvalidArgument,
        "Base64 string length cannot be 1 modulo 4."
    );
    let text = match text {
        [rest @ .., _, _, b'=', b'='] if text.len().is_multiple_of(4) => &text[..rest.len() + 2],
        [rest @ .., b'='] if text.len().is_multiple_of(4) => rest,
        _ => text,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits = 0;
        for index in 0..4 {
            bits = bits << 6 | group.get(index).map_or(Ok(0), |&byte| digit(byte))?;
        }
        let decoded = [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8];
        bytes.extend_from_slice(&decoded[..(group.len() * 3 / 4)]);
    }
    Ok(bytes)
}

crate::op_cases! {
    without_padding: Case::op("EncodeBase64").input(strings(&[5], &["", "a", "ab", "abc", "ÿþ?>"]))
        .gives(strings(&[5], &["", "YQ", "YWI", "YWJj", "w7_Dvj8-"]));
    with_padding: Case::op("EncodeBase64").attr("pad", true).input(strings(&[4], &["", "a", "ab", "abc"]))
        .gives(strings(&[4], &["", "YQ==", "YWI=", "YWJj"]));
    back: Case::op("DecodeBase64").input(strings(&[6], &["", "YQ", "YQ==", "YWI", "YWJj", "YR"]))
        .gives(strings(&[6], &["", "a", "a", "ab", "abc", "a"]));
    half_a_padding: Case::op("DecodeBase64").input(strings(&[], &["YQ="])).fails(Code::InvalidArgument);
    padding_only: Case::op("DecodeBase64").input(strings(&[], &["===="])).fails(Code::InvalidArgument);
    impossible_length: Case::op("DecodeBase64").input(strings(&[], &["A"])).fails(Code::InvalidArgument);
    other_alphabet: Case::op("DecodeBase64").input(strings(&[], &["Y+/="])).fails(Code::InvalidArgument);
}
