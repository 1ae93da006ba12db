//! `TF_DeprecatedSession`: a session with a graph of its own, in which everything is named by text.

use crate::TF_Status;
use crate::buffer::TF_Buffer;
use crate::device_list::TF_DeviceList;
use crate::ffi::{Blob, Handle, Names, Out, Room, Text, given, given_mut};
use crate::graph::GraphState;
use crate::guard::guard;
use crate::partial_run;
use crate::session::{Wanted, clear, feeds_of, keep_track, run, write_tensors};
use crate::session_options::TF_SessionOptions;
use crate::tensor::TF_Tensor;
use ff_graph::{Graph, ImportOptions, NodeId, import_graph_def};
use ff_op::OutputRef;
use ff_proto::{Bytes, GraphDef, Message};
use ff_runtime::{Session, Signature};
use ff_tensor::{Result, bail, ensure, status};
use std::ffi::{c_char, c_int};
use std::ptr::null;
use std::sync::Arc;

/// A session with a graph of its own. Any number of threads may run it at the same time.
pub struct TF_DeprecatedSession {
    session: Arc<Session>,
    state: Arc<GraphState>,
}

/// What a run uses of a session, kept alive until it ends: another thread may delete the session meanwhile.
fn held(session: Handle<TF_DeprecatedSession>) -> Result<(Arc<Session>, Arc<GraphState>)> {
    let session = given(session, "the session")?;
    Ok((session.session.clone(), session.state.clone()))
}

/// A session without operations. Free it with `TF_DeleteDeprecatedSession`. NULL options are the defaults. NULL with
/// NOT_FOUND for a target that nothing serves.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewDeprecatedSession(
    options: Option<&TF_SessionOptions>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_DeprecatedSession>> {
    guard(status, || {
        let options = options.map(|it| it.options.clone()).unwrap_or_default();
        let state = GraphState::new();
        let session = Arc::new(Session::new(state.graph.clone(), options)?);
        keep_track(&session);
        Ok(Some(Box::new(TF_DeprecatedSession { session, state })))
    })
}

/// Closes a session: steps that run end with CANCELLED, later ones are refused.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CloseDeprecatedSession(
    session: Handle<TF_DeprecatedSession>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        given(session, "the session")?.session.close();
        Ok(())
    });
}

/// Frees a session, closing it first; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteDeprecatedSession(
    session: Option<Box<TF_DeprecatedSession>>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        if let Some(session) = session {
            session.session.close();
        }
        Ok(())
    });
}

/// Adds the operations of a serialized `GraphDef`. INVALID_ARGUMENT for other bytes and for names that are there.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ExtendGraph(
    session: Handle<TF_DeprecatedSession>,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let session = given(session, "the session")?;
        session.session.check_open()?;
        let state = &session.state;
        let bytes = Bytes::copy_from_slice(proto.bytes(proto_len, "proto")?);
        let def = GraphDef::decode(bytes).map_err(|_| status!(InvalidArgument, "Invalid GraphDef"))?;
        let mut graph = state.lock();
        if let Some(node) = def.node.iter().find(|node| graph.find(&node.name).is_some()) {
            bail!(
                InvalidArgument,
                "GraphDef argument to Extend includes node '{}', which was created by a previous call to Create or Extend in this session.",
                node.name
            );
        }
        import_graph_def(&mut graph, def, &ImportOptions::default()).map(|_| ())
    });
}

/// The output that a text names: `node`, `node:1`.
fn output_named(graph: &Graph, text: &str) -> Result<OutputRef> {
    let (name, index) = match text.rsplit_once(':') {
        Some((name, digits)) if !digits.is_empty() => match digits.parse() {
            Ok(index) => (name, index),
            Err(_) => (text, 0),
        },
        _ => (text, 0),
    };
    let node = graph.find(name).ok_or_else(|| {
        status!(
            InvalidArgument,
            "Tensor {name}:{index}, specified in either feed_devices or fetch_devices was not found in the Graph"
        )
    })?;
    Ok(OutputRef { node, index })
}

fn outputs_named(graph: &Graph, names: Names, count: c_int) -> Result<Vec<OutputRef>> {
    let names = names.of(count, "names")?.iter();
    names
        .map(|name| output_named(graph, &name.text("a name")?))
        .collect()
}

