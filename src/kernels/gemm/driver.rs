//! The loops around the microkernel: blocking for the caches, and jobs for the threads.
//!
//! C is cut into jobs of row tiles by column panels; a job walks k in blocks whose panel of B stays in the first
//! cache, and keeps its rows of A in the second. The cuts of k depend on k alone, so the bits of a result depend
//! neither on the number of threads nor on how C was cut.

use super::Epilogue;
use super::kernel::{Element, Kernels, MAX_ROWS, RowPointers, Tile};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use crate::scratch::{self, OutOfMemory};
use smallvec::SmallVec;
use std::ops::Range;

/// Terms of k whose panel of B stays in the first cache.
const K_BLOCK: usize = 192;
/// Terms that are added up in registers before they are added to C. Rounding errors grow with the length of such a
/// chain: at 96 they are about 0.7 times those at 192, for 2 % of the time.
const CHAIN: usize = 96;
/// Most row tiles of a job: their part of A stays in the second cache.
const TILES_PER_JOB: usize = 48;
/// Jobs per thread, to even out.
const JOBS_PER_THREAD: usize = 4;
/// A job is not made cheaper than this, in nanoseconds.
const MIN_JOB: f64 = 4_000.0;

/// The terms of each block of a sum of `k`, of about equal lengths, so that the last is not a small rest.
pub fn piece(k: usize) -> usize {
    k.div_ceil(k.div_ceil(K_BLOCK).max(1)).max(1)
}

/// Where the rows of A come from.
pub trait RowSource<T>: Sync {
    /// The sum is cut into this many segments.
    fn segments(&self) -> usize;
    /// Terms of each segment.
    fn segment(&self) -> usize;
    /// Terms of a segment that are summed at a time; the bits of a sum depend on it.
    fn piece(&self) -> usize {
        piece(self.segment())
    }
    /// Distance between the terms of a segment.
    fn step(&self) -> usize;
    /// Writes the addresses of term `term` of each of `segments` in the rows of a tile; `table` has one entry per
    /// segment.
    fn pointers(&self, rows: Range<usize>, segments: Range<usize>, term: usize, table: &mut [RowPointers<T>]);
    /// Scratch elements for copies of `rows` rows by `terms` terms, if the rows must be copied.
    fn scratch(&self, _rows: usize, _terms: usize) -> usize {
        0
    }
    /// Copies the rows of a tile into `to`, column after column.
    fn pack(&self, _rows: Range<usize>, _terms: Range<usize>, _to: &mut [T]) {}
}

/// Where the panels of B come from.
#[derive(Clone, Copy)]
pub struct Panels<T> {
    /// The first panel.
    pub data: *const T,
    /// Distance between the first elements of panels.
    pub panel_step: usize,
    /// Distance between rows; `None` if it is the panel's padded width.
    pub row_step: Option<usize>,
    /// The last panel, where it is kept apart, with its row step.
    pub last: Option<*const T>,
}
// SAFETY: read-only addresses of memory that outlives the call.
unsafe impl<T: Sync> Sync for Panels<T> {}

impl<T> Panels<T> {
    /// Panels of `k` rows that follow each other.
    pub fn packed(kernels: &Kernels<T>, k: usize, data: &[T]) -> Panels<T> {
        Panels {
            data: data.as_ptr(),
            panel_step: kernels.panel() * k,
            row_step: None,
            last: None,
        }
    }
}

/// One product.
pub struct Product<'a, T: Element, R> {
    pub kernels: &'static Kernels<T>,
    pub m: usize,
    pub n: usize,
    pub a: &'a R,
    pub b: Panels<T>,
    /// Distance between rows of C.
    pub c_step: usize,
    pub accumulate: bool,
    pub epilogue: Option<&'a Epilogue<'a, T>>,
}

/// Row tiles of about equal heights.
#[derive(Clone, Copy)]
struct Tiles {
    count: usize,
    rows: usize,
    larger: usize,
}

impl Tiles {
    fn new(m: usize) -> Tiles {
        let count = m.div_ceil(MAX_ROWS);
        Tiles {
            count,
            rows: m / count,
            larger: m % count,
        }
    }

    fn rows(&self, tile: usize) -> Range<usize> {
        let start = tile * self.rows + tile.min(self.larger);
        start..start + self.rows + usize::from(tile < self.larger)
    }
}

