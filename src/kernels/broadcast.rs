//! Elementwise functions of operands that broadcast against each other, as in numpy.
//!
//! A [`Broadcast`] plan aligns the operands' dimensions with the output's at the right, drops extents of one and
//! merges neighbouring dimensions that every operand walks alike. What remains is an outer counter and an inner
//! row in which an operand either advances by one element or repeats one.
//!
//! The operands are dense and row-major. Shapes that do not broadcast panic: the caller has checked them.

use crate::cpu::{self, Vectorized};
use crate::elementwise;
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use smallvec::SmallVec;
use std::ops::Range;

/// How `N` operands are walked to produce one dense output.
#[derive(Clone, Debug, PartialEq)]
pub struct Broadcast<const N: usize> {
    /// Extents, outermost first; at least one.
    dims: SmallVec<[usize; 6]>,
    /// For each dimension the step of every operand, in elements.
    strides: SmallVec<[[usize; N]; 6]>,
}

impl<const N: usize> Broadcast<N> {
    /// Plans the walk. Panics if an operand does not broadcast to `out_dims`.
    pub fn new(out_dims: &[usize], operands: [&[usize]; N]) -> Broadcast<N> {
        let mut plan = Broadcast {
            dims: SmallVec::new(),
            strides: SmallVec::new(),
        };
        let mut products = [1; N];
        // From the innermost dimension outwards, kept reversed until the end.
        for (back, &extent) in out_dims.iter().rev().enumerate() {
            let mut steps = [0; N];
            for (operand, dims) in operands.iter().enumerate() {
                let own = dims.len().checked_sub(back + 1).map_or(1, |at| dims[at]);
                assert!(
                    own == extent || own == 1,
                    "{dims:?} does not broadcast to {out_dims:?}"
                );
                steps[operand] = if own == 1 { 0 } else { products[operand] };
                products[operand] *= own;
            }
            if extent != 1 {
                plan.push_outer(extent, steps);
            }
        }
        assert!(
            operands.iter().all(|dims| dims.len() <= out_dims.len()),
            "operand of too high a rank"
        );
        if plan.dims.is_empty() {
            plan.push_outer(1, [0; N]);
        }
        plan.dims.reverse();
        plan.strides.reverse();
        plan
    }

    fn push_outer(&mut self, extent: usize, steps: [usize; N]) {
        if let (Some(inner), Some(inner_steps)) = (self.dims.last_mut(), self.strides.last()) {
            let merges = (0..N).all(|n| steps[n] == inner_steps[n] * *inner);
            if merges {
                *inner *= extent;
                return;
            }
        }
        self.dims.push(extent);
        self.strides.push(steps);
    }

    /// The number of output elements.
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// True without output elements.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }

    /// The extent of a row.
    pub fn row_len(&self) -> usize {
        self.dims[self.dims.len() - 1]
    }

    /// The step of each operand inside a row: 0 or 1.
    pub fn row_strides(&self) -> [usize; N] {
        self.strides[self.strides.len() - 1]
    }

    /// Calls `row(output range, operands' first elements)` for the pieces of rows that make up `range`.
    #[inline(always)]
    pub fn for_each_row(&self, range: Range<usize>, mut row: impl FnMut(Range<usize>, [usize; N])) {
        let inner = self.row_len();
        let inner_steps = self.row_strides();
        let outer = self.dims.len() - 1;
        if range.is_empty() {
            return;
        }
        let mut counter: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer);
        let mut base = [0; N];
        let mut rest = range.start / inner;
        for axis in (0..outer).rev() {
            counter[axis] = rest % self.dims[axis];
            rest /= self.dims[axis];
            (0..N).for_each(|n| base[n] += counter[axis] * self.strides[axis][n]);
        }
        let mut at = range.start;
        loop {
            let column = at % inner;
            let end = range.end.min(at - column + inner);
            let mut first = base;
            (0..N).for_each(|n| first[n] += column * inner_steps[n]);
            row(at..end, first);
            at = end;
            if at == range.end {
                return;
            }
            for axis in (0..outer).rev() {
                counter[axis] += 1;
                (0..N).for_each(|n| base[n] += self.strides[axis][n]);
                if counter[axis] < self.dims[axis] {
                    break;
                }
                (0..N).for_each(|n| base[n] -= self.strides[axis][n] * self.dims[axis]);
                counter[axis] = 0;
            }
        }
    }
}

/// The operand's elements of a row: `len` of them, or one that repeats.
#[inline(always)]
fn operand<T>(data: &[T], first: usize, len: usize, stride: usize) -> &[T] {
    if stride == 0 {
        &data[first..first + 1]
    } else {
        &data[first..first + len]
    }
}

