//! Texts are those of the reference.

use crate::testing::{add_op, graph, output, placeholder};
use crate::{Graph, NodeBuilder, export_graph_def};
use ff_op::OutputRef;
use ff_tensor::{Code, DataType, PartialShape};

const ADD: &str = "Op<name=AddV2; signature=x:T, y:T -> z:T; attr=T:type,allowed=[DT_BFLOAT16, DT_HALF, DT_FLOAT, DT_DOUBLE, DT_UINT8, DT_UINT16, DT_UINT32, DT_UINT64, DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_COMPLEX64, DT_COMPLEX128]; is_commutative=true; is_aggregate=true>";
const PLACEHOLDER: &str =
    "Op<name=Placeholder; signature= -> output:dtype; attr=dtype:type; attr=shape:shape,default=<unknown>>";

/// A graph with float `p` [2,3], float `w` [4,5], int32 `q`, string `s`.
fn inputs() -> (Graph, [OutputRef; 4]) {
    let mut graph = graph();
    let p = placeholder(&mut graph, "p", &[2, 3]);
    let w = placeholder(&mut graph, "w", &[4, 5]);
    let mut typed = |name, dtype: DataType| {
        let node = NodeBuilder::new("Placeholder", name).attr("dtype", dtype);
        output(node.finish(&mut graph).unwrap())
    };
    let (q, s) = (typed("q", DataType::INT32), typed("s", DataType::STRING));
    (graph, [p, w, q, s])
}

/// Builds, expects an error, and gives its text; the graph must be unchanged.
fn error(graph: &mut Graph, node: NodeBuilder, code: Code) -> String {
    let before = export_graph_def(graph);
    let error = node.finish(graph).unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert_eq!(export_graph_def(graph), before);
    error.message().to_string()
}

#[test]
fn attributes_follow_from_inputs() {
    let (mut graph, [p, ..]) = inputs();
    let sum = add_op(&mut graph, "AddV2", "sum", &[p, p]);
    let info = &graph.node(sum.node).info;
    assert_eq!(info.attrs.dtype("T").unwrap(), DataType::FLOAT);
    assert_eq!(graph.output_shape(sum), PartialShape::new(&[2, 3]));
    let all = NodeBuilder::new("AddN", "all")
        .input_list([p, sum])
        .finish(&mut graph)
        .unwrap();
    assert_eq!(graph.node(all).info.attrs.int("N").unwrap(), 2);
    assert_eq!(graph.node(p.node).consumers[0].len(), 3);
}

#[test]
fn wrong_inputs_are_reported() {
    let (mut graph, [p, w, q, s]) = inputs();
    let mut text = |node: NodeBuilder| error(&mut graph, node, Code::InvalidArgument);
    let add = || NodeBuilder::new("AddV2", "a");
    assert_eq!(
        text(add().input(p).input(q)),
        format!(
            "Inconsistent values for attr 'T' DT_FLOAT vs. DT_INT32 while building NodeDef 'a' using {ADD}"
        )
    );
    assert_eq!(
        text(add().input(s).input(s)),
        format!(
            "Value for attr 'T' of string is not in the list of allowed values: bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128\n\t; NodeDef: {{{{node a}}}}; {ADD}"
        )
    );
    assert_eq!(
        text(add().input(p)),
        format!("1 inputs specified of 2 inputs in Op while building NodeDef 'a' using {ADD}")
    );
    assert_eq!(
        text(add().input(p).input(p).input(p)),
        format!("More Input() calls than the 2 input_args while building NodeDef 'a' using {ADD}")
    );
    assert_eq!(
        text(add().input(p).input(OutputRef { index: 1, ..p })),
        "Attempt to add output 1 of p not in range [0, 1) to node with type AddV2. Node: {{node p}}"
    );
    assert_eq!(
        text(add().input(p).input_list([q]).attr("T", DataType::INT32)),
        format!(
            "2 errors while building NodeDef 'a' using {ADD}:\nList provided to input 'y' when single Tensor expected\nInconsistent values for attr 'T' DT_FLOAT vs. DT_INT32"
        )
    );
    assert!(
        text(NodeBuilder::new("AddN", "n").input(p))
            .starts_with("Single tensor passed to 'inputs', expected list while")
    );
    assert!(
        text(NodeBuilder::new("AddN", "n").input_list([]))
            .starts_with("Value for attr 'N' of 0 must be at least minimum 1\n\t; NodeDef: {{node n}}; Op<")
    );
    assert!(
        text(NodeBuilder::new("AddN", "n").input_list([p, q]))
            .starts_with("Input 'inputs' passed int32 expected float while")
    );
    assert!(
        text(NodeBuilder::new("Assign", "n").input(p).input(p))
            .starts_with("Input 'ref' passed float expected ref type while")
    );
    assert!(
        text(NodeBuilder::new("MatchingFiles", "n").input(p))
            .starts_with("Input 'pattern' passed float expected string while")
    );
    let product = NodeBuilder::new("MatMul", "m1").input(p).input(w);
    assert_eq!(
        text(product),
        "Dimensions must be equal, but are 3 and 4 for '{{node m1}} = MatMul[T=DT_FLOAT, grad_a=false, grad_b=false, transpose_a=false, transpose_b=false](p, w)' with input shapes: [2,3], [4,5]."
    );
}

