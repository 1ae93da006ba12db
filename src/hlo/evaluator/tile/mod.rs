//! Tiles: a few hundred to a few thousand elements that stay in the nearest cache while a chain of elementwise
//! instructions is applied to them.
//!
//! A [`TileFn`] applies one instruction to one tile. The tables in `float`, `integer`, `complex` and `convert` give
//! the function for an opcode and an element type; `program` strings them together.

mod build;
mod complex;
mod convert;
mod float;
mod integer;
mod lookup;
mod program;
mod strided;

pub(super) use build::{TileBuilder, ValueId};
pub(super) use lookup::{compute_type, map_function};
pub(super) use program::{Access, TileProgram};
pub(super) use strided::Strided;

use ff_kernels::cpu::{self, Vectorized};

/// Operands and result of an instruction on one tile.
pub(crate) struct TileArgs {
    /// The operands; unused ones are dangling.
    pub operands: [*const u8; 3],
    /// The result.
    pub out: *mut u8,
    /// Elements of the result.
    pub len: usize,
    /// Bit `i` is set when operand `i` is a single element for the whole tile.
    pub splat: u8,
    /// What the instruction needs beside operands.
    pub parameter: u64,
}

/// Applies an instruction to a tile.
///
/// # Safety
/// The pointers are valid and aligned for `len` elements of the function's types (one for a splat), and the result
/// overlaps no operand.
pub(crate) type TileFn = unsafe fn(&TileArgs);

/// A zero-sized function from the knowledge that a value of its type exists.
fn conjure<F: Copy>() -> F {
    const { assert!(std::mem::size_of::<F>() == 0) };
    // SAFETY: `F` has no bytes, is Copy, and the makers of tile functions were handed a value of it.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

/// How wide the loops of a function may go.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    /// As the target's baseline: for functions that call scalar libraries.
    Plain,
    /// Up to AVX2: arithmetic.
    Simple,
    /// Up to AVX-512: vectorised transcendental functions.
    Wide,
}

const PLAIN: u8 = Width::Plain as u8;
const SIMPLE: u8 = Width::Simple as u8;
const WIDE: u8 = Width::Wide as u8;

/// Runs a loop at one of the widths.
#[inline(always)]
fn dispatch<const W: u8, L: Vectorized<Output = ()>>(work: L) {
    match W {
        PLAIN => work.run(),
        SIMPLE => cpu::dispatch(work),
        _ => cpu::dispatch_wide(work),
    }
}

struct Map1<'a, A, O, F>(&'a [A], &'a mut [O], F);

impl<A: Copy, O, F: Fn(A) -> O> Vectorized for Map1<'_, A, O, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (out, &a) in self.1.iter_mut().zip(self.0) {
            *out = (self.2)(a);
        }
    }
}

/// The tile function of `f`, which must not capture.
fn map1<const W: u8, A: Copy + 'static, O: 'static, F: Fn(A) -> O + Copy + 'static>(_: F) -> TileFn {
    unsafe fn run<const W: u8, A: Copy, O, F: Fn(A) -> O + Copy>(args: &TileArgs) {
        // SAFETY: passed on to the caller of a tile function.
        unsafe {
            let a = std::slice::from_raw_parts(args.operands[0].cast::<A>(), args.len);
            let out = std::slice::from_raw_parts_mut(args.out.cast::<O>(), args.len);
            dispatch::<W, _>(Map1(a, out, conjure::<F>()));
        }
    }
    run::<W, A, O, F>
}

struct Map2<'a, A, B, O, F>(&'a [A], &'a [B], &'a mut [O], F);

impl<A: Copy, B: Copy, O, F: Fn(A, B) -> O> Vectorized for Map2<'_, A, B, O, F> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Map2(a, b, out, f) = self;
        if a.len() != out.len() {
            let a = a[0];
            for (out, &b) in out.iter_mut().zip(b) {
                *out = f(a, b);
            }
        } else if b.len() != out.len() {
            let b = b[0];
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f(a, b);
            }
        } else {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a, b);
            }
        }
    }
}

/// The tile function of `f`, which must not capture; at most one operand may be a splat.
fn map2<const W: u8, A, B, O, F>(_: F) -> TileFn
where
    A: Copy + 'static,
    B: Copy + 'static,
    O: 'static,
    F: Fn(A, B) -> O + Copy + 'static,
{
    unsafe fn run<const W: u8, A: Copy, B: Copy, O, F: Fn(A, B) -> O + Copy>(args: &TileArgs) {
        let len = |operand: u8| {
            if args.splat >> operand & 1 == 1 {
                1
            } else {
                args.len
            }
        };
        // SAFETY: passed on to the caller of a tile function.
        unsafe {
            let a = std::slice::from_raw_parts(args.operands[0].cast::<A>(), len(0));
            let b = std::slice::from_raw_parts(args.operands[1].cast::<B>(), len(1));
            let out = std::slice::from_raw_parts_mut(args.out.cast::<O>(), args.len);
            dispatch::<W, _>(Map2(a, b, out, conjure::<F>()));
        }
    }
    run::<W, A, B, O, F>
}

struct Blend<'a, T>(&'a [u8], &'a [T], &'a [T], &'a mut [T]);

impl<T: Copy> Vectorized for Blend<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Blend(pred, on_true, on_false, out) = self;
        for (((out, &p), &t), &f) in out.iter_mut().zip(pred).zip(on_true).zip(on_false) {
            *out = if p != 0 { t } else { f };
        }
    }
}

/// The tile function of `select` for elements like `T`; no operand may be a splat.
fn blend<T: Copy + 'static>() -> TileFn {
    unsafe fn run<T: Copy>(args: &TileArgs) {
        // SAFETY: passed on to the caller of a tile function.
        unsafe {
            let pred = std::slice::from_raw_parts(args.operands[0], args.len);
            let on_true = std::slice::from_raw_parts(args.operands[1].cast::<T>(), args.len);
            let on_false = std::slice::from_raw_parts(args.operands[2].cast::<T>(), args.len);
            let out = std::slice::from_raw_parts_mut(args.out.cast::<T>(), args.len);
            cpu::dispatch(Blend(pred, on_true, on_false, out));
        }
    }
    run::<T>
}
