//! Steps of every optimizer in every form and type; the reference judges the numbers.

use crate::testing::*;
use ff_tensor::{Code, DataType, Tensor};

/// An optimizer: the name without its prefixes, the variables' starting values, the inputs after them (`None` is the
/// gradient, and the indices in sparse forms), the forms that exist, and the element types.
struct Row {
    name: &'static str,
    variables: &'static [f64],
    inputs: &'static [Option<f64>],
    forms: &'static [&'static str],
    types: &'static [DataType],
}

const ALL: &[&str] = &["Apply", "ResourceApply", "SparseApply", "ResourceSparseApply"];
const DENSE: &[&str] = &["Apply", "ResourceApply"];
const RESOURCE: &[&str] = &["ResourceApply", "ResourceSparseApply"];
const WIDE: &[DataType] = &[DataType::FLOAT, DataType::DOUBLE];
const G: Option<f64> = None;

const fn n(value: f64) -> Option<f64> {
    Some(value)
}

const fn row(
    name: &'static str,
    variables: &'static [f64],
    inputs: &'static [Option<f64>],
    forms: &'static [&'static str],
    types: &'static [DataType],
) -> Row {
    Row {
        name,
        variables,
        inputs,
        forms,
        types,
    }
}

const ROWS: &[Row] = &[
    row("GradientDescent", &[1.0], &[n(0.1), G], DENSE, FRACTIONS),
    row("Momentum", &[1.0, 0.5], &[n(0.1), G, n(0.9)], ALL, FRACTIONS),
    row(
        "KerasMomentum",
        &[1.0, 0.5],
        &[n(0.1), G, n(0.9)],
        RESOURCE,
        FRACTIONS,
    ),
    row("Adagrad", &[1.0, 0.25], &[n(0.1), G], ALL, FRACTIONS),
    row("AdagradV2", &[1.0, 0.25], &[n(0.1), n(0.01), G], ALL, FRACTIONS),
    row(
        "Adadelta",
        &[1.0, 0.25, 0.5],
        &[n(0.1), n(0.9), n(0.01), G],
        ALL,
        FRACTIONS,
    ),
    row(
        "Adam",
        &[1.0, 0.25, 0.5],
        &[n(0.9), n(0.99), n(0.1), n(0.9), n(0.99), n(0.01), G],
        DENSE,
        FRACTIONS,
    ),
    row(
        "AdamWithAmsgrad",
        &[1.0, 0.25, 0.5, 0.75],
        &[n(0.9), n(0.99), n(0.1), n(0.9), n(0.99), n(0.01), G],
        &["ResourceApply"],
        FLOATS,
    ),
    row(
        "AdaMax",
        &[1.0, 0.25, 0.5],
        &[n(0.9), n(0.1), n(0.9), n(0.99), n(0.01), G],
        DENSE,
        &[DataType::FLOAT, DataType::DOUBLE, DataType::HALF],
    ),
    row(
        "AddSign",
        &[1.0, 0.25],
        &[n(0.1), n(1.5), n(0.9), n(0.8), G],
        DENSE,
        FLOATS,
    ),
    row(
        "PowerSign",
        &[1.0, 0.25],
        &[n(0.1), n(1.5), n(0.9), n(0.8), G],
        DENSE,
        FLOATS,
    ),
    row(
        "RMSProp",
        &[1.0, 2.0, 0.5],
        &[n(0.1), n(0.9), n(0.5), n(0.01), G],
        DENSE,
        FRACTIONS,
    ),
    row(
        "CenteredRMSProp",
        &[1.0, 0.25, 4.0, 0.5],
        &[n(0.1), n(0.9), n(0.5), n(0.01), G],
        DENSE,
        FRACTIONS,
    ),
    row(
        "RMSProp",
        &[1.0, 2.0, 0.5],
        &[n(0.1), n(0.9), n(0.5), n(0.01), G],
        &["SparseApply", "ResourceSparseApply"],
        &[
            DataType::FLOAT,
            DataType::DOUBLE,
            DataType::HALF,
            DataType::COMPLEX64,
        ],
    ),
    row(
        "CenteredRMSProp",
        &[1.0, 0.25, 4.0, 0.5],
        &[n(0.1), n(0.9), n(0.5), n(0.01), G],
        &["SparseApply", "ResourceSparseApply"],
        &[
            DataType::FLOAT,
            DataType::DOUBLE,
            DataType::HALF,
            DataType::COMPLEX64,
        ],
    ),
    row(
        "Ftrl",
        &[1.0, 0.25, 0.5],
        &[G, n(0.1), n(0.2), n(0.3), n(-0.5)],
        ALL,
        FLOATS,
    ),
    row(
        "Ftrl",
        &[1.0, 0.25, 0.5],
        &[G, n(0.1), n(0.2), n(0.3), n(-0.75)],
        ALL,
        FLOATS,
    ),
    row(
        "Ftrl",
        &[1.0, 0.25, 0.5],
        &[G, n(0.1), n(9.0), n(0.3), n(0.0)],
        ALL,
        FLOATS,
    ),
    row(
        "FtrlV2",
        &[1.0, 0.25, 0.5],
        &[G, n(0.1), n(0.2), n(0.3), n(0.05), n(-0.5)],
        ALL,
        FLOATS,
    ),
    row(
        "ProximalAdagrad",
        &[1.0, 0.25],
        &[n(0.1), n(0.2), n(0.3), G],
        ALL,
        WIDE,
    ),
    row(
        "ProximalAdagrad",
        &[1.0, 0.25],
        &[n(0.1), n(0.0), n(0.3), G],
        ALL,
        WIDE,
    ),
    row(
        "ProximalGradientDescent",
        &[1.0],
        &[n(0.1), n(0.2), n(0.3), G],
        ALL,
        WIDE,
    ),
    row(
        "ProximalGradientDescent",
        &[0.01],
        &[n(0.1), n(0.2), n(0.3), G],
        ALL,
        WIDE,
    ),
];

