//! A chain of tile functions with its inputs, outputs and registers, and the loop that runs it.

use super::{Strided, TileArgs, TileFn};
use ff_kernels::ThreadPool;
use std::cell::Cell;
use std::ops::Range;

/// How an input is read.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::evaluator) enum Access {
    /// Element `i` for element `i` of the result.
    Direct,
    /// One element for all, at this place.
    Splat(isize),
    /// Along a walk.
    Strided(Strided),
}

/// An input: bytes of an element as stored, and how it is read.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub size: usize,
    pub access: Access,
}

/// Where an operand of an instruction lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arg {
    None,
    Input(u16),
    Register(u32),
    Output(u16),
}

/// What an instruction does.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Applies a function.
    Map {
        function: TileFn,
        splat: u8,
        parameter: u64,
    },
    /// Reads an input along its walk.
    Load { input: u16 },
    /// Counts: element `i` is `i / inner % extent`.
    Iota {
        function: IotaFn,
        inner: usize,
        extent: usize,
    },
    /// Repeats the first element of the operand.
    Fill,
    /// Copies the operand.
    Copy,
}

/// Writes the counts of elements `start..start + len`.
///
/// # Safety
/// `out` is valid and aligned for `len` elements of the function's type.
pub(super) type IotaFn = unsafe fn(out: *mut u8, start: usize, len: usize, inner: usize, extent: usize);

/// An instruction on tiles.
#[derive(Clone, Copy)]
pub(super) struct TileOp {
    pub kind: Kind,
    pub args: [Arg; 3],
    /// A register or an output.
    pub target: Arg,
    /// Bytes of an element of the result.
    pub size: usize,
}

/// An output: bytes of an element, and the register in which it is made when it replaces an input.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub size: usize,
    pub bounce: u32,
    /// Input elements that are still read when it is written: bit `i` for input `i`.
    pub inputs_read_later: u64,
}

/// Instructions for all elements of a fusion.
pub(in crate::evaluator) struct TileProgram {
    pub(super) inputs: Vec<Input>,
    pub(super) outputs: Vec<Output>,
    /// Instructions whose results hold for all tiles.
    pub(super) prologue: Vec<TileOp>,
    pub(super) body: Vec<TileOp>,
    /// Elements of a tile.
    pub(super) tile: usize,
    pub(super) scratch_bytes: usize,
    /// Nanoseconds per element.
    pub(super) cost: f64,
}

thread_local! {
    static SCRATCH: Cell<Vec<[u64; 8]>> = const { Cell::new(Vec::new()) };
}

/// Runs `body` with at least this many bytes, aligned to a cache line's half at least.
fn with_scratch<R>(bytes: usize, body: impl FnOnce(*mut u8) -> R) -> R {
    const LINE: usize = 64;
    let mut scratch = SCRATCH.take();
    let lines = bytes.div_ceil(LINE) + 1;
    if scratch.len() < lines {
        scratch.resize(lines, [0; 8]);
    }
    let start = scratch.as_mut_ptr().cast::<u8>();
    let result = body(start.wrapping_add(start.align_offset(LINE)));
    SCRATCH.set(scratch);
    result
}

/// Pointers to the inputs and outputs of a run; the threads of a loop write disjoint elements.
struct Pointers<'a> {
    inputs: &'a [*const u8],
    outputs: &'a [*mut u8],
}

// SAFETY: inputs are only read; each thread writes the elements of its own range.
unsafe impl Sync for Pointers<'_> {}

impl TileProgram {
    /// The number of inputs.
    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Bytes of an element of an output.
    pub fn output_size(&self, output: usize) -> usize {
        self.outputs[output].size
    }

    /// Whether an output may be written over a directly read input of the same element size.
    pub fn may_replace(&self, output: usize, input: usize) -> bool {
        let (out, source) = (&self.outputs[output], &self.inputs[input]);
        out.size == source.size
            && source.access == Access::Direct
            && input < 64
            && out.inputs_read_later >> input & 1 == 0
    }

    /// Runs all elements on the pool. Bit `j` of `replaced` says that output `j` lies over an input.
    ///
    /// # Safety
    /// Inputs hold the elements that their access reads, outputs are writable for `elements`; outputs overlap each
    /// other nowhere and inputs only as `replaced` says, where [`TileProgram::may_replace`] allows it.
    pub unsafe fn run(
        &self,
        pool: &ThreadPool,
        inputs: &[*const u8],
        outputs: &[*mut u8],
        replaced: u64,
        elements: usize,
    ) {
        if elements == 0 {
            return;
        }
        let pointers = Pointers { inputs, outputs };
        if elements as f64 * self.cost < 4_000.0 {
            // SAFETY: passed on to the caller.
            return unsafe { self.run_range(&pointers, replaced, 0..elements) };
        }
        let pointers = &pointers;
        pool.parallel_for(elements, self.cost, |range| {
            // SAFETY: passed on to the caller; ranges are disjoint.
            unsafe { self.run_range(pointers, replaced, range) }
        });
    }

