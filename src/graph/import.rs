//! GraphDef into a graph: all of it or nothing.
//!
//! Two phases: [`Links`] resolves every name of the message to a number while it is whole; then nodes are added one by
//! one, taking the message apart. Linear in the size of the message; large attributes are not copied. Nodes are added
//! inputs first, of those that can be added the first in the message: the reference's order. Inputs of a `Merge` that
//! come later are back edges of v1 loops and are connected at the end.

use crate::builder::{check_edge, checked_info, distinct};
use crate::graph::{Inputs, PENDING};
use crate::import_links::{Link, Links, Source};
use crate::import_source::{self, NodeSource};
use crate::names::{CONTROL, tensor_id};
use crate::{Graph, NodeId, summary};
use ff_op::{AttrValue, Attrs, OutputRef};
use ff_proto::attr_value::Value;
use ff_proto::op_def::AttrDef;
use ff_proto::{Bytes, FunctionDefLibrary, GraphDef, OpDef, TensorProto, VersionDef};
use ff_tensor::{DataType, PartialShape, Result, Status, bail, ensure, status};
use std::sync::Arc;

/// A tensor of the graph that is imported: node name and output, [`CONTROL`] for the node itself.
pub type TensorId = (String, u32);

/// How to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Put before every name, with a slash; empty for nothing.
    pub prefix: String,
    /// Whether a taken name is made unique; else it is an error.
    pub uniquify_names: bool,
    /// Whether a taken prefix is made unique.
    pub uniquify_prefix: bool,
    /// Inputs to take from the graph instead of from an imported node; [`CONTROL`] on both sides for control edges.
    pub input_map: Vec<(TensorId, OutputRef)>,
    /// Nodes that every imported node without imported inputs waits for.
    pub control_dependencies: Vec<NodeId>,
    /// Outputs wanted back.
    pub return_outputs: Vec<TensorId>,
    /// Nodes wanted back.
    pub return_nodes: Vec<String>,
    /// Device of nodes that ask for none.
    pub default_device: String,
    /// Whether colocation with nodes that are not there is an error.
    pub validate_colocation: bool,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions {
            prefix: String::new(),
            uniquify_names: false,
            uniquify_prefix: false,
            input_map: Vec::new(),
            control_dependencies: Vec::new(),
            return_outputs: Vec::new(),
            return_nodes: Vec::new(),
            default_device: String::new(),
            validate_colocation: true,
        }
    }
}

/// What an import gives back.
#[derive(Clone, Debug, Default)]
pub struct ImportResults {
    /// The outputs that were wanted.
    pub return_outputs: Vec<OutputRef>,
    /// The nodes that were wanted.
    pub return_nodes: Vec<NodeId>,
    /// Keys of the input map that no node used and that are not outputs of the imported graph.
    pub missing_unused_keys: Vec<TensorId>,
}

/// Adds the nodes and functions of a GraphDef. On an error the graph and its library are as before.
pub fn import_graph_def(
    graph: &mut Graph,
    mut def: GraphDef,
    options: &ImportOptions,
) -> Result<ImportResults> {
    let nodes = std::mem::take(&mut def.node);
    let nodes: Vec<NodeSource> = nodes.iter().map(NodeSource::from).collect();
    import(graph, &nodes, def, options)
}

/// As [`import_graph_def`], for an encoded GraphDef, most of which is never decoded as a message. INVALID_ARGUMENT,
/// "Invalid GraphDef", for other bytes.
pub fn import_graph_bytes(
    graph: &mut Graph,
    message: &Bytes,
    options: &ImportOptions,
) -> Result<ImportResults> {
    let (nodes, rest) = import_source::read(message)?;
    import(graph, &nodes, rest, options)
}

/// Adds nodes, and the functions of `rest`.
fn import(
    graph: &mut Graph,
    nodes: &[NodeSource],
    rest: GraphDef,
    options: &ImportOptions,
) -> Result<ImportResults> {
    let versions = rest.versions.unwrap_or_default();
    check_versions(&versions)?;
    let links = Links::new(graph, nodes, options)?;
    let library = AddedFunctions::add(graph, rest.library.unwrap_or_default())?;
    graph.reserve(nodes.len());
    let before = graph.len();
    let importer = Importer {
        graph,
        options,
        links,
        graph_version: versions.producer,
        ids: vec![PENDING.node; nodes.len()],
        back_edges: Vec::new(),
    };
    let result = importer.run(nodes);
    match &result {
        Ok(_) => merge_versions(&mut graph.versions, versions, !library.functions.is_empty()),
        Err(_) => {
            graph.truncate(before);
            library.remove(graph);
        }
    }
    result
}

