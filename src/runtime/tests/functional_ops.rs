//! Ops on functions that are neither call, choice nor while loop.

use ff_graph::{Graph, ImportOptions, import_graph_def};
use ff_op::OutputRef;
use ff_proto::GraphDef;
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{Code, Result, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;

/// `add_turn(i, x) = x + i`, `cube(x) = x^3`, `first_times(x, y, n) = x y` with integers passed by.
const GRAPH: &str = r#"
library {
  function {
    signature { name: "cube" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "square" op: "Mul" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "cube" op: "Mul" input: "square:z:0" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "cube:z:0" }
  }
  function {
    signature {
      name: "times"
      input_arg { name: "x" type: DT_FLOAT } input_arg { name: "y" type: DT_FLOAT } input_arg { name: "unused" type: DT_FLOAT }
      output_arg { name: "z" type: DT_FLOAT }
    }
    node_def { name: "mul" op: "Mul" input: "x" input: "y" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "z" value: "mul:z:0" }
  }
  function {
    signature {
      name: "add_turn" input_arg { name: "i" type: DT_INT32 } input_arg { name: "x" type: DT_INT32 }
      output_arg { name: "y" type: DT_INT32 }
    }
    node_def { name: "add" op: "AddV2" input: "i" input: "x" attr { key: "T" value { type: DT_INT32 } } }
    ret { key: "y" value: "add:z:0" }
  }
}
node { name: "start" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "limit" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "delta" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "y" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "dz" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "device" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
node { name: "for" op: "For" input: "start" input: "limit" input: "delta" input: "n"
  attr { key: "T" value { list { type: DT_INT32 } } } attr { key: "body" value { func { name: "add_turn" } } } }
node { name: "gradient" op: "SymbolicGradient" input: "x" input: "y" input: "x" input: "dz"
  attr { key: "Tin" value { list { type: DT_FLOAT type: DT_FLOAT type: DT_FLOAT type: DT_FLOAT } } }
  attr { key: "Tout" value { list { type: DT_FLOAT type: DT_FLOAT type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "times" } } } }
node { name: "map" op: "MapDefun" input: "x"
  attr { key: "Targuments" value { list { type: DT_FLOAT } } } attr { key: "output_types" value { list { type: DT_FLOAT } } }
  attr { key: "output_shapes" value { list { shape { } } } } attr { key: "f" value { func { name: "cube" } } } }
node { name: "remote" op: "RemoteCall" input: "device" input: "x"
  attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } }
  attr { key: "f" value { func { name: "cube" } } } }
versions { producer: 1000 }
"#;

fn run(node: &str, outputs: u32, feeds: &[(&str, Tensor)]) -> Result<Vec<Tensor>> {
    let def: GraphDef = ff_proto::text::parse(GRAPH).unwrap();
    let mut graph = Graph::new(ff_ops::registry());
    import_graph_def(&mut graph, def, &ImportOptions::default()).unwrap();
    let output = |name: &str, index: u32| OutputRef {
        node: graph.find(name).unwrap(),
        index,
    };
    let feeds: Vec<_> = feeds
        .iter()
        .map(|(name, value)| (output(name, 0), value.clone()))
        .collect();
    let fetches: Vec<_> = (0..outputs).map(|index| output(node, index)).collect();
    let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default())?;
    let request = RunRequest {
        feeds: &feeds,
        fetches: &fetches,
        targets: &[],
        options: None,
        want_metadata: false,
    };
    Ok(session.run(&request)?.outputs)
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::vector(values).unwrap()
}

fn int(value: i32) -> Tensor {
    Tensor::scalar(value).unwrap()
}

#[test]
fn loops_over_a_range() {
    let sum = |start: i32, limit: i32, delta: i32| {
        let feeds = [
            ("start", int(start)),
            ("limit", int(limit)),
            ("delta", int(delta)),
            ("n", int(100)),
        ];
        run("for", 1, &feeds).map(|outputs| outputs[0].single::<i32>().unwrap())
    };
    assert_eq!(sum(0, 5, 1).unwrap(), 110);
    assert_eq!(sum(5, 0, -2).unwrap(), 109);
    assert_eq!(sum(3, 3, 0).unwrap(), 100);
    assert_eq!(sum(0, 5, 0).err().unwrap().code(), Code::InvalidArgument);
    assert_eq!(sum(0, 5, -1).err().unwrap().code(), Code::InvalidArgument);
}

