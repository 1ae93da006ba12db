//! Queues of all kinds; orders and messages are those of the reference.

use crate::testing::*;
use ff_op::{Attrs, Value};
use ff_tensor::{Code, DataType, PartialShape, Result, Tensor};
use std::sync::mpsc::Receiver;

/// A queue under test, by its handle of either version.
struct Subject {
    runner: OpRunner,
    handle: Value,
    version: &'static str,
    types: Vec<DataType>,
}

impl Subject {
    fn new(op: &str, types: &[DataType], shapes: &[PartialShape], attrs: Attrs) -> Subject {
        let runner = OpRunner::new();
        let (version, own) = match op.strip_suffix("V2") {
            Some(_) => ("V2", types),
            None => ("", types),
        };
        let own = if op.starts_with("Priority") {
            &own[1..]
        } else {
            own
        };
        let attrs = attrs
            .with("component_types", own.to_vec())
            .with("shapes", shapes.to_vec())
            .with("shared_name", "q");
        let handle = runner.run_named(op, "q", &[], attrs).unwrap().remove(0);
        Subject {
            runner,
            handle,
            version,
            types: types.to_vec(),
        }
    }

    fn start(&self, op: &str, tensors: &[Tensor]) -> Receiver<Result<Vec<Value>>> {
        let mut inputs = vec![self.handle.clone()];
        inputs.extend(tensors.iter().cloned().map(Value::Tensor));
        let attrs = match op.starts_with("QueueDequeue") {
            true => Attrs::new().with("component_types", self.types.clone()),
            false => Attrs::new(),
        };
        let name = format!("{op}{}", self.version);
        self.runner.start(&name, &name, &inputs, attrs).unwrap()
    }

    fn run(&self, op: &str, tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        let ended = self.start(op, tensors).try_recv();
        let values = ended.unwrap_or_else(|_| Err(ff_tensor::status!(Unavailable, "waits")))?;
        values.into_iter().map(tensor_of).collect()
    }

    /// The first component of a dequeued element as an int32.
    fn next(&self) -> Result<i32> {
        let tuple = self.run("QueueDequeue", &[])?;
        tuple[tuple.len() - 1].single()
    }

    fn many(&self, op: &str, count: i32) -> Result<Vec<i32>> {
        let mut tensors = self.run(op, &[scalar(count)])?;
        Ok(tensors.remove(tensors.len() - 1).as_slice::<i32>()?.to_vec())
    }
}

const INT: &[DataType] = &[DataType::INT32];

fn scalars(op: &str, attrs: Attrs) -> Subject {
    Subject::new(op, INT, &[PartialShape::scalar()], attrs)
}

#[test]
fn first_in_first_out_until_closed() {
    for op in ["FIFOQueue", "FIFOQueueV2", "PaddingFIFOQueue"] {
        let queue = scalars(op, Attrs::new());
        queue.run("QueueEnqueue", &[scalar(1)]).unwrap();
        queue.run("QueueEnqueueMany", &[vector(&[2, 3])]).unwrap();
        assert_eq!(
            queue.run("QueueSize", &[]).unwrap()[0].single::<i32>().unwrap(),
            3
        );
        assert_eq!(queue.next().unwrap(), 1);
        queue.run("QueueClose", &[]).unwrap();
        let again = queue.run("QueueClose", &[]).unwrap_err();
        assert_eq!(
            (again.code(), again.message()),
            (Code::Cancelled, "Queue 'q' is already closed.")
        );
        let late = queue.run("QueueEnqueue", &[scalar(1)]).unwrap_err();
        assert_eq!(
            (late.code(), late.message()),
            (Code::Cancelled, "FIFOQueue 'q' is closed.")
        );
        let few = queue.many("QueueDequeueMany", 3).unwrap_err();
        assert_eq!(few.code(), Code::OutOfRange);
        let kind = if op.starts_with("Padding") {
            "PaddingFIFOQueue"
        } else {
            "FIFOQueue"
        };
        let text = "is closed and has insufficient elements (requested 3, current size 2)";
        assert_eq!(few.message(), format!("{kind} 'q' {text}"));
        assert_eq!(queue.many("QueueDequeueUpTo", 3).unwrap(), [2, 3]);
        assert_eq!(code(queue.many("QueueDequeueUpTo", 3)), Some(Code::OutOfRange));
        assert_eq!(queue.many("QueueDequeueMany", 0).unwrap(), [0i32; 0]);
        assert!(queue.run("QueueIsClosed", &[]).unwrap()[0].to_bool().unwrap());
    }
}

#[test]
fn who_takes_many_takes_as_they_come_and_puts_back() {
    let queue = scalars("FIFOQueueV2", Attrs::new().with("capacity", 2i64));
    let many = queue.start("QueueDequeueMany", &[scalar(3)]);
    queue.run("QueueEnqueueMany", &[vector(&[1, 2, 3, 4])]).unwrap();
    let taken = many.try_recv().unwrap().unwrap().remove(0);
    assert_eq!(tensor_of(taken).unwrap().as_slice::<i32>().unwrap(), [1, 2, 3]);
    // A second one waits; when the queue is closed, what it took goes back.
    let many = queue.start("QueueDequeueMany", &[scalar(3)]);
    queue.run("QueueClose", &[]).unwrap();
    assert_eq!(many.try_recv().unwrap().unwrap_err().code(), Code::OutOfRange);
    assert_eq!(queue.next().unwrap(), 4);
}

