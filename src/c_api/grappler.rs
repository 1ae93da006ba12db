//! What graph optimizers of plug-ins ask about the graph that they get: names, inferred shapes, definitions of ops.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, fill};
use crate::ffi::{Handle, Out, Room, Text, c_count, given, given_mut, put};
use crate::guard::{guard, quiet};
use ff_graph::passes::plugin::Item;
use ff_graph::{Graph, ImportOptions, NodeId, constant_value, import_graph_def};
use ff_op::OutputRef;
use ff_ops::registry;
use ff_proto::{GraphDef, TensorProto, TensorShapeProto};
use ff_tensor::{PartialShape, Result, ensure};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uchar, c_void};

/// A graph with what is fed and fetched of it; the library's, valid during the call that gave it. Threads may read it at
/// the same time.
pub struct TF_GrapplerItem(pub(crate) Item);

/// What is known of the inputs and outputs of a graph's nodes. One thread at a time may use it.
pub struct TF_GraphProperties {
    item: *const TF_GrapplerItem,
    nodes: BTreeMap<String, NodeProperties>,
}

#[derive(Default)]
struct NodeProperties {
    inputs: Vec<TensorProperties>,
    outputs: Vec<TensorProperties>,
}

/// The message `OpInfo.TensorProperties`.
#[derive(Clone, PartialEq, ::prost::Message)]
struct TensorProperties {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<TensorShapeProto>,
    #[prost(message, optional, tag = "3")]
    value: Option<TensorProto>,
}

/// The functions of a graph, and all ops. Threads may use it at the same time.
pub struct TF_FunctionLibraryDefinition {
    graph: GraphDef,
}

fn size_of_list(names: &[String], num_values: Out<c_int>, storage_size: Out<usize>) -> Result<()> {
    put(num_values, c_count(names.len()), "num_values")?;
    put(storage_size, names.iter().map(String::len).sum(), "storage_size")
}

/// Writes addresses and lengths of names whose bytes go one after the other into `storage`.
fn write_list(
    names: &[String],
    values: Room<*mut c_char>,
    lengths: Room<usize>,
    num_values: c_int,
    storage: *mut c_void,
    storage_size: usize,
) -> Result<()> {
    let count = names.len().min(usize::try_from(num_values).unwrap_or(0));
    ensure!(
        count == 0 || !(values.is_null() || lengths.is_null()),
        InvalidArgument,
        "values or lengths is NULL"
    );
    let mut used = 0;
    let mut starts = Vec::with_capacity(count);
    for name in &names[..count] {
        ensure!(
            name.len() <= storage_size - used && (name.is_empty() || !storage.is_null()),
            InvalidArgument,
            "Not enough storage to hold the requested list of nodes"
        );
        let start: *mut c_char = storage.wrapping_byte_add(used).cast();
        // SAFETY: C vouches for room for `storage_size` bytes, of which this many are left.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr().cast(), start, name.len()) };
        starts.push(start);
        used += name.len();
    }
    lengths.write(num_values, names[..count].iter().map(String::len));
    values.write(num_values, starts);
    Ok(())
}

/// Writes how many nodes an optimizer must leave as they are, because they are fed or fetched, and the bytes of their names.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetNodesToPreserveListSize(
    item: Option<&TF_GrapplerItem>,
    num_values: Out<c_int>,
    storage_size: Out<usize>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        size_of_list(
            &given(item, "item")?.0.nodes_to_preserve(),
            num_values,
            storage_size,
        )
    });
}

/// Writes addresses and lengths of those names, `num_values` at most; their bytes go into `storage`, without zero bytes
/// between them. INVALID_ARGUMENT when it has too little room.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetNodesToPreserveList(
    item: Option<&TF_GrapplerItem>,
    values: Room<*mut c_char>,
    lengths: Room<usize>,
    num_values: c_int,
    storage: *mut c_void,
    storage_size: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let names = given(item, "item")?.0.nodes_to_preserve();
        write_list(&names, values, lengths, num_values, storage, storage_size)
    });
}

/// Writes how many outputs are fetched and nodes run, and the bytes of their names.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetFetchNodesListSize(
    item: Option<&TF_GrapplerItem>,
    num_values: Out<c_int>,
    storage_size: Out<usize>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        size_of_list(&given(item, "item")?.0.fetches, num_values, storage_size)
    });
}

/// Writes addresses and lengths of those names, as `TF_GetNodesToPreserveList` does.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetFetchNodesList(
    item: Option<&TF_GrapplerItem>,
    values: Room<*mut c_char>,
    lengths: Room<usize>,
    num_values: c_int,
    storage: *mut c_void,
    storage_size: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let names = &given(item, "item")?.0.fetches;
        write_list(names, values, lengths, num_values, storage, storage_size)
    });
}

