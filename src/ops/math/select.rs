//! Choosing between two values element by element, and clipping.

use super::gradients::{binary, typed, unary};
use ff_hlo::{Builder, Op as HloOp, Opcode};
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext, shapes};
use ff_tensor::{Bool, DataType, PartialShape, Result, TString, Tensor, VariantValue, ensure};

static SELECT: Op = Op {
    name: "Select",
    shape: select_shape,
    kernels: &[
        Kernel::native(select_objects)
            .for_types(&[("T", &[DataType::STRING, DataType::VARIANT, DataType::RESOURCE])]),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower_select),
    gradient: Gradient::Fn(select_gradient),
    ..Op::PURE
};
static SELECT_V2: Op = Op {
    name: "SelectV2",
    shape: select_v2_shape,
    kernels: &[
        Kernel::native(select_objects)
            .for_types(&[("T", &[DataType::STRING, DataType::VARIANT, DataType::RESOURCE])]),
        Kernel::FROM_LOWERING,
    ],
    lower: Some(lower_select_v2),
    gradient: Gradient::Fn(select_v2_gradient),
    ..Op::PURE
};
static CLIP_BY_VALUE: Op = Op {
    name: "ClipByValue",
    shape: clip_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower_clip),
    gradient: Gradient::Fn(clip_gradient),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&SELECT, &SELECT_V2, &CLIP_BY_VALUE];

/// The values have one shape; the condition has it too, or is a scalar, or a vector along the first axis.
fn select_shape(context: &mut ShapeContext) -> Result<()> {
    let data = context.input(1).merge(&context.input(2))?;
    context.set_output(0, data.clone());
    let condition = context.input(0);
    if let (Some(rank), Some(data_rank)) = (condition.rank(), data.rank()) {
        let fits = rank == 0
            || (rank == 1
                && data_rank >= 1
                && PartialShape::new(&[data.dim(0)]).is_compatible_with(&condition))
            || condition.is_compatible_with(&data);
        ensure!(
            fits,
            InvalidArgument,
            "Shapes must be equal rank, but are {rank} and {data_rank} or the condition must be a scalar or vector, got {condition} and {data}"
        );
    }
    Ok(())
}

fn select_v2_shape(context: &mut ShapeContext) -> Result<()> {
    let values = shapes::broadcast(&context.input(1), &context.input(2))?;
    let shape = shapes::broadcast(&context.input(0), &values)?;
    context.set_output(0, shape);
    Ok(())
}

fn lower_select(context: &mut LowerContext) -> Result<()> {
    let (condition, a, b) = (context.input(0)?, context.input(1)?, context.input(2)?);
    let dims = context.input_dims(1)?;
    let builder = &mut *context.builder;
    let condition = match builder.rank(condition) {
        rank if rank == dims.len() => condition,
        0 => builder.broadcast_scalar(condition, &dims)?,
        _ => builder.broadcast_in_dim(condition, &dims, &[0])?,
    };
    let result = builder.select(condition, a, b)?;
    context.set_output(0, result);
    Ok(())
}

fn lower_select_v2(context: &mut LowerContext) -> Result<()> {
    let inputs = [context.input(0)?, context.input(1)?, context.input(2)?];
    let dims = {
        let (condition, a, b) = (
            context.input_dims(0)?,
            context.input_dims(1)?,
            context.input_dims(2)?,
        );
        let values = ff_hlo::broadcast_dims(&a, &b)?;
        ff_hlo::broadcast_dims(&condition, &values)?
    };
    let builder = &mut *context.builder;
    let condition = builder.broadcast_to(inputs[0], &dims)?;
    let a = builder.broadcast_to(inputs[1], &dims)?;
    let b = builder.broadcast_to(inputs[2], &dims)?;
    let result = builder.select(condition, a, b)?;
    context.set_output(0, result);
    Ok(())
}

