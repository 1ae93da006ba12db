//! Adding a node that is checked against its schema: attributes completed, types matched, shapes inferred.

use crate::schema_text::op_summary;
use crate::{Graph, NodeId};
use ff_op::{AttrValue, Attrs, FunctionRef, NodeInfo, OpRecord, OutputRef};
use ff_proto::OpDef;
use ff_proto::op_def::AttrDef;
use ff_tensor::{DataType, Result, bail, ensure, status};
use std::sync::Arc;

impl Graph {
    /// The op with this name: from the registry, or a function of this graph's library used as an op.
    pub fn find_op(&self, name: &str) -> Result<Arc<OpRecord>> {
        self.registry()
            .find(name)
            .or_else(|error| match self.functions().find(name) {
                Ok(function) => {
                    let def = function.signature.clone().unwrap_or_default();
                    Ok(Arc::new(OpRecord::schema_only(Arc::new(def))))
                }
                Err(_) => Err(error),
            })
    }

    /// Adds a node after checking it. Attributes that follow from the inputs' types, and defaults, are filled in.
    ///
    /// NOT_FOUND for an unknown op; INVALID_ARGUMENT for a bad or taken name, attributes or inputs that do not fit
    /// the schema, or shapes that do not fit the op. The graph is unchanged then.
    pub fn add_checked(
        &mut self,
        op: &str,
        name: &str,
        device: &str,
        attrs: Attrs,
        inputs: Vec<OutputRef>,
        controls: Vec<NodeId>,
    ) -> Result<NodeId> {
        let record = self.find_op(op)?;
        self.add_record(record, name, device, attrs, inputs, controls)
    }

    fn add_record(
        &mut self,
        op: Arc<OpRecord>,
        name: &str,
        device: &str,
        attrs: Attrs,
        inputs: Vec<OutputRef>,
        controls: Vec<NodeId>,
    ) -> Result<NodeId> {
        ensure!(
            is_node_name(name),
            InvalidArgument,
            "Node name contains invalid characters: '{name}'"
        );
        let types: Vec<DataType> = inputs
            .iter()
            .map(|input| self.output_type(*input))
            .collect::<Result<_>>()?;
        let info = checked_info(op, name, device, attrs, &types)?;
        let id = self.add_node(Arc::new(info), inputs, controls)?;
        if let Err(error) = self.infer_shapes(id) {
            self.remove_last();
            return Err(error);
        }
        Ok(id)
    }
}

/// A node's info after checking attributes and input types against the schema.
pub fn checked_info(
    op: Arc<OpRecord>,
    name: &str,
    device: &str,
    attrs: Attrs,
    inputs: &[DataType],
) -> Result<NodeInfo> {
    let attrs = attrs.complete(&op.def, inputs).map_err(|error| at(error, name))?;
    check_attrs(&op.def, &attrs, name)?;
    let info = NodeInfo::new(name.to_string(), op, device.to_string(), attrs)?;
    check_inputs(&info, inputs)?;
    Ok(info)
}

fn at(error: ff_tensor::Status, name: &str) -> ff_tensor::Status {
    error.suffixed(&format!("; NodeDef: {{{{node {name}}}}}"))
}

/// Whether a name is one that nodes can have: a letter, digit or dot, then also `_ - / > \`.
pub fn is_node_name(name: &str) -> bool {
    let mut characters = name.chars();
    let internal = name.starts_with('_');
    let first = characters.next();
    first.is_some_and(|c| c.is_ascii_alphanumeric() || c == '.' || internal)
        && characters.all(|c| c.is_ascii_alphanumeric() || "_.\\-/>".contains(c))
}

fn check_inputs(info: &NodeInfo, inputs: &[DataType]) -> Result<()> {
    ensure!(
        info.input_types.len() == inputs.len(),
        InvalidArgument,
        "NodeDef expected inputs '{}' do not match {} inputs specified; {}; NodeDef: {}",
        info.input_types
            .iter()
            .map(|dtype| dtype.to_string())
            .collect::<Vec<_>>()
            .join(", "),
        inputs.len(),
        op_summary(&info.op.def),
        info.describe()
    );
    for (index, (wanted, given)) in info.input_types.iter().zip(inputs).enumerate() {
        // A reference may be read where a value is wanted, not the other way round.
        let fits = given == wanted || (!wanted.is_ref() && given.base() == *wanted);
        ensure!(
            fits,
            InvalidArgument,
            "Input {index} of node {} was passed {given} from a previous node incompatible with expected {wanted}.",
            info.name
        );
    }
    Ok(())
}

/// Checks every attribute against the schema.
fn check_attrs(def: &OpDef, attrs: &Attrs, name: &str) -> Result<()> {
    for attr in &def.attr {
        match attrs.get(&attr.name) {
            Some(value) => check_attr(attr, value).map_err(|error| {
                error.suffixed(&format!(
                    "\n\t; NodeDef: {{{{node {name}}}}}; {}",
                    op_summary(def)
                ))
            })?,
            None => bail!(
                InvalidArgument,
                "NodeDef missing attr '{}' from {}; NodeDef: {{{{node {name}}}}}",
                attr.name,
                op_summary(def)
            ),
        }
    }
    for (key, _) in attrs.iter() {
        ensure!(
            key.starts_with('_') || def.attr.iter().any(|attr| attr.name == key),
            InvalidArgument,
            "NodeDef mentions attr '{key}' not in {}; NodeDef: {{{{node {name}}}}}. (Check whether your GraphDef-interpreting binary is up to date with your GraphDef-generating binary.).",
            op_summary(def)
        );
    }
    Ok(())
}

