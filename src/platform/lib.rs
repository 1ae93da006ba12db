//! What the library asks of the machine: files, logging, environment variables, time, threads.
//!
//! - [`files`]: files by path or URI (`/x`, `file:///x`, `ram://x`, and schemes that plug-ins register); each scheme
//!   is a [`FileSystem`].
//! - [`log`]: severities, sinks and listeners, with the environment variables and the line format of TensorFlow.
//! - [`environment`]: typed environment variables.
//! - [`time`] and [`threads`]: clocks and named threads.
//!
//! Errors are [`ff_tensor::Status`] with the codes and texts that TensorFlow gives. Nothing here knows tensors.

pub mod environment;
mod error;
mod file_system;
pub mod files;
mod glob;
mod local;
pub mod log;
mod memory;
pub mod threads;
pub mod time;

pub use error::status_of;
pub use file_system::{FileStat, FileSystem, RandomAccessFile, Region, WritableFile};
pub use local::LocalFileSystem;
pub use memory::MemoryFileSystem;
