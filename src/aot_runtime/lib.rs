//! What programs link that contain a model compiled ahead of time: `libferroflow_aot.a`.
//!
//! The object of a model ([`Program`]) holds its instructions as HLO text, machine code for its fusions, and its weights.
//! This runtime reads the text once, joins it with code and weights, and runs it with the kernels of the library; nothing
//! is compiled, and weights are used where they lie. [`Model`] is one such program with its arguments and results.
//!
//! Contract
//! * Results have the bits that a session computes from the same instructions on this processor.
//! * Errors are codes and messages, kept by the model. No function needs more than libc and libm.
//! * A model is used by one thread at a time; models of one program share its code and weights.
//! * On a processor without what the code asks for, the evaluator runs the fusions: slower, with the same results.
//!
//! `include/ferroflow/aot.h` declares the functions of `functions`; headers of models wrap them. What it does not do: it
//! has no graphs, no sessions and no files but that of the weights.

#[cfg(feature = "functions")]
mod functions;
mod model;
mod program;
#[cfg(all(panic = "abort", target_os = "linux"))]
mod unwinding;
mod weights;

#[cfg(feature = "functions")]
pub use functions::*;
pub use model::Model;
pub use program::{Fusion, Program, VERSION};
pub use weights::{WEIGHTS_CALL, hash};
