//! Models from graph to object and back: the object is loaded into this process and run by the runtime.

use super::*;
use ff_aot_runtime::{Model, Program};
use ff_codegen::LoadedObject;
use ff_graph::{Graph, ImportOptions, NodeBuilder, export_graph_def, import_graph_def};
use ff_op::OutputRef;
use ff_proto::Message;
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{Code, DataType, PartialShape, Shape, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;

struct Sketch(Graph);

impl Sketch {
    fn new() -> Sketch {
        Sketch(Graph::new(ff_ops::registry()))
    }

    fn input(&mut self, name: &str, dims: &[i64]) -> OutputRef {
        let builder = NodeBuilder::new("Placeholder", name)
            .attr("dtype", DataType::FLOAT)
            .attr("shape", PartialShape::new(dims));
        self.add(builder)
    }

    fn constant(&mut self, name: &str, dims: &[i64], value: impl Fn(usize) -> f32) -> OutputRef {
        let shape = Shape::new(dims).unwrap();
        let values: Vec<f32> = (0..shape.num_elements()).map(value).collect();
        let tensor = Tensor::from_slice(shape, &values).unwrap();
        self.add(
            NodeBuilder::new("Const", name)
                .attr("dtype", DataType::FLOAT)
                .attr("value", tensor),
        )
    }

    fn op(&mut self, op: &str, name: &str, inputs: &[OutputRef]) -> OutputRef {
        let builder = NodeBuilder::new(op, name);
        self.add(
            inputs
                .iter()
                .fold(builder, |builder, input| builder.input(*input)),
        )
    }

    fn add(&mut self, builder: NodeBuilder) -> OutputRef {
        OutputRef {
            node: builder.finish(&mut self.0).unwrap(),
            index: 0,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        export_graph_def(&self.0).encode_to_vec()
    }

    fn source(&self, feeds: &[&str], fetches: &[&str]) -> Result<Source> {
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        Source::graph_def(self.bytes(), &owned(feeds), &owned(fetches))
    }
}

/// `softmax(tanh(x w + b) v)` with weights of some kilobytes.
fn network() -> Sketch {
    let mut s = Sketch::new();
    let x = s.input("x", &[-1, 20]);
    let w = s.constant("w", &[20, 48], |i| (i % 13) as f32 * 0.05 - 0.3);
    let b = s.constant("b", &[48], |i| i as f32 * 0.01);
    let v = s.constant("v", &[48, 10], |i| (i % 7) as f32 * 0.1 - 0.3);
    let product = s.op("MatMul", "product", &[x, w]);
    let sum = s.op("BiasAdd", "sum", &[product, b]);
    let hidden = s.op("Tanh", "hidden", &[sum]);
    let logits = s.op("MatMul", "logits", &[hidden, v]);
    s.op("Softmax", "probabilities", &[logits]);
    s
}

fn options(text: &str) -> Options {
    Options::parse(text.split_whitespace()).unwrap()
}

/// The object in memory, for the rest of the process.
fn program(artifact: &Artifact, name: &str) -> &'static Program {
    let loaded = Box::leak(Box::new(LoadedObject::load(&artifact.object).unwrap()));
    let table = loaded.symbol(&format!("{name}_program")).unwrap();
    // SAFETY: the object defines its table there, and lives as long as the process.
    unsafe { &*table.cast::<Program>() }
}

fn model(artifact: &Artifact, name: &str, weights: Option<&str>) -> Model {
    // SAFETY: the table comes from the compiler.
    unsafe { Model::new(program(artifact, name), 1, weights) }
}

fn floats(model: &Model, index: usize) -> Vec<f32> {
    let count = model.result_size(index) / 4;
    // SAFETY: the result of a run has that many elements.
    unsafe { std::slice::from_raw_parts(model.result(index).cast(), count) }.to_vec()
}

/// What a session computes.
fn session(sketch: &Sketch, input: &Tensor, fetch: &str) -> Vec<f32> {
    let graph = Arc::new(Mutex::new(Graph::new(ff_ops::registry())));
    let def = export_graph_def(&sketch.0);
    import_graph_def(&mut graph.lock(), def, &ImportOptions::default()).unwrap();
    let output = |name: &str| OutputRef {
        node: graph.lock().find(name).unwrap(),
        index: 0,
    };
    let feeds = [(output("x"), input.clone())];
    let fetches = [output(fetch)];
    let session = Session::new(graph.clone(), SessionOptions::default()).unwrap();
    let request = RunRequest {
        feeds: &feeds,
        fetches: &fetches,
        targets: &[],
        options: None,
        want_metadata: false,
    };
    let outputs = session.run(&request).unwrap().outputs;
    outputs[0].as_slice::<f32>().unwrap().to_vec()
}

fn set(model: &mut Model, input: &Tensor) {
    assert_eq!(model.argument_size(0), input.byte_size());
    // SAFETY: the argument has that many bytes.
    unsafe { std::ptr::copy_nonoverlapping(input.data_ptr(), model.argument(0), input.byte_size()) };
}

fn input(rows: i64) -> Tensor {
    let values: Vec<f32> = (0..rows * 20).map(|i| (i % 11) as f32 * 0.2 - 1.0).collect();
    Tensor::from_slice(Shape::new(&[rows, 20]).unwrap(), &values).unwrap()
}

#[test]
fn results_are_those_of_a_session() {
    let sketch = network();
    let source = sketch.source(&["x"], &["probabilities"]).unwrap();
    let artifact = compile(&source, &options("--name net --extent 3 --cpu native")).unwrap();
    assert!(artifact.num_fusions > 0 && artifact.weights.is_none());
    let mut model = model(&artifact, "net", None);
    assert_eq!(model.error().0, 0, "{:?}", model.error());
    assert_eq!(model.num_fusions(), artifact.num_fusions);
    let input = input(3);
    set(&mut model, &input);
    model.run().unwrap();
    let (got, wanted) = (floats(&model, 0), session(&sketch, &input, "probabilities"));
    assert_eq!(got.len(), 30);
    for (a, b) in got.iter().zip(&wanted) {
        assert!((a - b).abs() < 1e-6, "{got:?} {wanted:?}");
    }
    // Again, with the memory of the run before.
    model.run().unwrap();
    assert_eq!(floats(&model, 0), got);
}

#[test]
fn weights_can_lie_beside_the_object() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("net").display().to_string();
    let source = network().source(&["x:0"], &["probabilities:0"]).unwrap();
    let inside = compile(&source, &options("--name net --shape x=1,20")).unwrap();
    let beside = compile_to(
        &source,
        &options("--name net --shape x=1,20 --weights side"),
        &prefix,
    )
    .unwrap();
    let weights = beside.weights.as_ref().unwrap().len();
    assert!(weights >= 4 * (20 * 48 + 48 + 480) && inside.object.len() > beside.object.len() + weights / 2);
    let mut one = model(&inside, "net", None);
    let mut other = model(&beside, "net", Some(&format!("{prefix}.weights")));
    for model in [&mut one, &mut other] {
        set(model, &input(1));
        model.run().unwrap();
    }
    assert_eq!(floats(&one, 0), floats(&other, 0));
    let mut without = model(&beside, "net", None);
    assert_eq!(without.run().unwrap_err().code(), Code::NotFound);
    assert!(
        std::fs::read_to_string(format!("{prefix}.h"))
            .unwrap()
            .contains("net_arg_x")
    );
}