fn check_versions(versions: &VersionDef) -> Result<()> {
    let current = crate::GRAPH_DEF_VERSION;
    ensure!(
        versions.producer >= 0,
        InvalidArgument,
        "GraphDef producer version {} below min producer 0 supported by TensorFlow 2.21.0.  Please regenerate your graph.",
        versions.producer
    );
    ensure!(
        versions.min_consumer <= current,
        InvalidArgument,
        "GraphDef min consumer version {} above current version {current} for TensorFlow 2.21.0.  Please upgrade TensorFlow.",
        versions.min_consumer
    );
    ensure!(
        !versions.bad_consumers.contains(&current),
        InvalidArgument,
        "GraphDef disallows consumer version {current}.  Please upgrade TensorFlow: this version is likely buggy."
    );
    Ok(())
}

/// The first version whose consumers know functions.
const FUNCTIONS_VERSION: i32 = 12;

/// The graph's versions after adding nodes of `other`: what holds for both.
fn merge_versions(versions: &mut VersionDef, other: VersionDef, has_functions: bool) {
    versions.producer = versions.producer.min(other.producer);
    versions.min_consumer = versions.min_consumer.max(other.min_consumer);
    if has_functions {
        versions.min_consumer = versions.min_consumer.max(FUNCTIONS_VERSION);
    }
    for bad in other.bad_consumers {
        if !versions.bad_consumers.contains(&bad) {
            versions.bad_consumers.push(bad);
        }
    }
}

/// Names of functions and gradients that an import has added, to take them back.
#[derive(Default)]
struct AddedFunctions {
    functions: Vec<String>,
    gradients: Vec<String>,
}

impl AddedFunctions {
    /// Adds a library, all of it or nothing.
    fn add(graph: &Graph, library: FunctionDefLibrary) -> Result<AddedFunctions> {
        let mut added = AddedFunctions::default();
        let result = added.add_all(graph, library);
        if result.is_err() {
            added.remove(graph);
        }
        result.map(|()| added)
    }

    fn add_all(&mut self, graph: &Graph, library: FunctionDefLibrary) -> Result<()> {
        let functions = graph.functions();
        for function in library.function {
            let name = function
                .signature
                .as_ref()
                .map(|signature| signature.name.clone());
            let name = name.unwrap_or_default();
            ensure!(
                graph.registry().find(&name).is_err(),
                InvalidArgument,
                "Cannot add function '{name}' because an op with the same name already exists."
            );
            if functions.add_new(Arc::new(function))? {
                self.functions.push(name);
            }
        }
        for gradient in library.gradient {
            let is_new = functions.gradient_of(&gradient.function_name).is_none();
            functions.set_gradient(&gradient.function_name, &gradient.gradient_func)?;
            if is_new {
                self.gradients.push(gradient.function_name);
            }
        }
        Ok(())
    }

    fn remove(&self, graph: &Graph) {
        for name in &self.functions {
            graph.functions().remove(name);
        }
        for name in &self.gradients {
            graph.functions().remove_gradient(name);
        }
    }
}

/// An input whose node comes later.
struct BackEdge {
    node: NodeId,
    /// Which input; [`CONTROL`] for a control edge.
    input: u32,
    def: u32,
    output: u32,
}

/// Adds the nodes.
struct Importer<'a> {
    graph: &'a mut Graph,
    options: &'a ImportOptions,
    links: Links,
    graph_version: i32,
    /// The new node of each definition; that of [`PENDING`] until it is added.
    ids: Vec<NodeId>,
    back_edges: Vec<BackEdge>,
}

