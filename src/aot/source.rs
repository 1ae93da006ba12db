//! What is compiled: a graph with a session that holds its variables, its inputs and its outputs.

use crate::names::tensor_name;
use ff_graph::{Graph, ImportOptions, import_graph_bytes};
use ff_op::OutputRef;
use ff_proto::tensor_info::Encoding;
use ff_proto::{Bytes, SignatureDef, TensorInfo};
use ff_runtime::{Session, SessionOptions, SharedGraph, load_saved_model};
use ff_tensor::{DataType, PartialShape, Result, bail, ensure, status};
use parking_lot::Mutex;
use std::sync::Arc;

/// An input or output of a model.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its name in the signature; that of the tensor where there is none.
    pub name: String,
    /// The tensor, `node:output`.
    pub tensor: String,
    /// The element type.
    pub dtype: DataType,
    /// The shape that the model states.
    pub shape: PartialShape,
}

impl Value {
    /// Whether a client means this value: by its name, its tensor's, or its node's.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let node = self.tensor.strip_suffix(":0");
        self.name == name || self.tensor == name || node == Some(name)
    }
}

/// See the module.
pub struct Source {
    pub(crate) graph: Arc<SharedGraph>,
    pub(crate) session: Session,
    /// Inputs, in the order of arguments.
    pub inputs: Vec<Value>,
    /// Outputs, in the order of results.
    pub outputs: Vec<Value>,
    pub(crate) feeds: Vec<OutputRef>,
    pub(crate) fetches: Vec<OutputRef>,
}

impl Source {
    /// A signature of the meta graph with these tags in a SavedModel's folder. Inputs and outputs come in the order of
    /// their names.
    ///
    /// The errors of loading; NOT_FOUND for a signature that the model does not have, with those that it has.
    pub fn saved_model(directory: &str, tags: &[String], signature: &str) -> Result<Source> {
        let graph = empty();
        let loaded = load_saved_model(graph.clone(), directory, tags, SessionOptions::default(), None)?;
        let definitions = &loaded.meta_graph.signature_def;
        let found = definitions.get(signature).ok_or_else(|| {
            let names: Vec<&str> = definitions.keys().map(String::as_str).collect();
            status!(
                NotFound,
                "The model has no signature {signature:?}; it has {}",
                names.join(", ")
            )
        })?;
        let (inputs, outputs) = values_of(found)?;
        Source::of_parts(graph, loaded.session, inputs, outputs)
    }

    /// Part of a GraphDef: from the tensors `feeds` to the tensors `fetches`, each `node` or `node:output`.
    ///
    /// INVALID_ARGUMENT for other bytes, NOT_FOUND for a tensor that is not in the graph.
    pub fn graph_def(bytes: Vec<u8>, feeds: &[String], fetches: &[String]) -> Result<Source> {
        let graph = empty();
        import_graph_bytes(&mut graph.lock(), &Bytes::from(bytes), &ImportOptions::default())?;
        let session = Session::new(graph.clone(), SessionOptions::default())?;
        let values = |names: &[String]| -> Result<Vec<Value>> {
            let graph = graph.lock();
            names.iter().map(|name| value_of(&graph, name)).collect()
        };
        let (inputs, outputs) = (values(feeds)?, values(fetches)?);
        Source::of_parts(graph.clone(), session, inputs, outputs)
    }

    fn of_parts(
        graph: Arc<SharedGraph>,
        session: Session,
        inputs: Vec<Value>,
        outputs: Vec<Value>,
    ) -> Result<Source> {
        ensure!(
            !outputs.is_empty(),
            InvalidArgument,
            "There is nothing to compile: no output was named"
        );
        let refs = |values: &[Value]| -> Result<Vec<OutputRef>> {
            let graph = graph.lock();
            values.iter().map(|value| output(&graph, &value.tensor)).collect()
        };
        let (feeds, fetches) = (refs(&inputs)?, refs(&outputs)?);
        for (index, feed) in feeds.iter().enumerate() {
            ensure!(
                !feeds[..index].contains(feed),
                InvalidArgument,
                "Tensor {} is named as two inputs",
                inputs[index].tensor
            );
        }
        for value in inputs.iter().chain(&outputs) {
            ensure!(
                value.dtype.is_plain(),
                Unimplemented,
                "{:?} holds elements of type {}: only numbers can be compiled",
                value.name,
                value.dtype
            );
        }
        Ok(Source {
            graph,
            session,
            inputs,
            outputs,
            feeds,
            fetches,
        })
    }
}

fn empty() -> Arc<SharedGraph> {
    Arc::new(Mutex::new(Graph::new(ff_ops::registry())))
}

fn output(graph: &Graph, name: &str) -> Result<OutputRef> {
    let (node, index) = tensor_name(name)?;
    let found = graph.find(node);
    let node = found.ok_or_else(|| status!(NotFound, "The graph has no node {node:?}"))?;
    let outputs = graph.node(node).info.output_types.len();
    ensure!(
        (index as usize) < outputs,
        NotFound,
        "Node {:?} has {outputs} outputs, so there is no {name:?}",
        graph.node(node).info.name
    );
    Ok(OutputRef { node, index })
}

fn value_of(graph: &Graph, name: &str) -> Result<Value> {
    let found = output(graph, name)?;
    let (node, index) = tensor_name(name)?;
    Ok(Value {
        name: node.to_string(),
        tensor: format!("{node}:{index}"),
        dtype: graph.output_type(found)?.base(),
        shape: graph.output_shape(found),
    })
}

fn values_of(signature: &SignatureDef) -> Result<(Vec<Value>, Vec<Value>)> {
    let values = |infos: &mut dyn Iterator<Item = (&String, &TensorInfo)>| -> Result<Vec<Value>> {
        infos.map(|(name, info)| of_info(name, info)).collect()
    };
    Ok((
        values(&mut signature.inputs.iter())?,
        values(&mut signature.outputs.iter())?,
    ))
}

fn of_info(name: &str, info: &TensorInfo) -> Result<Value> {
    let Some(Encoding::Name(tensor)) = &info.encoding else {
        bail!(
            Unimplemented,
            "{name:?} is no dense tensor, which cannot be compiled"
        );
    };
    let shape = match &info.tensor_shape {
        Some(shape) => PartialShape::from_proto(shape)?,
        None => PartialShape::unknown(),
    };
    Ok(Value {
        name: name.to_string(),
        tensor: tensor.clone(),
        dtype: DataType(info.dtype),
        shape,
    })
}
