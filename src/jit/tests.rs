//! Clusters of small graphs.

use crate::{Mode, OP_NAME, Policy, Ways, cluster};
use ff_graph::passes::Goal;
use ff_graph::{FunctionBody, Graph, NodeBuilder, NodeId};
use ff_op::{Callable, FunctionSignature, KernelHost, OutputRef, Runner};
use ff_tensor::{DataType, PartialShape, Result, Tensor};
use std::sync::Arc;

/// A way to run a cluster that says that it was not asked for.
struct Refuses(FunctionSignature);

impl Callable for Refuses {
    fn signature(&self) -> &FunctionSignature {
        &self.0
    }

    fn run(&self, _host: &dyn KernelHost, _arguments: Vec<Tensor>) -> Result<Vec<Tensor>> {
        Err(ff_tensor::status!(Internal, "not op by op"))
    }

    fn runner<'a>(&'a self, _host: &'a dyn KernelHost) -> Result<Box<dyn Runner + 'a>> {
        Err(ff_tensor::status!(Internal, "not op by op"))
    }
}

fn refuses(body: Arc<FunctionBody>) -> Arc<dyn Callable> {
    Arc::new(Refuses(body.signature()))
}

pub(crate) struct Net {
    pub graph: Graph,
}

impl Net {
    pub fn new() -> Net {
        Net {
            graph: Graph::new(ff_ops::registry()),
        }
    }

    pub fn value(node: NodeId) -> OutputRef {
        OutputRef { node, index: 0 }
    }

    pub fn input(&mut self, name: &str) -> NodeId {
        let builder = NodeBuilder::new("Placeholder", name)
            .attr("dtype", DataType::FLOAT)
            .attr("shape", PartialShape::unknown());
        builder.finish(&mut self.graph).unwrap()
    }

    pub fn op(&mut self, op: &str, name: &str, inputs: &[NodeId]) -> NodeId {
        let builder = inputs.iter().fold(NodeBuilder::new(op, name), |builder, &input| {
            builder.input(Net::value(input))
        });
        builder.finish(&mut self.graph).unwrap()
    }

    /// Clusters, and the names of what is left; `_Cluster` for clusters.
    pub fn clustered(
        self,
        feeds: &[NodeId],
        fetches: &[NodeId],
        policy: &Policy,
    ) -> (Graph, Goal, Vec<String>) {
        let values = |nodes: &[NodeId]| nodes.iter().copied().map(Net::value).collect();
        let goal = Goal {
            feeds: values(feeds),
            fetches: values(fetches),
            targets: Vec::new(),
        };
        let ways = Ways {
            is_large: &|_| true,
            make: &refuses,
            watch: &Arc::default(),
        };
        let (graph, goal) = cluster(self.graph, goal, policy, &ways).unwrap();
        let mut names: Vec<String> = graph
            .nodes()
            .map(|(_, node)| match node.info.op_name() {
                OP_NAME => OP_NAME.to_string(),
                _ => node.info.name.clone(),
            })
            .collect();
        names.sort();
        (graph, goal, names)
    }
}

#[test]
fn a_chain_becomes_one_node() {
    let mut net = Net::new();
    let x = net.input("x");
    let a = net.op("Exp", "a", &[x]);
    let b = net.op("Mul", "b", &[a, x]);
    let c = net.op("Tanh", "c", &[b]);
    let (graph, goal, names) = net.clustered(&[x], &[c, a], &Policy::AUTO);
    assert_eq!(names, [OP_NAME, "x"]);
    let cluster = graph.node(goal.fetches[0].node);
    assert_eq!(cluster.info.output_types.len(), 2);
    assert_eq!(cluster.inputs.len(), 1);
    assert_eq!(goal.fetches[0].node, goal.fetches[1].node);
}

