//! Gradients through calls, choices and loops by functions, against derivatives worked out by hand.

use ff_graph::{Graph, ImportOptions, add_gradients, import_graph_def};
use ff_op::OutputRef;
use ff_proto::GraphDef;
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::Tensor;
use parking_lot::Mutex;
use std::sync::Arc;

/// `cube(x) = x * x * x`, `negative(x) = -x`; and a loop of three turns over (turn, power, x).
const LIBRARY: &str = r#"
library {
  function {
    signature { name: "cube" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "square" op: "Mul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "cube" op: "Mul" input: "square:z:0" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "cube:z:0" }
  }
  function {
    signature { name: "negative" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "negative" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "negative:y:0" }
  }
  function {
    signature {
      name: "turns_left"
      input_arg { name: "turn" type: DT_INT32 } input_arg { name: "power" type: DT_FLOAT } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "answer" type: DT_BOOL }
    }
    node_def { name: "three" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 3 } } } }
    node_def { name: "less" op: "Less" input: "turn" input: "three:output:0" attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "answer" value: "less:z:0" }
  }
  function {
    signature {
      name: "turn"
      input_arg { name: "turn" type: DT_INT32 } input_arg { name: "power" type: DT_FLOAT } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "next" type: DT_INT32 } output_arg { name: "higher" type: DT_FLOAT } output_arg { name: "same" type: DT_FLOAT }
    }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
    node_def { name: "add" op: "AddV2" input: "turn" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "mul" op: "Mul" input: "power" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "next" value: "add:z:0" } ret { key: "higher" value: "mul:z:0" } ret { key: "same" value: "x" }
  }
}
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "which" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "shape" value { shape { } } } }
versions { producer: 1000 }
"#;

/// Value and gradient of node `y` of a graph, in `x`, for some values of `x` and `which`.
fn value_and_gradient(nodes: &str, y_output: u32, inputs: &[(f32, i32)]) -> Vec<(f32, f32)> {
    let text = format!("{LIBRARY}\n{nodes}");
    let def: GraphDef = ff_proto::text::parse(&text).unwrap();
    let mut graph = Graph::new(ff_ops::registry());
    import_graph_def(&mut graph, def, &ImportOptions::default()).unwrap();
    let output = |graph: &Graph, name: &str, index: u32| OutputRef {
        node: graph.find(name).unwrap(),
        index,
    };
    let (x, which) = (output(&graph, "x", 0), output(&graph, "which", 0));
    let y = output(&graph, "y", y_output);
    let gradient = add_gradients(&mut graph, &[y], &[x], &[], None).unwrap()[0].unwrap();
    let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default()).unwrap();
    let run = |&(x_value, which_value): &(f32, i32)| {
        let feeds = [
            (x, Tensor::scalar(x_value).unwrap()),
            (which, Tensor::scalar(which_value).unwrap()),
        ];
        let request = RunRequest {
            feeds: &feeds,
            fetches: &[y, gradient],
            targets: &[],
            options: None,
            want_metadata: false,
        };
        let outputs = session.run(&request).unwrap().outputs;
        (
            outputs[0].single::<f32>().unwrap(),
            outputs[1].single::<f32>().unwrap(),
        )
    };
    inputs.iter().map(run).collect()
}

#[test]
fn a_call_returns_what_its_gradient_needs() {
    let y = r#"node { name: "y" op: "StatefulPartitionedCall" input: "x"
        attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
        attr { key: "f" value { func { name: "cube" } } } }"#;
    assert_eq!(
        value_and_gradient(y, 0, &[(2.0, 0), (-1.0, 0)]),
        [(8.0, 12.0), (-1.0, 3.0)]
    );
}

#[test]
fn a_choice_has_the_gradient_of_the_branch_taken() {
    let y = r#"node { name: "y" op: "If" input: "which" input: "x"
        attr { key: "Tcond" value { type: DT_INT32 } }
        attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
        attr { key: "then_branch" value { func { name: "cube" } } }
        attr { key: "else_branch" value { func { name: "negative" } } } }"#;
    for op in ["If", "_If"] {
        let y = y.replace("\"If\"", &format!("\"{op}\""));
        assert_eq!(
            value_and_gradient(&y, 0, &[(2.0, 1), (2.0, 0)]),
            [(8.0, 12.0), (-2.0, -1.0)]
        );
    }
    let y = r#"node { name: "y" op: "StatelessCase" input: "which" input: "x"
        attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
        attr { key: "branches" value { list { func { name: "negative" } func { name: "cube" } } } } }"#;
    assert_eq!(
        value_and_gradient(y, 0, &[(3.0, 0), (3.0, 1)]),
        [(-3.0, -1.0), (27.0, 27.0)]
    );
}

#[test]
fn a_loop_is_taken_back_turn_by_turn() {
    let y = r#"node { name: "y" op: "While" input: "which" input: "x" input: "x"
        attr { key: "T" value { list { type: DT_INT32 type: DT_FLOAT type: DT_FLOAT } } }
        attr { key: "cond" value { func { name: "turns_left" } } }
        attr { key: "body" value { func { name: "turn" } } } }"#;
    // Starting at turn 0 there are three turns, x to the fourth; at turn 2 one; at turn 3 none.
    let expected = [(16.0, 32.0), (4.0, 4.0), (2.0, 1.0)];
    for op in ["While", "_While"] {
        let y = y.replace("\"While\"", &format!("\"{op}\""));
        let found = value_and_gradient(&y, 1, &[(2.0, 0), (2.0, 2), (2.0, 3)]);
        assert_eq!(found, expected, "{op}");
    }
}
