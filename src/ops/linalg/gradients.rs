//! Gradients of factors, inverses and systems.

use crate::math::gradients::{scalar_like, shape_of, typed, unary};
use ff_op::{Attrs, GradientContext, OutputRef};
use ff_tensor::{DataType, Result, bail, status};

pub use crate::math::gradients::binary;

/// The product of matrices, each as it is or its adjoint.
pub fn multiply(
    context: &mut GradientContext,
    a: OutputRef,
    b: OutputRef,
    (adjoint_a, adjoint_b): (bool, bool),
) -> Result<OutputRef> {
    let attrs = typed(context.dtype(a))
        .with("adj_x", adjoint_a)
        .with("adj_y", adjoint_b);
    context.op("BatchMatMulV2", &[a, b], attrs)
}

/// The negative product.
fn multiply_negative(
    context: &mut GradientContext,
    a: OutputRef,
    b: OutputRef,
    adjoint: (bool, bool),
) -> Result<OutputRef> {
    let product = multiply(context, a, b, adjoint)?;
    unary(context, "Neg", product)
}

/// An Einstein sum.
pub fn einsum(context: &mut GradientContext, equation: &str, inputs: &[OutputRef]) -> Result<OutputRef> {
    let attrs = typed(context.dtype(inputs[0]))
        .with("N", inputs.len() as i64)
        .with("equation", equation);
    context.op("Einsum", inputs, attrs)
}

/// The conjugate transpose of each matrix.
pub fn adjoint(context: &mut GradientContext, a: OutputRef) -> Result<OutputRef> {
    let turned = einsum(context, "...ij->...ji", &[a])?;
    crate::math::gradients::conjugate(context, turned)
}

/// A matrix with the diagonal `values`.
pub fn diagonal(context: &mut GradientContext, values: OutputRef) -> Result<OutputRef> {
    unary(context, "MatrixDiag", values)
}

/// The main diagonals.
pub fn diagonal_part(context: &mut GradientContext, a: OutputRef) -> Result<OutputRef> {
    unary(context, "MatrixDiagPart", a)
}

/// The matrix with another main diagonal.
pub fn with_diagonal(context: &mut GradientContext, a: OutputRef, values: OutputRef) -> Result<OutputRef> {
    binary(context, "MatrixSetDiag", a, values)
}

/// Keeps diagonals below and above the main one; all where negative.
pub fn band(context: &mut GradientContext, a: OutputRef, lower: i32, upper: i32) -> Result<OutputRef> {
    let (low, high) = (context.int32(lower)?, context.int32(upper)?);
    let attrs = typed(context.dtype(a)).with("Tindex", DataType::INT32);
    context.op("MatrixBandPart", &[a, low, high], attrs)
}

/// The values with extents of 1 inserted at an axis.
pub fn expand(context: &mut GradientContext, a: OutputRef, axis: i32) -> Result<OutputRef> {
    let axis = context.int32(axis)?;
    let attrs = typed(context.dtype(a)).with("Tdim", DataType::INT32);
    context.op("ExpandDims", &[a, axis], attrs)
}

/// Twice expanded at the end: a number for each matrix as matrices of one element.
fn as_matrices(context: &mut GradientContext, a: OutputRef) -> Result<OutputRef> {
    let once = expand(context, a, -1)?;
    expand(context, once, -1)
}

/// Halved.
pub fn half(context: &mut GradientContext, a: OutputRef) -> Result<OutputRef> {
    let half = scalar_like(context, 0.5, a)?;
    binary(context, "Mul", a, half)
}

/// The solution of triangular systems.
pub fn triangular(
    context: &mut GradientContext,
    matrix: OutputRef,
    right: OutputRef,
    (lower, adjoint): (bool, bool),
) -> Result<OutputRef> {
    let attrs = typed(context.dtype(matrix))
        .with("lower", lower)
        .with("adjoint", adjoint);
    context.op("MatrixTriangularSolve", &[matrix, right], attrs)
}

