//! `TF_SetAttr...`: attributes of an operation under construction.
//!
//! The value is copied. An attribute may be set once; a value of the wrong kind is an error that `TF_FinishOperation`
//! reports.

use crate::TF_Status;
use crate::buffer::decode;
use crate::datatype::{TF_DataType, data_type};
use crate::ffi::{Array, Blob, Enum, Handle, Text, given, given_mut};
use crate::graph::partial_shape;
use crate::guard::guard;
use crate::operation_builder::{TF_OperationDescription, change};
use crate::tensor::TF_Tensor;
use bytes::Bytes;
use ff_op::{AttrValue, FunctionRef};
use ff_proto::{TensorShapeProto, attr_value};
use ff_tensor::{PartialShape, Result, status};
use std::ffi::{c_char, c_int, c_uchar};

/// Sets an attribute to a string of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrString(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    value: Blob,
    length: usize,
) {
    change(desc, |description| {
        let bytes = Bytes::copy_from_slice(value.bytes(length, "value")?);
        description.set_attr(attr_name, bytes)
    });
}

/// Sets an attribute to a list of strings; `lengths` gives their numbers of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrStringList(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    values: Array<Blob>,
    lengths: Array<usize>,
    num_values: c_int,
) {
    change(desc, |description| {
        let values = values.of(num_values, "values")?;
        let lengths = lengths.of(num_values, "lengths")?;
        let strings: Vec<Bytes> = values
            .iter()
            .zip(lengths)
            .map(|(value, length)| Ok(Bytes::copy_from_slice(value.bytes(*length, "a value")?)))
            .collect::<Result<_>>()?;
        description.set_attr(attr_name, strings)
    });
}

/// Sets an attribute to an integer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrInt(desc: Option<&mut TF_OperationDescription>, attr_name: Text, value: i64) {
    change(desc, |description| description.set_attr(attr_name, value));
}

/// Sets an attribute to a list of integers.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrIntList(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    values: Array<i64>,
    num_values: c_int,
) {
    change(desc, |description| {
        description.set_attr(attr_name, values.of(num_values, "values")?.to_vec())
    });
}

/// Sets an attribute to a float.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrFloat(desc: Option<&mut TF_OperationDescription>, attr_name: Text, value: f32) {
    change(desc, |description| description.set_attr(attr_name, value));
}

/// Sets an attribute to a list of floats.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrFloatList(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    values: Array<f32>,
    num_values: c_int,
) {
    change(desc, |description| {
        description.set_attr(attr_name, values.of(num_values, "values")?.to_vec())
    });
}

/// Sets an attribute to a truth value: 0 is false.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrBool(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    value: c_uchar,
) {
    change(desc, |description| description.set_attr(attr_name, value != 0));
}

/// Sets an attribute to a list of truth values.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrBoolList(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    values: Array<c_uchar>,
    num_values: c_int,
) {
    change(desc, |description| {
        let values = values.of(num_values, "values")?;
        description.set_attr(
            attr_name,
            values.iter().map(|&value| value != 0).collect::<Vec<_>>(),
        )
    });
}

/// Sets an attribute to an element type.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrType(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    value: Enum<TF_DataType>,
) {
    change(desc, |description| {
        description.set_attr(attr_name, data_type(value))
    });
}

/// Sets an attribute to a list of element types.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrTypeList(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    values: Array<Enum<TF_DataType>>,
    num_values: c_int,
) {
    change(desc, |description| {
        let values = values.of(num_values, "values")?;
        let types: Vec<_> = values.iter().map(|value| data_type(*value)).collect();
        description.set_attr(attr_name, types)
    });
}

/// Sets an attribute to the name of an attribute of the surrounding function, whose value it will have.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrPlaceholder(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    placeholder: Text,
) {
    change(desc, |description| {
        let name = placeholder.text("placeholder")?.into_owned();
        description.set_attr(attr_name, AttrValue::Placeholder(name))
    });
}

/// Sets an attribute to the function with this name of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrFuncName(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    value: Array<c_char>,
    length: usize,
) {
    change(desc, |description| {
        let function = FunctionRef {
            name: String::from_utf8_lossy(value.bytes(length, "value")?).into_owned(),
            ..FunctionRef::default()
        };
        description.set_attr(attr_name, function)
    });
}

