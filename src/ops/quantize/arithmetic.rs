//! Sums, products and activations of quantized numbers.

use super::range::{Levels, Range, from_integers, integers};
use super::requantize::{set_range, with_scalars};
use crate::wide::zeros;
use ff_op::{Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, ensure};

const BINARY: Op = Op {
    name: "QuantizedAdd",
    shape: |context| {
        for input in 2..6 {
            context.input_with_rank(input, 0)?;
        }
        set_scalars(context);
        shapes::broadcast_binary(context)
    },
    kernels: &[Kernel::native(|context| add(context, 16384.0, true))],
    ..Op::PURE
};
const RELU: Op = Op {
    name: "QuantizedRelu",
    shape: |context| with_scalars(context, 1..3),
    kernels: &[Kernel::native(|context| relu(context, None))],
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &BINARY,
    &Op {
        name: "QuantizedMul",
        kernels: &[Kernel::native(multiply)],
        ..BINARY
    },
    &Op {
        name: "QuantizedBiasAdd",
        shape: |context| {
            let (values, bias) = (
                context.input_with_rank_at_least(0, 2)?,
                context.input_with_rank(1, 1)?,
            );
            for input in 2..6 {
                context.input_with_rank(input, 0)?;
            }
            set_scalars(context);
            ff_tensor::dim::merge(values.dim(-1), bias.dim(0))?;
            context.set_output(0, values);
            Ok(())
        },
        kernels: &[Kernel::native(|context| add(context, 131072.0, false))],
        ..BINARY
    },
    &RELU,
    &Op {
        name: "QuantizedRelu6",
        kernels: &[Kernel::native(|context| relu(context, Some(6.0)))],
        ..RELU
    },
    &Op {
        name: "QuantizedReshape",
        shape: |context| {
            context.input_with_rank(2, 0)?;
            context.input_with_rank(3, 0)?;
            set_scalars(context);
            let dims = context.input_as_shape(1)?;
            context.set_output(0, reshaped(&context.input(0), &dims)?);
            Ok(())
        },
        kernels: &[Kernel::native(reshape)],
        ..Op::PURE
    },
];

fn set_scalars(context: &mut ShapeContext) {
    context.set_output(1, PartialShape::scalar());
    context.set_output(2, PartialShape::scalar());
}

/// Broadcasts the elements of inputs 0 and 1 of the node; `body` gets places in both.
pub fn combine(
    dims: &[i64],
    a: &[i64],
    b: &[i64],
    mut body: impl FnMut(usize, usize) -> i64,
) -> Result<Vec<i64>> {
    let rank = dims.len();
    let strides = |own: &[i64]| {
        let mut strides = vec![0; rank];
        let mut step = 1;
        for (axis, &extent) in own.iter().enumerate().rev() {
            if extent != 1 {
                strides[axis + rank - own.len()] = step;
            }
            step *= extent;
        }
        strides
    };
    let (a_strides, b_strides) = (strides(a), strides(b));
    let mut result: Vec<i64> = zeros(crate::wide::count(dims)?)?;
    for (i, out) in result.iter_mut().enumerate() {
        let (mut rest, mut at_a, mut at_b) = (i as i64, 0, 0);
        for axis in (0..rank).rev() {
            let index = rest % dims[axis];
            rest /= dims[axis];
            at_a += index * a_strides[axis];
            at_b += index * b_strides[axis];
        }
        *out = body(at_a as usize, at_b as usize);
    }
    Ok(result)
}

/// Integers and range of the operands of a binary op.
struct Operands {
    levels: [Levels; 2],
    ranges: [Range; 2],
    values: [Vec<i64>; 2],
}

impl Operands {
    /// INVALID_ARGUMENT for empty ranges, if `wide` ones are needed.
    fn of(context: &KernelContext, wide: bool) -> Result<Operands> {
        let ranges = [
            Range::of(context.input(2)?, context.input(3)?)?,
            Range::of(context.input(4)?, context.input(5)?)?,
        ];
        for range in &ranges {
            ensure!(
                !wide || range.min < range.max,
                InvalidArgument,
                "min must be less than max, got {} and {}",
                range.min,
                range.max
            );
        }
        let (a, b) = (context.input(0)?, context.input(1)?);
        let small = if a.num_elements() < b.num_elements() { a } else { b };
        ensure!(
            a.shape() == b.shape()
                || small.num_elements() > 0
                || (a.num_elements() == 1 || b.num_elements() == 1),
            InvalidArgument,
            "vector must have at least 1 element"
        );
        Ok(Operands {
            levels: [Levels::of(a.dtype())?, Levels::of(b.dtype())?],
            ranges,
            values: [integers(a)?, integers(b)?],
        })
    }
}

