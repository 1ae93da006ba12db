//! `TF_Session`: runs a graph.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, fill};
use crate::device_list::TF_DeviceList;
use crate::ffi::{Array, Handle, Names, Room, Text, given, missing};
use crate::graph::{GraphState, TF_Graph, state};
use crate::guard::guard;
use crate::operation::{TF_Operation, TF_Output};
use crate::session_options::TF_SessionOptions;
use crate::tensor::TF_Tensor;
use ff_graph::NodeId;
use ff_op::OutputRef;
use ff_proto::RunOptions;
use ff_runtime::{RunRequest, Session, load_saved_model};
use ff_tensor::{Result, Tensor, bail, ensure, status};
use parking_lot::Mutex;
use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::{Arc, Weak};

/// Runs a graph. Any number of threads may run it at the same time, also while the graph grows; only deleting it must
/// wait until no call uses it any more.
pub struct TF_Session {
    pub(crate) session: Arc<Session>,
    pub(crate) state: Arc<GraphState>,
}

/// The sessions that `TF_Reset` closes.
static SESSIONS: Mutex<Vec<Weak<Session>>> = Mutex::new(Vec::new());

/// Makes a session known to `TF_Reset`.
pub(crate) fn keep_track(session: &Arc<Session>) {
    let mut sessions = SESSIONS.lock();
    sessions.retain(|session| session.strong_count() > 0);
    sessions.push(Arc::downgrade(session));
}

impl TF_Session {
    fn boxed(session: Session, state: Arc<GraphState>) -> Box<TF_Session> {
        let session = Arc::new(session);
        keep_track(&session);
        Box::new(TF_Session { session, state })
    }
}

/// A session on a graph; it keeps the graph alive. Free it with `TF_DeleteSession`. NULL options are the defaults.
///
/// NULL with INVALID_ARGUMENT for a NULL graph, NOT_FOUND for a target that nothing serves.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewSession(
    graph: Handle<TF_Graph>,
    opts: Option<&TF_SessionOptions>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Session>> {
    guard(status, || {
        let state = state(graph)?;
        let options = opts.map(|opts| opts.options.clone()).unwrap_or_default();
        let session = Session::new(state.graph.clone(), options)?;
        Ok(Some(TF_Session::boxed(session, state.clone())))
    })
}

/// Decodes run options, if there are any. INVALID_ARGUMENT for other bytes.
pub(crate) fn run_options(buffer: Option<&TF_Buffer>) -> Result<Option<RunOptions>> {
    buffer
        .map(|buffer| buffer.decode("Unparseable RunOptions proto"))
        .transpose()
}

/// Loads the SavedModel in `export_dir` whose tags are exactly `tags`: its graph into `graph`, which must be empty, and a
/// session with its variables restored and its tables initialised. `meta_graph_def`, if given, receives the serialized
/// `MetaGraphDef`: signatures and the like. Free the session with `TF_DeleteSession`.
///
/// NULL with NOT_FOUND when there is no such model, INVALID_ARGUMENT for a graph that is not empty, or the error of what
/// failed.
#[unsafe(no_mangle)]
pub extern "C" fn TF_LoadSessionFromSavedModel(
    session_options: Option<&TF_SessionOptions>,
    run_options: Option<&TF_Buffer>,
    export_dir: Text,
    tags: Array<Text>,
    tags_len: c_int,
    graph: Handle<TF_Graph>,
    meta_graph_def: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Session>> {
    guard(status, || {
        let state = state(graph)?;
        ensure!(state.lock().is_empty(), InvalidArgument, "Graph is non-empty.");
        let run_options = self::run_options(run_options)?;
        let directory = export_dir.text("export_dir")?;
        let tags: Vec<String> = tags
            .of(tags_len, "tags")?
            .iter()
            .map(|tag| Ok(tag.text("a tag")?.into_owned()))
            .collect::<Result<_>>()?;
        let options = session_options.map(|it| it.options.clone()).unwrap_or_default();
        let loaded = load_saved_model(
            state.graph.clone(),
            &directory,
            &tags,
            options,
            run_options.as_ref(),
        )?;
        if meta_graph_def.is_some() {
            fill(meta_graph_def, &loaded.meta_graph)?;
        }
        Ok(Some(TF_Session::boxed(loaded.session, state.clone())))
    })
}

/// Closes a session: steps that run end with CANCELLED, later ones are refused, its variables are gone. Closing it again
/// is fine.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CloseSession(session: Handle<TF_Session>, status: Option<&mut TF_Status>) {
    guard(status, || {
        given(session, "the session")?.session.close();
        Ok(())
    });
}

