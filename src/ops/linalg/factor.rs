//! Cholesky's factor, triangular factors, determinants and inverses.

use super::gradients;
use super::matrices::{Field, map, match_field, matrices, no_memory, stack, zip};
use super::shapes::{number_each, same_square, square};
use ff_kernels::linalg::{Lu, Matrix, Scalar, cholesky, cholesky_gradient, lu};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{Result, Tensor, ensure};

const CHOLESKY: Op = Op {
    name: "Cholesky",
    shape: same_square,
    kernels: &[Kernel::native(
        |context| match_field!(context.output_type(0), T => map::<T>(context, factor)),
    )],
    lower: Some(super::lower::cholesky),
    gradient: Gradient::Fn(gradients::of_cholesky),
    ..Op::PURE
};
const CHOLESKY_GRAD: Op = Op {
    name: "CholeskyGrad",
    shape: |context| {
        let shape = square(context, 0)?.merge(&square(context, 1)?)?;
        context.set_output(0, shape);
        Ok(())
    },
    kernels: &[Kernel::native(|context| {
        match_field!(context.output_type(0), T => zip::<T>(context, |factor, gradient| {
            let result = cholesky_gradient(factor, &gradient).map_err(no_memory)?;
            result.ok_or_else(|| ff_tensor::status!(InvalidArgument, "The factor is not invertible."))
        }))
    })],
    gradient: Gradient::Missing,
    ..Op::PURE
};
const INVERSE: Op = Op {
    name: "MatrixInverse",
    shape: same_square,
    kernels: &[Kernel::native(inverse)],
    lower: Some(crate::host_call::lower),
    gradient: Gradient::Fn(gradients::of_inverse),
    ..Op::PURE
};
const DETERMINANT: Op = Op {
    name: "MatrixDeterminant",
    shape: number_each,
    kernels: &[Kernel::native(determinants)],
    gradient: Gradient::Fn(gradients::of_determinant),
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &CHOLESKY,
    &Op {
        name: "BatchCholesky",
        gradient: Gradient::Missing,
        ..CHOLESKY
    },
    &CHOLESKY_GRAD,
    &Op {
        name: "BatchCholeskyGrad",
        ..CHOLESKY_GRAD
    },
    &INVERSE,
    &Op {
        name: "BatchMatrixInverse",
        gradient: Gradient::Missing,
        ..INVERSE
    },
    &DETERMINANT,
    &Op {
        name: "BatchMatrixDeterminant",
        gradient: Gradient::Missing,
        ..DETERMINANT
    },
    &Op {
        name: "LogMatrixDeterminant",
        kernels: &[Kernel::native(log_determinants)],
        gradient: Gradient::Fn(gradients::of_log_determinant),
        ..DETERMINANT
    },
    &Op {
        name: "Lu",
        shape: |context| {
            let shape = square(context, 0)?;
            context.set_output(1, shape.slice(0, Some(-1)));
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(factors)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

/// Not-a-number below the diagonal where the matrix is not positive definite.
fn factor<T: Field>(matrix: &Matrix<T>) -> Result<Matrix<T>> {
    if let Some(factor) = cholesky(matrix).map_err(no_memory)? {
        return Ok(factor);
    }
    let mut broken = Matrix::<T>::zeros(matrix.rows, matrix.rows).map_err(no_memory)?;
    for i in 0..matrix.rows {
        broken.row_mut(i)[..=i].fill(T::real(f64::NAN));
    }
    Ok(broken)
}

/// The factors of a copy.
fn factorized<T: Scalar>(matrix: &Matrix<T>) -> Result<Lu<T>> {
    Ok(lu(matrix.copy().map_err(no_memory)?))
}

fn inverse(context: &mut KernelContext) -> Result<()> {
    let adjoint = context.attrs().bool("adjoint")?;
    match_field!(context.output_type(0), T => map::<T>(context, |matrix| {
        let turned = if adjoint { matrix.adjoint() } else { matrix.copy() };
        let factors = lu(turned.map_err(no_memory)?);
        ensure!(factors.is_invertible(), InvalidArgument, "Input is not invertible.");
        let identity = Matrix::identity(matrix.rows, matrix.rows).map_err(no_memory)?;
        factors.solve(&identity).map_err(no_memory)
    }))
}

fn determinants(context: &mut KernelContext) -> Result<()> {
    match_field!(context.output_type(0), T => {
        let mut values = Vec::new();
        for matrix in matrices::<T>(context.input(0)?)? {
            let factors = factorized(&matrix)?;
            let mut product = T::real(if factors.odd { -1.0 } else { 1.0 });
            (0..matrix.rows).for_each(|i| product *= factors.packed[(i, i)]);
            values.push(product);
        }
        let output = T::tensor(context.output_type(0), context.output_shape(0)?.clone(), &values)?;
        context.set_output(0, output)
    })
}

/// Sign (or phase) and logarithm of the absolute value.
fn log_determinants(context: &mut KernelContext) -> Result<()> {
    match_field!(context.output_type(0), T => {
        let (mut signs, mut logs) = (Vec::new(), Vec::new());
        for matrix in matrices::<T>(context.input(0)?)? {
            let factors = factorized(&matrix)?;
            let mut sign = T::real(if factors.odd { -1.0 } else { 1.0 });
            let mut log = 0.0;
            for i in 0..matrix.rows {
                let pivot = factors.packed[(i, i)];
                let size = pivot.size();
                sign *= if size == 0.0 { T::default() } else { pivot / T::real(size) };
                log += size.ln();
            }
            signs.push(sign);
            logs.push(T::real(log));
        }
        for (index, values) in [signs, logs].iter().enumerate() {
            let output = T::tensor(context.output_type(index), context.output_shape(index)?.clone(), values)?;
            context.set_output(index, output)?;
        }
        Ok(())
    })
}

/// Both factors in one matrix, and the row that comes first, second, ..
fn factors(context: &mut KernelContext) -> Result<()> {
    match_field!(context.output_type(0), T => {
        let (mut packed, mut orders) = (Vec::new(), Vec::new());
        for matrix in matrices::<T>(context.input(0)?)? {
            let factors = lu(matrix);
            ensure!(factors.is_invertible(), InvalidArgument, "Input is not invertible.");
            orders.extend(factors.order.iter().map(|&row| row as i64));
            packed.push(factors.packed);
        }
        let output = stack(context.output_type(0), context.output_shape(0)?.clone(), &packed)?;
        context.set_output(0, output)?;
        let shape = context.output_shape(1)?.clone();
        let orders = match context.output_type(1) {
            ff_tensor::DataType::INT64 => Tensor::from_slice(shape, &orders)?,
            _ => Tensor::from_slice(shape, &orders.iter().map(|&row| row as i32).collect::<Vec<_>>())?,
        };
        context.set_output(1, orders)
    })
}

#[cfg(test)]
pub(super) const FIELDS: &[ff_tensor::DataType] = &[
    ff_tensor::DataType::FLOAT,
    ff_tensor::DataType::DOUBLE,
    ff_tensor::DataType::COMPLEX64,
    ff_tensor::DataType::COMPLEX128,
];

/// Well-conditioned matrices of any type.
#[cfg(test)]
pub(super) fn sample(dtype: ff_tensor::DataType, dims: &[i64]) -> Tensor {
    let (rank, count) = (dims.len(), dims.iter().product::<i64>());
    let (rows, columns) = (dims[rank - 2].max(1), dims[rank - 1].max(1));
    let value = |at: i64| {
        let (i, j) = (at / columns % rows, at % columns);
        let noise = ((at * at * 7 + at * 3 + 5) % 23) as f64 / 11.5 - 1.0;
        if i == j { noise + 4.0 } else { noise }
    };
    crate::testing::numbers(dtype, dims, &(0..count).map(value).collect::<Vec<f64>>())
}

/// Positive definite matrices.
#[cfg(test)]
pub(super) fn positive(dtype: ff_tensor::DataType) -> Tensor {
    let matrix = t_of(dtype, &[4.0, 1.0, 0.5, 1.0, 5.0, 2.0, 0.5, 2.0, 6.0]);
    if !dtype.is_complex() {
        return matrix;
    }
    let real = t_of(
        ff_tensor::DataType::DOUBLE,
        &[4.0, 1.0, 0.5, 1.0, 5.0, 2.0, 0.5, 2.0, 6.0],
    );
    let imaginary = [0.0, 0.5, -0.25, -0.5, 0.0, 1.0, 0.25, -1.0, 0.0];
    let elements = real.as_slice::<f64>().unwrap().iter().zip(imaginary);
    let elements: Vec<_> = elements
        .map(|(&re, im)| ff_tensor::Complex128::new(re, im))
        .collect();
    Field::tensor(dtype, real.shape().clone(), &elements).unwrap()
}

#[cfg(test)]
fn t_of(dtype: ff_tensor::DataType, values: &[f64; 9]) -> Tensor {
    crate::testing::numbers(dtype, &[3, 3], values)
}

crate::op_cases! {
    cholesky_factors: family(&["Cholesky"], FIELDS, |op, dtype| Case::op(op).input(positive(dtype)));
    first_versions: family(&["BatchCholesky", "BatchMatrixInverse"], &FIELDS[..2], |op, dtype| Case::op(op).input(positive(dtype)));
    not_positive: Case::op("Cholesky").input(t(&[2, 2, 2], &[1.0f32, 2.0, 2.0, 1.0, 1.0, 0.0, 0.0, 4.0]));
    cholesky_of_nothing: Case::op("Cholesky").input(t::<f64>(&[2, 0, 0], &[])).gives(t::<f64>(&[2, 0, 0], &[]));
    cholesky_not_square: Case::op("Cholesky").input(sample(DataType::FLOAT, &[2, 3])).fails(Code::InvalidArgument);
    cholesky_of_vector: Case::op("Cholesky").input(vector(&[1.0f32])).fails(Code::InvalidArgument);
    cholesky_gradients: family(&["CholeskyGrad", "BatchCholeskyGrad"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([sample(dtype, &[2, 3, 3]), numbers(dtype, &[2, 3, 3], &[0.5; 18])])
    });
    inverses: family(&["MatrixInverse"], FIELDS, |op, dtype| Case::op(op).input(sample(dtype, &[2, 3, 3])));
    inverses_of_halves: family(&["MatrixInverse"], &[DataType::HALF], |op, dtype| Case::op(op).input(sample(dtype, &[3, 3])));
    inverses_adjoint: family(&["MatrixInverse"], FIELDS, |op, dtype| Case::op(op).input(sample(dtype, &[4, 4])).attr("adjoint", true));
    inverse_of_singular: Case::op("MatrixInverse").input(t(&[2, 2], &[1.0f32, 2.0, 2.0, 4.0])).fails(Code::InvalidArgument);
    inverse_of_nothing: Case::op("MatrixInverse").input(t::<f32>(&[0, 2, 2], &[])).gives(t::<f32>(&[0, 2, 2], &[]));
    inverse_not_square: Case::op("MatrixInverse").input(sample(DataType::FLOAT, &[2, 3])).fails(Code::InvalidArgument);
    determinant: family(&["MatrixDeterminant", "BatchMatrixDeterminant", "LogMatrixDeterminant"], FIELDS, |op, dtype| {
        Case::op(op).input(sample(dtype, &[2, 3, 3]))
    });
    determinant_of_nothing: Case::op("MatrixDeterminant").input(t::<f32>(&[2, 0, 0], &[])).gives(vector(&[1.0f32, 1.0]));
    determinant_of_singular: family(&["MatrixDeterminant", "LogMatrixDeterminant"], FIELDS, |op, dtype| {
        Case::op(op).input(numbers(dtype, &[2, 2], &[2.0, 2.0, 2.0, 2.0])).without_gradient()
    });
    determinant_not_square: Case::op("LogMatrixDeterminant").input(sample(DataType::FLOAT, &[2, 3])).fails(Code::InvalidArgument);
    triangular_factors: family(&["Lu"], FIELDS, |op, dtype| {
        Case::op(op).input(numbers(dtype, &[3, 3], &[2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 4.0, 1.0, 5.0]))
    });
    triangular_factors_of_batch: Case::op("Lu").input(sample(DataType::DOUBLE, &[2, 4, 4])).attr("output_idx_type", DataType::INT64);
    triangular_factors_of_singular: Case::op("Lu").input(t(&[2, 2], &[1.0f32, 2.0, 2.0, 4.0])).fails(Code::InvalidArgument);
    triangular_factors_not_square: Case::op("Lu").input(sample(DataType::FLOAT, &[2, 3])).fails(Code::InvalidArgument);
}
