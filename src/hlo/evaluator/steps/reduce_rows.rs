//! Typed loops of reductions.
//!
//! The axes are merged into a plan of alternating kept and reduced ones. If the innermost axis is reduced, each result
//! is a sum of rows; else whole rows of results are summed up. Long sums are cut into blocks that are combined in a
//! balanced tree, so errors stay small; the cuts depend on the extents only.

use crate::evaluator::scalar::{Float, Integer};
use crate::opcode::Opcode;
use ff_kernels::ThreadPool;
use ff_kernels::cpu::{self, Vectorized};
use ff_tensor::{Complex64, Complex128, DataType, Result, bail};
use smallvec::SmallVec;

/// How two elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    Add,
    Multiply,
    Maximum,
    Minimum,
    And,
    Or,
    Xor,
}

impl Combine {
    /// The combination that an opcode means for a type.
    pub fn new(opcode: Opcode, dtype: DataType) -> Option<Combine> {
        let pred = dtype == DataType::BOOL;
        Some(match opcode {
            Opcode::Add if pred => Combine::Or,
            Opcode::Multiply if pred => Combine::And,
            Opcode::Maximum if pred => Combine::Or,
            Opcode::Minimum if pred => Combine::And,
            Opcode::Add => Combine::Add,
            Opcode::Multiply => Combine::Multiply,
            Opcode::Maximum => Combine::Maximum,
            Opcode::Minimum => Combine::Minimum,
            Opcode::And => Combine::And,
            Opcode::Or => Combine::Or,
            Opcode::Xor => Combine::Xor,
            _ => return None,
        })
    }
}

/// Merged axes of an operand.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Extents and strides of the kept axes, but for an innermost one.
    kept: SmallVec<[(usize, usize); 4]>,
    /// Extents and strides of the reduced axes, but for an innermost one.
    reduced: SmallVec<[(usize, usize); 4]>,
    /// The innermost axis, and whether it is reduced.
    inner: usize,
    inner_reduced: bool,
}

impl Plan {
    pub fn new(dims: &[i64], reduced: &[bool]) -> Plan {
        let mut axes: SmallVec<[(usize, bool); 6]> = SmallVec::new();
        for (&extent, &gone) in dims.iter().zip(reduced) {
            let extent = extent as usize;
            if extent == 1 {
                continue;
            }
            match axes.last_mut() {
                Some((merged, same)) if *same == gone => *merged *= extent,
                _ => axes.push((extent, gone)),
            }
        }
        let (inner, inner_reduced) = axes.pop().unwrap_or((1, false));
        let mut plan = Plan {
            kept: SmallVec::new(),
            reduced: SmallVec::new(),
            inner,
            inner_reduced,
        };
        let mut stride = inner;
        for &(extent, gone) in axes.iter().rev() {
            let list = if gone { &mut plan.reduced } else { &mut plan.kept };
            list.insert(0, (extent, stride));
            stride *= extent;
        }
        plan
    }

    fn count(axes: &[(usize, usize)]) -> usize {
        axes.iter().map(|axis| axis.0).product()
    }

    /// Where the element of a row-major number along these axes lies.
    fn place(axes: &[(usize, usize)], mut number: usize) -> usize {
        let mut place = 0;
        for &(extent, stride) in axes.iter().rev() {
            place += number % extent * stride;
            number /= extent;
        }
        place
    }
}

