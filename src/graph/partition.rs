//! The partitioner: one graph per device out of a placed graph, with `_Send` and `_Recv` where a value, or the end of a
//! node, is needed on another device.
//!
//! Assumes: `placement` has the number of a device for each node.
//! Guarantees: each node is in one part; a value goes to a device once. A control edge becomes the transfer of an empty
//! constant. Does not: give loops that span devices a copy of their condition on each of them.

use crate::export::{export_library, input_names};
use crate::{Graph, Node, NodeId, export_node_def};
use ff_op::{AttrValue, Attrs, OutputRef};
use ff_proto::{GraphDef, NodeDef};
use ff_tensor::{DataType, Result, Shape, Tensor};
use rustc_hash::FxHashMap;

/// What a transfer is between.
#[derive(Clone, Copy, Debug)]
pub struct TransferEnds<'a> {
    /// Name of the node that makes the value.
    pub source: &'a str,
    /// Name of the first node that reads it elsewhere.
    pub reader: &'a str,
    /// Full name of the source's device.
    pub from: &'a str,
    /// Full name of the reader's device.
    pub to: &'a str,
    /// Number that tells the edge from the others.
    pub edge: usize,
}

/// The attributes that `_Send` and `_Recv` of a transfer have in common.
pub fn transfer_attrs(ends: &TransferEnds) -> Attrs {
    let text = |text: String| AttrValue::String(text.into_bytes().into());
    Attrs::new()
        .with("tensor_name", text(format!("edge_{}_{}", ends.edge, ends.source)))
        .with("send_device", text(ends.from.to_string()))
        .with("send_device_incarnation", 1i64)
        .with("recv_device", text(ends.to.to_string()))
        .with("client_terminated", false)
        .with("_src", text(ends.source.to_string()))
        .with("_dst", text(ends.reader.to_string()))
}

/// The part of each device, in the order of `devices`; parts without nodes are empty graphs.
pub fn partition(graph: &Graph, placement: &[u32], devices: &[String]) -> Result<Vec<GraphDef>> {
    let part = || GraphDef {
        library: Some(export_library(graph.functions())),
        versions: Some(graph.versions.clone()),
        ..GraphDef::default()
    };
    let mut partitioner = Partitioner {
        graph,
        placement,
        devices,
        parts: devices.iter().map(|_| part()).collect(),
        received: FxHashMap::default(),
        controls: FxHashMap::default(),
        names: 0,
        edges: 0,
    };
    for (id, node) in graph.nodes() {
        partitioner.add(id, node)?;
    }
    Ok(partitioner.parts)
}

struct Partitioner<'a> {
    graph: &'a Graph,
    placement: &'a [u32],
    devices: &'a [String],
    parts: Vec<GraphDef>,
    /// Names of the nodes that receive a value on a device.
    received: FxHashMap<(OutputRef, u32), String>,
    /// Names of the nodes that stand for the end of a node on a device.
    controls: FxHashMap<(NodeId, u32), String>,
    names: usize,
    edges: usize,
}

fn message(name: String, op: &str, device: &str, input: Vec<String>, attrs: Attrs) -> NodeDef {
    NodeDef {
        name,
        op: op.to_string(),
        input,
        device: device.to_string(),
        attr: attrs
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_proto()))
            .collect(),
        ..NodeDef::default()
    }
}

