//! What sessions promise: errors, waiting, time limits, state across plans, threads.

use ff_graph::{Graph, NodeBuilder};
use ff_op::OutputRef;
use ff_proto::{ConfigProto, RunOptions};
use ff_runtime::{RunRequest, RunResponse, Session, SessionOptions, SharedGraph};
use ff_tensor::{Code, DataType, PartialShape, Result, Shape, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;

fn out(node: u32) -> OutputRef {
    OutputRef { node, index: 0 }
}

fn graph() -> Graph {
    Graph::new(ff_ops::registry())
}

fn placeholder(graph: &mut Graph, name: &str) -> u32 {
    NodeBuilder::new("Placeholder", name)
        .attr("dtype", DataType::FLOAT)
        .finish(graph)
        .unwrap()
}

fn constant(graph: &mut Graph, name: &str, value: Tensor) -> u32 {
    let dtype = value.dtype();
    NodeBuilder::new("Const", name)
        .attr("dtype", dtype)
        .attr("value", value)
        .finish(graph)
        .unwrap()
}

fn session(graph: Graph) -> Session {
    let config = ConfigProto {
        intra_op_parallelism_threads: 1,
        inter_op_parallelism_threads: 1,
        ..Default::default()
    };
    let shared: Arc<SharedGraph> = Arc::new(Mutex::new(graph));
    Session::new(
        shared,
        SessionOptions {
            config,
            ..Default::default()
        },
    )
    .unwrap()
}

fn run(
    session: &Session,
    feeds: &[(OutputRef, Tensor)],
    fetches: &[OutputRef],
    targets: &[u32],
) -> Result<RunResponse> {
    session.run(&RunRequest {
        feeds,
        fetches,
        targets,
        options: None,
        want_metadata: false,
    })
}

#[test]
fn values_are_fed_fetched_and_checked() {
    let mut graph = graph();
    let (x, y) = (placeholder(&mut graph, "x"), placeholder(&mut graph, "y"));
    let sum = NodeBuilder::new("AddV2", "sum")
        .input(out(x))
        .input(out(y))
        .finish(&mut graph)
        .unwrap();
    let session = session(graph);
    let feeds = [
        (out(x), Tensor::scalar(2f32).unwrap()),
        (out(y), Tensor::vector(&[1f32, 5.0]).unwrap()),
    ];
    let got = run(&session, &feeds, &[out(sum)], &[]).unwrap();
    assert_eq!(got.outputs[0].as_slice::<f32>().unwrap(), &[3.0, 7.0]);
    let error = run(&session, &feeds, &[out(x)], &[]).err().unwrap();
    assert_eq!(
        (error.code(), error.message()),
        (Code::InvalidArgument, "x:0 is both fed and fetched.")
    );
    let error = run(&session, &feeds[..1], &[out(sum)], &[]).err().unwrap();
    assert!(
        error
            .message()
            .contains("You must feed a value for placeholder tensor 'y'"),
        "{error}"
    );
    let wrong = [(out(x), Tensor::scalar(2i32).unwrap()), feeds[1].clone()];
    assert_eq!(
        run(&session, &wrong, &[out(sum)], &[]).err().unwrap().code(),
        Code::InvalidArgument
    );
    session.close();
    assert_eq!(
        run(&session, &feeds, &[out(sum)], &[]).err().unwrap().code(),
        Code::Cancelled
    );
}

#[test]
fn every_node_without_a_kernel_is_named() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x");
    let first = NodeBuilder::new("Bessel", "none").finish(&mut graph);
    assert!(
        first
            .unwrap_err()
            .message()
            .contains("Op type not registered 'Bessel'")
    );
    let a = NodeBuilder::new("XlaClusterOutput", "a")
        .input(out(x))
        .finish(&mut graph)
        .unwrap();
    let b = NodeBuilder::new("XlaClusterOutput", "b")
        .input(out(a))
        .finish(&mut graph)
        .unwrap();
    let error = run(
        &session(graph),
        &[(out(x), Tensor::scalar(1f32).unwrap())],
        &[out(b)],
        &[],
    )
    .err()
    .unwrap();
    assert!(
        error.message().contains("{{node a}}") && error.message().contains("{{node b}}"),
        "{error}"
    );
}

fn queue(graph: &mut Graph) -> (u32, u32, u32) {
    let queue = NodeBuilder::new("FIFOQueueV2", "queue")
        .attr("component_types", vec![DataType::INT32])
        .attr("shapes", vec![PartialShape::scalar()])
        .finish(graph)
        .unwrap();
    let seven = constant(graph, "seven", Tensor::scalar(7i32).unwrap());
    let dequeue = NodeBuilder::new("QueueDequeueV2", "dequeue")
        .input(out(queue))
        .attr("component_types", vec![DataType::INT32])
        .finish(graph)
        .unwrap();
    let enqueue = NodeBuilder::new("QueueEnqueueV2", "enqueue")
        .input(out(queue))
        .input_list([out(seven)])
        .finish(graph)
        .unwrap();
    (queue, dequeue, enqueue)
}

