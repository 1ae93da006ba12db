//! Many products of equal extents: batched matrix multiplication with broadcasting of the batch dimensions.

use super::kernel::Element;
use super::{Epilogue, Matrix, Scalar, gemm, gemm_any, product_cost};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use crate::scratch::OutOfMemory;
use std::sync::{Mutex, PoisonError};

/// The extents and places of the products.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Rows, columns and terms of each product.
    pub extents: (usize, usize, usize),
    /// For each product the first elements of A and of B; its C follows the one before.
    pub offsets: &'a [(usize, usize)],
    /// Row and column step of each A.
    pub a_steps: (usize, usize),
    /// Row and column step of each B.
    pub b_steps: (usize, usize),
}

impl Batch<'_> {
    fn operands<'d, T>(&self, index: usize, a: &'d [T], b: &'d [T]) -> (Matrix<'d, T>, Matrix<'d, T>) {
        let (at_a, at_b) = self.offsets[index];
        let a = Matrix {
            data: &a[at_a..],
            row_step: self.a_steps.0,
            column_step: self.a_steps.1,
        };
        let b = Matrix {
            data: &b[at_b..],
            row_step: self.b_steps.0,
            column_step: self.b_steps.1,
        };
        (a, b)
    }
}

/// `c[i] = a[i] b[i]` for dense row-major results, one after the other in `c`.
pub fn batch_gemm<T: Element>(
    pool: &ThreadPool,
    batch: &Batch<'_>,
    a: &[T],
    b: &[T],
    c: &mut [T],
) -> Result<(), OutOfMemory> {
    let (m, n, k) = batch.extents;
    assert!(c.len() >= batch.offsets.len() * m * n, "C is too small");
    if m * n == 0 {
        return Ok(());
    }
    let cost = product_cost::<T>(m, n, k);
    // One product after the other, each on all threads, where they are few and large.
    if batch.offsets.len() < 2 * pool.threads() && pool.pays(cost) {
        for (index, c) in c.chunks_exact_mut(m * n).take(batch.offsets.len()).enumerate() {
            let (a, b) = batch.operands(index, a, b);
            gemm(pool, batch.extents, a, b, c, n, false, &Epilogue::default())?;
        }
        return Ok(());
    }
    let failure = Mutex::new(None);
    let c = SharedMut::new(c);
    pool.parallel_for(batch.offsets.len(), cost, |range| {
        for index in range {
            let (a, b) = batch.operands(index, a, b);
            // SAFETY: results do not overlap.
            let c = unsafe { c.range(index * m * n..(index + 1) * m * n) };
            let serial = ThreadPool::serial();
            if let Err(error) = gemm(serial, batch.extents, a, b, c, n, false, &Epilogue::default()) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
    });
    failure
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .map_or(Ok(()), Err)
}

/// As [`batch_gemm`], for elements without microkernels.
pub fn batch_gemm_any<T: Scalar>(pool: &ThreadPool, batch: &Batch<'_>, a: &[T], b: &[T], c: &mut [T]) {
    let (m, n, _) = batch.extents;
    assert!(c.len() >= batch.offsets.len() * m * n, "C is too small");
    if m * n == 0 {
        return;
    }
    for (index, c) in c.chunks_exact_mut(m * n).take(batch.offsets.len()).enumerate() {
        let (a, b) = batch.operands(index, a, b);
        gemm_any(pool, batch.extents, a, b, c, n, false);
    }
}
