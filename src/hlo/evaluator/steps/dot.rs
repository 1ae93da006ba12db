//! `dot`: matrix products over batch axes, on the kernels' gemm.

use super::matrix::{Preparation, contraction_type, finish, merged, out_of_memory};
use super::nd::{advance, offset};
use super::operands;
use super::packed::{self, Form, Packed, Panels};
use crate::attributes::DotDims;
use crate::evaluator::code::{Kernel, StepContext};
use crate::module::{Computation, Instruction};
use crate::shape::{ArrayShape, Dims};
use ff_kernels::ThreadPool;
use ff_kernels::gemm::{
    Batch, Epilogue, Matrix, PackedB, batch_gemm, batch_gemm_any, gemm_half, gemm_packed, sums_along_terms,
};
use ff_tensor::{Complex64, Complex128, DataType, Element, Result, Shape, Tensor, bail, bf16, f16, status};
use std::sync::Arc;

/// One operand: how it is prepared, and how rows (or columns), terms and batches are found in it.
struct Side {
    preparation: Option<Preparation>,
    free_step: usize,
    term_step: usize,
    batch_strides: Dims,
}

struct Dot {
    lhs: Side,
    rhs: Side,
    /// The right side, if it is a constant that was packed.
    packed: Option<Arc<Packed>>,
    extents: (usize, usize, usize),
    offsets: Vec<(usize, usize)>,
    computed: DataType,
    result: ArrayShape,
}

/// The axes of an operand that are in none of the lists.
fn free_axes(rank: usize, batch: &[i64], contracting: &[i64]) -> Vec<usize> {
    let used = |axis: &usize| batch.contains(&(*axis as i64)) || contracting.contains(&(*axis as i64));
    (0..rank).filter(|axis| !used(axis)).collect()
}

fn pick(values: &[i64], axes: &[usize]) -> Dims {
    axes.iter().map(|&axis| values[axis]).collect()
}

fn indices(axes: &[i64]) -> Vec<usize> {
    axes.iter().map(|&axis| axis as usize).collect()
}

/// Brings an operand into form.
fn side(shape: &ArrayShape, batch: &[i64], contracting: &[i64], dtype: DataType) -> Result<Side> {
    let strides = shape.strides();
    let (batch, terms) = (indices(batch), indices(contracting));
    let free = free_axes(
        shape.rank(),
        &batch.iter().map(|&b| b as i64).collect::<Dims>(),
        contracting,
    );
    let rows = merged(&pick(&shape.dims, &free), &pick(&strides, &free));
    let columns = merged(&pick(&shape.dims, &terms), &pick(&strides, &terms));
    if let (Some((_, free_step)), Some((_, term_step)), true) = (rows, columns, shape.dtype == dtype) {
        return Ok(Side {
            preparation: None,
            free_step,
            term_step,
            batch_strides: pick(&strides, &batch),
        });
    }
    let order = [&batch[..], &free, &terms].concat();
    let count: i64 = pick(&shape.dims, &terms).iter().product();
    let dense = ArrayShape::new(dtype, &pick(&shape.dims, &order)).strides();
    Ok(Side {
        preparation: Some(Preparation::new(shape, &order, dtype)?),
        free_step: count as usize,
        term_step: 1,
        batch_strides: Dims::from_slice(&dense[..batch.len()]),
    })
}

/// The kernel of a dot.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    dims: &DotDims,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let (left, right) = (&shapes[0], &shapes[1]);
    let result = instruction.array_shape()?.clone();
    let computed = contraction_type(left.dtype, right.dtype, result.dtype);
    let lhs = side(left, &dims.lhs_batch, &dims.lhs_contracting, computed)?;
    let rhs = side(right, &dims.rhs_batch, &dims.rhs_contracting, computed)?;
    let product =
        |shape: &ArrayShape, axes: &[usize]| pick(&shape.dims, axes).iter().product::<i64>() as usize;
    let m = product(
        left,
        &free_axes(left.rank(), &dims.lhs_batch, &dims.lhs_contracting),
    );
    let n = product(
        right,
        &free_axes(right.rank(), &dims.rhs_batch, &dims.rhs_contracting),
    );
    let k = product(left, &indices(&dims.lhs_contracting));
    let batch = pick(&left.dims, &indices(&dims.lhs_batch));
    let mut offsets = Vec::new();
    // Products without elements may be many.
    if result.num_elements() > 0 {
        let count = batch.iter().product::<i64>() as usize;
        offsets
            .try_reserve_exact(count)
            .map_err(|_| status!(ResourceExhausted, "OOM when allocating {count} products"))?;
        let mut index = Dims::from_elem(0, batch.len());
        loop {
            offsets.push((
                offset(&index, &lhs.batch_strides) as usize,
                offset(&index, &rhs.batch_strides) as usize,
            ));
            if !advance(&mut index, &batch) {
                break;
            }
        }
    }
    let packed = match packed::constant(computation, instruction.operands[1]) {
        Some(constant) if offsets.len() == 1 && k > 0 => pack(constant, (m, n, k), &lhs, &rhs)?,
        _ => None,
    };
    Ok(Box::new(Dot {
        lhs,
        rhs,
        packed,
        extents: (m, n, k),
        offsets,
        computed,
        result,
    }))
}

