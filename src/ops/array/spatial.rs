//! Ops that move blocks of space into depth or batch, and back. Each sees its tensor under finer axes, permutes those,
//! and sees the result in the output's shape.

use super::lower_movement;
use crate::movement::{self, Region, Writer, row_major};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, bail, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "DepthToSpace",
        shape: depth_shape,
        kernels: &[Kernel::native(depth)],
        lower: Some(lower_depth),
        gradient: Gradient::Fn(depth_gradient),
        ..Op::PURE
    },
    &Op {
        name: "SpaceToDepth",
        shape: depth_shape,
        kernels: &[Kernel::native(depth)],
        lower: Some(lower_depth),
        gradient: Gradient::Fn(depth_gradient),
        ..Op::PURE
    },
    &Op {
        name: "SpaceToBatchND",
        shape: batch_shape,
        kernels: &[Kernel::native(space_to_batch)],
        lower: Some(lower_batch),
        gradient: Gradient::Fn(batch_gradient),
        ..Op::PURE
    },
    &Op {
        name: "BatchToSpaceND",
        shape: batch_shape,
        kernels: &[Kernel::native(batch_to_space)],
        lower: Some(lower_batch),
        gradient: Gradient::Fn(batch_gradient),
        ..Op::PURE
    },
    &Op {
        name: "SpaceToBatch",
        shape: batch_shape,
        kernels: &[Kernel::native(space_to_batch)],
        lower: Some(lower_batch),
        gradient: Gradient::Fn(batch_gradient),
        ..Op::PURE
    },
    &Op {
        name: "BatchToSpace",
        shape: batch_shape,
        kernels: &[Kernel::native(batch_to_space)],
        lower: Some(lower_batch),
        gradient: Gradient::Fn(batch_gradient),
        ..Op::PURE
    },
];

/// Block size and whether channels come first, of a DepthToSpace or SpaceToDepth node.
fn block(attrs: &Attrs) -> Result<(i64, bool)> {
    let size = attrs.int("block_size")?;
    ensure!(
        size > 1,
        InvalidArgument,
        "Block size should be > 1, but was: {size}"
    );
    match attrs.string("data_format")? {
        "NHWC" => Ok((size, false)),
        "NCHW" => Ok((size, true)),
        other => bail!(Unimplemented, "data_format {other} is not supported on CPU"),
    }
}

fn divided(extent: i64, by: i64) -> Result<i64> {
    ensure!(
        extent < 0 || extent % by == 0,
        InvalidArgument,
        "Dimension size must be evenly divisible by {by} but is {extent}"
    );
    Ok(if extent < 0 { dim::UNKNOWN } else { extent / by })
}

fn depth_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank(0, 4)?;
    let (size, channels_first) = block(context.attrs())?;
    let (channel, space) = if channels_first { (1, [2, 3]) } else { (3, [1, 2]) };
    let mut output = input.clone();
    if context.node().op_name() == "DepthToSpace" {
        output = output.with_dim(channel, divided(input.dim(channel), dim::mul(size, size)?)?)?;
        for axis in space {
            output = output.with_dim(axis, dim::mul(input.dim(axis), size)?)?;
        }
    } else {
        output = output.with_dim(channel, dim::mul(input.dim(channel), dim::mul(size, size)?)?)?;
        for axis in space {
            output = output.with_dim(axis, divided(input.dim(axis), size)?)?;
        }
    }
    context.set_output(0, output);
    Ok(())
}

/// Finer axes of the input, their order, and the extents of the output.
struct Rearrangement {
    fine: [i64; 6],
    order: [usize; 6],
    output: [i64; 4],
}

fn depth_plan(op: &str, attrs: &Attrs, dims: &[i64]) -> Result<Rearrangement> {
    let (b, channels_first) = block(attrs)?;
    ensure!(
        dims.len() == 4,
        InvalidArgument,
        "Input rank should be 4 instead of {}",
        dims.len()
    );
    Ok(match (op, channels_first) {
        ("DepthToSpace", true) => {
            let (n, c, h, w) = (dims[0], dims[1] / (b * b), dims[2], dims[3]);
            Rearrangement {
                fine: [n, b, b, c, h, w],
                order: [0, 3, 4, 1, 5, 2],
                output: [n, c, h * b, w * b],
            }
        }
        ("DepthToSpace", false) => {
            let (n, h, w, c) = (dims[0], dims[1], dims[2], dims[3] / (b * b));
            Rearrangement {
                fine: [n, h, w, b, b, c],
                order: [0, 1, 3, 2, 4, 5],
                output: [n, h * b, w * b, c],
            }
        }
        (_, true) => {
            let (n, c, h, w) = (dims[0], dims[1], dims[2] / b, dims[3] / b);
            Rearrangement {
                fine: [n, c, h, b, w, b],
                order: [0, 3, 5, 1, 2, 4],
                output: [n, c * b * b, h, w],
            }
        }
        (_, false) => {
            let (n, h, w, c) = (dims[0], dims[1] / b, dims[2] / b, dims[3]);
            Rearrangement {
                fine: [n, h, b, w, b, c],
                order: [0, 1, 3, 2, 4, 5],
                output: [n, h, w, c * b * b],
            }
        }
    })
}