/// Reduces elements of a computed type.
///
/// # Safety
/// `operand` holds the elements of the plan, `out` has room for its results, `init` is one element; all are aligned.
pub(super) unsafe fn run(
    combine: Combine,
    dtype: DataType,
    plan: &Plan,
    pool: &ThreadPool,
    operand: *const u8,
    init: *const u8,
    out: *mut u8,
) -> Result<()> {
    /// One combination of one type.
    macro_rules! typed {
        ($t:ty, $f:expr) => {
            // SAFETY: passed on to the caller; the type is the computed one.
            unsafe {
                reduce::<$t>(
                    plan,
                    pool,
                    operand.cast(),
                    *init.cast::<$t>(),
                    out.cast(),
                    $f,
                )
            }
        };
    }
    /// The combinations of an integer type.
    macro_rules! integer {
        ($t:ty) => {
            match combine {
                Combine::Add => typed!($t, |a: $t, b: $t| a.plus(b)),
                Combine::Multiply => typed!($t, |a: $t, b: $t| a.times(b)),
                Combine::Maximum => typed!($t, |a: $t, b: $t| a.max(b)),
                Combine::Minimum => typed!($t, |a: $t, b: $t| a.min(b)),
                Combine::And => typed!($t, |a: $t, b: $t| a & b),
                Combine::Or => typed!($t, |a: $t, b: $t| a | b),
                Combine::Xor => typed!($t, |a: $t, b: $t| a ^ b),
            }
        };
    }
    /// The combinations of a floating-point type.
    macro_rules! float {
        ($t:ty) => {
            match combine {
                Combine::Add => typed!($t, |a: $t, b: $t| a + b),
                Combine::Multiply => typed!($t, |a: $t, b: $t| a * b),
                Combine::Maximum => typed!($t, |a: $t, b: $t| a.larger(b)),
                Combine::Minimum => typed!($t, |a: $t, b: $t| a.smaller(b)),
                other => bail!(Internal, "{other:?} of type {dtype} is not a reduction"),
            }
        };
    }
    /// The combinations of a complex type.
    macro_rules! complex {
        ($t:ty) => {
            match combine {
                Combine::Add => typed!($t, |a: $t, b: $t| a + b),
                Combine::Multiply => typed!($t, |a: $t, b: $t| a * b),
                other => bail!(Internal, "{other:?} of type {dtype} is not a reduction"),
            }
        };
    }
    match dtype {
        DataType::FLOAT => float!(f32),
        DataType::DOUBLE => float!(f64),
        DataType::INT8 => integer!(i8),
        DataType::INT16 => integer!(i16),
        DataType::INT32 => integer!(i32),
        DataType::INT64 => integer!(i64),
        DataType::UINT8 | DataType::BOOL => integer!(u8),
        DataType::UINT16 => integer!(u16),
        DataType::UINT32 => integer!(u32),
        DataType::UINT64 => integer!(u64),
        DataType::COMPLEX64 => complex!(Complex64),
        DataType::COMPLEX128 => complex!(Complex128),
        other => bail!(Unimplemented, "A reduction of type {other} is not implemented"),
    }
    Ok(())
}

/// Memory that the threads of a loop read and write in disjoint parts.
struct Addresses<T>(*const T, *mut T);

// SAFETY: each range of results is written by one thread.
unsafe impl<T> Sync for Addresses<T> {}

/// Terms of a sum that are added up one after another before the tree begins.
const BLOCK: usize = 1024;
/// Results of a row that are summed up together.
const COLUMNS: usize = 512;

/// # Safety
/// As for [`run`].
unsafe fn reduce<T: Copy + Send + Sync + 'static>(
    plan: &Plan,
    pool: &ThreadPool,
    operand: *const T,
    init: T,
    out: *mut T,
    f: impl Fn(T, T) -> T + Copy + Sync,
) {
    let (kept, terms) = (Plan::count(&plan.kept), Plan::count(&plan.reduced));
    let addresses = Addresses(operand, out);
    let addresses = &addresses;
    let cost = 0.3 * std::mem::size_of::<T>() as f64 / 4.0;
    if plan.inner_reduced {
        if kept == 1 && terms == 1 && plan.inner > 64 * BLOCK {
            // SAFETY: passed on to the caller.
            unsafe { *out = f(init, one_long_row(plan.inner, pool, operand, f)) };
            return;
        }
        pool.parallel_for(kept, (terms * plan.inner) as f64 * cost, |range| {
            for number in range {
                let base = Plan::place(&plan.kept, number);
                let mut tree = Tree::new();
                for term in 0..terms {
                    let start = base + Plan::place(&plan.reduced, term);
                    // SAFETY: the plan's places lie within the operand.
                    let row = unsafe { std::slice::from_raw_parts(addresses.0.add(start), plan.inner) };
                    row.chunks(BLOCK)
                        .for_each(|block| tree.add(cpu::dispatch(Row(block, f)), f));
                }
                // SAFETY: each result is written once.
                unsafe { *addresses.1.add(number) = tree.total(f).map_or(init, |total| f(init, total)) };
            }
        });
        return;
    }
    let pieces = plan.inner.div_ceil(COLUMNS);
    let piece_cost = (terms * COLUMNS.min(plan.inner)) as f64 * cost;
    pool.parallel_for(kept * pieces, piece_cost, |range| {
        let mut total = [init; COLUMNS];
        let mut block = [init; COLUMNS];
        for number in range {
            let column = number % pieces * COLUMNS;
            let len = COLUMNS.min(plan.inner - column);
            let base = Plan::place(&plan.kept, number / pieces) + column;
            total[..len].fill(init);
            for first in (0..terms).step_by(BLOCK) {
                for term in first..terms.min(first + BLOCK) {
                    let start = base + Plan::place(&plan.reduced, term);
                    // SAFETY: the plan's places lie within the operand.
                    let row = unsafe { std::slice::from_raw_parts(addresses.0.add(start), len) };
                    if term == first {
                        block[..len].copy_from_slice(row);
                    } else {
                        cpu::dispatch(Columns(&mut block[..len], row, f));
                    }
                }
                cpu::dispatch(Columns(&mut total[..len], &block[..len], f));
            }
            // SAFETY: each piece of results is written once.
            let out = unsafe {
                std::slice::from_raw_parts_mut(addresses.1.add(number / pieces * plan.inner + column), len)
            };
            out.copy_from_slice(&total[..len]);
        }
    });
}

