//! Rows of several nodes: ops on tables, readers, arrays and staging areas, which one node alone does not show.
//!
//! [`Steps`] runs nodes one after the other on shared resources. An input `name` or `name:1` is an output of a step
//! before. The rows below are of ops that have no row elsewhere.

use super::{OpRunner, code, counting, numbers, scalar, strings, t, tensor_of, vector};
use ff_op::{Attrs, Value};
use ff_tensor::{Code, DataType, PartialShape, Tensor};
use std::collections::HashMap;

/// A small program under way.
#[derive(Default)]
pub struct Steps {
    runner: OpRunner,
    values: HashMap<String, Vec<Value>>,
}

impl Steps {
    /// Nothing so far.
    pub fn new() -> Steps {
        Steps::default()
    }

    /// A value by name.
    pub fn let_be(mut self, name: &str, value: Tensor) -> Steps {
        self.values.insert(name.to_string(), vec![Value::Tensor(value)]);
        self
    }

    fn inputs(&self, inputs: &[&str]) -> Vec<Value> {
        let find = |name: &&str| {
            let (name, index) = name.split_once(':').unwrap_or((name, "0"));
            let outputs = self.values.get(name).unwrap_or_else(|| panic!("no step {name}"));
            outputs[index.parse::<usize>().unwrap()].clone()
        };
        inputs.iter().map(find).collect()
    }

    /// Runs a node and keeps its outputs under its name.
    pub fn node(mut self, name: &str, op: &str, inputs: &[&str], attrs: Attrs) -> Steps {
        let outputs = self.runner.run_named(op, name, &self.inputs(inputs), attrs);
        let outputs = outputs.unwrap_or_else(|error| panic!("{name}: {op}: {error}"));
        self.values.insert(name.to_string(), outputs);
        self
    }

    /// States that a node fails with this code.
    pub fn fails(self, op: &str, inputs: &[&str], attrs: Attrs, expected: Code) -> Steps {
        let outcome = self.runner.run_named(op, op, &self.inputs(inputs), attrs);
        assert_eq!(code(outcome), Some(expected), "{op}");
        self
    }

    /// States an output.
    pub fn gives(self, output: &str, expected: Tensor) -> Steps {
        let found = tensor_of(self.inputs(&[output]).remove(0)).unwrap();
        assert_eq!(found.dims(), expected.dims(), "{output}");
        assert!(found.bitwise_eq(&expected), "{output}: {found:?}");
        self
    }
}

const NONE: fn() -> Attrs = Attrs::new;

fn table(op: &str) -> Steps {
    let attrs = NONE()
        .with("key_dtype", DataType::INT64)
        .with("value_dtype", DataType::FLOAT);
    let steps = Steps::new()
        .let_be("empty", scalar(-1i64))
        .let_be("deleted", scalar(-2i64))
        .let_be("keys", vector(&[5i64, 7]))
        .let_be("values", vector(&[0.5f32, 0.75]))
        .let_be("wanted", vector(&[7i64, 6]))
        .let_be("default", scalar(9.0f32));
    let attrs = match op.contains("Tensors") || op.contains("Dense") {
        true => attrs.with("value_shape", PartialShape::scalar()),
        false => attrs,
    };
    match op {
        "MutableDenseHashTable" => steps.node("table", op, &["empty"], attrs),
        "AnonymousMutableDenseHashTable" => steps.node("table", op, &["empty", "deleted"], attrs),
        _ => steps.node("table", op, &[], attrs),
    }
}

fn exported() -> Attrs {
    NONE()
        .with("Tkeys", DataType::INT64)
        .with("Tvalues", DataType::FLOAT)
}

#[test]
fn fixed_tables_of_the_first_version() {
    table("HashTable")
        .node("fill", "InitializeTable", &["table", "keys", "values"], NONE())
        .node(
            "found",
            "LookupTableFind",
            &["table", "wanted", "default"],
            NONE(),
        )
        .gives("found", vector(&[0.75f32, 9.0]))
        .node("size", "LookupTableSize", &["table"], NONE())
        .gives("size", scalar(2i64))
        .fails(
            "LookupTableInsert",
            &["table", "keys", "values"],
            NONE(),
            Code::Unimplemented,
        )
        .fails(
            "LookupTableFind",
            &["table", "values", "default"],
            NONE(),
            Code::InvalidArgument,
        );
}

#[test]
fn mutable_tables_of_the_first_version() {
    for op in ["MutableHashTable", "MutableDenseHashTable"] {
        table(op)
            .node(
                "insert",
                "LookupTableInsert",
                &["table", "keys", "values"],
                NONE(),
            )
            .node(
                "found",
                "LookupTableFind",
                &["table", "wanted", "default"],
                NONE(),
            )
            .node(
                "import",
                "LookupTableImport",
                &["table", "wanted", "values"],
                NONE(),
            )
            .node("size", "LookupTableSize", &["table"], NONE())
            .gives("size", scalar(2i64))
            .node("all", "LookupTableExport", &["table"], exported());
    }
}

