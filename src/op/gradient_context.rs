//! What a gradient sees: the forward node, gradients of its outputs, and a way to add nodes and functions.

use crate::{Attrs, FunctionRef, NodeInfo};
use ff_proto::FunctionDef;
use ff_tensor::{DataType, PartialShape, Result, Tensor, status};
use std::sync::Arc;

/// An output of a node in the graph that is being differentiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputRef {
    /// The node's number in its graph.
    pub node: u32,
    /// Which of its outputs.
    pub index: u32,
}

/// The graph in which gradients are built. Nodes are numbers; forward nodes keep theirs.
pub trait GradientHost {
    /// Adds a node; its name starts with the gradient scope and `hint`. Attributes that follow from the inputs or
    /// have a default may be left out ([`Attrs::complete`]).
    fn add_node(&mut self, op: &str, hint: &str, inputs: &[OutputRef], attrs: Attrs) -> Result<u32>;

    /// A node as its op sees it.
    fn node(&self, node: u32) -> Arc<NodeInfo>;

    /// The inputs of a node.
    fn inputs(&self, node: u32) -> Vec<OutputRef>;

    /// The shape of an output, as far as known.
    fn shape(&self, output: OutputRef) -> PartialShape;

    /// A function of the library. NOT_FOUND when there is none.
    fn function(&self, name: &str) -> Result<Arc<FunctionDef>>;

    /// Adds a function under a new name that starts with `hint`; gives the name.
    fn add_function(&mut self, hint: &str, function: FunctionDef) -> Result<String>;

    /// Makes the gradient function of a function: arguments are those of the forward function that the gradient
    /// needs and the gradients of its results; results are gradients of its arguments. Adds to the forward
    /// function the results that the gradient needs. Gives both names, and how many results were added.
    fn differentiate(&mut self, function: &FunctionRef) -> Result<Differentiated>;

    /// Replaces a forward node by one with these attributes and more outputs. The node keeps its number and name,
    /// and every reader of its first outputs.
    fn replace_node(&mut self, node: u32, op: &str, inputs: &[OutputRef], attrs: Attrs) -> Result<()>;
}

/// A function and its gradient; see [`GradientHost::differentiate`].
#[derive(Clone, Debug)]
pub struct Differentiated {
    /// The forward function with added results.
    pub forward: String,
    /// Types of the added results.
    pub added: Vec<DataType>,
    /// The gradient function: arguments are the added results, then a gradient for each result in `results`.
    pub gradient: String,
    /// The results of the forward function, by number, that a gradient comes in for: those of floating types.
    pub results: Vec<usize>,
    /// The arguments of the forward function, by number, that the gradient function's results belong to, in their order.
    /// Nothing flows to the others.
    pub arguments: Vec<usize>,
}

/// The view that a gradient function has.
pub struct GradientContext<'a> {
    /// The graph.
    pub host: &'a mut dyn GradientHost,
    node: u32,
    info: Arc<NodeInfo>,
    inputs: Vec<OutputRef>,
    incoming: Vec<Option<OutputRef>>,
    outgoing: Vec<Option<OutputRef>>,
}

impl<'a> GradientContext<'a> {
    /// A context for a forward node; `incoming` has one entry per output.
    pub fn new(
        host: &'a mut dyn GradientHost,
        node: u32,
        incoming: Vec<Option<OutputRef>>,
    ) -> GradientContext<'a> {
        let (info, inputs) = (host.node(node), host.inputs(node));
        let outgoing = vec![None; inputs.len()];
        GradientContext {
            host,
            node,
            info,
            inputs,
            incoming,
            outgoing,
        }
    }

    /// The forward node's number.
    pub fn node_number(&self) -> u32 {
        self.node
    }

    /// The forward node.
    pub fn node(&self) -> &NodeInfo {
        &self.info
    }

    /// The forward node's attributes.
    pub fn attrs(&self) -> &Attrs {
        &self.info.attrs
    }

    /// Number of inputs of the forward node.
    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// An input of the forward node. INTERNAL when there is none.
    pub fn input(&self, index: usize) -> Result<OutputRef> {
        self.inputs
            .get(index)
            .copied()
            .ok_or_else(|| status!(Internal, "{} has no input {index}", self.info.describe()))
    }

    /// An output of the forward node.
    pub fn output(&self, index: usize) -> OutputRef {
        OutputRef {
            node: self.node,
            index: index as u32,
        }
    }

    /// The gradient that comes in for an output, if any.
    pub fn incoming(&self, index: usize) -> Option<OutputRef> {
        self.incoming.get(index).copied().flatten()
    }

    /// The gradient that comes in for an output; zeros when none does.
    pub fn incoming_or_zeros(&mut self, index: usize) -> Result<OutputRef> {
        match self.incoming(index) {
            Some(gradient) => Ok(gradient),
            None => {
                let (output, dtype) = (self.output(index), self.info.output_types[index].base());
                self.op("ZerosLike", &[output], Attrs::new().with("T", dtype))
            }
        }
    }

    /// Element type of an output.
    pub fn dtype(&self, output: OutputRef) -> DataType {
        self.host.node(output.node).output_types[output.index as usize].base()
    }

    /// Adds a node with one output and gives that output.
    pub fn op(&mut self, op: &str, inputs: &[OutputRef], attrs: Attrs) -> Result<OutputRef> {
        Ok(OutputRef {
            node: self.host.add_node(op, op, inputs, attrs)?,
            index: 0,
        })
    }

    /// Adds a node with any number of outputs and gives its number.
    pub fn node_of(&mut self, op: &str, inputs: &[OutputRef], attrs: Attrs) -> Result<u32> {
        self.host.add_node(op, op, inputs, attrs)
    }

    /// Element type of an input of the forward node.
    pub fn input_type(&self, index: usize) -> DataType {
        self.info
            .input_types
            .get(index)
            .map_or(DataType::INVALID, |dtype| dtype.base())
    }

    /// Adds an int32 scalar.
    pub fn int32(&mut self, value: i32) -> Result<OutputRef> {
        self.constant(Tensor::scalar(value)?)
    }

    /// Adds an int32 vector.
    pub fn int32s(&mut self, values: &[i32]) -> Result<OutputRef> {
        self.constant(Tensor::vector(values)?)
    }

    /// Adds a constant.
    pub fn constant(&mut self, value: Tensor) -> Result<OutputRef> {
        let dtype = value.dtype();
        self.op(
            "Const",
            &[],
            Attrs::new().with("dtype", dtype).with("value", value),
        )
    }

    /// Sets the gradient of an input.
    pub fn set(&mut self, index: usize, gradient: OutputRef) {
        self.outgoing[index] = Some(gradient);
    }

    /// One entry per input: its gradient, if any.
    pub fn finish(self) -> Vec<Option<OutputRef>> {
        self.outgoing
    }
}
