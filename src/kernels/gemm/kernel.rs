//! The microkernel: a tile of at most 6 rows by a few vectors of columns, accumulated in registers.
//!
//! Rows of A are given as pointers of their own with a common step, so the same kernel reads packed panels,
//! plain row-major matrices, and the rows that a convolution gathers. Rows of B are a pointer and a step.
//! Every element of C is one chain of multiply-adds in the order of k, whatever the tile's shape.

use super::simd::{Portable, Simd};
use super::{Activation, Epilogue, FusedMultiplyAdd};
#[cfg(target_arch = "x86_64")]
use crate::cpu::{self, Level};

/// Most rows of a tile.
pub const MAX_ROWS: usize = 6;
/// Most vectors of columns in a tile.
pub const MAX_VECTORS: usize = 4;

/// First elements of the rows of a tile; those beyond its rows are not used.
pub type RowPointers<T> = [*const T; MAX_ROWS];

/// What one call of a microkernel works on.
pub struct Tile<'a, T> {
    /// First element of each row of A, for each segment of the sum.
    pub segments: &'a [RowPointers<T>],
    /// Terms per segment.
    pub segment: usize,
    /// Distance between neighbours in a row of A.
    pub a_step: usize,
    /// First row of B; the segments follow each other.
    pub b: *const T,
    /// Distance between rows of B.
    pub b_step: usize,
    /// First element of C.
    pub c: *mut T,
    /// Distance between rows of C.
    pub c_step: usize,
    /// Columns to store, at most the vectors' lanes.
    pub columns: usize,
    /// Add to C instead of overwriting it.
    pub accumulate: bool,
    /// What follows the last part of the sum, with the tile's first row and column in C.
    pub epilogue: Option<(&'a Epilogue<'a, T>, usize, usize)>,
}

/// A microkernel for a certain number of rows and vectors.
pub type Kernel<T> = unsafe fn(&Tile<'_, T>);

/// The microkernels of an instruction set.
pub struct Kernels<T: 'static> {
    /// Elements in a vector.
    pub lanes: usize,
    /// Vectors of a full tile.
    pub vectors: usize,
    /// By `[rows - 1][vectors - 1]`.
    pub table: [[Kernel<T>; MAX_VECTORS]; MAX_ROWS],
}

impl<T> Kernels<T> {
    /// Columns of a full tile, which is the width of a packed panel of B.
    pub fn panel(&self) -> usize {
        self.lanes * self.vectors
    }
}

/// An element with microkernels.
pub trait Element:
    crate::scratch::Plain + PartialOrd + Default + std::ops::Add<Output = Self> + FusedMultiplyAdd
{
    /// Six, for relu6.
    const SIX: Self;
    /// The microkernels for this processor.
    fn kernels() -> &'static Kernels<Self>;
    /// The sum of the products of two slices.
    fn dot(a: &[Self], b: &[Self]) -> Self;
}

/// # Safety
/// The instruction set of `S` is present. Rows `0..MR` of A, the rows of B of `NV` vectors and the stated part of
/// C are accessible; C is not accessed by others.
#[inline(always)]
unsafe fn tile<S: Simd, const MR: usize, const NV: usize>(tile: &Tile<'_, S::Element>)
where
    S::Element: Element,
{
    // SAFETY: the function's contract.
    unsafe {
        let mut sums = [[S::splat(S::Element::default()); NV]; MR];
        let (mut b, a_step, b_step) = (tile.b, tile.a_step, tile.b_step);
        for rows in tile.segments {
            // Addresses and sums are indexed, never iterated over by reference, so that they stay in registers.
            let mut starts = [std::ptr::null(); MR];
            starts.copy_from_slice(&rows[..MR]);
            let mut at = 0;
            for _ in 0..tile.segment {
                let mut columns = [S::splat(S::Element::default()); NV];
                for v in 0..NV {
                    columns[v] = S::load(b.add(v * S::LANES));
                }
                for i in 0..MR {
                    let a = S::splat(*starts[i].add(at));
                    for v in 0..NV {
                        sums[i][v] = S::fma(a, columns[v], sums[i][v]);
                    }
                }
                at += a_step;
                b = b.add(b_step);
            }
        }
        // A copy, so that the sums above are never asked for by number and stay in registers: measured 2.5 times faster.
        let sums = sums;
        if tile.columns == NV * S::LANES {
            store::<S, MR, NV>(tile, &sums);
        } else {
            let mut buffer = [[S::Element::default(); 64]; MR];
            for (row, sum) in buffer.iter_mut().zip(&sums) {
                for (v, &vector) in sum.iter().enumerate() {
                    S::store(row.as_mut_ptr().add(v * S::LANES), vector);
                }
            }
            store_part(tile, &buffer);
        }
        if let Some((
            Epilogue {
                row: Some(finish), ..
            },
            first_row,
            first_column,
        )) = &tile.epilogue
        {
            for i in 0..MR {
                let row = std::slice::from_raw_parts_mut(tile.c.add(i * tile.c_step), tile.columns);
                finish(first_row + i, *first_column, row);
            }
        }
    }
}

/// Stores full vectors.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn store<S: Simd, const MR: usize, const NV: usize>(
    tile: &Tile<'_, S::Element>,
    sums: &[[S::Vector; NV]; MR],
) where
    S::Element: Element,
{
    // SAFETY: the function's contract.
    unsafe {
        let mut bias = [None; NV];
        let mut activation = Activation::None;
        if let Some((epilogue, _, first_column)) = &tile.epilogue {
            activation = epilogue.activation;
            if let Some(values) = epilogue.bias {
                let values = &values[*first_column..first_column + NV * S::LANES];
                for (v, bias) in bias.iter_mut().enumerate() {
                    *bias = Some(S::load(values.as_ptr().add(v * S::LANES)));
                }
            }
        }
        for (i, sum) in sums.iter().enumerate() {
            for v in 0..NV {
                let to = tile.c.add(i * tile.c_step + v * S::LANES);
                let mut x = sum[v];
                if tile.accumulate {
                    x = S::add(S::load(to), x);
                }
                if let Some(bias) = bias[v] {
                    x = S::add(x, bias);
                }
                if activation != Activation::None {
                    x = S::max(S::splat(S::Element::default()), x);
                }
                if activation == Activation::Relu6 {
                    x = S::min(S::splat(S::Element::SIX), x);
                }
                S::store(to, x);
            }
        }
    }
}

