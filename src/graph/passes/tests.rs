//! Tests of the passes: what each changes, and what it must leave alone.

use super::{Goal, Level, optimize};
use crate::testing::{add_op, constant, graph, graph_def, output, placeholder};
use crate::{Graph, ImportOptions, NodeBuilder, NodeId, export_graph_def, import_graph_def};
use ff_op::{AttrValue, FunctionRef, OutputRef};
use ff_tensor::{DataType, Tensor};

fn goal(feeds: &[OutputRef], fetches: &[OutputRef], targets: &[NodeId]) -> Goal {
    Goal {
        feeds: feeds.to_vec(),
        fetches: fetches.to_vec(),
        targets: targets.to_vec(),
    }
}

/// The optimized graph in lines `name op inputs`, and the names of what is fetched.
fn optimized(graph: &Graph, goal: &Goal, level: Level) -> (Vec<String>, Vec<String>) {
    let (graph, goal) = optimize(graph, goal, level).unwrap();
    let line = |node: &ff_proto::NodeDef| {
        format!("{} {} {}", node.name, node.op, node.input.join(" "))
            .trim_end()
            .to_string()
    };
    let lines = export_graph_def(&graph).node.iter().map(line).collect();
    let names = goal
        .fetches
        .iter()
        .map(|fetch| graph.node(fetch.node).info.name.clone());
    (lines, names.collect())
}

fn vector(graph: &mut Graph, name: &str, values: &[f32]) -> OutputRef {
    constant(graph, name, Tensor::vector(values).unwrap())
}

#[test]
fn what_is_not_needed_goes() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[2]);
    let deep = add_op(&mut graph, "Sqrt", "deep", &[x]);
    let mid = add_op(&mut graph, "Sqrt", "mid", &[deep]);
    let top = add_op(&mut graph, "Sqrt", "top", &[mid]);
    add_op(&mut graph, "Sqrt", "other", &[x]);
    let goal = goal(&[mid], &[top], &[]);
    let (lines, names) = optimized(&graph, &goal, Level::Prune);
    assert_eq!(lines, ["_arg_mid_0_0 _Arg", "top Sqrt _arg_mid_0_0"]);
    assert_eq!(names, ["top"]);
}

#[test]
fn nobody_waits_for_a_fed_placeholder() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[2]);
    let y = placeholder(&mut graph, "y", &[2]);
    let sum = NodeBuilder::new("AddV2", "sum").input(y).input(y).control(x.node);
    let sum = output(sum.finish(&mut graph).unwrap());
    let goal = goal(&[x, y], &[sum], &[]);
    for level in [Level::Prune, Level::Full] {
        let (lines, _) = optimized(&graph, &goal, level);
        let arguments = ["_arg_x_0_0 _Arg", "_arg_y_0_1 _Arg"];
        assert_eq!(lines[..2], arguments, "{level:?}");
        assert_eq!(lines[2], "sum AddV2 _arg_y_0_1 _arg_y_0_1");
    }
}

#[test]
fn an_argument_that_became_a_target_is_not_made_twice() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[2]);
    let top = add_op(&mut graph, "Sqrt", "top", &[x]);
    let (pruned, mut goal) = super::prune::run(&graph, &goal(&[x], &[top], &[])).unwrap();
    goal.targets = vec![goal.feeds[0].node];
    let (lines, _) = optimized(&pruned, &goal, Level::Prune);
    assert_eq!(lines, ["_arg_x_0_0 _Arg", "top Sqrt _arg_x_0_0"]);
}

#[test]
fn constants_are_folded_and_errors_left_alone() {
    let mut graph = graph();
    let a = vector(&mut graph, "a", &[1.0, 2.0]);
    let b = vector(&mut graph, "b", &[3.0, 5.0]);
    let x = placeholder(&mut graph, "x", &[2]);
    let product = add_op(&mut graph, "Mul", "product", &[a, b]);
    let sum = add_op(&mut graph, "AddV2", "sum", &[product, a]);
    let top = add_op(&mut graph, "AddV2", "top", &[sum, x]);
    let goal_of = goal(&[x], &[top], &[]);
    let (folded, new_goal) = optimize(&graph, &goal_of, Level::Full).unwrap();
    let inputs = &folded.node(new_goal.fetches[0].node).inputs;
    let value = folded
        .node(inputs[0].node)
        .info
        .attrs
        .tensor("value")
        .unwrap()
        .clone();
    assert_eq!(value.as_slice::<f32>().unwrap(), [4.0, 12.0]);
    assert_eq!(folded.len(), 3);

    // Sqrt has no kernel here: it stays.
    let root = add_op(&mut graph, "Sqrt", "root", &[a]);
    let (lines, _) = optimized(&graph, &goal(&[], &[root], &[]), Level::Full);
    assert_eq!(lines, ["a Const", "root Sqrt a"]);
}

