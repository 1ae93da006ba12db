//! The C headers seen from outside: as bindgen binds them (feature `bindgen`), and beside the reference's headers
//! (`tests/prototypes.rs`). Nothing here is part of the library.

// The functions that the bindings declare are those of this crate.
extern crate ff_c_api as _;

/// What bindgen made of the headers. Layouts are checked where they are declared.
#[cfg(feature = "bindgen")]
#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    dead_code,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
pub mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}
