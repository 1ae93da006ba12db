//! `TF_Library`: libraries that register ops and kernels when they are loaded; log listeners.

use crate::TF_Status;
use crate::buffer::TF_Buffer;
use crate::ffi::{Handle, Text, c_string};
use crate::guard::{guard, quiet};
use ff_ops::registry;
use ff_proto::OpList;
use ff_tensor::{Result, Status, status};
use parking_lot::Mutex;
use std::ffi::{CStr, CString, c_char};

/// A library that was loaded. Threads may read one handle at the same time.
pub struct TF_Library {
    /// The ops that it registered, serialized.
    ops: TF_Buffer,
}

/// What was loaded: address and the ops that it registered then. Loading again gives the same.
struct Loaded {
    address: usize,
    ops: OpList,
}

static LOADED: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// Loads a shared library, which registers its ops and kernels in its constructors; it stays loaded for good. Where a name
/// without a slash is looked for is up to the system. Free the handle with `TF_DeleteLibraryHandle`.
///
/// NULL with NOT_FOUND, and what the system says, when it cannot be loaded.
#[unsafe(no_mangle)]
pub extern "C" fn TF_LoadLibrary(
    library_filename: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Library>> {
    guard(status, || {
        let path = c_string(&library_filename.text("library_filename")?);
        let mut loaded = LOADED.lock();
        let before = registry().added_defs().len();
        let address = open(&path)?;
        let known = loaded.iter().find(|it| it.address == address);
        let ops = match known {
            Some(known) => known.ops.clone(),
            None => {
                let added = registry().added_defs();
                let ops = OpList {
                    op: added[before..].iter().map(|def| (**def).clone()).collect(),
                };
                loaded.push(Loaded {
                    address,
                    ops: ops.clone(),
                });
                ops
            }
        };
        Ok(Some(Box::new(TF_Library {
            ops: TF_Buffer::of_message(&ops)?,
        })))
    })
}

/// Loads a library. NOT_FOUND with the system's text.
pub(crate) fn open(path: &CString) -> Result<usize> {
    // SAFETY: a C string; that its constructors run is what the caller asks for.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(last_error());
    }
    Ok(handle as usize)
}

pub(crate) fn last_error() -> Status {
    // SAFETY: the text is the system's, valid until the next call on this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return status!(NotFound, "the library cannot be loaded");
    }
    // SAFETY: not null, and a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    status!(NotFound, "{text}")
}

/// The ops that a library registered, as a serialized `OpList` that belongs to the handle.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetOpList(lib_handle: Handle<TF_Library>) -> TF_Buffer {
    lib_handle.map_or(TF_Buffer::empty(), |library| TF_Buffer {
        data: library.ops.data,
        length: library.ops.length,
        data_deallocator: None,
    })
}

/// Frees a handle; the library stays loaded. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteLibraryHandle(lib_handle: Option<Box<TF_Library>>) {
    quiet((), || {
        if let Some(library) = lib_handle {
            crate::TF_DeleteBuffer(Some(Box::new(library.ops)));
        }
        Ok(())
    });
}

/// Calls `listener` with each text that a printing op prints, on any thread, instead of printing it. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_RegisterLogListener(listener: Option<unsafe extern "C" fn(message: *const c_char)>) {
    quiet((), || {
        if let Some(listener) = listener {
            ff_platform::log::register_listener(move |text| {
                let text = c_string(text);
                // SAFETY: C vouches that it may be called at any time; the string lives for the call.
                unsafe { listener(text.as_ptr()) };
            });
        }
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_loaded_is_not_found() {
        let mut status = TF_Status::default();
        assert!(TF_LoadLibrary(Text::new(c"./no_such.so"), Some(&mut status)).is_none());
        assert_eq!(crate::TF_GetCode(Some(&status)).0, 5);
        assert!(TF_LoadLibrary(Text::NULL, Some(&mut status)).is_none());
        assert_eq!(crate::TF_GetCode(Some(&status)).0, 3);
        assert_eq!(TF_GetOpList(None).length, 0);
    }
}
