//! Texts are those of the reference.

use crate::testing::{graph, graph_def, output, placeholder};
use crate::{CONTROL, Graph, ImportOptions, ImportResults, export_graph_def, import_graph_def};
use ff_proto::{GraphDef, NodeDef};
use ff_tensor::{Code, PartialShape, Result};

fn float(name: &str) -> String {
    format!("node{{name:'{name}' op:'Placeholder' attr{{key:'dtype' value{{type:DT_FLOAT}}}}}}")
}

fn identity(name: &str, input: &str) -> String {
    format!("node{{name:'{name}' op:'Identity' input:'{input}' attr{{key:'T' value{{type:DT_FLOAT}}}}}}")
}

/// A graph with the float placeholder `p` of shape [2,3].
fn base() -> Graph {
    let mut graph = graph();
    placeholder(&mut graph, "p", &[2, 3]);
    graph
}

fn import(graph: &mut Graph, text: &str, options: &ImportOptions) -> Result<ImportResults> {
    import_graph_def(graph, graph_def(text), options)
}

/// Imports, expects an error and gives its text; the graph must be unchanged.
fn error(text: &str, options: &ImportOptions) -> String {
    let mut graph = base();
    let before = export_graph_def(&graph);
    let error = import(&mut graph, text, options).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert_eq!(export_graph_def(&graph), before, "{text}");
    assert!(graph.node(0).consumers[0].is_empty() && graph.node(0).control_outputs.is_empty());
    error.message().to_string()
}

/// The nodes that an import added, as messages.
fn added(text: &str, options: &ImportOptions) -> Vec<NodeDef> {
    let mut graph = base();
    import(&mut graph, text, options).unwrap();
    export_graph_def(&graph).node.split_off(1)
}

fn summary(nodes: &[NodeDef]) -> Vec<String> {
    let one = |node: &NodeDef| format!("{} {} {}", node.name, node.op, node.input.join(" "));
    nodes
        .iter()
        .map(|node| one(node).trim_end().to_string())
        .collect()
}

