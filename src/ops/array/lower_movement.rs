//! Lowerings of ops that move elements along axes: diagonals, rolls, reversed sequences, blocks, mirrored paddings.

use crate::lowering::{axis_of, compare_with, gather, pad_axis, positions, take};
use ff_hlo::{Builder, Direction, Op as HloOp, Opcode};
use ff_op::LowerContext;
use ff_tensor::{Code, DataType, Result, bail, ensure};

/// `Diag`.
pub fn diagonal(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let input = context.input(0)?;
    let count = dims.iter().product();
    let builder = &mut *context.builder;
    let flat = builder.reshape(input, &[count])?;
    let square = [count, count];
    let (rows, columns) = (positions(builder, &square, 0)?, positions(builder, &square, 1)?);
    let is_main = builder.compare(Direction::Eq, rows, columns)?;
    let spread = builder.broadcast_in_dim(flat, &square, &[1])?;
    let zeros = builder.scalar_like(0.0, spread)?;
    let matrix = builder.select(is_main, spread, zeros)?;
    let output = builder.reshape(matrix, &[&dims[..], &dims[..]].concat())?;
    context.set_output(0, output);
    Ok(())
}

/// `DiagPart`: every (n + 1)-th element.
pub fn diagonal_part(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let input = context.input(0)?;
    let half = &dims[..dims.len() / 2];
    let count: i64 = half.iter().product();
    let flat = context.builder.reshape(input, &[count * count])?;
    let part = context
        .builder
        .slice(flat, &[0], &[count * count], &[count + 1])?;
    let output = context.builder.reshape(part, half)?;
    context.set_output(0, output);
    Ok(())
}

/// `MatrixBandPart`.
pub fn band_part(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let [.., rows, columns] = dims[..] else {
        bail!(InvalidArgument, "matrices have two axes");
    };
    let (input, lower, upper) = (context.input(0)?, context.input(1)?, context.input(2)?);
    let builder = &mut *context.builder;
    let matrix = [rows, columns];
    let (row, column) = (positions(builder, &matrix, 0)?, positions(builder, &matrix, 1)?);
    let mut kept = None;
    for (limit, extent, below, name) in [
        (lower, rows, true, "num_lower"),
        (upper, columns, false, "num_upper"),
    ] {
        let limit = builder.convert(limit, DataType::INT64)?;
        let fits = compare_with(builder, Direction::Le, limit, extent as f64)?;
        let message = format!("{name} must be negative or less or equal to {extent} got: {{0}}");
        builder.check_values(fits, &[limit], Code::InvalidArgument, &message)?;
        let limit = builder.broadcast_scalar(limit, &matrix)?;
        let distance = match below {
            true => builder.subtract(row, column)?,
            false => builder.subtract(column, row)?,
        };
        let near = builder.compare(Direction::Le, distance, limit)?;
        let all = compare_with(builder, Direction::Lt, limit, 0.0)?;
        let side = builder.binary(Opcode::Or, near, all)?;
        kept = Some(match kept {
            Some(other) => builder.binary(Opcode::And, other, side)?,
            None => side,
        });
    }
    if let Some(kept) = kept {
        let kept = builder.broadcast_to(kept, &dims)?;
        let zeros = builder.scalar_like(0.0, input)?;
        let output = builder.select(kept, input, zeros)?;
        context.set_output(0, output);
    }
    Ok(())
}

/// `Roll`; shifts and axes are known.
pub fn roll(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let (shifts, axes) = (context.constant_i64s(1)?, context.constant_i64s(2)?);
    ensure!(
        shifts.len() == axes.len(),
        InvalidArgument,
        "shift and axis must have the same size"
    );
    let mut value = context.input(0)?;
    let builder = &mut *context.builder;
    for (&shift, &axis) in shifts.iter().zip(&axes) {
        let axis = axis_of(axis, dims.len())?;
        let extent = dims[axis];
        let shift = shift.rem_euclid(extent.max(1));
        if shift > 0 {
            let end = builder.slice_in_dim(value, extent - shift, extent, 1, axis)?;
            let start = builder.slice_in_dim(value, 0, extent - shift, 1, axis)?;
            value = builder.concatenate(&[end, start], axis)?;
        }
    }
    context.set_output(0, value);
    Ok(())
}

