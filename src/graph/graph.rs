//! A graph: nodes and the edges between them. It can only grow; passes work on copies of their own.
//!
//! Nodes are numbered in the order of their addition, so inputs come before their readers, except for the back edges
//! of v1 loops. Invariants: names are unique; every edge ends at existing outputs; consumers mirror inputs.

use crate::FunctionLibrary;
use crate::name_index::NameIndex;
use ff_op::{HandleShapes, NodeInfo, OutputRef, Registry, Shapes};
use ff_proto::{FullTypeDef, TensorProto, VersionDef};
use ff_tensor::{PartialShape, Result, ensure, status};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// Number of a node in its graph.
pub type NodeId = u32;

/// An input whose source is added later: the back edge of a v1 loop, until [`Graph::replace_input`] gives it.
pub(crate) const PENDING: OutputRef = OutputRef {
    node: NodeId::MAX,
    index: 0,
};

/// Where a node's inputs come from. Most nodes have at most two.
pub type Inputs = SmallVec<[OutputRef; 2]>;
/// Who reads an output: (node, which of its inputs).
pub type Consumers = SmallVec<[(NodeId, u32); 2]>;

/// A node with its edges and inferred shapes.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name, op, attributes, types.
    pub info: Arc<NodeInfo>,
    /// Where each input comes from.
    pub inputs: Inputs,
    /// Nodes that must run before this one.
    pub control_inputs: Vec<NodeId>,
    /// Inferred shape of each output.
    pub shapes: Shapes,
    /// What the resource or variant at each output holds; may be shorter than the outputs.
    pub handles: Vec<Option<HandleShapes>>,
    /// Who reads each output: (node, which of its inputs).
    pub consumers: SmallVec<[Consumers; 1]>,
    /// Nodes that must run after this one.
    pub control_outputs: Vec<NodeId>,
}

/// A graph with its function library.
#[derive(Clone)]
pub struct Graph {
    registry: Arc<Registry>,
    functions: Arc<FunctionLibrary>,
    nodes: Vec<Node>,
    by_name: NameIndex,
    /// Values of imported constants in the form that they came in, where an export would choose another.
    given_values: FxHashMap<NodeId, Arc<TensorProto>>,
    /// Full types that were given to nodes.
    given_full_types: FxHashMap<NodeId, Arc<FullTypeDef>>,
    /// Versions of producer and consumers, as in the GraphDef.
    pub versions: VersionDef,
    /// Whether ops that were added at run time must have a shape function: a client's graph asks for it.
    pub requires_shape_functions: bool,
}

impl Graph {
    /// An empty graph over these ops, with an empty function library.
    pub fn new(registry: Arc<Registry>) -> Graph {
        Graph::with_functions(registry, Arc::default())
    }

    /// An empty graph over these ops and functions.
    pub fn with_functions(registry: Arc<Registry>, functions: Arc<FunctionLibrary>) -> Graph {
        let versions = VersionDef {
            producer: crate::GRAPH_DEF_VERSION,
            ..VersionDef::default()
        };
        Graph {
            registry,
            functions,
            nodes: Vec::new(),
            by_name: NameIndex::default(),
            given_values: FxHashMap::default(),
            given_full_types: FxHashMap::default(),
            versions,
            requires_shape_functions: false,
        }
    }

    /// The ops.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The functions.
    pub fn functions(&self) -> &Arc<FunctionLibrary> {
        &self.functions
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node. Panics when there is none with this number; numbers come from this graph.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// A node, if the number is one of this graph's.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    /// Makes room for so many more nodes.
    pub(crate) fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
        self.by_name.reserve(nodes);
    }

