//! `TF_Function`: a function of a graph's library.

use crate::TF_Status;
use crate::attr_set::decode_value;
use crate::buffer::{TF_Buffer, decode, fill};
use crate::ffi::{Array, Blob, Handle, Room, Text, c_count, c_string, given, given_mut};
use crate::graph::{TF_Graph, state};
use crate::guard::{guard, guard_or, quiet};
use crate::operation::{TF_Operation, TF_Output};
use ff_graph::{FunctionSource, graph_to_function};
use ff_proto::FunctionDef;
use ff_tensor::{Result, ensure, status};
use std::ffi::{CString, c_char, c_int, c_uchar};
use std::ptr::null;
use std::sync::Arc;

/// A function: operations with inputs and outputs, to be used as an op of its name. Threads may read one function at the
/// same time.
pub struct TF_Function {
    def: Arc<FunctionDef>,
    name: CString,
}

/// Options of functions: there are none yet. Threads may read them at the same time.
pub struct TF_FunctionOptions {
    _private: [u8; 0],
}

/// The first GraphDef version of which consumers know functions.
const FUNCTIONS_SINCE: i32 = 12;

impl TF_Function {
    /// The function.
    pub fn def(&self) -> &Arc<FunctionDef> {
        &self.def
    }

    /// The handle of a function.
    pub fn boxed(def: Arc<FunctionDef>) -> Box<TF_Function> {
        let name = def.signature.as_ref().map(|signature| c_string(&signature.name));
        Box::new(TF_Function {
            name: name.unwrap_or_default(),
            def,
        })
    }
}

/// Makes a function of operations of `fn_body`.
///
/// With `num_opers` -1 the body is all operations but those that give the `inputs`; otherwise the `opers`. `outputs` are
/// what it returns, under `output_names` if those are given. With `append_hash_to_fn_name` the name gets a hash of the
/// function at its end. Free the function with `TF_DeleteFunction`.
///
/// NULL with INVALID_ARGUMENT for inputs or outputs that are not of the graph, inputs given twice, or an operation that
/// reads something that is neither in the body nor an input.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphToFunction(
    fn_body: Option<&TF_Graph>,
    fn_name: Text,
    append_hash_to_fn_name: c_uchar,
    num_opers: c_int,
    opers: Array<Option<&TF_Operation>>,
    ninputs: c_int,
    inputs: Array<TF_Output>,
    noutputs: c_int,
    outputs: Array<TF_Output>,
    output_names: Array<Text>,
    opts: Option<&TF_FunctionOptions>,
    description: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Function>> {
    TF_GraphToFunctionWithControlOutputs(
        fn_body,
        fn_name,
        append_hash_to_fn_name,
        num_opers,
        opers,
        ninputs,
        inputs,
        noutputs,
        outputs,
        output_names,
        0,
        Array::new(&[]),
        Array::new(&[]),
        opts,
        description,
        status,
    )
}

/// As `TF_GraphToFunction`, with operations that a call of the function must run: `control_outputs`, under
/// `control_output_names` or their own names.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphToFunctionWithControlOutputs(
    fn_body: Option<&TF_Graph>,
    fn_name: Text,
    append_hash_to_fn_name: c_uchar,
    num_opers: c_int,
    opers: Array<Option<&TF_Operation>>,
    ninputs: c_int,
    inputs: Array<TF_Output>,
    noutputs: c_int,
    outputs: Array<TF_Output>,
    output_names: Array<Text>,
    ncontrol_outputs: c_int,
    control_outputs: Array<Option<&TF_Operation>>,
    control_output_names: Array<Text>,
    _opts: Option<&TF_FunctionOptions>,
    description: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Function>> {
    guard(status, || {
        let state = state(fn_body)?;
        let body = match num_opers {
            -1 => None,
            count => Some(state.nodes_of(opers.of(count, "opers")?)?),
        };
        let names = |names: Array<Text>, count| -> Result<Vec<String>> {
            if names.is_null() {
                return Ok(Vec::new());
            }
            let names = names.of(count, "names")?.iter();
            names.map(|name| Ok(name.text("a name")?.into_owned())).collect()
        };
        let source = FunctionSource {
            name: fn_name.text("fn_name")?.into_owned(),
            append_hash: append_hash_to_fn_name != 0,
            description: description.or_empty().into_owned(),
            body,
            inputs: state.outputs_of(inputs.of(ninputs, "inputs")?)?,
            outputs: state.outputs_of(outputs.of(noutputs, "outputs")?)?,
            output_names: names(output_names, noutputs)?,
            control_outputs: state.nodes_of(control_outputs.of(ncontrol_outputs, "control_outputs")?)?,
            control_output_names: names(control_output_names, ncontrol_outputs)?,
        };
        let def = graph_to_function(&state.lock(), source)?;
        Ok(Some(TF_Function::boxed(Arc::new(def))))
    })
}

