//! A function on each row of some tensors.

use super::call::instantiate;
use crate::movement::Writer;
use ff_op::{AsyncKernelContext, Gradient, Kernel, KernelContext, NodeInfo, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, ensure, status};
use parking_lot::Mutex;
use std::sync::Arc;

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "MapDefun",
    shape,
    kernels: &[Kernel::calls(run, start)],
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
    let inputs: Vec<Tensor> = (0..context.num_inputs())
        .map(|index| context.input(index).cloned())
        .collect::<Result<_>>()?;
    let mut rows = Rows::new(context.node(), count);
    for row in 0..count {
        context.host().cancellation().check()?;
        let results = function.run(context.host(), arguments(&inputs, mapped, row)?)?;
        rows.put(context.node(), row, &results)?;
    }
    for (index, output) in rows.finish(context.node())?.into_iter().enumerate() {
        context.set_output(index, output)?;
    }
    Ok(())
}

/// What the function gets for a row: that row of the inputs that are mapped, and the others.
fn arguments(inputs: &[Tensor], mapped: usize, row: usize) -> Result<Vec<Tensor>> {
    let argument = |(index, input): (usize, &Tensor)| match index < mapped {
        true => input.rows(row, 1)?.into_shape(Shape::new(&input.dims()[1..])?),
        false => Ok(input.clone()),
    };
    inputs.iter().enumerate().map(argument).collect()
}

/// Rows under way, of a function that may wait: they run at the same time.
struct Together {
    /// None once the node has ended.
    context: Option<AsyncKernelContext>,
    rows: Rows,
    left: usize,
}

/// Starts the function on all rows.
fn start(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let attrs = &context.node.attrs;
        let function = context.host.functions().instantiate(attrs.func("f")?)?;
        let inputs = context.tensors_from(0)?;
        let count = inputs
            .first()
            .and_then(|input| input.dims().first().copied())
            .unwrap_or(0) as usize;
        let mapped = attrs.types("Targuments")?.len();
        let arguments = (0..count).map(|row| arguments(&inputs, mapped, row));
        Ok((function, arguments.collect::<Result<Vec<_>>>()?))
    };
    let (function, all) = match prepare(&context) {
        Ok(prepared) => prepared,
        Err(error) => return context.finish(Err(error)),
    };
    let rows = Rows::new(&context.node, all.len());
    if all.is_empty() {
        let outputs = rows.finish(&context.node);
        return context.give(outputs);
    }
    let (host, relay) = (context.host.clone(), context.relay.clone());
    let together = Arc::new(Mutex::new(Together {
        context: Some(context),
        left: all.len(),
        rows,
    }));
    for (row, arguments) in all.into_iter().enumerate() {
        let together = together.clone();
        let returned = move |results| row_ended(&together, row, results);
        function
            .clone()
            .start(host.clone(), relay.clone(), arguments, Box::new(returned));
    }
}

/// Takes a row in; the last one, or the first that fails, ends the node.
fn row_ended(together: &Mutex<Together>, row: usize, results: Result<Vec<Tensor>>) {
    let mut state = together.lock();
    let Together { context, rows, left } = &mut *state;
    let Some(open) = context else { return };
    let node = open.node.clone();
    let put = results.and_then(|results| rows.put(&node, row, &results));
    *left -= 1;
    if put.is_ok() && *left > 0 {
        return;
    }
    let outputs = put.and_then(|()| std::mem::take(rows).finish(&node));
    let context = context.take();
    drop(state);
    if let Some(context) = context {
        context.give(outputs);
    }
}

/// The outputs, row by row.
#[derive(Default)]
struct Rows {
    count: usize,
    writers: Vec<Option<Writer>>,
}

impl Rows {
    fn new(node: &NodeInfo, count: usize) -> Rows {
        Rows {
            count,
            writers: node.output_types.iter().map(|_| None).collect(),
        }
    }

    fn put(&mut self, node: &NodeInfo, row: usize, results: &[Tensor]) -> Result<()> {
        ensure!(
            results.len() == self.writers.len(),
            InvalidArgument,
            "the function of {} returned {} values, expected {}",
            node.describe(),
            results.len(),
            self.writers.len()
        );
        for (index, result) in results.iter().enumerate() {
            put(node, &mut self.writers[index], index, row, self.count, result)?;
        }
        Ok(())
    }

    fn finish(self, node: &NodeInfo) -> Result<Vec<Tensor>> {
        let output = |(index, writer): (usize, Option<Writer>)| match writer {
            Some(writer) => writer.finish(),
            None => nothing(node, index),
        };
        self.writers.into_iter().enumerate().map(output).collect()
    }
}

/// Writes a row; the first one decides the shape of all.
fn put(
    node: &NodeInfo,
    writer: &mut Option<Writer>,
    index: usize,
    row: usize,
    count: usize,
    result: &Tensor,
) -> Result<()> {
    let stated = &node.attrs.shapes("output_shapes")?[index];
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

/// An output without rows. INTERNAL when the shape of a row is not known.
fn nothing(node: &NodeInfo, index: usize) -> Result<Tensor> {
    let stated = &node.attrs.shapes("output_shapes")?[index];
    let row = stated.to_shape().ok_or_else(|| {
        status!(
            Internal,
            "Missing {index}-th output from {}: no row has come to tell its shape",
            node.describe()
        )
    })?;
    Tensor::zeros(
        node.output_types[index].base(),
        Shape::new(&[&[0], row.dims()].concat())?,
    )
}
