//! Maps over contiguous slices of equal lengths: one, two or three inputs.
//!
//! `cost` is the expected time of one element in nanoseconds on one thread (see [`cost`]). The function is
//! inlined into loops compiled for the processor; give function items (`math::exp`) or short closures.
//! An element's result depends on its inputs only, never on its position or on the number of threads.

use crate::cpu::{self, Vectorized};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;

/// Typical costs of an element, in nanoseconds.
pub mod cost {
    /// Moves and simple arithmetic: bound by memory.
    pub const SIMPLE: f64 = 0.25;
    /// A vectorised transcendental function.
    pub const TRANSCENDENTAL: f64 = 1.0;
    /// A scalar call to a mathematical library.
    pub const LIBRARY: f64 = 10.0;
}

struct Map<'a, A, O, F>(&'a [A], &'a mut [O], F);
impl<A: Copy, O, F: Fn(A) -> O> Vectorized for Map<'_, A, O, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (out, &a) in self.1.iter_mut().zip(self.0) {
            *out = (self.2)(a);
        }
    }
}

struct MapInPlace<'a, A, F>(&'a mut [A], F);
impl<A: Copy, F: Fn(A) -> A> Vectorized for MapInPlace<'_, A, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for a in self.0 {
            *a = (self.1)(*a);
        }
    }
}

struct Map2<'a, A, B, O, F>(&'a [A], &'a [B], &'a mut [O], F);
impl<A: Copy, B: Copy, O, F: Fn(A, B) -> O> Vectorized for Map2<'_, A, B, O, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((out, &a), &b) in self.2.iter_mut().zip(self.0).zip(self.1) {
            *out = (self.3)(a, b);
        }
    }
}

struct Map2InPlace<'a, A, B, F>(&'a mut [A], &'a [B], F);
impl<A: Copy, B: Copy, F: Fn(A, B) -> A> Vectorized for Map2InPlace<'_, A, B, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (a, &b) in self.0.iter_mut().zip(self.1) {
            *a = (self.2)(*a, b);
        }
    }
}

struct Map3<'a, A, B, C, O, F>(&'a [A], &'a [B], &'a [C], &'a mut [O], F);
impl<A: Copy, B: Copy, C: Copy, O, F: Fn(A, B, C) -> O> Vectorized for Map3<'_, A, B, C, O, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (((out, &a), &b), &c) in self.3.iter_mut().zip(self.0).zip(self.1).zip(self.2) {
            *out = (self.4)(a, b, c);
        }
    }
}

/// Runs a loop at the width its cost deserves.
#[inline]
fn run<L: Vectorized<Output = ()>>(work: L, cost: f64) {
    if cost >= cost::TRANSCENDENTAL {
        cpu::dispatch_wide(work)
    } else {
        cpu::dispatch(work)
    }
}

/// `out[i] = f(a[i])` on the calling thread.
pub fn map<A: Copy, O>(a: &[A], out: &mut [O], cost: f64, f: impl Fn(A) -> O) {
    assert_eq!(a.len(), out.len());
    run(Map(a, out, f), cost);
}

/// `out[i] = f(a[i], b[i])` on the calling thread.
pub fn map2<A: Copy, B: Copy, O>(a: &[A], b: &[B], out: &mut [O], cost: f64, f: impl Fn(A, B) -> O) {
    assert!(a.len() == out.len() && b.len() == out.len());
    run(Map2(a, b, out, f), cost);
}

/// `out[i] = f(a[i])`.
pub fn unary<A, O, F>(pool: &ThreadPool, a: &[A], out: &mut [O], cost: f64, f: F)
where
    A: Copy + Sync,
    O: Send,
    F: Fn(A) -> O + Sync + Copy,
{
    assert_eq!(a.len(), out.len());
    let total = out.len();
    let out = SharedMut::new(out);
    pool.parallel_for(total, cost, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        let part = unsafe { out.range(range.clone()) };
        run(Map(&a[range], part, f), cost);
    });
}