#[test]
fn tables_without_a_name() {
    table("AnonymousHashTable")
        .node("fill", "InitializeTableV2", &["table", "keys", "values"], NONE())
        .node(
            "found",
            "LookupTableFindV2",
            &["table", "wanted", "default"],
            NONE(),
        )
        .gives("found", vector(&[0.75f32, 9.0]));
    for op in ["AnonymousMutableDenseHashTable", "AnonymousMutableHashTable"] {
        table(op)
            .node(
                "insert",
                "LookupTableInsertV2",
                &["table", "keys", "values"],
                NONE(),
            )
            .node("size", "LookupTableSizeV2", &["table"], NONE())
            .gives("size", scalar(2i64));
    }
}

#[test]
fn tables_from_lines_of_text() {
    let path = std::env::temp_dir().join(format!("ff_table_{}", std::process::id()));
    std::fs::write(&path, "a\nb\n").unwrap();
    let attrs = NONE()
        .with("key_dtype", DataType::STRING)
        .with("value_dtype", DataType::INT64);
    let lines = NONE().with("key_index", -2i64).with("value_index", -1i64);
    Steps::new()
        .let_be("path", strings(&[], &[path.to_str().unwrap()]))
        .let_be("missing", strings(&[], &["/no/such/file"]))
        .let_be("wanted", strings(&[1], &["b"]))
        .let_be("default", scalar(-1i64))
        .node("table", "HashTable", &[], attrs)
        .fails(
            "InitializeTableFromTextFile",
            &["table", "missing"],
            lines.clone(),
            Code::NotFound,
        )
        .node("fill", "InitializeTableFromTextFile", &["table", "path"], lines)
        .node(
            "found",
            "LookupTableFind",
            &["table", "wanted", "default"],
            NONE(),
        )
        .gives("found", vector(&[1i64]));
    std::fs::remove_file(path).unwrap();
}

/// A reader of the first version, and a queue of names.
fn reader(op: &str, attrs: Attrs, names: &[&str]) -> Steps {
    let queue = NONE()
        .with("component_types", vec![DataType::STRING])
        .with("shapes", vec![PartialShape::scalar()]);
    Steps::new()
        .let_be("names", strings(&[names.len() as i64], names))
        .let_be("two", scalar(2i64))
        .node("queue", "FIFOQueue", &[], queue)
        .node("enqueue", "QueueEnqueueMany", &["queue", "names"], NONE())
        .node("close", "QueueClose", &["queue"], NONE())
        .node("reader", op, &[], attrs)
}

#[test]
fn readers_of_the_first_version() {
    reader("IdentityReader", NONE(), &["a", "b", "c"])
        .node("first", "ReaderRead", &["reader", "queue"], NONE())
        .gives("first:1", strings(&[], &["a"]))
        .node("rest", "ReaderReadUpTo", &["reader", "queue", "two"], NONE())
        .node("records", "ReaderNumRecordsProduced", &["reader"], NONE())
        .node("units", "ReaderNumWorkUnitsCompleted", &["reader"], NONE())
        .node("state", "ReaderSerializeState", &["reader"], NONE())
        .node("reset", "ReaderReset", &["reader"], NONE())
        .node("again", "ReaderNumRecordsProduced", &["reader"], NONE())
        .gives("again", scalar(0i64))
        .node("restore", "ReaderRestoreState", &["reader", "state"], NONE())
        .node("last", "ReaderRead", &["reader", "queue"], NONE())
        .gives("last:1", strings(&[], &["c"]))
        .fails("ReaderRead", &["reader", "queue"], NONE(), Code::OutOfRange)
        .fails(
            "ReaderRestoreState",
            &["reader", "first:1"],
            NONE(),
            Code::InvalidArgument,
        );
    reader("IdentityReaderV2", NONE(), &["a"])
        .node("units", "ReaderNumWorkUnitsCompletedV2", &["reader"], NONE())
        .gives("units", scalar(0i64))
        .node("reset", "ReaderResetV2", &["reader"], NONE());
}

#[test]
fn files_of_the_first_version() {
    let path = std::env::temp_dir().join(format!("ff_reader_{}", std::process::id()));
    std::fs::write(&path, "ab\ncd\n").unwrap();
    let name = path.to_str().unwrap();
    let read = |op: &str, attrs: Attrs, expected: &str| {
        reader(op, attrs, &[name])
            .node("first", "ReaderRead", &["reader", "queue"], NONE())
            .gives("first:1", strings(&[], &[expected]));
    };
    read("TextLineReader", NONE(), "ab");
    read("WholeFileReader", NONE(), "ab\ncd\n");
    read(
        "FixedLengthRecordReader",
        NONE().with("record_bytes", 3i64),
        "ab\n",
    );
    reader("TFRecordReader", NONE(), &[name]).fails(
        "ReaderRead",
        &["reader", "queue"],
        NONE(),
        Code::OutOfRange,
    );
    std::fs::remove_file(path).unwrap();
}