/// The known number of rows and columns of a value's matrices. UNIMPLEMENTED where unknown.
pub fn extents(context: &GradientContext, a: OutputRef) -> Result<(i64, i64)> {
    let shape = context.host.shape(a);
    match (shape.dim(-2), shape.dim(-1)) {
        (rows, columns) if rows >= 0 && columns >= 0 => Ok((rows, columns)),
        _ => Err(status!(
            Unimplemented,
            "The gradient of {} needs known inner extents, got {shape}",
            context.node().op_name()
        )),
    }
}

/// Of Cholesky's factor: `L^-H middle L^-1`, made Hermitian.
pub fn of_cholesky(context: &mut GradientContext) -> Result<()> {
    let (incoming, factor) = (context.incoming_or_zeros(0)?, context.output(0));
    let middle = multiply(context, factor, incoming, (true, false))?;
    let main = diagonal_part(context, middle)?;
    let main = half(context, main)?;
    let middle = with_diagonal(context, middle, main)?;
    let middle = band(context, middle, -1, 0)?;
    // L^-H middle L^-1, the second step through the adjoint.
    let left = triangular(context, factor, middle, (true, true))?;
    let turned = adjoint(context, left)?;
    let turned = triangular(context, factor, turned, (true, true))?;
    let other = adjoint(context, turned)?;
    let sum = binary(context, "AddV2", turned, other)?;
    let gradient = half(context, sum)?;
    context.set(0, gradient);
    Ok(())
}

/// Of the inverse `X`: `-X^H dX X^H`.
pub fn of_inverse(context: &mut GradientContext) -> Result<()> {
    let (incoming, inverse) = (context.incoming_or_zeros(0)?, context.output(0));
    let gradient = if context.attrs().bool("adjoint")? {
        let right = multiply(context, incoming, inverse, (true, false))?;
        multiply_negative(context, inverse, right, (false, false))?
    } else {
        let right = multiply(context, incoming, inverse, (false, true))?;
        multiply_negative(context, inverse, right, (true, false))?
    };
    context.set(0, gradient);
    Ok(())
}

/// The adjoint of the inverse of the input.
fn inverse_adjoint(context: &mut GradientContext) -> Result<OutputRef> {
    let input = context.input(0)?;
    let attrs = typed(context.dtype(input)).with("adjoint", true);
    context.op("MatrixInverse", &[input], attrs)
}

/// Of the determinant: itself times the adjoint of the inverse.
pub fn of_determinant(context: &mut GradientContext) -> Result<()> {
    let (incoming, value) = (context.incoming_or_zeros(0)?, context.output(0));
    let scale = binary(context, "Mul", incoming, value)?;
    let (scale, inverse) = (as_matrices(context, scale)?, inverse_adjoint(context)?);
    let gradient = binary(context, "Mul", scale, inverse)?;
    context.set(0, gradient);
    Ok(())
}

/// Through the logarithm only: the sign is constant.
pub fn of_log_determinant(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(1)?;
    let (scale, inverse) = (as_matrices(context, incoming)?, inverse_adjoint(context)?);
    let gradient = binary(context, "Mul", scale, inverse)?;
    context.set(0, gradient);
    Ok(())
}

/// Solves the adjoint systems for what comes in; gives that, and the gradient by the matrix, as is.
fn solved(context: &mut GradientContext, op: &str, attrs: Attrs) -> Result<(OutputRef, OutputRef)> {
    let (incoming, matrix, x) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    );
    let is_adjoint = context.attrs().bool("adjoint")?;
    let by_right = context.op(op, &[matrix, incoming], attrs.with("adjoint", !is_adjoint))?;
    let by_matrix = if is_adjoint {
        multiply_negative(context, x, by_right, (false, true))?
    } else {
        multiply_negative(context, by_right, x, (false, true))?
    };
    Ok((by_right, by_matrix))
}

/// Of a system: a system with the adjoint.
pub fn of_solve(context: &mut GradientContext) -> Result<()> {
    let attrs = typed(context.input_type(0));
    let (by_right, by_matrix) = solved(context, "MatrixSolve", attrs)?;
    context.set(0, by_matrix);
    context.set(1, by_right);
    Ok(())
}

