//! What ops and kernels there are.

use crate::TF_Status;
use crate::buffer::TF_Buffer;
use crate::ffi::Text;
use crate::guard::{guard, quiet};
use ff_op::{KernelRecord, OpRecord, schema};
use ff_ops::registry;
use ff_proto::kernel_def::AttrConstraint;
use ff_proto::{AttrValue, KernelDef, KernelList, Message, OpList, attr_value};
use ff_tensor::{DataType, Result};

/// The definitions of all ops as a serialized `OpList`: those of the library, and those that were registered. Free the
/// buffer with `TF_DeleteBuffer`; NULL when memory is out.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetAllOpList() -> Option<Box<TF_Buffer>> {
    quiet(None, || {
        let added = registry().added_defs();
        if added.is_empty() {
            return Ok(Some(Box::new(TF_Buffer::of_bytes(schema::all_encoded())?)));
        }
        let added = OpList {
            op: added.iter().map(|def| (**def).clone()).collect(),
        };
        // The encoding of a list is that of its parts, one after the other.
        let bytes = [schema::all_encoded(), &added.encode_to_vec()].concat();
        Ok(Some(Box::new(TF_Buffer::of_bytes(&bytes)?)))
    })
}

/// The kernels of all ops as a serialized `KernelList`. Free the buffer with `TF_DeleteBuffer`; NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetAllRegisteredKernels(status: Option<&mut TF_Status>) -> Option<Box<TF_Buffer>> {
    guard(status, || {
        let registry = registry();
        let mut names: Vec<String> = registry.implemented().map(str::to_string).collect();
        names.sort();
        names.extend(registry.added_defs().iter().map(|def| def.name.clone()));
        let mut list = KernelList::default();
        for name in names {
            list.kernel.extend(kernels_of(&*registry.find(&name)?));
        }
        Ok(Some(Box::new(TF_Buffer::of_message(&list)?)))
    })
}

/// The kernels of one op as a serialized `KernelList`; an empty one for an unknown op. Free the buffer with
/// `TF_DeleteBuffer`; NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetRegisteredKernelsForOp(
    name: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Buffer>> {
    guard(status, || -> Result<_> {
        let record = registry().find(&name.text("name")?);
        let list = KernelList {
            kernel: record.map(|record| kernels_of(&record)).unwrap_or_default(),
        };
        Ok(Some(Box::new(TF_Buffer::of_message(&list)?)))
    })
}

fn kernels_of(record: &OpRecord) -> Vec<KernelDef> {
    record
        .kernels
        .iter()
        .map(|kernel| kernel_def(&record.def.name, kernel))
        .collect()
}

fn kernel_def(op: &str, kernel: &KernelRecord) -> KernelDef {
    let (constraint, host_memory_arg, label) = match kernel {
        KernelRecord::Static(kernel) => (
            kernel
                .types
                .iter()
                .map(|(name, types)| constraint(name, types))
                .collect(),
            kernel.host_memory.iter().map(|name| name.to_string()).collect(),
            kernel.label.to_string(),
        ),
        KernelRecord::Dynamic { types, label, .. } => (
            types
                .iter()
                .map(|(name, types)| constraint(name, types))
                .collect(),
            Vec::new(),
            label.clone(),
        ),
    };
    KernelDef {
        op: op.to_string(),
        device_type: kernel.device().to_string(),
        constraint,
        host_memory_arg,
        label,
        priority: kernel.priority(),
    }
}

fn constraint(name: &str, types: &[DataType]) -> AttrConstraint {
    let list = attr_value::ListValue {
        r#type: types.iter().map(|dtype| dtype.0).collect(),
        ..Default::default()
    };
    AttrConstraint {
        name: name.to_string(),
        allowed_values: Some(AttrValue {
            value: Some(attr_value::Value::List(Box::new(list))),
        }),
    }
}
