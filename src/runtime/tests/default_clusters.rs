//! What is clustered without being asked for: results have the bits of the kernels of the ops, before and after.

use ff_graph::{Graph, NodeBuilder};
use ff_op::OutputRef;
use ff_proto::ConfigProto;
use ff_proto::optimizer_options::GlobalJitLevel;
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{DataType, Shape, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

const ROWS: i64 = 97;
const COLUMNS: i64 = 128;
/// More than a trial takes.
const TURNS: usize = 60;

/// A graph of one input `x`.
struct Net {
    graph: Graph,
    x: OutputRef,
}

impl Net {
    fn new() -> Net {
        let mut graph = Graph::new(ff_ops::registry());
        let node = NodeBuilder::new("Placeholder", "x").attr("dtype", DataType::FLOAT);
        let node = node.finish(&mut graph).unwrap();
        Net {
            graph,
            x: OutputRef { node, index: 0 },
        }
    }

    fn op(&mut self, op: &str, inputs: &[OutputRef]) -> OutputRef {
        self.with(op, inputs, |builder| builder)
    }

    fn with(
        &mut self,
        op: &str,
        inputs: &[OutputRef],
        attrs: impl FnOnce(NodeBuilder) -> NodeBuilder,
    ) -> OutputRef {
        let name = format!("{op}_{}", self.graph.len());
        let builder = inputs
            .iter()
            .fold(NodeBuilder::new(op, name), |builder, &input| builder.input(input));
        let node = attrs(builder).finish(&mut self.graph).unwrap();
        OutputRef { node, index: 0 }
    }

    fn constant(&mut self, value: Tensor) -> OutputRef {
        self.with("Const", &[], |builder| {
            builder.attr("dtype", value.dtype()).attr("value", value)
        })
    }

    fn scalar(&mut self, value: f32) -> OutputRef {
        self.constant(Tensor::from_slice(Shape::scalar(), &[value]).unwrap())
    }

    fn row(&mut self, seed: u32) -> OutputRef {
        self.constant(numbers(&[COLUMNS], seed))
    }

    fn reduced(&mut self, op: &str, value: OutputRef, axis: i32, keep: bool) -> OutputRef {
        let axis = self.constant(Tensor::vector(&[axis]).unwrap());
        self.with(op, &[value, axis], |builder| builder.attr("keep_dims", keep))
    }
}

fn numbers(dims: &[i64], seed: u32) -> Tensor {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let values: Vec<f32> = (0..dims.iter().product::<i64>())
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 * 8.0 - 4.0
        })
        .collect();
    Tensor::from_slice(Shape::new(dims).unwrap(), &values).unwrap()
}

fn expression(net: &mut Net) -> OutputRef {
    let x = net.x;
    let (a, b) = (net.scalar(1.5), net.scalar(0.3));
    let scaled = net.op("Mul", &[x, a]);
    let moved = net.op("AddV2", &[scaled, b]);
    let tanh = net.op("Tanh", &[moved]);
    let sigmoid = net.op("Sigmoid", &[x]);
    let product = net.op("Mul", &[tanh, sigmoid]);
    let minus = net.op("Neg", &[x]);
    let square = net.op("Mul", &[minus, x]);
    let exp = net.op("Exp", &[square]);
    net.op("AddV2", &[product, exp])
}

fn softmax(net: &mut Net) -> OutputRef {
    let (bias, mask) = (net.row(3), net.row(4));
    let sum = net.op("AddV2", &[net.x, bias]);
    let sum = net.op("AddV2", &[sum, mask]);
    net.op("Softmax", &[sum])
}

fn log_softmax(net: &mut Net) -> OutputRef {
    let bias = net.row(3);
    let sum = net.op("AddV2", &[net.x, bias]);
    net.op("LogSoftmax", &[sum])
}

fn layer_norm(net: &mut Net) -> OutputRef {
    let x = net.x;
    let mean = net.reduced("Mean", x, -1, true);
    let centered = net.op("Sub", &[x, mean]);
    let square = net.op("Square", &[centered]);
    let variance = net.reduced("Mean", square, -1, true);
    let epsilon = net.scalar(1e-6);
    let variance = net.op("AddV2", &[variance, epsilon]);
    let scale = net.op("Rsqrt", &[variance]);
    let normal = net.op("Mul", &[centered, scale]);
    let (gamma, beta) = (net.row(5), net.row(6));
    let scaled = net.op("Mul", &[normal, gamma]);
    net.op("AddV2", &[scaled, beta])
}

fn gelu(net: &mut Net) -> OutputRef {
    let x = net.x;
    let (half, one, root) = (net.scalar(0.5), net.scalar(1.0), net.scalar(0.707_106_77));
    let scaled = net.op("Mul", &[x, root]);
    let erf = net.op("Erf", &[scaled]);
    let sum = net.op("AddV2", &[erf, one]);
    let left = net.op("Mul", &[x, half]);
    net.op("Mul", &[left, sum])
}

