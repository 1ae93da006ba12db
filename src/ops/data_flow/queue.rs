//! A queue of tuples of tensors, whose users may wait.
//!
//! Those who bring and those who take stand in a line each. Who takes many takes them as they come, and puts them back if
//! the queue is closed before all have come. Closing stands in the line of those who bring.

use super::store::{Store, Tuple};
use ff_op::{Cancellation, Done, Monitor, Outcome, Value};
use ff_tensor::{Code, DataType, PartialShape, Result, Status, Tensor, ensure, status};
use std::collections::VecDeque;
use std::sync::Arc;

/// The kinds of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// First in, first out.
    Fifo,
    /// First in, first out; elements taken together are padded to one shape.
    PaddingFifo,
    /// By a priority, which is the first component.
    Priority,
    /// In random order.
    RandomShuffle,
}

impl Kind {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            // The reference's padding queue is a FIFO queue by inheritance, and says so.
            Kind::Fifo | Kind::PaddingFifo => "FIFOQueue",
            Kind::Priority => "PriorityQueue",
            Kind::RandomShuffle => "RandomShuffleQueue",
        }
    }
}

/// A queue. All operations may be called from any thread.
pub struct Queue {
    /// What kind of queue it is.
    pub kind: Kind,
    /// Name, for messages.
    pub name: String,
    /// Type of each component.
    pub types: Vec<DataType>,
    /// Shape of each component; empty when they may vary.
    pub shapes: Vec<PartialShape>,
    /// The most elements that it holds.
    pub capacity: usize,
    /// How many elements must be left after a taking, until the queue is closed.
    pub left: usize,
    /// Seeds of the order, where it is random.
    pub seeds: (i64, i64),
    monitor: Arc<Monitor<State>>,
}

struct State {
    store: Store,
    closed: bool,
}

const BRINGING: usize = 0;
const TAKING: usize = 1;
/// What those who take are told when their step is cancelled.
pub const TAKING_CANCELLED: &str = "Dequeue operation was cancelled";
/// What waiters of these lanes are told.
const CANCELLED: &[&str] = &["Enqueue operation was cancelled", TAKING_CANCELLED];

/// How many elements are taken at once.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The number.
    pub count: usize,
    /// Whether they become one tensor per component.
    pub together: bool,
    /// Whether fewer do once the queue is closed.
    pub or_fewer: bool,
}

impl Queue {
    /// An empty queue.
    pub fn new(
        kind: Kind,
        name: &str,
        types: Vec<DataType>,
        shapes: Vec<PartialShape>,
        store: Store,
    ) -> Queue {
        let state = State { store, closed: false };
        Queue {
            kind,
            name: name.to_string(),
            types,
            shapes,
            capacity: usize::MAX,
            left: 0,
            seeds: (0, 0),
            monitor: Monitor::with_words(state, 2, true, CANCELLED),
        }
    }

