//! Bodies of functions as graphs.

use crate::builder::{checked_info, distinct};
use crate::graph::{Inputs, PENDING};
use crate::order::by_number;
use crate::passes::Goal;
use crate::{FunctionLibrary, Graph, NodeId};
use ff_op::{
    AttrValue, Attrs, CompileRequest, FunctionRef, FunctionSignature, HandleShapes, NodeInfo, OpRecord,
    OutputRef, Registry, Shapes,
};
use ff_proto::op_def::AttrDef;
use ff_proto::{FunctionDef, NodeDef, OpDef};
use ff_tensor::{DataType, PartialShape, Result, ensure, status};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A function's body for certain attribute values.
pub struct FunctionBody {
    graph: Graph,
    arguments: Vec<OutputRef>,
    results: Vec<OutputRef>,
    targets: Vec<NodeId>,
    signature: FunctionSignature,
    request: CompileRequest,
}

impl FunctionBody {
    /// Builds the body. NOT_FOUND when the library has no such function, INVALID_ARGUMENT when its definition is
    /// wrong.
    pub fn instantiate(
        registry: &Arc<Registry>,
        library: &Arc<FunctionLibrary>,
        function: &FunctionRef,
    ) -> Result<FunctionBody> {
        Self::with_shapes(registry, library, function, &[], &[])
    }

    /// As [`FunctionBody::instantiate`], with what is known of the arguments' shapes, and of what handles among them
    /// hold.
    pub fn with_shapes(
        registry: &Arc<Registry>,
        library: &Arc<FunctionLibrary>,
        function: &FunctionRef,
        shapes: &[PartialShape],
        handles: &[Option<HandleShapes>],
    ) -> Result<FunctionBody> {
        let def = library.find(&function.name)?;
        Assembly::new(registry, library, function, &def)?.assemble(shapes, handles)
    }

    /// The gradient of a function as `SymbolicGradient` means it: arguments are the function's, then a gradient for each of
    /// its results; results are gradients of its arguments, zeros where nothing flows.
    pub fn symbolic_gradient(
        registry: &Arc<Registry>,
        library: &Arc<FunctionLibrary>,
        function: &FunctionRef,
    ) -> Result<FunctionBody> {
        let forward = Self::instantiate(registry, library, function)?;
        let (graph, incoming, results) = crate::gradient_functions::gradient_graph(&forward)?;
        let FunctionBody {
            arguments, signature, ..
        } = forward;
        let signature = FunctionSignature {
            inputs: [&signature.inputs[..], &signature.outputs].concat(),
            outputs: signature.inputs,
        };
        Ok(FunctionBody {
            graph,
            arguments: [arguments, incoming].concat(),
            results,
            targets: Vec::new(),
            signature,
            request: CompileRequest::None,
        })
    }

    /// A body that no definition stands for: `arguments` are outputs of `_Arg` nodes in `graph`.
    pub fn of_parts(
        graph: Graph,
        arguments: Vec<OutputRef>,
        results: Vec<OutputRef>,
    ) -> Result<FunctionBody> {
        let types = |values: &[OutputRef]| -> Result<Vec<DataType>> {
            values.iter().map(|value| graph.output_type(*value)).collect()
        };
        let signature = FunctionSignature {
            inputs: types(&arguments)?,
            outputs: types(&results)?,
        };
        Ok(FunctionBody {
            graph,
            arguments,
            results,
            targets: Vec::new(),
            signature,
            request: CompileRequest::None,
        })
    }

    /// Types of arguments and results.
    pub fn signature(&self) -> FunctionSignature {
        self.signature.clone()
    }

    /// One output per argument: that of its `_Arg` node.
    pub fn arguments(&self) -> &[OutputRef] {
        &self.arguments
    }

    /// What each result returns.
    pub fn results(&self) -> &[OutputRef] {
        &self.results
    }

    /// Nodes that must run although no result needs them.
    pub fn targets(&self) -> &[NodeId] {
        &self.targets
    }

    /// What is asked to be compiled of it.
    pub fn request(&self) -> CompileRequest {
        self.request
    }

    /// What a run of the body is for.
    pub fn goal(&self) -> Goal {
        Goal {
            feeds: self.arguments.clone(),
            fetches: self.results.clone(),
            targets: self.targets.clone(),
        }
    }

