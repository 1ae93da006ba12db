//! Puts one node in the place of each cluster.

use crate::Ways;
use crate::deadness::Deadness;
use crate::form::Clusters;
use crate::kernel::{self, ClusterKernel};
use crate::policy::Policy;
use ff_graph::passes::{Goal, Rebuild, is_control_flow};
use ff_graph::{FunctionBody, Graph, Inputs, NodeId, constant_behind};
use ff_op::{Attrs, Callable, NodeInfo, OutputRef};
use ff_platform::vlog;
use ff_tensor::{DataType, Result, status};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Makes the body of a cluster ready to run op by op.
pub type MakeCallable<'a> = &'a dyn Fn(Arc<FunctionBody>) -> Arc<dyn Callable>;

/// See the module.
pub fn encapsulate(
    graph: Graph,
    goal: Goal,
    clusters: &Clusters,
    policy: &Policy,
    ways: &Ways,
) -> Result<(Graph, Goal)> {
    let mut rebuild = Rebuild::of(&graph);
    let fetched: FxHashSet<OutputRef> = goal.fetches.iter().copied().collect();
    let mut emitted = vec![false; clusters.accepted.len()];
    for &id in &clusters.order {
        let Some(number) = clusters.of_node[id as usize] else {
            rebuild.copy(&graph, id)?;
            continue;
        };
        if std::mem::replace(&mut emitted[number as usize], true) {
            continue;
        }
        let cluster = Cluster {
            graph: &graph,
            members: &clusters.accepted[number as usize],
            is_member: &|id| clusters.of_node[id as usize] == Some(number),
            fetched: &fetched,
            deadness: &clusters.deadness,
        };
        put(&mut rebuild, &cluster, policy, ways)?;
    }
    rebuild.finish(&goal)
}

struct Cluster<'a> {
    graph: &'a Graph,
    members: &'a [NodeId],
    is_member: &'a dyn Fn(NodeId) -> bool,
    fetched: &'a FxHashSet<OutputRef>,
    deadness: &'a Deadness,
}

/// A cluster's body, and the values of the graph that are its arguments and results.
struct Cut {
    body: FunctionBody,
    inputs: Vec<OutputRef>,
    /// Constants that are part of the body.
    constants: Vec<NodeId>,
    outputs: Vec<OutputRef>,
}

fn put(rebuild: &mut Rebuild, cluster: &Cluster, policy: &Policy, ways: &Ways) -> Result<()> {
    let graph = cluster.graph;
    let cut = cluster.cut()?;
    let types = |values: &[OutputRef]| -> Result<Vec<DataType>> {
        values.iter().map(|value| graph.output_type(*value)).collect()
    };
    // A cluster reads the value of a reference variable, as its members do.
    let inputs = types(&cut.inputs)?;
    let inputs: Vec<DataType> = inputs.into_iter().map(DataType::base).collect();
    let outputs = types(&cut.outputs)?;
    let first = &graph.node(cluster.members[0]).info;
    let names: Vec<&str> = cluster
        .members
        .iter()
        .map(|&id| graph.node(id).info.name.as_str())
        .collect();
    vlog!(1, "cluster of {}: {}", names.len(), names.join(", "));
    let body = Arc::new(cut.body);
    let callable = (ways.make)(body.clone());
    let record = kernel::record(ClusterKernel::new(body, callable, *policy, ways.watch.clone()));
    let attrs = Attrs::new().with("Tin", inputs).with("Tout", outputs);
    let name = format!("{}/cluster", first.name);
    let info = Arc::new(NodeInfo::new(
        name,
        Arc::new(record),
        first.device.clone(),
        attrs,
    )?);
    let sources = cut.inputs.iter().map(|input| {
        let value = rebuild.value(*input);
        value.ok_or_else(|| status!(Internal, "an input of a cluster comes after it"))
    });
    let sources: Inputs = sources.collect::<Result<_>>()?;
    // What a constant waits for says in which branch, or turn of a loop, it is there.
    let constants = cut.constants.iter();
    let mut controls: Vec<NodeId> = constants.flat_map(|&id| rebuild.controls(graph, id)).collect();
    controls.sort_unstable();
    controls.dedup();
    let new = rebuild.add(info, sources, controls)?;
    for (index, old) in cut.outputs.iter().enumerate() {
        let value = OutputRef {
            node: new,
            index: index as u32,
        };
        rebuild.set_value(*old, value);
        rebuild.graph.set_shape(value, graph.output_shape(*old));
    }
    cluster.members.iter().for_each(|&id| rebuild.set_end(id, [new]));
    Ok(())
}

