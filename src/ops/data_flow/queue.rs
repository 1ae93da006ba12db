//! A first-in, first-out queue of tuples of tensors, whose users may wait. A waiter holds no thread: it is a closure.

use ff_op::Cancellation;
use ff_tensor::{DataType, PartialShape, Result, Status, Tensor, ensure, status};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// One element: a tensor per component.
pub type Tuple = Vec<Tensor>;
type Done<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// A queue. All operations may be called from any thread.
pub struct Queue {
    /// Name, for messages.
    pub name: String,
    /// Type of each component.
    pub types: Vec<DataType>,
    /// Shape of each component; empty when they may vary.
    pub shapes: Vec<PartialShape>,
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    elements: VecDeque<Tuple>,
    closed: bool,
    next: u64,
    /// Those who wait for room, with what they bring.
    bringing: VecDeque<(u64, Tuple, Done<()>)>,
    /// Those who wait for an element.
    taking: VecDeque<(u64, Done<Tuple>)>,
}

impl Queue {
    /// An empty queue; a negative capacity means no bound.
    pub fn new(name: String, types: Vec<DataType>, shapes: Vec<PartialShape>, capacity: i64) -> Queue {
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        Queue {
            name,
            types,
            shapes,
            capacity,
            state: Mutex::default(),
        }
    }

    /// INVALID_ARGUMENT unless a tuple has the queue's types and shapes.
    pub fn check(&self, tuple: &[Tensor]) -> Result<()> {
        ensure!(
            tuple.len() == self.types.len(),
            InvalidArgument,
            "Wrong number of components in tuple. Expected {}, got {}",
            self.types.len(),
            tuple.len()
        );
        for (index, (tensor, dtype)) in tuple.iter().zip(&self.types).enumerate() {
            ensure!(
                tensor.dtype() == *dtype,
                InvalidArgument,
                "Type mismatch in tuple component {index}. Expected {dtype}, got {}",
                tensor.dtype()
            );
            let shape = self.shapes.get(index);
            ensure!(
                shape.is_none_or(|shape| shape.is_compatible_with(&tensor.partial_shape())),
                InvalidArgument,
                "Shape mismatch in tuple component {index}. Expected {}, got {}",
                shape.map(PartialShape::to_string).unwrap_or_default(),
                tensor.shape()
            );
        }
        Ok(())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.state.lock().elements.len()
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Puts an element in, once there is room. `done` is called once: CANCELLED when the queue is closed, or the
    /// step's cause when that is cancelled first.
    pub fn enqueue(self: &Arc<Self>, tuple: Tuple, cancellation: &Cancellation, done: Done<()>) {
        let number = {
            let mut state = self.state.lock();
            let number = state.number();
            if state.closed {
                drop(state);
                return done(Err(status!(Cancelled, "FIFOQueue '{}' is closed.", self.name)));
            }
            state.bringing.push_back((number, tuple, done));
            number
        };
        self.settle();
        self.watch(number, cancellation);
    }

    /// Takes the first element, once there is one. `done` is called once: OUT_OF_RANGE when the queue is closed and
    /// empty, or the step's cause when that is cancelled first.
    pub fn dequeue(self: &Arc<Self>, cancellation: &Cancellation, done: Done<Tuple>) {
        let number = {
            let mut state = self.state.lock();
            let number = state.number();
            state.taking.push_back((number, done));
            number
        };
        self.settle();
        self.watch(number, cancellation);
    }

    /// Closes the queue: nothing more goes in. With `cancel`, those who wait for room are turned away.
    pub fn close(&self, cancel: bool) {
        let turned_away = {
            let mut state = self.state.lock();
            state.closed = true;
            if cancel {
                std::mem::take(&mut state.bringing)
            } else {
                VecDeque::new()
            }
        };
        for (_, _, done) in turned_away {
            done(Err(status!(Cancelled, "FIFOQueue '{}' is closed.", self.name)));
        }
        self.settle();
    }

    /// Turns a waiter away when its step is cancelled.
    fn watch(self: &Arc<Self>, number: u64, cancellation: &Cancellation) {
        if !self.state.lock().waits(number) {
            return;
        }
        let (queue, cause) = (Arc::downgrade(self), cancellation.clone());
        cancellation.on_cancel(move || {
            if let (Some(queue), Err(error)) = (queue.upgrade(), cause.check()) {
                queue.turn_away(number, error);
            }
        });
    }

    fn turn_away(&self, number: u64, error: Status) {
        let (bringing, taking) = {
            let mut state = self.state.lock();
            let bringing = state.bringing.iter().position(|(its, ..)| *its == number);
            let bringing = bringing.and_then(|index| state.bringing.remove(index));
            let taking = state.taking.iter().position(|(its, _)| *its == number);
            (bringing, taking.and_then(|index| state.taking.remove(index)))
        };
        if let Some((_, _, done)) = bringing {
            done(Err(error));
        } else if let Some((_, done)) = taking {
            done(Err(error));
        }
    }

    /// Serves waiters until nobody can be served. Their closures run without the lock.
    fn settle(&self) {
        loop {
            let mut state = self.state.lock();
            if state.elements.len() < self.capacity
                && let Some((_, tuple, done)) = state.bringing.pop_front()
            {
                state.elements.push_back(tuple);
                drop(state);
                done(Ok(()));
                continue;
            }
            if state.taking.is_empty() {
                return;
            }
            if let Some(tuple) = state.elements.pop_front() {
                let taker = state.taking.pop_front();
                drop(state);
                if let Some((_, done)) = taker {
                    done(Ok(tuple));
                }
                continue;
            }
            if !state.closed {
                return;
            }
            let taker = state.taking.pop_front();
            drop(state);
            if let Some((_, done)) = taker {
                done(Err(status!(
                    OutOfRange,
                    "FIFOQueue '{}' is closed and has insufficient elements (requested 1, current size 0)",
                    self.name
                )));
            }
        }
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn waits(&self, number: u64) -> bool {
        self.bringing.iter().any(|(its, ..)| *its == number)
            || self.taking.iter().any(|(its, _)| *its == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn queue(capacity: i64) -> Arc<Queue> {
        Arc::new(Queue::new(
            "q".into(),
            vec![DataType::INT32],
            Vec::new(),
            capacity,
        ))
    }

    #[test]
    fn waiters_are_served_in_order_and_turned_away() {
        let (queue, cancellation) = (queue(1), Cancellation::default());
        let (sender, receiver) = channel();
        let give = sender.clone();
        queue.dequeue(
            &cancellation,
            Box::new(move |tuple| give.send(tuple.map(|t| t[0].single::<i32>().unwrap())).unwrap()),
        );
        assert!(receiver.try_recv().is_err());
        queue.enqueue(
            vec![Tensor::scalar(7i32).unwrap()],
            &cancellation,
            Box::new(|result| result.unwrap()),
        );
        assert_eq!(receiver.recv().unwrap().unwrap(), 7);
        let give = sender.clone();
        queue.dequeue(
            &cancellation,
            Box::new(move |tuple| give.send(tuple.map(|_| 0)).unwrap()),
        );
        cancellation.cancel(status!(DeadlineExceeded, "late"));
        assert_eq!(
            receiver.recv().unwrap().unwrap_err().code(),
            ff_tensor::Code::DeadlineExceeded
        );
        queue.close(false);
        queue.dequeue(
            &Cancellation::default(),
            Box::new(move |tuple| sender.send(tuple.map(|_| 0)).unwrap()),
        );
        assert_eq!(
            receiver.recv().unwrap().unwrap_err().code(),
            ff_tensor::Code::OutOfRange
        );
    }
}