/// The op of a form, as a name that lives as long as the schemas.
fn op(form: &str, name: &str) -> &'static str {
    let name = format!("{form}{name}");
    let all = super::OPS.iter().flat_map(|list| list.iter());
    all.map(|op| op.name)
        .find(|known| *known == name)
        .unwrap_or_else(|| panic!("no op {name}"))
}

fn variable(dtype: DataType, value: f64, sparse: bool) -> Tensor {
    let values = [value, value * 1.25, value * 0.5, value * 2.0];
    if sparse {
        return numbers(dtype, &[4, 2], &[values, values.map(|x| x + 0.125)].concat());
    }
    numbers(dtype, &[4], &values)
}

fn case_of(row: &Row, form: &str, dtype: DataType) -> Case {
    let sparse = form.contains("Sparse");
    let mut case = Case::op(op(form, row.name));
    for &value in row.variables {
        case = case.variable(variable(dtype, value, sparse));
    }
    for input in row.inputs {
        case = match input {
            Some(value) => case.input(plain(dtype, *value)),
            // A row named twice is changed twice.
            None if sparse => case
                .input(numbers(dtype, &[3, 2], &[0.5, -0.25, 1.0, 0.0, -2.0, 0.125]))
                .input(vector(&[2i64, 0, 2])),
            None => case.input(numbers(dtype, &[4], &[0.5, -0.25, 0.0, 2.0])),
        };
    }
    case
}

/// A scalar; complex numbers without an imaginary part.
fn plain(dtype: DataType, value: f64) -> Tensor {
    match dtype {
        DataType::COMPLEX64 => scalar(ff_tensor::Complex64::new(value as f32, 0.0)),
        DataType::COMPLEX128 => scalar(ff_tensor::Complex128::new(value, 0.0)),
        dtype => numbers(dtype, &[], &[value]),
    }
}

#[test]
fn every_form_and_type() {
    for (number, row) in ROWS.iter().enumerate() {
        for form in row.forms {
            for &dtype in row.types {
                let name = format!("training::{form}{}::{number}::{dtype}", row.name);
                case_of(row, form, dtype).run(&name);
            }
        }
    }
}

