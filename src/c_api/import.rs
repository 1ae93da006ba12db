//! Importing GraphDefs into a graph.

use crate::TF_Status;
use crate::buffer::TF_Buffer;
use crate::ffi::{Handle, Out, Room, Text, c_count, c_string, given, given_mut};
use crate::graph::{GraphState, TF_Graph, state};
use crate::guard::{guard, quiet};
use crate::operation::{TF_Operation, TF_Output};
use ff_graph::{CONTROL, ImportOptions, ImportResults, import_graph_bytes};
use ff_op::OutputRef;
use ff_proto::Bytes;
use ff_tensor::{Result, ensure, status};
use std::ffi::{CString, c_char, c_int, c_uchar};

/// How to import. One thread at a time may change it.
#[derive(Default)]
pub struct TF_ImportGraphDefOptions {
    pub(crate) options: ImportOptions,
    /// Operations of the graph that the options name, to be checked at the import.
    operations: Vec<*const TF_Operation>,
}

/// What an import gave. It owns the arrays that its functions give out. Threads may read it at the same time.
pub struct TF_ImportGraphDefResults {
    outputs: Vec<TF_Output>,
    operations: Vec<*mut TF_Operation>,
    unused_names: Vec<*const c_char>,
    unused_indexes: Vec<c_int>,
    /// Keeps the names alive.
    _names: Vec<CString>,
}

/// New options with default values. Free them with `TF_DeleteImportGraphDefOptions`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewImportGraphDefOptions() -> Box<TF_ImportGraphDefOptions> {
    Box::default()
}

/// Frees options; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteImportGraphDefOptions(opts: Option<Box<TF_ImportGraphDefOptions>>) {
    quiet((), || {
        drop(opts);
        Ok(())
    });
}

fn change(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    change: impl FnOnce(&mut TF_ImportGraphDefOptions) -> Result<()>,
) {
    quiet((), || change(given_mut(opts, "opts")?));
}

/// Puts `prefix` and a slash before all names; empty for none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsSetPrefix(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    prefix: Text,
) {
    change(opts, |opts| {
        opts.options.prefix = prefix.or_empty().into_owned();
        Ok(())
    });
}

/// Gives a device to nodes that ask for none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsSetDefaultDevice(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    device: Text,
) {
    change(opts, |opts| {
        opts.options.default_device = device.or_empty().into_owned();
        Ok(())
    });
}

/// Whether names that are taken are made unique; otherwise they are an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsSetUniquifyNames(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    uniquify_names: c_uchar,
) {
    change(opts, |opts| {
        opts.options.uniquify_names = uniquify_names != 0;
        Ok(())
    });
}

/// Whether a prefix that is taken is made unique; otherwise it is an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsSetUniquifyPrefix(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    uniquify_prefix: c_uchar,
) {
    change(opts, |opts| {
        opts.options.uniquify_prefix = uniquify_prefix != 0;
        Ok(())
    });
}

impl TF_ImportGraphDefOptions {
    /// Remembers an operation of the graph. INVALID_ARGUMENT for NULL.
    fn node(&mut self, operation: Handle<TF_Operation>) -> Result<u32> {
        let operation = given(operation, "the operation")?;
        self.operations.push(operation);
        Ok(operation.id)
    }
}

/// An output number as the importer has it: -1 stands for a control edge.
fn index_of(index: c_int) -> Result<u32> {
    match index {
        -1 => Ok(CONTROL),
        index => {
            u32::try_from(index).map_err(|_| status!(InvalidArgument, "an output has the index {index}"))
        }
    }
}

/// Reads `dst`, an output of the graph, wherever the imported graph reads output `src_index` of `src_name`. An index of -1
/// on both sides means the operations themselves, as control inputs.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsAddInputMapping(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    src_name: Text,
    src_index: c_int,
    dst: TF_Output,
) {
    change(opts, |opts| {
        let source = (src_name.text("src_name")?.into_owned(), index_of(src_index)?);
        let output = OutputRef {
            node: opts.node(dst.operation())?,
            index: index_of(dst.index)?,
        };
        opts.options.input_map.push((source, output));
        Ok(())
    });
}