/// The name. The string lives as long as the function; NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FunctionName(func: Handle<TF_Function>) -> *const c_char {
    func.map_or(null(), |func| func.name.as_ptr())
}

/// Writes the function as a serialized `FunctionDef` into an empty buffer.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FunctionToFunctionDef(
    func: Handle<TF_Function>,
    output_func_def: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || fill(output_func_def, &*given(func, "func")?.def));
}

/// A function from a serialized `FunctionDef`; free it with `TF_DeleteFunction`. NULL with INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FunctionImportFunctionDef(
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Function>> {
    guard(status, || {
        let text = "Invalid FunctionDef given to TF_FunctionImportFunctionDef";
        let def = decode(proto.bytes(proto_len, "proto")?, text)?;
        Ok(Some(TF_Function::boxed(Arc::new(def))))
    })
}

/// Sets an attribute of the function to a serialized `AttrValue`. INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FunctionSetAttrValueProto(
    func: Option<&mut TF_Function>,
    attr_name: Text,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let text = "Unparseable AttrValue proto passed to TF_FunctionSetAttrValueProto";
        let value: ff_proto::AttrValue = decode(proto.bytes(proto_len, "proto")?, text)?;
        decode_value(proto.bytes(proto_len, "proto")?)?;
        let name = attr_name.text("attr_name")?.into_owned();
        Arc::make_mut(&mut given_mut(func, "func")?.def)
            .attr
            .insert(name, value);
        Ok(())
    });
}

/// Writes an attribute of the function as a serialized `AttrValue` into an empty buffer. INVALID_ARGUMENT when there is no
/// such attribute.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FunctionGetAttrValueProto(
    func: Handle<TF_Function>,
    attr_name: Text,
    output_attr_value: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let function = given(func, "func")?;
        let name = attr_name.text("attr_name")?;
        let value = function.def.attr.get(&*name).ok_or_else(|| {
            let function = function.name.to_string_lossy();
            status!(
                InvalidArgument,
                "Function '{function}' has no attr named '{name}'."
            )
        })?;
        fill(output_attr_value, value)
    });
}

/// Frees the handle; graphs keep their copies. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteFunction(func: Option<Box<TF_Function>>) {
    quiet((), || {
        drop(func);
        Ok(())
    });
}

/// Adds a function to the library of a graph, and `grad`, unless it is NULL, as its gradient. The graph keeps copies.
///
/// INVALID_ARGUMENT when another function of that name is there.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphCopyFunction(
    g: Handle<TF_Graph>,
    func: Option<&TF_Function>,
    grad: Option<&TF_Function>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let function = func.ok_or_else(|| {
            status!(
                InvalidArgument,
                "'func' argument to TF_GraphCopyFunction cannot be null"
            )
        })?;
        let mut graph = state(g)?.lock();
        let library = graph.functions().clone();
        library.add(function.def.clone())?;
        graph.versions.min_consumer = graph.versions.min_consumer.max(FUNCTIONS_SINCE);
        let Some(gradient) = grad else { return Ok(()) };
        library.add(gradient.def.clone())?;
        let (function, gradient) = (function.name.to_string_lossy(), gradient.name.to_string_lossy());
        library.set_gradient(&function, &gradient)
    });
}

/// The number of functions in the library of a graph; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphNumFunctions(g: Handle<TF_Graph>) -> c_int {
    quiet(0, || Ok(c_count(state(g)?.lock().functions().functions().len())))
}

/// Writes handles of the graph's functions, `max_func` at most, and returns how many were written. The caller frees them
/// with `TF_DeleteFunction`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphGetFunctions(
    g: Handle<TF_Graph>,
    funcs: Room<*mut TF_Function>,
    max_func: c_int,
    status: Option<&mut TF_Status>,
) -> c_int {
    guard_or(status, 0, || {
        let functions = state(g)?.lock().functions().functions();
        ensure!(max_func >= 0, InvalidArgument, "max_func is {max_func}");
        let handles = functions
            .into_iter()
            .map(|def| Box::into_raw(TF_Function::boxed(def)));
        Ok(c_count(funcs.write(max_func, handles)))
    })
}
