//! Graphs of control flow and state that `tools/models/make_models.py` made with the reference, in `build/models` or where
//! `FERROFLOW_MODELS` says. Without them nothing is compared.

use ff_graph::{Graph, ImportOptions, import_graph_def};
use ff_op::OutputRef;
use ff_proto::{Bytes, ConfigProto, GraphDef, Message};
use ff_runtime::{RunRequest, Session, SessionOptions, load_saved_model};
use ff_tensor::{DataType, Shape, Tensor};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Named = Vec<(String, Tensor)>;

/// Reads an `.expect` file; its form is described in `tools/models/expect_file.py`.
struct Reader(Vec<u8>, usize);

impl Reader {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        self.1 += count;
        self.0[self.1 - count..self.1].to_vec()
    }

    fn u32(&mut self) -> usize {
        u32::from_le_bytes(self.bytes(4).try_into().unwrap()) as usize
    }

    fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.bytes(8).try_into().unwrap())
    }

    fn tensor(&mut self) -> (String, Tensor) {
        let length = self.u32();
        let name = String::from_utf8(self.bytes(length)).unwrap();
        let dtype = DataType(self.u32() as i32);
        let rank = self.u32();
        let dims: Vec<i64> = (0..rank).map(|_| self.i64()).collect();
        let mut tensor = Tensor::allocate(dtype, Shape::new(&dims).unwrap()).unwrap();
        let size = self.i64() as usize;
        let data = self.bytes(size);
        tensor.bytes_mut().unwrap().copy_from_slice(&data);
        (name, tensor)
    }

    fn cases(path: &Path) -> Vec<(Named, Named)> {
        let mut reader = Reader(std::fs::read(path).unwrap(), 12);
        let count = reader.u32();
        let case = |_| {
            let (inputs, outputs) = (reader.u32(), reader.u32());
            let inputs = (0..inputs).map(|_| reader.tensor()).collect();
            (inputs, (0..outputs).map(|_| reader.tensor()).collect())
        };
        (0..count).map(case).collect()
    }
}

fn folder() -> PathBuf {
    match std::env::var_os("FERROFLOW_MODELS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/models"),
    }
}

fn find(graph: &Graph, name: &str) -> OutputRef {
    let (node, index) = name.rsplit_once(':').unwrap();
    OutputRef {
        node: graph.find(node).unwrap(),
        index: index.parse().unwrap(),
    }
}

fn differs(got: &Tensor, want: &Tensor) -> Option<String> {
    if got.dtype() != want.dtype() || got.shape() != want.shape() {
        return Some(format!(
            "{} {} for {} {}",
            got.dtype(),
            got.shape(),
            want.dtype(),
            want.shape()
        ));
    }
    let (Ok(a), Ok(b)) = (got.as_slice::<f32>(), want.as_slice::<f32>()) else {
        return (got.bytes() != want.bytes()).then(|| "other values".to_string());
    };
    let largest = b.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    let difference = a.iter().zip(b).fold(0f32, |most, (a, b)| most.max((a - b).abs()));
    (difference > 1e-5 * largest.max(1e-30)).then(|| format!("differs by {difference} of {largest}"))
}

fn check(session: &Session, expect: &Path, name: &str) -> Vec<String> {
    let mut failures = Vec::new();
    // Twice in turn: state and remembered shapes of one case must not reach another.
    let cases = Reader::cases(expect);
    for (number, (inputs, outputs)) in cases.iter().chain(&cases).enumerate() {
        let (feeds, fetches): (Vec<_>, Vec<_>) = {
            let graph = session.graph().lock();
            let feed = |(name, value): &(String, Tensor)| (find(&graph, name), value.clone());
            let fetches = outputs.iter().map(|(name, _)| find(&graph, name));
            (inputs.iter().map(feed).collect(), fetches.collect())
        };
        let result = session.run(&RunRequest {
            feeds: &feeds,
            fetches: &fetches,
            targets: &[],
            options: None,
            want_metadata: false,
        });
        match result {
            Err(error) => failures.push(format!("{name}, case {number}: {error}")),
            Ok(response) => {
                for (got, (output, want)) in response.outputs.iter().zip(outputs) {
                    failures.extend(
                        differs(got, want).map(|why| format!("{name}, case {number}, {output}: {why}")),
                    );
                }
            }
        }
    }
    failures
}

#[test]
fn graphs_give_what_they_give_with_the_reference() {
    let Ok(folders) = std::fs::read_dir(folder()) else {
        return;
    };
    let mut failures = Vec::new();
    for entry in folders.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("flow_") {
            continue;
        }
        let path = entry.path();
        if path.join("frozen.pb").exists() {
            let bytes = Bytes::from(std::fs::read(path.join("frozen.pb")).unwrap());
            let mut graph = Graph::new(ff_ops::registry());
            let def = GraphDef::decode(bytes).unwrap();
            import_graph_def(&mut graph, def, &ImportOptions::default()).unwrap();
            let config = ConfigProto {
                operation_timeout_in_ms: 20_000,
                ..ConfigProto::default()
            };
            let options = SessionOptions {
                config,
                ..SessionOptions::default()
            };
            let session = Session::new(Arc::new(Mutex::new(graph)), options).unwrap();
            failures.extend(check(&session, &path.join("frozen.expect"), &name));
        } else {
            let graph = Arc::new(Mutex::new(Graph::new(ff_ops::registry())));
            let (model, tags) = (path.join("saved_model"), ["serve".to_string()]);
            let loaded = load_saved_model(
                graph,
                &model.to_string_lossy(),
                &tags,
                SessionOptions::default(),
                None,
            );
            failures.extend(check(
                &loaded.unwrap().session,
                &path.join("saved_model.expect"),
                &name,
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
