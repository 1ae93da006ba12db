//! Libraries that add kernels, a graph optimizer, a profiler or a device: what they define is called when they are loaded.

use crate::TF_Status;
use crate::buffer::TF_Buffer;
use crate::env_system::symbol;
use crate::ffi::{Text, c_string};
use crate::grappler::TF_GrapplerItem;
use crate::guard::guard;
use crate::library::{TF_DeleteLibraryHandle, TF_Library, TF_LoadLibrary, open};
use crate::plugged_device;
use crate::stream_executor::{check_member, check_size};
use ff_graph::passes::plugin::{Item, Optimizer, SwitchedOff, add};
use ff_proto::GraphDef;
use ff_tensor::{Result, bail};
use parking_lot::Mutex;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

/// Libraries whose functions have been called.
static INITIALIZED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Loads a library that adds devices (`SE_InitPlugin`), a graph optimizer (`TF_InitGraph`), kernels (`TF_InitKernel`) or a
/// profiler (`TF_InitProfiler`); each function is called once, however often the library is loaded. It stays loaded for
/// good. Devices are those of sessions and contexts that are made later. Free the handle with
/// `TF_DeletePluggableDeviceLibraryHandle`.
///
/// NULL with NOT_FOUND when it cannot be loaded, with FAILED_PRECONDITION or the plug-in's own error when it does not register
/// itself well.
#[unsafe(no_mangle)]
pub extern "C" fn TF_LoadPluggableDeviceLibrary(
    library_filename: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Library>> {
    guard(status, || {
        let address = open(&c_string(&library_filename.text("library_filename")?))? as *mut c_void;
        let mut initialized = INITIALIZED.lock();
        if !initialized.contains(&(address as usize)) {
            if let Ok(function) = symbol(address, "SE_InitPlugin") {
                plugged_device::init(function)?;
            }
            if let Ok(function) = symbol(address, "TF_InitGraph") {
                init_graph(function)?;
            }
            if let Ok(init) = symbol(address, "TF_InitKernel") {
                // SAFETY: the interface of plug-ins says that this is such a function.
                unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(init)() };
            }
            if let Ok(function) = symbol(address, "TF_InitProfiler") {
                init_profiler(function)?;
            }
            initialized.push(address as usize);
        }
        let mut loaded = TF_Status::default();
        Ok(TF_LoadLibrary(library_filename, Some(&mut loaded)))
    })
}

/// Frees a handle; the library stays loaded. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeletePluggableDeviceLibraryHandle(lib_handle: Option<Box<TF_Library>>) {
    TF_DeleteLibraryHandle(lib_handle);
}

type CreateOptimizer = Option<unsafe extern "C" fn() -> *mut c_void>;
type Optimize = Option<
    unsafe extern "C" fn(
        *mut c_void,
        *const TF_Buffer,
        *const TF_GrapplerItem,
        *mut TF_Buffer,
        *mut TF_Status,
    ),
>;
type Destroy = Option<unsafe extern "C" fn(*mut c_void)>;

/// `TP_Optimizer` of grappler.h.
#[repr(C)]
struct OptimizerFunctions {
    struct_size: usize,
    ext: *mut c_void,
    create: CreateOptimizer,
    optimize: Optimize,
    destroy: Destroy,
}

/// `TP_OptimizerConfigs`: a number for each of the library's own passes.
#[repr(C)]
struct OptimizerConfigs {
    struct_size: usize,
    ext: *mut c_void,
    passes: [c_int; 19],
}

/// Places in `OptimizerConfigs::passes`, and the value that turns a pass off.
const FUNCTION_OPTIMIZATION: usize = 2;
const COMMON_SUBGRAPH_ELIMINATION: usize = 3;
const ARITHMETIC_OPTIMIZATION: usize = 4;
const CONSTANT_FOLDING: usize = 6;
const OFF: c_int = 1;