/// # Safety
/// `operand` holds `len` elements.
unsafe fn one_long_row<T: Copy + Send + Sync + 'static>(
    len: usize,
    pool: &ThreadPool,
    operand: *const T,
    f: impl Fn(T, T) -> T + Copy + Sync,
) -> T {
    // SAFETY: passed on to the caller.
    let row = unsafe { std::slice::from_raw_parts(operand, len) };
    let parts = std::sync::Mutex::new(Vec::new());
    let size = 64 * BLOCK;
    pool.parallel_blocks(len, size, 0.3, |index, range| {
        let mut tree = Tree::new();
        row[range]
            .chunks(BLOCK)
            .for_each(|block| tree.add(cpu::dispatch(Row(block, f)), f));
        if let Some(total) = tree.total(f) {
            parts
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .push((index, total));
        }
    });
    let mut parts = parts
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    parts.sort_by_key(|part| part.0);
    let mut tree = Tree::new();
    parts.iter().for_each(|part| tree.add(part.1, f));
    tree.total(f).unwrap_or(row[0])
}

/// A balanced tree of sums, built from left to right: entry `i` is the sum of `2^i` blocks, if there is one.
struct Tree<T> {
    levels: SmallVec<[Option<T>; 24]>,
}

impl<T: Copy> Tree<T> {
    fn new() -> Tree<T> {
        Tree {
            levels: SmallVec::new(),
        }
    }

    fn add(&mut self, value: T, f: impl Fn(T, T) -> T) {
        let mut carry = value;
        for level in &mut self.levels {
            match level.take() {
                Some(before) => carry = f(before, carry),
                None => {
                    *level = Some(carry);
                    return;
                }
            }
        }
        self.levels.push(Some(carry));
    }

    fn total(&self, f: impl Fn(T, T) -> T) -> Option<T> {
        let mut found = self.levels.iter().flatten().copied();
        let first = found.next()?;
        Some(found.fold(first, |later, before| f(before, later)))
    }
}

/// The combination of a row that is not empty, in 16 lanes.
struct Row<'a, T, F>(&'a [T], F);

const LANES: usize = 16;

impl<T: Copy, F: Fn(T, T) -> T> Vectorized for Row<'_, T, F> {
    type Output = T;
    #[inline(always)]
    fn run(self) -> T {
        let Row(row, f) = self;
        let (whole, rest) = row.as_chunks::<LANES>();
        let Some((first, others)) = whole.split_first() else {
            return rest[1..].iter().fold(rest[0], |total, &value| f(total, value));
        };
        let mut lanes = *first;
        for chunk in others {
            for lane in 0..LANES {
                lanes[lane] = f(lanes[lane], chunk[lane]);
            }
        }
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                lanes[lane] = f(lanes[lane], lanes[lane + width]);
            }
            width /= 2;
        }
        rest.iter().fold(lanes[0], |total, &value| f(total, value))
    }
}

/// Combines a row into totals.
struct Columns<'a, T, F>(&'a mut [T], &'a [T], F);

impl<T: Copy, F: Fn(T, T) -> T> Vectorized for Columns<'_, T, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (total, &value) in self.0.iter_mut().zip(self.1) {
            *total = (self.2)(*total, value);
        }
    }
}
