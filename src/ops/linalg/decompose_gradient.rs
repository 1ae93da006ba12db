//! Gradients of orthogonal factors, singular values and eigenvalues.

use super::gradients::{
    adjoint, band, binary, diagonal, diagonal_part, expand, extents, half, multiply, triangular,
    with_diagonal,
};
use crate::math::gradients::{conjugate, scalar_like, typed, unary};
use ff_op::{Attrs, GradientContext, OutputRef};
use ff_tensor::{DataType, Result, bail};

/// `x / (x^2 + 1e-20)`: the reciprocal, but 0 at 0.
fn safe_reciprocal(context: &mut GradientContext, x: OutputRef) -> Result<OutputRef> {
    let (square, least) = (binary(context, "Mul", x, x)?, scalar_like(context, 1e-20, x)?);
    let sum = binary(context, "AddV2", square, least)?;
    binary(context, "RealDiv", x, sum)
}

/// The matrix of `1 / (e_j - e_i)`, with zeros on its diagonal.
fn gaps(context: &mut GradientContext, e: OutputRef) -> Result<OutputRef> {
    let (across, down) = (expand(context, e, -2)?, expand(context, e, -1)?);
    let differences = binary(context, "Sub", across, down)?;
    let reciprocals = safe_reciprocal(context, differences)?;
    let zeros = unary(context, "ZerosLike", e)?;
    with_diagonal(context, reciprocals, zeros)
}

/// The real part, in the type of the value.
fn real_part(context: &mut GradientContext, a: OutputRef) -> Result<OutputRef> {
    let complex = context.dtype(a);
    if !complex.is_complex() {
        return Ok(a);
    }
    let real = if complex == DataType::COMPLEX64 {
        DataType::FLOAT
    } else {
        DataType::DOUBLE
    };
    let attrs = Attrs::new().with("T", complex).with("Tout", real);
    let part = context.op("Real", &[a], attrs)?;
    crate::math::complex::whole(context, part, true)
}

/// A plain product of two matrices.
fn product(context: &mut GradientContext, a: OutputRef, b: OutputRef) -> Result<OutputRef> {
    multiply(context, a, b, (false, false))
}

/// Columns from `begin` to `end`.
fn columns(context: &mut GradientContext, a: OutputRef, begin: i64, end: i64) -> Result<OutputRef> {
    let indices: Vec<i32> = (begin as i32..end as i32).collect();
    let (indices, axis) = (context.int32s(&indices)?, context.int32(-1)?);
    let attrs = Attrs::new()
        .with("Tparams", context.dtype(a))
        .with("Tindices", DataType::INT32)
        .with("Taxis", DataType::INT32);
    context.op("GatherV2", &[a, indices, axis], attrs)
}

/// `x r^-H` for an upper triangular `r`.
fn divide_right(context: &mut GradientContext, x: OutputRef, r: OutputRef) -> Result<OutputRef> {
    let turned = adjoint(context, x)?;
    let solved = triangular(context, r, turned, (false, false))?;
    adjoint(context, solved)
}

/// With at least as many rows as columns.
fn qr_tall(
    context: &mut GradientContext,
    (q, r): (OutputRef, OutputRef),
    (dq, dr): (OutputRef, OutputRef),
) -> Result<OutputRef> {
    let qdq = multiply(context, q, dq, (true, false))?;
    let qdq_turned = adjoint(context, qdq)?;
    let rdr = multiply(context, r, dr, (false, true))?;
    let rdr_turned = adjoint(context, rdr)?;
    let (first, second) = (
        binary(context, "Sub", qdq, qdq_turned)?,
        binary(context, "Sub", rdr, rdr_turned)?,
    );
    let sum = binary(context, "AddV2", first, second)?;
    let lower = band(context, sum, -1, 0)?;
    let divided = divide_right(context, lower, r)?;
    let inner = binary(context, "AddV2", dr, divided)?;
    let in_space = product(context, q, inner)?;
    let projected = product(context, q, qdq)?;
    let rest = binary(context, "Sub", dq, projected)?;
    let outside = divide_right(context, rest, r)?;
    let gradient = binary(context, "AddV2", in_space, outside)?;
    if !context.dtype(q).is_complex() {
        return Ok(gradient);
    }
    // The phases of R's diagonal are fixed, which takes the imaginary part of the diagonal away.
    let both = binary(context, "Sub", rdr, qdq_turned)?;
    let main = diagonal_part(context, both)?;
    let real = real_part(context, main)?;
    let imaginary = binary(context, "Sub", main, real)?;
    let correction = diagonal(context, imaginary)?;
    let turned = multiply(context, q, correction, (false, true))?;
    let correction = divide_right(context, turned, r)?;
    binary(context, "AddV2", gradient, correction)
}

