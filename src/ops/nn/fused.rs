//! Products and convolutions with what follows them, as graph optimizers make them; padding before a convolution.

use super::conv::{convolution, convolved, shape as conv_shape};
use super::geometry::Format;
use crate::array::pad::mirrored;
use crate::image::sampling::{Scale, linear};
use ff_hlo::{Builder, Direction, DotDims, Op as HloOp, Opcode};
use ff_op::{Kernel, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, bail, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "_FusedConv2D",
        shape: |context| conv_shape(context, 2, false),
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(|context| lower_convolution(context, false)),
        ..Op::PURE
    },
    &Op {
        name: "_FusedDepthwiseConv2dNative",
        shape: |context| conv_shape(context, 2, true),
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(|context| lower_convolution(context, true)),
        ..Op::PURE
    },
    &Op {
        name: "_FusedMatMul",
        shape: product_shape,
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(lower_product),
        ..Op::PURE
    },
    &Op {
        name: "FusedPadConv2D",
        shape: |context| padded_shape(context, false),
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(|context| lower_padded(context, false)),
        ..Op::PURE
    },
    &Op {
        name: "FusedResizeAndPadConv2D",
        shape: |context| padded_shape(context, true),
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(|context| lower_padded(context, true)),
        ..Op::PURE
    },
];

fn product_shape(context: &mut ShapeContext) -> Result<()> {
    let (a, b) = (context.input_with_rank(0, 2)?, context.input_with_rank(1, 2)?);
    let (ta, tb) = (
        i64::from(context.attrs().bool("transpose_a")?),
        i64::from(context.attrs().bool("transpose_b")?),
    );
    dim::merge(a.dim(1 - ta), b.dim(tb))?;
    context.set_output(0, PartialShape::new(&[a.dim(ta), b.dim(1 - tb)]));
    Ok(())
}

fn lower_product(context: &mut LowerContext) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let dims = DotDims::matmul(
        context.attrs().bool("transpose_a")?,
        context.attrs().bool("transpose_b")?,
    );
    let product = context.builder.dot_general(a, b, dims, None)?;
    let result = followed(context, product, 1)?;
    context.set_output(0, result);
    Ok(())
}

fn lower_convolution(context: &mut LowerContext, depthwise: bool) -> Result<()> {
    let (input, filter) = (context.input(0)?, context.input(1)?);
    let attrs = &context.node().attrs;
    let channels = Format::of(attrs, 2)?.channels();
    let result = convolution(context.builder, attrs, input, filter, 2, depthwise)?;
    let result = followed(context, result, channels)?;
    context.set_output(0, result);
    Ok(())
}

/// What the attribute `fused_ops` says, on a value with channels along an axis; arguments are inputs from 2 on.
fn followed(context: &mut LowerContext, value: HloOp, channels: usize) -> Result<HloOp> {
    let attrs = &context.node().attrs;
    let names: Vec<&[u8]> = attrs.strings("fused_ops")?.iter().map(|name| &name[..]).collect();
    ensure!(
        !names.is_empty(),
        InvalidArgument,
        "{} must have at least one fused op.",
        context.node().op_name()
    );
    let mut result = value;
    let mut next = 2;
    for name in names {
        let dims = context.builder.dims(result).to_vec();
        result = match name {
            b"BiasAdd" => {
                let bias = context.input(next)?;
                next += 1;
                let bias = context
                    .builder
                    .broadcast_in_dim(bias, &dims, &[channels as i64])?;
                context.builder.add(result, bias)?
            }
            b"Add" => {
                let other = context.input(next)?;
                next += 1;
                context.builder.add(result, other)?
            }
            b"FusedBatchNorm" => {
                let mut vectors = Vec::new();
                for _ in 0..4 {
                    vectors.push(context.input(next)?);
                    next += 1;
                }
                let epsilon = f64::from(attrs.float("epsilon")?);
                normalized(context.builder, result, &vectors, epsilon, channels as i64)?
            }
            b"LeakyRelu" => {
                let alpha = f64::from(attrs.float("leakyrelu_alpha")?);
                leaky(context.builder, result, alpha)?
            }
            other => activated(context.builder, result, other)?,
        };
    }
    Ok(result)
}