fn finish(context: &mut KernelContext, values: &[i64], range: Range) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let result = from_integers(context.output_type(0), shape, values)?;
    context.set_output(0, result)?;
    set_range(context, range)
}

/// The sum has room for `room` times the larger operand.
fn add(context: &mut KernelContext, room: f32, stepped: bool) -> Result<()> {
    ensure!(
        stepped || context.input(1)?.num_elements() > 0,
        InvalidArgument,
        "Must provide at least 1 bias"
    );
    let operands = Operands::of(context, stepped)?;
    let [x, y] = operands.ranges;
    let reach = (-x.min.min(y.min)).max(x.max.max(y.max)) * room;
    let range = Range {
        min: -reach,
        max: reach,
    };
    let wide = Levels::of(DataType::QINT32)?;
    let mut converted = operands.values;
    for (i, values) in converted.iter_mut().enumerate() {
        let (levels, own) = (operands.levels[i], operands.ranges[i]);
        let at = |value: i64| wide.unclamped(levels.dequantize(value, own), range);
        let stepped = stepped && values.len() > 1;
        // Whole steps of 32-bit numbers, as the reference takes them.
        let (first, step) = (at(levels.lowest), at(levels.lowest + 1) - at(levels.lowest));
        for value in values {
            *value = if stepped {
                first + (*value - levels.lowest) * step
            } else {
                at(*value)
            };
        }
    }
    let dims = context.output_shape(0)?.dims().to_vec();
    let (a, b) = (context.input(0)?.dims(), context.input(1)?.dims());
    let sums = combine(&dims, a, b, |i, j| {
        (converted[0][i] + converted[1][j]).clamp(wide.lowest, wide.highest)
    })?;
    finish(context, &sums, range)
}

fn multiply(context: &mut KernelContext) -> Result<()> {
    let operands = Operands::of(context, true)?;
    let zero = |i: usize| operands.levels[i].unclamped(0.0, operands.ranges[i]);
    let (zero_a, zero_b) = (zero(0), zero(1));
    let range = Range::of_products(
        (operands.levels[0], operands.ranges[0]),
        (operands.levels[1], operands.ranges[1]),
    );
    let dims = context.output_shape(0)?.dims().to_vec();
    let (a, b) = (context.input(0)?.dims(), context.input(1)?.dims());
    let products = combine(&dims, a, b, |i, j| {
        (operands.values[0][i] - zero_a) * (operands.values[1][j] - zero_b)
    })?;
    finish(context, &products, range)
}

fn relu(context: &mut KernelContext, most: Option<f32>) -> Result<()> {
    let range = Range::of(context.input(1)?, context.input(2)?)?;
    let levels = Levels::of(context.input(0)?.dtype())?;
    let zero = levels.quantize(0.0, range);
    let most = most.map_or(levels.highest, |most| levels.quantize(most, range));
    let mut values = integers(context.input(0)?)?;
    for value in &mut values {
        *value = (*value).max(zero).min(most);
    }
    finish(context, &values, range)
}

/// The shape that a reshape makes, where at most one extent is -1.
fn reshaped(input: &PartialShape, dims: &PartialShape) -> Result<PartialShape> {
    let (Some(known), Some(dims)) = (input.to_shape(), dims.dims()) else {
        return Ok(dims.clone());
    };
    let unknown = dims.iter().filter(|&&extent| extent < 0).count();
    if unknown > 1 {
        return Ok(PartialShape::new(dims));
    }
    let count = known.num_elements() as i64;
    let rest: i64 = dims.iter().filter(|&&extent| extent >= 0).product();
    let fits = if unknown == 1 {
        rest > 0 && count % rest == 0
    } else {
        rest == count
    };
    ensure!(
        fits,
        InvalidArgument,
        "Input to reshape is a tensor with {count} values, but the requested shape is {dims:?}"
    );
    let filled: Vec<i64> = dims
        .iter()
        .map(|&extent| if extent < 0 { count / rest } else { extent })
        .collect();
    Ok(PartialShape::new(&filled))
}

