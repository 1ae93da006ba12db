//! GraphDef into a graph: all of it or nothing.

use crate::builder::{checked_info, is_node_name, unknown_input};
use crate::{Graph, NodeId};
use ff_op::{AttrValue, Attrs, OutputRef};
use ff_proto::{Bytes, GraphDef, NodeDef};
use ff_tensor::{DataType, Result, bail, ensure, status};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::Arc;

/// A tensor of the graph that is imported: node name and output.
pub type TensorId = (String, u32);

/// How to import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Put before every name, with a slash; empty for nothing.
    pub prefix: String,
    /// Whether a taken name is made unique; else it is an error.
    pub uniquify_names: bool,
    /// Whether a taken prefix is made unique; else it is an error.
    pub uniquify_prefix: bool,
    /// Inputs to take from the graph instead of from an imported node. An output of `u32::MAX` is a control edge.
    pub input_map: Vec<(TensorId, OutputRef)>,
    /// Nodes that every imported node without inputs waits for.
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
    /// Keys of the input map that no node used.
    pub missing_unused_keys: Vec<TensorId>,
}

/// What stands for a control edge in place of an output number.
pub const CONTROL: u32 = u32::MAX;

/// Adds the nodes and functions of a GraphDef. On an error the graph has the nodes that it had before.
pub fn import_graph_def(graph: &mut Graph, def: GraphDef, options: &ImportOptions) -> Result<ImportResults> {
    check_versions(&def)?;
    let before = graph.len();
    let versions = def.versions.clone();
    let was_empty = graph.is_empty();
    if let Some(library) = &def.library {
        for function in &library.function {
            graph.functions().add(Arc::new(function.clone()))?;
        }
        for gradient in &library.gradient {
            graph
                .functions()
                .set_gradient(&gradient.function_name, &gradient.gradient_func)?;
        }
    }
    let result = Importer::new(graph, def, options).and_then(|mut importer| importer.run());
    match (&result, versions) {
        (Err(_), _) => graph.truncate(before),
        (Ok(_), Some(versions)) if was_empty => graph.versions = versions,
        (Ok(_), Some(versions)) => {
            graph.versions.producer = graph.versions.producer.min(versions.producer);
            graph.versions.min_consumer = graph.versions.min_consumer.max(versions.min_consumer);
        }
        (Ok(_), None) => {}
    }
    result
}

fn check_versions(def: &GraphDef) -> Result<()> {
    let Some(versions) = &def.versions else {
        return Ok(());
    };
    ensure!(
        versions.min_consumer <= crate::GRAPH_DEF_VERSION,
        InvalidArgument,
        "GraphDef min consumer version {} above current version {} for TensorFlow 2.21.0.  Please upgrade TensorFlow.",
        versions.min_consumer,
        crate::GRAPH_DEF_VERSION
    );
    ensure!(
        !versions.bad_consumers.contains(&crate::GRAPH_DEF_VERSION),
        InvalidArgument,
        "GraphDef disallows consumer version {}.  Please upgrade TensorFlow: this version is likely buggy.",
        crate::GRAPH_DEF_VERSION
    );
    Ok(())
}

/// An input as a NodeDef names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct InputName<'a> {
    node: &'a str,
    index: u32,
}

/// `node`, `node:1`, `^node`.
fn parse_input(text: &str) -> InputName<'_> {
    if let Some(node) = text.strip_prefix('^') {
        return InputName { node, index: CONTROL };
    }
    match text.rsplit_once(':') {
        Some((node, digits)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            InputName {
                node,
                index: digits.parse().unwrap_or(CONTROL - 1),
            }
        }
        _ => InputName { node: text, index: 0 },
    }
}

struct Importer<'a> {
    graph: &'a mut Graph,
    options: &'a ImportOptions,
    prefix: String,
    defs: Vec<NodeDef>,
    by_name: FxHashMap<String, usize>,
    /// The new node of each definition, once added.
    ids: Vec<Option<NodeId>>,
    input_map: FxHashMap<TensorId, OutputRef>,
    used_keys: FxHashSet<TensorId>,
    /// Back edges: node, input, definition and output that it comes from.
    back_edges: Vec<(NodeId, usize, usize, u32)>,
    renamed: FxHashMap<String, String>,
}

