//! A function while it is traced: a graph of its own, its parameters, and the numbers that make its nodes' names unique.

use crate::TF_Status;
use crate::ffi::{Array, Text, c_count, c_string};
use crate::function::{TF_Function, TF_GraphToFunction};
use crate::graph::{GraphState, TF_Graph};
use crate::operation::TF_Output;
use ff_graph::NodeBuilder;
use ff_op::OutputRef;
use ff_tensor::{DataType, PartialShape, Result, status};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function while it is traced.
pub struct Tracing {
    name: String,
    state: Arc<GraphState>,
    parameters: Mutex<Vec<OutputRef>>,
    /// How many nodes have been named.
    named: AtomicUsize,
}

/// An output of a node of a function while that is traced.
#[derive(Clone)]
pub struct Traced {
    /// The function.
    pub tracing: Arc<Tracing>,
    /// The output.
    pub output: OutputRef,
}

impl Tracing {
    /// A function of this name without nodes.
    pub fn new(name: &str) -> Tracing {
        Tracing {
            name: name.to_string(),
            state: GraphState::new(),
            parameters: Mutex::default(),
            named: AtomicUsize::new(0),
        }
    }

    /// A node to be given inputs and attributes, under a name that no other has.
    pub fn node(&self, op_type: &str, name: &str) -> NodeBuilder {
        let number = self.named.fetch_add(1, Ordering::Relaxed);
        NodeBuilder::new(op_type.to_string(), format!("{name}/_{number}"))
    }

    /// Adds a node; gives its outputs.
    pub fn add(tracing: &Arc<Tracing>, builder: NodeBuilder) -> Result<Vec<Traced>> {
        let mut graph = tracing.state.lock();
        let node = builder.finish(&mut graph)?;
        let count = graph.node(node).info.output_types.len();
        let output = |index| Traced {
            tracing: tracing.clone(),
            output: OutputRef { node, index },
        };
        Ok((0..count as u32).map(output).collect())
    }

    /// Adds a parameter after those before.
    pub fn add_parameter(tracing: &Arc<Tracing>, dtype: DataType, shape: PartialShape) -> Result<Traced> {
        let number = tracing.parameters.lock().len();
        let mut builder = tracing.node("Placeholder", &format!("_input_{number}"));
        builder.set_attr("dtype", dtype);
        if shape.rank().is_some() {
            builder.set_attr("shape", shape);
        }
        let parameter = Tracing::add(tracing, builder)?.pop();
        let parameter = parameter.ok_or_else(|| status!(Internal, "a parameter has no output"))?;
        tracing.parameters.lock().push(parameter.output);
        Ok(parameter)
    }

    /// The function with these outputs.
    pub fn finalize(&self, results: &[Traced]) -> Result<Box<TF_Function>> {
        let handle = |output: &OutputRef| self.state.output(*output);
        let inputs: Vec<TF_Output> = self.parameters.lock().iter().map(handle).collect();
        let outputs: Vec<TF_Output> = results
            .iter()
            .map(|result| result.tracing.state.output(result.output))
            .collect();
        let graph = TF_Graph {
            state: self.state.clone(),
            parent: None,
        };
        let (name, mut status) = (c_string(&self.name), TF_Status::default());
        let function = TF_GraphToFunction(
            Some(&graph),
            Text::new(&name),
            0,
            -1,
            Array::new(&[]),
            c_count(inputs.len()),
            Array::new(&inputs),
            c_count(outputs.len()),
            Array::new(&outputs),
            Array::NULL,
            None,
            Text::new(&name),
            Some(&mut status),
        );
        match status.error() {
            Some(error) => Err(error.clone()),
            None => function.ok_or_else(|| status!(Internal, "a function could not be made")),
        }
    }
}
