//! Named threads.

use ff_tensor::{Result, status};
use std::thread::{Builder, JoinHandle};

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

/// The name of this thread, if it has one.
pub fn current_name() -> Option<String> {
    std::thread::current().name().map(str::to_string)
}

/// The number of processors that this process may use, at least one.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}
