//! Letters in lower and upper case, and strings without space around them.

use super::{ELEMENTWISE, map_strings};
use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{Result, TString, bail};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "StringLower",
        kernels: &[Kernel::native(|context| {
            change_case(context, <[u8]>::to_ascii_lowercase, str::to_lowercase)
        })],
        ..ELEMENTWISE
    },
    &Op {
        name: "StringUpper",
        kernels: &[Kernel::native(|context| {
            change_case(context, <[u8]>::to_ascii_uppercase, str::to_uppercase)
        })],
        ..ELEMENTWISE
    },
    &Op {
        name: "StringStrip",
        kernels: &[Kernel::native(|context| {
            map_strings(context, |bytes| Ok(strip(bytes).into()))
        })],
        ..ELEMENTWISE
    },
];

/// Bytes are ASCII letters and others; or, when the encoding says so, UTF-8 with every letter that Unicode knows.
fn change_case(
    context: &mut KernelContext,
    ascii: impl Fn(&[u8]) -> Vec<u8>,
    unicode: impl Fn(&str) -> String,
) -> Result<()> {
    match context.attrs().bytes("encoding")? {
        b"" => map_strings(context, |bytes| Ok(ascii(bytes)[..].into())),
        b"utf-8" => map_strings(context, |bytes| {
            // Text ends at the first NUL, as in C.
            let text = bytes.split(|&byte| byte == 0).next().unwrap_or(&[]);
            Ok(TString::from(unicode(&String::from_utf8_lossy(text))))
        }),
        other => bail!(
            InvalidArgument,
            "only utf-8 or '' (no encoding) is supported, received {}",
            String::from_utf8_lossy(other)
        ),
    }
}

/// Space as C sees it, the vertical tab included.
pub(super) fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// The string without space at its ends.
pub(super) fn strip(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|&byte| !is_space(byte));
    let Some(start) = start else { return &[] };
    let end = bytes.iter().rposition(|&byte| !is_space(byte)).unwrap_or(start);
    &bytes[start..=end]
}

crate::op_cases! {
    lower_bytes: Case::op("StringLower").input(strings(&[2], &["ÀBC", ""])).gives(strings(&[2], &["Àbc", ""]));
    ended: family(&["StringLower", "StringUpper"], &[DataType::STRING], |op, _| {
        Case::op(op).attr("encoding", "utf-8").input(strings(&[2], &["aB\0b", "\0x"]))
    });
    lower_letters: Case::op("StringLower").attr("encoding", "utf-8").input(strings(&[], &["ÀBCΣ"]))
        .gives(strings(&[], &["àbcς"]));
    upper_letters: Case::op("StringUpper").attr("encoding", "utf-8").input(strings(&[1], &["àbcß"]))
        .gives(strings(&[1], &["ÀBCSS"]));
    upper_bytes: Case::op("StringUpper").input(strings(&[1], &["àbc1"])).gives(strings(&[1], &["àBC1"]));
    unknown_encoding: Case::op("StringUpper").attr("encoding", "x").input(strings(&[1], &["a"]))
        .fails(Code::InvalidArgument);
    space: Case::op("StringStrip").input(strings(&[3], &[" \t\n\u{b}\u{c}\ra b \0 ", "  ", ""]))
        .gives(strings(&[3], &["a b \0", "", ""]));
    no_strings: Case::op("StringStrip").input(strings(&[0, 2], &[])).gives(strings(&[0, 2], &[]));
}