fn nodes_named(graph: &Graph, names: Names, count: c_int) -> Result<Vec<NodeId>> {
    let mut nodes = Vec::new();
    let mut missing = String::new();
    for name in names.of(count, "target_oper_names")? {
        let name = name.text("a name")?;
        // An output stands for its operation.
        let node = output_named(graph, &name).map(|output| output.node);
        match node.ok() {
            Some(node) => nodes.push(node),
            None => missing.push_str(&format!("{name} ")),
        }
    }
    ensure!(
        missing.is_empty(),
        NotFound,
        "PruneForTargets: Some target nodes not found: {missing}"
    );
    Ok(nodes)
}

/// Runs as `TF_SessionRun` does, with outputs named `node:1` (or `node` for the first) and operations by name. The caller
/// keeps `inputs` and owns what is put into `outputs`; on an error those are NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_Run(
    session: Handle<TF_DeprecatedSession>,
    run_options: Option<&TF_Buffer>,
    input_names: Names,
    inputs: Room<*mut TF_Tensor>,
    ninputs: c_int,
    output_names: Names,
    outputs: Room<*mut TF_Tensor>,
    noutputs: c_int,
    target_oper_names: Names,
    ntargets: c_int,
    run_metadata: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        clear(outputs, noutputs);
        let (session, state) = held(session)?;
        session.check_open()?;
        let wanted = {
            let graph = state.lock();
            ensure!(
                !graph.is_empty(),
                InvalidArgument,
                "Session was not created with a graph before Run()!"
            );
            Wanted {
                options: run_options,
                feeds: feeds_of(
                    outputs_named(&graph, input_names, ninputs)?,
                    &inputs.handles(ninputs, "inputs")?,
                )?,
                fetches: outputs_named(&graph, output_names, noutputs)?,
                targets: nodes_named(&graph, target_oper_names, ntargets)?,
                metadata: run_metadata,
            }
        };
        if let Some(at) = wanted
            .fetches
            .iter()
            .position(|fetch| wanted.feeds.iter().any(|(fed, _)| fed == fetch))
        {
            let name = output_names.of(noutputs, "names")?[at].text("a name")?;
            bail!(InvalidArgument, "{name} is both fed and fetched.");
        }
        let tensors = run(&session, wanted)?;
        write_tensors(tensors, outputs, noutputs)
    });
}

/// The devices of a session, which the caller frees with `TF_DeleteDeviceList`; NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeprecatedSessionListDevices(
    session: Handle<TF_DeprecatedSession>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_DeviceList>> {
    guard(status, || {
        Ok(Some(TF_DeviceList::of(
            given(session, "the session")?.session.devices(),
        )))
    })
}

/// Sets up a partial run as `TF_SessionPRunSetup` does, by names.
#[unsafe(no_mangle)]
pub extern "C" fn TF_PRunSetup(
    session: Handle<TF_DeprecatedSession>,
    input_names: Names,
    ninputs: c_int,
    output_names: Names,
    noutputs: c_int,
    target_oper_names: Names,
    ntargets: c_int,
    handle: Out<*const c_char>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let handle = given_mut(handle, "handle")?;
        handle.write(null());
        let (session, state) = held(session)?;
        let signature = {
            let graph = state.lock();
            Signature {
                feeds: outputs_named(&graph, input_names, ninputs)?.into(),
                fetches: outputs_named(&graph, output_names, noutputs)?.into(),
                targets: nodes_named(&graph, target_oper_names, ntargets)?.into(),
            }
        };
        handle.write(partial_run::set_up(&session, signature)?);
        Ok(())
    });
}

/// Goes on with a partial run as `TF_SessionPRun` does, by names. The caller keeps `inputs` and owns what is put into
/// `outputs`; on an error those are NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_PRun(
    session: Handle<TF_DeprecatedSession>,
    handle: Text,
    input_names: Names,
    inputs: Room<*mut TF_Tensor>,
    ninputs: c_int,
    output_names: Names,
    outputs: Room<*mut TF_Tensor>,
    noutputs: c_int,
    _target_oper_names: Names,
    _ntargets: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        clear(outputs, noutputs);
        let (session, state) = held(session)?;
        let (feeds, fetches) = {
            let graph = state.lock();
            let values = inputs.handles(ninputs, "inputs")?;
            (
                feeds_of(outputs_named(&graph, input_names, ninputs)?, &values)?,
                outputs_named(&graph, output_names, noutputs)?,
            )
        };
        let tensors = partial_run::go_on(&session, handle, &feeds, &fetches)?;
        write_tensors(tensors, outputs, noutputs)
    });
}
