//! Independent branches of a plan at the same time, where that pays.
//!
//! Whether it pays is measured, not guessed: once in a while a run notes what each instruction takes. If the longest chain
//! of instructions that need each other takes clearly less than all of them, some runs try branches in parallel, and the
//! faster way is kept. Small graphs pay for this with a counter.
//!
//! Instructions that read or write state keep their order, so that results do not depend on the number of threads.
//! The caller's thread takes part; idle threads of the pool join it while more than one instruction is ready.

use crate::frame::{Frame, Remembered};
use crate::plan::{Instruction, Plan, Source};
use crate::step::at_node;
use crate::straight_line::{Inputs, read_variable, specialize};
use ff_kernels::{Jobs, ThreadPool};
use ff_op::{Effects, KernelHost, Value};
use ff_tensor::{Result, Status};
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Plans with more instructions are not looked at: what can be gained is small beside what the graph takes.
const MOST_INSTRUCTIONS: usize = 20_000;
/// Time that must be won by running in parallel, in nanoseconds.
const LEAST_GAIN: u64 = 40_000;
/// Instructions below this are not worth another thread, in nanoseconds.
const WORTH_A_THREAD: u32 = 10_000;
/// Runs of each way before one is chosen.
const TRIALS: u32 = 3;

/// How a plan runs, and what is known of it.
pub struct Tuning {
    can: bool,
    runs: AtomicU32,
    way: AtomicU8,
    trials: AtomicU32,
    best: Mutex<[Option<Duration>; 2]>,
    branches: OnceLock<Branches>,
}

/// What to do with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In order.
    InOrder,
    /// In order, and note what each instruction takes.
    Measure,
    /// Branches in parallel.
    Parallel,
    /// As the flag says (parallel or not), and note how long it takes.
    Try(bool),
}

const IN_ORDER: u8 = 0;
const TRYING: u8 = 1;
const PARALLEL: u8 = 2;

impl Tuning {
    /// For a plan of these instructions, of which nothing is known.
    pub fn new(instructions: &[Instruction]) -> Tuning {
        let has_ref = |instruction: &Instruction| {
            let node = instruction.executable.node();
            node.input_types
                .iter()
                .chain(&node.output_types)
                .any(|dtype| dtype.is_ref())
        };
        Tuning {
            // Variables by reference are read whenever an instruction runs: their order is that of the plan.
            can: (2..=MOST_INSTRUCTIONS).contains(&instructions.len()) && !instructions.iter().any(has_ref),
            runs: AtomicU32::new(0),
            way: AtomicU8::new(IN_ORDER),
            trials: AtomicU32::new(0),
            best: Mutex::default(),
            branches: OnceLock::new(),
        }
    }

    /// How to run this time.
    #[inline]
    pub fn way(&self, threads: usize) -> Way {
        if !self.can || threads == 1 {
            return Way::InOrder;
        }
        match self.way.load(Ordering::Relaxed) {
            PARALLEL => Way::Parallel,
            TRYING => Way::Try(self.trials.load(Ordering::Relaxed).is_multiple_of(2)),
            _ => {
                let run = self.runs.fetch_add(1, Ordering::Relaxed);
                // The second run, when everything is specialized, and then ever more rarely.
                let is_due = run > 0 && run.is_power_of_two() && run.trailing_zeros().is_multiple_of(2);
                if is_due { Way::Measure } else { Way::InOrder }
            }
        }
    }

    /// Takes in what a measured run found.
    pub fn measured(&self, plan: &Plan, costs: Vec<u32>) {
        let total: u64 = costs.iter().map(|cost| u64::from(*cost)).sum();
        if total < 2 * LEAST_GAIN {
            return;
        }
        let branches = self.branches.get_or_init(|| Branches::of(plan));
        let longest = branches.longest(&costs);
        for (known, cost) in branches.costs.iter().zip(costs) {
            known.store(cost, Ordering::Relaxed);
        }
        if total - longest >= LEAST_GAIN.max(total / 8) {
            *self.best.lock() = [None, None];
            self.trials.store(0, Ordering::Relaxed);
            self.way.store(TRYING, Ordering::Relaxed);
        }
    }

    /// Takes in how long a trial took.
    pub fn tried(&self, parallel: bool, took: Duration) {
        let mut best = self.best.lock();
        let known = &mut best[usize::from(parallel)];
        *known = Some(known.map_or(took, |known| known.min(took)));
        if self.trials.fetch_add(1, Ordering::Relaxed) + 1 < 2 * TRIALS {
            return;
        }
        let pays = matches!(*best, [Some(in_order), Some(parallel)] if parallel < in_order);
        let way = if pays { PARALLEL } else { IN_ORDER };
        self.way.store(way, Ordering::Relaxed);
    }

    /// The plan's branches; there once a run was measured that could win.
    pub fn branches(&self) -> Option<&Branches> {
        self.branches.get()
    }
}

