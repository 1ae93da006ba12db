//! Windows that reach from one end of an axis to each place: running sums and their like, each element combined with the
//! result before it.
//!
//! From the last place to the first where windows reach to the last one; then the reducer must be a symmetric opcode.
//! Each combination is rounded to the type of the elements.

use super::function::{Known, RowFunction, recognize};
use super::movement::fill;
use crate::attributes::WindowDimension;
use crate::evaluator::code::{Kernel, StepContext};
use crate::evaluator::scalar::{Float, Integer};
use crate::module::Computation;
use crate::opcode::Opcode;
use crate::shape::ArrayShape;
use ff_tensor::{DataType, Result, bf16, f16};

/// Elements behind the axis from which on rows of them are combined at once.
const LEAST_ROW: usize = 8;
/// Elements that are one piece of work.
const PIECE: usize = 1024;

/// Runs along one line: the start, the first element and its result, the bytes between neighbours, and how many there
/// are.
///
/// # Safety
/// The start is an element, and as many elements and results lie there, of the function's type.
type LineFn = unsafe fn(*const u8, *const u8, *mut u8, isize, usize);

struct Cumulative {
    function: RowFunction,
    line: Option<LineFn>,
    outer: usize,
    extent: usize,
    inner: usize,
    size: usize,
    backwards: bool,
}

/// The axis along which windows of this form reach from one end, and whether that is the last one.
fn form(operand: &ArrayShape, places: &[i64], window: &[WindowDimension]) -> Option<(usize, bool)> {
    let plain = |axis: usize| window[axis] == WindowDimension::new(1) && places[axis] == operand.dims[axis];
    let mut axes = (0..operand.rank()).filter(|&axis| !plain(axis));
    let (axis, None) = (axes.next()?, axes.next()) else {
        return None;
    };
    let (w, all) = (&window[axis], operand.dims[axis] - 1);
    let unit = WindowDimension {
        size: w.size,
        padding_low: w.padding_low,
        padding_high: w.padding_high,
        ..WindowDimension::new(1)
    };
    let reaches = |far: i64, near: i64| near == 0 && far >= all && w.size == far + 1;
    if *w != unit || places[axis] != operand.dims[axis] || all < 1 {
        return None;
    }
    match (
        reaches(w.padding_low, w.padding_high),
        reaches(w.padding_high, w.padding_low),
    ) {
        (true, _) => Some((axis, false)),
        (_, true) => Some((axis, true)),
        _ => None,
    }
}

/// The kernel of windows of this form over one array.
pub(super) fn kernel(
    operand: &ArrayShape,
    places: &[i64],
    window: &[WindowDimension],
    reducer: &Computation,
) -> Option<Result<Box<dyn Kernel>>> {
    let (axis, backwards) = form(operand, places, window)?;
    let opcode = match recognize(reducer) {
        Some(Known::Binary(opcode)) if opcode.is_symmetric() => Some(opcode),
        _ => None,
    };
    if backwards && opcode.is_none() {
        return None;
    }
    let product = |dims: &[i64]| dims.iter().product::<i64>() as usize;
    let step = RowFunction::compile(reducer).map(|function| {
        Box::new(Cumulative {
            function,
            line: opcode.and_then(|opcode| line(opcode, operand.dtype)),
            outer: product(&operand.dims[..axis]),
            extent: operand.dims[axis] as usize,
            inner: product(&operand.dims[axis + 1..]),
            size: operand.dtype.size(),
            backwards,
        }) as Box<dyn Kernel>
    });
    Some(step)
}

/// # Safety
/// As for [`LineFn`].
unsafe fn run_line<T: Copy>(
    start: *const u8,
    x: *const u8,
    out: *mut u8,
    step: isize,
    count: usize,
    combine: impl Fn(T, T) -> T,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut total = *start.cast::<T>();
        for place in 0..count as isize {
            total = combine(total, *x.offset(place * step).cast::<T>());
            *out.offset(place * step).cast::<T>() = total;
        }
    }
}

