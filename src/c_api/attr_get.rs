//! `TF_OperationGetAttr...`: attributes of an operation.
//!
//! Getters of single values want a value of their kind. Getters of lists write as many elements as there is room for;
//! elements of another kind are no elements. Results that are tensors or buffers belong to the caller.

use crate::TF_Status;
use crate::attr_type::TF_AttrType;
use crate::buffer::{TF_Buffer, fill};
use crate::datatype::{TF_DataType, to_c};
use crate::ffi::{Enum, Handle, Out, Room, Text, c_count, missing, put};
use crate::guard::{guard, guard_or, quiet};
use crate::operation::{TF_Operation, look};
use crate::tensor::TF_Tensor;
use ff_graph::Node;
use ff_op::{AttrValue, Attrs};
use ff_tensor::{PartialShape, Result, Status, Tensor, bail, ensure, status};
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr::null_mut;

/// What kind of value an attribute has, and how much room it needs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_AttrMetadata {
    /// 1 for a list, 0 for a single value.
    pub is_list: c_uchar,
    /// Number of elements of a list; -1 for a single value.
    pub list_size: i64,
    /// Kind of the value, or of the elements of a list.
    pub r#type: Enum<TF_AttrType>,
    /// Bytes of a string, or of all strings of a list; dimensions of a shape (-1 for an unknown rank), or of all shapes of
    /// a list; -1 for other kinds.
    pub total_size: i64,
}

const NO_METADATA: TF_AttrMetadata = TF_AttrMetadata {
    is_list: 0,
    list_size: -1,
    r#type: Enum::new(0),
    total_size: -1,
};

/// Looks at the value of an attribute. INVALID_ARGUMENT when there is none.
fn with_attr<T>(
    operation: Handle<TF_Operation>,
    name: Text,
    see: impl FnOnce(&AttrValue, &str) -> Result<T>,
) -> Result<T> {
    let name = name.text("attr_name")?;
    look(operation, |node, _| match node.info.attrs.get(&name) {
        Some(value) => see(value, &name),
        None => Err(no_attr(node, &name)),
    })
}

fn no_attr(node: &Node, name: &str) -> Status {
    status!(
        InvalidArgument,
        "Operation '{}' has no attr named '{name}'.",
        node.info.name
    )
}

/// A single value by one of the typed getters, with the reference's texts.
fn single<T>(
    operation: Handle<TF_Operation>,
    name: Text,
    get: impl FnOnce(&Attrs, &str) -> Result<T>,
) -> Result<T> {
    let name = name.text("attr_name")?;
    look(operation, |node, _| {
        let attrs = &node.info.attrs;
        if attrs.get(&name).is_none() {
            bail!(NotFound, "No attr named '{name}' in NodeDef:");
        }
        get(attrs, &name).map_err(|error| {
            let text = error.message().split('\n').next().unwrap_or_default();
            Status::new(error.code(), text)
        })
    })
}

/// Looks at a list. INVALID_ARGUMENT for a single value.
fn with_list<T>(
    operation: Handle<TF_Operation>,
    name: Text,
    see: impl FnOnce(&AttrValue) -> Result<T>,
) -> Result<T> {
    with_attr(operation, name, |value, name| {
        ensure!(
            value.kind().starts_with("list"),
            InvalidArgument,
            "Value for '{name}' is not a list."
        );
        see(value)
    })
}

/// The kind and size of an attribute's value. INVALID_ARGUMENT when there is no such attribute.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrMetadata(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    status: Option<&mut TF_Status>,
) -> TF_AttrMetadata {
    guard_or(status, NO_METADATA, || {
        with_attr(oper, attr_name, |value, name| {
            ensure!(
                !matches!(value, AttrValue::Unset),
                InvalidArgument,
                "Attribute '{name}' has no value set"
            );
            Ok(metadata(value))
        })
    })
}

