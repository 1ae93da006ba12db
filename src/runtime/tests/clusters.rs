//! Clusters change nothing that a client can see: the same bits, the same errors.

use ff_graph::{Graph, NodeBuilder};
use ff_op::OutputRef;
use ff_proto::ConfigProto;
use ff_proto::optimizer_options::GlobalJitLevel;
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{Code, DataType, Result, Shape, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const ROWS: i64 = 9;
const COLUMNS: i64 = 1031;

fn out(node: u32) -> OutputRef {
    OutputRef { node, index: 0 }
}

/// A session that compiles all that it can before the first run, or nothing.
fn session(graph: Graph, clusters: bool) -> Session {
    let flags = ff_jit::flags();
    flags.cpu_global_jit.store(true, Relaxed);
    flags.lazy.store(false, Relaxed);
    flags.min_cluster_size.store(1, Relaxed);
    let mut config = ConfigProto::default();
    let options = config.graph_options.get_or_insert_default();
    let options = options.optimizer_options.get_or_insert_default();
    options.global_jit_level = if clusters {
        GlobalJitLevel::On1 as i32
    } else {
        GlobalJitLevel::Off as i32
    };
    let options = SessionOptions {
        config,
        ..SessionOptions::default()
    };
    Session::new(Arc::new(Mutex::new(graph)), options).unwrap()
}

fn placeholder(graph: &mut Graph, name: &str) -> u32 {
    let node = NodeBuilder::new("Placeholder", name).attr("dtype", DataType::FLOAT);
    node.finish(graph).unwrap()
}

/// Numbers of all sizes and signs, with the special ones among them.
fn numbers(seed: u32) -> Tensor {
    let mut state = seed;
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-40,
        88.5,
        -104.0,
    ];
    let values: Vec<f32> = (0..ROWS * COLUMNS)
        .map(|index| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let uniform = (state >> 8) as f32 / (1 << 24) as f32 - 0.5;
            match index % 97 {
                0 => special[(index / 97) as usize % special.len()],
                n if n % 3 == 0 => uniform * 200.0,
                _ => uniform * 4.0,
            }
        })
        .collect();
    Tensor::from_slice(Shape::new(&[ROWS, COLUMNS]).unwrap(), &values).unwrap()
}

/// The result of an op between two others, so that it is in the middle of a cluster; none when it takes no floats.
fn run(op: &str, clusters: bool) -> Option<Vec<u8>> {
    let mut graph = Graph::new(ff_ops::registry());
    let inputs = [
        placeholder(&mut graph, "a"),
        placeholder(&mut graph, "b"),
        placeholder(&mut graph, "c"),
    ];
    let record = ff_ops::registry().find(op).ok()?;
    let mut node = NodeBuilder::new(op, "op");
    for (argument, _) in record.def.input_arg.iter().enumerate() {
        let inner = NodeBuilder::new("Neg", format!("inner_{argument}")).input(out(inputs[argument]));
        node = node.input(out(inner.finish(&mut graph).ok()?));
    }
    let node = node.finish(&mut graph).ok()?;
    let twice = NodeBuilder::new("Add", "twice").input(out(node)).input(out(node));
    let last = twice.finish(&mut graph).unwrap_or(node);
    let session = session(graph, clusters);
    let feeds: Vec<(OutputRef, Tensor)> = (inputs.iter().zip(1..))
        .map(|(input, seed)| (out(*input), numbers(seed)))
        .collect();
    let response = session.run(&RunRequest {
        feeds: &feeds[..record.def.input_arg.len()],
        fetches: &[out(last)],
        targets: &[],
        options: None,
        want_metadata: false,
    });
    Some(bits(&response.ok()?.outputs[0]))
}

/// The bytes of a tensor. Which of the many values that are not numbers an operation gives, nobody promises.
fn bits(tensor: &Tensor) -> Vec<u8> {
    match tensor.as_slice::<f32>() {
        Ok(values) => {
            let same = |value: &f32| if value.is_nan() { f32::NAN } else { *value };
            values
                .iter()
                .flat_map(|value| same(value).to_ne_bytes())
                .collect()
        }
        Err(_) => tensor.bytes().to_vec(),
    }
}

#[test]
fn fused_ops_give_the_bits_of_their_kernels() {
    let mut compared = 0;
    let mut differ = Vec::new();
    for op in ff_jit::fused_ops() {
        let (apart, together) = (run(op, false), run(op, true));
        assert_eq!(apart.is_some(), together.is_some(), "{op}");
        compared += usize::from(apart.is_some());
        if apart != together {
            differ.push(*op);
        }
    }
    assert!(compared > 45, "{compared} ops took floats");
    assert!(differ.is_empty(), "{differ:?}");
}

fn divide(clusters: bool) -> Result<Vec<Tensor>> {
    let mut graph = Graph::new(ff_ops::registry());
    let int = |graph: &mut Graph, name: &str| {
        let node = NodeBuilder::new("Placeholder", name).attr("dtype", DataType::INT32);
        node.finish(graph).unwrap()
    };
    let (a, b) = (int(&mut graph, "a"), int(&mut graph, "b"));
    let sum = NodeBuilder::new("AddV2", "sum").input(out(a)).input(out(b));
    let sum = sum.finish(&mut graph).unwrap();
    let quotient = NodeBuilder::new("FloorDiv", "quotient")
        .input(out(sum))
        .input(out(b));
    let quotient = quotient.finish(&mut graph).unwrap();
    let tensor = |values: &[i32]| Tensor::from_slice(Shape::new(&[2]).unwrap(), values).unwrap();
    let response = session(graph, clusters).run(&RunRequest {
        feeds: &[(out(a), tensor(&[4, 5])), (out(b), tensor(&[2, 0]))],
        fetches: &[out(quotient)],
        targets: &[],
        options: None,
        want_metadata: false,
    })?;
    Ok(response.outputs)
}

#[test]
fn errors_that_depend_on_values_stay() {
    let (apart, together) = (divide(false).unwrap_err(), divide(true).unwrap_err());
    assert_eq!(apart.code(), Code::InvalidArgument);
    assert_eq!(together.code(), apart.code());
    assert!(
        together.message().contains("Integer division by zero"),
        "{together:?}"
    );
    assert!(together.message().contains("quotient"), "{together:?}");
}