/// Sets an attribute to a shape: a negative `num_dims` is an unknown rank, -1 an unknown extent.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrShape(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    dims: Array<i64>,
    num_dims: c_int,
) {
    change(desc, |description| {
        description.set_attr(attr_name, partial_shape(dims, num_dims)?)
    });
}

/// Sets an attribute to a list of shapes, each with its number of dimensions.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrShapeList(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    dims: Array<Array<i64>>,
    num_dims: Array<c_int>,
    num_shapes: c_int,
) {
    change(desc, |description| {
        let dims = dims.of(num_shapes, "dims")?;
        let ranks = num_dims.of(num_shapes, "num_dims")?;
        let shapes: Vec<PartialShape> = dims
            .iter()
            .zip(ranks)
            .map(|(dims, rank)| partial_shape(*dims, *rank))
            .collect::<Result<_>>()?;
        description.set_attr(attr_name, shapes)
    });
}

fn decode_shape(bytes: &[u8], text: &str) -> Result<PartialShape> {
    let proto: TensorShapeProto = decode(bytes, text)?;
    PartialShape::from_proto(&proto)
}

/// Sets an attribute to a shape given as a serialized `TensorShapeProto`. INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrTensorShapeProto(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let shape = decode_shape(proto.bytes(proto_len, "proto")?, "Unparseable TensorShapeProto")?;
        given_mut(desc, "desc")?.set_attr(attr_name, shape)
    });
}

/// Sets an attribute to a list of shapes given as serialized `TensorShapeProto`s. INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrTensorShapeProtoList(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    protos: Array<Blob>,
    proto_lens: Array<usize>,
    num_shapes: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let protos = protos.of(num_shapes, "protos")?;
        let lengths = proto_lens.of(num_shapes, "proto_lens")?;
        let mut shapes = Vec::with_capacity(protos.len());
        for (index, (proto, length)) in protos.iter().zip(lengths).enumerate() {
            let text = format!("Unparseable TensorShapeProto at index {index}");
            shapes.push(decode_shape(proto.bytes(*length, "a proto")?, &text)?);
        }
        given_mut(desc, "desc")?.set_attr(attr_name, shapes)
    });
}

/// Sets an attribute to a tensor. Its memory is shared and must not change any more.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrTensor(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    value: Handle<TF_Tensor>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let tensor = given(value, "value")?.tensor()?;
        given_mut(desc, "desc")?.set_attr(attr_name, tensor)
    });
}

/// Sets an attribute to a list of tensors. Their memory is shared and must not change any more.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrTensorList(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    values: Array<Handle<TF_Tensor>>,
    num_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let values = values.of(num_values, "values")?;
        let tensors = values
            .iter()
            .map(|value| given(*value, "a value")?.tensor())
            .collect::<Result<_>>()?;
        given_mut(desc, "desc")?.set_attr(attr_name, AttrValue::Tensors(tensors))
    });
}

/// Sets an attribute to what a serialized `AttrValue` holds. INVALID_ARGUMENT for other bytes; one without a value makes an
/// attribute without a value.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetAttrValueProto(
    desc: Option<&mut TF_OperationDescription>,
    attr_name: Text,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let description = given_mut(desc, "desc")?;
        let value = decode_value(proto.bytes(proto_len, "proto")?)?;
        description.set_attr(attr_name, value.unwrap_or(AttrValue::Unset))
    });
}

/// The value in a serialized `AttrValue`, if it has one. INVALID_ARGUMENT for other bytes.
pub(crate) fn decode_value(bytes: &[u8]) -> Result<Option<AttrValue>> {
    let proto: ff_proto::AttrValue = decode(bytes, "Unparseable AttrValue proto")?;
    match &proto.value {
        None => Ok(None),
        // A list may be of any kind while it is empty.
        Some(attr_value::Value::List(list)) if **list == attr_value::ListValue::default() => {
            Ok(Some(AttrValue::EmptyList))
        }
        Some(_) => AttrValue::from_proto(&proto)
            .map(Some)
            .map_err(|error| status!(InvalidArgument, "{}", error.message())),
    }
}
