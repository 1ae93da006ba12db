//! Matrix products: `C = A B`, optionally `C += A B`, with bias, activation and a callback fused into the store.
//!
//! A and B are strided views ([`Matrix`]), so transposes cost no copy of the caller's. Constant right-hand sides
//! are packed once ([`PackedB`]). `f32` and `f64` run on microkernels for the processor, `f16` and `bf16` through
//! `f32`, everything else through a simple blocked loop ([`gemm_any`]).
//!
//! The bits of a result depend on the operands, their extents and the processor's instruction set only: not on
//! the number of threads, and not on whether B was packed before (but see [`sums_along_terms`]).

mod batch;
mod dot;
mod driver;
mod generic;
mod half_precision;
mod kernel;
mod pack;
mod simd;

pub use batch::{Batch, batch_gemm, batch_gemm_any};
pub use dot::FusedMultiplyAdd;
pub use driver::product_cost;
pub use generic::{Scalar, gemm_any};
pub use half_precision::{Half, gemm_half};
pub use kernel::Element;
pub use pack::PackedB;

pub(crate) use driver::{Panels, Product, RowSource};
pub(crate) use kernel::{Kernels, MAX_ROWS, RowPointers};
pub(crate) use pack::{pack_b, packed_len};

use crate::pool::ThreadPool;
use crate::scratch::{self, OutOfMemory};
use std::ops::Range;

/// A matrix seen through strides: element (i, j) is `data[i * row_step + j * column_step]`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    /// The elements, starting with (0, 0).
    pub data: &'a [T],
    /// Distance between rows.
    pub row_step: usize,
    /// Distance between columns.
    pub column_step: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Rows of `columns` elements, one after the other.
    pub fn new(data: &'a [T], columns: usize) -> Matrix<'a, T> {
        Matrix {
            data,
            row_step: columns,
            column_step: 1,
        }
    }

    /// The transpose of what is stored as rows of `rows` elements: a view with `rows` rows.
    pub fn transposed(data: &'a [T], rows: usize) -> Matrix<'a, T> {
        Matrix {
            data,
            row_step: 1,
            column_step: rows,
        }
    }

    /// Panics if `rows` by `columns` elements reach beyond the data.
    pub(crate) fn check(&self, rows: usize, columns: usize) {
        if rows > 0 && columns > 0 {
            let last = (rows - 1) * self.row_step + (columns - 1) * self.column_step;
            assert!(
                last < self.data.len(),
                "matrix view of {rows} x {columns} beyond its data"
            );
        }
    }

    pub(crate) fn columns_from(&self, column: usize) -> Matrix<'a, T> {
        Matrix {
            data: &self.data[(column * self.column_step).min(self.data.len())..],
            ..*self
        }
    }

    pub(crate) fn rows_from(&self, row: usize) -> Matrix<'a, T> {
        Matrix {
            data: &self.data[(row * self.row_step).min(self.data.len())..],
            ..*self
        }
    }
}

/// What is applied to a sum after the bias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// `max(x, 0)`; not-a-number stays.
    Relu,
    /// `min(max(x, 0), 6)`; not-a-number stays.
    Relu6,
}

/// A callback on part of a finished row: row, first column, elements. Each element is passed exactly once.
pub type RowFunction<'a, T> = &'a (dyn Fn(usize, usize, &mut [T]) + Sync);

/// What is fused into the last store of a product.
pub struct Epilogue<'a, T> {
    /// Added to every row: one element per column.
    pub bias: Option<&'a [T]>,
    /// Applied after the bias.
    pub activation: Activation,
    /// Called last.
    pub row: Option<RowFunction<'a, T>>,
}

impl<T> Default for Epilogue<'_, T> {
    fn default() -> Self {
        Epilogue {
            bias: None,
            activation: Activation::None,
            row: None,
        }
    }
}

impl<T> std::fmt::Debug for Epilogue<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Epilogue")
            .field("bias", &self.bias.is_some())
            .field("activation", &self.activation)
            .field("row", &self.row.is_some())
            .finish()
    }
}

/// Up to this many rows B is read where it is: packing would cost more than it saves.
const DIRECT_ROWS: usize = 16;
/// A B of at most this size stays in the first cache unpacked.
const DIRECT_BYTES: usize = 40 << 10;
/// Terms of k, and elements, of B that are packed at a time.
const PACK_TERMS: usize = 4096;
const PACK_ELEMENTS: usize = 1 << 20;

