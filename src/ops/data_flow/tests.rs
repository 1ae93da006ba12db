//! Stacks, staging areas, accumulators, barriers and the other small ones.

use crate::testing::*;
use ff_op::{Attrs, Value};
use ff_tensor::{Code, DataType, PartialShape, Result, Shape, TString, Tensor};
use std::sync::mpsc::Receiver;

/// Ops on one handle, or on none.
pub struct Subject {
    pub runner: OpRunner,
    handle: Option<Value>,
}

impl Subject {
    pub fn new(op: &str, inputs: &[Tensor], attrs: Attrs) -> Subject {
        let runner = OpRunner::new();
        let inputs: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
        let handle = runner.run_named(op, "subject", &inputs, attrs).unwrap().remove(0);
        Subject {
            runner,
            handle: Some(handle),
        }
    }

    fn without_handle() -> Subject {
        Subject {
            runner: OpRunner::new(),
            handle: None,
        }
    }

    fn start(&self, op: &str, tensors: &[Tensor], attrs: Attrs) -> Receiver<Result<Vec<Value>>> {
        let mut inputs: Vec<Value> = self.handle.iter().cloned().collect();
        inputs.extend(tensors.iter().cloned().map(Value::Tensor));
        self.runner.start(op, op, &inputs, attrs).unwrap()
    }

    pub fn run(&self, op: &str, tensors: &[Tensor], attrs: Attrs) -> Result<Vec<Tensor>> {
        let ended = self.start(op, tensors, attrs).try_recv();
        let values = ended.unwrap_or_else(|_| Err(ff_tensor::status!(Unavailable, "waits")))?;
        values.into_iter().map(tensor_of).collect()
    }
}

fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().message().to_string()
}

fn int(tensors: Result<Vec<Tensor>>) -> i32 {
    tensors.unwrap()[0].single::<i32>().unwrap()
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.as_slice::<f32>().unwrap().to_vec()
}

#[test]
fn stacks_give_the_last_first() {
    let attrs = Attrs::new().with("elem_type", DataType::INT32);
    for version in ["V2", ""] {
        let size: &[Tensor] = if version.is_empty() { &[] } else { &[scalar(2)] };
        let stack = Subject::new(&format!("Stack{version}"), size, attrs.clone());
        let push = |value: i32| stack.run(&format!("StackPush{version}"), &[scalar(value)], Attrs::new());
        let pop = || stack.run(&format!("StackPop{version}"), &[], attrs.clone());
        // Stacks are numbered, in the process.
        let says = |result, words: &str| {
            let message = message(result);
            assert!(
                message.starts_with("Stack[subject_") && message.ends_with(words),
                "{message}"
            );
        };
        assert_eq!((int(push(1)), int(push(2))), (1, 2));
        if !version.is_empty() {
            says(push(3), "] overflowed its max_size (2)");
        }
        assert_eq!((int(pop()), int(pop())), (2, 1));
        says(pop(), "] is empty when calling Pop().");
        stack
            .run(&format!("StackClose{version}"), &[], Attrs::new())
            .unwrap();
        says(pop(), "] has already been closed.");
    }
}

#[test]
fn staging_areas_wait_for_room_and_for_tuples() {
    let area = Subject::without_handle();
    let attrs = || {
        Attrs::new()
            .with("shared_name", "s")
            .with("capacity", 1i64)
            .with("dtypes", vec![DataType::INT32])
    };
    let taking = area.start("Unstage", &[], attrs());
    assert!(taking.try_recv().is_err());
    area.run("Stage", &[scalar(5)], attrs()).unwrap();
    let taken = taking.try_recv().unwrap().unwrap().remove(0);
    assert_eq!(tensor_of(taken).unwrap().single::<i32>().unwrap(), 5);
    area.run("Stage", &[scalar(6)], attrs()).unwrap();
    let bringing = area.start("Stage", &[scalar(7)], attrs());
    assert!(bringing.try_recv().is_err());
    assert_eq!(int(area.run("StageSize", &[], attrs())), 1);
    assert_eq!(int(area.run("StagePeek", &[scalar(0)], attrs())), 6);
    assert_eq!(int(area.run("Unstage", &[], attrs())), 6);
    assert!(bringing.try_recv().unwrap().is_ok());
    area.run("StageClear", &[], attrs()).unwrap();
    assert_eq!(int(area.run("StageSize", &[], attrs())), 0);
    let small = Attrs::new()
        .with("shared_name", "m")
        .with("memory_limit", 4i64)
        .with("dtypes", vec![DataType::INT32]);
    let large = area.run("Stage", &[vector(&[1, 2])], small);
    assert_eq!(code(large), Some(Code::ResourceExhausted));
}

