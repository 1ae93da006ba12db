//! `reduce`: all elements along some axes combined.
//!
//! One input and a well-known opcode run typed loops; anything else runs the called computation on rows. Where sums
//! are cut into parts depends on the extents only, never on threads.

use super::function::{Known, RowFunction, recognize};
use super::matrix::out_of_memory;
use super::operands;
use super::reduce_typed::{self, ReduceFn};
use crate::attributes::Attributes;
use crate::evaluator::code::{Kernel, StepContext};
use crate::evaluator::tile::{Access, Strided, TileBuilder, TileProgram};
use crate::module::{Computation, Instruction};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims};
use ff_tensor::{DataType, Result, Tensor};
use smallvec::SmallVec;

struct KnownReduce {
    reduce: ReduceFn,
    dims: Vec<usize>,
    reduced: Vec<bool>,
    /// Combines the initial value in, unless it is the identity.
    combine: Option<TileProgram>,
    results: usize,
}

/// The kernel of a reduce.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    dimensions: &[i64],
    reducer: &Computation,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let Some((opcode, reduce)) = find_typed(computation, instruction, reducer) else {
        return Ok(Box::new(GeneralReduce::new(&shapes, dimensions, reducer)?));
    };
    let neutral = starts_neutral(computation, instruction, opcode);
    Ok(Box::new(KnownReduce {
        reduce,
        dims: shapes[0].dims.iter().map(|&extent| extent as usize).collect(),
        reduced: (0..shapes[0].rank())
            .map(|axis| dimensions.contains(&(axis as i64)))
            .collect(),
        combine: if neutral {
            None
        } else {
            Some(combination(opcode, shapes[0].dtype)?)
        },
        results: instruction.array_shape()?.num_elements(),
    }))
}

/// The typed loop of a reduction of one array by a well-known opcode.
fn find_typed(
    computation: &Computation,
    instruction: &Instruction,
    reducer: &Computation,
) -> Option<(Opcode, ReduceFn)> {
    let (Some(Known::Binary(opcode)), [input, _]) = (recognize(reducer), &instruction.operands[..]) else {
        return None;
    };
    let dtype = computation.instruction(*input).array_shape().ok()?.dtype;
    Some((opcode, reduce_typed::find(opcode, dtype)?))
}

/// Whether the initial value is the constant from which the opcode starts by itself.
fn starts_neutral(computation: &Computation, instruction: &Instruction, opcode: Opcode) -> bool {
    match &computation.instruction(instruction.operands[1]).attributes {
        Attributes::Constant(value) => is_identity(opcode, value),
        _ => false,
    }
}

/// A reduction that can be done part by part while its operand is being computed.
pub(in crate::evaluator) struct PartialReduce {
    pub reduce: ReduceFn,
    /// Elements of the operand that give `results` results together, independently of all others.
    pub unit: usize,
    pub results: usize,
    /// Elements that go into one result.
    pub terms: usize,
}

/// The largest unit, in elements: it stays in the second cache.
const LARGEST_UNIT: usize = 32 << 10;

impl PartialReduce {
    /// The parts of a reduction, if it has such and starts from a neutral value.
    pub fn of(
        computation: &Computation,
        instruction: &Instruction,
        reducer: &Computation,
    ) -> Option<PartialReduce> {
        let Attributes::Reduce { dimensions, .. } = &instruction.attributes else {
            return None;
        };
        let (opcode, reduce) = find_typed(computation, instruction, reducer)?;
        let shape = computation
            .instruction(instruction.operands[0])
            .array_shape()
            .ok()?;
        let gone = |axis: usize| dimensions.contains(&(axis as i64)) && shape.dims[axis] != 1;
        let first = (0..shape.rank()).find(|&axis| gone(axis))?;
        let end = (first..shape.rank())
            .take_while(|&axis| gone(axis) || shape.dims[axis] == 1)
            .last()?
            + 1;
        let product = |axes: std::ops::Range<usize>| shape.dims[axes].iter().product::<i64>() as usize;
        let (outer, terms, kept) = (product(0..first), product(first..end), product(end..shape.rank()));
        let later = (end..shape.rank()).any(gone);
        let unit = terms * kept;
        if later || outer < 2 || unit == 0 || unit > LARGEST_UNIT {
            return None;
        }
        starts_neutral(computation, instruction, opcode).then_some(PartialReduce {
            reduce,
            unit,
            results: kept,
            terms,
        })
    }
}

/// Whether a scalar is the value from which a reduction by this opcode starts by itself.
pub(crate) fn is_identity(opcode: Opcode, value: &Tensor) -> bool {
    crate::builder::identity_tensor(opcode, value.dtype())
        .is_ok_and(|identity| identity.bytes() == value.bytes())
}

/// From a single value and an array to their combination.
fn combination(opcode: Opcode, dtype: DataType) -> Result<TileProgram> {
    let mut builder = TileBuilder::default();
    let init = builder.input(dtype, Access::Splat(0));
    let total = builder.input(dtype, Access::Direct);
    let combined = builder.map(opcode, &Attributes::None, &[init, total], dtype, dtype)?;
    builder.output(combined, dtype);
    Ok(builder.finish())
}

