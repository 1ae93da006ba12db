//! Rows of the ops on variables: every type, both kinds of variables, and what they refuse; the reference judges them.

use crate::testing::*;
use ff_op::{Attrs, Value};
use ff_tensor::{Code, DataType, PartialShape, Tensor};

fn every_type() -> Vec<DataType> {
    [FRACTIONS, INTEGERS].concat()
}

/// The ops of both kinds of variables for the rule of this name.
fn both_kinds(resource: &'static str, reference: &'static str) -> [&'static str; 2] {
    [resource, reference]
}

#[test]
fn whole_variables() {
    let pairs = [
        both_kinds("AssignVariableOp", "Assign"),
        both_kinds("AssignAddVariableOp", "AssignAdd"),
        both_kinds("AssignSubVariableOp", "AssignSub"),
    ];
    let ops = pairs.concat();
    let rows = family(&ops, &every_type(), |op, dtype| {
        let value = numbers(dtype, &[2, 2], &[9.0, 8.0, 7.0, 6.0]);
        Case::op(op)
            .variable(value)
            .input(numbers(dtype, &[2, 2], &[1.0, 2.0, 3.0, 4.0]))
    });
    rows.run("state::tests::whole_variables");
    let scalars = family(&ops, &[DataType::FLOAT, DataType::INT64], |op, dtype| {
        Case::op(op)
            .variable(numbers(dtype, &[], &[5.0]))
            .input(numbers(dtype, &[], &[3.0]))
    });
    scalars.run("state::tests::scalars");
    let empty = family(&ops, &[DataType::FLOAT], |op, dtype| {
        Case::op(op)
            .variable(numbers(dtype, &[0, 3], &[]))
            .input(numbers(dtype, &[0, 3], &[]))
    });
    empty.run("state::tests::empty");
    let misfits = family(&ops[1..], &[DataType::FLOAT], |op, dtype| {
        Case::op(op)
            .variable(numbers(dtype, &[2], &[5.0, 6.0]))
            .input(numbers(dtype, &[3], &[1.0, 2.0, 3.0]))
            .fails(Code::InvalidArgument)
    });
    misfits.run("state::tests::misfits");
    let other_shape = Case::op("Assign")
        .variable(vector(&[1f32, 2.0]))
        .input(vector(&[1f32, 2.0, 3.0]))
        .attr("validate_shape", false);
    other_shape.run("state::tests::assigned_another_shape");
}

const RULES: &[&str] = &[
    "ScatterUpdate",
    "ScatterAdd",
    "ScatterSub",
    "ScatterMul",
    "ScatterDiv",
    "ScatterMin",
    "ScatterMax",
    "ResourceScatterUpdate",
    "ResourceScatterAdd",
    "ResourceScatterSub",
    "ResourceScatterMul",
    "ResourceScatterDiv",
    "ResourceScatterMin",
    "ResourceScatterMax",
];

const REAL: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::INT32,
    DataType::INT64,
];

/// A variable of three rows.
fn rows_of(op: &'static str, dtype: DataType) -> Case {
    Case::op(op).variable(numbers(dtype, &[3, 2], &[8.0, 6.0, 4.0, 2.0, 9.0, 3.0]))
}

#[test]
fn rows() {
    let rows = family(RULES, REAL, |op, dtype| {
        let updates = numbers(dtype, &[2, 2], &[2.0, 3.0, 3.0, 1.0]);
        rows_of(op, dtype).inputs([vector(&[2, 0]), updates])
    });
    rows.run("state::tests::rows");
    let repeated = family(RULES, &[DataType::FLOAT], |op, dtype| {
        let updates = numbers(dtype, &[1, 2, 2], &[2.0, 3.0, 4.0, 5.0]);
        rows_of(op, dtype).inputs([t(&[1, 2], &[1i64, 1]), updates])
    });
    repeated.run("state::tests::repeated_rows");
    let scalar_update = family(RULES, &[DataType::FLOAT, DataType::INT32], |op, dtype| {
        rows_of(op, dtype).inputs([vector(&[1]), numbers(dtype, &[], &[2.0])])
    });
    scalar_update.run("state::tests::rows_by_scalar");
    let nothing = family(RULES, &[DataType::FLOAT], |op, dtype| {
        rows_of(op, dtype).inputs([vector::<i32>(&[]), numbers(dtype, &[0, 2], &[])])
    });
    nothing.run("state::tests::no_rows");
    let outside = family(RULES, &[DataType::FLOAT], |op, dtype| {
        let updates = numbers(dtype, &[1, 2], &[2.0, 3.0]);
        rows_of(op, dtype)
            .inputs([vector(&[3]), updates])
            .fails(Code::InvalidArgument)
    });
    outside.run("state::tests::rows_outside");
    let misfits = family(RULES, &[DataType::FLOAT], |op, dtype| {
        let updates = numbers(dtype, &[1, 3], &[2.0, 3.0, 4.0]);
        rows_of(op, dtype)
            .inputs([vector(&[1]), updates])
            .fails(Code::InvalidArgument)
    });
    misfits.run("state::tests::row_misfits");
}

const SLICE_RULES: &[&str] = &[
    "ScatterNdUpdate",
    "ScatterNdAdd",
    "ScatterNdSub",
    "ScatterNdMin",
    "ScatterNdMax",
    "ResourceScatterNdUpdate",
    "ResourceScatterNdAdd",
    "ResourceScatterNdSub",
    "ResourceScatterNdMin",
    "ResourceScatterNdMax",
];

