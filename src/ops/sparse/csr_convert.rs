//! Sparse matrices by compressed rows from and to other forms, their parts, and transposed.

use super::csr::{Csr, check_extents, input_shape, set_output_shape, with_batch};
use super::parts::{Sparse, check_parts, matrix, take};
use crate::movement::Writer;
use crate::wide::{collected, reserved, zeros};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

const CSR: Op = Op {
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseTensorToCSRSparseMatrix",
        shape: from_sparse_shape,
        kernels: &[Kernel::native(from_sparse)],
        ..CSR
    },
    &Op {
        name: "DenseToCSRSparseMatrix",
        shape: from_dense_shape,
        kernels: &[Kernel::native(from_dense)],
        ..CSR
    },
    &Op {
        name: "CSRSparseMatrixToSparseTensor",
        shape: |context| {
            let rank = input_shape(context, 0)?.and_then(|(_, shape)| shape.rank());
            super::parts::set_parts(context, 0, rank.map_or(dim::UNKNOWN, |rank| rank as i64));
            Ok(())
        },
        kernels: &[Kernel::native(to_sparse)],
        ..CSR
    },
    &Op {
        name: "CSRSparseMatrixToDense",
        shape: |context| {
            if let Some((_, shape)) = input_shape(context, 0)? {
                context.set_output(0, shape);
            }
            Ok(())
        },
        kernels: &[Kernel::native(to_dense)],
        ..CSR
    },
    &Op {
        name: "CSRSparseMatrixComponents",
        shape: components_shape,
        kernels: &[Kernel::native(components)],
        ..CSR
    },
    &Op {
        name: "SparseMatrixNNZ",
        shape: |context| {
            if let Some((_, shape)) = input_shape(context, 0)? {
                let rank = shape.rank().unwrap_or(2);
                context.set_output(0, shape.slice(0, Some(rank as i64 - 2)));
            }
            Ok(())
        },
        kernels: &[Kernel::native(count)],
        ..CSR
    },
    &Op {
        name: "SparseMatrixTranspose",
        shape: |context| {
            if let Some((dtype, shape)) = input_shape(context, 0)? {
                let turned = with_batch(&shape, shape.dim(-1), shape.dim(-2));
                set_output_shape(context, dtype, turned);
            }
            Ok(())
        },
        kernels: &[Kernel::native(transpose)],
        ..CSR
    },
    &Op {
        name: "SparseMatrixZeros",
        shape: |context| {
            let shape = context.input_as_shape(0)?;
            let dtype = context.attrs().dtype("type")?;
            set_output_shape(context, dtype, known_rank(shape)?);
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let dims = context.input_i64s(0)?;
            let dtype = context.attrs().dtype("type")?;
            build(dims, &[], Tensor::zeros(dtype, Shape::vector(0))?)?.give(context)
        })],
        ..CSR
    },
];

fn known_rank(shape: PartialShape) -> Result<PartialShape> {
    let rank = shape.rank();
    ensure!(
        matches!(rank, Some(2 | 3)),
        InvalidArgument,
        "Invalid rank: {}.  Expected a known rank of either 2 or 3.",
        rank.map_or(-1, |rank| rank as i64)
    );
    Ok(shape)
}

fn from_sparse_shape(context: &mut ShapeContext) -> Result<()> {
    let rank = check_parts(context, 0)?;
    let mut shape = context.input_as_shape(2)?;
    if shape.rank().is_none() && rank >= 0 {
        shape = PartialShape::of_rank(rank as usize);
    }
    let dtype = context.attrs().dtype("T")?;
    set_output_shape(context, dtype, known_rank(shape)?);
    Ok(())
}

fn from_dense_shape(context: &mut ShapeContext) -> Result<()> {
    let (dense, places) = (known_rank(context.input(0))?, context.input(1));
    ensure!(
        places.rank() == Some(2),
        InvalidArgument,
        "indices must be a matrix; but its rank is not 2"
    );
    ensure!(
        places.dim(1) == dense.rank().unwrap_or(0) as i64,
        InvalidArgument,
        "indices.shape[1] must match rank of dense; saw: {} vs. {}",
        places.dim(1),
        dense.rank().unwrap_or(0)
    );
    let dtype = context.attrs().dtype("T")?;
    set_output_shape(context, dtype, dense);
    Ok(())
}

