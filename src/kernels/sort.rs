//! Stable sorting of positions, and the largest elements of rows.
//!
//! Comparisons may be inconsistent (not-a-number): the result is then some permutation, and nothing panics.

use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use std::cmp::Ordering;

/// Runs that are sorted by insertion before merging.
const RUN: usize = 16;

/// Sorts positions stably: `less(a, b)` says that position `a` comes before position `b`.
pub fn argsort(positions: &mut [u32], less: impl Fn(u32, u32) -> bool) {
    for run in positions.chunks_mut(RUN) {
        for end in 1..run.len() {
            let mut at = end;
            while at > 0 && less(run[at], run[at - 1]) {
                run.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    let mut width = RUN;
    let mut other = positions.to_vec();
    while width < positions.len() {
        for (from, to) in positions.chunks(2 * width).zip(other.chunks_mut(2 * width)) {
            let (left, right) = from.split_at(width.min(from.len()));
            merge(left, right, to, &less);
        }
        positions.copy_from_slice(&other);
        width *= 2;
    }
}

fn merge(mut left: &[u32], mut right: &[u32], to: &mut [u32], less: &impl Fn(u32, u32) -> bool) {
    for to in to {
        *to = match (left, right) {
            ([first, rest @ ..], []) => {
                left = rest;
                *first
            }
            ([], [first, rest @ ..]) => {
                right = rest;
                *first
            }
            ([a, ..], [b, rest @ ..]) if less(*b, *a) => {
                right = rest;
                *b
            }
            ([a, rest @ ..], _) => {
                left = rest;
                *a
            }
            ([], []) => return,
        }
    }
}

/// For each row of `width` elements the positions of its elements in rising order of `compare`, equal ones in
/// their own order.
pub fn argsort_rows<T: Copy + Sync>(
    pool: &ThreadPool,
    x: &[T],
    width: usize,
    out: &mut [u32],
    compare: impl Fn(T, T) -> Ordering + Sync,
) {
    assert_eq!(x.len(), out.len());
    if width == 0 {
        return;
    }
    let out = SharedMut::new(out);
    let cost = width as f64 * 5.0 * (width as f64).log2().max(1.0);
    pool.parallel_for(x.len() / width, cost, |rows| {
        for row in rows {
            let part = row * width..(row + 1) * width;
            let x = &x[part.clone()];
            // SAFETY: rows are disjoint.
            let out = unsafe { out.range(part) };
            (0..width).for_each(|i| out[i] = i as u32);
            argsort(out, |a, b| {
                compare(x[a as usize], x[b as usize]) == Ordering::Less
            });
        }
    });
}

/// For each row of `width` elements its `k` largest (by `greater`), largest first and equal ones in their own order,
/// with their positions.
pub fn top_k<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    width: usize,
    k: usize,
    values: &mut [T],
    positions: &mut [i32],
    greater: impl Fn(T, T) -> bool + Sync,
) {
    if width == 0 || k == 0 {
        return;
    }
    let rows = x.len() / width;
    assert!(k <= width && values.len() >= rows * k && positions.len() >= rows * k);
    let (values, positions) = (SharedMut::new(values), SharedMut::new(positions));
    pool.parallel_for(rows, width as f64 * 3.0 + k as f64 * 20.0, |range| {
        for row in range {
            let x = &x[row * width..(row + 1) * width];
            let chosen = largest(x, k, &greater);
            let part = row * k..(row + 1) * k;
            // SAFETY: rows are disjoint.
            let (values, positions) = unsafe { (values.range(part.clone()), positions.range(part)) };
            for (i, &at) in chosen.iter().enumerate() {
                values[i] = x[at as usize];
                positions[i] = at as i32;
            }
        }
    });
}

/// Positions of the `k` largest, sorted.
fn largest<T: Copy>(x: &[T], k: usize, greater: &impl Fn(T, T) -> bool) -> Vec<u32> {
    let before = |a: u32, b: u32| {
        let (x, y) = (x[a as usize], x[b as usize]);
        greater(x, y) || (!greater(y, x) && a < b)
    };
    if k > 64 && k > x.len() / 8 {
        let mut all: Vec<u32> = (0..x.len() as u32).collect();
        argsort(&mut all, before);
        all.truncate(k);
        return all;
    }
    // A heap whose root is the last of those chosen so far.
    let mut heap: Vec<u32> = Vec::with_capacity(k);
    for at in 0..x.len() as u32 {
        if heap.len() < k {
            heap.push(at);
            let mut child = heap.len() - 1;
            while child > 0 && before(heap[(child - 1) / 2], heap[child]) {
                heap.swap(child, (child - 1) / 2);
                child = (child - 1) / 2;
            }
        } else if before(at, heap[0]) {
            heap[0] = at;
            sift_down(&mut heap, &before);
        }
    }
    argsort(&mut heap, before);
    heap
}

fn sift_down(heap: &mut [u32], before: &impl Fn(u32, u32) -> bool) {
    let mut parent = 0;
    loop {
        let mut last = parent;
        for child in [2 * parent + 1, 2 * parent + 2] {
            if child < heap.len() && before(heap[last], heap[child]) {
                last = child;
            }
        }
        if last == parent {
            return;
        }
        heap.swap(parent, last);
        parent = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_order() {
        for len in [0, 1, 15, 16, 17, 100, 1000] {
            let x: Vec<i32> = (0..len).map(|i| (i * 7919) % 13).collect();
            let mut out = vec![0; x.len()];
            argsort_rows(ThreadPool::serial(), &x, x.len(), &mut out, |a, b| a.cmp(&b));
            for pair in out.windows(2) {
                let (a, b) = (x[pair[0] as usize], x[pair[1] as usize]);
                assert!(a < b || (a == b && pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn inconsistent_comparisons_do_not_panic() {
        let x: Vec<f32> = (0..500)
            .map(|i| if i % 3 == 0 { f32::NAN } else { (i % 17) as f32 })
            .collect();
        let mut out: Vec<u32> = (0..500).collect();
        argsort(&mut out, |a, b| x[a as usize] < x[b as usize]);
        out.sort_unstable();
        assert!(out.iter().enumerate().all(|(i, &v)| i == v as usize));
    }

    #[test]
    fn largest_with_ties() {
        let x = [3, 9, 1, 9, 5, 2, 2, 8];
        let (mut values, mut positions) = ([0; 6], [0; 6]);
        top_k(
            ThreadPool::serial(),
            &x,
            4,
            3,
            &mut values,
            &mut positions,
            |a, b| a > b,
        );
        assert_eq!(values, [9, 9, 3, 8, 5, 2]);
        assert_eq!(positions, [1, 3, 0, 3, 0, 1]);
        let x: Vec<i32> = (0..3000).map(|i| (i * 7919) % 1009).collect();
        for k in [1, 10, 100, 1000, 3000] {
            let (mut values, mut positions) = (vec![0; k], vec![0; k]);
            top_k(
                ThreadPool::serial(),
                &x,
                3000,
                k,
                &mut values,
                &mut positions,
                |a, b| a > b,
            );
            let mut expected: Vec<usize> = (0..3000).collect();
            expected.sort_by_key(|&i| (-x[i], i));
            assert!((0..k).all(|i| positions[i] as usize == expected[i] && values[i] == x[expected[i]]));
        }
    }
}
