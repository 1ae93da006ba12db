//! A function from nodes of a graph.
//!
//! Names follow the reference: outputs are named first, then inputs (both in lower case, without odd characters), then
//! the nodes of the body keep theirs unless they are taken.

use crate::{Graph, Node, NodeId};
use ff_op::{AttrValue, OutputRef};
use ff_proto::function_def::ArgAttrs;
use ff_proto::op_def::{ArgDef, AttrDef};
use ff_proto::{FunctionDef, Message, NodeDef, OpDef};
use ff_tensor::{Result, Status, bail, ensure, status};
use rustc_hash::{FxHashMap, FxHashSet};

/// What becomes a function.
#[derive(Clone, Debug, Default)]
pub struct FunctionSource {
    /// Name of the function.
    pub name: String,
    /// Whether the name gets a hash of the function at its end.
    pub append_hash: bool,
    /// For people.
    pub description: String,
    /// Nodes of the body; none for all nodes that give no input.
    pub body: Option<Vec<NodeId>>,
    /// What the function takes.
    pub inputs: Vec<OutputRef>,
    /// What it returns.
    pub outputs: Vec<OutputRef>,
    /// Names of what it returns; empty to take those of the nodes.
    pub output_names: Vec<String>,
    /// Nodes that a call must run.
    pub control_outputs: Vec<NodeId>,
    /// Their names; empty to take those of the nodes.
    pub control_output_names: Vec<String>,
}

/// The function. INVALID_ARGUMENT when an input is given twice, a name is taken twice, or a node of the body reads what is
/// neither in the body nor an input; OUT_OF_RANGE for an output that a node does not have.
pub fn graph_to_function(graph: &Graph, source: FunctionSource) -> Result<FunctionDef> {
    let mut converter = Converter {
        graph,
        source: &source,
        used: FxHashSet::default(),
        tensors: FxHashMap::default(),
        nodes: FxHashMap::default(),
        def: FunctionDef::default(),
        signature: OpDef {
            name: source.name.clone(),
            description: source.description.clone(),
            ..OpDef::default()
        },
    };
    converter.check_outputs()?;
    converter.name_outputs()?;
    converter.add_inputs()?;
    converter.add_body()?;
    converter.add_returns()?;
    let mut def = converter.def;
    def.signature = Some(converter.signature);
    if source.append_hash {
        let hash = hash_text(&def.encode_to_vec());
        if let Some(signature) = &mut def.signature {
            signature.name = format!("{}_{hash}", source.name);
        }
    }
    Ok(def)
}

struct Converter<'a> {
    graph: &'a Graph,
    source: &'a FunctionSource,
    used: FxHashSet<String>,
    /// What stands for an output in the function.
    tensors: FxHashMap<OutputRef, String>,
    /// What stands for a node as a control input.
    nodes: FxHashMap<NodeId, String>,
    def: FunctionDef,
    signature: OpDef,
}

/// Lower case, other characters than letters and digits as underscores, from the first letter on.
fn normalized(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
            _ => '_',
        })
        .collect();
    match plain.find(|c: char| c.is_ascii_lowercase()) {
        Some(start) => plain[start..].to_string(),
        None => "unknown".to_string(),
    }
}

/// Eleven characters of a 64-bit hash.
fn hash_text(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut text = String::new();
    for _ in 0..11 {
        text.push(char::from(DIGITS[(hash & 63) as usize]));
        hash >>= 6;
    }
    text
}

