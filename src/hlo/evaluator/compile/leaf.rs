//! Leaves: the arrays of a computation, tuples flattened, and where each is found.
//!
//! Broadcasts, slices, reversals and transposes are *views*: nothing is moved until someone needs the elements one
//! after another. Reshapes, copies and tuples are no work at all: they share the leaf.

use crate::evaluator::code::Operand;
use crate::evaluator::tile::Strided;
use crate::shape::{ArrayShape, Dims};
use ff_tensor::DataType;

/// Place of a leaf in the list of all.
pub(super) type LeafId = usize;

/// How a view walks the dense elements of its base.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    pub dims: Dims,
    pub strides: Dims,
    pub offset: i64,
}

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

impl View {
    /// Axis `i` of this view lies at axis `axes[i]` of the result; the result repeats it along the others.
    pub fn broadcast(&self, dims: &[i64], axes: &[i64]) -> View {
        let mut strides = Dims::from_elem(0, dims.len());
        for (i, &axis) in axes.iter().enumerate() {
            let axis = axis as usize;
            strides[axis] = if self.dims[i] == dims[axis] {
                self.strides[i]
            } else {
                0
            };
        }
        View {
            dims: Dims::from_slice(dims),
            strides,
            offset: self.offset,
        }
    }

    /// Axis `i` of the result is axis `permutation[i]` of this view.
    pub fn transpose(&self, permutation: &[i64]) -> View {
        View {
            dims: permutation.iter().map(|&axis| self.dims[axis as usize]).collect(),
            strides: permutation
                .iter()
                .map(|&axis| self.strides[axis as usize])
                .collect(),
            offset: self.offset,
        }
    }

    /// Every `step`-th element from `start` on along each axis.
    pub fn slice(&self, dims: &[i64], start: &[i64], step: &[i64]) -> View {
        View {
            dims: Dims::from_slice(dims),
            strides: self
                .strides
                .iter()
                .zip(step)
                .map(|(stride, step)| stride * step)
                .collect(),
            offset: self.offset
                + self
                    .strides
                    .iter()
                    .zip(start)
                    .map(|(stride, start)| stride * start)
                    .sum::<i64>(),
        }
    }

    /// Backwards along these axes.
    pub fn reverse(&self, axes: &[i64]) -> View {
        let mut view = self.clone();
        for &axis in axes {
            let axis = axis as usize;
            view.offset += (view.dims[axis] - 1) * view.strides[axis];
            view.strides[axis] = -view.strides[axis];
        }
        view
    }

    /// The walk, with merged axes.
    pub fn walk(&self) -> Strided {
        Strided::new(&self.dims, &self.strides, self.offset)
    }
}
