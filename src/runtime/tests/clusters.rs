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

/// Dropout by a key and a counter, in extents that vectors and blocks of random words do not divide.
fn dropped(clusters: bool) -> Vec<u8> {
    let mut graph = Graph::new(ff_ops::registry());
    let x = placeholder(&mut graph, "x");
    let mut input = |name: &str| {
        let node = NodeBuilder::new("Placeholder", name).attr("dtype", DataType::UINT64);
        node.finish(&mut graph).unwrap()
    };
    let (key, counter) = (input("key"), input("counter"));
    let mut constant = |name: &str, value: Tensor| {
        let node = NodeBuilder::new("Const", name)
            .attr("dtype", value.dtype())
            .attr("value", value);
        out(node.finish(&mut graph).unwrap())
    };
    let shape = constant("shape", Tensor::vector(&[7i32, 53]).unwrap());
    let philox = constant("philox", Tensor::scalar(1i32).unwrap());
    let rate = constant("rate", Tensor::scalar(0.3f32).unwrap());
    let zero = constant("zero", Tensor::scalar(0.0f32).unwrap());
    let numbers = NodeBuilder::new("StatelessRandomUniformV2", "numbers")
        .input(shape)
        .input(out(key))
        .input(out(counter))
        .input(philox);
    let numbers = numbers.finish(&mut graph).unwrap();
    let keep = NodeBuilder::new("GreaterEqual", "keep")
        .input(out(numbers))
        .input(rate);
    let keep = keep.finish(&mut graph).unwrap();
    let kept = NodeBuilder::new("SelectV2", "kept")
        .input(out(keep))
        .input(out(x))
        .input(zero);
    let kept = kept.finish(&mut graph).unwrap();
    let values: Vec<f32> = (0..7 * 53).map(|i| i as f32 + 1.0).collect();
    let x_value = Tensor::from_slice(Shape::new(&[7, 53]).unwrap(), &values).unwrap();
    let response = session(graph, clusters).run(&RunRequest {
        feeds: &[
            (out(x), x_value),
            (out(key), Tensor::vector(&[12345u64]).unwrap()),
            (out(counter), Tensor::vector(&[u64::MAX - 3, 9]).unwrap()),
        ],
        fetches: &[out(kept)],
        targets: &[],
        options: None,
        want_metadata: false,
    });
    response.unwrap().outputs[0].bytes().to_vec()
}

#[test]
fn dropout_has_the_bits_of_its_ops() {
    let (apart, together) = (dropped(false), dropped(true));
    let zeros = apart.chunks_exact(4).filter(|element| *element == [0; 4]).count();
    assert!((50..200).contains(&zeros), "{zeros}");
    assert!(apart == together);
}

const QUOTIENTS: &[&str] = &["Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"];

/// `op(a, b) + a` of integers, which is one fusion where it is compiled.
fn quotient_plus<T: ff_tensor::Element>(op: &str, a: &[T], b: &[T], clusters: bool) -> Result<Vec<Tensor>> {
    let mut graph = Graph::new(ff_ops::registry());
    let mut input = |name: &str| {
        let node = NodeBuilder::new("Placeholder", name).attr("dtype", T::DTYPE);
        node.finish(&mut graph).unwrap()
    };
    let (x, y) = (input("x"), input("y"));
    let quotient = NodeBuilder::new(op, "quotient").input(out(x)).input(out(y));
    let quotient = quotient.finish(&mut graph).unwrap();
    let sum = NodeBuilder::new("AddV2", "sum")
        .input(out(quotient))
        .input(out(x));
    let sum = sum.finish(&mut graph).unwrap();
    let response = session(graph, clusters).run(&RunRequest {
        feeds: &[(out(x), Tensor::vector(a)?), (out(y), Tensor::vector(b)?)],
        fetches: &[out(sum)],
        targets: &[],
        options: None,
        want_metadata: false,
    })?;
    Ok(response.outputs)
}

fn check_quotients<T: ff_tensor::Element>(lowest: T, minus_one: T, zero: T, seven: T) {
    // Whole vectors, and what is left of one.
    let mut a = vec![seven; 70];
    let mut b = vec![minus_one; 70];
    for place in [0, 33, 69] {
        a[place] = lowest;
    }
    b[5] = seven;
    // Two of the ops are for two types only.
    let all = matches!(T::DTYPE, DataType::INT32 | DataType::INT64);
    let ops = QUOTIENTS
        .iter()
        .filter(|op| all || !matches!(**op, "Mod" | "TruncateMod"));
    for op in ops.clone() {
        let bits = |clusters: bool| quotient_plus(op, &a, &b, clusters).unwrap()[0].bytes().to_vec();
        assert!(bits(false) == bits(true), "{op} of {}", T::DTYPE);
    }
    b[68] = zero;
    for op in ops {
        let code = |clusters: bool| quotient_plus(op, &a, &b, clusters).unwrap_err().code();
        assert_eq!(code(false), code(true), "{op} of {}", T::DTYPE);
    }
}

#[test]
fn quotients_of_integers_neither_trap_nor_lose_their_errors() {
    check_quotients(i8::MIN, -1, 0, 7);
    check_quotients(i16::MIN, -1, 0, 7);
    check_quotients(i32::MIN, -1, 0, 7);
    check_quotients(i64::MIN, -1, 0, 7);
    check_quotients(u8::MAX, 1, 0, 7);
    check_quotients(u64::MAX, 1, 0, 7);
}
