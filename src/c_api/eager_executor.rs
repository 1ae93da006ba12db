//! `TFE_Executor`: where calls of a thread run.

use crate::TF_Status;
use crate::eager_context::{TFE_Context, context};
use crate::ffi::{Handle, given};
use crate::guard::{guard, guard_or, quiet};
use ff_runtime::Executor;
use std::ffi::c_int;
use std::sync::Arc;

/// Where calls run: on the caller's thread, or on a thread of the executor's own, in order. Any thread may use it at any
/// time.
pub struct TFE_Executor {
    executor: Arc<Executor>,
}

/// A new executor, asynchronous if `is_async`. With a positive `in_flight_nodes_limit`, calls wait while so many are queued.
/// `enable_streaming_enqueue` concerns other processes and is not used. Free it with `TFE_DeleteExecutor`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewExecutor(
    is_async: bool,
    _enable_streaming_enqueue: bool,
    in_flight_nodes_limit: c_int,
) -> Box<TFE_Executor> {
    Box::new(TFE_Executor {
        executor: Executor::new(is_async, in_flight_nodes_limit),
    })
}

/// Frees an executor, once what is queued has run; threads that use it use the context's own again. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_DeleteExecutor(executor: Option<Box<TFE_Executor>>) {
    quiet((), || {
        drop(executor);
        Ok(())
    });
}

/// Whether it is asynchronous. False for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ExecutorIsAsync(executor: Handle<TFE_Executor>) -> bool {
    quiet(false, || Ok(given(executor, "executor")?.executor.is_async()))
}

/// Waits until all that is queued has run. The error that is pending, until `TFE_ExecutorClearError`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ExecutorWaitForAllPendingNodes(
    executor: Handle<TFE_Executor>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || given(executor, "executor")?.executor.wait());
}

/// Forgets the error that is pending, so that calls run again.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ExecutorClearError(executor: Handle<TFE_Executor>) {
    quiet((), || {
        given(executor, "executor")?.executor.clear_error();
        Ok(())
    });
}

/// Lets calls of this thread run on an executor, until that is deleted; NULL for the context's own.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetExecutorForThread(ctx: Handle<TFE_Context>, executor: Handle<TFE_Executor>) {
    quiet((), || {
        context(ctx)?.set_executor(executor.map(|executor| &executor.executor));
        Ok(())
    });
}

/// Where calls of this thread run. Free the handle with `TFE_DeleteExecutor`. NULL for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextGetExecutorForThread(ctx: Handle<TFE_Context>) -> Option<Box<TFE_Executor>> {
    quiet(None, || {
        Ok(Some(Box::new(TFE_Executor {
            executor: context(ctx)?.executor(),
        })))
    })
}

/// Waits until all that is queued has run, on all executors that the context knows. The first error that is pending.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextAsyncWait(ctx: Handle<TFE_Context>, status: Option<&mut TF_Status>) {
    guard_or(status, (), || context(ctx)?.wait());
}
