//! Thousands of steps at once, and sessions that are closed while steps run.

use ff_graph::{Graph, LoopPart, NodeBuilder, NodeId, add_while_loop};
use ff_op::{AttrValue, OutputRef};
use ff_runtime::{RunRequest, Session, SessionOptions};
use ff_tensor::{Code, DataType, Result, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

const STEPS: i32 = 2000;

fn out(node: u32) -> OutputRef {
    OutputRef { node, index: 0 }
}

fn session(graph: Graph) -> Arc<Session> {
    let graph = Arc::new(Mutex::new(graph));
    Arc::new(Session::new(graph, SessionOptions::default()).unwrap())
}

fn run(
    session: &Session,
    feeds: &[(OutputRef, Tensor)],
    fetches: &[OutputRef],
    targets: &[NodeId],
) -> Result<Vec<Tensor>> {
    let response = session.run(&RunRequest {
        feeds,
        fetches,
        targets,
        options: None,
        want_metadata: false,
    })?;
    Ok(response.outputs)
}

/// A placeholder, a queue of one place, what puts into it, and what takes out.
fn queue(graph: &mut Graph) -> [NodeId; 3] {
    let int = || AttrValue::Types(vec![DataType::INT32]);
    let queue = NodeBuilder::new("FIFOQueueV2", "queue")
        .attr("component_types", int())
        .attr("capacity", 1i64);
    let queue = queue.finish(graph).unwrap();
    let x = NodeBuilder::new("Placeholder", "x").attr("dtype", DataType::INT32);
    let x = x.finish(graph).unwrap();
    let put = NodeBuilder::new("QueueEnqueueV2", "put")
        .input(out(queue))
        .input_list([out(x)]);
    let take = NodeBuilder::new("QueueDequeueV2", "take")
        .input(out(queue))
        .attr("component_types", int());
    [x, put.finish(graph).unwrap(), take.finish(graph).unwrap()]
}

fn constant(graph: &mut Graph, name: &str, value: i32) -> OutputRef {
    let node = NodeBuilder::new("Const", name)
        .attr("dtype", DataType::INT32)
        .attr("value", Tensor::scalar(value).unwrap());
    out(node.finish(graph).unwrap())
}

/// A loop that ends only when it is stopped.
fn endless(graph: &mut Graph) -> OutputRef {
    let (mut condition, mut body) = (Graph::new(ff_ops::registry()), Graph::new(ff_ops::registry()));
    let argument = |graph: &mut Graph| {
        let node = NodeBuilder::new("Placeholder", "i").attr("dtype", DataType::INT32);
        out(node.finish(graph).unwrap())
    };
    let (a, b) = (argument(&mut condition), argument(&mut body));
    let one = constant(&mut condition, "one", 1);
    let less = NodeBuilder::new("Less", "less").input(a).input(one);
    let less = out(less.finish(&mut condition).unwrap());
    let zero = constant(&mut body, "zero", 0);
    let sum = NodeBuilder::new("AddV2", "sum").input(b).input(zero);
    let sum = out(sum.finish(&mut body).unwrap());
    let start = constant(graph, "start", 0);
    let part = |graph, inputs, outputs| LoopPart {
        graph,
        inputs,
        outputs,
    };
    let exits = add_while_loop(
        graph,
        "loop",
        &[start],
        part(&condition, &[a], &[less]),
        part(&body, &[b], &[sum]),
    );
    exits.unwrap()[0]
}

#[test]
fn steps_that_wait_for_each_other_across_threads() {
    let mut graph = Graph::new(ff_ops::registry());
    let [x, put, take] = queue(&mut graph);
    let session = session(graph);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for value in 0..STEPS {
                    run(&session, &[(out(x), Tensor::scalar(value).unwrap())], &[], &[put]).unwrap();
                }
            });
        }
        let takers = [0, 1].map(|_| {
            scope.spawn(|| {
                let take = |_| {
                    run(&session, &[], &[out(take)], &[]).unwrap()[0]
                        .single::<i32>()
                        .unwrap()
                };
                (0..STEPS).map(take).map(i64::from).sum::<i64>()
            })
        });
        let sum: i64 = takers.map(|taker| taker.join().unwrap()).iter().sum();
        assert_eq!(sum, i64::from(STEPS) * i64::from(STEPS - 1));
    });
}

#[test]
fn closing_ends_loops_and_who_waits() {
    let mut graph = Graph::new(ff_ops::registry());
    let [_, _, take] = queue(&mut graph);
    let last = endless(&mut graph);
    let session = session(graph);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let steps = [out(take), last, out(take), last].map(|fetch| {
            let session = session.clone();
            scope.spawn(move || run(&session, &[], &[fetch], &[]).map(|_| ()))
        });
        std::thread::sleep(Duration::from_millis(100));
        session.close();
        for step in steps {
            assert_eq!(step.join().unwrap().unwrap_err().code(), Code::Cancelled);
        }
    });
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(
        run(&session, &[], &[last], &[]).unwrap_err().code(),
        Code::Cancelled
    );
}