#[test]
fn attributes_change_the_rule() {
    let flags = [
        ("Momentum", "use_nesterov", true),
        ("KerasMomentum", "use_nesterov", true),
        ("Adam", "use_nesterov", true),
        ("Adagrad", "update_slots", false),
        ("AdagradV2", "update_slots", false),
        ("Ftrl", "multiply_linear_by_lr", true),
        ("FtrlV2", "multiply_linear_by_lr", true),
    ];
    for (name, flag, value) in flags {
        for row in ROWS.iter().filter(|row| row.name == name) {
            for form in row.forms {
                let case = case_of(row, form, DataType::FLOAT).attr(flag, value);
                case.run(&format!("training::{form}{name}::{flag}::{:?}", row.inputs));
            }
        }
    }
}

/// `AdagradDA` has its gradient first and counts steps in integers.
#[test]
fn dual_averaging() {
    for form in ALL {
        for l1 in [0.0, 0.25] {
            for &dtype in WIDE {
                let sparse = form.contains("Sparse");
                let mut case = Case::op(op(form, "AdagradDA"));
                for value in [1.0, 0.25, 0.5] {
                    case = case.variable(variable(dtype, value, sparse));
                }
                case = match sparse {
                    true => case
                        .input(numbers(dtype, &[2, 2], &[0.5, -0.25, 1.0, -2.0]))
                        .input(vector(&[2, 1])),
                    false => case.input(numbers(dtype, &[4], &[0.5, -0.25, 0.0, -2.0])),
                };
                let numbers = [0.1, l1, 0.5].map(|value| plain(dtype, value));
                let case = case.inputs(numbers).input(scalar(3i64));
                case.run(&format!("training::{form}AdagradDA::{l1}::{dtype}"));
            }
        }
    }
}

#[test]
fn errors() {
    let descent = |delta: Tensor| {
        Case::op("ResourceApplyGradientDescent")
            .variable(vector(&[1f32, 2.0]))
            .input(scalar(0.5f32))
            .input(delta)
    };
    descent(vector(&[1f32, 4.0]))
        .gives(vector(&[0.5f32, 0.0]))
        .run("training::descent::plain");
    descent(vector(&[1f32, 4.0, 5.0]))
        .fails(Code::InvalidArgument)
        .run("training::descent::shapes_differ");
    let sparse = |indices: Tensor, gradient: Tensor| {
        Case::op("SparseApplyMomentum")
            .variable(t(&[2, 1], &[1f32, 2.0]))
            .variable(t(&[2, 1], &[0f32, 0.0]))
            .input(scalar(0.5f32))
            .input(gradient)
            .input(indices)
            .input(scalar(0.5f32))
            .fails(Code::InvalidArgument)
    };
    sparse(vector(&[2]), t(&[1, 1], &[1f32])).run("training::sparse::index_out_of_range");
    sparse(vector(&[-1]), t(&[1, 1], &[1f32])).run("training::sparse::negative_index");
    sparse(vector(&[0, 1]), t(&[1, 1], &[1f32])).run("training::sparse::fewer_rows");
    sparse(vector(&[0]), t(&[1, 2], &[1f32, 1.0])).run("training::sparse::wider_rows");
    sparse(t(&[1, 1], &[0]), t(&[1, 1], &[1f32])).run("training::sparse::indices_of_rank_two");
    let rate = Case::op("ApplyAdagrad")
        .variable(vector(&[1f32, 2.0]))
        .variable(vector(&[1f32, 2.0]))
        .input(vector(&[0.5f32, 0.5]))
        .input(vector(&[0.5f32, 0.5]))
        .fails(Code::InvalidArgument);
    rate.run("training::adagrad::rate_is_no_scalar");
    Case::op("ApplyAdagrad")
        .variable(numbers(DataType::FLOAT, &[0], &[]))
        .variable(numbers(DataType::FLOAT, &[0], &[]))
        .input(scalar(0.5f32))
        .input(numbers(DataType::FLOAT, &[0], &[]))
        .run("training::adagrad::empty");
}