/// Waits for `dst`, an operation of the graph, wherever the imported graph waits for `src_name`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsRemapControlDependency(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    src_name: Text,
    dst: Handle<TF_Operation>,
) {
    change(opts, |opts| {
        let source = (src_name.text("src_name")?.into_owned(), CONTROL);
        let output = OutputRef {
            node: opts.node(dst)?,
            index: CONTROL,
        };
        opts.options.input_map.push((source, output));
        Ok(())
    });
}

/// Makes imported nodes wait for `oper`, an operation of the graph.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsAddControlDependency(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    oper: Handle<TF_Operation>,
) {
    change(opts, |opts| {
        let node = opts.node(oper)?;
        opts.options.control_dependencies.push(node);
        Ok(())
    });
}

/// Asks for an output of the imported graph, by its name there; if it is mapped, for what it is mapped to.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsAddReturnOutput(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    oper_name: Text,
    index: c_int,
) {
    change(opts, |opts| {
        let id = (oper_name.text("oper_name")?.into_owned(), index_of(index)?);
        opts.options.return_outputs.push(id);
        Ok(())
    });
}

/// How many outputs were asked for.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsNumReturnOutputs(opts: Option<&TF_ImportGraphDefOptions>) -> c_int {
    opts.map_or(0, |opts| c_count(opts.options.return_outputs.len()))
}

/// Asks for an operation of the imported graph, by its name there.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsAddReturnOperation(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    oper_name: Text,
) {
    change(opts, |opts| {
        let name = oper_name.text("oper_name")?.into_owned();
        opts.options.return_nodes.push(name);
        Ok(())
    });
}

/// How many operations were asked for.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsNumReturnOperations(
    opts: Option<&TF_ImportGraphDefOptions>,
) -> c_int {
    opts.map_or(0, |opts| c_count(opts.options.return_nodes.len()))
}

/// Imports a serialized GraphDef.
fn import(
    state: &GraphState,
    graph_def: Option<&TF_Buffer>,
    options: Option<&TF_ImportGraphDefOptions>,
) -> Result<ImportResults> {
    let bytes = Bytes::copy_from_slice(given(graph_def, "graph_def")?.bytes()?);
    let defaults = TF_ImportGraphDefOptions::default();
    let options = options.unwrap_or(&defaults);
    for operation in &options.operations {
        // SAFETY: C code names operations of graphs that live.
        state.node_of(unsafe { operation.as_ref() })?;
    }
    import_graph_bytes(&mut state.lock(), &bytes, &options.options)
}

/// Adds the operations of a serialized `GraphDef` to a graph, all or none. NULL options are the defaults.
///
/// INVALID_ARGUMENT for other bytes, names that are taken, operations that do not fit their ops, inputs that are not there;
/// NOT_FOUND for an op that is not known.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphImportGraphDef(
    graph: Handle<TF_Graph>,
    graph_def: Option<&TF_Buffer>,
    options: Option<&TF_ImportGraphDefOptions>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || import(state(graph)?, graph_def, options).map(|_| ()));
}

/// As `TF_GraphImportGraphDef`, and writes the outputs that the options ask for: `num_return_outputs` must be their number.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphImportGraphDefWithReturnOutputs(
    graph: Handle<TF_Graph>,
    graph_def: Option<&TF_Buffer>,
    options: Option<&TF_ImportGraphDefOptions>,
    return_outputs: Room<TF_Output>,
    num_return_outputs: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let expected = TF_ImportGraphDefOptionsNumReturnOutputs(options);
        ensure!(
            num_return_outputs == expected,
            InvalidArgument,
            "Expected 'num_return_outputs' to be {expected}, got {num_return_outputs}"
        );
        ensure!(
            expected == 0 || !return_outputs.at(0).is_null(),
            InvalidArgument,
            "'return_outputs' must be preallocated to length {num_return_outputs}"
        );
        let state = state(graph)?;
        let results = import(state, graph_def, options)?;
        let outputs = results.return_outputs.iter().map(|output| state.output(*output));
        return_outputs.write(num_return_outputs, outputs);
        Ok(())
    });
}

