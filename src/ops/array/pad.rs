//! Padding with a value, or with the tensor's own elements mirrored.

use crate::movement::{Region, Writer, row_major};
use ff_hlo::{Builder, Op as HloOp, PadDimension};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

static PAD: Op = Op {
    name: "Pad",
    shape: pad_shape,
    kernels: &[Kernel::native(pad)],
    lower: Some(lower),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};
static PAD_V2: Op = Op { name: "PadV2", ..PAD };
static MIRROR_PAD: Op = Op {
    name: "MirrorPad",
    kernels: &[Kernel::native(mirror)],
    lower: Some(lower_mirror),
    gradient: Gradient::Missing,
    ..PAD
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&PAD, &PAD_V2, &MIRROR_PAD];

/// (before, after) for each axis. INVALID_ARGUMENT for negative amounts or another number of axes.
fn amounts(values: &[i64], rank: usize) -> Result<Vec<(i64, i64)>> {
    ensure!(
        values.len() == 2 * rank,
        InvalidArgument,
        "The first dimension of paddings must be the rank of inputs: {rank}, got {}",
        values.len() / 2
    );
    let pairs: Vec<(i64, i64)> = values.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    ensure!(
        pairs.iter().all(|(before, after)| *before >= 0 && *after >= 0),
        InvalidArgument,
        "Paddings must be non-negative: {values:?}"
    );
    Ok(pairs)
}

fn pad_shape(context: &mut ShapeContext) -> Result<()> {
    let paddings = context.input_with_rank(1, 2)?;
    dim::merge(paddings.dim(1), 2)?;
    let input = context.input(0);
    let rank = input.rank().or(usize::try_from(paddings.dim(0)).ok());
    let Some(rank) = rank else { return Ok(()) };
    let input = input.with_rank(rank)?;
    dim::merge(paddings.dim(0), rank as i64)?;
    let Some(values) = context.input_as_i64s(1)? else {
        context.set_output(0, PartialShape::of_rank(rank));
        return Ok(());
    };
    let mut dims = Vec::with_capacity(rank);
    for (axis, (before, after)) in amounts(&values, rank)?.into_iter().enumerate() {
        dims.push(dim::add(input.dim(axis as i64), dim::add(before, after)?)?);
        if context.node().op_name() == "MirrorPad" && input.dim(axis as i64) >= 0 {
            let reach = input.dim(axis as i64) - i64::from(context.attrs().string("mode")? == "REFLECT");
            ensure!(
                before <= reach && after <= reach,
                InvalidArgument,
                "paddings must be no greater than the dimension size: {before}, {after} greater than {reach}"
            );
        }
    }
    // A sum with an unknown part is unknown, also where the known part is not zero.
    for (axis, extent) in dims.iter_mut().enumerate() {
        if input.dim(axis as i64) < 0 {
            *extent = dim::UNKNOWN;
        }
    }
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

fn pad(context: &mut KernelContext) -> Result<()> {
    if context.num_inputs() > 2 {
        ensure!(
            context.input(2)?.rank() == 0,
            InvalidArgument,
            "constant_values must be a scalar. Found: {}",
            context.input(2)?.shape()
        );
    }
    let shape = context.output_shape(0)?.clone();
    let input = context.input(0)?;
    if input.shape() == &shape {
        let input = context.take_input(0)?;
        return context.set_output(0, input);
    }
    let pairs = amounts(&context.input_i64s(1)?, shape.rank())?;
    let mut writer = if context.num_inputs() > 2 {
        Writer::filled(context.input(2)?, shape.clone())?
    } else {
        Writer::zeros(input.dtype(), shape.clone())?
    };
    let (strides, dense) = (row_major(shape.dims()), row_major(input.dims()));
    let offset = pairs
        .iter()
        .zip(&strides)
        .map(|((before, _), stride)| before * stride)
        .sum();
    writer.write(
        input.dims(),
        Region {
            offset,
            strides: &strides,
        },
        input,
        Region {
            offset: 0,
            strides: &dense,
        },
    )?;
    context.set_output(0, writer.finish()?)
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let (input, dims) = (context.input(0)?, context.input_dims(0)?);
    let pairs = amounts(&context.constant_i64s(1)?, dims.len())?;
    let value = if context.num_inputs() > 2 {
        context.input(2)?
    } else {
        let dtype = context.output_type(0);
        context.builder.scalar(dtype, 0.0)?
    };
    let config = pairs
        .into_iter()
        .map(|(low, high)| PadDimension {
            low,
            high,
            interior: 0,
        })
        .collect();
    let result = context.builder.pad(input, value, config)?;
    context.set_output(0, result);
    Ok(())
}

/// The part of the gradient that lies where the input was.
fn gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (input, paddings) = (context.input(0)?, context.input(1)?);
    let index_type = context.dtype(paddings);
    let zeros = context.int32s(&[0, 0])?;
    let ends = context.int32s(&[0, 1])?;
    let ones = context.int32s(&[1, 1])?;
    let attrs = Attrs::new()
        .with("T", index_type)
        .with("Index", DataType::INT32)
        .with("begin_mask", 1i64)
        .with("end_mask", 1i64)
        .with("shrink_axis_mask", 2i64);
    let before = context.op("StridedSlice", &[paddings, zeros, ends, ones], attrs)?;
    let attrs = Attrs::new()
        .with("T", context.dtype(input))
        .with("out_type", index_type);
    let sizes = context.op("Shape", &[input], attrs)?;
    let attrs = Attrs::new()
        .with("T", context.dtype(incoming))
        .with("Index", index_type);
    let gradient = context.op("Slice", &[incoming, before, sizes], attrs)?;
    context.set(0, gradient);
    Ok(())
}