/// Selection of elements that are not plain bytes.
fn select_objects(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let condition = context.input(0)?.clone();
    let along_first = context.node().op_name() == "Select" && condition.rank() == 1 && shape.rank() > 1;
    let places = |tensor: &Tensor| {
        let (out, dims) = (
            crate::elementwise::extents(shape.dims()),
            crate::elementwise::extents(tensor.dims()),
        );
        let plan = ff_kernels::broadcast::Broadcast::new(&out, [&dims]);
        let mut places = Vec::with_capacity(plan.len());
        let [step] = plan.row_strides();
        plan.for_each_row(0..plan.len(), |row, [start]| {
            places.extend((0..row.len()).map(|i| start + i * step))
        });
        places
    };
    let condition_places = if along_first {
        let inner = shape.num_elements() / shape.dim(0).max(1);
        (0..shape.num_elements())
            .map(|place| place / inner.max(1))
            .collect()
    } else {
        places(&condition)
    };
    let (a, b) = (context.input(1)?.clone(), context.input(2)?.clone());
    let flags = condition.as_slice::<Bool>()?;
    let chosen: Vec<(bool, usize)> = condition_places
        .iter()
        .zip(places(&a).into_iter().zip(places(&b)))
        .map(|(&c, (in_a, in_b))| {
            if flags[c].get() {
                (true, in_a)
            } else {
                (false, in_b)
            }
        })
        .collect();
    let output = match a.dtype() {
        DataType::STRING => {
            let (x, y) = (a.strings()?, b.strings()?);
            let values: Vec<TString> = chosen
                .iter()
                .map(|&(first, i)| if first { x[i].clone() } else { y[i].clone() })
                .collect();
            Tensor::from_strings(shape, values)?
        }
        DataType::RESOURCE => {
            let (x, y) = (a.resources()?, b.resources()?);
            let values = chosen
                .iter()
                .map(|&(first, i)| if first { x[i].clone() } else { y[i].clone() })
                .collect();
            Tensor::from_resources(shape, values)?
        }
        _ => {
            let (x, y) = (a.variants()?, b.variants()?);
            let values: Vec<VariantValue> = chosen
                .iter()
                .map(|&(first, i)| if first { x[i].clone() } else { y[i].clone() })
                .collect();
            Tensor::from_variants(shape, values)?
        }
    };
    context.set_output(0, output)
}

fn clip_shape(context: &mut ShapeContext) -> Result<()> {
    context.set_output(0, context.input(0));
    Ok(())
}

fn lower_clip(context: &mut LowerContext) -> Result<()> {
    let values = [context.input(0)?, context.input(1)?, context.input(2)?];
    let (dims, low, high) = (
        context.input_dims(0)?,
        context.input_dims(1)?,
        context.input_dims(2)?,
    );
    ensure!(
        [&low, &high]
            .iter()
            .all(|bound| bound.is_empty() || **bound == dims),
        InvalidArgument,
        "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. input shape: {dims:?}, clip_value_min shape: {low:?}, clip_value_max shape: {high:?}"
    );
    let builder = &mut *context.builder;
    let clipped = if builder.dtype(values[0]).is_complex() {
        let mut part = |opcode| -> Result<HloOp> {
            let parts = [
                builder.unary(opcode, values[0])?,
                builder.unary(opcode, values[1])?,
                builder.unary(opcode, values[2])?,
            ];
            clip(builder, parts)
        };
        let (real, imaginary) = (part(Opcode::Real)?, part(Opcode::Imag)?);
        builder.binary(Opcode::Complex, real, imaginary)?
    } else {
        clip(builder, values)?
    };
    context.set_output(0, clipped);
    Ok(())
}

/// Real numbers between two bounds; complex ones are clipped part by part.
fn clip(builder: &mut Builder, [x, low, high]: [HloOp; 3]) -> Result<HloOp> {
    let clipped = builder.binary_broadcast(Opcode::Minimum, x, high)?;
    builder.binary_broadcast(Opcode::Maximum, clipped, low)
}

fn select_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let condition = context.input(0)?;
    let zeros = unary(context, "ZerosLike", incoming)?;
    let attrs = typed(context.dtype(incoming));
    let da = context.op("Select", &[condition, incoming, zeros], attrs.clone())?;
    let db = context.op("Select", &[condition, zeros, incoming], attrs)?;
    context.set(1, da);
    context.set(2, db);
    Ok(())
}

