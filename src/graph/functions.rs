//! Bodies of functions as graphs, and functions as shape functions of calls see them.

use crate::{FunctionLibrary, Graph, NodeId};
use ff_hlo::{Builder, Op as HloOp};
use ff_op::{
    AttrValue, Attrs, Callable, FunctionHost, FunctionRef, FunctionSignature, HandleShapes, NodeInfo,
    OutputRef, Registry,
};
use ff_proto::{FunctionDef, NodeDef, OpDef};
use ff_tensor::{DataType, PartialShape, Result, ensure, status};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::sync::Arc;

/// A function's body for certain attribute values.
pub struct FunctionBody {
    graph: Graph,
    arguments: Vec<OutputRef>,
    results: Vec<OutputRef>,
    targets: Vec<NodeId>,
    signature: FunctionSignature,
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
    signature: FunctionSignature,
    graph: Graph,
    /// First output and number of outputs of each named value: `argument`, `node:output`.
    names: FxHashMap<String, (Vec<OutputRef>, bool)>,
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
        Ok(Assembly {
            def,
            op_def,
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
                    node: self.graph.add_node(info, Vec::new(), Vec::new())?,
                    index: 0,
                };
                let shape = shapes.get(index).cloned().unwrap_or_default();
                let handle = handles.get(index).cloned().unwrap_or_default();
                self.graph.set_shapes(output.node, vec![shape], vec![handle]);
                outputs.push(output);
                all.push(output);
            }
            self.names.insert(arg.name, (outputs, true));
        }
        Ok(all)
    }

    /// Adds the nodes as their inputs become known; any order in the definition will do.
    fn add_nodes(&mut self) -> Result<()> {
        let nodes: FxHashMap<&str, usize> = self
            .def
            .node_def
            .iter()
            .enumerate()
            .map(|(index, node)| (node.name.as_str(), index))
            .collect();
        let mut waiting = vec![0; self.def.node_def.len()];
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); self.def.node_def.len()];
        for (index, node) in self.def.node_def.iter().enumerate() {
            for input in &node.input {
                let source = input.trim_start_matches('^').split(':').next().unwrap_or("");
                if let Some(&from) = nodes.get(source) {
                    waiting[index] += 1;
                    readers[from].push(index);
                }
            }
        }
        let mut ready: std::collections::VecDeque<usize> =
            (0..waiting.len()).filter(|&index| waiting[index] == 0).collect();
        let mut added = 0;
        while let Some(index) = ready.pop_front() {
            self.add_body_node(&self.def.node_def[index])?;
            added += 1;
            for &reader in &readers[index] {
                waiting[reader] -= 1;
                if waiting[reader] == 0 {
                    ready.push_back(reader);
                }
            }
        }
        ensure!(
            added == self.def.node_def.len(),
            InvalidArgument,
            "The body of function {} has a cycle",
            self.op_def.name
        );
        Ok(())
    }

    fn add_body_node(&mut self, def: &NodeDef) -> Result<()> {
        let mut inputs = Vec::new();
        let mut controls = Vec::new();
        for name in &def.input {
            match name.strip_prefix('^') {
                Some(control) => {
                    let found = self.graph.find(control).or_else(|| {
                        let (outputs, _) = self.names.get(control)?;
                        outputs.first().map(|output| output.node)
                    });
                    controls
                        .push(found.ok_or_else(|| status!(InvalidArgument, "input {name} is not found"))?);
                }
                None => inputs.extend(self.resolve(name)?),
            }
        }
        controls.sort_unstable();
        controls.dedup();
        let attrs = def
            .attr
            .iter()
            .map(|(name, value)| Ok((name.clone(), self.attr(value)?)));
        let attrs = attrs.collect::<Result<Attrs>>()?;
        let id = self
            .graph
            .add_checked(&def.op, &def.name, &def.device, attrs, inputs, controls)?;
        let node = self.graph.node(id);
        for (index, arg) in node.info.op.def.output_arg.iter().enumerate() {
            let outputs = node
                .info
                .output_range(index)
                .map(|index| OutputRef {
                    node: id,
                    index: index as u32,
                })
                .collect();
            self.names
                .insert(format!("{}:{}", def.name, arg.name), (outputs, false));
        }
        Ok(())
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
        if let Some((outputs, _)) = self.names.get(name) {
            return Ok(outputs.clone());
        }
        let (list, index) = name.rsplit_once(':').ok_or_else(lost)?;
        let (outputs, _) = self.names.get(list).ok_or_else(lost)?;
        let output = index.parse::<usize>().ok().and_then(|index| outputs.get(index));
        Ok(vec![*output.ok_or_else(lost)?])
    }
}

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// How deep shapes are inferred through calls; beyond, they are unknown.
const DEEPEST: usize = 20;

/// The functions of a library for shape inference: nothing runs.
pub struct LibraryHost<'a> {
    registry: &'a Arc<Registry>,
    library: &'a Arc<FunctionLibrary>,
}

impl<'a> LibraryHost<'a> {
    /// A host over these ops and functions.
    pub fn new(registry: &'a Arc<Registry>, library: &'a Arc<FunctionLibrary>) -> LibraryHost<'a> {
        LibraryHost { registry, library }
    }
}

impl FunctionHost for LibraryHost<'_> {
    fn signature(&self, function: &FunctionRef) -> Result<FunctionSignature> {
        signature_of(self.library, function)
    }

    fn instantiate(&self, function: &FunctionRef) -> Result<Arc<dyn Callable>> {
        Err(status!(
            Unimplemented,
            "Function {} cannot run while a graph is built",
            function.name
        ))
    }

    fn infer(
        &self,
        function: &FunctionRef,
        arguments: &[PartialShape],
        handles: &[Option<HandleShapes>],
    ) -> Result<(Vec<PartialShape>, Vec<Option<HandleShapes>>)> {
        let depth = DEPTH.get();
        if depth >= DEEPEST {
            return Ok((
                vec![PartialShape::unknown(); self.signature(function)?.outputs.len()],
                Vec::new(),
            ));
        }
        DEPTH.set(depth + 1);
        let body = FunctionBody::with_shapes(self.registry, self.library, function, arguments, handles);
        DEPTH.set(depth);
        let body = body?;
        let shapes = body
            .results()
            .iter()
            .map(|result| body.graph().output_shape(*result))
            .collect();
        let handle = |result: &OutputRef| {
            body.graph()
                .node(result.node)
                .handles
                .get(result.index as usize)
                .cloned()
                .flatten()
        };
        Ok((shapes, body.results().iter().map(handle).collect()))
    }

    fn lower(&self, function: &FunctionRef, _: &mut Builder, _: &[HloOp]) -> Result<Vec<HloOp>> {
        Err(status!(
            Unimplemented,
            "Function {} cannot be lowered while a graph is built",
            function.name
        ))
    }
}
