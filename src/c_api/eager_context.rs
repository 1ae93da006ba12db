//! `TFE_Context`: where ops run eagerly, with its devices and functions.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, decode, fill};
use crate::device_list::TF_DeviceList;
use crate::ffi::{Array, Blob, Enum, Handle, Text, given, given_mut};
use crate::function::TF_Function;
use crate::guard::{guard, guard_or, quiet};
use ff_ops::registry;
use ff_proto::{ConfigProto, FunctionDef, Message, ServerDef};
use ff_runtime::{EagerContext, SessionOptions};
use ff_tensor::status;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uchar};
use std::sync::Arc;

/// What happens to an input that is on another device than its op.
#[repr(C)]
pub enum TFE_ContextDevicePlacementPolicy {
    /// The call fails.
    TFE_DEVICE_PLACEMENT_EXPLICIT = 0,
    /// It is copied, with a warning.
    TFE_DEVICE_PLACEMENT_WARN = 1,
    /// It is copied. This is the default.
    TFE_DEVICE_PLACEMENT_SILENT = 2,
    /// It is copied if it is an int32; otherwise the call fails.
    TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32 = 3,
}

const SILENT: i32 = TFE_ContextDevicePlacementPolicy::TFE_DEVICE_PLACEMENT_SILENT as i32;

/// How contexts are configured. One thread at a time may change it.
pub struct TFE_ContextOptions {
    config: ConfigProto,
    policy: i32,
    is_async: bool,
}

/// Where ops run eagerly. Any thread may use it at any time. It must live as long as the ops made with it; tensor handles may
/// live longer.
pub struct TFE_Context {
    /// The context itself.
    pub context: Arc<EagerContext>,
    policy: i32,
    /// Whether ops were asked to run asynchronously. They run to their end all the same.
    pub is_async: bool,
}

thread_local! {
    /// The policy of this thread, over that of the context.
    static POLICY: Cell<Option<i32>> = const { Cell::new(None) };
}

/// New options with default values. Free them with `TFE_DeleteContextOptions`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewContextOptions() -> Box<TFE_ContextOptions> {
    Box::new(TFE_ContextOptions {
        config: ConfigProto::default(),
        policy: SILENT,
        is_async: false,
    })
}

/// Sets the configuration: a serialized `ConfigProto` of `proto_len` bytes. INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextOptionsSetConfig(
    options: Option<&mut TFE_ContextOptions>,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let config = decode(proto.bytes(proto_len, "proto")?, "Unparseable ConfigProto")?;
        given_mut(options, "options")?.config = config;
        Ok(())
    });
}

/// Lets ops run asynchronously if `enable` is not 0. They may be run to their end all the same.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextOptionsSetAsync(options: Option<&mut TFE_ContextOptions>, enable: c_uchar) {
    if let Some(options) = options {
        options.is_async = enable != 0;
    }
}

/// Sets what happens to inputs on other devices.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextOptionsSetDevicePlacementPolicy(
    options: Option<&mut TFE_ContextOptions>,
    policy: Enum<TFE_ContextDevicePlacementPolicy>,
) {
    if let Some(options) = options {
        options.policy = policy.0;
    }
}

/// Frees options; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_DeleteContextOptions(options: Option<Box<TFE_ContextOptions>>) {
    quiet((), || {
        drop(options);
        Ok(())
    });
}

/// A new context. NULL options are the defaults. Free it with `TFE_DeleteContext`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewContext(
    opts: Option<&TFE_ContextOptions>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_Context>> {
    guard_or(status, None, || {
        let options = SessionOptions {
            config: opts.map(|opts| opts.config.clone()).unwrap_or_default(),
            ..SessionOptions::default()
        };
        Ok(Some(Box::new(TFE_Context {
            context: Arc::new(EagerContext::new(registry(), &options)),
            policy: opts.map_or(SILENT, |opts| opts.policy),
            is_async: opts.is_some_and(|opts| opts.is_async),
        })))
    })
}

/// Frees a context; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_DeleteContext(ctx: Option<Box<TFE_Context>>) {
    quiet((), || {
        drop(ctx);
        Ok(())
    });
}

