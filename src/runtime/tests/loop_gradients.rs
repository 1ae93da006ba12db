//! Gradients through v1 loops, by the derivative worked out by hand.

use ff_graph::{Graph, LoopPart, NodeBuilder, add_gradients, add_while_loop};
use ff_op::OutputRef;
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{Code, DataType, Result, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;

fn graph() -> Graph {
    Graph::new(ff_ops::registry())
}

fn first(node: u32) -> OutputRef {
    OutputRef { node, index: 0 }
}

fn placeholder(graph: &mut Graph, name: &str, dtype: DataType) -> OutputRef {
    let node = NodeBuilder::new("Placeholder", name).attr("dtype", dtype);
    first(node.finish(graph).unwrap())
}

fn constant(graph: &mut Graph, name: &str, value: Tensor) -> OutputRef {
    let node = NodeBuilder::new("Const", name)
        .attr("dtype", value.dtype())
        .attr("value", value);
    first(node.finish(graph).unwrap())
}

fn op(graph: &mut Graph, op: &str, name: &str, inputs: &[OutputRef]) -> OutputRef {
    let mut node = NodeBuilder::new(op, name);
    for input in inputs {
        node.add_input(*input);
    }
    first(node.finish(graph).unwrap())
}

/// `for i in 0..turns { x, y = body(x, y) }`; gives what `x` and `y` are after it.
fn count_to(
    graph: &mut Graph,
    turns: i32,
    values: [OutputRef; 2],
    body: impl Fn(&mut Graph, OutputRef, OutputRef) -> [OutputRef; 2],
) -> Vec<OutputRef> {
    let start = constant(graph, "start", Tensor::scalar(0i32).unwrap());
    let arguments = |graph: &mut Graph| {
        let types = [DataType::INT32, DataType::FLOAT, DataType::FLOAT];
        let names = ["i", "x", "y"];
        names
            .iter()
            .zip(types)
            .map(|(name, dtype)| placeholder(graph, name, dtype))
            .collect::<Vec<_>>()
    };
    let mut cond_graph = self::graph();
    let cond_inputs = arguments(&mut cond_graph);
    let limit = constant(&mut cond_graph, "limit", Tensor::scalar(turns).unwrap());
    let holds = op(&mut cond_graph, "Less", "less", &[cond_inputs[0], limit]);
    let mut body_graph = self::graph();
    let inputs = arguments(&mut body_graph);
    let one = constant(&mut body_graph, "one", Tensor::scalar(1i32).unwrap());
    let next = op(&mut body_graph, "AddV2", "next", &[inputs[0], one]);
    let [x, y] = body(&mut body_graph, inputs[1], inputs[2]);
    let condition = LoopPart {
        graph: &cond_graph,
        inputs: &cond_inputs,
        outputs: &[holds],
    };
    let outputs = [next, x, y];
    let body = LoopPart {
        graph: &body_graph,
        inputs: &inputs,
        outputs: &outputs,
    };
    let inputs = [start, values[0], values[1]];
    add_while_loop(graph, "loop", &inputs, condition, body).unwrap()[1..].to_vec()
}

/// The gradients of the sum of both results by both values, at this point.
fn gradients(
    turns: i32,
    at: [f32; 2],
    body: impl Fn(&mut Graph, OutputRef, OutputRef) -> [OutputRef; 2],
) -> Result<Vec<f32>> {
    let mut graph = graph();
    let values = [
        placeholder(&mut graph, "a", DataType::FLOAT),
        placeholder(&mut graph, "b", DataType::FLOAT),
    ];
    let results = count_to(&mut graph, turns, values, body);
    let found = add_gradients(&mut graph, &results, &values, &[], None)?;
    let fetches: Vec<OutputRef> = found.into_iter().flatten().collect();
    let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default())?;
    let feeds = [
        (values[0], Tensor::scalar(at[0])?),
        (values[1], Tensor::scalar(at[1])?),
    ];
    let mut outputs = Vec::new();
    // Twice: a second step must not find anything of the first.
    for _ in 0..2 {
        let response = session.run(&RunRequest {
            feeds: &feeds,
            fetches: &fetches,
            targets: &[],
            options: None,
            want_metadata: false,
        })?;
        outputs = response.outputs;
    }
    outputs.iter().map(Tensor::single::<f32>).collect()
}

fn near(got: &[f32], expected: [f64; 2]) {
    for (got, expected) in got.iter().zip(expected) {
        let difference = (f64::from(*got) - expected).abs();
        assert!(
            difference <= 1e-4 * expected.abs().max(1.0),
            "{got} for {expected}"
        );
    }
    assert_eq!(got.len(), 2);
}

#[test]
fn constants_of_the_body() {
    let doubled = |graph: &mut Graph, x: OutputRef, y: OutputRef| {
        let two = constant(graph, "two", Tensor::scalar(2f32).unwrap());
        [op(graph, "Mul", "doubled", &[x, two]), y]
    };
    near(&gradients(4, [3.0, 5.0], doubled).unwrap(), [16.0, 1.0]);
    near(&gradients(0, [3.0, 5.0], doubled).unwrap(), [1.0, 1.0]);
}

#[test]
fn values_of_every_turn() {
    // x = x^2 y: after n turns x = a^(2^n) b^(2^n - 1).
    let squared = |graph: &mut Graph, x: OutputRef, y: OutputRef| {
        let square = op(graph, "Square", "square", &[x]);
        [op(graph, "Mul", "product", &[square, y]), y]
    };
    let (a, b) = (1.1f64, 0.9f64);
    let expected = [8.0 * a.powi(7) * b.powi(7), 7.0 * a.powi(8) * b.powi(6) + 1.0];
    near(&gradients(3, [a as f32, b as f32], squared).unwrap(), expected);
}