/// `c = a b`, or `c += a b` where `accumulate`, followed by `epilogue`.
///
/// `a` is `m` by `k`, `b` is `k` by `n`; `c` has `m` rows, `c_step` elements apart.
pub fn gemm<T: Element>(
    pool: &ThreadPool,
    (m, n, k): (usize, usize, usize),
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    c: &mut [T],
    c_step: usize,
    accumulate: bool,
    epilogue: &Epilogue<'_, T>,
) -> Result<(), OutOfMemory> {
    a.check(m, k);
    b.check(k, n);
    check_bias(epilogue, n);
    if dot::applies((m, n), a.column_step, (b.row_step, b.column_step)) {
        dot::gemm(pool, (m, n, k), a, b, c, c_step, accumulate, epilogue);
        return Ok(());
    }
    let kernels = T::kernels();
    let call = Call {
        kernels,
        m,
        n,
        c_step,
    };
    if b.column_step == 1 && (m <= DIRECT_ROWS || k * n * size_of::<T>() <= DIRECT_BYTES) {
        return call.direct(pool, k, a, b, c, accumulate, epilogue);
    }
    let piece = driver::piece(k);
    let terms = k.min(PACK_TERMS / piece * piece);
    let columns = (PACK_ELEMENTS / terms.max(1))
        .next_multiple_of(kernels.panel())
        .min(n);
    let len = pack::packed_len(kernels, terms, columns).ok_or(OutOfMemory { bytes: usize::MAX })?;
    scratch::with(len, |packed: &mut [T]| {
        for first_term in (0..k.max(1)).step_by(terms.max(1)) {
            let terms = terms.min(k - first_term);
            let last = first_term + terms == k;
            for first in (0..n).step_by(columns) {
                let part = first..n.min(first + columns);
                let b = b.rows_from(first_term).columns_from(first);
                pack::pack_b(pool, kernels, terms, part.len(), b, packed);
                let a = &MatrixRows {
                    a: a.columns_from(first_term),
                    k: terms,
                    piece,
                };
                let accumulate = accumulate || first_term > 0;
                let epilogue = last.then_some(epilogue);
                call.columns(part, pool, a, packed, c, accumulate, epilogue)?;
            }
        }
        Ok(())
    })?
}

/// Whether [`gemm`] computes sums of elementwise products, each in lanes, which [`gemm_packed`] never does: the two give
/// other bits then, and packing gains nothing.
///
/// `a_step` is the distance between the terms of a row of A, `b_steps` are the row and column step of B.
pub fn sums_along_terms((m, n): (usize, usize), a_step: usize, b_steps: (usize, usize)) -> bool {
    dot::applies((m, n), a_step, b_steps)
}

/// [`gemm`] with a B that was packed before.
pub fn gemm_packed<T: Element>(
    pool: &ThreadPool,
    m: usize,
    a: Matrix<'_, T>,
    b: &PackedB<T>,
    c: &mut [T],
    c_step: usize,
    accumulate: bool,
    epilogue: &Epilogue<'_, T>,
) -> Result<(), OutOfMemory> {
    a.check(m, b.k());
    check_bias(epilogue, b.n());
    let call = Call {
        kernels: b.kernels(),
        m,
        n: b.n(),
        c_step,
    };
    let a = &MatrixRows::whole(a, b.k());
    call.columns(0..b.n(), pool, a, b.data(), c, accumulate, Some(epilogue))
}

fn check_bias<T>(epilogue: &Epilogue<'_, T>, n: usize) {
    assert!(
        epilogue.bias.is_none_or(|bias| bias.len() >= n),
        "bias is shorter than the columns"
    );
}

/// A plain matrix as the rows of A; copied tile by tile where its rows are not contiguous.
struct MatrixRows<'a, T> {
    a: Matrix<'a, T>,
    k: usize,
    /// Terms that are summed at a time: by the whole sum, of which this may be a part.
    piece: usize,
}

