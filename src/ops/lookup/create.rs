//! Ops that give handles of tables.

use super::table::Table;
use ff_op::{DEFAULT_CONTAINER, Gradient, Kernel, KernelContext, Op, RefVariable, ShapeContext, shapes};
use ff_tensor::{
    DataType, HandleInfo, PartialShape, ResourceHandle, Result, Shape, TString, Tensor, ensure, status,
};
use std::any::Any;
use std::sync::Arc;

const FIXED: Op = Op {
    name: "HashTableV2",
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| named(context, false))],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
const MUTABLE: Op = Op {
    name: "MutableHashTableV2",
    shape,
    kernels: &[Kernel::native(|context| named(context, true))],
    ..FIXED
};

/// Tables whose keys and values may have any shape; two keys are reserved.
const DENSE: Op = Op {
    name: "MutableDenseHashTableV2",
    shape: dense_shape,
    kernels: &[Kernel::native(|context| named_by(context, make_dense))],
    ..FIXED
};

/// Base of the first versions: their handles are references to a vector of container and name.
const FIXED_V1: Op = Op {
    name: "HashTable",
    shape: |context| {
        context.set_output(0, PartialShape::new(&[2]));
        Ok(())
    },
    ..FIXED
};
const MUTABLE_V1: Op = Op {
    name: "MutableHashTable",
    shape: FIXED_V1.shape,
    ..MUTABLE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &FIXED,
    &FIXED_V1,
    &MUTABLE,
    &MUTABLE_V1,
    &Op {
        name: "MutableHashTableOfTensorsV2",
        ..MUTABLE
    },
    &Op {
        name: "MutableHashTableOfTensors",
        ..MUTABLE_V1
    },
    &DENSE,
    &Op {
        name: "MutableDenseHashTable",
        shape: FIXED_V1.shape,
        ..DENSE
    },
    &Op {
        name: "AnonymousMutableDenseHashTable",
        kernels: &[Kernel::native(|context| {
            let table = make_dense(context, DEFAULT_CONTAINER, "AnonymousLookupTable")?;
            let table = Arc::new(table);
            give_handle(context, &table.clone(), Some(table))
        })],
        ..DENSE
    },
    &Op {
        name: "AnonymousHashTable",
        kernels: &[Kernel::native(|context| anonymous(context, false))],
        ..FIXED
    },
    &Op {
        name: "AnonymousMutableHashTable",
        shape,
        kernels: &[Kernel::native(|context| anonymous(context, true))],
        ..FIXED
    },
    &Op {
        name: "AnonymousMutableHashTableOfTensors",
        shape,
        kernels: &[Kernel::native(|context| anonymous(context, true))],
        ..FIXED
    },
];

/// The shape of one value: the attribute `value_shape` of tables of tensors, else a scalar.
fn value_shape(attrs: &ff_op::Attrs) -> Result<PartialShape> {
    match attrs.get("value_shape") {
        Some(_) => attrs.shape("value_shape").cloned(),
        None => Ok(PartialShape::scalar()),
    }
}

/// A scalar handle that knows the types and shapes of one key and one value.
fn shape(context: &mut ShapeContext) -> Result<()> {
    let attrs = context.attrs();
    let key = (attrs.dtype("key_dtype")?, PartialShape::scalar());
    let value = (attrs.dtype("value_dtype")?, value_shape(attrs)?);
    context.set_output(0, PartialShape::scalar());
    context.set_output_handle(0, vec![key, value]);
    Ok(())
}

/// The empty table that a node describes.
fn make(context: &KernelContext, container: &str, name: &str, mutable: bool) -> Result<Table> {
    let attrs = context.attrs();
    let shape: Shape = value_shape(attrs)?.to_shape().ok_or_else(|| {
        status!(
            InvalidArgument,
            "the values of table {name} must have a known shape"
        )
    })?;
    let of_tensors = attrs.get("value_shape").is_some();
    ensure!(
        shape.rank() == usize::from(of_tensors),
        InvalidArgument,
        "Default value must be a vector, got shape {shape}"
    );
    let dtypes = (attrs.dtype("key_dtype")?, attrs.dtype("value_dtype")?);
    Ok(Table::new(
        (container.to_string(), name.to_string()),
        dtypes,
        shape,
        mutable,
    ))
}

