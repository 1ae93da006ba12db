//! Adding a vector along the channel axis.

use super::geometry::Format;
use ff_hlo::Opcode;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, ensure};

static BIAS_ADD: Op = Op {
    name: "BiasAdd",
    shape,
    kernels: &[
        Kernel::native(bias_add).for_types(crate::dispatch::FAST),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};
static BIAS_ADD_V1: Op = Op {
    name: "BiasAddV1",
    ..BIAS_ADD
};
static BIAS_ADD_GRAD: Op = Op {
    name: "BiasAddGrad",
    shape: grad_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_grad),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&BIAS_ADD, &BIAS_ADD_V1, &BIAS_ADD_GRAD];

/// The channel axis of a value of this rank.
fn channel_axis(attrs: &Attrs, rank: usize) -> Result<usize> {
    Ok(if Format::of(attrs, 2)?.channels_last {
        rank - 1
    } else {
        1
    })
}

fn shape(context: &mut ShapeContext) -> Result<()> {
    let value = context.input_with_rank_at_least(0, 2)?;
    let bias = context.input_with_rank(1, 1).map_err(|error| {
        context.in_words_of_kernel(error, || format!("Biases must be 1D: {}", context.input(1)))
    })?;
    if let Some(rank) = value.rank() {
        let axis = channel_axis(context.attrs(), rank)? as i64;
        let channels = ff_tensor::dim::merge(value.dim(axis), bias.dim(0)).map_err(|error| {
            let place = if axis + 1 == rank as i64 { "last" } else { "channel" };
            context.in_words_of_kernel(error, || {
                format!("Must provide as many biases as the {place} dimension of the input tensor: {bias} vs. {value}")
            })
        })?;
        context.set_output(0, value.with_dim(axis, channels)?);
    }
    Ok(())
}

fn bias_add(context: &mut KernelContext) -> Result<()> {
    let rank = context.input(0)?.rank();
    let axis = channel_axis(context.attrs(), rank)?;
    let channels = context.input(1)?.num_elements();
    let mut dims = vec![1; rank];
    dims[axis] = channels as i64;
    let bias = context.take_input(1)?.into_shape(ff_tensor::Shape::new(&dims)?)?;
    let pool = context.pool();
    crate::match_fast!(context.output_type(0), T => {
        use crate::math::number::Number;
        let (mut output, in_place) = context.forward_or_allocate(0, 0)?;
        let out_dims = crate::elementwise::extents(output.dims());
        let bias_dims = crate::elementwise::extents(bias.dims());
        let (values, cost) = (output.as_mut_slice::<T>()?, ff_kernels::elementwise::cost::SIMPLE);
        if in_place {
            let bias = bias.as_slice()?;
            ff_kernels::broadcast::binary_broadcast_in_place(pool, values, &out_dims, bias, &bias_dims, cost, T::add);
        } else {
            let value = context.input_slice::<T>(0)?;
            let bias = bias.as_slice()?;
            ff_kernels::broadcast::binary_broadcast(
                pool, value, &out_dims, bias, &bias_dims, values, &out_dims, cost, T::add,
            );
        }
        context.set_output(0, output)
    })
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let (value, bias) = (context.input(0)?, context.input(1)?);
    let dims = context.input_dims(0)?;
    let axis = channel_axis(context.attrs(), dims.len())? as i64;
    let bias = context.builder.broadcast_in_dim(bias, &dims, &[axis])?;
    let sum = context.builder.binary(Opcode::Add, value, bias)?;
    context.set_output(0, sum);
    Ok(())
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let mut attrs = Attrs::new().with("T", context.dtype(incoming));
    if let Some(format) = context.attrs().get("data_format") {
        attrs.set("data_format", format.clone());
    }
    let bias = context.op("BiasAddGrad", &[incoming], attrs)?;
    context.set(0, incoming);
    context.set(1, bias);
    Ok(())
}

fn grad_shape(context: &mut ShapeContext) -> Result<()> {
    let incoming = context.input_with_rank_at_least(0, 2)?;
    let channels = match incoming.rank() {
        Some(rank) => incoming.dim(channel_axis(context.attrs(), rank)? as i64),
        None => ff_tensor::dim::UNKNOWN,
    };
    context.set_output(0, PartialShape::new(&[channels]));
    Ok(())
}

fn lower_grad(context: &mut LowerContext) -> Result<()> {
    let incoming = context.input(0)?;
    let rank = context.builder.rank(incoming);
    ensure!(rank >= 2, InvalidArgument, "Input tensor must be at least 2D");
    let axis = channel_axis(context.attrs(), rank)? as i64;
    let axes: Vec<i64> = (0..rank as i64).filter(|&other| other != axis).collect();
    let dtype = context.output_type(0);
    let wide = if dtype.is_floating() && dtype.size() < 4 {
        ff_tensor::DataType::FLOAT
    } else {
        dtype
    };
    let incoming = context.builder.convert(incoming, wide)?;
    let sum = context.builder.reduce_sum(incoming, &axes)?;
    let sum = context.builder.convert(sum, dtype)?;
    context.set_output(0, sum);
    Ok(())
}

crate::op_cases! {
    added: family(&["BiasAdd", "BiasAddV1"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 2, 3]), numbers(dtype, &[3], &[1.0, 2.0, 3.0])])
    });
    added_to_channels_first: family(&["BiasAdd"], FLOATS, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 2, 2]), numbers(dtype, &[3], &[1.0, 2.0, 3.0])]).attr("data_format", "NCHW")
    });
    added_to_nothing: family(&["BiasAdd"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[0, 3]), numbers(dtype, &[3], &[1.0, 2.0, 3.0])])
    });
    added_misfit: family(&["BiasAdd", "BiasAddV1"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 2]), numbers(dtype, &[3], &[1.0, 2.0, 3.0])]).fails(Code::InvalidArgument)
    });
    summed: family(&["BiasAddGrad"], FRACTIONS, |op, dtype| Case::op(op).input(cycle(dtype, &[2, 2, 3])));
    summed_channels_first: family(&["BiasAddGrad"], FLOATS, |op, dtype| {
        Case::op(op).input(cycle(dtype, &[2, 3, 2, 2])).attr("data_format", "NCHW")
    });
    summed_scalar: Case::op("BiasAddGrad").input(scalar(1.0f32)).fails(Code::InvalidArgument);
}
