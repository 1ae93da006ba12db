//! What a queue holds, and in which order it comes out.

use crate::random::words::Words;
use ff_kernels::random::Philox;
use ff_tensor::{Result, Tensor, status};
use std::collections::VecDeque;

/// One element: a tensor per component.
pub type Tuple = Vec<Tensor>;

/// The elements of a queue.
pub enum Store {
    /// First in, first out.
    InOrder(VecDeque<Tuple>),
    /// The smallest first component first; equal ones in the order of a binary heap, as the reference's.
    ByPriority(Vec<(i64, Tuple)>),
    /// Any one.
    Shuffled(Vec<Tuple>, Words),
}

impl Store {
    /// Nothing, in order.
    pub fn in_order() -> Store {
        Store::InOrder(VecDeque::new())
    }

    /// Nothing, by priority.
    pub fn by_priority() -> Store {
        Store::ByPriority(Vec::new())
    }

    /// Nothing, to be shuffled by these seeds; at random when both are 0.
    pub fn shuffled(seed: i64, seed2: i64) -> Store {
        let (seed, seed2) = match (seed, seed2) {
            (0, 0) => (crate::random::stream::entropy(), crate::random::stream::entropy()),
            (seed, seed2) => (seed as u64, seed2 as u64),
        };
        Store::Shuffled(Vec::new(), Words::new(Philox::from_seeds(seed, seed2)))
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Store::InOrder(elements) => elements.len(),
            Store::ByPriority(elements) => elements.len(),
            Store::Shuffled(elements, _) => elements.len(),
        }
    }

    /// Puts an element in. INVALID_ARGUMENT for a priority that is no int64.
    pub fn push(&mut self, tuple: Tuple) -> Result<()> {
        match self {
            Store::InOrder(elements) => elements.push_back(tuple),
            Store::ByPriority(heap) => {
                let priority = tuple.first().map(Tensor::single::<i64>);
                let priority =
                    priority.unwrap_or_else(|| Err(status!(Internal, "an element without priority")))?;
                heap.push((priority, tuple));
                let last = heap.len() - 1;
                sift_up(heap, last, 0);
            }
            Store::Shuffled(elements, _) => elements.push(tuple),
        }
        Ok(())
    }

    /// Takes out the next element.
    pub fn pop(&mut self) -> Option<Tuple> {
        match self {
            Store::InOrder(elements) => elements.pop_front(),
            Store::ByPriority(heap) => pop_heap(heap),
            Store::Shuffled(elements, _) if elements.is_empty() => None,
            Store::Shuffled(elements, words) => {
                let index = words.next_word() as usize % elements.len();
                Some(elements.swap_remove(index))
            }
        }
    }

    /// Puts elements back that came out last, in the order in which they did.
    pub fn put_back(&mut self, tuples: Vec<Tuple>) -> Result<()> {
        if let Store::InOrder(elements) = self {
            for tuple in tuples.into_iter().rev() {
                elements.push_front(tuple);
            }
            return Ok(());
        }
        tuples.into_iter().try_for_each(|tuple| self.push(tuple))
    }
}

type Heap = [(i64, Tuple)];

fn sift_up(heap: &mut Heap, mut hole: usize, top: usize) {
    while hole > top {
        let parent = (hole - 1) / 2;
        if heap[parent].0 <= heap[hole].0 {
            return;
        }
        heap.swap(parent, hole);
        hole = parent;
    }
}

/// The top goes out; its place sinks to a leaf along the smaller children (the right one of equals), where the last
/// element starts to rise.
fn pop_heap(heap: &mut Vec<(i64, Tuple)>) -> Option<Tuple> {
    let count = heap.len().checked_sub(1)?;
    heap.swap(0, count);
    let (_, tuple) = heap.pop()?;
    let (mut hole, mut child) = (0, 0);
    while count > 0 && child < (count - 1) / 2 {
        child = 2 * (child + 1);
        if heap[child].0 > heap[child - 1].0 {
            child -= 1;
        }
        heap.swap(hole, child);
        hole = child;
    }
    if count > 0 && count % 2 == 0 && child == (count - 2) / 2 {
        child = 2 * child + 1;
        heap.swap(hole, child);
        hole = child;
    }
    sift_up(heap, hole, 0);
    Some(tuple)
}
