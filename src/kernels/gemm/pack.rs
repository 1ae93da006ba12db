//! Packing: copies of parts of A and B in the order in which the microkernel reads them.
//!
//! B is cut into panels of a tile's columns; a panel holds its rows one after the other, the last vector padded
//! with zeros. A, where its rows are not contiguous, is cut into tiles that hold one column after the other.

use super::kernel::{Element, Kernels};
use super::{Matrix, Panels};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use crate::scratch::{AlignedBuffer, OutOfMemory};

/// Time to pack an element, in nanoseconds.
const PACK_COST: f64 = 0.3;

/// B, packed once for many products: weights that do not change.
#[derive(Debug)]
pub struct PackedB<T: Element> {
    data: AlignedBuffer<T>,
    k: usize,
    n: usize,
    kernels: KernelsRef<T>,
}

/// The kernels that the packing was made for.
struct KernelsRef<T: 'static>(&'static Kernels<T>);

impl<T> std::fmt::Debug for KernelsRef<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "panels of {}", self.0.panel())
    }
}

impl<T: Element> PackedB<T> {
    /// Packs `b` of `k` rows and `n` columns.
    pub fn new(pool: &ThreadPool, k: usize, n: usize, b: Matrix<'_, T>) -> Result<PackedB<T>, OutOfMemory> {
        let kernels = T::kernels();
        let len = packed_len(kernels, k, n).ok_or(OutOfMemory { bytes: usize::MAX })?;
        let mut data = AlignedBuffer::zeroed(len)?;
        pack_b(pool, kernels, k, n, b, &mut data);
        Ok(PackedB {
            data,
            k,
            n,
            kernels: KernelsRef(kernels),
        })
    }

    /// Rows.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The memory it holds, in bytes.
    pub fn bytes(&self) -> usize {
        self.data.len() * size_of::<T>()
    }

    pub(crate) fn kernels(&self) -> &'static Kernels<T> {
        self.kernels.0
    }

    pub(super) fn data(&self) -> &[T] {
        &self.data
    }

    pub(crate) fn panels(&self) -> Panels<T> {
        Panels::packed(self.kernels(), self.k, &self.data)
    }
}

/// Elements of a packed B, or `None` beyond the address space.
pub(crate) fn packed_len<T>(kernels: &Kernels<T>, k: usize, n: usize) -> Option<usize> {
    n.checked_next_multiple_of(kernels.lanes)?.checked_mul(k)
}

/// Packs all panels of `b` into `out`.
pub(crate) fn pack_b<T: Element>(
    pool: &ThreadPool,
    kernels: &Kernels<T>,
    k: usize,
    n: usize,
    b: Matrix<'_, T>,
    out: &mut [T],
) {
    b.check(k, n);
    let panel = kernels.panel();
    let out = SharedMut::new(out);
    let cost = (k * panel) as f64 * PACK_COST;
    pool.parallel_for(n.div_ceil(panel), cost, |panels| {
        for index in panels {
            let columns = panel.min(n - index * panel);
            let width = columns.next_multiple_of(kernels.lanes);
            let start = index * panel * k;
            // SAFETY: panels do not overlap.
            let out = unsafe { out.range(start..start + width * k) };
            pack_panel(b.columns_from(index * panel), k, columns, width, out);
        }
    });
}

/// Packs `k` rows of the first `columns` columns of `b`, padded to `width`.
pub(super) fn pack_panel<T: Element>(
    b: Matrix<'_, T>,
    k: usize,
    columns: usize,
    width: usize,
    out: &mut [T],
) {
    if b.column_step == 1 {
        for (p, row) in out.chunks_exact_mut(width).take(k).enumerate() {
            let from = &b.data[p * b.row_step..][..columns];
            row[..columns].copy_from_slice(from);
            row[columns..].fill(T::default());
        }
        return;
    }
    // Read along the columns, a few rows at a time, so that the scattered writes stay in cache.
    for first in (0..k).step_by(16) {
        let rows = 16.min(k - first);
        let block = &mut out[first * width..(first + rows) * width];
        for j in 0..columns {
            let from = &b.data[j * b.column_step + first * b.row_step..];
            for p in 0..rows {
                block[p * width + j] = from[p * b.row_step];
            }
        }
        for row in block.chunks_exact_mut(width) {
            row[columns..].fill(T::default());
        }
    }
}

/// Packs a tile of A: `rows` rows of `k` terms, one column after the other.
pub(super) fn pack_tile<T: Element>(a: Matrix<'_, T>, rows: usize, k: usize, out: &mut [T]) {
    for (p, column) in out.chunks_exact_mut(rows).take(k).enumerate() {
        let from = &a.data[p * a.column_step..];
        for (i, x) in column.iter_mut().enumerate() {
            *x = from[i * a.row_step];
        }
    }
}
