//! A body in HLO, simplified and fused.

use crate::source::Source;
use ff_graph::FunctionBody;
use ff_hlo::passes::pipeline;
use ff_hlo::{ArrayShape, Builder, Module, Program};
use ff_runtime::Functions;
use ff_tensor::{Result, Shape};

/// The module of a body for inputs of these shapes. Its result is a tuple of the outputs.
///
/// UNIMPLEMENTED, naming the node, for what has no lowering; naming the instruction, for what no kernel runs.
pub(crate) fn lower(source: &Source, body: &FunctionBody, shapes: &[Shape], name: &str) -> Result<Module> {
    let functions = {
        let graph = source.graph.lock();
        Functions::new(graph.registry().clone(), graph.functions().clone())
    };
    let mut builder = Builder::new(name);
    let mut arguments = Vec::with_capacity(shapes.len());
    for (index, (input, shape)) in source.inputs.iter().zip(shapes).enumerate() {
        let array = ArrayShape::new(input.dtype, shape.dims());
        arguments.push(builder.parameter(index, array, "")?);
    }
    let results = body
        .lower(&mut builder, &arguments, &functions)
        .map_err(|error| error.prefixed("The model cannot be compiled: "))?;
    let root = builder.tuple(&results)?;
    let mut module = builder.finish(root)?;
    pipeline::prepare(&mut module)?;
    // What the runtime would refuse is refused here.
    Program::compile(&module).map_err(|error| error.prefixed("The model cannot be compiled: "))?;
    Ok(module)
}
