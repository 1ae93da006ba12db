//! Products of sparse matrices by compressed rows, with dense matrices and with each other.

use super::csr::{Csr, input_shape, set_output_shape, with_batch};
use super::csr_convert::{conjugated, transposed};
use crate::linalg::{Field, match_field};
use crate::wide::{reserve, reserved, zeros};
use ff_op::{Attrs, Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, dim, ensure};
use std::borrow::Cow;

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseMatrixMatMul",
        shape: with_dense_shape,
        kernels: &[Kernel::native(
            |context| match_field!(context.output_type(0), T => with_dense::<T>(context)),
        )],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "SparseMatrixSparseMatMul",
        shape: with_sparse_shape,
        kernels: &[Kernel::native(|context| {
            let dtype = context.attrs().dtype("type")?;
            match_field!(dtype, T => with_sparse::<T>(context, dtype))
        })],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

/// Whether a side is transposed, and whether it is conjugated. INVALID_ARGUMENT when attributes say both ways.
fn turn(attrs: &Attrs, side: &str) -> Result<(bool, bool)> {
    let transpose = attrs.bool(&format!("transpose_{side}"))?;
    let adjoint = attrs.bool(&format!("adjoint_{side}"))?;
    ensure!(
        !(transpose && adjoint),
        InvalidArgument,
        "Only one of adjoint_{side} and transpose_{side} may be true."
    );
    Ok((transpose || adjoint, adjoint))
}

/// Rows and columns of a product, and its batch.
fn product_shape(context: &ShapeContext, a: &PartialShape, b: &PartialShape) -> Result<PartialShape> {
    let (a_turned, b_turned) = (turn(context.attrs(), "a")?.0, turn(context.attrs(), "b")?.0);
    let axis = |turned: bool, axis: i64| if turned { -3 - axis } else { axis };
    dim::merge(a.dim(axis(a_turned, -1)), b.dim(axis(b_turned, -2)))?;
    let (rows, columns) = (a.dim(axis(a_turned, -2)), b.dim(axis(b_turned, -1)));
    if let (Some(a_rank), Some(b_rank)) = (a.rank(), b.rank()) {
        a.slice(0, Some(a_rank as i64 - 2))
            .merge(&b.slice(0, Some(b_rank as i64 - 2)))?;
    }
    Ok(with_batch(a, rows, columns))
}

fn with_dense_shape(context: &mut ShapeContext) -> Result<()> {
    let a = input_shape(context, 0)?;
    let b = context.input_with_rank_at_least(1, 2)?.with_rank_at_most(3)?;
    turn(context.attrs(), "a")?;
    turn(context.attrs(), "b")?;
    let Some((_, a)) = a else { return Ok(()) };
    let mut product = product_shape(context, &a, &b)?;
    if context.attrs().bool("transpose_output")? {
        product = with_batch(&product, product.dim(-1), product.dim(-2));
    }
    context.set_output(0, product);
    Ok(())
}

fn with_sparse_shape(context: &mut ShapeContext) -> Result<()> {
    let (a, b) = (input_shape(context, 0)?, input_shape(context, 1)?);
    turn(context.attrs(), "a")?;
    turn(context.attrs(), "b")?;
    if let (Some((dtype, a)), Some((_, b))) = (a, b) {
        let product = product_shape(context, &a, &b)?;
        set_output_shape(context, dtype, product);
    }
    Ok(())
}

/// A matrix as an attribute wants it turned.
fn turned<'a>(matrix: &'a Csr, attrs: &Attrs, side: &str) -> Result<Cow<'a, Csr>> {
    Ok(match turn(attrs, side)? {
        (false, _) => Cow::Borrowed(matrix),
        (true, conjugate) => Cow::Owned(transposed(matrix, conjugate)?),
    })
}

fn check_fit(a: &Csr, b_dims: &[i64], b_rows: usize) -> Result<()> {
    ensure!(
        a.dims.len() == b_dims.len(),
        InvalidArgument,
        "Ranks of a and b must match, saw: {} vs. {}.",
        a.dims.len(),
        b_dims.len()
    );
    ensure!(
        a.dims.len() == 2 || a.dims[0] == b_dims[0],
        InvalidArgument,
        "Batch sizes of a and b must match, saw: {} vs. {}.",
        a.dims[0],
        b_dims[0]
    );
    ensure!(
        a.width() == b_rows,
        InvalidArgument,
        "Inner product dimensions of A and B do not agree.  Shapes are: {:?} vs. {b_dims:?}",
        a.dims
    );
    Ok(())
}

