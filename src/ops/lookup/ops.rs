//! The ops on tables: making, filling, finding, changing.

use super::table::Table;
use crate::movement::Writer;
use ff_op::{Gradient, Kernel, KernelContext, Op, RefVariable, ResourceManager, ShapeContext, shapes};
use ff_tensor::{
    DataType, HandleInfo, PartialShape, ResourceHandle, Result, Shape, TString, Tensor, bail, ensure, status,
};
use std::sync::Arc;

const TABLE: Op = Op {
    shape: shapes::scalar,
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};

const WRITE: Op = Op {
    shape: shapes::none,
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

const READ: Op = Op {
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "HashTableV2",
        kernels: &[Kernel::native(make)],
        ..TABLE
    },
    &Op {
        name: "HashTable",
        kernels: &[Kernel::native(make)],
        shape: handle_vector,
        ..TABLE
    },
    &Op {
        name: "AnonymousHashTable",
        kernels: &[Kernel::native(make)],
        ..TABLE
    },
    &Op {
        name: "MutableHashTableV2",
        kernels: &[Kernel::native(make)],
        ..TABLE
    },
    &Op {
        name: "MutableHashTable",
        kernels: &[Kernel::native(make)],
        shape: handle_vector,
        ..TABLE
    },
    &Op {
        name: "AnonymousMutableHashTable",
        kernels: &[Kernel::native(make)],
        ..TABLE
    },
    &Op {
        name: "MutableHashTableOfTensorsV2",
        kernels: &[Kernel::native(make)],
        ..TABLE
    },
    &Op {
        name: "MutableHashTableOfTensors",
        kernels: &[Kernel::native(make)],
        shape: handle_vector,
        ..TABLE
    },
    &Op {
        name: "AnonymousMutableHashTableOfTensors",
        kernels: &[Kernel::native(make)],
        ..TABLE
    },
    &Op {
        name: "InitializeTableV2",
        kernels: &[Kernel::native(initialize)],
        ..WRITE
    },
    &Op {
        name: "InitializeTable",
        kernels: &[Kernel::native(initialize)],
        ..WRITE
    },
    &Op {
        name: "InitializeTableFromTextFileV2",
        kernels: &[Kernel::native(initialize_from_file)],
        ..WRITE
    },
    &Op {
        name: "InitializeTableFromTextFile",
        kernels: &[Kernel::native(initialize_from_file)],
        ..WRITE
    },
    &Op {
        name: "LookupTableImportV2",
        kernels: &[Kernel::native(import)],
        ..WRITE
    },
    &Op {
        name: "LookupTableImport",
        kernels: &[Kernel::native(import)],
        ..WRITE
    },
    &Op {
        name: "LookupTableInsertV2",
        kernels: &[Kernel::native(insert)],
        ..WRITE
    },
    &Op {
        name: "LookupTableInsert",
        kernels: &[Kernel::native(insert)],
        ..WRITE
    },
    &Op {
        name: "LookupTableRemoveV2",
        kernels: &[Kernel::native(remove)],
        ..WRITE
    },
    &Op {
        name: "LookupTableFindV2",
        kernels: &[Kernel::native(find)],
        shape: find_shape,
        ..READ
    },
    &Op {
        name: "LookupTableFind",
        kernels: &[Kernel::native(find)],
        shape: find_shape,
        ..READ
    },
    &Op {
        name: "LookupTableExportV2",
        kernels: &[Kernel::native(export)],
        shape: export_shape,
        ..READ
    },
    &Op {
        name: "LookupTableExport",
        kernels: &[Kernel::native(export)],
        shape: export_shape,
        ..READ
    },
    &Op {
        name: "LookupTableSizeV2",
        kernels: &[Kernel::native(size)],
        shape: shapes::scalar,
        ..READ
    },
    &Op {
        name: "LookupTableSize",
        kernels: &[Kernel::native(size)],
        shape: shapes::scalar,
        ..READ
    },
];

/// Handles of the first version are references to a vector of container and name.
fn handle_vector(context: &mut ShapeContext) -> Result<()> {
    context.set_output(0, PartialShape::new(&[2]));
    Ok(())
}