/// Packs the right side of a single product, where that changes no bits and it is read as it is.
fn pack(
    constant: &Tensor,
    (m, n, k): (usize, usize, usize),
    lhs: &Side,
    rhs: &Side,
) -> Result<Option<Arc<Packed>>> {
    let (row_step, column_step) = (rhs.term_step, rhs.free_step);
    if rhs.preparation.is_some() || sums_along_terms((m, n), lhs.term_step, (row_step, column_step)) {
        return Ok(None);
    }
    let form = Form::Matrix {
        k,
        n,
        row_step,
        column_step,
    };
    packed::pack(constant, form)
}

impl Kernel for Dot {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let prepare = |side: &Side, operand: usize| match &side.preparation {
            Some(preparation) => preparation.run(step, operand),
            None => step.input(operand).cloned(),
        };
        let (lhs, rhs) = (prepare(&self.lhs, 0)?, prepare(&self.rhs, 1)?);
        let shape = step.output(0).shape.clone();
        let mut out = if self.computed == self.result.dtype {
            step.allocate(0)?
        } else {
            (step.environment().allocate)(self.computed, Shape::vector(self.result.num_elements()))?
        };
        let result = if self.result.num_elements() == 0 {
            out
        } else {
            self.multiply(step.pool(), &lhs, &rhs, &mut out)?;
            finish(step, out, self.result.dtype, &shape)?
        };
        step.set(0, result);
        Ok(())
    }
}

/// The elements of a tensor that was made for a type, whatever type its own view has.
pub(super) fn elements<T: Element>(tensor: &Tensor) -> &[T] {
    let bytes = tensor.bytes();
    if bytes.is_empty() {
        return &[];
    }
    // SAFETY: every bit pattern is an element, and memory of tensors is aligned for every element type.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / std::mem::size_of::<T>()) }
}

impl Dot {
    fn multiply(&self, pool: &ThreadPool, lhs: &Tensor, rhs: &Tensor, out: &mut Tensor) -> Result<()> {
        if self.extents.2 == 0 {
            out.bytes_mut().unwrap_or_default().fill(0);
            return Ok(());
        }
        match self.packed.as_ref().map(|packed| &packed.panels) {
            Some(Panels::Single(b)) => return self.multiply_packed(pool, lhs, b, out),
            Some(Panels::Double(b)) => return self.multiply_packed(pool, lhs, b, out),
            _ => {}
        }
        let batch = Batch {
            extents: self.extents,
            offsets: &self.offsets,
            a_steps: (self.lhs.free_step, self.lhs.term_step),
            b_steps: (self.rhs.term_step, self.rhs.free_step),
        };
        /// Products without microkernels.
        macro_rules! any {
            ($t:ty) => {{
                let (a, b) = (elements::<$t>(lhs), elements::<$t>(rhs));
                batch_gemm_any(pool, &batch, a, b, out.as_mut_slice::<$t>()?);
                Ok(())
            }};
        }
        /// Products on microkernels.
        macro_rules! fast {
            ($t:ty) => {{
                let (a, b) = (elements::<$t>(lhs), elements::<$t>(rhs));
                batch_gemm(pool, &batch, a, b, out.as_mut_slice::<$t>()?).map_err(out_of_memory)
            }};
        }
        match self.computed {
            DataType::FLOAT => fast!(f32),
            DataType::DOUBLE => fast!(f64),
            DataType::HALF => self.half::<f16>(pool, lhs, rhs, out),
            DataType::BFLOAT16 => self.half::<bf16>(pool, lhs, rhs, out),
            DataType::INT8 => any!(i8),
            DataType::INT16 => any!(i16),
            DataType::INT32 => any!(i32),
            DataType::INT64 => any!(i64),
            DataType::UINT8 => any!(u8),
            DataType::UINT16 => any!(u16),
            DataType::UINT32 => any!(u32),
            DataType::UINT64 => any!(u64),
            DataType::COMPLEX64 => any!(Complex64),
            DataType::COMPLEX128 => any!(Complex128),
            other => bail!(Unimplemented, "A dot of type {other} is not implemented"),
        }
    }

    fn multiply_packed<T: Element + ff_kernels::gemm::Element>(
        &self,
        pool: &ThreadPool,
        lhs: &Tensor,
        b: &PackedB<T>,
        out: &mut Tensor,
    ) -> Result<()> {
        let (m, n, _) = self.extents;
        let a = Matrix {
            data: elements::<T>(lhs),
            row_step: self.lhs.free_step,
            column_step: self.lhs.term_step,
        };
        let c = out.as_mut_slice::<T>()?;
        gemm_packed(pool, m, a, b, c, n, false, &Epilogue::default()).map_err(out_of_memory)
    }

    fn half<T: Element + ff_kernels::gemm::Half>(
        &self,
        pool: &ThreadPool,
        lhs: &Tensor,
        rhs: &Tensor,
        out: &mut Tensor,
    ) -> Result<()> {
        let (a, b) = (elements::<T>(lhs), elements::<T>(rhs));
        let (m, n, _) = self.extents;
        let results = out.as_mut_slice::<T>()?.chunks_exact_mut((m * n).max(1));
        for (&(at_a, at_b), c) in self.offsets.iter().zip(results) {
            let a = Matrix {
                data: &a[at_a..],
                row_step: self.lhs.free_step,
                column_step: self.lhs.term_step,
            };
            let b = Matrix {
                data: &b[at_b..],
                row_step: self.rhs.term_step,
                column_step: self.rhs.free_step,
            };
            gemm_half(pool, self.extents, a, b, c, n, false, &Epilogue::default()).map_err(out_of_memory)?;
        }
        Ok(())
    }
}
