//! The op library: what each op does, one folder per domain of TensorFlow, one op or one family per file.
//!
//! A file states its records in its list `OPS`; a folder lists its files; [`DOMAINS`] lists the folders. Nothing
//! registers itself. To add an op: its record in its file's list. To take one out: remove the record.
//!
//! The crate knows nothing of graphs and sessions; ops see them through the contexts of `ff_op`.

pub mod array;
mod case_exceptions;
pub mod control_flow;
pub mod data_flow;
pub mod dispatch;
pub mod elementwise;
pub mod functional;
mod gradient_exceptions;
mod host_call;
pub mod image;
pub mod io;
pub mod linalg;
pub mod list;
pub mod logging;
pub mod lookup;
mod lowering;
pub mod math;
mod movement;
pub mod nn;
pub mod parsing;
pub mod quantize;
pub mod ragged;
pub mod random;
pub mod sparse;
pub mod spectral;
pub mod state;
pub mod string;
#[cfg(test)]
pub mod testing;
pub mod training;
pub mod wide;
pub mod xla;

pub use case_exceptions::CASES_ELSEWHERE;
pub use gradient_exceptions::UNCHECKED_GRADIENTS;

use ff_op::{Op, Registry};
use std::sync::{Arc, OnceLock};

/// States the cases of a file: `op_cases! { name_of_case: Case::op("Add")...; }`; each becomes a test.
macro_rules! op_cases {
    ($($name:ident: $case:expr;)*) => {
        #[cfg(test)]
        #[allow(unused_imports)]
        mod cases {
            use super::*;
            use $crate::testing::*;
            use ff_tensor::{Code, DataType};
            $(#[test] fn $name() { $case.run(concat!(module_path!(), "::", stringify!($name))); })*
        }
    };
}
pub(crate) use op_cases;

/// The op lists of all domains.
pub static DOMAINS: &[&[&[&Op]]] = &[
    array::OPS,
    control_flow::OPS,
    data_flow::OPS,
    functional::OPS,
    image::OPS,
    image::CODECS,
    io::OPS,
    linalg::OPS,
    list::OPS,
    logging::OPS,
    lookup::OPS,
    math::OPS,
    nn::OPS,
    parsing::OPS,
    quantize::OPS,
    ragged::OPS,
    random::OPS,
    sparse::OPS,
    spectral::OPS,
    state::OPS,
    string::OPS,
    training::OPS,
    xla::OPS,
];

/// The process-wide registry of all ops of this library; ops and kernels added at run time join it.
pub fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(|| Arc::new(new_registry())).clone()
}

/// A registry of its own, for tests.
pub fn new_registry() -> Registry {
    host_call::install();
    let lists: Vec<&[&Op]> = DOMAINS.iter().flat_map(|domain| domain.iter().copied()).collect();
    Registry::new(&lists)
}

#[cfg(test)]
mod tests {
    /// Lists of ops and of kernels are made of both.
    #[test]
    fn every_op_has_a_schema() {
        let ops = super::DOMAINS.iter().copied().flatten().copied().flatten();
        let without: Vec<&str> = ops
            .map(|op| op.name)
            .filter(|name| !ff_op::schema::contains(name))
            .collect();
        assert!(without.is_empty(), "{without:?}");
    }
}