/// `TP_OptimizerRegistrationParams`.
#[repr(C)]
struct OptimizerParams {
    struct_size: usize,
    ext: *mut c_void,
    version: [i32; 3],
    device_type: *const c_char,
    optimizer_configs: *mut OptimizerConfigs,
    optimizer: *mut OptimizerFunctions,
}

/// Calls a registration function with its parameters; its own error.
///
/// # Safety
/// `function` is a function of two pointers, the first to `P`.
unsafe fn call_init<P>(function: *mut c_void, params: &mut P) -> Result<()> {
    let mut status = TF_Status::default();
    // SAFETY: passed on to the caller.
    unsafe {
        let init = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut P, *mut TF_Status)>(function);
        init(params, &raw mut status);
    }
    match status.error() {
        Some(error) => Err(error.clone()),
        None => Ok(()),
    }
}

/// Registers the graph optimizer of a plug-in.
fn init_graph(function: *mut c_void) -> Result<()> {
    let mut functions = OptimizerFunctions {
        struct_size: size_of::<OptimizerFunctions>(),
        ext: std::ptr::null_mut(),
        create: None,
        optimize: None,
        destroy: None,
    };
    let mut configs = OptimizerConfigs {
        struct_size: size_of::<OptimizerConfigs>(),
        ext: std::ptr::null_mut(),
        passes: [0; 19],
    };
    let mut params = OptimizerParams {
        struct_size: size_of::<OptimizerParams>(),
        ext: std::ptr::null_mut(),
        version: [0, 0, 1],
        device_type: std::ptr::null(),
        optimizer_configs: &raw mut configs,
        optimizer: &raw mut functions,
    };
    // SAFETY: the interface of plug-ins says that this is such a function.
    unsafe { call_init(function, &mut params) }?;
    let name = "TP_OptimizerRegistrationParams";
    check_size(
        params.struct_size,
        name,
        "TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE",
    )?;
    check_member(!params.device_type.is_null(), "device_type", name)?;
    check_size(functions.struct_size, "TP_Optimizer", "TP_OPTIMIZER_STRUCT_SIZE")?;
    check_member(functions.optimize.is_some(), "optimize_func", "TP_Optimizer")?;
    check_size(
        configs.struct_size,
        "TP_OptimizerConfigs",
        "TP_OPTIMIZER_CONFIGS_STRUCT_SIZE",
    )?;
    // SAFETY: not NULL; the plug-in gives a C string.
    let device = unsafe { CStr::from_ptr(params.device_type) }.to_string_lossy();
    let is_off = |pass: usize| configs.passes[pass] == OFF;
    let off = SwitchedOff {
        inlining: is_off(FUNCTION_OPTIMIZATION),
        simplification: is_off(ARITHMETIC_OPTIMIZATION),
        folding: is_off(CONSTANT_FOLDING),
        merging: is_off(COMMON_SUBGRAPH_ELIMINATION),
    };
    let optimizer = PluginOptimizer {
        create: functions.create,
        optimize: functions.optimize,
        destroy: functions.destroy,
        one_at_a_time: Mutex::new(()),
    };
    add(&device, off, Arc::new(optimizer))
}

/// A graph optimizer of a plug-in.
struct PluginOptimizer {
    create: CreateOptimizer,
    optimize: Optimize,
    destroy: Destroy,
    one_at_a_time: Mutex<()>,
}

impl Optimizer for PluginOptimizer {
    fn optimize(&self, item: &Item) -> Result<GraphDef> {
        let Some(optimize) = self.optimize else {
            bail!(Internal, "there is no function to optimize with");
        };
        let graph = TF_Buffer::of_message(&item.graph)?;
        let item = TF_GrapplerItem(item.clone());
        let mut optimized = TF_Buffer::empty();
        let mut status = TF_Status::default();
        {
            let _one = self.one_at_a_time.lock();
            // SAFETY: the plug-in's functions, in the order that its interface promises; all arguments live for the call.
            unsafe {
                let optimizer = self.create.map_or(std::ptr::null_mut(), |create| create());
                optimize(
                    optimizer,
                    &raw const graph,
                    &raw const item,
                    &raw mut optimized,
                    &raw mut status,
                );
                if let Some(destroy) = self.destroy {
                    destroy(optimizer);
                }
            }
        }
        let outcome = match status.error() {
            Some(error) => Err(error.clone()),
            None => optimized.decode("Unparseable proto"),
        };
        crate::TF_DeleteBuffer(Some(Box::new(graph)));
        crate::TF_DeleteBuffer(Some(Box::new(optimized)));
        outcome
    }
}

