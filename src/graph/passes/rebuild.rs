//! Making a new graph out of an old one, node by node.
//!
//! Nodes are offered in an order in which inputs come first, back edges of v1 loops excepted; those are set at the end.

use super::Goal;
use crate::graph::PENDING;
use crate::order::by_number;
use crate::{Graph, Inputs, NodeId};
use ff_op::{NodeInfo, OutputRef};
use ff_tensor::{Result, ensure, status};
use smallvec::SmallVec;
use std::sync::Arc;

/// The new graph, and what became of the old one's values and nodes.
pub struct Rebuild {
    /// The new graph.
    pub graph: Graph,
    /// What each old value became; [`PENDING`] until its node is offered.
    values: Vec<OutputRef>,
    /// Where each old node's values start.
    starts: Vec<u32>,
    /// What stands for an old node's end in control edges.
    ends: Vec<SmallVec<[NodeId; 1]>>,
    back_edges: Vec<(NodeId, usize, OutputRef)>,
}

impl Rebuild {
    /// An empty graph with the ops, functions and versions of the old one.
    pub fn of(old: &Graph) -> Rebuild {
        let mut graph = Graph::with_functions(old.registry().clone(), old.functions().clone());
        graph.versions = old.versions.clone();
        let mut starts = Vec::with_capacity(old.len());
        let mut values = 0;
        for (_, node) in old.nodes() {
            starts.push(values);
            values += node.info.output_types.len() as u32;
        }
        Rebuild {
            graph,
            values: vec![PENDING; values as usize],
            starts,
            ends: vec![SmallVec::new(); old.len()],
            back_edges: Vec::new(),
        }
    }

    fn place(&self, old: OutputRef) -> usize {
        (self.starts[old.node as usize] + old.index) as usize
    }

    /// What an old value became, if its node has been offered.
    pub fn value(&self, old: OutputRef) -> Option<OutputRef> {
        Some(self.values[self.place(old)]).filter(|value| *value != PENDING)
    }

    /// Says what an old value became.
    pub fn set_value(&mut self, old: OutputRef, new: OutputRef) {
        let place = self.place(old);
        self.values[place] = new;
    }

    /// What stands for the end of an old node; nothing when it became a constant.
    pub fn end(&self, old: NodeId) -> &[NodeId] {
        &self.ends[old as usize]
    }

    /// Says what stands for the end of an old node.
    pub fn set_end(&mut self, old: NodeId, new: impl IntoIterator<Item = NodeId>) {
        self.ends[old as usize] = new.into_iter().collect();
    }

    /// The new control inputs of an old node.
    pub fn controls(&self, old: &Graph, id: NodeId) -> Vec<NodeId> {
        let mut all: Vec<NodeId> = old
            .node(id)
            .control_inputs
            .iter()
            .flat_map(|control| self.end(*control))
            .copied()
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Adds a node with new edges under a name that is free.
    pub fn add(
        &mut self,
        info: Arc<NodeInfo>,
        inputs: impl Into<Inputs>,
        controls: Vec<NodeId>,
    ) -> Result<NodeId> {
        let info = if self.graph.find(&info.name).is_some() {
            let mut renamed = (*info).clone();
            let mut number = 1;
            while self.graph.find(&format!("{}_{number}", info.name)).is_some() {
                number += 1;
            }
            renamed.name = format!("{}_{number}", info.name);
            Arc::new(renamed)
        } else {
            info
        };
        self.graph.add_node(info, inputs.into(), controls)
    }

    /// Adds an old node as it is, with its edges moved to the new graph.
    pub fn copy(&mut self, old: &Graph, id: NodeId) -> Result<NodeId> {
        let node = old.node(id);
        let controls = self.controls(old, id);
        let mut inputs = Vec::with_capacity(node.inputs.len());
        let mut late = Vec::new();
        for (index, input) in node.inputs.iter().enumerate() {
            let value = self.value(*input).unwrap_or(PENDING);
            if value == PENDING {
                late.push((index, *input));
            }
            inputs.push(value);
        }
        let new = self.add(node.info.clone(), inputs, controls)?;
        self.back_edges
            .extend(late.into_iter().map(|(index, input)| (new, index, input)));
        self.adopt(old, id, new);
        Ok(new)
    }

    /// Says that a new node stands for an old one, output by output, and takes over the inferred shapes.
    pub fn adopt(&mut self, old: &Graph, id: NodeId, new: NodeId) {
        let node = old.node(id);
        for index in 0..node.info.output_types.len() as u32 {
            self.set_value(OutputRef { node: id, index }, OutputRef { node: new, index });
        }
        self.graph
            .set_shapes(new, node.shapes.clone(), node.handles.clone());
        self.set_end(id, [new]);
    }

    /// Sets the back edges; gives the graph, and the goal in its terms.
    pub fn finish(mut self, goal: &Goal) -> Result<(Graph, Goal)> {
        for (node, index, source) in std::mem::take(&mut self.back_edges) {
            let source = self.value(source);
            let source = source.ok_or_else(|| status!(Internal, "a loop's back edge was lost"))?;
            self.graph.replace_input(node, index, source)?;
        }
        let value = |old: &OutputRef| {
            self.value(*old)
                .ok_or_else(|| status!(Internal, "a value that is asked for was lost"))
        };
        let goal = Goal {
            feeds: goal.feeds.iter().map(value).collect::<Result<_>>()?,
            fetches: goal.fetches.iter().map(value).collect::<Result<_>>()?,
            targets: goal
                .targets
                .iter()
                .flat_map(|target| self.end(*target))
                .copied()
                .collect(),
        };
        ensure!(
            self.graph.len() < u32::MAX as usize,
            ResourceExhausted,
            "too many nodes"
        );
        Ok((self.graph, goal))
    }
}

/// All nodes of a graph, inputs first, back edges of v1 loops excepted. INVALID_ARGUMENT for any other cycle.
pub fn in_order(graph: &Graph) -> Result<Vec<NodeId>> {
    let is_back = |before: NodeId| graph.node(before).info.op_name().ends_with("NextIteration");
    let before = |id: NodeId| {
        let node = graph.node(id);
        let data = node.inputs.iter().map(|input| input.node);
        data.chain(node.control_inputs.iter().copied())
    };
    let ids = 0..graph.len() as NodeId;
    if ids
        .clone()
        .all(|id| before(id).all(|from| from < id || is_back(from)))
    {
        return Ok(ids.collect());
    }
    let waiting = ids.map(|id| before(id).filter(|from| !is_back(*from)).count() as u32);
    let readers = graph.nodes().map(|(id, node)| {
        if is_back(id) {
            return Vec::new();
        }
        let data = node.consumers.iter().flatten().map(|(reader, _)| *reader);
        data.chain(node.control_outputs.iter().copied()).collect()
    });
    let order = by_number(waiting.collect(), &readers.collect::<Vec<_>>());
    ensure!(
        order.len() == graph.len(),
        InvalidArgument,
        "Graph is invalid, contains a cycle with {} nodes",
        graph.len() - order.len()
    );
    Ok(order)
}
