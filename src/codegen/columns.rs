//! Sums of columns: rows are combined in blocks, blocks in halves, as `ff_kernels::reduce` does it.
//!
//! Code adds rows to partial results; this file has the memory of those, and combines the blocks.

use ff_hlo::fusion::{FusionPlan, LibraryFunction, NodeKind, call_library, library_function, neutral_value};
use ff_hlo::{Attributes, Opcode};
use ff_kernels::reduce::column_block;
use ff_tensor::{DataType, Result, bail, bf16, f16, status};

/// Columns that are one piece of work.
pub(crate) const PIECE: usize = 1024;

/// How the rows of a plan are cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cuts {
    /// Groups of rows that give results of their own.
    pub groups: usize,
    /// Rows of a group.
    pub rows: usize,
    /// Rows that are combined before partial results are.
    pub block: usize,
    /// Blocks of a group.
    pub blocks: usize,
    /// Columns.
    pub width: usize,
}

impl Cuts {
    pub fn of(plan: &FusionPlan, rows: usize) -> Cuts {
        let block = column_block(rows);
        Cuts {
            groups: plan.rows() / rows,
            rows,
            block,
            blocks: rows.div_ceil(block),
            width: plan.row(),
        }
    }

    /// The rows of a block, of those of all groups.
    pub fn range(&self, block: usize) -> [usize; 2] {
        let (group, block) = (block / self.blocks, block % self.blocks);
        let start = group * self.rows;
        [
            start + block * self.block,
            start + self.rows.min((block + 1) * self.block),
        ]
    }
}

/// The partial results of an output.
pub(crate) struct Partial {
    pub output: usize,
    dtype: DataType,
    function: LibraryFunction,
    /// Bytes of a partial result: short numbers are summed in `f32`.
    size: usize,
    memory: Vec<[u64; 2]>,
}

impl Partial {
    /// Partial results at their neutral value, for each output that sums columns.
    pub fn all(plan: &FusionPlan, cuts: Cuts) -> Result<Vec<Partial>> {
        let mut partials = Vec::new();
        for (output, found) in plan.outputs.iter().enumerate() {
            if let NodeKind::Columns(opcode) = plan.nodes[found.node].kind {
                partials.push(Partial::new(output, opcode, found.dtype, cuts)?);
            }
        }
        Ok(partials)
    }

    fn new(output: usize, opcode: Opcode, dtype: DataType, cuts: Cuts) -> Result<Partial> {
        let summed = match dtype {
            DataType::HALF | DataType::BFLOAT16 => DataType::FLOAT,
            other => other,
        };
        let Some(function) = library_function(opcode, &Attributes::None, summed, summed) else {
            bail!(
                Unimplemented,
                "columns of type {dtype} are not combined by {opcode}"
            );
        };
        let size = summed.size();
        let elements = cuts.groups * cuts.blocks * cuts.width;
        let mut partial = Partial {
            output,
            dtype,
            function,
            size,
            memory: Vec::new(),
        };
        grow(&mut partial.memory, elements * size)?;
        let neutral = neutral_value(opcode, summed)?;
        repeat(neutral.bytes(), partial.bytes(0, elements));
        Ok(partial)
    }

    /// Bytes of some elements.
    fn bytes(&mut self, start: usize, elements: usize) -> &mut [u8] {
        let len = self.memory.len() * 16;
        // SAFETY: plain bytes of owned memory; the index below checks the end.
        let all = unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast::<u8>(), len) };
        &mut all[start * self.size..(start + elements) * self.size]
    }

    /// The address of the first partial result, and the distance of blocks in bytes.
    pub fn address(&mut self, cuts: Cuts) -> (u64, u64) {
        (self.memory.as_mut_ptr() as u64, (cuts.width * self.size) as u64)
    }

    /// Combines the blocks of each group, and writes the results.
    ///
    /// # Safety
    /// `out` has room for the results.
    pub unsafe fn finish(&mut self, cuts: Cuts, out: *mut u8) -> Result<()> {
        let mut sums: Vec<[u64; 2]> = Vec::new();
        for group in 0..cuts.groups {
            let first = group * cuts.blocks * cuts.width;
            let mut left = cuts.blocks;
            while left > 1 {
                let half = left.div_ceil(2);
                let elements = (left - half) * cuts.width;
                grow(&mut sums, elements * self.size)?;
                let high = self.bytes(first + half * cuts.width, elements).as_ptr();
                let low = self.bytes(first, elements).as_mut_ptr();
                let to = sums.as_mut_ptr().cast::<u8>();
                let (function, parameter) = (self.function.address(), self.function.parameter());
                // SAFETY: both halves and the sums have that many elements, and the sums are memory of their own.
                unsafe {
                    call_library(function, parameter, to, low, high, high, elements as u64);
                    std::ptr::copy_nonoverlapping(to, low, elements * self.size);
                }
                left = half;
            }
            let dtype = self.dtype;
            let results = self.bytes(first, cuts.width);
            // SAFETY: passed on to the caller.
            let out = unsafe {
                let size = dtype.size() * cuts.width;
                std::slice::from_raw_parts_mut(out.add(group * size), size)
            };
            finish(results, dtype, out);
        }
        Ok(())
    }
}

/// Fills memory that is zero with a value.
fn repeat(value: &[u8], out: &mut [u8]) {
    if value.iter().all(|&byte| byte == 0) || out.is_empty() {
        return;
    }
    let mut done = value.len();
    out[..done].copy_from_slice(value);
    while done < out.len() {
        let more = done.min(out.len() - done);
        out.copy_within(..more, done);
        done += more;
    }
}

/// From partial results to results.
fn finish(sums: &[u8], dtype: DataType, out: &mut [u8]) {
    match dtype {
        DataType::HALF => narrow(sums, out, |sum| f16::from_f32(sum).to_bits()),
        DataType::BFLOAT16 => narrow(sums, out, |sum| bf16::from_f32(sum).to_bits()),
        _ => out.copy_from_slice(sums),
    }
}

/// From single precision to the bits of a short number.
fn narrow(sums: &[u8], out: &mut [u8], bits: impl Fn(f32) -> u16) {
    for (sum, out) in sums.as_chunks::<4>().0.iter().zip(out.as_chunks_mut::<2>().0) {
        *out = bits(f32::from_ne_bytes(*sum)).to_ne_bytes();
    }
}

/// Makes memory for at least so many bytes.
fn grow(memory: &mut Vec<[u64; 2]>, bytes: usize) -> Result<()> {
    let lines = bytes.div_ceil(16);
    if memory.len() < lines {
        memory.try_reserve_exact(lines - memory.len()).map_err(|_| {
            status!(
                ResourceExhausted,
                "no memory for {bytes} bytes of partial results"
            )
        })?;
        memory.resize(lines, [0; 2]);
    }
    Ok(())
}
