//! Elements of many types as one wide type, so that a kernel for many types is compiled once.
//!
//! Reading borrows where the type is already the wide one. Writing rounds to the nearest value of a float type, and
//! cuts a fraction off for an integer type, whose limits hold. Complex numbers and strings are refused.

use ff_tensor::{
    Bool, DataType, Element, QInt8, QInt16, QInt32, QUInt8, QUInt16, Result, Shape, Tensor, bf16, f16, status,
};
use std::borrow::Cow;

/// A real number of any type.
pub trait Real: Element {
    /// The value; integers beyond 2^53 are rounded.
    fn to_f64(self) -> f64;
    /// The nearest value of a float type; an integer type cuts the fraction off and holds its limits.
    fn from_f64(value: f64) -> Self;
}

macro_rules! reals {
    ($($name:ty: |$x:ident| $to:expr, |$y:ident| $from:expr;)*) => {$(
        impl Real for $name {
            #[inline(always)]
            fn to_f64(self) -> f64 { let $x = self; $to }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { let $y = value; $from }
        }
    )*};
}

reals! {
    f32: |x| f64::from(x), |y| y as f32;
    f64: |x| x, |y| y;
    f16: |x| f64::from(x), |y| f16::from_f32(y as f32);
    bf16: |x| f64::from(x), |y| bf16::from_f32(y as f32);
    i8: |x| f64::from(x), |y| y as i8;
    i16: |x| f64::from(x), |y| y as i16;
    i32: |x| f64::from(x), |y| y as i32;
    i64: |x| x as f64, |y| y as i64;
    u8: |x| f64::from(x), |y| y as u8;
    u16: |x| f64::from(x), |y| y as u16;
    u32: |x| f64::from(x), |y| y as u32;
    u64: |x| x as f64, |y| y as u64;
    Bool: |x| f64::from(u8::from(x.get())), |y| Bool::from(y != 0.0);
    QInt8: |x| f64::from(x.0), |y| QInt8(y as i8);
    QUInt8: |x| f64::from(x.0), |y| QUInt8(y as u8);
    QInt16: |x| f64::from(x.0), |y| QInt16(y as i16);
    QUInt16: |x| f64::from(x.0), |y| QUInt16(y as u16);
    QInt32: |x| f64::from(x.0), |y| QInt32(y as i32);
}

/// `match_type` over every [`Real`].
macro_rules! match_wide {
    ($dtype:expr, $name:ident => $body:expr) => {
        crate::match_type!(
            $dtype,
            (f32, f64, i32, i64, f16, bf16, i8, i16, u8, u16, u32, u64, Bool, QInt8, QUInt8, QInt16, QUInt16, QInt32),
            $name => $body
        )
    };
}

/// A vector of `count` zeros. RESOURCE_EXHAUSTED when memory is out.
pub fn zeros<T: Clone + Default>(count: usize) -> Result<Vec<T>> {
    filled(count, T::default())
}

/// A vector of `count` equal elements. RESOURCE_EXHAUSTED when memory is out.
pub fn filled<T: Clone>(count: usize, value: T) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(count)
        .map_err(|_| status!(ResourceExhausted, "OOM when allocating {count} elements"))?;
    values.resize(count, value);
    Ok(values)
}

/// An empty vector with room for `count` elements. RESOURCE_EXHAUSTED when memory is out.
pub fn reserved<T>(count: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    reserve(&mut values, count)?;
    Ok(values)
}

/// Makes room for `more` elements, and for some after them. RESOURCE_EXHAUSTED when memory is out.
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    values
        .try_reserve(more)
        .map_err(|_| status!(ResourceExhausted, "OOM when allocating {more} elements"))
}

/// What an iterator that knows its length gives. RESOURCE_EXHAUSTED when memory is out.
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut values = reserved(items.len())?;
    values.extend(items);
    Ok(values)
}

/// As [`collected`], with the first error instead if there is one.
pub fn try_collected<T>(items: impl ExactSizeIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut values = reserved(items.len())?;
    for item in items {
        values.push(item?);
    }
    Ok(values)
}

