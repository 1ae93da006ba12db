//! Time, threads and shared libraries.

use crate::TF_Status;
use crate::ffi::{Out, Text, c_string, put};
use crate::guard::{guard_or, quiet};
use crate::library::{last_error, open};
use ff_platform::time;
use ff_tensor::{Result, bail, status};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::thread::{Builder, JoinHandle};

/// How a thread is started.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_ThreadOptions {
    /// Bytes of its stack; 0 for the usual number.
    pub stack_size: usize,
    /// Bytes of the guard around its stack; 0 for the usual number. It has no effect here.
    pub guard_size: usize,
    /// The memory node it should run on; -1 for any. It has no effect here.
    pub numa_node: c_int,
}

/// A thread that was started. One thread joins it, once.
pub struct TF_Thread {
    handle: JoinHandle<()>,
}

/// Nanoseconds since 1970.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NowNanos() -> u64 {
    u64::try_from(time::now_nanoseconds()).unwrap_or(0)
}

/// Microseconds since 1970.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NowMicros() -> u64 {
    TF_NowNanos() / 1_000
}

/// Seconds since 1970.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NowSeconds() -> u64 {
    TF_NowNanos() / 1_000_000_000
}

/// Writes the usual options. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DefaultThreadOptions(options: Out<TF_ThreadOptions>) {
    quiet((), || {
        let usual = TF_ThreadOptions {
            stack_size: 0,
            guard_size: 0,
            numa_node: -1,
        };
        put(options, usual, "options")
    });
}

/// What C wants to have passed to its function.
struct Parameter(*mut c_void);

// SAFETY: C passes it to be used by the thread.
unsafe impl Send for Parameter {}

impl Parameter {
    /// The pointer. (A closure that names the field would capture that alone.)
    fn pointer(self) -> *mut c_void {
        self.0
    }
}

/// Starts a thread that calls `work_func` with `param`. NULL options are the usual ones. End it with `TF_JoinThread`. NULL when
/// there is no function to call, or no thread can be had.
#[unsafe(no_mangle)]
pub extern "C" fn TF_StartThread(
    options: Option<&TF_ThreadOptions>,
    thread_name: Text,
    work_func: Option<unsafe extern "C" fn(*mut c_void)>,
    param: *mut c_void,
) -> Option<Box<TF_Thread>> {
    quiet(None, || {
        let Some(work) = work_func else {
            bail!(InvalidArgument, "work_func is NULL")
        };
        let mut builder =
            Builder::new().name(c_string(&thread_name.or_empty()).to_string_lossy().into_owned());
        if let Some(size) = options.map(|options| options.stack_size).filter(|size| *size > 0) {
            builder = builder.stack_size(size);
        }
        let parameter = Parameter(param);
        // SAFETY: C vouches that the function may be called with it on another thread.
        let handle = builder.spawn(move || unsafe { work(parameter.pointer()) });
        let handle = handle.map_err(|error| status!(ResourceExhausted, "{error}"))?;
        Ok(Some(Box::new(TF_Thread { handle })))
    })
}

/// Waits until a thread has ended, and frees the handle. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_JoinThread(thread: Option<Box<TF_Thread>>) {
    quiet((), || {
        if let Some(thread) = thread {
            // What C code did wrong is its own.
            let _ = thread.handle.join();
        }
        Ok(())
    });
}

/// Loads a shared library, which stays loaded: the handle is not to be freed. NULL with NOT_FOUND, and what the system says, when it cannot be loaded.
#[unsafe(no_mangle)]
pub extern "C" fn TF_LoadSharedLibrary(
    library_filename: Text,
    status: Option<&mut TF_Status>,
) -> *mut c_void {
    guard_or(status, null_mut(), || {
        let address = open(&c_string(&library_filename.text("library_filename")?))?;
        Ok(address as *mut c_void)
    })
}

/// The address of a symbol in a library that `TF_LoadSharedLibrary` gave, valid as long as the process. NULL with NOT_FOUND when it has none of this name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetSymbolFromLibrary(
    handle: *mut c_void,
    symbol_name: Text,
    status: Option<&mut TF_Status>,
) -> *mut c_void {
    guard_or(status, null_mut(), || {
        symbol(handle, &symbol_name.text("symbol_name")?)
    })
}

/// A symbol of a loaded library. NOT_FOUND, with the system's text, when it has none of this name.
pub(crate) fn symbol(handle: *mut c_void, name: &str) -> Result<*mut c_void> {
    if handle.is_null() {
        bail!(InvalidArgument, "handle is NULL");
    }
    let name = c_string(name);
    // SAFETY: a handle of the system's and a C string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if address.is_null() {
        return Err(last_error());
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    unsafe extern "C" fn count(parameter: *mut c_void) {
        // SAFETY: the test passes a counter that outlives the thread.
        unsafe { &*parameter.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn threads_run_and_end() {
        let counter = AtomicU32::new(0);
        let parameter = (&raw const counter).cast_mut().cast();
        let options = TF_ThreadOptions {
            stack_size: 1 << 20,
            guard_size: 0,
            numa_node: -1,
        };
        for options in [Some(&options), None] {
            TF_JoinThread(TF_StartThread(options, Text::new(c"t"), Some(count), parameter));
        }
        assert_eq!(counter.load(Ordering::Relaxed), 2);
        assert!(TF_StartThread(None, Text::NULL, None, null_mut()).is_none());
        TF_JoinThread(None);
    }

    #[test]
    fn clocks_agree() {
        assert!(TF_NowSeconds() > 1_600_000_000);
        assert!(TF_NowNanos() / 1_000 >= TF_NowMicros() - 1_000_000);
    }
}
