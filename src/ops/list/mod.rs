//! Lists of tensors in variants, which loops build up.

mod bulk;
mod element;

use crate::math::number::Number;
use ff_op::{Op, ShapeContext, TensorList};
use ff_tensor::{DataType, PartialShape, Result, Tensor, VariantValue, ensure};

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

/// The sum of variant tensors of one shape: their lists added element by element; an element that one of them lacks is
/// that of the other. INVALID_ARGUMENT when types, lengths or shapes differ.
pub fn sum(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let mut sums = Vec::with_capacity(a.num_elements());
    for (a, b) in a.variants()?.iter().zip(b.variants()?) {
        sums.push(match (a.get::<TensorList>(), b.get::<TensorList>()) {
            (Some(a), Some(b)) => VariantValue::new(sum_of_lists(a, b)?),
            (None, _) => b.clone(),
            (_, None) => a.clone(),
        });
    }
    Tensor::from_variants(a.shape().clone(), sums)
}

fn sum_of_lists(a: &TensorList, b: &TensorList) -> Result<TensorList> {
    ensure!(
        a.element_type == b.element_type,
        InvalidArgument,
        "Trying to add two lists of tensors of different dtypes. One is {} and the other is {}",
        a.element_type,
        b.element_type
    );
    ensure!(
        a.elements.len() == b.elements.len(),
        InvalidArgument,
        "Trying to add two lists of tensors with different lengths. One is {} and the other is {}",
        a.elements.len(),
        b.elements.len()
    );
    let mut list = a.clone();
    list.element_shape = a.element_shape.merge(&b.element_shape)?;
    for (slot, other) in list.elements.iter_mut().zip(&b.elements) {
        *slot = match (slot.take(), other) {
            (Some(own), Some(other)) => Some(sum_of_elements(own, other)?),
            (own, other) => own.or_else(|| other.clone()),
        };
    }
    Ok(list)
}

fn sum_of_elements(mut a: Tensor, b: &Tensor) -> Result<Tensor> {
    if a.dtype() == DataType::VARIANT {
        return sum(&a, b);
    }
    ensure!(
        a.shape() == b.shape(),
        InvalidArgument,
        "Trying to add two tensors with incompatible element shapes. One is {} and the other is {}",
        a.shape(),
        b.shape()
    );
    a.make_writable()?;
    crate::match_number!(a.dtype(), T => {
        for (slot, &x) in a.as_mut_slice::<T>()?.iter_mut().zip(b.as_slice::<T>()?) {
            *slot = Number::add(*slot, x);
        }
        Ok(())
    })?;
    Ok(a)
}