/// As [`of_solve`]; the gradient by the matrix is triangular too.
pub fn of_triangular_solve(context: &mut GradientContext) -> Result<()> {
    let lower = context.attrs().bool("lower")?;
    let attrs = typed(context.input_type(0)).with("lower", lower);
    let (by_right, by_matrix) = solved(context, "MatrixTriangularSolve", attrs)?;
    let by_matrix = if lower {
        band(context, by_matrix, -1, 0)?
    } else {
        band(context, by_matrix, 0, -1)?
    };
    set_batches(context, by_matrix, by_right)
}

/// Sums each gradient over the leading axes along which its input was broadcast.
fn set_batches(context: &mut GradientContext, by_matrix: OutputRef, by_right: OutputRef) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (a_shape, b_shape) = (context.host.shape(a), context.host.shape(b));
    let leading = |shape: &ff_tensor::PartialShape| shape.slice(0, Some(-2));
    if a_shape.rank().is_some()
        && leading(&a_shape).is_fully_known()
        && leading(&a_shape) == leading(&b_shape)
    {
        context.set(0, by_matrix);
        context.set(1, by_right);
        return Ok(());
    }
    let (a_dims, b_dims) = (shape_of(context, a)?, shape_of(context, b)?);
    let mut batches = Vec::new();
    for dims in [a_dims, b_dims] {
        let (begin, end, step) = (
            context.int32s(&[0])?,
            context.int32s(&[-2])?,
            context.int32s(&[1])?,
        );
        let attrs = typed(DataType::INT32).with("Index", DataType::INT32);
        batches.push(context.op("StridedSlice", &[dims, begin, end, step], attrs)?);
    }
    let axes = context.node_of("BroadcastGradientArgs", &batches, typed(DataType::INT32))?;
    for (index, gradient, dims) in [(0, by_matrix, a_dims), (1, by_right, b_dims)] {
        let axes = OutputRef {
            node: axes,
            index: index as u32,
        };
        let attrs = typed(context.dtype(gradient))
            .with("Tidx", DataType::INT32)
            .with("keep_dims", false);
        let sum = context.op("Sum", &[gradient, axes], attrs)?;
        let attrs = typed(context.dtype(gradient)).with("Tshape", DataType::INT32);
        let shaped = context.op("Reshape", &[sum, dims], attrs)?;
        context.set(index, shaped);
    }
    Ok(())
}

/// As [`of_solve`]; the gradient by the matrix is packed into bands.
pub fn of_banded_solve(context: &mut GradientContext) -> Result<()> {
    let lower = context.attrs().bool("lower")?;
    let (bands, matrix) = (extents(context, context.input(0)?)?.0 as i32, context.input(0)?);
    let attrs = typed(context.input_type(0)).with("lower", lower);
    let (by_right, by_matrix) = solved(context, "BandedTriangularSolve", attrs)?;
    let range = if lower { [1 - bands, 0] } else { [0, bands - 1] };
    let (range, zero) = (context.int32s(&range)?, scalar_like(context, 0.0, matrix)?);
    let attrs = typed(context.dtype(matrix)).with("align", "LEFT_RIGHT");
    let by_matrix = context.op("MatrixDiagPartV3", &[by_matrix, range, zero], attrs)?;
    set_batches(context, by_matrix, by_right)
}

/// Of the fast method: through the normal equations. The shape says which of both they are.
pub fn of_least_squares(context: &mut GradientContext) -> Result<()> {
    if !context.attrs().bool("fast")? {
        bail!(Unimplemented, "Gradient not defined for fast=False");
    }
    let (incoming, a, b) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let (x, regularizer) = (context.output(0), context.input(2)?);
    let (rows, columns) = extents(context, a)?;
    let tall = rows >= columns;
    let gram = multiply(context, a, a, if tall { (true, false) } else { (false, true) })?;
    let attrs = Attrs::new()
        .with("SrcT", DataType::DOUBLE)
        .with("DstT", context.dtype(a));
    let regularizer = context.op("Cast", &[regularizer], attrs)?;
    let main = diagonal_part(context, gram)?;
    let main = binary(context, "AddV2", main, regularizer)?;
    let gram = with_diagonal(context, gram, main)?;
    let solve = |context: &mut GradientContext, right: OutputRef| {
        let attrs = typed(context.dtype(right)).with("adjoint", false);
        context.op("MatrixSolve", &[gram, right], attrs)
    };
    let (by_a, by_b) = if tall {
        let z = solve(context, incoming)?;
        let xz = multiply(context, x, z, (false, true))?;
        let zx = adjoint(context, xz)?;
        let both = binary(context, "AddV2", xz, zx)?;
        let (first, second) = (
            multiply(context, a, both, (false, false))?,
            multiply(context, b, z, (false, true))?,
        );
        (
            binary(context, "Sub", second, first)?,
            multiply(context, a, z, (false, false))?,
        )
    } else {
        let product = multiply(context, a, incoming, (false, false))?;
        let (by_b, solved) = (solve(context, product)?, solve(context, b)?);
        let first = multiply(context, solved, a, (true, false))?;
        let first = multiply_negative(context, by_b, first, (false, false))?;
        let back = multiply(context, a, by_b, (true, false))?;
        let rest = binary(context, "Sub", incoming, back)?;
        let second = multiply(context, solved, rest, (false, true))?;
        (binary(context, "AddV2", first, second)?, by_b)
    };
    context.set(0, by_a);
    context.set(1, by_b);
    Ok(())
}

