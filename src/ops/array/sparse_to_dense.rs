//! `SparseToDense`: a tensor of one value with others at given places.

use crate::math::gradients::{binary, set_reduced};
use crate::movement::{Writer, row_major};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op};
use ff_tensor::{DataType, Result, Shape, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "SparseToDense",
    shape: |context| {
        context.input_with_rank_at_most(0, 2)?;
        context.input_with_rank_at_most(2, 1)?;
        context.input_with_rank(3, 0)?;
        let shape = context.input_as_shape(1)?;
        context.set_output(0, shape);
        Ok(())
    },
    kernels: &[Kernel::native(to_dense)],
    lower: Some(super::lower_index::to_dense),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
}];

/// Fails unless the places are inside, in row-major order and all different.
fn validate(indices: &[i64], dims: &[i64]) -> Result<()> {
    let depth = dims.len();
    let mut previous: Option<&[i64]> = None;
    for (number, index) in indices.chunks_exact(depth.max(1)).enumerate() {
        ensure!(
            index
                .iter()
                .zip(dims)
                .all(|(index, &extent)| (0..extent).contains(index)),
            InvalidArgument,
            "indices[{number}] = {index:?} is out of bounds: need 0 <= index < {dims:?}"
        );
        if let Some(previous) = previous {
            ensure!(
                previous <= index,
                InvalidArgument,
                "indices[{number}] = {index:?} is out of order. Many sparse ops require sorted indices.\n  Use `tf.sparse.reorder` to create a correctly ordered copy."
            );
            ensure!(
                previous != index,
                InvalidArgument,
                "indices[{number}] = {index:?} is repeated"
            );
        }
        previous = Some(index);
    }
    Ok(())
}

fn to_dense(context: &mut KernelContext) -> Result<()> {
    let indices = context.input(0)?;
    let count = if indices.rank() > 0 {
        indices.dims()[0] as usize
    } else {
        1
    };
    let depth = if indices.rank() > 1 {
        indices.dims()[1] as usize
    } else {
        1
    };
    let dims = context.input_i64s(1)?;
    ensure!(
        context.input(1)?.rank() == 1 && dims.len() == depth,
        InvalidArgument,
        "output_shape has incorrect number of elements: {} should be: {depth}",
        dims.len()
    );
    let values = context.input(2)?;
    ensure!(
        values.rank() == 0 || values.num_elements() == count,
        InvalidArgument,
        "sparse_values has incorrect shape {}, should be [] or [{count}]",
        values.shape()
    );
    let places = context.input_i64s(0)?;
    if context.attrs().bool("validate_indices")? {
        validate(&places, &dims)?;
    }
    let shape = Shape::new(&dims)?;
    let strides = row_major(&dims);
    let mut writer = Writer::filled(context.input(3)?, shape)?;
    for (number, index) in places.chunks_exact(depth.max(1)).enumerate() {
        let inside = index
            .iter()
            .zip(&dims)
            .all(|(index, &extent)| (0..extent).contains(index));
        ensure!(
            inside,
            InvalidArgument,
            "Indices are not valid (out of bounds).  Shape: {dims:?}"
        );
        let place: i64 = index
            .iter()
            .zip(&strides)
            .map(|(index, stride)| index * stride)
            .sum();
        let from = if values.rank() == 0 { 0 } else { number };
        writer.copy(place as usize, values, from, 1)?;
    }
    context.set_output(0, writer.finish()?)
}

/// The values get what comes in at their places, the value everywhere else the rest of the sum.
fn gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, indices) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let dtype = context.dtype(incoming);
    let attrs = Attrs::new()
        .with("Tparams", dtype)
        .with("Tindices", context.dtype(indices));
    // A scalar or a list of indices stands for a matrix with as many columns as there are extents.
    let rank = context.op("Rank", &[incoming], Attrs::new().with("T", dtype))?;
    let open = context.int32(-1)?;
    let pack = Attrs::new()
        .with("T", DataType::INT32)
        .with("N", 2i64)
        .with("axis", 0i64);
    let matrix = context.op("Pack", &[open, rank], pack)?;
    let indices = context.op("Reshape", &[indices, matrix], Attrs::new())?;
    let values = context.op("GatherNd", &[incoming, indices], attrs)?;
    let sum = |context: &mut GradientContext, value| {
        let attrs = Attrs::new()
            .with("T", context.dtype(value))
            .with("out_type", DataType::INT32);
        let (zero, one) = (context.int32(0)?, context.int32(1)?);
        let rank = context.op("Rank", &[value], Attrs::new().with("T", attrs.dtype("T")?))?;
        let axes = context.op(
            "Range",
            &[zero, rank, one],
            Attrs::new().with("Tidx", DataType::INT32),
        )?;
        let attrs = Attrs::new()
            .with("T", attrs.dtype("T")?)
            .with("Tidx", DataType::INT32);
        context.op("Sum", &[value, axes], attrs.with("keep_dims", false))
    };
    let (total, part) = (sum(context, incoming)?, sum(context, values)?);
    let rest = binary(context, "Sub", total, part)?;
    set_reduced(context, 2, values)?;
    context.set(3, rest);
    Ok(())
}

crate::op_cases! {
    places: Case::op("SparseToDense").inputs([t(&[2, 2], &[0, 1, 2, 0]), vector(&[3, 2]), vector(&[5.0f32, 6.0]), scalar(-1.0f32)])
        .gives(t(&[3, 2], &[-1.0f32, 5.0, -1.0, -1.0, 6.0, -1.0]));
    same_value: family(&["SparseToDense"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([vector(&[0i64, 3]), vector(&[4i64]), numbers(dtype, &[], &[2.0]), numbers(dtype, &[], &[0.0])])
    });
    one_place: Case::op("SparseToDense").inputs([scalar(1), vector(&[4]), strings(&[], &["a"]), strings(&[], &["-"])]);
    no_places: Case::op("SparseToDense").inputs([t::<i64>(&[0, 2], &[]), vector(&[1i64, 2]), vector::<i32>(&[]), scalar(7)]).gives(t(&[1, 2], &[7, 7]));
    unordered: Case::op("SparseToDense").inputs([vector(&[2, 1]), vector(&[4]), scalar(2), scalar(0)]).fails(Code::InvalidArgument);
    unordered_unchecked: Case::op("SparseToDense").inputs([vector(&[2, 1, 2]), vector(&[4]), vector(&[2, 3, 4]), scalar(0)]).attr("validate_indices", false);
    repeated: Case::op("SparseToDense").inputs([vector(&[1, 1]), vector(&[4]), scalar(2), scalar(0)]).fails(Code::InvalidArgument);
    outside: Case::op("SparseToDense").inputs([vector(&[1, 4]), vector(&[4]), scalar(2), scalar(0)]).fails(Code::InvalidArgument);
    outside_unchecked: Case::op("SparseToDense").inputs([vector(&[4]), vector(&[4]), scalar(2), scalar(0)]).attr("validate_indices", false).fails(Code::InvalidArgument);
    misfit: Case::op("SparseToDense").inputs([vector(&[1]), vector(&[4]), vector(&[2, 3]), scalar(0)]).fails(Code::InvalidArgument);
    rank: Case::op("SparseToDense").inputs([vector(&[1]), vector(&[4, 4]), scalar(2), scalar(0)]).fails(Code::InvalidArgument);
}
