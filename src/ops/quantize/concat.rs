//! Concatenation of quantized tensors: all are brought to one range first.

use super::range::{Levels, Range, from_integers, integers};
use super::requantize::{convert, set_range};
use crate::wide::zeros;
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "QuantizedConcat",
        shape: |context| shape(context, 0, 1),
        kernels: &[Kernel::native(|context| run(context, 0, 1))],
        ..Op::PURE
    },
    &Op {
        name: "QuantizedConcatV2",
        shape: |context| {
            let count = context.attrs().int("N")? as usize;
            shape(context, count, 0)
        },
        kernels: &[Kernel::native(|context| {
            let count = context.attrs().int("N")? as usize;
            run(context, count, 0)
        })],
        ..Op::PURE
    },
];

/// The axis is input `axis`; the values start at input `first`, the limits follow values and axis.
fn shape(context: &mut ShapeContext, axis: usize, first: usize) -> Result<()> {
    let count = context.attrs().int("N")? as usize;
    context.input_with_rank(axis, 0)?;
    for limit in count + 1..3 * count + 1 {
        context.input_with_rank(limit, 0)?;
    }
    context.set_output(1, PartialShape::scalar());
    context.set_output(2, PartialShape::scalar());
    let inputs: Vec<PartialShape> = (first..first + count).map(|i| context.input(i)).collect();
    let Some(rank) = inputs.iter().find_map(PartialShape::rank) else {
        return Ok(());
    };
    let Some(axis) = context.input_as_scalar(axis)? else {
        context.set_output(0, PartialShape::of_rank(rank));
        return Ok(());
    };
    ensure!(
        (-(rank as i64)..rank as i64).contains(&axis),
        InvalidArgument,
        "ConcatOp : Expected concatenating dimensions in the range [{}, {rank}), but got {axis}",
        -(rank as i64)
    );
    let axis = axis.rem_euclid(rank as i64) as usize;
    let mut dims = vec![dim::UNKNOWN; rank];
    dims[axis] = 0;
    for input in &inputs {
        let input = input.with_rank(rank)?;
        for (i, to) in dims.iter_mut().enumerate() {
            let extent = input.dim(i as i64);
            *to = if i == axis {
                dim::add(*to, extent)?
            } else {
                dim::merge(*to, extent)?
            };
        }
    }
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

fn run(context: &mut KernelContext, axis: usize, first: usize) -> Result<()> {
    let count = context.attrs().int("N")? as usize;
    let levels = Levels::of(context.output_type(0))?;
    let mut ranges = Vec::new();
    for i in 0..count {
        let limit = count + 1 + i;
        ranges.push(Range::of(context.input(limit)?, context.input(limit + count)?)?);
    }
    let mut all = Range {
        min: ranges.iter().map(|range| range.min).fold(0.0, f32::min),
        max: ranges.iter().map(|range| range.max).fold(f32::MIN, f32::max),
    };
    if levels.is_signed() {
        let reach = all.min.abs().max(all.max.abs());
        all = Range {
            min: -reach,
            max: reach,
        };
    }
    let shape = context.output_shape(0)?.clone();
    let axis = context.input_i64(axis)?.rem_euclid(shape.rank() as i64) as usize;
    let inner: i64 = shape.dims()[axis + 1..].iter().product();
    let row = (shape.dims()[axis] * inner) as usize;
    let mut result: Vec<i64> = zeros(shape.num_elements())?;
    let mut start = 0;
    for (i, range) in ranges.into_iter().enumerate() {
        let input = context.input(first + i)?;
        let width = (input.dims()[axis] * inner) as usize;
        let mut values = integers(input)?;
        if range != all {
            convert(&mut values, (levels, range), (levels, all));
        }
        if width > 0 {
            for (to, from) in result.chunks_exact_mut(row).zip(values.chunks_exact(width)) {
                to[start..start + width].copy_from_slice(from);
            }
        }
        start += width;
    }
    let result = from_integers(context.output_type(0), shape, &result)?;
    context.set_output(0, result)?;
    set_range(context, all)
}

#[cfg(test)]
use super::convert::q;

crate::op_cases! {
    first: family(&["QuantizedConcat"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).attr("N", 2i64).inputs([scalar(1), q(dtype, &[2, 2], &[0, 10, 200, 255]), q(dtype, &[2, 1], &[100, 30])])
            .inputs([scalar(-1.0f32), scalar(0.0f32), scalar(2.0f32), scalar(6.0f32)])
    });
    same_range: family(&["QuantizedConcat"], &[DataType::QUINT8], |op, dtype| {
        Case::op(op).attr("N", 2i64).inputs([scalar(0), q(dtype, &[1, 2], &[0, 255]), q(dtype, &[2, 2], &[100, 30, 1, 2])])
            .inputs([scalar(0.0f32), scalar(0.0f32), scalar(6.0f32), scalar(6.0f32)])
    });
    second: family(&["QuantizedConcatV2"], &[DataType::QUINT8, DataType::QINT8], |op, dtype| {
        Case::op(op).attr("N", 2i64).inputs([q(dtype, &[2, 2], &[0, 10, 100, 127]), q(dtype, &[2, 1], &[100, 30]), scalar(1)])
            .inputs([scalar(0.0f32), scalar(0.0f32), scalar(6.0f32), scalar(6.0f32)])
    });
    misfit: Case::op("QuantizedConcat").attr("N", 2i64).inputs([scalar(0), q(DataType::QUINT8, &[1, 2], &[0, 255]), q(DataType::QUINT8, &[1, 3], &[100, 30, 1])])
            .inputs([scalar(0.0f32), scalar(0.0f32), scalar(6.0f32), scalar(6.0f32)]).fails(Code::InvalidArgument);
    second_axis: Case::op("QuantizedConcatV2").attr("N", 2i64).inputs([q(DataType::QUINT8, &[1, 2], &[0, 255]), q(DataType::QUINT8, &[1, 2], &[100, 30]), scalar(7)])
            .inputs([scalar(0.0f32), scalar(0.0f32), scalar(6.0f32), scalar(6.0f32)]).fails(Code::InvalidArgument);
}