/// `ReverseSequence`: each element is taken from its place, or from the place that mirrors it.
pub fn reverse_sequence(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let attrs = context.attrs();
    let (batch, sequence) = (attrs.int("batch_dim")? as usize, attrs.int("seq_dim")? as usize);
    ensure!(
        batch != sequence,
        InvalidArgument,
        "batch_dim == seq_dim == {sequence}"
    );
    let (input, lengths) = (context.input(0)?, context.input(1)?);
    let builder = &mut *context.builder;
    let lengths = builder.convert(lengths, DataType::INT64)?;
    let (from, to) = (
        compare_with(builder, Direction::Ge, lengths, 0.0)?,
        compare_with(builder, Direction::Le, lengths, dims[sequence] as f64)?,
    );
    let fits = builder.binary(Opcode::And, from, to)?;
    builder.check_values(
        fits,
        &[lengths],
        Code::InvalidArgument,
        "seq_lens{index} = {0} is out of range",
    )?;
    let rows = [dims[batch], dims[sequence]];
    let place = positions(builder, &rows, 1)?;
    let lengths = builder.broadcast_in_dim(lengths, &rows, &[0])?;
    let one = builder.scalar_like(1.0, place)?;
    let mirrored = builder.subtract(lengths, place)?;
    let mirrored = builder.subtract(mirrored, one)?;
    let is_within = builder.compare(Direction::Lt, place, lengths)?;
    let source = builder.select(is_within, mirrored, place)?;
    // Batch and sequence come first, the other axes after them.
    let mut order = vec![batch as i64, sequence as i64];
    order.extend((0..dims.len() as i64).filter(|&axis| axis != batch as i64 && axis != sequence as i64));
    let turned = builder.transpose(input, &order)?;
    let moved = gather(builder, turned, source, 1, 1)?;
    let back: Vec<i64> = (0..dims.len() as i64)
        .filter_map(|axis| {
            order
                .iter()
                .position(|&from| from == axis)
                .map(|place| place as i64)
        })
        .collect();
    let output = builder.transpose(moved, &back)?;
    context.set_output(0, output);
    Ok(())
}

/// Space into batch: padded, cut into blocks whose places go before the batch.
pub fn space_to_batch(
    builder: &mut Builder,
    input: HloOp,
    block: &[i64],
    pads: &[(i64, i64)],
    output: &[i64],
) -> Result<HloOp> {
    let zero = builder.scalar(builder.dtype(input), 0.0)?;
    let mut padded = input;
    for (axis, &(before, after)) in pads.iter().enumerate() {
        padded = pad_axis(builder, padded, axis + 1, before, after, zero)?;
    }
    let dims = builder.dims(padded).to_vec();
    let mut fine = vec![dims[0]];
    for (axis, &size) in block.iter().enumerate() {
        fine.extend([dims[axis + 1] / size, size]);
    }
    fine.extend(&dims[block.len() + 1..]);
    let count = block.len() as i64;
    let order: Vec<i64> = (0..count)
        .map(|axis| 2 + 2 * axis)
        .chain([0])
        .chain((0..count).map(|axis| 1 + 2 * axis))
        .chain(2 * count + 1..fine.len() as i64)
        .collect();
    let seen = builder.reshape(padded, &fine)?;
    let moved = builder.transpose(seen, &order)?;
    builder.reshape(moved, output)
}

