//! `TFE_OpSetAttr...`: attributes of a call that is executed eagerly.
//!
//! The value is copied; setting an attribute again replaces it. A value of the wrong kind is an error of `TFE_Execute`.

use crate::TF_Status;
use crate::datatype::{TF_DataType, data_type};
use crate::eager_op::TFE_Op;
use crate::ffi::{Array, Blob, Enum, Handle, Room, Text, given, given_mut};
use crate::graph::partial_shape;
use crate::guard::{guard, quiet};
use crate::tensor::TF_Tensor;
use bytes::Bytes;
use ff_op::{AttrValue, FunctionRef};
use ff_tensor::{PartialShape, Result};
use std::ffi::{c_char, c_int, c_uchar};

fn set<V: Into<AttrValue>>(op: Option<&mut TFE_Op>, name: Text, value: impl FnOnce() -> Result<V>) {
    quiet((), || try_set(op, name, value));
}

fn try_set<V: Into<AttrValue>>(
    op: Option<&mut TFE_Op>,
    name: Text,
    value: impl FnOnce() -> Result<V>,
) -> Result<()> {
    let name = name.text("attr_name")?;
    given_mut(op, "op")?.attrs.set(&*name, value()?);
    Ok(())
}

fn function_of(op: &TFE_Op) -> FunctionRef {
    FunctionRef {
        name: op.op_name().to_string(),
        attrs: op.attrs.clone(),
    }
}

/// Sets an attribute to a string of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrString(op: Option<&mut TFE_Op>, attr_name: Text, value: Blob, length: usize) {
    set(op, attr_name, || {
        Ok(Bytes::copy_from_slice(value.bytes(length, "value")?))
    });
}

/// Sets an attribute to an integer.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrInt(op: Option<&mut TFE_Op>, attr_name: Text, value: i64) {
    set(op, attr_name, || Ok(value));
}

/// Sets an attribute to a float.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrFloat(op: Option<&mut TFE_Op>, attr_name: Text, value: f32) {
    set(op, attr_name, || Ok(value));
}

/// Sets an attribute to a truth value: 0 is false.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrBool(op: Option<&mut TFE_Op>, attr_name: Text, value: c_uchar) {
    set(op, attr_name, || Ok(value != 0));
}

/// Sets an attribute to an element type.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrType(op: Option<&mut TFE_Op>, attr_name: Text, value: Enum<TF_DataType>) {
    set(op, attr_name, || Ok(data_type(value)));
}

/// Sets an attribute to a shape: a negative `num_dims` is an unknown rank, -1 an unknown extent.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrShape(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    dims: Array<i64>,
    num_dims: c_int,
    out_status: Option<&mut TF_Status>,
) {
    guard(out_status, || {
        try_set(op, attr_name, || partial_shape(dims, num_dims))
    });
}

/// Sets an attribute to the function that another call is of, with the attributes of that call.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrFunction(op: Option<&mut TFE_Op>, attr_name: Text, value: Option<&TFE_Op>) {
    set(op, attr_name, || Ok(function_of(given(value, "value")?)));
}

/// Sets an attribute to the function with this name of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrFunctionName(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    data: Array<c_char>,
    length: usize,
) {
    set(op, attr_name, || {
        Ok(FunctionRef {
            name: String::from_utf8_lossy(data.bytes(length, "data")?).into_owned(),
            ..FunctionRef::default()
        })
    });
}

/// Sets an attribute to a tensor. Its memory is shared and must not change any more.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrTensor(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    tensor: Handle<TF_Tensor>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        try_set(op, attr_name, || given(tensor, "tensor")?.tensor())
    });
}

/// Sets an attribute to a list of strings; `lengths` gives their numbers of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrStringList(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    values: Array<Blob>,
    lengths: Array<usize>,
    num_values: c_int,
) {
    set(op, attr_name, || {
        let values = values.of(num_values, "values")?.iter();
        let lengths = lengths.of(num_values, "lengths")?;
        let copy =
            |(value, length): (&Blob, &usize)| Ok(Bytes::copy_from_slice(value.bytes(*length, "a value")?));
        values.zip(lengths).map(copy).collect::<Result<Vec<_>>>()
    });
}

/// Sets an attribute to a list of integers.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrIntList(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    values: Array<i64>,
    num_values: c_int,
) {
    set(op, attr_name, || Ok(values.of(num_values, "values")?.to_vec()));
}

/// Sets an attribute to a list of floats.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrFloatList(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    values: Array<f32>,
    num_values: c_int,
) {
    set(op, attr_name, || Ok(values.of(num_values, "values")?.to_vec()));
}

/// Sets an attribute to a list of truth values.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrBoolList(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    values: Array<c_uchar>,
    num_values: c_int,
) {
    set(op, attr_name, || {
        let values = values.of(num_values, "values")?.iter();
        Ok(values.map(|&value| value != 0).collect::<Vec<_>>())
    });
}

/// Sets an attribute to a list of element types.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrTypeList(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    values: Array<Enum<TF_DataType>>,
    num_values: c_int,
) {
    set(op, attr_name, || {
        let values = values.of(num_values, "values")?.iter();
        Ok(values.map(|value| data_type(*value)).collect::<Vec<_>>())
    });
}

/// Sets an attribute to a list of shapes, each with its number of dimensions.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrShapeList(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    dims: Room<Array<i64>>,
    num_dims: Array<c_int>,
    num_values: c_int,
    out_status: Option<&mut TF_Status>,
) {
    guard(out_status, || {
        try_set(op, attr_name, || {
            let dims = dims.of(num_values, "dims")?.iter();
            let ranks = num_dims.of(num_values, "num_dims")?;
            let shape = |(dims, rank): (&Array<i64>, &c_int)| partial_shape(*dims, *rank);
            dims.zip(ranks).map(shape).collect::<Result<Vec<PartialShape>>>()
        })
    });
}

/// Sets an attribute to a list of functions, each given by a call of it.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrFunctionList(
    op: Option<&mut TFE_Op>,
    attr_name: Text,
    value: Room<Option<&TFE_Op>>,
    num_values: c_int,
) {
    set(op, attr_name, || {
        let values = value.of(num_values, "value")?.iter();
        let function = |value: &Option<&TFE_Op>| Ok(function_of(given(*value, "a value")?));
        values.map(function).collect::<Result<Vec<FunctionRef>>>()
    });
}
