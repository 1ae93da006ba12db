//! The thread pool: fork-join loops and asynchronous jobs.
//!
//! Contract
//! * A loop runs on the caller's thread and on idle workers; the caller takes blocks itself, so a loop always
//!   finishes even when every worker is busy.
//! * Small work stays on the caller's thread: the caller states a cost per item, the pool decides.
//! * Loops inside a loop body run serially on the thread that meets them.
//! * A panic in a loop body reaches the caller of the loop, after all bodies have ended.
//! * Threads start at the first work that needs them; `threads == 1` never starts one; dropping joins them.
//! * An idle worker spins for a short, bounded time, then sleeps.
//!
//! What it does not do: it has no priorities and does not bound the queue of asynchronous jobs.

use crate::sync::{
    Arc, AtomicUsize, Builder, Condvar, JoinHandle, Mutex, MutexGuard, Ordering, current, spin_loop,
};
use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{OnceLock, PoisonError};

/// Turns of the spin loop before an idle thread sleeps: some tens of microseconds.
const SPIN_TURNS: usize = if cfg!(loom) { 1 } else { 2000 };
/// Work below this is not worth sharing when a worker spins already, in nanoseconds.
const MIN_WORK_HOT: f64 = 5_000.0;
/// Work below this is not worth sharing when a worker must be woken, in nanoseconds.
const MIN_WORK_COLD: f64 = 20_000.0;
/// Blocks are not made cheaper than this, in nanoseconds.
const MIN_BLOCK: f64 = 2_000.0;
/// Blocks per thread: slack for threads that start late or are interrupted.
const BLOCKS_PER_THREAD: usize = 4;

#[cfg(not(loom))]
thread_local! {
    static INSIDE_LOOP: Cell<bool> = const { Cell::new(false) };
}
#[cfg(loom)]
loom::thread_local! {
    static INSIDE_LOOP: Cell<bool> = Cell::new(false);
}

type Panic = Box<dyn Any + Send>;
type AsyncJob = Box<dyn FnOnce() + Send>;

/// A loop in progress. Lives on the caller's stack; workers hold a pointer only while `active` counts them.
struct Loop<'a> {
    body: &'a (dyn Fn(usize) + Sync),
    /// Whether loops inside the body run serially.
    serial_inside: bool,
    blocks: usize,
    next: AtomicUsize,
    active: AtomicUsize,
    panic: Mutex<Option<Panic>>,
}

impl Loop<'_> {
    /// Takes blocks until none is left. After a panic the rest is skipped.
    fn work(&self) {
        let outer = INSIDE_LOOP.with(|inside| inside.replace(inside.get() || self.serial_inside));
        loop {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            if block >= self.blocks {
                break;
            }
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| (self.body)(block))) {
                self.next.store(self.blocks, Ordering::Relaxed);
                lock(&self.panic).get_or_insert(payload);
            }
        }
        INSIDE_LOOP.with(|inside| inside.set(outer));
    }

    fn exhausted(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.blocks
    }
}

#[derive(Clone, Copy)]
struct LoopPointer(*const Loop<'static>);
// SAFETY: `Loop` is shared between threads through atomics and a mutex, and its body is `Sync`.
unsafe impl Send for LoopPointer {}

#[derive(Default)]
struct Queue {
    loops: Vec<LoopPointer>,
    jobs: VecDeque<AsyncJob>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Wakes sleeping workers.
    work: Condvar,
    /// Wakes callers that wait for the workers of their loop.
    done: Condvar,
    /// Counts what was put into the queue, for the spin loop of idle workers.
    arrivals: AtomicUsize,
    sleeping: AtomicUsize,
    spinning: AtomicUsize,
    waiting_callers: AtomicUsize,
}

enum Work {
    Loop(LoopPointer),
    Job(AsyncJob),
    Nothing,
    Closed,
}

/// A fixed number of threads for loops and jobs; see the module's documentation.
pub struct ThreadPool {
    shared: Arc<Shared>,
    threads: usize,
    workers: OnceLock<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for ThreadPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadPool")
            .field("threads", &self.threads)
            .finish()
    }
}

impl ThreadPool {
    /// A pool of `threads` threads, the caller's included; 0 means one per core that this process may use.
    pub fn new(threads: usize) -> ThreadPool {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        ThreadPool {
            shared: Arc::new(Shared::default()),
            threads,
            workers: OnceLock::new(),
        }
    }

