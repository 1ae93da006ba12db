//! The thread pool in all interleavings with a few switches between threads (see `make loom`): nothing is lost, nothing
//! runs twice, nobody waits for ever.
//!
//! Threads spin one turn before they sleep here, and pools have two threads: what needs three workers is not tried.

use super::*;

/// Runs a body in every interleaving with at most `switches` forced switches, or LOOM_MAX_PREEMPTIONS if that is less.
fn in_every_order(switches: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    let most = model.preemption_bound.unwrap_or(switches);
    model.preemption_bound = Some(most.min(switches));
    model.max_branches = 20_000;
    model.check(body);
}

#[test]
fn loom_a_loop_runs_every_block_once() {
    in_every_order(3, || {
        let pool = ThreadPool::new(2);
        let hits = [AtomicUsize::new(0), AtomicUsize::new(0)];
        pool.run_loop(2, true, &|block| {
            hits[block].fetch_add(1, Ordering::Relaxed);
        });
        assert!(hits.iter().all(|hits| hits.load(Ordering::Relaxed) == 1));
    });
}

#[test]
fn loom_jobs_run_before_the_pool_is_gone() {
    in_every_order(3, || {
        let pool = ThreadPool::new(2);
        let done = Arc::new(AtomicUsize::new(0));
        let mark = done.clone();
        pool.spawn(move || {
            mark.fetch_add(1, Ordering::Relaxed);
        });
        drop(pool);
        assert_eq!(done.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn loom_two_callers_share_a_worker() {
    in_every_order(1, || {
        let pool = Arc::new(ThreadPool::new(2));
        pool.start_workers();
        let run = |pool: &ThreadPool| {
            let hits = AtomicUsize::new(0);
            pool.run_loop(2, true, &|_| {
                hits.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(hits.load(Ordering::Relaxed), 2);
        };
        let other = pool.clone();
        let caller = loom::thread::spawn(move || run(&other));
        run(&pool);
        let _ = caller.join();
    });
}

/// Two jobs that do not wait for each other, between two that wait: each runs once, and sees what those before it wrote.
#[test]
fn loom_jobs_run_once_and_in_order() {
    in_every_order(3, || {
        static READERS: std::sync::LazyLock<[Vec<u32>; 4]> =
            std::sync::LazyLock::new(|| [vec![1, 2], vec![3], vec![3], vec![]]);
        let jobs = Arc::new(crate::Jobs::new(&[0, 1, 1, 2], &*READERS));
        let done: Arc<[AtomicUsize; 4]> = Arc::new(std::array::from_fn(|_| AtomicUsize::new(0)));
        let take_part = |jobs: &crate::Jobs, done: &[AtomicUsize; 4]| {
            let mut next = jobs.next();
            while let Some(number) = next {
                let before: &[usize] = [&[][..], &[0], &[0], &[1, 2]][number as usize];
                assert!(
                    before
                        .iter()
                        .all(|&other| done[other].load(Ordering::Relaxed) == 1)
                );
                assert_eq!(done[number as usize].fetch_add(1, Ordering::Relaxed), 0);
                next = jobs.ended(number).or_else(|| jobs.next());
            }
        };
        let (its_jobs, its_done) = (jobs.clone(), done.clone());
        let other = loom::thread::spawn(move || take_part(&its_jobs, &its_done));
        take_part(&jobs, &done);
        other.join().unwrap();
        assert!(jobs.all_ended());
        assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1));
    });
}
