//! Decoding of tensors from their wire message.
//!
//! A `TensorProto` holds its elements either as raw bytes (`tensor_content`) or as numbers in the field of their
//! type. Too few numbers repeat the last one, none at all mean zeros, surplus ones are ignored; raw bytes must have
//! exactly the right length. Raw bytes become a view that keeps the message's memory alive where its alignment
//! allows, else a copy. Encoding is in `proto_encode`, shapes are in `proto_shape`.

use crate::element::*;
use crate::proto_encode::VariantProto;
use crate::{
    Buffer, DataType, ResourceHandle, Result, Shape, Status, TString, Tensor, VariantValue, ensure, status,
};
use bytes::Bytes;
use ff_proto::{Message, ResourceHandleProto, TensorProto, TensorShapeProto, VariantTensorDataProto};

impl Tensor {
    /// The tensor that a message describes.
    ///
    /// INVALID_ARGUMENT ("Cannot parse tensor from proto: ...") for an unknown type, a shape that is not full or too
    /// large, or contents of the wrong length; RESOURCE_EXHAUSTED when memory is out. Variants keep their message in a
    /// [`VariantProto`].
    pub fn from_proto(proto: &TensorProto) -> Result<Tensor> {
        decode(proto).map_err(explain)
    }
}

#[cold]
fn explain(error: Status) -> Status {
    error.prefixed("Cannot parse tensor from proto: ")
}

fn decode(proto: &TensorProto) -> Result<Tensor> {
    let dtype = DataType(proto.dtype);
    ensure!(
        dtype.is_known() && !dtype.is_ref(),
        InvalidArgument,
        "{dtype} is not a type of tensors"
    );
    let shape = match &proto.tensor_shape {
        Some(shape) => Shape::from_proto(shape)?,
        None => Shape::from_proto(&TensorShapeProto::default())?,
    };
    if shape.num_elements() == 0 {
        return Tensor::allocate(dtype, shape);
    }
    match dtype {
        DataType::STRING => decode_strings(proto, shape),
        DataType::RESOURCE => decode_resources(proto, shape),
        DataType::VARIANT => decode_variants(proto, shape),
        _ if !proto.tensor_content.is_empty() => from_content(dtype, shape, &proto.tensor_content),
        _ => decode_fields(proto, dtype, shape),
    }
}

/// Raw bytes as a tensor of plain elements: a view if they are aligned, else a copy.
fn from_content(dtype: DataType, shape: Shape, content: &Bytes) -> Result<Tensor> {
    let expected = shape.num_elements().checked_mul(dtype.size());
    ensure!(
        expected == Some(content.len()),
        InvalidArgument,
        "{} bytes are not the content of shape {shape} and type {dtype}",
        content.len()
    );
    if (content.as_ptr() as usize).is_multiple_of(dtype.size().min(8)) {
        // SAFETY: the bytes are immutable, and the box keeps them alive at their address.
        let buffer = unsafe { Buffer::shared(content.as_ptr(), content.len(), Box::new(content.clone())) };
        return Tensor::view_of(dtype, shape, buffer);
    }
    let mut tensor = Tensor::allocate(dtype, shape)?;
    if let Some(bytes) = tensor.bytes_mut() {
        bytes.copy_from_slice(content);
    }
    Ok(tensor)
}