#[test]
fn tuples_by_key_come_and_leave_in_parts() {
    let area = Subject::without_handle();
    // The width of an area is that of the node that makes it.
    let attrs = |width: usize| {
        Attrs::new()
            .with("shared_name", "m")
            .with("dtypes", vec![DataType::INT32; width])
    };
    let put = |index: i32, value: i32| {
        let inputs = [scalar(3i64), vector(&[index]), scalar(value)];
        area.run("MapStage", &inputs, attrs(2))
    };
    let get = |op: &str, index: i32| area.run(op, &[scalar(3i64), vector(&[index])], attrs(1));
    put(1, 5).unwrap();
    assert_eq!(int(area.run("MapIncompleteSize", &[], attrs(2))), 1);
    assert!(message(put(1, 5)).contains("was already initialized"));
    assert_eq!(code(get("MapPeek", 0)), Some(Code::Unavailable));
    put(0, 4).unwrap();
    assert_eq!(int(area.run("MapSize", &[], attrs(2))), 1);
    assert_eq!(int(get("MapPeek", 0)), 4);
    assert_eq!(int(get("MapUnstage", 0)), 4);
    assert!(message(get("MapUnstage", 0)).contains("has already been removed"));
    let rest = area.run("MapUnstageNoKey", &[vector(&[1])], attrs(1)).unwrap();
    assert_eq!(rest[0].single::<i64>().unwrap(), 3);
    assert_eq!(rest[1].single::<i32>().unwrap(), 5);
    assert_eq!(int(area.run("MapSize", &[], attrs(2))), 0);
    put(0, 4).unwrap();
    put(1, 5).unwrap();
    assert!(message(get("MapPeek", 7)).contains("out of bounds"));
}

#[test]
fn dense_gradients_are_averaged() {
    let attrs = Attrs::new()
        .with("dtype", DataType::FLOAT)
        .with("shape", PartialShape::new(&[2]));
    for kind in ["", "Resource"] {
        let accumulator = Subject::new(&format!("{kind}ConditionalAccumulator"), &[], attrs.clone());
        let op = |name: &str| format!("{kind}Accumulator{name}");
        let apply = |step: i64, gradient: &[f32]| {
            let inputs = [scalar(step), vector(gradient)];
            accumulator.run(&op("ApplyGradient"), &inputs, Attrs::new())
        };
        let count = || int(accumulator.run(&op("NumAccumulated"), &[], Attrs::new()));
        let take = |wanted: i32| {
            let attrs = Attrs::new().with("dtype", DataType::FLOAT);
            accumulator.run(&op("TakeGradient"), &[scalar(wanted)], attrs)
        };
        for gradient in [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]] {
            apply(0, &gradient).unwrap();
        }
        assert_eq!(count(), 3);
        assert_eq!(floats(&take(2).unwrap()[0]), [3.0, 4.0]);
        apply(0, &[9.0, 9.0]).unwrap();
        assert_eq!(count(), 0, "an older gradient is dropped");
        let wide = message(apply(1, &[1.0, 2.0, 3.0]));
        assert_eq!(wide, "Shape mismatch: expected [2], got [3]");
        let none = message(take(0));
        assert_eq!(none, "Argument num_required must be positive, but was 0");
        accumulator
            .run(&op("SetGlobalStep"), &[scalar(7i64)], Attrs::new())
            .unwrap();
        apply(6, &[9.0, 9.0]).unwrap();
        assert_eq!(count(), 0);
        apply(7, &[9.0, 8.0]).unwrap();
        assert_eq!(floats(&take(1).unwrap()[0]), [9.0, 8.0]);
    }
}