fn depth(context: &mut KernelContext) -> Result<()> {
    let plan = depth_plan(
        context.node().op_name(),
        context.attrs(),
        context.input(0)?.dims(),
    )?;
    let input = context.take_input(0)?.into_shape(Shape::new(&plan.fine)?)?;
    let output = movement::transpose(&input, &plan.order)?;
    context.set_output(0, output.into_shape(Shape::new(&plan.output)?)?)
}

fn lower_depth(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let plan = depth_plan(context.node().op_name(), context.attrs(), &dims)?;
    let input = context.input(0)?;
    let fine = context.builder.reshape(input, &plan.fine)?;
    let turned = context
        .builder
        .transpose(fine, &plan.order.map(|axis| axis as i64))?;
    let output = context.builder.reshape(turned, &plan.output)?;
    context.set_output(0, output);
    Ok(())
}

fn depth_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let inverse = match context.node().op_name() {
        "DepthToSpace" => "SpaceToDepth",
        _ => "DepthToSpace",
    };
    let attrs = Attrs::new()
        .with("block_size", context.attrs().int("block_size")?)
        .with("data_format", context.attrs().string("data_format")?);
    let output = context.op(inverse, &[gradient], attrs)?;
    context.set(0, output);
    Ok(())
}

/// The block extents, where they are known: an input, or the attribute of the two-dimensional ops.
fn block_shape(attrs: &Attrs, value: Option<Tensor>) -> Result<Option<Vec<i64>>> {
    let block = match attrs.int("block_size") {
        Ok(size) => Some(vec![size, size]),
        Err(_) => value.map(|value| value.to_i64_vec()).transpose()?,
    };
    if let Some(bad) = block.iter().flatten().find(|&&size| size < 1) {
        bail!(InvalidArgument, "block_shape must be positive, but got {bad}");
    }
    Ok(block)
}

/// Whether the op puts space into batch, and the input that holds paddings or crops.
fn batch_layout(op: &str) -> (bool, usize) {
    match op {
        "SpaceToBatchND" => (true, 2),
        "BatchToSpaceND" => (false, 2),
        "SpaceToBatch" => (true, 1),
        _ => (false, 1),
    }
}

/// Pairs of paddings or crops, one per block axis.
fn pairs(value: &Tensor, count: usize) -> Result<Vec<(i64, i64)>> {
    ensure!(
        value.dims() == [count as i64, 2],
        InvalidArgument,
        "paddings should have shape [{count}, 2] instead of {}",
        value.shape()
    );
    let values = value.to_i64_vec()?;
    ensure!(
        values.iter().all(|&amount| amount >= 0),
        InvalidArgument,
        "Paddings must be non-negative"
    );
    Ok(values.chunks(2).map(|pair| (pair[0], pair[1])).collect())
}

fn batch_shape(context: &mut ShapeContext) -> Result<()> {
    let (to_batch, pairs_input) = batch_layout(context.node().op_name());
    let input = context.input(0);
    let value = if pairs_input == 2 {
        context.input_with_rank(1, 1)?;
        context.input_value(1)
    } else {
        None
    };
    let block = block_shape(context.attrs(), value)?;
    let amounts = context.input_value(pairs_input);
    let (Some(dims), Some(block)) = (input.dims(), block) else {
        if let Some(rank) = input.rank() {
            context.set_output(0, PartialShape::of_rank(rank));
        }
        return Ok(());
    };
    let amounts = amounts.map(|value| pairs(&value, block.len())).transpose()?;
    let output = batch_extents(dims, &block, amounts.as_deref(), to_batch)?;
    context.set_output(0, PartialShape::new(&output));
    Ok(())
}

