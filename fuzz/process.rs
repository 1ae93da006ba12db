//! The process that runs inputs: its limits, and how it tells its parent what it does.
//!
//! A worker writes the number of each input to its standard output before it runs it (eight bytes), and after a panic
//! [`PANICKED`] and the message. What the library prints goes elsewhere. Any panic ends the process, on any thread.

use crate::random::Random;
use crate::targets::Target;
use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::panic::PanicHookInfo;
use std::sync::Mutex;

/// Stands in place of an input's number before the message of a panic.
pub const PANICKED: u64 = u64::MAX;

/// Inputs of one worker; its successor starts with fresh memory.
pub const BATCH: u64 = 20_000;

/// Address space of a worker, in bytes. Allocations beyond it fail, which the library must bear; it also keeps inputs that
/// ask for much (which they may) from taking long.
const ADDRESS_SPACE: u64 = 768 << 20;

/// Where the parent listens.
static PARENT: Mutex<Option<File>> = Mutex::new(None);

/// Makes the input with this number.
pub fn input(target: &Target, seeds: &[Vec<u8>], seed: u64, number: u64) -> Vec<u8> {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
    (target.make)(seeds, &mut random)
}

/// Runs inputs from `first` on, in a folder of its own.
pub fn work(target: &Target, seed: u64, first: u64) {
    let seeds = target.seeds();
    take_standard_output();
    limit_memory();
    std::panic::set_hook(Box::new(|panic| {
        report(panic);
        std::process::abort();
    }));
    for number in first..first + BATCH {
        tell(&number.to_le_bytes());
        (target.run)(&input(target, &seeds, seed, number));
    }
}

/// Sets the limits of a worker; a panic prints where it comes from, and ends the process.
pub fn prepare_to_replay() {
    limit_memory();
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            eprintln!("{}", std::backtrace::Backtrace::force_capture());
        }
        std::process::abort();
    }));
}

fn report(panic: &PanicHookInfo) {
    let mut message = PANICKED.to_le_bytes().to_vec();
    message.extend(panic.to_string().bytes());
    tell(&message);
}

/// Writes to the parent; a worker without one has nothing to do.
fn tell(bytes: &[u8]) {
    let written = match PARENT.lock() {
        Ok(mut parent) => parent
            .as_mut()
            .is_some_and(|parent| parent.write_all(bytes).is_ok()),
        Err(_) => false,
    };
    if !written {
        std::process::exit(1);
    }
}

/// Keeps standard output for the parent and gives the library another.
fn take_standard_output() {
    // SAFETY: both are open descriptors of this process; the copy has no other owner.
    let parent = unsafe {
        let copy = libc::dup(1);
        libc::dup2(2, 1);
        File::from_raw_fd(copy)
    };
    if let Ok(mut place) = PARENT.lock() {
        *place = Some(parent);
    }
}

fn limit_memory() {
    let limit = libc::rlimit {
        rlim_cur: ADDRESS_SPACE,
        rlim_max: ADDRESS_SPACE,
    };
    let no_core = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the calls read what they are given.
    unsafe {
        // Each arena takes address space, and there is one per thread otherwise.
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::setrlimit(libc::RLIMIT_AS, &limit);
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
    }
}