/// The time of a product in nanoseconds: arithmetic or memory, whichever is longer.
pub fn product_cost<T>(m: usize, n: usize, k: usize) -> f64 {
    let (m, n, k) = (m as f64, n as f64, k as f64);
    let size = size_of::<T>() as f64;
    (m * n * k * size / 250.0).max((m * k + k * n + m * n) * size / 20.0)
}

impl<T: Element, R: RowSource<T>> Product<'_, T, R> {
    /// Computes into `c`, which holds `m` rows.
    ///
    /// # Safety
    /// The addresses that `a` and `b` give are readable for the extents of the product.
    pub unsafe fn run(&self, pool: &ThreadPool, c: &mut [T]) -> Result<(), OutOfMemory> {
        if self.m == 0 || self.n == 0 {
            return Ok(());
        }
        assert!(
            self.c_step >= self.n && c.len() >= (self.m - 1) * self.c_step + self.n,
            "C is too small"
        );
        let tiles = Tiles::new(self.m);
        let panels = self.n.div_ceil(self.kernels.panel());
        let cost = product_cost::<T>(self.m, self.n, self.a.segments() * self.a.segment());
        let wanted = if pool.pays(cost) {
            (pool.threads() * JOBS_PER_THREAD).min((cost / MIN_JOB) as usize + 1)
        } else {
            1
        };
        let mut row_jobs = tiles.count.div_ceil(TILES_PER_JOB);
        let column_jobs = wanted.div_ceil(row_jobs).min(panels);
        row_jobs = row_jobs.max(wanted.div_ceil(column_jobs)).min(tiles.count);
        let tiles_per_job = tiles.count.div_ceil(row_jobs);
        let panels_per_job = panels.div_ceil(column_jobs);
        let (row_jobs, column_jobs) = (
            tiles.count.div_ceil(tiles_per_job),
            panels.div_ceil(panels_per_job),
        );
        let c = SharedMut::new(c);
        let jobs = row_jobs * column_jobs;
        let failure = std::sync::Mutex::new(None);
        pool.parallel_blocks(jobs, 1, cost / jobs as f64, |job, _| {
            let first_tile = job / column_jobs * tiles_per_job;
            let first_panel = job % column_jobs * panels_per_job;
            let tile_range = first_tile..tiles.count.min(first_tile + tiles_per_job);
            let panel_range = first_panel..panels.min(first_panel + panels_per_job);
            // SAFETY: jobs write disjoint parts of C; the rest is the caller's contract.
            if let Err(error) = unsafe { self.job(tiles, tile_range, panel_range, c) } {
                *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
            }
        });
        failure
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .map_or(Ok(()), Err)
    }

    /// The parts of the sum, each as (segments, terms of them).
    fn k_blocks(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> + use<'_, T, R> {
        let (segments, segment) = (self.a.segments(), self.a.segment());
        let per_block = (K_BLOCK / segment.max(1)).clamp(1, segments.max(1));
        let piece = self.a.piece();
        let pieces = segment.div_ceil(piece).max(1);
        (0..segments).step_by(per_block).flat_map(move |first| {
            (0..pieces).map(move |at| {
                let terms = at * piece..segment.min((at + 1) * piece);
                (first..segments.min(first + per_block), terms)
            })
        })
    }

    /// # Safety
    /// As for [`Self::run`]; no other thread touches this part of C.
    unsafe fn job(
        &self,
        tiles: Tiles,
        tile_range: Range<usize>,
        panel_range: Range<usize>,
        c: SharedMut<'_, T>,
    ) -> Result<(), OutOfMemory> {
        let rows = tiles.rows(tile_range.end - 1).end - tiles.rows(tile_range.start).start;
        let terms = self.a.segment().min(K_BLOCK);
        scratch::with(self.a.scratch(rows, terms), |copies| {
            let mut table: SmallVec<[RowPointers<T>; 64]> = SmallVec::new();
            let mut first = true;
            for (segments, terms) in self.k_blocks() {
                self.fill_table(&mut table, copies, tiles, tile_range.clone(), &segments, &terms);
                let last = segments.end == self.a.segments() && terms.end == self.a.segment();
                for panel in panel_range.clone() {
                    for (index, tile) in tile_range.clone().enumerate() {
                        let pointers = &table[index * segments.len()..][..segments.len()];
                        // SAFETY: the caller's contract.
                        unsafe {
                            self.chains(
                                pointers,
                                tiles.rows(tile),
                                panel,
                                &segments,
                                &terms,
                                (first, last),
                                c,
                            );
                        }
                    }
                }
                first = false;
            }
        })
    }

    /// Row addresses for all tiles of a job and one block of k, tile after tile.
    fn fill_table(
        &self,
        table: &mut SmallVec<[RowPointers<T>; 64]>,
        copies: &mut [T],
        tiles: Tiles,
        tile_range: Range<usize>,
        segments: &Range<usize>,
        terms: &Range<usize>,
    ) {
        table.clear();
        let mut used = 0;
        for tile in tile_range {
            let rows = tiles.rows(tile);
            if !copies.is_empty() {
                let size = rows.len() * terms.len();
                let copy = &mut copies[used..used + size];
                self.a.pack(rows.clone(), terms.clone(), copy);
                let start = copy.as_ptr();
                table.push(std::array::from_fn(|i| start.wrapping_add(i)));
                used += size;
                continue;
            }
            let start = table.len();
            table.resize(start + segments.len(), [std::ptr::null(); MAX_ROWS]);
            self.a
                .pointers(rows, segments.clone(), terms.start, &mut table[start..]);
        }
    }

    /// A tile's part of a block, chain by chain.
    ///
    /// # Safety
    /// As for [`Self::job`].
    unsafe fn chains(
        &self,
        pointers: &[RowPointers<T>],
        rows: Range<usize>,
        panel: usize,
        segments: &Range<usize>,
        terms: &Range<usize>,
        (first, last): (bool, bool),
        c: SharedMut<'_, T>,
    ) {
        if segments.len() * terms.len() <= CHAIN {
            // SAFETY: the caller's contract.
            return unsafe { self.call(pointers, rows, panel, segments, terms, first, last, c) };
        }
        let per_chain = (CHAIN / terms.len().max(1)).max(1);
        let pieces = terms.len().div_ceil(CHAIN).max(1);
        let piece = terms.len().div_ceil(pieces);
        let a_step = if self.a.scratch(1, 1) > 0 {
            rows.len()
        } else {
            self.a.step()
        };
        for start in (0..segments.len()).step_by(per_chain) {
            let end = segments.len().min(start + per_chain);
            let whole = segments.start + start..segments.start + end;
            for at in 0..pieces {
                let part = terms.start + at * piece..terms.end.min(terms.start + (at + 1) * piece);
                let is_first = first && start == 0 && at == 0;
                let is_last = last && end == segments.len() && at + 1 == pieces;
                let skipped: RowPointers<T> =
                    pointers[start].map(|row| row.wrapping_add(at * piece * a_step));
                let one = [skipped];
                let pointers = if pieces > 1 { &one } else { &pointers[start..end] };
                // SAFETY: the caller's contract.
                unsafe { self.call(pointers, rows.clone(), panel, &whole, &part, is_first, is_last, c) };
            }
        }
    }

    /// One call of a microkernel.
    ///
    /// # Safety
    /// As for [`Self::job`].
    unsafe fn call(
        &self,
        pointers: &[RowPointers<T>],
        rows: Range<usize>,
        panel: usize,
        segments: &Range<usize>,
        terms: &Range<usize>,
        first: bool,
        last: bool,
        c: SharedMut<'_, T>,
    ) {
        let width = self.kernels.panel();
        let first_column = panel * width;
        let columns = width.min(self.n - first_column);
        let vectors = columns.div_ceil(self.kernels.lanes);
        let padded = vectors * self.kernels.lanes;
        let apart = self.b.last.filter(|_| first_column + width >= self.n);
        let (b, b_step) = match apart {
            Some(data) => (data, padded),
            None => (
                self.b.data.wrapping_add(panel * self.b.panel_step),
                self.b.row_step.unwrap_or(padded),
            ),
        };
        let first_term = segments.start * self.a.segment() + terms.start;
        let copied = self.a.scratch(1, 1) > 0;
        let tile = Tile {
            segments: pointers,
            segment: terms.len(),
            a_step: if copied { rows.len() } else { self.a.step() },
            b: b.wrapping_add(first_term * b_step),
            b_step,
            c: c.as_ptr().wrapping_add(rows.start * self.c_step + first_column),
            c_step: self.c_step,
            columns,
            accumulate: self.accumulate || !first,
            epilogue: self
                .epilogue
                .filter(|_| last)
                .map(|e| (e, rows.start, first_column)),
        };
        // SAFETY: the caller's contract; the table has kernels for up to MAX_ROWS rows and a panel's vectors.
        unsafe { self.kernels.table[rows.len() - 1][vectors - 1](&tile) }
    }
}
