//! Orthogonal factors, singular values, eigenvalues.

use super::decompose_gradient as gradient;
use super::matrices::Field;
use super::matrices::{match_field, matrices, no_memory, stack};
use super::shapes::{batch, square};
use ff_kernels::linalg::{Matrix, eigen, hermitian_eigen, qr, svd};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Complex128, PartialShape, Result, Tensor, dim, status};

const SVD: Op = Op {
    name: "Svd",
    shape: svd_shape,
    kernels: &[Kernel::native(singular_values)],
    lower: Some(crate::host_call::lower),
    gradient: Gradient::Fn(gradient::of_svd),
    ..Op::PURE
};
const SELF_ADJOINT_EIG: Op = Op {
    name: "SelfAdjointEigV2",
    shape: eigen_shape,
    kernels: &[Kernel::native(self_adjoint)],
    lower: Some(crate::host_call::lower),
    gradient: Gradient::Fn(gradient::of_self_adjoint),
    ..Op::PURE
};
const FIRST_SELF_ADJOINT_EIG: Op = Op {
    name: "SelfAdjointEig",
    shape: |context| {
        let shape = square(context, 0)?;
        if shape.rank().is_some() {
            let rows = dim::add(shape.dim(-1), 1)?;
            context.set_output(
                0,
                shape.with_dim(-2, if shape.dim(-1) < 0 { dim::UNKNOWN } else { rows })?,
            );
        }
        Ok(())
    },
    kernels: &[Kernel::native(self_adjoint_together)],
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Qr",
        shape: qr_shape,
        kernels: &[Kernel::native(orthogonal)],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::Fn(gradient::of_qr),
        ..Op::PURE
    },
    &SVD,
    &Op {
        name: "BatchSvd",
        gradient: Gradient::Missing,
        ..SVD
    },
    &SELF_ADJOINT_EIG,
    &Op {
        name: "BatchSelfAdjointEigV2",
        gradient: Gradient::Missing,
        ..SELF_ADJOINT_EIG
    },
    &FIRST_SELF_ADJOINT_EIG,
    &Op {
        name: "BatchSelfAdjointEig",
        ..FIRST_SELF_ADJOINT_EIG
    },
    &Op {
        name: "Eig",
        shape: eigen_shape,
        kernels: &[Kernel::native(any_eigen)],
        gradient: Gradient::Fn(gradient::of_eig),
        ..Op::PURE
    },
];

/// The smaller of two extents, unless both are needed to know.
pub(super) fn least(a: i64, b: i64) -> i64 {
    if a < 0 || b < 0 { dim::UNKNOWN } else { a.min(b) }
}

fn qr_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank_at_least(0, 2)?;
    if input.rank().is_none() {
        return Ok(());
    }
    let (rows, columns) = (input.dim(-2), input.dim(-1));
    let inner = if context.attrs().bool("full_matrices")? {
        rows
    } else {
        least(rows, columns)
    };
    let leading = batch(&input);
    context.set_output(0, leading.concat(&PartialShape::new(&[rows, inner])));
    context.set_output(1, leading.concat(&PartialShape::new(&[inner, columns])));
    Ok(())
}

/// Sets outputs to stacked matrices.
pub(super) fn set_all<T: Field>(
    context: &mut KernelContext,
    outputs: &[(usize, Vec<Matrix<T>>)],
) -> Result<()> {
    for (index, matrices) in outputs {
        let output = stack(
            context.output_type(*index),
            context.output_shape(*index)?.clone(),
            matrices,
        )?;
        context.set_output(*index, output)?;
    }
    Ok(())
}

fn orthogonal(context: &mut KernelContext) -> Result<()> {
    let full = context.attrs().bool("full_matrices")?;
    match_field!(context.output_type(0), T => {
        let (mut all_q, mut all_r) = (Vec::new(), Vec::new());
        for matrix in matrices::<T>(context.input(0)?)? {
            let columns = if full { matrix.rows } else { matrix.rows.min(matrix.columns) };
            let (q, r) = qr(matrix, columns).map_err(no_memory)?;
            all_q.push(q);
            all_r.push(r);
        }
        set_all(context, &[(0, all_q), (1, all_r)])
    })
}