#[test]
fn wrong_attributes_are_reported() {
    let (mut graph, [p, ..]) = inputs();
    let mut text = |node: NodeBuilder| error(&mut graph, node, Code::InvalidArgument);
    let node = || NodeBuilder::new("Placeholder", "x");
    assert_eq!(
        text(node()),
        format!("NodeDef missing attr 'dtype' from {PLACEHOLDER}; NodeDef: {{{{node x}}}}")
    );
    assert_eq!(
        text(NodeBuilder::new("NoOp", "p")),
        "Duplicate node name in graph: 'p'"
    );
    let tail = format!("\n\t for attr 'dtype'\n\t; NodeDef: {{{{node x}}}}; {PLACEHOLDER}");
    let dtypes = [
        (0, "AttrValue has invalid DataType"),
        (101, "AttrValue must not have reference type value of float_ref"),
        (77, "AttrValue has invalid DataType enum: 77"),
    ];
    for (number, message) in dtypes {
        assert_eq!(
            text(node().attr("dtype", DataType(number))),
            format!("{message}{tail}")
        );
    }
    assert_eq!(
        text(node().attr("dtype", 3i64)),
        format!("AttrValue had value with type 'int' when 'type' expected{tail}")
    );
    let convolution = || NodeBuilder::new("Conv2D", "c").input(p).input(p);
    assert!(
        text(convolution()).starts_with("NodeDef missing attrs 'padding', 'strides' from Op<name=Conv2D;")
    );
    assert!(
        text(convolution().attr("padding", "FOO").attr("strides", vec![1i64, 1, 1, 1]))
            .starts_with("Value for attr 'padding' of \"FOO\" is not in the list of allowed values: \"SAME\", \"VALID\", \"EXPLICIT\"\n\t; NodeDef: {{node c}}; Op<")
    );
    assert!(
        text(NodeBuilder::new("IdentityN", "n").input_list([]))
            .starts_with("Length for attr 'T' of 0 must be at least minimum 1\n\t; NodeDef")
    );
    assert!(
        text(NodeBuilder::new("Foo", "x")).starts_with("Op type not registered 'Foo' in binary running on")
    );
    let removed = [p; 5].iter().fold(
        NodeBuilder::new("BatchNormWithGlobalNormalization", "b")
            .attr("variance_epsilon", 1.0f32)
            .attr("scale_after_normalization", true),
        |node, input| node.input(*input),
    );
    assert_eq!(
        error(&mut graph, removed, Code::Unimplemented),
        "Op BatchNormWithGlobalNormalization is not available in GraphDef version 2474. It has been removed in version 9. Use tf.nn.batch_normalization()."
    );
}

#[test]
fn what_the_reference_accepts_is_accepted() {
    let (mut graph, [p, ..]) = inputs();
    for name in ["bad name!", "", "_x", "r/"] {
        NodeBuilder::new("NoOp", name).finish(&mut graph).unwrap();
    }
    let unknown = NodeBuilder::new("NoOp", "unknown_attr").attr("bogus", 3i64);
    unknown.finish(&mut graph).unwrap();
    let mut node = NodeBuilder::new("NoOp", "placed").control(p.node).control(p.node);
    node.colocate_with("w");
    node.colocate_with("p");
    let id = node.finish(&mut graph).unwrap();
    let def = export_graph_def(&graph).node.pop().unwrap();
    assert_eq!(def.input, ["^p"]);
    assert_eq!(
        graph.node(id).info.attrs.strings("_class").unwrap(),
        ["loc:@p", "loc:@w"]
    );
}

#[test]
fn shapes_are_refined() {
    let (mut graph, [p, ..]) = inputs();
    let text = |graph: &mut Graph, output, dims: &[i64]| {
        let error = graph.refine_shape(output, &PartialShape::new(dims)).unwrap_err();
        error.message().to_string()
    };
    assert_eq!(
        text(&mut graph, p, &[3, 3]),
        "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2,3] and [3,3]."
    );
    assert_eq!(
        text(&mut graph, p, &[3]),
        "Shapes must be equal rank, but are 2 and 1"
    );
    let beyond = OutputRef { index: 1, ..p };
    assert_eq!(
        text(&mut graph, beyond, &[3]),
        "output_port '1' is out of range, node 'p' has 1 outputs"
    );
}
