//! Reference variables: the variable itself travels along the edge.

use crate::math::number::Number;
use ff_kernels::elementwise::{binary_in_place, cost};
use ff_op::{Gradient, Kernel, KernelContext, Op, RefVariable, ShapeContext, shapes};
use ff_tensor::{Bool, Result, Tensor, ensure};

static VARIABLE_V2: Op = Op {
    name: "VariableV2",
    shape: shapes::from_shape_attr,
    kernels: &[Kernel::native(find)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};
static VARIABLE: Op = Op {
    name: "Variable",
    ..VARIABLE_V2
};
static IS_INITIALIZED: Op = Op {
    name: "IsVariableInitialized",
    shape: shapes::scalar,
    kernels: &[Kernel::native(|context| {
        let initialized = context.ref_input(0)?.is_initialized();
        context.set_output(0, Tensor::scalar(Bool::from(initialized))?)
    })],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};
static ASSIGN: Op = Op {
    name: "Assign",
    shape: assign_shape,
    kernels: &[Kernel::native(assign)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static ASSIGN_ADD: Op = Op {
    name: "AssignAdd",
    shape: update_shape,
    kernels: &[Kernel::native(|context| update(context, false))],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static ASSIGN_SUB: Op = Op {
    name: "AssignSub",
    kernels: &[Kernel::native(|context| update(context, true))],
    ..ASSIGN_ADD
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &VARIABLE_V2,
    &VARIABLE,
    &IS_INITIALIZED,
    &ASSIGN,
    &ASSIGN_ADD,
    &ASSIGN_SUB,
];

/// The variable by container and name, made on first use. INTERNAL when one of another type has the name.
fn find(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let shared = attrs.string("shared_name")?;
    let name = if shared.is_empty() {
        context.node().name.as_str()
    } else {
        shared
    };
    let dtype = attrs.dtype("dtype")?;
    let container = attrs.string("container")?;
    let make = || Ok(RefVariable::new(name, dtype));
    let found = context.resources().find_or_create(container, name, make)?;
    ensure!(
        found.dtype == dtype,
        Internal,
        "Output 0 of type {}_ref does not match declared output type {dtype}_ref for node {}",
        found.dtype,
        context.node().describe()
    );
    context.set_output_ref(0, found);
    Ok(())
}

fn assign_shape(context: &mut ShapeContext) -> Result<()> {
    let value = context.input(1);
    let shape = if context.attrs().bool("validate_shape")? {
        context.input(0).merge(&value)?
    } else {
        value
    };
    context.set_output(0, shape);
    Ok(())
}

fn assign(context: &mut KernelContext) -> Result<()> {
    let variable = context.ref_input(0)?.clone();
    let value = context.take_input(1)?;
    if context.attrs().bool("validate_shape")?
        && let Ok(old) = variable.read()
    {
        ensure!(
            old.shape() == value.shape(),
            InvalidArgument,
            "Assign requires shapes of both tensors to match. lhs shape= {} rhs shape= {}",
            old.shape(),
            value.shape()
        );
    }
    variable.assign(value)?;
    context.set_output_ref(0, variable);
    Ok(())
}

fn update_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = context.input(0).merge(&context.input(1))?;
    context.set_output(0, shape);
    Ok(())
}

fn update(context: &mut KernelContext, subtract: bool) -> Result<()> {
    let variable = context.ref_input(0)?.clone();
    let delta = context.input(1)?;
    variable.update(|value| {
        ensure!(
            value.shape() == delta.shape(),
            InvalidArgument,
            "Update requires shapes of both tensors to match. lhs shape= {} rhs shape= {}",
            value.shape(),
            delta.shape()
        );
        value.make_writable()?;
        crate::match_number!(value.dtype(), T => {
            let rule = |a: T, b: T| if subtract { a.sub(b) } else { a.add(b) };
            binary_in_place(context.pool(), value.as_mut_slice()?, delta.as_slice()?, cost::SIMPLE, rule);
            Ok(())
        })
    })?;
    context.set_output_ref(0, variable);
    Ok(())
}
