//! Sums and maxima of sparse tensors along axes, to dense and to sparse tensors; softmax along the last axis.

use super::parts::{Sparse, check_parts, matrix, set_parts};
use crate::math::gradients::{binary, typed, unary};
use crate::math::number::{Number, maximum};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};
use std::collections::BTreeMap;

const TO_DENSE: Op = Op {
    shape: dense_shape,
    kernels: &[Kernel::native(to_dense)],
    ..Op::PURE
};
const TO_SPARSE: Op = Op {
    shape: |context| {
        check_parts(context, 0)?;
        set_parts(context, 0, dim::UNKNOWN);
        Ok(())
    },
    kernels: &[Kernel::native(to_sparse)],
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseReduceSum",
        gradient: Gradient::Fn(sum_gradient),
        ..TO_DENSE
    },
    &Op {
        name: "SparseReduceMax",
        ..TO_DENSE
    },
    &Op {
        name: "SparseReduceSumSparse",
        ..TO_SPARSE
    },
    &Op {
        name: "SparseReduceMaxSparse",
        ..TO_SPARSE
    },
    &Op {
        name: "SparseSoftmax",
        shape: |context| {
            check_parts(context, 0)?;
            let values = context.input(1);
            context.set_output(0, values);
            Ok(())
        },
        kernels: &[Kernel::native(softmax)],
        gradient: Gradient::Fn(softmax_gradient),
        ..Op::PURE
    },
];

/// Which axes are reduced.
fn reduced(axes: &[i64], rank: usize) -> Result<Vec<bool>> {
    let mut reduced = vec![false; rank];
    for &axis in axes {
        let place = if axis < 0 { axis + rank as i64 } else { axis };
        ensure!(
            (0..rank as i64).contains(&place),
            InvalidArgument,
            "Invalid reduction dimension {axis}, for input with {rank} dimensions."
        );
        reduced[place as usize] = true;
    }
    Ok(reduced)
}

/// What remains of extents, or of a place: reduced axes leave `kept` or nothing.
fn remaining(all: &[i64], reduced: &[bool], kept: Option<i64>) -> Vec<i64> {
    all.iter()
        .zip(reduced)
        .filter_map(|(&value, &gone)| if gone { kept } else { Some(value) })
        .collect()
}

fn dense_shape(context: &mut ShapeContext) -> Result<()> {
    check_parts(context, 0)?;
    let keep = context.attrs().bool("keep_dims")?;
    if let (Some(dims), Some(axes)) = (context.input_as_i64s(2)?, context.input_as_i64s(3)?) {
        let reduced = reduced(&axes, dims.len())?;
        context.set_output(
            0,
            PartialShape::new(&remaining(&dims, &reduced, keep.then_some(1))),
        );
    }
    Ok(())
}

/// The values that belong together, by the place of the result, in the order of places.
struct Groups {
    all: BTreeMap<Vec<i64>, Vec<usize>>,
    dims: Vec<i64>,
}

fn groups(context: &KernelContext, sparse: &Sparse) -> Result<Groups> {
    let keep = context.attrs().bool("keep_dims")?;
    let reduced = reduced(&context.input_i64s(3)?, sparse.rank())?;
    let mut all: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
    for number in sparse.sorted()? {
        let place = remaining(sparse.place(number), &reduced, keep.then_some(0));
        all.entry(place).or_default().push(number);
    }
    Ok(Groups {
        all,
        dims: remaining(&sparse.dims, &reduced, keep.then_some(1)),
    })
}