/// The lowest finite number of a real type.
pub fn lowest(dtype: DataType) -> f64 {
    match dtype {
        DataType::FLOAT => f64::from(f32::MIN),
        DataType::HALF => f64::from(f16::MIN),
        DataType::BFLOAT16 => f64::from(bf16::MIN),
        DataType::DOUBLE => f64::MIN,
        DataType::INT8 => f64::from(i8::MIN),
        DataType::INT16 => f64::from(i16::MIN),
        DataType::INT32 => f64::from(i32::MIN),
        DataType::INT64 => i64::MIN as f64,
        _ => 0.0,
    }
}

/// The elements as `f32`.
pub fn f32s(tensor: &Tensor) -> Result<Cow<'_, [f32]>> {
    if tensor.dtype() == DataType::FLOAT {
        return Ok(Cow::Borrowed(tensor.as_slice()?));
    }
    let mut values = zeros(tensor.num_elements())?;
    match_wide!(tensor.dtype(), T => {
        for (to, &from) in values.iter_mut().zip(tensor.as_slice::<T>()?) {
            *to = from.to_f64() as f32;
        }
        Ok(())
    })?;
    Ok(Cow::Owned(values))
}

/// The elements as `f64`.
pub fn f64s(tensor: &Tensor) -> Result<Cow<'_, [f64]>> {
    if tensor.dtype() == DataType::DOUBLE {
        return Ok(Cow::Borrowed(tensor.as_slice()?));
    }
    let mut values = zeros(tensor.num_elements())?;
    match_wide!(tensor.dtype(), T => {
        for (to, &from) in values.iter_mut().zip(tensor.as_slice::<T>()?) {
            *to = from.to_f64();
        }
        Ok(())
    })?;
    Ok(Cow::Owned(values))
}

/// The one element of a tensor, as `f64`. INVALID_ARGUMENT unless there is exactly one.
pub fn single(tensor: &Tensor) -> Result<f64> {
    match f64s(tensor)?[..] {
        [value] => Ok(value),
        _ => Err(status!(
            InvalidArgument,
            "Expected a single element, got shape {}",
            tensor.shape()
        )),
    }
}

/// A tensor of a type from `f32` values.
pub fn from_f32s(dtype: DataType, shape: Shape, values: &[f32]) -> Result<Tensor> {
    if dtype == DataType::FLOAT {
        return Tensor::from_slice(shape, values);
    }
    let mut tensor = Tensor::allocate(dtype, shape)?;
    match_wide!(dtype, T => {
        for (to, &from) in tensor.as_mut_slice::<T>()?.iter_mut().zip(values) {
            *to = T::from_f64(f64::from(from));
        }
        Ok(())
    })?;
    Ok(tensor)
}

/// A tensor of a type from `f64` values.
pub fn from_f64s(dtype: DataType, shape: Shape, values: &[f64]) -> Result<Tensor> {
    if dtype == DataType::DOUBLE {
        return Tensor::from_slice(shape, values);
    }
    let mut tensor = Tensor::allocate(dtype, shape)?;
    match_wide!(dtype, T => {
        for (to, &from) in tensor.as_mut_slice::<T>()?.iter_mut().zip(values) {
            *to = T::from_f64(from);
        }
        Ok(())
    })?;
    Ok(tensor)
}

/// The product of extents as a number of elements. INVALID_ARGUMENT when it overflows.
pub fn count(dims: &[i64]) -> Result<usize> {
    Ok(Shape::new(dims)?.num_elements())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_cut_and_hold_their_limits() {
        let made = from_f32s(DataType::UINT8, Shape::vector(4), &[1.9, -3.0, 300.0, 7.0]).unwrap();
        assert_eq!(made.as_slice::<u8>().unwrap(), [1, 0, 255, 7]);
        assert_eq!(*f64s(&made).unwrap(), [1.0, 0.0, 255.0, 7.0]);
        assert!(f32s(&Tensor::from_strings(Shape::vector(0), vec![]).unwrap()).is_err());
    }
}
