//! Tensor arrays in all three versions.

use crate::testing::*;
use ff_op::{Attrs, Value};
use ff_tensor::{Code, DataType, PartialShape, Result, Tensor};

struct Subject {
    runner: OpRunner,
    version: &'static str,
    handle: Value,
}

const FLOW: f32 = 0.0;

impl Subject {
    fn new(version: &'static str, size: i32, attrs: Attrs) -> Subject {
        let runner = OpRunner::new();
        let attrs = attrs.with("dtype", DataType::FLOAT);
        let op = format!("TensorArray{version}");
        let size = [Value::Tensor(scalar(size))];
        let handle = runner.run_named(&op, &op, &size, attrs).unwrap().remove(0);
        Subject {
            runner,
            version,
            handle,
        }
    }

    fn run_with(&self, op: &str, tensors: &[Tensor], attrs: Attrs) -> Result<Vec<Value>> {
        let op = format!("TensorArray{op}{}", self.version);
        let mut inputs = vec![self.handle.clone()];
        inputs.extend(tensors.iter().cloned().map(Value::Tensor));
        inputs.push(Value::Tensor(scalar(FLOW)));
        self.runner.run_named(&op, &op, &inputs, attrs)
    }

    fn run(&self, op: &str, tensors: &[Tensor]) -> Result<Tensor> {
        let gives_values = matches!(op, "Read" | "Gather" | "Concat" | "Pack");
        let attrs = match gives_values {
            true => Attrs::new().with("dtype", DataType::FLOAT),
            false => Attrs::new(),
        };
        tensor_of(self.run_with(op, tensors, attrs)?.remove(0))
    }

    fn write(&self, index: i32, value: Tensor) -> Result<Tensor> {
        self.run("Write", &[scalar(index), value])
    }

    fn read(&self, index: i32) -> Result<Vec<f32>> {
        Ok(self.run("Read", &[scalar(index)])?.as_slice::<f32>()?.to_vec())
    }
}

fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    error.message().to_string()
}

#[test]
fn elements_are_written_and_read_once() {
    for version in ["", "V2", "V3"] {
        let array = Subject::new(version, 2, Attrs::new());
        array.write(0, vector(&[1f32, 2.0])).unwrap();
        assert_eq!(array.read(0).unwrap(), [1.0, 2.0]);
        assert!(message(array.read(0)).contains("Could not read index 0 twice because it was cleared"));
        assert!(message(array.write(0, vector(&[1f32]))).contains("because it has already been read."));
        assert!(message(array.read(1)).contains("the element shape is not fully defined: <unknown>"));
        assert!(message(array.read(2)).contains("Tried to read from index 2 but array size is: 2"));
        array.write(1, vector(&[3f32])).unwrap();
        assert!(message(array.write(1, vector(&[3f32]))).contains("already been written to."));
        assert!(
            message(array.write(2, vector(&[3f32])))
                .contains("Tried to write to index 2 but array is not resizeable and size is: 2")
        );
        assert!(message(array.write(1, vector(&[3i32]))).contains("TensorArray dtype is float but Op"));
    }
}

#[test]
fn rows_go_in_and_come_out() {
    let array = Subject::new("V3", 0, Attrs::new().with("dynamic_size", true));
    array
        .run(
            "Scatter",
            &[vector(&[2, 0, 1]), t(&[3, 2], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0])],
        )
        .unwrap();
    assert_eq!(array.run("Size", &[]).unwrap().single::<i32>().unwrap(), 3);
    let all = array.run("Gather", &[vector(&[0, 1, 2])]).unwrap();
    assert_eq!(all.dims(), [3, 2]);
    assert_eq!(all.as_slice::<f32>().unwrap(), [3.0, 4.0, 5.0, 6.0, 1.0, 2.0]);
    let none = array.run("Gather", &[vector::<i32>(&[])]);
    assert_eq!(code(none), Some(Code::Unimplemented));

    let array = Subject::new("V3", 2, Attrs::new().with("clear_after_read", false));
    let value = vector(&[1f32, 2.0, 3.0]);
    array.run("Split", &[value.clone(), vector(&[1i64, 2])]).unwrap();
    assert_eq!(array.read(1).unwrap(), [2.0, 3.0]);
    let attrs = Attrs::new().with("dtype", DataType::FLOAT);
    let whole = array.run_with("Concat", &[], attrs).unwrap();
    let whole: Vec<Tensor> = whole.into_iter().map(|value| tensor_of(value).unwrap()).collect();
    assert_eq!(whole[0].as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(whole[1].as_slice::<i64>().unwrap(), [1, 2]);
    let short = array.run("Split", &[value, vector(&[1i64, 1])]);
    assert!(message(short).contains("Expected sum of lengths to be equal to values.shape[0]"));

    let array = Subject::new("", 2, Attrs::new());
    array.run("Unpack", &[vector(&[1f32, 2.0])]).unwrap();
    let packed = array.run("Pack", &[]).unwrap();
    assert_eq!(packed.as_slice::<f32>().unwrap(), [1.0, 2.0]);
    array
        .runner
        .run_named(
            "TensorArrayClose",
            "close",
            std::slice::from_ref(&array.handle),
            Attrs::new(),
        )
        .unwrap();
    assert!(message(array.read(0)).contains("has already been closed"));
}

#[test]
fn gradients_add_up_and_start_as_zeros() {
    let array = Subject::new("V3", 2, Attrs::new());
    array.write(0, vector(&[1f32, 2.0])).unwrap();
    array.write(1, scalar(5f32)).unwrap();
    let gradient = |source: &str| {
        let attrs = Attrs::new().with("source", source);
        let handle = array.run_with("Grad", &[], attrs).unwrap().remove(0);
        Subject {
            runner: OpRunner::new(),
            version: "V3",
            handle,
        }
    };
    let first = gradient("gradients");
    assert_eq!(first.read(1).unwrap(), [0.0]);
    first.write(0, vector(&[1f32, 1.0])).unwrap();
    gradient("gradients").write(0, vector(&[2f32, 3.0])).unwrap();
    assert!(message(first.write(0, vector(&[2f32]))).contains("the existing shape is [2]"));
    assert_eq!(first.read(0).unwrap(), [3.0, 4.0]);
    assert_eq!(gradient("other").read(0).unwrap(), [0.0, 0.0]);
    let shaped = Subject::new(
        "V3",
        1,
        Attrs::new().with("element_shape", PartialShape::new(&[2])),
    );
    assert_eq!(shaped.read(0).unwrap(), [0.0, 0.0]);
    assert!(
        message(shaped.write(0, vector(&[1f32]))).contains("incompatible with the TensorArray's inferred")
    );
}
