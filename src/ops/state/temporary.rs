//! Variables of a step, and counters up to a limit.

use super::resource::held;
use ff_op::{Gradient, Kernel, KernelContext, Op, RefVariable, Variable, shapes};
use ff_tensor::{Result, Shape, Tensor, ensure, status};
use std::sync::Arc;

const COUNT: Op = Op {
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "TemporaryVariable",
        shape: shapes::from_shape_attr,
        kernels: &[Kernel::native(make)],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
    &Op {
        name: "DestroyTemporaryVariable",
        shape: shapes::unchanged,
        kernels: &[Kernel::native(|context| {
            let name = name_in_turn(context, context.attrs().string("var_name")?);
            let value = context.ref_input(0)?.read()?;
            let resources = context.resources();
            let container = resources.step_container(context.host().step_id());
            resources.delete(&container, &name)?;
            context.set_output(0, value)
        })],
        ..COUNT
    },
    &Op {
        name: "CountUpTo",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            shapes::scalar(context)
        },
        kernels: &[Kernel::native(|context| {
            let variable = context.ref_input(0)?.clone();
            let limit = context.attrs().int("limit")?;
            let mut before = None;
            variable.update(|value| {
                before = Some(count(value, limit)?);
                Ok(())
            })?;
            give(context, before)
        })],
        ..COUNT
    },
    &Op {
        name: "ResourceCountUpTo",
        shape: |context| {
            if let Some((dtype, shape)) = held(context, 0) {
                let wanted = context.attrs().dtype("T")?;
                ensure!(
                    dtype == wanted,
                    InvalidArgument,
                    "Data types do not match: {wanted} and {dtype}"
                );
                shape.with_rank(0)?;
            }
            shapes::scalar(context)
        },
        kernels: &[Kernel::native(|context| {
            let variable = context.resource::<Variable>(0)?;
            let limit = context.attrs().int("limit")?;
            let mut before = None;
            variable.update(|value| {
                before = Some(count(value, limit)?);
                Ok(())
            })?;
            give(context, before)
        })],
        ..COUNT
    },
];

/// What a temporary variable is called in its step: there is one for each turn of a loop.
fn name_in_turn(context: &KernelContext, name: &str) -> String {
    let (frame, turn) = context.host().loop_turn();
    format!("{name}/{frame}:{turn}")
}

/// A variable of the step until it is destroyed; it starts with zeros where the reference leaves it unset. ALREADY_EXISTS when
/// its name is taken.
fn make(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (dtype, shape) = (attrs.dtype("dtype")?, attrs.shape("shape")?);
    let shape = shape
        .to_shape()
        .ok_or_else(|| status!(InvalidArgument, "shape {shape} is not fully defined"))?;
    let name = match attrs.string("var_name")? {
        "" => context.node().name.as_str(),
        name => name,
    };
    let variable = RefVariable::new(name, dtype);
    variable.assign(Tensor::zeros(dtype, shape)?)?;
    let (variable, name) = (Arc::new(variable), name_in_turn(context, name));
    let resources = context.resources();
    let container = resources.step_container(context.host().step_id());
    resources.create(&container, &name, variable.clone())?;
    context.set_output_ref(0, variable);
    Ok(())
}

/// Adds one; gives the value before. OUT_OF_RANGE at the limit.
fn count(value: &mut Tensor, limit: i64) -> Result<Tensor> {
    ensure!(
        value.rank() == 0,
        InvalidArgument,
        "input is not a scalar: {}",
        value.shape()
    );
    let before = value.deep_copy()?;
    let number = before.to_i64_vec()?[0];
    ensure!(number < limit, OutOfRange, "Reached limit of {limit}");
    *value = match value.dtype() {
        ff_tensor::DataType::INT32 => Tensor::from_slice(Shape::scalar(), &[number as i32 + 1])?,
        _ => Tensor::from_slice(Shape::scalar(), &[number + 1])?,
    };
    Ok(before)
}

fn give(context: &mut KernelContext, before: Option<Tensor>) -> Result<()> {
    let before = before.ok_or_else(|| status!(Internal, "nothing was counted"))?;
    context.set_output(0, before)
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use ff_op::{Attrs, Value};
    use ff_tensor::{Code, DataType, PartialShape, Tensor};

    #[test]
    fn counters_stop_at_their_limit() {
        for op in ["CountUpTo", "ResourceCountUpTo"] {
            let count = |from: Tensor| {
                let dtype = from.dtype();
                Case::op(op).variable(from).attr("limit", 3i64).attr("T", dtype)
            };
            let long = count(scalar(1i64)).gives(scalar(2i64)).gives(scalar(1i64));
            long.run(&format!("state::{op}::int64"));
            let short = count(scalar(2)).gives(scalar(3)).gives(scalar(2));
            short.run(&format!("state::{op}::int32"));
            let ended = count(scalar(3i64)).fails(Code::OutOfRange);
            ended.run(&format!("state::{op}::limit"));
        }
    }

    #[test]
    fn temporary_variables_are_new_each_time() {
        let runner = OpRunner::new();
        let attrs = Attrs::new()
            .with("dtype", DataType::INT32)
            .with("shape", PartialShape::new(&[2]));
        let make = || {
            let made = runner.run_named("TemporaryVariable", "t", &[], attrs.clone());
            made.unwrap().remove(0)
        };
        let destroy = |variable: Value| {
            let attrs = Attrs::new().with("var_name", "t");
            let value = runner.run_named("DestroyTemporaryVariable", "d", &[variable], attrs);
            tensor_of(value.unwrap().remove(0)).unwrap()
        };
        let variable = make();
        let inputs = [variable.clone(), Value::Tensor(vector(&[1, 2]))];
        runner
            .run_named("Assign", "assign", &inputs, Attrs::new())
            .unwrap();
        let again = runner.run_named("TemporaryVariable", "t", &[], attrs.clone());
        assert_eq!(again.err().unwrap().code(), Code::AlreadyExists);
        let nobody = Attrs::new().with("var_name", "nobody");
        let missing = runner.run_named(
            "DestroyTemporaryVariable",
            "d",
            std::slice::from_ref(&variable),
            nobody,
        );
        assert_eq!(missing.err().unwrap().code(), Code::NotFound);
        assert_eq!(destroy(variable).as_slice::<i32>().unwrap(), [1, 2]);
        assert_eq!(destroy(make()).dims(), [2]);
    }

    #[test]
    fn slices_of_a_resource_variable() {
        let gather = |indices: Tensor| {
            Case::op("ResourceGatherNd")
                .variable(t(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]))
                .input(indices)
                .attr("dtype", DataType::FLOAT)
        };
        gather(t(&[2, 2], &[0, 1, 1, 2])).run("state::gather_nd::elements");
        gather(t(&[1, 1], &[1])).run("state::gather_nd::rows");
        let outside = gather(t(&[1, 2], &[0, 3])).fails(Code::InvalidArgument);
        outside.run("state::gather_nd::outside");
    }
}