#[test]
fn closing_waits_for_who_waits_or_turns_them_away() {
    let queue = scalars("FIFOQueueV2", Attrs::new().with("capacity", 1i64));
    let bringing = queue.start("QueueEnqueueMany", &[vector(&[1, 2])]);
    let closing = queue.start("QueueClose", &[]);
    assert!(bringing.try_recv().is_err() && closing.try_recv().is_err());
    assert_eq!(queue.next().unwrap(), 1);
    assert!(bringing.try_recv().unwrap().is_ok() && closing.try_recv().unwrap().is_ok());
    assert_eq!(queue.next().unwrap(), 2);
    assert_eq!(code(queue.next()), Some(Code::OutOfRange));

    let queue = scalars("FIFOQueueV2", Attrs::new().with("capacity", 1i64));
    let bringing = queue.start("QueueEnqueueMany", &[vector(&[1, 2])]);
    let attrs = Attrs::new().with("cancel_pending_enqueues", true);
    let handle = [queue.handle.clone()];
    queue
        .runner
        .run_named("QueueCloseV2", "close", &handle, attrs)
        .unwrap();
    let away = bringing.try_recv().unwrap().unwrap_err();
    assert_eq!(away.message(), "Enqueue operation was cancelled");
}

#[test]
fn what_is_brought_must_fit() {
    let types = [DataType::INT32, DataType::FLOAT];
    let shapes = [PartialShape::scalar(), PartialShape::new(&[2])];
    let queue = Subject::new("FIFOQueueV2", &types, &shapes, Attrs::new());
    let message = |tensors: &[Tensor], op: &str| {
        let error = queue.run(op, tensors).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        error.message().to_string()
    };
    assert_eq!(
        message(&[scalar(1)], "QueueEnqueue"),
        "Signature mismatch, have: resource, int32-> expected: resource, int32, float->"
    );
    assert_eq!(
        message(&[scalar(1), vector(&[1f32, 2.0, 3.0])], "QueueEnqueue"),
        "Shape mismatch in tuple component 1. Expected [2], got [3]"
    );
    assert_eq!(
        message(&[vector(&[1]), t(&[2, 2], &[1f32; 4])], "QueueEnqueueMany"),
        "Shape mismatch in tuple component 1. Expected [1,2], got [2,2]"
    );
    let free = Subject::new("FIFOQueueV2", INT, &[], Attrs::new());
    free.run("QueueEnqueue", &[vector(&[1, 2])]).unwrap();
    let error = free.many("QueueDequeueMany", 1).unwrap_err();
    assert_eq!(
        error.message(),
        "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified shapes."
    );
}

#[test]
fn elements_are_padded_to_one_shape() {
    let queue = Subject::new(
        "PaddingFIFOQueueV2",
        INT,
        &[PartialShape::new(&[-1, 2])],
        Attrs::new(),
    );
    queue.run("QueueEnqueue", &[t(&[1, 2], &[1, 2])]).unwrap();
    queue.run("QueueEnqueue", &[t(&[2, 2], &[1, 2, 3, 4])]).unwrap();
    let error = queue.run("QueueEnqueue", &[t(&[1, 3], &[1, 2, 3])]).unwrap_err();
    assert_eq!(
        error.message(),
        "Shape mismatch in tuple component 0. Expected [?,2], got [1,3]"
    );
    let got = queue.run("QueueDequeueMany", &[scalar(2)]).unwrap().remove(0);
    assert_eq!(got.dims(), [2, 2, 2]);
    assert_eq!(got.as_slice::<i32>().unwrap(), [1, 2, 0, 0, 1, 2, 3, 4]);
    let nothing = queue.run("QueueDequeueMany", &[scalar(0)]).unwrap().remove(0);
    assert_eq!(nothing.dims(), [0, 0, 2]);
}

#[test]
fn the_smallest_comes_first_equal_ones_as_in_the_reference() {
    let types = [DataType::INT64, DataType::INT32];
    let queue = Subject::new("PriorityQueueV2", &types, &[PartialShape::scalar()], Attrs::new());
    for priority in [3i64, 1, 2, 1] {
        queue
            .run("QueueEnqueue", &[scalar(priority), scalar(priority as i32 * 10)])
            .unwrap();
    }
    assert_eq!(queue.next().unwrap(), 10);
    assert_eq!(queue.many("QueueDequeueMany", 2).unwrap(), [10, 20]);
    assert_eq!(queue.next().unwrap(), 30);
    let equal = [vector(&[1i64; 5]), vector(&[1, 2, 3, 4, 5])];
    queue.run("QueueEnqueueMany", &equal).unwrap();
    let order: Vec<i32> = (0..5).map(|_| queue.next().unwrap()).collect();
    assert_eq!(order, [1, 3, 5, 2, 4]);
    let error = queue
        .run("QueueEnqueue", &[vector(&[1i64, 2]), scalar(1)])
        .unwrap_err();
    assert_eq!(
        error.message(),
        "Shape mismatch in tuple component 0. Expected [], got [2]"
    );
}

#[test]
fn the_order_of_a_seed_is_the_references() {
    let attrs = Attrs::new()
        .with("capacity", 10i64)
        .with("min_after_dequeue", 2i64)
        .with("seed", 7i64)
        .with("seed2", 11i64);
    let queue = scalars("RandomShuffleQueueV2", attrs);
    let all: Vec<i32> = (0..10).collect();
    queue.run("QueueEnqueueMany", &[vector(&all)]).unwrap();
    let order: Vec<i32> = (0..5).map(|_| queue.next().unwrap()).collect();
    assert_eq!(order, [3, 8, 9, 7, 5]);
    assert_eq!(queue.many("QueueDequeueMany", 3).unwrap(), [2, 0, 4]);
    assert_eq!(code(queue.next()), Some(Code::Unavailable), "two must be left");
    queue.run("QueueClose", &[]).unwrap();
    assert_eq!(code(queue.many("QueueDequeueMany", 3)), Some(Code::OutOfRange));
}
