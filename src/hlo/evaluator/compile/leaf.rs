//! Leaves: the arrays of a computation, tuples flattened, and where each is found.
//!
//! Broadcasts, slices, reversals and transposes are *views*: nothing is moved until someone needs the elements one
//! after another. Reshapes, copies and tuples are no work at all: they share the leaf.

use crate::evaluator::code::Operand;
use crate::evaluator::tile::Strided;
use crate::shape::{ArrayShape, Dims};
pub(super) use crate::view::View;
use ff_tensor::DataType;

/// Place of a leaf in the list of all.
pub(super) type LeafId = usize;

/// Where the elements of a leaf come from.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// In a slot or among the constants from the start.
    Given,
    /// Computed by a fusion, by this instruction.
    Fused(usize),
    /// Computed by a step of its own, by this instruction.
    Step(usize),
    /// Elements of another leaf.
    View { base: LeafId, view: View },
    /// Counts along an axis.
    Iota { inner: usize, extent: usize },
    /// The bytes of another leaf as another type.
    Cast { base: LeafId },
}

/// An array.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub dtype: DataType,
    pub dims: Dims,
    pub elements: usize,
    pub place: Place,
    /// The first level at which a fusion may read it.
    pub ready: u32,
    /// Whether someone needs its elements one after another.
    pub dense: bool,
    /// Where its dense elements are, once a step has been made for them.
    pub operand: Option<Operand>,
}

impl Leaf {
    pub fn new(shape: &ArrayShape, place: Place, ready: u32) -> Leaf {
        Leaf {
            dtype: shape.dtype,
            dims: shape.dims.clone(),
            elements: shape.num_elements(),
            place,
            ready,
            dense: false,
            operand: None,
        }
    }

    /// The view of all of this leaf, seen with these extents.
    pub fn as_view(&self, id: LeafId, dims: &[i64]) -> (LeafId, View) {
        match &self.place {
            Place::View { base, view } if view.dims[..] == *dims && !self.dense => (*base, view.clone()),
            _ => {
                let view = View {
                    dims: Dims::from_slice(dims),
                    strides: ArrayShape::new(self.dtype, dims).strides(),
                    offset: 0,
                };
                (id, view)
            }
        }
    }
}

/// A view as the walk that tile programs read along.
pub(super) fn strided(view: &View) -> Strided {
    Strided::new(&view.dims, &view.strides, view.offset)
}
