//! Moving elements: transpose, slice, reverse, pad, concatenate, tile, gather. Nothing here computes.
//!
//! All of it is for any `Copy` element; callers that hold bytes and an element size use [`by_size`]. Extents are
//! row-major. Bounds are checked before memory is touched; a wrong extent panics.

mod boxes;
mod gather;

pub use boxes::{Strided, copy_box};
pub use gather::{gather, gather_nd, scatter_rows};

use crate::pool::ThreadPool;
use smallvec::SmallVec;

/// Extents, strides: one number per axis.
type PerAxis<T> = SmallVec<[T; 8]>;

/// Row-major strides of dense data.
pub fn dense_strides(dims: &[usize]) -> SmallVec<[isize; 8]> {
    let mut strides: PerAxis<isize> = SmallVec::from_elem(1, dims.len());
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis] as isize;
    }
    strides
}

/// A movement of elements of any type, for [`by_size`].
pub trait Movement {
    /// Moves elements of type `T`.
    fn run<T: Copy + Send + Sync>(self, x: &[T], out: &mut [T]);
}

/// Runs a movement on bytes as elements of `size` bytes: 1, 2, 4, 8 or 16. No alignment is needed.
///
/// Returns false, having done nothing, for another size.
pub fn by_size(size: usize, x: &[u8], out: &mut [u8], movement: impl Movement) -> bool {
    match size {
        1 => movement.run(x, out),
        2 => movement.run(x.as_chunks::<2>().0, out.as_chunks_mut::<2>().0),
        4 => movement.run(x.as_chunks::<4>().0, out.as_chunks_mut::<4>().0),
        8 => movement.run(x.as_chunks::<8>().0, out.as_chunks_mut::<8>().0),
        16 => movement.run(x.as_chunks::<16>().0, out.as_chunks_mut::<16>().0),
        _ => return false,
    }
    true
}

/// Permutes axes: output axis `i` is input axis `permutation[i]`.
pub fn transpose<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    permutation: &[usize],
    out: &mut [T],
) {
    assert_eq!(dims.len(), permutation.len());
    let strides = dense_strides(dims);
    let out_dims: PerAxis<usize> = permutation.iter().map(|&axis| dims[axis]).collect();
    let moved: PerAxis<isize> = permutation.iter().map(|&axis| strides[axis]).collect();
    let from = Strided {
        offset: 0,
        strides: &moved,
    };
    let to = Strided {
        offset: 0,
        strides: &dense_strides(&out_dims),
    };
    copy_box(pool, &out_dims, x, from, out, to);
}

/// Takes `out_dims` elements of each axis, from `starts` on in steps of `steps`, which may be negative.
pub fn strided_slice<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    starts: &[usize],
    steps: &[isize],
    out_dims: &[usize],
    out: &mut [T],
) {
    assert!(dims.len() == starts.len() && dims.len() == steps.len() && dims.len() == out_dims.len());
    if out_dims.contains(&0) {
        return;
    }
    let strides = dense_strides(dims);
    for axis in 0..dims.len() {
        let last = starts[axis] as isize + (out_dims[axis] as isize - 1) * steps[axis];
        assert!(
            starts[axis] < dims[axis] && (0..dims[axis] as isize).contains(&last),
            "slice out of bounds"
        );
    }
    let offset: usize = (0..dims.len())
        .map(|axis| starts[axis] * strides[axis] as usize)
        .sum();
    let moved: PerAxis<isize> = (0..dims.len()).map(|axis| strides[axis] * steps[axis]).collect();
    let to = Strided {
        offset: 0,
        strides: &dense_strides(out_dims),
    };
    copy_box(
        pool,
        out_dims,
        x,
        Strided {
            offset,
            strides: &moved,
        },
        out,
        to,
    );
}

/// Writes `x` of `dims` into the elements of `out` that the same slice of it would take: the inverse of
/// [`strided_slice`]. The others stay.
pub fn strided_slice_assign<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    out: &mut [T],
    out_dims: &[usize],
    starts: &[usize],
    steps: &[isize],
) {
    assert!(dims.len() == starts.len() && dims.len() == steps.len() && dims.len() == out_dims.len());
    if dims.contains(&0) {
        return;
    }
    let strides = dense_strides(out_dims);
    for axis in 0..dims.len() {
        let last = starts[axis] as isize + (dims[axis] as isize - 1) * steps[axis];
        let extent = out_dims[axis];
        assert!(
            starts[axis] < extent && (0..extent as isize).contains(&last),
            "slice out of bounds"
        );
        assert!(steps[axis] != 0 || dims[axis] == 1, "a step of zero");
    }
    let offset: usize = (0..dims.len())
        .map(|axis| starts[axis] * strides[axis] as usize)
        .sum();
    let moved: PerAxis<isize> = (0..dims.len()).map(|axis| strides[axis] * steps[axis]).collect();
    let from = Strided {
        offset: 0,
        strides: &dense_strides(dims),
    };
    copy_box(
        pool,
        dims,
        x,
        from,
        out,
        Strided {
            offset,
            strides: &moved,
        },
    );
}

