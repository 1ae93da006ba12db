//! The shell: the C functions, their handles, and the guard between C and Rust.
//!
//! Contract
//! * Every exported function goes through [`guard`]: a panic becomes INTERNAL, a `Result` becomes a status, nothing
//!   unwinds into C.
//! * Signatures state ownership: `Option<&T>` borrows, `Option<Box<T>>` takes over; both accept NULL.
//! * Every exported name starts with `TF_`, `TFE_`, `TSL_` or `FF_`; the link step exports exactly those.
//!
//! What it does not do: it contains no algorithm.

// The names are those of the C interface.
#![allow(non_camel_case_types, non_snake_case)]

mod codegen;
mod guard;
mod status;
mod version;

pub use codegen::FF_CodegenSelfTest;
pub use guard::guard;
pub use status::{TF_DeleteStatus, TF_GetCode, TF_Message, TF_NewStatus, TF_SetStatus, TF_Status};
pub use version::TF_Version;