/// The loop along a line for an opcode and a type.
fn line(opcode: Opcode, dtype: DataType) -> Option<LineFn> {
    /// A loop over one function.
    macro_rules! line {
        ($t:ty, $combine:expr) => {{
            unsafe fn run(start: *const u8, x: *const u8, out: *mut u8, step: isize, count: usize) {
                // SAFETY: passed on to the caller.
                unsafe { run_line::<$t>(start, x, out, step, count, $combine) }
            }
            Some(run as LineFn)
        }};
    }
    /// The opcodes over one type, given sum and product.
    macro_rules! lines {
        ($t:ty, $add:expr, $multiply:expr) => {
            match opcode {
                Opcode::Add => line!($t, $add),
                Opcode::Multiply => line!($t, $multiply),
                _ => None,
            }
        };
    }
    /// Through single precision.
    macro_rules! short {
        ($t:ty) => {
            lines!(
                $t,
                |a, b| <$t>::from_f32(a.to_f32() + b.to_f32()),
                |a, b| <$t>::from_f32(a.to_f32() * b.to_f32())
            )
        };
    }
    /// Integers.
    macro_rules! whole {
        ($t:ty) => {
            lines!($t, Integer::plus, Integer::times)
        };
    }
    match (dtype, opcode) {
        (DataType::FLOAT, Opcode::Maximum) => line!(f32, Float::larger),
        (DataType::FLOAT, Opcode::Minimum) => line!(f32, Float::smaller),
        (DataType::FLOAT, _) => lines!(f32, |a, b| a + b, |a, b| a * b),
        (DataType::DOUBLE, Opcode::Maximum) => line!(f64, Float::larger),
        (DataType::DOUBLE, Opcode::Minimum) => line!(f64, Float::smaller),
        (DataType::DOUBLE, _) => lines!(f64, |a, b| a + b, |a, b| a * b),
        (DataType::HALF, _) => short!(f16),
        (DataType::BFLOAT16, _) => short!(bf16),
        (DataType::INT8 | DataType::UINT8, _) => whole!(i8),
        (DataType::INT16 | DataType::UINT16, _) => whole!(i16),
        (DataType::INT32 | DataType::UINT32, _) => whole!(i32),
        (DataType::INT64 | DataType::UINT64, _) => whole!(i64),
        _ => None,
    }
}

/// Memory that the threads of a loop read and write in disjoint parts.
#[derive(Clone, Copy)]
struct Addresses(*const u8, *const u8, *mut u8);

// SAFETY: each piece of columns is written by one thread.
unsafe impl Sync for Addresses {}

impl Cumulative {
    /// The place at a turn.
    fn place(&self, turn: usize) -> usize {
        if self.backwards {
            self.extent - 1 - turn
        } else {
            turn
        }
    }

    /// Columns `first..end` behind the axis, of block `block` before it.
    ///
    /// # Safety
    /// The addresses are those of operand, start and result with the extents that the step was made for.
    unsafe fn columns(&self, Addresses(x, start, out): Addresses, block: usize, first: usize, end: usize) {
        let row = self.inner * self.size;
        let at = |turn: usize| (block * self.extent + self.place(turn)) * row + first * self.size;
        let step = if self.backwards {
            -(row as isize)
        } else {
            row as isize
        };
        // SAFETY: passed on to the caller; a result is read after it was written.
        unsafe {
            if let Some(line) = self.line.filter(|_| self.inner < LEAST_ROW) {
                for column in 0..end - first {
                    let bytes = at(0) + column * self.size;
                    line(start, x.add(bytes), out.add(bytes), step, self.extent);
                }
                return;
            }
            let count = end - first;
            let mut starts = vec![[0_u64; 2]; (count * self.size).div_ceil(16)];
            fill(start, starts.as_mut_ptr().cast(), self.size, count);
            let mut before = starts.as_ptr().cast::<u8>();
            for turn in 0..self.extent {
                let to = out.add(at(turn));
                self.function.call(&[before, x.add(at(turn))], &[to], count);
                before = to.cast_const();
            }
        }
    }
}

impl Kernel for Cumulative {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let result = step.allocate(0)?;
        if result.num_elements() > 0 {
            let addresses = Addresses(step.input_ptr(0)?, step.input_ptr(1)?, result.data_ptr());
            let addresses = &addresses;
            let pieces = self.inner.div_ceil(PIECE);
            let cost = (self.extent * self.inner.min(PIECE)) as f64;
            step.pool().parallel_for(self.outer * pieces, cost, |range| {
                for index in range {
                    let (block, piece) = (index / pieces, index % pieces);
                    let end = self.inner.min((piece + 1) * PIECE);
                    // SAFETY: pieces are disjoint, of arrays with the extents that the step was made for.
                    unsafe { self.columns(*addresses, block, piece * PIECE, end) };
                }
            });
        }
        step.set(0, result);
        Ok(())
    }
}