/// The plan's instructions as a graph: a slot for each value, and who waits for whom.
pub struct Branches {
    /// Inputs of each instruction, from slots that no other value uses.
    inputs: Vec<Vec<Source>>,
    first_outputs: Vec<u32>,
    /// How often each slot is read, fetches counted.
    uses: Vec<u32>,
    /// Where each slot of the plan is at the end.
    ends: Vec<u32>,
    waits: Vec<u32>,
    readers: Vec<Vec<u32>>,
    costs: Vec<AtomicU32>,
}

impl Branches {
    fn of(plan: &Plan) -> Branches {
        let count = plan.instructions.len();
        let mut now: Vec<u32> = (0..plan.slots as u32).collect();
        let mut makers: Vec<Option<u32>> = vec![None; plan.slots];
        let mut branches = Branches {
            inputs: Vec::with_capacity(count),
            first_outputs: Vec::with_capacity(count),
            uses: vec![0; plan.slots],
            ends: Vec::new(),
            waits: vec![0; count],
            readers: vec![Vec::new(); count],
            costs: (0..count).map(|_| AtomicU32::new(0)).collect(),
        };
        let (mut last_write, mut reads): (Option<u32>, Vec<u32>) = (None, Vec::new());
        for (instruction, number) in plan.instructions.iter().zip(0u32..) {
            let mut before: Vec<u32> = Vec::new();
            let place = |input: &crate::plan::Input| match input.source {
                Source::Slot { slot, last } => Source::Slot {
                    slot: now[slot as usize],
                    last,
                },
                constant => constant,
            };
            let inputs: Vec<Source> = instruction.inputs.iter().map(place).collect();
            for source in &inputs {
                if let Source::Slot { slot, .. } = source {
                    branches.uses[*slot as usize] += 1;
                    before.extend(makers[*slot as usize]);
                }
            }
            match instruction.executable.node().op.effects {
                Effects::Pure => {}
                Effects::Reads => {
                    before.extend(last_write);
                    reads.push(number);
                }
                Effects::Writes | Effects::Stateful => {
                    before.extend(last_write.replace(number));
                    before.append(&mut reads);
                }
            }
            branches.inputs.push(inputs);
            branches.first_outputs.push(branches.uses.len() as u32);
            for output in 0..instruction.output_uses.len() {
                now[instruction.first_output as usize + output] = branches.uses.len() as u32;
                branches.uses.push(0);
                makers.push(Some(number));
            }
            branches.wait(number, before);
        }
        for (instruction, number) in plan.instructions.iter().zip(0u32..) {
            for &reader in &instruction.control_outputs {
                branches.wait(reader, vec![number]);
            }
        }
        for fetch in plan.fetches.iter().filter_map(|fetch| fetch.slot()) {
            branches.uses[now[fetch as usize] as usize] += 1;
        }
        branches.ends = now;
        branches
    }

    fn wait(&mut self, number: u32, mut before: Vec<u32>) {
        before.sort_unstable();
        before.dedup();
        for other in before {
            self.readers[other as usize].push(number);
            self.waits[number as usize] += 1;
        }
    }

    /// The time of the longest chain.
    fn longest(&self, costs: &[u32]) -> u64 {
        let mut starts = vec![0u64; costs.len()];
        let mut longest = 0;
        for (number, &cost) in costs.iter().enumerate() {
            let end = starts[number] + u64::from(cost);
            longest = longest.max(end);
            for &reader in &self.readers[number] {
                let start = &mut starts[reader as usize];
                *start = (*start).max(end);
            }
        }
        longest
    }
}

/// A run in progress, shared by the threads that take part.
struct Run<'a> {
    plan: &'a Plan,
    branches: &'a Branches,
    host: &'a dyn KernelHost,
    values: Vec<Mutex<Value>>,
    specializations: Vec<Mutex<Remembered>>,
    uses: Vec<AtomicU32>,
    jobs: Jobs<'a>,
    /// Whether the caller's thread has nothing to run.
    owner_waits: AtomicBool,
    failed: Mutex<Option<Status>>,
}

/// Runs a plan in a frame whose feeds are set, on this thread and those of `pool` that are idle.
pub fn run(
    plan: &Plan,
    branches: &Branches,
    frame: &mut Frame,
    host: &dyn KernelHost,
    pool: &ThreadPool,
) -> Result<()> {
    let counters = |counts: &[u32]| counts.iter().map(|&count| AtomicU32::new(count)).collect();
    let mut values: Vec<Mutex<Value>> = std::mem::take(&mut frame.values)
        .into_iter()
        .map(Mutex::new)
        .collect();
    values.resize_with(branches.uses.len(), Mutex::default);
    let specializations = std::mem::take(&mut frame.specializations);
    let run = Run {
        plan,
        branches,
        host,
        values,
        specializations: specializations.into_iter().map(Mutex::new).collect(),
        uses: counters(&branches.uses),
        jobs: Jobs::new(&branches.waits, &branches.readers),
        owner_waits: AtomicBool::new(false),
        failed: Mutex::default(),
    };
    run.drive(pool);
    let failed = run.failed.lock().take();
    frame.specializations = run.specializations.into_iter().map(Mutex::into_inner).collect();
    let mut values: Vec<Value> = run.values.into_iter().map(Mutex::into_inner).collect();
    frame.values = branches
        .ends
        .iter()
        .map(|&slot| std::mem::take(&mut values[slot as usize]))
        .collect();
    failed.map_or(Ok(()), Err)
}

