//! Systems of linear equations: square, triangular, banded, and in the sense of least squares.

use super::gradients;
use super::matrices::{Field, match_field, no_memory, zip};
use super::shapes::{broadcast_system, system};
use ff_kernels::linalg::{Matrix, Triangle, least_squares, least_squares_regularized, lu, solve_triangular};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{Result, ensure};

const SOLVE: Op = Op {
    name: "MatrixSolve",
    shape: |context| system(context, true),
    kernels: &[Kernel::native(solve)],
    lower: Some(crate::host_call::lower),
    gradient: Gradient::Fn(gradients::of_solve),
    ..Op::PURE
};
const SOLVE_LS: Op = Op {
    name: "MatrixSolveLs",
    shape: |context| {
        context.input_with_rank(2, 0)?;
        system(context, false)
    },
    kernels: &[Kernel::native(solve_least_squares)],
    gradient: Gradient::Fn(gradients::of_least_squares),
    ..Op::PURE
};
const TRIANGULAR: Op = Op {
    name: "MatrixTriangularSolve",
    shape: |context| broadcast_system(context, false),
    kernels: &[Kernel::native(triangular)],
    lower: Some(super::lower::triangular),
    gradient: Gradient::Fn(gradients::of_triangular_solve),
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &SOLVE,
    &Op {
        name: "BatchMatrixSolve",
        gradient: Gradient::Missing,
        ..SOLVE
    },
    &SOLVE_LS,
    &Op {
        name: "BatchMatrixSolveLs",
        gradient: Gradient::Missing,
        ..SOLVE_LS
    },
    &TRIANGULAR,
    &Op {
        name: "BatchMatrixTriangularSolve",
        gradient: Gradient::Missing,
        ..TRIANGULAR
    },
    &Op {
        name: "BandedTriangularSolve",
        shape: |context| broadcast_system(context, true),
        kernels: &[Kernel::native(banded)],
        gradient: Gradient::Fn(gradients::of_banded_solve),
        ..Op::PURE
    },
];

fn solve(context: &mut KernelContext) -> Result<()> {
    let adjoint = context.attrs().bool("adjoint")?;
    match_field!(context.output_type(0), T => zip::<T>(context, |matrix, right| {
        if right.columns == 0 {
            return Ok(right);
        }
        let turned = if adjoint { matrix.adjoint() } else { matrix.copy() };
        let factors = lu(turned.map_err(no_memory)?);
        ensure!(factors.is_invertible(), InvalidArgument, "Input matrix is not invertible.");
        factors.solve(&right).map_err(no_memory)
    }))
}

fn triangle(context: &KernelContext) -> Result<Triangle> {
    Ok(Triangle {
        lower: context.attrs().bool("lower")?,
        adjoint: context.attrs().bool("adjoint")?,
    })
}

fn triangular(context: &mut KernelContext) -> Result<()> {
    let triangle = triangle(context)?;
    match_field!(context.output_type(0), T => zip::<T>(context, |matrix, mut right| {
        solve_triangular(matrix, triangle, &mut right);
        Ok(right)
    }))
}

/// The matrix of which each row of `bands` is a diagonal: the main one first of lower matrices, last of upper ones.
fn unpack<T: Field>(bands: &Matrix<T>, lower: bool) -> Result<Matrix<T>> {
    let (count, n) = (bands.rows, bands.columns);
    let mut matrix = Matrix::zeros(n, n).map_err(no_memory)?;
    for i in 0..n {
        for distance in 0..count {
            if lower && distance <= i {
                matrix[(i, i - distance)] = bands[(distance, i)];
            } else if !lower && i + distance < n {
                matrix[(i, i + distance)] = bands[(count - 1 - distance, i)];
            }
        }
    }
    Ok(matrix)
}

