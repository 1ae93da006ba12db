//! Plans without v1 control flow in which kernels may wait for others: queues, barriers, staging areas, rendezvous.
//!
//! Instructions run in order, as in the straight-line engine, and most kernels that may wait do not have to. From the
//! first one that does on, an instruction runs when what it needs is there, and the rest goes on without it; a kernel that
//! waits holds no thread. Its end comes back through a mailbox.

use crate::frame::Frame;
use crate::plan::{Instruction, Plan, Source};
use crate::step::{Trace, at_node};
use crate::straight_line::{Inputs, Surroundings, execute, read_variable};
use ff_op::{Ended, KernelHost, Mailbox, Value};
use ff_tensor::{Result, Status, status};
use std::sync::Arc;

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

/// Runs a plan in a frame whose feeds are set.
pub fn run(
    plan: &Plan,
    waits: &Waits,
    frame: &mut Frame,
    host: &dyn KernelHost,
    trace: Option<&Trace>,
) -> Result<()> {
    let mut run = Run {
        plan,
        waits,
        frame,
        surroundings: Surroundings { host, trace },
        uses: waits.uses.clone(),
        mailbox: Arc::default(),
        unfinished: Vec::new(),
        started: Vec::new(),
        waiting: 0,
    };
    let result = run.all();
    if let (Err(error), true) = (&result, run.waiting > 0) {
        // What still waits belongs to a step that has failed.
        host.cancellation().cancel(error.clone());
    }
    result
}

struct Run<'a> {
    plan: &'a Plan,
    waits: &'a Waits,
    frame: &'a mut Frame,
    surroundings: Surroundings<'a>,
    /// Readers of each slot that have not run.
    uses: Vec<u32>,
    mailbox: Arc<Mailbox<u32>>,
    /// Once a kernel waits: which instructions have not ended.
    unfinished: Vec<bool>,
    /// When kernels that wait were started, if that is recorded.
    started: Vec<(u32, (i64, i64))>,
    waiting: usize,
}

impl Run<'_> {
    fn all(&mut self) -> Result<()> {
        let cancellation = self.surroundings.host.cancellation();
        let mut later = Vec::new();
        for number in 0..self.plan.instructions.len() as u32 {
            if cancellation.is_cancelled() {
                cancellation.check()?;
            }
            if self.is_ready(number) {
                self.start(number)?;
            } else {
                later.push(number);
            }
        }
        if self.waiting == 0 {
            return Ok(());
        }
        let mailbox = self.mailbox.clone();
        let callback = cancellation.on_cancel(move || mailbox.wake());
        let result = self.rest(later);
        cancellation.forget(callback);
        result
    }

    fn rest(&mut self, mut later: Vec<u32>) -> Result<()> {
        while self.waiting > 0 || !later.is_empty() {
            self.surroundings.host.cancellation().check()?;
            let ended = self.mailbox.take();
            if ended.is_empty() && self.waiting > 0 {
                self.mailbox.wait();
                continue;
            }
            for (number, ended) in ended {
                self.end(number, ended)?;
            }
            let mut still = Vec::with_capacity(later.len());
            for number in later {
                if self.is_ready(number) {
                    self.start(number)?;
                } else {
                    still.push(number);
                }
            }
            later = still;
        }
        Ok(())
    }

    fn is_ready(&self, number: u32) -> bool {
        let before = &self.waits.before[number as usize];
        self.waiting == 0 && self.unfinished.is_empty()
            || before.iter().all(|before| !self.unfinished[*before as usize])
    }

    /// Runs an instruction, or starts it if it may wait; most do not have to.
    fn start(&mut self, number: u32) -> Result<()> {
        let instruction = &self.plan.instructions[number as usize];
        let executable = &instruction.executable;
        let mut inputs = self
            .gather(instruction)
            .map_err(|error| at_node(error, executable.node()))?;
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
        let host = self.surroundings.host_of(instruction).share().ok_or_else(|| {
            at_node(
                status!(Internal, "nothing may wait in this step"),
                executable.node(),
            )
        })?;
        if self.surroundings.trace.is_some() {
            self.started.push((number, Trace::now()));
        }
        let mailbox = self.mailbox.clone();
        self.waiting += 1;
        let done = move |ended| mailbox.put(number, ended);
        executable.start(inputs.into_vec(), host, Box::new(done));
        if self.waiting == 1
            && let Some((number, ended)) = self.mailbox.take_one()
        {
            return self.end(number, ended);
        }
        if self.unfinished.is_empty() {
            let all = self.plan.instructions.len() as u32;
            self.unfinished = (0..all).map(|other| other >= number).collect();
        }
        Ok(())
    }

    fn gather(&mut self, instruction: &Instruction) -> Result<Inputs> {
        let mut inputs = Inputs::new();
        for input in &instruction.inputs {
            let mut value = match input.source {
                Source::Constant(constant) => Value::Tensor(self.plan.constants[constant as usize].clone()),
                Source::Slot { slot, .. } => {
                    let value = &mut self.frame.values[slot as usize];
                    let uses = &mut self.uses[slot as usize];
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
        if let Some(unfinished) = self.unfinished.get_mut(number as usize) {
            *unfinished = false;
        }
    }

    /// Takes in the end of a kernel that waited.
    fn end(&mut self, number: u32, ended: Ended) -> Result<()> {
        self.waiting -= 1;
        let instruction = &self.plan.instructions[number as usize];
        let name = |error: Status| at_node(error, instruction.executable.node());
        let outputs = ended.map_err(name)?;
        if let Some(trace) = self.surroundings.trace
            && let Some(place) = self.started.iter().position(|(its, _)| *its == number)
        {
            let (_, start) = self.started.swap_remove(place);
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