    /// The body.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

/// The types of a function's arguments or results, for these attribute values.
fn types(args: &[ff_proto::op_def::ArgDef], attrs: &Attrs) -> Result<Vec<DataType>> {
    let mut all = Vec::new();
    for arg in args {
        if !arg.type_list_attr.is_empty() {
            all.extend_from_slice(attrs.types(&arg.type_list_attr)?);
            continue;
        }
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
            (0..1 << 20).contains(&count),
            InvalidArgument,
            "argument '{}' of {count} inputs",
            arg.name
        );
        all.extend(std::iter::repeat_n(dtype, count as usize));
    }
    Ok(all)
}

/// The signature of a function. NOT_FOUND when the library has none of this name.
pub fn signature_of(library: &FunctionLibrary, function: &FunctionRef) -> Result<FunctionSignature> {
    let def = library.find(&function.name)?;
    let op_def = def.signature.clone().unwrap_or_default();
    let attrs = with_defaults(&op_def, &function.attrs)?;
    Ok(FunctionSignature {
        inputs: types(&op_def.input_arg, &attrs)?,
        outputs: types(&op_def.output_arg, &attrs)?,
    })
}

fn with_defaults(def: &OpDef, attrs: &Attrs) -> Result<Attrs> {
    let mut all = attrs.clone();
    for attr in &def.attr {
        if let (None, Some(value)) = (all.get(&attr.name), &attr.default_value) {
            all.set(attr.name.as_str(), AttrValue::from_proto(value)?);
        }
    }
    Ok(all)
}

/// Builds one body.
struct Assembly<'a> {
    def: &'a FunctionDef,
    op_def: OpDef,
    attrs: Attrs,
    /// What is asked to be compiled of the body; its nodes, and the functions that they call, hand it on.
    request: CompileRequest,
    signature: FunctionSignature,
    graph: Graph,
    /// The outputs that names mean: `argument`, `node:output`.
    names: FxHashMap<String, Vec<OutputRef>>,
}

