//! `TF_Server`: in-process servers of distributed TensorFlow; not implemented yet, and said so by a status.

use crate::TF_Status;
use crate::buffer::decode;
use crate::ffi::{Blob, Handle, missing};
use crate::guard::guard;
use ff_proto::ServerDef;
use ff_tensor::{Result, bail};
use std::ffi::c_char;

/// An in-process server. There is none yet. Any thread may use it at any time.
pub enum TF_Server {}

/// Servers are not implemented: NULL with UNIMPLEMENTED, or INVALID_ARGUMENT for bytes that are no `ServerDef`. A server
/// would be freed with `TF_DeleteServer`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewServer(
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Server>> {
    guard(status, || {
        let text = "Could not parse provided bytes into a ServerDef protocol buffer";
        decode::<ServerDef>(proto.bytes(proto_len, "proto")?, text)?;
        bail!(Unimplemented, "Servers are not implemented")
    })
}

fn no_server(status: Option<&mut TF_Status>) {
    guard(status, || -> Result<()> { Err(missing("the server")) });
}

/// Starts a server. INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ServerStart(_server: Handle<TF_Server>, status: Option<&mut TF_Status>) {
    no_server(status);
}

/// Stops a server. INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ServerStop(_server: Handle<TF_Server>, status: Option<&mut TF_Status>) {
    no_server(status);
}

/// Waits until a server has stopped. INVALID_ARGUMENT for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ServerJoin(_server: Handle<TF_Server>, status: Option<&mut TF_Status>) {
    no_server(status);
}

/// The target for `TF_SetTarget` by which sessions reach a server; it belongs to the server. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ServerTarget(_server: Handle<TF_Server>) -> *const c_char {
    std::ptr::null()
}

/// Stops and frees a server; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteServer(_server: Option<Box<TF_Server>>) {}
