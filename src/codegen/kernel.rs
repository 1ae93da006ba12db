//! A fusion in executable memory, and its run on a thread pool.

use crate::columns::{Cuts, PIECE as COLUMNS, Partial};
use crate::layout::{Layout, Words};
use crate::stages::{element_cost, stages};
use crate::{LoadedObject, compile_object};
use ff_hlo::fusion::{FusionKernel, FusionPlan, LibraryFunction};
use ff_kernels::ThreadPool;
use ff_tensor::{Result, Status, status};
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// The name of the function in objects.
pub(crate) const NAME: &str = "ff_fusion";

/// Elements of a row that are one piece of work where rows are long and not reduced.
const PIECE: usize = 16 << 10;

/// The code of a fusion: `(words, first row, end row, first element, end element, intermediate rows)`.
pub type Function = unsafe extern "C" fn(*const u64, i64, i64, i64, i64, *mut u8);

/// Code for all plans of a structure.
pub(crate) struct CompiledFusion {
    /// The memory of the code, unless it is part of the program.
    code: Option<LoadedObject>,
    function: Function,
    layout: Layout,
    functions: Vec<LibraryFunction>,
    /// Intermediate rows.
    saved: usize,
    /// Nanoseconds for an element.
    cost: f64,
}

thread_local! {
    static SCRATCH: Cell<Vec<[u64; 8]>> = const { Cell::new(Vec::new()) };
}

/// Makes the object of a plan.
pub(crate) fn object(plan: &FusionPlan) -> Result<Vec<u8>> {
    compile_object(NAME, plan, &Layout::of_plan(plan))
}

impl CompiledFusion {
    /// Loads the object that [`object`] made for a plan of this structure.
    pub fn load(plan: &FusionPlan, object: &[u8]) -> Result<CompiledFusion> {
        let code = LoadedObject::load(object)?;
        let address = code
            .symbol(NAME)
            .ok_or_else(|| status!(Internal, "the compiled object does not define {NAME}"))?;
        // SAFETY: the emitter gives every fusion this signature.
        let function = unsafe { std::mem::transmute::<*const u8, Function>(address) };
        Ok(CompiledFusion {
            code: Some(code),
            ..CompiledFusion::linked(plan, function)?
        })
    }

    /// Code that is part of the program, and that was made for plans of this structure.
    pub fn linked(plan: &FusionPlan, function: Function) -> Result<CompiledFusion> {
        let layout = Layout::of_plan(plan);
        Ok(CompiledFusion {
            code: None,
            function,
            functions: layout.functions(plan)?,
            layout,
            saved: stages(plan).1.iter().flatten().count(),
            cost: element_cost(plan),
        })
    }

    /// Bytes of executable memory.
    pub fn code_bytes(&self) -> usize {
        self.code.as_ref().map_or(0, LoadedObject::len)
    }

    /// Runs rows and elements with memory for intermediate rows.
    ///
    /// # Safety
    /// `words` are those of a run, and what they point at is as [`FusionKernel::run`] says.
    unsafe fn call(
        &self,
        words: &[u64],
        scratch_bytes: usize,
        rows: [usize; 2],
        elements: [usize; 2],
    ) -> Result<()> {
        let lines = (self.saved * scratch_bytes).div_ceil(64) + 1;
        let mut scratch = SCRATCH.take();
        if scratch.len() < lines {
            let more = lines - scratch.len();
            scratch.try_reserve_exact(more).map_err(|_| {
                status!(
                    ResourceExhausted,
                    "no memory for {more} lines of intermediate rows"
                )
            })?;
            scratch.resize(lines, [0; 8]);
        }
        let start = scratch.as_mut_ptr().cast::<u8>();
        let [first_row, end_row] = rows.map(|row| row as i64);
        let [first, end] = elements.map(|element| element as i64);
        // SAFETY: passed on to the caller; the scratch has the rows that the code writes.
        unsafe { (self.function)(words.as_ptr(), first_row, end_row, first, end, start) };
        SCRATCH.set(scratch);
        Ok(())
    }
}

impl CompiledFusion {
    /// Runs blocks of rows, each into partial results of its own.
    ///
    /// # Safety
    /// As for [`FusionKernel::run`]; `words` are those of the run.
    unsafe fn run_columns(
        &self,
        pool: &ThreadPool,
        plan: &FusionPlan,
        words: Words,
        cuts: Cuts,
        outputs: &[*mut u8],
    ) -> Result<()> {
        let mut partials = Partial::all(plan, cuts)?;
        let places: Vec<(usize, (u64, u64))> = partials
            .iter_mut()
            .map(|partial| (partial.output, partial.address(cuts)))
            .collect();
        let pieces = cuts.width.div_ceil(COLUMNS);
        let cost = (cuts.rows.min(cuts.block) * cuts.width.min(COLUMNS)) as f64 * self.cost;
        let failure: Mutex<Option<Status>> = Mutex::new(None);
        pool.parallel_for(cuts.groups * cuts.blocks * pieces, cost, |range| {
            let mut words = words.clone();
            for index in range {
                let (block, piece) = (index / pieces, index % pieces);
                for &(output, (address, distance)) in &places {
                    words[self.layout.output_word(output)] = address + block as u64 * distance;
                }
                let columns = [piece * COLUMNS, cuts.width.min((piece + 1) * COLUMNS)];
                // SAFETY: passed on to the caller; blocks and pieces are disjoint.
                let result =
                    unsafe { self.call(&words, Layout::scratch_bytes(plan), cuts.range(block), columns) };
                if let Err(error) = result {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
            }
        });
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)?;
        for partial in &mut partials {
            // SAFETY: passed on to the caller.
            unsafe { partial.finish(cuts, outputs[partial.output]) }?;
        }
        Ok(())
    }
}

impl FusionKernel for CompiledFusion {
    unsafe fn run(
        &self,
        pool: &ThreadPool,
        plan: &FusionPlan,
        parameters: &[*const u8],
        outputs: &[*mut u8],
    ) -> Result<()> {
        let words = self.layout.words(plan, &self.functions, parameters, outputs);
        let (rows, row) = (plan.rows(), plan.row());
        let bytes = Layout::scratch_bytes(plan);
        let failure: Mutex<Option<Status>> = Mutex::new(None);
        let note = |result: Result<()>| {
            if let Err(error) = result {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        if let Some(folded) = plan.columns {
            let cuts = Cuts::of(plan, folded);
            // SAFETY: passed on to the caller.
            return unsafe { self.run_columns(pool, plan, words, cuts, outputs) };
        }
        if (rows * row) as f64 * self.cost < 4_000.0 {
            // SAFETY: passed on to the caller.
            return unsafe { self.call(&words, bytes, [0, rows], [0, row]) };
        }
        if row >= 2 * PIECE && !plan.reduces() {
            let pieces = row.div_ceil(PIECE);
            pool.parallel_for(rows * pieces, PIECE as f64 * self.cost, |range| {
                // Neighbouring pieces of a row go together.
                let mut at = range.start;
                while at < range.end {
                    let (index, piece) = (at / pieces, at % pieces);
                    let last = pieces.min(piece + range.end - at);
                    let elements = [piece * PIECE, row.min(last * PIECE)];
                    // SAFETY: passed on to the caller; ranges are disjoint.
                    note(unsafe { self.call(&words, bytes, [index, index + 1], elements) });
                    at += last - piece;
                }
            });
        } else {
            pool.parallel_for(rows, row as f64 * self.cost, |range| {
                // SAFETY: passed on to the caller; ranges are disjoint.
                note(unsafe { self.call(&words, bytes, [range.start, range.end], [0, row]) });
            });
        }
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }
}
