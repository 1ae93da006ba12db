//! Moving elements along axes: around the end, or backwards for a part of each row.

use super::gather::place;
use crate::movement::{Region, Writer, row_major};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Result, Shape, Tensor, bail, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Roll",
        shape: |context| {
            let input = context.input_with_rank_at_least(0, 1)?;
            context.input_with_rank_at_most(1, 1)?;
            context.input_with_rank_at_most(2, 1)?;
            context.set_output(0, input);
            Ok(())
        },
        kernels: &[Kernel::native(roll)],
        lower: Some(super::lower_movement::roll),
        gradient: Gradient::Fn(roll_gradient),
        ..Op::PURE
    },
    &Op {
        name: "ReverseSequence",
        shape: reverse_shape,
        kernels: &[Kernel::native(reverse)],
        lower: Some(super::lower_movement::reverse_sequence),
        gradient: Gradient::Fn(|context| {
            let (incoming, lengths) = (context.incoming_or_zeros(0)?, context.input(1)?);
            let attrs = context.attrs().clone();
            let gradient = context.op("ReverseSequence", &[incoming, lengths], attrs)?;
            context.set(0, gradient);
            Ok(())
        }),
        ..Op::PURE
    },
];

fn roll(context: &mut KernelContext) -> Result<()> {
    let mut value = context.input(0)?.clone();
    let (shifts, axes) = (context.input_i64s(1)?, context.input_i64s(2)?);
    ensure!(
        shifts.len() == axes.len(),
        InvalidArgument,
        "shift and axis must have the same size"
    );
    let mut totals = vec![0i64; value.rank()];
    for (&shift, &axis) in shifts.iter().zip(&axes) {
        let axis = place(axis, value.rank(), "axis")?;
        let extent = value.dims()[axis].max(1);
        totals[axis] = (totals[axis] + shift % extent).rem_euclid(extent);
    }
    for (axis, &shift) in totals.iter().enumerate() {
        if shift > 0 {
            value = roll_axis(&value, axis, shift)?;
        }
    }
    context.set_output(0, value)
}

/// Element `i` along the axis goes to `i + shift`, around the end; `shift` is within the extent.
fn roll_axis(value: &Tensor, axis: usize, shift: i64) -> Result<Tensor> {
    let mut writer = Writer::new(value.dtype(), value.shape().clone())?;
    let strides = row_major(value.dims());
    let at = |position: i64| Region {
        offset: position * strides[axis],
        strides: &strides,
    };
    let extent = value.dims()[axis];
    let mut dims = value.dims().to_vec();
    dims[axis] = extent - shift;
    writer.write(&dims, at(shift), value, at(0))?;
    dims[axis] = shift;
    writer.write(&dims, at(0), value, at(extent - shift))?;
    writer.finish()
}

fn roll_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, shift, axis) = (
        context.incoming_or_zeros(0)?,
        context.input(1)?,
        context.input(2)?,
    );
    let back = crate::math::gradients::unary(context, "Neg", shift)?;
    let attrs: Attrs = context.attrs().clone();
    let gradient = context.op("Roll", &[incoming, back, axis], attrs)?;
    context.set(0, gradient);
    Ok(())
}

fn reverse_shape(context: &mut ShapeContext) -> Result<()> {
    let (input, lengths) = (context.input(0), context.input_with_rank(1, 1)?);
    let (batch, sequence) = (context.attrs().int("batch_dim")?, context.attrs().int("seq_dim")?);
    let Some(rank) = input.rank() else { return Ok(()) };
    for (axis, name) in [(batch, "batch_dim"), (sequence, "seq_dim")] {
        ensure!(
            (0..rank as i64).contains(&axis),
            InvalidArgument,
            "{name} must be < input rank: {axis} vs. {rank}"
        );
    }
    let extent = dim::merge(input.dim(batch), lengths.dim(0))?;
    context.set_output(0, input.with_dim(batch, extent)?);
    Ok(())
}