struct Rows2<'a, A, B, O, F> {
    plan: &'a Broadcast<2>,
    range: Range<usize>,
    a: &'a [A],
    b: &'a [B],
    out: &'a mut [O],
    f: F,
}

impl<A: Copy, B: Copy, O, F: Fn(A, B) -> O> Vectorized for Rows2<'_, A, B, O, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Rows2 {
            plan,
            range,
            a,
            b,
            out,
            f,
        } = self;
        let [step_a, step_b] = plan.row_strides();
        let start = range.start;
        plan.for_each_row(range, |at, [first_a, first_b]| {
            let out = &mut out[at.start - start..at.end - start];
            let a = operand(a, first_a, out.len(), step_a);
            let b = operand(b, first_b, out.len(), step_b);
            match (step_a, step_b) {
                (0, 0) => {
                    let (a, b) = (a[0], b[0]);
                    out.iter_mut().for_each(|o| *o = f(a, b));
                }
                (_, 0) => {
                    let b = b[0];
                    out.iter_mut().zip(a).for_each(|(o, &a)| *o = f(a, b));
                }
                (0, _) => {
                    let a = a[0];
                    out.iter_mut().zip(b).for_each(|(o, &b)| *o = f(a, b));
                }
                _ => out
                    .iter_mut()
                    .zip(a)
                    .zip(b)
                    .for_each(|((o, &a), &b)| *o = f(a, b)),
            }
        });
    }
}

/// `out = f(a, b)` with broadcasting; `cost` as in [`elementwise`].
pub fn binary_broadcast<A, B, O, F>(
    pool: &ThreadPool,
    a: &[A],
    a_dims: &[usize],
    b: &[B],
    b_dims: &[usize],
    out: &mut [O],
    out_dims: &[usize],
    cost: f64,
    f: F,
) where
    A: Copy + Sync,
    B: Copy + Sync,
    O: Send,
    F: Fn(A, B) -> O + Sync + Copy,
{
    if a.len() == out.len() && b.len() == out.len() {
        return elementwise::binary(pool, a, b, out, cost, f);
    }
    let plan = Broadcast::new(out_dims, [a_dims, b_dims]);
    assert_eq!(plan.len(), out.len());
    let total = out.len();
    let out = SharedMut::new(out);
    pool.parallel_for(total, cost, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        let part = unsafe { out.range(range.clone()) };
        let rows = Rows2 {
            plan: &plan,
            range,
            a,
            b,
            out: part,
            f,
        };
        if cost >= elementwise::cost::TRANSCENDENTAL {
            cpu::dispatch_wide(rows)
        } else {
            cpu::dispatch(rows)
        }
    });
}

/// `a = f(a, b)` where `b` broadcasts to the dimensions of `a`.
pub fn binary_broadcast_in_place<A, B, F>(
    pool: &ThreadPool,
    a: &mut [A],
    a_dims: &[usize],
    b: &[B],
    b_dims: &[usize],
    cost: f64,
    f: F,
) where
    A: Copy + Send + Sync,
    B: Copy + Sync,
    F: Fn(A, B) -> A + Sync + Copy,
{
    if a.len() == b.len() {
        return elementwise::binary_in_place(pool, a, b, cost, f);
    }
    let plan = Broadcast::new(a_dims, [b_dims]);
    assert_eq!(plan.len(), a.len());
    let total = a.len();
    let a = SharedMut::new(a);
    pool.parallel_for(total, cost, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        let part = unsafe { a.range(range.clone()) };
        cpu::dispatch(RowsInPlace {
            plan: &plan,
            range,
            a: part,
            b,
            f,
        });
    });
}

struct RowsInPlace<'a, A, B, F> {
    plan: &'a Broadcast<1>,
    range: Range<usize>,
    a: &'a mut [A],
    b: &'a [B],
    f: F,
}

impl<A: Copy, B: Copy, F: Fn(A, B) -> A> Vectorized for RowsInPlace<'_, A, B, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let RowsInPlace { plan, range, a, b, f } = self;
        let [step] = plan.row_strides();
        let start = range.start;
        plan.for_each_row(range, |at, [first]| {
            let a = &mut a[at.start - start..at.end - start];
            let b = operand(b, first, a.len(), step);
            if step == 0 {
                let b = b[0];
                a.iter_mut().for_each(|a| *a = f(*a, b));
            } else {
                a.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b));
            }
        });
    }
}

