//! Adding a node that is checked against its schema: attributes completed, types matched, shapes inferred.
//!
//! [`NodeBuilder`] takes what `TF_NewOperation` .. `TF_FinishOperation` take, in the order of the calls, and reports
//! what the reference reports. [`Graph::add_checked`] adds a node whose inputs are one flat list. Either adds the node
//! or leaves the graph as it was. Names are not checked, as the reference does not: only imported ones are.

use crate::graph::{Inputs, PENDING};
use crate::{Graph, NodeId, summary, validate};
use ff_op::{AttrValue, Attrs, FunctionRef, NodeInfo, OpRecord, OutputRef};
use ff_proto::op_def::ArgDef;
use ff_tensor::{DataType, Result, Status, bail, ensure, status};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::ops::Range;
use std::sync::Arc;

impl Graph {
    /// The op with this name: from the registry, or a function of this graph's library used as an op.
    pub fn find_op(&self, name: &str) -> Result<Arc<OpRecord>> {
        self.registry()
            .find(name)
            .or_else(|error| self.functions().find_op(name).ok_or(error))
    }

    /// Adds a node after checking it. Attributes that follow from the inputs' types, and defaults, are filled in.
    ///
    /// NOT_FOUND for an unknown op; INVALID_ARGUMENT for a taken name, attributes or inputs that do not fit the schema,
    /// or shapes that do not fit the op; UNIMPLEMENTED for an op removed before this graph's version. The graph is
    /// unchanged then.
    pub fn add_checked(
        &mut self,
        op: &str,
        name: &str,
        device: &str,
        attrs: Attrs,
        inputs: impl Into<Inputs>,
        controls: Vec<NodeId>,
    ) -> Result<NodeId> {
        let inputs = inputs.into();
        let op = self.find_op(op)?;
        let types = self.output_types(&inputs)?;
        let attrs = attrs.complete(&op.def, &types);
        let attrs = attrs.map_err(|error| error.suffixed(&format!("; NodeDef: {{{{node {name}}}}}")))?;
        let info = checked_info(
            op,
            name.to_string(),
            device.to_string(),
            attrs,
            self.versions.producer,
        )?;
        self.add_inferred(info, inputs, controls)
    }

    fn output_types(&self, outputs: &[OutputRef]) -> Result<Vec<DataType>> {
        outputs.iter().map(|output| self.output_type(*output)).collect()
    }

    /// Adds a node whose attributes are checked, after checking its inputs, and infers its shapes.
    pub(crate) fn add_inferred(
        &mut self,
        info: NodeInfo,
        inputs: Inputs,
        controls: Vec<NodeId>,
    ) -> Result<NodeId> {
        validate::input_count(&info, inputs.len())?;
        for (index, source) in inputs.iter().enumerate() {
            check_edge(self, &info, index, *source)?;
        }
        let id = self.add_node(Arc::new(info), inputs, controls)?;
        if let Err(error) = self.infer_shapes(id) {
            self.truncate(id as usize);
            return Err(error);
        }
        Ok(id)
    }
}

/// A node that is in no graph: attributes are completed from the types of its inputs, then with defaults, and checked.
/// INVALID_ARGUMENT when inputs or attributes do not fit the schema.
pub fn lone_node(
    op: Arc<OpRecord>,
    name: String,
    attrs: Attrs,
    input_types: &[DataType],
) -> Result<NodeInfo> {
    let attrs = attrs.complete(&op.def, input_types)?;
    let info = checked_info(op, name, String::new(), attrs, crate::GRAPH_DEF_VERSION)?;
    validate::input_count(&info, input_types.len())?;
    Ok(info)
}

/// A node's info, its attributes completed with defaults and checked against the schema. The op must not have been
/// removed before `graph_version`.
pub(crate) fn checked_info(
    op: Arc<OpRecord>,
    name: String,
    device: String,
    mut attrs: Attrs,
    graph_version: i32,
) -> Result<NodeInfo> {
    validate::add_defaults(&op.def, &mut attrs)?;
    validate::attrs(&op.def, &name, &attrs)?;
    validate::not_deprecated(&op.def, graph_version)?;
    NodeInfo::new(name, op, device, attrs)
}

