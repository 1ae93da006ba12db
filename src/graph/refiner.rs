//! Shape inference over a graph: runs an op's shape function with what the graph knows.

use crate::functions::LibraryHost;
use crate::values::{constant_value, value_as_shape};
use crate::{Graph, NodeId};
use ff_op::{FunctionHost, HandleShapes, OutputRef, ShapeContext, ShapeHost};
use ff_tensor::{Code, PartialShape, Result, Status, Tensor, status};

impl Graph {
    /// Infers the shapes of a node's outputs from its inputs. INVALID_ARGUMENT when the inputs do not fit the op.
    pub fn infer_shapes(&mut self, id: NodeId) -> Result<()> {
        let node = self.node(id);
        let shapes: Vec<PartialShape> = node
            .inputs
            .iter()
            .map(|input| self.output_shape(*input))
            .collect();
        let library = LibraryHost::new(self.registry(), self.functions());
        let host = GraphShapes {
            graph: self,
            inputs: &node.inputs,
            library: &library,
        };
        let info = node.info.clone();
        let mut context = ShapeContext::new(&info, &shapes, &host);
        (info.op.shape)(&mut context).map_err(|error| explain(error, &info, &shapes))?;
        let (outputs, handles) = context.finish();
        self.set_shapes(id, outputs, handles);
        Ok(())
    }

    /// Says more about an output's shape. INVALID_ARGUMENT when it contradicts what is known.
    pub fn refine_shape(&mut self, output: OutputRef, shape: &PartialShape) -> Result<()> {
        self.output_type(output)?;
        let merged = self.output_shape(output).merge(shape)?;
        self.set_shape(output, merged);
        Ok(())
    }
}

/// The error with the node and its input shapes, unless it has them.
fn explain(error: Status, info: &ff_op::NodeInfo, shapes: &[PartialShape]) -> Status {
    if error.message().contains("with input shapes:") || error.code() != Code::InvalidArgument {
        return error;
    }
    let list: Vec<String> = shapes.iter().map(|shape| shape.to_string()).collect();
    error.suffixed(&format!(
        " for '{}' (op: '{}') with input shapes: {}.",
        info.describe(),
        info.op_name(),
        list.join(", ")
    ))
}

/// Answers a shape function's questions from the graph.
struct GraphShapes<'a> {
    graph: &'a Graph,
    inputs: &'a [OutputRef],
    library: &'a LibraryHost<'a>,
}

impl ShapeHost for GraphShapes<'_> {
    fn input_value(&self, index: usize) -> Option<Tensor> {
        constant_value(self.graph, *self.inputs.get(index)?)
    }

    fn input_as_shape(&self, index: usize) -> Result<PartialShape> {
        let input = self
            .inputs
            .get(index)
            .ok_or_else(|| status!(Internal, "no input {index}"))?;
        value_as_shape(self.graph, *input)
    }

    fn input_handle(&self, index: usize) -> Option<HandleShapes> {
        let input = self.inputs.get(index)?;
        self.graph
            .get(input.node)?
            .handles
            .get(input.index as usize)?
            .clone()
    }

    fn functions(&self) -> Option<&dyn FunctionHost> {
        Some(self.library)
    }
}
