//! Ops that wait for each other, or keep tensors for each other: queues and their like.

mod accumulator;
mod barrier;
mod batch;
mod collective;
pub mod handle;
mod map_stage;
mod mutex;
pub mod optional;
mod queue;
#[cfg(all(test, loom))]
mod queue_loom_tests;
mod queue_ops;
#[cfg(test)]
mod queue_tests;
mod reader;
mod reader_ops;
#[cfg(test)]
mod reader_tests;
mod rows;
mod send_recv;
mod session_tensor;
mod sparse_sum;
mod stack;
mod stage;
mod store;
mod tensor_array;
mod tensor_array_gradients;
mod tensor_array_ops;
#[cfg(test)]
mod tensor_array_tests;
mod tensor_map;
#[cfg(test)]
mod tests;
mod timer;

pub use stage::place_of;

use ff_op::Op;

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[
    accumulator::OPS,
    barrier::OPS,
    batch::OPS,
    collective::OPS,
    map_stage::OPS,
    mutex::OPS,
    optional::OPS,
    queue_ops::OPS,
    reader_ops::OPS,
    send_recv::OPS,
    session_tensor::OPS,
    stack::OPS,
    stage::OPS,
    tensor_array_ops::OPS,
    tensor_map::OPS,
];
