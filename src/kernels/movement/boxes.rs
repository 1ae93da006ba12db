//! The copy of a box of elements between two strided places: the one loop under all movements.
//!
//! Axes of extent one are dropped and axes that both sides walk alike are merged. Then rows that are contiguous on
//! both sides are copied whole; where the contiguous axes differ, small squares keep both sides in cache.

use super::PerAxis;
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use std::ops::Range;

/// Where a box lies: its first element, and the distance between neighbours along each axis.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    /// The first element.
    pub offset: usize,
    /// One step per axis.
    pub strides: &'a [isize],
}

impl Strided<'_> {
    /// Panics if the box reaches outside of `len` elements.
    fn check(&self, dims: &[usize], len: usize) {
        assert_eq!(self.strides.len(), dims.len());
        let (mut lowest, mut highest) = (self.offset as i128, self.offset as i128);
        for (&extent, &stride) in dims.iter().zip(self.strides) {
            let reach = (extent as i128 - 1) * stride as i128;
            lowest += reach.min(0);
            highest += reach.max(0);
        }
        assert!(
            lowest >= 0 && highest < len as i128,
            "box reaches outside of its data"
        );
    }
}

#[derive(Clone, Copy)]
struct Axis {
    extent: usize,
    from: isize,
    to: isize,
}

/// Side of the squares, in elements.
const SQUARE: usize = 16;

/// Copies a box of `dims` elements.
///
/// Elements of the destination must be distinct: no stride of zero, no overlapping axes. Panics if a box reaches
/// outside.
pub fn copy_box<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    dims: &[usize],
    x: &[T],
    from: Strided<'_>,
    out: &mut [T],
    to: Strided<'_>,
) {
    if dims.contains(&0) {
        return;
    }
    from.check(dims, x.len());
    to.check(dims, out.len());
    let mut axes = merged(dims, from.strides, to.strides);
    let out = SharedMut::new(out);
    // The addresses are inside of the slices for every index of the box, as checked above.
    let (source, target) = (
        x.as_ptr().wrapping_add(from.offset),
        out.as_ptr().wrapping_add(to.offset),
    );
    let job = Job { source, target };
    let inner = axes.pop().unwrap_or(Axis {
        extent: 1,
        from: 1,
        to: 1,
    });
    let element = size_of::<T>() as f64 * 0.05;
    if inner.from == 1 && inner.to == 1 {
        job.rows(pool, &axes, inner, element);
        return;
    }
    let across = axes
        .iter()
        .rposition(|axis| axis.from.abs() == 1 && axis.extent >= 4);
    match across {
        Some(position) if inner.extent >= 4 && inner.from != 0 => {
            let across = axes.remove(position);
            job.squares(pool, &axes, across, inner, element + 0.3);
        }
        _ => job.scattered(pool, &axes, inner, element + 0.5),
    }
}

fn merged(dims: &[usize], from: &[isize], to: &[isize]) -> PerAxis<Axis> {
    let mut axes: PerAxis<Axis> = PerAxis::new();
    for ((&extent, &from), &to) in dims.iter().zip(from).zip(to) {
        if extent == 1 {
            continue;
        }
        if let Some(outer) = axes.last_mut() {
            let steps = extent as isize;
            if outer.from == from * steps && outer.to == to * steps {
                *outer = Axis {
                    extent: outer.extent * extent,
                    from,
                    to,
                };
                continue;
            }
        }
        axes.push(Axis { extent, from, to });
    }
    axes
}

/// The two first elements of a box.
#[derive(Clone, Copy)]
struct Job<T> {
    source: *const T,
    target: *mut T,
}
// SAFETY: threads read the source, and write disjoint elements of the target.
unsafe impl<T: Send + Sync> Sync for Job<T> {}