/// One value for each group.
fn values(context: &KernelContext, sparse: &Sparse, groups: &Groups) -> Result<Tensor> {
    if context.node().op_name().contains("Max") {
        return crate::match_real!(sparse.values.dtype(), T => {
            let values = sparse.values.as_slice::<T>()?;
            let largest = |group: &Vec<usize>| {
                let mut members = group.iter().map(|&number| values[number]);
                let first = members.next().unwrap_or_default();
                members.fold(first, maximum)
            };
            Tensor::vector(&crate::wide::collected(groups.all.values().map(largest))?)
        });
    }
    crate::match_number!(sparse.values.dtype(), T => {
        let values = sparse.values.as_slice::<T>()?;
        let sum = |group: &Vec<usize>| {
            group.iter().fold(T::default(), |sum, &number| Number::add(sum, values[number]))
        };
        Tensor::vector(&crate::wide::collected(groups.all.values().map(sum))?)
    })
}

fn to_dense(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 0)?;
    let groups = groups(context, &sparse)?;
    let values = values(context, &sparse, &groups)?;
    let strides = crate::movement::row_major(&groups.dims);
    let mut writer = crate::movement::Writer::zeros(values.dtype(), Shape::new(&groups.dims)?)?;
    for (number, place) in groups.all.keys().enumerate() {
        let inside = place
            .iter()
            .zip(&groups.dims)
            .all(|(at, extent)| (0..*extent).contains(at));
        ensure!(
            inside,
            InvalidArgument,
            "index {place:?} is out of bounds of {:?}",
            groups.dims
        );
        let at: i64 = place.iter().zip(&strides).map(|(at, stride)| at * stride).sum();
        writer.copy(at as usize, &values, number, 1)?;
    }
    let output = writer.finish()?;
    context.set_output(0, output)
}

fn to_sparse(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 0)?;
    let groups = groups(context, &sparse)?;
    let values = values(context, &sparse, &groups)?;
    let places: Vec<i64> = groups.all.keys().flatten().copied().collect();
    context.set_output(0, matrix(&places, groups.all.len(), groups.dims.len())?)?;
    context.set_output(1, values)?;
    context.set_output(2, Tensor::vector(&groups.dims)?)
}

/// The incoming element of the group of each value.
fn sum_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, places, dims, axes) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(2)?,
        context.input(3)?,
    );
    // The extents, with ones where an axis was reduced.
    let attrs = typed(DataType::INT64).with("out_type", DataType::INT32);
    let rank = context.op("Size", &[dims], attrs)?;
    let (zero, one) = (context.int32(0)?, context.int32(1)?);
    let all = context.op(
        "Range",
        &[zero, rank, one],
        Attrs::new().with("Tidx", DataType::INT32),
    )?;
    let axes = binary(context, "AddV2", axes, rank)?;
    let axes = binary(context, "FloorMod", axes, rank)?;
    let attrs = typed(DataType::INT32).with("Tshape", DataType::INT32);
    let flat = context.int32s(&[-1])?;
    let axes = context.op("Reshape", &[axes, flat], attrs)?;
    let ones = unary(context, "OnesLike", axes)?;
    let attrs = Attrs::new()
        .with("SrcT", DataType::INT32)
        .with("DstT", DataType::INT64);
    let ones = context.op("Cast", &[ones], attrs)?;
    let attrs = typed(DataType::INT64).with("N", 2i64);
    let kept = context.op("DynamicStitch", &[all, axes, dims, ones], attrs)?;
    let attrs = typed(context.dtype(incoming)).with("Tshape", DataType::INT64);
    let incoming = context.op("Reshape", &[incoming, kept], attrs)?;
    let scale = binary(context, "FloorDiv", dims, kept)?;
    let places = binary(context, "FloorDiv", places, scale)?;
    let attrs = Attrs::new()
        .with("Tparams", context.dtype(incoming))
        .with("Tindices", DataType::INT64);
    let gradient = context.op("GatherNd", &[incoming, places], attrs)?;
    context.set(1, gradient);
    Ok(())
}

