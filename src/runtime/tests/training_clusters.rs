//! A softmax regression of digits, trained with clusters asked for in the session's configuration and without: the same
//! losses; with what is clustered by itself, the same bits. The first is that of a guess among ten classes, whatever the pictures.

use ff_graph::{Graph, NodeBuilder, add_gradients};
use ff_op::{AttrValue, OutputRef};
use ff_proto::optimizer_options::GlobalJitLevel;
use ff_proto::{ConfigProto, RunMetadata, RunOptions, run_options::TraceLevel};
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{DataType, Shape, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;

const BATCH: i64 = 64;
const PIXELS: i64 = 784;
const CLASSES: i64 = 10;
const STEPS: usize = 30;

/// The training: what is fed, fetched and run.
struct Training {
    session: Session,
    feeds: [(OutputRef, Tensor); 2],
    loss: OutputRef,
    update: [u32; 2],
}

/// A graph in the making.
struct Net(Graph);

impl Net {
    fn op(&mut self, op: &str, inputs: &[OutputRef], attrs: &[(&str, AttrValue)]) -> OutputRef {
        let mut node = NodeBuilder::new(op, format!("{op}_{}", self.0.len()));
        inputs.iter().for_each(|input| node.add_input(*input));
        for (name, value) in attrs {
            node.set_attr(name, value.clone());
        }
        let node = node
            .finish(&mut self.0)
            .unwrap_or_else(|error| panic!("{op}: {error}"));
        OutputRef { node, index: 0 }
    }

    fn placeholder(&mut self, dtype: DataType) -> OutputRef {
        self.op("Placeholder", &[], &[("dtype", dtype.into())])
    }

    fn constant(&mut self, value: Tensor) -> OutputRef {
        let attrs = [("dtype", value.dtype().into()), ("value", value.into())];
        self.op("Const", &[], &attrs)
    }

    /// A variable, and the node that sets it to zeros.
    fn variable(&mut self, dims: &[i64]) -> (OutputRef, u32) {
        let shape = Shape::new(dims).unwrap();
        let zeros = Tensor::zeros(DataType::FLOAT, shape.clone()).unwrap();
        let attrs = [
            ("dtype", DataType::FLOAT.into()),
            ("shape", ff_tensor::PartialShape::from(&shape).into()),
        ];
        let variable = self.op("VariableV2", &[], &attrs);
        let zeros = self.constant(zeros);
        (variable, self.op("Assign", &[variable, zeros], &[]).node)
    }
}

/// Strokes that differ from class to class, and noise.
fn digits() -> (Tensor, Tensor) {
    let mut state = 7u32;
    let mut pixels = Vec::new();
    let labels: Vec<i32> = (0..BATCH as i32).map(|index| index % CLASSES as i32).collect();
    for label in &labels {
        for pixel in 0..PIXELS as i32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (state >> 8) as f32 / (1 << 24) as f32;
            let is_stroke = pixel / 28 / 3 == *label;
            pixels.push(if is_stroke { 0.7 + 0.3 * noise } else { 0.3 * noise });
        }
    }
    let pixels = Tensor::from_slice(Shape::new(&[BATCH, PIXELS]).unwrap(), &pixels).unwrap();
    (pixels, Tensor::vector(&labels).unwrap())
}

fn training(level: GlobalJitLevel) -> Training {
    let mut net = Net(Graph::new(ff_ops::registry()));
    let (x, y) = (net.placeholder(DataType::FLOAT), net.placeholder(DataType::INT32));
    let (weights, first) = net.variable(&[PIXELS, CLASSES]);
    let (bias, second) = net.variable(&[CLASSES]);
    let products = net.op("MatMul", &[x, weights], &[]);
    let logits = net.op("BiasAdd", &[products, bias], &[]);
    let losses = net.op("SparseSoftmaxCrossEntropyWithLogits", &[logits, y], &[]);
    let axis = net.constant(Tensor::vector(&[0i32]).unwrap());
    let loss = net.op("Mean", &[losses, axis], &[]);
    let gradients = add_gradients(&mut net.0, &[loss], &[weights, bias], &[], Some("gradients")).unwrap();
    let rate = net.constant(Tensor::from_slice(Shape::scalar(), &[0.05f32]).unwrap());
    let update =
        [(weights, gradients[0].unwrap()), (bias, gradients[1].unwrap())].map(|(variable, gradient)| {
            net.op("ApplyGradientDescent", &[variable, rate, gradient], &[])
                .node
        });
    let mut config = ConfigProto::default();
    let options = config.graph_options.get_or_insert_default();
    let options = options.optimizer_options.get_or_insert_default();
    options.global_jit_level = level as i32;
    let options = SessionOptions {
        config,
        ..SessionOptions::default()
    };
    let session = Session::new(Arc::new(Mutex::new(net.0)), options).unwrap();
    let request = RunRequest {
        feeds: &[],
        fetches: &[],
        targets: &[first, second],
        options: None,
        want_metadata: false,
    };
    session.run(&request).unwrap();
    let (pixels, labels) = digits();
    Training {
        session,
        feeds: [(x, pixels), (y, labels)],
        loss,
        update,
    }
}

impl Training {
    /// One step; the loss before it.
    fn step(&self, options: Option<&RunOptions>) -> (f32, Option<RunMetadata>) {
        let request = RunRequest {
            feeds: &self.feeds,
            fetches: &[self.loss],
            targets: &self.update,
            options,
            want_metadata: options.is_some(),
        };
        let response = self.session.run(&request).unwrap();
        (response.outputs[0].as_slice().unwrap()[0], response.metadata)
    }

    /// The names of the nodes that a traced step ran.
    fn nodes(&self) -> Vec<String> {
        let options = RunOptions {
            trace_level: TraceLevel::FullTrace as i32,
            ..RunOptions::default()
        };
        let metadata = self.step(Some(&options)).1.unwrap();
        let devices = metadata.step_stats.unwrap().dev_stats;
        let nodes = devices.into_iter().flat_map(|device| device.node_stats);
        nodes.map(|node| node.node_name).collect()
    }
}

#[test]
fn clusters_that_a_session_asks_for_leave_the_losses_and_are_seen() {
    let apart = training(GlobalJitLevel::Off);
    let together = training(GlobalJitLevel::On1);
    let unasked = training(GlobalJitLevel::Default);
    let before = ff_jit::num_programs();
    let mut losses = Vec::new();
    for step in 0..STEPS {
        let (expected, loss) = (apart.step(None).0, together.step(None).0);
        let differs = (expected - loss).abs();
        assert!(differs <= 1e-5 * expected, "step {step}: {loss}, not {expected}");
        let loss_unasked = unasked.step(None).0;
        assert_eq!(expected.to_bits(), loss_unasked.to_bits(), "step {step}, unasked");
        losses.push(loss);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!((losses[0] - 10f32.ln()).abs() < 1e-6, "{}", losses[0]);
    assert!(losses[STEPS - 1] < losses[0] / 2.0, "{losses:?}");
    assert!(ff_jit::num_programs() > before, "nothing was compiled");
    let is_cluster = |name: &String| name.ends_with("/cluster");
    assert!(together.nodes().iter().any(is_cluster), "{:?}", together.nodes());
    assert!(!apart.nodes().iter().any(is_cluster));
}
