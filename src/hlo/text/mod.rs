//! The text form of modules, close to XLA's.
//!
//! ```text
//! HloModule example
//!
//! ENTRY %main (x: f32[2]{0}) -> f32[2]{0} {
//!   %x.0 = f32[2]{0} parameter(0)
//!   ROOT %negate.1 = f32[2]{0} negate(%x.0)
//! }
//! ```
//!
//! An instruction is printed as its name and its number; a line each. [`parse`] reads what [`print`] writes, and gives
//! the same module but for the bits of NaNs. `//` starts a comment line. What is parsed is verified.

mod attributes;
mod literal;
mod parse_attributes;
mod parser;
mod picture;
mod printer;

#[cfg(test)]
mod tests;

pub(crate) use literal::format_element;
pub use parser::parse;
pub use picture::{html, svg};
pub use printer::{PrintOptions, print, print_with};
