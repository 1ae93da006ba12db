//! Native kernels of matrix products: gemm microkernels, and a constant right side packed once.

use crate::movement::row_major;
use ff_kernels::ThreadPool;
use ff_kernels::gemm::{Batch, Element, Epilogue, Matrix, PackedB, batch_gemm, gemm, gemm_half, gemm_packed};
use ff_op::{KernelContext, PrepareContext, Prepared};
use ff_tensor::{DataType, Result, Status, Tensor, bf16, f16, status};
use std::sync::Arc;

/// What is kept for a node with a constant right side.
enum Packed {
    Nothing,
    Single(PackedB<f32>),
    Double(PackedB<f64>),
}

/// The error when scratch memory is out.
pub fn out_of_memory(error: ff_kernels::OutOfMemory) -> Status {
    status!(ResourceExhausted, "OOM when allocating scratch memory: {error:?}")
}

/// Packs the right side, if it is constant.
pub fn prepare(context: &PrepareContext) -> Result<Prepared> {
    let transpose = context.node.attrs.bool("transpose_b")?;
    let packed = match context.constant_inputs.get(1).and_then(Option::as_ref) {
        Some(b) if b.rank() == 2 => match b.dtype() {
            DataType::FLOAT => Packed::Single(pack(b, transpose)?),
            DataType::DOUBLE => Packed::Double(pack(b, transpose)?),
            _ => Packed::Nothing,
        },
        _ => Packed::Nothing,
    };
    Ok(Arc::new(packed))
}

fn pack<T: Element + ff_tensor::Element>(b: &Tensor, transpose: bool) -> Result<PackedB<T>> {
    let (rows, columns) = (b.shape().dim(0), b.shape().dim(1));
    let (k, n) = if transpose {
        (columns, rows)
    } else {
        (rows, columns)
    };
    PackedB::new(
        ThreadPool::serial(),
        k,
        n,
        view(b.as_slice()?, columns, transpose),
    )
    .map_err(out_of_memory)
}

/// A matrix stored as rows of `columns` elements, or its transpose.
fn view<T>(data: &[T], columns: usize, transpose: bool) -> Matrix<'_, T> {
    if transpose {
        Matrix::transposed(data, columns)
    } else {
        Matrix::new(data, columns)
    }
}

/// `MatMul` for floating-point types.
pub fn mat_mul(context: &mut KernelContext) -> Result<()> {
    let mut output = context.allocate_output(0)?;
    match context.output_type(0) {
        DataType::FLOAT => {
            let packed = match context.prepared::<Packed>()? {
                Packed::Single(packed) => Some(packed),
                _ => None,
            };
            product::<f32>(context, packed, &mut output)?;
        }
        DataType::DOUBLE => {
            let packed = match context.prepared::<Packed>()? {
                Packed::Double(packed) => Some(packed),
                _ => None,
            };
            product::<f64>(context, packed, &mut output)?;
        }
        _ => {
            crate::match_type!(context.output_type(0), (f16, bf16), T => half_product::<T>(context, &mut output))?
        }
    }
    context.set_output(0, output)
}

/// Extents m, n, k, and the columns of A and B as stored.
fn extents(context: &KernelContext, transpose_a: bool) -> Result<((usize, usize, usize), usize, usize)> {
    let (a, b) = (context.input(0)?.shape(), context.input(1)?.shape());
    let shape = context.output_shape(0)?;
    let k = if transpose_a { a.dim(0) } else { a.dim(1) };
    Ok(((shape.dim(0), shape.dim(1), k), a.dim(1), b.dim(1)))
}

fn product<T: Element + ff_tensor::Element>(
    context: &KernelContext,
    packed: Option<&PackedB<T>>,
    output: &mut Tensor,
) -> Result<()> {
    let (transpose_a, transpose_b) = (
        context.attrs().bool("transpose_a")?,
        context.attrs().bool("transpose_b")?,
    );
    let (extents, a_columns, b_columns) = extents(context, transpose_a)?;
    let (m, n, _) = extents;
    let a = view(context.input_slice(0)?, a_columns, transpose_a);
    let (pool, c, epilogue) = (context.pool(), output.as_mut_slice::<T>()?, Epilogue::default());
    match packed {
        Some(packed) => gemm_packed(pool, m, a, packed, c, n, false, &epilogue),
        None => {
            let b = view(context.input_slice(1)?, b_columns, transpose_b);
            gemm(pool, extents, a, b, c, n, false, &epilogue)
        }
    }
    .map_err(out_of_memory)
}

fn half_product<T: ff_kernels::gemm::Half + ff_tensor::Element>(
    context: &KernelContext,
    output: &mut Tensor,
) -> Result<()> {
    let (transpose_a, transpose_b) = (
        context.attrs().bool("transpose_a")?,
        context.attrs().bool("transpose_b")?,
    );
    let (extents, a_columns, b_columns) = extents(context, transpose_a)?;
    let a = view(context.input_slice::<T>(0)?, a_columns, transpose_a);
    let b = view(context.input_slice::<T>(1)?, b_columns, transpose_b);
    let c = output.as_mut_slice::<T>()?;
    gemm_half(
        context.pool(),
        extents,
        a,
        b,
        c,
        extents.1,
        false,
        &Epilogue::default(),
    )
    .map_err(out_of_memory)
}

