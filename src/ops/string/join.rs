//! `StringJoin`: the strings of several tensors, one after the other.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, TString, Tensor, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "StringJoin",
    shape,
    kernels: &[Kernel::native(join)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

/// Scalars go with every element of the others, which have one shape.
fn shape(context: &mut ShapeContext) -> Result<()> {
    let inputs = context.inputs();
    let mut shape = PartialShape::unknown();
    if inputs.iter().all(|input| input.rank() == Some(0)) {
        shape = PartialShape::scalar();
    }
    for input in inputs {
        if !matches!(input.rank(), None | Some(0)) {
            shape = shape.merge(input)?;
        }
    }
    context.set_output(0, shape);
    Ok(())
}

fn join(context: &mut KernelContext) -> Result<()> {
    let separator = context.attrs().bytes("separator")?;
    let inputs = context.input_tensors(0..context.num_inputs())?;
    let mut shape = Shape::scalar();
    for input in &inputs {
        ensure!(
            input.rank() == 0 || shape.rank() == 0 || shape == *input.shape(),
            InvalidArgument,
            "Input shapes do not match: {shape} vs. {}",
            input.shape()
        );
        if input.rank() > 0 {
            shape = input.shape().clone();
        }
    }
    let lists = inputs
        .iter()
        .map(|input| input.strings())
        .collect::<Result<Vec<_>>>()?;
    let joined = |index: usize| -> Result<TString> {
        let at = |list: &&[TString]| if list.len() == 1 { 0 } else { index };
        let mut parts: Vec<&[u8]> = Vec::with_capacity(2 * lists.len());
        for list in &lists {
            if !parts.is_empty() {
                parts.push(separator);
            }
            parts.push(list[at(list)].as_bytes());
        }
        TString::concatenated(&parts)
    };
    let mut strings = crate::wide::reserved(shape.num_elements())?;
    for index in 0..shape.num_elements() {
        strings.push(joined(index)?);
    }
    let output = Tensor::from_strings(shape, strings)?;
    context.set_output(0, output)
}

crate::op_cases! {
    nothing: Case::op("StringJoin").attr("N", 0i64).gives(strings(&[], &[""]));
    scalar_and_vector: Case::op("StringJoin").attr("separator", "-").input(strings(&[], &["a"]))
        .input(strings(&[2], &["b", "c"])).gives(strings(&[2], &["a-b", "a-c"]));
    one: Case::op("StringJoin").attr("separator", "-").input(strings(&[1], &["a"])).gives(strings(&[1], &["a"]));
    empty: Case::op("StringJoin").input(strings(&[0], &[])).input(strings(&[], &["a"])).gives(strings(&[0], &[]));
    shapes_differ: Case::op("StringJoin").input(strings(&[1], &["a"])).input(strings(&[2], &["b", "c"]))
        .fails(Code::InvalidArgument);
}
