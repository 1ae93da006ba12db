//! Small models made by the reference, with what it computed. `io.txt` lists inputs and outputs; each tensor is a file
//! of a line `dtype extents..` and raw little-endian elements.

use ff_graph::{Graph, ImportOptions, import_graph_def};
use ff_op::OutputRef;
use ff_proto::{Bytes, GraphDef, Message};
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{DataType, Shape, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;

fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> Tensor {
    let file = std::fs::read(path).unwrap();
    let end = file.iter().position(|&byte| byte == b'\n').unwrap();
    let header = std::str::from_utf8(&file[..end]).unwrap();
    let mut words = header.split_whitespace();
    assert_eq!(words.next(), Some("float32"));
    let dims: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
    let mut tensor = Tensor::allocate(DataType::FLOAT, Shape::new(&dims).unwrap()).unwrap();
    tensor.bytes_mut().unwrap().copy_from_slice(&file[end + 1..]);
    tensor
}

/// The largest difference is at most 1e-5 of the largest magnitude, in every one of several runs.
fn check(model: &str) {
    let bytes = Bytes::from(std::fs::read(data(&format!("{model}.pb"))).unwrap());
    let mut graph = Graph::new(ff_ops::registry());
    import_graph_def(
        &mut graph,
        GraphDef::decode(bytes).unwrap(),
        &ImportOptions::default(),
    )
    .unwrap();
    let (mut feeds, mut fetches, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for line in std::fs::read_to_string(data(&format!("{model}/io.txt")))
        .unwrap()
        .lines()
    {
        let words: Vec<&str> = line.split(' ').collect();
        let (node, index) = words[1].rsplit_once(':').unwrap();
        let output = OutputRef {
            node: graph.find(node).unwrap(),
            index: index.parse().unwrap(),
        };
        let value = read(&data(&format!("{model}/{}", words[2])));
        if words[0] == "in" {
            feeds.push((output, value));
        } else {
            fetches.push(output);
            expected.push(value);
        }
    }
    let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default()).unwrap();
    for _ in 0..3 {
        let request = RunRequest {
            feeds: &feeds,
            fetches: &fetches,
            targets: &[],
            options: None,
            want_metadata: false,
        };
        let response = session.run(&request).unwrap();
        for (got, want) in response.outputs.iter().zip(&expected) {
            assert_eq!(got.shape(), want.shape());
            let (got, want) = (got.as_slice::<f32>().unwrap(), want.as_slice::<f32>().unwrap());
            let largest = want.iter().fold(0f32, |largest, x| largest.max(x.abs()));
            let difference = got
                .iter()
                .zip(want)
                .fold(0f32, |most, (a, b)| most.max((a - b).abs()));
            assert!(difference <= 1e-5 * largest, "{model}: {difference} of {largest}");
        }
    }
}

#[test]
fn dense_layers() {
    check("mlp_tiny");
}

#[test]
fn recurrent_layer_in_v1_frames() {
    check("lstm_tiny");
}

#[test]
fn recurrent_layer_by_functional_while() {
    check("lstm_tiny_v2while");
}
