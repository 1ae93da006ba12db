//! Nodes of a graph as a FunctionDef: what `TF_GraphToFunction` does.
//!
//! Arguments and results get names that are valid for arguments (lower case, `_`), nodes keep theirs; a name that is taken
//! gets a number. Inputs of nodes become `argument` or `node:output_argument:index`. Does not add the function to a
//! library. The hash that can be appended to the name is our own; only its form is the reference's.

use crate::{Graph, NodeId, export_node_def};
use ff_op::{AttrValue, OutputRef};
use ff_proto::attr_value::{ListValue, Value};
use ff_proto::function_def::ArgAttrs;
use ff_proto::op_def::{ArgDef, AttrDef};
use ff_proto::{FunctionDef, Message, NodeDef, OpDef};
use ff_tensor::{DataType, Result, bail, ensure, status};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, BuildHasherDefault};

/// What becomes the function.
#[derive(Clone, Debug, Default)]
pub struct FunctionSource {
    /// Its name.
    pub name: String,
    /// Whether a hash of the definition is appended to the name.
    pub append_hash: bool,
    /// Goes into the signature.
    pub description: String,
    /// The nodes of the body; without a list, all nodes that no input names.
    pub body: Option<Vec<NodeId>>,
    /// The arguments.
    pub inputs: Vec<OutputRef>,
    /// The results.
    pub outputs: Vec<OutputRef>,
    /// Names of the results; empty to take them from the nodes.
    pub output_names: Vec<String>,
    /// Nodes that run in every call.
    pub control_outputs: Vec<NodeId>,
    /// Their names; empty to take those of the nodes.
    pub control_output_names: Vec<String>,
}

/// The function. INVALID_ARGUMENT when the parts do not go together, OUT_OF_RANGE for outputs that do not exist,
/// UNIMPLEMENTED for placeholder values in attributes that an op does not define.
pub fn graph_to_function(graph: &Graph, source: FunctionSource) -> Result<FunctionDef> {
    let body = body(graph, &source)?;
    for (index, output) in source.outputs.iter().enumerate() {
        check_exists(graph, *output).map_err(|error| {
            error.suffixed(&format!(
                "\n\tEncountered while processing output {index} from function '{}'",
                source.name
            ))
        })?;
        check_not_ref(graph, *output).map_err(|error| {
            error.suffixed(&format!(
                "\n\tEncountered while creating function '{}'",
                source.name
            ))
        })?;
    }
    let mut maker = Maker {
        graph,
        source: &source,
        names: Names::default(),
        tensors: FxHashMap::default(),
        def: FunctionDef::default(),
        signature: OpDef {
            description: source.description.clone(),
            ..OpDef::default()
        },
    };
    maker.name_outputs()?;
    maker.name_inputs()?;
    maker.name_body(&body);
    for &node in &body {
        let def = maker.body_node(node)?;
        maker.def.node_def.push(def);
    }
    maker.set_results()?;
    maker.finish()
}

/// The nodes of the body, after checking the inputs.
fn body(graph: &Graph, source: &FunctionSource) -> Result<Vec<NodeId>> {
    let mut seen = FxHashSet::default();
    for (index, input) in source.inputs.iter().enumerate() {
        let checked = check_exists(graph, *input).and_then(|()| check_not_ref(graph, *input));
        checked.map_err(|error| {
            error.suffixed(&format!(
                "\n\tEncountered while processing input {index} into function '{}'",
                source.name
            ))
        })?;
        ensure!(
            seen.insert(*input),
            InvalidArgument,
            "TF_Output {} appears more than once in the input list",
            output_name(graph, *input)
        );
    }
    if let Some(body) = &source.body {
        return Ok(body.clone());
    }
    let inputs: FxHashSet<NodeId> = source.inputs.iter().map(|input| input.node).collect();
    for &input in &inputs {
        let info = &graph.node(input).info;
        let outputs = info.output_types.len();
        ensure!(
            outputs == 1,
            InvalidArgument,
            "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single output. Node {} has {outputs} outputs. Encountered while creating function '{}'",
            info.name,
            source.name
        );
    }
    let all = graph.nodes().map(|(id, _)| id);
    Ok(all.filter(|id| !inputs.contains(id)).collect())
}