impl<'a, T> MatrixRows<'a, T> {
    fn whole(a: Matrix<'a, T>, k: usize) -> MatrixRows<'a, T> {
        let piece = driver::piece(k);
        MatrixRows { a, k, piece }
    }
}

impl<T: Element> RowSource<T> for MatrixRows<'_, T> {
    fn segments(&self) -> usize {
        1
    }
    fn segment(&self) -> usize {
        self.k
    }
    fn piece(&self) -> usize {
        self.piece
    }
    fn step(&self) -> usize {
        self.a.column_step
    }
    fn pointers(&self, rows: Range<usize>, _: Range<usize>, term: usize, table: &mut [RowPointers<T>]) {
        for (pointer, row) in table[0].iter_mut().zip(rows) {
            let at = row * self.a.row_step + term * self.a.column_step;
            *pointer = self.a.data.as_ptr().wrapping_add(at);
        }
    }
    fn scratch(&self, rows: usize, terms: usize) -> usize {
        if self.a.column_step == 1 { 0 } else { rows * terms }
    }
    fn pack(&self, rows: Range<usize>, terms: Range<usize>, to: &mut [T]) {
        let part = self.a.rows_from(rows.start).columns_from(terms.start);
        pack::pack_tile(part, rows.len(), terms.len(), to);
    }
}

/// What the parts of one product share.
struct Call<T: Element> {
    kernels: &'static kernel::Kernels<T>,
    m: usize,
    n: usize,
    c_step: usize,
}

impl<T: Element> Call<T> {
    /// The product of `a` with packed columns `part` of B.
    fn columns(
        &self,
        part: Range<usize>,
        pool: &ThreadPool,
        a: &MatrixRows<'_, T>,
        packed: &[T],
        c: &mut [T],
        accumulate: bool,
        epilogue: Option<&Epilogue<'_, T>>,
    ) -> Result<(), OutOfMemory> {
        if self.m == 0 || part.is_empty() {
            return Ok(());
        }
        let product = Product {
            kernels: self.kernels,
            m: self.m,
            n: part.len(),
            a,
            b: Panels::packed(self.kernels, a.k, packed),
            c_step: self.c_step,
            accumulate,
            epilogue: None,
        };
        let c = &mut c[part.start..];
        shifted(epilogue, 0, part.start, |epilogue| {
            // SAFETY: `a` was checked by the caller; the packed panels hold `k` rows of all columns.
            unsafe { Product { epilogue, ..product }.run(pool, c) }
        })
    }

    /// The product with a B that is read where it is; only an incomplete last panel is packed.
    fn direct(
        &self,
        pool: &ThreadPool,
        k: usize,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        c: &mut [T],
        accumulate: bool,
        epilogue: &Epilogue<'_, T>,
    ) -> Result<(), OutOfMemory> {
        let panel = self.kernels.panel();
        let whole = self.n.is_multiple_of(self.kernels.lanes);
        let start = self.n.saturating_sub(1) / panel * panel;
        let width = (self.n - start).next_multiple_of(self.kernels.lanes);
        scratch::with(if whole { 0 } else { width * k }, |last: &mut [T]| {
            if !whole {
                pack::pack_panel(b.columns_from(start), k, self.n - start, width, last);
            }
            let product = Product {
                kernels: self.kernels,
                m: self.m,
                n: self.n,
                a: &MatrixRows::whole(a, k),
                b: Panels {
                    data: b.data.as_ptr(),
                    panel_step: panel,
                    row_step: Some(b.row_step),
                    last: (!whole).then_some(last.as_ptr()),
                },
                c_step: self.c_step,
                accumulate,
                epilogue: Some(epilogue),
            };
            // SAFETY: `a` and `b` were checked by the caller; panels but the last are of whole vectors.
            unsafe { product.run(pool, c) }
        })?
    }
}

/// Calls `f` with the epilogue for a part of C that starts at `row` and `column`.
pub(crate) fn shifted<T, R>(
    epilogue: Option<&Epilogue<'_, T>>,
    row: usize,
    column: usize,
    f: impl FnOnce(Option<&Epilogue<'_, T>>) -> R,
) -> R {
    let Some(whole) = epilogue else { return f(None) };
    let bias = whole.bias.map(|bias| &bias[column..]);
    let activation = whole.activation;
    match whole.row {
        Some(finish) => {
            let finish = |i: usize, j: usize, x: &mut [T]| finish(row + i, column + j, x);
            f(Some(&Epilogue {
                bias,
                activation,
                row: Some(&finish),
            }))
        }
        None => f(Some(&Epilogue {
            bias,
            activation,
            row: None,
        })),
    }
}