impl Run<'_> {
    /// Runs everything; the caller's thread is the owner.
    fn drive(&self, pool: &ThreadPool) {
        let owner = std::thread::current().id();
        while !self.jobs.all_ended() && !self.jobs.is_stopped() {
            if self.is_worth_sharing() {
                self.owner_waits.store(false, Ordering::Relaxed);
                pool.run_together(&|| self.take_part(std::thread::current().id() == owner));
            } else if let Some(number) = self.jobs.next() {
                let next = self.run_one(number);
                self.jobs.give_back(next);
            } else {
                return;
            }
        }
    }

    /// Whether at least two instructions that take their time are ready.
    fn is_worth_sharing(&self) -> bool {
        let cost = |number: u32| self.branches.costs[number as usize].load(Ordering::Relaxed);
        self.jobs.count_ready(|number| cost(number) >= WORTH_A_THREAD) > 1
    }

    /// Runs what is ready, and what becomes ready by that, until nothing is.
    fn take_part(&self, is_owner: bool) {
        let mut next = self.jobs.next();
        while let Some(number) = next {
            next = self.run_one(number);
            // What follows is the owner's, which can share it with idle threads.
            if !is_owner && self.owner_waits.load(Ordering::Relaxed) {
                self.jobs.give_back(next);
                return;
            }
            next = next.or_else(|| self.jobs.next());
        }
        if is_owner {
            self.owner_waits.store(true, Ordering::Relaxed);
        }
    }

    /// Runs an instruction; gives one of those that are ready by that, the others go to all.
    fn run_one(&self, number: u32) -> Option<u32> {
        if self.jobs.is_stopped() {
            return None;
        }
        if let Err(error) = self.execute(number as usize) {
            let node = self.plan.instructions[number as usize].executable.node();
            self.failed.lock().get_or_insert_with(|| at_node(error, node));
            self.jobs.stop();
            return None;
        }
        self.jobs.ended(number)
    }

    fn execute(&self, number: usize) -> Result<()> {
        self.host.cancellation().check()?;
        let instruction = &self.plan.instructions[number];
        let host = match instruction.device {
            None => self.host,
            Some(device) => self.host.on_device(usize::from(device)).unwrap_or(self.host),
        };
        let mut inputs = Inputs::new();
        for (source, input) in self.branches.inputs[number].iter().zip(&instruction.inputs) {
            let mut value = self.read(*source);
            read_variable(&mut value, input.is_ref)?;
            inputs.push(value);
        }
        let mut remembered = self.specializations[number].lock();
        if remembered.find(&inputs).is_none() {
            remembered.add(specialize(self.plan, instruction, &inputs, host)?);
        }
        let Some(specialization) = remembered.last_used() else {
            return Ok(());
        };
        let mut outputs = smallvec::SmallVec::<[Value; 2]>::new();
        outputs.resize_with(instruction.output_uses.len(), Value::default);
        instruction
            .executable
            .run(specialization, &mut inputs, &mut outputs, host)?;
        let first = self.branches.first_outputs[number] as usize;
        for (index, output) in outputs.into_iter().enumerate() {
            if self.branches.uses[first + index] > 0 {
                *self.values[first + index].lock() = output;
            }
        }
        Ok(())
    }

    /// A value: taken by its last reader, so that its memory can be reused.
    fn read(&self, source: Source) -> Value {
        match source {
            Source::Constant(constant) => Value::Tensor(self.plan.constants[constant as usize].clone()),
            Source::Slot { slot, .. } => {
                let mut value = self.values[slot as usize].lock();
                let copy = value.clone();
                if self.uses[slot as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                    *value = Value::Absent;
                }
                copy
            }
        }
    }
}

/// Runs a plan as its tuning says.
pub fn run_tuned(
    plan: &Plan,
    tuning: &Tuning,
    frame: &mut Frame,
    host: &dyn KernelHost,
    way: Way,
    pool: &ThreadPool,
) -> Result<()> {
    let parallel = |frame: &mut Frame| match tuning.branches() {
        Some(branches) => run(plan, branches, frame, host, pool),
        None => crate::straight_line::run(plan, frame, host, None),
    };
    match way {
        Way::InOrder => crate::straight_line::run(plan, frame, host, None),
        Way::Measure => {
            let costs = crate::straight_line::run_measured(plan, frame, host)?;
            tuning.measured(plan, costs);
            Ok(())
        }
        Way::Parallel => parallel(frame),
        Way::Try(is_parallel) => {
            let start = Instant::now();
            if is_parallel {
                parallel(frame)?;
            } else {
                crate::straight_line::run(plan, frame, host, None)?;
            }
            tuning.tried(is_parallel, start.elapsed());
            Ok(())
        }
    }
}