impl Importer<'_> {
    fn run(mut self, defs: &[NodeSource]) -> Result<ImportResults> {
        let order = self.links.order(defs)?;
        for index in 0..defs.len() {
            let index = order.as_ref().map_or(index, |order| order[index] as usize);
            self.add(index, &defs[index])?;
        }
        for edge in std::mem::take(&mut self.back_edges) {
            self.close(&edge)?;
        }
        self.results()
    }

    /// Connects a back edge.
    fn close(&mut self, edge: &BackEdge) -> Result<()> {
        let source = OutputRef {
            node: self.ids[edge.def as usize],
            index: edge.output,
        };
        if edge.output == CONTROL {
            self.graph.add_control_edge(source.node, edge.node);
            return Ok(());
        }
        let info = &self.graph.node(edge.node).info;
        check_output(self.graph, &info.name, source)?;
        check_edge(self.graph, info, edge.input as usize, source)?;
        self.graph.replace_input(edge.node, edge.input as usize, source)
    }

    fn add(&mut self, index: usize, def: &NodeSource) -> Result<()> {
        let (inputs, controls) = self.edges(index, def)?;
        let op = self.graph.find_op(def.op)?;
        let Decoded {
            mut attrs,
            output_shapes,
            given_value,
        } = attrs(def, &op.def)?;
        self.links.rename_colocations(&mut attrs);
        let device = if def.device.is_empty() {
            &self.options.default_device
        } else {
            def.device
        };
        let name = self.links.new_name(index, def.name);
        let info = checked_info(op, name, device.to_string(), attrs, self.graph_version)?;
        let id = self.graph.add_inferred(info, inputs, controls)?;
        self.ids[index] = id;
        if let Some(value) = given_value {
            self.graph.keep_given_value(id, value);
        }
        if let Some(full_type) = &def.full_type {
            self.graph.give_full_type(id, (**full_type).clone());
        }
        match output_shapes {
            Some(shapes) => self.refine(id, &shapes),
            None => Ok(()),
        }
    }

    /// The inputs and control inputs of a definition.
    fn edges(&mut self, index: usize, def: &NodeSource) -> Result<(Inputs, Vec<NodeId>)> {
        let links = self.links.of(index);
        let mut inputs = Inputs::with_capacity(links.len());
        let mut controls = Vec::new();
        let mut waits = false;
        for Link { source, output } in links.iter().copied() {
            let node = match source {
                Source::Existing(node) => node,
                Source::Imported(from) => self.ids[from as usize],
            };
            waits |= matches!(source, Source::Imported(_)) && node != PENDING.node;
            if let (Source::Imported(from), true) = (source, node == PENDING.node) {
                ensure!(
                    matches!(def.op, "Merge" | "RefMerge"),
                    InvalidArgument,
                    "Node '{}' had a back edge, but only Merge nodes can have back edges.",
                    def.name
                );
                let input = if output == CONTROL {
                    CONTROL
                } else {
                    inputs.len() as u32
                };
                self.back_edges.push(BackEdge {
                    node: self.graph.len() as NodeId,
                    input,
                    def: from,
                    output,
                });
                if output != CONTROL {
                    inputs.push(PENDING);
                }
            } else if output == CONTROL {
                controls.push(node);
            } else {
                let source = OutputRef { node, index: output };
                check_output(self.graph, def.name, source)?;
                inputs.push(source);
            }
        }
        if !waits {
            controls.extend_from_slice(&self.options.control_dependencies);
        }
        Ok((inputs, distinct(controls)))
    }

    /// Adds what the attribute `_output_shapes` says about a node's outputs.
    fn refine(&mut self, id: NodeId, shapes: &[PartialShape]) -> Result<()> {
        let name = &self.graph.node(id).info.name;
        let outputs = self.graph.node(id).info.output_types.len();
        ensure!(
            shapes.len() >= outputs,
            InvalidArgument,
            "Node '{name}' has {outputs} outputs but the {OUTPUT_SHAPES} attribute specifies shapes for {} outputs",
            shapes.len()
        );
        for (index, shape) in shapes.iter().enumerate().take(outputs) {
            let output = OutputRef {
                node: id,
                index: index as u32,
            };
            let refined = self.graph.refine_shape(output, shape);
            refined.map_err(|error| {
                let name = &self.graph.node(id).info.name;
                error.prefixed(&format!(
                    "Node '{name}' has an {OUTPUT_SHAPES} attribute inconsistent with the GraphDef for output #{index}: "
                ))
            })?;
        }
        Ok(())
    }

    fn results(&self) -> Result<ImportResults> {
        let mut results = ImportResults::default();
        for ((node, index), link) in self.options.return_outputs.iter().zip(&self.links.return_outputs) {
            let Some(Link { source, output }) = *link else {
                let tensor = tensor_id(node, *index);
                bail!(
                    InvalidArgument,
                    "Requested return tensor '{tensor}' not found in graph def"
                );
            };
            let id = match source {
                Source::Existing(id) => id,
                Source::Imported(def) => self.ids[def as usize],
            };
            let outputs = self.graph.node(id).info.output_types.len();
            ensure!(
                output == CONTROL || (output as usize) < outputs,
                InvalidArgument,
                "Invalid return output {} of node '{node}', which has {outputs} output(s)",
                output as i32
            );
            results.return_outputs.push(OutputRef {
                node: id,
                index: output,
            });
        }
        for (name, def) in self.options.return_nodes.iter().zip(&self.links.return_nodes) {
            let id = def.map(|def| self.ids[def as usize]);
            results.return_nodes.push(id.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Requested return node '{name}' not found in graph def"
                )
            })?);
        }
        for (key, def) in &self.links.unused_keys {
            let outputs = def.map_or(0, |def| {
                let node = self.graph.node(self.ids[def as usize]);
                node.info.output_types.len()
            });
            let is_control = def.is_some() && key.1 == CONTROL;
            if !is_control && key.1 as usize >= outputs {
                results.missing_unused_keys.push(key.clone());
            }
        }
        Ok(results)
    }
}