#[test]
fn equal_nodes_become_one() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[2]);
    let a = add_op(&mut graph, "Mul", "a", &[x, x]);
    let b = add_op(&mut graph, "Mul", "b", &[x, x]);
    let c = add_op(&mut graph, "AddV2", "c", &[a, b]);
    let other = add_op(&mut graph, "AddV2", "other", &[x, x]);
    let top = add_op(&mut graph, "AddV2", "top", &[c, other]);
    let (lines, _) = optimized(&graph, &goal(&[x], &[top], &[]), Level::Full);
    assert_eq!(
        lines,
        [
            "_arg_x_0_0 _Arg",
            "a Mul _arg_x_0_0 _arg_x_0_0",
            "c AddV2 a a",
            "other AddV2 _arg_x_0_0 _arg_x_0_0",
            "top AddV2 c other"
        ]
    );
    // A target is a node to run: it stays itself.
    let (lines, _) = optimized(&graph, &goal(&[x], &[top], &[b.node]), Level::Full);
    assert!(
        lines.contains(&"b Mul _arg_x_0_0 _arg_x_0_0".to_string()),
        "{lines:?}"
    );
}

#[test]
fn identities_go_unless_something_waits_for_them() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[2]);
    let passed = add_op(&mut graph, "Identity", "passed", &[x]);
    let top = add_op(&mut graph, "Sqrt", "top", &[passed]);
    let goal_of = goal(&[x], &[top], &[]);
    let (lines, _) = optimized(&graph, &goal_of, Level::Full);
    assert_eq!(lines, ["_arg_x_0_0 _Arg", "top Sqrt _arg_x_0_0"]);
    let after = NodeBuilder::new("NoOp", "after")
        .control(passed.node)
        .finish(&mut graph)
        .unwrap();
    let (lines, _) = optimized(&graph, &goal(&[x], &[top], &[after]), Level::Full);
    assert!(lines.contains(&"after NoOp ^passed".to_string()), "{lines:?}");
    // A fetched identity of a fed value gives that value.
    let (lines, names) = optimized(&graph, &goal(&[x], &[passed], &[]), Level::Full);
    assert_eq!((lines.len(), &names[..]), (1, &["_arg_x_0_0".to_string()][..]));
}

const LIBRARY: &str = "library{
    function{signature{name:'inner' input_arg{name:'x' type:DT_FLOAT} output_arg{name:'r' type:DT_FLOAT}}
        node_def{name:'root' op:'Sqrt' input:'x' attr{key:'T' value{type:DT_FLOAT}}}
        node_def{name:'effect' op:'NoOp' input:'^root'}
        ret{key:'r' value:'root:y:0'} control_ret{key:'effect' value:'effect'}}
    function{signature{name:'outer' input_arg{name:'x' type:DT_FLOAT} output_arg{name:'r' type:DT_FLOAT}}
        node_def{name:'call' op:'inner' input:'x'}
        node_def{name:'sum' op:'AddV2' input:'call:r:0' input:'x' attr{key:'T' value{type:DT_FLOAT}}}
        ret{key:'r' value:'sum:z:0'}}
    function{signature{name:'self' input_arg{name:'x' type:DT_FLOAT} output_arg{name:'r' type:DT_FLOAT}}
        node_def{name:'call' op:'self' input:'x'}
        ret{key:'r' value:'call:r:0'}}}";

fn call(graph: &mut Graph, name: &str, function: &str, x: OutputRef) -> OutputRef {
    let function = FunctionRef {
        name: function.into(),
        ..FunctionRef::default()
    };
    let node = NodeBuilder::new("PartitionedCall", name)
        .input_list([x])
        .attr("Tout", vec![DataType::FLOAT])
        .attr("f", AttrValue::Func(function));
    output(node.finish(graph).unwrap())
}