    /// All nodes in order of their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(id, node)| (id as NodeId, node))
    }

    /// The node with this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name
            .find(name, |id| self.nodes[id as usize].info.name.as_str())
    }

    /// Element type of an output, reference marked. INVALID_ARGUMENT when there is no such output.
    pub fn output_type(&self, output: OutputRef) -> Result<ff_tensor::DataType> {
        let node = self.get(output.node);
        node.and_then(|node| node.info.output_types.get(output.index as usize))
            .copied()
            .ok_or_else(|| {
                let name = node.map_or("?", |node| &node.info.name);
                status!(InvalidArgument, "Node '{name}' has no output {}", output.index)
            })
    }

    /// Inferred shape of an output; unknown when there is no such output.
    pub fn output_shape(&self, output: OutputRef) -> PartialShape {
        let shape = self
            .get(output.node)
            .and_then(|node| node.shapes.get(output.index as usize));
        shape.cloned().unwrap_or_default()
    }

    /// Adds a node with all its edges; shapes start unknown. INVALID_ARGUMENT for a taken name or a missing source.
    /// Types of inputs are not checked here: [`crate::NodeBuilder`] does.
    pub fn add_node(
        &mut self,
        info: Arc<NodeInfo>,
        inputs: Inputs,
        control_inputs: Vec<NodeId>,
    ) -> Result<NodeId> {
        let id = self.nodes.len() as NodeId;
        ensure!(
            self.find(&info.name).is_none(),
            InvalidArgument,
            "Duplicate node name in graph: '{}'",
            info.name
        );
        for input in inputs.iter().filter(|input| **input != PENDING) {
            self.output_type(*input)?;
        }
        ensure!(
            control_inputs.iter().all(|&control| control < id),
            InvalidArgument,
            "Node '{}' has a control input from outside its graph",
            info.name
        );
        for (index, input) in inputs.iter().enumerate() {
            if *input != PENDING {
                self.nodes[input.node as usize].consumers[input.index as usize].push((id, index as u32));
            }
        }
        for &control in &control_inputs {
            self.nodes[control as usize].control_outputs.push(id);
        }
        let outputs = info.output_types.len();
        self.by_name.insert(&info.name, id);
        self.nodes.push(Node {
            info,
            inputs,
            control_inputs,
            shapes: Shapes::from_elem(PartialShape::unknown(), outputs),
            handles: Vec::new(),
            consumers: SmallVec::from_elem(Consumers::new(), outputs),
            control_outputs: Vec::new(),
        });
        Ok(id)
    }

    /// Sets the inferred shapes of a node.
    pub fn set_shapes(&mut self, id: NodeId, shapes: Shapes, handles: Vec<Option<HandleShapes>>) {
        let node = &mut self.nodes[id as usize];
        node.shapes = shapes;
        node.handles = handles;
    }

    /// Sets the inferred shape of one output.
    pub fn set_shape(&mut self, output: OutputRef, shape: PartialShape) {
        self.nodes[output.node as usize].shapes[output.index as usize] = shape;
    }

    /// Replaces a node's info by one with the same name and at least the same outputs (attributes or device changed,
    /// outputs added). INVALID_ARGUMENT otherwise.
    pub fn replace_info(&mut self, id: NodeId, info: Arc<NodeInfo>) -> Result<()> {
        let node = &mut self.nodes[id as usize];
        let outputs = info.output_types.len();
        ensure!(
            info.name == node.info.name && outputs >= node.consumers.len(),
            InvalidArgument,
            "Node '{}' cannot be replaced",
            node.info.name
        );
        node.consumers.resize(outputs, Consumers::new());
        node.shapes.resize(outputs, PartialShape::unknown());
        node.info = info;
        self.given_values.remove(&id);
        Ok(())
    }

    /// Keeps the form in which a node's attribute `value` was given, for exports.
    pub(crate) fn keep_given_value(&mut self, id: NodeId, value: TensorProto) {
        self.given_values.insert(id, Arc::new(value));
    }

    /// The form in which a node's attribute `value` was given, where an export would choose another.
    pub(crate) fn given_value(&self, id: NodeId) -> Option<&TensorProto> {
        self.given_values.get(&id).map(|value| &**value)
    }

    /// Gives a node a full type, for exports.
    pub fn give_full_type(&mut self, id: NodeId, full_type: FullTypeDef) {
        self.given_full_types.insert(id, Arc::new(full_type));
    }

    /// The full type that a node was given.
    pub(crate) fn given_full_type(&self, id: NodeId) -> Option<&FullTypeDef> {
        self.given_full_types.get(&id).map(|full_type| &**full_type)
    }

    /// Moves an input to another source.
    pub fn replace_input(&mut self, id: NodeId, index: usize, source: OutputRef) -> Result<()> {
        self.output_type(source)?;
        let old = self.nodes[id as usize].inputs[index];
        let slot = (id, index as u32);
        if old != PENDING {
            self.nodes[old.node as usize].consumers[old.index as usize].retain(|consumer| *consumer != slot);
        }
        self.nodes[source.node as usize].consumers[source.index as usize].push(slot);
        self.nodes[id as usize].inputs[index] = source;
        Ok(())
    }

    /// Adds an input at the end of a node's inputs; its info must already allow for it.
    pub fn push_input(&mut self, id: NodeId, source: OutputRef) -> Result<()> {
        self.output_type(source)?;
        let index = self.nodes[id as usize].inputs.len() as u32;
        self.nodes[source.node as usize].consumers[source.index as usize].push((id, index));
        self.nodes[id as usize].inputs.push(source);
        Ok(())
    }

    /// Adds a control edge, unless it is there.
    pub fn add_control_edge(&mut self, from: NodeId, to: NodeId) {
        if !self.nodes[to as usize].control_inputs.contains(&from) {
            self.nodes[to as usize].control_inputs.push(from);
            self.nodes[from as usize].control_outputs.push(to);
        }
    }

    /// Removes all control edges into a node.
    pub fn remove_control_inputs(&mut self, id: NodeId) {
        for control in std::mem::take(&mut self.nodes[id as usize].control_inputs) {
            self.nodes[control as usize]
                .control_outputs
                .retain(|reader| *reader != id);
        }
    }

    /// Takes back all nodes from number `len` on.
    pub(crate) fn truncate(&mut self, len: usize) {
        let is_kept = |id: NodeId| (id as usize) < len;
        let mut read = FxHashSet::default();
        let mut waited_for = FxHashSet::default();
        while self.nodes.len() > len {
            let Some(node) = self.nodes.pop() else { break };
            self.by_name.remove(&node.info.name, self.nodes.len() as NodeId);
            self.given_values.remove(&(self.nodes.len() as NodeId));
            self.given_full_types.remove(&(self.nodes.len() as NodeId));
            read.extend(node.inputs.iter().copied().filter(|input| is_kept(input.node)));
            waited_for.extend(node.control_inputs.iter().copied().filter(|&id| is_kept(id)));
        }
        for output in read {
            let consumers = &mut self.nodes[output.node as usize].consumers[output.index as usize];
            consumers.retain(|(reader, _)| is_kept(*reader));
        }
        for id in waited_for {
            self.nodes[id as usize]
                .control_outputs
                .retain(|&reader| is_kept(reader));
        }
    }

    /// Makes a node what it was before a [`Graph::replace_info`] and changes of its inputs. Nothing may read outputs that
    /// it did not have; nodes that it reads now may be gone.
    pub(crate) fn restore(&mut self, id: NodeId, info: Arc<NodeInfo>, inputs: Inputs) {
        for input in std::mem::take(&mut self.nodes[id as usize].inputs) {
            if let Some(source) = self.nodes.get_mut(input.node as usize) {
                source.consumers[input.index as usize].retain(|(reader, _)| *reader != id);
            }
        }
        for (index, input) in inputs.iter().enumerate() {
            self.nodes[input.node as usize].consumers[input.index as usize].push((id, index as u32));
        }
        let node = &mut self.nodes[id as usize];
        let outputs = info.output_types.len();
        node.consumers.truncate(outputs);
        node.shapes.truncate(outputs);
        node.handles.truncate(outputs);
        node.info = info;
        node.inputs = inputs;
    }
}
