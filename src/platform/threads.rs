//! Named threads, and stacks that are large enough.
//!
//! Callers may come with small stacks. What nests asks before it goes deeper, and goes on on a thread of its own where too
//! little is left ([`with_stack`]). Where the system does not tell how much is left (and on stacks that are not a
//! thread's own, such as those of fibers) it is taken to be enough.

use ff_tensor::{Result, status};
use std::cell::Cell;
use std::thread::{Builder, JoinHandle};

/// Bytes of stack that are enough for one level of what nests. A call of a function takes about 16 KB without
/// optimizations; its kernels are beneath it.
const ENOUGH: usize = 128 << 10;

/// Bytes of the stack of a thread that goes on for another.
const STACK: usize = 8 << 20;

/// Starts a thread that debuggers and profilers show under `name`. RESOURCE_EXHAUSTED when the machine has no more.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let name: String = name.chars().filter(|&c| c != '\0').collect();
    Builder::new()
        .name(name.clone())
        .spawn(body)
        .map_err(|error| status!(ResourceExhausted, "cannot start thread {name}: {error}"))
}

/// Has a function called when the process ends, before those that were given earlier. Whether it will be.
pub fn at_exit(function: extern "C" fn()) -> bool {
    // SAFETY: `atexit` keeps the function, which is never unloaded before its process ends or its library is.
    unsafe { libc::atexit(function) == 0 }
}

thread_local! {
    /// First and last address of this thread's stack; (0, 0) before it was asked for, (1, 1) where nobody knows.
    static EXTENT: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Bytes that are left of this thread's stack, where the system tells.
pub fn stack_left() -> Option<usize> {
    let (mut low, mut high) = EXTENT.get();
    if high == 0 {
        (low, high) = stack_extent().unwrap_or((1, 1));
        EXTENT.set((low, high));
    }
    let marker = 0u8;
    let here = std::ptr::from_ref(std::hint::black_box(&marker)).addr();
    (low..high).contains(&here).then(|| here - low)
}

/// Whether this thread's stack lasts for one more level of what nests.
pub fn has_stack() -> bool {
    stack_left().is_none_or(|left| left >= ENOUGH)
}

/// Runs `body` here if the stack lasts for it, else as [`on_new_stack`] does.
pub fn with_stack<T: Send>(body: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if has_stack() { body() } else { on_new_stack(body) }
}

/// Runs `body` on a thread of its own with a large stack, and waits for it; a panic goes on here. RESOURCE_EXHAUSTED
/// when the machine has no more threads.
pub fn on_new_stack<T: Send>(body: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = Builder::new().stack_size(STACK).spawn_scoped(scope, body);
        let thread =
            thread.map_err(|error| status!(ResourceExhausted, "No thread for nested calls: {error}"))?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn stack_extent() -> Option<(usize, usize)> {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut low, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are read only after the first call filled them, and given back.
    let found = unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let found = libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size) == 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        found
    };
    found.then(|| (low.addr(), low.addr() + size))
}

#[cfg(target_vendor = "apple")]
fn stack_extent() -> Option<(usize, usize)> {
    // SAFETY: both functions only read what the system keeps of this thread.
    let (high, size) = unsafe {
        let this = libc::pthread_self();
        (
            libc::pthread_get_stackaddr_np(this).addr(),
            libc::pthread_get_stacksize_np(this),
        )
    };
    Some((high.checked_sub(size)?, high))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn stack_extent() -> Option<(usize, usize)> {
    None
}

/// The name of this thread, if it has one.
pub fn current_name() -> Option<String> {
    std::thread::current().name().map(str::to_string)
}

/// The number of processors that this process may use, at least one.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    #[test]
    fn small_stacks_are_seen_and_left() {
        let small = Builder::new().stack_size(96 << 10).spawn(|| {
            let left = stack_left().unwrap();
            assert!(left > 1 << 10 && left < 128 << 10, "{left}");
            assert!(!has_stack());
            let name = std::thread::current().id();
            with_stack(|| Ok((has_stack(), std::thread::current().id() == name)))
        });
        assert_eq!(small.unwrap().join().unwrap().unwrap(), (true, false));
        let here = std::thread::current().id();
        assert!(with_stack(|| Ok(std::thread::current().id() == here)).unwrap());
    }
}
