//! The placer: which device each node of a graph runs on.
//!
//! Nodes that name each other in `_class` (`loc:@other`) go to one device, and so do nodes that are joined by a reference
//! or a resource: the device of the variable or resource wins over what its users ask for. A node that asks for nothing
//! goes to the first device, except that constants and the like follow their readers and `Shape` and the like follow what
//! they look at.
//!
//! Not here: making the transfers between devices, which is the partitioner's and the plan's work.

use crate::device_spec::DeviceSpec;
use crate::{Graph, Node, NodeId};
use ff_op::AttrValue;
use ff_tensor::{DataType, Result, ensure, status};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// A device that nodes can be placed on.
#[derive(Clone, Debug)]
pub struct PlacementDevice {
    /// The full name.
    pub name: String,
    /// The name's parts.
    pub spec: DeviceSpec,
}

impl PlacementDevice {
    /// The device with this full name.
    pub fn new(name: &str) -> PlacementDevice {
        PlacementDevice {
            name: name.to_string(),
            spec: DeviceSpec::parse(name).unwrap_or_default(),
        }
    }
}

/// The number that the reference gives to the first node of a graph, after source and sink.
const FIRST_NODE: u32 = 2;

/// The number of each node's device. `soft` lets nodes run elsewhere when what they ask for is not there.
///
/// INVALID_ARGUMENT for a device that is not there, one that is no device name, and for nodes that belong together but ask
/// for different devices.
pub fn place(graph: &Graph, devices: &[PlacementDevice], soft: bool) -> Result<Vec<u32>> {
    let is_plain = |node: &Node| node.info.device.is_empty() && node.info.attrs.get("_class").is_none();
    if graph.nodes().all(|(_, node)| is_plain(node)) {
        return Ok(vec![0; graph.len()]);
    }
    let mut placer = Placer::new(graph, devices, soft)?;
    placer.join_classes()?;
    placer.join_references()?;
    placer.assign()
}

/// Nodes that go to one device, as a forest: each group is known by its root.
struct Placer<'a> {
    graph: &'a Graph,
    devices: &'a [PlacementDevice],
    soft: bool,
    requested: Vec<DeviceSpec>,
    parents: Vec<NodeId>,
    groups: Vec<Group>,
}

/// What the nodes of a group ask for.
#[derive(Clone, Default)]
struct Group {
    requested: DeviceSpec,
    /// What the variables and resources of the group ask for.
    resource: DeviceSpec,
}

