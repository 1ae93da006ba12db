//! A queue in all interleavings with a few switches between threads (see `make loom`): what is brought is taken once, and
//! nobody waits for ever when it is closed or a step is cancelled.

use super::queue::{Kind, Queue, Wanted};
use super::store::Store;
use ff_op::{Cancellation, Value};
use ff_tensor::{Code, DataType, Result, Tensor, status};
use loom::sync::atomic::{AtomicI32, Ordering};
use loom::thread;
use std::sync::Arc;

/// Runs a body in every interleaving with at most two forced switches.
fn in_every_order(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.max_branches = 20_000;
    model.check(body);
}

/// Calls that ended well, the codes of those that did not, and the sum of what was taken.
#[derive(Default)]
struct Tally {
    fine: AtomicI32,
    cancelled: AtomicI32,
    out_of_range: AtomicI32,
    sum: AtomicI32,
}

impl Tally {
    fn count(&self, ended: Result<Vec<Value>>) {
        match ended {
            Ok(values) => {
                self.fine.fetch_add(1, Ordering::SeqCst);
                for value in values {
                    let Value::Tensor(tensor) = value else {
                        panic!("no tensor")
                    };
                    self.sum
                        .fetch_add(tensor.single::<i32>().unwrap(), Ordering::SeqCst);
                }
            }
            Err(error) => {
                let counter = match error.code() {
                    Code::Cancelled => &self.cancelled,
                    Code::OutOfRange => &self.out_of_range,
                    _ => panic!("{error}"),
                };
                counter.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// (fine, cancelled, out of range, sum).
    fn now(&self) -> (i32, i32, i32, i32) {
        let load = |counter: &AtomicI32| counter.load(Ordering::SeqCst);
        (
            load(&self.fine),
            load(&self.cancelled),
            load(&self.out_of_range),
            load(&self.sum),
        )
    }
}

/// A queue of one place.
fn queue() -> Arc<Queue> {
    let mut queue = Queue::new(
        Kind::Fifo,
        "q",
        vec![DataType::INT32],
        Vec::new(),
        Store::in_order(),
    );
    queue.capacity = 1;
    Arc::new(queue)
}

fn bring(queue: &Queue, cancellation: &Cancellation, number: i32, tally: &Arc<Tally>) {
    let tally = tally.clone();
    let tuple = vec![Tensor::scalar(number).unwrap()];
    queue.bring(
        vec![tuple],
        cancellation,
        Box::new(move |ended| tally.count(ended)),
    );
}

fn take(queue: &Queue, count: usize, cancellation: &Cancellation, tally: &Arc<Tally>) {
    let tally = tally.clone();
    let wanted = Wanted {
        count,
        together: false,
        or_fewer: false,
    };
    queue.take(wanted, cancellation, Box::new(move |ended| tally.count(ended)));
}

#[test]
fn loom_elements_of_a_queue_are_taken_once() {
    in_every_order(|| {
        let (queue, brought, taken) = (queue(), Arc::new(Tally::default()), Arc::new(Tally::default()));
        let brings: Vec<_> = [1, 2]
            .map(|number| {
                let (queue, brought) = (queue.clone(), brought.clone());
                thread::spawn(move || bring(&queue, &Cancellation::default(), number, &brought))
            })
            .into();
        take(&queue, 2, &Cancellation::default(), &taken);
        brings.into_iter().for_each(|bring| bring.join().unwrap());
        assert_eq!((brought.now(), taken.now()), ((2, 0, 0, 0), (1, 0, 0, 3)));
        assert_eq!(queue.len(), 0);
    });
}

#[test]
fn loom_who_waits_hears_of_the_close() {
    in_every_order(|| {
        let (queue, brought, taken) = (queue(), Arc::new(Tally::default()), Arc::new(Tally::default()));
        let (source, its_brought) = (queue.clone(), brought.clone());
        let brings = thread::spawn(move || bring(&source, &Cancellation::default(), 5, &its_brought));
        let (closing, closed) = (queue.clone(), Arc::new(Tally::default()));
        let its_closed = closed.clone();
        let closes = thread::spawn(move || {
            let done = Box::new(move |ended| its_closed.count(ended));
            closing.close(true, &Cancellation::default(), done);
        });
        take(&queue, 1, &Cancellation::default(), &taken);
        brings.join().unwrap();
        closes.join().unwrap();
        // It was brought and taken, or came too late, and then there is nothing to take.
        let outcome = (brought.now(), taken.now());
        assert!(
            outcome == ((1, 0, 0, 0), (1, 0, 0, 5)) || outcome == ((0, 1, 0, 0), (0, 0, 1, 0)),
            "{outcome:?}"
        );
        assert_eq!((closed.now(), queue.len()), ((1, 0, 0, 0), 0));
    });
}

#[test]
fn loom_who_is_cancelled_puts_back_what_it_has() {
    in_every_order(|| {
        let (queue, brought, taken) = (queue(), Arc::new(Tally::default()), Arc::new(Tally::default()));
        let cancellation = Cancellation::default();
        let stopped = cancellation.clone();
        let stops = thread::spawn(move || stopped.cancel(status!(Cancelled, "stop")));
        let (source, its_brought) = (queue.clone(), brought.clone());
        let brings = thread::spawn(move || bring(&source, &Cancellation::default(), 7, &its_brought));
        take(&queue, 1, &cancellation, &taken);
        stops.join().unwrap();
        brings.join().unwrap();
        let (fine, cancelled, out_of_range, sum) = taken.now();
        assert_eq!((fine + cancelled, out_of_range, sum), (1, 0, 7 * fine));
        assert_eq!((brought.now(), queue.len() as i32), ((1, 0, 0, 0), 1 - fine));
    });
}