#[test]
fn sparse_gradients_are_averaged_row_by_row() {
    for (reduction, middle) in [("MEAN", [4.0, 5.0]), ("SUM", [8.0, 10.0])] {
        let attrs = Attrs::new()
            .with("dtype", DataType::FLOAT)
            .with("shape", PartialShape::new(&[-1, 2]))
            .with("reduction_type", reduction);
        let accumulator = Subject::new("SparseConditionalAccumulator", &[], attrs);
        for (indices, rows) in [([0i64, 2], [1f32, 2.0, 3.0, 4.0]), ([2, 3], [5.0, 6.0, 7.0, 8.0])] {
            let whole = vector(&[4i64, 2]);
            let inputs = [scalar(0i64), vector(&indices), t(&[2, 2], &rows), whole];
            let attrs = Attrs::new().with("has_known_shape", true);
            accumulator
                .run("SparseAccumulatorApplyGradient", &inputs, attrs)
                .unwrap();
        }
        let attrs = Attrs::new().with("dtype", DataType::FLOAT);
        let taken = accumulator
            .run("SparseAccumulatorTakeGradient", &[scalar(2)], attrs)
            .unwrap();
        assert_eq!(taken[0].as_slice::<i64>().unwrap(), [0, 2, 3]);
        assert_eq!(
            floats(&taken[1]),
            [&[1.0, 2.0], &middle[..], &[7.0, 8.0]].concat()
        );
        assert_eq!(taken[2].as_slice::<i64>().unwrap(), [-1, 2]);
    }
}

#[test]
fn a_mutex_is_free_when_its_lock_is_gone() {
    let mutex = Subject::new("MutexV2", &[], Attrs::new());
    let first = mutex.run("MutexLock", &[], Attrs::new()).unwrap().remove(0);
    let second = mutex.start("MutexLock", &[], Attrs::new());
    assert!(second.try_recv().is_err());
    let consume = mutex.runner.run("ConsumeMutexLock", &[first], Attrs::new());
    consume.unwrap();
    assert!(second.try_recv().unwrap().is_ok());
    assert!(mutex.run("MutexLock", &[], Attrs::new()).is_ok());
}

#[test]
fn barriers_give_complete_tuples() {
    let types = vec![DataType::INT32, DataType::FLOAT];
    let attrs = Attrs::new()
        .with("component_types", types.clone())
        .with("shapes", vec![PartialShape::scalar(); 2]);
    let barrier = Subject::new("Barrier", &[], attrs);
    let insert = |keys: &[&str], values: Tensor, component: i64| {
        let inputs = [strings(&[keys.len() as i64], keys), values];
        let attrs = Attrs::new().with("component_index", component);
        barrier.run("BarrierInsertMany", &inputs, attrs)
    };
    let take = |count: i32, small: bool| {
        let attrs = Attrs::new()
            .with("component_types", types.clone())
            .with("allow_small_batch", small);
        barrier.run("BarrierTakeMany", &[scalar(count)], attrs)
    };
    insert(&["x", "y"], vector(&[1, 2]), 0).unwrap();
    insert(&["y"], vector(&[1f32]), 1).unwrap();
    assert_eq!(int(barrier.run("BarrierIncompleteSize", &[], Attrs::new())), 1);
    assert_eq!(int(barrier.run("BarrierReadySize", &[], Attrs::new())), 1);
    assert_eq!(code(insert(&["x"], vector(&[1]), 0)), Some(Code::InvalidArgument));
    let taken = take(1, false).unwrap();
    assert_eq!(taken[0].as_slice::<i64>().unwrap(), [i64::MIN]);
    assert_eq!(taken[1].strings().unwrap()[0].as_bytes(), b"y");
    barrier.run("BarrierClose", &[], Attrs::new()).unwrap();
    assert_eq!(code(insert(&["new"], vector(&[1]), 0)), Some(Code::Cancelled));
    insert(&["x"], vector(&[7f32]), 1).unwrap();
    assert_eq!(code(take(2, false)), Some(Code::OutOfRange));
    assert_eq!(floats(&take(2, true).unwrap()[3]), [7.0]);
    assert_eq!(code(take(1, true)), Some(Code::OutOfRange));
}