impl<'a> Placer<'a> {
    fn new(graph: &'a Graph, devices: &'a [PlacementDevice], soft: bool) -> Result<Placer<'a>> {
        let mut requested = Vec::with_capacity(graph.len());
        for (id, node) in graph.nodes() {
            let device = &node.info.device;
            let spec = DeviceSpec::parse(device).ok_or_else(|| malformed(graph, id, device))?;
            requested.push(spec);
        }
        let group = |(id, node): (NodeId, &Node)| Group {
            requested: requested[id as usize].clone(),
            resource: if makes_resource(node) {
                requested[id as usize].clone()
            } else {
                DeviceSpec::default()
            },
        };
        Ok(Placer {
            groups: graph.nodes().map(group).collect(),
            parents: (0..graph.len() as NodeId).collect(),
            graph,
            devices,
            soft,
            requested,
        })
    }

    fn root(&mut self, mut id: NodeId) -> NodeId {
        while self.parents[id as usize] != id {
            let parent = self.parents[id as usize];
            self.parents[id as usize] = self.parents[parent as usize];
            id = parent;
        }
        id
    }

    fn name(&self, id: NodeId) -> &'a str {
        &self.graph.node(id).info.name
    }

    /// Joins nodes that name one class. A class without other members may have any name.
    fn join_classes(&mut self) -> Result<()> {
        let mut first: FxHashMap<&str, NodeId> = FxHashMap::default();
        for (id, node) in self.graph.nodes() {
            let classes = match node.info.attrs.get("_class") {
                Some(AttrValue::Strings(classes)) => &classes[..],
                _ => &[],
            };
            for class in classes {
                let class = std::str::from_utf8(class).ok();
                let Some(class) = class.and_then(|class| class.strip_prefix("loc:@")) else {
                    continue;
                };
                let other = *first
                    .entry(class)
                    .or_insert_with(|| self.graph.find(class).unwrap_or(id));
                if other != id {
                    self.join(id, other)?;
                }
            }
        }
        Ok(())
    }

    fn join(&mut self, a: NodeId, b: NodeId) -> Result<()> {
        let (root_a, root_b) = (self.root(a), self.root(b));
        if root_a == root_b {
            return Ok(());
        }
        let mut group = self.groups[root_a as usize].clone();
        let other = self.groups[root_b as usize].clone();
        let merged = group
            .requested
            .merge(&other.requested, self.soft)
            .and_then(|()| group.resource.merge(&other.resource, false));
        merged.map_err(|error| {
            status!(
                InvalidArgument,
                "Cannot colocate nodes {{{{colocation_node {}}}}} and {{{{colocation_node {}}}}}: {}\n\t [[{{{{node {}}}}}]]",
                self.name(a),
                self.name(b),
                error.message(),
                self.name(a)
            )
        })?;
        self.parents[root_b as usize] = root_a;
        self.groups[root_a as usize] = group;
        Ok(())
    }

    /// Joins nodes with those whose variables and resources they use. What the variable asks for wins.
    fn join_references(&mut self) -> Result<()> {
        for (id, node) in self.graph.nodes() {
            if calls_functions(node.info.op_name()) {
                continue;
            }
            for (index, input) in node.inputs.iter().enumerate() {
                let dtype = node.info.input_types.get(index).copied();
                let source_type = self.graph.output_type(*input).ok();
                let is_reference = |dtype: Option<DataType>| {
                    dtype.is_some_and(|dtype| dtype.is_ref() || dtype == DataType::RESOURCE)
                };
                let source = self.graph.get(input.node);
                let joins = is_reference(dtype) && is_reference(source_type);
                if joins && source.is_some_and(|source| !calls_functions(source.info.op_name())) {
                    self.join_reference(input.node, id)?;
                }
            }
        }
        Ok(())
    }

    fn join_reference(&mut self, source: NodeId, reader: NodeId) -> Result<()> {
        let (from, to) = (self.root(source), self.root(reader));
        if from == to {
            return Ok(());
        }
        let mut group = self.groups[from as usize].clone();
        let other = self.groups[to as usize].clone();
        let describe = |id: NodeId| {
            let info = &self.graph.node(id).info;
            format!("name='{}' (op='{}')", info.name, info.op_name())
        };
        ensure!(
            group.resource.is_compatible(&other.resource),
            InvalidArgument,
            "Cannot place the graph because a reference or resource edge connects colocation groups with incompatible resource devices: {} vs {}. The edge src node is {}, and the dst node is {}.",
            group.resource,
            other.resource,
            describe(source),
            describe(reader)
        );
        group.resource.merge(&other.resource, false)?;
        // Soft, and then overruled by the resource: users move to what they use.
        group.requested.merge(&other.requested, true)?;
        let overruling = group.resource.clone();
        overrule(&mut group.requested, &overruling);
        self.parents[to as usize] = from;
        self.groups[from as usize] = group;
        Ok(())
    }

    fn assign(&mut self) -> Result<Vec<u32>> {
        let roots: Vec<NodeId> = (0..self.graph.len() as NodeId).map(|id| self.root(id)).collect();
        let mut chosen: FxHashMap<NodeId, Vec<u32>> = FxHashMap::default();
        let mut assigned: Vec<Option<u32>> = vec![None; self.graph.len()];
        let mut of_group: FxHashMap<NodeId, u32> = FxHashMap::default();
        for (id, node) in self.graph.nodes() {
            let root = roots[id as usize];
            let candidates: &Vec<u32> = match chosen.entry(root) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => place.insert(self.candidates(id, root)?),
            };
            if makes_data(node) && !node.consumers[0].is_empty() {
                continue;
            }
            let looked_at = looks_at_shape(node)
                .then(|| {
                    node.inputs
                        .first()
                        .and_then(|input| assigned[input.node as usize])
                })
                .flatten();
            let device = *of_group.entry(root).or_insert_with(|| {
                let followed = looked_at.filter(|device| candidates.contains(device));
                followed.or(candidates.first().copied()).unwrap_or(0)
            });
            assigned[id as usize] = Some(device);
        }
        for (id, node) in self.graph.nodes() {
            if assigned[id as usize].is_none() {
                let root = roots[id as usize];
                let candidates = &chosen[&root];
                let mut readers = node.consumers[0]
                    .iter()
                    .map(|(reader, _)| assigned[*reader as usize]);
                let first = readers.next().flatten();
                let followed = first.filter(|device| {
                    candidates.contains(device) && readers.all(|reader| reader == Some(*device))
                });
                let device = of_group.get(&root).copied();
                let device = device.or(followed).or(candidates.first().copied()).unwrap_or(0);
                of_group.insert(root, device);
                assigned[id as usize] = Some(device);
            }
        }
        Ok(assigned.into_iter().map(|device| device.unwrap_or(0)).collect())
    }

    /// The devices that a group may be placed on. Each has kernels for the nodes: all are CPUs.
    fn candidates(&self, id: NodeId, root: NodeId) -> Result<Vec<u32>> {
        let wanted = &self.groups[root as usize].requested;
        let fitting = |spec: &DeviceSpec| -> Vec<u32> {
            let all = self.devices.iter().zip(0u32..);
            all.filter(|(device, _)| spec.fits(&device.spec))
                .map(|(_, number)| number)
                .collect()
        };
        let mut found = fitting(wanted);
        if found.is_empty() && self.soft {
            let elsewhere = DeviceSpec {
                kind: None,
                id: None,
                ..wanted.clone()
            };
            found = fitting(&elsewhere);
        }
        if found.is_empty() {
            return Err(self.no_device(id, root));
        }
        Ok(found)
    }

    /// The error for a node whose device is not there. The node that asked for it is named, if one did.
    fn no_device(&self, id: NodeId, root: NodeId) -> ff_tensor::Status {
        let wanted = &self.groups[root as usize].requested;
        let mut asked = self
            .graph
            .nodes()
            .filter(|(other, _)| self.requested[*other as usize] == *wanted && self.root_of(*other) == root);
        let id = asked.next().map_or(id, |(other, _)| other);
        let info = &self.graph.node(id).info;
        let mut names: Vec<&str> = self.devices.iter().map(|device| device.name.as_str()).collect();
        names.sort_unstable();
        let names = names.join(", ");
        if self.requested[id as usize] != *wanted {
            return status!(
                InvalidArgument,
                "Cannot assign a device for operation {0}: Could not satisfy explicit device specification '{1}' because the node {{{{colocation_node {0}}}}} was colocated with a group of nodes that required incompatible device '{wanted}'. All available devices [{names}]. \n\t [[{0}]]",
                info.name,
                info.device
            );
        }
        let hint = match wanted.kind.as_deref() {
            Some("GPU") => " The requested device appears to be a GPU, but CUDA is not enabled.",
            _ => "",
        };
        status!(
            InvalidArgument,
            "Cannot assign a device for operation {0}: {1} was explicitly assigned to {2} but available devices are [ {names} ]. Make sure the device specification refers to a valid device.{hint}\n\t [[{0}]]",
            info.name,
            info.describe(),
            info.device
        )
    }

    fn root_of(&self, mut id: NodeId) -> NodeId {
        while self.parents[id as usize] != id {
            id = self.parents[id as usize];
        }
        id
    }
}