/// Batch into space: blocks are put together, and cropped.
pub fn batch_to_space(
    builder: &mut Builder,
    input: HloOp,
    block: &[i64],
    crops: &[(i64, i64)],
    output: &[i64],
) -> Result<HloOp> {
    let (dims, count) = (builder.dims(input).to_vec(), block.len());
    let mut fine = block.to_vec();
    fine.push(output[0]);
    fine.extend(&dims[1..]);
    let mut order = vec![count as i64];
    for axis in 0..count as i64 {
        order.extend([count as i64 + 1 + axis, axis]);
    }
    order.extend(2 * count as i64 + 1..fine.len() as i64);
    let mut whole = vec![output[0]];
    whole.extend(block.iter().zip(&dims[1..]).map(|(size, extent)| size * extent));
    whole.extend(&dims[count + 1..]);
    let seen = builder.reshape(input, &fine)?;
    let moved = builder.transpose(seen, &order)?;
    let mut value = builder.reshape(moved, &whole)?;
    for (axis, &(before, after)) in crops.iter().enumerate() {
        value = builder.slice_in_dim(value, before, whole[axis + 1] - after, 1, axis + 1)?;
    }
    Ok(value)
}

/// `MirrorPadGrad`: along each axis, the paddings are turned round and added to the elements that they mirror.
pub fn fold_mirrored(builder: &mut Builder, input: HloOp, pads: &[(i64, i64)], offset: i64) -> Result<HloOp> {
    let zero = builder.scalar(builder.dtype(input), 0.0)?;
    let mut value = input;
    for (axis, &(before, after)) in pads.iter().enumerate() {
        let extent = builder.dims(value)[axis];
        let inner = extent - before - after;
        let mut sum = builder.slice_in_dim(value, before, before + inner, 1, axis)?;
        for (start, count, low) in [
            (0, before, offset),
            (before + inner, after, inner - after - offset),
        ] {
            if count > 0 {
                let band = builder.slice_in_dim(value, start, start + count, 1, axis)?;
                let band = builder.reverse(band, &[axis as i64])?;
                let band = pad_axis(builder, band, axis, low, inner - low - count, zero)?;
                sum = builder.add(sum, band)?;
            }
        }
        value = sum;
    }
    Ok(value)
}

/// `DataFormatDimMap`: the new place of each axis, from a table.
pub fn map_axes(context: &mut LowerContext, table: &[i64]) -> Result<()> {
    let (input, dtype) = (context.input(0)?, context.output_type(0));
    let rank = table.len() as f64;
    let builder = &mut *context.builder;
    let axes = builder.convert(input, DataType::INT64)?;
    let from = compare_with(builder, Direction::Ge, axes, -rank)?;
    let to = compare_with(builder, Direction::Lt, axes, rank)?;
    let fits = builder.binary(Opcode::And, from, to)?;
    builder.check_values(
        fits,
        &[axes],
        Code::InvalidArgument,
        "Dimension index {0} is out of range",
    )?;
    let both: Vec<i64> = [table, table].concat();
    let table = builder.constant_vector(&both)?;
    let shift = builder.scalar_like(rank, axes)?;
    let shifted = builder.add(axes, shift)?;
    let mapped = gather(builder, table, shifted, 0, 0)?;
    let output = builder.convert(mapped, dtype)?;
    context.set_output(0, output);
    Ok(())
}

/// Rows in another order.
pub fn permute_rows(context: &mut LowerContext, order: &[i64]) -> Result<()> {
    let input = context.input(0)?;
    let output = take(context.builder, input, order, 0)?;
    context.set_output(0, output);
    Ok(())
}

/// `Reverse`: axes by truth values, which are known.
pub fn reverse_flagged(context: &mut LowerContext) -> Result<()> {
    let flags = context.constant(1)?;
    let input = context.input(0)?;
    let flags = flags.as_slice::<ff_tensor::Bool>()?.iter().enumerate();
    let axes: Vec<i64> = flags
        .filter(|(_, flag)| flag.get())
        .map(|(axis, _)| axis as i64)
        .collect();
    let output = context.builder.reverse(input, &axes)?;
    context.set_output(0, output);
    Ok(())
}

/// `Bitcast` between types of one size.
pub fn bitcast(context: &mut LowerContext) -> Result<()> {
    let (input, dtype) = (context.input(0)?, context.output_type(0));
    ensure!(
        context.builder.dtype(input).size() == dtype.size(),
        Unimplemented,
        "a bitcast between types of two sizes is not lowered"
    );
    let output = context.builder.bitcast_convert(input, dtype)?;
    context.set_output(0, output);
    Ok(())
}