/// `(x - mean) scale / sqrt(variance + epsilon) + offset` from scale, offset, mean and variance.
fn normalized(
    builder: &mut Builder,
    x: HloOp,
    vectors: &[HloOp],
    epsilon: f64,
    channels: i64,
) -> Result<HloOp> {
    let dims = builder.dims(x).to_vec();
    let epsilon = builder.scalar_like(epsilon, vectors[3])?;
    let variance = builder.add(vectors[3], epsilon)?;
    let inverse = builder.unary(Opcode::Rsqrt, variance)?;
    let scale = builder.multiply(inverse, vectors[0])?;
    let mean = builder.broadcast_in_dim(vectors[2], &dims, &[channels])?;
    let scale = builder.broadcast_in_dim(scale, &dims, &[channels])?;
    let offset = builder.broadcast_in_dim(vectors[1], &dims, &[channels])?;
    let centred = builder.subtract(x, mean)?;
    let scaled = builder.multiply(centred, scale)?;
    builder.add(scaled, offset)
}

fn leaky(builder: &mut Builder, x: HloOp, alpha: f64) -> Result<HloOp> {
    let alpha = builder.scalar_like(alpha, x)?;
    let below = builder.multiply(x, alpha)?;
    positive_or(builder, x, below)
}

/// `x` where it is positive, `below` elsewhere.
fn positive_or(builder: &mut Builder, x: HloOp, below: HloOp) -> Result<HloOp> {
    let zero = builder.scalar_like(0.0, x)?;
    let on = builder.compare_broadcast(Direction::Gt, x, zero)?;
    builder.select(on, x, below)
}

fn activated(builder: &mut Builder, x: HloOp, name: &[u8]) -> Result<HloOp> {
    match name {
        b"Relu" => builder.relu(x),
        b"Relu6" => {
            let six = builder.scalar_like(6.0, x)?;
            let positive = builder.relu(x)?;
            builder.minimum(positive, six)
        }
        b"Elu" => {
            let below = builder.unary(Opcode::ExponentialMinusOne, x)?;
            positive_or(builder, x, below)
        }
        b"Tanh" => builder.unary(Opcode::Tanh, x),
        b"Sigmoid" => builder.unary(Opcode::Logistic, x),
        b"GeluExact" => {
            let factor = builder.scalar_like(std::f64::consts::FRAC_1_SQRT_2, x)?;
            let scaled = builder.multiply(x, factor)?;
            let bell = builder.unary(Opcode::Erf, scaled)?;
            half_of_one_plus(builder, x, bell)
        }
        b"GeluApproximate" => {
            // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
            let square = builder.square(x)?;
            let factor = builder.scalar_like(0.044715, x)?;
            let cubic = builder.multiply(square, factor)?;
            let one = builder.scalar_like(1.0, x)?;
            let sum = builder.add(cubic, one)?;
            let product = builder.multiply(sum, x)?;
            let factor = builder.scalar_like((2.0 / std::f64::consts::PI).sqrt(), x)?;
            let product = builder.multiply(product, factor)?;
            let bend = builder.unary(Opcode::Tanh, product)?;
            half_of_one_plus(builder, x, bend)
        }
        other => bail!(
            Unimplemented,
            "Fusion is not implemented: {}",
            String::from_utf8_lossy(other)
        ),
    }
}

/// `x (1 + y) / 2`.
fn half_of_one_plus(builder: &mut Builder, x: HloOp, y: HloOp) -> Result<HloOp> {
    let one = builder.scalar_like(1.0, x)?;
    let sum = builder.add(y, one)?;
    let half = builder.scalar_like(0.5, x)?;
    let product = builder.multiply(sum, half)?;
    builder.multiply(product, x)
}

/// The shape after resizing and padding, convolved.
fn padded_shape(context: &mut ShapeContext, resize: bool) -> Result<()> {
    let mut input = context.input_with_rank(0, 4)?;
    let first = 1 + usize::from(resize);
    let filter = context.input_with_rank(first + 1, 4)?;
    if resize {
        let size = context.input_with_rank(1, 1)?;
        dim::merge(size.dim(0), 2)?;
        let (height, width) = match context.input_as_i64s(1)? {
            Some(values) if values.len() == 2 => {
                ensure!(
                    values.iter().all(|&extent| extent > 0),
                    InvalidArgument,
                    "output dimensions must be positive"
                );
                (values[0], values[1])
            }
            _ => (dim::UNKNOWN, dim::UNKNOWN),
        };
        input = PartialShape::new(&[input.dim(0), height, width, input.dim(3)]);
    }
    let paddings = context.input_with_rank(first, 2)?;
    dim::merge(paddings.dim(0), 4)?;
    dim::merge(paddings.dim(1), 2)?;
    let mut dims = [dim::UNKNOWN; 4];
    if let Some(values) = context.input_as_i64s(first)? {
        let skip = i64::from(context.attrs().string("mode")? == "REFLECT");
        for (i, to) in dims.iter_mut().enumerate() {
            let (before, after) = (values[2 * i], values[2 * i + 1]);
            ensure!(
                before >= 0 && after >= 0,
                InvalidArgument,
                "paddings must be non-negative: {before} {after}"
            );
            let extent = input.dim(i as i64);
            ensure!(
                extent < 0 || before.max(after) <= extent - skip,
                InvalidArgument,
                "paddings must be no greater than the dimension size: {before}, {after} greater than {extent}"
            );
            *to = dim::add(dim::add(extent, before)?, after)?;
        }
    }
    let shape = convolved(context, &PartialShape::new(&dims), &filter, 2, false)?;
    context.set_output(0, shape);
    Ok(())
}