/// Reverses the order along `axes`.
pub fn reverse<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    axes: &[usize],
    out: &mut [T],
) {
    let mut starts: PerAxis<usize> = SmallVec::from_elem(0, dims.len());
    let mut steps: PerAxis<isize> = SmallVec::from_elem(1, dims.len());
    for &axis in axes {
        starts[axis] = dims[axis].saturating_sub(1);
        steps[axis] = -1;
    }
    strided_slice(pool, x, dims, &starts, &steps, dims, out);
}

/// Surrounds `x` with `value`: `low[axis]` elements before, the rest of `out_dims` after, `interior[axis]` between
/// neighbours. Negative `low`, or an `out_dims` that ends early, crops.
pub fn pad<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    low: &[isize],
    interior: &[usize],
    value: T,
    out: &mut [T],
    out_dims: &[usize],
) {
    assert!(dims.len() == low.len() && dims.len() == interior.len() && dims.len() == out_dims.len());
    let rank = dims.len();
    let (mut starts, mut to_starts): (PerAxis<usize>, PerAxis<usize>) =
        (SmallVec::from_elem(0, rank), SmallVec::from_elem(0, rank));
    let (mut kept, mut steps): (PerAxis<usize>, PerAxis<isize>) =
        (SmallVec::from_elem(0, rank), SmallVec::from_elem(1, rank));
    let mut complete = true;
    for axis in 0..rank {
        let step = interior[axis] as isize + 1;
        // Elements `first..end` of the input land inside of the output.
        let first = (-low[axis]).max(0).div_ceil_by(step);
        let end = (out_dims[axis] as isize - low[axis])
            .div_ceil_by(step)
            .min(dims[axis] as isize);
        starts[axis] = first as usize;
        kept[axis] = (end - first).max(0) as usize;
        to_starts[axis] = (low[axis] + first * step).max(0) as usize;
        steps[axis] = step;
        complete &= kept[axis] == out_dims[axis];
    }
    if !complete {
        fill(pool, out, value);
    }
    if kept.contains(&0) {
        return;
    }
    let (from_strides, to_strides) = (dense_strides(dims), dense_strides(out_dims));
    let place = |at: &[usize], strides: &[isize]| -> usize {
        at.iter()
            .zip(strides)
            .map(|(&at, &stride)| at * stride as usize)
            .sum()
    };
    let from = Strided {
        offset: place(&starts, &from_strides),
        strides: &from_strides,
    };
    let moved: PerAxis<isize> = (0..rank).map(|axis| to_strides[axis] * steps[axis]).collect();
    let to = Strided {
        offset: place(&to_starts, &to_strides),
        strides: &moved,
    };
    copy_box(pool, &kept, x, from, out, to);
}

trait DivCeil {
    /// The quotient rounded up, for a positive divisor.
    fn div_ceil_by(self, divisor: Self) -> Self;
}

impl DivCeil for isize {
    fn div_ceil_by(self, divisor: isize) -> isize {
        -(-self).div_euclid(divisor)
    }
}

/// Sets every element to `value`.
pub fn fill<T: Copy + Send + Sync>(pool: &ThreadPool, out: &mut [T], value: T) {
    let total = out.len();
    let out = crate::memory::SharedMut::new(out);
    pool.parallel_for(total, size_of::<T>() as f64 * 0.03, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        unsafe { out.range(range) }.fill(value);
    });
}

/// Copies `x` to `out`, of equal lengths.
pub fn copy<T: Copy + Send + Sync>(pool: &ThreadPool, x: &[T], out: &mut [T]) {
    assert_eq!(x.len(), out.len());
    let to = Strided {
        offset: 0,
        strides: &[1],
    };
    copy_box(pool, &[x.len()], x, to, out, to);
}

/// Places the inputs after each other along an axis. An input is `[outer, its extent, inner]`; `parts` lists the
/// elements and `extent * inner` of each.
pub fn concat<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    outer: usize,
    parts: &[(&[T], usize)],
    out: &mut [T],
) {
    let row: usize = parts.iter().map(|part| part.1).sum();
    assert!(out.len() >= outer * row, "output is too small");
    let mut offset = 0;
    for &(x, width) in parts {
        let from = Strided {
            offset: 0,
            strides: &[width as isize, 1],
        };
        let to = Strided {
            offset,
            strides: &[row as isize, 1],
        };
        copy_box(pool, &[outer, width], x, from, out, to);
        offset += width;
    }
}

/// Repeats `x` along each axis `multiples[axis]` times.
pub fn tile<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    multiples: &[usize],
    out: &mut [T],
) {
    assert_eq!(dims.len(), multiples.len());
    // As a broadcast from [1, d0, 1, d1, ..] to [m0, d0, m1, d1, ..].
    let strides = dense_strides(dims);
    let (mut split_dims, mut split_strides): (PerAxis<usize>, PerAxis<isize>) =
        (SmallVec::new(), SmallVec::new());
    for axis in 0..dims.len() {
        split_dims.extend([multiples[axis], dims[axis]]);
        split_strides.extend([0, strides[axis]]);
    }
    let from = Strided {
        offset: 0,
        strides: &split_strides,
    };
    let to = Strided {
        offset: 0,
        strides: &dense_strides(&split_dims),
    };
    copy_box(pool, &split_dims, x, from, out, to);
}

#[cfg(test)]
mod tests;
