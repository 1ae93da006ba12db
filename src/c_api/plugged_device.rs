//! Devices of plug-ins: registered by `SE_InitPlugin`, and what kernels of theirs compute with.
//!
//! Contract: values of a step are in host memory, wherever they were computed. A kernel of a plugged device gets its inputs
//! in memory of the device, copied there when it asks for them, and its outputs are copied back when it ends. So every op and
//! every transfer works; values that stay on the device from one kernel to the next are not there yet.

use crate::TF_Status;
use crate::stream_executor::*;
use ff_runtime::plug_in_devices;
use ff_tensor::{Buffer, DataType, Deallocator, Result, Shape, Tensor, ensure, status};
use parking_lot::RwLock;
use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

/// All plugged devices.
static DEVICES: RwLock<Vec<Arc<PluggedDevice>>> = RwLock::new(Vec::new());

/// A device of a plug-in. It lives as long as the process.
pub struct PluggedDevice {
    kind: String,
    number: usize,
    device: Box<SP_Device>,
    executor: &'static SP_StreamExecutor,
    stream: *mut c_void,
}

// SAFETY: the interface of plug-ins says that functions may be called on any thread, also on several at once.
unsafe impl Send for PluggedDevice {}
// SAFETY: as above.
unsafe impl Sync for PluggedDevice {}

/// The device with this full name, if it is a plug-in's.
pub fn find(name: &str) -> Option<Arc<PluggedDevice>> {
    let devices = DEVICES.read();
    if devices.is_empty() {
        return None;
    }
    let (kind, number) = name.rsplit("device:").next()?.split_once(':')?;
    let number: usize = number.parse().ok()?;
    let found = devices.iter().find(|it| it.kind == kind && it.number == number);
    found.cloned()
}

/// The first device of a type, if it is a plug-in's.
pub fn first_of(kind: &str) -> Option<Arc<PluggedDevice>> {
    DEVICES.read().iter().find(|it| it.kind == kind).cloned()
}

/// Calls a function with a status; its error.
fn call(function: impl FnOnce(*mut TF_Status)) -> Result<()> {
    let mut status = TF_Status::default();
    function(&raw mut status);
    match status.error() {
        Some(error) => Err(error.clone()),
        None => Ok(()),
    }
}

/// Has a plug-in describe its platform, makes its devices, and offers them to sessions that are made from now on.
pub fn init(function: *mut c_void) -> Result<()> {
    // The plug-in may keep pointers to all of these.
    let platform: &'static mut SP_Platform = Box::leak(Box::new(SP_Platform::empty()));
    let functions: &'static mut SP_PlatformFns = Box::leak(Box::new(SP_PlatformFns::empty()));
    let mut params = SE_PlatformRegistrationParams::empty();
    params.version = [0, 0, 1];
    params.platform = platform;
    params.platform_fns = functions;
    // SAFETY: the interface of plug-ins says that this is such a function.
    call(|status| unsafe {
        let init = std::mem::transmute::<
            *mut c_void,
            unsafe extern "C" fn(*mut SE_PlatformRegistrationParams, *mut TF_Status),
        >(function);
        init(&raw mut params, status);
    })?;
    params.check(platform, functions)?;
    // SAFETY: checked not to be NULL; a C string.
    check_word(&unsafe { CStr::from_ptr(platform.name) }.to_string_lossy())?;
    // SAFETY: as above.
    let kind = unsafe { CStr::from_ptr(platform.kind) }
        .to_string_lossy()
        .into_owned();
    check_kind(&kind)?;
    let (Some(count), Some(create), Some(create_executor)) = (
        functions.get_device_count,
        functions.create_device,
        functions.create_stream_executor,
    ) else {
        return Ok(());
    };
    let mut devices: c_int = 0;
    // SAFETY: a place for the answer.
    call(|status| unsafe { count(platform, &raw mut devices, status) })?;
    let executor: &'static mut SP_StreamExecutor = Box::leak(Box::new(SP_StreamExecutor::empty()));
    let mut params = SE_CreateStreamExecutorParams {
        struct_size: size_of::<SE_CreateStreamExecutorParams>(),
        ext: std::ptr::null_mut(),
        stream_executor: executor,
    };
    // SAFETY: a struct to be filled in.
    call(|status| unsafe { create_executor(platform, &raw mut params, status) })?;
    executor.check()?;
    let executor: &'static SP_StreamExecutor = executor;
    let mut made = Vec::new();
    for number in 0..usize::try_from(devices).unwrap_or(0) {
        let mut device = Box::new(SP_Device::empty());
        device.ordinal = number as i32;
        let mut params = SE_CreateDeviceParams {
            struct_size: size_of::<SE_CreateDeviceParams>(),
            ext: std::ptr::null_mut(),
            ordinal: number as i32,
            device: &raw mut *device,
        };
        // SAFETY: a struct to be filled in.
        call(|status| unsafe { create(platform, &raw mut params, status) })?;
        let mut stream = std::ptr::null_mut();
        if let Some(create_stream) = executor.create_stream {
            // SAFETY: a device of the plug-in's, and a place for the stream.
            call(|status| unsafe { create_stream(&raw const *device, &raw mut stream, status) })?;
        }
        made.push(Arc::new(PluggedDevice {
            kind: kind.clone(),
            number,
            device,
            executor,
            stream,
        }));
    }
    plug_in_devices(&kind, made.len())?;
    DEVICES.write().extend(made);
    Ok(())
}