/// Sums and extremes of rows and of columns of something that is computed.
fn reductions(net: &mut Net) -> OutputRef {
    let x = net.x;
    let exp = net.op("Exp", &[x]);
    let columns = net.reduced("Sum", exp, 0, false);
    let largest = net.reduced("Max", exp, 0, false);
    let rows = net.reduced("Mean", exp, 1, true);
    let least = net.reduced("Min", exp, 1, true);
    let a = net.op("Sub", &[exp, rows]);
    let b = net.op("Mul", &[a, least]);
    let c = net.op("AddV2", &[b, columns]);
    net.op("Maximum", &[c, largest])
}

fn session(graph: Graph, level: GlobalJitLevel) -> Session {
    let mut config = ConfigProto::default();
    let options = config.graph_options.get_or_insert_default();
    let options = options.optimizer_options.get_or_insert_default();
    options.global_jit_level = level as i32;
    let options = SessionOptions {
        config,
        ..SessionOptions::default()
    };
    Session::new(Arc::new(Mutex::new(graph)), options).unwrap()
}

fn run(session: &Session, x: OutputRef, y: OutputRef, rows: i64) -> Vec<u8> {
    let response = session.run(&RunRequest {
        feeds: &[(x, numbers(&[rows, COLUMNS], 1))],
        fetches: &[y],
        targets: &[],
        options: None,
        want_metadata: false,
    });
    response.unwrap().outputs[0].bytes().to_vec()
}

fn compare(name: &str, make: fn(&mut Net) -> OutputRef) {
    let policy = ff_jit::Policy::of_session(&ConfigProto::default());
    assert_eq!(
        policy.mode,
        ff_jit::Mode::Auto,
        "the tests are built without a compiler"
    );
    let nets = [GlobalJitLevel::Off, GlobalJitLevel::Default].map(|level| {
        let mut net = Net::new();
        let y = make(&mut net);
        (session(net.graph, level), net.x, y)
    });
    let before = ff_jit::num_programs();
    let expected = run(&nets[0].0, nets[0].1, nets[0].2, ROWS);
    for number in 0..200 {
        let (session, x, y) = &nets[1];
        assert!(run(session, *x, *y, ROWS) == expected, "{name}, run {number}");
        if number > 10 && ff_jit::num_programs() > before {
            // While the plans are tried in turns, and with the one that won. Small values go on op by op.
            let small = run(&nets[0].0, nets[0].1, nets[0].2, 2);
            for turn in 0..TURNS {
                assert!(run(session, *x, *y, ROWS) == expected, "{name}, turn {turn}");
                assert!(run(session, *x, *y, 2) == small, "{name}, small, turn {turn}");
            }
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{name} was not compiled");
}

#[test]
fn what_pays_is_compiled_by_itself_and_keeps_its_bits() {
    compare("expression", expression);
    compare("softmax", softmax);
    compare("log_softmax", log_softmax);
    compare("layer_norm", layer_norm);
    compare("gelu", gelu);
    compare("reductions", reductions);
}

#[test]
fn a_graph_of_small_values_stays_as_it_is() {
    let mut net = Net::new();
    let y = expression(&mut net);
    let session = session(net.graph, GlobalJitLevel::Default);
    let first = run(&session, net.x, y, 1);
    for _ in 0..20 {
        assert!(run(&session, net.x, y, 1) == first);
    }
}

/// `turn(i, x) = sigmoid(x) exp(-x)`, as often as a range says.
const LOOP: &str = r#"
library {
  function {
    signature {
      name: "turn" input_arg { name: "i" type: DT_INT32 } input_arg { name: "x" type: DT_FLOAT }
      output_arg { name: "y" type: DT_FLOAT }
    }
    node_def { name: "minus" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "exp" op: "Exp" input: "minus:y:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "sigmoid" op: "Sigmoid" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "y" op: "Mul" input: "exp:y:0" input: "sigmoid:y:0" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "y:z:0" }
  }
}
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } } } }
node { name: "five" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 5 } } } }
node { name: "y" op: "For" input: "zero" input: "five" input: "one" input: "x"
  attr { key: "T" value { list { type: DT_FLOAT } } } attr { key: "body" value { func { name: "turn" } } } }
versions { producer: 1000 }
"#;

fn turns(net: &mut Net) -> OutputRef {
    let mut graph = Graph::new(ff_ops::registry());
    let def: ff_proto::GraphDef = ff_proto::text::parse(LOOP).unwrap();
    ff_graph::import_graph_def(&mut graph, def, &ff_graph::ImportOptions::default()).unwrap();
    let output = |name: &str| OutputRef {
        node: graph.find(name).unwrap(),
        index: 0,
    };
    net.x = output("x");
    let y = output("y");
    net.graph = graph;
    y
}

#[test]
fn bodies_of_loops_too() {
    compare("turns", turns);
}
