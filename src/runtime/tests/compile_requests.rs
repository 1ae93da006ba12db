//! Functions that ask to be compiled: they are, with the bits of their ops; what cannot be is refused, where it is run.

use ff_graph::{Graph, ImportOptions, import_graph_def};
use ff_op::{Attrs, OutputRef};
use ff_proto::{AttrValue, GraphDef, attr_value};
use ff_runtime::{EagerContext, EagerTensor, RunRequest, Session, SessionOptions};
use ff_tensor::{Code, DataType, Result, Tensor};
use parking_lot::Mutex;
use smallvec::smallvec;
use std::sync::Arc;

/// `squash(x) = sigmoid(x) exp(-x)`, `loop(i, x)`: four turns of it, `text(x)` with texts in it.
const GRAPH: &str = r#"
library {
  function {
    signature { name: "squash" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "minus" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "exp" op: "Exp" input: "minus:y:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "sigmoid" op: "Sigmoid" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "y" op: "Mul" input: "exp:y:0" input: "sigmoid:y:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "y:z:0" }
  }
  function {
    signature {
      name: "below" input_arg { name: "i" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_BOOL }
    }
    node_def { name: "four" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 4 } } } }
    node_def { name: "y" op: "Less" input: "i" input: "four:output:0" attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "y" value: "y:z:0" }
  }
  function {
    signature {
      name: "turn" input_arg { name: "i" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "j" type: DT_INT32 } output_arg { name: "y" type: DT_FLOAT }
    }
    node_def { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
    node_def { name: "j" op: "AddV2" input: "i" input: "one:output:0" attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "y" op: "PartitionedCall" input: "x" attr { key: "f" value { func { name: "squash" } } }
      attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }
    ret { key: "j" value: "j:z:0" } ret { key: "y" value: "y:output:0" }
  }
  function {
    signature { name: "loop" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
    node_def { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
    node_def { name: "while" op: "While" input: "zero:output:0" input: "x"
      attr { key: "cond" value { func { name: "below" } } } attr { key: "body" value { func { name: "turn" } } }
      attr { key: "T" value { list { type: DT_INT32 type: DT_FLOAT } } } }
    ret { key: "y" value: "while:output:1" }
  }
  function {
    signature { name: "text" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "as_text" op: "AsString" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "y" op: "StringToNumber" input: "as_text:output:0" attr { key: "out_type" value { type: DT_FLOAT } } }
    ret { key: "y" value: "y:output:0" }
  }
  function {
    signature { name: "ratio" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "whole" op: "Cast" input: "x" attr { key: "SrcT" value { type: DT_FLOAT } }
      attr { key: "DstT" value { type: DT_INT32 } } }
    node_def { name: "seven" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 7 } } } }
    node_def { name: "quotient" op: "FloorDiv" input: "seven:output:0" input: "whole:y:0"
      attr { key: "T" value { type: DT_INT32 } } }
    node_def { name: "y" op: "Cast" input: "quotient:z:0" attr { key: "SrcT" value { type: DT_INT32 } }
      attr { key: "DstT" value { type: DT_FLOAT } } }
    ret { key: "y" value: "y:y:0" }
  }
  function {
    signature { name: "checked" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "no" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
      attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { } bool_val: false } } } }
    node_def { name: "assert" op: "Assert" input: "no:output:0" input: "x" attr { key: "T" value { list { type: DT_FLOAT } } } }
    node_def { name: "y" op: "CheckNumerics" input: "x" input: "^assert" attr { key: "T" value { type: DT_FLOAT } }
      attr { key: "message" value { s: "x" } } }
    ret { key: "y" value: "y:output:0" }
  }
}
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
versions { producer: 1000 }
"#;

fn must(value: bool) -> AttrValue {
    AttrValue {
        value: Some(attr_value::Value::B(value)),
    }
}

/// A session with a call of a function, which asks to be compiled if `asks`.
fn call(function: &str, asks: bool) -> impl Fn(&[f32]) -> Result<Vec<f32>> {
    let mut def: GraphDef = ff_proto::text::parse(GRAPH).unwrap();
    let node = format!(
        "node {{ name: 'y' op: 'StatefulPartitionedCall' input: 'x' attr {{ key: 'f' value {{ func {{ name: '{function}' }} }} }}
         attr {{ key: 'Tin' value {{ list {{ type: DT_FLOAT }} }} }} attr {{ key: 'Tout' value {{ list {{ type: DT_FLOAT }} }} }} }}"
    );
    let more: GraphDef = ff_proto::text::parse(&node).unwrap();
    def.node.extend(more.node);
    if asks {
        let call = def.node.last_mut().unwrap();
        call.attr.insert("_XlaMustCompile".to_string(), must(true));
    }
    let mut graph = Graph::new(ff_ops::registry());
    import_graph_def(&mut graph, def, &ImportOptions::default()).unwrap();
    let output = |name: &str| OutputRef {
        node: graph.find(name).unwrap(),
        index: 0,
    };
    let (x, y) = (output("x"), output("y"));
    let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default()).unwrap();
    move |values| {
        let response = session.run(&RunRequest {
            feeds: &[(x, Tensor::vector(values)?)],
            fetches: &[y],
            targets: &[],
            options: None,
            want_metadata: false,
        })?;
        Ok(response.outputs[0].as_slice::<f32>()?.to_vec())
    }
}

