//! Maps from tensors to tensors, as variants. Maps are values: an op that changes one makes another.

use super::rows;
use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_tensor::{Bool, Result, Shape, Tensor, VariantObject, VariantValue, ensure, status};
use std::collections::BTreeMap;

const MAP: Op = Op {
    shape: shapes::scalar,
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "EmptyTensorMap",
        kernels: &[Kernel::native(|context| give(context, TensorMap::default()))],
        ..MAP
    },
    &Op {
        name: "TensorMapSize",
        kernels: &[Kernel::native(|context| {
            let size = map(context)?.0.len();
            context.set_output(0, Tensor::scalar(size as i32)?)
        })],
        ..MAP
    },
    &Op {
        name: "TensorMapInsert",
        kernels: &[Kernel::native(|context| {
            let (key, value) = (context.input(1)?.clone(), context.input(2)?.clone());
            let mut changed = map(context)?.clone();
            changed.0.insert(bytes_of(&key)?, (key, value));
            give(context, changed)
        })],
        ..MAP
    },
    &Op {
        name: "TensorMapLookup",
        shape: shapes::unknown,
        kernels: &[Kernel::native(|context| {
            let key = bytes_of(context.input(1)?)?;
            let found = map(context)?.0.get(&key).map(|(_, value)| value.clone());
            let value = found.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Trying to lookup non-existent key. Could not find key \"{}\".",
                    shown(context)
                )
            })?;
            context.set_output(0, value)
        })],
        ..MAP
    },
    &Op {
        name: "TensorMapErase",
        kernels: &[Kernel::native(|context| {
            let key = bytes_of(context.input(1)?)?;
            let mut changed = map(context)?.clone();
            let gone = changed.0.remove(&key).is_some();
            ensure!(
                gone,
                InvalidArgument,
                "Trying to erase non-existent item. Could not find key \"{}\".",
                shown(context)
            );
            give(context, changed)
        })],
        ..MAP
    },
    &Op {
        name: "TensorMapHasKey",
        kernels: &[Kernel::native(|context| {
            let has = map(context)?.0.contains_key(&bytes_of(context.input(1)?)?);
            context.set_output(0, Tensor::scalar(Bool::from(has))?)
        })],
        ..MAP
    },
    &Op {
        name: "TensorMapStackKeys",
        shape: shapes::unknown,
        kernels: &[Kernel::native(stack_keys)],
        ..MAP
    },
];

/// Keys with their values, by type, shape and elements of the key.
#[derive(Clone, Default)]
struct TensorMap(BTreeMap<Vec<u8>, (Tensor, Tensor)>);

impl VariantObject for TensorMap {
    fn type_name(&self) -> &str {
        "tensorflow::TensorMap"
    }

    fn describe(&self) -> String {
        format!("TensorMap of {} entries", self.0.len())
    }
}

/// The key at input 1, for messages.
fn shown(context: &KernelContext) -> String {
    context.input(1).map(|key| key.summarize(100)).unwrap_or_default()
}

/// What makes keys equal.
fn bytes_of(key: &Tensor) -> Result<Vec<u8>> {
    let mut bytes = key.dtype().0.to_be_bytes().to_vec();
    for extent in key.dims() {
        bytes.extend(extent.to_be_bytes());
    }
    if let Ok(strings) = key.strings() {
        for string in strings {
            bytes.extend((string.as_bytes().len() as u64).to_be_bytes());
            bytes.extend(string.as_bytes());
        }
        return Ok(bytes);
    }
    ensure!(
        key.dtype().is_plain(),
        InvalidArgument,
        "a key cannot be of type {}",
        key.dtype()
    );
    bytes.extend(key.bytes());
    Ok(bytes)
}

fn map<'a>(context: &'a KernelContext) -> Result<&'a TensorMap> {
    let handle = context.input(0)?;
    let [variant] = handle.variants()? else {
        return Err(status!(
            InvalidArgument,
            "Input map must be a scalar. Saw: {}",
            handle.shape()
        ));
    };
    variant
        .get()
        .ok_or_else(|| status!(InvalidArgument, "Input handle is not a map. Saw: '{variant:?}'"))
}

fn give(context: &mut KernelContext, map: TensorMap) -> Result<()> {
    let handle = Tensor::from_variants(Shape::scalar(), vec![VariantValue::new(map)])?;
    context.set_output(0, handle)
}

fn stack_keys(context: &mut KernelContext) -> Result<()> {
    let dtype = context.output_type(0);
    let keys: Vec<Tensor> = map(context)?.0.values().map(|(key, _)| key.clone()).collect();
    let Some(first) = keys.first() else {
        return Err(status!(
            InvalidArgument,
            "TensorMapStackKeys cannot be called on empty map."
        ));
    };
    for key in &keys {
        ensure!(
            key.dtype() == dtype && key.shape() == first.shape(),
            InvalidArgument,
            "Key does not match requested dtype and shape: {} {}",
            key.dtype(),
            key.shape()
        );
    }
    let stacked = rows::stack(dtype, first.dims(), &keys)?;
    context.set_output(0, stacked)
}
