//! Numbered jobs that wait for each other, shared by the threads that run them.
//!
//! A job is ready once all that it waits for have ended; what those wrote is seen by whoever runs it. Nothing is run here,
//! and nobody waits: a thread that finds nothing ready goes away.

use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Mutex, MutexGuard, Ordering};

/// See the module.
pub struct Jobs<'a> {
    /// Who waits for each job.
    readers: &'a [Vec<u32>],
    /// For how many each job still waits.
    waits: Vec<AtomicU32>,
    ready: Mutex<Vec<u32>>,
    left: AtomicUsize,
    stopped: AtomicBool,
}

impl<'a> Jobs<'a> {
    /// Jobs of which the numbers in `readers` wait for each, and each for so many as `waits` says.
    pub fn new(waits: &[u32], readers: &'a [Vec<u32>]) -> Jobs<'a> {
        let first = (0..waits.len() as u32).filter(|&number| waits[number as usize] == 0);
        Jobs {
            readers,
            ready: Mutex::new(first.rev().collect()),
            left: AtomicUsize::new(waits.len()),
            waits: waits.iter().map(|&count| AtomicU32::new(count)).collect(),
            stopped: AtomicBool::new(false),
        }
    }

    fn ready(&self) -> MutexGuard<'_, Vec<u32>> {
        self.ready.lock().unwrap_or_else(|error| error.into_inner())
    }

    /// One that is ready, for the caller to run.
    pub fn next(&self) -> Option<u32> {
        self.ready().pop()
    }

    /// Gives back one that was taken and not run.
    pub fn give_back(&self, number: Option<u32>) {
        self.ready().extend(number);
    }

    /// How many of those that are ready are so.
    pub fn count_ready(&self, are: impl Fn(u32) -> bool) -> usize {
        self.ready().iter().filter(|&&number| are(number)).count()
    }

    /// Says that a job has been run. Gives one that is ready by that; others are for all.
    pub fn ended(&self, number: u32) -> Option<u32> {
        let mut next = None;
        for &reader in &self.readers[number as usize] {
            if self.waits[reader as usize].fetch_sub(1, Ordering::AcqRel) == 1
                && let Some(other) = next.replace(reader)
            {
                self.ready().push(other);
            }
        }
        self.left.fetch_sub(1, Ordering::AcqRel);
        next
    }

    /// Whether all have been run; what they wrote is seen then.
    pub fn all_ended(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Has no further job be run.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether they were stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_ready_once_what_it_waits_for_has_ended() {
        // 0 before 1 and 2, both before 3.
        let readers = [vec![1, 2], vec![3], vec![3], vec![]];
        let jobs = Jobs::new(&[0, 1, 1, 2], &readers);
        assert_eq!((jobs.next(), jobs.next()), (Some(0), None));
        assert_eq!(jobs.ended(0), Some(2));
        assert_eq!(jobs.count_ready(|number| number == 1), 1);
        assert_eq!(
            (jobs.next(), jobs.ended(2), jobs.ended(1)),
            (Some(1), None, Some(3))
        );
        assert_eq!(
            (jobs.all_ended(), jobs.ended(3), jobs.all_ended()),
            (false, None, true)
        );
    }
}