/// The tensor of the numbers in the field of the type.
fn decode_fields(proto: &TensorProto, dtype: DataType, shape: Shape) -> Result<Tensor> {
    match dtype {
        DataType::FLOAT => fill(shape, &proto.float_val, |v: f32| v),
        DataType::DOUBLE => fill(shape, &proto.double_val, |v: f64| v),
        DataType::INT64 => fill(shape, &proto.int64_val, |v: i64| v),
        DataType::UINT32 => fill(shape, &proto.uint32_val, |v: u32| v),
        DataType::UINT64 => fill(shape, &proto.uint64_val, |v: u64| v),
        DataType::BOOL => fill(shape, &proto.bool_val, |v: bool| Bool::from(v)),
        DataType::INT32 => fill(shape, &proto.int_val, |v: i32| v),
        DataType::INT16 => fill(shape, &proto.int_val, |v| v as i16),
        DataType::INT8 => fill(shape, &proto.int_val, |v| v as i8),
        DataType::UINT8 => fill(shape, &proto.int_val, |v| v as u8),
        DataType::UINT16 => fill(shape, &proto.int_val, |v| v as u16),
        DataType::QINT8 => fill(shape, &proto.int_val, |v| QInt8(v as i8)),
        DataType::QUINT8 => fill(shape, &proto.int_val, |v| QUInt8(v as u8)),
        DataType::QINT16 => fill(shape, &proto.int_val, |v| QInt16(v as i16)),
        DataType::QUINT16 => fill(shape, &proto.int_val, |v| QUInt16(v as u16)),
        DataType::QINT32 => fill(shape, &proto.int_val, QInt32),
        DataType::INT4 => fill(shape, &proto.int_val, Int4::from_i32),
        DataType::UINT4 => fill(shape, &proto.int_val, UInt4::from_i32),
        DataType::INT2 => fill(shape, &proto.int_val, Int2::from_i32),
        DataType::UINT2 => fill(shape, &proto.int_val, UInt2::from_i32),
        DataType::HALF => fill(shape, &proto.half_val, |v| half::f16::from_bits(v as u16)),
        DataType::BFLOAT16 => fill(shape, &proto.half_val, |v| half::bf16::from_bits(v as u16)),
        DataType::FLOAT8_E5M2 => fill(shape, &proto.float8_val, Float8E5M2),
        DataType::FLOAT8_E4M3FN => fill(shape, &proto.float8_val, Float8E4M3Fn),
        DataType::FLOAT8_E4M3FNUZ => fill(shape, &proto.float8_val, Float8E4M3Fnuz),
        DataType::FLOAT8_E4M3B11FNUZ => fill(shape, &proto.float8_val, Float8E4M3B11Fnuz),
        DataType::FLOAT8_E5M2FNUZ => fill(shape, &proto.float8_val, Float8E5M2Fnuz),
        DataType::FLOAT4_E2M1FN => fill(shape, &proto.float8_val, |v| Float4E2M1Fn(v & 0xf)),
        DataType::COMPLEX64 => fill_pairs(shape, &proto.scomplex_val, Complex64::new),
        DataType::COMPLEX128 => fill_pairs(shape, &proto.dcomplex_val, Complex128::new),
        other => Err(status!(InvalidArgument, "{other} has no field for its values")),
    }
}

/// Elements from `values`; the last repeats, surplus ones are ignored, none means zeros.
fn fill<S: Copy, T: Element>(shape: Shape, values: &[S], convert: impl Fn(S) -> T) -> Result<Tensor> {
    let Some(&last) = values.last() else {
        return Tensor::zeros(T::DTYPE, shape);
    };
    let mut tensor = Tensor::allocate(T::DTYPE, shape)?;
    let elements = tensor.as_mut_slice::<T>()?;
    let given = values.len().min(elements.len());
    for (element, &value) in elements.iter_mut().zip(values) {
        *element = convert(value);
    }
    elements[given..].fill(convert(last));
    Ok(tensor)
}

/// As [`fill`], for elements of two numbers each. A number without its pair is ignored.
fn fill_pairs<S: Copy, T: Element>(
    shape: Shape,
    values: &[S],
    convert: impl Fn(S, S) -> T,
) -> Result<Tensor> {
    let (pairs, _) = values.as_chunks::<2>();
    fill(shape, pairs, |pair: [S; 2]| convert(pair[0], pair[1]))
}