impl Converter<'_> {
    fn unique(&mut self, name: String) -> String {
        let mut candidate = name.clone();
        let mut count = 0;
        while !self.used.insert(candidate.clone()) {
            candidate = format!("{name}_{count}");
            count += 1;
        }
        candidate
    }

    fn check(&self, output: OutputRef, what: &str) -> Result<&Node> {
        let node = self
            .graph
            .get(output.node)
            .ok_or_else(|| status!(InvalidArgument, "a node is not in the graph"))?;
        let count = node.info.output_types.len();
        ensure!(
            (output.index as usize) < count,
            OutOfRange,
            "Node '{}' (type: '{}', num of outputs: {count}) does not have output {}\n\tEncountered while processing {what} function '{}'",
            node.info.name,
            node.info.op_name(),
            output.index,
            self.source.name
        );
        Ok(node)
    }

    fn check_outputs(&self) -> Result<()> {
        let mut seen = FxHashSet::default();
        for (index, input) in self.source.inputs.iter().enumerate() {
            let node = self.check(*input, &format!("input {index} into"))?;
            ensure!(
                seen.insert(*input),
                InvalidArgument,
                "TF_Output {}:{} appears more than once in the input list",
                node.info.name,
                input.index
            );
        }
        for (index, output) in self.source.outputs.iter().enumerate() {
            self.check(*output, &format!("output {index} from"))?;
        }
        Ok(())
    }

    fn arg(&self, name: String, output: OutputRef) -> Result<ArgDef> {
        Ok(ArgDef {
            name,
            r#type: self.graph.output_type(output)?.base().0,
            ..ArgDef::default()
        })
    }

    fn name_outputs(&mut self) -> Result<()> {
        let given = &self.source.output_names;
        ensure!(
            given.is_empty() || given.len() == self.source.outputs.len(),
            InvalidArgument,
            "Expected names for all outputs, got {}",
            given.len()
        );
        for (index, output) in self.source.outputs.iter().enumerate() {
            let name = match given.get(index) {
                Some(name) => {
                    ensure!(
                        self.used.insert(name.clone()),
                        InvalidArgument,
                        "Cannot have duplicate output names. Name '{name}' appears more than once in 'output_names' array."
                    );
                    name.clone()
                }
                None => self.unique(normalized(&self.graph.node(output.node).info.name)),
            };
            let arg = self.arg(name, *output)?;
            self.signature.output_arg.push(arg);
        }
        Ok(())
    }

    fn add_inputs(&mut self) -> Result<()> {
        for (index, input) in self.source.inputs.iter().enumerate() {
            let node = self.graph.node(input.node);
            let name = self.unique(normalized(&node.info.name));
            let arg = self.arg(name.clone(), *input)?;
            self.signature.input_arg.push(arg);
            self.tensors.insert(*input, name.clone());
            self.nodes.entry(input.node).or_insert(name);
            let attrs = argument_attrs(node);
            if !attrs.attr.is_empty() {
                self.def.arg_attr.insert(index as u32, attrs);
            }
        }
        Ok(())
    }

    fn body(&self) -> Vec<NodeId> {
        match &self.source.body {
            Some(body) => body.clone(),
            None => {
                let inputs: FxHashSet<NodeId> = self.source.inputs.iter().map(|input| input.node).collect();
                let all = 0..self.graph.len() as NodeId;
                all.filter(|id| !inputs.contains(id)).collect()
            }
        }
    }

    fn add_body(&mut self) -> Result<()> {
        let body = self.body();
        for &id in &body {
            let node = self
                .graph
                .get(id)
                .ok_or_else(|| status!(InvalidArgument, "a node is not in the graph"))?;
            let name = self.unique(node.info.name.clone());
            self.nodes.insert(id, name.clone());
            for (argument, def) in node.info.op.def.output_arg.iter().enumerate() {
                for (position, index) in node.info.output_range(argument).enumerate() {
                    let output = OutputRef {
                        node: id,
                        index: index as u32,
                    };
                    self.tensors
                        .entry(output)
                        .or_insert_with(|| format!("{name}:{}:{position}", def.name));
                }
            }
        }
        for id in body {
            self.add_node(id)?;
        }
        Ok(())
    }

    fn add_node(&mut self, id: NodeId) -> Result<()> {
        let node = self.graph.node(id);
        let name = self.nodes[&id].clone();
        let mut input = Vec::with_capacity(node.inputs.len() + node.control_inputs.len());
        for (index, source) in node.inputs.iter().enumerate() {
            let found = self.tensors.get(source);
            input.push(
                found
                    .cloned()
                    .ok_or_else(|| self.not_available(node, &format!("Input {index}"), source))?,
            );
        }
        for (index, control) in node.control_inputs.iter().enumerate() {
            let source = OutputRef {
                node: *control,
                index: 0,
            };
            let found = self.nodes.get(control).map(|name| format!("^{name}"));
            input.push(
                found.ok_or_else(|| self.not_available(node, &format!("Control input {index}"), &source))?,
            );
        }
        self.note_placeholders(node);
        self.signature.is_stateful |= node.info.op.def.is_stateful;
        self.def.node_def.push(NodeDef {
            name,
            op: node.info.op_name().to_string(),
            input,
            device: node.info.device.clone(),
            attr: node
                .info
                .attrs
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_proto()))
                .collect(),
            ..NodeDef::default()
        });
        Ok(())
    }

    fn not_available(&self, node: &Node, what: &str, source: &OutputRef) -> Status {
        status!(
            InvalidArgument,
            "{what}, '{}:{}', of node '{}' in function '{}' is not available. You might need to include it in inputs or include its source node in the body",
            self.graph.node(source.node).info.name,
            source.index,
            node.info.name,
            self.source.name
        )
    }

    /// Attributes whose values the function will be given become attributes of the function.
    fn note_placeholders(&mut self, node: &Node) {
        for (name, value) in node.info.attrs.iter() {
            let AttrValue::Placeholder(placeholder) = value else {
                continue;
            };
            let def = node.info.op.def.attr.iter().find(|def| def.name == name);
            let known = self.signature.attr.iter().any(|attr| attr.name == *placeholder);
            if let (Some(def), false) = (def, known) {
                self.signature.attr.push(AttrDef {
                    name: placeholder.clone(),
                    r#type: def.r#type.clone(),
                    ..AttrDef::default()
                });
            }
        }
    }

    fn add_returns(&mut self) -> Result<()> {
        for (arg, output) in self.signature.output_arg.iter().zip(&self.source.outputs) {
            let Some(tensor) = self.tensors.get(output) else {
                bail!(
                    InvalidArgument,
                    "TF_Output {}:{} is neither in the function body nor among function inputs. Encountered while creating function '{}'",
                    self.graph.node(output.node).info.name,
                    output.index,
                    self.source.name
                );
            };
            self.def.ret.insert(arg.name.clone(), tensor.clone());
        }
        for (index, control) in self.source.control_outputs.iter().enumerate() {
            let own = self.graph.get(*control).map(|node| node.info.name.clone());
            let names = &self.source.control_output_names;
            let name = names.get(index).cloned().or(own).unwrap_or_default();
            let node = self.nodes.get(control).ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Control output '{name}' is not in the body of function '{}'",
                    self.source.name
                )
            })?;
            let taken = self.def.control_ret.insert(name.clone(), node.clone());
            ensure!(
                taken.is_none(),
                InvalidArgument,
                "Repeated control output name: {name}"
            );
            self.signature.control_output.push(name);
        }
        Ok(())
    }
}