/// The kind and size of a value.
pub(crate) fn metadata(value: &AttrValue) -> TF_AttrMetadata {
    let rank = |shape: &PartialShape| shape.rank().map_or(-1, |rank| rank as i64);
    let sum = |sizes: &mut dyn Iterator<Item = usize>| match sizes.next() {
        Some(first) => (first + sizes.sum::<usize>()) as i64,
        None => -1,
    };
    // Kind, elements of a list, size in all.
    let (kind, length, total) = match value {
        AttrValue::String(bytes) => (0, None, bytes.len() as i64),
        AttrValue::Int(_) => (1, None, -1),
        AttrValue::Float(_) => (2, None, -1),
        AttrValue::Bool(_) => (3, None, -1),
        AttrValue::Type(_) => (4, None, -1),
        AttrValue::Shape(shape) => (5, None, rank(shape)),
        AttrValue::Tensor(_) => (6, None, -1),
        AttrValue::Placeholder(_) => (7, None, -1),
        AttrValue::Func(_) => (8, None, -1),
        AttrValue::Strings(list) => (
            0,
            Some(list.len()),
            sum(&mut list.iter().map(|bytes| bytes.len())),
        ),
        AttrValue::Ints(list) => (1, Some(list.len()), -1),
        AttrValue::Floats(list) => (2, Some(list.len()), -1),
        AttrValue::Bools(list) => (3, Some(list.len()), -1),
        AttrValue::Types(list) => (4, Some(list.len()), -1),
        AttrValue::Shapes(list) => (
            5,
            Some(list.len()),
            sum(&mut list.iter().map(|shape| shape.rank().unwrap_or(0))),
        ),
        AttrValue::Tensors(list) => (6, Some(list.len()), -1),
        AttrValue::Funcs(list) => (8, Some(list.len()), -1),
        AttrValue::EmptyList => (0, Some(0), -1),
        AttrValue::Unset => (0, None, -1),
    };
    TF_AttrMetadata {
        is_list: c_uchar::from(length.is_some()),
        list_size: length.map_or(-1, |length| length as i64),
        r#type: Enum::new(kind),
        total_size: total,
    }
}

/// Writes the bytes of a string, `max_length` at most, without a zero byte at the end.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrString(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    value: *mut c_void,
    max_length: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        with_attr(oper, attr_name, |found, name| {
            let AttrValue::String(bytes) = found else {
                bail!(InvalidArgument, "Attribute '{name}' is not a string");
            };
            let length = bytes.len().min(max_length);
            if length > 0 && value.is_null() {
                return Err(missing("value"));
            }
            // SAFETY: C vouches for room for `max_length` bytes.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast(), length) };
            Ok(())
        })
    });
}

/// Writes addresses and lengths of `max_values` strings at most; their bytes go one after the other into `storage`, which
/// has room for `storage_size` bytes: the `total_size` of the metadata. INVALID_ARGUMENT when it has too little.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrStringList(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    values: Room<*mut c_void>,
    lengths: Room<usize>,
    max_values: c_int,
    storage: *mut c_void,
    storage_size: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        with_list(oper, attr_name, |value| {
            let AttrValue::Strings(strings) = value else {
                return Ok(());
            };
            let strings = &strings[..strings.len().min(usize::try_from(max_values).unwrap_or(0))];
            let mut starts = Vec::with_capacity(strings.len());
            let mut used = 0;
            for bytes in strings {
                ensure!(
                    bytes.len() <= storage_size - used && (bytes.is_empty() || !storage.is_null()),
                    InvalidArgument,
                    "Not enough storage to hold the requested list of strings"
                );
                let start = storage.wrapping_byte_add(used);
                // SAFETY: C vouches for room for `storage_size` bytes, of which this many are left.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len()) };
                starts.push(start);
                used += bytes.len();
            }
            lengths.write(max_values, strings.iter().map(|bytes| bytes.len()));
            values.write(max_values, starts);
            Ok(())
        })
    });
}

