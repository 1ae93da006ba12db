//! Tests of the gradient driver: values of simple gradients, errors in the reference's words, nothing left on failure.

use crate::testing::{add_op, constant, graph, graph_def, output, placeholder};
use crate::{Graph, ImportOptions, NodeBuilder, add_gradients, export_graph_def, import_graph_def};
use ff_op::{AttrValue, FunctionRef, GradientHost, OutputRef};
use ff_tensor::{Code, DataType, Tensor};

/// Placeholders `a`, `b` and their product `m`.
fn product() -> (Graph, [OutputRef; 3]) {
    let mut graph = graph();
    let a = placeholder(&mut graph, "a", &[2]);
    let b = placeholder(&mut graph, "b", &[2]);
    let m = add_op(&mut graph, "Mul", "m", &[a, b]);
    (graph, [a, b, m])
}

/// An output as `node op(inputs)`, down to the nodes numbered below `leaves`.
fn formula(graph: &Graph, output: OutputRef, leaves: u32) -> String {
    let node = graph.node(output.node);
    if output.node < leaves {
        return node.info.name.clone();
    }
    let inputs: Vec<String> = node
        .inputs
        .iter()
        .map(|input| formula(graph, *input, leaves))
        .collect();
    format!("{}({})", node.info.op_name(), inputs.join(", "))
}

#[test]
fn products_and_sums() {
    let (mut graph, [a, b, m]) = product();
    let sum = add_op(&mut graph, "AddV2", "sum", &[m, a]);
    let leaves = graph.len() as u32;
    let gradients = add_gradients(&mut graph, &[sum], &[a, b, m], &[], None).unwrap();
    let texts: Vec<String> = gradients
        .iter()
        .map(|g| formula(&graph, g.unwrap(), leaves))
        .collect();
    assert_eq!(
        texts,
        [
            "AddN(OnesLike(sum), Mul(OnesLike(sum), b))",
            "Mul(a, OnesLike(sum))",
            "OnesLike(sum)"
        ]
    );
    assert_eq!(graph.node(leaves).info.name, "gradients/OnesLike");
    assert!(graph.find("gradients/Mul_1").is_some());

    let again = add_gradients(&mut graph, &[m], &[a], &[b], None).unwrap();
    let node = again[0].unwrap().node;
    assert!(graph.node(node).info.name.starts_with("gradients_1/"));
    assert_eq!(formula(&graph, again[0].unwrap(), leaves), "Mul(b, b)");
    let itself = add_gradients(&mut graph, &[a], &[a], &[], Some("own")).unwrap();
    assert_eq!(graph.node(itself[0].unwrap().node).info.name, "own/OnesLike");
}

#[test]
fn several_outputs_add_up() {
    let (mut graph, [a, b, m]) = product();
    let leaves = graph.len() as u32;
    let gradients = add_gradients(&mut graph, &[m, m], &[m], &[a, b], None).unwrap();
    assert_eq!(formula(&graph, gradients[0].unwrap(), leaves), "AddN(a, b)");
}

#[test]
fn nothing_flows_through_what_is_not_differentiable() {
    let (mut graph, [a, _, m]) = product();
    let floor = add_op(&mut graph, "Floor", "floor", &[m]);
    let gradients = add_gradients(&mut graph, &[floor], &[a], &[], None).unwrap();
    assert_eq!(gradients, [None]);
}

#[test]
fn errors_leave_the_graph_as_it_was() {
    let (mut graph, [a, b, m]) = product();
    let c = placeholder(&mut graph, "c", &[2]);
    let root = add_op(&mut graph, "Sqrt", "root", &[m]);
    let top = add_op(&mut graph, "Mul", "top", &[root, m]);
    let before = export_graph_def(&graph);
    let mut error = |outputs: &[OutputRef], inputs: &[OutputRef], incoming: &[OutputRef], prefix| {
        let error = add_gradients(&mut graph, outputs, inputs, incoming, prefix).unwrap_err();
        assert_eq!(export_graph_def(&graph), before);
        (error.code(), error.message().to_string())
    };
    let (code, text) = error(&[top], &[a], &[], None);
    assert_eq!(code, Code::NotFound);
    assert!(text.starts_with("No gradient defined for op: Sqrt"), "{text}");
    assert_eq!(
        error(&[m], &[c], &[], None),
        (
            Code::InvalidArgument,
            "Cannot compute the partial derivative for node 'c' as it's unreachable from the output node(s)."
                .into()
        )
    );
    assert_eq!(
        error(&[m], &[a], &[], Some("a")),
        (
            Code::InvalidArgument,
            "prefix [a] conflicts with existing node in the graph named [a]".into()
        )
    );
    assert_eq!(
        error(&[m], &[a], &[a, b], None),
        (
            Code::InvalidArgument,
            "Must specify a gradient input for each output.".into()
        )
    );
}

#[test]
fn a_long_chain_needs_no_stack() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[1]);
    let mut y = x;
    for number in 0..50_000 {
        y = add_op(&mut graph, "Identity", &format!("y{number}"), &[y]);
    }
    let gradients = add_gradients(&mut graph, &[y], &[x], &[], None).unwrap();
    assert!(gradients[0].is_some());
}