impl<'a> Importer<'a> {
    fn new(graph: &'a mut Graph, def: GraphDef, options: &'a ImportOptions) -> Result<Importer<'a>> {
        let prefix = resolve_prefix(graph, options)?;
        let defs = def.node;
        let mut by_name = FxHashMap::default();
        for (index, node) in defs.iter().enumerate() {
            ensure!(
                is_node_name(&node.name),
                InvalidArgument,
                "Node '{}': Node name contains invalid characters",
                node.name
            );
            ensure!(
                by_name.insert(node.name.clone(), index).is_none(),
                InvalidArgument,
                "Node '{}' is not unique",
                node.name
            );
        }
        let ids = vec![None; defs.len()];
        let input_map = options.input_map.iter().cloned().collect();
        Ok(Importer {
            graph,
            options,
            prefix,
            defs,
            by_name,
            ids,
            input_map,
            used_keys: FxHashSet::default(),
            back_edges: Vec::new(),
            renamed: FxHashMap::default(),
        })
    }

    fn run(&mut self) -> Result<ImportResults> {
        for (index, id) in self.order()?.into_iter().enumerate() {
            debug_assert!(index < self.defs.len());
            self.add(id)?;
        }
        for (node, input, from, output) in std::mem::take(&mut self.back_edges) {
            let source = self.ids[from].ok_or_else(|| status!(Internal, "a back edge was lost"))?;
            self.graph.replace_input(
                node,
                input,
                OutputRef {
                    node: source,
                    index: output,
                },
            )?;
            self.graph.infer_shapes(node)?;
        }
        self.results()
    }

    /// The definitions, inputs first; in the order given where that will do. INVALID_ARGUMENT for a cycle.
    fn order(&self) -> Result<Vec<usize>> {
        let mut waiting = vec![0usize; self.defs.len()];
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); self.defs.len()];
        for (index, node) in self.defs.iter().enumerate() {
            for input in &node.input {
                let name = parse_input(input);
                let Some(&from) = self.by_name.get(name.node) else {
                    ensure!(
                        self.is_mapped(name),
                        InvalidArgument,
                        "{}",
                        unknown_input(&node.name, name.node).message()
                    );
                    continue;
                };
                if !self.is_back_edge(node, from) && !self.is_mapped(name) {
                    waiting[index] += 1;
                    readers[from].push(index);
                }
            }
        }
        let mut ready: VecDeque<usize> = (0..waiting.len()).filter(|&index| waiting[index] == 0).collect();
        let mut order = Vec::with_capacity(self.defs.len());
        while let Some(index) = ready.pop_front() {
            order.push(index);
            for &reader in &readers[index] {
                waiting[reader] -= 1;
                if waiting[reader] == 0 {
                    ready.push_back(reader);
                }
            }
        }
        ensure!(
            order.len() == self.defs.len(),
            InvalidArgument,
            "Graph contains a cycle among {} of its nodes",
            self.defs.len() - order.len()
        );
        // Kahn's order is not the given one; keep that where it is an order already.
        let position: FxHashMap<usize, usize> =
            order.iter().enumerate().map(|(at, &index)| (index, at)).collect();
        let given_will_do = readers
            .iter()
            .enumerate()
            .all(|(from, list)| list.iter().all(|&reader| reader > from));
        debug_assert_eq!(position.len(), order.len());
        Ok(if given_will_do {
            (0..self.defs.len()).collect()
        } else {
            order
        })
    }

    /// Whether an edge goes from the end of a loop's turn back to its start.
    fn is_back_edge(&self, node: &NodeDef, from: usize) -> bool {
        matches!(node.op.as_str(), "Merge" | "RefMerge")
            && matches!(self.defs[from].op.as_str(), "NextIteration" | "RefNextIteration")
    }

    fn is_mapped(&self, name: InputName) -> bool {
        !self.input_map.is_empty() && self.input_map.contains_key(&(name.node.to_string(), name.index))
    }

    fn mapped(&mut self, name: InputName) -> Option<OutputRef> {
        if self.input_map.is_empty() {
            return None;
        }
        let key = (name.node.to_string(), name.index);
        let target = self.input_map.get(&key).copied()?;
        self.used_keys.insert(key);
        Some(target)
    }

    fn add(&mut self, index: usize) -> Result<()> {
        let mut def = std::mem::take(&mut self.defs[index]);
        let edges = self.edges(&def)?;
        let name = self.new_name(&def.name)?;
        let attrs = self.attrs(&mut def)?;
        let device = if def.device.is_empty() {
            &self.options.default_device
        } else {
            &def.device
        };
        let op = self.graph.find_op(&def.op)?;
        let types: Vec<DataType> = edges.types;
        let info = checked_info(op, &name, device, attrs, &types)?;
        let id = self
            .graph
            .add_node(Arc::new(info), edges.inputs, edges.controls)?;
        self.graph.infer_shapes(id)?;
        for (input, from, output) in edges.back {
            self.back_edges.push((id, input, from, output));
        }
        self.ids[index] = Some(id);
        self.defs[index].name = def.name;
        Ok(())
    }

    fn edges(&mut self, def: &NodeDef) -> Result<Edges> {
        let mut edges = Edges::default();
        for text in &def.input {
            let name = parse_input(text);
            if let Some(target) = self.mapped(name) {
                match target.index {
                    CONTROL => edges.controls.push(target.node),
                    _ => edges.push(self.graph, target)?,
                }
                continue;
            }
            let from = *self
                .by_name
                .get(name.node)
                .ok_or_else(|| unknown_input(&def.name, name.node))?;
            match (self.ids[from], name.index) {
                (Some(id), CONTROL) => edges.controls.push(id),
                (Some(id), index) => {
                    let outputs = self.graph.node(id).info.output_types.len();
                    ensure!(
                        (index as usize) < outputs,
                        InvalidArgument,
                        "Node '{}': Connecting to invalid output {index} of source node {} which has {outputs} outputs.",
                        def.name,
                        name.node
                    );
                    edges.push(self.graph, OutputRef { node: id, index })?;
                }
                (None, index) => {
                    // A back edge: its source comes later and has the type of the first input.
                    let first = edges.inputs.first().copied();
                    let stand_in = first.ok_or_else(|| {
                        status!(InvalidArgument, "Node '{}': a loop without a start", def.name)
                    })?;
                    edges.back.push((edges.inputs.len(), from, index));
                    edges.push(self.graph, stand_in)?;
                }
            }
        }
        if edges.inputs.is_empty() && edges.controls.is_empty() {
            edges.controls.extend(&self.options.control_dependencies);
        }
        edges.controls.sort_unstable();
        edges.controls.dedup();
        Ok(edges)
    }

    fn new_name(&mut self, name: &str) -> Result<String> {
        let full = format!("{}{name}", self.prefix);
        if self.graph.find(&full).is_none() {
            return Ok(full);
        }
        ensure!(
            self.options.uniquify_names,
            InvalidArgument,
            "Node name '{full}' already exists in the Graph"
        );
        let mut number = 1;
        while self.graph.find(&format!("{full}_{number}")).is_some() {
            number += 1;
        }
        let unique = format!("{full}_{number}");
        self.renamed.insert(name.to_string(), unique.clone());
        Ok(unique)
    }

    fn attrs(&self, def: &mut NodeDef) -> Result<Attrs> {
        let messages = std::mem::take(&mut def.attr);
        let mut attrs = Vec::with_capacity(messages.len());
        for (name, message) in messages {
            if name == "_output_shapes" {
                continue;
            }
            let value = AttrValue::from_proto(&message)
                .map_err(|error| error.suffixed(&format!("; NodeDef: {{{{node {}}}}}", def.name)))?;
            attrs.push((name, value));
        }
        let mut attrs: Attrs = attrs.into_iter().collect();
        self.rename_colocations(&mut attrs, &def.name)?;
        Ok(attrs)
    }

    /// Puts new names into `loc:@name` entries.
    fn rename_colocations(&self, attrs: &mut Attrs, node: &str) -> Result<()> {
        let Ok(classes) = attrs.strings("_class").map(<[Bytes]>::to_vec) else {
            return Ok(());
        };
        let mut renamed = Vec::with_capacity(classes.len());
        for class in classes {
            let Some(target) = class.strip_prefix(b"loc:@") else {
                renamed.push(class);
                continue;
            };
            let target = String::from_utf8_lossy(target).into_owned();
            if !self.by_name.contains_key(&target) {
                ensure!(
                    !self.options.validate_colocation,
                    InvalidArgument,
                    "Node '{node}' expects to be colocated with unknown node '{target}'"
                );
                continue;
            }
            let name = self
                .renamed
                .get(&target)
                .cloned()
                .unwrap_or_else(|| format!("{}{target}", self.prefix));
            renamed.push(Bytes::from(format!("loc:@{name}")));
        }
        if renamed.is_empty() {
            attrs.remove("_class");
        } else {
            attrs.set("_class", renamed);
        }
        Ok(())
    }

    fn results(&mut self) -> Result<ImportResults> {
        let mut results = ImportResults::default();
        for (node, index) in &self.options.return_outputs {
            let name = InputName { node, index: *index };
            if let Some(target) = self.mapped(name) {
                results.return_outputs.push(target);
                continue;
            }
            let id = self.by_name.get(node).and_then(|&def| self.ids[def]);
            let id = id.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Requested return tensor '{node}:{index}' not found in graph def"
                )
            })?;
            let output = OutputRef {
                node: id,
                index: *index,
            };
            if self.graph.output_type(output).is_err() {
                bail!(
                    InvalidArgument,
                    "Invalid return output {index} of node '{node}', which has {} output(s)",
                    self.graph.node(id).info.output_types.len()
                );
            }
            results.return_outputs.push(output);
        }
        for node in &self.options.return_nodes {
            let id = self.by_name.get(node).and_then(|&def| self.ids[def]);
            results.return_nodes.push(id.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Requested return node '{node}' not found in graph def"
                )
            })?);
        }
        let unused = self.options.input_map.iter().map(|(key, _)| key);
        let missing = unused.filter(|key| !self.used_keys.contains(*key) && !self.exists(key));
        results.missing_unused_keys = missing.cloned().collect();
        Ok(results)
    }

    /// Whether the imported graph has this output.
    fn exists(&self, (node, index): &TensorId) -> bool {
        let id = self.by_name.get(node).and_then(|&def| self.ids[def]);
        id.is_some_and(|id| {
            *index == CONTROL || (*index as usize) < self.graph.node(id).info.output_types.len()
        })
    }
}