    /// A process-wide pool of one thread: everything runs on the caller's.
    pub fn serial() -> &'static ThreadPool {
        static SERIAL: OnceLock<ThreadPool> = OnceLock::new();
        SERIAL.get_or_init(|| ThreadPool::new(1))
    }

    /// The number of threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `body` over disjoint ranges that together cover `0..total`.
    ///
    /// `cost_per_item` is the expected time of one item in nanoseconds. Where the ranges are cut depends on the
    /// number of threads: an item's result must not depend on the range it is in (see [`Self::parallel_blocks`]).
    pub fn parallel_for(&self, total: usize, cost_per_item: f64, body: impl Fn(Range<usize>) + Sync) {
        if total == 0 {
            return;
        }
        let cost = total as f64 * cost_per_item;
        let blocks = self.block_count(total, cost);
        if blocks <= 1 {
            return body(0..total);
        }
        let size = total.div_ceil(blocks);
        self.run_loop(total.div_ceil(size), true, &|block| {
            let start = block * size;
            body(start..total.min(start + size));
        });
    }

    /// Runs `body(index, range)` for each block of `block` items (the last may be shorter) of `0..total`.
    ///
    /// The blocks are the same for any number of threads, so partial results per block, combined in the order of
    /// the blocks, give the same bits always. `cost_per_item` is in nanoseconds.
    pub fn parallel_blocks(
        &self,
        total: usize,
        block: usize,
        cost_per_item: f64,
        body: impl Fn(usize, Range<usize>) + Sync,
    ) {
        let block = block.max(1);
        let blocks = total.div_ceil(block);
        let run = |index: usize| body(index, index * block..total.min((index + 1) * block));
        if blocks > 1 && self.pays(total as f64 * cost_per_item) {
            self.run_loop(blocks, true, &run);
        } else {
            (0..blocks).for_each(run);
        }
    }

    /// Starts `job` on another thread and returns; with one thread the job runs here, before the return.
    ///
    /// Jobs start in the order of the calls. A panic inside a job ends the job only.
    pub fn spawn(&self, job: impl FnOnce() + Send + 'static) {
        if self.threads == 1 {
            let _ = catch_unwind(AssertUnwindSafe(job));
            return;
        }
        self.start_workers();
        let mut queue = lock(&self.shared.queue);
        queue.jobs.push_back(Box::new(job));
        self.shared.announce(queue, 1);
    }

    /// True where the calling thread is inside the body of a loop, so that a loop would run serially.
    pub fn inside_loop() -> bool {
        INSIDE_LOOP.with(Cell::get)
    }

    /// True if work of `cost` nanoseconds is worth sharing with other threads from here.
    pub fn pays(&self, cost: f64) -> bool {
        if self.threads == 1 || Self::inside_loop() {
            return false;
        }
        let hot = self.shared.spinning.load(Ordering::Relaxed) > 0;
        cost >= if hot { MIN_WORK_HOT } else { MIN_WORK_COLD }
    }

    fn block_count(&self, total: usize, cost: f64) -> usize {
        if !self.pays(cost) {
            return 1;
        }
        let worth = (cost / MIN_BLOCK) as usize;
        worth.clamp(1, self.threads * BLOCKS_PER_THREAD).min(total)
    }

    /// Calls `body` here and, while this thread is in it, once on each thread that is idle; returns when all calls have
    /// ended. Calls share work that they find themselves; loops inside them are shared with threads that are idle then.
    pub fn run_together(&self, body: &(dyn Fn() + Sync)) {
        if self.threads == 1 || Self::inside_loop() {
            return body();
        }
        self.run_loop(self.threads, false, &|_| body());
    }

    /// Runs `body(0..blocks)` here and on the workers, and returns when all have ended.
    fn run_loop(&self, blocks: usize, serial_inside: bool, body: &(dyn Fn(usize) + Sync)) {
        self.start_workers();
        let task = Loop {
            body,
            serial_inside,
            blocks,
            next: AtomicUsize::new(0),
            active: AtomicUsize::new(0),
            panic: Mutex::new(None),
        };
        // The lifetime is erased here; `withdraw` below restores it: no worker holds the pointer after it.
        let pointer = LoopPointer((&raw const task).cast());
        let mut queue = lock(&self.shared.queue);
        queue.loops.push(pointer);
        self.shared.announce(queue, self.threads.min(blocks) - 1);
        task.work();
        self.shared.withdraw(pointer, &task.active);
        let payload = lock(&task.panic).take();
        if let Some(payload) = payload {
            resume_unwind(payload);
        }
    }

    fn start_workers(&self) {
        self.workers.get_or_init(|| {
            (1..self.threads)
                .map_while(|index| {
                    let shared = Arc::clone(&self.shared);
                    let name = format!("ff-pool-{index}");
                    // A machine that refuses a thread still works: the caller takes the blocks.
                    Builder::new().name(name).spawn(move || shared.worker()).ok()
                })
                .collect()
        });
    }
}

