//! `TFE_OpAttrs`: the attributes of a call, to be given to other calls or written as a message; and what else is set on a
//! call by other things than values.

use crate::TF_Status;
use crate::attr_set::decode_value;
use crate::buffer::{TF_Buffer, fill};
use crate::eager_cancellation::TFE_CancellationManager;
use crate::eager_op::TFE_Op;
use crate::ffi::{Blob, Handle, Text, given, given_mut};
use crate::guard::{guard, quiet};
use ff_op::{AttrValue, Attrs};
use ff_proto::NameAttrList;
use ff_runtime::is_list;
use ff_tensor::{DataType, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ptr::null;

/// The attributes of a call: those that were set, those that follow from its inputs, and defaults. It belongs to the call.
/// Threads may use it at the same time, while no thread changes the call.
#[derive(Default)]
pub struct TFE_OpAttrs {
    state: Mutex<NamedAttrs>,
}

#[derive(Default, Clone)]
struct NamedAttrs {
    op: String,
    attrs: Attrs,
}

/// All attributes that are known of a call.
fn known_attrs(op: &TFE_Op) -> Result<Attrs> {
    let mut attrs = op.attrs.clone();
    let mut infer = |name: &str, value: AttrValue| {
        if !name.is_empty() && attrs.get(name).is_none() {
            attrs.set(name, value);
        }
    };
    let def = &op.op.record.def;
    let mut types = op.types().into_iter();
    for arg in &def.input_arg {
        if !is_list(arg) {
            let Some(dtype) = types.next() else { break };
            infer(&arg.type_attr, dtype.into());
            continue;
        }
        // What a list says is set when it is added; lists that were added one by one end the search.
        let count = match (
            op.attrs.int(&arg.number_attr),
            op.attrs.types(&arg.type_list_attr),
        ) {
            (Ok(count), _) => usize::try_from(count).unwrap_or(0),
            (_, Ok(types)) => types.len(),
            _ => break,
        };
        let list: Vec<DataType> = types.by_ref().take(count).collect();
        if let Some(dtype) = list.first() {
            infer(&arg.type_attr, (*dtype).into());
        }
    }
    for attr in &def.attr {
        if let Some(default) = &attr.default_value {
            infer(&attr.name, AttrValue::from_proto(default)?);
        }
    }
    Ok(attrs)
}

/// Makes a call anew, of another op: without inputs, attributes and cancellation, on any device or on the one that
/// `raw_device_name` asks for unless that is NULL or empty. Cheaper than a new call.
///
/// NOT_FOUND when there is no such op; INVALID_ARGUMENT for a device name of another form.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpReset(
    op_to_reset: Option<&mut TFE_Op>,
    op_or_function_name: Text,
    raw_device_name: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let op = given_mut(op_to_reset, "op_to_reset")?;
        op.reset(&op_or_function_name.text("op_or_function_name")?)?;
        op.ask_for_device(&raw_device_name.or_empty())
    });
}

/// The attributes of a call as they are now. They belong to the call, live as long, and change when this is called again. NULL for
/// NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpGetAttrs(op: Option<&TFE_Op>) -> *const TFE_OpAttrs {
    quiet(null(), || {
        let op = given(op, "op")?;
        let snapshot = op.snapshot.get_or_init(Box::default);
        *snapshot.state.lock() = NamedAttrs {
            op: op.op_name().to_string(),
            attrs: known_attrs(op)?,
        };
        Ok(&raw const **snapshot)
    })
}

/// Sets those of the attributes that the call does not have yet.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpAddAttrs(op: Option<&mut TFE_Op>, attrs: Option<&TFE_OpAttrs>) {
    quiet((), || {
        let added = given(attrs, "attrs")?.state.lock().attrs.clone();
        let own = &mut given_mut(op, "op")?.attrs;
        for (name, value) in added.iter() {
            if own.get(name).is_none() {
                own.set(name, value.clone());
            }
        }
        Ok(())
    });
}

/// Fills `buf` with a serialized `NameAttrList`: the name of the op and its attributes. INVALID_ARGUMENT unless the buffer
/// is empty.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpAttrsSerialize(
    attrs: Option<&TFE_OpAttrs>,
    buf: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let NamedAttrs { op, attrs } = given(attrs, "attrs")?.state.lock().clone();
        let entry = |(name, value): (&str, &AttrValue)| (name.to_string(), value.to_proto());
        let message = NameAttrList {
            name: op,
            attr: attrs.iter().map(entry).collect::<BTreeMap<_, _>>(),
        };
        fill(buf, &message)
    });
}

/// Sets an attribute to the value in a serialized `AttrValue` of `proto_len` bytes. INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetAttrValueProto(
    op: *const TFE_Op,
    attr_name: Text,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        // SAFETY: C code holds the call alone, and says `const` of it only in this prototype.
        let op = given_mut(unsafe { op.cast_mut().as_mut() }, "op")?;
        let name = attr_name.text("attr_name")?;
        let value = decode_value(proto.bytes(proto_len, "proto")?)?;
        op.attrs.set(&*name, value.unwrap_or(AttrValue::Unset));
        Ok(())
    });
}

/// Lets a cancellation manager end the call early, with CANCELLED. The manager may be deleted before the call is executed.
/// NULL lets nothing end it.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_OpSetCancellationManager(
    op: Option<&mut TFE_Op>,
    cancellation_manager: Handle<TFE_CancellationManager>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let op = given_mut(op, "op")?;
        op.cancellation = cancellation_manager.map(|manager| manager.cancellation.clone());
        Ok(())
    });
}
