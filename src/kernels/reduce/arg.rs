//! Where along an axis the best element is.

use crate::memory::SharedMut;
use crate::pool::ThreadPool;

/// For x of `[outer, extent, inner]` the index along the middle axis of the first element that no other is better
/// than: an element takes the lead where `better(it, leader)`. `extent` must not be zero.
pub fn arg_reduce<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    (outer, extent, inner): (usize, usize, usize),
    out: &mut [i64],
    better: impl Fn(T, T) -> bool + Sync,
) {
    assert!(extent > 0 && x.len() >= outer * extent * inner && out.len() >= outer * inner);
    let out = SharedMut::new(out);
    let cost = extent as f64 * if inner == 1 { 0.7 } else { 1.5 };
    pool.parallel_for(outer * inner, cost, |range| {
        for index in range {
            let (o, i) = (index / inner, index % inner);
            let column = x[o * extent * inner + i..]
                .iter()
                .step_by(inner)
                .take(extent)
                .enumerate();
            let mut leader = (0, x[o * extent * inner + i]);
            for (at, &value) in column {
                if better(value, leader.1) {
                    leader = (at, value);
                }
            }
            // SAFETY: indices are disjoint.
            unsafe { out.write(index, leader.0 as i64) };
        }
    });
}