fn output_name(graph: &Graph, output: OutputRef) -> String {
    format!("{}:{}", graph.node(output.node).info.name, output.index)
}

fn check_exists(graph: &Graph, output: OutputRef) -> Result<()> {
    let Some(node) = graph.get(output.node) else {
        bail!(InvalidArgument, "Node is null");
    };
    let outputs = node.info.output_types.len();
    ensure!(
        (output.index as usize) < outputs,
        OutOfRange,
        "Node '{}' (type: '{}', num of outputs: {outputs}) does not have output {}",
        node.info.name,
        node.info.op_name(),
        output.index as i32
    );
    Ok(())
}

fn check_not_ref(graph: &Graph, output: OutputRef) -> Result<()> {
    let dtype = graph.output_type(output)?;
    ensure!(
        !dtype.is_ref(),
        InvalidArgument,
        "Output {} of node '{}' has a reference type {dtype}",
        output.index,
        graph.node(output.node).info.name
    );
    Ok(())
}

/// The names in a function, each used once.
#[derive(Default)]
struct Names {
    /// Names in use, and the next number to try after them.
    used: FxHashMap<String, usize>,
    /// What nodes are called in the function.
    nodes: FxHashMap<NodeId, String>,
}

impl Names {
    /// The name, with a number if it is taken.
    fn unique(&mut self, name: &str) -> String {
        if !self.used.contains_key(name) {
            self.used.insert(name.to_string(), 0);
            return name.to_string();
        }
        loop {
            let number = self.used.entry(name.to_string()).or_default();
            let candidate = format!("{name}_{number}");
            *number += 1;
            if !self.used.contains_key(&candidate) {
                self.used.insert(candidate.clone(), 0);
                return candidate;
            }
        }
    }
}

/// A name that arguments can have: lower case, `_` for what is neither letter nor digit, a letter first.
fn normalized(name: &str) -> String {
    let character = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(character).collect();
    match name.find(|c: char| c.is_ascii_alphabetic()) {
        Some(start) => name[start..].to_string(),
        None => "unknown".to_string(),
    }
}

struct Maker<'a> {
    graph: &'a Graph,
    source: &'a FunctionSource,
    names: Names,
    /// How the function calls a value.
    tensors: FxHashMap<OutputRef, String>,
    def: FunctionDef,
    signature: OpDef,
}

