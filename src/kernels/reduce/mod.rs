//! Reductions over any set of axes.
//!
//! Extents are merged into groups of kept and reduced axes. Reduced groups at the end give rows, each folded in a
//! fixed number of lanes and blocks; reduced groups before kept ones give columns, folded row by row; other orders
//! are transposed first. Lanes, blocks and the order of combining depend on the extents only, so a result has the
//! same bits for any number of threads, and sums are accurate (blocked and pairwise).

mod arg;
mod operators;

pub use arg::arg_reduce;
pub use operators::{Accumulate, all, any, max, maximum, mean, min, minimum, product, square_sum, sum};

use crate::cpu::{self, Vectorized};
use crate::lanes::{self, LANES};
use crate::memory::SharedMut;
use crate::movement;
use crate::pool::ThreadPool;
use crate::scratch::OutOfMemory;
use smallvec::SmallVec;

/// Elements of a row that are folded before partial results are combined.
const ROW_BLOCK: usize = 4096;
/// Columns whose partial results stay in the first cache.
const COLUMNS: usize = 1024;
/// Time of an element in nanoseconds.
const COST: f64 = 0.15;

/// Rows of columns that are folded before partial results are combined: about as many as there will be partial results,
/// so that rounding errors add up as seldom as they can.
pub fn column_block(rows: usize) -> usize {
    rows.isqrt().next_power_of_two().clamp(8, 128)
}

/// What is done with the elements: `finish(combine(.. combine(identity, map(x)) ..))`.
///
/// `combine` must be associative and commutative up to rounding, with `identity` as its neutral element.
#[derive(Clone, Copy, Debug)]
pub struct Fold<A, M, C, F> {
    /// The neutral element.
    pub identity: A,
    /// From an element to the accumulator.
    pub map: M,
    /// Of two accumulators.
    pub combine: C,
    /// From the accumulator to the result.
    pub finish: F,
}

/// Reduces the axes marked in `reduced`; `out` has the kept axes, in order.
pub fn reduce<T, A, O, M, C, F>(
    pool: &ThreadPool,
    x: &[T],
    dims: &[usize],
    reduced: &[bool],
    out: &mut [O],
    fold: &Fold<A, M, C, F>,
) -> Result<(), OutOfMemory>
where
    T: Copy + Send + Sync,
    A: Copy + Send + Sync,
    O: Send,
    M: Fn(T) -> A + Sync + Copy,
    C: Fn(A, A) -> A + Sync + Copy,
    F: Fn(A) -> O + Sync + Copy,
{
    assert_eq!(dims.len(), reduced.len());
    let product = |wanted: bool| -> usize {
        dims.iter()
            .zip(reduced)
            .filter(|&(_, &r)| r == wanted)
            .map(|(&d, _)| d)
            .product()
    };
    let (kept, folded) = (product(false), product(true));
    assert!(out.len() == kept && x.len() >= kept * folded, "wrong extents");
    if kept == 0 || folded == 0 {
        out.iter_mut().for_each(|o| *o = (fold.finish)(fold.identity));
        return Ok(());
    }
    let x = &x[..kept * folded];
    let groups = groups(dims, reduced);
    match groups.as_slice() {
        [] | [(_, true)] | [(_, false), (_, true)] => rows(pool, x, folded, out, fold),
        [(_, false)] => columns(pool, x, (kept, 1, 1), out, fold),
        [(r, true), (k, false)] => columns(pool, x, (1, *r, *k), out, fold),
        [(outer, false), (r, true), (k, false)] => columns(pool, x, (*outer, *r, *k), out, fold),
        _ => {
            let dims: SmallVec<[usize; 8]> = groups.iter().map(|group| group.0).collect();
            let of = |wanted: bool| (0..groups.len()).filter(move |&i| groups[i].1 == wanted);
            let order: SmallVec<[usize; 8]> = of.clone()(false).chain(of(true)).collect();
            let mut moved = Vec::new();
            let bytes = std::mem::size_of_val(x);
            moved
                .try_reserve_exact(x.len())
                .map_err(|_| OutOfMemory { bytes })?;
            moved.extend_from_slice(x);
            movement::transpose(pool, x, &dims, &order, &mut moved);
            rows(pool, &moved, folded, out, fold)
        }
    }
}

/// Neighbouring axes of one kind merged, extents of one dropped.
fn groups(dims: &[usize], reduced: &[bool]) -> SmallVec<[(usize, bool); 6]> {
    let mut groups: SmallVec<[(usize, bool); 6]> = SmallVec::new();
    for (&extent, &is_reduced) in dims.iter().zip(reduced) {
        match groups.last_mut() {
            _ if extent == 1 => {}
            Some(last) if last.1 == is_reduced => last.0 *= extent,
            _ => groups.push((extent, is_reduced)),
        }
    }
    groups
}

struct Row<'a, T, A, M, C>(&'a [T], A, M, C);

impl<T, A, M, C> Vectorized for Row<'_, T, A, M, C>
where
    T: Copy,
    A: Copy,
    M: Fn(T) -> A + Copy,
    C: Fn(A, A) -> A + Copy,
{
    type Output = A;
    #[inline(always)]
    fn run(self) -> A {
        let Row(x, identity, map, combine) = self;
        if x.len() < 2 * LANES {
            return x.iter().fold(identity, |sum, &v| combine(sum, map(v)));
        }
        lanes::fold(x, identity, map, combine)
    }
}