#[test]
fn queues_of_the_first_version() {
    let types = vec![DataType::INT32];
    let attrs = NONE()
        .with("component_types", types.clone())
        .with("shapes", vec![PartialShape::scalar()]);
    Steps::new()
        .let_be("value", scalar(7))
        .let_be("low", scalar(3i64))
        .node("queue", "RandomShuffleQueue", &[], attrs.clone())
        .node("put", "QueueEnqueue", &["queue", "value"], NONE())
        .node(
            "got",
            "QueueDequeue",
            &["queue"],
            NONE().with("component_types", types.clone()),
        )
        .gives("got", scalar(7))
        .node("ordered", "PriorityQueue", &[], attrs)
        .node("put", "QueueEnqueue", &["ordered", "low", "value"], NONE())
        .fails(
            "QueueEnqueue",
            &["ordered", "value", "value"],
            NONE(),
            Code::InvalidArgument,
        );
}

#[test]
fn ordered_tuples_by_key() {
    let attrs = || {
        NONE()
            .with("dtypes", vec![DataType::INT32])
            .with("shared_name", "area")
    };
    Steps::new()
        .let_be("high", scalar(9i64))
        .let_be("low", scalar(2i64))
        .let_be("all", vector(&[0]))
        .let_be("value", scalar(7))
        .node("put", "OrderedMapStage", &["high", "all", "value"], attrs())
        .node("put", "OrderedMapStage", &["low", "all", "value"], attrs())
        .node("size", "OrderedMapSize", &[], attrs())
        .gives("size", scalar(2))
        .node("parts", "OrderedMapIncompleteSize", &[], attrs())
        .gives("parts", scalar(0))
        .node("seen", "OrderedMapPeek", &["high", "all"], attrs())
        .gives("seen", scalar(7))
        .node("first", "OrderedMapUnstageNoKey", &["all"], attrs())
        .gives("first", scalar(2i64))
        .node("last", "OrderedMapUnstage", &["high", "all"], attrs())
        .node("put", "OrderedMapStage", &["low", "all", "value"], attrs())
        .node("clear", "OrderedMapClear", &[], attrs())
        .node("size", "OrderedMapSize", &[], attrs())
        .gives("size", scalar(0))
        .node("clear", "MapClear", &[], attrs())
        .fails(
            "OrderedMapStage",
            &["low", "value", "value"],
            attrs(),
            Code::InvalidArgument,
        );
}

#[test]
fn optional_values() {
    Steps::new()
        .let_be("value", scalar(7))
        .node("some", "OptionalFromValue", &["value"], NONE())
        .node("none", "OptionalNone", &[], NONE())
        .node("yes", "OptionalHasValue", &["some"], NONE())
        .gives("yes", super::bools(&[], &[true]))
        .node("no", "OptionalHasValue", &["none"], NONE())
        .gives("no", super::bools(&[], &[false]));
}

#[test]
fn arrays_of_the_first_versions() {
    let dtype = || NONE().with("dtype", DataType::FLOAT);
    for version in ["", "V2"] {
        let op = |name: &str| format!("TensorArray{name}{version}");
        Steps::new()
            .let_be("size", scalar(2))
            .let_be("places", vector(&[1, 0]))
            .let_be("rows", t(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]))
            .let_be("lengths", vector(&[1i64, 1]))
            .let_be("flow", scalar(0.0f32))
            .node(
                "array",
                &op(""),
                &["size"],
                dtype().with("clear_after_read", false),
            )
            .node(
                "write",
                &op("Scatter"),
                &["array", "places", "rows", "flow"],
                NONE(),
            )
            .node("count", &op("Size"), &["array", "write"], NONE())
            .gives("count", scalar(2))
            .node("back", &op("Gather"), &["array", "places", "write"], dtype())
            .gives("back", t(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]))
            .node("joined", &op("Concat"), &["array", "write"], dtype())
            .gives("joined", vector(&[3.0f32, 4.0, 1.0, 2.0]))
            .node(
                "slopes",
                &op("Grad"),
                &["array", "write"],
                NONE().with("source", "g"),
            )
            .node("other", &op(""), &["size"], dtype())
            .node("cut", &op("Split"), &["other", "rows", "lengths", "flow"], NONE())
            .let_be("far", vector(&[5]))
            .fails(
                &op("Gather"),
                &["array", "far", "write"],
                dtype(),
                Code::InvalidArgument,
            );
    }
    Steps::new()
        .let_be("size", scalar(2))
        .let_be("extra", vector(&[3]))
        .node("two", "TensorArrayV2", &["size"], dtype())
        .node("close", "TensorArrayCloseV2", &["two"], NONE())
        .node("three", "TensorArrayV3", &["size"], dtype())
        .node(
            "slopes",
            "TensorArrayGradWithShape",
            &["three", "three:1", "extra"],
            NONE().with("source", "g"),
        )
        .node("close", "TensorArrayCloseV3", &["three"], NONE());
}