/// FAILED_PRECONDITION for a name or type that is no word of capital letters.
fn check_word(kind: &str) -> Result<()> {
    let is_word = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    ensure!(
        is_word,
        FailedPrecondition,
        "Device name/type '{kind}' must match [A-Z][A-Z_]*."
    );
    Ok(())
}

/// FAILED_PRECONDITION for a type that is no word of capital letters, or one that is taken.
fn check_kind(kind: &str) -> Result<()> {
    check_word(kind)?;
    ensure!(
        !matches!(kind, "CPU" | "GPU" | "TPU"),
        FailedPrecondition,
        "Device type '{kind}' is one of TensorFlow's own"
    );
    Ok(())
}

/// What a tensor in memory of a device gives back when its last owner goes.
struct Block {
    device: Arc<PluggedDevice>,
    memory: SP_DeviceMemoryBase,
}

unsafe extern "C" fn release(_data: *mut c_void, _len: usize, block: *mut c_void) {
    // SAFETY: the box that `tensor` gave with the memory.
    let mut block = unsafe { Box::from_raw(block.cast::<Block>()) };
    if let Some(deallocate) = block.device.executor.deallocate {
        // SAFETY: memory of this device, not used any more.
        unsafe { deallocate(&raw const *block.device.device, &raw mut block.memory) };
    }
}

impl PluggedDevice {
    /// The stream that kernels add their work to.
    pub fn stream(&self) -> *mut c_void {
        self.stream
    }

    /// A tensor whose elements are in memory of the device. RESOURCE_EXHAUSTED when there is none left; INVALID_ARGUMENT for
    /// elements that cannot be there.
    pub fn tensor(self: &Arc<Self>, dtype: DataType, shape: Shape) -> Result<Tensor> {
        ensure!(
            dtype.is_plain(),
            InvalidArgument,
            "{dtype} cannot be in memory of {}",
            self.kind
        );
        let bytes = shape.num_elements().saturating_mul(dtype.size());
        let mut memory = SP_DeviceMemoryBase::new(std::ptr::null_mut(), 0);
        if let Some(allocate) = self.executor.allocate {
            let size = bytes.max(1) as u64;
            // SAFETY: a device of the plug-in's, and a struct to be filled in.
            unsafe { allocate(&raw const *self.device, size, 0, &raw mut memory) };
        }
        ensure!(
            !memory.opaque.is_null(),
            ResourceExhausted,
            "OOM when allocating tensor with shape {shape} and type {dtype} on /device:{}:{}",
            self.kind,
            self.number
        );
        let data = memory.opaque;
        let block = Box::new(Block {
            device: self.clone(),
            memory,
        });
        let deallocator = Deallocator {
            function: Some(release),
            arg: Box::into_raw(block).cast(),
        };
        // SAFETY: so many bytes of the device's until `release`; kernels of the device alone read and write them.
        let buffer = unsafe { Buffer::foreign(data, bytes, deallocator) };
        Tensor::view_of(dtype, shape, buffer)
    }

    /// A copy of a tensor in memory of the device.
    pub fn upload(self: &Arc<Self>, host: &Tensor) -> Result<Tensor> {
        let tensor = self.tensor(host.dtype(), host.shape().clone())?;
        let copy = self.executor.sync_memcpy_htod;
        let copy = copy.ok_or_else(|| status!(Internal, "{} cannot copy", self.kind))?;
        let size = host.byte_size() as u64;
        if size > 0 {
            let mut memory = SP_DeviceMemoryBase::new(tensor.data_ptr().cast(), size);
            // SAFETY: both have so many bytes.
            call(|status| unsafe {
                copy(
                    &raw const *self.device,
                    &raw mut memory,
                    host.data_ptr().cast_const().cast(),
                    size,
                    status,
                );
            })?;
        }
        Ok(tensor)
    }

    /// A copy of a tensor in memory of the host.
    pub fn download(&self, tensor: &Tensor) -> Result<Tensor> {
        let mut host = Tensor::allocate(tensor.dtype(), tensor.shape().clone())?;
        let copy = self.executor.sync_memcpy_dtoh;
        let copy = copy.ok_or_else(|| status!(Internal, "{} cannot copy", self.kind))?;
        let size = host.byte_size() as u64;
        if size > 0 {
            let memory = SP_DeviceMemoryBase::new(tensor.data_ptr().cast(), size);
            let Some(to) = host.bytes_mut().map(<[u8]>::as_mut_ptr) else {
                return Err(status!(Internal, "fresh memory cannot be written"));
            };
            // SAFETY: both have so many bytes.
            call(|status| unsafe {
                copy(
                    &raw const *self.device,
                    to.cast(),
                    &raw const memory,
                    size,
                    status,
                );
            })?;
        }
        Ok(host)
    }

    /// Waits until the stream has done all its work.
    pub fn wait(&self) -> Result<()> {
        if let Some(wait) = self.executor.block_host_until_done {
            // SAFETY: the device's own stream.
            return call(|status| unsafe { wait(&raw const *self.device, self.stream, status) });
        }
        match self.executor.synchronize_all_activity {
            // SAFETY: a device of the plug-in's.
            Some(wait) => call(|status| unsafe { wait(&raw const *self.device, status) }),
            None => Ok(()),
        }
    }
}
