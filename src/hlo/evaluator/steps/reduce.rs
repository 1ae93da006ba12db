//! `reduce`: all elements along some axes combined.
//!
//! One input and a well-known opcode run typed loops; anything else runs the called computation on rows. Where sums
//! are cut into parts depends on the extents only, never on threads.

use super::function::{Known, RowFunction, recognize};
use super::matrix::finish;
use super::operands;
use super::reduce_rows::{self, Combine, Plan};
use crate::evaluator::code::{Kernel, StepContext};
use crate::evaluator::tile::{Access, Strided, TileBuilder, TileProgram, compute_type};
use crate::module::{Computation, Instruction};
use crate::shape::{ArrayShape, Dims};
use ff_tensor::{DataType, Result, Shape, Tensor};
use smallvec::SmallVec;

struct KnownReduce {
    combine: Combine,
    plan: Plan,
    computed: DataType,
    /// Converts and reorders the operand where the loops cannot read it.
    prepare: Option<TileProgram>,
    elements: usize,
    result: ArrayShape,
}

/// The kernel of a reduce.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    dimensions: &[i64],
    reducer: &Computation,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let count = shapes.len() / 2;
    let known = match recognize(reducer) {
        Some(Known::Binary(opcode)) if count == 1 => Combine::new(opcode, shapes[0].dtype),
        _ => None,
    };
    match known {
        Some(combine) => known_kernel(instruction, &shapes[0], dimensions, combine),
        None => Ok(Box::new(GeneralReduce::new(&shapes, dimensions, reducer)?)),
    }
}

fn known_kernel(
    instruction: &Instruction,
    shape: &ArrayShape,
    dimensions: &[i64],
    combine: Combine,
) -> Result<Box<dyn Kernel>> {
    let computed = compute_type(shape.dtype);
    let reduced: Vec<bool> = (0..shape.rank())
        .map(|axis| dimensions.contains(&(axis as i64)))
        .collect();
    let prepare = if computed == shape.dtype || computed.size() == shape.dtype.size() {
        None
    } else {
        let mut builder = TileBuilder::default();
        let value = builder.input(shape.dtype, Access::Direct);
        builder.output(value, computed);
        Some(builder.finish())
    };
    Ok(Box::new(KnownReduce {
        combine,
        plan: Plan::new(&shape.dims, &reduced),
        computed,
        prepare,
        elements: shape.num_elements(),
        result: instruction.array_shape()?.clone(),
    }))
}

impl Kernel for KnownReduce {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let allocate = step.environment().allocate;
        let operand = match &self.prepare {
            None => step.input(0)?.clone(),
            Some(program) => {
                let wide = allocate(self.computed, Shape::vector(self.elements))?;
                // SAFETY: the program was made for the operand's elements and writes as many new ones.
                unsafe {
                    program.run(
                        step.pool(),
                        &[step.input_ptr(0)?],
                        &[wide.data_ptr()],
                        0,
                        self.elements,
                    );
                }
                wide
            }
        };
        let shape = step.output(0).shape.clone();
        let out = allocate(self.computed, shape.clone())?;
        let init = initial_value(step, 1, self.result.dtype, self.computed)?;
        // SAFETY: operand and result have the extents of the plan, in the computed type; the result is new memory.
        unsafe {
            reduce_rows::run(
                self.combine,
                self.computed,
                &self.plan,
                step.pool(),
                operand.data_ptr(),
                init.data_ptr(),
                out.data_ptr(),
            )?;
        }
        let result = finish(step, out, self.result.dtype, &shape)?;
        step.set(0, result);
        Ok(())
    }
}

/// A scalar operand in the type that is computed in.
fn initial_value(step: &StepContext, index: usize, dtype: DataType, computed: DataType) -> Result<Tensor> {
    let value = step.input(index)?;
    if dtype == computed || dtype.size() == computed.size() {
        return Ok(value.clone());
    }
    let mut builder = TileBuilder::default();
    let loaded = builder.input(dtype, Access::Direct);
    builder.output(loaded, computed);
    let wide = Tensor::allocate(computed, Shape::scalar())?;
    // SAFETY: one element in, one out.
    unsafe {
        builder
            .finish()
            .run_serial(&[value.data_ptr()], &[wide.data_ptr()], 1)
    };
    Ok(wide)
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
            while !empty {
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
