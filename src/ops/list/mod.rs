//! Tensor lists: lists of tensors as variant values.

mod access;
mod make;
mod tensor_list;
mod whole;

use ff_op::Op;

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[access::OPS, make::OPS, whole::OPS];