/// Solves `X R^H + R^H X = dR` for the root `R`, as one system for all elements of `X`.
pub fn of_square_root(context: &mut GradientContext) -> Result<()> {
    let (incoming, root) = (context.incoming_or_zeros(0)?, context.output(0));
    let n = extents(context, root)?.0 as i32;
    let ones = context.constant(crate::math::gradients::scalar_of(context.dtype(root), 1.0)?)?;
    let count = context.int32s(&[n])?;
    let attrs = typed(context.dtype(root)).with("index_type", DataType::INT32);
    let ones = context.op("Fill", &[count, ones], attrs)?;
    let identity = diagonal(context, ones)?;
    let (turned, conjugate) = (
        adjoint(context, root)?,
        crate::math::gradients::conjugate(context, root)?,
    );
    let first = einsum(context, "ij,...kl->...ikjl", &[identity, conjugate])?;
    let second = einsum(context, "...ij,kl->...ikjl", &[turned, identity])?;
    let sum = binary(context, "AddV2", first, second)?;
    let dims = shape_of(context, root)?;
    let (begin, end, step) = (
        context.int32s(&[0])?,
        context.int32s(&[-2])?,
        context.int32s(&[1])?,
    );
    let attrs = typed(DataType::INT32).with("Index", DataType::INT32);
    let leading = context.op("StridedSlice", &[dims, begin, end, step], attrs)?;
    let reshape = |context: &mut GradientContext, value: OutputRef, last: &[i32]| {
        let (last, zero) = (context.int32s(last)?, context.int32(0)?);
        let attrs = typed(DataType::INT32)
            .with("N", 2i64)
            .with("Tidx", DataType::INT32);
        let dims = context.op("ConcatV2", &[leading, last, zero], attrs)?;
        let attrs = typed(context.dtype(value)).with("Tshape", DataType::INT32);
        context.op("Reshape", &[value, dims], attrs)
    };
    let (sum, right) = (
        reshape(context, sum, &[n * n, n * n])?,
        reshape(context, incoming, &[n * n, 1])?,
    );
    let attrs = typed(context.dtype(root)).with("adjoint", false);
    let solved = context.op("MatrixSolve", &[sum, right], attrs)?;
    let gradient = reshape(context, solved, &[n, n])?;
    context.set(0, gradient);
    Ok(())
}

/// Rows moved up by one (or down), with zeros for the last (or first).
fn shift_rows(context: &mut GradientContext, a: OutputRef, up: bool) -> Result<OutputRef> {
    let one = context.int32(if up { -1 } else { 1 })?;
    let axis = context.int32(-2)?;
    let attrs = typed(context.dtype(a))
        .with("Tshift", DataType::INT32)
        .with("Taxis", DataType::INT32);
    let rolled = context.op("Roll", &[a, one, axis], attrs)?;
    let rows = extents(context, a)?.0;
    let mut mask = crate::wide::filled(rows.max(0) as usize, 1.0f64)?;
    if let Some(edge) = if up { mask.last_mut() } else { mask.first_mut() } {
        *edge = 0.0;
    }
    let mask = ff_tensor::Tensor::from_slice(ff_tensor::Shape::new(&[rows, 1])?, &mask)?;
    let mask = context.constant(mask)?;
    let attrs = Attrs::new()
        .with("SrcT", DataType::DOUBLE)
        .with("DstT", context.dtype(a));
    let mask = context.op("Cast", &[mask], attrs)?;
    binary(context, "Mul", rolled, mask)
}