/// An empty table as the node's attributes say.
fn empty(context: &KernelContext) -> Result<Table> {
    let attrs = context.attrs();
    let shape = match attrs.shape("value_shape") {
        Ok(shape) => shape.to_shape().ok_or_else(|| {
            status!(
                InvalidArgument,
                "Default value must be a vector of known shape, got {shape}"
            )
        })?,
        Err(_) => Shape::scalar(),
    };
    let mutable = context.node().op_name().contains("Mutable");
    Ok(Table::new(
        attrs.dtype("key_dtype")?,
        attrs.dtype("value_dtype")?,
        shape,
        mutable,
    ))
}

fn make(context: &mut KernelContext) -> Result<()> {
    let (attrs, node, resources) = (context.attrs(), context.node(), context.resources());
    if node.op_name().starts_with("Anonymous") {
        let mut info: HandleInfo =
            (*resources.make_handle::<Table>(context.host().device_name(), "", &node.name)).clone();
        info.object = Some(Arc::new(empty(context)?));
        return context.set_output(
            0,
            Tensor::from_resources(Shape::scalar(), vec![ResourceHandle::new(info)])?,
        );
    }
    let (container, shared) = (attrs.string("container")?, attrs.string("shared_name")?);
    let name = if shared.is_empty() {
        node.name.as_str()
    } else {
        shared
    };
    let table = resources.find_or_create(container, name, || empty(context))?;
    ensure!(
        table.key_type == attrs.dtype("key_dtype")? && table.value_type == attrs.dtype("value_dtype")?,
        InvalidArgument,
        "Conflicting key/value dtypes {}->{} with {}->{} for table {name}",
        attrs.dtype("key_dtype")?,
        attrs.dtype("value_dtype")?,
        table.key_type,
        table.value_type
    );
    if node.output_types[0].base() == DataType::STRING {
        let texts = vec![TString::from(container), TString::from(name)];
        let variable = RefVariable::new(name, DataType::STRING);
        variable.assign(Tensor::from_strings(Shape::vector(2), texts)?)?;
        context.set_output_ref(0, Arc::new(variable));
        return Ok(());
    }
    let handle = resources.make_handle::<Table>(context.host().device_name(), container, name);
    context.set_output(0, Tensor::from_resources(Shape::scalar(), vec![handle])?)
}

/// The table at input 0, by a handle or by container and name.
fn table(context: &KernelContext) -> Result<Arc<Table>> {
    if context.node().input_types[0].base() != DataType::STRING {
        return context.resource::<Table>(0);
    }
    let names = context.ref_input(0)?.read()?;
    let resources: &ResourceManager = context.resources();
    match names.strings()? {
        [container, name] => resources.find(&container.to_str_lossy(), &name.to_str_lossy()),
        _ => bail!(
            InvalidArgument,
            "Lookup table handle must be scalar, but had shape: {}",
            names.shape()
        ),
    }
}

fn initialize(context: &mut KernelContext) -> Result<()> {
    let (keys, values) = (context.input(1)?, context.input(2)?);
    ensure!(
        keys.num_elements() == values.num_elements() || keys.rank() == 0,
        InvalidArgument,
        "Keys and values must have the same size {} vs {}",
        keys.num_elements(),
        values.num_elements()
    );
    table(context)?.initialize(keys, values)
}

fn import(context: &mut KernelContext) -> Result<()> {
    let table = table(context)?;
    if table.mutable {
        return table.insert(context.input(1)?, context.input(2)?, true);
    }
    table.initialize(context.input(1)?, context.input(2)?)
}

fn insert(context: &mut KernelContext) -> Result<()> {
    table(context)?.insert(context.input(1)?, context.input(2)?, false)
}

fn remove(context: &mut KernelContext) -> Result<()> {
    table(context)?.remove(context.input(1)?)
}

fn find_shape(context: &mut ShapeContext) -> Result<()> {
    // A value may be more than a scalar: only a table knows.
    let default = context.input(2);
    if default.rank() == Some(0) {
        context.set_output(0, context.input(1));
    }
    Ok(())
}

fn find(context: &mut KernelContext) -> Result<()> {
    let found = table(context)?.find(context.input(1)?, context.input(2)?)?;
    context.set_output(0, found)
}

