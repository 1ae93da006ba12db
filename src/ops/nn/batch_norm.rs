//! Batch normalization in its three versions, and local gradients of it.

use super::geometry::Format;
use ff_hlo::{Builder, Op as HloOp, Opcode};
use ff_op::{Gradient, GradientContext, Kernel, LowerContext, Op, OutputRef, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, ensure};

static V1: Op = Op {
    name: "FusedBatchNorm",
    shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower),
    gradient: Gradient::Fn(|context| gradient(context, "FusedBatchNormGrad")),
    ..Op::PURE
};
static V2: Op = Op {
    name: "FusedBatchNormV2",
    gradient: Gradient::Fn(|context| gradient(context, "FusedBatchNormGradV2")),
    ..V1
};
static V3: Op = Op {
    name: "FusedBatchNormV3",
    gradient: Gradient::Fn(|context| gradient(context, "FusedBatchNormGradV3")),
    ..V1
};
static GRAD_V1: Op = Op {
    name: "FusedBatchNormGrad",
    shape: grad_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_grad),
    gradient: Gradient::Missing,
    ..Op::PURE
};
static GRAD_V2: Op = Op {
    name: "FusedBatchNormGradV2",
    ..GRAD_V1
};
static GRAD_V3: Op = Op {
    name: "FusedBatchNormGradV3",
    ..GRAD_V1
};

/// With an addition and an activation after it, as graph optimizers make it.
static EX: Op = Op {
    name: "_FusedBatchNormEx",
    gradient: Gradient::Missing,
    ..V1
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&V1, &V2, &V3, &GRAD_V1, &GRAD_V2, &GRAD_V3, &EX];

/// Whether the op has the sixth output of the third version.
fn is_v3(node: &ff_op::NodeInfo) -> bool {
    node.op_name().ends_with("V3") || node.op_name() == EX.name
}

/// The format, from the rank where volumes are allowed.
fn format(attrs: &ff_op::Attrs, rank: usize) -> Result<Format> {
    Format::of(attrs, rank.saturating_sub(2))
}

/// `x` of rank 4 (or 5 in the third version); scale, offset, mean and variance are vectors of channels.
fn shape(context: &mut ShapeContext) -> Result<()> {
    let is_v3 = is_v3(context.node());
    let mut x = context.input(0);
    match x.rank() {
        Some(5) if is_v3 && matches!(context.attrs().string("data_format"), Ok("NDHWC" | "NCDHW")) => {}
        _ => x = context.input_with_rank(0, 4)?,
    }
    let axis = format(context.attrs(), x.rank().unwrap_or(4))?.channels() as i64;
    let mut channels = x.dim(axis);
    let training = context.attrs().bool("is_training")?;
    for index in 1..if training { 3 } else { 5 } {
        let vector = context.input_with_rank(index, 1)?;
        channels = ff_tensor::dim::merge(channels, vector.dim(0))?;
    }
    for index in 3..5 {
        context.input_with_rank(index, 1)?;
    }
    context.set_output(0, x.with_dim(axis, channels)?);
    for index in 1..5 {
        context.set_output(index, PartialShape::new(&[channels]));
    }
    if is_v3 {
        context.set_output(5, PartialShape::new(&[0]));
    }
    Ok(())
}

/// Axes that statistics run over, and the channel axis.
fn axes(rank: usize, channel: i64) -> Vec<i64> {
    (0..rank as i64).filter(|&axis| axis != channel).collect()
}