impl<T: Copy + Send + Sync> Job<T> {
    /// Contiguous rows; a single long row is cut into pieces.
    fn rows(&self, pool: &ThreadPool, outer: &[Axis], row: Axis, element: f64) {
        if outer.is_empty() {
            let job = *self;
            pool.parallel_for(row.extent, element, move |part| {
                let job = &job;
                // SAFETY: inside of both slices; parts are disjoint.
                unsafe {
                    let (from, to) = (job.source.add(part.start), job.target.add(part.start));
                    std::ptr::copy_nonoverlapping(from, to, part.len());
                }
            });
            return;
        }
        let count = outer.iter().map(|axis| axis.extent).product();
        pool.parallel_for(count, element * row.extent as f64 + 2.0, |part| {
            self.walk(outer, part, |from, to| {
                // SAFETY: rows lie inside of both slices.
                unsafe { std::ptr::copy_nonoverlapping(from, to, row.extent) }
            });
        });
    }

    /// Rows of single elements.
    fn scattered(&self, pool: &ThreadPool, outer: &[Axis], row: Axis, element: f64) {
        let count = outer.iter().map(|axis| axis.extent).product();
        pool.parallel_for(count, element * row.extent as f64 + 2.0, |part| {
            self.walk(outer, part, |from, to| {
                for i in 0..row.extent as isize {
                    // SAFETY: every index of the box lies inside of both slices.
                    unsafe { to.offset(i * row.to).write(from.offset(i * row.from).read()) };
                }
            });
        });
    }

    /// Planes whose rows are contiguous in the target and whose columns are contiguous in the source.
    fn squares(&self, pool: &ThreadPool, outer: &[Axis], across: Axis, row: Axis, element: f64) {
        let bands = across.extent.div_ceil(SQUARE);
        let count: usize = outer.iter().map(|axis| axis.extent).product();
        let cost = element * (row.extent * across.extent.min(SQUARE)) as f64;
        pool.parallel_for(count * bands, cost, |part| {
            for index in part {
                let (plane, band) = (index / bands, index % bands);
                let lines = band * SQUARE..across.extent.min((band + 1) * SQUARE);
                self.walk(outer, plane..plane + 1, |from, to| {
                    for first in (0..row.extent).step_by(SQUARE) {
                        let columns = first..row.extent.min(first + SQUARE);
                        // SAFETY: every index of the box lies inside of both slices.
                        unsafe { square(from, to, lines.clone(), columns, across, row) };
                    }
                });
            }
        });
    }

    /// Calls `f` with the addresses of the items `part` of the box of `axes`, in order.
    #[inline(always)]
    fn walk(&self, axes: &[Axis], part: Range<usize>, mut f: impl FnMut(*const T, *mut T)) {
        let mut counter: PerAxis<usize> = PerAxis::from_elem(0, axes.len());
        let (mut from, mut to) = (0, 0);
        let mut rest = part.start;
        for (position, axis) in axes.iter().enumerate().rev() {
            counter[position] = rest % axis.extent;
            rest /= axis.extent;
            from += counter[position] as isize * axis.from;
            to += counter[position] as isize * axis.to;
        }
        for _ in part {
            f(self.source.wrapping_offset(from), self.target.wrapping_offset(to));
            for (position, axis) in axes.iter().enumerate().rev() {
                counter[position] += 1;
                from += axis.from;
                to += axis.to;
                if counter[position] < axis.extent {
                    break;
                }
                counter[position] = 0;
                from -= axis.extent as isize * axis.from;
                to -= axis.extent as isize * axis.to;
            }
        }
    }
}

/// Copies one square.
///
/// # Safety
/// All its elements lie inside of both slices, and no other thread writes them.
#[inline(always)]
unsafe fn square<T: Copy>(
    from: *const T,
    to: *mut T,
    lines: Range<usize>,
    columns: Range<usize>,
    across: Axis,
    row: Axis,
) {
    for line in lines {
        let from = from.wrapping_offset(line as isize * across.from);
        let to = to.wrapping_offset(line as isize * across.to);
        for column in columns.clone() {
            let column = column as isize;
            // SAFETY: the function's contract.
            unsafe {
                to.offset(column * row.to)
                    .write(from.offset(column * row.from).read())
            };
        }
    }
}
