//! A function on each row of some tensors.

use super::call::instantiate;
use crate::movement::Writer;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, ensure, status};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "MapDefun",
    shape,
    kernels: &[Kernel::native(run)],
    gradient: Gradient::Missing,
    ..Op::PURE
}];

/// Outputs have a first axis over the rows, then the shapes that the node states.
fn shape(context: &mut ShapeContext) -> Result<()> {
    let attrs = context.attrs();
    let shapes = attrs.shapes("output_shapes")?;
    ensure!(
        shapes.len() == context.num_outputs(),
        InvalidArgument,
        "`output_shapes` must be the same length as `output_types` ({} vs. {})",
        shapes.len(),
        context.num_outputs()
    );
    let mut rows = PartialShape::new(&[-1]);
    for index in 0..attrs.types("Targuments")?.len() {
        let input = context.input_with_rank_at_least(index, 1)?;
        rows = rows.merge(&input.slice(0, Some(1)))?;
    }
    for (index, shape) in shapes.iter().enumerate() {
        context.set_output(index, rows.concat(shape));
    }
    Ok(())
}

fn run(context: &mut KernelContext) -> Result<()> {
    let function = instantiate(context, context.attrs().func("f")?)?;
    let mapped = context.attrs().types("Targuments")?.len();
    let count = context.input(0)?.dims().first().copied().unwrap_or(0) as usize;
    let mut writers: Vec<Option<Writer>> = (0..context.num_outputs()).map(|_| None).collect();
    for row in 0..count {
        context.host().cancellation().check()?;
        let mut arguments = Vec::with_capacity(context.num_inputs());
        for index in 0..context.num_inputs() {
            let input = context.input(index)?;
            arguments.push(match index < mapped {
                true => input.rows(row, 1)?.into_shape(Shape::new(&input.dims()[1..])?)?,
                false => input.clone(),
            });
        }
        let results = function.run(context.host(), arguments)?;
        ensure!(
            results.len() == writers.len(),
            InvalidArgument,
            "the function of {} returned {} values, expected {}",
            context.node().describe(),
            results.len(),
            writers.len()
        );
        for (index, result) in results.iter().enumerate() {
            put(context, &mut writers[index], index, row, count, result)?;
        }
    }
    for (index, writer) in writers.into_iter().enumerate() {
        let output = match writer {
            Some(writer) => writer.finish()?,
            None => nothing(context, index)?,
        };
        context.set_output(index, output)?;
    }
    Ok(())
}

/// Writes a row; the first one decides the shape of all.
fn put(
    context: &KernelContext,
    writer: &mut Option<Writer>,
    index: usize,
    row: usize,
    count: usize,
    result: &Tensor,
) -> Result<()> {
    let stated = &context.attrs().shapes("output_shapes")?[index];
    ensure!(
        stated.is_compatible_with(&result.partial_shape()),
        InvalidArgument,
        "output: {index}, expected shape: {stated}, got: {}",
        result.shape()
    );
    let writer = match writer {
        Some(writer) => writer,
        None => {
            let shape = Shape::new(&[&[count as i64], result.dims()].concat())?;
            writer.insert(Writer::new(result.dtype(), shape)?)
        }
    };
    let size = result.num_elements();
    if size == 0 {
        return Ok(());
    }
    writer
        .copy(row * size, result, 0, size)
        .map_err(|_| status!(InvalidArgument, "rows of output {index} differ in shape"))
}

/// An output without rows. INVALID_ARGUMENT when the shape of a row is not known.
fn nothing(context: &KernelContext, index: usize) -> Result<Tensor> {
    let stated = &context.attrs().shapes("output_shapes")?[index];
    let row = stated.to_shape().ok_or_else(|| {
        status!(
            InvalidArgument,
            "no row has come to tell the shape of output {index}"
        )
    })?;
    Tensor::zeros(
        context.output_type(index),
        Shape::new(&[&[0], row.dims()].concat())?,
    )
}