/// A body being made, and what each value of the graph is in it.
struct Making {
    graph: Graph,
    values: FxHashMap<OutputRef, OutputRef>,
    inputs: Vec<OutputRef>,
    arguments: Vec<OutputRef>,
    constants: Vec<NodeId>,
}

impl Making {
    fn add(&mut self, info: Arc<NodeInfo>, inputs: Inputs) -> Result<OutputRef> {
        let node = self.graph.add_node(info, inputs, Vec::new())?;
        Ok(OutputRef { node, index: 0 })
    }

    /// The copy of a constant, made once.
    fn constant(&mut self, graph: &Graph, value: OutputRef) -> Result<OutputRef> {
        if let Some(&known) = self.values.get(&value) {
            return Ok(known);
        }
        self.constants.push(value.node);
        let new = self.add(graph.node(value.node).info.clone(), Inputs::new())?;
        self.values.insert(value, new);
        Ok(new)
    }
}

impl Cluster<'_> {
    /// Makes the body. Constants become part of it (their memory is shared); every other value from outside is an
    /// argument.
    fn cut(&self) -> Result<Cut> {
        let mut making = Making {
            graph: Graph::with_functions(self.graph.registry().clone(), self.graph.functions().clone()),
            values: FxHashMap::default(),
            inputs: Vec::new(),
            arguments: Vec::new(),
            constants: Vec::new(),
        };
        let is_in_loop = self.is_in_loop();
        for &id in self.members {
            let node = self.graph.node(id);
            for &input in node.inputs.iter() {
                if !(self.is_member)(input.node) && !making.values.contains_key(&input) {
                    self.take(&mut making, input, is_in_loop)?;
                }
            }
            let sources = node.inputs.iter().map(|input| {
                let value = making.values.get(input).copied();
                value.ok_or_else(|| status!(Internal, "a cluster's nodes are not in order"))
            });
            let sources: Inputs = sources.collect::<Result<_>>()?;
            let new = making.add(node.info.clone(), sources)?.node;
            making
                .graph
                .set_shapes(new, node.shapes.clone(), node.handles.clone());
            for index in 0..node.info.output_types.len() as u32 {
                let value = OutputRef { node: new, index };
                making.values.insert(OutputRef { node: id, index }, value);
            }
        }
        let outputs = self.outputs();
        let results = outputs.iter().map(|output| making.values[output]).collect();
        Ok(Cut {
            body: FunctionBody::of_parts(making.graph, making.arguments, results)?,
            inputs: making.inputs,
            constants: making.constants,
            outputs,
        })
    }

    /// Makes a value from outside part of the body.
    fn take(&self, making: &mut Making, value: OutputRef, is_in_loop: bool) -> Result<()> {
        let constant = constant_behind(self.graph, value);
        let new = match constant.filter(|&found| found == value || is_in_loop) {
            Some(constant) => making.constant(self.graph, constant)?,
            None => {
                let argument = self.argument(value, making.inputs.len())?;
                let argument = making.add(argument, Inputs::new())?;
                making.arguments.push(argument);
                making.inputs.push(value);
                argument
            }
        };
        making.values.insert(value, new);
        Ok(())
    }

    /// Whether an input that is no constant says in which turns of a loop the cluster runs: it is dead when the cluster is.
    fn is_in_loop(&self) -> bool {
        let inputs = self.members.iter().flat_map(|&id| &self.graph.node(id).inputs);
        let mut outside = inputs.filter(|input| !(self.is_member)(input.node));
        let says = |source: NodeId| match self.graph.node(source).info.op_name() {
            "Switch" => true,
            op => !is_control_flow(op) && self.deadness.agree(source, self.members[0]),
        };
        outside.any(|&input| says(input.node) && constant_behind(self.graph, input).is_none())
    }

    fn argument(&self, value: OutputRef, index: usize) -> Result<Arc<NodeInfo>> {
        let op = self.graph.registry().find("_Arg")?;
        let attrs = Attrs::new()
            .with("T", self.graph.output_type(value)?.base())
            .with("index", index as i64);
        let name = format!("cluster_argument_{index}");
        Ok(Arc::new(NodeInfo::new(name, op, String::new(), attrs)?))
    }

    /// Values that somebody outside wants.
    fn outputs(&self) -> Vec<OutputRef> {
        let mut wanted = Vec::new();
        for &node in self.members {
            for (index, readers) in self.graph.node(node).consumers.iter().enumerate() {
                let output = OutputRef {
                    node,
                    index: index as u32,
                };
                let is_read = readers.iter().any(|(reader, _)| !(self.is_member)(*reader));
                if is_read || self.fetched.contains(&output) {
                    wanted.push(output);
                }
            }
        }
        wanted
    }
}