/// Elements that are not plain, with the same rule of repetition.
fn filled<S, T: Clone + Default>(
    shape: &Shape,
    values: &[S],
    convert: impl Fn(&S) -> Result<T>,
) -> Result<Vec<T>> {
    let count = shape.num_elements();
    let mut elements = Vec::new();
    elements
        .try_reserve_exact(count)
        .map_err(|_| status!(ResourceExhausted, "OOM when allocating tensor with shape{shape}"))?;
    for value in values.iter().take(count) {
        elements.push(convert(value)?);
    }
    let last = elements.last().cloned().unwrap_or_default();
    elements.resize(count, last);
    Ok(elements)
}

fn decode_strings(proto: &TensorProto, shape: Shape) -> Result<Tensor> {
    let strings = if proto.tensor_content.is_empty() {
        filled(&shape, &proto.string_val, |bytes| Ok(TString::from(&bytes[..])))?
    } else {
        let parts = split_list(&proto.tensor_content, shape.num_elements())?;
        parts.iter().map(|bytes| TString::from(&bytes[..])).collect()
    };
    Tensor::from_strings(shape, strings)
}

fn decode_resources(proto: &TensorProto, shape: Shape) -> Result<Tensor> {
    let handles = if proto.tensor_content.is_empty() {
        filled(&shape, &proto.resource_handle_val, ResourceHandle::from_proto)?
    } else {
        let parts = split_list(&proto.tensor_content, shape.num_elements())?;
        let handle = |bytes: Bytes| ResourceHandle::from_proto(&message::<ResourceHandleProto>(bytes)?);
        parts.into_iter().map(handle).collect::<Result<Vec<_>>>()?
    };
    Tensor::from_resources(shape, handles)
}

fn decode_variants(proto: &TensorProto, shape: Shape) -> Result<Tensor> {
    let values = if proto.tensor_content.is_empty() {
        filled(&shape, &proto.variant_val, |value| Ok(variant(value.clone())))?
    } else {
        let parts = split_list(&proto.tensor_content, shape.num_elements())?;
        let value = |bytes: Bytes| Ok(variant(message::<VariantTensorDataProto>(bytes)?));
        parts.into_iter().map(value).collect::<Result<Vec<_>>>()?
    };
    Tensor::from_variants(shape, values)
}

fn variant(proto: VariantTensorDataProto) -> VariantValue {
    if proto == VariantTensorDataProto::default() {
        return VariantValue::default();
    }
    VariantValue::new(VariantProto(proto))
}

fn message<M: Message + Default>(bytes: Bytes) -> Result<M> {
    M::decode(bytes).map_err(|error| status!(InvalidArgument, "bad element message: {error}"))
}

/// Splits the raw form of a list of byte strings: all lengths as varints, then all bytes.
fn split_list(content: &Bytes, count: usize) -> Result<Vec<Bytes>> {
    let bad = || {
        status!(
            InvalidArgument,
            "{} bytes are not {count} elements",
            content.len()
        )
    };
    // Each element has at least one byte of length: this bounds the allocation by the input.
    ensure!(
        count <= content.len(),
        InvalidArgument,
        "{} bytes are not {count} elements",
        content.len()
    );
    let mut lengths = Vec::with_capacity(count);
    let mut rest = &content[..];
    for _ in 0..count {
        let length = prost::decode_length_delimiter(&mut rest).map_err(|_| bad())?;
        lengths.push(length);
    }
    let mut start = content.len() - rest.len();
    let mut parts = Vec::with_capacity(count);
    for length in lengths {
        let end = start
            .checked_add(length)
            .filter(|&end| end <= content.len())
            .ok_or_else(bad)?;
        parts.push(content.slice(start..end));
        start = end;
    }
    ensure!(
        start == content.len(),
        InvalidArgument,
        "{} bytes are left after {count} elements",
        content.len() - start
    );
    Ok(parts)
}

#[cfg(test)]
#[path = "proto_tests.rs"]
mod tests;