/// `TP_Profiler` of pluggable_profiler.h.
#[repr(C)]
struct Profiler {
    struct_size: usize,
    ext: *mut c_void,
    device_type: *const c_char,
}

type ProfilerCall = Option<unsafe extern "C" fn(*const Profiler, *mut TF_Status)>;

/// `TP_ProfilerFns`.
#[repr(C)]
struct ProfilerFunctions {
    struct_size: usize,
    ext: *mut c_void,
    start: ProfilerCall,
    stop: ProfilerCall,
    collect_data_xspace: Option<unsafe extern "C" fn(*const Profiler, *mut u8, *mut usize, *mut TF_Status)>,
}

/// `TF_ProfilerRegistrationParams`.
#[repr(C)]
struct ProfilerParams {
    struct_size: usize,
    ext: *mut c_void,
    version: [i32; 3],
    profiler: *mut Profiler,
    profiler_fns: *mut ProfilerFunctions,
    destroy_profiler: Option<unsafe extern "C" fn(*mut Profiler)>,
    destroy_profiler_fns: Option<unsafe extern "C" fn(*mut ProfilerFunctions)>,
}

/// Has a plug-in describe its profiler, and checks what it says. Runs start no profilers of plug-ins, as upstream's do not,
/// so it is destroyed again.
fn init_profiler(function: *mut c_void) -> Result<()> {
    let mut profiler = Profiler {
        struct_size: size_of::<Profiler>(),
        ext: std::ptr::null_mut(),
        device_type: std::ptr::null(),
    };
    let mut functions = ProfilerFunctions {
        struct_size: size_of::<ProfilerFunctions>(),
        ext: std::ptr::null_mut(),
        start: None,
        stop: None,
        collect_data_xspace: None,
    };
    let mut params = ProfilerParams {
        struct_size: size_of::<ProfilerParams>(),
        ext: std::ptr::null_mut(),
        version: [0, 0, 1],
        profiler: &raw mut profiler,
        profiler_fns: &raw mut functions,
        destroy_profiler: None,
        destroy_profiler_fns: None,
    };
    // SAFETY: the interface of plug-ins says that this is such a function.
    unsafe { call_init(function, &mut params) }?;
    let name = "TF_ProfilerRegistrationParams";
    check_size(
        params.struct_size,
        name,
        "TF_PROFILER_REGISTRATION_PARAMS_STRUCT_SIZE",
    )?;
    check_member(params.destroy_profiler.is_some(), "destroy_profiler", name)?;
    check_member(
        params.destroy_profiler_fns.is_some(),
        "destroy_profiler_fns",
        name,
    )?;
    check_size(profiler.struct_size, "TP_Profiler", "TP_PROFILER_STRUCT_SIZE")?;
    check_member(!profiler.device_type.is_null(), "device_type", "TP_Profiler")?;
    let of = "TP_ProfilerFns";
    check_size(functions.struct_size, of, "TF_PROFILER_FNS_STRUCT_SIZE")?;
    check_member(functions.start.is_some(), "start", of)?;
    check_member(functions.stop.is_some(), "stop", of)?;
    check_member(functions.collect_data_xspace.is_some(), "collect_data_xspace", of)?;
    if let (Some(destroy), Some(destroy_functions)) = (params.destroy_profiler, params.destroy_profiler_fns) {
        // SAFETY: called once each, with what the plug-in filled in.
        unsafe {
            destroy(&raw mut profiler);
            destroy_functions(&raw mut functions);
        }
    }
    Ok(())
}