#[test]
fn slices() {
    let elements = family(SLICE_RULES, REAL, |op, dtype| {
        rows_of(op, dtype).inputs([t(&[2, 2], &[2, 1, 0, 0]), numbers(dtype, &[2], &[5.0, 7.0])])
    });
    elements.run("state::tests::elements");
    let slices = family(SLICE_RULES, &[DataType::FLOAT], |op, dtype| {
        rows_of(op, dtype).inputs([t(&[1, 1], &[1i64]), numbers(dtype, &[1, 2], &[3.0, 1.0])])
    });
    slices.run("state::tests::slices");
    let outside = family(SLICE_RULES, &[DataType::FLOAT], |op, dtype| {
        rows_of(op, dtype)
            .inputs([t(&[1, 1], &[3]), numbers(dtype, &[1, 2], &[3.0, 1.0])])
            .fails(Code::InvalidArgument)
    });
    outside.run("state::tests::slices_outside");
}

#[test]
fn reading() {
    let types = every_type();
    let read = family(&["ReadVariableOp"], &types, |op, dtype| {
        rows_of(op, dtype).attr("dtype", dtype)
    });
    read.run("state::tests::read");
    let gathered = family(&["ResourceGather"], &types, |op, dtype| {
        rows_of(op, dtype).input(t(&[2, 1], &[2, 0])).attr("dtype", dtype)
    });
    gathered.run("state::tests::gathered");
    let outside = rows_of("ResourceGather", DataType::FLOAT)
        .input(vector(&[3i64]))
        .attr("dtype", DataType::FLOAT);
    outside
        .fails(Code::InvalidArgument)
        .run("state::tests::gathered_outside");
    for out in [DataType::INT32, DataType::INT64] {
        let shape = rows_of("VariableShape", DataType::FLOAT).attr("out_type", out);
        shape.run(&format!("state::tests::shape::{out}"));
    }
    rows_of("VarIsInitializedOp", DataType::FLOAT)
        .gives(numbers(DataType::FLOAT, &[3, 2], &[8.0, 6.0, 4.0, 2.0, 9.0, 3.0]))
        .gives(bools(&[], &[true]))
        .run("state::tests::is_there");
}

#[test]
fn the_life_of_a_resource_variable() {
    let runner = OpRunner::new();
    let attrs = Attrs::new()
        .with("dtype", DataType::FLOAT)
        .with("shape", PartialShape::new(&[2]));
    let handle = runner.run("VarHandleOp", &[], attrs).unwrap().remove(0);
    let typed = || Attrs::new().with("dtype", DataType::FLOAT);
    let is_there = || {
        let answer = runner.run("VarIsInitializedOp", std::slice::from_ref(&handle), Attrs::new());
        answer.unwrap()[0].to_bool().unwrap()
    };
    let read = || runner.run("ReadVariableOp", std::slice::from_ref(&handle), typed());
    assert!(!is_there());
    assert_eq!(code(read()), Some(Code::FailedPrecondition));
    let assign = |value: Tensor| runner.run("AssignVariableOp", &[handle.clone(), value], Attrs::new());
    assert_eq!(code(assign(vector(&[1]))), Some(Code::InvalidArgument));
    assign(vector(&[1f32, 2.0])).unwrap();
    assert!(is_there());
    runner
        .run("DisableCopyOnRead", std::slice::from_ref(&handle), Attrs::new())
        .unwrap();
    assert_eq!(read().unwrap()[0].as_slice::<f32>().unwrap(), [1.0, 2.0]);
    let destroy = |ignore: bool| {
        let attrs = Attrs::new().with("ignore_lookup_error", ignore);
        runner.run("DestroyResourceOp", std::slice::from_ref(&handle), attrs)
    };
    destroy(false).unwrap();
    assert!(!is_there());
    assert_eq!(code(destroy(false)), Some(Code::NotFound));
    destroy(true).unwrap();
}

#[test]
fn the_life_of_a_reference_variable() {
    for op in ["Variable", "VariableV2"] {
        let runner = OpRunner::new();
        let attrs = Attrs::new()
            .with("dtype", DataType::INT32)
            .with("shape", PartialShape::new(&[2]));
        let variable = runner.run_named(op, "v", &[], attrs).unwrap().remove(0);
        let is_there = || {
            let answer = runner.run_named(
                "IsVariableInitialized",
                "i",
                std::slice::from_ref(&variable),
                Attrs::new(),
            );
            let answer = tensor_of(answer.unwrap().remove(0));
            answer.unwrap().to_bool().unwrap()
        };
        assert!(!is_there());
        assert!(tensor_of(variable.clone()).is_err());
        let assign = |value: Tensor| {
            let inputs = [variable.clone(), Value::Tensor(value)];
            runner.run_named("Assign", "assign", &inputs, Attrs::new())
        };
        assign(vector(&[1, 2])).unwrap();
        assert!(is_there());
        assert_eq!(code(assign(vector(&[1]))), Some(Code::InvalidArgument));
        assert_eq!(
            tensor_of(variable.clone()).unwrap().as_slice::<i32>().unwrap(),
            [1, 2]
        );
    }
}
