//! Taking and putting rows by index.

use crate::memory::SharedMut;
use crate::pool::ThreadPool;

/// `out[o, i, ..] = x[o, indices[batch of o][i], ..]` for x of `[outer, extent, inner]`.
///
/// `outer` consists of `batches` groups of equal size, each with its own share of `indices` (one group: all
/// share them). Indices outside of `0..extent` give `missing`; the caller reports them where they are errors.
pub fn gather<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    (batches, outer, extent, inner): (usize, usize, usize, usize),
    indices: &[i64],
    missing: T,
    out: &mut [T],
) {
    if batches == 0 || outer == 0 || inner == 0 || indices.is_empty() {
        return;
    }
    let (per_batch, outer_per_batch) = (indices.len() / batches, outer / batches);
    assert!(x.len() >= outer * extent * inner && out.len() >= outer * per_batch * inner);
    let out = SharedMut::new(out);
    let cost = 3.0 + (inner * size_of::<T>()) as f64 * 0.1;
    pool.parallel_for(outer * per_batch, cost, |rows| {
        for row in rows {
            let (o, i) = (row / per_batch, row % per_batch);
            let index = indices[o / outer_per_batch * per_batch + i];
            // SAFETY: rows are disjoint.
            let to = unsafe { out.range(row * inner..(row + 1) * inner) };
            match usize::try_from(index) {
                Ok(index) if index < extent => {
                    let from = (o * extent + index) * inner;
                    to.copy_from_slice(&x[from..from + inner]);
                }
                _ => to.fill(missing),
            }
        }
    });
}

/// `out[i, ..] = x[offsets[i].., ..]`: rows of `inner` elements from any place; a negative offset gives `missing`.
pub fn gather_nd<T: Copy + Send + Sync>(
    pool: &ThreadPool,
    x: &[T],
    offsets: &[isize],
    inner: usize,
    missing: T,
    out: &mut [T],
) {
    assert!(out.len() >= offsets.len() * inner);
    let out = SharedMut::new(out);
    let cost = 3.0 + (inner * size_of::<T>()) as f64 * 0.1;
    pool.parallel_for(offsets.len(), cost, |rows| {
        for row in rows {
            // SAFETY: rows are disjoint.
            let to = unsafe { out.range(row * inner..(row + 1) * inner) };
            match usize::try_from(offsets[row]) {
                Ok(from) => to.copy_from_slice(&x[from..from + inner]),
                Err(_) => to.fill(missing),
            }
        }
    });
}

/// `out[offsets[i].., ..] = f(old, updates[i, ..])` in the order of `i`; negative offsets are skipped.
///
/// Serial: several updates may meet in one element, and their order is part of the result.
pub fn scatter_rows<T: Copy, U: Copy>(
    updates: &[U],
    offsets: &[isize],
    inner: usize,
    out: &mut [T],
    f: impl Fn(T, U) -> T,
) {
    for (&offset, update) in offsets.iter().zip(updates.chunks_exact(inner.max(1))) {
        let Ok(offset) = usize::try_from(offset) else {
            continue;
        };
        for (out, &update) in out[offset..offset + inner].iter_mut().zip(update) {
            *out = f(*out, update);
        }
    }
}