/// From the places of values, which should be in the order of rows: as in the reference, values are given to rows by how many
/// each has. INVALID_ARGUMENT for places outside, or with matrices of a batch out of order.
fn build(dims: Vec<i64>, places: &[i64], values: Tensor) -> Result<Csr> {
    check_extents(&dims)?;
    let rank = dims.len();
    let batch = if rank == 3 { dims[0] as usize } else { 1 };
    let rows = dims[rank - 2] as usize;
    let mut row_starts: Vec<i32> = zeros(batch * (rows + 1))?;
    let mut batch_starts: Vec<i32> = zeros(batch + 1)?;
    let mut columns: Vec<i32> = reserved(values.num_elements())?;
    let mut last = 0;
    for (number, place) in places.chunks_exact(rank).enumerate() {
        let inside = place
            .iter()
            .zip(&dims)
            .all(|(at, extent)| (0..*extent).contains(at));
        ensure!(
            inside,
            InvalidArgument,
            "Sparse index tuple at index {number} is out of bounds: {place:?} in {dims:?}"
        );
        let member = if rank == 3 { place[0] as usize } else { 0 };
        let row = member * (rows + 1) + place[rank - 2] as usize;
        ensure!(
            last <= member,
            InvalidArgument,
            "Sparse index tuple at index {number} is out of order: {place:?}"
        );
        last = member;
        row_starts[row + 1] += 1;
        batch_starts[member + 1] += 1;
        columns.push(place[rank - 1] as i32);
    }
    for starts in row_starts
        .chunks_exact_mut(rows + 1)
        .chain([&mut batch_starts[..]])
    {
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
    }
    Ok(Csr {
        dims,
        batch_starts,
        row_starts,
        columns,
        values,
    })
}

fn from_sparse(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 0)?;
    build(sparse.dims, &sparse.places, sparse.values)?.give(context)
}

fn from_dense(context: &mut KernelContext) -> Result<()> {
    let (dense, places) = (context.input(0)?, context.input_i64s(1)?);
    let dims = dense.dims().to_vec();
    let strides = crate::movement::row_major(&dims);
    let mut numbers = reserved(places.len() / dims.len())?;
    for place in places.chunks_exact(dims.len()) {
        let inside = place
            .iter()
            .zip(&dims)
            .all(|(at, extent)| (0..*extent).contains(at));
        ensure!(
            inside,
            InvalidArgument,
            "indices {place:?} do not index into shape {}",
            dense.shape()
        );
        numbers.push(
            place
                .iter()
                .zip(&strides)
                .map(|(at, stride)| at * stride)
                .sum::<i64>() as usize,
        );
    }
    let values = take(dense, &numbers)?;
    build(dims, &places, values)?.give(context)
}

fn to_sparse(context: &mut KernelContext) -> Result<()> {
    let csr = Csr::at(context, 0, Some(context.output_type(1)))?;
    let rank = csr.dims.len();
    let mut places: Vec<i64> = reserved(csr.columns.len() * rank)?;
    for number in 0..csr.batch() {
        let part = csr.part(number);
        for row in 0..part.row_count() {
            for at in part.row(row) {
                if rank == 3 {
                    places.push(number as i64);
                }
                places.extend([row as i64, i64::from(part.columns[at])]);
            }
        }
    }
    let places = matrix(&places, csr.columns.len(), rank)?;
    let (values, dims) = (csr.values.clone(), Tensor::vector(&csr.dims)?);
    context.set_output(0, places)?;
    context.set_output(1, values)?;
    context.set_output(2, dims)
}