fn lower_padded(context: &mut LowerContext, resize: bool) -> Result<()> {
    let mut input = context.input(0)?;
    let first = 1 + usize::from(resize);
    if resize {
        let size = context.constant_i64s(1)?;
        let align = context.attrs().bool("resize_align_corners")?;
        input = resized(context.builder, input, &size, align)?;
    }
    let (amounts, filter) = (context.constant_i64s(first)?, context.input(first + 1)?);
    let attrs = &context.node().attrs;
    let padded = mirrored(context.builder, attrs, input, &amounts)?;
    let result = convolution(context.builder, attrs, padded, filter, 2, false)?;
    context.set_output(0, result);
    Ok(())
}

/// Linear interpolation along height and width, as products with matrices of weights.
fn resized(builder: &mut Builder, image: HloOp, size: &[i64], align: bool) -> Result<HloOp> {
    ensure!(
        !builder.dims(image).contains(&0),
        InvalidArgument,
        "Input tensor can't be empty"
    );
    let dtype = builder.dtype(image);
    let mut result = builder.convert(image, DataType::FLOAT)?;
    for (axis, &output) in [1, 2].into_iter().zip(size) {
        let input = builder.dims(result)[axis];
        let scale = Scale::new(input as usize, output as usize, align, false);
        let mut weights = Tensor::zeros(DataType::FLOAT, Shape::new(&[output, input])?)?;
        let values = weights.as_mut_slice::<f32>()?;
        let places = linear(scale, input as usize, output as usize)?;
        for (row, place) in places.into_iter().enumerate() {
            let row = &mut values[row * input as usize..][..input as usize];
            row[place.lower] += 1.0 - place.weight;
            row[place.upper] += place.weight;
        }
        let weights = builder.constant(weights)?;
        let dims = DotDims {
            lhs_contracting: [1].into_iter().collect(),
            rhs_contracting: [axis as i64].into_iter().collect(),
            ..DotDims::default()
        };
        // The new axis comes first; it goes back to its place.
        let product = builder.dot_general(weights, result, dims, None)?;
        let order: &[i64] = if axis == 1 { &[1, 0, 2, 3] } else { &[1, 2, 0, 3] };
        result = builder.transpose(product, order)?;
    }
    builder.convert(result, dtype)
}