/// As `TF_GraphImportGraphDef`, and gives what the options ask for. Free the results with
/// `TF_DeleteImportGraphDefResults`; NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphImportGraphDefWithResults(
    graph: Handle<TF_Graph>,
    graph_def: Option<&TF_Buffer>,
    options: Option<&TF_ImportGraphDefOptions>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_ImportGraphDefResults>> {
    guard(status, || import_with_results(graph, graph_def, options))
}

fn import_with_results(
    graph: Handle<TF_Graph>,
    graph_def: Option<&TF_Buffer>,
    options: Option<&TF_ImportGraphDefOptions>,
) -> Result<Option<Box<TF_ImportGraphDefResults>>> {
    let state = state(graph)?;
    let results = import(state, graph_def, options)?;
    let unused = &results.missing_unused_keys;
    let names: Vec<CString> = unused.iter().map(|(name, _)| c_string(name)).collect();
    Ok(Some(Box::new(TF_ImportGraphDefResults {
        outputs: results
            .return_outputs
            .iter()
            .map(|it| state.output(*it))
            .collect(),
        operations: results
            .return_nodes
            .iter()
            .map(|it| state.operation(*it))
            .collect(),
        unused_names: names.iter().map(|name| name.as_ptr()).collect(),
        unused_indexes: unused.iter().map(|(_, index)| *index as c_int).collect(),
        _names: names,
    })))
}

/// As `TF_GraphImportGraphDefWithResults`. The reference takes the address of one of its own C++ messages here; a message of
/// this library is its serialized form, and so that is what the buffer must hold.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphImportGraphDefWithResultsNoSerialization(
    graph: Handle<TF_Graph>,
    graph_def: Option<&TF_Buffer>,
    options: Option<&TF_ImportGraphDefOptions>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_ImportGraphDefResults>> {
    guard(status, || import_with_results(graph, graph_def, options))
}

/// Gives out an array of the results.
fn array<T>(elements: &mut [T], count: Out<c_int>, start: Out<*mut T>) {
    if let Some(count) = count {
        count.write(c_count(elements.len()));
    }
    if let Some(start) = start {
        start.write(elements.as_mut_ptr());
    }
}

/// The outputs that were asked for, in that order. The array belongs to the results.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefResultsReturnOutputs(
    results: Option<&mut TF_ImportGraphDefResults>,
    num_outputs: Out<c_int>,
    outputs: Out<*mut TF_Output>,
) {
    quiet((), || {
        let none = &mut [][..];
        array(
            results.map_or(none, |it| &mut it.outputs[..]),
            num_outputs,
            outputs,
        );
        Ok(())
    });
}

/// The operations that were asked for, in that order. The array belongs to the results.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefResultsReturnOperations(
    results: Option<&mut TF_ImportGraphDefResults>,
    num_opers: Out<c_int>,
    opers: Out<*mut *mut TF_Operation>,
) {
    quiet((), || {
        let none = &mut [][..];
        array(
            results.map_or(none, |it| &mut it.operations[..]),
            num_opers,
            opers,
        );
        Ok(())
    });
}

/// The keys of input mappings that mapped nothing because the imported graph has no such output: names and output numbers.
/// The arrays belong to the results.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefResultsMissingUnusedInputMappings(
    results: Option<&mut TF_ImportGraphDefResults>,
    num_missing_unused_input_mappings: Out<c_int>,
    src_names: Out<*mut *const c_char>,
    src_indexes: Out<*mut c_int>,
) {
    quiet((), || {
        let (names, indexes) = match results {
            Some(it) => (&mut it.unused_names[..], &mut it.unused_indexes[..]),
            None => (&mut [][..], &mut [][..]),
        };
        array(names, num_missing_unused_input_mappings, src_names);
        array(indexes, None, src_indexes);
        Ok(())
    });
}

/// Frees results; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteImportGraphDefResults(results: Option<Box<TF_ImportGraphDefResults>>) {
    quiet((), || {
        drop(results);
        Ok(())
    });
}