/// A node's edges as they are found.
#[derive(Default)]
struct Edges {
    inputs: Vec<OutputRef>,
    types: Vec<DataType>,
    controls: Vec<NodeId>,
    /// Input, definition and output of back edges.
    back: Vec<(usize, usize, u32)>,
}

impl Edges {
    fn push(&mut self, graph: &Graph, source: OutputRef) -> Result<()> {
        self.types.push(graph.output_type(source)?);
        self.inputs.push(source);
        Ok(())
    }
}

/// The prefix to put before names, with its slash. INVALID_ARGUMENT for one that is taken or malformed.
fn resolve_prefix(graph: &Graph, options: &ImportOptions) -> Result<String> {
    let prefix = options.prefix.trim_end_matches('/');
    if prefix.is_empty() {
        return Ok(String::new());
    }
    ensure!(
        is_node_name(prefix),
        InvalidArgument,
        "Imported node name prefix '{}' would lead to invalid node names",
        options.prefix
    );
    let taken = |name: &str| {
        let inside = format!("{name}/");
        graph.find(name).is_some() || graph.nodes().any(|(_, node)| node.info.name.starts_with(&inside))
    };
    if !options.uniquify_prefix || !taken(prefix) {
        ensure!(
            options.uniquify_names || options.uniquify_prefix || graph.find(prefix).is_none(),
            InvalidArgument,
            "Import node name prefix conflicts with names of nodes already in the Graph: {prefix}"
        );
        return Ok(format!("{prefix}/"));
    }
    let mut number = 1;
    while taken(&format!("{prefix}_{number}")) {
        number += 1;
    }
    Ok(format!("{prefix}_{number}/"))
}
