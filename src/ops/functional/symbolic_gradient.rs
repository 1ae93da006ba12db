//! The gradient of a function as an op: inputs are the function's arguments and a gradient for each of its results, outputs
//! are gradients of the arguments.

use super::call::{arguments, instantiate, set_results};
use ff_op::{Attrs, FunctionRef, Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Result, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "SymbolicGradient",
    shape,
    kernels: &[Kernel::native(run)],
    gradient: Gradient::Missing,
    ..Op::PURE
}];

/// Each output has the shape of the argument that it is the gradient of.
fn shape(context: &mut ShapeContext) -> Result<()> {
    for index in 0..context.num_outputs() {
        context.set_output(index, context.input(index));
    }
    Ok(())
}

fn run(context: &mut KernelContext) -> Result<()> {
    let gradient = FunctionRef {
        name: "SymbolicGradient".to_string(),
        attrs: Attrs::new().with("f", context.attrs().func("f")?.clone()),
    };
    let gradient = instantiate(context, &gradient)?;
    let arguments = arguments(context, 0)?;
    let results = gradient.run(context.host(), arguments)?;
    ensure!(
        results.len() == context.num_outputs(),
        InvalidArgument,
        "SymGrad expects to return {} tensor(s), but get {} tensor(s) instead.",
        context.num_outputs(),
        results.len()
    );
    set_results(context, results)
}
