//! Whether a plan with clusters is faster than the one without: measured, not guessed.
//!
//! Feeds of different sizes have trials of their own, because what pays for large values does not for small ones. The two
//! plans run in turns, and the least time of each decides once. A plan that does not win clearly has lost. What this does
//! not do: it never makes a run for its own sake.

use ff_tensor::Tensor;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Runs of each plan before it is judged.
const RUNS: u32 = 12;
/// The better plan must be faster by one part of so many.
const CLEARLY: u64 = 16;
/// What a run costs whose shapes are new, and how much of that is borne. Runs as programs pay it back.
const UNREADY_COST: u32 = 4;
const MOST_COST: u32 = 64;

/// Classes of the number of elements, and of the length of rows.
const SIZES: usize = 32;
const ROWS: usize = 8;

const OPEN: u8 = 0;
const WON: u8 = 1;
const LOST: u8 = 2;

/// See the module.
pub struct Trials(Box<[Trial]>);

/// The trial of one class of feeds.
#[derive(Default)]
pub struct Trial {
    verdict: AtomicU8,
    turns: AtomicU32,
    /// Runs timed with the first plan, and with the better one.
    timed: [AtomicU32; 2],
    /// Their least nanoseconds.
    least: [Least; 2],
    cost: AtomicU32,
}

struct Least(AtomicU64);

impl Default for Least {
    fn default() -> Least {
        Least(AtomicU64::new(u64::MAX))
    }
}

impl Default for Trials {
    fn default() -> Trials {
        Trials((0..SIZES * ROWS).map(|_| Trial::default()).collect())
    }
}

impl Trials {
    /// The trial of such feeds.
    pub fn of(&self, feeds: &[Tensor]) -> &Trial {
        let mut elements = 0;
        let (mut largest, mut row) = (0, 0);
        for feed in feeds {
            let count = feed.num_elements();
            elements += count;
            if count > largest {
                largest = count;
                row = feed
                    .shape()
                    .dims()
                    .last()
                    .map_or(0, |&extent| extent.unsigned_abs());
            }
        }
        let size = (elements.max(1).ilog2() as usize).min(SIZES - 1);
        let row = (row.max(1).ilog2() as usize / 3).min(ROWS - 1);
        &self.0[size * ROWS + row]
    }
}

impl Trial {
    /// Whether the first plan stays.
    pub fn is_lost(&self) -> bool {
        self.verdict.load(Relaxed) == LOST
    }

    /// Whether the better plan runs from now on.
    pub fn is_won(&self) -> bool {
        self.verdict.load(Relaxed) == WON
    }

    /// Whose turn it is.
    pub fn next_is_better(&self) -> bool {
        self.turns.fetch_add(1, Relaxed).is_multiple_of(2)
    }

    /// A run that counts.
    pub fn took(&self, is_better: bool, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let plan = usize::from(is_better);
        self.least[plan].0.fetch_min(time, Relaxed);
        self.timed[plan].fetch_add(1, Relaxed);
        if self.timed.iter().all(|timed| timed.load(Relaxed) >= RUNS) {
            let [first, better] = [0, 1].map(|plan: usize| self.least[plan].0.load(Relaxed));
            let is_faster = better.saturating_add(first / CLEARLY) < first;
            self.judge(if is_faster { WON } else { LOST });
        }
    }

    /// A run of the better plan whose time does not count: whether all that it has ran as programs. One that meets new
    /// shapes again and again loses, also after it has won.
    pub fn ran(&self, ready: bool) {
        let cost = self.cost.load(Relaxed);
        if !ready {
            self.cost.store(cost.saturating_add(UNREADY_COST), Relaxed);
            if cost + UNREADY_COST > MOST_COST {
                self.verdict.store(LOST, Relaxed);
            }
        } else if cost > 0 {
            self.cost.store(cost - 1, Relaxed);
        }
    }

    /// The first verdict holds.
    fn judge(&self, verdict: u8) {
        let _ = self.verdict.compare_exchange(OPEN, verdict, Relaxed, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_tensor::{DataType, Shape};

    fn after(first: u64, better: u64) -> Trial {
        let trial = Trial::default();
        for _ in 0..2 * RUNS {
            assert!(!trial.is_won() && !trial.is_lost());
            let is_better = trial.next_is_better();
            let time = if is_better { better } else { first };
            trial.took(is_better, Duration::from_nanos(time));
        }
        trial
    }

    #[test]
    fn only_the_clearly_faster_plan_wins() {
        assert!(after(1000, 800).is_won());
        assert!(after(1000, 960).is_lost());
        assert!(after(1000, 1000).is_lost());
        assert!(after(1000, 5000).is_lost());
    }

    #[test]
    fn ever_new_shapes_lose() {
        let trial = after(1000, 500);
        for _ in 0..1000 {
            trial.ran(false);
            (0..UNREADY_COST).for_each(|_| trial.ran(true));
        }
        assert!(trial.is_won());
        (0..=MOST_COST / UNREADY_COST).for_each(|_| trial.ran(false));
        assert!(trial.is_lost());
    }

    #[test]
    fn small_and_large_feeds_have_trials_of_their_own() {
        let trials = Trials::default();
        let of = |dims: &[i64]| {
            let feed = Tensor::zeros(DataType::FLOAT, Shape::new(dims).unwrap()).unwrap();
            std::ptr::from_ref(trials.of(&[feed])).addr()
        };
        assert_eq!(of(&[96, 128]), of(&[97, 128]));
        assert_ne!(of(&[2, 128]), of(&[97, 128]));
        assert_ne!(of(&[128 * 97, 1]), of(&[97, 128]));
        assert_eq!(of(&[]), of(&[1]));
        of(&[0, 4]);
    }
}
