//! `TF_OpKernelConstruction`: what a kernel sees of its node when it is made.

use crate::TF_Status;
use crate::attr_get::{metadata, write_tensors};
use crate::buffer::TF_Buffer;
use crate::datatype::{TF_DataType, to_c};
use crate::ffi::{Enum, Out, Room, Text, c_count, given, given_mut, missing, put};
use crate::guard::{guard, quiet};
use crate::kernel_builder::failure_of;
use crate::string_view::TF_StringView;
use crate::tensor::TF_Tensor;
use ff_op::{AttrValue, Attrs, NodeInfo};
use ff_proto::NodeDef;
use ff_tensor::{Result, Status, ensure, status};
use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// What a kernel sees of its node when it is made; valid during that call, on its thread.
pub struct TF_OpKernelConstruction {
    node: *const NodeInfo,
    input_names: Arc<[String]>,
    failure: Option<Status>,
}

impl TF_OpKernelConstruction {
    /// The view of a node, which reads and waits for nodes of these names.
    pub fn new(node: &NodeInfo, input_names: &Arc<[String]>) -> TF_OpKernelConstruction {
        TF_OpKernelConstruction {
            node,
            input_names: input_names.clone(),
            failure: None,
        }
    }

    /// What the kernel reported.
    pub fn failure(self) -> Option<Status> {
        self.failure
    }

    fn node(&self) -> &NodeInfo {
        // SAFETY: valid during the call that makes the kernel.
        unsafe { &*self.node }
    }
}

/// Looks at an attribute by one of the typed getters.
fn attr<T>(
    ctx: Option<&mut TF_OpKernelConstruction>,
    name: Text,
    get: impl FnOnce(&Attrs, &str) -> Result<T>,
) -> Result<T> {
    let name = name.text("attr_name")?;
    get(&given_mut(ctx, "ctx")?.node().attrs, &name).map_err(|error| {
        // What follows names the attribute, which the caller knows.
        let text = error.message().split('\n').next().unwrap_or_default();
        ff_tensor::Status::new(error.code(), text)
    })
}

/// Reports that the kernel cannot be made.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_Failure(
    ctx: Option<&mut TF_OpKernelConstruction>,
    status: Option<&mut TF_Status>,
) {
    if let Some(ctx) = ctx {
        ctx.failure = Some(failure_of(status));
    }
}

/// The node as a serialized `NodeDef`. Free the buffer with `TF_DeleteBuffer`; NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetNodeDef(
    ctx: Option<&mut TF_OpKernelConstruction>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Buffer>> {
    guard(status, || {
        let ctx = given_mut(ctx, "ctx")?;
        let node = ctx.node();
        let attrs = node.attrs.iter();
        let def = NodeDef {
            name: node.name.clone(),
            op: node.op_name().to_string(),
            input: ctx.input_names.to_vec(),
            device: node.device.clone(),
            attr: attrs
                .map(|(name, value)| (name.to_string(), value.to_proto()))
                .collect(),
            ..NodeDef::default()
        };
        Ok(Some(Box::new(TF_Buffer::of_message(&def)?)))
    })
}

/// Gets the number of elements of a list (-1 for a single value) and its size in all, as `TF_AttrMetadata` counts them.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrSize(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    list_size: Out<i32>,
    total_size: Out<i32>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let found = attr(ctx, attr_name, |attrs, name| {
            let value = attrs.get(name);
            Ok(metadata(value.ok_or_else(|| {
                status!(InvalidArgument, "Operation has no attr named '{name}'.")
            })?))
        })?;
        put(list_size, found.list_size as i32, "list_size")?;
        put(total_size, found.total_size as i32, "total_size")
    });
}

/// Gets an element type. NOT_FOUND when the attribute is not set, INVALID_ARGUMENT when it is of another kind; so for all
/// that follow.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrType(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    val: Out<Enum<TF_DataType>>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        put(val, to_c(attr(ctx, attr_name, Attrs::dtype)?), "val")
    });
}

fn to_i32(value: i64) -> Result<i32> {
    i32::try_from(value).map_err(|_| {
        status!(
            InvalidArgument,
            "Attr has value {value} out of range for an int32"
        )
    })
}

/// Gets an integer of 32 bits.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrInt32(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    val: Out<i32>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        put(val, to_i32(attr(ctx, attr_name, Attrs::int)?)?, "val")
    });
}

/// Gets an integer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrInt64(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    val: Out<i64>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || put(val, attr(ctx, attr_name, Attrs::int)?, "val"));
}

/// Gets a float.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrFloat(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    val: Out<f32>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || put(val, attr(ctx, attr_name, Attrs::float)?, "val"));
}

/// Gets a truth value.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrBool(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    val: Out<c_uchar>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        put(val, c_uchar::from(attr(ctx, attr_name, Attrs::bool)?), "val")
    });
}

/// Writes the bytes of a string, `max_length` at most, without a zero byte at the end.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrString(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    val: Room<c_char>,
    max_length: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let bytes = attr(ctx, attr_name, |attrs, name| {
            attrs.bytes(name).map(<[u8]>::to_vec)
        })?;
        val.write(c_count(max_length), bytes.into_iter().map(|b| b as c_char));
        Ok(())
    });
}