/// As [`shape`], with the shape of the reserved keys as that of the keys.
fn dense_shape(context: &mut ShapeContext) -> Result<()> {
    shape(context)?;
    let attrs = context.attrs();
    let value = (attrs.dtype("value_dtype")?, value_shape(attrs)?);
    let key = (attrs.dtype("key_dtype")?, context.input(0));
    context.set_output_handle(0, vec![key, value]);
    Ok(())
}

/// The empty dense table that a node describes. Inputs are its reserved keys.
fn make_dense(context: &KernelContext, container: &str, name: &str) -> Result<Table> {
    let attrs = context.attrs();
    let shape = value_shape(attrs)?;
    let shape = shape.to_shape().ok_or_else(|| {
        status!(
            InvalidArgument,
            "the values of table {name} must have a known shape"
        )
    })?;
    let buckets = attrs.int("initial_num_buckets")?;
    ensure!(
        buckets >= 4 && buckets.count_ones() == 1,
        InvalidArgument,
        "Number of buckets must be at least 4 and a power of 2, got: {buckets}"
    );
    let load = attrs.float("max_load_factor")?;
    ensure!(
        load > 0.0 && load < 1.0,
        InvalidArgument,
        "max_load_factor must be between 0 and 1, got: {load}"
    );
    ensure!(
        shape.rank() <= 1,
        InvalidArgument,
        "Empty value must be a scalar or a vector, got shape {shape}"
    );
    let empty = context.input(0)?.clone();
    let mut reserved = vec![("empty_key", empty.clone())];
    if context.num_inputs() > 1 {
        let deleted = context.input(1)?.clone();
        ensure!(
            deleted.shape() == empty.shape(),
            InvalidArgument,
            "Empty and deleted keys must have same shape, got shapes: {} and {}",
            empty.shape(),
            deleted.shape()
        );
        ensure!(
            !deleted.bitwise_eq(&empty),
            InvalidArgument,
            "Empty and deleted keys cannot be equal"
        );
        reserved.push(("deleted_key", deleted));
    }
    let dtypes = (attrs.dtype("key_dtype")?, attrs.dtype("value_dtype")?);
    let place = (container.to_string(), name.to_string());
    let mut table = Table::new(place, dtypes, shape, true);
    table.key_shape = empty.shape().clone();
    table.reserved = reserved;
    Ok(table)
}

fn give_handle(context: &mut KernelContext, table: &Table, object: Option<Arc<Table>>) -> Result<()> {
    let (container, name) = table.place.clone();
    let handle = ResourceHandle::new(HandleInfo {
        device: context.host().device_name().to_string(),
        container,
        name,
        type_name: "tensorflow::lookup::LookupInterface".to_string(),
        object: object.map(|table| table as Arc<dyn Any + Send + Sync>),
        ..HandleInfo::default()
    });
    context.set_output(0, Tensor::from_resources(Shape::scalar(), vec![handle])?)
}

/// The table of the node's `shared_name`, or else of its own name; made when it is first asked for.
fn named(context: &mut KernelContext, mutable: bool) -> Result<()> {
    named_by(context, |context, container, name| {
        make(context, container, name, mutable)
    })
}

fn named_by(
    context: &mut KernelContext,
    make: impl FnOnce(&KernelContext, &str, &str) -> Result<Table>,
) -> Result<()> {
    let attrs = context.attrs();
    let shared = attrs.string("shared_name")?;
    let name = if shared.is_empty() {
        context.node().name.as_str()
    } else {
        shared
    };
    let resources = context.resources().clone();
    let container = resources.container(attrs.string("container")?);
    let table = resources.find_or_create(container, name, || make(context, container, name))?;
    let (key, value) = (attrs.dtype("key_dtype")?, attrs.dtype("value_dtype")?);
    ensure!(
        (key, value) == (table.key_dtype, table.value_dtype),
        InvalidArgument,
        "Conflicting key/value dtypes {key}->{value} with {}-{} for table {name}",
        table.key_dtype,
        table.value_dtype
    );
    if context.node().output_types[0].base() != DataType::STRING {
        return give_handle(context, &table, None);
    }
    let names = vec![TString::from(container), TString::from(name)];
    let variable = RefVariable::new(name, DataType::STRING);
    variable.assign(Tensor::from_strings(Shape::vector(2), names)?)?;
    context.set_output_ref(0, Arc::new(variable));
    Ok(())
}

/// A new table that lives as long as handles of it.
fn anonymous(context: &mut KernelContext, mutable: bool) -> Result<()> {
    let table = Arc::new(make(context, DEFAULT_CONTAINER, "AnonymousLookupTable", mutable)?);
    give_handle(context, &table.clone(), Some(table))
}
