//! Eager contexts as tasks of a cluster. The cluster has one task, this process: more would need a distributed runtime.

use crate::TF_Status;
use crate::buffer::decode;
use crate::eager_context::{TFE_Context, context};
use crate::ffi::{Blob, Handle, Text, given};
use crate::guard::{guard, guard_or};
use ff_proto::ServerDef;
use ff_runtime::Joining;
use ff_tensor::Result;
use std::ffi::c_int;

fn server_def(proto: Blob, proto_len: usize) -> Result<ServerDef> {
    let bytes = proto.bytes(proto_len, "proto")?;
    decode(bytes, "Invalid tensorflow.ServerDef protocol buffer")
}

/// Makes a context a task, and forgets what the names of devices meant.
pub(crate) fn join(ctx: Handle<TFE_Context>, proto: Blob, proto_len: usize, joining: Joining) -> Result<()> {
    let state = &given(ctx, "ctx")?.state;
    state.context.join(&server_def(proto, proto_len)?, joining)?;
    state.places.write().clear();
    Ok(())
}

/// As `TFE_ContextSetServerDef`: there is nobody to wait for.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetServerDefWithTimeout(
    ctx: Handle<TFE_Context>,
    _keep_alive_secs: c_int,
    proto: Blob,
    proto_len: usize,
    _init_timeout_in_ms: i64,
    status: Option<&mut TF_Status>,
    _clear_existing_contexts: bool,
) {
    guard(status, || join(ctx, proto, proto_len, Joining::Cluster));
}

/// As `TFE_ContextSetServerDef`: there is nobody to wait for, or to ask again.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetServerDefWithTimeoutAndRetries(
    ctx: Handle<TFE_Context>,
    _keep_alive_secs: c_int,
    proto: Blob,
    proto_len: usize,
    _init_timeout_in_ms: i64,
    _retries: c_int,
    status: Option<&mut TF_Status>,
    _clear_existing_contexts: bool,
) {
    guard(status, || join(ctx, proto, proto_len, Joining::Cluster));
}

/// As `TFE_ContextSetServerDef`, for ops on the devices of this process alone.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_InitializeLocalOnlyContext(
    ctx: Handle<TFE_Context>,
    _keep_alive_secs: c_int,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || join(ctx, proto, proto_len, Joining::Locally));
}

fn update(ctx: Handle<TFE_Context>, proto: Blob, proto_len: usize) -> Result<()> {
    context(ctx)?.update_cluster(&server_def(proto, proto_len)?)
}

/// Tells the context of a change of its cluster, which has this one task before and after: devices and what is on them
/// stay.
///
/// INVALID_ARGUMENT for bytes that are no `ServerDef`, or when the context's task is not in the cluster; FAILED_PRECONDITION
/// when the context is not part of one; UNIMPLEMENTED when there are other tasks, which needs a distributed runtime.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextUpdateServerDef(
    ctx: Handle<TFE_Context>,
    _keep_alive_secs: c_int,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || update(ctx, proto, proto_len));
}

/// As `TFE_ContextUpdateServerDef`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextUpdateServerDefWithTimeout(
    ctx: Handle<TFE_Context>,
    _keep_alive_secs: c_int,
    proto: Blob,
    proto_len: usize,
    _init_timeout_in_ms: i64,
    status: Option<&mut TF_Status>,
) {
    guard(status, || update(ctx, proto, proto_len));
}

/// Whether a task of the cluster, such as `/job:worker/replica:0/task:0`, answers. INVALID_ARGUMENT for one that is not in
/// the cluster.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextCheckAlive(
    ctx: Handle<TFE_Context>,
    worker_name: Text,
    status: Option<&mut TF_Status>,
) -> bool {
    guard_or(status, false, || {
        context(ctx)?.is_alive(&worker_name.text("worker_name")?)
    })
}
