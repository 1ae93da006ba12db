//! Forms clusters: joins marked nodes along edges.
//!
//! What asks to be compiled under a scope's name is not joined with what asks under another, unless all is clustered.

use crate::acyclic::Groups;
use crate::deadness::Deadness;
use crate::mark::Marks;
use crate::policy::{Mode, Policy};
use ff_graph::passes::in_order;
use ff_graph::{Graph, NodeId};
use ff_tensor::Result;
use rustc_hash::FxHashMap;

/// Clusters of a graph.
pub struct Clusters {
    /// For each accepted cluster its nodes, inputs first.
    pub accepted: Vec<Vec<NodeId>>,
    /// For each node the number of its cluster.
    pub of_node: Vec<Option<u32>>,
    /// All nodes in an order in which the nodes of a cluster can run together where the first of them stands.
    pub order: Vec<NodeId>,
    /// When nodes are dead.
    pub deadness: Deadness,
}

/// See the module. A cluster is accepted when enough of its nodes compute something.
pub fn form(graph: &Graph, marks: &Marks, policy: &Policy) -> Result<Clusters> {
    let order = in_order(graph)?;
    let mut groups = Groups::new(&order, edges(graph));
    let deadness = Deadness::of(graph, &order);
    let mut scopes = Scopes::of(graph, policy);
    for &id in &order {
        if !marks.can[id as usize] {
            continue;
        }
        for input in &graph.node(id).inputs {
            let source = input.node;
            let fits = marks.can[source as usize]
                && deadness.agree(source, id)
                && graph.node(source).info.device == graph.node(id).info.device
                && (groups.size(source) + groups.size(id)) as usize <= policy.most_members;
            let pair = (groups.find(source), groups.find(id));
            if fits && scopes.agree(pair) && groups.join(source, id) {
                scopes.joined(pair, groups.find(id));
            }
        }
    }
    Ok(accept(graph, marks, policy, (&order, deadness), &groups))
}

/// The edges that a step must follow: all but the back edges of v1 loops.
fn edges(graph: &Graph) -> impl Iterator<Item = (NodeId, NodeId)> {
    graph.nodes().flat_map(move |(id, node)| {
        let data = node.inputs.iter().map(|input| input.node);
        let before = data.chain(node.control_inputs.iter().copied());
        before
            .filter(|&from| !graph.node(from).info.op_name().ends_with("NextIteration"))
            .map(move |from| (from, id))
    })
}

fn accept(
    graph: &Graph,
    marks: &Marks,
    policy: &Policy,
    (order, deadness): (&[NodeId], Deadness),
    groups: &Groups,
) -> Clusters {
    let mut position = vec![0u32; graph.len()];
    for (at, &id) in order.iter().enumerate() {
        position[id as usize] = at as u32;
    }
    let mut sorted = order.to_vec();
    sorted.sort_by_key(|&id| (groups.rank(id), position[id as usize]));
    let mut members: FxHashMap<u32, Vec<NodeId>> = FxHashMap::default();
    for &id in sorted.iter().filter(|&&id| marks.can[id as usize]) {
        members.entry(groups.find(id)).or_default().push(id);
    }
    let mut clusters = Clusters {
        accepted: Vec::new(),
        of_node: vec![None; graph.len()],
        order: sorted,
        deadness,
    };
    for &id in &clusters.order {
        let Some(nodes) = members.remove(&groups.find(id)) else {
            continue;
        };
        let least = match nodes.iter().any(|&id| asks(graph, id, policy)) {
            true => 1,
            false => policy.least_members,
        };
        if nodes.iter().filter(|&&id| marks.works[id as usize]).count() < least {
            continue;
        }
        let number = clusters.accepted.len() as u32;
        nodes
            .iter()
            .for_each(|&id| clusters.of_node[id as usize] = Some(number));
        clusters.accepted.push(nodes);
    }
    clusters
}

fn asks(graph: &Graph, id: NodeId, policy: &Policy) -> bool {
    policy.heeds_requests && graph.node(id).info.asks_for_cluster() == Some(true)
}

/// The scopes of groups that have one, by representative.
struct Scopes<'a>(FxHashMap<NodeId, &'a [u8]>);

impl<'a> Scopes<'a> {
    fn of(graph: &'a Graph, policy: &Policy) -> Scopes<'a> {
        let nodes = graph.nodes().filter(|_| policy.mode == Mode::Asked);
        Scopes(
            nodes
                .filter_map(|(id, node)| Some((id, node.info.cluster_scope()?)))
                .collect(),
        )
    }

    fn agree(&self, (a, b): (NodeId, NodeId)) -> bool {
        match (self.0.get(&a), self.0.get(&b)) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        }
    }

    /// Two groups have become one, which another node may stand for.
    fn joined(&mut self, (a, b): (NodeId, NodeId), both: NodeId) {
        if let Some(scope) = self.0.get(&a).or_else(|| self.0.get(&b)).copied() {
            self.0.insert(both, scope);
        }
    }
}