/// The sum along rows of a product, as a row.
fn row_sums(context: &mut GradientContext, a: OutputRef, b: OutputRef) -> Result<OutputRef> {
    let product = binary(context, "Mul", a, b)?;
    let axis = context.int32(-1)?;
    let attrs = typed(context.dtype(product))
        .with("Tidx", DataType::INT32)
        .with("keep_dims", false);
    let sum = context.op("Sum", &[product, axis], attrs)?;
    expand(context, sum, -2)
}

/// Of a product with three diagonals.
pub fn of_tridiagonal_product(context: &mut GradientContext) -> Result<()> {
    let (incoming, right) = (context.incoming_or_zeros(0)?, context.input(3)?);
    let right = crate::math::gradients::conjugate(context, right)?;
    let (next, previous) = (
        shift_rows(context, right, true)?,
        shift_rows(context, right, false)?,
    );
    for (index, factor) in [(0, next), (1, right), (2, previous)] {
        let gradient = row_sums(context, factor, incoming)?;
        context.set(index, gradient);
    }
    let mut parts = Vec::new();
    for index in 0..3 {
        let diagonal = context.input(index)?;
        let column = adjoint(context, diagonal)?;
        parts.push(binary(context, "Mul", column, incoming)?);
    }
    let (first, last) = (
        shift_rows(context, parts[0], false)?,
        shift_rows(context, parts[2], true)?,
    );
    let sum = binary(context, "AddV2", first, parts[1])?;
    let gradient = binary(context, "AddV2", sum, last)?;
    context.set(3, gradient);
    Ok(())
}

/// One of the three diagonals, as a column.
fn diagonal_column(context: &mut GradientContext, diagonals: OutputRef, which: i32) -> Result<OutputRef> {
    let (which, axis) = (context.int32s(&[which])?, context.int32(-2)?);
    let attrs = Attrs::new()
        .with("Tparams", context.dtype(diagonals))
        .with("Tindices", DataType::INT32)
        .with("Taxis", DataType::INT32);
    let row = context.op("GatherV2", &[diagonals, which, axis], attrs)?;
    adjoint(context, row)
}

/// Solves with the adjoint matrix; the gradient by the diagonals are three diagonals of a product.
pub fn of_tridiagonal_solve(context: &mut GradientContext) -> Result<()> {
    let (incoming, diagonals, x) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    );
    let dtype = context.dtype(diagonals);
    let (above, main) = (
        diagonal_column(context, diagonals, 0)?,
        diagonal_column(context, diagonals, 1)?,
    );
    let below = diagonal_column(context, diagonals, 2)?;
    let (new_above, new_below) = (
        shift_rows(context, below, true)?,
        shift_rows(context, above, false)?,
    );
    let stack = |context: &mut GradientContext, parts: [OutputRef; 3], axis: i32| {
        let axis = context.int32(axis)?;
        let attrs = typed(dtype).with("N", 3i64).with("Tidx", DataType::INT32);
        context.op("ConcatV2", &[parts[0], parts[1], parts[2], axis], attrs)
    };
    let columns = stack(context, [new_above, main, new_below], -1)?;
    let turned = einsum(context, "...ij->...ji", &[columns])?;
    let attrs = context.attrs().clone();
    let by_right = context.op("TridiagonalSolve", &[turned, incoming], attrs)?;
    let x = crate::math::gradients::conjugate(context, x)?;
    let (next, previous) = (shift_rows(context, x, true)?, shift_rows(context, x, false)?);
    let mut rows = Vec::new();
    for factor in [next, x, previous] {
        let sums = row_sums(context, by_right, factor)?;
        rows.push(unary(context, "Neg", sums)?);
    }
    let by_diagonals = stack(context, [rows[0], rows[1], rows[2]], -2)?;
    context.set(0, by_diagonals);
    context.set(1, by_right);
    Ok(())
}
