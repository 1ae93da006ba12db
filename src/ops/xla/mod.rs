//! The ops that say an instruction of XLA outright, as graphs exported from JAX hold them: each lowers to that instruction.
//!
//! Axes come as messages of `xla_data.proto` in string attributes, and what is folded, scattered or compared by as
//! functions of scalars. Sizes that the reference wants as constants may be any values here, except within clusters.

mod contraction;
mod fold;
mod movement;
mod number;
mod sort;

use ff_hlo::{ArrayShape, ComputationId, Op as HloOp};
use ff_op::{LowerContext, Op};
use ff_proto::Message;
use ff_tensor::{DataType, PartialShape, Result, ensure, status};

/// The lists of this folder's files.
pub static OPS: &[&[&Op]] = &[contraction::OPS, fold::OPS, movement::OPS, number::OPS, sort::OPS];

/// A message that a string attribute holds. INVALID_ARGUMENT when the bytes are none.
fn message<M: Message + Default>(attrs: &ff_op::Attrs, name: &str) -> Result<M> {
    let bytes = attrs.bytes(name)?;
    M::decode(bytes).map_err(|error| status!(InvalidArgument, "Failed to parse {name}: {error}"))
}

/// A shape of this rank with unknown extents.
fn of_rank(rank: usize) -> PartialShape {
    PartialShape::new(&vec![-1; rank])
}

/// The function of an attribute as a computation of scalars of these types, with `results` results: a tuple unless one.
fn computation(
    context: &mut LowerContext,
    name: &str,
    types: &[DataType],
    results: usize,
) -> Result<ComputationId> {
    let function = context.attrs().func(name)?.clone();
    let functions = context.functions()?;
    context.builder.computation(function.name.as_str(), |builder| {
        let mut arguments = Vec::with_capacity(types.len());
        for (index, &dtype) in types.iter().enumerate() {
            arguments.push(builder.parameter(index, ArrayShape::scalar(dtype), "argument")?);
        }
        let values = functions.lower(&function, builder, &arguments)?;
        ensure!(
            values.len() == results,
            InvalidArgument,
            "The function {} gives {} values, expected {results}",
            function.name,
            values.len()
        );
        match values[..] {
            [value] => Ok(value),
            _ => builder.tuple(&values),
        }
    })
}

/// Sets the outputs to the elements of a tuple, or the only one to an array.
fn set_results(context: &mut LowerContext, result: HloOp) -> Result<()> {
    if let [_] = context.node().output_types[..] {
        context.set_output(0, result);
        return Ok(());
    }
    for (index, element) in context.builder.tuple_elements(result)?.into_iter().enumerate() {
        context.set_output(index, element);
    }
    Ok(())
}

/// The types of inputs `from..to`, as they are in HLO.
fn input_types(context: &LowerContext, from: usize, to: usize) -> Result<Vec<DataType>> {
    (from..to)
        .map(|index| Ok(context.builder.dtype(context.input(index)?)))
        .collect()
}