fn check_attr(attr: &AttrDef, value: &AttrValue) -> Result<()> {
    let kind = value.kind();
    let fits = match value {
        AttrValue::Placeholder(_) => true,
        AttrValue::EmptyList => attr.r#type.starts_with("list("),
        _ => kind == attr.r#type,
    };
    ensure!(
        fits,
        InvalidArgument,
        "AttrValue had value with type '{kind}' when '{}' expected\n\t for attr '{}'",
        attr.r#type,
        attr.name
    );
    if attr.has_minimum {
        let (number, what) = match value {
            AttrValue::Int(number) => (*number, "Value"),
            other => (list_length(other), "Length"),
        };
        ensure!(
            number >= attr.minimum,
            InvalidArgument,
            "{what} for attr '{}' of {number} must be at least minimum {}",
            attr.name,
            attr.minimum
        );
    }
    let Some(allowed) = &attr.allowed_values else {
        return Ok(());
    };
    let Some(ff_proto::attr_value::Value::List(allowed)) = &allowed.value else {
        return Ok(());
    };
    let types: &[DataType] = match value {
        AttrValue::Type(dtype) => std::slice::from_ref(dtype),
        AttrValue::Types(list) => list,
        _ => &[],
    };
    for dtype in types {
        ensure!(
            allowed.r#type.is_empty() || allowed.r#type.contains(&dtype.0),
            InvalidArgument,
            "Value for attr '{}' of {dtype} is not in the list of allowed values: {}",
            attr.name,
            allowed
                .r#type
                .iter()
                .map(|&number| DataType(number).to_string())
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    if let AttrValue::String(text) = value {
        let quoted = |text: &[u8]| format!("\"{}\"", String::from_utf8_lossy(text));
        ensure!(
            allowed.s.is_empty() || allowed.s.contains(text),
            InvalidArgument,
            "Value for attr '{}' of {} is not in the list of allowed values: {}",
            attr.name,
            quoted(text),
            allowed
                .s
                .iter()
                .map(|text| quoted(text))
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    Ok(())
}

fn list_length(value: &AttrValue) -> i64 {
    (match value {
        AttrValue::Strings(list) => list.len(),
        AttrValue::Ints(list) => list.len(),
        AttrValue::Floats(list) => list.len(),
        AttrValue::Bools(list) => list.len(),
        AttrValue::Types(list) => list.len(),
        AttrValue::Shapes(list) => list.len(),
        AttrValue::Tensors(list) => list.len(),
        AttrValue::Funcs(list) => list.len(),
        AttrValue::EmptyList => 0,
        _ => return i64::MAX,
    }) as i64
}

/// A node under construction, as `TF_NewOperation` .. `TF_FinishOperation` make it.
#[derive(Clone, Debug, Default)]
pub struct NodeBuilder {
    /// Op type.
    pub op: String,
    /// Name of the node.
    pub name: String,
    /// Device asked for; empty for any.
    pub device: String,
    /// Inputs in order; lists are flattened.
    pub inputs: Vec<OutputRef>,
    /// Nodes to run before.
    pub controls: Vec<NodeId>,
    /// Attributes set so far.
    pub attrs: Attrs,
    /// Names of nodes to be placed with.
    pub colocated: Vec<String>,
}

impl NodeBuilder {
    /// A node of an op type.
    pub fn new(op: impl Into<String>, name: impl Into<String>) -> NodeBuilder {
        NodeBuilder {
            op: op.into(),
            name: name.into(),
            ..NodeBuilder::default()
        }
    }

    /// Sets an attribute.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> NodeBuilder {
        self.attrs.set(name, value);
        self
    }

    /// Adds an input.
    pub fn input(mut self, input: OutputRef) -> NodeBuilder {
        self.inputs.push(input);
        self
    }

    /// Adds the node; see [`Graph::add_checked`].
    pub fn finish(mut self, graph: &mut Graph) -> Result<NodeId> {
        if !self.colocated.is_empty() {
            self.colocated.sort();
            self.colocated.dedup();
            let classes = self
                .colocated
                .iter()
                .map(|name| bytes::Bytes::from(format!("loc:@{name}")));
            self.attrs.set("_class", classes.collect::<Vec<_>>());
        }
        self.controls.sort_unstable();
        self.controls.dedup();
        graph.add_checked(
            &self.op,
            &self.name,
            &self.device,
            self.attrs,
            self.inputs,
            self.controls,
        )
    }
}

/// The function that a node calls by being of its name, if its op is not a registered one.
pub fn called_by_name(graph: &Graph, info: &NodeInfo) -> Option<FunctionRef> {
    let name = info.op_name();
    if graph.registry().find(name).is_ok() {
        return None;
    }
    graph.functions().find(name).ok()?;
    let attrs = info.attrs.iter().filter(|(key, _)| !key.starts_with('_'));
    let attrs = attrs
        .map(|(key, value)| (key.to_string(), value.clone()))
        .collect();
    Some(FunctionRef {
        name: name.to_string(),
        attrs,
    })
}

/// INVALID_ARGUMENT that a name is not an input's; used by importers.
pub fn unknown_input(node: &str, input: &str) -> ff_tensor::Status {
    status!(InvalidArgument, "Node '{node}': Unknown input node '{input}'")
}
