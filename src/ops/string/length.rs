//! `StringLength`: bytes or characters of strings.

use super::ELEMENTWISE;
use ff_op::{Kernel, KernelContext, Op};
use ff_tensor::{Result, Tensor};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "StringLength",
    kernels: &[Kernel::native(length)],
    ..ELEMENTWISE
}];

/// Whether a byte of UTF-8 starts a character.
pub(super) fn starts_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

fn length(context: &mut KernelContext) -> Result<()> {
    let characters = context.attrs().bytes("unit")? == b"UTF8_CHAR";
    let input = context.input(0)?;
    let strings = input.strings()?.iter().map(|string| string.as_bytes());
    let count = |bytes: &[u8]| match characters {
        true => bytes.iter().filter(|&&byte| starts_character(byte)).count(),
        false => bytes.len(),
    };
    let lengths: Vec<i32> = crate::wide::collected(strings.map(|bytes| count(bytes) as i32))?;
    let output = Tensor::from_slice(input.shape().clone(), &lengths)?;
    context.set_output(0, output)
}

crate::op_cases! {
    bytes: Case::op("StringLength").input(strings(&[2], &["é", ""])).gives(vector(&[2, 0]));
    characters: Case::op("StringLength").attr("unit", "UTF8_CHAR").input(strings(&[], &["éλo"])).gives(scalar(3));
    no_strings: Case::op("StringLength").input(strings(&[0], &[])).gives(vector::<i32>(&[]));
}
