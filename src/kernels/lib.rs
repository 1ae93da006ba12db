//! Numeric loops on slices and strided views, and the threads that run them.
//!
//! Contract: pure numbers in, numbers out. The callers have checked shapes; a kernel asserts what its memory
//! safety needs. Results do not depend on the number of threads.
//!
//! What it does not do: it knows nothing of tensors, ops, graphs or status codes.

pub mod broadcast;
pub mod conv;
pub mod cpu;
pub mod elementwise;
pub mod gemm;
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
pub mod window;

pub use pool::ThreadPool;
pub use scratch::OutOfMemory;