fn banded(context: &mut KernelContext) -> Result<()> {
    let triangle = triangle(context)?;
    for index in 0..2 {
        ensure!(
            context.input(index)?.num_elements() > 0,
            InvalidArgument,
            "In[{index}] must not be an empty tensor: {}",
            context.input(index)?.shape()
        );
    }
    match_field!(context.output_type(0), T => zip::<T>(context, |bands, mut right| {
        let matrix = unpack(bands, triangle.lower)?;
        let invertible = (0..matrix.rows).all(|i| matrix[(i, i)] != T::default());
        ensure!(invertible, InvalidArgument, "Input matrix is not invertible.");
        solve_triangular(&matrix, triangle, &mut right);
        Ok(right)
    }))
}

fn solve_least_squares(context: &mut KernelContext) -> Result<()> {
    let regularizer = context.input(2)?.single::<f64>()?;
    ensure!(
        regularizer >= 0.0,
        InvalidArgument,
        "l2_regularizer must be >= 0."
    );
    let fast = context.attrs().bool("fast")?;
    match_field!(context.output_type(0), T => zip::<T>(context, |matrix, right| {
        if matrix.rows == 0 || matrix.columns == 0 {
            return Matrix::zeros(matrix.columns, right.columns).map_err(no_memory);
        }
        if !fast {
            return least_squares(matrix, &right).map_err(no_memory);
        }
        let solution = least_squares_regularized(matrix, &right, regularizer).map_err(no_memory)?;
        solution.ok_or_else(|| ff_tensor::status!(
            InvalidArgument,
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger l2_regularizer > 0."
        ))
    }))
}

#[cfg(test)]
use super::factor::{FIELDS, sample};

/// A system with a matrix of these extents and three right-hand sides.
#[cfg(test)]
fn case(op: &'static str, dtype: ff_tensor::DataType, left: &[i64], right: &[i64]) -> crate::testing::Case {
    crate::testing::Case::op(op).inputs([sample(dtype, left), crate::testing::cycle(dtype, right)])
}