#[test]
fn variables_that_change_places() {
    // (x, y) = (y, x y): x1 = b, y1 = ab; x2 = ab, y2 = a b^2.
    let swapped = |graph: &mut Graph, x: OutputRef, y: OutputRef| [y, op(graph, "Mul", "product", &[x, y])];
    let (a, b) = (2.0f64, 3.0f64);
    near(
        &gradients(2, [a as f32, b as f32], swapped).unwrap(),
        [b + b * b, a + 2.0 * a * b],
    );
}

#[test]
fn variables_that_are_set_anew() {
    // x = sin(y), whatever it was: only the last turn counts.
    let anew = |graph: &mut Graph, _: OutputRef, y: OutputRef| [op(graph, "Sin", "sine", &[y]), y];
    near(
        &gradients(3, [2.0, 0.5], anew).unwrap(),
        [0.0, 0.5f64.cos() + 1.0],
    );
}

#[test]
fn ops_without_a_gradient_are_named() {
    let unknown =
        |graph: &mut Graph, x: OutputRef, y: OutputRef| [op(graph, "Betainc", "none", &[x, x, y]), y];
    let error = gradients(2, [0.5, 0.5], unknown).err();
    if let Some(error) = error {
        assert_eq!(error.code(), Code::NotFound, "{error}");
        assert!(
            error.message().contains("No gradient defined for op: Betainc"),
            "{error}"
        );
    }
}

/// `y = sum over i of array[i]^2` where the array holds the rows of x: written, read and squared without a loop.
#[test]
fn arrays_without_a_loop() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", DataType::FLOAT);
    let size = constant(&mut graph, "size", Tensor::scalar(3i32).unwrap());
    let array = NodeBuilder::new("TensorArrayV3", "array")
        .input(size)
        .attr("dtype", DataType::FLOAT);
    let array = array.finish(&mut graph).unwrap();
    let (handle, flow) = (
        first(array),
        OutputRef {
            node: array,
            index: 1,
        },
    );
    let all = constant(&mut graph, "all", Tensor::vector(&[0i32, 1, 2]).unwrap());
    let filled = op(
        &mut graph,
        "TensorArrayScatterV3",
        "fill",
        &[handle, all, x, flow],
    );
    let middle = constant(&mut graph, "middle", Tensor::scalar(1i32).unwrap());
    let read = |graph: &mut Graph, name: &str, op: &str, index: OutputRef| {
        let node = NodeBuilder::new(op, name)
            .input(handle)
            .input(index)
            .input(filled)
            .attr("dtype", DataType::FLOAT);
        first(node.finish(graph).unwrap())
    };
    let once = read(&mut graph, "once", "TensorArrayReadV3", middle);
    let square = op(&mut graph, "Square", "square", &[once]);
    let gradient = add_gradients(&mut graph, &[square], &[x], &[], None).unwrap()[0].unwrap();
    let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default()).unwrap();
    let feeds = [(x, Tensor::vector(&[1f32, 5.0, 3.0]).unwrap())];
    for _ in 0..2 {
        let response = session.run(&RunRequest {
            feeds: &feeds,
            fetches: &[gradient, square],
            targets: &[],
            options: None,
            want_metadata: false,
        });
        let outputs = response.unwrap().outputs;
        assert_eq!(outputs[0].as_slice::<f32>().unwrap(), [0.0, 10.0, 0.0]);
        assert_eq!(outputs[1].single::<f32>().unwrap(), 25.0);
    }
}

/// A loop as the reference's Python builds it: `s = s w + in[i]; out[i] = s^2` over the rows of `x`, and
/// `y = sum(out) + sin(s)`. The numbers are those of the reference's own gradient.
#[test]
fn arrays_and_values_that_all_turns_share() {
    let path = format!("{}/tests/data/array_loop.pb", env!("CARGO_MANIFEST_DIR"));
    let bytes = ff_proto::Bytes::from(std::fs::read(path).unwrap());
    let def = <ff_proto::GraphDef as ff_proto::Message>::decode(bytes).unwrap();
    let mut graph = graph();
    ff_graph::import_graph_def(&mut graph, def, &ff_graph::ImportOptions::default()).unwrap();
    let named = |graph: &Graph, name: &str| first(graph.find(name).unwrap());
    let inputs = ["x", "w", "s0"].map(|name| named(&graph, name));
    let y = named(&graph, "y");
    let gradients = add_gradients(&mut graph, &[y], &inputs, &[], None).unwrap();
    let mut fetches = vec![y];
    fetches.extend(gradients.into_iter().flatten());
    let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default()).unwrap();
    let values = [
        Tensor::vector(&[1f32, 2.0, 3.0]).unwrap(),
        Tensor::scalar(0.5f32).unwrap(),
        Tensor::scalar(0.25f32).unwrap(),
    ];
    let feeds: Vec<_> = inputs.into_iter().zip(values).collect();
    for _ in 0..20 {
        let response = session.run(&RunRequest {
            feeds: &feeds,
            fetches: &fetches,
            targets: &[],
            options: None,
            want_metadata: false,
        });
        let outputs = response.unwrap().outputs;
        let got: Vec<f32> = outputs
            .iter()
            .flat_map(|output| output.as_slice::<f32>().unwrap().to_vec())
            .collect();
        let expected = [25.252642, 6.8486485, 9.197297, 8.144594, 32.929646, 3.4243243];
        assert_eq!(got.len(), expected.len());
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-4, "{got} for {expected}");
        }
    }
}
