//! A node as its op sees it: name, attributes, and the types of its inputs and outputs.

use crate::{AttrValue, Attrs, FunctionRef, OpRecord};
use ff_tensor::{DataType, Result, ensure, status};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Types of a node's inputs or outputs. Few nodes have more than four.
pub type Types = SmallVec<[DataType; 4]>;
/// Where arguments end.
type Ends = SmallVec<[u32; 4]>;

/// What is known of a node when it is built. Immutable, shared by graph, plans and kernels.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// Unique name in its graph.
    pub name: String,
    /// The op.
    pub op: Arc<OpRecord>,
    /// The device asked for; empty for any.
    pub device: String,
    /// All attributes of the op, defaults filled in, and the underscore attributes that were set.
    pub attrs: Attrs,
    /// One type per input, references marked.
    pub input_types: Types,
    /// One type per output, references marked.
    pub output_types: Types,
    /// For a node that stands in the place of a call: the function and the node of its body. Errors name these.
    pub origin: Option<(Arc<str>, Arc<NodeInfo>)>,
    /// End of each input argument's inputs: a list argument has many.
    input_ends: Ends,
    /// End of each output argument's outputs.
    output_ends: Ends,
}

impl NodeInfo {
    /// A node of `op` with all attributes set. Types follow from the schema.
    /// INVALID_ARGUMENT when an attribute that the types depend on is missing or wrong.
    pub fn new(name: String, op: Arc<OpRecord>, device: String, attrs: Attrs) -> Result<NodeInfo> {
        let (input_types, input_ends) = argument_types(&op.def.input_arg, &attrs)?;
        let (output_types, output_ends) = argument_types(&op.def.output_arg, &attrs)?;
        Ok(NodeInfo {
            name,
            op,
            device,
            attrs,
            input_types,
            output_types,
            origin: None,
            input_ends,
            output_ends,
        })
    }

    /// The op's name.
    pub fn op_name(&self) -> &str {
        &self.op.def.name
    }

    /// The inputs of the schema's `argument`-th input argument.
    pub fn input_range(&self, argument: usize) -> Range<usize> {
        range(&self.input_ends, argument)
    }

    /// The outputs of the schema's `argument`-th output argument.
    pub fn output_range(&self, argument: usize) -> Range<usize> {
        range(&self.output_ends, argument)
    }

    /// The inputs of the input argument with this name. NOT_FOUND when there is none.
    pub fn input_range_of(&self, name: &str) -> Result<Range<usize>> {
        let index = self.op.def.input_arg.iter().position(|arg| arg.name == name);
        let index = index
            .ok_or_else(|| status!(NotFound, "Unknown input name '{name}' for op {}", self.op_name()))?;
        Ok(self.input_range(index))
    }

    /// The outputs of the output argument with this name. NOT_FOUND when there is none.
    pub fn output_range_of(&self, name: &str) -> Result<Range<usize>> {
        let index = self.op.def.output_arg.iter().position(|arg| arg.name == name);
        let index = index
            .ok_or_else(|| status!(NotFound, "Unknown output name '{name}' for op {}", self.op_name()))?;
        Ok(self.output_range(index))
    }

    /// The functions among its attributes.
    pub fn functions(&self) -> Vec<FunctionRef> {
        let mut functions = Vec::new();
        for (_, value) in self.attrs.iter() {
            match value {
                AttrValue::Func(function) => functions.push(function.clone()),
                AttrValue::Funcs(list) => functions.extend_from_slice(list),
                _ => {}
            }
        }
        functions
    }

    /// `{{node name}}`, as error messages name a node; `{{function_node f}}{{node name}}` for one of a function's body
    /// that was put in the place of a call.
    pub fn describe(&self) -> String {
        match &self.origin {
            Some((function, node)) => format!("{{{{function_node {function}}}}}{{{{node {}}}}}", node.name),
            None => format!("{{{{node {}}}}}", self.name),
        }
    }
}

fn range(ends: &[u32], argument: usize) -> Range<usize> {
    let start = if argument == 0 {
        0
    } else {
        ends[argument - 1] as usize
    };
    start..ends[argument] as usize
}

/// The types of all inputs (or outputs) and where each argument ends.
fn argument_types(args: &[ff_proto::op_def::ArgDef], attrs: &Attrs) -> Result<(Types, Ends)> {
    let mut types = Types::with_capacity(args.len());
    let mut ends = Ends::with_capacity(args.len());
    for arg in args {
        let start = types.len();
        if !arg.type_list_attr.is_empty() {
            types.extend_from_slice(attrs.types(&arg.type_list_attr)?);
        } else {
            let dtype = if arg.type_attr.is_empty() {
                DataType(arg.r#type)
            } else {
                attrs.dtype(&arg.type_attr)?
            };
            let count = if arg.number_attr.is_empty() {
                1
            } else {
                attrs.int(&arg.number_attr)?
            };
            ensure!(
                (0..=i64::from(u16::MAX) * 64).contains(&count),
                InvalidArgument,
                "Value for attr '{}' of {count} must be at least 0 and not huge",
                arg.number_attr
            );
            types.resize(start + count as usize, dtype);
        }
        if arg.is_ref {
            types[start..]
                .iter_mut()
                .for_each(|dtype| *dtype = dtype.to_ref());
        }
        ends.push(types.len() as u32);
    }
    Ok((types, ends))
}
