//! What bindings use beside the main interface: graphs as text, named queues, attributes without a graph, plug-in libraries.

use crate::TF_Status;
use crate::datatype::{TF_DataType, data_type};
use crate::ffi::{Array, Enum, Handle, Out, Text, c_string, given, given_box, given_mut};
use crate::function::TF_Function;
use crate::graph::{TF_Graph, state};
use crate::guard::{guard, guard_or, quiet};
use crate::import::TF_ImportGraphDefOptions;
use crate::session::TF_Session;
use crate::tensor::TF_Tensor;
use ff_graph::{export_graph_def, function_text};
use ff_op::{AttrValue, Attrs, NodeInfo, OutputRef};
use ff_ops::registry;
use ff_proto::attr_value::Value;
use ff_proto::op_def::AttrDef;
use ff_proto::text;
use ff_runtime::RunRequest;
use ff_tensor::{DataType, Result, Tensor, bail, ensure, status};
use std::ffi::{CString, c_char, c_int, c_uchar};
use std::ptr::null_mut;

/// A text for C code that frees it with `free`, and its length. NULL when memory is out.
fn leak(text: &str, length: Out<usize>) -> *mut c_char {
    let text = c_string(text);
    if let Some(length) = length {
        length.write(text.as_bytes().len());
    }
    // SAFETY: a C string.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// The graph as the text of its `GraphDef`, and the text's length. Free the text with `free`. NULL for a NULL graph.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphDebugString(graph: Handle<TF_Graph>, len: Out<usize>) -> *const c_char {
    quiet(std::ptr::null(), || {
        let def = export_graph_def(&state(graph)?.lock());
        let text = text::print(&def).map_err(|error| status!(Internal, "{error}"))?;
        Ok(leak(&text, len).cast_const())
    })
}

/// A function as a text with a line per operation, and the text's length. Free the text with `free`. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_FunctionDebugString(func: Handle<TF_Function>, len: Out<usize>) -> *mut c_char {
    quiet(null_mut(), || {
        Ok(leak(&function_text(given(func, "func")?.def()), len))
    })
}

/// A node of a session's graph by its name. INTERNAL when there is none.
fn node(session: &TF_Session, name: &str, what: &str) -> Result<u32> {
    let found = session.state.lock().find(name);
    found.ok_or_else(|| status!(Internal, "Unable to find the {what} in the TF graph."))
}

fn run(
    session: &TF_Session,
    feeds: &[(OutputRef, Tensor)],
    fetches: &[OutputRef],
    targets: &[u32],
) -> Result<Vec<Tensor>> {
    let request = RunRequest {
        feeds,
        fetches,
        targets,
        options: None,
        want_metadata: false,
    };
    Ok(session.session.run(&request)?.outputs)
}

/// Fetches what the operation `fifo_queue_dequeue_<tensor_id>` gives; the caller deletes the tensor. NULL with INTERNAL when
/// the session's graph has no such operation.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DequeueNamedTensor(
    session: Handle<TF_Session>,
    tensor_id: c_int,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Tensor>> {
    guard(status, || {
        let session = given(session, "the session")?;
        let node = node(
            session,
            &format!("fifo_queue_dequeue_{tensor_id}"),
            "dequeue node",
        )?;
        let output = OutputRef { node, index: 0 };
        match run(session, &[], &[output], &[])?.pop() {
            Some(tensor) => Ok(Some(TF_Tensor::boxed(tensor)?)),
            None => bail!(Internal, "nothing came out of the queue"),
        }
    })
}

/// Feeds `arg_tensor_enqueue_<tensor_id>` with a tensor and runs `fifo_queue_enqueue_<tensor_id>`. INTERNAL when the session's
/// graph lacks one of them.
#[unsafe(no_mangle)]
pub extern "C" fn TF_EnqueueNamedTensor(
    session: Handle<TF_Session>,
    tensor_id: c_int,
    tensor: Handle<TF_Tensor>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let session = given(session, "the session")?;
        let enqueue = node(
            session,
            &format!("fifo_queue_enqueue_{tensor_id}"),
            "enqueue node",
        )?;
        let what = "placeholder node as input to enqueue";
        let input = node(session, &format!("arg_tensor_enqueue_{tensor_id}"), what)?;
        let value = given(tensor, "tensor")?.tensor()?;
        let feed = (
            OutputRef {
                node: input,
                index: 0,
            },
            value,
        );
        run(session, &[feed], &[], &[enqueue]).map(drop)
    });
}

/// Sets a status to INTERNAL with this message.
#[unsafe(no_mangle)]
pub extern "C" fn TF_MakeInternalErrorStatus(status: Option<&mut TF_Status>, errMsg: Text) {
    guard(status, || -> Result<()> {
        bail!(Internal, "{}", errMsg.or_empty())
    });
}

/// Attributes of a node that no graph has. Not for use by two threads at once.
pub struct TF_AttrBuilder {
    op: String,
    attrs: Attrs,
}

/// No attributes yet of a node of an op. Free them with `TF_DeleteAttrBuilder`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewAttrBuilder(op_name: Text) -> Box<TF_AttrBuilder> {
    Box::new(TF_AttrBuilder {
        op: op_name.or_empty().into_owned(),
        attrs: Attrs::new(),
    })
}

/// Frees attributes; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteAttrBuilder(builder: Option<Box<TF_AttrBuilder>>) {
    quiet((), || given_box(builder, "builder").map(drop));
}

fn set(builder: Option<&mut TF_AttrBuilder>, name: Text, value: impl FnOnce() -> Result<AttrValue>) {
    quiet((), || {
        let builder = given_mut(builder, "builder")?;
        builder.attrs.set(name.text("attr_name")?, value()?);
        Ok(())
    });
}