/// Frees a session, closing it first; NULL is ignored. Steps that run end with CANCELLED; no later call may use it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteSession(session: Option<Box<TF_Session>>, status: Option<&mut TF_Status>) {
    guard(status, || {
        if let Some(session) = session {
            session.session.close();
        }
        Ok(())
    });
}

/// What a run uses of a session, kept alive until it ends: another thread may delete the session meanwhile.
pub(crate) fn held(session: Handle<TF_Session>) -> Result<(Arc<Session>, Arc<GraphState>)> {
    let session = given(session, "the session")?;
    Ok((session.session.clone(), session.state.clone()))
}

/// Outputs of the graph of a session. INVALID_ARGUMENT for others.
pub(crate) fn session_outputs(state: &GraphState, outputs: &[TF_Output]) -> Result<Vec<OutputRef>> {
    let output = |output: &TF_Output| {
        state.output_of(*output).map_err(|error| match output.operation() {
            Some(operation) => status!(
                InvalidArgument,
                "Tensor {}:{}{}, specified in either feed_devices or fetch_devices was not found in the Graph",
                operation.name_text(),
                output.index,
                // A negative index is no index to the reference, but a part of the name.
                if output.index < 0 { ":0" } else { "" }
            ),
            None => error,
        })
    };
    outputs.iter().map(output).collect()
}

/// The values that are fed.
pub(crate) fn feeds_of(
    outputs: Vec<OutputRef>,
    values: &[Option<&TF_Tensor>],
) -> Result<Vec<(OutputRef, Tensor)>> {
    let feed = |(output, value): (OutputRef, &Option<&TF_Tensor>)| {
        Ok((output, given(*value, "an input value")?.tensor()?))
    };
    outputs.into_iter().zip(values).map(feed).collect()
}

/// What a run is asked for, whichever way it was said.
pub struct Wanted<'a> {
    /// Serialized options.
    pub options: Option<&'a TF_Buffer>,
    /// Outputs with values.
    pub feeds: Vec<(OutputRef, Tensor)>,
    /// Outputs whose values are wanted.
    pub fetches: Vec<OutputRef>,
    /// Nodes to run.
    pub targets: Vec<NodeId>,
    /// Where the metadata goes.
    pub metadata: Option<&'a mut TF_Buffer>,
}

/// Runs, and gives the handles of the values that were wanted.
pub(crate) fn run(session: &Session, wanted: Wanted) -> Result<Vec<Box<TF_Tensor>>> {
    if let Some(metadata) = &wanted.metadata {
        ensure!(
            metadata.data.is_null(),
            InvalidArgument,
            "Passing non-empty run_metadata is invalid."
        );
    }
    let options = run_options(wanted.options)?;
    let response = session.run(&RunRequest {
        feeds: &wanted.feeds,
        fetches: &wanted.fetches,
        targets: &wanted.targets,
        options: options.as_ref(),
        want_metadata: wanted.metadata.is_some(),
    })?;
    let tensors = response
        .outputs
        .into_iter()
        .map(TF_Tensor::boxed)
        .collect::<Result<_>>()?;
    if let (Some(buffer), Some(metadata)) = (wanted.metadata, &response.metadata) {
        fill(Some(buffer), metadata)?;
    }
    Ok(tensors)
}