/// Stores the first columns of a tile, one by one, with the results of [`store`].
///
/// # Safety
/// As for [`tile`].
#[inline(never)]
unsafe fn store_part<T: Element>(tile: &Tile<'_, T>, sums: &[[T; 64]]) {
    for (i, sums) in sums.iter().enumerate() {
        for (j, &sum) in sums[..tile.columns].iter().enumerate() {
            // SAFETY: the function's contract.
            let to = unsafe { &mut *tile.c.add(i * tile.c_step + j) };
            let mut x = if tile.accumulate { *to + sum } else { sum };
            if let Some((epilogue, _, first_column)) = &tile.epilogue {
                x = epilogue.apply(first_column + j, x);
            }
            *to = x;
        }
    }
}

impl<T: Element> Epilogue<'_, T> {
    /// Bias and activation of a whole row.
    #[inline(always)]
    pub(crate) fn apply_row(&self, row: &mut [T]) {
        if let Some(bias) = self.bias {
            row.iter_mut().zip(bias).for_each(|(x, &bias)| *x = *x + bias);
        }
        let zero = T::default();
        if self.activation != Activation::None {
            row.iter_mut()
                .for_each(|x| *x = if zero > *x { zero } else { *x });
        }
        if self.activation == Activation::Relu6 {
            row.iter_mut()
                .for_each(|x| *x = if T::SIX < *x { T::SIX } else { *x });
        }
    }

    /// Bias and activation of one element of column `column`.
    pub(super) fn apply(&self, column: usize, mut x: T) -> T {
        if let Some(bias) = self.bias {
            x = x + bias[column];
        }
        if self.activation != Activation::None && T::default() > x {
            x = T::default();
        }
        if self.activation == Activation::Relu6 && T::SIX < x {
            x = T::SIX;
        }
        x
    }
}

/// The table of a kernel function by rows and vectors; vectors beyond `$max` repeat the last and are never asked.
macro_rules! table {
    ($kernel:ident, $element:ty, 4) => { table!(@rows $kernel, $element, [1, 2, 3, 4]) };
    ($kernel:ident, $element:ty, 2) => { table!(@rows $kernel, $element, [1, 2, 2, 2]) };
    (@rows $kernel:ident, $element:ty, $vectors:tt) => {
        [
            table!(@row $kernel, $element, 1, $vectors),
            table!(@row $kernel, $element, 2, $vectors),
            table!(@row $kernel, $element, 3, $vectors),
            table!(@row $kernel, $element, 4, $vectors),
            table!(@row $kernel, $element, 5, $vectors),
            table!(@row $kernel, $element, 6, $vectors),
        ]
    };
    (@row $kernel:ident, $element:ty, $mr:literal, [$($nv:literal),*]) => {
        [$($kernel::<$mr, $nv> as Kernel<$element>),*]
    };
}

macro_rules! element {
    ($element:ty, $six:literal, $avx512:ident, $avx2:ident, $kernel512:ident, $kernel2:ident, $portable:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx2,fma")]
        unsafe fn $kernel512<const MR: usize, const NV: usize>(work: &Tile<'_, $element>) {
            // SAFETY: the caller's contract; the table is chosen by what the processor has.
            unsafe { tile::<super::simd::$avx512, MR, NV>(work) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn $kernel2<const MR: usize, const NV: usize>(work: &Tile<'_, $element>) {
            // SAFETY: as above.
            unsafe { tile::<super::simd::$avx2, MR, NV>(work) }
        }
        unsafe fn $portable<const MR: usize, const NV: usize>(work: &Tile<'_, $element>) {
            // SAFETY: as above.
            unsafe { tile::<Portable<$element>, MR, NV>(work) }
        }
        impl Element for $element {
            const SIX: $element = $six;
            fn dot(a: &[$element], b: &[$element]) -> $element {
                super::dot::dot(a, b)
            }
            fn kernels() -> &'static Kernels<$element> {
                static PORTABLE: Kernels<$element> = Kernels {
                    lanes: 4,
                    vectors: 2,
                    table: table!($portable, $element, 2),
                };
                #[cfg(target_arch = "x86_64")]
                {
                    static AVX512: Kernels<$element> = Kernels {
                        lanes: 64 / size_of::<$element>(),
                        vectors: 4,
                        table: table!($kernel512, $element, 4),
                    };
                    static AVX2: Kernels<$element> = Kernels {
                        lanes: 32 / size_of::<$element>(),
                        vectors: 2,
                        table: table!($kernel2, $element, 2),
                    };
                    match cpu::level() {
                        Level::Avx512 => return &AVX512,
                        Level::Avx2 => return &AVX2,
                        Level::Baseline => {}
                    }
                }
                &PORTABLE
            }
        }
    };
}

element!(f32, 6.0, Avx512F32, Avx2F32, f32_avx512, f32_avx2, f32_portable);
element!(f64, 6.0, Avx512F64, Avx2F64, f64_avx512, f64_avx2, f64_portable);
