//! Clusters in v1 loops, and constants that those are given.

use crate::tests::Net;
use crate::{OP_NAME, Policy};
use ff_graph::{Graph, NodeBuilder, NodeId, constant_behind};
use ff_op::OutputRef;
use ff_tensor::{DataType, Tensor};

/// A loop of two variables, with a constant that is entered, for all turns or as another variable is. Gives what is fetched.
fn two_variables(net: &mut Net, is_constant: bool) -> NodeId {
    let value = Tensor::vector(&[1.0f32; 3]).unwrap();
    let constant = NodeBuilder::new("Const", "constant")
        .attr("value", value)
        .attr("dtype", DataType::FLOAT);
    let constant = constant.finish(&mut net.graph).unwrap();
    let enter = |net: &mut Net, name: &str, value: NodeId, is_constant: bool| {
        let enter = NodeBuilder::new("Enter", name)
            .input(Net::value(value))
            .attr("frame_name", "loop")
            .attr("is_constant", is_constant);
        enter.finish(&mut net.graph).unwrap()
    };
    let step = enter(net, "step", constant, is_constant);
    let (x, y) = (net.input("x"), net.input("y"));
    let starts = [enter(net, "x_in", x, false), enter(net, "y_in", y, false)];
    let merges = starts.map(|start| {
        let name = format!("merge_{start}");
        let both = [Net::value(start), Net::value(start)];
        let merge = NodeBuilder::new("Merge", &name).input_list(both);
        merge.finish(&mut net.graph).unwrap()
    });
    let less = net.op("Less", "less", &merges);
    let condition = net.op("LoopCond", "condition", &[less]);
    let switches = merges.map(|merge| net.op("Switch", &format!("switch_{merge}"), &[merge, condition]));
    let body = |net: &mut Net, op: &str, name: &str, a: OutputRef, b: OutputRef| {
        let node = NodeBuilder::new(op, name).input(a).input(b);
        Net::value(node.finish(&mut net.graph).unwrap())
    };
    let [x, y] = switches.map(|node| OutputRef { node, index: 1 });
    let sum = body(net, "Add", "sum", x, Net::value(step));
    let product = body(net, "Mul", "product", y, sum);
    for (merge, next) in merges.into_iter().zip([sum, product]) {
        let name = format!("next_{merge}");
        let next = NodeBuilder::new("NextIteration", &name).input(next);
        let next = next.finish(&mut net.graph).unwrap();
        net.graph.replace_input(merge, 1, Net::value(next)).unwrap();
    }
    let exit = NodeBuilder::new("Exit", "exit").input(Net::value(switches[0]));
    exit.finish(&mut net.graph).unwrap()
}

#[test]
fn variables_of_a_loop_are_dead_together_and_constants_come_along() {
    for is_constant in [true, false] {
        let mut net = Net::new();
        let exit = two_variables(&mut net, is_constant);
        let fed = ["x", "y"].map(|name| net.graph.find(name).unwrap());
        let (graph, ..) = net.clustered(&fed, &[exit], &Policy::AUTO);
        let clusters = graph.nodes().filter(|(_, node)| node.info.op_name() == OP_NAME);
        let inputs: Vec<usize> = clusters.map(|(_, node)| node.inputs.len()).collect();
        assert_eq!(inputs, [if is_constant { 2 } else { 3 }], "{is_constant}");
    }
}

fn out(node: NodeId) -> OutputRef {
    OutputRef { node, index: 0 }
}

/// A loop whose variable `next` makes of what it is in the body: the constant, and the variable's places.
fn looped(next: &[&str]) -> (Graph, OutputRef, [OutputRef; 3]) {
    let mut graph = Graph::new(ff_ops::registry());
    let constant = NodeBuilder::new("Const", "constant")
        .attr("value", Tensor::vector(&[1.0f32; 3]).unwrap())
        .attr("dtype", DataType::FLOAT);
    let constant = out(constant.finish(&mut graph).unwrap());
    let enter = NodeBuilder::new("Enter", "enter")
        .input(constant)
        .attr("frame_name", "loop");
    let enter = out(enter.finish(&mut graph).unwrap());
    let merge = NodeBuilder::new("Merge", "merge").input_list([enter, enter]);
    let merge = out(merge.finish(&mut graph).unwrap());
    let condition = NodeBuilder::new("Placeholder", "condition").attr("dtype", DataType::BOOL);
    let condition = out(condition.finish(&mut graph).unwrap());
    let switch = NodeBuilder::new("Switch", "switch").input(merge).input(condition);
    let switch = switch.finish(&mut graph).unwrap();
    let mut at = OutputRef {
        node: switch,
        index: 1,
    };
    for (number, op) in next.iter().enumerate() {
        let node = NodeBuilder::new(*op, format!("next_{number}")).input(at);
        at = out(node.finish(&mut graph).unwrap());
    }
    graph.replace_input(merge.node, 1, at).unwrap();
    let body = OutputRef {
        node: switch,
        index: 1,
    };
    (graph, constant, [merge, body, out(switch)])
}

#[test]
fn variables_that_are_handed_on_are_what_they_start_with() {
    let (graph, constant, places) = looped(&["Identity", "Identity", "NextIteration"]);
    for place in places {
        assert_eq!(constant_behind(&graph, place), Some(constant));
    }
}

#[test]
fn variables_that_change_are_not() {
    let (graph, _, places) = looped(&["Neg", "NextIteration"]);
    let found: Vec<_> = places
        .iter()
        .map(|&place| constant_behind(&graph, place))
        .collect();
    assert_eq!(found, [None; 3]);
    // It is there in the first turn only.
    assert_eq!(constant_behind(&graph, out(graph.find("enter").unwrap())), None);
}

#[test]
fn what_waits_is_not_there_at_once() {
    let (mut graph, constant, places) = looped(&["NextIteration"]);
    let waits_for = graph.find("condition").unwrap();
    graph.add_control_edge(waits_for, constant.node);
    assert_eq!(constant_behind(&graph, constant), Some(constant));
    assert_eq!(constant_behind(&graph, places[1]), None);
}