/// `a[i] = f(a[i])`.
pub fn unary_in_place<A, F>(pool: &ThreadPool, a: &mut [A], cost: f64, f: F)
where
    A: Copy + Send + Sync,
    F: Fn(A) -> A + Sync + Copy,
{
    let total = a.len();
    let a = SharedMut::new(a);
    pool.parallel_for(total, cost, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        run(MapInPlace(unsafe { a.range(range) }, f), cost);
    });
}

/// `out[i] = f(a[i], b[i])`.
pub fn binary<A, B, O, F>(pool: &ThreadPool, a: &[A], b: &[B], out: &mut [O], cost: f64, f: F)
where
    A: Copy + Sync,
    B: Copy + Sync,
    O: Send,
    F: Fn(A, B) -> O + Sync + Copy,
{
    assert!(a.len() == out.len() && b.len() == out.len());
    let total = out.len();
    let out = SharedMut::new(out);
    pool.parallel_for(total, cost, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        let part = unsafe { out.range(range.clone()) };
        run(Map2(&a[range.clone()], &b[range], part, f), cost);
    });
}

/// `a[i] = f(a[i], b[i])`.
pub fn binary_in_place<A, B, F>(pool: &ThreadPool, a: &mut [A], b: &[B], cost: f64, f: F)
where
    A: Copy + Send + Sync,
    B: Copy + Sync,
    F: Fn(A, B) -> A + Sync + Copy,
{
    assert_eq!(a.len(), b.len());
    let total = a.len();
    let a = SharedMut::new(a);
    pool.parallel_for(total, cost, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        let part = unsafe { a.range(range.clone()) };
        run(Map2InPlace(part, &b[range], f), cost);
    });
}

/// `out[i] = f(a[i], b[i], c[i])`.
pub fn ternary<A, B, C, O, F>(pool: &ThreadPool, a: &[A], b: &[B], c: &[C], out: &mut [O], cost: f64, f: F)
where
    A: Copy + Sync,
    B: Copy + Sync,
    C: Copy + Sync,
    O: Send,
    F: Fn(A, B, C) -> O + Sync + Copy,
{
    assert!(a.len() == out.len() && b.len() == out.len() && c.len() == out.len());
    let total = out.len();
    let out = SharedMut::new(out);
    pool.parallel_for(total, cost, |range| {
        // SAFETY: the ranges of a loop are disjoint.
        let part = unsafe { out.range(range.clone()) };
        run(
            Map3(&a[range.clone()], &b[range.clone()], &c[range], part, f),
            cost,
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_all_arities() {
        let pool = ThreadPool::new(2);
        let n = 100_003;
        let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let b: Vec<i32> = (0..n).map(|i| i % 7).collect();
        let c: Vec<f32> = a.iter().map(|v| v * 0.5).collect();
        let mut out = vec![0.0; n as usize];
        unary(&pool, &a, &mut out, cost::SIMPLE, |v| v + 1.0);
        assert!(out.iter().enumerate().all(|(i, &v)| v == i as f32 + 1.0));
        binary(&pool, &a, &b, &mut out, cost::SIMPLE, |v, w| v - w as f32);
        assert!(
            out.iter()
                .enumerate()
                .all(|(i, &v)| v == i as f32 - (i % 7) as f32)
        );
        ternary(&pool, &a, &b, &c, &mut out, cost::SIMPLE, |v, w, x| {
            if w > 3 { v } else { x }
        });
        assert!(
            out.iter()
                .enumerate()
                .all(|(i, &v)| v == if i % 7 > 3 { a[i] } else { c[i] })
        );
        unary_in_place(&pool, &mut out, cost::SIMPLE, |v| v * 2.0);
        binary_in_place(&pool, &mut out, &a, cost::SIMPLE, |v, w| v - w);
        assert!(
            out.iter()
                .enumerate()
                .all(|(i, &v)| v == if i % 7 > 3 { a[i] } else { 0.0 })
        );
    }
}