fn batch_extents(
    dims: &[i64],
    block: &[i64],
    amounts: Option<&[(i64, i64)]>,
    to_batch: bool,
) -> Result<Vec<i64>> {
    ensure!(
        dims.len() > block.len(),
        InvalidArgument,
        "input rank should be >= {} instead of {}",
        block.len() + 1,
        dims.len()
    );
    let mut output = dims.to_vec();
    let total = block.iter().try_fold(1, |total, &size| dim::mul(total, size))?;
    output[0] = if to_batch {
        dim::mul(dims[0], total)?
    } else {
        divided(dims[0], total)?
    };
    for (axis, &size) in block.iter().enumerate() {
        let extent = dims[axis + 1];
        output[axis + 1] = match amounts {
            _ if extent < 0 => dim::UNKNOWN,
            None => dim::UNKNOWN,
            Some(pairs) if to_batch => divided(extent + pairs[axis].0 + pairs[axis].1, size)?,
            Some(pairs) => {
                let kept = dim::mul(extent, size)? - pairs[axis].0 - pairs[axis].1;
                ensure!(
                    kept >= 0,
                    InvalidArgument,
                    "Negative dimension size caused by crops: {kept}"
                );
                kept
            }
        };
    }
    Ok(output)
}

/// Extents of a block, and what is padded or cropped on both sides of each axis.
type BlockAndPairs = (Vec<i64>, Vec<(i64, i64)>);

/// Block extents and pairs of a kernel's node.
fn batch_inputs(context: &KernelContext) -> Result<BlockAndPairs> {
    let (_, pairs_input) = batch_layout(context.node().op_name());
    let value = if pairs_input == 2 {
        Some(context.input(1)?.clone())
    } else {
        None
    };
    let block = block_shape(context.attrs(), value)?.unwrap_or_default();
    let pairs = pairs(context.input(pairs_input)?, block.len())?;
    Ok((block, pairs))
}

fn space_to_batch(context: &mut KernelContext) -> Result<()> {
    let (block, pads) = batch_inputs(context)?;
    let input = context.take_input(0)?;
    let output = batch_extents(input.dims(), &block, Some(&pads), true)?;
    let mut padded = input.dims().to_vec();
    for (axis, (before, after)) in pads.iter().enumerate() {
        padded[axis + 1] += before + after;
    }
    let mut writer = Writer::zeros(input.dtype(), Shape::new(&padded)?)?;
    let (strides, dense) = (row_major(&padded), row_major(input.dims()));
    let offset = pads
        .iter()
        .zip(&strides[1..])
        .map(|((before, _), step)| before * step)
        .sum();
    let to = Region {
        offset,
        strides: &strides,
    };
    let from = Region {
        offset: 0,
        strides: &dense,
    };
    writer.write(input.dims(), to, &input, from)?;
    // [n, s/b, b, .., rest] to [b, .., n, s/b, .., rest].
    let mut fine = vec![padded[0]];
    for (axis, &size) in block.iter().enumerate() {
        fine.extend([padded[axis + 1] / size, size]);
    }
    fine.extend(&padded[block.len() + 1..]);
    let count = block.len();
    let mut order: Vec<usize> = (0..count).map(|axis| 2 + 2 * axis).collect();
    order.push(0);
    order.extend((0..count).map(|axis| 1 + 2 * axis));
    order.extend(2 * count + 1..fine.len());
    let seen = writer.finish()?.into_shape(Shape::new(&fine)?)?;
    let moved = movement::transpose(&seen, &order)?;
    context.set_output(0, moved.into_shape(Shape::new(&output)?)?)
}

fn batch_to_space(context: &mut KernelContext) -> Result<()> {
    let (block, crops) = batch_inputs(context)?;
    let input = context.take_input(0)?;
    let (dims, count) = (input.dims().to_vec(), block.len());
    let output = batch_extents(&dims, &block, Some(&crops), false)?;
    // [b, .., n, s, .., rest] to [n, s, b, .., rest].
    let mut fine = block.clone();
    fine.push(output[0]);
    fine.extend(&dims[1..]);
    let mut order = vec![count];
    for axis in 0..count {
        order.extend([count + 1 + axis, axis]);
    }
    order.extend(2 * count + 1..fine.len());
    let moved = movement::transpose(&input.into_shape(Shape::new(&fine)?)?, &order)?;
    let mut whole = vec![output[0]];
    whole.extend(block.iter().zip(&dims[1..]).map(|(size, extent)| size * extent));
    whole.extend(&dims[count + 1..]);
    let strides = row_major(&whole);
    let offset = crops
        .iter()
        .zip(&strides[1..])
        .map(|((before, _), step)| before * step)
        .sum();
    let moved = moved.into_shape(Shape::new(&whole)?)?;
    let region = Region {
        offset,
        strides: &strides,
    };
    let cropped = movement::read(&moved, Shape::new(&output)?, region)?;
    context.set_output(0, cropped)
}