/// Checks that the type of an output fits an input. One that comes later is checked then.
pub(crate) fn check_edge(graph: &Graph, info: &NodeInfo, index: usize, source: OutputRef) -> Result<()> {
    if source == PENDING {
        return Ok(());
    }
    let (expected, actual) = (info.input_types[index], graph.output_type(source)?);
    ensure!(
        validate::types_compatible(expected, actual),
        InvalidArgument,
        "Input {index} of node {} was passed {actual} from {}:{} incompatible with expected {expected}.",
        info.name,
        graph.node(source.node).info.name,
        source.index
    );
    Ok(())
}

/// One call that adds inputs.
#[derive(Clone, Copy, Debug)]
struct InputCall {
    /// Whether a list was passed.
    is_list: bool,
    /// Number of inputs after the call.
    end: usize,
    /// Number of attributes that had been set before the call.
    attrs_before: usize,
}

/// A node under construction, as `TF_NewOperation` .. `TF_FinishOperation` make it.
#[derive(Clone, Debug, Default)]
pub struct NodeBuilder {
    op: SmolStr,
    name: String,
    device: String,
    inputs: Inputs,
    calls: SmallVec<[InputCall; 2]>,
    controls: Vec<NodeId>,
    attrs: Attrs,
    colocated: Vec<String>,
    errors: Vec<String>,
    /// Errors of attributes that were set after the input that they contradict.
    late_errors: Vec<String>,
}

impl NodeBuilder {
    /// A node of an op type.
    pub fn new(op: impl Into<SmolStr>, name: impl Into<String>) -> NodeBuilder {
        NodeBuilder {
            op: op.into(),
            name: name.into(),
            ..NodeBuilder::default()
        }
    }