#[test]
fn lists_written_at_places() {
    let items = || NONE().with("element_dtype", DataType::INT32);
    Steps::new()
        .let_be("values", t(&[2, 1], &[1, 2]))
        .let_be("places", vector(&[2, 0]))
        .let_be("shape", vector(&[1]))
        .let_be("far", vector(&[-1, 0]))
        .node(
            "list",
            "TensorListScatter",
            &["values", "places", "shape"],
            items(),
        )
        .node(
            "more",
            "TensorListScatterIntoExistingList",
            &["list", "values", "places"],
            items(),
        )
        .node("all", "TensorListConcat", &["more"], items())
        .node("pair", "TensorListFromTensor", &["values", "shape"], items())
        .node("lists", "Pack", &["pair", "more"], NONE().with("axis", 0i64))
        .node("longer", "TensorListPushBackBatch", &["lists", "values"], items())
        .fails(
            "TensorListScatter",
            &["values", "far", "shape"],
            items(),
            Code::InvalidArgument,
        );
}

#[test]
fn numbers_of_stateful_generators() {
    let (runner, handle) = crate::random::generator_state(vector(&[1i64, 2, 3]));
    let run = |op: &str, inputs: &[Tensor], dtype: DataType| {
        let attrs = NONE().with("dtype", dtype);
        let made = runner.run(op, inputs, attrs).unwrap();
        assert_eq!((made[0].dims(), made[0].dtype()), (&[4i64][..], dtype), "{op}");
    };
    let (algorithm, shape) = (scalar(1i64), vector(&[4]));
    let plain = [handle.clone(), algorithm.clone(), shape.clone()];
    run("StatefulStandardNormalV2", &plain, DataType::FLOAT);
    run("StatefulTruncatedNormal", &plain, DataType::DOUBLE);
    run("StatefulUniformFullInt", &plain, DataType::UINT64);
    run(
        "StatefulStandardNormal",
        &[handle.clone(), shape.clone()],
        DataType::FLOAT,
    );
    let limits = [handle, algorithm, shape, scalar(-5), scalar(5)];
    run("StatefulUniformInt", &limits, DataType::INT32);
}

#[test]
fn values_as_truth() {
    for (value, expected) in [
        (scalar(0), false),
        (scalar(-0.5f32), true),
        (counting(DataType::INT64, &[0]), false),
        (numbers(DataType::HALF, &[1], &[0.0]), true),
        (strings(&[], &[""]), false),
    ] {
        Steps::new()
            .let_be("value", value)
            .node("truth", "ToBool", &["value"], NONE())
            .gives("truth", super::bools(&[], &[expected]));
    }
}

#[test]
fn small_ones_of_lowered_graphs() {
    let shape = || {
        NONE()
            .with("dtype", DataType::FLOAT)
            .with("shape", PartialShape::new(&[2]))
    };
    let names = vec![
        bytes::Bytes::from_static(b"GPU"),
        bytes::Bytes::from_static(b"CPU"),
    ];
    Steps::new()
        .let_be("value", scalar(7))
        .let_be("one", scalar(1))
        .node("unused", "FakeParam", &[], shape())
        .node("start", "_ParallelConcatStart", &[], shape())
        .node("place", "DeviceIndex", &[], NONE().with("device_names", names))
        .gives("place", scalar(1))
        .node(
            "chosen",
            "_SwitchN",
            &["value", "one"],
            NONE().with("num_outs", 3i64),
        )
        .gives("chosen:1", scalar(7))
        .node("result", "_Retval", &["value"], NONE().with("index", 0i64))
        .fails(
            "_Arg",
            &[],
            NONE().with("T", DataType::INT32).with("index", 0i64),
            Code::InvalidArgument,
        );
    let variable = NONE()
        .with("dtype", DataType::INT32)
        .with("shape", PartialShape::scalar());
    Steps::new()
        .let_be("value", scalar(7))
        .node("variable", "VariableV2", &[], variable)
        .node("same", "RefIdentity", &["variable"], NONE())
        .node("set", "Assign", &["same", "value"], NONE())
        .gives("variable", scalar(7));
}