/// Folds each row of `length` contiguous elements.
fn rows<T, A, O, M, C, F>(
    pool: &ThreadPool,
    x: &[T],
    length: usize,
    out: &mut [O],
    fold: &Fold<A, M, C, F>,
) -> Result<(), OutOfMemory>
where
    T: Copy + Send + Sync,
    A: Copy + Send + Sync,
    O: Send,
    M: Fn(T) -> A + Sync + Copy,
    C: Fn(A, A) -> A + Sync + Copy,
    F: Fn(A) -> O + Sync + Copy,
{
    let block = |x: &[T]| cpu::dispatch(Row(x, fold.identity, fold.map, fold.combine));
    let (count, blocks) = (out.len(), length.div_ceil(ROW_BLOCK));
    let cost = length.min(ROW_BLOCK) as f64 * COST + 2.0;
    if blocks == 1 {
        let out = SharedMut::new(out);
        pool.parallel_for(count, cost, |range| {
            for row in range {
                let value = (fold.finish)(block(&x[row * length..(row + 1) * length]));
                // SAFETY: rows are disjoint.
                unsafe { out.write(row, value) };
            }
        });
        return Ok(());
    }
    let mut partial = filled(fold.identity, count * blocks)?;
    let shared = SharedMut::new(&mut partial);
    pool.parallel_for(count * blocks, cost, |range| {
        for index in range {
            let (row, at) = (index / blocks, index % blocks * ROW_BLOCK);
            let part = &x[row * length + at..row * length + length.min(at + ROW_BLOCK)];
            // SAFETY: blocks are disjoint.
            unsafe { shared.write(index, block(part)) };
        }
    });
    for (out, partial) in out.iter_mut().zip(partial.chunks_exact(blocks)) {
        *out = (fold.finish)(pairwise(partial, fold.combine));
    }
    Ok(())
}

/// Combines neighbours, then neighbours of the results, and so on.
fn pairwise<A: Copy>(x: &[A], combine: impl Fn(A, A) -> A + Copy) -> A {
    if x.len() <= 4 {
        return x[1..].iter().fold(x[0], |sum, &v| combine(sum, v));
    }
    let (low, high) = x.split_at(x.len().div_ceil(2));
    combine(pairwise(low, combine), pairwise(high, combine))
}

fn filled<A: Copy>(value: A, len: usize) -> Result<Vec<A>, OutOfMemory> {
    let mut vector = Vec::new();
    let bytes = len.saturating_mul(size_of::<A>());
    vector.try_reserve_exact(len).map_err(|_| OutOfMemory { bytes })?;
    vector.resize(len, value);
    Ok(vector)
}

/// Folds rows of `x` into `sums`, column by column.
struct Columns<'a, T, A, M, C> {
    x: &'a [T],
    step: usize,
    rows: usize,
    sums: &'a mut [A],
    map: M,
    combine: C,
}

impl<T, A, M, C> Vectorized for Columns<'_, T, A, M, C>
where
    T: Copy,
    A: Copy,
    M: Fn(T) -> A,
    C: Fn(A, A) -> A,
{
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for row in 0..self.rows {
            let x = &self.x[row * self.step..][..self.sums.len()];
            for (sum, &v) in self.sums.iter_mut().zip(x) {
                *sum = (self.combine)(*sum, (self.map)(v));
            }
        }
    }
}

/// Folds the middle axis of `[outer, length, width]`.
fn columns<T, A, O, M, C, F>(
    pool: &ThreadPool,
    x: &[T],
    (outer, length, width): (usize, usize, usize),
    out: &mut [O],
    fold: &Fold<A, M, C, F>,
) -> Result<(), OutOfMemory>
where
    T: Copy + Send + Sync,
    A: Copy + Send + Sync,
    O: Send,
    M: Fn(T) -> A + Sync + Copy,
    C: Fn(A, A) -> A + Sync + Copy,
    F: Fn(A) -> O + Sync + Copy,
{
    let block_rows = column_block(length);
    let blocks = length.div_ceil(block_rows);
    let strips = width.div_ceil(COLUMNS);
    let mut partial = filled(fold.identity, outer * blocks * width)?;
    let shared = SharedMut::new(&mut partial);
    let cost = (length.min(block_rows) * width.min(COLUMNS)) as f64 * COST;
    pool.parallel_for(outer * blocks * strips, cost, |range| {
        for index in range {
            let (part, strip) = (index / strips, index % strips);
            let (o, block) = (part / blocks, part % blocks);
            let columns = strip * COLUMNS..width.min((strip + 1) * COLUMNS);
            let rows = block_rows.min(length - block * block_rows);
            let start = (o * length + block * block_rows) * width + columns.start;
            // SAFETY: strips of blocks are disjoint.
            let sums = unsafe { shared.range(part * width + columns.start..part * width + columns.end) };
            let (map, combine) = (fold.map, fold.combine);
            cpu::dispatch(Columns {
                x: &x[start..],
                step: width,
                rows,
                sums,
                map,
                combine,
            });
        }
    });
    for (out, partial) in out
        .chunks_exact_mut(width)
        .zip(partial.chunks_exact_mut(blocks * width))
    {
        // Halves onto halves: pairwise over the blocks.
        let mut left = blocks;
        while left > 1 {
            let half = left.div_ceil(2);
            let (low, high) = partial.split_at_mut(half * width);
            for (a, &b) in low.iter_mut().zip(&high[..(left - half) * width]) {
                *a = (fold.combine)(*a, b);
            }
            left = half;
        }
        for (out, &sum) in out.iter_mut().zip(partial.iter()) {
            *out = (fold.finish)(sum);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