impl Partitioner<'_> {
    fn add(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let here = self.placement[id as usize];
        let mut inputs = input_names(self.graph, node);
        let data = node.inputs.len();
        for (index, input) in node.inputs.iter().enumerate() {
            if self.placement[input.node as usize] != here {
                inputs[index] = self.receive(*input, id)?;
            }
        }
        inputs.truncate(data);
        let mut controls = Vec::new();
        for &control in &node.control_inputs {
            controls.push(match self.placement[control as usize] == here {
                true => format!("^{}", self.name(control)),
                false => format!("^{}", self.receive_end(control, id)?),
            });
        }
        controls.sort();
        inputs.extend(controls);
        let device = self.devices[here as usize].clone();
        let def = NodeDef {
            input: inputs,
            device,
            ..export_node_def(self.graph, node)
        };
        self.parts[here as usize].node.push(def);
        Ok(())
    }

    fn name(&self, id: NodeId) -> &str {
        &self.graph.node(id).info.name
    }

    fn new_name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}/_{}", self.names - 1)
    }

    /// The node that receives a value where its reader is.
    fn receive(&mut self, value: OutputRef, reader: NodeId) -> Result<String> {
        let to = self.placement[reader as usize];
        if let Some(name) = self.received.get(&(value, to)) {
            return Ok(name.clone());
        }
        let dtype = self.graph.output_type(value)?.base();
        let source = self.name(value.node).to_string();
        let input = match value.index {
            0 => source,
            index => format!("{source}:{index}"),
        };
        let name = self.transfer(value.node, reader, input, dtype);
        self.received.insert((value, to), name.clone());
        Ok(name)
    }

    /// The node that stands for the end of another where its reader is.
    fn receive_end(&mut self, control: NodeId, reader: NodeId) -> Result<String> {
        let to = self.placement[reader as usize];
        if let Some(name) = self.controls.get(&(control, to)) {
            return Ok(name.clone());
        }
        let source = self.name(control).to_string();
        let from = self.placement[control as usize] as usize;
        let nothing = Tensor::zeros(DataType::FLOAT, Shape::new(&[0])?)?;
        let attrs = Attrs::new().with("dtype", DataType::FLOAT).with("value", nothing);
        let constant = self.new_name(&format!("{source}/ctrl"));
        let after = vec![format!("^{source}")];
        let def = message(constant.clone(), "Const", &self.devices[from], after, attrs);
        self.parts[from].node.push(def);
        let received = self.transfer(control, reader, constant, DataType::FLOAT);
        let name = self.new_name(&source);
        let attrs = Attrs::new().with("T", DataType::FLOAT);
        let device = &self.devices[to as usize];
        let def = message(name.clone(), "Identity", device, vec![received], attrs);
        self.parts[to as usize].node.push(def);
        self.controls.insert((control, to), name.clone());
        Ok(name)
    }

    /// Adds both ends of a transfer; gives the name of the one that receives.
    fn transfer(&mut self, source: NodeId, reader: NodeId, input: String, dtype: DataType) -> String {
        let (from, to) = (self.placement[source as usize], self.placement[reader as usize]);
        let source = self.name(source).to_string();
        let ends = TransferEnds {
            source: &source,
            reader: &self.graph.node(reader).info.name,
            from: &self.devices[from as usize],
            to: &self.devices[to as usize],
            edge: self.edges,
        };
        let attrs = transfer_attrs(&ends);
        self.edges += 1;
        let (send, receive) = (self.new_name(&source), self.new_name(&source));
        let op = if dtype == DataType::INT32 {
            "_HostSend"
        } else {
            "_Send"
        };
        let sent = attrs.clone().with("T", dtype);
        let def = message(send, op, &self.devices[from as usize], vec![input], sent);
        self.parts[from as usize].node.push(def);
        let received = attrs.with("tensor_type", dtype);
        let def = message(
            receive.clone(),
            "_Recv",
            &self.devices[to as usize],
            Vec::new(),
            received,
        );
        self.parts[to as usize].node.push(def);
        receive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{add_op, graph, placeholder};

    #[test]
    fn a_value_goes_to_a_device_once_and_ends_go_as_constants() {
        let mut graph = graph();
        let x = placeholder(&mut graph, "x", &[2]);
        let a = add_op(&mut graph, "AddV2", "a", &[x, x]);
        let b = add_op(&mut graph, "AddV2", "b", &[x, a]);
        graph.add_control_edge(a.node, b.node);
        let devices = ["/device:CPU:0".to_string(), "/device:CPU:1".to_string()];
        let parts = partition(&graph, &[0, 1, 0], &devices).unwrap();
        let texts = |part: &GraphDef| -> Vec<String> {
            part.node
                .iter()
                .map(|node| format!("{} {} {}", node.name, node.op, node.input.join(" ")))
                .collect()
        };
        assert_eq!(
            texts(&parts[0]),
            [
                "x Placeholder ",
                "x/_0 _Send x",
                "a/_3 _Recv ",
                "a/_6 _Recv ",
                "a/_7 Identity a/_6",
                "b AddV2 x a/_3 ^a/_7"
            ]
        );
        assert_eq!(
            texts(&parts[1]),
            [
                "x/_1 _Recv ",
                "a AddV2 x/_1 x/_1",
                "a/_2 _Send a",
                "a/ctrl/_4 Const ^a",
                "a/_5 _Send a/ctrl/_4"
            ]
        );
    }
}