#[cfg(test)]
fn names(list: &[&'static str]) -> Vec<ff_proto::Bytes> {
    list.iter()
        .map(|name| ff_proto::Bytes::from_static(name.as_bytes()))
        .collect()
}

crate::op_cases! {
    convolution_with_bias: family(&["_FusedConv2D"], &[DataType::FLOAT, DataType::BFLOAT16], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 4, 4, 2]), cycle(dtype, &[2, 2, 2, 3]), numbers(dtype, &[3], &[0.5, -60.0, -100.0])])
            .attr("strides", vec![1i64; 4]).attr("padding", "VALID").attr("fused_ops", names(&["BiasAdd", "Relu"])).attr("num_args", 1i64)
            .attr("num_host_args", 0i64).attr("TArgs", vec![dtype])
    });
    convolution_normalized: Case::op("_FusedConv2D").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 2]), cycle(DataType::FLOAT, &[2, 2, 2, 2])])
        .inputs([vector(&[1.0f32, 0.5]), vector(&[0.5f32, -1.0]), vector(&[30.0f32, 40.0]), vector(&[4.0f32, 9.0])])
        .attr("strides", vec![1i64; 4]).attr("padding", "SAME").attr("fused_ops", names(&["FusedBatchNorm", "LeakyRelu"])).attr("num_args", 4i64)
        .attr("num_host_args", 0i64).attr("TArgs", vec![DataType::FLOAT; 4]).attr("epsilon", 0.001f32);
    convolution_with_nothing: Case::op("_FusedConv2D").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 2]), cycle(DataType::FLOAT, &[2, 2, 2, 2]), vector(&[1.0f32, 0.5])])
        .attr("strides", vec![1i64; 4]).attr("padding", "SAME").attr("num_args", 1i64).attr("num_host_args", 0i64).attr("TArgs", vec![DataType::FLOAT]).fails(Code::InvalidArgument);
    by_depth: Case::op("_FusedDepthwiseConv2dNative").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 2]), cycle(DataType::FLOAT, &[2, 2, 2, 1]), vector(&[-3.0f32, -4.0])])
        .attr("strides", vec![1i64; 4]).attr("padding", "SAME").attr("fused_ops", names(&["BiasAdd", "Relu6"])).attr("num_args", 1i64);
    by_depth_misfit: Case::op("_FusedDepthwiseConv2dNative").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 2]), cycle(DataType::FLOAT, &[2, 2, 3, 1]), vector(&[-3.0f32, -4.0])])
        .attr("strides", vec![1i64; 4]).attr("padding", "SAME").attr("fused_ops", names(&["BiasAdd"])).attr("num_args", 1i64).fails(Code::InvalidArgument);
    products: family(&["_FusedMatMul"], &[DataType::FLOAT, DataType::BFLOAT16], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3]), cycle(dtype, &[3, 2]), numbers(dtype, &[2], &[0.5, -20.0])])
            .attr("fused_ops", names(&["BiasAdd", "Elu"])).attr("num_args", 1i64)
    });
    product_curved: Case::op("_FusedMatMul").inputs([numbers(DataType::FLOAT, &[2, 2], &[0.1, -0.2, 0.3, 0.4]), cycle(DataType::FLOAT, &[2, 2]), vector(&[0.5f32, -1.0])])
        .attr("fused_ops", names(&["BiasAdd", "GeluApproximate"])).attr("num_args", 1i64);
    product_erf: Case::op("_FusedMatMul").inputs([numbers(DataType::FLOAT, &[2, 2], &[0.1, -0.2, 0.3, 0.4]), cycle(DataType::FLOAT, &[2, 2]), vector(&[0.5f32, -1.0])])
        .attr("fused_ops", names(&["BiasAdd", "GeluExact"])).attr("num_args", 1i64);
    product_misfit: Case::op("_FusedMatMul").inputs([cycle(DataType::FLOAT, &[2, 3]), cycle(DataType::FLOAT, &[2, 2]), vector(&[0.5f32, -1.0])])
        .attr("fused_ops", names(&["BiasAdd"])).attr("num_args", 1i64).fails(Code::InvalidArgument);
    padded: family(&["FusedPadConv2D"], &FLOATS[..3], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 4, 4, 2]), t(&[4, 2], &[0, 0, 1, 2, 2, 1, 0, 0]), cycle(dtype, &[2, 2, 2, 3])])
            .attr("mode", "REFLECT").attr("strides", vec![1i64; 4]).attr("padding", "VALID")
    });
    padded_too_much: Case::op("FusedPadConv2D").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 2]), t(&[4, 2], &[0, 0, 9, 2, 2, 1, 0, 0]), cycle(DataType::FLOAT, &[2, 2, 2, 3])])
        .attr("mode", "REFLECT").attr("strides", vec![1i64; 4]).attr("padding", "VALID").fails(Code::InvalidArgument);
    resized_and_padded: family(&["FusedResizeAndPadConv2D"], &FLOATS[..3], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 4, 4, 2]), vector(&[6, 3]), t(&[4, 2], &[0, 0, 1, 2, 2, 1, 0, 0]), cycle(dtype, &[2, 2, 2, 3])])
            .attr("mode", "SYMMETRIC").attr("strides", vec![1i64; 4]).attr("padding", "SAME")
    });
    resized_to_nothing: Case::op("FusedResizeAndPadConv2D").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 2]), vector(&[0, 3]), t(&[4, 2], &[0, 0, 1, 2, 2, 1, 0, 0]), cycle(DataType::FLOAT, &[2, 2, 2, 3])])
        .attr("mode", "SYMMETRIC").attr("strides", vec![1i64; 4]).attr("padding", "SAME").fails(Code::InvalidArgument);
}
