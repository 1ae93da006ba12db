//! `reduce-window`: the elements of sliding windows combined, a row of results at a time.

use super::function::{Known, RowFunction, recognize};
use super::movement::fill;
use super::nd::{advance, offset, unflatten};
use super::operands;
use super::reduce::is_identity;
use crate::attributes::{Attributes, WindowDimension};
use crate::evaluator::code::{Kernel, StepContext};
use crate::module::{Computation, Instruction};
use crate::shape::{ArrayShape, Dims};
use ff_tensor::{Result, Tensor};
use smallvec::SmallVec;

/// The geometry of windows over an array.
pub(super) struct Windows {
    pub window: Vec<WindowDimension>,
    pub dims: Dims,
    pub strides: Dims,
    pub places: Dims,
    pub sizes: Dims,
}

impl Windows {
    pub fn new(operand: &ArrayShape, places: &[i64], window: &[WindowDimension]) -> Windows {
        Windows {
            window: window.to_vec(),
            dims: operand.dims.clone(),
            strides: operand.strides(),
            places: Dims::from_slice(places),
            sizes: window.iter().map(|window| window.size).collect(),
        }
    }

    /// The operand's index along an axis under window element `at` of place `place`, unless that is padding.
    pub fn index(&self, axis: usize, place: i64, at: i64) -> Option<i64> {
        let w = &self.window[axis];
        let at = if w.window_reversal { w.size - 1 - at } else { at };
        let position = place * w.stride + at * w.window_dilation - w.padding_low;
        let inside =
            position >= 0 && position % w.base_dilation == 0 && position / w.base_dilation < self.dims[axis];
        inside.then_some(position / w.base_dilation)
    }
}

struct ReduceWindow {
    windows: Windows,
    function: RowFunction,
    sizes: Vec<usize>,
    /// Axes that together form rows: the last one, with all before it that windows do not touch.
    outer: usize,
    row: usize,
}

/// The kernel of a reduce-window.
pub(super) fn reduce_window(
    computation: &Computation,
    instruction: &Instruction,
    window: &[WindowDimension],
    reducer: &Computation,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let count = shapes.len() / 2;
    let places = instruction.shape.leaves()[0].dims.clone();
    if count == 1
        && let Some(kernel) = super::cumulative::kernel(&shapes[0], &places, window, reducer)
    {
        return kernel;
    }
    if let (1, Some(Known::Binary(opcode)), Attributes::Constant(init)) = (
        count,
        recognize(reducer),
        &computation.instruction(instruction.operands[count]).attributes,
    ) && is_identity(opcode, init)
        && let Some(kernel) = super::pool::reduction(opcode, &shapes[0], &places, window)
    {
        return Ok(kernel);
    }
    if let (1, Some(Known::Greater), Attributes::Constant(init)) = (
        count,
        recognize(reducer),
        &computation.instruction(instruction.operands[count]).attributes,
    ) && let Some(kernel) = super::pool::greatest(init, &shapes[0], &places, window)
    {
        return Ok(kernel);
    }
    let windows = Windows::new(&shapes[0], &places, window);
    let outer = outer_axes(&windows);
    let row = places[outer..].iter().product::<i64>() as usize;
    Ok(Box::new(ReduceWindow {
        windows,
        function: RowFunction::compile(reducer)?,
        sizes: shapes[..count].iter().map(|shape| shape.dtype.size()).collect(),
        outer,
        row,
    }))
}

/// How many axes lie outside of the rows.
fn outer_axes(windows: &Windows) -> usize {
    let rank = windows.dims.len();
    let plain = |axis: usize| {
        windows.window[axis] == WindowDimension::new(1) && windows.places[axis] == windows.dims[axis]
    };
    let untouched = (0..rank).rev().take_while(|&axis| plain(axis)).count();
    if untouched > 0 {
        rank - untouched
    } else {
        rank.saturating_sub(1)
    }
}

/// Memory that the threads of a loop read and write in disjoint parts.
#[derive(Clone, Copy)]
struct Addresses<'a> {
    inputs: &'a [*const u8],
    inits: &'a [*const u8],
    outputs: &'a [*mut u8],
}

// SAFETY: each row of results is written by one thread.
unsafe impl Sync for Addresses<'_> {}

/// The rows in which a result is made.
struct Rows {
    now: Vec<Vec<[u64; 2]>>,
    next: Vec<Vec<[u64; 2]>>,
    element: Vec<Vec<[u64; 2]>>,
}