fn reverse(context: &mut KernelContext) -> Result<()> {
    let (input, lengths) = (context.input(0)?.clone(), context.input_i64s(1)?);
    let attrs = context.attrs();
    let (batch, sequence) = (attrs.int("batch_dim")? as usize, attrs.int("seq_dim")? as usize);
    ensure!(
        batch != sequence,
        InvalidArgument,
        "batch_dim == seq_dim == {sequence}"
    );
    let extent = input.dims()[sequence];
    if let Some(row) = lengths.iter().position(|length| !(0..=extent).contains(length)) {
        let length = lengths[row];
        match length < 0 {
            true => bail!(InvalidArgument, "seq_lens({row}) < 0"),
            false => bail!(InvalidArgument, "seq_lens({row}) > input.dims({sequence})"),
        }
    }
    let strides = row_major(input.dims());
    let mut backwards = strides.clone();
    backwards[sequence] = -strides[sequence];
    let mut writer = Writer::new(input.dtype(), Shape::new(input.dims())?)?;
    let mut dims = input.dims().to_vec();
    dims[batch] = 1;
    for (row, &length) in lengths.iter().enumerate() {
        let start = row as i64 * strides[batch];
        let at = |position: i64, strides| Region {
            offset: start + position * -backwards[sequence],
            strides,
        };
        dims[sequence] = length;
        writer.write(&dims, at(0, &strides[..]), &input, at(length - 1, &backwards[..]))?;
        dims[sequence] = extent - length;
        writer.write(&dims, at(length, &strides[..]), &input, at(length, &strides[..]))?;
    }
    context.set_output(0, writer.finish()?)
}

crate::op_cases! {
    rolled: Case::op("Roll").inputs([vector(&[0, 1, 2, 3, 4]), scalar(2), scalar(0)]).gives(vector(&[3, 4, 0, 1, 2]));
    rolled_back: Case::op("Roll").inputs([strings(&[3], &["a", "b", "c"]), scalar(-4i64), scalar(-1)]);
    rolled_twice: Case::op("Roll").inputs([t(&[2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]), vector(&[1, 1, 3]), vector(&[0, 1, 1])]);
    rolled_types: family(&["Roll"], FRACTIONS, |op, dtype| Case::op(op).inputs([cycle(dtype, &[3, 2]), vector(&[2]), vector(&[0])]));
    rolled_nothing: Case::op("Roll").inputs([t::<f32>(&[0, 3], &[]), vector(&[1]), vector(&[0])]);
    roll_scalar: Case::op("Roll").inputs([scalar(1), scalar(1), scalar(0)]).fails(Code::InvalidArgument);
    roll_sizes: Case::op("Roll").inputs([vector(&[1, 2]), vector(&[1, 2]), vector(&[0])]).fails(Code::InvalidArgument);
    roll_outside: Case::op("Roll").inputs([vector(&[1, 2]), vector(&[1]), vector(&[1])]).fails(Code::InvalidArgument);
    reversed: Case::op("ReverseSequence").inputs([t(&[2, 4], &[0, 1, 2, 3, 4, 5, 6, 7]), vector(&[3i64, 0])]).attr("seq_dim", 1i64)
        .gives(t(&[2, 4], &[2, 1, 0, 3, 4, 5, 6, 7]));
    reversed_first: family(&["ReverseSequence"], &[DataType::STRING, DataType::HALF, DataType::BOOL, DataType::COMPLEX128], |op, dtype| {
        Case::op(op).inputs([counting(dtype, &[4, 2, 3]), vector(&[3, 0, 4])]).attr("seq_dim", 0i64).attr("batch_dim", 2i64)
    });
    reversed_nothing: Case::op("ReverseSequence").inputs([t::<i32>(&[2, 0], &[]), vector(&[0, 0])]).attr("seq_dim", 1i64);
    reversed_beyond: Case::op("ReverseSequence").inputs([t(&[1, 2], &[0, 1]), vector(&[3])]).attr("seq_dim", 1i64).fails(Code::InvalidArgument);
    reversed_negative: Case::op("ReverseSequence").inputs([t(&[1, 2], &[0, 1]), vector(&[-1])]).attr("seq_dim", 1i64).fails(Code::InvalidArgument);
    reversed_axis: Case::op("ReverseSequence").inputs([t(&[1, 2], &[0, 1]), vector(&[1])]).attr("seq_dim", 2i64).fails(Code::InvalidArgument);
    reversed_same_axis: Case::op("ReverseSequence").inputs([t(&[2, 2], &[0, 1, 2, 3]), vector(&[1, 1])]).attr("seq_dim", 0i64).fails(Code::InvalidArgument);
    reversed_lengths: Case::op("ReverseSequence").inputs([t(&[1, 2], &[0, 1]), vector(&[1, 1])]).attr("seq_dim", 1i64).fails(Code::InvalidArgument);
}
