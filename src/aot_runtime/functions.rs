//! The C functions, declared and described in `include/ferroflow/aot.h`.

use crate::{Model, Program};
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `FF_AotOptions` in C.
#[repr(C)]
pub struct Options {
    /// `sizeof(FF_AotOptions)`.
    pub struct_size: usize,
    /// Threads of the model, the caller's among them; 0 and 1 for the caller's only.
    pub threads: c_int,
    /// The file of the weights where they are not in the object; null for none.
    pub weights_file: *const c_char,
}

/// INTERNAL, for what should not happen.
const INTERNAL: c_int = 13;
/// INVALID_ARGUMENT.
const INVALID_ARGUMENT: c_int = 3;

/// The value of a closure; `other` if it panics, which must not reach C.
fn guarded<T>(other: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(other)
}

/// A model of a program.
///
/// # Safety
/// `program` is null or the table of an object; `options` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn FF_AotModelNew(
    program: Option<&'static Program>,
    options: Option<&Options>,
) -> Option<Box<Model>> {
    let program = program?;
    guarded(None, || {
        let mut threads = 1;
        let mut file = None;
        if let Some(options) = options.filter(|options| options.struct_size >= size_of::<Options>()) {
            threads = usize::try_from(options.threads).unwrap_or(1).min(1024);
            if !options.weights_file.is_null() {
                // SAFETY: a text of the client's.
                let text = unsafe { CStr::from_ptr(options.weights_file) };
                file = Some(text.to_string_lossy().into_owned());
            }
        }
        // SAFETY: passed on to the caller.
        Some(Box::new(unsafe { Model::new(program, threads, file.as_deref()) }))
    })
}

/// Frees a model.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelDelete(model: Option<Box<Model>>) {
    guarded((), || drop(model));
}

/// Runs a model; gives the code of the error, 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelRun(model: Option<&mut Model>) -> c_int {
    let Some(model) = model else {
        return INVALID_ARGUMENT;
    };
    guarded(INTERNAL, || {
        let _ = model.run();
        model.error().0
    })
}

/// The code of the last error, 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelCode(model: Option<&Model>) -> c_int {
    model.map_or(INVALID_ARGUMENT, |model| model.error().0)
}

/// The message of the last error, empty for none.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelMessage(model: Option<&Model>) -> *const c_char {
    let message = model.and_then(|model| model.error().1);
    message.map_or(c"".as_ptr(), |message| message.as_ptr())
}

/// The number of arguments.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelNumArguments(model: Option<&Model>) -> usize {
    model.map_or(0, Model::num_arguments)
}

/// The number of results.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelNumResults(model: Option<&Model>) -> usize {
    model.map_or(0, Model::num_results)
}

/// Bytes of an argument.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelArgumentSize(model: Option<&Model>, index: usize) -> usize {
    model.map_or(0, |model| model.argument_size(index))
}

/// Bytes of a result.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelResultSize(model: Option<&Model>, index: usize) -> usize {
    model.map_or(0, |model| model.result_size(index))
}

/// Memory for an argument.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelArgument(model: Option<&mut Model>, index: usize) -> *mut u8 {
    model.map_or(std::ptr::null_mut(), |model| model.argument(index))
}

/// Memory of the client's for an argument; 1 if there is such an argument.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelSetArgument(model: Option<&mut Model>, index: usize, data: *const u8) -> c_int {
    model.map_or(0, |model| c_int::from(model.set_argument(index, data)))
}

/// A result of the last run.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelResult(model: Option<&Model>, index: usize) -> *const u8 {
    model.map_or(std::ptr::null(), |model| model.result(index))
}

/// How many fusions run as machine code.
#[unsafe(no_mangle)]
pub extern "C" fn FF_AotModelNumFusions(model: Option<&Model>) -> usize {
    model.map_or(0, Model::num_fusions)
}
