//! Partial runs of a session: not implemented yet, and said so by a status.

use crate::TF_Status;
use crate::ffi::{Array, Handle, Out, Room, Text, given_mut};
use crate::guard::guard;
use crate::operation::{TF_Operation, TF_Output};
use crate::session::{TF_Session, clear};
use crate::tensor::TF_Tensor;
use ff_tensor::{Result, bail};
use std::ffi::{c_char, c_int};
use std::ptr::null;

/// Partial runs are not implemented: UNIMPLEMENTED, and `*handle` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SessionPRunSetup(
    _session: Handle<TF_Session>,
    _inputs: Array<TF_Output>,
    _ninputs: c_int,
    _outputs: Array<TF_Output>,
    _noutputs: c_int,
    _target_opers: Array<Option<&TF_Operation>>,
    _ntargets: c_int,
    handle: Out<*const c_char>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || -> Result<()> {
        given_mut(handle, "handle")?.write(null());
        bail!(Unimplemented, "Partial runs are not implemented")
    });
}

/// Partial runs are not implemented: UNIMPLEMENTED, and all outputs are NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SessionPRun(
    _session: Handle<TF_Session>,
    _handle: Text,
    _inputs: Array<TF_Output>,
    _input_values: Array<Handle<TF_Tensor>>,
    _ninputs: c_int,
    _outputs: Array<TF_Output>,
    output_values: Room<*mut TF_Tensor>,
    noutputs: c_int,
    _target_opers: Array<Option<&TF_Operation>>,
    _ntargets: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || -> Result<()> {
        clear(output_values, noutputs);
        bail!(Unimplemented, "Partial runs are not implemented")
    });
}

/// Frees the handle of a partial run; NULL is ignored. There are no such handles yet.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeletePRunHandle(_handle: Text) {}