impl Drop for ThreadPool {
    /// Runs the jobs that were spawned, then joins the threads.
    fn drop(&mut self) {
        let Some(workers) = self.workers.take() else {
            return;
        };
        let mut queue = lock(&self.shared.queue);
        queue.closed = true;
        self.shared.announce(queue, usize::MAX);
        let me = current().id();
        for worker in workers {
            // A job may own the last handle of the pool: a thread does not join itself.
            if worker.thread().id() != me {
                let _ = worker.join();
            }
        }
        // Without any worker (none could be started) the jobs still run.
        let mut queue = lock(&self.shared.queue);
        let jobs = std::mem::take(&mut queue.jobs);
        drop(queue);
        for job in jobs {
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }
}

impl Shared {
    /// Tells workers of new work, waking at most `wanted` sleepers. Consumes the lock, so that none wakes into it.
    fn announce(&self, queue: MutexGuard<'_, Queue>, wanted: usize) {
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        let sleeping = self.sleeping.load(Ordering::SeqCst);
        let spinning = self.spinning.load(Ordering::SeqCst);
        drop(queue);
        if wanted == usize::MAX {
            self.work.notify_all();
        } else {
            (0..wanted.saturating_sub(spinning).min(sleeping)).for_each(|_| self.work.notify_one());
        }
    }

    /// Removes a loop from the queue and waits until no worker is in it.
    fn withdraw(&self, pointer: LoopPointer, active: &AtomicUsize) {
        let mut queue = lock(&self.queue);
        queue.loops.retain(|other| !std::ptr::eq(other.0, pointer.0));
        drop(queue);
        for _ in 0..SPIN_TURNS {
            if active.load(Ordering::SeqCst) == 0 {
                return;
            }
            spin_loop();
        }
        let mut queue = lock(&self.queue);
        self.waiting_callers.fetch_add(1, Ordering::SeqCst);
        while active.load(Ordering::SeqCst) != 0 {
            queue = self.done.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        self.waiting_callers.fetch_sub(1, Ordering::SeqCst);
    }

    fn worker(&self) {
        loop {
            match self.next_work() {
                Work::Loop(pointer) => {
                    // SAFETY: `active` was raised under the lock while the loop was in the queue, so its caller
                    // waits in `withdraw` until the `fetch_sub` below.
                    let task = unsafe { &*pointer.0 };
                    task.work();
                    task.active.fetch_sub(1, Ordering::SeqCst);
                    // From here on `task` may be gone.
                    // Read by a write that changes nothing: a caller that raises the count later sees `active` as it is now,
                    // whatever the order that the processor gives to loads.
                    if self.waiting_callers.fetch_add(0, Ordering::SeqCst) > 0 {
                        drop(lock(&self.queue));
                        self.done.notify_all();
                    }
                }
                Work::Job(job) => {
                    let _ = catch_unwind(AssertUnwindSafe(job));
                }
                Work::Nothing => self.idle(),
                Work::Closed => return,
            }
        }
    }

    fn next_work(&self) -> Work {
        let mut queue = lock(&self.queue);
        for &pointer in &queue.loops {
            // SAFETY: a loop in the queue is alive: its caller removes it under this lock before it returns.
            let task = unsafe { &*pointer.0 };
            if !task.exhausted() {
                task.active.fetch_add(1, Ordering::SeqCst);
                return Work::Loop(pointer);
            }
        }
        match queue.jobs.pop_front() {
            Some(job) => Work::Job(job),
            None if queue.closed => Work::Closed,
            None => Work::Nothing,
        }
    }

    /// Spins until something arrives, then sleeps until woken. May return early.
    fn idle(&self) {
        let seen = self.arrivals.load(Ordering::SeqCst);
        self.spinning.fetch_add(1, Ordering::SeqCst);
        for _ in 0..SPIN_TURNS {
            if self.arrivals.load(Ordering::SeqCst) != seen {
                break;
            }
            spin_loop();
        }
        let queue = lock(&self.queue);
        self.spinning.fetch_sub(1, Ordering::SeqCst);
        let has_work = |queue: &Queue| {
            // SAFETY: as in `next_work`.
            queue.closed
                || !queue.jobs.is_empty()
                || queue.loops.iter().any(|l| unsafe { !(*l.0).exhausted() })
        };
        if self.arrivals.load(Ordering::SeqCst) != seen || has_work(&queue) {
            return;
        }
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
        drop(queue);
    }
}

/// Locks without poisoning: no invariant of the pool is broken by a panic, and bodies run outside the locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
#[path = "pool_tests.rs"]
mod tests;

#[cfg(all(test, loom))]
#[path = "pool_loom_tests.rs"]
mod loom_tests;