/// The attribute that says more about shapes than can be inferred. It is taken off.
const OUTPUT_SHAPES: &str = "_output_shapes";

/// Checks that a source has the output.
fn check_output(graph: &Graph, reader: &str, source: OutputRef) -> Result<()> {
    let info = &graph.node(source.node).info;
    let outputs = info.output_types.len();
    if (source.index as usize) < outputs {
        return Ok(());
    }
    let hint = match info.op_name() {
        "If" | "StatelessIf" | "While" | "StatelessWhile" => {
            " Try using tf.compat.v1.experimental.output_all_intermediates(True)."
        }
        _ => "",
    };
    bail!(
        InvalidArgument,
        "Node '{reader}': Connecting to invalid output {} of source node {} which has {outputs} outputs.{hint}",
        source.index,
        info.name
    )
}

/// The value of a constant whose elements are listed by type, or a single one in raw bytes: an export would choose the other
/// form.
fn given_value(name: &str, value: &ff_proto::AttrValue) -> Option<TensorProto> {
    let ("value", Some(Value::Tensor(tensor))) = (name, &value.value) else {
        return None;
    };
    let content = &tensor.tensor_content;
    let is_other = content.is_empty() || content.len() <= DataType(tensor.dtype).size();
    (DataType(tensor.dtype).is_plain() && is_other).then(|| TensorProto {
        // Not a view that keeps the whole message.
        tensor_content: Bytes::copy_from_slice(content),
        ..(**tensor).clone()
    })
}

/// Attributes of a definition, and what some of them say besides.
struct Decoded {
    attrs: Attrs,
    /// The shapes of [`OUTPUT_SHAPES`].
    output_shapes: Option<Vec<PartialShape>>,
    given_value: Option<TensorProto>,
}

/// Decodes the attributes of a definition.
fn attrs(node: &NodeSource, def: &OpDef) -> Result<Decoded> {
    let mut values = Vec::with_capacity(node.attr.len().max(def.attr.len()));
    let mut output_shapes = None;
    let mut given = None;
    for (name, source) in &node.attr {
        let (name, message) = (*name, source.value()?);
        given = given.or_else(|| given_value(name, &message));
        let value = match message.value {
            Some(_) => AttrValue::from_proto(&message).map_err(|error| {
                error.suffixed(&format!(
                    "\n\t for attr '{name}'\n\t; NodeDef: {{{{node {}}}}}",
                    node.name
                ))
            })?,
            None => match def.attr.iter().find(|attr| attr.name == name) {
                Some(attr) if attr.r#type.starts_with("list(") => AttrValue::EmptyList,
                Some(attr) => return Err(missing_value(def, attr, node.name)),
                None => AttrValue::Unset,
            },
        };
        match value {
            AttrValue::Shapes(shapes) if name == OUTPUT_SHAPES => output_shapes = Some(shapes),
            AttrValue::EmptyList if name == OUTPUT_SHAPES => output_shapes = Some(Vec::new()),
            value => values.push((name, value)),
        }
    }
    Ok(Decoded {
        attrs: values.into_iter().collect(),
        output_shapes,
        given_value: given,
    })
}

#[cold]
fn missing_value(def: &OpDef, attr: &AttrDef, node: &str) -> Status {
    status!(
        InvalidArgument,
        "AttrValue missing value with expected type '{}'\n\t for attr '{}'\n\t; NodeDef: {{{{node {node}}}}}; {}",
        attr.r#type,
        attr.name,
        summary::op(def)
    )
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
