//! A block of pages that is first writable, then executable, never both.

use ff_tensor::{Result, status};
use std::ptr::NonNull;

/// Pages of our own.
pub struct Memory {
    start: NonNull<u8>,
    len: usize,
    executable: bool,
}

// SAFETY: the block has one owner; once executable it is only read.
unsafe impl Send for Memory {}
// SAFETY: as above; writing needs `&mut`.
unsafe impl Sync for Memory {}

impl Memory {
    /// A block of at least `len` zero bytes.
    pub fn writable(len: usize) -> Result<Memory> {
        let len = len.max(1).next_multiple_of(PAGE);
        let start = map(len)
            .ok_or_else(|| status!(ResourceExhausted, "no memory for {len} bytes of compiled code"))?;
        Ok(Memory {
            start,
            len,
            executable: false,
        })
    }

    /// The address of the first byte.
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// The size in bytes, a whole number of pages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The bytes while they can be written; none afterwards.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = if self.executable { 0 } else { self.len };
        // SAFETY: the block is ours, writable, initialised with zeros, and borrowed by `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), len) }
    }

    /// Makes the block executable and no longer writable.
    pub fn make_executable(&mut self) -> Result<()> {
        if !protect(self.start, self.len) {
            return Err(status!(
                PermissionDenied,
                "this system does not allow compiled code to run"
            ));
        }
        self.executable = true;
        flush_instruction_cache(self.start, self.len);
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        unmap(self.start, self.len);
    }
}

/// The largest page of the systems we know.
const PAGE: usize = if cfg!(target_arch = "aarch64") {
    65536
} else {
    4096
};

#[cfg(unix)]
fn map(len: usize) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping touches no memory that exists.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        None
    } else {
        NonNull::new(start.cast())
    }
}

#[cfg(unix)]
fn protect(start: NonNull<u8>, len: usize) -> bool {
    // SAFETY: the pages are a mapping of ours.
    unsafe { libc::mprotect(start.as_ptr().cast(), len, libc::PROT_READ | libc::PROT_EXEC) == 0 }
}

#[cfg(unix)]
fn unmap(start: NonNull<u8>, len: usize) {
    // SAFETY: the pages are a mapping of ours that nobody uses any more.
    unsafe { libc::munmap(start.as_ptr().cast(), len) };
}

#[cfg(windows)]
mod windows {
    use std::ffi::c_void;

    pub const COMMIT_AND_RESERVE: u32 = 0x3000;
    pub const RELEASE: u32 = 0x8000;
    pub const READ_WRITE: u32 = 0x04;
    pub const EXECUTE_READ: u32 = 0x20;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        pub fn VirtualAlloc(address: *mut c_void, size: usize, kind: u32, protection: u32) -> *mut c_void;
        pub fn VirtualProtect(address: *mut c_void, size: usize, protection: u32, old: *mut u32) -> i32;
        pub fn VirtualFree(address: *mut c_void, size: usize, kind: u32) -> i32;
    }
}

#[cfg(windows)]
fn map(len: usize) -> Option<NonNull<u8>> {
    // SAFETY: a new allocation touches no memory that exists.
    let start = unsafe {
        windows::VirtualAlloc(
            std::ptr::null_mut(),
            len,
            windows::COMMIT_AND_RESERVE,
            windows::READ_WRITE,
        )
    };
    NonNull::new(start.cast())
}

#[cfg(windows)]
fn protect(start: NonNull<u8>, len: usize) -> bool {
    let mut old = 0;
    // SAFETY: the pages are an allocation of ours.
    unsafe { windows::VirtualProtect(start.as_ptr().cast(), len, windows::EXECUTE_READ, &mut old) != 0 }
}

#[cfg(windows)]
fn unmap(start: NonNull<u8>, _len: usize) {
    // SAFETY: the pages are an allocation of ours that nobody uses any more.
    unsafe { windows::VirtualFree(start.as_ptr().cast(), 0, windows::RELEASE) };
}

/// Processors that do not watch writes to code must be told.
#[cfg(all(target_arch = "aarch64", unix))]
fn flush_instruction_cache(start: NonNull<u8>, len: usize) {
    unsafe extern "C" {
        fn __clear_cache(start: *mut libc::c_char, end: *mut libc::c_char);
    }
    let start = start.as_ptr().cast::<libc::c_char>();
    // SAFETY: the range is the block.
    unsafe { __clear_cache(start, start.add(len)) };
}

#[cfg(not(all(target_arch = "aarch64", unix)))]
fn flush_instruction_cache(_start: NonNull<u8>, _len: usize) {}
