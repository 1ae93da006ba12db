//! Places of values in sorted rows.

use super::order::ranks;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{DataType, Result, Tensor, dim, ensure};

const BOUND: Op = Op {
    shape: bound_shape,
    kernels: &[Kernel::native(bound)],
    lower: Some(super::lower_count::bounds),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "LowerBound",
        ..BOUND
    },
    &Op {
        name: "UpperBound",
        ..BOUND
    },
    &Op {
        name: "Bucketize",
        shape: shapes::unchanged,
        prepare: Some(|context| {
            let boundaries = context.node.attrs.floats("boundaries")?;
            ensure!(
                boundaries.is_sorted(),
                InvalidArgument,
                "Expected sorted boundaries"
            );
            Ok(std::sync::Arc::new(boundaries.to_vec()))
        }),
        kernels: &[Kernel::native(bucketize)],
        lower: Some(super::lower_count::buckets),
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

fn bound_shape(context: &mut ShapeContext) -> Result<()> {
    let (sorted, values) = (context.input_with_rank(0, 2)?, context.input_with_rank(1, 2)?);
    let rows = dim::merge(sorted.dim(0), values.dim(0))?;
    context.set_output(0, values.with_dim(0, rows)?);
    Ok(())
}

/// Numbers as a tensor of int16, int32 or int64.
pub fn integers(dtype: DataType, shape: ff_tensor::Shape, values: &[i64]) -> Result<Tensor> {
    crate::match_type!(dtype, (i16, i32, i64), T => {
        Tensor::from_slice(shape, &values.iter().map(|&value| value as T).collect::<Vec<T>>())
    })
}

fn bound(context: &mut KernelContext) -> Result<()> {
    let upper = context.node().op_name() == "UpperBound";
    let (sorted, values) = (context.input(0)?, context.input(1)?);
    let (length, width) = (sorted.dims()[1] as usize, values.dims()[1] as usize);
    ensure!(
        i32::try_from(values.num_elements()).is_ok(),
        InvalidArgument,
        "values tensor size must less than INT_MAX"
    );
    let (sorted, ranked) = (ranks(sorted)?, ranks(values)?);
    let mut places = Vec::with_capacity(ranked.len());
    for (at, &value) in ranked.iter().enumerate() {
        let row = at / width.max(1);
        let row = &sorted[row * length..(row + 1) * length];
        places.push(row.partition_point(|&edge| edge < value || (upper && edge == value)) as i64);
    }
    let output = integers(context.output_type(0), values.shape().clone(), &places)?;
    context.set_output(0, output)
}

/// How many boundaries are at or below each value; values are compared in the wider of their type and float.
fn bucketize(context: &mut KernelContext) -> Result<()> {
    let boundaries: &Vec<f32> = context.prepared()?;
    let input = context.input(0)?;
    let bucket =
        |value: f64| boundaries.partition_point(|&edge| f64::from(edge) <= value || value.is_nan()) as i32;
    let places: Vec<i32> = match input.dtype() {
        DataType::FLOAT => input
            .as_slice::<f32>()?
            .iter()
            .map(|&x| bucket(f64::from(x)))
            .collect(),
        DataType::DOUBLE => crate::wide::collected(input.as_slice::<f64>()?.iter().map(|&x| bucket(x)))?,
        _ => input
            .to_i64_vec()?
            .iter()
            .map(|&x| bucket(f64::from(x as f32)))
            .collect(),
    };
    let output = Tensor::from_slice(input.shape().clone(), &places)?;
    context.set_output(0, output)
}

crate::op_cases! {
    bounds: family(&["LowerBound", "UpperBound"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 4], &[1.0, 3.0, 3.0, 7.0, 0.0, 1.0, 2.0, 3.0]), numbers(dtype, &[2, 3], &[3.0, 0.0, 9.0, 1.0, 2.0, 7.0])])
    });
    bounds_in_64_bits: family(&["LowerBound", "UpperBound"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[1, 2], &[-1.0, 0.0]), numbers(dtype, &[1, 2], &[-0.0, -2.0])]).attr("out_type", DataType::INT64)
    });
    bounds_of_nothing: Case::op("LowerBound").inputs([t::<f32>(&[1, 0], &[]), t(&[1, 1], &[2.0f32])]).gives(t(&[1, 1], &[0]));
    bounds_of_vectors: Case::op("LowerBound").inputs([vector(&[1.0f32]), vector(&[2.0f32])]).fails(Code::InvalidArgument);
    bounds_of_rows: Case::op("UpperBound").inputs([t(&[2, 1], &[1.0f32, 2.0]), t(&[1, 1], &[2.0f32])]).fails(Code::InvalidArgument);
    buckets: family(&["Bucketize"], &[DataType::INT32, DataType::INT64, DataType::FLOAT, DataType::DOUBLE], |op, dtype| {
        Case::op(op).input(numbers(dtype, &[2, 3], &[-5.0, 0.0, 10.0, 10.5, 99.0, 100.0])).attr("boundaries", vec![0.0f32, 10.0, 100.0])
    });
    buckets_without_boundaries: Case::op("Bucketize").input(vector(&[1.0f32, f32::NAN])).attr("boundaries", Vec::<f32>::new()).gives(vector(&[0, 0]));
    buckets_unsorted: Case::op("Bucketize").input(vector(&[1.0f32])).attr("boundaries", vec![1.0f32, 0.0]).fails(Code::InvalidArgument);
}