/// Over the values that are there, of each row along the last axis.
fn softmax(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 0)?;
    ensure!(
        sparse.rank() >= 2,
        InvalidArgument,
        "Input should have rank >= 2, but received shape: {:?}",
        sparse.dims
    );
    Shape::new(&sparse.dims)?;
    let mut rows: BTreeMap<&[i64], Vec<usize>> = BTreeMap::new();
    for number in 0..sparse.count() {
        rows.entry(&sparse.place(number)[..sparse.rank() - 1])
            .or_default()
            .push(number);
    }
    let output = crate::match_float!(sparse.values.dtype(), T => {
        let input = sparse.values.as_slice::<T>()?;
        let mut output = crate::wide::filled(input.len(), T::default())?;
        for row in rows.values() {
            let value = |&number: &usize| ff_kernels::math::Real::to_f64(input[number]);
            let largest = row.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = row.iter().map(|number| (value(number) - largest).exp()).sum();
            for number in row {
                output[*number] = <T as ff_kernels::math::Real>::from_f64((value(number) - largest).exp() / total);
            }
        }
        Tensor::vector(&output)
    })?;
    context.set_output(0, output)
}

/// `y (dy - sum of y dy along the row)`.
fn softmax_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, places, dims) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(2)?,
    );
    let output = context.output(0);
    let product = binary(context, "Mul", output, incoming)?;
    let last = context.int32s(&[-1])?;
    let attrs = typed(context.dtype(incoming)).with("keep_dims", true);
    let sums = context.op("SparseReduceSum", &[places, product, dims, last], attrs)?;
    let negative = unary(context, "Neg", sums)?;
    let attrs = typed(context.dtype(incoming));
    let rest = context.op("SparseDenseCwiseAdd", &[places, incoming, dims, negative], attrs)?;
    let gradient = binary(context, "Mul", rest, output)?;
    context.set(1, gradient);
    Ok(())
}

#[cfg(test)]
use super::arrange::case;

#[cfg(test)]
const DENSE: &[&str] = &["SparseReduceSum", "SparseReduceMax"];

#[cfg(test)]
const ALL: &[&str] = &[
    "SparseReduceSum",
    "SparseReduceMax",
    "SparseReduceSumSparse",
    "SparseReduceMaxSparse",
];

crate::op_cases! {
    columns: family(ALL, &[FLOATS, INTEGERS].concat(), |op, dtype| case(op, dtype).input(vector(&[1])));
    columns_kept: family(ALL, &FLOATS[..2], |op, dtype| case(op, dtype).input(vector(&[-1])).attr("keep_dims", true));
    rows: family(ALL, &FLOATS[..2], |op, dtype| case(op, dtype).input(scalar(0)));
    both: family(ALL, &FLOATS[..2], |op, dtype| case(op, dtype).input(vector(&[0, 1])));
    none: family(ALL, &FLOATS[..2], |op, dtype| case(op, dtype).input(vector::<i32>(&[])));
    complex: family(&["SparseReduceSum", "SparseReduceSumSparse"], &FRACTIONS[4..], |op, dtype| case(op, dtype).input(vector(&[1])));
    gaps: family(DENSE, &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([t(&[2, 2], &[2i64, 0, 0, 1]), numbers(dtype, &[2], &[-1.0, -2.0]), vector(&[3i64, 3]), vector(&[1])])
    });
    axis_outside: family(ALL, &FLOATS[..1], |op, dtype| case(op, dtype).input(vector(&[2])).fails(Code::InvalidArgument));
    shares_of_negative: Case::op("SparseSoftmax").inputs([t(&[1, 2], &[0i64, 0]), vector(&[1.0f32]), vector(&[-2i64, 2])]).fails(Code::InvalidArgument);
    shares: family(&["SparseSoftmax"], &[DataType::FLOAT, DataType::DOUBLE, DataType::HALF], case);
    shares_of_vector: Case::op("SparseSoftmax").inputs([t(&[1, 1], &[0i64]), vector(&[1.0f32]), vector(&[2i64])]).fails(Code::InvalidArgument);
    shares_of_nothing: Case::op("SparseSoftmax").inputs([t::<i64>(&[0, 2], &[]), vector::<f32>(&[]), vector(&[2i64, 2])]).gives(vector::<f32>(&[]));
}
