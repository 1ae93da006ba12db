//! The structs of functions that a device plug-in fills in, as `stream_executor.h` lays them out, and their checks.
//!
//! Only what the library calls has its type; the rest is there for its place. Nothing here is called from C.

use crate::TF_Status;
use ff_tensor::{Result, ensure};
use std::ffi::{c_char, c_int, c_uchar, c_void};

/// A function that is not called, or whose presence is all that matters.
pub type Unused = Option<unsafe extern "C" fn()>;

#[repr(C)]
pub struct SP_DeviceMemoryBase {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub opaque: *mut c_void,
    pub size: u64,
    pub payload: u64,
}

impl SP_DeviceMemoryBase {
    pub fn new(opaque: *mut c_void, size: u64) -> SP_DeviceMemoryBase {
        SP_DeviceMemoryBase {
            struct_size: size_of::<SP_DeviceMemoryBase>(),
            ext: std::ptr::null_mut(),
            opaque,
            size,
            payload: 0,
        }
    }
}

#[repr(C)]
pub struct SP_Device {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub ordinal: i32,
    pub device_handle: *mut c_void,
    pub hardware_name: *const c_char,
    pub device_vendor: *const c_char,
    pub pci_bus_id: *const c_char,
}

#[repr(C)]
pub struct SE_CreateDeviceParams {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub ordinal: i32,
    pub device: *mut SP_Device,
}

#[repr(C)]
pub struct SE_CreateStreamExecutorParams {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub stream_executor: *mut SP_StreamExecutor,
}

pub type CreateStream = Option<unsafe extern "C" fn(*const SP_Device, *mut *mut c_void, *mut TF_Status)>;
pub type WaitForStream = Option<unsafe extern "C" fn(*const SP_Device, *mut c_void, *mut TF_Status)>;

#[repr(C)]
pub struct SP_StreamExecutor {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub allocate: Option<unsafe extern "C" fn(*const SP_Device, u64, i64, *mut SP_DeviceMemoryBase)>,
    pub deallocate: Option<unsafe extern "C" fn(*const SP_Device, *mut SP_DeviceMemoryBase)>,
    pub host_and_unified_memory: [Unused; 4],
    pub get_allocator_stats: Unused,
    pub device_memory_usage: Unused,
    pub create_stream: CreateStream,
    pub destroy_stream: Unused,
    pub create_stream_dependency: Unused,
    pub get_stream_status: Unused,
    pub create_event: Unused,
    pub destroy_event: Unused,
    pub get_event_status: Unused,
    pub record_event: Unused,
    pub wait_for_event: Unused,
    pub create_timer: Unused,
    pub destroy_timer: Unused,
    pub start_timer: Unused,
    pub stop_timer: Unused,
    pub memcpy_dtoh: Unused,
    pub memcpy_htod: Unused,
    pub memcpy_dtod: Unused,
    pub sync_memcpy_dtoh: Option<
        unsafe extern "C" fn(*const SP_Device, *mut c_void, *const SP_DeviceMemoryBase, u64, *mut TF_Status),
    >,
    pub sync_memcpy_htod: Option<
        unsafe extern "C" fn(*const SP_Device, *mut SP_DeviceMemoryBase, *const c_void, u64, *mut TF_Status),
    >,
    pub sync_memcpy_dtod: Unused,
    pub block_host_for_event: Unused,
    pub block_host_until_done: WaitForStream,
    pub synchronize_all_activity: Option<unsafe extern "C" fn(*const SP_Device, *mut TF_Status)>,
    pub fill_and_callback: [Unused; 4],
}

#[repr(C)]
pub struct SP_Platform {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub name: *const c_char,
    pub kind: *const c_char,
    pub supports_unified_memory: c_uchar,
    pub use_bfc_allocator: c_uchar,
    pub force_memory_growth: c_uchar,
}

#[repr(C)]
pub struct SP_PlatformFns {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub get_device_count: Option<unsafe extern "C" fn(*const SP_Platform, *mut c_int, *mut TF_Status)>,
    pub create_device:
        Option<unsafe extern "C" fn(*const SP_Platform, *mut SE_CreateDeviceParams, *mut TF_Status)>,
    pub destroy_device: Unused,
    pub create_device_fns: Unused,
    pub destroy_device_fns: Unused,
    pub create_stream_executor:
        Option<unsafe extern "C" fn(*const SP_Platform, *mut SE_CreateStreamExecutorParams, *mut TF_Status)>,
    pub destroy_stream_executor: Unused,
    pub create_timer_fns: Unused,
    pub destroy_timer_fns: Unused,
}

#[repr(C)]
pub struct SE_PlatformRegistrationParams {
    pub struct_size: usize,
    pub ext: *mut c_void,
    pub version: [i32; 3],
    pub platform: *mut SP_Platform,
    pub platform_fns: *mut SP_PlatformFns,
    pub destroy_platform: Unused,
    pub destroy_platform_fns: Unused,
}