    /// Runs elements `0..elements` on this thread.
    ///
    /// # Safety
    /// As for [`TileProgram::run`].
    pub unsafe fn run_serial(&self, inputs: &[*const u8], outputs: &[*mut u8], elements: usize) {
        if elements > 0 {
            // SAFETY: passed on to the caller.
            unsafe { self.run_range(&Pointers { inputs, outputs }, 0, 0..elements) }
        }
    }

    /// Runs the elements of `range` on this thread.
    ///
    /// # Safety
    /// As for [`TileProgram::run`], for the elements of `range`; other threads may run other ranges.
    pub unsafe fn run_part(
        &self,
        inputs: &[*const u8],
        outputs: &[*mut u8],
        replaced: u64,
        range: Range<usize>,
    ) {
        if !range.is_empty() {
            // SAFETY: passed on to the caller.
            unsafe { self.run_range(&Pointers { inputs, outputs }, replaced, range) }
        }
    }

    /// Nanoseconds per element.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// # Safety
    /// As for [`TileProgram::run`], for the elements of `range`.
    unsafe fn run_range(&self, pointers: &Pointers, replaced: u64, range: Range<usize>) {
        with_scratch(self.scratch_bytes, |scratch| {
            let widest = self.tile.min(range.len());
            for op in &self.prologue {
                // SAFETY: the prologue reads splats and its own registers only.
                unsafe { self.step(op, pointers, scratch, 0, widest, 0) };
            }
            let mut start = range.start;
            while start < range.end {
                let len = self.tile.min(range.end - start);
                for op in &self.body {
                    // SAFETY: passed on to the caller.
                    unsafe { self.step(op, pointers, scratch, start, len, replaced) };
                }
                start += len;
            }
        });
    }

    /// # Safety
    /// As for [`TileProgram::run`], for the elements `start..start + len`, at most a tile.
    #[inline(always)]
    unsafe fn step(
        &self,
        op: &TileOp,
        pointers: &Pointers,
        scratch: *mut u8,
        start: usize,
        len: usize,
        replaced: u64,
    ) {
        // SAFETY: offsets stay within the tensors, and registers within the scratch space.
        unsafe {
            let address = |arg: Arg| -> *const u8 {
                match arg {
                    Arg::None => std::ptr::NonNull::<[u64; 2]>::dangling().as_ptr().cast(),
                    Arg::Register(offset) => scratch.add(offset as usize),
                    Arg::Output(j) => pointers.outputs[j as usize].add(start * self.outputs[j as usize].size),
                    Arg::Input(i) => {
                        let input = &self.inputs[i as usize];
                        let base = pointers.inputs[i as usize];
                        match input.access {
                            Access::Splat(at) => base.offset(at * input.size as isize),
                            _ => base.add(start * input.size),
                        }
                    }
                }
            };
            let destination = address(op.target).cast_mut();
            let bounced = matches!(op.target, Arg::Output(j) if replaced >> j & 1 == 1);
            let out = match op.target {
                Arg::Output(j) if bounced => scratch.add(self.outputs[j as usize].bounce as usize),
                _ => destination,
            };
            match op.kind {
                Kind::Map {
                    function,
                    splat,
                    parameter,
                } => function(&TileArgs {
                    operands: op.args.map(address),
                    out,
                    len,
                    splat,
                    parameter,
                }),
                Kind::Load { input } => {
                    let source = &self.inputs[input as usize];
                    if let Access::Strided(walk) = &source.access {
                        walk.load(
                            source.size,
                            pointers.inputs[input as usize],
                            out,
                            start..start + len,
                        );
                    }
                }
                Kind::Iota {
                    function,
                    inner,
                    extent,
                } => function(out, start, len, inner, extent),
                Kind::Fill => fill(address(op.args[0]), op.size, out, len),
                Kind::Copy => std::ptr::copy_nonoverlapping(address(op.args[0]), out, len * op.size),
            }
            if bounced {
                std::ptr::copy_nonoverlapping(out, destination, len * op.size);
            }
        }
    }
}

/// Repeats one element.
///
/// # Safety
/// `value` is one element of `size` bytes, `out` is writable for `len` of them, both aligned for their type.
unsafe fn fill(value: *const u8, size: usize, out: *mut u8, len: usize) {
    /// # Safety
    /// As for `fill`, with elements like `T`.
    unsafe fn fill_as<T: Copy>(value: *const u8, out: *mut u8, len: usize) {
        // SAFETY: passed on to the caller.
        unsafe { std::slice::from_raw_parts_mut(out.cast::<T>(), len).fill(*value.cast::<T>()) }
    }
    // SAFETY: passed on to the caller.
    unsafe {
        match size {
            1 => fill_as::<u8>(value, out, len),
            2 => fill_as::<u16>(value, out, len),
            4 => fill_as::<u32>(value, out, len),
            8 => fill_as::<[u32; 2]>(value, out, len),
            _ => fill_as::<[u64; 2]>(value, out, len),
        }
    }
}
