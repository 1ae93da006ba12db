//! Values from outside: constants, placeholders, arguments and results of functions, and the op that does nothing.

use ff_op::{Gradient, Kernel, KernelContext, Op, PrepareContext, Prepared, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, Tensor, bail};
use std::sync::Arc;

static CONST: Op = Op {
    name: "Const",
    shape: const_shape,
    prepare: Some(|context: &PrepareContext| {
        let value: Prepared = Arc::new(context.node.attrs.tensor("value")?.clone());
        Ok(value)
    }),
    kernels: &[Kernel::native(|context| {
        let value = context.prepared::<Tensor>()?.clone();
        context.set_output(0, value)
    })],
    lower: Some(|context| {
        let value = context.attrs().tensor("value")?.clone();
        let constant = context.builder.constant(value)?;
        context.set_output(0, constant);
        Ok(())
    }),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
static HOST_CONST: Op = Op {
    name: "HostConst",
    ..CONST
};
static PLACEHOLDER: Op = Op {
    name: "Placeholder",
    shape: placeholder_shape,
    kernels: &[Kernel::native(not_fed)],
    gradient: Gradient::NotDifferentiable,
    ..Op::READS
};
static PLACEHOLDER_V2: Op = Op {
    name: "PlaceholderV2",
    ..PLACEHOLDER
};
static PLACEHOLDER_WITH_DEFAULT: Op = Op {
    name: "PlaceholderWithDefault",
    shape: default_shape,
    kernels: &[Kernel::native(|context| {
        let value = context.take_input(0)?;
        context.set_output(0, value)
    })],
    lower: Some(crate::lowering::identity),
    gradient: Gradient::Fn(|context| {
        let incoming = context.incoming_or_zeros(0)?;
        context.set(0, incoming);
        Ok(())
    }),
    ..Op::READS
};
static ARG: Op = Op {
    name: "_Arg",
    shape: unchanged_attr,
    kernels: &[Kernel::native(not_fed)],
    ..PLACEHOLDER
};
static RETVAL: Op = Op {
    name: "_Retval",
    shape: shapes::none,
    kernels: &[Kernel::native(|_| Ok(()))],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static NO_OP: Op = Op {
    name: "NoOp",
    shape: shapes::none,
    kernels: &[Kernel::native(|_| Ok(()))],
    lower: Some(|_| Ok(())),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &CONST,
    &HOST_CONST,
    &PLACEHOLDER,
    &PLACEHOLDER_V2,
    &PLACEHOLDER_WITH_DEFAULT,
    &ARG,
    &RETVAL,
    &NO_OP,
];

fn const_shape(context: &mut ShapeContext) -> Result<()> {
    let value = context.attrs().tensor("value")?;
    let dtype = context.attrs().dtype("dtype")?;
    ff_tensor::ensure!(
        value.dtype() == dtype,
        InvalidArgument,
        "Inconsistent dtype of constant: value is {}, attribute says {dtype}",
        value.dtype()
    );
    context.set_output(0, value.partial_shape());
    Ok(())
}

/// The attribute's shape. Graphs of old producers say an unknown shape by a scalar's.
fn placeholder_shape(context: &mut ShapeContext) -> Result<()> {
    shapes::from_shape_attr(context)
}

fn unchanged_attr(context: &mut ShapeContext) -> Result<()> {
    if let Ok([shape]) = context.attrs().shapes("_output_shapes") {
        context.set_output(0, shape.clone());
    }
    Ok(())
}

/// The declared shape, which the default must fit.
fn default_shape(context: &mut ShapeContext) -> Result<()> {
    let declared: PartialShape = context.attrs().shape("shape")?.clone();
    if context.in_step() {
        // What comes in is not compared with what was declared.
        return shapes::unchanged(context);
    }
    context.input(0).merge(&declared)?;
    context.set_output(0, declared);
    Ok(())
}

fn not_fed(context: &mut KernelContext) -> Result<()> {
    let node = context.node();
    let dtype = node.output_types[0];
    match node.attrs.shape("shape") {
        Ok(shape) if shape.rank().is_some_and(|rank| rank > 0) => bail!(
            InvalidArgument,
            "You must feed a value for placeholder tensor '{}' with dtype {dtype} and shape {shape}",
            node.name
        ),
        _ => bail!(
            InvalidArgument,
            "You must feed a value for placeholder tensor '{}' with dtype {dtype}",
            node.name
        ),
    }
}

crate::op_cases! {
    default: Case::op("PlaceholderWithDefault").input(scalar(2.5f64)).attr("shape", PartialShape::unknown())
        .gives(scalar(2.5f64));
    constant_of_strings: Case::op("Const").attr("dtype", DataType::STRING).attr("value", strings(&[2], &["", "x"]))
        .gives(strings(&[2], &["", "x"]));
    constant_of_host: Case::op("HostConst").attr("dtype", DataType::INT32).attr("value", vector(&[1, 2])).gives(vector(&[1, 2]));
    not_fed_at_all: Case::op("Placeholder").attr("dtype", DataType::FLOAT).attr("shape", PartialShape::unknown())
        .fails(Code::InvalidArgument);
}