struct Rows3<'a, A, B, C, O, F> {
    plan: &'a Broadcast<3>,
    range: Range<usize>,
    a: &'a [A],
    b: &'a [B],
    c: &'a [C],
    out: &'a mut [O],
    f: F,
}

/// One row of three operands, each with a step of 0 or 1 known to the compiler.
#[inline(always)]
fn row3<const SA: usize, const SB: usize, const SC: usize, A: Copy, B: Copy, C: Copy, O>(
    a: &[A],
    b: &[B],
    c: &[C],
    out: &mut [O],
    f: impl Fn(A, B, C) -> O,
) {
    let n = out.len();
    assert!(n > 0 && a.len() > (n - 1) * SA && b.len() > (n - 1) * SB && c.len() > (n - 1) * SC);
    for (i, o) in out.iter_mut().enumerate() {
        *o = f(a[i * SA], b[i * SB], c[i * SC]);
    }
}

impl<A: Copy, B: Copy, C: Copy, O, F: Fn(A, B, C) -> O> Vectorized for Rows3<'_, A, B, C, O, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Rows3 {
            plan,
            range,
            a,
            b,
            c,
            out,
            f,
        } = self;
        let [step_a, step_b, step_c] = plan.row_strides();
        let start = range.start;
        plan.for_each_row(range, |at, [first_a, first_b, first_c]| {
            let out = &mut out[at.start - start..at.end - start];
            let a = operand(a, first_a, out.len(), step_a);
            let b = operand(b, first_b, out.len(), step_b);
            let c = operand(c, first_c, out.len(), step_c);
            match (step_a, step_b, step_c) {
                (0, 0, 0) => row3::<0, 0, 0, _, _, _, _>(a, b, c, out, &f),
                (0, 0, _) => row3::<0, 0, 1, _, _, _, _>(a, b, c, out, &f),
                (0, _, 0) => row3::<0, 1, 0, _, _, _, _>(a, b, c, out, &f),
                (0, _, _) => row3::<0, 1, 1, _, _, _, _>(a, b, c, out, &f),
                (_, 0, 0) => row3::<1, 0, 0, _, _, _, _>(a, b, c, out, &f),
                (_, 0, _) => row3::<1, 0, 1, _, _, _, _>(a, b, c, out, &f),
                (_, _, 0) => row3::<1, 1, 0, _, _, _, _>(a, b, c, out, &f),
                _ => row3::<1, 1, 1, _, _, _, _>(a, b, c, out, &f),
            }
        });
    }
}

/// `out = f(a, b, c)` with broadcasting; `cost` as in [`elementwise`].
pub fn ternary_broadcast<A, B, C, O, F>(
    pool: &ThreadPool,
    (a, a_dims): (&[A], &[usize]),
    (b, b_dims): (&[B], &[usize]),
    (c, c_dims): (&[C], &[usize]),
    out: &mut [O],
    out_dims: &[usize],
    cost: f64,
    f: F,
) where
    A: Copy + Sync,
    B: Copy + Sync,
    C: Copy + Sync,
    O: Send,
    F: Fn(A, B, C) -> O + Sync + Copy,
{
    let plan = Broadcast::new(out_dims, [a_dims, b_dims, c_dims]);
    assert_eq!(plan.len(), out.len());
    let total = out.len();
    let out = SharedMut::new(out);
    pool.parallel_for(total, cost, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        let part = unsafe { out.range(range.clone()) };
        cpu::dispatch(Rows3 {
            plan: &plan,
            range,
            a,
            b,
            c,
            out: part,
            f,
        });
    });
}