/// A vector along the channel axis, repeated to `dims`.
fn along(builder: &mut Builder, vector: HloOp, dims: &[i64], channel: i64) -> Result<HloOp> {
    builder.broadcast_in_dim(vector, dims, &[channel])
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let (dims, dtype) = (context.input_dims(0)?, context.output_type(0));
    let channel = format(context.attrs(), dims.len())?.channels() as i64;
    let epsilon = f64::from(context.attrs().float("epsilon")?);
    let training = context.attrs().bool("is_training")?;
    let factor = context
        .attrs()
        .float("exponential_avg_factor")
        .map_or(1.0, f64::from);
    let inputs: Vec<HloOp> = (0..5).map(|index| context.input(index)).collect::<Result<_>>()?;
    let is_v3 = is_v3(context.node());
    let side = if context.num_inputs() > 5 {
        Some(context.input(5)?)
    } else {
        None
    };
    let activation = context.attrs().string("activation_mode").unwrap_or("Identity");
    ensure!(
        matches!(activation, "Identity" | "Relu"),
        InvalidArgument,
        "Unsupported activation mode: {activation}"
    );
    let builder = &mut *context.builder;
    let statistics_type = builder.dtype(inputs[1]);
    let x = builder.convert(inputs[0], statistics_type)?;
    let (mean, variance) = if training {
        statistics(builder, x, channel)?
    } else {
        (inputs[3], inputs[4])
    };
    let epsilon = builder.scalar_like(epsilon, variance)?;
    let sum = builder.add(variance, epsilon)?;
    let inverse = builder.unary(Opcode::Rsqrt, sum)?;
    let scale = builder.multiply(inverse, inputs[1])?;
    let centred = {
        let mean = along(builder, mean, &dims, channel)?;
        builder.binary(Opcode::Subtract, x, mean)?
    };
    let scale = along(builder, scale, &dims, channel)?;
    let offset = along(builder, inputs[2], &dims, channel)?;
    let scaled = builder.multiply(centred, scale)?;
    let mut y = builder.add(scaled, offset)?;
    if let Some(side) = side {
        let side = builder.convert(side, statistics_type)?;
        y = builder.add(y, side)?;
    }
    if activation == "Relu" {
        y = builder.relu(y)?;
    }
    let y = builder.convert(y, dtype)?;
    let count: i64 = axes(dims.len(), channel)
        .iter()
        .map(|&axis| dims[axis as usize])
        .product();
    let mut outputs = vec![y];
    if training {
        // What is reported is the unbiased variance; what is kept for the gradient is not.
        let correction = builder.scalar_like(count as f64 / (count - 1).max(1) as f64, variance)?;
        let unbiased = builder.multiply(variance, correction)?;
        outputs.push(averaged(builder, inputs[3], mean, factor)?);
        outputs.push(averaged(builder, inputs[4], unbiased, factor)?);
        outputs.extend([mean, variance]);
    } else {
        outputs.extend([mean, variance, mean, variance]);
    }
    if is_v3 {
        outputs.push(builder.full(statistics_type, &[0], 0.0)?);
    }
    for (index, output) in outputs.into_iter().enumerate() {
        context.set_output(index, output);
    }
    Ok(())
}

/// Mean and (biased) variance of each channel.
fn statistics(builder: &mut Builder, x: HloOp, channel: i64) -> Result<(HloOp, HloOp)> {
    let dims = builder.dims(x).to_vec();
    let axes = axes(dims.len(), channel);
    let count: i64 = axes.iter().map(|&axis| dims[axis as usize]).product();
    let sum = builder.reduce_sum(x, &axes)?;
    let count = builder.scalar_like(count as f64, sum)?;
    let mean = builder.divide(sum, count)?;
    let spread = along(builder, mean, &dims, channel)?;
    let centred = builder.binary(Opcode::Subtract, x, spread)?;
    let square = builder.square(centred)?;
    let squares = builder.reduce_sum(square, &axes)?;
    Ok((mean, builder.divide(squares, count)?))
}

/// `old (1 - factor) + new factor`; the new value when the factor is 1, as then no old one is given.
fn averaged(builder: &mut Builder, old: HloOp, new: HloOp, factor: f64) -> Result<HloOp> {
    if factor == 1.0 {
        return Ok(new);
    }
    let (keep, take) = (
        builder.scalar_like(1.0 - factor, new)?,
        builder.scalar_like(factor, new)?,
    );
    let (old, new) = (builder.multiply(old, keep)?, builder.multiply(new, take)?);
    builder.add(old, new)
}

fn gradient(context: &mut GradientContext, op: &str) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (x, scale) = (context.input(0)?, context.input(1)?);
    let training = context.attrs().bool("is_training")?;
    let (mean, variance) = if training {
        (context.output(3), context.output(4))
    } else {
        (context.input(3)?, context.input(4)?)
    };
    let mut inputs = vec![incoming, x, scale, mean, variance];
    if op.ends_with("V3") {
        inputs.push(context.output(5));
    }
    let mut attrs = ff_op::Attrs::new();
    for name in ["T", "U", "epsilon", "data_format", "is_training"] {
        if let Some(value) = context.attrs().get(name) {
            attrs.set(name, value.clone());
        }
    }
    let node = context.host.add_node(op, op, &inputs, attrs)?;
    for index in 0..3 {
        context.set(
            index,
            OutputRef {
                node,
                index: index as u32,
            },
        );
    }
    Ok(())
}

fn grad_shape(context: &mut ShapeContext) -> Result<()> {
    let x = context.input(1).merge(&context.input(0))?;
    let rank = x.rank().unwrap_or(4);
    ensure!(
        rank == 4 || (rank == 5 && is_v3(context.node())),
        InvalidArgument,
        "Shape must be rank 4 but is rank {rank}"
    );
    let mut channels = x.dim(format(context.attrs(), rank)?.channels() as i64);
    for index in 2..5 {
        channels = ff_tensor::dim::merge(channels, context.input_with_rank(index, 1)?.dim(0))?;
    }
    context.set_output(0, x);
    context.set_output(1, PartialShape::new(&[channels]));
    context.set_output(2, PartialShape::new(&[channels]));
    context.set_output(3, PartialShape::new(&[0]));
    context.set_output(4, PartialShape::new(&[0]));
    Ok(())
}

