use super::*;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc;

/// A cost that makes any loop worth sharing.
const DEAR: f64 = 1e6;

#[test]
fn every_item_runs_once() {
    for threads in [1, 2, 3, 8] {
        let pool = ThreadPool::new(threads);
        for total in [0, 1, 2, 7, 100, 1001] {
            let hits: Vec<AtomicUsize> = (0..total).map(|_| AtomicUsize::new(0)).collect();
            pool.parallel_for(total, DEAR, |range| {
                range.for_each(|i| {
                    hits[i].fetch_add(1, Ordering::Relaxed);
                })
            });
            assert!(
                hits.iter().all(|h| h.load(Ordering::Relaxed) == 1),
                "{threads} threads, {total} items"
            );
        }
    }
}

#[test]
fn blocks_do_not_depend_on_threads() {
    let cut = |threads| {
        let seen = Mutex::new(Vec::new());
        ThreadPool::new(threads).parallel_blocks(103, 10, DEAR, |index, range| {
            seen.lock().unwrap().push((index, range.start, range.end));
        });
        let mut seen = seen.into_inner().unwrap();
        seen.sort();
        seen
    };
    assert_eq!(cut(1), cut(4));
    assert_eq!(cut(1).len(), 11);
    assert_eq!(cut(1)[10], (10, 100, 103));
}

#[test]
fn cheap_loops_stay_on_the_caller() {
    let pool = ThreadPool::new(4);
    let me = std::thread::current().id();
    pool.parallel_for(1000, 1.0, |range| {
        assert_eq!(range, 0..1000);
        assert_eq!(std::thread::current().id(), me);
    });
    assert!(pool.workers.get().is_none(), "no thread was started");
}

#[test]
fn one_thread_never_starts_another() {
    let pool = ThreadPool::new(1);
    let me = std::thread::current().id();
    pool.parallel_for(100, DEAR, |_| assert_eq!(std::thread::current().id(), me));
    let (sender, receiver) = mpsc::channel();
    pool.spawn(move || sender.send(std::thread::current().id()).unwrap());
    assert_eq!(receiver.recv().unwrap(), me);
    assert!(pool.workers.get().is_none());
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
    let pool = ThreadPool::new(3);
    for _ in 0..50 {
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.parallel_for(64, DEAR, |range| {
                if range.contains(&37) {
                    std::panic::panic_any("thirty-seven");
                }
            });
        }));
        assert_eq!(*result.unwrap_err().downcast::<&str>().unwrap(), "thirty-seven");
    }
    assert!(!ThreadPool::inside_loop());
    let sum = AtomicU64::new(0);
    pool.parallel_for(100, DEAR, |range| {
        sum.fetch_add(range.map(|i| i as u64).sum(), Ordering::Relaxed);
    });
    assert_eq!(sum.into_inner(), 4950);
}

#[test]
fn nested_loops_run() {
    let pool = ThreadPool::new(2);
    let count = AtomicUsize::new(0);
    pool.parallel_for(20, DEAR, |outer| {
        for _ in outer {
            pool.parallel_for(30, DEAR, |inner| {
                count.fetch_add(inner.len(), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(count.into_inner(), 600);
}

#[test]
fn jobs_run_before_the_pool_is_gone() {
    let count = Arc::new(AtomicUsize::new(0));
    let pool = ThreadPool::new(3);
    for _ in 0..200 {
        let count = Arc::clone(&count);
        pool.spawn(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
    pool.spawn(|| std::panic::panic_any("ignored"));
    drop(pool);
    assert_eq!(count.load(Ordering::Relaxed), 200);
}

#[test]
fn a_job_can_drop_the_last_handle() {
    let pool = Arc::new(ThreadPool::new(2));
    let (sender, receiver) = mpsc::channel();
    let inner = Arc::clone(&pool);
    pool.spawn(move || {
        while Arc::strong_count(&inner) > 1 {
            std::thread::yield_now();
        }
        drop(inner);
        sender.send(()).unwrap();
    });
    drop(pool);
    receiver.recv().unwrap();
}

#[test]
fn callers_on_many_threads_share_a_pool() {
    let pool = ThreadPool::new(2);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..500_usize {
                    let total = 1 + round % 50;
                    let sum = AtomicUsize::new(0);
                    pool.parallel_for(total, DEAR, |range| {
                        sum.fetch_add(range.sum::<usize>(), Ordering::Relaxed);
                    });
                    assert_eq!(sum.into_inner(), total * (total - 1) / 2);
                }
            });
        }
    });
}