#[test]
fn calls_are_inlined_with_their_effects() {
    let mut graph = graph();
    import_graph_def(&mut graph, graph_def(LIBRARY), &ImportOptions::default()).unwrap();
    let x = placeholder(&mut graph, "x", &[2]);
    let before = NodeBuilder::new("NoOp", "before").finish(&mut graph).unwrap();
    let called = call(&mut graph, "f", "outer", x);
    graph.add_control_edge(before, called.node);
    let after = NodeBuilder::new("NoOp", "after")
        .control(called.node)
        .finish(&mut graph)
        .unwrap();
    let (lines, names) = optimized(&graph, &goal(&[x], &[called], &[after]), Level::Full);
    assert_eq!(names, ["f/sum"]);
    for line in [
        "f/call/root Sqrt _arg_x_0_0",
        "f/call/effect NoOp ^before ^f/call/root",
        "f/sum AddV2 f/call/root _arg_x_0_0",
    ] {
        assert!(lines.contains(&line.to_string()), "{lines:?}");
    }
    let after = lines.iter().find(|line| line.starts_with("after ")).unwrap();
    assert!(
        after.contains("^f/call/effect") && after.contains("^f/sum"),
        "{after}"
    );
}

#[test]
fn a_function_that_calls_itself_stays_a_call() {
    let mut graph = graph();
    import_graph_def(&mut graph, graph_def(LIBRARY), &ImportOptions::default()).unwrap();
    let x = placeholder(&mut graph, "x", &[2]);
    let called = call(&mut graph, "f", "self", x);
    let (lines, _) = optimized(&graph, &goal(&[x], &[called], &[]), Level::Full);
    assert_eq!(lines, ["_arg_x_0_0 _Arg", "f/call self _arg_x_0_0"]);
}

#[test]
fn bodies_that_double_are_inlined_up_to_a_bound() {
    const LEVELS: usize = 24;
    let typed = "attr{key:'T' value{type:DT_FLOAT}}";
    let signature = |name: usize| {
        format!(
            "signature{{name:'f{name}' input_arg{{name:'x' type:DT_FLOAT}} output_arg{{name:'r' type:DT_FLOAT}}}}"
        )
    };
    let mut text = format!(
        "library{{function{{{} node_def{{name:'s' op:'Sqrt' input:'x' {typed}}} ret{{key:'r' value:'s:y:0'}}}}",
        signature(0)
    );
    for level in 1..=LEVELS {
        let called = level - 1;
        text += &format!(
            " function{{{} node_def{{name:'a' op:'f{called}' input:'x'}} node_def{{name:'b' op:'f{called}' input:'a:r:0'}}
            ret{{key:'r' value:'b:r:0'}}}}",
            signature(level)
        );
    }
    let mut graph = graph();
    import_graph_def(&mut graph, graph_def(&(text + "}")), &ImportOptions::default()).unwrap();
    let x = placeholder(&mut graph, "x", &[2]);
    let called = call(&mut graph, "f", &format!("f{LEVELS}"), x);
    let (graph, _) = optimize(&graph, &goal(&[x], &[called], &[]), Level::Full).unwrap();
    // All copies would be 2^24 nodes. What is not inlined stays a call.
    assert!(graph.len() > 1000 && graph.len() < 200_000, "{}", graph.len());
    assert!(
        graph
            .nodes()
            .any(|(_, node)| node.info.op_name().starts_with('f'))
    );
}

#[test]
fn loops_survive() {
    let typed = "attr{key:'T' value{type:DT_FLOAT}}";
    let text = format!(
        "node{{name:'x' op:'Placeholder' attr{{key:'dtype' value{{type:DT_FLOAT}}}}}}
        node{{name:'enter' op:'Enter' input:'x' {typed} attr{{key:'frame_name' value{{s:'f'}}}}}}
        node{{name:'merge' op:'Merge' input:'next' input:'enter' {typed} attr{{key:'N' value{{i:2}}}}}}
        node{{name:'next' op:'NextIteration' input:'merge' {typed}}}
        node{{name:'exit' op:'Exit' input:'merge' {typed}}}"
    );
    let mut graph = graph();
    import_graph_def(&mut graph, graph_def(&text), &ImportOptions::default()).unwrap();
    let exit = output(graph.find("exit").unwrap());
    let (lines, _) = optimized(&graph, &goal(&[], &[exit], &[]), Level::Full);
    assert!(lines.contains(&"merge Merge next enter".to_string()), "{lines:?}");
}

#[test]
fn a_long_chain_needs_no_stack() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[1]);
    let mut y = x;
    for number in 0..20_000 {
        y = add_op(&mut graph, "Sqrt", &format!("y{number}"), &[y]);
    }
    let (new, _) = optimize(&graph, &goal(&[x], &[y], &[]), Level::Full).unwrap();
    assert_eq!(new.len(), 20_001);
}
