//! Ops on tables: finding, inserting, removing, counting, and all entries at once.

use super::table::{Table, table_of};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Tensor, dim, ensure};

const WRITE: Op = Op {
    name: "LookupTableInsertV2",
    shape: |context| {
        check_handle(context)?;
        Ok(())
    },
    kernels: &[Kernel::native(|context| write(context, Table::insert))],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
const READ: Op = Op {
    name: "LookupTableFindV2",
    shape: find_shape,
    kernels: &[Kernel::native(find)],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};

const SIZE: Op = Op {
    name: "LookupTableSizeV2",
    shape: |context| {
        check_handle(context)?;
        ff_op::shapes::scalar(context)
    },
    kernels: &[Kernel::native(size)],
    ..READ
};
const EXPORT: Op = Op {
    name: "LookupTableExportV2",
    shape: export_shape,
    kernels: &[Kernel::native(export)],
    ..READ
};
const IMPORT: Op = Op {
    name: "LookupTableImportV2",
    shape: |context| {
        check_handle(context)?;
        context.input_with_rank(1, 1).map(drop)
    },
    kernels: &[Kernel::native(|context| write(context, Table::import))],
    ..WRITE
};
const INITIALIZE: Op = Op {
    name: "InitializeTableV2",
    shape: initialize_shape,
    kernels: &[Kernel::native(initialize)],
    ..WRITE
};

/// Every op of this file; the first versions take handles of the first version.
pub static OPS: &[&Op] = &[
    &READ,
    &Op {
        name: "LookupTableFind",
        ..READ
    },
    &SIZE,
    &Op {
        name: "LookupTableSize",
        ..SIZE
    },
    &EXPORT,
    &Op {
        name: "LookupTableExport",
        ..EXPORT
    },
    &WRITE,
    &Op {
        name: "LookupTableInsert",
        ..WRITE
    },
    &IMPORT,
    &Op {
        name: "LookupTableImport",
        ..IMPORT
    },
    &Op {
        name: "LookupTableRemoveV2",
        kernels: &[Kernel::native(remove)],
        ..WRITE
    },
    &INITIALIZE,
    &Op {
        name: "InitializeTable",
        ..INITIALIZE
    },
];

/// A handle is a scalar; in the first versions it is a vector of two strings.
pub(super) fn check_handle(context: &ShapeContext) -> Result<()> {
    let first_version = context.node().input_types[0].base() == DataType::STRING;
    context.input_with_rank(0, usize::from(first_version)).map(drop)
}

/// Keys of any shape give values of that shape and the table's value shape.
fn find_shape(context: &mut ShapeContext) -> Result<()> {
    check_handle(context)?;
    if let Some([key, value]) = context.input_handle(0).as_deref() {
        let attrs = context.attrs();
        for (held, wanted) in [(key.0, attrs.dtype("Tin")?), (value.0, attrs.dtype("Tout")?)] {
            ensure!(
                held == wanted,
                InvalidArgument,
                "Trying to read value with wrong dtype. Expected {held} got {wanted}"
            );
        }
        // Keys of a shape of their own are at the end of the keys' shape.
        if let Some(own) = key.1.rank() {
            let keys = context.input_with_rank_at_least(1, own)?;
            let outer = keys.rank().map(|rank| keys.slice(0, Some((rank - own) as i64)));
            context.set_output(0, outer.unwrap_or_default().concat(&value.1));
        }
    }
    Ok(())
}

fn find(context: &mut KernelContext) -> Result<()> {
    let table = table_of(context)?;
    let (keys, default) = (context.input(1)?, context.input(2)?);
    table.check_types(keys.dtype(), default.dtype(), Some(default.dtype()))?;
    let values = table.find(keys, default)?;
    context.set_output(0, values)
}

fn size(context: &mut KernelContext) -> Result<()> {
    let size = table_of(context)?.len() as i64;
    context.set_output(0, Tensor::scalar(size)?)
}

fn export_shape(context: &mut ShapeContext) -> Result<()> {
    check_handle(context)?;
    context.set_output(0, PartialShape::new(&[dim::UNKNOWN]));
    if let Some([key, value]) = context.input_handle(0).as_deref() {
        context.set_output(0, PartialShape::new(&[dim::UNKNOWN]).concat(&key.1));
        let shape = PartialShape::new(&[dim::UNKNOWN]).concat(&value.1);
        context.set_output(1, shape);
    }
    Ok(())
}

fn export(context: &mut KernelContext) -> Result<()> {
    let table = table_of(context)?;
    let (keys, values) = (context.output_type(0), context.output_type(1));
    ensure!(
        (keys, values) == (table.key_dtype, table.value_dtype),
        InvalidArgument,
        "Signature mismatch, have: resource->{},{} expected: resource->{keys},{values}",
        table.key_dtype,
        table.value_dtype
    );
    let (keys, values) = table.export()?;
    context.set_output(0, keys)?;
    context.set_output(1, values)
}

fn write(context: &mut KernelContext, write: fn(&Table, &Tensor, &Tensor) -> Result<()>) -> Result<()> {
    let table = table_of(context)?;
    let (keys, values) = (context.input(1)?, context.input(2)?);
    table.check_types(keys.dtype(), values.dtype(), None)?;
    write(&table, keys, values)
}

fn remove(context: &mut KernelContext) -> Result<()> {
    let table = table_of(context)?;
    let keys = context.input(1)?;
    ensure!(
        keys.dtype() == table.key_dtype,
        InvalidArgument,
        "Signature mismatch, have: resource, {}-> expected: resource, {}->",
        keys.dtype(),
        table.key_dtype
    );
    table.remove(keys)
}

fn initialize_shape(context: &mut ShapeContext) -> Result<()> {
    check_handle(context)?;
    context.input_with_rank(1, 1)?.merge(&context.input(2))?;
    Ok(())
}

fn initialize(context: &mut KernelContext) -> Result<()> {
    let (keys, values) = (context.input(1)?, context.input(2)?);
    ensure!(
        keys.rank() == 1,
        InvalidArgument,
        "Keys must be a vector, but received shape{}",
        keys.shape()
    );
    ensure!(
        keys.num_elements() == values.num_elements(),
        InvalidArgument,
        "Keys and values must have the same size {} vs {}",
        keys.num_elements(),
        values.num_elements()
    );
    write(context, Table::fill)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, code, scalar, strings, t, vector};
    use ff_op::Attrs;
    use ff_tensor::{Code, DataType, PartialShape, Tensor};

    const NONE: fn() -> Attrs = Attrs::new;

    fn table(runner: &OpRunner, op: &str, key: DataType, value: DataType) -> Tensor {
        let attrs = NONE()
            .with("key_dtype", key)
            .with("value_dtype", value)
            .with("shared_name", op);
        runner.run(op, &[], attrs).unwrap().remove(0)
    }

    #[test]
    fn a_fixed_table_is_filled_once() {
        let runner = OpRunner::new();
        let table = table(&runner, "HashTableV2", DataType::STRING, DataType::INT64);
        let find = [table.clone(), strings(&[1, 2], &["a", "x"]), scalar(-1i64)];
        let error = runner.run("LookupTableFindV2", &find, NONE()).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.message().starts_with("Table not initialized."), "{error}");

        let keys = strings(&[2], &["a", "b"]);
        let fill = [table.clone(), keys.clone(), vector(&[1i64, 2])];
        runner.run("InitializeTableV2", &fill, NONE()).unwrap();
        let found = runner.run("LookupTableFindV2", &find, NONE()).unwrap();
        assert!(found[0].bitwise_eq(&t(&[1, 2], &[1i64, -1])));
        let size = runner
            .run("LookupTableSizeV2", std::slice::from_ref(&table), NONE())
            .unwrap();
        assert!(size[0].bitwise_eq(&scalar(2i64)));

        assert_eq!(code(runner.run("InitializeTableV2", &fill, NONE())), None);
        let one = [table.clone(), strings(&[1], &["a"]), vector(&[3i64])];
        let import = runner.run("LookupTableImportV2", &one, NONE());
        assert_eq!(code(import), Some(Code::FailedPrecondition));
        let insert = runner.run("LookupTableInsertV2", &one, NONE());
        assert_eq!(code(insert), Some(Code::Unimplemented));
        let wrong = [table.clone(), keys, vector(&[1, 2])];
        let error = runner.run("InitializeTableV2", &wrong, NONE()).unwrap_err();
        let text = "Signature mismatch, have: resource, string, int32-> expected: resource, string, int64->";
        assert!(error.message().starts_with(text), "{error}");
    }

    #[test]
    fn a_key_has_one_value() {
        let runner = OpRunner::new();
        let table = table(&runner, "HashTableV2", DataType::STRING, DataType::INT64);
        let fill = [table.clone(), strings(&[2], &["a", "a"]), vector(&[1i64, 2])];
        let error = runner.run("InitializeTableV2", &fill, NONE()).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        let text = "HashTable has different value for same key. Key a has 1 and trying to add value 2";
        assert!(error.message().starts_with(text), "{error}");
        let attrs = NONE()
            .with("Tkeys", DataType::STRING)
            .with("Tvalues", DataType::INT64);
        let export = runner.run("LookupTableExportV2", &[table], attrs);
        assert_eq!(code(export), Some(Code::Aborted));
    }

    #[test]
    fn a_mutable_table_changes() {
        let runner = OpRunner::new();
        let table = table(&runner, "MutableHashTableV2", DataType::INT64, DataType::FLOAT);
        let keys = vector(&[1i64, 2, 1]);
        let insert = [table.clone(), keys.clone(), vector(&[2.5f32, 3.5, 4.5])];
        runner.run("LookupTableInsertV2", &insert, NONE()).unwrap();
        let remove = [table.clone(), vector(&[2i64, 9])];
        runner.run("LookupTableRemoveV2", &remove, NONE()).unwrap();
        let find = [table.clone(), keys.clone(), vector(&[7.0f32, 8.0, 9.0])];
        let found = runner.run("LookupTableFindV2", &find, NONE()).unwrap();
        assert!(found[0].bitwise_eq(&vector(&[4.5f32, 8.0, 4.5])));
        let attrs = NONE()
            .with("Tkeys", DataType::INT64)
            .with("Tvalues", DataType::FLOAT);
        let all = runner
            .run("LookupTableExportV2", std::slice::from_ref(&table), attrs)
            .unwrap();
        assert!(all[0].bitwise_eq(&vector(&[1i64])) && all[1].bitwise_eq(&vector(&[4.5f32])));
        let short = [table.clone(), keys.clone(), vector(&[2.5f32])];
        let insert = runner.run("LookupTableInsertV2", &short, NONE());
        assert_eq!(code(insert), Some(Code::InvalidArgument));
        let fill = [table, keys, vector(&[2.5f32, 1.0, 1.0])];
        let fill = runner.run("InitializeTableV2", &fill, NONE());
        assert_eq!(code(fill), Some(Code::InvalidArgument));
    }

    #[test]
    fn a_table_of_vectors() {
        let runner = OpRunner::new();
        let attrs = NONE()
            .with("key_dtype", DataType::INT32)
            .with("value_dtype", DataType::STRING)
            .with("value_shape", PartialShape::new(&[2]));
        let op = "MutableHashTableOfTensorsV2";
        let table = runner.run(op, &[], attrs).unwrap().remove(0);
        let insert = [table.clone(), vector(&[5]), strings(&[1, 2], &["a", "b"])];
        runner.run("LookupTableInsertV2", &insert, NONE()).unwrap();
        let find = [table.clone(), vector(&[4, 5]), strings(&[2], &["x", "y"])];
        let found = runner.run("LookupTableFindV2", &find, NONE()).unwrap();
        assert!(found[0].bitwise_eq(&strings(&[2, 2], &["x", "y", "a", "b"])));
        let find = [table, vector(&[4, 5]), strings(&[], &["x"])];
        let found = runner.run("LookupTableFindV2", &find, NONE());
        assert_eq!(code(found), Some(Code::InvalidArgument));
    }

    #[test]
    fn a_dense_table_has_keys_of_any_shape() {
        let runner = OpRunner::new();
        let attrs = NONE()
            .with("value_dtype", DataType::FLOAT)
            .with("value_shape", PartialShape::new(&[2]));
        let (empty, deleted) = (vector(&[-1i64, -1]), vector(&[-2i64, -2]));
        let make = |empty: &Tensor, deleted: &Tensor| {
            runner.run(
                "MutableDenseHashTableV2",
                &[empty.clone(), deleted.clone()],
                attrs.clone(),
            )
        };
        assert_eq!(code(make(&empty, &empty)), Some(Code::InvalidArgument));
        let table = make(&empty, &deleted).unwrap().remove(0);
        let keys = t(&[2, 2], &[1i64, 2, 3, 4]);
        let insert = [table.clone(), keys, t(&[2, 2], &[1f32, 2.0, 3.0, 4.0])];
        runner.run("LookupTableInsertV2", &insert, NONE()).unwrap();
        let find = |keys: Tensor| {
            let find = [table.clone(), keys, vector(&[9f32, 9.0])];
            runner.run("LookupTableFindV2", &find, NONE())
        };
        let found = find(t(&[3, 2], &[3i64, 4, 1, 2, 4, 3])).unwrap();
        assert!(found[0].bitwise_eq(&t(&[3, 2], &[3f32, 4.0, 1.0, 2.0, 9.0, 9.0])));
        let error = find(t(&[1, 2], &[-1i64, -1])).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(
            error.message().starts_with("Using the empty_key as a table key"),
            "{error}"
        );
        assert_eq!(code(find(vector(&[1i64]))), Some(Code::InvalidArgument));
        let remove = [table.clone(), t(&[1, 2], &[1i64, 2])];
        runner.run("LookupTableRemoveV2", &remove, NONE()).unwrap();
        let attrs = NONE()
            .with("Tkeys", DataType::INT64)
            .with("Tvalues", DataType::FLOAT);
        let all = runner.run("LookupTableExportV2", std::slice::from_ref(&table), attrs);
        let all = all.unwrap();
        assert!(all[0].bitwise_eq(&t(&[1, 2], &[3i64, 4])));
        assert!(all[1].bitwise_eq(&t(&[1, 2], &[3f32, 4.0])));
    }

    #[test]
    fn names_are_shared_by_tables_of_the_same_types() {
        let runner = OpRunner::new();
        table(&runner, "HashTableV2", DataType::STRING, DataType::INT64);
        let attrs = NONE()
            .with("key_dtype", DataType::INT64)
            .with("value_dtype", DataType::INT64)
            .with("shared_name", "HashTableV2");
        assert_eq!(
            code(runner.run("HashTableV2", &[], attrs)),
            Some(Code::InvalidArgument)
        );
    }

    #[test]
    fn anonymous_tables_are_apart() {
        let runner = OpRunner::new();
        let attrs = || {
            NONE()
                .with("key_dtype", DataType::INT64)
                .with("value_dtype", DataType::INT64)
        };
        let make = || {
            runner
                .run("AnonymousMutableHashTable", &[], attrs())
                .unwrap()
                .remove(0)
        };
        let (first, second) = (make(), make());
        let insert = [first, vector(&[1i64]), vector(&[2i64])];
        runner.run("LookupTableInsertV2", &insert, NONE()).unwrap();
        let size = runner.run("LookupTableSizeV2", &[second], NONE()).unwrap();
        assert!(size[0].bitwise_eq(&scalar(0i64)));
    }
}