#[test]
fn a_waiting_node_holds_no_thread() {
    let mut graph = graph();
    let (_, dequeue, enqueue) = queue(&mut graph);
    let session = session(graph);
    for _ in 0..3 {
        let got = run(&session, &[], &[out(dequeue)], &[enqueue]).unwrap();
        assert_eq!(got.outputs[0].single::<i32>().unwrap(), 7);
    }
}

#[test]
fn a_step_ends_when_its_time_is_up() {
    let mut graph = graph();
    let (_, dequeue, enqueue) = queue(&mut graph);
    let session = session(graph);
    let options = RunOptions {
        timeout_in_ms: 50,
        ..Default::default()
    };
    let request = RunRequest {
        feeds: &[],
        fetches: &[out(dequeue)],
        targets: &[],
        options: Some(&options),
        want_metadata: false,
    };
    let start = std::time::Instant::now();
    assert_eq!(
        session.run(&request).err().unwrap().code(),
        Code::DeadlineExceeded
    );
    assert!(start.elapsed().as_secs() < 10);
    assert!(run(&session, &[], &[out(dequeue)], &[enqueue]).is_ok());
}

#[test]
fn variables_keep_their_value_from_run_to_run() {
    let mut graph = graph();
    let handle = NodeBuilder::new("VarHandleOp", "v")
        .attr("dtype", DataType::FLOAT)
        .attr("shape", PartialShape::new(&[2]))
        .finish(&mut graph)
        .unwrap();
    let start = constant(&mut graph, "start", Tensor::vector(&[1f32, 2.0]).unwrap());
    let assign = NodeBuilder::new("AssignVariableOp", "assign")
        .input(out(handle))
        .input(out(start))
        .finish(&mut graph)
        .unwrap();
    let add = NodeBuilder::new("AssignAddVariableOp", "add")
        .input(out(handle))
        .input(out(start))
        .finish(&mut graph)
        .unwrap();
    let read = NodeBuilder::new("ReadVariableOp", "read")
        .input(out(handle))
        .attr("dtype", DataType::FLOAT)
        .finish(&mut graph)
        .unwrap();
    let session = session(graph);
    assert_eq!(
        run(&session, &[], &[out(read)], &[]).err().unwrap().code(),
        Code::FailedPrecondition
    );
    run(&session, &[], &[], &[assign]).unwrap();
    let before = run(&session, &[], &[out(read)], &[]).unwrap();
    run(&session, &[], &[], &[add]).unwrap();
    let after = run(&session, &[], &[out(read)], &[]).unwrap();
    assert_eq!(before.outputs[0].as_slice::<f32>().unwrap(), &[1.0, 2.0]);
    assert_eq!(after.outputs[0].as_slice::<f32>().unwrap(), &[2.0, 4.0]);
}

#[test]
fn a_chain_of_a_hundred_thousand_nodes_is_no_deeper_than_one() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x");
    let mut last = x;
    for number in 0..100_000 {
        let name = format!("n{number}");
        last = NodeBuilder::new("Neg", name)
            .input(out(last))
            .finish(&mut graph)
            .unwrap();
    }
    let got = run(
        &session(graph),
        &[(out(x), Tensor::scalar(3f32).unwrap())],
        &[out(last)],
        &[],
    )
    .unwrap();
    assert_eq!(got.outputs[0].single::<f32>().unwrap(), 3.0);
}

#[test]
fn many_threads_share_a_session() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x");
    let square = NodeBuilder::new("Square", "square")
        .input(out(x))
        .finish(&mut graph)
        .unwrap();
    let session = session(graph);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let session = &session;
            scope.spawn(move || {
                for number in 0..200 {
                    let value = (thread * 1000 + number) as f32;
                    let shape = Shape::vector(1 + number % 5);
                    let input = Tensor::from_slice(shape, &vec![value; 1 + number % 5]).unwrap();
                    let got = run(session, &[(out(x), input)], &[out(square)], &[]).unwrap();
                    assert!(
                        got.outputs[0]
                            .as_slice::<f32>()
                            .unwrap()
                            .iter()
                            .all(|&y| y == value * value)
                    );
                }
            });
        }
    });
}

#[test]
fn labels_out_of_range_are_all_named() {
    let mut graph = graph();
    let logits = placeholder(&mut graph, "logits");
    let labels = constant(&mut graph, "labels", Tensor::vector(&[1i32, 77]).unwrap());
    let loss = NodeBuilder::new("SparseSoftmaxCrossEntropyWithLogits", "loss")
        .input(out(logits))
        .input(out(labels))
        .finish(&mut graph)
        .unwrap();
    let values = Tensor::from_slice(Shape::new(&[2, 10]).unwrap(), &[0.5f32; 20]).unwrap();
    let error = run(&session(graph), &[(out(logits), values)], &[out(loss)], &[]);
    let error = error.err().unwrap();
    assert_eq!(error.code(), Code::InvalidArgument);
    let text =
        "Received a label value of 77 which is outside the valid range of [0, 10).  Label values: 1 77";
    assert!(error.message().starts_with(text), "{}", error.message());
}
