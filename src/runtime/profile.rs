//! What a run tells of itself: the graph of each device, costs of nodes, and timelines for viewers.
//!
//! [`chrome_trace`] makes the JSON that Chrome (`chrome://tracing`), Perfetto and TensorBoard's trace viewer read.
//! Not here: recording, which the engines do.

use crate::device::Device;
use crate::placement::find_device;
use ff_graph::passes::Goal;
use ff_graph::{Graph, export_node_def, partition};
use ff_op::OutputRef;
use ff_proto::cost_graph_def::{Node, node::InputInfo, node::OutputInfo};
use ff_proto::{CostGraphDef, GraphDef, NodeDef, NodeExecStats, StepStats};
use ff_tensor::Result;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The graph that each device runs, those of devices without nodes left out; fetches are `_Retval` nodes.
pub fn partition_graphs(graph: &Graph, goal: &Goal, devices: &[Device]) -> Result<Vec<GraphDef>> {
    let names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
    let placement: Vec<u32> = graph
        .nodes()
        .map(|(_, node)| match node.info.device.as_str() {
            "" => 0,
            name => find_device(devices, name).unwrap_or(0) as u32,
        })
        .collect();
    let mut parts = partition(graph, &placement, &names)?;
    for (index, fetch) in goal.fetches.iter().enumerate() {
        let device = placement[fetch.node as usize] as usize;
        parts[device]
            .node
            .push(returned(graph, *fetch, index, &names[device]));
    }
    parts.retain(|part| !part.node.is_empty());
    Ok(parts)
}

fn returned(graph: &Graph, fetch: OutputRef, index: usize, device: &str) -> NodeDef {
    let node = graph.node(fetch.node);
    let name = &node.info.name;
    let dtype = node.info.output_types[fetch.index as usize].base();
    let attrs = ff_op::Attrs::new().with("T", dtype).with("index", index as i64);
    NodeDef {
        name: format!("_retval_{name}_{}_{index}", fetch.index),
        op: "_Retval".to_string(),
        input: vec![match fetch.index {
            0 => name.clone(),
            output => format!("{name}:{output}"),
        }],
        device: device.to_string(),
        attr: attrs
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_proto()))
            .collect(),
        ..export_node_def(graph, node)
    }
}

/// What each node of a graph took, as far as `stats` knows it.
pub fn cost_graph(graph: &Graph, stats: &StepStats, devices: &[Device]) -> CostGraphDef {
    let mut known: FxHashMap<&str, &NodeExecStats> = FxHashMap::default();
    for node in stats.dev_stats.iter().flat_map(|device| &device.node_stats) {
        known.insert(&node.node_name, node);
    }
    let node = |(id, node): (u32, &ff_graph::Node)| {
        let stats = known.get(node.info.name.as_str());
        let device = find_device(devices, &node.info.device).unwrap_or(0);
        Node {
            name: node.info.name.clone(),
            device: devices[device].name.clone(),
            id: id as i32,
            input_info: node
                .inputs
                .iter()
                .map(|input| InputInfo {
                    preceding_node: input.node as i32,
                    preceding_port: input.index as i32,
                })
                .collect(),
            output_info: stats.map(|stats| outputs(stats)).unwrap_or_default(),
            control_input: node.control_inputs.iter().map(|id| *id as i32).collect(),
            compute_cost: stats.map_or(0, |stats| stats.op_end_rel_micros.max(1)),
            compute_time: stats.map_or(0, |stats| stats.op_end_rel_micros),
            persistent_memory_size: stats
                .and_then(|stats| stats.memory_stats.as_ref())
                .map_or(0, |memory| memory.persistent_memory_size),
            ..Node::default()
        }
    };
    CostGraphDef {
        node: graph.nodes().map(node).collect(),
        cost: Vec::new(),
    }
}

fn outputs(stats: &NodeExecStats) -> Vec<OutputInfo> {
    let output = |output: &ff_proto::NodeOutput| {
        let description = output.tensor_description.as_ref()?;
        let allocation = description.allocation_description.as_ref();
        Some(OutputInfo {
            size: allocation.map_or(0, |allocation| allocation.requested_bytes),
            alias_input_port: -1,
            shape: description.shape.clone(),
            dtype: description.dtype,
        })
    };
    stats.output.iter().filter_map(output).collect()
}

/// A text as JSON, quotes included.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// The steps of a run as events in Chrome's JSON: one process per device, one row per thread, one event per node, in
/// microseconds.
pub fn chrome_trace(stats: &StepStats) -> String {
    let mut events = Vec::new();
    for (process, device) in stats.dev_stats.iter().enumerate() {
        events.push(format!(
            "{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{process},\"args\":{{\"name\":{}}}}}",
            quoted(&device.device)
        ));
        for node in &device.node_stats {
            let label = &node.timeline_label;
            let op = label.split_once(" = ").and_then(|(_, call)| call.split_once('('));
            let op = op.map_or("", |(op, _)| op);
            let bytes: i64 = node.memory.iter().map(|memory| memory.total_bytes).sum();
            events.push(format!(
                "{{\"name\":{},\"cat\":\"Op\",\"ph\":\"X\",\"pid\":{process},\"tid\":{},\"ts\":{}.{:03},\"dur\":{}.{:03},\"args\":{{\"name\":{},\"op\":{},\"bytes\":{bytes}}}}}",
                quoted(if op.is_empty() { &node.node_name } else { op }),
                node.thread_id,
                node.all_start_nanos / 1000,
                node.all_start_nanos % 1000,
                node.all_end_rel_nanos / 1000,
                node.all_end_rel_nanos % 1000,
                quoted(&node.node_name),
                quoted(op)
            ));
        }
    }
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{}]}}\n",
        events.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_proto::DeviceStepStats;

    #[test]
    fn nodes_become_events() {
        let node = NodeExecStats {
            node_name: "a\"b".to_string(),
            all_start_nanos: 1_234_567,
            all_end_rel_nanos: 2_050,
            timeline_label: "a\"b = Add(x, y)".to_string(),
            ..NodeExecStats::default()
        };
        let stats = StepStats {
            dev_stats: vec![DeviceStepStats {
                device: "/device:CPU:0".to_string(),
                node_stats: vec![node],
                ..DeviceStepStats::default()
            }],
        };
        let text = chrome_trace(&stats);
        assert!(
            text.contains(r#""name":"Add","cat":"Op","ph":"X","pid":0,"tid":0,"ts":1234.567,"dur":2.050"#),
            "{text}"
        );
        assert!(
            text.contains(r#""args":{"name":"a\"b","op":"Add","bytes":0}"#),
            "{text}"
        );
    }
}
