//! Partial runs: pieces in any order, each once; texts of errors as the reference words them.

use ff_graph::{Graph, NodeBuilder};
use ff_op::OutputRef;
use ff_runtime::{RunRequest, Session, SessionOptions, Signature};
use ff_tensor::{Code, DataType, Result, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;

fn out(node: u32) -> OutputRef {
    OutputRef { node, index: 0 }
}

/// `r1 = a + a`, `r2 = r1 + b`, and `bad`, which fails unless `a` is finite.
fn session() -> (Session, [OutputRef; 5]) {
    let mut graph = Graph::new(ff_ops::registry());
    let mut placeholder = |name| {
        let node = NodeBuilder::new("Placeholder", name).attr("dtype", DataType::FLOAT);
        out(node.finish(&mut graph).unwrap())
    };
    let (a, b) = (placeholder("a"), placeholder("b"));
    let mut add = |name, x, y| {
        let node = NodeBuilder::new("AddV2", name).input(x).input(y);
        out(node.finish(&mut graph).unwrap())
    };
    let r1 = add("r1", a, a);
    let r2 = add("r2", r1, b);
    let bad = NodeBuilder::new("CheckNumerics", "bad")
        .input(a)
        .attr("message", "checked");
    let bad = out(bad.finish(&mut graph).unwrap());
    let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default()).unwrap();
    (session, [a, b, r1, r2, bad])
}

fn set_up(session: &Session, feeds: &[OutputRef], fetches: &[OutputRef]) -> String {
    let signature = Signature {
        feeds: feeds.into(),
        fetches: fetches.into(),
        ..Signature::default()
    };
    session.set_up_partial_run(signature).unwrap()
}

fn step(
    session: &Session,
    handle: &str,
    feeds: &[(OutputRef, f32)],
    fetches: &[OutputRef],
) -> Result<Vec<f32>> {
    let feeds: Vec<_> = feeds
        .iter()
        .map(|(feed, value)| (*feed, Tensor::scalar(*value).unwrap()))
        .collect();
    let tensors = session.partial_run(handle, &feeds, fetches)?;
    tensors.iter().map(Tensor::single::<f32>).collect()
}

fn text<T>(result: Result<T>) -> String {
    let error = result.err().unwrap();
    assert_eq!(error.code(), Code::InvalidArgument);
    error.message().to_string()
}

#[test]
fn pieces_come_once_each() {
    let (session, [a, b, r1, r2, _]) = session();
    for number in 0..2 {
        let handle = set_up(&session, &[a, b], &[r1, r2]);
        assert_eq!(handle, format!("a:0,b:0->r1:0,r2:0//1/;{number}"));
        assert_eq!(step(&session, &handle, &[(a, 1.0)], &[r1]).unwrap(), [2.0]);
        assert_eq!(
            text(step(&session, &handle, &[(a, 1.0)], &[])),
            "The feed a:0 has already been fed."
        );
        assert_eq!(
            text(step(&session, &handle, &[], &[r1])),
            "The fetch r1:0 has already been fetched."
        );
        assert_eq!(step(&session, &handle, &[(b, 5.0)], &[r2]).unwrap(), [7.0]);
        assert_eq!(
            text(step(&session, &handle, &[], &[])),
            "Must run 'setup' before performing partial runs!"
        );
    }
}

#[test]
fn feeds_that_are_missing_are_named_and_may_come_later() {
    let (session, [a, b, r1, r2, bad]) = session();
    let handle = set_up(&session, &[a, b], &[r1, r2]);
    assert_eq!(
        text(step(&session, &handle, &[(b, 1.0)], &[r2])),
        "Fetch a:0 can't be computed from the feeds that have been fed so far."
    );
    assert_eq!(
        text(step(&session, &handle, &[], &[bad])),
        "The fetch bad:0 was not specified in partial_run_setup."
    );
    assert_eq!(
        text(step(&session, &handle, &[(r2, 1.0)], &[])),
        "The feed r2:0 was not specified in partial_run_setup."
    );
    assert!(step(&session, &handle, &[(b, 1.0)], &[]).unwrap().is_empty());
    assert_eq!(
        step(&session, &handle, &[(a, 2.0)], &[r2, r1]).unwrap(),
        [5.0, 4.0]
    );
}

#[test]
fn an_error_or_the_session_ends_it() {
    let (session, [a, b, _, r2, bad]) = session();
    let handle = set_up(&session, &[a, b], &[r2, bad]);
    let error = text(step(&session, &handle, &[(a, f32::NAN)], &[bad]));
    assert!(error.contains("checked"), "{error}");
    assert!(text(step(&session, &handle, &[(b, 1.0)], &[r2])).starts_with("Must run 'setup'"));
    let handle = set_up(&session, &[a, b], &[r2]);
    session.close();
    let closed = step(&session, &handle, &[(a, 1.0)], &[]).err().unwrap();
    assert_eq!(closed.code(), Code::Cancelled);
}

/// A node that offers the session a value keeps its word with the piece of the run that fetches it.
#[test]
fn values_are_kept_with_the_piece_that_fetches_them() {
    let mut graph = Graph::new(ff_ops::registry());
    let value = NodeBuilder::new("Const", "value")
        .attr("dtype", DataType::INT32)
        .attr("value", Tensor::scalar(7i32).unwrap());
    let value = out(value.finish(&mut graph).unwrap());
    let handle = NodeBuilder::new("GetSessionHandle", "kept").input(value);
    let handle = out(handle.finish(&mut graph).unwrap());
    let named = NodeBuilder::new("Identity", "named").input(handle);
    let named = out(named.finish(&mut graph).unwrap());
    let text = NodeBuilder::new("Placeholder", "text").attr("dtype", DataType::STRING);
    let text = out(text.finish(&mut graph).unwrap());
    let get = NodeBuilder::new("GetSessionTensor", "get")
        .input(text)
        .attr("dtype", DataType::INT32);
    let get = out(get.finish(&mut graph).unwrap());
    let session = Session::new(Arc::new(Mutex::new(graph)), SessionOptions::default()).unwrap();
    let found = |name: &Tensor| {
        let response = session.run(&RunRequest {
            feeds: &[(text, name.clone())],
            fetches: &[get],
            targets: &[],
            options: None,
            want_metadata: false,
        });
        response.map(|response| response.outputs[0].as_slice::<i32>().unwrap().to_vec())
    };
    let run = set_up(&session, &[], &[handle, named]);
    let name = session.partial_run(&run, &[], &[named]).unwrap().remove(0);
    assert_eq!(
        name.strings().unwrap()[0].as_bytes(),
        b"kept;0;/job:localhost/replica:0/task:0/device:CPU:0"
    );
    let error = found(&name).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("is not in the session store"), "{error}");
    session.partial_run(&run, &[], &[handle]).unwrap();
    assert_eq!(found(&name).unwrap(), [7]);
}
