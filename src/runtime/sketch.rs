//! What is known of the nodes of a plan that has run: for a plan of the same nodes that takes its place.

use ff_op::{Executable, NodeInfo, Specialization};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// See the module. By the address of a node, which its executable keeps.
pub struct Sketch(FxHashMap<Address, Seen>);

/// The address of a node: only compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Address(usize);

/// What is known of a node.
pub struct Seen {
    /// The node, ready to run.
    pub executable: Arc<Executable>,
    /// For what inputs it, or one like it, was seen.
    pub known: Vec<Arc<Specialization>>,
}

impl Sketch {
    /// Of these nodes.
    pub fn new(nodes: impl Iterator<Item = Seen>) -> Sketch {
        let by_node = nodes.map(|seen| (Address::of(seen.executable.node()), seen));
        Sketch(by_node.collect())
    }

    /// What is known of a node.
    pub fn of(&self, node: &Arc<NodeInfo>) -> Option<&Seen> {
        self.0.get(&Address::of(node))
    }
}

impl Address {
    fn of(node: &Arc<NodeInfo>) -> Address {
        Address(Arc::as_ptr(node).addr())
    }
}

impl Seen {
    /// Elements of the largest value that was read or made.
    pub fn most_elements(&self) -> usize {
        self.known
            .iter()
            .map(|known| known.most_elements())
            .max()
            .unwrap_or(0)
    }
}