/// Gets an integer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrInt(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    value: Out<i64>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        put(value, single(oper, attr_name, Attrs::int)?, "value")
    });
}

/// Writes the integers of a list, `max_values` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrIntList(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    values: Room<i64>,
    max_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        with_list(oper, attr_name, |value| {
            if let AttrValue::Ints(list) = value {
                values.write(max_values, list.iter().copied());
            }
            Ok(())
        })
    });
}

/// Gets a float.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrFloat(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    value: Out<f32>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        put(value, single(oper, attr_name, Attrs::float)?, "value")
    });
}

/// Writes the floats of a list, `max_values` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrFloatList(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    values: Room<f32>,
    max_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        with_list(oper, attr_name, |value| {
            if let AttrValue::Floats(list) = value {
                values.write(max_values, list.iter().copied());
            }
            Ok(())
        })
    });
}

/// Gets a truth value: 0 or 1.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrBool(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    value: Out<c_uchar>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        put(
            value,
            c_uchar::from(single(oper, attr_name, Attrs::bool)?),
            "value",
        )
    });
}

/// Writes the truth values of a list, `max_values` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrBoolList(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    values: Room<c_uchar>,
    max_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        with_list(oper, attr_name, |value| {
            if let AttrValue::Bools(list) = value {
                values.write(max_values, list.iter().map(|&value| c_uchar::from(value)));
            }
            Ok(())
        })
    });
}

/// Gets an element type.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrType(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    value: Out<Enum<TF_DataType>>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        put(value, to_c(single(oper, attr_name, Attrs::dtype)?), "value")
    });
}

/// Writes the element types of a list, `max_values` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrTypeList(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    values: Room<Enum<TF_DataType>>,
    max_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        with_list(oper, attr_name, |value| {
            if let AttrValue::Types(list) = value {
                values.write(max_values, list.iter().map(|dtype| to_c(*dtype)));
            }
            Ok(())
        })
    });
}

/// Writes the extents of a shape, -1 for unknown ones, `num_dims` at most; nothing for an unknown rank.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrShape(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    value: Room<i64>,
    num_dims: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let shape = single(oper, attr_name, |attrs, name| Ok(attrs.shape(name)?.clone()))?;
        value.write(num_dims, shape.dims().unwrap_or_default().iter().copied());
        Ok(())
    });
}

/// Writes addresses of the extents and ranks (-1 for unknown) of `num_shapes` shapes at most; the extents go one after the
/// other into `storage`, which has room for `storage_size` of them: the `total_size` of the metadata. INVALID_ARGUMENT
/// when it has too little.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrShapeList(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    dims: Room<*mut i64>,
    num_dims: Room<c_int>,
    num_shapes: c_int,
    storage: Room<i64>,
    storage_size: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        with_list(oper, attr_name, |value| {
            let AttrValue::Shapes(shapes) = value else {
                return Ok(());
            };
            let shapes = &shapes[..shapes.len().min(usize::try_from(num_shapes).unwrap_or(0))];
            let extents: Vec<i64> = shapes
                .iter()
                .flat_map(|shape| shape.dims().unwrap_or_default().to_vec())
                .collect();
            let total = extents.len();
            ensure!(
                storage.write(storage_size, extents) == total,
                InvalidArgument,
                "Not enough storage to hold the requested list of shapes"
            );
            let mut used = 0;
            let starts = shapes.iter().map(|shape| {
                let start = storage.at(used);
                used += shape.rank().unwrap_or(0);
                start
            });
            dims.write(num_shapes, starts);
            let ranks = shapes.iter().map(|shape| shape.rank().map_or(-1, c_count));
            num_dims.write(num_shapes, ranks);
            Ok(())
        })
    });
}

/// Writes a shape as a serialized `TensorShapeProto` into an empty buffer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrTensorShapeProto(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    value: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let shape = with_attr(oper, attr_name, |found, name| match found {
            AttrValue::Shape(shape) => Ok(shape.to_proto()),
            _ => Err(status!(InvalidArgument, "Value for '{name}' is not a shape.")),
        })?;
        fill(value, &shape)
    });
}

