//! A few small ops for the tests of this crate, which cannot see the op library.

use crate::{Graph, NodeBuilder, NodeId};
use ff_op::{
    Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, Registry, ShapeContext, shapes,
};
use ff_proto::{GraphDef, text};
use ff_tensor::{DataType, PartialShape, Result, Tensor};
use std::sync::Arc;

const OP: Op = Op::PURE;

static OPS: &[&Op] = &[
    &Op {
        name: "Placeholder",
        shape: shapes::from_shape_attr,
        ..OP
    },
    &Op {
        name: "Const",
        shape: constant_shape,
        ..OP
    },
    &Op {
        name: "NoOp",
        shape: shapes::none,
        ..Op::WRITES
    },
    &Op {
        name: "Identity",
        shape: shapes::unchanged,
        gradient: Gradient::Fn(pass_on),
        kernels: &[Kernel::native(pass)],
        ..OP
    },
    &Op {
        name: "AddV2",
        shape: shapes::broadcast_binary,
        kernels: &[Kernel::native(add)],
        gradient: Gradient::Fn(pass_both),
        ..OP
    },
    &Op {
        name: "AddN",
        shape: shapes::merged,
        ..OP
    },
    &Op {
        name: "Mul",
        shape: shapes::broadcast_binary,
        kernels: &[Kernel::native(mul)],
        gradient: Gradient::Fn(mul_gradient),
        ..OP
    },
    &Op {
        name: "MatMul",
        shape: matmul_shape,
        ..OP
    },
    &Op {
        name: "ZerosLike",
        shape: shapes::unchanged,
        ..OP
    },
    &Op {
        name: "OnesLike",
        shape: shapes::unchanged,
        ..OP
    },
    &Op {
        name: "Floor",
        shape: shapes::unchanged,
        gradient: Gradient::NotDifferentiable,
        ..OP
    },
    &Op {
        name: "Sqrt",
        shape: shapes::unchanged,
        ..OP
    },
    &Op {
        name: "Reshape",
        shape: reshape_shape,
        ..OP
    },
    &Op {
        name: "Shape",
        shape: shape_shape,
        ..OP
    },
    &Op { name: "Pack", ..OP },
    &Op {
        name: "PartitionedCall",
        shape: call_shape,
        gradient: Gradient::Fn(call_gradient),
        ..OP
    },
];

/// A graph over the small ops.
pub fn graph() -> Graph {
    Graph::new(Arc::new(Registry::new(&[OPS])))
}

/// The first output of a node.
pub fn output(node: NodeId) -> OutputRef {
    OutputRef { node, index: 0 }
}

/// Adds a float placeholder.
pub fn placeholder(graph: &mut Graph, name: &str, dims: &[i64]) -> OutputRef {
    let node = NodeBuilder::new("Placeholder", name)
        .attr("dtype", DataType::FLOAT)
        .attr("shape", PartialShape::new(dims));
    output(node.finish(graph).unwrap())
}

/// Adds a node of single inputs.
pub fn add_op(graph: &mut Graph, op: &str, name: &str, inputs: &[OutputRef]) -> OutputRef {
    let node = inputs
        .iter()
        .fold(NodeBuilder::new(op, name), |node, input| node.input(*input));
    output(node.finish(graph).unwrap())
}

/// Adds a constant.
pub fn constant(graph: &mut Graph, name: &str, value: Tensor) -> OutputRef {
    let node = NodeBuilder::new("Const", name)
        .attr("dtype", value.dtype())
        .attr("value", value);
    output(node.finish(graph).unwrap())
}

/// A GraphDef from its text form.
pub fn graph_def(message: &str) -> GraphDef {
    text::parse(message).unwrap()
}

fn constant_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = context.attrs().tensor("value")?.partial_shape();
    context.set_output(0, shape);
    Ok(())
}

fn matmul_shape(context: &mut ShapeContext) -> Result<()> {
    let (a, b) = (context.input_with_rank(0, 2)?, context.input_with_rank(1, 2)?);
    ff_tensor::dim::merge(a.dim(1), b.dim(0))?;
    context.set_output(0, PartialShape::new(&[a.dim(0), b.dim(1)]));
    Ok(())
}

fn reshape_shape(context: &mut ShapeContext) -> Result<()> {
    let shape = context.input_as_shape(1)?;
    context.set_output(0, shape);
    Ok(())
}

fn shape_shape(context: &mut ShapeContext) -> Result<()> {
    let rank = context.input(0).rank().map_or(-1, |rank| rank as i64);
    context.set_output(0, PartialShape::new(&[rank]));
    Ok(())
}

fn call_shape(context: &mut ShapeContext) -> Result<()> {
    let function = context.attrs().func("f")?.clone();
    let Some(functions) = context.functions() else {
        return Ok(());
    };
    let (shapes, _) = functions.infer(&function, context.inputs(), &[])?;
    for (index, shape) in shapes.into_iter().enumerate() {
        context.set_output(index, shape);
    }
    Ok(())
}

fn pass(context: &mut KernelContext) -> Result<()> {
    let value = context.take_input(0)?;
    context.set_output(0, value)
}

fn zip(context: &mut KernelContext, f: fn(f32, f32) -> f32) -> Result<()> {
    let (a, b) = (context.input_slice::<f32>(0)?, context.input_slice::<f32>(1)?);
    let values: Vec<f32> = a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect();
    let value = Tensor::from_slice(context.input(0)?.shape().clone(), &values)?;
    context.set_output(0, value)
}

fn add(context: &mut KernelContext) -> Result<()> {
    zip(context, |a, b| a + b)
}

fn mul(context: &mut KernelContext) -> Result<()> {
    zip(context, |a, b| a * b)
}

fn pass_on(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    context.set(0, gradient);
    Ok(())
}

fn pass_both(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    context.set(0, gradient);
    context.set(1, gradient);
    Ok(())
}

fn mul_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    let (a, b) = (context.input(0)?, context.input(1)?);
    let da = context.op("Mul", &[gradient, b], Default::default())?;
    let db = context.op("Mul", &[a, gradient], Default::default())?;
    context.set(0, da);
    context.set(1, db);
    Ok(())
}

fn call_gradient(context: &mut GradientContext) -> Result<()> {
    let function = context.attrs().func("f")?.clone();
    context.host.differentiate(&function).map(|_| ())
}