#[test]
fn what_would_become_a_cycle_stays_outside() {
    // The product does not gain, and lies on a path from `a` to `c`.
    let mut net = Net::new();
    let x = net.input("x");
    let a = net.op("Exp", "a", &[x]);
    let a2 = net.op("Neg", "a2", &[a]);
    let product = net.op("MatMul", "product", &[a2, a2]);
    let c = net.op("Add", "c", &[product, a2]);
    let d = net.op("Neg", "d", &[c]);
    let (_, _, names) = net.clustered(&[x], &[d], &Policy::AUTO);
    assert_eq!(names, [OP_NAME, OP_NAME, "product", "x"]);
}

#[test]
fn single_nodes_fed_nodes_and_waiting_nodes_stay() {
    let mut net = Net::new();
    let x = net.input("x");
    let a = net.op("Exp", "a", &[x]);
    let b = net.op("Neg", "b", &[a]);
    let waits = net.op("Tanh", "waits", &[b]);
    net.graph.add_control_edge(x, waits);
    let (_, _, names) = net.clustered(&[x, a], &[waits], &Policy::AUTO);
    assert_eq!(names, ["a", "b", "waits", "x"]);
}

#[test]
fn branches_of_a_switch_are_not_mixed() {
    let mut net = Net::new();
    let (x, p) = (net.input("x"), net.input("p"));
    let p = {
        let zero = net.op("ZerosLike", "zero", &[p]);
        net.op("Greater", "positive", &[p, zero])
    };
    let switch = net.op("Switch", "switch", &[x, p]);
    let branch = |net: &mut Net, index: u32, name: &str| {
        let source = OutputRef { node: switch, index };
        let first = NodeBuilder::new("Exp", name).input(source);
        let first = first.finish(&mut net.graph).unwrap();
        net.op("Neg", &format!("{name}_2"), &[first])
    };
    let (no, yes) = (branch(&mut net, 0, "no"), branch(&mut net, 1, "yes"));
    let merge = NodeBuilder::new("Merge", "merge").input_list([Net::value(no), Net::value(yes)]);
    let merge = merge.finish(&mut net.graph).unwrap();
    let (_, _, names) = net.clustered(&[x], &[merge], &Policy::AUTO);
    assert_eq!(
        names.iter().filter(|name| *name == OP_NAME).count(),
        3,
        "{names:?}"
    );
}

#[test]
fn a_node_of_both_branches_is_in_no_cluster_with_either() {
    let mut net = Net::new();
    let (x, p) = (net.input("x"), net.input("p"));
    let zero = net.op("ZerosLike", "zero", &[p]);
    let p = net.op("Greater", "positive", &[p, zero]);
    let switch = net.op("Switch", "switch", &[x, p]);
    let yes = OutputRef {
        node: switch,
        index: 1,
    };
    let dies = NodeBuilder::new("Exp", "dies").input(yes);
    let dies = dies.finish(&mut net.graph).unwrap();
    let lives = net.op("Exp", "lives", &[x]);
    let both = net.op("Add", "both", &[dies, lives]);
    // `lives` never dies, `both` dies with `dies`.
    let (_, _, names) = net.clustered(&[x], &[both, lives], &Policy::AUTO);
    assert!(names.contains(&"lives".to_string()), "{names:?}");
    assert_eq!(names.iter().filter(|name| *name == OP_NAME).count(), 2);
}

#[test]
fn off_changes_nothing() {
    let mut net = Net::new();
    let x = net.input("x");
    let a = net.op("Exp", "a", &[x]);
    let b = net.op("Neg", "b", &[a]);
    let (_, _, names) = net.clustered(&[x], &[b], &Policy::OFF);
    assert_eq!(names, ["a", "b", "x"]);
    assert_eq!(Policy::OFF.mode, Mode::Off);
}

#[test]
fn ten_thousand_nodes_are_quick() {
    let mut net = Net::new();
    let x = net.input("x");
    let mut at = x;
    for layer in 0..2500 {
        let exp = net.op("Exp", &format!("exp{layer}"), &[at]);
        let neg = net.op("Neg", &format!("neg{layer}"), &[exp]);
        let product = net.op("MatMul", &format!("product{layer}"), &[neg, exp]);
        at = net.op("Add", &format!("sum{layer}"), &[product, at]);
    }
    let start = std::time::Instant::now();
    let (graph, ..) = net.clustered(&[x], &[at], &Policy::AUTO);
    assert!(graph.len() < 10_001);
    // It takes about 20 ms; a quadratic walk would take seconds.
    assert!(start.elapsed().as_secs_f64() < 2.0, "{:?}", start.elapsed());
}

