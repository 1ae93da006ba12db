//! Variables: resource variables behind handles, and reference variables behind reference edges.

mod reference;
mod resource;
mod resource_update;
mod scatter_nd;
mod temporary;
#[cfg(test)]
mod tests;

pub use resource::variable;

use ff_op::Op;

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[
    reference::OPS,
    resource::OPS,
    resource_update::OPS,
    scatter_nd::OPS,
    temporary::OPS,
];
