//! A graph, a node, a function library as their messages.

use crate::full_types::full_type_of;
use crate::{FunctionLibrary, Graph, Node, NodeId};
use ff_proto::{AttrValue, FunctionDefLibrary, GradientDef, GraphDef, NodeDef, attr_value};

/// The graph as a message: all nodes with all attributes, functions, versions.
pub fn export_graph_def(graph: &Graph) -> GraphDef {
    GraphDef {
        node: graph
            .nodes()
            .map(|(_, node)| export_node_def(graph, node))
            .collect(),
        library: Some(export_library(graph.functions())),
        versions: Some(graph.versions.clone()),
        ..GraphDef::default()
    }
}

/// The inputs of a node as messages name them: `node`, `node:1`, then `^node` in order of names.
pub fn input_names(graph: &Graph, node: &Node) -> Vec<String> {
    let name = |id: NodeId| graph.get(id).map_or("", |node| node.info.name.as_str());
    let mut names: Vec<String> = node
        .inputs
        .iter()
        .map(|source| match source.index {
            0 => name(source.node).to_string(),
            index => format!("{}:{index}", name(source.node)),
        })
        .collect();
    let controls = node.control_inputs.iter();
    let mut controls: Vec<String> = controls.map(|&control| format!("^{}", name(control))).collect();
    controls.sort();
    names.extend(controls);
    names
}

/// A node as a message: inputs as `node`, `node:1`, then `^node` in order of names.
pub fn export_node_def(graph: &Graph, node: &Node) -> NodeDef {
    NodeDef {
        name: node.info.name.clone(),
        op: node.info.op_name().to_string(),
        input: input_names(graph, node),
        device: node.info.device.clone(),
        attr: node
            .info
            .attrs
            .iter()
            .filter_map(|(name, _)| Some((name.to_string(), export_attr(graph, node, name)?)))
            .collect(),
        experimental_type: full_type_of(graph, node),
        ..NodeDef::default()
    }
}

/// An attribute of a node as a message: that which it was imported as, where the form of a tensor is a matter of choice.
pub fn export_attr(graph: &Graph, node: &Node, name: &str) -> Option<AttrValue> {
    let value = node.info.attrs.get(name)?;
    if name == "value"
        && let Some(id) = graph.find(&node.info.name)
        && let Some(given) = graph.given_value(id)
    {
        let value = attr_value::Value::Tensor(Box::new(given.clone()));
        return Some(AttrValue { value: Some(value) });
    }
    Some(value.to_proto())
}

/// All functions and their gradients as a message.
pub fn export_library(library: &FunctionLibrary) -> FunctionDefLibrary {
    let gradient = library.gradients().into_iter();
    let gradient = gradient.map(|(function_name, gradient_func)| GradientDef {
        function_name,
        gradient_func,
    });
    FunctionDefLibrary {
        function: library
            .functions()
            .iter()
            .map(|function| (**function).clone())
            .collect(),
        gradient: gradient.collect(),
        ..FunctionDefLibrary::default()
    }
}
