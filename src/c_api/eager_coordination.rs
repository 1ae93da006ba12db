//! The coordination service: values, barriers and errors that the tasks of a cluster share. It is there where the
//! `ServerDef` of a context asks for it in `default_session_config.experimental.coordination_config`.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, decode, fill_bytes};
use crate::eager_context::{TFE_Context, context};
use crate::ffi::{Handle, Text, given, given_mut, missing};
use crate::guard::guard;
use ff_proto::CoordinatedJob;
use ff_runtime::Coordination;
use ff_tensor::{Code, Result, ensure, status};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

/// The service of a context. FAILED_PRECONDITION when there is none.
fn service(ctx: Handle<TFE_Context>, what: &str) -> Result<Arc<Coordination>> {
    let service = context(ctx)?.coordination();
    service.ok_or_else(|| status!(FailedPrecondition, "{what} is not enabled."))
}

/// Shares a value under a key, a path such as `folder/name`. ALREADY_EXISTS when the key has one; FAILED_PRECONDITION without
/// a coordination service.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_InsertConfigKeyValue(
    ctx: Handle<TFE_Context>,
    key: Text,
    value: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let key = key.text("key")?;
        let value = value.bytes().ok_or_else(|| missing("value"))?;
        service(ctx, "Coordination service agent")?.insert(&key, value)
    });
}

/// Fills `value_buf` with the value of a key, once there is one: waits for so many milliseconds, without end if there are
/// none. DEADLINE_EXCEEDED when there still is no value; CANCELLED when the cluster is replaced meanwhile; FAILED_PRECONDITION without
/// a coordination service; INVALID_ARGUMENT unless the buffer is empty.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_GetConfigKeyValue(
    ctx: Handle<TFE_Context>,
    key: Text,
    timeout_in_ms: i64,
    value_buf: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let key = key.text("key")?;
        let buffer = given_mut(value_buf, "value_buf")?;
        let service = service(ctx, "Coordination service")?;
        let timeout = u64::try_from(timeout_in_ms).ok().filter(|&timeout| timeout > 0);
        let value = service.get(&key, timeout.map(Duration::from_millis))?;
        fill_bytes(Some(buffer), &value)
    });
}

/// Takes back the value of a key, and those of keys below it. Fine when there are none. FAILED_PRECONDITION without a
/// coordination service.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_DeleteConfigKeyValue(
    ctx: Handle<TFE_Context>,
    key: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let key = key.text("key")?;
        service(ctx, "Coordination service")?.delete(&key);
        Ok(())
    });
}

/// Tells the cluster that this task has failed. FAILED_PRECONDITION when that was said before, or without a coordination
/// service.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ReportErrorToCluster(
    ctx: Handle<TFE_Context>,
    error_code: c_int,
    error_message: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let message = error_message.text("error_message")?;
        let code = Code::from_number(error_code);
        service(ctx, "Coordination service")?.report(code, &message)
    });
}

/// Puts the error that a task has reported, or OK, into `states`, a `TF_Status`. `tasks` holds the task: a serialized
/// `CoordinatedTask`. INVALID_ARGUMENT for other bytes, or a task that is not in the cluster; FAILED_PRECONDITION without a
/// coordination service.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_GetTaskStates(
    ctx: Handle<TFE_Context>,
    tasks: Option<&TF_Buffer>,
    states: *mut c_void,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let tasks = given(tasks, "tasks")?;
        let service = service(ctx, "Coordination service")?;
        ensure!(!states.is_null(), InvalidArgument, "states is NULL");
        // A CoordinatedTask has the same fields: a name and a number.
        let task: CoordinatedJob = decode(tasks.bytes()?, "Invalid CoordinatedTask protocol buffer")?;
        let state = service.state_of(&task.name, task.num_tasks)?;
        // SAFETY: the caller gives a status of its own, which nobody else uses during the call.
        unsafe { &mut *states.cast::<TF_Status>() }.set(state.err());
        Ok(())
    });
}

/// Waits until all tasks of the cluster wait at this barrier: there is one, so it goes on at once. FAILED_PRECONDITION after it
/// has reported an error, or without a coordination service.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_WaitAtBarrier(
    ctx: Handle<TFE_Context>,
    barrier_id: Text,
    _barrier_timeout_in_ms: i64,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        barrier_id.given("barrier_id")?;
        service(ctx, "Coordination service")?.wait_at_barrier()
    });
}
