//! Shape inference over a graph: runs an op's shape function with what the graph knows.

use crate::values::{constant_value, value_as_shape};
use crate::{Graph, LibraryHost, NodeId, export, summary};
use ff_op::{FunctionHost, HandleShapes, OutputRef, ShapeContext, ShapeHost};
use ff_tensor::{PartialShape, Result, Status, Tensor, ensure, status};
use smallvec::SmallVec;

impl Graph {
    /// Infers the shapes of a node's outputs from its inputs. INVALID_ARGUMENT when the inputs do not fit the op.
    pub fn infer_shapes(&mut self, id: NodeId) -> Result<()> {
        let node = self.node(id);
        ensure!(
            node.info.op.has_shape_function || !self.requires_shape_functions,
            InvalidArgument,
            "No shape inference function exists for op '{}', did you forget to define it?",
            node.info.op_name()
        );
        let shapes: SmallVec<[PartialShape; 2]> = node
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
        let result = (info.op.shape)(&mut context);
        let read = (context.values_read(), context.shapes_read());
        result.map_err(|error| explain(error, self, id, &shapes, read, &host))?;
        let (outputs, handles) = context.finish();
        self.set_shapes(id, outputs, handles);
        Ok(())
    }

    /// Says more about an output's shape. INVALID_ARGUMENT when it contradicts what is known.
    pub fn refine_shape(&mut self, output: OutputRef, shape: &PartialShape) -> Result<()> {
        let info = &self.node(output.node).info;
        let outputs = info.output_types.len();
        ensure!(
            (output.index as usize) < outputs,
            InvalidArgument,
            "output_port '{}' is out of range, node '{}' has {outputs} outputs",
            output.index as i32,
            info.name
        );
        let merged = self.output_shape(output).merge(shape)?;
        self.set_shape(output, merged);
        Ok(())
    }
}

/// Elements printed of a value that a shape function asked for.
const MOST_PRINTED: usize = 256;

/// The error with the node, its input shapes, and what the shape function asked for: bits of the inputs whose values it
/// read, and of those that it read as shapes.
#[cold]
fn explain(
    error: Status,
    graph: &Graph,
    id: NodeId,
    shapes: &[PartialShape],
    read: (u64, u64),
    host: &GraphShapes,
) -> Status {
    let printed = |shape: &PartialShape| match shape.rank() {
        Some(_) => shape.to_string(),
        None => "?".to_string(),
    };
    let list: Vec<String> = shapes.iter().map(printed).collect();
    let mut text = format!(
        " for '{}' with input shapes: {}",
        describe(graph, id),
        list.join(", ")
    );
    let is_read = |bits: u64, index: usize| bits >> index.min(63) & 1 == 1;
    let (mut values, mut as_shapes) = (Vec::new(), Vec::new());
    for index in (0..shapes.len()).filter(|index| is_read(read.0, *index)) {
        let shape = is_read(read.1, index)
            .then(|| host.input_as_shape(index).ok())
            .flatten();
        if let Some(shape) = shape.filter(|shape| shape.rank().is_some()) {
            as_shapes.push(format!("input[{index}] = {shape}"));
        } else if let Some(value) = host.input_value(index) {
            let value = summary::values(&value, MOST_PRINTED);
            values.push(format!("input[{index}] = <{value}>"));
        }
    }
    for (what, list) in [
        ("computed input tensors", values.join(", ")),
        ("input tensors computed as partial shapes", as_shapes.join(",")),
    ] {
        if !list.is_empty() {
            text.push_str(&format!(" and with {what}: {list}"));
        }
    }
    text.push('.');
    error.suffixed(&text)
}

/// A node as errors print it: `{{node m}} = MatMul[T=DT_FLOAT, ...](a, b:1)`.
pub fn describe(graph: &Graph, id: NodeId) -> String {
    let node = graph.node(id);
    summary::node(&node.info, &export::input_names(graph, node))
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
