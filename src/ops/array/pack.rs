//! Joining tensors along a new axis, and taking them apart again.

use crate::movement::{Region, Writer, read, row_major};
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, OutputRef, ShapeContext};
use ff_tensor::{PartialShape, Result, ensure};

static PACK: Op = Op {
    name: "Pack",
    shape: pack_shape,
    kernels: &[Kernel::native(pack)],
    lower: Some(lower_pack),
    gradient: Gradient::Fn(pack_gradient),
    ..Op::PURE
};
static UNPACK: Op = Op {
    name: "Unpack",
    shape: unpack_shape,
    kernels: &[Kernel::native(unpack)],
    lower: Some(lower_unpack),
    gradient: Gradient::Fn(unpack_gradient),
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&PACK, &UNPACK];

/// The place of `axis` among `rank` axes.
fn place(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    ensure!(
        -rank <= axis && axis < rank,
        InvalidArgument,
        "Invalid axis: {axis}; must be in [{},{rank})",
        -rank
    );
    Ok((if axis < 0 { axis + rank } else { axis }) as usize)
}

fn pack_shape(context: &mut ShapeContext) -> Result<()> {
    let mut element = PartialShape::unknown();
    for (index, input) in context.inputs().iter().enumerate() {
        element = element.merge(input).map_err(|error| {
            context.in_words_of_kernel(error, || {
                let first = &context.inputs()[0];
                format!("Shapes of all inputs must match: values[0].shape = {first} != values[{index}].shape = {input}")
            })
        })?;
    }
    let Some(dims) = element.dims() else { return Ok(()) };
    let mut dims = dims.to_vec();
    dims.insert(
        place(context.attrs().int("axis")?, dims.len() + 1)?,
        context.num_inputs() as i64,
    );
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

fn pack(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let axis = place(context.attrs().int("axis")?, shape.rank())?;
    let mut strides = row_major(shape.dims());
    let step = strides.remove(axis);
    let mut writer = Writer::new(context.output_type(0), shape)?;
    for index in 0..context.num_inputs() {
        let input = context.input(index)?;
        let dense = row_major(input.dims());
        let to = Region {
            offset: index as i64 * step,
            strides: &strides,
        };
        writer.write(
            input.dims(),
            to,
            input,
            Region {
                offset: 0,
                strides: &dense,
            },
        )?;
    }
    context.set_output(0, writer.finish()?)
}

fn lower_pack(context: &mut LowerContext) -> Result<()> {
    let mut dims = context.input_dims(0)?;
    let axis = place(context.attrs().int("axis")?, dims.len() + 1)?;
    dims.insert(axis, 1);
    let mut parts = Vec::with_capacity(context.num_inputs());
    for index in 0..context.num_inputs() {
        let input = context.input(index)?;
        parts.push(context.builder.reshape(input, &dims)?);
    }
    let result = context.builder.concatenate(&parts, axis)?;
    context.set_output(0, result);
    Ok(())
}

fn unpack_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank_at_least(0, 1)?;
    let Some(dims) = input.dims() else { return Ok(()) };
    let axis = place(context.attrs().int("axis")?, dims.len())?;
    let count = context.num_outputs() as i64;
    ensure!(
        dims[axis] < 0 || dims[axis] == count,
        InvalidArgument,
        "Dimension must be {count} but is {}",
        dims[axis]
    );
    let mut rest = dims.to_vec();
    rest.remove(axis);
    for index in 0..context.num_outputs() {
        context.set_output(index, PartialShape::new(&rest));
    }
    Ok(())
}

fn unpack(context: &mut KernelContext) -> Result<()> {
    let input = context.input(0)?.clone();
    let axis = place(context.attrs().int("axis")?, input.rank())?;
    let mut strides = row_major(input.dims());
    let step = strides.remove(axis);
    for index in 0..context.num_outputs() {
        let shape = context.output_shape(index)?.clone();
        let part = if axis == 0 {
            input.rows(index, 1)?.into_shape(shape)?
        } else {
            read(
                &input,
                shape,
                Region {
                    offset: index as i64 * step,
                    strides: &strides,
                },
            )?
        };
        context.set_output(index, part)?;
    }
    Ok(())
}

fn lower_unpack(context: &mut LowerContext) -> Result<()> {
    let (input, dims) = (context.input(0)?, context.input_dims(0)?);
    let axis = place(context.attrs().int("axis")?, dims.len())?;
    let mut rest = dims.clone();
    let count = rest.remove(axis);
    for index in 0..count {
        let part = context.builder.slice_in_dim(input, index, index + 1, 1, axis)?;
        let part = context.builder.reshape(part, &rest)?;
        context.set_output(index as usize, part);
    }
    Ok(())
}

fn pack_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let count = context.num_inputs();
    let attrs = ff_op::Attrs::new()
        .with("T", context.dtype(incoming))
        .with("num", count as i64)
        .with("axis", context.attrs().int("axis")?);
    let node = context.node_of("Unpack", &[incoming], attrs)?;
    for index in 0..count {
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

fn unpack_gradient(context: &mut GradientContext) -> Result<()> {
    let count = context.node().output_types.len();
    let incoming = (0..count)
        .map(|index| context.incoming_or_zeros(index))
        .collect::<Result<Vec<_>>>()?;
    let attrs = ff_op::Attrs::new()
        .with("T", context.input_type(0))
        .with("N", count as i64)
        .with("axis", context.attrs().int("axis")?);
    let packed = context.op("Pack", &incoming, attrs)?;
    context.set(0, packed);
    Ok(())
}

crate::op_cases! {
    packed: Case::op("Pack").inputs([vector(&[1, 2]), vector(&[3, 4])]).attr("axis", -1i64)
        .gives(t(&[2, 2], &[1, 3, 2, 4]));
    packed_one: Case::op("Pack").input(scalar(3.0f32)).gives(vector(&[3.0f32]));
    packed_strings: Case::op("Pack").inputs([strings(&[], &["a"]), strings(&[], &["b"])]);
    packed_misfits: Case::op("Pack").inputs([vector(&[1, 2]), vector(&[3])]).fails(Code::InvalidArgument);
    unpacked: Case::op("Unpack").input(counting(DataType::HALF, &[2, 3])).attr("num", 3i64).attr("axis", 1i64);
    unpacked_none: Case::op("Unpack").input(counting(DataType::HALF, &[0, 3])).attr("num", 0i64);
    unpacked_misfit: Case::op("Unpack").input(counting(DataType::HALF, &[2, 3])).attr("num", 3i64)
        .fails(Code::InvalidArgument);
}