/// Of both factors.
pub fn of_qr(context: &mut GradientContext) -> Result<()> {
    let (a, q, r) = (context.input(0)?, context.output(0), context.output(1));
    let (dq, dr) = (context.incoming_or_zeros(0)?, context.incoming_or_zeros(1)?);
    let (rows, width) = extents(context, a)?;
    if rows > width && context.attrs().bool("full_matrices")? {
        bail!(
            Unimplemented,
            "QrGrad not implemented when nrows > ncols and full_matrices is true."
        );
    }
    if rows >= width {
        let gradient = qr_tall(context, (q, r), (dq, dr))?;
        context.set(0, gradient);
        return Ok(());
    }
    let (rest, square) = (columns(context, a, rows, width)?, columns(context, r, 0, rows)?);
    let (d_rest, d_square) = (columns(context, dr, rows, width)?, columns(context, dr, 0, rows)?);
    let by_rest = product(context, q, d_rest)?;
    let more = multiply(context, rest, d_rest, (false, true))?;
    let dq = binary(context, "AddV2", dq, more)?;
    let by_square = qr_tall(context, (q, square), (dq, d_square))?;
    let axis = context.int32(-1)?;
    let attrs = typed(context.dtype(a))
        .with("N", 2i64)
        .with("Tidx", DataType::INT32);
    let gradient = context.op("ConcatV2", &[by_square, by_rest, axis], attrs)?;
    context.set(0, gradient);
    Ok(())
}

/// `v inner v^H`.
fn around(context: &mut GradientContext, v: OutputRef, inner: OutputRef) -> Result<OutputRef> {
    let right = multiply(context, inner, v, (false, true))?;
    product(context, v, right)
}

/// Of eigenvalues and eigenvectors of Hermitian matrices: on their lower triangle, which is all that is read.
pub fn of_self_adjoint(context: &mut GradientContext) -> Result<()> {
    let de = context.incoming_or_zeros(0)?;
    let on_diagonal = diagonal(context, de)?;
    let full = if context.attrs().bool("compute_v")? {
        let (e, v, dv) = (
            context.output(0),
            context.output(1),
            context.incoming_or_zeros(1)?,
        );
        let (gaps, inner) = (gaps(context, e)?, multiply(context, v, dv, (true, false))?);
        let scaled = binary(context, "Mul", gaps, inner)?;
        let inner = binary(context, "AddV2", on_diagonal, scaled)?;
        around(context, v, inner)?
    } else {
        let input = context.input(0)?;
        let attrs = typed(context.dtype(input)).with("compute_v", true);
        let node = context.node_of("SelfAdjointEigV2", &[input], attrs)?;
        around(context, OutputRef { node, index: 1 }, on_diagonal)?
    };
    let turned = adjoint(context, full)?;
    let sum = binary(context, "AddV2", full, turned)?;
    let lower = band(context, sum, -1, 0)?;
    let main = diagonal_part(context, lower)?;
    let main = half(context, main)?;
    let gradient = with_diagonal(context, lower, main)?;
    context.set(0, gradient);
    Ok(())
}

/// `V^-H middle V^H` for eigenvectors `V`.
fn within(context: &mut GradientContext, v: OutputRef, middle: OutputRef) -> Result<OutputRef> {
    let turned = adjoint(context, v)?;
    let right = product(context, middle, turned)?;
    let attrs = typed(context.dtype(v)).with("adjoint", false);
    context.op("MatrixSolve", &[turned, right], attrs)
}

/// Of eigenvalues and eigenvectors of any matrix.
pub fn of_eig(context: &mut GradientContext) -> Result<()> {
    let (input, de) = (context.input(0)?, context.incoming_or_zeros(0)?);
    let on_diagonal = diagonal(context, de)?;
    let (own, complex) = (context.dtype(input), context.dtype(de));
    let full = if context.attrs().bool("compute_v")? {
        let (e, v, dv) = (
            context.output(0),
            context.output(1),
            context.incoming_or_zeros(1)?,
        );
        let gaps = gaps(context, e)?;
        let gaps = conjugate(context, gaps)?;
        let (vdv, vv) = (
            multiply(context, v, dv, (true, false))?,
            multiply(context, v, v, (true, false))?,
        );
        let main = diagonal_part(context, vdv)?;
        let main = real_part(context, main)?;
        let main = diagonal(context, main)?;
        let along = product(context, vv, main)?;
        let across = binary(context, "Sub", vdv, along)?;
        let scaled = binary(context, "Mul", gaps, across)?;
        let middle = binary(context, "AddV2", on_diagonal, scaled)?;
        within(context, v, middle)?
    } else {
        let attrs = typed(own).with("Tout", complex).with("compute_v", true);
        let node = context.node_of("Eig", &[input], attrs)?;
        within(context, OutputRef { node, index: 1 }, on_diagonal)?
    };
    let attrs = Attrs::new().with("SrcT", complex).with("DstT", own);
    let gradient = if own == complex {
        full
    } else {
        context.op("Cast", &[full], attrs)?
    };
    context.set(0, gradient);
    Ok(())
}