fn malformed(graph: &Graph, id: NodeId, device: &str) -> ff_tensor::Status {
    let name = &graph.node(id).info.name;
    status!(
        InvalidArgument,
        "Malformed device specification '{device}' in node: {{name:'{name}' id:{} op device:{{requested: '{device}', assigned: ''}} def:{{{}}}}}\n\t [[{name}]]",
        id + FIRST_NODE,
        crate::describe(graph, id)
    )
}

/// What `by` says takes the place of what the request says.
fn overrule(request: &mut DeviceSpec, by: &DeviceSpec) {
    if by.job.is_some() {
        request.job.clone_from(&by.job);
    }
    request.replica = by.replica.or(request.replica);
    request.task = by.task.or(request.task);
    if by.kind.is_some() {
        request.kind.clone_from(&by.kind);
        request.id = by.id;
    } else {
        request.id = by.id.or(request.id);
    }
}

/// Whether a node makes a variable or a resource that others use.
fn makes_resource(node: &Node) -> bool {
    let is_reference = |dtype: &DataType| dtype.is_ref() || *dtype == DataType::RESOURCE;
    let outputs = &node.info.output_types;
    outputs.len() == 1 && is_reference(&outputs[0]) && !node.info.input_types.iter().any(is_reference)
}

/// Whether a node gives one value out of nothing.
fn makes_data(node: &Node) -> bool {
    let outputs = &node.info.output_types;
    node.inputs.is_empty() && outputs.len() == 1 && !outputs[0].is_ref()
}

fn looks_at_shape(node: &Node) -> bool {
    matches!(node.info.op_name(), "Shape" | "ShapeN" | "Size" | "Rank")
}

/// Ops whose resources may be used on other devices: the bodies of their functions say where.
fn calls_functions(op: &str) -> bool {
    matches!(
        op,
        "If" | "StatelessIf"
            | "Case"
            | "StatelessCase"
            | "While"
            | "StatelessWhile"
            | "For"
            | "PartitionedCall"
            | "StatefulPartitionedCall"
            | "RemoteCall"
            | "SymbolicGradient"
    )
}

#[cfg(test)]
#[path = "placer_tests.rs"]
mod tests;
