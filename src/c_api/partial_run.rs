//! Partial runs: a step that is set up once and then run piece by piece, as its feeds come.

use crate::TF_Status;
use crate::ffi::{Array, Handle, Out, Room, Text, c_string, given_mut};
use crate::guard::guard;
use crate::operation::{TF_Operation, TF_Output};
use crate::session::{TF_Session, clear, feeds_of, held, session_outputs, write_tensors};
use crate::tensor::TF_Tensor;
use ff_op::OutputRef;
use ff_runtime::{Session, Signature};
use ff_tensor::{Result, Tensor};
use std::ffi::{CString, c_char, c_int};
use std::ptr::null;

/// Sets a partial run up and gives its handle as text that belongs to the caller.
pub(crate) fn set_up(session: &Session, signature: Signature) -> Result<*const c_char> {
    Ok(c_string(&session.set_up_partial_run(signature)?)
        .into_raw()
        .cast_const())
}

/// Goes on with a partial run; gives the handles of the values that were asked for.
pub(crate) fn go_on(
    session: &Session,
    handle: Text,
    feeds: &[(OutputRef, Tensor)],
    fetches: &[OutputRef],
) -> Result<Vec<Box<TF_Tensor>>> {
    let outputs = session.partial_run(&handle.or_empty(), feeds, fetches)?;
    outputs.into_iter().map(TF_Tensor::boxed).collect()
}

/// Sets up a run whose `inputs` come, and whose `outputs` are taken, in pieces by `TF_SessionPRun`; `target_opers` run as
/// soon as they can.
///
/// `*handle` becomes the name of the partial run, which the caller frees with `TF_DeletePRunHandle`; NULL on an error:
/// INVALID_ARGUMENT for arguments that do not fit the graph, CANCELLED for a closed session.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SessionPRunSetup(
    session: Handle<TF_Session>,
    inputs: Array<TF_Output>,
    ninputs: c_int,
    outputs: Array<TF_Output>,
    noutputs: c_int,
    target_opers: Array<Option<&TF_Operation>>,
    ntargets: c_int,
    handle: Out<*const c_char>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let handle = given_mut(handle, "handle")?;
        handle.write(null());
        let (session, state) = held(session)?;
        let signature = Signature {
            feeds: session_outputs(&state, inputs.of(ninputs, "inputs")?)?.into(),
            fetches: session_outputs(&state, outputs.of(noutputs, "outputs")?)?.into(),
            targets: state.nodes_of(target_opers.of(ntargets, "target_opers")?)?.into(),
        };
        handle.write(set_up(&session, signature)?);
        Ok(())
    });
}

/// Goes on with the partial run `handle`: brings `input_values`, which the caller keeps, and takes the values of `outputs`,
/// which the caller owns. Each input and output that was set up comes once. `target_opers` are those of the set-up.
///
/// INVALID_ARGUMENT for an unknown handle, inputs or outputs that were not set up or have come already, and outputs that
/// need inputs still missing; the partial run can go on after these. Any other error ends it. On an error all
/// `output_values` are NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SessionPRun(
    session: Handle<TF_Session>,
    handle: Text,
    inputs: Array<TF_Output>,
    input_values: Array<Handle<TF_Tensor>>,
    ninputs: c_int,
    outputs: Array<TF_Output>,
    output_values: Room<*mut TF_Tensor>,
    noutputs: c_int,
    _target_opers: Array<Option<&TF_Operation>>,
    _ntargets: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        clear(output_values, noutputs);
        let (session, state) = held(session)?;
        let feeds = feeds_of(
            session_outputs(&state, inputs.of(ninputs, "inputs")?)?,
            input_values.of(ninputs, "input_values")?,
        )?;
        let fetches = session_outputs(&state, outputs.of(noutputs, "outputs")?)?;
        let tensors = go_on(&session, handle, &feeds, &fetches)?;
        write_tensors(tensors, output_values, noutputs)
    });
}

/// Frees the text of a handle from `TF_SessionPRunSetup` or `TF_PRunSetup`; NULL is ignored. A partial run that has not
/// ended stays with its session.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeletePRunHandle(handle: Text) {
    if !handle.pointer().is_null() {
        // SAFETY: C vouches that the text is from `set_up` and is not used any more.
        drop(unsafe { CString::from_raw(handle.pointer().cast_mut()) });
    }
}