fn to_dense(context: &mut KernelContext) -> Result<()> {
    let csr = Csr::at(context, 0, Some(context.output_type(0)))?;
    let mut dense = Writer::zeros(csr.values.dtype(), Shape::new(&csr.dims)?)?;
    for number in 0..csr.batch() {
        let part = csr.part(number);
        for row in 0..part.row_count() {
            let start = (number * csr.rows() + row) * csr.width();
            for at in part.row(row) {
                dense.copy(start + part.columns[at] as usize, &csr.values, part.first + at, 1)?;
            }
        }
    }
    let dense = dense.finish()?;
    context.set_output(0, dense)
}

fn components_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = input_shape(context, 0)?;
    ensure!(
        context.input(1).rank() == Some(0),
        InvalidArgument,
        "index must be a scalar."
    );
    let rows = match shape {
        Some((_, shape)) => dim::add(shape.dim(-2), 1)?,
        None => dim::UNKNOWN,
    };
    context.set_output(0, PartialShape::new(&[rows]));
    context.set_output(1, PartialShape::of_rank(1));
    context.set_output(2, PartialShape::of_rank(1));
    Ok(())
}

fn components(context: &mut KernelContext) -> Result<()> {
    let csr = Csr::at(context, 0, Some(context.output_type(2)))?;
    let index = context.input_i64(1)?;
    ensure!(
        (0..csr.batch() as i64).contains(&index),
        InvalidArgument,
        "index ({index}) not in [0, {})",
        csr.batch()
    );
    let part = csr.part(index as usize);
    let numbers = collected(part.first..part.first + part.columns.len())?;
    let values = take(&csr.values, &numbers)?;
    let (rows, columns) = (Tensor::vector(part.rows)?, Tensor::vector(part.columns)?);
    context.set_output(0, rows)?;
    context.set_output(1, columns)?;
    context.set_output(2, values)
}

fn count(context: &mut KernelContext) -> Result<()> {
    let csr = Csr::at(context, 0, None)?;
    let counts: Vec<i32> = collected(csr.batch_starts.windows(2).map(|pair| pair[1] - pair[0]))?;
    let shape = match csr.dims.len() {
        3 => Shape::vector(counts.len()),
        _ => Shape::scalar(),
    };
    context.set_output(0, Tensor::from_slice(shape, &counts)?)
}

fn transpose(context: &mut KernelContext) -> Result<()> {
    let csr = Csr::at(context, 0, Some(context.attrs().dtype("type")?))?;
    let turned = transposed(csr, context.attrs().bool("conjugate")?)?;
    turned.give(context)
}

/// The transposed matrices.
pub fn transposed(csr: &Csr, conjugate: bool) -> Result<Csr> {
    let dims = csr.dims_with(csr.width(), csr.rows());
    check_extents(&dims)?;
    let mut row_starts: Vec<i32> = zeros(csr.batch() * (csr.width() + 1))?;
    let mut columns: Vec<i32> = zeros(csr.columns.len())?;
    let mut order: Vec<usize> = zeros(csr.columns.len())?;
    let members = row_starts.chunks_exact_mut(csr.width() + 1);
    for (number, starts) in members.enumerate() {
        let part = csr.part(number);
        for &column in part.columns {
            starts[column as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = collected(starts.iter().copied())?;
        for row in 0..part.row_count() {
            for at in part.row(row) {
                let to = &mut next[part.columns[at] as usize];
                columns[part.first + *to as usize] = row as i32;
                order[part.first + *to as usize] = part.first + at;
                *to += 1;
            }
        }
    }
    let mut values = take(&csr.values, &order)?;
    if conjugate {
        conjugated(&mut values)?;
    }
    Ok(Csr {
        dims,
        batch_starts: csr.batch_starts.clone(),
        row_starts,
        columns,
        values,
    })
}

/// Complex values with the other sign of the imaginary part.
pub fn conjugated(values: &mut Tensor) -> Result<()> {
    match values.dtype() {
        DataType::COMPLEX64 => {
            for value in values.as_mut_slice::<ff_tensor::Complex64>()? {
                value.im = -value.im;
            }
        }
        DataType::COMPLEX128 => {
            for value in values.as_mut_slice::<ff_tensor::Complex128>()? {
                value.im = -value.im;
            }
        }
        _ => {}
    }
    Ok(())
}