#[test]
fn maps_of_tensors() {
    let runner = OpRunner::new();
    let types = Attrs::new()
        .with("key_dtype", DataType::INT32)
        .with("value_dtype", DataType::FLOAT);
    let key = Attrs::new().with("key_dtype", DataType::INT32);
    let empty = runner.run("EmptyTensorMap", &[], Attrs::new()).unwrap().remove(0);
    let inputs = [empty.clone(), scalar(1), scalar(2f32)];
    let map = runner
        .run("TensorMapInsert", &inputs, types.clone())
        .unwrap()
        .remove(0);
    let on = |op: &str, map: &Tensor, key: i32, attrs: &Attrs| {
        runner.run(op, &[map.clone(), scalar(key)], attrs.clone())
    };
    let size = |map: Tensor| int(runner.run("TensorMapSize", &[map], Attrs::new()));
    assert_eq!(size(map.clone()), 1);
    assert_eq!(floats(&on("TensorMapLookup", &map, 1, &types).unwrap()[0]), [2.0]);
    assert_eq!(
        message(on("TensorMapLookup", &map, 2, &types)),
        "Trying to lookup non-existent key. Could not find key \"2\"."
    );
    assert!(
        !on("TensorMapHasKey", &map, 2, &key).unwrap()[0]
            .to_bool()
            .unwrap()
    );
    let keys = runner.run("TensorMapStackKeys", std::slice::from_ref(&map), key);
    assert_eq!(keys.unwrap()[0].as_slice::<i32>().unwrap(), [1]);
    assert!(on("TensorMapErase", &empty, 1, &types).is_err());
    let erased = on("TensorMapErase", &map, 1, &types).unwrap().remove(0);
    assert_eq!((size(erased), size(map)), (0, 1));
}

#[test]
fn optional_values() {
    let runner = OpRunner::new();
    let some = runner.run("OptionalFromValue", &[scalar(1), scalar(2f32)], Attrs::new());
    let some = some.unwrap().remove(0);
    let none = runner.run("OptionalNone", &[], Attrs::new()).unwrap().remove(0);
    let get = |optional: &Tensor, types: &[DataType], shape: PartialShape| {
        let attrs = Attrs::new()
            .with("output_types", types.to_vec())
            .with("output_shapes", vec![shape; types.len()]);
        runner.run("OptionalGetValue", std::slice::from_ref(optional), attrs)
    };
    let types = [DataType::INT32, DataType::FLOAT];
    assert_eq!(int(get(&some, &types, PartialShape::scalar())), 1);
    assert_eq!(
        message(get(&none, &types, PartialShape::scalar())),
        "The given optional does not have a value."
    );
    assert_eq!(
        message(get(&some, &types[..1], PartialShape::scalar())),
        "The given optional has 2 components, expected 1"
    );
    let wide = message(get(&some, &types, PartialShape::new(&[2])));
    assert!(wide.contains("Expected: [2]. Actual: []"), "{wide}");
}

#[test]
fn only_sessions_keep_tensors() {
    let runner = OpRunner::new();
    let handle = Tensor::from_strings(Shape::scalar(), vec![TString::from("a;0;CPU:0")]).unwrap();
    let get = Attrs::new().with("dtype", DataType::INT32);
    for (op, input, attrs) in [
        ("GetSessionHandle", vector(&[1, 2]), Attrs::new()),
        ("GetSessionHandleV2", vector(&[1, 2]), Attrs::new()),
        ("GetSessionTensor", handle.clone(), get),
        ("DeleteSessionTensor", handle, Attrs::new()),
    ] {
        let error = runner.run(op, &[input], attrs).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(
            error
                .message()
                .contains(&format!("{op} called on null session state")),
            "{error}"
        );
    }
}