fn svd_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank_at_least(0, 2)?;
    if input.rank().is_none() {
        return Ok(());
    }
    let (rows, columns) = (input.dim(-2), input.dim(-1));
    let inner = least(rows, columns);
    let leading = batch(&input);
    context.set_output(0, leading.concat(&PartialShape::new(&[inner])));
    if !context.attrs().bool("compute_uv")? {
        context.set_output(1, PartialShape::new(&[0]));
        context.set_output(2, PartialShape::new(&[0]));
        return Ok(());
    }
    let full = context.attrs().bool("full_matrices")?;
    let (left, right) = if full { (rows, columns) } else { (inner, inner) };
    context.set_output(1, leading.concat(&PartialShape::new(&[rows, left])));
    context.set_output(2, leading.concat(&PartialShape::new(&[columns, right])));
    Ok(())
}

/// A vector without elements, where vectors are not asked for.
fn nothing(context: &KernelContext, index: usize) -> Result<Tensor> {
    Tensor::zeros(context.output_type(index), ff_tensor::Shape::vector(0))
}

/// One row of numbers as a matrix.
pub(super) fn row<T: Field>(values: Vec<T>) -> Matrix<T> {
    Matrix {
        rows: 1,
        columns: values.len(),
        data: values,
    }
}

fn singular_values(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (full, vectors) = (attrs.bool("full_matrices")?, attrs.bool("compute_uv")?);
    if context.input(0)?.num_elements() == 0 {
        // There may be many matrices without elements, or many rows; what they give may have elements.
        let parts = (0..3).map(|index| {
            let shape = context.output_shape(index)?.clone();
            Tensor::zeros(context.output_type(index), shape)
        });
        let parts = parts.collect::<Result<Vec<Tensor>>>()?;
        if parts.iter().all(|part| part.num_elements() == 0) {
            for (index, part) in parts.into_iter().enumerate() {
                context.set_output(index, part)?;
            }
            return Ok(());
        }
    }
    match_field!(context.output_type(0), T => {
        let (mut values, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
        for matrix in matrices::<T>(context.input(0)?)? {
            let parts = svd(&matrix, full && vectors).map_err(no_memory)?;
            values.push(row(parts.values.iter().map(|&value| <T as ff_kernels::linalg::Scalar>::real(value)).collect()));
            left.push(parts.u);
            right.push(parts.v);
        }
        if vectors {
            return set_all(context, &[(0, values), (1, left), (2, right)]);
        }
        set_all(context, &[(0, values)])?;
        let (first, second) = (nothing(context, 1)?, nothing(context, 2)?);
        context.set_output(1, first)?;
        context.set_output(2, second)
    })
}

fn eigen_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = square(context, 0)?;
    if shape.rank().is_none() {
        return Ok(());
    }
    context.set_output(0, shape.slice(0, Some(-1)));
    let vectors = context.attrs().bool("compute_v")?;
    context.set_output(1, if vectors { shape } else { PartialShape::new(&[0]) });
    Ok(())
}

/// Sets values, and vectors if they are asked for.
fn set_eigen<T: Field>(
    context: &mut KernelContext,
    values: Vec<Matrix<T>>,
    vectors: Vec<Matrix<T>>,
) -> Result<()> {
    if context.attrs().bool("compute_v")? {
        return set_all(context, &[(0, values), (1, vectors)]);
    }
    set_all(context, &[(0, values)])?;
    let empty = nothing(context, 1)?;
    context.set_output(1, empty)
}

/// One matrix for each of a batch.
pub(super) type Batch<T> = Vec<Matrix<T>>;

/// Eigenvalues and eigenvectors of the Hermitian matrices at input 0, from their lower triangles or their upper ones.
pub(super) fn hermitian<T: Field>(context: &KernelContext, lower: bool) -> Result<(Batch<T>, Batch<T>)> {
    let (mut values, mut vectors) = (Vec::new(), Vec::new());
    for mut matrix in matrices::<T>(context.input(0)?)? {
        if !lower {
            matrix = matrix.adjoint().map_err(no_memory)?;
        }
        let found = hermitian_eigen(&matrix).map_err(no_memory)?;
        let (own_values, own_vectors) = found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Self-adjoint eigen decomposition was not successful. The input might not be valid."
            )
        })?;
        values.push(row(own_values.into_iter().map(T::real).collect()));
        vectors.push(own_vectors);
    }
    Ok((values, vectors))
}

fn self_adjoint(context: &mut KernelContext) -> Result<()> {
    match_field!(context.output_type(0), T => {
        let (values, vectors) = hermitian::<T>(context, true)?;
        set_eigen(context, values, vectors)
    })
}

