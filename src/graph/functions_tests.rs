//! Tests of function bodies, of functions made from graphs, and of inference through calls.

use crate::testing::{graph, graph_def, placeholder};
use crate::{FunctionBody, Graph, ImportOptions, NodeBuilder, import_graph_def};
use ff_op::{AttrValue, Attrs, FunctionRef, OutputRef};
use ff_tensor::{Code, DataType, PartialShape, Result};

fn library(text: &str) -> Graph {
    let mut graph = graph();
    import_graph_def(&mut graph, graph_def(text), &ImportOptions::default()).unwrap();
    graph
}

fn function(name: &str, attrs: Attrs) -> FunctionRef {
    FunctionRef {
        name: name.into(),
        attrs,
    }
}

fn body(graph: &Graph, function: &FunctionRef) -> Result<FunctionBody> {
    FunctionBody::instantiate(graph.registry(), graph.functions(), function)
}

/// A function of a list and a value, of any type, that sums the list; nodes in reverse order.
const SUM: &str = "library{function{
    signature{name:'sum' input_arg{name:'xs' type_attr:'T' number_attr:'N'} input_arg{name:'y' type_attr:'T'}
        output_arg{name:'r' type_attr:'T'} output_arg{name:'all' type_attr:'T' number_attr:'N'}
        attr{name:'T' type:'type'} attr{name:'N' type:'int' default_value{i:2}}}
    node_def{name:'last' op:'AddV2' input:'first:sum:0' input:'y' input:'^effect' attr{key:'T' value{placeholder:'T'}}}
    node_def{name:'first' op:'AddN' input:'xs' attr{key:'T' value{placeholder:'T'}} attr{key:'N' value{placeholder:'N'}}}
    node_def{name:'effect' op:'NoOp'}
    ret{key:'r' value:'last:z:0'} ret{key:'all' value:'xs'} control_ret{key:'done' value:'effect'}}}";

#[test]
fn bodies_take_attributes_and_lists() {
    let graph = library(SUM);
    let attrs = Attrs::new().with("T", DataType::INT32).with("N", 3i64);
    let body = body(&graph, &function("sum", attrs)).unwrap();
    let signature = body.signature();
    assert_eq!(signature.inputs, [DataType::INT32; 4]);
    assert_eq!(signature.outputs, [DataType::INT32; 4]);
    assert_eq!(body.results()[1..], body.arguments()[..3]);
    let inner = body.graph();
    let last = inner.node(body.results()[0].node);
    assert_eq!(last.info.attrs.dtype("T").unwrap(), DataType::INT32);
    assert_eq!(inner.node(last.inputs[0].node).inputs[..], body.arguments()[..3]);
    assert_eq!(last.control_inputs, [inner.find("effect").unwrap()]);
    assert_eq!(body.targets(), [inner.find("effect").unwrap()]);
}

#[test]
fn what_is_wrong_with_a_body_is_reported() {
    let attrs = || Attrs::new().with("T", DataType::FLOAT);
    let code =
        |text: &str, function: &FunctionRef| body(&library(text), function).err().map(|error| error.code());
    assert_eq!(code(SUM, &function("sum", attrs())), None);
    assert_eq!(code(SUM, &function("none", attrs())), Some(Code::NotFound));
    assert!(code(SUM, &function("sum", Attrs::new())).is_some());
    let changes = [
        ("first:sum:0", "first:sum:1"),
        ("first:sum:0", "first:total:0"),
        ("input:'y'", "input:'z'"),
        ("^effect", "^other"),
        ("key:'r'", "key:'q'"),
        ("value:'effect'", "value:'other'"),
        ("op:'AddN' input:'xs'", "op:'AddN' input:'xs' input:'last:z:0'"),
        ("op:'AddN'", "op:'Unknown'"),
    ];
    for (old, new) in changes {
        assert!(
            code(&SUM.replacen(old, new, 1), &function("sum", attrs())).is_some(),
            "{new}"
        );
    }
}