/// What a call should know of an argument: internal attributes, and the shape that a placeholder states.
fn argument_attrs(node: &Node) -> ArgAttrs {
    let attrs = node.info.attrs.iter();
    let mut attr: std::collections::BTreeMap<_, _> = attrs
        .filter(|(name, _)| name.starts_with('_'))
        .map(|(name, value)| (name.to_string(), value.to_proto()))
        .collect();
    if let Ok(shape) = node.info.attrs.shape("shape") {
        let shapes = AttrValue::Shapes(vec![shape.clone()]);
        attr.insert("_output_shapes".to_string(), shapes.to_proto());
    }
    ArgAttrs { attr }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeBuilder;
    use ff_op::Registry;
    use ff_tensor::{Code, DataType};
    use std::sync::Arc;

    /// x, y -> Scope/Add-1 -> neg.
    fn sample() -> (Graph, [OutputRef; 4]) {
        let mut graph = Graph::new(Arc::new(Registry::new(&[])));
        let output = |node| OutputRef { node, index: 0 };
        let mut placeholder = |name: &str| {
            let builder = NodeBuilder::new("Placeholder", name).attr("dtype", DataType::FLOAT);
            output(builder.finish(&mut graph).unwrap())
        };
        let (x, y) = (placeholder("x"), placeholder("y"));
        let mut add = NodeBuilder::new("AddV2", "Scope/Add-1");
        add.add_input(x);
        add.add_input(y);
        let sum = output(add.finish(&mut graph).unwrap());
        let mut neg = NodeBuilder::new("Neg", "neg");
        neg.add_input(sum);
        let neg = output(neg.finish(&mut graph).unwrap());
        (graph, [x, y, sum, neg])
    }

    #[test]
    fn names_are_those_of_the_reference() {
        let (graph, [x, y, _, neg]) = sample();
        let source = FunctionSource {
            name: "f".into(),
            inputs: vec![x, y],
            outputs: vec![neg, neg, x],
            ..FunctionSource::default()
        };
        let def = graph_to_function(&graph, source).unwrap();
        let signature = def.signature.unwrap();
        let names = |args: &[ArgDef]| args.iter().map(|arg| arg.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&signature.output_arg), ["neg", "neg_0", "x"]);
        assert_eq!(names(&signature.input_arg), ["x_0", "y"]);
        assert_eq!(def.node_def[0].input, ["x_0", "y"]);
        assert_eq!(def.node_def[1].name, "neg_1");
        assert_eq!(def.node_def[1].input, ["Scope/Add-1:z:0"]);
        assert_eq!(def.ret["neg"], "neg_1:y:0");
        assert_eq!(def.ret["x"], "x_0");
    }

    #[test]
    fn what_is_not_available_is_an_error() {
        let (graph, [x, _, sum, neg]) = sample();
        let source = FunctionSource {
            name: "f4".into(),
            body: Some(vec![sum.node, neg.node]),
            inputs: vec![x],
            outputs: vec![neg],
            ..FunctionSource::default()
        };
        let error = graph_to_function(&graph, source.clone()).unwrap_err();
        assert_eq!(
            error.message(),
            "Input 1, 'y:0', of node 'Scope/Add-1' in function 'f4' is not available. You might need to include it in inputs or include its source node in the body"
        );
        let twice = FunctionSource {
            inputs: vec![x, x],
            ..source.clone()
        };
        assert!(graph_to_function(&graph, twice).is_err());
        let beyond = FunctionSource {
            outputs: vec![OutputRef { index: 3, ..neg }],
            ..source
        };
        assert_eq!(
            graph_to_function(&graph, beyond).unwrap_err().code(),
            Code::OutOfRange
        );
    }
}