fn select_v2_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let condition = context.input(0)?;
    let zeros = unary(context, "ZerosLike", incoming)?;
    let attrs = typed(context.dtype(incoming));
    let da = context.op("SelectV2", &[condition, incoming, zeros], attrs.clone())?;
    let db = context.op("SelectV2", &[condition, zeros, incoming], attrs)?;
    super::gradients::set_reduced(context, 1, da)?;
    super::gradients::set_reduced(context, 2, db)
}

/// The gradient of `x` where it lies within the bounds; of a bound where that was taken.
fn clip_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (x, low, high) = (context.input(0)?, context.input(1)?, context.input(2)?);
    let zeros = unary(context, "ZerosLike", incoming)?;
    let below = binary(context, "Less", x, low)?;
    let above = binary(context, "Greater", x, high)?;
    let outside = context.op("LogicalOr", &[below, above], ff_op::Attrs::new())?;
    let attrs = typed(context.dtype(incoming));
    let dx = context.op("SelectV2", &[outside, zeros, incoming], attrs.clone())?;
    let dlow = context.op("SelectV2", &[below, incoming, zeros], attrs.clone())?;
    let dhigh = context.op("SelectV2", &[above, incoming, zeros], attrs)?;
    context.set(0, dx);
    super::gradients::set_reduced(context, 1, dlow)?;
    super::gradients::set_reduced(context, 2, dhigh)
}

crate::op_cases! {
    clip_by_vector_of_one: Case::op("ClipByValue").inputs([vector::<f32>(&[]), vector(&[1.0f32]), scalar(6.0f32)]).fails(Code::InvalidArgument);
    rows: family(&["Select"], &[FRACTIONS, INTEGERS, &[DataType::BOOL]].concat(), |op, dtype| {
        let rows = |values: &[f64]| numbers(dtype, &[2, 2], values);
        Case::op(op).inputs([bools(&[2], &[true, false]), rows(&[1.0, 2.0, 3.0, 4.0]), rows(&[5.0, 6.0, 7.0, 8.0])])
    });
    elements: Case::op("Select").inputs([bools(&[2], &[true, false]), strings(&[2], &["a", "b"]), strings(&[2], &["c", "d"])]);
    whole: Case::op("Select").inputs([bools(&[], &[false]), vector(&[1, 2]), vector(&[3, 4])]).gives(vector(&[3, 4]));
    rows_misfit: Case::op("Select").inputs([bools(&[3], &[true, false, true]), t(&[2, 2], &[1, 2, 3, 4]), t(&[2, 2], &[1, 2, 3, 4])])
        .fails(Code::InvalidArgument);
    broadcast: family(&["SelectV2"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([bools(&[2, 1], &[true, false]), numbers(dtype, &[2], &[1.0, 2.0]), numbers(dtype, &[], &[5.0])])
    });
    broadcast_strings: Case::op("SelectV2").inputs([bools(&[2], &[true, false]), strings(&[], &["a"]), strings(&[2, 1], &["c", "d"])]);
    broadcast_misfit: Case::op("SelectV2").inputs([bools(&[2], &[true, false]), vector(&[1, 2, 3]), scalar(1)]).fails(Code::InvalidArgument);
    broadcast_empty: Case::op("SelectV2").inputs([bools(&[0], &[]), scalar(2), scalar(1)]).gives(vector::<i32>(&[]));
    clipped: family(&["ClipByValue"], &[&FLOATS[..2], &SIGNED[2..]].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[1.0, 5.0, 9.0]), numbers(dtype, &[], &[2.0]), numbers(dtype, &[], &[6.0])])
    });
    clipped_by_parts: family(&["ClipByValue"], &FRACTIONS[4..], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[5], &[2.0, -1.0, 9.0, 0.5, -7.0]), numbers(dtype, &[], &[0.0]), numbers(dtype, &[], &[2.0])])
            .without_gradient()
    });
    clipped_misfit: Case::op("ClipByValue").inputs([vector(&[1, 2]), vector(&[1, 2, 3]), scalar(1)]).fails(Code::InvalidArgument);
}