crate::op_cases! {
    no_right_sides: family(&["MatrixSolve", "BatchMatrixSolve"], &[DataType::DOUBLE], |op, dtype| Case::op(op)
        .inputs([numbers(dtype, &[1, 1, 1], &[0.0]), numbers(dtype, &[1, 1, 0], &[])]).gives(numbers(dtype, &[1, 1, 0], &[])).without_gradient());
    no_bands: Case::op("BandedTriangularSolve").inputs([t::<f32>(&[0, 1, 1], &[]), t::<f32>(&[1, 0], &[])]).fails(Code::InvalidArgument);
    systems: family(&["MatrixSolve"], FIELDS, |op, dtype| case(op, dtype, &[2, 3, 3], &[2, 3, 2]));
    first_versions: family(&["BatchMatrixSolve", "BatchMatrixTriangularSolve"], &FIELDS[..2], |op, dtype| case(op, dtype, &[2, 3, 3], &[2, 3, 2]));
    systems_adjoint: family(&["MatrixSolve"], FIELDS, |op, dtype| case(op, dtype, &[4, 4], &[4, 3]).attr("adjoint", true));
    systems_singular: Case::op("MatrixSolve").inputs([t(&[2, 2], &[1.0f32, 2.0, 2.0, 4.0]), t(&[2, 1], &[1.0f32, 2.0])]).fails(Code::InvalidArgument);
    systems_of_nothing: case("MatrixSolve", DataType::FLOAT, &[0, 0], &[0, 2]);
    systems_misfit: case("MatrixSolve", DataType::FLOAT, &[3, 3], &[2, 2]).fails(Code::InvalidArgument);
    systems_batch: case("MatrixSolve", DataType::FLOAT, &[2, 3, 3], &[1, 3, 2]).fails(Code::InvalidArgument);
    triangles: family(&["MatrixTriangularSolve"], FIELDS, |op, dtype| case(op, dtype, &[2, 3, 3], &[2, 3, 2]));
    triangles_upper: family(&["MatrixTriangularSolve"], FIELDS, |op, dtype| case(op, dtype, &[3, 3], &[3, 2]).attr("lower", false));
    triangles_adjoint: family(&["MatrixTriangularSolve"], FIELDS, |op, dtype| {
        case(op, dtype, &[2, 1, 3, 3], &[4, 3, 2]).attr("lower", false).attr("adjoint", true)
    });
    triangles_broadcast: family(&["MatrixTriangularSolve"], FIELDS, |op, dtype| case(op, dtype, &[3, 3], &[2, 3, 2]).attr("adjoint", true));
    triangles_singular: Case::op("MatrixTriangularSolve").inputs([t(&[2, 2], &[1.0f32, 2.0, 2.0, 0.0]), t(&[2, 1], &[1.0f32, 2.0])]);
    triangles_misfit: case("MatrixTriangularSolve", DataType::FLOAT, &[3, 3], &[4, 2]).fails(Code::InvalidArgument);
    bands: family(&["BandedTriangularSolve"], FIELDS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 4], &[4.0, 3.0, 5.0, 2.0, 9.0, 1.0, 2.0, 3.0]), cycle(dtype, &[4, 2])])
    });
    bands_upper: family(&["BandedTriangularSolve"], FIELDS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 4], &[9.0, 1.0, 2.0, 3.0, 4.0, 3.0, 5.0, 2.0]), cycle(dtype, &[4, 2])]).attr("lower", false)
    });
    bands_adjoint: family(&["BandedTriangularSolve"], FIELDS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[1, 2, 3], &[9.0, 1.0, 2.0, 4.0, 3.0, 5.0]), cycle(dtype, &[2, 3, 2])]).attr("lower", false).attr("adjoint", true)
    });
    bands_singular: Case::op("BandedTriangularSolve").inputs([t(&[1, 2], &[1.0f32, 0.0]), t(&[2, 1], &[1.0f32, 2.0])]).fails(Code::InvalidArgument);
    bands_misfit: Case::op("BandedTriangularSolve").inputs([t(&[1, 2], &[1.0f32, 1.0]), t(&[3, 1], &[1.0f32, 2.0, 1.0])]).fails(Code::InvalidArgument);
    least: family(&["MatrixSolveLs", "BatchMatrixSolveLs"], &FIELDS[..2], |op, dtype| case(op, dtype, &[2, 5, 3], &[2, 5, 2]).input(scalar(0.0f64)));
    least_complex: family(&["MatrixSolveLs"], &FIELDS[2..], |op, dtype| case(op, dtype, &[5, 3], &[5, 2]).input(scalar(0.5f64)));
    least_wide: family(&["MatrixSolveLs"], FIELDS, |op, dtype| case(op, dtype, &[2, 4], &[2, 2]).input(scalar(0.25f64)));
    least_slow: family(&["MatrixSolveLs"], FIELDS, |op, dtype| case(op, dtype, &[5, 3], &[5, 2]).input(scalar(3.0f64)).attr("fast", false));
    least_slow_rank: Case::op("MatrixSolveLs").inputs([t(&[2, 2], &[1.0f64, 2.0, 2.0, 4.0]), t(&[2, 1], &[1.0f64, 2.0]), scalar(0.0f64)]).attr("fast", false);
    least_rank: Case::op("MatrixSolveLs").inputs([t(&[2, 2], &[1.0f64, 2.0, 2.0, 4.0]), t(&[2, 1], &[1.0f64, 2.0]), scalar(0.0f64)]).fails(Code::InvalidArgument);
    least_negative: case("MatrixSolveLs", DataType::DOUBLE, &[2, 2], &[2, 2]).input(scalar(-1.0f64)).fails(Code::InvalidArgument);
    least_misfit: case("MatrixSolveLs", DataType::DOUBLE, &[3, 2], &[2, 3]).input(scalar(0.0f64)).fails(Code::InvalidArgument);
}
