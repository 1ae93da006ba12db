//! What the kernels of control flow pass on; when they run is the dataflow engine's, whose tests are the runtime's.

use crate::testing::*;
use ff_op::{Attrs, RefVariable, Value};
use ff_tensor::{Bool, Code, DataType, Result, Tensor};
use std::sync::Arc;

/// The outputs of an op of float values: their elements, none where nothing comes out.
fn run(op: &str, inputs: &[Value], attrs: Attrs) -> Result<Vec<Option<Tensor>>> {
    let outputs = OpRunner::new().run_named(op, op, inputs, attrs)?;
    let tensor = |value| match value {
        Value::Absent => Ok(None),
        value => tensor_of(value).map(Some),
    };
    outputs.into_iter().map(tensor).collect()
}

fn value() -> Value {
    Value::Tensor(vector(&[1f32, 2.0]))
}

fn variable() -> Value {
    let variable = RefVariable::new("v", DataType::FLOAT);
    variable.assign(vector(&[1f32, 2.0])).unwrap();
    Value::Ref(Arc::new(variable))
}

fn predicate(holds: bool) -> Value {
    Value::Tensor(scalar(Bool::from(holds)))
}

fn elements(tensor: &Option<Tensor>) -> Option<Vec<f32>> {
    Some(tensor.as_ref()?.as_slice::<f32>().unwrap().to_vec())
}

#[test]
fn switches_choose_one_output() {
    for (op, input) in [("Switch", value()), ("RefSwitch", variable())] {
        for holds in [false, true] {
            let outputs = run(op, &[input.clone(), predicate(holds)], Attrs::new()).unwrap();
            let present: Vec<bool> = outputs.iter().map(Option::is_some).collect();
            assert_eq!(present, [!holds, holds], "{op}");
            assert_eq!(
                elements(&outputs[usize::from(holds)]),
                Some(vec![1.0, 2.0]),
                "{op}"
            );
        }
        let vector = Value::Tensor(bools(&[2], &[true, false]));
        assert_eq!(
            code(run(op, &[input, vector], Attrs::new())),
            Some(Code::InvalidArgument),
            "{op}"
        );
    }
}

#[test]
fn merges_take_what_is_there() {
    for (op, input) in [("Merge", value()), ("RefMerge", variable())] {
        let attrs = || Attrs::new().with("N", 2i64).with("T", DataType::FLOAT);
        let outputs = run(op, &[input.clone(), input.clone()], attrs()).unwrap();
        assert_eq!(elements(&outputs[0]), Some(vec![1.0, 2.0]), "{op}");
        let index = outputs[1].as_ref().unwrap();
        assert_eq!(index.as_slice::<i32>().unwrap(), [0], "{op}");
    }
}

#[test]
fn frames_pass_values_on() {
    let named = || Attrs::new().with("frame_name", "loop");
    for (op, attrs) in [
        ("Enter", named()),
        ("Exit", Attrs::new()),
        ("NextIteration", Attrs::new()),
    ] {
        let outputs = run(op, &[value()], attrs.clone()).unwrap();
        assert_eq!(elements(&outputs[0]), Some(vec![1.0, 2.0]), "{op}");
        let reference = format!("Ref{op}");
        let outputs = run(&reference, &[variable()], attrs).unwrap();
        assert_eq!(elements(&outputs[0]), Some(vec![1.0, 2.0]), "{reference}");
    }
    let outputs = run("LoopCond", &[predicate(true)], Attrs::new()).unwrap();
    assert!(outputs[0].as_ref().unwrap().to_bool().unwrap());
}

#[test]
fn triggers_and_ends() {
    assert!(run("ControlTrigger", &[], Attrs::new()).unwrap().is_empty());
    let attrs = Attrs::new().with("error_msg", "enough");
    let error = run("Abort", &[], attrs).unwrap_err();
    assert_eq!(error.code(), Code::Aborted);
    assert!(error.message().contains("enough"), "{error}");
}

#[test]
fn one_of_several_variables() {
    let attrs = || Attrs::new().with("N", 2i64).with("T", DataType::FLOAT);
    let index = |index: i32| Value::Tensor(crate::testing::scalar(index));
    let outputs = run("RefSelect", &[index(1), variable(), variable()], attrs()).unwrap();
    assert_eq!(elements(&outputs[0]), Some(vec![1.0, 2.0]));
    let outside = run("RefSelect", &[index(2), variable(), variable()], attrs());
    assert_eq!(code(outside), Some(Code::InvalidArgument));
}