impl<'a> Assembly<'a> {
    fn new(
        registry: &Arc<Registry>,
        library: &Arc<FunctionLibrary>,
        function: &FunctionRef,
        def: &'a FunctionDef,
    ) -> Result<Assembly<'a>> {
        let op_def = def.signature.clone().unwrap_or_default();
        let attrs = with_defaults(&op_def, &function.attrs)?;
        let signature = FunctionSignature {
            inputs: types(&op_def.input_arg, &attrs)?,
            outputs: types(&op_def.output_arg, &attrs)?,
        };
        let graph = Graph::with_functions(registry.clone(), library.clone());
        // A function that asks to be compiled itself is refused only where its call asks for that.
        let own = CompileRequest::of_function(def).min(CompileRequest::Clusters);
        let request = CompileRequest::of(&attrs).max(own);
        Ok(Assembly {
            def,
            op_def,
            request,
            attrs,
            signature,
            graph,
            names: FxHashMap::default(),
        })
    }

    fn assemble(mut self, shapes: &[PartialShape], handles: &[Option<HandleShapes>]) -> Result<FunctionBody> {
        let arguments = self.add_arguments(shapes, handles)?;
        self.add_nodes()?;
        let mut results = Vec::new();
        for arg in &self.op_def.output_arg {
            let name = self.def.ret.get(&arg.name);
            let name = name.ok_or_else(|| status!(InvalidArgument, "Return {} missing.", arg.name))?;
            results.extend(self.resolve(name)?);
        }
        ensure!(
            results.len() == self.signature.outputs.len(),
            InvalidArgument,
            "Function {} returns {} values, expected {}",
            self.op_def.name,
            results.len(),
            self.signature.outputs.len()
        );
        let mut targets = Vec::new();
        for node in self.def.control_ret.values() {
            let found = self.graph.find(node);
            targets.push(found.ok_or_else(|| status!(InvalidArgument, "Control return '{node}' missing."))?);
        }
        for (id, node) in self.graph.nodes() {
            if node.info.op.def.is_stateful && !node.info.op_name().starts_with('_') && !targets.contains(&id)
            {
                targets.push(id);
            }
        }
        Ok(FunctionBody {
            graph: self.graph,
            arguments,
            results,
            targets,
            signature: self.signature,
            request: self.request,
        })
    }

    fn add_arguments(
        &mut self,
        shapes: &[PartialShape],
        handles: &[Option<HandleShapes>],
    ) -> Result<Vec<OutputRef>> {
        let op = self.graph.registry().find("_Arg")?;
        let mut all = Vec::new();
        for arg in self.op_def.input_arg.clone() {
            let count = types(std::slice::from_ref(&arg), &self.attrs)?.len();
            let is_list = !arg.type_list_attr.is_empty() || !arg.number_attr.is_empty();
            let mut outputs = Vec::new();
            for i in 0..count {
                let index = all.len();
                let dtype = self.signature.inputs[index];
                let name = if is_list {
                    format!("{}_{i}", arg.name)
                } else {
                    arg.name.clone()
                };
                let attrs = Attrs::new().with("T", dtype).with("index", index as i64);
                let info = Arc::new(NodeInfo::new(name, op.clone(), String::new(), attrs)?);
                let output = OutputRef {
                    node: self.graph.add_node(info, Inputs::new(), Vec::new())?,
                    index: 0,
                };
                let shape = match shapes.get(index) {
                    Some(shape) if shape.rank().is_some() => shape.clone(),
                    _ => self.declared_shape(index),
                };
                let handle = handles.get(index).cloned().unwrap_or_default();
                self.graph
                    .set_shapes(output.node, Shapes::from_buf([shape]), vec![handle]);
                outputs.push(output);
                all.push(output);
            }
            self.names.insert(arg.name, outputs);
        }
        Ok(all)
    }

    /// What the definition says about an argument's shape.
    fn declared_shape(&self, index: usize) -> PartialShape {
        let attrs = self.def.arg_attr.get(&(index as u32));
        let attr = attrs.and_then(|attrs| attrs.attr.get("_output_shapes"));
        match attr.map(AttrValue::from_proto) {
            Some(Ok(AttrValue::Shapes(shapes))) => shapes.into_iter().next().unwrap_or_default(),
            _ => PartialShape::unknown(),
        }
    }

    /// Adds the nodes as their inputs become known; any order in the definition will do. Edges from the end of a v1 loop's
    /// turn back to its start are set at the end.
    fn add_nodes(&mut self) -> Result<()> {
        let defs = &self.def.node_def;
        let nodes: FxHashMap<&str, usize> = defs
            .iter()
            .enumerate()
            .map(|(index, node)| (node.name.as_str(), index))
            .collect();
        let mut waiting = vec![0; defs.len()];
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); defs.len()];
        for (index, node) in defs.iter().enumerate() {
            for input in &node.input {
                let source = input.trim_start_matches('^').split(':').next().unwrap_or("");
                if let Some(&from) = nodes.get(source)
                    && !is_back_edge(&defs[from], node)
                {
                    waiting[index] += 1;
                    readers[from].push(index as u32);
                }
            }
        }
        let order = by_number(waiting, &readers);
        ensure!(
            order.len() == defs.len(),
            InvalidArgument,
            "The body of function {} has a cycle",
            self.op_def.name
        );
        let mut back_edges = Vec::new();
        for index in order {
            self.add_body_node(&defs[index as usize], &mut back_edges)?;
        }
        for (id, index, name) in back_edges {
            let source = self.resolve(name)?;
            self.graph.replace_input(id, index, source[0])?;
        }
        Ok(())
    }

    /// Adds a node. Inputs that are not there yet are put off: node, input, name of the source.
    fn add_body_node(&mut self, def: &'a NodeDef, late: &mut Vec<(NodeId, usize, &'a str)>) -> Result<()> {
        let mut inputs = Vec::new();
        let mut controls = Vec::new();
        for name in &def.input {
            if let Some(control) = name.strip_prefix('^') {
                controls.push(self.control(control)?);
            } else if is_merge(def) && self.resolve(name).is_err() {
                late.push((self.graph.len() as NodeId, inputs.len(), name));
                inputs.push(PENDING);
            } else {
                inputs.extend(self.resolve(name)?);
            }
        }
        let attrs = def
            .attr
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.attr(value)?)));
        let mut attrs = attrs.collect::<Result<Attrs>>()?;
        let op = match self.without_check(&def.op)? {
            None => self.graph.find_op(&def.op)?,
            Some(op) => {
                inputs.truncate(op.def.input_arg.len());
                let value = |attr: &AttrDef| Some((attr.name.clone(), attrs.get(&attr.name)?.clone()));
                attrs = op.def.attr.iter().filter_map(value).collect();
                op
            }
        };
        self.request.write_member(&mut attrs);
        if self.request != CompileRequest::None && self.graph.functions().find_op(&def.op).is_some() {
            self.request.write(&mut attrs);
        }
        // Functions are not checked for ops that were removed.
        let info = checked_info(op, def.name.clone(), def.device.clone(), attrs, -1)?;
        let id = self.graph.add_inferred(info, inputs.into(), distinct(controls))?;
        let node = self.graph.node(id);
        for (index, arg) in node.info.op.def.output_arg.iter().enumerate() {
            let output = |index: usize| OutputRef {
                node: id,
                index: index as u32,
            };
            let outputs = node.info.output_range(index).map(output).collect();
            self.names.insert(format!("{}:{}", def.name, arg.name), outputs);
        }
        Ok(())
    }

    /// The op that takes the place of one that only checks, where all of the body is to be compiled: programs do not check.
    fn without_check(&self, op: &str) -> Result<Option<Arc<OpRecord>>> {
        let other = match op {
            "Assert" => "NoOp",
            "CheckNumerics" => "Identity",
            _ => return Ok(None),
        };
        let all = self.request == CompileRequest::Must;
        all.then(|| self.graph.registry().find(other)).transpose()
    }

    /// The node that a control input names: a node, or an argument.
    fn control(&self, name: &str) -> Result<NodeId> {
        let argument = || self.names.get(name).and_then(|outputs| outputs.first());
        let found = self
            .graph
            .find(name)
            .or_else(|| argument().map(|output| output.node));
        found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "input ^{name} is not found in function {}",
                self.op_def.name
            )
        })
    }

    /// An attribute of a body's node, where placeholders take the function's own values.
    fn attr(&self, value: &ff_proto::AttrValue) -> Result<AttrValue> {
        let substitute = |value: AttrValue| match value {
            AttrValue::Placeholder(name) => self.attrs.get(&name).cloned().ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Attr '{name}' of function {} is not set",
                    self.op_def.name
                )
            }),
            value => Ok(value),
        };
        let function = |mut function: FunctionRef| -> Result<FunctionRef> {
            let attrs = function
                .attrs
                .iter()
                .map(|(name, value)| Ok((name.to_string(), substitute(value.clone())?)));
            function.attrs = attrs.collect::<Result<Attrs>>()?;
            self.request.write(&mut function.attrs);
            Ok(function)
        };
        match substitute(AttrValue::from_proto(value)?)? {
            AttrValue::Func(inner) => Ok(AttrValue::Func(function(inner)?)),
            AttrValue::Funcs(list) => Ok(AttrValue::Funcs(
                list.into_iter().map(function).collect::<Result<_>>()?,
            )),
            value => Ok(value),
        }
    }

    /// The outputs that a name in the definition means: `argument`, `node:output` (all of a list), or with `:index`.
    fn resolve(&self, name: &str) -> Result<Vec<OutputRef>> {
        let lost = || {
            status!(
                InvalidArgument,
                "input {name} is not found in function {}",
                self.op_def.name
            )
        };
        if let Some(outputs) = self.names.get(name) {
            return Ok(outputs.clone());
        }
        let (list, index) = name.rsplit_once(':').ok_or_else(lost)?;
        let outputs = self.names.get(list).ok_or_else(lost)?;
        let output = index.parse::<usize>().ok().and_then(|index| outputs.get(index));
        Ok(vec![*output.ok_or_else(lost)?])
    }
}

fn is_merge(def: &NodeDef) -> bool {
    matches!(def.op.as_str(), "Merge" | "RefMerge")
}

fn is_back_edge(from: &NodeDef, to: &NodeDef) -> bool {
    matches!(from.op.as_str(), "NextIteration" | "RefNextIteration") && is_merge(to)
}

#[cfg(test)]
#[path = "functions_tests.rs"]
mod tests;