fn export_shape(context: &mut ShapeContext) -> Result<()> {
    context.set_output(0, PartialShape::of_rank(1));
    Ok(())
}

fn export(context: &mut KernelContext) -> Result<()> {
    let (keys, values) = table(context)?.export()?;
    context.set_output(0, keys)?;
    context.set_output(1, values)
}

fn size(context: &mut KernelContext) -> Result<()> {
    let size = table(context)?.len()? as i64;
    context.set_output(0, Tensor::scalar(size)?)
}

/// What a key or value of a line is: the line's number, the line, or one of its fields.
const LINE_NUMBER: i64 = -1;
const WHOLE_LINE: i64 = -2;

/// The texts that become a column, parsed as `dtype`.
fn column(dtype: DataType, texts: Vec<String>) -> Result<Tensor> {
    let shape = Shape::vector(texts.len());
    if dtype == DataType::STRING {
        return Tensor::from_strings(shape, texts.into_iter().map(TString::from).collect());
    }
    let mut writer = Writer::zeros(dtype, shape.clone())?.finish()?;
    crate::match_type!(dtype, (i32, i64, f32, f64), T => {
        for (slot, text) in writer.as_mut_slice::<T>()?.iter_mut().zip(&texts) {
            let parsed = text.trim().parse::<T>();
            *slot = parsed.map_err(|_| status!(InvalidArgument, "Field {text} is not a valid {dtype}."))?;
        }
        Ok(())
    })?;
    Ok(writer)
}