#[test]
fn loops_of_the_first_kind_lie_in_bodies() {
    let typed = "attr{key:'T' value{type:DT_FLOAT}}";
    let graph = library(&format!(
        "library{{function{{signature{{name:'f' input_arg{{name:'x' type:DT_FLOAT}} output_arg{{name:'r' type:DT_FLOAT}}}}
        node_def{{name:'merge' op:'Merge' input:'enter:output:0' input:'next:output:0' {typed} attr{{key:'N' value{{i:2}}}}}}
        node_def{{name:'next' op:'NextIteration' input:'merge:output:0' {typed}}}
        node_def{{name:'enter' op:'Enter' input:'x' {typed} attr{{key:'frame_name' value{{s:'f'}}}}}}
        ret{{key:'r' value:'merge:output:0'}}}}}}"
    ));
    let body = body(&graph, &function("f", Attrs::new())).unwrap();
    let inner = body.graph();
    let merge = inner.node(inner.find("merge").unwrap());
    assert_eq!(merge.inputs[1].node, inner.find("next").unwrap());
}

/// `f` calls itself, or `g` twice, which calls `h` twice, and so on: 2^30 calls in all.
fn calls() -> String {
    let call = |name: &str, input: &str, callee: &str| {
        format!(
            "node_def{{name:'{name}' op:'PartitionedCall' input:'{input}' attr{{key:'Tin' value{{list{{type:DT_FLOAT}}}}}}
            attr{{key:'Tout' value{{list{{type:DT_FLOAT}}}}}} attr{{key:'f' value{{func{{name:'{callee}'}}}}}}}}"
        )
    };
    let function = |name: &str, callee: &str| {
        format!(
            "function{{signature{{name:'{name}' input_arg{{name:'x' type:DT_FLOAT}} output_arg{{name:'r' type:DT_FLOAT}}}}
            {} {} ret{{key:'r' value:'b:output:0'}}}}",
            call("a", "x", callee),
            call("b", "a:output:0", callee)
        )
    };
    let many: String = (0..30)
        .map(|n| function(&format!("f{n}"), &format!("f{}", n + 1)))
        .collect();
    let last =
        "function{signature{name:'f30' input_arg{name:'x' type:DT_FLOAT} output_arg{name:'r' type:DT_FLOAT}}
        ret{key:'r' value:'x'}}";
    format!("library{{{many}{last}{}}}", function("self", "self"))
}

#[test]
fn shapes_are_inferred_through_calls() {
    let mut graph = library(&calls());
    let x = placeholder(&mut graph, "x", &[2, 3]);
    let mut call = |name: &str| {
        let node = NodeBuilder::new("PartitionedCall", format!("call_{name}"))
            .input_list([x])
            .attr("Tout", vec![DataType::FLOAT])
            .attr("f", AttrValue::Func(function(name, Attrs::new())));
        let id = node.finish(&mut graph).unwrap();
        graph.node(id).shapes[0].clone()
    };
    assert_eq!(call("f25"), PartialShape::new(&[2, 3]));
    // Too deep, but not too long.
    assert_eq!(call("f0"), PartialShape::unknown());
    assert_eq!(call("self"), PartialShape::unknown());
}

#[test]
fn gradients_of_recursive_functions_are_refused() {
    let mut graph = library(&calls());
    let x = placeholder(&mut graph, "x", &[2, 3]);
    let node = NodeBuilder::new("PartitionedCall", "call")
        .input_list([x])
        .attr("Tout", vec![DataType::FLOAT])
        .attr("f", AttrValue::Func(function("self", Attrs::new())));
    let node = node.finish(&mut graph).unwrap();
    let y = OutputRef { node, index: 0 };
    let error = crate::add_gradients(&mut graph, &[y], &[x], &[], None).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented, "{error}");
}
