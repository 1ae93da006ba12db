//! Shape functions that many ops share.

use crate::ShapeContext;
use ff_tensor::{PartialShape, Result, bail, dim};

/// Nothing is known of the outputs.
pub fn unknown(_: &mut ShapeContext) -> Result<()> {
    Ok(())
}

/// No outputs.
pub fn none(_: &mut ShapeContext) -> Result<()> {
    Ok(())
}

/// Every output is a scalar.
pub fn scalar(context: &mut ShapeContext) -> Result<()> {
    for index in 0..context.num_outputs() {
        context.set_output(index, PartialShape::scalar());
    }
    Ok(())
}

/// Every output has the shape of the first input, and holds what it holds.
pub fn unchanged(context: &mut ShapeContext) -> Result<()> {
    for index in 0..context.num_outputs() {
        context.set_output(index, context.input(0));
        if let Some(handle) = context.input_handle(0) {
            context.set_output_handle(index, handle);
        }
    }
    Ok(())
}

/// The shape of the attribute `shape`.
pub fn from_shape_attr(context: &mut ShapeContext) -> Result<()> {
    let shape = context.attrs().shape("shape")?.clone();
    context.set_output(0, shape);
    Ok(())
}

/// All inputs and the output have one shape.
pub fn merged(context: &mut ShapeContext) -> Result<()> {
    let mut shape = context.input(0);
    for input in &context.inputs()[1.min(context.num_inputs())..] {
        shape = shape.merge(input)?;
    }
    for index in 0..context.num_outputs() {
        context.set_output(index, shape.clone());
    }
    Ok(())
}

/// The first two inputs are broadcast against each other.
pub fn broadcast_binary(context: &mut ShapeContext) -> Result<()> {
    let (a, b) = (context.input(0), context.input(1));
    let shape = broadcast(&a, &b);
    let shape = shape
        .map_err(|error| context.in_words_of_kernel(error, || format!("Incompatible shapes: {a} vs. {b}")))?;
    context.set_output(0, shape);
    Ok(())
}

/// What two shapes broadcast to. INVALID_ARGUMENT when they cannot.
pub fn broadcast(a: &PartialShape, b: &PartialShape) -> Result<PartialShape> {
    let (Some(a_dims), Some(b_dims)) = (a.dims(), b.dims()) else {
        return Ok(PartialShape::unknown());
    };
    let rank = a_dims.len().max(b_dims.len());
    let extent = |dims: &[i64], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |i| dims[i]);
    let mut dims = Vec::with_capacity(rank);
    for axis in 0..rank {
        let (x, y) = (extent(a_dims, axis), extent(b_dims, axis));
        dims.push(match (x, y) {
            (1, other) | (other, 1) => other,
            (x, y) if x == y => x,
            // An unknown extent may be 1; a known one above 1 decides.
            (dim::UNKNOWN, known) | (known, dim::UNKNOWN) => known,
            _ => bail!(InvalidArgument, "Dimensions must be equal, but are {x} and {y}"),
        });
    }
    Ok(PartialShape::new(&dims))
}