impl Kernel for KnownReduce {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let operand = reduce_typed::Operand {
            data: step.input_ptr(0)?,
            dims: &self.dims,
            reduced: &self.reduced,
        };
        let mut result = step.allocate(0)?;
        if self.results > 0 {
            // SAFETY: operand and result have the type and the extents that the step was made for.
            unsafe { (self.reduce)(step.pool(), &operand, result.data_ptr()) }.map_err(out_of_memory)?;
            if let Some(program) = &self.combine {
                let combined = step.allocate(0)?;
                let inputs = [step.input_ptr(1)?, result.data_ptr().cast_const()];
                // SAFETY: one initial value, and as many results in as out.
                unsafe { program.run(step.pool(), &inputs, &[combined.data_ptr()], 0, self.results) };
                result = combined;
            }
        }
        step.set(0, result);
        Ok(())
    }
}

/// Rows of this many results are reduced together.
const ROW: usize = 256;

struct GeneralReduce {
    function: RowFunction,
    /// The walk over each input: kept axes, then reduced ones.
    kept: Dims,
    reduced: Dims,
    kept_strides: Dims,
    reduced_strides: Dims,
    sizes: Vec<usize>,
}

impl GeneralReduce {
    fn new(shapes: &[ArrayShape], dimensions: &[i64], reducer: &Computation) -> Result<GeneralReduce> {
        let count = shapes.len() / 2;
        let strides = shapes[0].strides();
        let pick = |values: &[i64], reduced: bool| -> Dims {
            (0..values.len())
                .filter(|&axis| dimensions.contains(&(axis as i64)) == reduced)
                .map(|axis| values[axis])
                .collect()
        };
        Ok(GeneralReduce {
            function: RowFunction::compile(reducer)?,
            kept: pick(&shapes[0].dims, false),
            reduced: pick(&shapes[0].dims, true),
            kept_strides: pick(&strides, false),
            reduced_strides: pick(&strides, true),
            sizes: shapes[..count].iter().map(|shape| shape.dtype.size()).collect(),
        })
    }

    /// Reduces the results `start..start + len`.
    ///
    /// # Safety
    /// `inputs` and `inits` are the operands' elements, `outputs` the results'.
    unsafe fn row(
        &self,
        inputs: &[*const u8],
        inits: &[*const u8],
        outputs: &[*mut u8],
        start: usize,
        len: usize,
    ) {
        let count = self.sizes.len();
        let rows = |size: &usize| vec![[0u64; 2]; (len * size).div_ceil(16)];
        let mut now: Vec<Vec<[u64; 2]>> = self.sizes.iter().map(rows).collect();
        let mut next: Vec<Vec<[u64; 2]>> = self.sizes.iter().map(rows).collect();
        let mut element: Vec<Vec<[u64; 2]>> = self.sizes.iter().map(rows).collect();
        let walk = Strided::new(&self.kept, &self.kept_strides, 0);
        // SAFETY: rows have `len` elements; the walks stay within the inputs.
        unsafe {
            for i in 0..count {
                super::movement::fill(inits[i], now[i].as_mut_ptr().cast(), self.sizes[i], len);
            }
            let mut index = Dims::from_elem(0, self.reduced.len());
            let empty = self.reduced.contains(&0);
            loop {
                if empty {
                    break;
                }
                let at = super::nd::offset(&index, &self.reduced_strides) as usize;
                let mut parameters: SmallVec<[*const u8; 8]> = SmallVec::new();
                let mut results: SmallVec<[*mut u8; 4]> = SmallVec::new();
                for i in 0..count {
                    let source = inputs[i].add(at * self.sizes[i]);
                    walk.load(
                        self.sizes[i],
                        source,
                        element[i].as_mut_ptr().cast(),
                        start..start + len,
                    );
                    parameters.push(now[i].as_ptr().cast());
                    results.push(next[i].as_mut_ptr().cast());
                }
                parameters.extend(element.iter().map(|row| row.as_ptr().cast::<u8>()));
                self.function.call(&parameters, &results, len);
                std::mem::swap(&mut now, &mut next);
                if !super::nd::advance(&mut index, &self.reduced) {
                    break;
                }
            }
            for i in 0..count {
                let out = outputs[i].add(start * self.sizes[i]);
                std::ptr::copy_nonoverlapping(now[i].as_ptr().cast(), out, len * self.sizes[i]);
            }
        }
    }
}

/// Memory that the threads of a loop read and write in disjoint parts.
#[derive(Clone, Copy)]
struct Addresses<'a>(&'a [*const u8], &'a [*const u8], &'a [*mut u8]);

// SAFETY: each range of results is written by one thread.
unsafe impl Sync for Addresses<'_> {}

impl Kernel for GeneralReduce {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let count = self.sizes.len();
        let results = (0..count)
            .map(|i| step.allocate(i))
            .collect::<Result<Vec<Tensor>>>()?;
        let total = results[0].num_elements();
        if total > 0 {
            let inputs = (0..count)
                .map(|i| step.input_ptr(i))
                .collect::<Result<Vec<_>>>()?;
            let inits = (count..2 * count)
                .map(|i| step.input_ptr(i))
                .collect::<Result<Vec<_>>>()?;
            let outputs: Vec<*mut u8> = results.iter().map(Tensor::data_ptr).collect();
            let addresses = Addresses(&inputs, &inits, &outputs);
            let addresses = &addresses;
            let terms: i64 = self.reduced.iter().product();
            let rows = total.div_ceil(ROW);
            step.pool()
                .parallel_for(rows, terms as f64 * ROW as f64, |range| {
                    let Addresses(inputs, inits, outputs) = *addresses;
                    for row in range {
                        let start = row * ROW;
                        // SAFETY: operands and results have the extents that the step was made for.
                        unsafe { self.row(inputs, inits, outputs, start, ROW.min(total - start)) };
                    }
                });
        }
        for (index, result) in results.into_iter().enumerate() {
            step.set(index, result);
        }
        Ok(())
    }
}