#[test]
fn gradients_as_an_op() {
    let feeds = [
        ("x", floats(&[2.0, 3.0])),
        ("y", floats(&[5.0, 7.0])),
        ("dz", floats(&[1.0, 10.0])),
    ];
    let outputs = run("gradient", 3, &feeds).unwrap();
    let values: Vec<&[f32]> = outputs.iter().map(|output| output.as_slice().unwrap()).collect();
    assert_eq!(values, [&[5.0, 70.0], &[2.0, 30.0], &[0.0, 0.0]]);
}

#[test]
fn a_function_on_every_row() {
    let outputs = run("map", 1, &[("x", floats(&[1.0, 2.0, 3.0]))]).unwrap();
    assert_eq!(outputs[0].as_slice::<f32>().unwrap(), [1.0, 8.0, 27.0]);
    let outputs = run("map", 1, &[("x", floats(&[]))]).unwrap();
    assert_eq!(outputs[0].dims(), [0]);
}

#[test]
fn calls_on_a_device_of_this_process() {
    let call = |device: &str| {
        let device = Tensor::from_strings(ff_tensor::Shape::scalar(), vec![device.into()]).unwrap();
        run("remote", 1, &[("device", device), ("x", floats(&[2.0]))])
    };
    let outputs = call("/job:localhost/replica:0/task:0/device:CPU:0").unwrap();
    assert_eq!(outputs[0].as_slice::<f32>().unwrap(), [8.0]);
    let code = |device: &str| call(device).err().unwrap().code();
    assert_eq!(code("/device:GPU:0"), Code::Internal);
    assert_eq!(code("nonsense"), Code::InvalidArgument);
}

/// `f0(x) = -x`, `f1(x) = f0(x)`, ..: each calls the one before, or chooses it on both sides, or is it in a loop's place.
fn nested(levels: usize, call: &str) -> String {
    let mut functions = String::from(
        r#"function {
            signature { name: "f0" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
            node_def { name: "negate" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
            ret { key: "y" value: "negate:y:0" }
        }"#,
    );
    for level in 1..levels {
        let call = call.replace("INNER", &format!("f{}", level - 1));
        functions += &format!(
            r#"function {{
                signature {{ name: "f{level}" input_arg {{ name: "x" type: DT_FLOAT }} output_arg {{ name: "y" type: DT_FLOAT }} }}
                node_def {{ name: "call" {call} }}
                ret {{ key: "y" value: "call:output:0" }}
                attr {{ key: "_noinline" value {{ b: true }} }}
            }}"#
        );
    }
    let outer = levels - 1;
    format!(
        r#"library {{ {functions} }}
        node {{ name: "x" op: "Placeholder" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} }}
        node {{ name: "y" op: "f{outer}" input: "x" }}
        versions {{ producer: 1000 }}"#
    )
}

#[test]
fn small_stacks_are_enough_for_functions() {
    let one = |name: &str| format!(r#"attr {{ key: "{name}" value {{ list {{ type: DT_FLOAT }} }} }}"#);
    let function = |name: &str| format!(r#"attr {{ key: "{name}" value {{ func {{ name: "INNER" }} }} }}"#);
    let types = one("Tin") + &one("Tout");
    let call = format!(
        r#"op: "StatefulPartitionedCall" input: "x" {types} {}"#,
        function("f")
    );
    let choice = format!(
        r#"op: "If" input: "x" input: "x" attr {{ key: "Tcond" value {{ type: DT_FLOAT }} }} {types} {} {}"#,
        function("then_branch"),
        function("else_branch")
    );
    for call in [call, choice] {
        let def: GraphDef = ff_proto::text::parse(&nested(60, &call)).unwrap();
        let on_small_stack = move || {
            let mut graph = Graph::new(ff_ops::registry());
            import_graph_def(&mut graph, def, &ImportOptions::default()).unwrap();
            let output = |name: &str| OutputRef {
                node: graph.find(name).unwrap(),
                index: 0,
            };
            let (feeds, fetches) = ([(output("x"), Tensor::scalar(2.0f32).unwrap())], [output("y")]);
            let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default()).unwrap();
            let request = RunRequest {
                feeds: &feeds,
                fetches: &fetches,
                targets: &[],
                options: None,
                want_metadata: false,
            };
            session.run(&request).unwrap().outputs[0].single::<f32>().unwrap()
        };
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        assert_eq!(thread.spawn(on_small_stack).unwrap().join().unwrap(), -2.0);
    }
}
