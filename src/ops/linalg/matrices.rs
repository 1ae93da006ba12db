//! Tensors as lists of matrices in double precision, and back.

use crate::wide;
use ff_kernels::OutOfMemory;
use ff_kernels::linalg::{Matrix, Scalar};
use ff_op::KernelContext;
use ff_tensor::{Complex64, Complex128, DataType, Result, Shape, Status, Tensor, bf16, f16, status};

/// What matrices are computed in: `f64` or [`Complex128`], with the tensors that they come from.
pub trait Field: Scalar {
    /// The elements of a tensor, converted.
    fn elements(tensor: &Tensor) -> Result<Vec<Self>>;
    /// A tensor of these elements, converted.
    fn tensor(dtype: DataType, shape: Shape, elements: &[Self]) -> Result<Tensor>;
}

impl Field for f64 {
    fn elements(tensor: &Tensor) -> Result<Vec<f64>> {
        match tensor.dtype() {
            DataType::FLOAT => wide::collected(tensor.as_slice::<f32>()?.iter().map(|&x| f64::from(x))),
            DataType::HALF => wide::collected(tensor.as_slice::<f16>()?.iter().map(|&x| f64::from(x))),
            DataType::BFLOAT16 => wide::collected(tensor.as_slice::<bf16>()?.iter().map(|&x| f64::from(x))),
            _ => wide::collected(tensor.as_slice::<f64>()?.iter().copied()),
        }
    }

    fn tensor(dtype: DataType, shape: Shape, elements: &[f64]) -> Result<Tensor> {
        fn of<T: ff_tensor::Element>(shape: Shape, elements: &[f64], f: fn(f64) -> T) -> Result<Tensor> {
            Tensor::from_slice(shape, &wide::collected(elements.iter().map(|&x| f(x)))?)
        }
        match dtype {
            DataType::FLOAT => of(shape, elements, |x| x as f32),
            DataType::HALF => of(shape, elements, f16::from_f64),
            DataType::BFLOAT16 => of(shape, elements, bf16::from_f64),
            _ => Tensor::from_slice(shape, elements),
        }
    }
}

impl Field for Complex128 {
    fn elements(tensor: &Tensor) -> Result<Vec<Complex128>> {
        match tensor.dtype() {
            DataType::COMPLEX64 => {
                let widened = |x: &Complex64| Complex128::new(f64::from(x.re), f64::from(x.im));
                wide::collected(tensor.as_slice::<Complex64>()?.iter().map(widened))
            }
            DataType::COMPLEX128 => wide::collected(tensor.as_slice::<Complex128>()?.iter().copied()),
            _ => wide::collected(
                f64::elements(tensor)?
                    .into_iter()
                    .map(|x| Complex128::new(x, 0.0)),
            ),
        }
    }

    fn tensor(dtype: DataType, shape: Shape, elements: &[Complex128]) -> Result<Tensor> {
        match dtype {
            DataType::COMPLEX64 => {
                let narrow = |x: &Complex128| Complex64::new(x.re as f32, x.im as f32);
                Tensor::from_slice(shape, &wide::collected(elements.iter().map(narrow))?)
            }
            DataType::COMPLEX128 => Tensor::from_slice(shape, elements),
            _ => f64::tensor(dtype, shape, &wide::collected(elements.iter().map(|x| x.re))?),
        }
    }
}

/// Runs a `Result` with `T` as the [`Field`] that numbers of an element type are computed in.
macro_rules! match_field {
    ($dtype:expr, $name:ident => $body:expr) => {
        if $dtype.is_complex() {
            type $name = ff_tensor::Complex128;
            $body
        } else {
            type $name = f64;
            $body
        }
    };
}
pub(crate) use match_field;

/// RESOURCE_EXHAUSTED.
pub fn no_memory(error: OutOfMemory) -> Status {
    status!(ResourceExhausted, "{error}")
}

fn too_many(count: i64) -> Status {
    status!(ResourceExhausted, "OOM when allocating {count} matrices")
}

/// The matrices in the last two axes of a tensor.
pub fn matrices<T: Field>(tensor: &Tensor) -> Result<Vec<Matrix<T>>> {
    let rank = tensor.rank();
    let (rows, columns) = (tensor.dims()[rank - 2] as usize, tensor.dims()[rank - 1] as usize);
    let count: i64 = tensor.dims()[..rank - 2].iter().product();
    let elements = T::elements(tensor)?;
    let size = rows * columns;
    let matrix = |i: usize| Matrix {
        rows,
        columns,
        data: elements[i * size..(i + 1) * size].to_vec(),
    };
    let mut found = Vec::new();
    // Matrices without elements may be many.
    found.try_reserve(count as usize).map_err(|_| too_many(count))?;
    found.extend((0..count as usize).map(matrix));
    Ok(found)
}

/// A tensor of matrices, one after the other.
pub fn stack<T: Field>(dtype: DataType, shape: Shape, matrices: &[Matrix<T>]) -> Result<Tensor> {
    let mut elements: Vec<T> = wide::reserved(shape.num_elements())?;
    elements.extend(matrices.iter().flat_map(|matrix| matrix.data.iter().copied()));
    T::tensor(dtype, shape, &elements)
}

/// Output 0 holds what `f` makes of each matrix of input 0.
pub fn map<T: Field>(context: &mut KernelContext, f: impl Fn(&Matrix<T>) -> Result<Matrix<T>>) -> Result<()> {
    if context.input(0)?.num_elements() == 0 && context.output_shape(0)?.num_elements() == 0 {
        let output = context.allocate_output(0)?;
        return context.set_output(0, output);
    }
    let results = matrices::<T>(context.input(0)?)?
        .iter()
        .map(f)
        .collect::<Result<Vec<_>>>()?;
    let output = stack(context.output_type(0), context.output_shape(0)?.clone(), &results)?;
    context.set_output(0, output)
}

/// Output 0 holds what `f` makes of each pair of matrices of inputs 0 and 1, whose leading axes are broadcast.
pub fn zip<T: Field>(
    context: &mut KernelContext,
    f: impl Fn(&Matrix<T>, Matrix<T>) -> Result<Matrix<T>>,
) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (first, second) = (matrices::<T>(a)?, matrices::<T>(b)?);
    let batch = &shape.dims()[..shape.rank() - 2];
    let count: i64 = batch.iter().product();
    let mut results = Vec::new();
    results.try_reserve(count as usize).map_err(|_| too_many(count))?;
    for number in 0..count {
        let a = place(number, batch, &a.dims()[..a.rank() - 2]);
        let b = place(number, batch, &b.dims()[..b.rank() - 2]);
        let copy = second[b].copy().map_err(no_memory)?;
        results.push(f(&first[a], copy)?);
    }
    let output = stack(context.output_type(0), shape, &results)?;
    context.set_output(0, output)
}

/// Which entry of extents `dims` stands at entry `number` of the extents that they are broadcast to.
fn place(number: i64, batch: &[i64], dims: &[i64]) -> usize {
    let (mut rest, mut at, mut stride) = (number, 0, 1);
    for (axis, &extent) in batch.iter().enumerate().rev() {
        let index = rest % extent;
        rest /= extent;
        if let Some(own) = (axis + dims.len()).checked_sub(batch.len())
            && dims[own] > 1
        {
            at += index * stride;
            stride *= dims[own];
        }
    }
    at as usize
}
