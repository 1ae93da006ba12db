//! The evaluator's own elementwise functions, for code that calls them.

use crate::attributes::Attributes;
use crate::evaluator::{TileFunction, elementwise_function, run_elementwise};
use crate::opcode::Opcode;
use ff_tensor::DataType;

/// A function of the evaluator that applies an instruction to arrays of elements.
#[derive(Clone, Copy)]
pub struct LibraryFunction {
    function: TileFunction,
    parameter: u64,
}

impl LibraryFunction {
    /// What to pass to [`call_library`].
    pub fn address(&self) -> *const u8 {
        self.function as *const u8
    }

    /// What to pass to [`call_library`] beside it.
    pub fn parameter(&self) -> u64 {
        self.parameter
    }
}

/// The function of an elementwise opcode on operands of a type, with results of a type.
pub fn library_function(
    opcode: Opcode,
    attributes: &Attributes,
    operand: DataType,
    result: DataType,
) -> Option<LibraryFunction> {
    let (function, parameter) = elementwise_function(opcode, attributes, operand, result)?;
    Some(LibraryFunction { function, parameter })
}

/// Applies a function to `len` elements of up to three operands, in the types that elements are computed in.
///
/// # Safety
/// `function` and `parameter` are those of a [`LibraryFunction`] of this process; the pointers are valid and aligned for
/// `len` elements of its types, and the result overlaps no operand.
pub unsafe extern "C" fn call_library(
    function: *const u8,
    parameter: u64,
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    len: u64,
) {
    // SAFETY: passed on to the caller.
    unsafe { run_elementwise(function, parameter, out, [a, b, c], len as usize) }
}
