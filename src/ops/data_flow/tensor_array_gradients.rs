//! Gradients of ops on tensor arrays: what is read from an array is written to its array of gradients, and what was
//! written is read from there.
//!
//! Flows order the two: the gradient of a flow is the flow of the array of gradients.

use ff_op::{Attrs, GradientContext, OutputRef};
use ff_tensor::{PartialShape, Result};

/// The array of gradients that belongs to this differentiation; its handle.
fn array(context: &mut GradientContext, flow: OutputRef) -> Result<OutputRef> {
    // All nodes of one differentiation are named under one scope, which tells them from those of others.
    let marker = context.int32(0)?;
    let name = context.host.node(marker.node).name.clone();
    let scope = name.rsplit_once('/').map_or(name.as_str(), |(scope, _)| scope);
    let handle = context.input(0)?;
    let attrs = Attrs::new().with("source", scope);
    context.op("TensorArrayGradV3", &[handle, flow], attrs)
}

/// Inputs: handle, index, flow.
pub fn read(context: &mut GradientContext) -> Result<()> {
    write_back(context, "TensorArrayWriteV3")
}

/// Inputs: handle, indices, flow.
pub fn gather(context: &mut GradientContext) -> Result<()> {
    write_back(context, "TensorArrayScatterV3")
}

fn write_back(context: &mut GradientContext, op: &str) -> Result<()> {
    let Some(incoming) = context.incoming(0) else {
        return Ok(());
    };
    let (index, flow) = (context.input(1)?, context.input(2)?);
    let array = array(context, flow)?;
    let flow = context.op(op, &[array, index, incoming, flow], Attrs::new())?;
    context.set(2, flow);
    Ok(())
}

/// Inputs: handle, flow.
pub fn concat(context: &mut GradientContext) -> Result<()> {
    let Some(incoming) = context.incoming(0) else {
        return Ok(());
    };
    let (lengths, flow) = (context.output(1), context.input(1)?);
    let array = array(context, flow)?;
    let flow = context.op(
        "TensorArraySplitV3",
        &[array, incoming, lengths, flow],
        Attrs::new(),
    )?;
    context.set(1, flow);
    Ok(())
}

/// Inputs: handle, index, value, flow.
pub fn write(context: &mut GradientContext) -> Result<()> {
    let attrs = Attrs::new().with("dtype", context.input_type(2));
    read_back(context, "TensorArrayReadV3", attrs)
}

/// Inputs: handle, indices, value, flow.
pub fn scatter(context: &mut GradientContext) -> Result<()> {
    let attrs = Attrs::new()
        .with("dtype", context.input_type(2))
        .with("element_shape", PartialShape::unknown());
    read_back(context, "TensorArrayGatherV3", attrs)
}

fn read_back(context: &mut GradientContext, op: &str, attrs: Attrs) -> Result<()> {
    let Some(flow) = context.incoming(0) else {
        return Ok(());
    };
    let index = context.input(1)?;
    let array = array(context, flow)?;
    let value = context.op(op, &[array, index, flow], attrs)?;
    context.set(2, value);
    context.set(3, flow);
    Ok(())
}

/// Inputs: handle, value, lengths, flow.
pub fn split(context: &mut GradientContext) -> Result<()> {
    let Some(flow) = context.incoming(0) else {
        return Ok(());
    };
    let attrs = Attrs::new()
        .with("dtype", context.input_type(1))
        .with("element_shape_except0", PartialShape::unknown());
    let array = array(context, flow)?;
    let value = context.op("TensorArrayConcatV3", &[array, flow], attrs)?;
    context.set(1, value);
    context.set(3, flow);
    Ok(())
}