/// Copies `x` into `out`, repeating it along dimensions where its extent is one.
pub fn broadcast_to<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    x_dims: &[usize],
    out: &mut [T],
    out_dims: &[usize],
) {
    let plan = Broadcast::new(out_dims, [x_dims]);
    assert_eq!(plan.len(), out.len());
    let total = out.len();
    let repeats = plan.row_strides() == [0];
    let out = SharedMut::new(out);
    pool.parallel_for(total, elementwise::cost::SIMPLE, |range| {
        plan.for_each_row(range, |at, [first]| {
            let len = at.len();
            // SAFETY: the ranges of a loop are disjoint.
            let row = unsafe { out.range(at) };
            if repeats {
                row.fill(x[first]);
            } else {
                row.copy_from_slice(&x[first..first + len]);
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elementwise::cost;

    #[test]
    fn plans_merge_dimensions() {
        let plan = Broadcast::new(&[4, 5, 6], [&[4, 5, 6], &[6]]);
        assert_eq!(plan.dims.as_slice(), [20, 6]);
        assert_eq!(plan.row_strides(), [1, 1]);
        let plan = Broadcast::new(&[4, 5, 6], [&[4, 5, 6], &[]]);
        assert_eq!(plan.dims.as_slice(), [120]);
        assert_eq!(plan.row_strides(), [1, 0]);
        let plan = Broadcast::new(&[4, 1, 6], [&[4, 1, 1], &[1, 6]]);
        assert_eq!(plan.dims.as_slice(), [4, 6]);
        let plan = Broadcast::new(&[1, 1], [&[1, 1], &[]]);
        assert_eq!(plan.dims.as_slice(), [1]);
        assert!(Broadcast::new(&[3, 0], [&[3, 0]]).is_empty());
    }

    #[test]
    #[should_panic(expected = "does not broadcast")]
    fn mismatched_shapes_panic() {
        Broadcast::new(&[4, 5], [&[4, 5], &[4]]);
    }

    /// The definition: every output index mapped to each operand's element.
    fn naive(out_dims: &[usize], dims: &[usize]) -> Vec<usize> {
        let total: usize = out_dims.iter().product();
        (0..total)
            .map(|mut flat| {
                let (mut at, mut step) = (0, 1);
                for (back, &extent) in out_dims.iter().rev().enumerate() {
                    let index = flat % extent;
                    flat /= extent;
                    if back < dims.len() {
                        let own = dims[dims.len() - 1 - back];
                        at += if own == 1 { 0 } else { index * step };
                        step *= own;
                    }
                }
                at
            })
            .collect()
    }

    #[test]
    fn every_pattern_of_ones() {
        let pool = ThreadPool::new(2);
        let full = [3, 4, 2, 5];
        let mask = |bits: usize| -> Vec<usize> {
            full.iter()
                .enumerate()
                .map(|(i, &d)| if bits >> i & 1 == 1 { 1 } else { d })
                .collect()
        };
        for bits_a in 0..16 {
            for bits_b in 0..16 {
                let (a_dims, b_dims) = (mask(bits_a), mask(bits_b));
                let out_dims: Vec<usize> = a_dims.iter().zip(&b_dims).map(|(&a, &b)| a.max(b)).collect();
                let a: Vec<i64> = (0..a_dims.iter().product::<usize>() as i64).collect();
                let b: Vec<i32> = (0..b_dims.iter().product::<usize>() as i32).collect();
                let (at_a, at_b) = (naive(&out_dims, &a_dims), naive(&out_dims, &b_dims));
                let mut out = vec![0; at_a.len()];
                let f = |x: i64, y: i32| x * 1000 + i64::from(y);
                // A cost that makes the loop split in odd places.
                binary_broadcast(&pool, &a, &a_dims, &b, &b_dims, &mut out, &out_dims, 1e5, f);
                assert!(
                    (0..out.len()).all(|i| out[i] == f(a[at_a[i]], b[at_b[i]])),
                    "{a_dims:?} {b_dims:?}"
                );
                let c = [7_i64];
                let g = |x: i64, y: i32, z: i64| f(x, y) + z;
                let operands = ((&a[..], &a_dims[..]), (&b[..], &b_dims[..]), (&c[..], &[][..]));
                ternary_broadcast(
                    &pool, operands.0, operands.1, operands.2, &mut out, &out_dims, 1e5, g,
                );
                assert!((0..out.len()).all(|i| out[i] == f(a[at_a[i]], b[at_b[i]]) + 7));
                broadcast_to(&pool, &a, &a_dims, &mut out, &out_dims);
                assert!((0..out.len()).all(|i| out[i] == a[at_a[i]]));
                let mut a_full = vec![5_i64; out.len()];
                binary_broadcast_in_place(&pool, &mut a_full, &out_dims, &b, &b_dims, cost::SIMPLE, f);
                assert!((0..out.len()).all(|i| a_full[i] == f(5, b[at_b[i]])));
            }
        }
    }

    #[test]
    fn empty_and_scalar() {
        let pool = ThreadPool::serial();
        let mut out: [f32; 0] = [];
        binary_broadcast(
            pool,
            &[],
            &[0, 1],
            &[1.0],
            &[],
            &mut out,
            &[0, 1],
            1.0,
            |a: f32, b: f32| a + b,
        );
        let mut out = [0.0];
        binary_broadcast(
            pool,
            &[2.0],
            &[],
            &[1.0],
            &[],
            &mut out,
            &[],
            1.0,
            |a: f32, b: f32| a + b,
        );
        assert_eq!(out, [3.0]);
    }
}