    /// INVALID_ARGUMENT unless a tuple has the queue's shapes.
    pub fn check<'a>(&self, tuple: impl IntoIterator<Item = &'a Tensor>) -> Result<()> {
        for (index, (tensor, shape)) in tuple.into_iter().zip(&self.shapes).enumerate() {
            ensure!(
                shape.is_compatible_with(&tensor.partial_shape()),
                InvalidArgument,
                "Shape mismatch in tuple component {index}. Expected {shape}, got {}",
                tensor.shape()
            );
        }
        Ok(())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.monitor.read(|state| state.store.len())
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.monitor.read(|state| state.closed)
    }

    /// Puts elements in as there is room. CANCELLED when the queue is closed.
    pub fn bring(&self, tuples: Vec<Tuple>, cancellation: &Cancellation, done: Done) {
        let mut tuples = VecDeque::from(tuples);
        if tuples.is_empty() {
            return done(Ok(Vec::new()));
        }
        let (capacity, kind, name) = (self.capacity, self.kind, self.name.clone());
        let attempt = move |state: &mut State| {
            if state.closed {
                return Outcome::Done(Err(closed(kind, &name)));
            }
            let mut outcome = Outcome::Waits;
            while state.store.len() < capacity {
                let Some(tuple) = tuples.pop_front() else { break };
                if let Err(error) = state.store.push(tuple) {
                    return Outcome::Done(Err(error));
                }
                outcome = Outcome::Progressed;
            }
            match tuples.is_empty() {
                true => Outcome::Done(Ok(Vec::new())),
                false => outcome,
            }
        };
        self.monitor.submit(BRINGING, cancellation, attempt, done);
    }

    /// Takes elements; their components come one element after the other. OUT_OF_RANGE when the queue is closed and
    /// has too few.
    pub fn take(&self, wanted: Wanted, cancellation: &Cancellation, done: Done) {
        // Here the reference names the padding queue itself, elsewhere what it is made of.
        let kind = match self.kind {
            Kind::PaddingFifo if wanted.together => "PaddingFIFOQueue",
            kind => kind.name(),
        };
        let mut taking = Taking {
            wanted,
            taken: Vec::new(),
            left: self.left,
            name: format!("{} '{}'", kind, self.name),
        };
        self.monitor
            .submit(TAKING, cancellation, move |state| taking.attempt(state), done);
    }

    /// Takes an element if one is there and nobody waits for it.
    pub fn take_now(&self) -> Option<Tuple> {
        self.monitor.attempt(TAKING, |state| {
            match state.store.len() > self.left || state.closed {
                true => state.store.pop(),
                false => None,
            }
        })
    }

    /// Puts in the element that `tuple` gives if that can be done at once: none when it has to wait. CANCELLED when the
    /// queue is closed.
    pub fn bring_now(&self, tuple: impl FnOnce() -> Result<Tuple>) -> Option<Result<()>> {
        self.monitor.attempt(BRINGING, |state| match state {
            State { closed: true, .. } => Some(Err(closed(self.kind, &self.name))),
            State { store, .. } if store.len() < self.capacity => {
                Some(tuple().and_then(|tuple| store.push(tuple)))
            }
            _ => None,
        })
    }

    /// Closes the queue: nothing more goes in, but from those who wait already. With `cancel`, they are turned away.
    pub fn close(&self, cancel: bool, cancellation: &Cancellation, done: Done) {
        if cancel {
            let error = Status::new(Code::Cancelled, CANCELLED[BRINGING]);
            self.monitor
                .turn_all_away(BRINGING, &error, |state| state.closed = true);
            return done(Ok(Vec::new()));
        }
        let name = self.name.clone();
        let attempt = move |state: &mut State| {
            let again = std::mem::replace(&mut state.closed, true);
            Outcome::Done(match again {
                true => Err(status!(Cancelled, "Queue '{name}' is already closed.")),
                false => Ok(Vec::new()),
            })
        };
        self.monitor.submit(BRINGING, cancellation, attempt, done);
    }
}

/// The list with commas, as messages have it.
pub fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// A list of shapes, as messages have it.
pub fn shape_list(shapes: &[PartialShape]) -> String {
    let shapes: Vec<String> = shapes.iter().map(PartialShape::to_string).collect();
    format!("[{}]", shapes.join(","))
}

fn closed(kind: Kind, name: &str) -> Status {
    status!(Cancelled, "{} '{name}' is closed.", kind.name())
}

/// Who takes elements.
struct Taking {
    wanted: Wanted,
    taken: Vec<Tuple>,
    left: usize,
    name: String,
}

impl Taking {
    fn attempt(&mut self, state: &mut State) -> Outcome {
        let missing = self.wanted.count - self.taken.len();
        let there = state.store.len();
        if state.closed && there < missing {
            if !self.wanted.or_fewer || there + self.taken.len() == 0 {
                let error = self.too_few(missing, there);
                let restored = state.store.put_back(std::mem::take(&mut self.taken));
                return Outcome::Done(restored.and(Err(error)));
            }
            self.wanted.count = there + self.taken.len();
        }
        let free = if state.closed {
            there
        } else {
            there.saturating_sub(self.left)
        };
        let mut outcome = Outcome::Waits;
        for _ in 0..free.min(self.wanted.count - self.taken.len()) {
            self.taken.extend(state.store.pop());
            outcome = Outcome::Progressed;
        }
        if self.taken.len() < self.wanted.count {
            return outcome;
        }
        let tensors = std::mem::take(&mut self.taken).into_iter().flatten();
        Outcome::Done(Ok(tensors.map(Value::Tensor).collect()))
    }

    fn too_few(&self, missing: usize, there: usize) -> Status {
        status!(
            OutOfRange,
            "{} is closed and has insufficient elements (requested {missing}, current size {there})",
            self.name
        )
    }
}