const FUNCTION: &str = "library{function{
    signature{name:'f'
        input_arg{name:'x' type:DT_FLOAT} input_arg{name:'n' type:DT_INT32} input_arg{name:'y' type:DT_FLOAT}
        output_arg{name:'r' type:DT_FLOAT} output_arg{name:'s' type:DT_INT32}}
    node_def{name:'square' op:'Mul' input:'x' input:'x' attr{key:'T' value{type:DT_FLOAT}}}
    node_def{name:'two' op:'Const' attr{key:'dtype' value{type:DT_FLOAT}}
        attr{key:'value' value{tensor{dtype:DT_FLOAT tensor_shape{} float_val:2}}}}
    node_def{name:'twice' op:'Mul' input:'square:z:0' input:'two:output:0' attr{key:'T' value{type:DT_FLOAT}}}
    ret{key:'r' value:'twice:z:0'} ret{key:'s' value:'n'}}}";

#[test]
fn functions_are_differentiated() {
    let mut graph = graph();
    import_graph_def(&mut graph, graph_def(FUNCTION), &ImportOptions::default()).unwrap();
    let function = FunctionRef {
        name: "f".into(),
        ..FunctionRef::default()
    };
    let mut host = super::Host::new(&mut graph, "g");
    let made = host.differentiate(&function).unwrap();
    assert_eq!((&made.results[..], &made.arguments[..]), (&[0][..], &[0][..]));
    assert_eq!(made.added, [DataType::FLOAT]);

    // d(2 x^2) = 2 g x + x 2 g: the argument is captured, the constant copied.
    let forward = graph.functions().find(&made.forward).unwrap();
    let signature = forward.signature.as_ref().unwrap();
    assert_eq!((signature.input_arg.len(), signature.output_arg.len()), (3, 3));
    assert_eq!(
        forward.ret[&signature.output_arg[2].name],
        signature.input_arg[0].name
    );
    let gradient = graph.functions().find(&made.gradient).unwrap();
    let signature = gradient.signature.as_ref().unwrap();
    assert_eq!((signature.input_arg.len(), signature.output_arg.len()), (2, 1));
    let ops: Vec<&str> = gradient.node_def.iter().map(|node| node.op.as_str()).collect();
    assert!(ops.contains(&"Const") && ops.contains(&"AddN"), "{ops:?}");

    // Both can be called.
    let x = constant(&mut graph, "x", Tensor::vector(&[1.0f32]).unwrap());
    let n = constant(&mut graph, "n", Tensor::scalar(1i32).unwrap());
    let call = NodeBuilder::new(&made.forward, "call").input(x).input(n).input(x);
    let call = call.finish(&mut graph).unwrap();
    let saved = OutputRef { node: call, index: 2 };
    let back = NodeBuilder::new(&made.gradient, "back").input(saved).input(x);
    let back = output(back.finish(&mut graph).unwrap());
    assert_eq!(graph.output_type(back).unwrap(), DataType::FLOAT);
}

#[test]
fn a_failure_in_a_function_takes_everything_back() {
    let mut graph = graph();
    let text = FUNCTION.replace(
        "name:'twice' op:'Mul' input:'square:z:0' input:'two:output:0'",
        "name:'twice' op:'Sqrt' input:'square:z:0'",
    );
    let text = text.replace("twice:z:0", "twice:y:0");
    import_graph_def(&mut graph, graph_def(&text), &ImportOptions::default()).unwrap();
    let x = placeholder(&mut graph, "x", &[2]);
    let n = constant(&mut graph, "n", Tensor::scalar(1i32).unwrap());
    let function = FunctionRef {
        name: "f".into(),
        ..FunctionRef::default()
    };
    let call = NodeBuilder::new("PartitionedCall", "call")
        .input_list([x, n, x])
        .attr("Tout", vec![DataType::FLOAT, DataType::INT32])
        .attr("f", AttrValue::Func(function));
    let call = output(call.finish(&mut graph).unwrap());
    let before = export_graph_def(&graph);
    let error = add_gradients(&mut graph, &[call], &[x], &[], None).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(export_graph_def(&graph), before);
}

/// A scope is taken by a node in it or of its name, and by no other spelling of its number.
#[test]
fn scopes_that_are_free() {
    let (mut graph, [a, _, m]) = product();
    for name in [
        "gradients_2/x",
        "gradients_4",
        "gradients_03/x",
        "gradients_0/x",
        "gradientsx",
        "y/gradients_1",
    ] {
        placeholder(&mut graph, name, &[2]);
    }
    let scopes: Vec<String> = (0..4)
        .map(|_| {
            let gradients = add_gradients(&mut graph, &[m], &[a], &[], None).unwrap();
            let name = &graph.node(gradients[0].unwrap().node).info.name;
            name.split('/').next().unwrap().to_string()
        })
        .collect();
    assert_eq!(scopes, ["gradients", "gradients_1", "gradients_3", "gradients_5"]);
}