/// What is known of a graph, nothing at first. The item must outlive it. Free it with `TF_DeleteGraphProperties`. NULL for
/// NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewGraphProperties(item: Option<&TF_GrapplerItem>) -> Option<Box<TF_GraphProperties>> {
    quiet(None, || {
        Ok(Some(Box::new(TF_GraphProperties {
            item: given(item, "item")?,
            nodes: BTreeMap::new(),
        })))
    })
}

/// Frees what is known of a graph; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteGraphProperties(graph_properties: Option<Box<TF_GraphProperties>>) {
    quiet((), || {
        drop(graph_properties);
        Ok(())
    });
}

/// Infers types and shapes of the inputs and outputs of the graph; an extent that is not known is -1. Fed outputs have unknown shapes unless
/// `assume_valid_feeds`; with `include_input_tensor_values` or `include_output_tensor_values`, the values of constants are
/// there, too. `aggressive_shape_inference` changes nothing: constants are always folded.
#[unsafe(no_mangle)]
pub extern "C" fn TF_InferStatically(
    graph_properties: Option<&mut TF_GraphProperties>,
    assume_valid_feeds: c_uchar,
    _aggressive_shape_inference: c_uchar,
    include_input_tensor_values: c_uchar,
    include_output_tensor_values: c_uchar,
    s: Option<&mut TF_Status>,
) {
    guard(s, || {
        let properties = given_mut(graph_properties, "graph_properties")?;
        // SAFETY: the item outlives what is known of it.
        let item = unsafe { &(*properties.item).0 };
        let mut def = item.graph.clone();
        if assume_valid_feeds == 0 {
            forget_fed_shapes(&mut def, item);
        }
        let mut graph = Graph::new(registry().clone());
        import_graph_def(&mut graph, def, &ImportOptions::default())?;
        properties.nodes = graph
            .nodes()
            .map(|(id, node)| {
                let known = node_properties(
                    &graph,
                    id,
                    include_input_tensor_values != 0,
                    include_output_tensor_values != 0,
                );
                (node.info.name.clone(), known)
            })
            .collect();
        Ok(())
    });
}

/// Takes the shape off fed placeholders, so that what follows from it is unknown, too.
fn forget_fed_shapes(def: &mut GraphDef, item: &Item) {
    for node in &mut def.node {
        let is_fed = |feed: &String| feed.split(':').next() == Some(node.name.as_str());
        if node.op == "Placeholder" && item.feeds.iter().any(is_fed) {
            node.attr.remove("shape");
            node.attr.remove("_output_shapes");
        }
    }
}

fn node_properties(graph: &Graph, id: NodeId, input_values: bool, output_values: bool) -> NodeProperties {
    let node = graph.node(id);
    let outputs = (0..node.info.output_types.len() as u32).map(|index| OutputRef { node: id, index });
    NodeProperties {
        inputs: node
            .inputs
            .iter()
            .map(|input| tensor_properties(graph, *input, input_values))
            .collect(),
        outputs: outputs
            .map(|output| tensor_properties(graph, output, output_values))
            .collect(),
    }
}

fn tensor_properties(graph: &Graph, output: OutputRef, with_value: bool) -> TensorProperties {
    let shape: PartialShape = graph.output_shape(output);
    let value = with_value.then(|| constant_value(graph, output)).flatten();
    TensorProperties {
        dtype: graph.output_type(output).map_or(0, |dtype| dtype.0),
        shape: Some(shape.to_proto()),
        value: value.map(|value| value.to_proto()),
    }
}

impl TF_GraphProperties {
    /// What is known of a node: nothing where there is no such node.
    fn of(&self, name: &str, inputs: bool) -> &[TensorProperties] {
        match self.nodes.get(name) {
            Some(node) if inputs => &node.inputs,
            Some(node) => &node.outputs,
            None => &[],
        }
    }
}

fn property_count(
    properties: Option<&mut TF_GraphProperties>,
    name: Text,
    inputs: bool,
    num_values: Out<c_int>,
) -> Result<()> {
    let properties = given(properties.as_deref(), "graph_properties")?;
    let count = properties.of(&name.text("name")?, inputs).len();
    put(num_values, c_count(count), "num_values")
}

fn property_list(
    properties: Option<&mut TF_GraphProperties>,
    name: Text,
    inputs: bool,
    buffers: Room<*mut TF_Buffer>,
    num_values: c_int,
) -> Result<()> {
    let known = given(properties.as_deref(), "graph_properties")?;
    let known = known.of(&name.text("name")?, inputs);
    let count = known.len().min(usize::try_from(num_values).unwrap_or(0));
    let buffers = buffers.of(c_count(count), "properties")?;
    for (message, buffer) in known.iter().zip(buffers) {
        // SAFETY: NULL, or a buffer of the caller's that lives for the call.
        fill(unsafe { buffer.as_mut() }, message)?;
    }
    Ok(())
}

/// Writes the number of inputs of a node; 0 for a name that no node has, or before `TF_InferStatically`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetInputPropertiesListSize(
    graph_properties: Option<&mut TF_GraphProperties>,
    name: Text,
    num_values: Out<c_int>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        property_count(graph_properties, name, true, num_values)
    });
}