/// The first version: eigenvalues as a row above the eigenvectors.
fn self_adjoint_together(context: &mut KernelContext) -> Result<()> {
    match_field!(context.output_type(0), T => {
        let (values, vectors) = hermitian::<T>(context, true)?;
        let together = |(values, vectors): (Matrix<T>, Matrix<T>)| Matrix {
            rows: vectors.rows + 1,
            columns: vectors.columns,
            data: [values.data, vectors.data].concat(),
        };
        let all: Vec<_> = values.into_iter().zip(vectors).map(together).collect();
        set_all(context, &[(0, all)])
    })
}

fn any_eigen(context: &mut KernelContext) -> Result<()> {
    let (mut values, mut vectors) = (Vec::new(), Vec::new());
    let dtype = context.input(0)?.dtype();
    for matrix in matrices::<Complex128>(context.input(0)?)? {
        let found = eigen(&matrix).map_err(no_memory)?;
        let (mut own_values, mut own_vectors) = found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Eigen decomposition was not successful. The input might not be valid."
            )
        })?;
        if !dtype.is_complex() {
            pair_up(&mut own_values, &mut own_vectors);
        }
        values.push(row(own_values));
        vectors.push(own_vectors);
    }
    set_eigen(context, values, vectors)
}

/// Of a real matrix: eigenvalues that are real but for rounding become so, and of two conjugate ones the one with the
/// positive imaginary part comes first and the other one is its conjugate.
fn pair_up(values: &mut [Complex128], vectors: &mut Matrix<Complex128>) {
    let largest = values.iter().map(|value| value.norm()).fold(0.0, f64::max);
    let n = values.len();
    let mut at = 0;
    while at < n {
        if values[at].im.abs() <= largest * f64::EPSILON * n as f64 {
            values[at].im = 0.0;
            at += 1;
            continue;
        }
        // Its conjugate is the nearest of the others.
        let wanted = values[at].conj();
        let distance = |&other: &usize| (values[other] - wanted).norm();
        let Some(other) = (at + 1..n).min_by(|a, b| distance(a).total_cmp(&distance(b))) else {
            return;
        };
        values.swap(at + 1, other);
        (0..n).for_each(|row| vectors.data.swap(row * n + at + 1, row * n + other));
        if values[at].im < 0.0 {
            values.swap(at, at + 1);
            (0..n).for_each(|row| vectors.data.swap(row * n + at, row * n + at + 1));
        }
        values[at + 1] = values[at].conj();
        for row in 0..n {
            vectors[(row, at + 1)] = vectors[(row, at)].conj();
        }
        at += 2;
    }
}

#[cfg(test)]
use super::factor::{FIELDS, positive, sample};