fn initialize_from_file(context: &mut KernelContext) -> Result<()> {
    let (attrs, table) = (context.attrs(), table(context)?);
    let (key_index, value_index) = (attrs.int("key_index")?, attrs.int("value_index")?);
    let (vocabulary, delimiter) = (attrs.int("vocab_size")?, attrs.string("delimiter")?);
    let offset = attrs.int("offset").unwrap_or(0);
    ensure!(
        delimiter.len() == 1,
        InvalidArgument,
        "delimiter should be only 1 char, got {delimiter}"
    );
    let [path] = context.input(1)?.strings()? else {
        bail!(
            InvalidArgument,
            "filename should be a single string, but got {}",
            context.input(1)?.shape()
        );
    };
    let path = path.to_str_lossy();
    ensure!(!path.is_empty(), InvalidArgument, "filename cannot be empty.");
    let content = ff_platform::files::read(&path)?;
    let content = String::from_utf8_lossy(&content);
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for (number, line) in content.lines().skip(offset.max(0) as usize).enumerate() {
        if vocabulary >= 0 && number as i64 >= vocabulary {
            break;
        }
        let field = |index: i64| match index {
            LINE_NUMBER => Ok(number.to_string()),
            WHOLE_LINE => Ok(line.to_string()),
            _ => line
                .split(delimiter)
                .nth(index as usize)
                .map(str::to_string)
                .ok_or_else(|| {
                    status!(
                        InvalidArgument,
                        "Invalid number of columns in {path} line {number} ({line}) : expected at least {}",
                        index + 1
                    )
                }),
        };
        keys.push(field(key_index)?);
        values.push(field(value_index)?);
    }
    ensure!(
        vocabulary < 0 || keys.len() as i64 == vocabulary,
        InvalidArgument,
        "Invalid vocab_size in {path}: expected {vocabulary} but got {}",
        keys.len()
    );
    table.initialize(&column(table.key_type, keys)?, &column(table.value_type, values)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use ff_op::Attrs;
    use ff_tensor::Code;

    fn types(key: DataType, value: DataType) -> Attrs {
        Attrs::new().with("key_dtype", key).with("value_dtype", value)
    }

    fn find(runner: &OpRunner, table: &Tensor, keys: Tensor, default: Tensor) -> Result<Tensor> {
        let found = runner.run("LookupTableFindV2", &[table.clone(), keys, default], Attrs::new())?;
        Ok(found[0].clone())
    }

    #[test]
    fn a_table_is_filled_once() {
        let runner = OpRunner::new();
        let table = runner
            .run("HashTableV2", &[], types(DataType::STRING, DataType::INT64))
            .unwrap()
            .remove(0);
        let keys = strings(&[2], &["a", "c"]);
        let search = || find(&runner, &table, keys.clone(), scalar(-1i64));
        assert_eq!(code(search()), Some(Code::FailedPrecondition));
        let fill = |op: &str, names: &[&str], values: &[i64]| {
            let names = strings(&[names.len() as i64], names);
            runner.run(op, &[table.clone(), names, vector(values)], Attrs::new())
        };
        fill("InitializeTableV2", &["a", "b"], &[1, 2]).unwrap();
        assert_eq!(search().unwrap().as_slice::<i64>().unwrap(), [1, -1]);
        fill("InitializeTableV2", &["a", "b"], &[1, 2]).unwrap();
        assert_eq!(
            code(fill("InitializeTableV2", &["a"], &[7])),
            Some(Code::InvalidArgument)
        );
        assert_eq!(
            code(fill("InitializeTableV2", &["z"], &[7])),
            Some(Code::FailedPrecondition)
        );
        assert_eq!(
            code(fill("LookupTableInsertV2", &["z"], &[7])),
            Some(Code::Unimplemented)
        );
        assert_eq!(
            code(find(&runner, &table, vector(&[1i64]), scalar(0i64))),
            Some(Code::InvalidArgument)
        );
        let size = runner
            .run("LookupTableSizeV2", &[table.clone()], Attrs::new())
            .unwrap();
        assert_eq!(size[0].single::<i64>().unwrap(), 2);
    }

    #[test]
    fn a_mutable_table_of_vectors_changes() {
        let runner = OpRunner::new();
        let attrs = types(DataType::INT64, DataType::FLOAT).with("value_shape", PartialShape::new(&[2]));
        let table = runner
            .run("MutableHashTableOfTensorsV2", &[], attrs)
            .unwrap()
            .remove(0);
        let put = |keys: &[i64], values: Tensor| {
            runner.run(
                "LookupTableInsertV2",
                &[table.clone(), vector(keys), values],
                Attrs::new(),
            )
        };
        put(&[1, 2], t(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])).unwrap();
        put(&[2], t(&[1, 2], &[5.0f32, 6.0])).unwrap();
        assert_eq!(code(put(&[3], vector(&[1.0f32]))), Some(Code::InvalidArgument));
        runner
            .run(
                "LookupTableRemoveV2",
                &[table.clone(), vector(&[1i64, 9])],
                Attrs::new(),
            )
            .unwrap();
        let found = find(&runner, &table, vector(&[2i64, 1]), vector(&[0.0f32, -1.0])).unwrap();
        assert_eq!(found.as_slice::<f32>().unwrap(), [5.0, 6.0, 0.0, -1.0]);
        let types = Attrs::new()
            .with("Tkeys", DataType::INT64)
            .with("Tvalues", DataType::FLOAT);
        let all = runner.run("LookupTableExportV2", &[table], types).unwrap();
        assert_eq!(all[0].as_slice::<i64>().unwrap(), [2]);
        assert_eq!(all[1].dims(), [1, 2]);
    }

    #[test]
    fn a_file_fills_a_table() {
        let path = std::env::temp_dir().join(format!("ff-ops-table-{}.txt", std::process::id()));
        std::fs::write(&path, "one\t1\ntwo\t2\n").unwrap();
        let runner = OpRunner::new();
        let table = runner
            .run("HashTableV2", &[], types(DataType::STRING, DataType::INT64))
            .unwrap()
            .remove(0);
        let name = strings(&[], &[path.to_str().unwrap()]);
        let fill = |value_index: i64| {
            let attrs = Attrs::new()
                .with("key_index", 0i64)
                .with("value_index", value_index);
            runner.run(
                "InitializeTableFromTextFileV2",
                &[table.clone(), name.clone()],
                attrs,
            )
        };
        assert_eq!(code(fill(2)), Some(Code::InvalidArgument));
        fill(1).unwrap();
        let found = find(&runner, &table, strings(&[1], &["two"]), scalar(0i64)).unwrap();
        assert_eq!(found.as_slice::<i64>().unwrap(), [2]);
        std::fs::remove_file(&path).unwrap();
    }
}