/// Whether the edge itself is not repeated.
fn skips_edge(attrs: &Attrs) -> Result<i64> {
    Ok(i64::from(attrs.string("mode")? == "REFLECT"))
}

/// Axis by axis: the mirrored start, the middle, the mirrored end.
fn mirror(context: &mut KernelContext) -> Result<()> {
    let skip = skips_edge(context.attrs())?;
    let mut result: Tensor = context.input(0)?.clone();
    let pairs = amounts(&context.input_i64s(1)?, result.rank())?;
    for (axis, (before, after)) in pairs.into_iter().enumerate().filter(|(_, pair)| *pair != (0, 0)) {
        let mut dims = result.dims().to_vec();
        let extent = dims[axis];
        dims[axis] = extent + before + after;
        let shape = Shape::new(&dims)?;
        let (to, from) = (row_major(&dims), row_major(result.dims()));
        let mut writer = Writer::new(result.dtype(), shape)?;
        let mut part = result.dims().to_vec();
        writer.write(
            &part,
            Region {
                offset: before * to[axis],
                strides: &to,
            },
            &result,
            Region {
                offset: 0,
                strides: &from,
            },
        )?;
        let mut backwards = from.clone();
        backwards[axis] = -from[axis];
        part[axis] = before;
        let start = (before - 1 + skip) * from[axis];
        writer.write(
            &part,
            Region {
                offset: 0,
                strides: &to,
            },
            &result,
            Region {
                offset: start,
                strides: &backwards,
            },
        )?;
        part[axis] = after;
        let start = (extent - 1 - skip) * from[axis];
        let target = Region {
            offset: (before + extent) * to[axis],
            strides: &to,
        };
        writer.write(
            &part,
            target,
            &result,
            Region {
                offset: start,
                strides: &backwards,
            },
        )?;
        result = writer.finish()?;
    }
    context.set_output(0, result)
}

fn lower_mirror(context: &mut LowerContext) -> Result<()> {
    let (input, values) = (context.input(0)?, context.constant_i64s(1)?);
    let result = mirrored(context.builder, &context.node().attrs, input, &values)?;
    context.set_output(0, result);
    Ok(())
}

/// Emits a mirrored padding by pairs of amounts, in the mode that the attributes say.
pub fn mirrored(builder: &mut Builder, attrs: &Attrs, input: HloOp, values: &[i64]) -> Result<HloOp> {
    let skip = skips_edge(attrs)?;
    let mut result = input;
    let pairs = amounts(values, builder.dims(input).len())?;
    for (axis, (before, after)) in pairs.into_iter().enumerate() {
        let extent = builder.dims(result)[axis];
        let mut parts = Vec::new();
        if before > 0 {
            let start = builder.slice_in_dim(result, skip, skip + before, 1, axis)?;
            parts.push(builder.reverse(start, &[axis as i64])?);
        }
        parts.push(result);
        if after > 0 {
            let end = builder.slice_in_dim(result, extent - skip - after, extent - skip, 1, axis)?;
            parts.push(builder.reverse(end, &[axis as i64])?);
        }
        if parts.len() > 1 {
            result = builder.concatenate(&parts, axis)?;
        }
    }
    Ok(result)
}

crate::op_cases! {
    filled_with_no_number: Case::op("PadV2").inputs([t::<f32>(&[0, 0], &[]), t(&[2, 2], &[1, 1, 1, 1]), vector::<f32>(&[])]).fails(Code::InvalidArgument);
    padded: Case::op("Pad").inputs([counting(DataType::FLOAT, &[2, 2]), t(&[2, 2], &[1, 0, 0, 2])]);
    padded_empty: Case::op("Pad").inputs([counting(DataType::FLOAT, &[0]), t(&[1, 2], &[1i64, 1])]);
    padded_negative: Case::op("Pad").inputs([counting(DataType::FLOAT, &[2]), t(&[1, 2], &[-1, 1])])
        .fails(Code::InvalidArgument);
    padded_with: Case::op("PadV2").inputs([counting(DataType::INT64, &[2]), t(&[1, 2], &[1, 2]), scalar(9i64)])
        .gives(vector(&[9i64, 0, 1, 9, 9]));
    padded_with_misfit: Case::op("PadV2").inputs([counting(DataType::INT64, &[2]), t(&[2, 2], &[1, 2, 0, 0]), scalar(9i64)])
        .fails(Code::InvalidArgument);
    mirrored: Case::op("MirrorPad").inputs([counting(DataType::FLOAT, &[3, 4]), t(&[2, 2], &[2, 1, 0, 3])])
        .attr("mode", "REFLECT");
    mirrored_edge: Case::op("MirrorPad").inputs([counting(DataType::INT32, &[3, 4]), t(&[2, 2], &[3, 1, 0, 4])])
        .attr("mode", "SYMMETRIC");
    mirrored_too_far: Case::op("MirrorPad").inputs([counting(DataType::INT32, &[3]), t(&[1, 2], &[3, 0])])
        .attr("mode", "REFLECT").fails(Code::InvalidArgument);
}
