//! Plans without v1 control flow in which kernels may wait for others: queues, barriers, staging areas, rendezvous.
//!
//! Instructions run in order, as in the straight-line engine, and most kernels that may wait do not have to. From the
//! first one that does on, an instruction runs when what it needs is there, and the rest goes on without it; a kernel that
//! waits holds no thread. Its end comes back as a letter.

use crate::frame::Frame;
use crate::letters::{Driving, Letter, Letters, Route};
use crate::loops::Tag;
use crate::plan::{Instruction, Plan, Source};
use crate::step::{Trace, at_node};
use crate::straight_line::{Inputs, Surroundings, execute, read_variable};
use ff_op::{Cancellation, Ended, KernelHost, Value};
use ff_tensor::{Code, Result, Status, status};

/// What the instructions of a plan wait for, worked out once.
#[derive(Debug)]
pub struct Waits {
    /// For each instruction, those that must have ended before it.
    before: Vec<Box<[u32]>>,
    /// How often each slot is read, fetches counted.
    uses: Vec<u32>,
}

impl Waits {
    /// Works it out; control edges are linked and slots are not shared.
    pub fn of(instructions: &[Instruction], fetched: &[u32], slots: usize) -> Waits {
        let mut makers = vec![None; slots];
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); instructions.len()];
        let mut uses = vec![0; slots];
        fetched.iter().for_each(|slot| uses[*slot as usize] += 1);
        for (instruction, number) in instructions.iter().zip(0u32..) {
            for input in &instruction.inputs {
                if let Source::Slot { slot, .. } = input.source {
                    uses[slot as usize] += 1;
                    before[number as usize].extend(makers[slot as usize]);
                }
            }
            for output in 0..instruction.output_uses.len() {
                makers[instruction.first_output as usize + output] = Some(number);
            }
            for &reader in &instruction.control_outputs {
                before[reader as usize].push(number);
            }
        }
        Waits {
            before: before.into_iter().map(Vec::into_boxed_slice).collect(),
            uses,
        }
    }
}

/// What runs, and where.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// What its instructions wait for.
    pub waits: &'a Waits,
    /// What kernels reach.
    pub host: &'a dyn KernelHost,
    /// Where to record what ran.
    pub trace: Option<&'a Trace>,
}

/// How far a run has come.
pub struct Progress {
    /// Readers of each slot that have not run.
    uses: Vec<u32>,
    /// Once a kernel waits: which instructions have not ended.
    unfinished: Vec<bool>,
    /// Instructions passed over because what they need was not there.
    later: Vec<u32>,
    /// When kernels that wait were started, if that is recorded.
    started: Vec<(u32, (i64, i64))>,
    waiting: usize,
    begun: bool,
}

impl Progress {
    /// Nothing has run.
    pub fn new(waits: &Waits) -> Progress {
        Progress {
            uses: waits.uses.clone(),
            unfinished: Vec::new(),
            later: Vec::new(),
            started: Vec::new(),
            waiting: 0,
            begun: false,
        }
    }
}

/// Runs a plan in a frame whose feeds are set, to its end.
pub fn run(place: &Place, frame: &mut Frame) -> Result<()> {
    let driving = Driving::default();
    let route = Route::to(&driving);
    let mut progress = Progress::new(place.waits);
    if go_on(place, frame, &mut progress, &route, driving.letters())? {
        return Ok(());
    }
    let cancellation = place.host.cancellation();
    let callback = driving.wake_on(cancellation);
    let mut result = Ok(false);
    while let Ok(false) = result {
        driving.letters().wait();
        result = go_on(place, frame, &mut progress, &route, driving.letters());
    }
    cancellation.forget(callback);
    result.map(|_| ())
}

/// Goes on until all has run, or until nothing is left but what waits for letters; whether all has run.
pub fn go_on(
    place: &Place,
    frame: &mut Frame,
    progress: &mut Progress,
    route: &Route,
    letters: &Letters,
) -> Result<bool> {
    let mut run = Run {
        plan: place.plan,
        waits: place.waits,
        frame,
        surroundings: Surroundings {
            host: place.host,
            trace: place.trace,
        },
        progress,
        route,
        letters,
    };
    let result = run.go_on();
    if let (Err(error), true) = (&result, run.progress.waiting > 0) {
        // What still waits belongs to a step that has failed.
        place.host.cancellation().cancel(error.clone());
    }
    result
}

/// The cause once a step is cancelled; but where kernels wait that will say so themselves, in their words, they are waited
/// for. They are not when the step is late.
pub fn check(cancellation: &Cancellation, waiting: usize) -> Result<()> {
    match cancellation.check() {
        Err(error) if waiting > 0 && error.code() == Code::Cancelled => Ok(()),
        result => result,
    }
}

const OUTERMOST: Tag = Tag { frame: 0, turn: 0 };

struct Run<'a> {
    plan: &'a Plan,
    waits: &'a Waits,
    frame: &'a mut Frame,
    surroundings: Surroundings<'a>,
    progress: &'a mut Progress,
    route: &'a Route,
    letters: &'a Letters,
}