#[test]
fn what_is_wrong_with_nodes_is_reported() {
    let no_op = |name: &str, more: &str| format!("node{{name:'{name}' op:'NoOp' {more}}}");
    let cases = [
        (identity("x", "y"), "Node 'x': Unknown input node 'y'"),
        ("node{name:'x'}".into(), "Node 'x' does not specify an operation"),
        (
            no_op("x!", ""),
            "Node 'x!': Node name contains invalid characters",
        ),
        (
            no_op("_x", ""),
            "Node '_x': Node name contains invalid characters",
        ),
        (float("x") + &float("x"), "Node 'x' is not unique"),
        (float("p"), "Node name 'p' already exists in the Graph"),
        (
            no_op("a", "") + "node{name:'x' op:'Identity' input:'^a' input:'a'}",
            "Node 'x': Control dependencies must come after regular dependencies",
        ),
        (
            float("a") + &identity("x", "a:1"),
            "Node 'x': Connecting to invalid output 1 of source node a which has 1 outputs.",
        ),
        (
            float("a") + &identity("x", "a").replace("FLOAT", "INT32"),
            "Input 0 of node x was passed float from a:0 incompatible with expected int32.",
        ),
        (identity("a", "x") + &identity("x", "a"), "2 nodes in a cycle"),
        (
            "node{name:'x' op:'Identity' attr{key:'T' value{type:DT_FLOAT}}}".into(),
            "NodeDef expected inputs 'float' do not match 0 inputs specified; Op<name=Identity; signature=input:T -> output:T; attr=T:type>; NodeDef: {{node x}}",
        ),
        (no_op("y", "input:''"), "Node 'y': Unknown input node ''"),
        (
            no_op("x", "") + &no_op("y", "input:'^x:0'"),
            "Node 'y': Unknown input node '^x:0'",
        ),
        (
            no_op("x", "attr{key:'_class' value{list{s:'loc:@y'}}}"),
            "Node 'x' expects to be colocated with unknown node 'y'",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(error(&text, &ImportOptions::default()), message);
    }
    let unknown = import(&mut base(), "node{name:'x' op:'Foo'}", &ImportOptions::default()).unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[test]
fn what_is_wrong_with_a_graph_is_reported() {
    let function = |more: &str| format!("function{{signature{{name:'f' {more}}}}}");
    let cases = [
        (
            "versions{min_consumer:99999}".into(),
            "GraphDef min consumer version 99999 above current version 2474 for TensorFlow 2.21.0.  Please upgrade TensorFlow.",
        ),
        (
            "versions{producer:-1}".into(),
            "GraphDef producer version -1 below min producer 0 supported by TensorFlow 2.21.0.  Please regenerate your graph.",
        ),
        (
            "versions{producer:20 bad_consumers:[2474]}".into(),
            "GraphDef disallows consumer version 2474.  Please upgrade TensorFlow: this version is likely buggy.",
        ),
        (
            "library{function{signature{name:'NoOp'}}}".into(),
            "Cannot add function 'NoOp' because an op with the same name already exists.",
        ),
        (
            format!(
                "library{{{}{}}}",
                function(""),
                function("input_arg{name:'a' type:DT_FLOAT}")
            ),
            "Cannot add function 'f' because a different function with the same name already exists.",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(error(&text, &ImportOptions::default()), message);
    }
}

#[test]
fn output_shapes_refine_and_go() {
    let shaped = |shapes: &str| {
        let attr = format!("attr{{key:'_output_shapes' value{{list{{{shapes}}}}}}}}}");
        float("a") + identity("x", "a").trim_end_matches('}').trim_end() + "}}" + &attr
    };
    let mut graph = base();
    import(
        &mut graph,
        &shaped("shape{dim{size:4}}"),
        &ImportOptions::default(),
    )
    .unwrap();
    let x = graph.find("x").unwrap();
    assert_eq!(graph.output_shape(output(x)), PartialShape::new(&[4]));
    assert!(graph.node(x).info.attrs.get("_output_shapes").is_none());
    assert_eq!(
        error(&shaped(""), &ImportOptions::default()),
        "Node 'x' has 1 outputs but the _output_shapes attribute specifies shapes for 0 outputs"
    );
    let contradiction = shaped("shape{dim{size:4}}").replace(
        "value{type:DT_FLOAT}}}node",
        "value{type:DT_FLOAT}} attr{key:'shape' value{shape{dim{size:5}}}}}node",
    );
    assert_eq!(
        error(&contradiction, &ImportOptions::default()),
        "Node 'x' has an _output_shapes attribute inconsistent with the GraphDef for output #0: Dimension 0 in both shapes must be equal, but are 5 and 4. Shapes are [5] and [4]."
    );
}

#[test]
fn prefixes_and_unique_names() {
    let text = float("a")
        + &identity("x", "a")
        + "node{name:'y' op:'NoOp' attr{key:'_class' value{list{s:'loc:@x'}}}}";
    let with_prefix = |prefix: &str, uniquify_prefix| ImportOptions {
        prefix: prefix.into(),
        uniquify_prefix,
        ..ImportOptions::default()
    };
    let nodes = added(&text, &with_prefix("pre", false));
    assert_eq!(
        summary(&nodes),
        ["pre/a Placeholder", "pre/x Identity pre/a", "pre/y NoOp"]
    );
    let class = format!("{:?}", nodes[2].attr["_class"]);
    assert!(class.contains("loc:@pre/x"), "{class}");
    assert_eq!(
        summary(&added(&text, &with_prefix("p", true)))[0],
        "p_1/a Placeholder"
    );
    assert_eq!(
        summary(&added(&text, &with_prefix("p", false)))[0],
        "p/a Placeholder"
    );
    assert_eq!(
        error(&text, &with_prefix("pre!", false)),
        "Imported node name prefix 'pre!/' would lead to invalid node names"
    );

    let uniquify = ImportOptions {
        uniquify_names: true,
        ..ImportOptions::default()
    };
    let text = float("p")
        + &identity("x", "p")
        + "node{name:'y' op:'NoOp' attr{key:'_class' value{list{s:'loc:@p'}}}}";
    let nodes = added(&text, &uniquify);
    assert_eq!(summary(&nodes)[..2], ["p_1 Placeholder", "x Identity p_1"]);
    assert!(format!("{:?}", nodes[2].attr["_class"]).contains("loc:@p_1"));
}

#[test]
fn inputs_are_mapped() {
    let map = |node: &str, index, target_index| {
        let mut target = output(0);
        target.index = target_index;
        ((node.to_string(), index), target)
    };
    let options = ImportOptions {
        input_map: vec![
            map("y", 2, 0),
            map("unused", 0, 0),
            map("z", CONTROL, CONTROL),
            map("x", 7, 0),
        ],
        return_outputs: vec![("x".into(), 0), ("y".into(), 2)],
        return_nodes: vec!["x".into()],
        ..ImportOptions::default()
    };
    let mut graph = base();
    let text = identity("x", "y:2") + "node{name:'n' op:'NoOp' input:'^z'}";
    let results = import(&mut graph, &text, &options).unwrap();
    assert_eq!(
        summary(&export_graph_def(&graph).node)[1..],
        ["x Identity p", "n NoOp ^p"]
    );
    assert_eq!(results.return_outputs, [output(1), output(0)]);
    assert_eq!(results.return_nodes, [1]);
    assert_eq!(
        results.missing_unused_keys,
        [("unused".into(), 0), ("x".into(), 7)]
    );

    let wanted = |output: Option<(&str, u32)>, node: Option<&str>| ImportOptions {
        return_outputs: output
            .map(|(node, index)| (node.into(), index))
            .into_iter()
            .collect(),
        return_nodes: node.map(String::from).into_iter().collect(),
        ..ImportOptions::default()
    };
    let text = float("a");
    assert_eq!(
        error(&text, &wanted(Some(("z", 0)), None)),
        "Requested return tensor 'z:0' not found in graph def"
    );
    assert_eq!(
        error(&text, &wanted(Some(("a", 3)), None)),
        "Invalid return output 3 of node 'a', which has 1 output(s)"
    );
    assert_eq!(
        error(&text, &wanted(None, Some("z"))),
        "Requested return node 'z' not found in graph def"
    );
}

#[test]
fn control_dependencies_devices_and_order() {
    let options = ImportOptions {
        control_dependencies: vec![0],
        default_device: "/cpu:0".into(),
        ..ImportOptions::default()
    };
    let nodes = added(
        &(identity("x", "a") + &float("a") + &identity("z", "x")),
        &options,
    );
    assert_eq!(
        summary(&nodes),
        ["a Placeholder ^p", "x Identity a", "z Identity x"]
    );
    assert_eq!(nodes[0].device, "/cpu:0");
    let twice = "node{name:'x' op:'NoOp'} node{name:'y' op:'NoOp' input:'^x' input:'^x'}";
    assert_eq!(summary(&added(twice, &ImportOptions::default()))[1], "y NoOp ^x");
}

#[test]
fn loops_are_closed() {
    let float = |name: &str, op: &str, inputs: &str, more: &str| {
        format!("node{{name:'{name}' op:'{op}' {inputs} attr{{key:'T' value{{type:DT_FLOAT}}}} {more}}}")
    };
    let text = self::float("a")
        + &float(
            "enter",
            "Enter",
            "input:'a'",
            "attr{key:'frame_name' value{s:'f'}}",
        )
        + &float(
            "merge",
            "Merge",
            "input:'next' input:'enter'",
            "attr{key:'N' value{i:2}}",
        )
        + &float("next", "NextIteration", "input:'merge'", "");
    let nodes = added(&text, &ImportOptions::default());
    assert_eq!(nodes[2].name, "merge");
    assert_eq!(nodes[2].input, ["next", "enter"]);
    let mut graph = base();
    import(&mut graph, &text, &ImportOptions::default()).unwrap();
    let (merge, next) = (graph.find("merge").unwrap(), graph.find("next").unwrap());
    assert_eq!(graph.node(next).consumers[0][..], [(merge, 0)]);
    let bad = text.replace("input:'next'", "input:'next:1'");
    assert_eq!(
        error(&bad, &ImportOptions::default()),
        "Node 'merge': Connecting to invalid output 1 of source node next which has 1 outputs."
    );
}

#[test]
fn attributes_are_completed_and_unknown_ones_kept() {
    let text = "node{name:'a' op:'NoOp' attr{key:'zz' value{i:3}} attr{key:'_empty' value{}}}".to_string()
        + &float("b");
    let nodes = added(&text, &ImportOptions::default());
    assert_eq!(nodes[0].attr.keys().collect::<Vec<_>>(), ["_empty", "zz"]);
    assert_eq!(nodes[1].attr.keys().collect::<Vec<_>>(), ["dtype", "shape"]);
    assert_eq!(
        error(
            "node{name:'x' op:'Placeholder' attr{key:'dtype' value{}}}",
            &ImportOptions::default()
        ),
        "AttrValue missing value with expected type 'type'\n\t for attr 'dtype'\n\t; NodeDef: {{node x}}; Op<name=Placeholder; signature= -> output:dtype; attr=dtype:type; attr=shape:shape,default=<unknown>>"
    );
}

#[test]
fn versions_merge() {
    let mut graph = graph();
    import(
        &mut graph,
        "versions{producer:5 min_consumer:3 bad_consumers:3}",
        &ImportOptions::default(),
    )
    .unwrap();
    assert_eq!((graph.versions.producer, graph.versions.min_consumer), (5, 3));
    assert_eq!(graph.versions.bad_consumers, [3]);
    import(
        &mut graph,
        "library{function{signature{name:'f'}}}",
        &ImportOptions::default(),
    )
    .unwrap();
    assert_eq!((graph.versions.producer, graph.versions.min_consumer), (0, 12));
}

#[test]
fn a_large_chain_is_linear() {
    let node = |index: usize| NodeDef {
        name: format!("n{index}"),
        op: "NoOp".into(),
        // The message is in reverse order: every input is a forward reference.
        input: if index == 0 {
            vec![]
        } else {
            vec![format!("^n{}", index - 1)]
        },
        ..NodeDef::default()
    };
    let def = GraphDef {
        node: (0..200_000).rev().map(node).collect(),
        ..GraphDef::default()
    };
    let mut graph = graph();
    import_graph_def(&mut graph, def, &ImportOptions::default()).unwrap();
    assert_eq!(graph.len(), 200_000);
    assert_eq!(graph.node(7).info.name, "n7");
}