/// Runs what the outputs and operations need.
///
/// `inputs` are outputs of operations that are replaced by `input_values`, which the caller keeps. The values of `outputs`
/// go into `output_values`; the caller owns them. `target_opers` run without giving a value. `run_options`, if given, is a
/// serialized `RunOptions`; `run_metadata`, if given, is an empty buffer for a serialized `RunMetadata`.
///
/// On an error all `output_values` are NULL. The code is that of the operation that failed; INVALID_ARGUMENT for arguments
/// that do not fit the graph, CANCELLED for a closed session, DEADLINE_EXCEEDED when time ran out.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SessionRun(
    session: Handle<TF_Session>,
    run_options: Option<&TF_Buffer>,
    inputs: Array<TF_Output>,
    input_values: Array<Handle<TF_Tensor>>,
    ninputs: c_int,
    outputs: Array<TF_Output>,
    output_values: Room<*mut TF_Tensor>,
    noutputs: c_int,
    target_opers: Array<Option<&TF_Operation>>,
    ntargets: c_int,
    run_metadata: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        clear(output_values, noutputs);
        let (session, state) = held(session)?;
        let wanted = Wanted {
            options: run_options,
            feeds: feeds_of(
                session_outputs(&state, inputs.of(ninputs, "inputs")?)?,
                input_values.of(ninputs, "input_values")?,
            )?,
            fetches: session_outputs(&state, outputs.of(noutputs, "outputs")?)?,
            targets: state.nodes_of(target_opers.of(ntargets, "target_opers")?)?,
            metadata: run_metadata,
        };
        let tensors = run(&session, wanted)?;
        write_tensors(tensors, output_values, noutputs)
    });
}

/// Makes all results NULL, as they stay on an error.
pub(crate) fn clear(output_values: Room<*mut TF_Tensor>, noutputs: c_int) {
    let count = usize::try_from(noutputs).unwrap_or(0);
    output_values.write(noutputs, std::iter::repeat_n(null_mut(), count));
}

/// Gives the results to the caller.
pub(crate) fn write_tensors(
    tensors: Vec<Box<TF_Tensor>>,
    output_values: Room<*mut TF_Tensor>,
    noutputs: c_int,
) -> Result<()> {
    if output_values.at(0).is_null() && !tensors.is_empty() {
        return Err(missing("output_values"));
    }
    output_values.write(noutputs, tensors.into_iter().map(Box::into_raw));
    Ok(())
}

/// Makes the session know the operations that the graph has now. Runs do so themselves.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ExtendSession(session: Handle<TF_Session>, status: Option<&mut TF_Status>) {
    guard(status, || given(session, "the session").map(|_| ()));
}

/// The devices of a session, which the caller frees with `TF_DeleteDeviceList`; NULL on an error.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SessionListDevices(
    session: Handle<TF_Session>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_DeviceList>> {
    guard(status, || {
        Ok(Some(TF_DeviceList::of(
            given(session, "the session")?.session.devices(),
        )))
    })
}

/// Closes all sessions of the target in `opt` and clears the containers with these names, or the default one.
#[unsafe(no_mangle)]
pub extern "C" fn TF_Reset(
    opt: Option<&TF_SessionOptions>,
    containers: Names,
    ncontainers: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let target = opt.map(|opt| opt.options.target.as_str()).unwrap_or_default();
        if !matches!(target, "" | "local") {
            bail!(
                NotFound,
                "No session factory registered for the given session options: {{target: \"{target}\"}}"
            );
        }
        let names = containers.of(ncontainers, "containers")?;
        let names: Vec<_> = match names {
            [] => vec![ff_op::DEFAULT_CONTAINER.into()],
            names => names.iter().map(|name| name.or_empty()).collect(),
        };
        let sessions: Vec<_> = SESSIONS.lock().iter().filter_map(Weak::upgrade).collect();
        for session in sessions {
            for device in session.devices() {
                names
                    .iter()
                    .for_each(|name| device.resources.clear_container(name));
            }
            session.close();
        }
        Ok(())
    });
}