impl Maker<'_> {
    fn name_outputs(&mut self) -> Result<()> {
        for (index, output) in self.source.outputs.iter().enumerate() {
            let name = match self.source.output_names.get(index) {
                Some(name) => {
                    ensure!(
                        self.names.used.insert(name.clone(), 0).is_none(),
                        InvalidArgument,
                        "Cannot have duplicate output names. Name '{name}' appears more than once in 'output_names' array."
                    );
                    name.clone()
                }
                None => self
                    .names
                    .unique(&normalized(&self.graph.node(output.node).info.name)),
            };
            self.signature.output_arg.push(self.argument(name, *output)?);
        }
        Ok(())
    }

    fn argument(&self, name: String, output: OutputRef) -> Result<ArgDef> {
        Ok(ArgDef {
            name,
            r#type: self.graph.output_type(output)?.0,
            ..ArgDef::default()
        })
    }

    fn name_inputs(&mut self) -> Result<()> {
        for (index, input) in self.source.inputs.iter().enumerate() {
            let name = self
                .names
                .unique(&normalized(&self.graph.node(input.node).info.name));
            self.signature
                .input_arg
                .push(self.argument(name.clone(), *input)?);
            let attrs = self.argument_attrs(*input)?;
            if let Some(Value::I(id)) = attrs
                .attr
                .get("_resource_arg_unique_id")
                .and_then(|attr| attr.value.as_ref())
            {
                self.def.resource_arg_unique_id.insert(index as u32, *id as u32);
            }
            if !attrs.attr.is_empty() {
                self.def.arg_attr.insert(index as u32, attrs);
            }
            self.names.nodes.insert(input.node, name.clone());
            self.tensors.insert(*input, name);
        }
        Ok(())
    }

    /// What an argument keeps of its node's attributes: the internal ones, and the shape.
    fn argument_attrs(&self, input: OutputRef) -> Result<ArgAttrs> {
        let info = &self.graph.node(input.node).info;
        let mut kept = ArgAttrs::default();
        for (name, value) in info.attrs.iter() {
            let shape = match value {
                AttrValue::Shape(shape) if name == "shape" => Some(shape.clone()),
                AttrValue::Tensor(value) if name == "value" && info.op_name() == "Const" => {
                    Some(value.partial_shape())
                }
                _ => None,
            };
            if name.starts_with('_') {
                kept.attr.insert(name.to_string(), value.to_proto());
            } else if let Some(shape) = shape
                && self.graph.output_type(input)? != DataType::RESOURCE
            {
                let list = ListValue {
                    shape: vec![shape.to_proto()],
                    ..ListValue::default()
                };
                let value = Some(Value::List(Box::new(list)));
                kept.attr
                    .insert("_output_shapes".to_string(), ff_proto::AttrValue { value });
            }
        }
        Ok(kept)
    }

    /// Names the nodes of the body and all of their outputs. What is an argument stays one.
    fn name_body(&mut self, body: &[NodeId]) {
        for &id in body {
            let info = &self.graph.node(id).info;
            let name = self.names.unique(&info.name);
            for (argument, def) in info.op.def.output_arg.iter().enumerate() {
                for (index, output) in info.output_range(argument).enumerate() {
                    let output = OutputRef {
                        node: id,
                        index: output as u32,
                    };
                    let tensor = || format!("{name}:{}:{index}", def.name);
                    self.tensors.entry(output).or_insert_with(tensor);
                }
            }
            self.names.nodes.insert(id, name);
        }
    }

    fn body_node(&mut self, id: NodeId) -> Result<NodeDef> {
        let node = self.graph.node(id);
        let function = &self.source.name;
        let mut input = Vec::with_capacity(node.inputs.len() + node.control_inputs.len());
        for (index, source) in node.inputs.iter().enumerate() {
            let Some(tensor) = self.tensors.get(source) else {
                bail!(
                    InvalidArgument,
                    "Input {index}, '{}', of node '{}' in function '{function}' is not available. You might need to include it in inputs or include its source node in the body",
                    output_name(self.graph, *source),
                    node.info.name
                );
            };
            input.push(tensor.clone());
        }
        let mut controls = Vec::with_capacity(node.control_inputs.len());
        for &control in &node.control_inputs {
            let source = &self.graph.node(control).info.name;
            let Some(name) = self.names.nodes.get(&control) else {
                bail!(
                    InvalidArgument,
                    "The source of control edge [{source}:-1 -> {}:-1] is not in the body. Encountered while creating function '{function}'",
                    node.info.name
                );
            };
            controls.push((source.as_str(), format!("^{name}")));
        }
        controls.sort();
        input.extend(controls.into_iter().map(|(_, name)| name));
        self.signature.is_stateful |= node.info.op.def.is_stateful;
        self.add_placeholder_attrs(id)?;
        Ok(NodeDef {
            name: self.names.nodes.get(&id).cloned().unwrap_or_default(),
            input,
            ..export_node_def(self.graph, node)
        })
    }

    /// Attributes whose values are the function's own become attributes of the signature.
    fn add_placeholder_attrs(&mut self, id: NodeId) -> Result<()> {
        let info = &self.graph.node(id).info;
        for (name, value) in info.attrs.iter() {
            let AttrValue::Placeholder(own) = value else {
                continue;
            };
            if self.signature.attr.iter().any(|attr| attr.name == *own) {
                continue;
            }
            let def = info.op.def.attr.iter().find(|attr| attr.name == name);
            let def = def.ok_or_else(|| {
                status!(
                    Unimplemented,
                    "Placeholder value is not supported for attributes not in OpDef. Attribute: {name}"
                )
            })?;
            self.signature.attr.push(AttrDef {
                name: own.clone(),
                r#type: def.r#type.clone(),
                ..AttrDef::default()
            });
        }
        Ok(())
    }

    fn set_results(&mut self) -> Result<()> {
        for (output, argument) in self.source.outputs.iter().zip(&self.signature.output_arg) {
            let Some(tensor) = self.tensors.get(output) else {
                bail!(
                    InvalidArgument,
                    "TF_Output {} is neither in the function body nor among function inputs. Encountered while creating function '{}'",
                    output_name(self.graph, *output),
                    self.source.name
                );
            };
            self.def.ret.insert(argument.name.clone(), tensor.clone());
        }
        Ok(())
    }

    fn finish(mut self) -> Result<FunctionDef> {
        self.signature.name = self.source.name.clone();
        if self.source.append_hash {
            self.def.signature = Some(self.signature.clone());
            self.signature.name = format!("{}_{}", self.source.name, hash(&self.def));
        }
        let (nodes, names) = (&self.source.control_outputs, &self.source.control_output_names);
        ensure!(
            names.is_empty() || names.len() == nodes.len(),
            InvalidArgument,
            "Expected number of control outputs ({}) and the number of control output names ({}) to match but they do not.",
            nodes.len(),
            names.len()
        );
        let mut signature_names = BTreeSet::new();
        for (index, node) in nodes.iter().enumerate() {
            let Some(found) = self.graph.get(*node) else {
                bail!(InvalidArgument, "Control output is not in the graph");
            };
            let name = names.get(index).unwrap_or(&found.info.name);
            ensure!(
                !name.is_empty(),
                InvalidArgument,
                "Control output name must be not empty"
            );
            ensure!(
                signature_names.insert(name.clone()),
                InvalidArgument,
                "Repeated control output name: {name}"
            );
            let Some(node) = self.names.nodes.get(node) else {
                bail!(InvalidArgument, "Control output node name must be not empty");
            };
            self.def.control_ret.insert(name.clone(), node.clone());
        }
        self.signature.control_output = signature_names.into_iter().collect();
        self.def.signature = Some(self.signature);
        Ok(self.def)
    }
}

