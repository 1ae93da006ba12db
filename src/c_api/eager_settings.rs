//! Settings of eager contexts, and functions of a context.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, fill, fill_bytes};
use crate::eager_context::{TFE_Context, TFE_ContextOptions, context};
use crate::ffi::{Handle, Text};
use crate::function::TF_Function;
use crate::guard::{guard, guard_or, quiet};
use ff_tensor::{ensure, status};
use std::ffi::{c_int, c_uchar};

/// Asks for another runtime, which there is not: `TFE_NewContext` then fails with UNIMPLEMENTED.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextOptionsSetTfrt(options: Option<&mut TFE_ContextOptions>, use_tfrt: bool) {
    if let Some(options) = options {
        options.use_tfrt = use_tfrt;
    }
}

/// The number of the context among those of its cluster; 0 without a cluster. It changes with the cluster.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_GetContextId(ctx: Handle<TFE_Context>) -> u64 {
    quiet(0, || Ok(context(ctx)?.cluster_view()))
}

/// Starts to collect the graphs of functions when they are made ready to run; `TFE_ContextExportRunMetadata` gives them.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextEnableGraphCollection(ctx: Handle<TFE_Context>) {
    quiet((), || {
        context(ctx)?.collect_graphs(true);
        Ok(())
    });
}

/// Stops to collect graphs.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextDisableGraphCollection(ctx: Handle<TFE_Context>) {
    quiet((), || {
        context(ctx)?.collect_graphs(false);
        Ok(())
    });
}

/// Fills `buf` with the job, replica and task of the first CPU, as they stand before `/device:` in its name.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_HostAddressSpace(ctx: Handle<TFE_Context>, buf: Option<&mut TF_Buffer>) {
    quiet((), || {
        let names = context(ctx)?.device_names();
        let first = names.first().map_or("", String::as_str);
        fill_bytes(buf, first.split("/device:").next().unwrap_or("").as_bytes())
    });
}

/// Lets ops whose device is not there run on another one, if `enable` is not 0.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetSoftDevicePlacement(
    ctx: Handle<TFE_Context>,
    enable: c_uchar,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        context(ctx)?.set_soft_placement(enable != 0);
        Ok(())
    });
}

/// Logs which device each op runs on, if `enable` is not 0.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetLogDevicePlacement(
    ctx: Handle<TFE_Context>,
    enable: c_uchar,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        context(ctx)?.set_log_placement(enable != 0);
        Ok(())
    });
}

/// Would run each op as a function of its own. It makes no difference to what ops give, and is not needed here.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetRunEagerOpAsFunction(
    ctx: Handle<TFE_Context>,
    _enable: c_uchar,
    status: Option<&mut TF_Status>,
) {
    guard(status, || context(ctx).map(|_| ()));
}

/// Would mark functions to be compiled. It makes no difference to what they give.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetJitCompileRewrite(
    ctx: Handle<TFE_Context>,
    _enable: c_uchar,
    status: Option<&mut TF_Status>,
) {
    guard(status, || context(ctx).map(|_| ()));
}

/// Fills `buf` with the names of ops that ran, as far as they are kept: none are.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_GetExecutedOpNames(
    ctx: Handle<TFE_Context>,
    buf: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        context(ctx)?;
        fill_bytes(buf, &[])
    });
}

/// Adds CPU devices to the context, so that there are the numbers 0 to `num_cpus - 1` for the job, replica and task in
/// `prefix` (this process for NULL or empty); the device with the number 0 is the context's first and is not added.
/// INVALID_ARGUMENT when one of them is there already; then none is added.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_SetLogicalCpuDevices(
    ctx: Handle<TFE_Context>,
    num_cpus: c_int,
    prefix: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let prefix = prefix.or_empty();
        let prefix = match &*prefix {
            "" => "/job:localhost/replica:0/task:0",
            prefix => prefix,
        };
        let count = usize::try_from(num_cpus).unwrap_or(0);
        ensure!(count <= 1024, InvalidArgument, "{count} are too many devices");
        context(ctx)?.add_cpu_devices(count, prefix)
    });
}

/// Fills `buf` with a serialized `FunctionDef`. NOT_FOUND when there is no function with this name; INVALID_ARGUMENT unless
/// the buffer is empty.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextGetFunctionDef(
    ctx: Handle<TFE_Context>,
    function_name: Text,
    buf: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let name = function_name.text("function_name")?;
        let found = context(ctx)?.function(&name);
        let missing = |_| status!(NotFound, "Unable to find FunctionDef with name: {name}");
        fill(buf, &*found.map_err(missing)?)
    });
}

/// Fills `buf` with where the nodes of a function come from: nothing, as that is not kept. NOT_FOUND when there is no
/// function with this name.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextGetGraphDebugInfo(
    ctx: Handle<TFE_Context>,
    function_name: Text,
    buf: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let name = function_name.text("function_name")?;
        ensure!(
            context(ctx)?.has_function(&name),
            NotFound,
            "Unable to find function with name: {name}"
        );
        fill_bytes(buf, &[])
    });
}

/// The function with this name. Free it with `TF_DeleteFunction`. NULL with NOT_FOUND when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextGetFunction(
    ctx: Handle<TFE_Context>,
    name: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Function>> {
    guard_or(status, None, || {
        let name = name.text("name")?;
        let found = context(ctx)?.function(&name);
        let missing = |_| status!(NotFound, "Unable to find Function with name: {name}");
        Ok(Some(TF_Function::boxed(found.map_err(missing)?)))
    })
}
