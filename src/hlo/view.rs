//! Views: broadcasts, slices, reversals and transposes of dense elements as extents and strides.
//!
//! Nothing is moved: element `i` of a view lies at `offset + sum(index * stride)` of its base, in elements.

use crate::shape::{ArrayShape, Dims};
use ff_tensor::DataType;
use smallvec::SmallVec;

/// How a view walks the dense elements of its base.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    /// The extents of the view.
    pub dims: Dims,
    /// The distance of neighbours along each axis, in elements of the base.
    pub strides: Dims,
    /// Where the first element lies.
    pub offset: i64,
}

impl View {
    /// All elements of a dense array with these extents.
    pub fn dense(dims: &[i64]) -> View {
        View {
            dims: Dims::from_slice(dims),
            strides: ArrayShape::new(DataType::FLOAT, dims).strides(),
            offset: 0,
        }
    }

    /// The same elements in the same order with other extents; none where that needs a copy.
    pub fn reshape(&self, dims: &[i64]) -> Option<View> {
        let walk = Walk::of(self);
        let mut strides = Dims::from_elem(0, dims.len());
        // From the innermost axis outwards: each axis of the result takes a part of an axis of the walk.
        let mut axes = walk.axes.iter().rev();
        let (mut extent, mut stride) = axes.next().copied().unwrap_or((1, 0));
        for axis in (0..dims.len()).rev() {
            let wanted = dims[axis] as usize;
            if wanted == 1 {
                continue;
            }
            if extent == 1 {
                (extent, stride) = axes.next().copied()?;
            }
            if wanted == 0 || extent % wanted != 0 {
                return None;
            }
            strides[axis] = stride as i64;
            extent /= wanted;
            stride *= wanted as isize;
        }
        Some(View {
            dims: Dims::from_slice(dims),
            strides,
            offset: self.offset,
        })
    }

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
}

/// A view with as few axes as possible: extents and strides from the outermost axis to the innermost. No axis for a
/// single element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Walk {
    /// Extents above one with their strides, in elements.
    pub axes: SmallVec<[(usize, isize); 4]>,
    /// Where the first element lies.
    pub offset: isize,
}

impl Walk {
    /// The walk of a view: extents of one are dropped, neighbours that are walked alike are merged.
    pub fn of(view: &View) -> Walk {
        let mut axes: SmallVec<[(usize, isize); 4]> = SmallVec::new();
        for (&extent, &stride) in view.dims.iter().zip(&view.strides).rev() {
            let (extent, stride) = (extent as usize, stride as isize);
            match axes.last_mut() {
                _ if extent == 1 => {}
                Some(inner) if stride == inner.1 * inner.0 as isize => inner.0 *= extent,
                _ => axes.push((extent, stride)),
            }
        }
        axes.reverse();
        Walk {
            axes,
            offset: view.offset as isize,
        }
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.axes.iter().map(|axis| axis.0).product()
    }

    /// The distance of neighbouring elements; 0 for a single one.
    pub fn inner_stride(&self) -> isize {
        self.axes.last().map_or(0, |axis| axis.1)
    }

    /// For each axis but the outermost boundary: the elements behind one step of it.
    pub fn boundaries(&self) -> SmallVec<[usize; 4]> {
        let mut inner = 1;
        let mut found = SmallVec::new();
        for axis in self.axes.iter().rev() {
            inner *= axis.0;
            found.push(inner);
        }
        found
    }

    /// The strides along `extents`, of which each axis of the walk is a product of neighbours; none if it is not.
    pub fn on(&self, extents: &[usize]) -> Option<SmallVec<[isize; 6]>> {
        let mut strides: SmallVec<[isize; 6]> = SmallVec::from_elem(0, extents.len());
        let mut axes = self.axes.iter().rev();
        let (mut left, mut stride) = (1, 0);
        for (axis, &extent) in extents.iter().enumerate().rev() {
            if extent == 1 {
                continue;
            }
            if left == 1 {
                (left, stride) = axes.next().copied()?;
            }
            if left % extent != 0 {
                return None;
            }
            strides[axis] = stride;
            left /= extent;
            stride *= extent as isize;
        }
        (left == 1 && axes.next().is_none()).then_some(strides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_merged_and_split() {
        let bias = View::dense(&[4]).broadcast(&[2, 3, 4], &[2]);
        let walk = Walk::of(&bias);
        assert_eq!(walk.axes[..], [(6, 0), (4, 1)]);
        assert_eq!(walk.boundaries()[..], [4, 24]);
        assert_eq!(walk.on(&[2, 3, 2, 2]).unwrap()[..], [0, 0, 2, 1]);
        assert!(walk.on(&[3, 8]).is_none());
    }

    #[test]
    fn reshapes_that_need_no_copy() {
        let bias = View::dense(&[4]).broadcast(&[2, 3, 4], &[2]);
        assert_eq!(bias.reshape(&[6, 2, 2]).unwrap().strides[..], [0, 2, 1]);
        let turned = View::dense(&[2, 3]).transpose(&[1, 0]);
        assert!(turned.reshape(&[6]).is_none());
        assert_eq!(turned.reshape(&[3, 1, 2]).unwrap().strides[..], [1, 0, 3]);
    }
}
