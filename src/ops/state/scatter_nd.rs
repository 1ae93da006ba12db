//! Scattering into variables: slices at the places that an index tensor names (`*ScatterNd*`), and rows of reference
//! variables (`Scatter*`).

use crate::array::scatter::{Join, scatter_by_policy};
use ff_op::{Attrs, Gradient, Kernel, KernelContext, Op, Variable, shapes};
use ff_tensor::{Result, Shape, Tensor, ensure};

const RESOURCE: Op = Op {
    shape: shapes::none,
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

const REFERENCE: Op = Op {
    shape: shapes::unchanged,
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ResourceScatterNdUpdate",
        kernels: &[Kernel::native(|context| of_resource(context, Join::Update))],
        ..RESOURCE
    },
    &Op {
        name: "ResourceScatterNdAdd",
        kernels: &[Kernel::native(|context| of_resource(context, Join::Add))],
        ..RESOURCE
    },
    &Op {
        name: "ResourceScatterNdSub",
        kernels: &[Kernel::native(|context| of_resource(context, Join::Sub))],
        ..RESOURCE
    },
    &Op {
        name: "ResourceScatterNdMax",
        kernels: &[Kernel::native(|context| of_resource(context, Join::Max))],
        ..RESOURCE
    },
    &Op {
        name: "ResourceScatterNdMin",
        kernels: &[Kernel::native(|context| of_resource(context, Join::Min))],
        ..RESOURCE
    },
    &Op {
        name: "ScatterNdUpdate",
        kernels: &[Kernel::native(|context| of_reference(context, Join::Update))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterNdAdd",
        kernels: &[Kernel::native(|context| of_reference(context, Join::Add))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterNdSub",
        kernels: &[Kernel::native(|context| of_reference(context, Join::Sub))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterNdMax",
        kernels: &[Kernel::native(|context| of_reference(context, Join::Max))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterNdMin",
        kernels: &[Kernel::native(|context| of_reference(context, Join::Min))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterUpdate",
        kernels: &[Kernel::native(|context| rows_of_reference(context, Join::Update))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterAdd",
        kernels: &[Kernel::native(|context| rows_of_reference(context, Join::Add))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterSub",
        kernels: &[Kernel::native(|context| rows_of_reference(context, Join::Sub))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterMul",
        kernels: &[Kernel::native(|context| rows_of_reference(context, Join::Mul))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterDiv",
        kernels: &[Kernel::native(|context| rows_of_reference(context, Join::Div))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterMax",
        kernels: &[Kernel::native(|context| rows_of_reference(context, Join::Max))],
        ..REFERENCE
    },
    &Op {
        name: "ScatterMin",
        kernels: &[Kernel::native(|context| rows_of_reference(context, Join::Min))],
        ..REFERENCE
    },
];

/// Changes a variable's value at `indices`; updates have their shape without the last axis, then the slices'.
/// A vector of indices is a column.
fn scatter(attrs: &Attrs, value: &mut Tensor, indices: &Tensor, updates: &Tensor, join: Join) -> Result<()> {
    let indices = &match indices.dims() {
        [count] => indices.reshape(Shape::new(&[*count, 1])?)?,
        _ => indices.clone(),
    };
    let depth = indices.dims().last().copied().unwrap_or(0);
    ensure!(
        indices.rank() > 0 && depth <= value.rank() as i64,
        InvalidArgument,
        "The last dimension of indices must be at most the variable's rank, got shapes {} and {}",
        indices.shape(),
        value.shape()
    );
    let outer = &indices.dims()[..indices.rank() - 1];
    let expected = [outer, &value.dims()[depth as usize..]].concat();
    ensure!(
        updates.dims() == expected && updates.dtype() == value.dtype(),
        InvalidArgument,
        "updates of shape {} and type {} do not fit slices of shape {} and type {}",
        updates.shape(),
        updates.dtype(),
        Shape::new(&expected)?,
        value.dtype()
    );
    scatter_by_policy(attrs, value, indices, updates, join)
}

fn of_resource(context: &mut KernelContext, join: Join) -> Result<()> {
    let variable = context.resource::<Variable>(0)?;
    let (indices, updates) = (context.input(1)?, context.input(2)?);
    variable.update(|value| scatter(context.attrs(), value, indices, updates, join))
}

fn of_reference(context: &mut KernelContext, join: Join) -> Result<()> {
    let variable = context.ref_input(0)?.clone();
    let (indices, updates) = (context.input(1)?, context.input(2)?);
    variable.update(|value| scatter(context.attrs(), value, indices, updates, join))?;
    context.set_output_ref(0, variable);
    Ok(())
}

/// Rows at indices; a scalar update is meant for each of them.
fn rows_of_reference(context: &mut KernelContext, join: Join) -> Result<()> {
    let variable = context.ref_input(0)?.clone();
    let (indices, mut updates) = (context.input(1)?, context.input(2)?.clone());
    // One index is as a list of one.
    let outer = if indices.rank() == 0 { &[1] } else { indices.dims() };
    if indices.rank() == 0 && updates.rank() > 0 {
        updates = updates.reshape(Shape::new(&[&[1], updates.dims()].concat())?)?;
    }
    let indices = indices.reshape(Shape::new(&[outer, &[1]].concat())?)?;
    variable.update(|value| {
        ensure!(
            value.rank() > 0,
            InvalidArgument,
            "var must be at least 1-D: {}",
            value.shape()
        );
        if updates.rank() > 0 {
            return scatter(context.attrs(), value, &indices, &updates, join);
        }
        let wanted = Shape::new(&[outer, &value.dims()[1..]].concat())?;
        let updates = crate::movement::broadcast(&updates, wanted)?;
        scatter(context.attrs(), value, &indices, &updates, join)
    })?;
    context.set_output_ref(0, variable);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use ff_op::{Attrs, Value};
    use ff_tensor::{Code, DataType, PartialShape, Tensor};

    #[test]
    fn slices_of_both_kinds_of_variables() {
        let runner = OpRunner::new();
        let attrs = Attrs::new()
            .with("dtype", DataType::INT32)
            .with("shape", PartialShape::new(&[3]));
        let handle = runner.run("VarHandleOp", &[], attrs.clone()).unwrap().remove(0);
        runner
            .run(
                "AssignVariableOp",
                &[handle.clone(), vector(&[1, 2, 3])],
                Attrs::new(),
            )
            .unwrap();
        let add = |indices: Tensor, updates: Tensor| {
            runner.run(
                "ResourceScatterNdAdd",
                &[handle.clone(), indices, updates],
                Attrs::new(),
            )
        };
        add(t(&[2, 1], &[2, 0]), vector(&[10, 20])).unwrap();
        assert_eq!(
            code(add(t(&[1, 1], &[3]), vector(&[1]))),
            Some(Code::InvalidArgument)
        );
        assert_eq!(
            code(add(t(&[1, 1], &[0]), vector(&[1, 2]))),
            Some(Code::InvalidArgument)
        );
        let value = runner
            .run(
                "ReadVariableOp",
                &[handle],
                Attrs::new().with("dtype", DataType::INT32),
            )
            .unwrap();
        assert_eq!(value[0].as_slice::<i32>().unwrap(), [21, 2, 13]);

        let variable = runner.run_named("VariableV2", "v", &[], attrs).unwrap().remove(0);
        let inputs = [variable.clone(), Value::Tensor(vector(&[1, 2, 3]))];
        runner
            .run_named("Assign", "assign", &inputs, Attrs::new())
            .unwrap();
        let change = |op: &str, indices: Tensor, updates: Tensor| {
            let inputs = [variable.clone(), indices.into(), updates.into()];
            let output = runner.run_named(op, op, &inputs, Attrs::new())?.remove(0);
            tensor_of(output)
        };
        let values = |tensor: Tensor| tensor.as_slice::<i32>().unwrap().to_vec();
        assert_eq!(
            values(change("ScatterMul", vector(&[0, 2]), vector(&[5, 2])).unwrap()),
            [5, 2, 6]
        );
        assert_eq!(
            values(change("ScatterUpdate", vector(&[1]), scalar(9)).unwrap()),
            [5, 9, 6]
        );
        assert_eq!(
            values(change("ScatterNdSub", t(&[1, 1], &[1]), vector(&[4])).unwrap()),
            [5, 5, 6]
        );
        assert_eq!(
            code(change("ScatterAdd", vector(&[7]), vector(&[1]))),
            Some(Code::InvalidArgument)
        );
    }
}