fn with_dense<T: Field>(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let dtype = context.output_type(0);
    let a = turned(Csr::at(context, 0, Some(dtype))?, attrs, "a")?;
    let b = context.input(1)?;
    let (b_turned, b_conjugate) = turn(attrs, "b")?;
    let rank = b.rank();
    let (mut b_rows, mut columns) = (b.dims()[rank - 2] as usize, b.dims()[rank - 1] as usize);
    if b_turned {
        std::mem::swap(&mut b_rows, &mut columns);
    }
    check_fit(&a, b.dims(), b_rows)?;
    let output_turned = attrs.bool("transpose_output")?;
    let dims = match output_turned {
        true => a.dims_with(columns, a.rows()),
        false => a.dims_with(a.rows(), columns),
    };
    let shape = Shape::new(&dims)?;
    let (values, others) = (T::elements(&a.values)?, T::elements(b)?);
    let mut products: Vec<T> = zeros(shape.num_elements())?;
    let (b_row, b_column) = if b_turned { (1, b_rows) } else { (columns, 1) };
    let (row_step, column_step) = if output_turned {
        (1, a.rows())
    } else {
        (columns, 1)
    };
    for number in 0..a.batch() {
        context.host().cancellation().check()?;
        let part = a.part(number);
        let own = &mut products[number * a.rows() * columns..(number + 1) * a.rows() * columns];
        let others = &others[number * b_rows * columns..(number + 1) * b_rows * columns];
        for row in 0..part.row_count() {
            for at in part.row(row) {
                let (value, inner) = (values[part.first + at], part.columns[at] as usize);
                for column in 0..columns {
                    let other = others[inner * b_row + column * b_column];
                    let other = if b_conjugate { other.conj() } else { other };
                    own[row * row_step + column * column_step] += value * other;
                }
            }
        }
    }
    let mut product = T::tensor(dtype, shape, &products)?;
    if attrs.bool("conjugate_output")? {
        conjugated(&mut product)?;
    }
    context.set_output(0, product)
}

fn with_sparse<T: Field>(context: &mut KernelContext, dtype: DataType) -> Result<()> {
    let attrs = context.attrs();
    let a = turned(Csr::at(context, 0, Some(dtype))?, attrs, "a")?;
    let b = turned(Csr::at(context, 1, Some(dtype))?, attrs, "b")?;
    check_fit(&a, &b.dims, b.rows())?;
    let (a_values, b_values) = (T::elements(&a.values)?, T::elements(&b.values)?);
    let mut sums: Vec<T> = zeros(b.width())?;
    let mut seen: Vec<bool> = zeros(b.width())?;
    let (mut columns, mut values): (Vec<i32>, Vec<T>) = (Vec::new(), Vec::new());
    let mut row_starts = reserved(a.batch() * (a.rows() + 1))?;
    let mut batch_starts = reserved(a.batch() + 1)?;
    batch_starts.push(0);
    for number in 0..a.batch() {
        let (part, other) = (a.part(number), b.part(number));
        let first = columns.len();
        row_starts.push(0);
        for row in 0..part.row_count() {
            if row % 1024 == 0 {
                context.host().cancellation().check()?;
            }
            let start = columns.len();
            for at in part.row(row) {
                let value = a_values[part.first + at];
                for inner in other.row(part.columns[at] as usize) {
                    let column = other.columns[inner];
                    if !std::mem::replace(&mut seen[column as usize], true) {
                        reserve(&mut columns, 1)?;
                        columns.push(column);
                    }
                    sums[column as usize] += value * b_values[other.first + inner];
                }
            }
            columns[start..].sort_unstable();
            reserve(&mut values, columns.len() - start)?;
            for &column in &columns[start..] {
                values.push(std::mem::take(&mut sums[column as usize]));
                seen[column as usize] = false;
            }
            ensure!(
                columns.len() <= i32::MAX as usize,
                ResourceExhausted,
                "OOM: a product of more than 2^31 values"
            );
            row_starts.push((columns.len() - first) as i32);
        }
        batch_starts.push(columns.len() as i32);
    }
    let values = T::tensor(dtype, Shape::vector(values.len()), &values)?;
    let dims = a.dims_with(a.rows(), b.width());
    let product = Csr {
        dims,
        batch_starts,
        row_starts,
        columns,
        values,
    };
    product.give(context)
}
