//! Lookup tables: from numbers or strings to numbers, strings or vectors.

mod create;
mod entries;
mod remapping;
mod table;
mod text_file;
mod use_table;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[create::OPS, remapping::OPS, use_table::OPS, text_file::OPS];