/// Writes the number of outputs of a node; 0 likewise.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetOutputPropertiesListSize(
    graph_properties: Option<&mut TF_GraphProperties>,
    name: Text,
    num_values: Out<c_int>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        property_count(graph_properties, name, false, num_values)
    });
}

/// Writes what is known of the inputs of a node, `num_values` at most, as serialized `OpInfo.TensorProperties` into empty
/// buffers of the caller's. INVALID_ARGUMENT for a buffer that is not empty.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetInputPropertiesList(
    graph_properties: Option<&mut TF_GraphProperties>,
    name: Text,
    properties: Room<*mut TF_Buffer>,
    num_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        property_list(graph_properties, name, true, properties, num_values)
    });
}

/// Writes what is known of the outputs of a node, likewise.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetOutputPropertiesList(
    graph_properties: Option<&mut TF_GraphProperties>,
    name: Text,
    properties: Room<*mut TF_Buffer>,
    num_values: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        property_list(graph_properties, name, false, properties, num_values)
    });
}

/// The functions of a serialized GraphDef, and all ops. Free it with `TF_DeleteFunctionLibraryDefinition`. NULL with
/// INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewFunctionLibraryDefinition(
    graph_buf: Option<&TF_Buffer>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_FunctionLibraryDefinition>> {
    guard(status, || {
        let mut graph: GraphDef = given(graph_buf, "graph_buf")?.decode("Unparseable proto")?;
        graph.node.clear();
        Ok(Some(Box::new(TF_FunctionLibraryDefinition { graph })))
    })
}

/// Frees a library; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteFunctionLibraryDefinition(fn_lib: Option<Box<TF_FunctionLibraryDefinition>>) {
    quiet((), || {
        drop(fn_lib);
        Ok(())
    });
}

/// Writes the definition of an op, or of a function as an op, as a serialized `OpDef` into an empty buffer. NOT_FOUND when
/// there is none of this name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_LookUpOpDef(
    fn_lib: Handle<TF_FunctionLibraryDefinition>,
    name: Text,
    buf: Option<&mut TF_Buffer>,
    s: Option<&mut TF_Status>,
) {
    guard(s, || {
        let library = given(fn_lib, "fn_lib")?;
        let name = name.text("name")?;
        let functions = library.graph.library.iter().flat_map(|library| &library.function);
        let mut signatures = functions.filter_map(|function| function.signature.as_ref());
        if let Some(signature) = signatures.find(|signature| signature.name == *name) {
            return fill(buf, signature);
        }
        let op = registry().find(&name)?;
        fill(buf, &*op.def)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    fn item() -> TF_GrapplerItem {
        TF_GrapplerItem(Item {
            feeds: vec!["input:0".to_string()],
            fetches: vec!["result:0".to_string(), "init".to_string()],
            ..Item::default()
        })
    }

    #[test]
    fn names_lie_one_after_the_other() {
        let item = item();
        let mut status = TF_Status::default();
        let mut storage = [0u8; 17];
        let (mut values, mut lengths) = ([null_mut(); 3], [0; 3]);
        TF_GetNodesToPreserveList(
            Some(&item),
            Room::new(&mut values),
            Room::new(&mut lengths),
            3,
            storage.as_mut_ptr().cast(),
            storage.len(),
            Some(&mut status),
        );
        assert!(status.error().is_none());
        assert_eq!(&storage[..15], b"initinputresult");
        assert_eq!(lengths, [4, 5, 6]);
    }

    #[test]
    fn too_little_storage_is_an_error() {
        let item = item();
        let mut status = TF_Status::default();
        let mut storage = [0u8; 10];
        let (mut values, mut lengths) = ([null_mut(); 2], [0; 2]);
        TF_GetFetchNodesList(
            Some(&item),
            Room::new(&mut values),
            Room::new(&mut lengths),
            2,
            storage.as_mut_ptr().cast(),
            storage.len(),
            Some(&mut status),
        );
        assert_eq!(crate::TF_GetCode(Some(&status)).0, 3);
    }

    #[test]
    fn ops_are_looked_up() {
        let library = TF_FunctionLibraryDefinition {
            graph: GraphDef::default(),
        };
        let mut status = TF_Status::default();
        let mut buffer = TF_Buffer::empty();
        TF_LookUpOpDef(
            Some(&library),
            Text::new(c"MatMul"),
            Some(&mut buffer),
            Some(&mut status),
        );
        assert!(status.error().is_none() && buffer.length > 0);
        TF_LookUpOpDef(
            Some(&library),
            Text::new(c"None"),
            Some(&mut buffer),
            Some(&mut status),
        );
        assert_eq!(crate::TF_GetCode(Some(&status)).0, 5);
        crate::TF_DeleteBuffer(Some(Box::new(buffer)));
    }
}