impl Run<'_> {
    fn go_on(&mut self) -> Result<bool> {
        if !std::mem::replace(&mut self.progress.begun, true) {
            self.all()?;
        }
        self.rest()
    }

    fn all(&mut self) -> Result<()> {
        let cancellation = self.surroundings.host.cancellation();
        for number in 0..self.plan.instructions.len() as u32 {
            if cancellation.is_cancelled() {
                cancellation.check()?;
            }
            if self.is_ready(number) {
                self.start(number)?;
            } else {
                self.progress.later.push(number);
            }
        }
        Ok(())
    }

    fn rest(&mut self) -> Result<bool> {
        while self.progress.waiting > 0 || !self.progress.later.is_empty() {
            check(self.surroundings.host.cancellation(), self.progress.waiting)?;
            let letters = self.letters.take();
            if letters.is_empty() && self.progress.waiting > 0 {
                return Ok(false);
            }
            for letter in letters {
                match letter {
                    Letter::Ended((_, number), ended) => self.end(number, ended)?,
                    Letter::Work(work) => work(),
                }
            }
            let later = std::mem::take(&mut self.progress.later);
            for number in later {
                if self.is_ready(number) {
                    self.start(number)?;
                } else {
                    self.progress.later.push(number);
                }
            }
        }
        Ok(true)
    }

    fn is_ready(&self, number: u32) -> bool {
        let Progress {
            waiting, unfinished, ..
        } = &*self.progress;
        let before = &self.waits.before[number as usize];
        *waiting == 0 && unfinished.is_empty() || before.iter().all(|before| !unfinished[*before as usize])
    }

    /// Runs an instruction, or starts it if it has to wait; most do not.
    fn start(&mut self, number: u32) -> Result<()> {
        let instruction = &self.plan.instructions[number as usize];
        let executable = &instruction.executable;
        let name = |error: Status| at_node(error, executable.node());
        let mut inputs = self.gather(instruction).map_err(name)?;
        if !executable.is_asynchronous() {
            execute(
                self.plan,
                number as usize,
                &mut inputs,
                self.frame,
                &self.surroundings,
            )?;
            self.finished(number);
            return Ok(());
        }
        if self.attempt(instruction, &mut inputs).map_err(name)? {
            self.finished(number);
            return Ok(());
        }
        let host = self.surroundings.host_of(instruction).share();
        let host = host.ok_or_else(|| name(status!(Internal, "nothing may wait in this step")))?;
        if self.surroundings.trace.is_some() {
            self.progress.started.push((number, Trace::now()));
        }
        self.progress.waiting += 1;
        let home = self.route.home.clone();
        let done = move |ended| home.ended((OUTERMOST, number), ended);
        executable.start(inputs.into_vec(), host, self.route.relay.clone(), Box::new(done));
        let mut work = None;
        if self.progress.waiting == 1 {
            match self.letters.take_one() {
                Some(Letter::Ended((_, its), ended)) => return self.end(its, ended),
                Some(Letter::Work(asked)) => work = Some(asked),
                None => {}
            }
        }
        if self.progress.unfinished.is_empty() {
            let all = self.plan.instructions.len() as u32;
            self.progress.unfinished = (0..all).map(|other| other >= number).collect();
        }
        if let Some(work) = work {
            work();
        }
        Ok(())
    }

    /// Runs an instruction that may wait, if it need not.
    fn attempt(&mut self, instruction: &Instruction, inputs: &mut Inputs) -> Result<bool> {
        let start = self.surroundings.trace.map(|_| Trace::now());
        let host = self.surroundings.host_of(instruction);
        let first = instruction.first_output as usize;
        let outputs = &mut self.frame.values[first..first + instruction.output_uses.len()];
        if !instruction.executable.attempt(inputs, outputs, host)? {
            return Ok(false);
        }
        if let (Some(trace), Some(start)) = (self.surroundings.trace, start) {
            trace.record_on(instruction, host.device_name(), start, outputs);
        }
        for (output, &uses) in outputs.iter_mut().zip(&instruction.output_uses) {
            if uses == 0 {
                *output = Value::Absent;
            }
        }
        Ok(true)
    }

    fn gather(&mut self, instruction: &Instruction) -> Result<Inputs> {
        let mut inputs = Inputs::new();
        for input in &instruction.inputs {
            let mut value = match input.source {
                Source::Constant(constant) => Value::Tensor(self.plan.constants[constant as usize].clone()),
                Source::Slot { slot, .. } => {
                    let value = &mut self.frame.values[slot as usize];
                    let uses = &mut self.progress.uses[slot as usize];
                    *uses = uses.saturating_sub(1);
                    if *uses == 0 {
                        std::mem::take(value)
                    } else {
                        value.clone()
                    }
                }
            };
            read_variable(&mut value, input.is_ref)?;
            inputs.push(value);
        }
        Ok(inputs)
    }

    fn finished(&mut self, number: u32) {
        if let Some(unfinished) = self.progress.unfinished.get_mut(number as usize) {
            *unfinished = false;
        }
    }

    /// Takes in the end of a kernel that waited.
    fn end(&mut self, number: u32, ended: Ended) -> Result<()> {
        self.progress.waiting -= 1;
        let instruction = &self.plan.instructions[number as usize];
        let name = |error: Status| at_node(error, instruction.executable.node());
        let outputs = ended.map_err(name)?;
        if let Some(trace) = self.surroundings.trace
            && let Some(place) = self.progress.started.iter().position(|(its, _)| *its == number)
        {
            let (_, start) = self.progress.started.swap_remove(place);
            let device = self.surroundings.host_of(instruction).device_name();
            trace.record_on(instruction, device, start, &outputs);
        }
        let first = instruction.first_output as usize;
        for (index, (output, &uses)) in outputs.into_iter().zip(&instruction.output_uses).enumerate() {
            if uses > 0 {
                self.frame.values[first + index] = output;
            }
        }
        self.finished(number);
        Ok(())
    }
}