    /// The op type.
    pub fn op(&self) -> &str {
        &self.op
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As [`NodeBuilder::set_attr`], for building in one expression.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> NodeBuilder {
        self.set_attr(name, value);
        self
    }

    /// As [`NodeBuilder::add_input`], for building in one expression.
    pub fn input(mut self, input: OutputRef) -> NodeBuilder {
        self.add_input(input);
        self
    }

    /// As [`NodeBuilder::add_input_list`], for building in one expression.
    pub fn input_list(mut self, inputs: impl AsRef<[OutputRef]>) -> NodeBuilder {
        self.add_input_list(inputs);
        self
    }

    /// As [`NodeBuilder::add_control`], for building in one expression.
    pub fn control(mut self, node: NodeId) -> NodeBuilder {
        self.add_control(node);
        self
    }

    /// Asks for a device; the empty one is any.
    pub fn set_device(&mut self, device: impl Into<String>) {
        self.device = device.into();
    }

    /// Sets an attribute. Setting it twice to different values is an error of [`NodeBuilder::finish`]; but `_class`
    /// replaces all colocations asked for before.
    pub fn set_attr(&mut self, name: &str, value: impl Into<AttrValue>) {
        let value = value.into();
        if let ("_class", AttrValue::Strings(classes)) = (name, &value) {
            let text = |class: &bytes::Bytes| String::from_utf8_lossy(class).into_owned();
            self.colocated = classes.iter().map(text).collect();
            return;
        }
        match self.attrs.get(name) {
            Some(present) if *present != value => self.errors.push(inconsistent(name, present, &value)),
            Some(_) => {}
            None => self.attrs.set(name, value),
        }
    }

    /// Passes a single tensor to the next input argument.
    pub fn add_input(&mut self, input: OutputRef) {
        self.add_inputs(&[input], false);
    }

    /// Passes a list to the next input argument.
    pub fn add_input_list(&mut self, inputs: impl AsRef<[OutputRef]>) {
        self.add_inputs(inputs.as_ref(), true);
    }

    fn add_inputs(&mut self, inputs: &[OutputRef], is_list: bool) {
        self.inputs.extend_from_slice(inputs);
        self.calls.push(InputCall {
            is_list,
            end: self.inputs.len(),
            attrs_before: self.attrs.len(),
        });
    }

    /// Lets the node run after another.
    pub fn add_control(&mut self, node: NodeId) {
        self.controls.push(node);
    }

    /// Asks for the device of another node, by its name.
    pub fn colocate_with(&mut self, node: &str) {
        self.colocated.push(format!("loc:@{node}"));
    }

    /// Adds the node. INVALID_ARGUMENT for an unknown op, a taken name, and whatever does not fit the schema;
    /// UNIMPLEMENTED for an op removed before this graph's version. The graph is unchanged then.
    pub fn finish(mut self, graph: &mut Graph) -> Result<NodeId> {
        ensure!(
            graph.find(&self.name).is_none(),
            InvalidArgument,
            "Duplicate node name in graph: '{}'",
            self.name
        );
        if !self.colocated.is_empty() {
            self.colocated.sort();
            self.colocated.dedup();
            let classes = std::mem::take(&mut self.colocated)
                .into_iter()
                .map(bytes::Bytes::from);
            self.attrs.set("_class", classes.collect::<Vec<_>>());
        }
        let op = graph.find_op(&self.op).map_err(|error| self.unknown_op(error))?;
        self.check_outputs(graph, &op)?;
        self.infer_attrs(graph, &op)?;
        let controls = distinct(std::mem::take(&mut self.controls));
        let info = checked_info(op, self.name, self.device, self.attrs, graph.versions.producer)?;
        graph.add_inferred(info, self.inputs, controls)
    }

    #[cold]
    fn unknown_op(&self, error: Status) -> Status {
        status!(
            InvalidArgument,
            "{} while building NodeDef '{}'",
            error.message(),
            self.name
        )
    }

    /// Checks that every input is an output that exists.
    fn check_outputs(&self, graph: &Graph, op: &OpRecord) -> Result<()> {
        let mut errors = Vec::new();
        for input in &self.inputs {
            let Some(node) = graph.get(input.node) else {
                bail!(
                    InvalidArgument,
                    "Node '{}' has an input from outside its graph",
                    self.name
                );
            };
            let outputs = node.info.output_types.len();
            if input.index as usize >= outputs {
                errors.push(format!(
                    "Attempt to add output {} of {} not in range [0, {outputs}) to node with type {}. Node: {}",
                    input.index as i32,
                    node.info.name,
                    op.def.name,
                    node.info.describe()
                ));
            }
        }
        ensure!(errors.is_empty(), InvalidArgument, "{}", errors.join("\n"));
        Ok(())
    }

    /// Sets the attributes that follow from the inputs, and checks the inputs' types.
    fn infer_attrs(&mut self, graph: &Graph, op: &OpRecord) -> Result<()> {
        let args = &op.def.input_arg;
        let calls = std::mem::take(&mut self.calls);
        let explicit = self.attrs.len();
        let mut start = 0;
        for (number, call) in calls.iter().enumerate() {
            let types: SmallVec<[DataType; 4]> = self.inputs[start..call.end]
                .iter()
                .map(|input| graph.output_type(*input))
                .collect::<Result<_>>()?;
            start = call.end;
            let set_later = call.attrs_before..explicit;
            match args.get(number) {
                Some(arg) if call.is_list => self.infer_list(arg, &types, set_later),
                Some(arg) => self.infer_single(arg, types[0], set_later),
                None => self
                    .errors
                    .push(format!("More Input() calls than the {} input_args", args.len())),
            }
        }
        if calls.len() < args.len() {
            self.errors.push(format!(
                "{} inputs specified of {} inputs in Op",
                calls.len(),
                args.len()
            ));
        }
        self.report(op)
    }

    fn infer_single(&mut self, arg: &ArgDef, dtype: DataType, set_later: Range<usize>) {
        if !arg.number_attr.is_empty() || !arg.type_list_attr.is_empty() {
            self.errors
                .push(format!("Single tensor passed to '{}', expected list", arg.name));
        } else if arg.r#type != DataType::INVALID.0 {
            self.check_type(arg, DataType(arg.r#type), dtype);
        } else {
            self.check_is_ref(arg, dtype);
            self.inferred(&arg.type_attr, dtype.base(), set_later);
        }
    }

    fn infer_list(&mut self, arg: &ArgDef, types: &[DataType], set_later: Range<usize>) {
        if !arg.number_attr.is_empty() {
            self.inferred(&arg.number_attr, types.len() as i64, set_later.clone());
            let mut expected = DataType(arg.r#type);
            if let (DataType::INVALID, Some(first)) = (expected, types.first()) {
                expected = first.base();
                self.inferred(&arg.type_attr, expected, set_later);
            }
            for dtype in types {
                self.check_type(arg, expected, *dtype);
            }
        } else if !arg.type_list_attr.is_empty() {
            for dtype in types {
                self.check_is_ref(arg, *dtype);
            }
            let types: Vec<DataType> = types.iter().map(|dtype| dtype.base()).collect();
            self.inferred(&arg.type_list_attr, types, set_later);
        } else {
            self.errors.push(format!(
                "List provided to input '{}' when single Tensor expected",
                arg.name
            ));
        }
    }

    fn check_type(&mut self, arg: &ArgDef, expected: DataType, actual: DataType) {
        let expected = if arg.is_ref { expected.to_ref() } else { expected };
        if !validate::types_compatible(expected, actual) {
            self.errors.push(format!(
                "Input '{}' passed {actual} expected {expected}",
                arg.name
            ));
        }
    }

    fn check_is_ref(&mut self, arg: &ArgDef, actual: DataType) {
        if arg.is_ref && !actual.is_ref() {
            self.errors
                .push(format!("Input '{}' passed {actual} expected ref type", arg.name));
        }
    }

    /// Sets an attribute that follows from an input, unless it is set. Different values are an error; the attributes in
    /// `set_later` were set after the input, so that their value is named second.
    fn inferred(&mut self, name: &str, value: impl Into<AttrValue>, set_later: Range<usize>) {
        let value = value.into();
        let found = self.attrs.iter().enumerate().find(|(_, (key, _))| *key == name);
        match found {
            None => self.attrs.set(name, value),
            Some((_, (_, present))) if *present == value => {}
            Some((place, (_, present))) if set_later.contains(&place) => {
                // Setting the attribute is what contradicts; it did so once, however many inputs there are.
                let error = inconsistent(name, &value, present);
                if !self.late_errors.contains(&error) {
                    self.late_errors.push(error);
                }
            }
            Some((_, (_, present))) => self.errors.push(inconsistent(name, present, &value)),
        }
    }

    /// The errors of all calls as one.
    fn report(&mut self, op: &OpRecord) -> Result<()> {
        self.errors.append(&mut self.late_errors);
        match &self.errors[..] {
            [] => Ok(()),
            [error] => Err(status!(
                InvalidArgument,
                "{error} while building NodeDef '{}' using {}",
                self.name,
                summary::op(&op.def)
            )),
            errors => Err(status!(
                InvalidArgument,
                "{} errors while building NodeDef '{}' using {}:\n{}",
                errors.len(),
                self.name,
                summary::op(&op.def),
                errors.join("\n")
            )),
        }
    }
}

#[cold]
fn inconsistent(name: &str, found: &AttrValue, value: &AttrValue) -> String {
    format!(
        "Inconsistent values for attr '{name}' {} vs. {}",
        summary::attr(found),
        summary::attr(value)
    )
}

/// The same nodes, each once, in order of their first mention.
pub(crate) fn distinct(nodes: Vec<NodeId>) -> Vec<NodeId> {
    if nodes.len() < 2 {
        return nodes;
    }
    let mut seen = FxHashSet::default();
    nodes.into_iter().filter(|node| seen.insert(*node)).collect()
}

/// The function that a node calls by being of its name, if its op is not a registered one.
pub fn called_by_name(graph: &Graph, info: &NodeInfo) -> Option<FunctionRef> {
    let name = info.op_name();
    if graph.functions().is_empty() || graph.registry().find(name).is_ok() {
        return None;
    }
    graph.functions().find(name).ok()?;
    Some(info.function_of_its_name())
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