/// A hash in letters and digits, as long as that of the reference.
fn hash(def: &FunctionDef) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let hasher = BuildHasherDefault::<rustc_hash::FxHasher>::default();
    let mut hash = hasher.hash_one(def.encode_to_vec());
    let mut digit = || {
        let letter = LETTERS[(hash % 62) as usize];
        hash /= 62;
        letter as char
    };
    (0..11).map(|_| digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeBuilder;
    use crate::testing::{add_op, graph, placeholder};
    use ff_tensor::Code;

    /// Placeholders `A/In` [2,3] and `b_1`; `Add`, and `a_in` that reads it; `Ctl` after `a_in` and `A/In`.
    fn sample() -> (Graph, [OutputRef; 4], NodeId) {
        let mut graph = graph();
        let a = placeholder(&mut graph, "A/In", &[2, 3]);
        let b = placeholder(&mut graph, "b_1", &[2, 3]);
        let add = add_op(&mut graph, "AddV2", "Add", &[a, b]);
        let again = add_op(&mut graph, "AddV2", "a_in", &[add, b]);
        let control = NodeBuilder::new("NoOp", "Ctl")
            .control(again.node)
            .control(a.node);
        let control = control.finish(&mut graph).unwrap();
        (graph, [a, b, add, again], control)
    }

    #[test]
    fn names_and_edges_are_the_references() {
        let (graph, [a, b, add, again], control) = sample();
        let source = FunctionSource {
            name: "F".into(),
            body: Some(vec![add.node, again.node, control]),
            inputs: vec![a, b],
            outputs: vec![again, again, a],
            control_outputs: vec![control, add.node],
            ..FunctionSource::default()
        };
        let def = graph_to_function(&graph, source).unwrap();
        let signature = def.signature.as_ref().unwrap();
        let names = |args: &[ArgDef]| args.iter().map(|arg| arg.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&signature.input_arg), ["a_in_2", "b_1"]);
        assert_eq!(names(&signature.output_arg), ["a_in", "a_in_0", "a_in_1"]);
        assert_eq!(signature.control_output, ["Add", "Ctl"]);
        let nodes: Vec<String> = def
            .node_def
            .iter()
            .map(|node| format!("{} {} {}", node.name, node.op, node.input.join(" ")))
            .collect();
        assert_eq!(
            nodes,
            [
                "Add AddV2 a_in_2 b_1",
                "a_in_3 AddV2 Add:z:0 b_1",
                "Ctl NoOp ^a_in_2 ^a_in_3"
            ]
        );
        assert_eq!(def.ret["a_in"], "a_in_3:z:0");
        assert_eq!(def.ret["a_in_1"], "a_in_2");
        assert_eq!(def.control_ret["Ctl"], "Ctl");
        assert!(def.arg_attr[&0].attr.contains_key("_output_shapes"));
    }

    #[test]
    fn what_does_not_go_together_is_reported() {
        let (graph, [a, b, add, again], control) = sample();
        let source = || FunctionSource {
            name: "F".into(),
            body: Some(vec![add.node]),
            inputs: vec![a, b],
            outputs: vec![add],
            ..FunctionSource::default()
        };
        let error = |source| {
            let error = graph_to_function(&graph, source).unwrap_err();
            (error.code(), error.message().to_string())
        };
        let far = OutputRef { index: 2, ..a };
        let cases = [
            (
                FunctionSource {
                    inputs: vec![a],
                    ..source()
                },
                "Input 1, 'b_1:0', of node 'Add' in function 'F' is not available. You might need to include it in inputs or include its source node in the body",
            ),
            (
                FunctionSource {
                    outputs: vec![again],
                    ..source()
                },
                "TF_Output a_in:0 is neither in the function body nor among function inputs. Encountered while creating function 'F'",
            ),
            (
                FunctionSource {
                    inputs: vec![a, a],
                    ..source()
                },
                "TF_Output A/In:0 appears more than once in the input list",
            ),
            (
                FunctionSource {
                    outputs: vec![add, add],
                    output_names: vec!["x".into(), "x".into()],
                    ..source()
                },
                "Cannot have duplicate output names. Name 'x' appears more than once in 'output_names' array.",
            ),
            (
                FunctionSource {
                    control_outputs: vec![control],
                    ..source()
                },
                "Control output node name must be not empty",
            ),
            (
                FunctionSource {
                    control_outputs: vec![add.node; 2],
                    ..source()
                },
                "Repeated control output name: Add",
            ),
            (
                FunctionSource {
                    control_outputs: vec![add.node],
                    control_output_names: vec!["".into()],
                    ..source()
                },
                "Control output name must be not empty",
            ),
        ];
        for (source, message) in cases {
            assert_eq!(error(source), (Code::InvalidArgument, message.to_string()));
        }
        assert_eq!(
            error(FunctionSource { inputs: vec![far], ..source() }),
            (
                Code::OutOfRange,
                "Node 'A/In' (type: 'Placeholder', num of outputs: 1) does not have output 2\n\tEncountered while processing input 0 into function 'F'".to_string()
            )
        );
    }

    #[test]
    fn all_nodes_and_a_hash() {
        let (graph, [a, b, add, ..], _) = sample();
        let mut graph = graph;
        graph.truncate(3);
        let source = FunctionSource {
            name: "F".into(),
            append_hash: true,
            inputs: vec![a, b],
            outputs: vec![add],
            ..FunctionSource::default()
        };
        let def = graph_to_function(&graph, source.clone()).unwrap();
        let name = def.signature.as_ref().unwrap().name.clone();
        assert_eq!(name.len(), 13);
        assert!(name.starts_with("F_"));
        assert_eq!(graph_to_function(&graph, source).unwrap(), def);
        graph.functions().add(std::sync::Arc::new(def)).unwrap();
        let call = NodeBuilder::new(name, "call")
            .input(a)
            .input(b)
            .finish(&mut graph)
            .unwrap();
        assert_eq!(graph.node(call).info.output_types[..], [DataType::FLOAT]);
    }
}
