//! Pieces that gradients of numeric ops share.

use ff_op::{Attrs, GradientContext, OutputRef};
use ff_tensor::{DataType, Result, Tensor, bf16, f16, status};

/// Attributes of an op with one type.
pub fn typed(dtype: DataType) -> Attrs {
    Attrs::new().with("T", dtype)
}

/// Adds a binary op of the type of the first input.
pub fn binary(context: &mut GradientContext, op: &str, a: OutputRef, b: OutputRef) -> Result<OutputRef> {
    let dtype = context.dtype(a);
    context.op(op, &[a, b], typed(dtype))
}

/// Adds a unary op.
pub fn unary(context: &mut GradientContext, op: &str, a: OutputRef) -> Result<OutputRef> {
    let dtype = context.dtype(a);
    context.op(op, &[a], typed(dtype))
}

/// The conjugate of a complex value; a real one itself.
pub fn conjugate(context: &mut GradientContext, a: OutputRef) -> Result<OutputRef> {
    if context.dtype(a).is_complex() {
        unary(context, "Conj", a)
    } else {
        Ok(a)
    }
}

/// A scalar constant of the type of `like`.
pub fn scalar_like(context: &mut GradientContext, value: f64, like: OutputRef) -> Result<OutputRef> {
    let dtype = context.dtype(like);
    let tensor = scalar_of(dtype, value)?;
    context.constant(tensor)
}

/// A scalar tensor of a numeric type. UNIMPLEMENTED for other types.
pub fn scalar_of(dtype: DataType, value: f64) -> Result<Tensor> {
    match dtype {
        DataType::FLOAT => Tensor::scalar(value as f32),
        DataType::DOUBLE => Tensor::scalar(value),
        DataType::HALF => Tensor::scalar(f16::from_f64(value)),
        DataType::BFLOAT16 => Tensor::scalar(bf16::from_f64(value)),
        DataType::INT32 => Tensor::scalar(value as i32),
        DataType::INT64 => Tensor::scalar(value as i64),
        DataType::COMPLEX64 => Tensor::scalar(ff_tensor::Complex64::new(value as f32, 0.0)),
        DataType::COMPLEX128 => Tensor::scalar(ff_tensor::Complex128::new(value, 0.0)),
        other => Err(status!(Unimplemented, "no scalar constant of type {other}")),
    }
}

/// The shape of a value as an int32 vector.
pub fn shape_of(context: &mut GradientContext, value: OutputRef) -> Result<OutputRef> {
    let attrs = typed(context.dtype(value)).with("out_type", DataType::INT32);
    context.op("Shape", &[value], attrs)
}

/// Sets the gradients of inputs 0 and 1 of a broadcasting op: each is summed to the shape of its input.
pub fn set_broadcast(context: &mut GradientContext, da: OutputRef, db: OutputRef) -> Result<()> {
    let (a, b) = (context.input(0)?, context.input(1)?);
    let (a_shape, b_shape) = (context.host.shape(a), context.host.shape(b));
    if a_shape.is_fully_known() && a_shape == b_shape {
        context.set(0, da);
        context.set(1, db);
        return Ok(());
    }
    let (a_dims, b_dims) = (shape_of(context, a)?, shape_of(context, b)?);
    let axes = context.host.add_node(
        "BroadcastGradientArgs",
        "BroadcastGradientArgs",
        &[a_dims, b_dims],
        typed(DataType::INT32),
    )?;
    for (index, gradient, dims) in [(0, da, a_dims), (1, db, b_dims)] {
        set_summed(
            context,
            index,
            gradient,
            OutputRef {
                node: axes,
                index: index as u32,
            },
            dims,
        )?;
    }
    Ok(())
}

/// Sets the gradient of an input: summed along `axes`, then in the input's shape.
fn set_summed(
    context: &mut GradientContext,
    index: usize,
    gradient: OutputRef,
    axes: OutputRef,
    dims: OutputRef,
) -> Result<()> {
    let attrs = typed(context.dtype(gradient))
        .with("Tidx", DataType::INT32)
        .with("keep_dims", false);
    let sum = context.op("Sum", &[gradient, axes], attrs)?;
    let attrs = typed(context.dtype(gradient)).with("Tshape", DataType::INT32);
    let reshaped = context.op("Reshape", &[sum, dims], attrs)?;
    context.set(index, reshaped);
    Ok(())
}

/// Sets the gradient of an input that was broadcast to the output: summed to the input's shape.
pub fn set_reduced(context: &mut GradientContext, index: usize, gradient: OutputRef) -> Result<()> {
    let input = context.input(index)?;
    let (shape, result) = (context.host.shape(input), context.host.shape(gradient));
    if shape.is_fully_known() && shape == result {
        context.set(index, gradient);
        return Ok(());
    }
    let (dims, result_dims) = (shape_of(context, input)?, shape_of(context, gradient)?);
    let attrs = typed(DataType::INT32);
    let axes = context.host.add_node(
        "BroadcastGradientArgs",
        "BroadcastGradientArgs",
        &[dims, result_dims],
        attrs,
    )?;
    set_summed(context, index, gradient, OutputRef { node: axes, index: 0 }, dims)
}
