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
/// that of the other. INVALID_ARGUMENT when types, lengths or shapes differ, RESOURCE_EXHAUSTED for lists within lists more
/// than [`DEEPEST`] deep.
pub fn sum(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    sum_within(a, b, 0)
}

/// How deep lists within lists are added.
const DEEPEST: usize = 64;

fn sum_within(a: &Tensor, b: &Tensor, depth: usize) -> Result<Tensor> {
    ensure!(
        depth < DEEPEST,
        ResourceExhausted,
        "Trying to add lists that are nested more than {DEEPEST} deep"
    );
    let mut sums = Vec::with_capacity(a.num_elements());
    for (a, b) in a.variants()?.iter().zip(b.variants()?) {
        sums.push(match (a.get::<TensorList>(), b.get::<TensorList>()) {
            (Some(a), Some(b)) => VariantValue::new(sum_of_lists(a, b, depth)?),
            (None, _) => b.clone(),
            (_, None) => a.clone(),
        });
    }
    Tensor::from_variants(a.shape().clone(), sums)
}

fn sum_of_lists(a: &TensorList, b: &TensorList, depth: usize) -> Result<TensorList> {
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
            (Some(own), Some(other)) => Some(sum_of_elements(own, other, depth)?),
            (own, other) => own.or_else(|| other.clone()),
        };
    }
    Ok(list)
}

fn sum_of_elements(mut a: Tensor, b: &Tensor, depth: usize) -> Result<Tensor> {
    if a.dtype() == DataType::VARIANT {
        return sum_within(&a, b, depth + 1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use ff_tensor::Code;

    #[test]
    fn lists_too_deep_for_the_stack_are_refused() {
        let mut nested = crate::testing::scalar(1.0f32);
        for _ in 0..100_000 {
            let list = TensorList {
                element_type: nested.dtype(),
                element_shape: PartialShape::scalar(),
                max_elements: -1,
                elements: vec![Some(nested)],
            };
            nested = list.into_tensor().unwrap();
        }
        assert_eq!(sum(&nested, &nested).unwrap_err().code(), Code::ResourceExhausted);
    }
}
