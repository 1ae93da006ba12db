//! The Cholesky factor of sparse symmetric matrices, and an order of rows that keeps it sparse.
//!
//! The order is by least degree: the row with the fewest neighbours is taken out and its neighbours become neighbours of each
//! other. The reference's approximates degrees, so that rows of equal degree may come in another order.

use super::csr::{Csr, Part, input_shape, set_output_shape};
use crate::linalg::{Field, match_field};
use crate::wide::{collected, filled, reserve, reserved, zeros};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};
use std::collections::BTreeSet;

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseMatrixOrderingAMD",
        shape: |context| {
            if let Some((_, shape)) = square(context)? {
                let rank = shape.rank().unwrap_or(2) as i64;
                context.set_output(0, shape.slice(0, Some(rank - 1)));
            }
            Ok(())
        },
        kernels: &[Kernel::native(orders)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "SparseMatrixSparseCholesky",
        shape: factor_shape,
        kernels: &[Kernel::native(|context| {
            let dtype = context.attrs().dtype("type")?;
            match_field!(dtype, T => factors::<T>(context, dtype))
        })],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

fn square(context: &ShapeContext) -> Result<Option<(DataType, PartialShape)>> {
    let found = input_shape(context, 0)?;
    if let Some((_, shape)) = &found {
        dim::merge(shape.dim(-2), shape.dim(-1))?;
    }
    Ok(found)
}

fn factor_shape(context: &mut ShapeContext) -> Result<()> {
    let found = square(context)?;
    let order = context.input_with_rank_at_least(1, 1)?.with_rank_at_most(2)?;
    let Some((dtype, shape)) = found else {
        return Ok(());
    };
    ensure!(
        order.rank().is_some(),
        InvalidArgument,
        "permutation has an unknown rank."
    );
    dim::merge(shape.dim(-1), order.dim(-1))?;
    set_output_shape(context, dtype, shape);
    Ok(())
}

fn check_square(matrix: &Csr) -> Result<()> {
    ensure!(
        matrix.rows() == matrix.width(),
        InvalidArgument,
        "sparse matrix must be square; got: {} != {}",
        matrix.rows(),
        matrix.width()
    );
    Ok(())
}

fn orders(context: &mut KernelContext) -> Result<()> {
    let matrix = Csr::at(context, 0, None)?;
    check_square(matrix)?;
    let mut all = reserved(matrix.batch() * matrix.rows())?;
    for number in 0..matrix.batch() {
        all.extend(order(context, &matrix.part(number))?);
    }
    let rank = matrix.dims.len();
    let shape = Shape::new(&matrix.dims[..rank - 1])?;
    context.set_output(0, Tensor::from_slice(shape, &all)?)
}

/// The rows of a symmetric matrix, always one of least degree next.
fn order(context: &KernelContext, part: &Part) -> Result<Vec<i32>> {
    let count = part.row_count();
    let mut neighbours: Vec<BTreeSet<u32>> = zeros(count)?;
    for row in 0..count {
        for at in part.row(row) {
            let column = part.columns[at] as usize;
            if column != row {
                neighbours[row].insert(column as u32);
                neighbours[column].insert(row as u32);
            }
        }
    }
    let mut by_degree: BTreeSet<(usize, u32)> = BTreeSet::new();
    by_degree.extend((0..count).map(|row| (neighbours[row].len(), row as u32)));
    let mut order = reserved(count)?;
    while let Some((_, row)) = by_degree.pop_first() {
        context.host().cancellation().check()?;
        order.push(row as i32);
        let own = std::mem::take(&mut neighbours[row as usize]);
        for &one in &own {
            let theirs = &mut neighbours[one as usize];
            by_degree.remove(&(theirs.len(), one));
            theirs.remove(&row);
            theirs.extend(own.iter().filter(|&&other| other != one));
            by_degree.insert((theirs.len(), one));
        }
    }
    Ok(order)
}

/// A lower triangular matrix, row by row, the diagonal last in each.
struct Rows<T> {
    starts: Vec<usize>,
    columns: Vec<i32>,
    values: Vec<T>,
}

impl<T> Rows<T> {
    fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }
}

/// The entries below the diagonal and on it of the matrix whose row `i` is row `order[i]` of a symmetric one, of which the
/// lower triangle is read.
fn permuted<T: Field>(part: &Part, values: &[T], order: &[i32]) -> Result<Rows<T>> {
    let count = part.row_count();
    let mut place = filled(count, usize::MAX)?;
    for (to, &from) in order.iter().enumerate() {
        let from = usize::try_from(from).ok().filter(|&from| from < count);
        let from = from.filter(|&from| place[from] == usize::MAX);
        let Some(from) = from else {
            ff_tensor::bail!(InvalidArgument, "permutation is no permutation: {order:?}");
        };
        place[from] = to;
    }
    let mut entries = reserved(part.columns.len())?;
    for row in 0..count {
        for at in part.row(row) {
            let column = part.columns[at] as usize;
            if column > row {
                continue;
            }
            let (i, j, value) = (place[row], place[column], values[part.first + at]);
            entries.push(if i >= j {
                (i, j, value)
            } else {
                (j, i, value.conj())
            });
        }
    }
    entries.sort_unstable_by_key(|&(i, j, _)| (i, j));
    let mut rows = Rows {
        starts: zeros(count + 1)?,
        columns: collected(entries.iter().map(|entry| entry.1 as i32))?,
        values: collected(entries.iter().map(|entry| entry.2))?,
    };
    for &(i, ..) in &entries {
        rows.starts[i + 1] += 1;
    }
    for i in 0..count {
        rows.starts[i + 1] += rows.starts[i];
    }
    Ok(rows)
}