fn lower_grad(context: &mut LowerContext) -> Result<()> {
    let (dims, dtype) = (context.input_dims(1)?, context.output_type(0));
    let channel = format(context.attrs(), dims.len())?.channels() as i64;
    let epsilon = f64::from(context.attrs().float("epsilon")?);
    let training = context.attrs().bool("is_training")?;
    let inputs: Vec<HloOp> = (0..5).map(|index| context.input(index)).collect::<Result<_>>()?;
    let builder = &mut *context.builder;
    let statistics_type: DataType = builder.dtype(inputs[2]);
    let dy = builder.convert(inputs[0], statistics_type)?;
    let x = builder.convert(inputs[1], statistics_type)?;
    let reduced = axes(dims.len(), channel);
    let count: i64 = reduced.iter().map(|&axis| dims[axis as usize]).product();
    let epsilon = builder.scalar_like(epsilon, inputs[4])?;
    let sum = builder.add(inputs[4], epsilon)?;
    let inverse = builder.unary(Opcode::Rsqrt, sum)?;
    let mean = along(builder, inputs[3], &dims, channel)?;
    let centred = builder.binary(Opcode::Subtract, x, mean)?;
    let offset_gradient = builder.reduce_sum(dy, &reduced)?;
    let product = builder.multiply(dy, centred)?;
    let correlation = builder.reduce_sum(product, &reduced)?;
    let scale_gradient = builder.multiply(correlation, inverse)?;
    let scale = builder.multiply(inputs[2], inverse)?;
    let scale = along(builder, scale, &dims, channel)?;
    let dx = if training {
        let count = builder.scalar_like(count as f64, offset_gradient)?;
        let mean_dy = builder.divide(offset_gradient, count)?;
        let mean_dy = along(builder, mean_dy, &dims, channel)?;
        let inverse_square = builder.square(inverse)?;
        let slope = builder.divide(correlation, count)?;
        let slope = builder.multiply(slope, inverse_square)?;
        let slope = along(builder, slope, &dims, channel)?;
        let drift = builder.multiply(centred, slope)?;
        let rest = builder.binary(Opcode::Subtract, dy, mean_dy)?;
        let rest = builder.binary(Opcode::Subtract, rest, drift)?;
        builder.multiply(rest, scale)?
    } else {
        builder.multiply(dy, scale)?
    };
    let dx = builder.convert(dx, dtype)?;
    let empty = builder.full(statistics_type, &[0], 0.0)?;
    for (index, output) in [dx, scale_gradient, offset_gradient, empty, empty]
        .into_iter()
        .enumerate()
    {
        context.set_output(index, output);
    }
    Ok(())
}