/// The devices. Free the list with `TF_DeleteDeviceList`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextListDevices(
    ctx: Handle<TFE_Context>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_DeviceList>> {
    guard_or(status, None, || {
        Ok(Some(TF_DeviceList::of(given(ctx, "ctx")?.context.devices())))
    })
}

/// Forgets kernels that were kept, and with them the state of stateful ones such as random streams.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextClearCaches(ctx: Handle<TFE_Context>) {
    quiet((), || {
        given(ctx, "ctx")?.context.clear_kernels();
        Ok(())
    });
}

/// Sets the placement policy of the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetThreadLocalDevicePlacementPolicy(
    _ctx: Handle<TFE_Context>,
    policy: Enum<TFE_ContextDevicePlacementPolicy>,
) {
    POLICY.set(Some(policy.0));
}

/// The placement policy of the calling thread: its own, or else that of the context.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextGetDevicePlacementPolicy(
    ctx: Handle<TFE_Context>,
) -> Enum<TFE_ContextDevicePlacementPolicy> {
    let of_context = ctx.map_or(SILENT, |ctx| ctx.policy);
    Enum::new(POLICY.get().unwrap_or(of_context))
}

/// Makes the context part of a cluster. UNIMPLEMENTED; INVALID_ARGUMENT for bytes that are no `ServerDef`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetServerDef(
    ctx: Handle<TFE_Context>,
    _keep_alive_secs: c_int,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        given(ctx, "ctx")?;
        let _: ServerDef = decode(
            proto.bytes(proto_len, "proto")?,
            "Invalid tensorflow.ServerDef protocol buffer",
        )?;
        Err::<(), _>(status!(
            Unimplemented,
            "TFE_ContextSetServerDef: this library has no distributed runtime"
        ))
    });
}

/// Adds a function: a serialized `FunctionDef` of `size` bytes. INVALID_ARGUMENT for other bytes, or when another function
/// has its name.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextAddFunctionDef(
    ctx: Handle<TFE_Context>,
    serialized_function_def: Array<c_char>,
    size: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let bytes = serialized_function_def.bytes(size, "serialized_function_def")?;
        let function: FunctionDef = decode(bytes, "Invalid FunctionDef proto")?;
        given(ctx, "ctx")?.context.add_function(Arc::new(function))
    });
}

/// Adds a function. INVALID_ARGUMENT when another has its name.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextAddFunction(
    ctx: Handle<TFE_Context>,
    function: Handle<TF_Function>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let function = given(function, "function")?.def().clone();
        given(ctx, "ctx")?.context.add_function(function)
    });
}

/// Removes a function. INVALID_ARGUMENT when there is none with this name.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextRemoveFunction(
    ctx: Handle<TFE_Context>,
    name: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        given(ctx, "ctx")?.context.remove_function(&name.text("name")?)
    });
}

/// Whether there is a function with this name: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextHasFunction(ctx: Handle<TFE_Context>, name: Text) -> c_uchar {
    quiet(0, || {
        Ok(given(ctx, "ctx")?
            .context
            .has_function(&name.text("name")?)
            .into())
    })
}

/// Starts to collect what runs.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextEnableRunMetadata(ctx: Handle<TFE_Context>) {
    quiet((), || {
        given(ctx, "ctx")?.context.enable_metadata();
        Ok(())
    });
}

/// Stops to collect what runs, and forgets it.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextDisableRunMetadata(ctx: Handle<TFE_Context>) {
    quiet((), || {
        given(ctx, "ctx")?.context.disable_metadata();
        Ok(())
    });
}

/// Fills `buf` with a serialized `RunMetadata` of what ran since the last call, and forgets it.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextExportRunMetadata(
    ctx: Handle<TFE_Context>,
    buf: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let context = &given(ctx, "ctx")?.context;
        fill(buf, &context.take_metadata().encode_to_vec())
    });
}

/// Starts a step. Steps bound the life of what ops keep for one step only; here nothing is kept so.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextStartStep(_ctx: Handle<TFE_Context>) {}

/// Ends a step.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextEndStep(_ctx: Handle<TFE_Context>) {}
