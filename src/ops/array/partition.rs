//! Rows of a tensor dealt out to several tensors, and put together again.

use crate::math::gradients::{shape_of, typed};
use crate::movement::Writer;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "DynamicPartition",
    shape,
    kernels: &[Kernel::native(partition)],
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
}];

fn shape(context: &mut ShapeContext) -> Result<()> {
    let (data, partitions) = (context.input(0), context.input(1));
    let mut output = PartialShape::unknown();
    if let (Some(rank), Some(data_rank)) = (partitions.rank(), data.rank()) {
        ensure!(
            rank <= data_rank,
            InvalidArgument,
            "data.shape must start with partitions.shape, got data.shape = {data}, partitions.shape = {partitions}"
        );
        data.slice(0, Some(rank as i64)).merge(&partitions)?;
        let rest = if rank < data_rank {
            data.slice(rank as i64, None)
        } else {
            PartialShape::scalar()
        };
        output = PartialShape::new(&[dim::UNKNOWN]).concat(&rest);
    }
    for index in 0..context.num_outputs() {
        context.set_output(index, output.clone());
    }
    Ok(())
}

fn partition(context: &mut KernelContext) -> Result<()> {
    let (data, partitions) = (context.input(0)?.clone(), context.input_i64s(1)?);
    let parts = context.num_outputs();
    let mut rows = crate::wide::zeros::<i64>(parts)?;
    for (at, &part) in partitions.iter().enumerate() {
        let count = usize::try_from(part).ok().and_then(|part| rows.get_mut(part));
        let Some(count) = count else {
            ff_tensor::bail!(
                InvalidArgument,
                "partitions{} = {part} is not in [0, {parts})",
                super::gather::position_text(at, context.input(1)?.dims())
            );
        };
        *count += 1;
    }
    let rest = &data.dims()[context.input(1)?.rank()..];
    let width: usize = rest.iter().map(|&extent| extent as usize).product();
    let writer = |&count: &i64| {
        let dims = [&[count], rest].concat();
        Writer::new(data.dtype(), Shape::new(&dims)?)
    };
    let mut writers = rows.iter().map(writer).collect::<Result<Vec<Writer>>>()?;
    let mut filled = crate::wide::zeros::<usize>(parts)?;
    for (at, &part) in partitions.iter().enumerate().filter(|_| width > 0) {
        let part = part as usize;
        writers[part].copy(filled[part] * width, &data, at * width, width)?;
        filled[part] += 1;
    }
    for (index, writer) in writers.into_iter().enumerate() {
        context.set_output(index, writer.finish()?)?;
    }
    Ok(())
}

/// The incoming rows stitched together at the places from which they came.
fn gradient(context: &mut GradientContext) -> Result<()> {
    let (data, partitions) = (context.input(0)?, context.input(1)?);
    let parts = context.node().output_types.len();
    let incoming = (0..parts)
        .map(|index| context.incoming_or_zeros(index))
        .collect::<Result<Vec<OutputRef>>>()?;
    let dims = shape_of(context, partitions)?;
    let (axes, zero, one) = (context.int32s(&[0])?, context.int32(0)?, context.int32(1)?);
    let attrs = typed(DataType::INT32)
        .with("Tidx", DataType::INT32)
        .with("keep_dims", false);
    let count = context.op("Prod", &[dims, axes], attrs)?;
    let attrs = Attrs::new().with("Tidx", DataType::INT32);
    let places = context.op("Range", &[zero, count, one], attrs)?;
    let reshape = |context: &mut GradientContext, value: OutputRef, dims: OutputRef| {
        let attrs = typed(context.dtype(value)).with("Tshape", DataType::INT32);
        context.op("Reshape", &[value, dims], attrs)
    };
    let places = reshape(context, places, dims)?;
    let attrs = typed(DataType::INT32).with("num_partitions", parts as i64);
    let dealt = context.node_of("DynamicPartition", &[places, partitions], attrs)?;
    let mut inputs: Vec<OutputRef> = (0..parts as u32)
        .map(|index| OutputRef { node: dealt, index })
        .collect();
    inputs.extend(incoming);
    let attrs = typed(context.dtype(data)).with("N", parts as i64);
    let stitched = context.op("ParallelDynamicStitch", &inputs, attrs)?;
    let dims = shape_of(context, data)?;
    let gradient = reshape(context, stitched, dims)?;
    context.set(0, gradient);
    Ok(())
}

crate::op_cases! {
    rows: Case::op("DynamicPartition").inputs([t(&[3, 2], &[1, 2, 3, 4, 5, 6]), vector(&[1, 0, 1])]).attr("num_partitions", 2i64)
        .gives(t(&[1, 2], &[3, 4])).gives(t(&[2, 2], &[1, 2, 5, 6]));
    names: Case::op("DynamicPartition").inputs([strings(&[3], &["a", "b", "c"]), vector(&[2, 0, 2])]).attr("num_partitions", 3i64);
    types: family(&["DynamicPartition"], FRACTIONS, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 2, 3]), t(&[2, 2], &[0, 1, 1, 0])]).attr("num_partitions", 2i64)
    });
    one_number: Case::op("DynamicPartition").inputs([scalar(4), scalar(1)]).attr("num_partitions", 2i64);
    nothing: Case::op("DynamicPartition").inputs([t::<f32>(&[0, 2], &[]), vector::<i32>(&[])]).attr("num_partitions", 1i64);
    outside: Case::op("DynamicPartition").inputs([vector(&[1, 2]), vector(&[0, 2])]).attr("num_partitions", 2i64).fails(Code::InvalidArgument);
    misfit: Case::op("DynamicPartition").inputs([vector(&[1, 2]), vector(&[0])]).attr("num_partitions", 1i64).fails(Code::InvalidArgument);
}