impl Kernel for ReduceWindow {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let count = self.sizes.len();
        let results = (0..count)
            .map(|i| step.allocate(i))
            .collect::<Result<Vec<Tensor>>>()?;
        if results[0].num_elements() > 0 {
            let inputs = (0..count)
                .map(|i| step.input_ptr(i))
                .collect::<Result<Vec<_>>>()?;
            let inits = (count..2 * count)
                .map(|i| step.input_ptr(i))
                .collect::<Result<Vec<_>>>()?;
            let outputs: Vec<*mut u8> = results.iter().map(Tensor::data_ptr).collect();
            let addresses = Addresses {
                inputs: &inputs,
                inits: &inits,
                outputs: &outputs,
            };
            let addresses = &addresses;
            let total: usize = self.windows.places[..self.outer].iter().product::<i64>() as usize;
            let taps: i64 = self.windows.sizes.iter().product();
            step.pool()
                .parallel_for(total, taps as f64 * (20.0 + self.row as f64 * 0.3), |range| {
                    let rows = |size: &usize| vec![[0u64; 2]; (self.row * size).div_ceil(16)];
                    let mut rows = Rows {
                        now: self.sizes.iter().map(rows).collect(),
                        next: self.sizes.iter().map(rows).collect(),
                        element: self.sizes.iter().map(rows).collect(),
                    };
                    for number in range {
                        // SAFETY: operands and results have the extents that the step was made for.
                        unsafe { self.row(*addresses, &mut rows, number) };
                    }
                });
        }
        for (index, result) in results.into_iter().enumerate() {
            step.set(index, result);
        }
        Ok(())
    }
}

impl ReduceWindow {
    /// Makes the row of results with this number.
    ///
    /// # Safety
    /// The addresses are those of operands and results with the extents that the step was made for.
    unsafe fn row(&self, addresses: Addresses, rows: &mut Rows, number: usize) {
        let w = &self.windows;
        let place = unflatten(number, &w.places[..self.outer]);
        // SAFETY: rows have the length of a row of results; indices were checked to lie in the operand.
        unsafe {
            for (i, &size) in self.sizes.iter().enumerate() {
                fill(
                    addresses.inits[i],
                    rows.now[i].as_mut_ptr().cast(),
                    size,
                    self.row,
                );
            }
            let mut at = Dims::from_elem(0, w.sizes.len());
            loop {
                let index: Option<Dims> = (0..self.outer)
                    .map(|axis| w.index(axis, place[axis], at[axis]))
                    .collect();
                let present = match index {
                    Some(index) => {
                        let base = offset(&index, &w.strides[..self.outer]) as usize;
                        self.load(addresses, rows, base, &at)
                    }
                    None => false,
                };
                if present {
                    let mut parameters: SmallVec<[*const u8; 8]> = SmallVec::new();
                    parameters.extend(rows.now.iter().map(|row| row.as_ptr().cast::<u8>()));
                    parameters.extend(rows.element.iter().map(|row| row.as_ptr().cast::<u8>()));
                    let outputs: SmallVec<[*mut u8; 4]> =
                        rows.next.iter_mut().map(|row| row.as_mut_ptr().cast()).collect();
                    self.function.call(&parameters, &outputs, self.row);
                    std::mem::swap(&mut rows.now, &mut rows.next);
                }
                if !advance(&mut at, &w.sizes) {
                    break;
                }
            }
            for (i, &size) in self.sizes.iter().enumerate() {
                let out = addresses.outputs[i].add(number * self.row * size);
                std::ptr::copy_nonoverlapping(rows.now[i].as_ptr().cast(), out, self.row * size);
            }
        }
    }

    /// Loads the window's elements `at` for each result of a row; false when all of them are padding.
    ///
    /// # Safety
    /// As for [`ReduceWindow::row`], with `base` the start of a row of the operand.
    unsafe fn load(&self, addresses: Addresses, rows: &mut Rows, base: usize, at: &[i64]) -> bool {
        let w = &self.windows;
        let last = w.dims.len().wrapping_sub(1);
        let windowed = self.outer == last && w.window[last] != WindowDimension::new(1);
        for (i, &size) in self.sizes.iter().enumerate() {
            let source = addresses.inputs[i];
            let target: *mut u8 = rows.element[i].as_mut_ptr().cast();
            // SAFETY: passed on to the caller; places of the last axis are checked one by one.
            unsafe {
                if !windowed {
                    std::ptr::copy_nonoverlapping(source.add(base * size), target, self.row * size);
                    continue;
                }
                for place in 0..self.row {
                    let from = match w.index(last, place as i64, at[last]) {
                        Some(index) => source.add((base + index as usize) * size),
                        None => addresses.inits[i],
                    };
                    std::ptr::copy_nonoverlapping(from, target.add(place * size), size);
                }
            }
        }
        true
    }
}
