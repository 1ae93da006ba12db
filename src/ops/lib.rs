//! The op library.

pub mod dispatch;
pub mod elementwise;
pub mod math;
pub mod nn;
pub mod training;