/// Writes the shapes of a list as new buffers with serialized `TensorShapeProto`s, `max_values` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrTensorShapeProtoList(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    values: Room<*mut TF_Buffer>,
    max_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        with_list(oper, attr_name, |value| {
            let AttrValue::Shapes(shapes) = value else {
                return Ok(());
            };
            let wanted = usize::try_from(max_values).unwrap_or(0);
            let buffers: Vec<Box<TF_Buffer>> = shapes
                .iter()
                .take(wanted)
                .map(|shape| Ok(Box::new(TF_Buffer::of_message(&shape.to_proto())?)))
                .collect::<Result<_>>()?;
            values.write(max_values, buffers.into_iter().map(Box::into_raw));
            Ok(())
        })
    });
}

/// Gets a tensor, which the caller owns; NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrTensor(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    value: Out<*mut TF_Tensor>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let value = value.ok_or_else(|| missing("value"))?;
        value.write(null_mut());
        let tensor = single(oper, attr_name, |attrs, name| Ok(attrs.tensor(name)?.clone()))?;
        value.write(Box::into_raw(TF_Tensor::boxed(tensor)?));
        Ok(())
    });
}

/// Writes the tensors of a list, `max_values` at most, which the caller owns.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrTensorList(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    values: Room<*mut TF_Tensor>,
    max_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        with_list(oper, attr_name, |value| match value {
            AttrValue::Tensors(list) => write_tensors(list, values, max_values),
            _ => Ok(()),
        })
    });
}

/// Writes new handles of tensors, `count` at most.
pub(crate) fn write_tensors(list: &[Tensor], room: Room<*mut TF_Tensor>, count: c_int) -> Result<()> {
    let wanted = usize::try_from(count).unwrap_or(0);
    let tensors: Vec<Box<TF_Tensor>> = list
        .iter()
        .take(wanted)
        .map(|tensor| TF_Tensor::boxed(tensor.clone()))
        .collect::<Result<_>>()?;
    room.write(count, tensors.into_iter().map(Box::into_raw));
    Ok(())
}

/// Writes any value as a serialized `AttrValue` into an empty buffer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrValueProto(
    oper: Handle<TF_Operation>,
    attr_name: Text,
    output_attr_value: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let name = attr_name.text("attr_name")?;
        let proto = look(oper, |node, graph| {
            let proto = ff_graph::export_attr(graph, node, &name);
            proto.ok_or_else(|| no_attr(node, &name))
        })?;
        fill(output_attr_value, &proto)
    });
}

/// The number of attributes; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetNumAttrs(oper: Handle<TF_Operation>) -> c_int {
    quiet(0, || look(oper, |node, _| Ok(c_count(node.info.attrs.len()))))
}

fn name_of(operation: Handle<TF_Operation>, index: c_int) -> Result<String> {
    look(operation, |node, _| {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let attr = node.info.attrs.iter().nth(index);
        attr.map(|(name, _)| name.to_string()).ok_or_else(|| {
            let count = node.info.attrs.len();
            status!(
                OutOfRange,
                "Operation only has {count} attributes, can't get the {index}th"
            )
        })
    })
}

/// The length of the name of attribute `i`, without the zero byte at its end; -1 when there is no such attribute.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrNameLength(oper: Handle<TF_Operation>, i: c_int) -> c_int {
    quiet(-1, || Ok(c_count(name_of(oper, i)?.len())))
}

/// Writes the characters of the name of attribute `i`, and no zero byte. `output` has room for the length of the name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OperationGetAttrName(
    oper: Handle<TF_Operation>,
    i: c_int,
    output: Room<c_char>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let name = name_of(oper, i)?;
        output.write_all(
            c_count(name.len()),
            name.bytes().map(|b| b as c_char).collect(),
            "output",
        )
    });
}
