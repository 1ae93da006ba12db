//! Numeric loops on slices and strided views, and the threads that run them.
//!
//! Contract: pure numbers in, numbers out. The callers have checked shapes; a kernel asserts what its memory
//! safety needs and panics on a wrong extent, never on a value. Outputs are written completely and may hold
//! anything before. Results do not depend on the number of threads; memory whose size depends on data is asked for
//! fallibly ([`OutOfMemory`]).
//!
//! What it does not do: it knows nothing of tensors, ops, graphs or status codes.
//!
//! | module | holds |
//! |---|---|
//! | [`pool`] | threads: `parallel_for`, `parallel_blocks`, `spawn` |
//! | [`cpu`] | instruction sets; loops compiled for several of them |
//! | [`memory`], [`scratch`] | shared outputs; reused working memory |
//! | [`elementwise`], [`broadcast`] | maps over one to three operands, with broadcasting |
//! | [`linalg`] | factorizations and functions of matrices |
//! | [`math`] | vectorised functions of `f32`, and all functions over every float type |
//! | [`gemm`] | matrix products, packed operands, epilogues, batches |
//! | [`conv`], [`window`] | convolutions and their gradients; pooling and its gradients |
//! | [`reduce`], [`softmax`], [`norm`] | reductions over axes; softmax; batch and layer normalization |
//! | [`movement`], [`sort`] | transpose, slice, pad, concatenate, tile, gather; sorting, the largest elements |
//! | [`random`] | Philox and distributions, number for number as TensorFlow |
//! | [`optimizers`] | one step of each usual optimizer |

pub mod broadcast;
pub mod conv;
pub mod cpu;
pub mod elementwise;
pub mod gemm;
pub mod jobs;
mod lanes;
pub mod linalg;
pub mod math;
pub mod memory;
pub mod movement;
pub mod norm;
pub mod optimizers;
pub mod pool;
pub mod random;
pub mod reduce;
pub mod scratch;
pub mod softmax;
pub mod sort;
mod sync;
pub mod window;

pub use jobs::Jobs;
pub use pool::ThreadPool;
pub use scratch::OutOfMemory;