#[test]
fn variables_become_constants() {
    let mut s = Sketch::new();
    let x = s.input("x", &[4]);
    let handle = s.add(
        NodeBuilder::new("VarHandleOp", "v")
            .attr("dtype", DataType::FLOAT)
            .attr("shape", PartialShape::new(&[4]))
            .attr("shared_name", "v"),
    );
    let read = s.add(
        NodeBuilder::new("ReadVariableOp", "read")
            .input(handle)
            .attr("dtype", DataType::FLOAT),
    );
    s.op("Mul", "y", &[x, read]);
    let source = s.source(&["x"], &["y"]).unwrap();
    // Nothing has set it.
    let error = compile(&source, &options("--name v")).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    let assign = {
        let mut graph = source.graph.lock();
        let handle = OutputRef {
            node: graph.find("v").unwrap(),
            index: 0,
        };
        let value = Tensor::from_slice(Shape::vector(4), &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let value = NodeBuilder::new("Const", "value")
            .attr("dtype", DataType::FLOAT)
            .attr("value", value)
            .finish(&mut graph)
            .unwrap();
        let value = OutputRef {
            node: value,
            index: 0,
        };
        let assign = NodeBuilder::new("AssignVariableOp", "assign")
            .input(handle)
            .input(value);
        assign.attr("dtype", DataType::FLOAT).finish(&mut graph).unwrap()
    };
    let request = RunRequest {
        feeds: &[],
        fetches: &[],
        targets: &[assign],
        options: None,
        want_metadata: false,
    };
    source.session.run(&request).unwrap();
    let artifact = compile(&source, &options("--name v")).unwrap();
    let mut model = model(&artifact, "v", None);
    let input = Tensor::from_slice(Shape::vector(4), &[5.0f32; 4]).unwrap();
    set(&mut model, &input);
    model.run().unwrap();
    assert_eq!(floats(&model, 0), [5.0, 10.0, 15.0, 20.0]);
}

#[test]
fn what_cannot_be_compiled_is_named() {
    let mut s = Sketch::new();
    let x = s.input("x", &[4]);
    s.op("Unique", "distinct", &[x]);
    let zero = s.constant("zero", &[], |_| 0.0);
    s.op("Where", "places", &[x]);
    s.op("Greater", "larger", &[x, zero]);
    let source = s.source(&["x"], &["distinct"]).unwrap();
    let error = compile(&source, &options("")).unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(error.message().contains("distinct"), "{}", error.message());
    for (feeds, fetches) in [
        (&["x"][..], &["y"][..]),
        (&["x"], &["distinct:9"]),
        (&["x"], &[]),
        (&["x", "x:0"], &["larger"]),
        (&["^x"], &["larger"]),
    ] {
        assert!(s.source(feeds, fetches).is_err(), "{feeds:?} {fetches:?}");
    }
    // An input that is not named is no input.
    let source = s.source(&[], &["larger"]).unwrap();
    assert!(compile(&source, &options("")).is_err());
    let unknown = network().source(&["x"], &["probabilities"]).unwrap();
    assert_eq!(
        compile(&unknown, &options("")).unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[test]
fn damaged_graphs_are_errors() {
    let good = network().bytes();
    let names = (vec![String::from("x")], vec![String::from("probabilities")]);
    for at in (0..good.len()).step_by(97) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x55;
        for bytes in [bytes, good[..at].to_vec()] {
            if let Ok(source) = Source::graph_def(bytes, &names.0, &names.1) {
                let _ = compile(&source, &options("--extent 2"));
            }
        }
    }
}

#[test]
fn old_processors_evaluate() {
    let source = network().source(&["x"], &["probabilities"]).unwrap();
    let artifact = compile(
        &source,
        &options("--name old --extent 1 --cpu x86-64 --target x86_64-unknown-linux-gnu"),
    );
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let artifact = artifact.unwrap();
    assert_eq!(artifact.num_fusions, 0);
    let new = compile(&source, &options("--name new --extent 1")).unwrap();
    let (mut old, mut new) = (model(&artifact, "old", None), model(&new, "new", None));
    for model in [&mut old, &mut new] {
        set(model, &input(1));
        model.run().unwrap();
    }
    assert_eq!(floats(&old, 0), floats(&new, 0));
}

#[cfg(feature = "foreign")]
#[test]
fn other_processors_get_objects() {
    let source = network().source(&["x"], &["probabilities"]).unwrap();
    let compile =
        |words: &str| compile(&source, &options(&format!("--name net --extent 2 {words}"))).unwrap();
    let artifact = compile("--target aarch64-unknown-linux-gnu");
    let machine = u16::from_le_bytes([artifact.object[18], artifact.object[19]]);
    // ELF, 64 bits, relocatable, EM_AARCH64.
    assert_eq!(artifact.object[..5], [0x7f, b'E', b'L', b'F', 2]);
    assert_eq!((artifact.object[16], machine), (1, 183));
    let names = |name: &[u8]| artifact.object.windows(name.len()).any(|window| window == name);
    assert!(names(b"net_program\0") && names(b"net_fusion_0\0"));
    // NEON: `fadd v.4s, v.4s, v.4s` is 0100 1110 0010 mmmm m110 1010 1dnn nddd.
    let words = artifact
        .object
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    assert!(words.filter(|word| word & 0xffe0_fc00 == 0x4e20_d400).count() > 0);
    assert!(artifact.header.contains("aarch64-unknown-linux-gnu"));
    // Mach-O, 64 bits.
    assert_eq!(
        compile("--target arm64-apple-macosx13").object[..4],
        [0xcf, 0xfa, 0xed, 0xfe]
    );
}

#[test]
fn headers_name_everything() {
    let source = network().source(&["x"], &["probabilities", "hidden"]).unwrap();
    let artifact = compile(&source, &options("--name small_net --extent 2")).unwrap();
    for part in [
        "extern const FF_AotProgram small_net_program;",
        "#define SMALL_NET_ARG_X_SHAPE {2, 20}",
        "#define SMALL_NET_RESULT_HIDDEN_INDEX 1",
        "static inline const float* small_net_result_probabilities(const FF_AotModel* model)",
        "class SmallNet {",
    ] {
        assert!(artifact.header.contains(part), "{part}\n{}", artifact.header);
    }
    assert!(artifact.report.contains("ENTRY") && artifact.report.contains("block"));
}
