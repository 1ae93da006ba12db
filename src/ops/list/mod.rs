//! Lists of tensors in variants, which loops build up.

mod bulk;
mod element;

use ff_op::{Op, ShapeContext, TensorList};
use ff_tensor::{DataType, PartialShape, Result, Tensor, VariantValue};

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[bulk::OPS, element::OPS];

/// A variant tensor with each list in it replaced by one of zeros; other variants become empty.
pub fn zeros_like(variants: &Tensor) -> Result<Tensor> {
    let zeros = |variant: &VariantValue| match variant.get::<TensorList>() {
        Some(list) => list.zeros_like().map(VariantValue::new),
        None => Ok(VariantValue::default()),
    };
    let values = variants.variants()?.iter().map(zeros).collect::<Result<_>>()?;
    Tensor::from_variants(variants.shape().clone(), values)
}

/// What the list at an input says of its elements' shapes.
fn element_shape(context: &ShapeContext, index: usize) -> PartialShape {
    let handle = context.input_handle(index);
    handle
        .and_then(|held| held.into_iter().next())
        .map_or_else(PartialShape::unknown, |(_, shape)| shape)
}

/// Sets a scalar list as an output.
fn set_list(context: &mut ShapeContext, output: usize, dtype: DataType, shape: PartialShape) {
    context.set_output(output, PartialShape::scalar());
    context.set_output_handle(output, vec![(dtype, shape)]);
}

/// The element shape that the value of an input describes, as far as it is known.
fn declared(context: &ShapeContext, index: usize) -> Result<PartialShape> {
    // A scalar stands for an unknown shape, but its value may not be known yet.
    if context.input(index).rank() == Some(0) && context.input_value(index).is_none() {
        return Ok(PartialShape::unknown());
    }
    context.input_as_shape(index)
}