/// Structs that a plug-in fills in: all zero, but for their size.
macro_rules! zeroed {
    ($($kind:ident)*) => { $(
        impl $kind {
            pub fn empty() -> $kind {
                // SAFETY: a struct of numbers, pointers and optional functions, for which zero bytes are values.
                let mut value: $kind = unsafe { std::mem::zeroed() };
                value.struct_size = size_of::<$kind>();
                value
            }
        }
    )* };
}
zeroed!(SP_Device SP_StreamExecutor SP_Platform SP_PlatformFns SE_PlatformRegistrationParams);

/// FAILED_PRECONDITION, with the reference's text, for a struct whose size was not set.
pub fn check_size(size: usize, name: &str, value: &str) -> Result<()> {
    ensure!(
        size != 0,
        FailedPrecondition,
        "struct_size field in {name} must be set to {value}."
    );
    Ok(())
}

/// FAILED_PRECONDITION, with the reference's text, for a member that was not set.
pub fn check_member(is_set: bool, name: &str, of: &str) -> Result<()> {
    ensure!(is_set, FailedPrecondition, "'{name}' field in {of} must be set.");
    Ok(())
}

impl SE_PlatformRegistrationParams {
    /// Whether everything is set that has to be.
    pub fn check(&self, platform: &SP_Platform, functions: &SP_PlatformFns) -> Result<()> {
        let name = "SE_PlatformRegistrationParams";
        check_size(
            self.struct_size,
            name,
            "SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE",
        )?;
        check_member(self.destroy_platform.is_some(), "destroy_platform", name)?;
        check_member(self.destroy_platform_fns.is_some(), "destroy_platform_fns", name)?;
        check_size(platform.struct_size, "SP_Platform", "SP_PLATFORM_STRUCT_SIZE")?;
        check_member(!platform.name.is_null(), "name", "SP_Platform")?;
        check_member(!platform.kind.is_null(), "type", "SP_Platform")?;
        let name = "SP_PlatformFns";
        check_size(functions.struct_size, name, "SP_PLATFORM_FNS_STRUCT_SIZE")?;
        for (is_set, member) in [
            (functions.get_device_count.is_some(), "get_device_count"),
            (functions.create_device.is_some(), "create_device"),
            (functions.destroy_device.is_some(), "destroy_device"),
            (functions.create_device_fns.is_some(), "create_device_fns"),
            (functions.destroy_device_fns.is_some(), "destroy_device_fns"),
            (
                functions.create_stream_executor.is_some(),
                "create_stream_executor",
            ),
            (
                functions.destroy_stream_executor.is_some(),
                "destroy_stream_executor",
            ),
            (functions.create_timer_fns.is_some(), "create_timer_fns"),
            (functions.destroy_timer_fns.is_some(), "destroy_timer_fns"),
        ] {
            check_member(is_set, member, name)?;
        }
        Ok(())
    }
}

impl SP_StreamExecutor {
    /// Whether everything is set that has to be.
    pub fn check(&self) -> Result<()> {
        let name = "SP_StreamExecutor";
        check_size(self.struct_size, name, "SP_STREAMEXECUTOR_STRUCT_SIZE")?;
        for (is_set, member) in [
            (self.allocate.is_some(), "allocate"),
            (self.deallocate.is_some(), "deallocate"),
            (self.get_allocator_stats.is_some(), "get_allocator_stats"),
            (self.device_memory_usage.is_some(), "device_memory_usage"),
            (self.create_stream.is_some(), "create_stream"),
            (self.destroy_stream.is_some(), "destroy_stream"),
            (
                self.create_stream_dependency.is_some(),
                "create_stream_dependency",
            ),
            (self.get_stream_status.is_some(), "get_stream_status"),
            (self.create_event.is_some(), "create_event"),
            (self.destroy_event.is_some(), "destroy_event"),
            (self.get_event_status.is_some(), "get_event_status"),
            (self.record_event.is_some(), "record_event"),
            (self.wait_for_event.is_some(), "wait_for_event"),
            (self.create_timer.is_some(), "create_timer"),
            (self.destroy_timer.is_some(), "destroy_timer"),
            (self.start_timer.is_some(), "start_timer"),
            (self.stop_timer.is_some(), "stop_timer"),
            (self.memcpy_dtoh.is_some(), "memcpy_dtoh"),
            (self.memcpy_htod.is_some(), "memcpy_htod"),
            (self.sync_memcpy_dtoh.is_some(), "sync_memcpy_dtoh"),
            (self.sync_memcpy_htod.is_some(), "sync_memcpy_htod"),
            (self.block_host_for_event.is_some(), "block_host_for_event"),
            (
                self.synchronize_all_activity.is_some(),
                "synchronize_all_activity",
            ),
        ] {
            check_member(is_set, member, name)?;
        }
        Ok(())
    }
}
