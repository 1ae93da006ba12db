//! The ops that have no row of a case in this crate, each with the file of the repository whose tests run it.
//!
//! They need what only a session has: a library of functions, or another node that they talk to.
//! `cargo xtask coverage --cases` fails when a file does not name its op.

const FUNCTIONS: &str = "src/runtime/tests/functional_ops.rs";
const GRADIENTS: &str = "src/runtime/tests/functional_gradients.rs";
const C_PROGRAM: &str = "capi-tests/functions.c";
const EAGER: &str = "capi-tests/eager.c";
const XLA: &str = "tools/reference/steps/xla_cases.py";
const DEVICES: &str = "src/runtime/tests/devices.rs";

/// Op and file.
pub static CASES_ELSEWHERE: &[(&str, &str)] = &[
    ("Case", EAGER),
    ("For", FUNCTIONS),
    ("If", GRADIENTS),
    ("MapDefun", FUNCTIONS),
    ("PartitionedCall", C_PROGRAM),
    ("RemoteCall", FUNCTIONS),
    ("StatefulPartitionedCall", GRADIENTS),
    ("StatelessCase", GRADIENTS),
    ("StatelessIf", C_PROGRAM),
    ("StatelessWhile", C_PROGRAM),
    ("SymbolicGradient", FUNCTIONS),
    ("While", GRADIENTS),
    ("XlaIf", XLA),
    ("XlaLaunch", XLA),
    ("XlaLaunchV2", XLA),
    ("XlaReduce", XLA),
    ("XlaReduceWindow", XLA),
    ("XlaScatter", XLA),
    ("XlaSelectAndScatter", XLA),
    ("XlaVariadicReduce", XLA),
    ("XlaVariadicReduceV2", XLA),
    ("XlaVariadicSort", XLA),
    ("XlaWhile", XLA),
    ("_If", GRADIENTS),
    ("_Recv", DEVICES),
    ("_Send", DEVICES),
    ("_While", GRADIENTS),
];