/// Sets an attribute to a type.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AttrBuilderSetType(
    builder: Option<&mut TF_AttrBuilder>,
    attr_name: Text,
    value: Enum<TF_DataType>,
) {
    set(builder, attr_name, || Ok(data_type(value).into()));
}

/// Sets an attribute to a list of types.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AttrBuilderSetTypeList(
    builder: Option<&mut TF_AttrBuilder>,
    attr_name: Text,
    values: Array<Enum<TF_DataType>>,
    num_values: c_int,
) {
    set(builder, attr_name, || {
        let values = values.of(num_values, "values")?.iter();
        Ok(values
            .map(|value| data_type(*value))
            .collect::<Vec<DataType>>()
            .into())
    });
}

/// Whether the schema allows the type that an attribute has.
fn allowed(attr: &AttrDef, value: Option<&AttrValue>) -> bool {
    let Some(Value::List(allowed)) = attr.allowed_values.as_ref().and_then(|it| it.value.as_ref()) else {
        return true;
    };
    match value {
        Some(AttrValue::Type(dtype)) => allowed.r#type.contains(&dtype.0),
        Some(AttrValue::Types(types)) => types.iter().all(|dtype| allowed.r#type.contains(&dtype.0)),
        _ => true,
    }
}

/// Whether there is a kernel for these attributes on devices of a type (`CPU`). NOT_FOUND when there is none, INVALID_ARGUMENT
/// when an attribute that decides it is missing.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AttrBuilderCheckCanRunOnDevice(
    builder: Option<&mut TF_AttrBuilder>,
    device_type: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let builder = given(builder.as_deref(), "builder")?;
        let device = device_type.text("device_type")?;
        let none = || {
            status!(
                NotFound,
                "No registered '{0}' OpKernel for {device} devices compatible with node {{{{node {0}}}}}",
                builder.op
            )
        };
        let record = registry().find(&builder.op).map_err(|_| none())?;
        let mut attrs = builder.attrs.clone();
        for attr in &record.def.attr {
            if !allowed(attr, attrs.get(&attr.name)) {
                return Err(none());
            }
            if let (None, Some(value)) = (attrs.get(&attr.name), &attr.default_value) {
                attrs.set(attr.name.as_str(), AttrValue::from_proto(value)?);
            }
        }
        let node = NodeInfo::new(builder.op.clone(), record, String::new(), attrs);
        let node = node.map_err(|error| status!(InvalidArgument, "{}", error.message()))?;
        match node.op.kernel_for(&node, &device) {
            Some(_) => Ok(()),
            None => Err(none()),
        }
    });
}

/// The name of the attribute that counts a list input; it is there for good. NULL with INVALID_ARGUMENT for an index that is
/// none, NOT_FOUND for an input that is no such list, and for an unknown op.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetNumberAttrForOpListInput(
    op_name: Text,
    input_index: c_int,
    status: Option<&mut TF_Status>,
) -> *const c_char {
    guard_or(status, std::ptr::null(), || {
        let name = op_name.text("op_name")?;
        let def = registry().find(&name)?.def.clone();
        let index = usize::try_from(input_index).ok();
        let input = index.and_then(|index| def.input_arg.get(index));
        let input = input.ok_or_else(|| status!(InvalidArgument, "{input_index} out of range for {name}"))?;
        ensure!(
            !input.number_attr.is_empty(),
            NotFound,
            "{name} does not have number_attr() defined."
        );
        Ok(kept(&input.number_attr))
    })
}

/// A copy of a text that is there for good: one of each.
fn kept(text: &str) -> *const c_char {
    use std::collections::BTreeSet;
    static TEXTS: parking_lot::Mutex<BTreeSet<CString>> = parking_lot::Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock();
    let text = c_string(text);
    if !texts.contains(&text) {
        texts.insert(text.clone());
    }
    // The set never loses a text, and moving a `CString` leaves its characters where they are.
    texts.get(&text).map_or(std::ptr::null(), |text| text.as_ptr())
}

/// 1 if an op has state, else 0. NOT_FOUND for an unknown op.
#[unsafe(no_mangle)]
pub extern "C" fn TF_OpIsStateful(op_type: Text, status: Option<&mut TF_Status>) -> c_int {
    guard(status, || {
        let record = registry().find(&op_type.text("op_type")?)?;
        Ok(c_int::from(record.def.is_stateful))
    })
}

/// Nothing needs to be set up by a program's `main`: it is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_InitMain(_usage: Text, _argc: *mut c_int, _argv: *mut *mut *mut c_char) {}

/// A port that no program listens on at the moment; 0 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_PickUnusedPortOrDie() -> c_int {
    quiet(0, || {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0));
        let address = listener.and_then(|listener| listener.local_addr());
        Ok(address.map_or(0, |address| c_int::from(address.port())))
    })
}

/// Whether colocations with nodes that the message does not have are errors.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ImportGraphDefOptionsSetValidateColocationConstraints(
    opts: Option<&mut TF_ImportGraphDefOptions>,
    enable: c_uchar,
) {
    quiet((), || {
        given_mut(opts, "opts")?.options.validate_colocation = enable != 0;
        Ok(())
    });
}

/// Takes a function out of a graph's library. INVALID_ARGUMENT when there is none of this name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GraphRemoveFunction(
    g: Handle<TF_Graph>,
    func_name: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let graph = state(g)?.lock();
        let name = func_name.text("func_name")?;
        ensure!(
            graph.functions().find(&name).is_ok(),
            InvalidArgument,
            "Tried to remove non-existent function '{name}'."
        );
        graph.functions().remove(&name);
        Ok(())
    });
}