const VALUES: [f32; 5] = [0.5, -3.0, 1e-3, 20.0, f32::INFINITY];

/// Tests of one process share the count of programs.
static COUNTED: Mutex<()> = Mutex::new(());

#[test]
fn a_call_that_asks_runs_as_programs_with_the_bits_of_its_ops() {
    let _counted = COUNTED.lock();
    for function in ["squash", "loop"] {
        let expected = call(function, false)(&VALUES).unwrap();
        let before = ff_jit::num_programs();
        let asking = call(function, true);
        let first = asking(&VALUES).unwrap();
        assert!(ff_jit::num_programs() > before, "{function}");
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&first), bits(&expected), "{function}");
        assert_eq!(
            bits(&asking(&VALUES[..2]).unwrap()),
            bits(&expected[..2]),
            "{function}"
        );
    }
}

#[test]
fn what_cannot_be_compiled_is_refused_by_name() {
    assert_eq!(call("text", false)(&[1.5]).unwrap(), [1.5]);
    let error = call("text", true)(&[1.5]).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    for part in [
        "graph text[] on XLA_CPU_JIT: AsString",
        "{{node as_text}}",
        "[[{{node y}}]]",
    ] {
        assert!(error.message().contains(part), "{error:?}");
    }
}

#[test]
fn what_is_compiled_does_not_check() {
    assert!(call("checked", false)(&[1.0]).is_err());
    assert_eq!(
        call("checked", true)(&[1.0, f32::INFINITY]).unwrap(),
        [1.0, f32::INFINITY]
    );
}

/// XLA gives -1 where an integer is divided by zero. Ours is the error of the ops.
#[test]
fn what_is_compiled_keeps_the_errors_of_quotients() {
    for asks in [false, true] {
        let ratio = call("ratio", asks);
        assert_eq!(ratio(&[2.0, -2.0, 7.0]).unwrap(), [3.0, -4.0, 1.0]);
        let error = ratio(&[2.0, 0.0]).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{asks}");
        assert!(error.message().contains("Integer division by zero"), "{error:?}");
    }
}

/// Runs a function as an eager op; `asks` and `call_asks` are the attribute of the function and of the call.
fn eager(function: &str, asks: Option<bool>, call_asks: Option<bool>) -> Result<Vec<f32>> {
    let context = Arc::new(EagerContext::new(
        ff_ops::registry(),
        &SessionOptions::default(),
        false,
    ));
    let def: GraphDef = ff_proto::text::parse(GRAPH).unwrap();
    for mut one in def.library.unwrap().function {
        if let Some(value) = asks {
            one.attr.insert("_XlaMustCompile".to_string(), must(value));
        }
        context.add_function(Arc::new(one))?;
    }
    let op = context.find_op(function)?;
    let device = context.device("CPU:0")?;
    let attrs = call_asks.map_or_else(Attrs::new, |value| Attrs::new().with("_XlaMustCompile", value));
    let kernel = context.kernel(&op, device, &attrs, &smallvec![DataType::FLOAT])?;
    let input = EagerTensor::Ready(Tensor::vector(&VALUES)?);
    let outputs = context.execute(&kernel, device, std::iter::once(Ok(input)), None)?;
    match &outputs[0] {
        EagerTensor::Ready(value) => Ok(value.as_slice::<f32>()?.to_vec()),
        EagerTensor::Pending(_) => panic!("the executor is synchronous"),
    }
}

#[test]
fn eager_calls_heed_the_function_unless_they_say_otherwise() {
    let _counted = COUNTED.lock();
    let expected = eager("loop", None, None).unwrap();
    for (asks, call_asks, is_compiled) in [
        (None, Some(true), true),
        (Some(true), None, true),
        (Some(false), Some(true), true),
        (Some(false), None, false),
        (None, Some(false), false),
    ] {
        let before = ff_jit::num_programs();
        assert_eq!(eager("loop", asks, call_asks).unwrap(), expected);
        assert_eq!(
            ff_jit::num_programs() > before,
            is_compiled,
            "{asks:?} {call_asks:?}"
        );
        let text = eager("text", asks, call_asks);
        assert_eq!(text.is_err(), is_compiled, "{asks:?} {call_asks:?}");
    }
    let error = eager("text", Some(true), None).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    // A call that says no is not refused.
    assert!(eager("text", Some(true), Some(false)).is_ok());
}