/// `BatchMatMul` and its second version, for floating-point types: leading axes broadcast.
pub fn batch_mat_mul(context: &mut KernelContext) -> Result<()> {
    let mut output = context.allocate_output(0)?;
    match context.output_type(0) {
        DataType::FLOAT => batch_product::<f32>(context, &mut output)?,
        DataType::DOUBLE => batch_product::<f64>(context, &mut output)?,
        _ => {
            crate::match_type!(context.output_type(0), (f16, bf16), T => half_batch::<T>(context, &mut output))?
        }
    }
    context.set_output(0, output)
}

/// The place of every product's operands, and the geometry that all share.
struct Places {
    extents: (usize, usize, usize),
    offsets: Vec<(usize, usize)>,
    a_columns: usize,
    b_columns: usize,
    adjoint: (bool, bool),
}

fn places(context: &KernelContext) -> Result<Places> {
    let adjoint = (context.attrs().bool("adj_x")?, context.attrs().bool("adj_y")?);
    let (a, b, shape) = (
        context.input(0)?.dims(),
        context.input(1)?.dims(),
        context.output_shape(0)?,
    );
    let batch = &shape.dims()[..shape.rank() - 2];
    let (a_matrix, b_matrix) = (&a[a.len() - 2..], &b[b.len() - 2..]);
    let k = if adjoint.0 { a_matrix[0] } else { a_matrix[1] };
    let steps = |dims: &[i64]| -> Vec<usize> {
        let own = &dims[..dims.len() - 2];
        let size = dims[dims.len() - 2] * dims[dims.len() - 1];
        let strides = row_major(own);
        let missing = batch.len() - own.len();
        let step = |axis: usize| match axis.checked_sub(missing) {
            Some(axis) if own[axis] != 1 => (strides[axis] * size) as usize,
            _ => 0,
        };
        (0..batch.len()).map(step).collect()
    };
    let (a_steps, b_steps) = (steps(a), steps(b));
    // Products without elements may be many.
    let count: usize = match shape.num_elements() {
        0 => 0,
        _ => batch.iter().map(|&extent| extent as usize).product(),
    };
    let mut offsets = crate::wide::reserved(count)?;
    let mut position = vec![0usize; batch.len()];
    for _ in 0..count {
        let at = |steps: &[usize]| position.iter().zip(steps).map(|(place, step)| place * step).sum();
        offsets.push((at(&a_steps), at(&b_steps)));
        for axis in (0..batch.len()).rev() {
            position[axis] += 1;
            if position[axis] < batch[axis] as usize {
                break;
            }
            position[axis] = 0;
        }
    }
    let rank = shape.rank();
    Ok(Places {
        extents: (shape.dim(rank - 2), shape.dim(rank - 1), k as usize),
        offsets,
        a_columns: a_matrix[1] as usize,
        b_columns: b_matrix[1] as usize,
        adjoint,
    })
}

fn batch_product<T: Element + ff_tensor::Element>(
    context: &KernelContext,
    output: &mut Tensor,
) -> Result<()> {
    let places = places(context)?;
    let steps = |columns: usize, transpose: bool| if transpose { (1, columns) } else { (columns, 1) };
    let batch = Batch {
        extents: places.extents,
        offsets: &places.offsets,
        a_steps: steps(places.a_columns, places.adjoint.0),
        b_steps: steps(places.b_columns, places.adjoint.1),
    };
    let (a, b) = (context.input_slice(0)?, context.input_slice(1)?);
    batch_gemm::<T>(context.pool(), &batch, a, b, output.as_mut_slice()?).map_err(out_of_memory)
}

fn half_batch<T: ff_kernels::gemm::Half + ff_tensor::Element>(
    context: &KernelContext,
    output: &mut Tensor,
) -> Result<()> {
    let places = places(context)?;
    let (m, n, _) = places.extents;
    let (a, b) = (context.input_slice::<T>(0)?, context.input_slice::<T>(1)?);
    let c = output.as_mut_slice::<T>()?;
    if m * n == 0 {
        return Ok(());
    }
    for (&(at_a, at_b), c) in places.offsets.iter().zip(c.chunks_exact_mut(m * n)) {
        let a = view(&a[at_a.min(a.len())..], places.a_columns, places.adjoint.0);
        let b = view(&b[at_b.min(b.len())..], places.b_columns, places.adjoint.1);
        gemm_half(
            context.pool(),
            places.extents,
            a,
            b,
            c,
            n,
            false,
            &Epilogue::default(),
        )
        .map_err(out_of_memory)?;
    }
    Ok(())
}