crate::op_cases! {
    gradient_of_another_scale: family(&["FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"], &[DataType::FLOAT], |op, dtype| {
        let case = Case::op(op).inputs([cycle(dtype, &[2, 1, 1, 2]), cycle(dtype, &[2, 1, 1, 2]), vector(&[1.0f32]), vector(&[1.0f32, 2.0]), vector(&[1.0f32, 2.0])]);
        let case = if op.ends_with("V3") { case.input(t::<f32>(&[0], &[])) } else { case };
        case.fails(Code::InvalidArgument)
    });
    training_with_a_scalar_mean: Case::op("FusedBatchNorm").inputs([cycle(DataType::FLOAT, &[2, 1, 1, 1]), vector(&[1.0f32]), vector(&[0.5f32]), scalar(1.0f32), vector::<f32>(&[])])
        .fails(Code::InvalidArgument);
    volumes_in_the_first_version: Case::op("FusedBatchNormGrad").inputs([cycle(DataType::FLOAT, &[1, 1, 1, 1, 1]), cycle(DataType::FLOAT, &[1, 1, 1, 1, 1])])
        .inputs([vector(&[1.0f32]), vector(&[7.0f32]), vector(&[21.0f32])]).fails(Code::InvalidArgument);
    inference: family(&["FusedBatchNormV3"], &[DataType::FLOAT, DataType::HALF, DataType::BFLOAT16], |op, dtype| {
        let row = |values: &[f64]| numbers(DataType::FLOAT, &[2], values);
        Case::op(op).inputs([cycle(dtype, &[2, 2, 2, 2]), row(&[1.0, 2.0]), row(&[0.5, -1.0]), row(&[3.0, 2.0]), row(&[4.0, 2.0])])
            .attr("is_training", false)
    });
    second_version: Case::op("FusedBatchNormV2").input(cycle(DataType::FLOAT, &[2, 2, 2, 2]))
        .inputs([vector(&[1.0f32, 2.0]), vector(&[0.5f32, -1.0]), vector(&[3.0f32, 2.0]), vector(&[4.0f32, 2.0])]).attr("is_training", false);
    later_gradients: family(&["FusedBatchNormGradV2", "FusedBatchNormGradV3"], &[DataType::FLOAT], |op, dtype| {
        let case = Case::op(op).inputs([cycle(dtype, &[2, 2, 2, 2]), counting(dtype, &[2, 2, 2, 2])])
            .inputs([vector(&[1.0f32, 2.0]), vector(&[7.0f32, 8.0]), vector(&[21.0f32, 21.0])]);
        if op.ends_with("V3") { case.input(t::<f32>(&[0], &[])) } else { case }
    });
    training_in_half: family(&["FusedBatchNormV3"], &[DataType::HALF, DataType::BFLOAT16], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[2, 2, 2, 2]))
            .inputs([vector(&[1.0f32, 2.0]), vector(&[0.5f32, -1.0]), t::<f32>(&[0], &[]), t::<f32>(&[0], &[])])
    });
    training: Case::op("FusedBatchNorm").input(cycle(DataType::FLOAT, &[2, 2, 2, 2]))
        .inputs([vector(&[1.0f32, 2.0]), vector(&[0.5f32, -1.0]), t::<f32>(&[0], &[]), t::<f32>(&[0], &[])]);
    training_v3: Case::op("FusedBatchNormV3").input(cycle(DataType::FLOAT, &[2, 2, 2, 2]))
        .inputs([vector(&[1.0f32, 2.0]), vector(&[0.5f32, -1.0]), vector(&[1.0f32, 2.0]), vector(&[3.0f32, 4.0])])
        .attr("exponential_avg_factor", 0.25f32);
    half_precision: family(&["FusedBatchNormV2", "FusedBatchNormV3"], &[DataType::HALF, DataType::BFLOAT16], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 2, 2, 2]), vector(&[1.0f32, 2.0]), vector(&[0.5f32, -1.0]), vector(&[1.0f32, 2.0]), vector(&[3.0f32, 4.0])])
            .attr("is_training", false)
    });
    with_activation: Case::op("_FusedBatchNormEx").input(cycle(DataType::FLOAT, &[2, 2, 2, 2])).attr("activation_mode", "Relu")
        .inputs([vector(&[1.0f32, 2.0]), vector(&[0.5f32, -1.0]), vector(&[1.0f32, 2.0]), vector(&[3.0f32, 4.0])]).attr("is_training", false)
        .attr("num_side_inputs", 0i64);
    with_side_input: Case::op("_FusedBatchNormEx").input(cycle(DataType::FLOAT, &[1, 1, 1, 2])).attr("activation_mode", "Relu").attr("epsilon", 0.0f32)
        .inputs([vector(&[1.0f32, 2.0]), vector(&[0.5f32, -1.0]), vector(&[1.0f32, 2.0]), vector(&[4.0f32, 4.0]), t(&[1, 1, 1, 2], &[1.0f32, 3.5])])
        .attr("is_training", false).attr("num_side_inputs", 1i64)
        .gives(t(&[1, 1, 1, 2], &[1.0f32, 1.5])).gives(vector(&[1.0f32, 2.0])).gives(vector(&[4.0f32, 4.0])).gives(vector(&[1.0f32, 2.0]))
        .gives(vector(&[4.0f32, 4.0])).gives(vector::<f32>(&[]));
    with_unknown_activation: Case::op("_FusedBatchNormEx").input(cycle(DataType::FLOAT, &[2, 2, 2, 2])).attr("activation_mode", "Tanh")
        .inputs([vector(&[1.0f32, 2.0]), vector(&[0.5f32, -1.0]), vector(&[1.0f32, 2.0]), vector(&[3.0f32, 4.0])]).attr("is_training", false)
        .attr("num_side_inputs", 0i64).fails(Code::InvalidArgument);
    misfit: Case::op("FusedBatchNormV3").input(cycle(DataType::FLOAT, &[2, 2, 2, 2]))
        .inputs([vector(&[1.0f32]), vector(&[0.5f32, -1.0]), vector(&[1.0f32, 2.0]), vector(&[3.0f32, 4.0])])
        .attr("is_training", false).fails(Code::InvalidArgument);
    gradient: Case::op("FusedBatchNormGrad").inputs([cycle(DataType::FLOAT, &[2, 2, 2, 2]), counting(DataType::FLOAT, &[2, 2, 2, 2])])
        .inputs([vector(&[1.0f32, 2.0]), vector(&[7.0f32, 8.0]), vector(&[21.0f32, 21.0])]);
}