crate::op_cases! {
    orthogonal_factors: family(&["Qr"], FIELDS, |op, dtype| Case::op(op).input(sample(dtype, &[2, 4, 3])));
    orthogonal_factors_full: family(&["Qr"], FIELDS, |op, dtype| Case::op(op).input(sample(dtype, &[4, 3])).attr("full_matrices", true));
    orthogonal_factors_wide: family(&["Qr"], FIELDS, |op, dtype| Case::op(op).input(sample(dtype, &[2, 5])));
    orthogonal_factors_of_nothing: Case::op("Qr").input(t::<f32>(&[2, 0, 3], &[]));
    orthogonal_factors_of_vector: Case::op("Qr").input(vector(&[1.0f32])).fails(Code::InvalidArgument);
    singular_of_nothing: family(&["Svd", "BatchSvd"], &FIELDS[..2], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[1 << 40, 0], &[])).gives(numbers(dtype, &[0], &[])).gives(numbers(dtype, &[1 << 40, 0], &[]))
            .gives(numbers(dtype, &[0, 0], &[]))
    });
    singular_of_vector: Case::op("Svd").input(vector(&[1.0f32])).fails(Code::InvalidArgument);
    eigen_not_square: family(&["Eig", "SelfAdjointEigV2"], &FIELDS[..1], |op, dtype| {
        let case = Case::op(op).input(sample(dtype, &[2, 3]));
        let case = if op == "Eig" { case.attr("Tout", DataType::COMPLEX64) } else { case };
        case.fails(Code::InvalidArgument)
    });
    eigen_of_nan: Case::op("SelfAdjointEigV2").input(t(&[2, 2], &[f32::NAN; 4])).fails(Code::InvalidArgument);
    eigen_of_nothing: Case::op("SelfAdjointEigV2").input(t::<f32>(&[2, 0, 0], &[]));
    one_number: family(&["Svd"], &FIELDS[..2], |op, dtype| Case::op(op).input(numbers(dtype, &[2, 1, 1], &[4.0, 2.0])));
    first_versions: Case::op("SelfAdjointEig").input(t(&[1, 1], &[3.0f32])).gives(t(&[2, 1], &[3.0f32, 1.0]));
    later_version: Case::op("BatchSelfAdjointEigV2").input(t(&[1, 1, 1], &[3.0f32])).gives(t(&[1, 1], &[3.0f32])).gives(t(&[1, 1, 1], &[1.0f32]));
    batches: Case::op("BatchSvd").input(t(&[1, 1, 1], &[3.0f32])).attr("compute_uv", false).gives(t(&[1, 1], &[3.0f32]))
        .gives(vector::<f32>(&[])).gives(vector::<f32>(&[]));
    first_version: Case::op("BatchSelfAdjointEig").input(t(&[1, 1, 1], &[3.0f32])).gives(t(&[1, 2, 1], &[3.0f32, 1.0]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::OpRunner;
    use ff_op::Attrs;
    use ff_tensor::DataType;

    fn run(op: &str, input: &Tensor, attrs: Attrs) -> Vec<Tensor> {
        OpRunner::new()
            .run(op, std::slice::from_ref(input), attrs)
            .unwrap()
    }

    fn complex(tensor: &Tensor) -> Vec<Complex128> {
        Complex128::elements(tensor).unwrap()
    }

    /// `a = u diag(s) v^H`, for all types and both ways of rows and columns.
    #[test]
    fn singular_parts_make_the_matrix() {
        for &dtype in FIELDS {
            for dims in [[4, 3], [2, 5]] {
                let input = sample(dtype, &dims);
                let parts = run("Svd", &input, Attrs::new());
                let (s, u, v) = (complex(&parts[0]), complex(&parts[1]), complex(&parts[2]));
                let (rows, columns, k) = (dims[0] as usize, dims[1] as usize, s.len());
                for (at, value) in complex(&input).into_iter().enumerate() {
                    let (i, j) = (at / columns, at % columns);
                    let sum: Complex128 = (0..k).map(|l| u[i * k + l] * s[l] * v[j * k + l].conj()).sum();
                    assert!(i < rows && (sum - value).norm() < 1e-5, "{dtype}");
                }
                let alone = run("Svd", &input, Attrs::new().with("compute_uv", false));
                assert_eq!(alone[1].dims(), [0]);
                assert_eq!(complex(&alone[0]).len(), k);
            }
        }
    }

    #[test]
    fn eigenvectors_are_stretched() {
        for &dtype in FIELDS {
            let complex_type = if dtype == DataType::FLOAT || dtype == DataType::COMPLEX64 {
                DataType::COMPLEX64
            } else {
                DataType::COMPLEX128
            };
            for (op, input) in [
                ("SelfAdjointEigV2", positive(dtype)),
                ("Eig", sample(dtype, &[3, 3])),
            ] {
                let attrs = match op {
                    "Eig" => Attrs::new().with("Tout", complex_type),
                    _ => Attrs::new(),
                };
                let parts = run(op, &input, attrs);
                let (a, e, v) = (complex(&input), complex(&parts[0]), complex(&parts[1]));
                for (i, k) in (0..3).flat_map(|i| (0..3).map(move |k| (i, k))) {
                    let left: Complex128 = (0..3).map(|j| a[i * 3 + j] * v[j * 3 + k]).sum();
                    assert!((left - e[k] * v[i * 3 + k]).norm() < 2e-5, "{op} {dtype}");
                }
            }
        }
    }

    /// The reference gives these in this order.
    #[test]
    fn conjugate_pairs() {
        let input = crate::testing::t(&[3, 3], &[0.0f64, 1.0, 0.0, -1.0, 0.0, 0.0, 1.0, 2.0, 3.0]);
        let attrs = Attrs::new()
            .with("Tout", DataType::COMPLEX128)
            .with("compute_v", false);
        let values = complex(&run("Eig", &input, attrs)[0]);
        for wanted in [(0.0, 1.0), (0.0, -1.0), (3.0, 0.0)] {
            let wanted = Complex128::new(wanted.0, wanted.1);
            assert!(values.iter().any(|value| (value - wanted).norm() < 1e-12));
        }
        assert!(
            values
                .windows(2)
                .any(|pair| pair[0] == pair[1].conj() && pair[0].im > 0.0)
        );
    }
}