/// Blocks and amounts are known.
fn lower_batch(context: &mut LowerContext) -> Result<()> {
    let (to_batch, pairs_input) = batch_layout(context.node().op_name());
    let value = match pairs_input {
        2 => Some(context.constant(1)?),
        _ => None,
    };
    let block = block_shape(context.attrs(), value)?.unwrap_or_default();
    let amounts = pairs(&context.constant(pairs_input)?, block.len())?;
    let output = batch_extents(&context.input_dims(0)?, &block, Some(&amounts), to_batch)?;
    let input = context.input(0)?;
    let moved = match to_batch {
        true => lower_movement::space_to_batch(context.builder, input, &block, &amounts, &output)?,
        false => lower_movement::batch_to_space(context.builder, input, &block, &amounts, &output)?,
    };
    context.set_output(0, moved);
    Ok(())
}

fn batch_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let (inverse, attrs) = match context.node().op_name() {
        "SpaceToBatchND" => ("BatchToSpaceND", Attrs::new()),
        "BatchToSpaceND" => ("SpaceToBatchND", Attrs::new()),
        "SpaceToBatch" => (
            "BatchToSpace",
            Attrs::new().with("block_size", context.attrs().int("block_size")?),
        ),
        _ => (
            "SpaceToBatch",
            Attrs::new().with("block_size", context.attrs().int("block_size")?),
        ),
    };
    let mut inputs = vec![gradient];
    for index in 1..context.num_inputs() {
        inputs.push(context.input(index)?);
    }
    let output = context.op(inverse, &inputs, attrs)?;
    context.set(0, output);
    Ok(())
}

crate::op_cases! {
    to_space: Case::op("DepthToSpace").input(counting(DataType::FLOAT, &[1, 2, 3, 8])).attr("block_size", 2i64);
    to_space_of_nothing: Case::op("DepthToSpace").input(counting(DataType::FLOAT, &[0, 2, 3, 8])).attr("block_size", 2i64);
    to_space_uneven: Case::op("DepthToSpace").input(counting(DataType::FLOAT, &[1, 2, 3, 6])).attr("block_size", 2i64)
        .fails(Code::InvalidArgument);
    to_depth: Case::op("SpaceToDepth").input(counting(DataType::FLOAT, &[2, 4, 6, 3])).attr("block_size", 2i64);
    to_depth_uneven: Case::op("SpaceToDepth").input(counting(DataType::FLOAT, &[2, 3, 6, 3])).attr("block_size", 2i64)
        .fails(Code::InvalidArgument);
    to_batch: Case::op("SpaceToBatchND")
        .inputs([counting(DataType::FLOAT, &[2, 3, 4, 2]), vector(&[2, 3]), t(&[2, 2], &[1, 0, 1, 1])]);
    to_batch_uneven: Case::op("SpaceToBatchND")
        .inputs([counting(DataType::FLOAT, &[2, 3, 4, 2]), vector(&[2, 3]), t(&[2, 2], &[0, 0, 1, 1])])
        .fails(Code::InvalidArgument);
    from_batch: Case::op("BatchToSpaceND")
        .inputs([counting(DataType::INT64, &[6, 2, 2]), vector(&[2]), t(&[1, 2], &[1, 2])]);
    from_batch_uneven: Case::op("BatchToSpaceND")
        .inputs([counting(DataType::INT64, &[5, 2, 2]), vector(&[2]), t(&[1, 2], &[1, 2])])
        .fails(Code::InvalidArgument);
    to_batch_old: Case::op("SpaceToBatch")
        .inputs([counting(DataType::FLOAT, &[1, 2, 2, 1]), t(&[2, 2], &[0, 0, 0, 0])]).attr("block_size", 2i64);
    from_batch_old: Case::op("BatchToSpace")
        .inputs([counting(DataType::FLOAT, &[4, 1, 1, 2]), t(&[2, 2], &[0, 0, 0, 1])]).attr("block_size", 2i64);
}
