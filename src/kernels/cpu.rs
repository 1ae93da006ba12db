//! What the processor can do, and loops compiled for it.
//!
//! A loop is written once, as plain Rust that the compiler vectorises; [`dispatch`] runs the copy that was
//! compiled for the best instruction set present. The result has the same bits in every copy: multiplications
//! and additions are fused only where the source says `mul_add`, and lanes are fixed by the source.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Instruction sets with code of their own, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// What every processor of the target has.
    Baseline = 1,
    /// x86 with AVX2, FMA and F16C.
    Avx2 = 2,
    /// x86 with AVX-512 F, BW, DQ, VL, besides AVX2.
    Avx512 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level that loops run at: what was detected, or the lower one set by [`limit`].
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Baseline,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => {
            let found = detect();
            LEVEL.store(found as u8, Ordering::Relaxed);
            found
        }
    }
}

static LIMITING: Mutex<()> = Mutex::new(());

/// Ends what [`limit`] began when it is dropped.
#[derive(Debug)]
pub struct Limit {
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Limit {
    fn drop(&mut self) {
        LEVEL.store(detect() as u8, Ordering::Relaxed);
    }
}

/// Uses at most `highest` until the value is dropped: for tests and for comparing results across processors.
///
/// It holds for the whole process, whose other threads may see it in the middle of their work. Those who ask for limits
/// wait for each other.
#[must_use]
pub fn limit(highest: Level) -> Limit {
    let alone = LIMITING.lock().unwrap_or_else(PoisonError::into_inner);
    LEVEL.store(highest.min(detect()) as u8, Ordering::Relaxed);
    Limit { _alone: alone }
}

fn detect() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        use std::is_x86_feature_detected as has;
        let avx2 = has!("avx2") && has!("fma") && has!("f16c") && has!("bmi1") && has!("bmi2");
        if avx2 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") {
            return Level::Avx512;
        }
        if avx2 {
            return Level::Avx2;
        }
    }
    Level::Baseline
}

/// A loop to be compiled for several instruction sets. `run` must be `#[inline(always)]`.
pub trait Vectorized {
    /// What the loop returns.
    type Output;
    /// Runs the loop.
    fn run(self) -> Self::Output;
}

/// Runs a loop that moves memory or does little arithmetic: baseline or AVX2.
#[inline]
pub fn dispatch<L: Vectorized>(work: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        // SAFETY: the processor has these features.
        return unsafe { run_avx2(work) };
    }
    work.run()
}

/// Runs a loop with much arithmetic per element: baseline, AVX2 or AVX-512.
#[inline]
pub fn dispatch_wide<L: Vectorized>(work: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    match level() {
        // SAFETY: the processor has these features.
        Level::Avx512 => return unsafe { run_avx512(work) },
        // SAFETY: as above.
        Level::Avx2 => return unsafe { run_avx2(work) },
        Level::Baseline => {}
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
fn run_avx2<L: Vectorized>(work: L) -> L::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
fn run_avx512<L: Vectorized>(work: L) -> L::Output {
    work.run()
}