fn reshape(context: &mut KernelContext) -> Result<()> {
    ensure!(
        context.input(1)?.rank() <= 1,
        InvalidArgument,
        "sizes input must be 1-D, not {}",
        context.input(1)?.shape()
    );
    let dims = PartialShape::new(&context.input_i64s(1)?);
    let shape = reshaped(&context.input(0)?.partial_shape(), &dims)?;
    let shape: Option<Shape> = shape.to_shape();
    let Some(shape) = shape else {
        ff_tensor::bail!(InvalidArgument, "Only one input size may be -1");
    };
    let result = context.input(0)?.reshape(shape)?;
    let (min, max): (Tensor, Tensor) = (context.input(2)?.clone(), context.input(3)?.clone());
    context.set_output(0, result)?;
    context.set_output(1, min)?;
    context.set_output(2, max)
}

#[cfg(test)]
use super::convert::q;

crate::op_cases! {
    by_no_vector: family(&["QuantizedAdd", "QuantizedMul", "QuantizedBiasAdd"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).inputs([q(dtype, &[0, 0], &[]), q(dtype, &[0], &[])]).attr(if op == "QuantizedBiasAdd" { "out_type" } else { "Toutput" }, DataType::QINT32)
            .inputs([scalar(1.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)]).fails(Code::InvalidArgument)
    });
    reshaped_by_a_matrix: Case::op("QuantizedReshape").inputs([q(DataType::QUINT8, &[0, 0], &[]), t(&[1, 1], &[0]), scalar(1.0f32), scalar(2.0f32)]).fails(Code::InvalidArgument);
    binary: family(&["QuantizedAdd", "QuantizedMul"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).inputs([q(dtype, &[2, 3], &[0, 10, 100, 128, 200, 255]), q(dtype, &[3], &[255, 7, 90])])
            .inputs([scalar(-3.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)])
    });
    with_scalar: family(&["QuantizedAdd", "QuantizedMul"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).inputs([q(dtype, &[2, 3], &[0, 10, 100, 128, 200, 255]), q(dtype, &[], &[7])])
            .inputs([scalar(0.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)])
    });
    bias_misfit: Case::op("QuantizedBiasAdd").inputs([q(DataType::QUINT8, &[1, 3], &[0, 10, 100]), q(DataType::QUINT8, &[2], &[255, 7])]).attr("out_type", DataType::QINT32)
        .inputs([scalar(4.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)]).fails(Code::InvalidArgument);
    turned: family(&["QuantizedAdd", "QuantizedMul"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).inputs([q(dtype, &[1, 3], &[0, 10, 100]), q(dtype, &[3], &[255, 7, 90])])
            .inputs([scalar(5.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)]).fails(Code::InvalidArgument)
    });
    bias: family(&["QuantizedBiasAdd"], &[DataType::QUINT8, DataType::QINT8], |op, dtype| {
        Case::op(op).inputs([q(dtype, &[2, 3], &[0, 10, 100, 128, 20, 127]), q(dtype, &[3], &[25, 7, 90])]).attr("out_type", DataType::QINT32)
            .inputs([scalar(-3.0f32), scalar(5.0f32), scalar(-1.0f32), scalar(2.5f32)])
    });
    rectified: family(&["QuantizedRelu", "QuantizedRelu6"], &[DataType::QUINT8, DataType::QINT32], |op, dtype| {
        Case::op(op).inputs([q(dtype, &[2, 3], &[0, 10, 100, 128, 200, 255]), scalar(-4.0f32), scalar(12.0f32)]).attr("out_type", dtype)
    });
    rectified_misfit: family(&["QuantizedRelu", "QuantizedRelu6"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).inputs([q(dtype, &[3], &[0, 10, 100]), vector(&[-4.0f32, 1.0]), scalar(12.0f32)]).attr("out_type", dtype).fails(Code::InvalidArgument)
    });
    shaped: family(&["QuantizedReshape"], &[DataType::QUINT8, DataType::QINT32], |op, dtype| {
        Case::op(op).inputs([q(dtype, &[2, 3], &[0, 10, 100, 128, 200, 255]), vector(&[3, -1]), scalar(-4.0f32), scalar(12.0f32)])
    });
    shaped_misfit: Case::op("QuantizedReshape").inputs([q(DataType::QUINT8, &[2, 3], &[0, 10, 100, 128, 200, 255]), vector(&[4, -1]), scalar(-4.0f32), scalar(12.0f32)])
        .fails(Code::InvalidArgument);
}