/// Adds a node that asks for a cluster, or not to be in one.
fn asking(net: &mut Net, op: &str, name: &str, input: NodeId, says: bool, scope: &str) -> NodeId {
    let builder = NodeBuilder::new(op, name)
        .input(Net::value(input))
        .attr("_XlaCompile", says)
        .attr("_XlaScope", scope);
    builder.finish(&mut net.graph).unwrap()
}

#[test]
fn what_asks_is_clustered_where_nothing_else_is() {
    let mut net = Net::new();
    let x = net.input("x");
    let a = net.op("Exp", "a", &[x]);
    let asks = asking(&mut net, "Exp", "asks", a, true, "one");
    let b = net.op("Neg", "b", &[asks]);
    let policy = Policy::OFF.at_once();
    assert!(policy.is_none());
    let policy = Policy::AUTO.at_once().unwrap();
    assert_eq!(policy.mode, Mode::Asked);
    let (_, _, names) = net.clustered(&[x], &[b], &policy);
    assert_eq!(names, [OP_NAME, "a", "b", "x"]);
}

#[test]
fn scopes_are_not_joined_unless_all_is_clustered() {
    for (policy, clusters) in [(Policy::AUTO.at_once().unwrap(), 2), (Policy::ON, 1)] {
        let mut net = Net::new();
        let x = net.input("x");
        let a = asking(&mut net, "Exp", "a", x, true, "one");
        let b = asking(&mut net, "Neg", "b", a, true, "one");
        let c = asking(&mut net, "Neg", "c", b, true, "other");
        let d = asking(&mut net, "Exp", "d", c, true, "other");
        let (_, _, names) = net.clustered(&[x], &[d], &policy);
        let found = names.iter().filter(|name| *name == OP_NAME).count();
        assert_eq!((found, names.len()), (clusters, clusters + 1), "{names:?}");
    }
}

#[test]
fn what_says_no_is_in_no_cluster() {
    for policy in [Policy::AUTO, Policy::ON] {
        let mut net = Net::new();
        let x = net.input("x");
        let a = net.op("Exp", "a", &[x]);
        let b = net.op("Neg", "b", &[a]);
        let no = asking(&mut net, "Neg", "no", b, false, "");
        let c = net.op("Exp", "c", &[no]);
        let d = net.op("Neg", "d", &[c]);
        let (_, _, names) = net.clustered(&[x], &[d], &policy);
        assert_eq!(names, [OP_NAME, OP_NAME, "no", "x"]);
    }
}

/// Adds a constant that waits for a node.
fn waiting_constant(net: &mut Net, name: &str, elements: usize, waits_for: NodeId) -> NodeId {
    let value = Tensor::vector(&vec![1.0f32; elements]).unwrap();
    let constant = NodeBuilder::new("Const", name)
        .attr("value", value)
        .attr("dtype", DataType::FLOAT);
    let constant = constant.finish(&mut net.graph).unwrap();
    net.graph.add_control_edge(waits_for, constant);
    constant
}

#[test]
fn constants_of_any_size_are_part_of_a_cluster_which_waits_as_they_do() {
    for elements in [1, 100_000] {
        let mut net = Net::new();
        let (x, other) = (net.input("x"), net.input("other"));
        let constant = waiting_constant(&mut net, "constant", elements, other);
        let a = net.op("Add", "a", &[x, constant]);
        let b = net.op("Tanh", "b", &[a]);
        let (graph, goal, _) = net.clustered(&[x, other], &[b], &Policy::AUTO);
        let cluster = graph.node(goal.fetches[0].node);
        assert_eq!(cluster.info.op_name(), OP_NAME);
        assert_eq!(cluster.inputs.len(), 1);
        let waits_for = graph.node(cluster.control_inputs[0]);
        assert_eq!(waits_for.info.name, "other");
    }
}
