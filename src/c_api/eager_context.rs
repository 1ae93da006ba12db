//! `TFE_Context`: where ops run eagerly, with its devices and functions.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, decode, fill};
use crate::device_list::TF_DeviceList;
use crate::eager_cluster::join;
use crate::eager_custom_device::CustomDevices;
use crate::ffi::{Array, Blob, Enum, Handle, Text, given, given_mut};
use crate::function::TF_Function;
use crate::guard::{guard, guard_or, quiet};
use ff_ops::registry;
use ff_proto::{ConfigProto, FunctionDef};
use ff_runtime::{DeviceName, EagerContext, Joining, SessionOptions};
use ff_tensor::{Result, ensure};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
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
    /// Whether another runtime is asked for, which there is not.
    pub use_tfrt: bool,
}

/// Where ops run eagerly. Any thread may use it at any time. It must live as long as the ops made with it; tensor handles may
/// live longer.
pub struct TFE_Context {
    /// What the handle shares with its ops.
    pub state: Arc<ContextState>,
}

/// A context and what only C code adds to it.
pub struct ContextState {
    /// The context itself.
    pub context: Arc<EagerContext>,
    /// Devices of the program.
    pub custom: CustomDevices,
    /// Devices that stand for several: the names of the parts, and by place the number of the whole.
    pub composites: Mutex<Vec<Vec<DeviceName>>>,
    /// What names of devices in calls have been found to mean, by the addresses of the names.
    pub places: RwLock<FxHashMap<usize, DeviceName>>,
    policy: i32,
}

impl TFE_Context {
    /// The context of these options; NULL are the defaults.
    pub fn boxed(options: Option<&TFE_ContextOptions>) -> Result<Box<TFE_Context>> {
        ensure!(
            options.is_none_or(|options| !options.use_tfrt),
            Unimplemented,
            "TFRT is not supported"
        );
        let session = SessionOptions {
            config: options.map(|options| options.config.clone()).unwrap_or_default(),
            ..SessionOptions::default()
        };
        let is_async = options.is_some_and(|options| options.is_async);
        Ok(Box::new(TFE_Context {
            state: Arc::new(ContextState {
                context: Arc::new(EagerContext::new(registry(), &session, is_async)),
                custom: CustomDevices::default(),
                composites: Mutex::default(),
                places: RwLock::default(),
                policy: options.map_or(SILENT, |options| options.policy),
            }),
        }))
    }
}

impl Drop for TFE_Context {
    fn drop(&mut self) {
        self.state.context.drain();
        self.state.custom.clear();
    }
}

impl ContextState {
    /// The placement policy of the calling thread.
    pub fn policy(&self) -> i32 {
        POLICY.get().unwrap_or(self.policy)
    }
}

/// The context behind a handle. INVALID_ARGUMENT for NULL.
pub(crate) fn context(ctx: Handle<'_, TFE_Context>) -> Result<&Arc<EagerContext>> {
    Ok(&given(ctx, "ctx")?.state.context)
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
        use_tfrt: false,
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

/// Lets calls run on a thread of the context's own, in order, if `enable` is not 0; an error is then found when the call runs.
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

/// A new context. NULL options are the defaults. Free it with `TFE_DeleteContext`. NULL with UNIMPLEMENTED for a runtime that
/// there is not.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewContext(
    opts: Option<&TFE_ContextOptions>,
    status: Option<&mut TF_Status>,
) -> Option<Box<TFE_Context>> {
    guard_or(status, None, || TFE_Context::boxed(opts).map(Some))
}

/// Frees a context, once the calls that were queued have run; NULL is ignored.
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
        let context = context(ctx)?;
        Ok(Some(TF_DeviceList::of_each(|visit| context.each_device(visit))))
    })
}

/// Forgets kernels that were kept, and with them the state of stateful ones such as random streams.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextClearCaches(ctx: Handle<TFE_Context>) {
    quiet((), || {
        context(ctx)?.clear_kernels();
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
    Enum::new(ctx.map_or(SILENT, |ctx| ctx.state.policy()))
}

/// Makes the context the task that a serialized `ServerDef` of `proto_len` bytes says, of a cluster that has no other. Its
/// devices are then called `/job:J/replica:R/task:T/device:CPU:0` and so on, as many as `default_session_config` says, and
/// the job is the container of resources that name none. Functions stay; resources go, unless the context was this task with
/// this configuration already. Waits for calls that are queued. No port is opened. `keep_alive_secs` has no meaning here.
///
/// INVALID_ARGUMENT for other bytes, for names or addresses that cannot be, and for jobs of one name; NOT_FOUND for a
/// protocol other than `grpc`; INTERNAL when the task is not in the cluster; UNIMPLEMENTED when others are, which needs a
/// distributed runtime.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextSetServerDef(
    ctx: Handle<TFE_Context>,
    _keep_alive_secs: c_int,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || join(ctx, proto, proto_len, Joining::Cluster));
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
        context(ctx)?.add_function(Arc::new(function))
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
        context(ctx)?.add_function(function)
    });
}

/// Removes a function. INVALID_ARGUMENT when there is none with this name.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextRemoveFunction(
    ctx: Handle<TFE_Context>,
    name: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || context(ctx)?.remove_function(&name.text("name")?));
}

/// Whether there is a function with this name: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextHasFunction(ctx: Handle<TFE_Context>, name: Text) -> c_uchar {
    quiet(0, || Ok(context(ctx)?.has_function(&name.text("name")?).into()))
}

/// Starts to collect what runs.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextEnableRunMetadata(ctx: Handle<TFE_Context>) {
    quiet((), || {
        context(ctx)?.enable_metadata();
        Ok(())
    });
}

/// Stops to collect what runs, and forgets it.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextDisableRunMetadata(ctx: Handle<TFE_Context>) {
    quiet((), || {
        context(ctx)?.disable_metadata();
        Ok(())
    });
}

/// Fills `buf` with a serialized `RunMetadata` of what ran, and of graphs that were collected, since the last call, and
/// forgets it. Waits for the calls of this thread; their error, if one is pending.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextExportRunMetadata(
    ctx: Handle<TFE_Context>,
    buf: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let context = context(ctx)?;
        context.executor().wait()?;
        fill(buf, &context.take_metadata())
    });
}

/// Starts a step. Steps bound the life of what ops keep for one step only; here nothing is kept so.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextStartStep(_ctx: Handle<TFE_Context>) {}

/// Ends a step.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_ContextEndStep(_ctx: Handle<TFE_Context>) {}