/// `f * (x^H dx)` plus its adjoint.
fn turned_part(
    context: &mut GradientContext,
    f: OutputRef,
    vectors: OutputRef,
    incoming: OutputRef,
) -> Result<(OutputRef, OutputRef)> {
    let inner = multiply(context, vectors, incoming, (true, false))?;
    let scaled = binary(context, "Mul", f, inner)?;
    let turned = adjoint(context, scaled)?;
    Ok((binary(context, "AddV2", scaled, turned)?, inner))
}

/// Of singular values and vectors. Complete bases only of square matrices.
pub fn of_svd(context: &mut GradientContext) -> Result<()> {
    let (input, ds) = (context.input(0)?, context.incoming_or_zeros(0)?);
    let ds_diagonal = diagonal(context, ds)?;
    if !context.attrs().bool("compute_uv")? {
        let attrs = typed(context.dtype(input))
            .with("compute_uv", true)
            .with("full_matrices", false);
        let node = context.node_of("Svd", &[input], attrs)?;
        let right = multiply(context, ds_diagonal, OutputRef { node, index: 2 }, (false, true))?;
        let gradient = product(context, OutputRef { node, index: 1 }, right)?;
        context.set(0, gradient);
        return Ok(());
    }
    let (rows, width) = extents(context, input)?;
    if rows != width && context.attrs().bool("full_matrices")? {
        bail!(
            Unimplemented,
            "svd gradient is not implemented for complete bases of matrices that are not square"
        );
    }
    let (s, mut u, mut v) = (context.output(0), context.output(1), context.output(2));
    let (mut du, mut dv) = (context.incoming_or_zeros(1)?, context.incoming_or_zeros(2)?);
    // Of the adjoint where there are more rows than columns.
    let turned = rows > width;
    if turned {
        (u, v, du, dv) = (v, u, dv, du);
    }
    let gradient = svd_wide(context, (s, u, v), (ds_diagonal, du, dv), rows != width)?;
    let gradient = if turned {
        adjoint(context, gradient)?
    } else {
        gradient
    };
    context.set(0, gradient);
    Ok(())
}

/// With at most as many rows as columns; `thin` where there are fewer.
fn svd_wide(
    context: &mut GradientContext,
    (s, u, v): (OutputRef, OutputRef, OutputRef),
    (ds, du, dv): (OutputRef, OutputRef, OutputRef),
    thin: bool,
) -> Result<OutputRef> {
    let squares = unary(context, "Square", s)?;
    let f = gaps(context, squares)?;
    let s_matrix = diagonal(context, s)?;
    let inverse = safe_reciprocal(context, s)?;
    let inverse = diagonal(context, inverse)?;
    let (by_u, _) = turned_part(context, f, u, du)?;
    let (by_v, v_dv) = turned_part(context, f, v, dv)?;
    let (first, second) = (
        product(context, by_u, s_matrix)?,
        product(context, s_matrix, by_v)?,
    );
    let sum = binary(context, "AddV2", first, second)?;
    let inner = binary(context, "AddV2", ds, sum)?;
    let right = multiply(context, inner, v, (false, true))?;
    let mut gradient = product(context, u, right)?;
    if thin {
        let dv_turned = adjoint(context, dv)?;
        let along = product(context, dv_turned, v)?;
        let along = multiply(context, along, v, (false, true))?;
        let rest = binary(context, "Sub", dv_turned, along)?;
        let scaled = product(context, u, inverse)?;
        let more = product(context, scaled, rest)?;
        gradient = binary(context, "AddV2", gradient, more)?;
    }
    if context.dtype(u).is_complex() {
        // Phases: half the difference of the diagonal of V^H dV and its conjugate.
        let main = diagonal_part(context, v_dv)?;
        let other = conjugate(context, main)?;
        let difference = binary(context, "Sub", other, main)?;
        let difference = half(context, difference)?;
        let difference = diagonal(context, difference)?;
        let middle = product(context, inverse, difference)?;
        let right = multiply(context, middle, v, (false, true))?;
        let more = product(context, u, right)?;
        gradient = binary(context, "AddV2", gradient, more)?;
    }
    Ok(gradient)
}