/// Gets a tensor, which the caller owns.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrTensor(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    val: Out<*mut TF_Tensor>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let val = val.ok_or_else(|| missing("val"))?;
        val.write(null_mut());
        let tensor = attr(ctx, attr_name, |attrs, name| attrs.tensor(name).cloned())?;
        val.write(Box::into_raw(TF_Tensor::boxed(tensor)?));
        Ok(())
    });
}

/// Writes element types, `max_vals` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrTypeList(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    vals: Room<Enum<TF_DataType>>,
    max_vals: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let list = attr(ctx, attr_name, |attrs, name| attrs.types(name).map(<[_]>::to_vec))?;
        vals.write(max_vals, list.into_iter().map(to_c));
        Ok(())
    });
}

/// Writes integers of 32 bits, `max_vals` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrInt32List(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    vals: Room<i32>,
    max_vals: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let list = attr(ctx, attr_name, |attrs, name| attrs.ints(name).map(<[_]>::to_vec))?;
        let list: Vec<i32> = list.into_iter().map(to_i32).collect::<Result<_>>()?;
        vals.write(max_vals, list);
        Ok(())
    });
}

/// Writes integers, `max_vals` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrInt64List(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    vals: Room<i64>,
    max_vals: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let list = attr(ctx, attr_name, |attrs, name| attrs.ints(name).map(<[_]>::to_vec))?;
        vals.write(max_vals, list);
        Ok(())
    });
}

/// Writes floats, `max_vals` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrFloatList(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    vals: Room<f32>,
    max_vals: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let list = attr(ctx, attr_name, |attrs, name| {
            attrs.floats(name).map(<[_]>::to_vec)
        })?;
        vals.write(max_vals, list);
        Ok(())
    });
}

/// Writes truth values, `max_vals` at most.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrBoolList(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    vals: Room<c_uchar>,
    max_vals: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let list = attr(ctx, attr_name, |attrs, name| attrs.bools(name).map(<[_]>::to_vec))?;
        vals.write(max_vals, list.into_iter().map(c_uchar::from));
        Ok(())
    });
}

/// Writes addresses and lengths of `max_values` strings at most; their bytes go one after the other into `storage`, which
/// has room for `storage_size` bytes. INVALID_ARGUMENT when it has too little.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrStringList(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    values: Room<*mut c_char>,
    lengths: Room<usize>,
    max_values: c_int,
    storage: *mut c_void,
    storage_size: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let strings = attr(ctx, attr_name, |attrs, name| {
            attrs.strings(name).map(<[_]>::to_vec)
        })?;
        let count = strings.len().min(usize::try_from(max_values).unwrap_or(0));
        let mut starts = Vec::with_capacity(count);
        let mut used = 0;
        for bytes in &strings[..count] {
            ensure!(
                bytes.len() <= storage_size - used && (bytes.is_empty() || !storage.is_null()),
                InvalidArgument,
                "Not enough storage to hold the requested list of strings"
            );
            let start: *mut c_char = storage.wrapping_byte_add(used).cast();
            // SAFETY: C vouches for room for `storage_size` bytes, of which this many are left.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), start, bytes.len()) };
            starts.push(start);
            used += bytes.len();
        }
        lengths.write(max_values, strings.iter().map(|bytes| bytes.len()));
        values.write(max_values, starts);
        Ok(())
    });
}

/// Writes tensors, `max_values` at most, which the caller owns.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrTensorList(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    vals: Room<*mut TF_Tensor>,
    max_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        attr(ctx, attr_name, |attrs, name| match attrs.get(name) {
            Some(AttrValue::Tensors(list)) => write_tensors(list, vals, max_values),
            Some(AttrValue::EmptyList) => Ok(()),
            Some(other) => Err(status!(
                InvalidArgument,
                "AttrValue had value with type '{}' when 'list(tensor)' expected",
                other.kind()
            )),
            None => Err(status!(NotFound, "No attr named '{name}' in NodeDef:")),
        })
    });
}

/// A function as a serialized `NameAttrList`. Free the buffer with `TF_DeleteBuffer`; NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetAttrFunction(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Buffer>> {
    guard(status, || {
        let proto = attr(ctx, attr_name, |attrs, name| Ok(attrs.func(name)?.to_proto()))?;
        Ok(Some(Box::new(TF_Buffer::of_message(&proto)?)))
    })
}

/// Whether the node has an attribute of this name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_HasAttr(
    ctx: Option<&mut TF_OpKernelConstruction>,
    attr_name: Text,
    status: Option<&mut TF_Status>,
) -> bool {
    guard(status, || {
        attr(ctx, attr_name, |attrs, name| Ok(attrs.get(name).is_some()))
    })
}

/// The name of the node; valid as long as the kernel. Empty for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpKernelConstruction_GetName(
    ctx: Option<&mut TF_OpKernelConstruction>,
) -> TF_StringView {
    quiet(TF_StringView::EMPTY, || {
        Ok(TF_StringView::of(&given(ctx.as_deref(), "ctx")?.node().name))
    })
}
