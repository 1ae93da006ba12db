//! `TF_OpKernelContext`: the step, the device and the session that a kernel runs in.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, fill};
use crate::ffi::given_mut;
use crate::guard::{guard, guard_or, quiet};
use crate::kernel_context::TF_OpKernelContext;
use crate::string_view::TF_StringView;
use ff_op::DEFAULT_CONTAINER;
use ff_tensor::bail;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The number of the step.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StepId(ctx: Option<&mut TF_OpKernelContext>) -> i64 {
    quiet(0, || Ok(given_mut(ctx, "ctx")?.context().host().step_id() as i64))
}

/// The number of the step.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetStepId(ctx: Option<&mut TF_OpKernelContext>) -> i64 {
    TF_StepId(ctx)
}

/// The number of the loop that the node runs in, from the names of frames and the turns around; 0 outside of loops.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetFrameId(ctx: Option<&mut TF_OpKernelContext>) -> u64 {
    quiet(0, || Ok(given_mut(ctx, "ctx")?.turn().frame))
}

/// The number of the turn of that loop, from 0.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetIterId(ctx: Option<&mut TF_OpKernelContext>) -> i64 {
    quiet(0, || Ok(given_mut(ctx, "ctx")?.turn().turn as i64))
}

/// The number of the device among those of its type.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetDeviceId(ctx: Option<&mut TF_OpKernelContext>) -> c_int {
    quiet(0, || {
        let name = given_mut(ctx, "ctx")?.context().host().device_name();
        let number = name.rsplit(':').next().and_then(|digits| digits.parse().ok());
        Ok(number.unwrap_or(0))
    })
}

/// The name of the device; valid as long as the session.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetDeviceName(ctx: Option<&mut TF_OpKernelContext>) -> TF_StringView {
    quiet(TF_StringView::EMPTY, || {
        Ok(TF_StringView::of(
            given_mut(ctx, "ctx")?.context().host().device_name(),
        ))
    })
}

/// The version of GraphDefs that the library writes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetGraphDefVersion(_ctx: Option<&mut TF_OpKernelContext>) -> c_int {
    ff_graph::GRAPH_DEF_VERSION
}

/// The name of the node; valid as long as the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetOpKernelName(ctx: Option<&mut TF_OpKernelContext>) -> TF_StringView {
    quiet(TF_StringView::EMPTY, || {
        Ok(TF_StringView::of(&given_mut(ctx, "ctx")?.context().node().name))
    })
}

/// The container of resources that name none; valid as long as the device.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetResourceMgrDefaultContainerName(
    ctx: Option<&mut TF_OpKernelContext>,
) -> TF_StringView {
    quiet(TF_StringView::of(DEFAULT_CONTAINER), || {
        let resources = given_mut(ctx, "ctx")?.context().resources();
        Ok(TF_StringView::of(resources.container("")))
    })
}

/// The name of an input as the node's definition has it: `node`, `node:1`; then come `^node` for what it waits for. A value
/// that the run was given has the name of an argument, `_arg_node_0_0`, and one of a call without a graph is `dummy_input`.
/// Empty when there is no such input. Valid as long as the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetOpKernelRequestedInput(
    ctx: Option<&mut TF_OpKernelContext>,
    index: usize,
) -> TF_StringView {
    quiet(TF_StringView::EMPTY, || {
        let name = given_mut(ctx, "ctx")?.input_name(index);
        Ok(name.map_or(TF_StringView::EMPTY, TF_StringView::of))
    })
}

/// Writes the functions of the graph as a serialized `FunctionDefLibrary` into an empty buffer. INVALID_ARGUMENT unless it is
/// empty.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetSerializedFunctionDefLibrary(
    ctx: Option<&mut TF_OpKernelContext>,
    serialized_function_def_library: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let host = given_mut(ctx, "ctx")?.context().host();
        fill(serialized_function_def_library, &host.functions().library())
    });
}

/// Writes the configuration of the session as a serialized `ConfigProto` into an empty buffer; the default one where there is
/// no session. INVALID_ARGUMENT unless the buffer is empty.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetSerializedConfigProto(
    ctx: Option<&mut TF_OpKernelContext>,
    serialized_config_proto: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let host = given_mut(ctx, "ctx")?.context().host();
        fill(serialized_config_proto, &host.config())
    });
}

/// The stream of the device that a plug-in brought and the kernel runs on. NULL with UNIMPLEMENTED on a CPU.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetStream(
    ctx: Option<&mut TF_OpKernelContext>,
    status: Option<&mut TF_Status>,
) -> *mut c_void {
    guard_or(status, null_mut(), || match given_mut(ctx, "ctx")?.stream() {
        Some(stream) => Ok(stream),
        None => bail!(Unimplemented, "The device has no stream"),
    })
}
