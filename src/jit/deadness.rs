//! When values are dead, in graphs with v1 control flow.
//!
//! A value is there when what it comes from is: outputs of control flow nodes. In a loop some of those go together: what
//! all its variables are at the start of a turn, or in the body, is there or not for all of them at once; and what is
//! entered for all turns is there in each.

use ff_graph::passes::is_control_flow;
use ff_graph::{Graph, Node, NodeId};
use ff_op::OutputRef;
use rustc_hash::FxHashMap;

/// Two nodes with one number are dead at the same times, and in the same frame and iteration.
pub struct Deadness {
    of_node: Vec<u32>,
}

/// What a value comes from. Loops are named by one of their `Enter`s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Source {
    Output(NodeId, u32),
    Control(NodeId),
    /// A variable of a loop when a turn starts.
    Turn(NodeId),
    /// A variable after the condition: where the loop ends (0), or in its body (1).
    Branch(NodeId, u32),
    /// A value that is entered for all turns.
    AllTurns(NodeId),
}

impl Deadness {
    /// Looks at every node; `order` has inputs first.
    pub fn of(graph: &Graph, order: &[NodeId]) -> Deadness {
        let mut of_node = vec![0u32; graph.len()];
        let loops = Loops::of(graph);
        // 0: never dead.
        let mut numbers: FxHashMap<Vec<Source>, u32> = FxHashMap::default();
        let mut sets: Vec<Vec<Source>> = vec![Vec::new()];
        numbers.insert(Vec::new(), 0);
        for &id in order {
            let node = graph.node(id);
            if is_control_flow(node.info.op_name()) {
                continue;
            }
            let mut set: Vec<Source> = Vec::new();
            for &input in &node.inputs {
                if is_control_flow(graph.node(input.node).info.op_name()) {
                    set.push(loops.source(graph, input));
                } else {
                    set.extend_from_slice(&sets[of_node[input.node as usize] as usize]);
                }
            }
            let waits = node.control_inputs.iter().filter(|&&control| {
                is_control_flow(graph.node(control).info.op_name()) || of_node[control as usize] != 0
            });
            set.extend(waits.map(|&control| Source::Control(control)));
            set.sort_unstable();
            set.dedup();
            let in_turn = |source: &Source| match source {
                Source::Turn(of) | Source::Branch(of, _) => Some(*of),
                _ => None,
            };
            let turns: Vec<NodeId> = set.iter().filter_map(in_turn).collect();
            set.retain(|source| !matches!(source, Source::AllTurns(of) if turns.contains(of)));
            of_node[id as usize] = *numbers.entry(set).or_insert_with_key(|set| {
                sets.push(set.clone());
                sets.len() as u32 - 1
            });
        }
        Deadness { of_node }
    }

    /// Whether two nodes are dead at the same times.
    pub fn agree(&self, a: NodeId, b: NodeId) -> bool {
        self.of_node[a as usize] == self.of_node[b as usize]
    }
}

/// For each loop, by the name of its frame, the `Enter` that stands for it.
struct Loops<'a>(FxHashMap<&'a [u8], NodeId>);

impl<'a> Loops<'a> {
    fn of(graph: &'a Graph) -> Loops<'a> {
        let mut loops = FxHashMap::default();
        for (id, node) in graph.nodes() {
            if let Some(frame) = frame(node) {
                loops.entry(frame).or_insert(id);
            }
        }
        Loops(loops)
    }

    fn find(&self, enter: &Node) -> Option<NodeId> {
        self.0.get(frame(enter)?).copied()
    }

    /// The loop whose variable a `Merge` is.
    fn of_variable(&self, graph: &Graph, value: OutputRef) -> Option<NodeId> {
        let node = graph.node(value.node);
        let [start, next] = node.inputs[..] else {
            return None;
        };
        let is_next = graph.node(next.node).info.op_name() == "NextIteration";
        let is_merge = node.info.op_name() == "Merge" && value.index == 0;
        (is_merge && is_next).then(|| self.find(graph.node(start.node)))?
    }

    fn source(&self, graph: &Graph, value: OutputRef) -> Source {
        let node = graph.node(value.node);
        let found = match node.info.op_name() {
            "Enter" if node.info.attrs.bool("is_constant") == Ok(true) => {
                self.find(node).map(Source::AllTurns)
            }
            "Merge" => self.of_variable(graph, value).map(Source::Turn),
            "Switch" if is_condition(graph, node.inputs.get(1)) => {
                let of = self.of_variable(graph, node.inputs[0]);
                of.map(|of| Source::Branch(of, value.index))
            }
            _ => None,
        };
        found.unwrap_or(Source::Output(value.node, value.index))
    }
}

fn is_condition(graph: &Graph, value: Option<&OutputRef>) -> bool {
    value.is_some_and(|value| graph.node(value.node).info.op_name() == "LoopCond")
}

/// The frame that an `Enter` leads to.
fn frame(node: &Node) -> Option<&[u8]> {
    let name = node.info.attrs.bytes("frame_name");
    (node.info.op_name() == "Enter").then(|| name.ok())?
}
