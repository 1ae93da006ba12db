//! What the thread pool is made of: the standard library's primitives, or those of loom, which tries their interleavings
//! (`make loom`). Nothing is added to either.

#[cfg(loom)]
pub use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle, current},
};
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread::{Builder, JoinHandle, current},
};