/// The factor of a matrix of which the lower triangle is given; none if it is not positive definite.
fn factor<T: Field>(context: &KernelContext, matrix: &Rows<T>) -> Result<Option<Rows<T>>> {
    let count = matrix.starts.len() - 1;
    let mut factor: Rows<T> = Rows {
        starts: reserved(count + 1)?,
        columns: Vec::new(),
        values: Vec::new(),
    };
    factor.starts.push(0);
    // The tree of which row first needs each row.
    let mut parents = filled(count, usize::MAX)?;
    let mut visited = filled(count, usize::MAX)?;
    let mut sums: Vec<T> = zeros(count)?;
    for row in 0..count {
        if row % 64 == 0 {
            context.host().cancellation().check()?;
        }
        let start = factor.columns.len();
        let mut diagonal = T::default();
        visited[row] = row;
        for at in matrix.row(row) {
            let mut column = matrix.columns[at] as usize;
            if column == row {
                diagonal += matrix.values[at];
                continue;
            }
            sums[column] += matrix.values[at];
            while visited[column] != row {
                visited[column] = row;
                reserve(&mut factor.columns, 1)?;
                factor.columns.push(column as i32);
                if parents[column] == usize::MAX {
                    parents[column] = row;
                }
                column = parents[column];
            }
        }
        factor.columns[start..].sort_unstable();
        reserve(&mut factor.values, factor.columns.len() + 1 - start)?;
        for at in start..factor.columns.len() {
            let column = factor.columns[at] as usize;
            let above = factor.row(column);
            let mut value = sums[column];
            for other in above.start..above.end - 1 {
                // What this row has at the other's columns; those not in it are zero.
                value -= sums[factor.columns[other] as usize] * factor.values[other].conj();
            }
            value = value / factor.values[above.end - 1];
            sums[column] = value;
            diagonal -= T::real(value.square_size());
            factor.values.push(value);
        }
        for at in start..factor.columns.len() {
            sums[factor.columns[at] as usize] = T::default();
        }
        if diagonal.re() <= 0.0 || diagonal.re().is_nan() {
            return Ok(None);
        }
        factor.columns.push(row as i32);
        factor.values.push(T::real(diagonal.re().sqrt()));
        factor.starts.push(factor.columns.len());
    }
    Ok(Some(factor))
}

fn factors<T: Field>(context: &mut KernelContext, dtype: DataType) -> Result<()> {
    let matrix = Csr::at(context, 0, Some(dtype))?;
    check_square(matrix)?;
    let order = context.input(1)?;
    ensure!(
        order.rank() + 1 == matrix.dims.len() && order.dims() == &matrix.dims[..order.rank()],
        InvalidArgument,
        "permutation must have the same number of elements in each batch as the number of rows in sparse matrix; got: {} for {:?}",
        order.shape(),
        matrix.dims
    );
    let (order, values) = (order.as_slice::<i32>()?, T::elements(&matrix.values)?);
    let rows = matrix.rows();
    let mut result = Csr {
        dims: matrix.dims.clone(),
        batch_starts: vec![0],
        row_starts: reserved(matrix.row_starts.len())?,
        columns: Vec::new(),
        values: matrix.values.clone(),
    };
    let mut all: Vec<T> = Vec::new();
    for number in 0..matrix.batch() {
        let order = &order[number * rows..(number + 1) * rows];
        let lower = permuted(&matrix.part(number), &values, order)?;
        let Some(found) = factor(context, &lower)? else {
            ff_tensor::bail!(
                InvalidArgument,
                "Sparse Cholesky factorization failed for batch index {number}. The input might not be valid."
            );
        };
        ensure!(
            all.len() + found.values.len() <= i32::MAX as usize,
            ResourceExhausted,
            "OOM: factors of more than 2^31 values"
        );
        result
            .row_starts
            .extend(found.starts.iter().map(|&start| start as i32));
        reserve(&mut all, found.values.len())?;
        reserve(&mut result.columns, found.columns.len())?;
        all.extend(found.values);
        result.columns.extend(found.columns);
        result.batch_starts.push(all.len() as i32);
    }
    result.values = T::tensor(dtype, Shape::vector(all.len()), &all)?;
    result.give(context)
}
