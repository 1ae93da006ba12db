//! The straight-line engine: instructions in order, on the caller's thread.
//!
//! For plans in which no node waits for another of the same step. The steady state infers no shape, looks nothing
//! up and takes no lock; an input whose last reader runs is moved to it, so that its memory can be reused.

use crate::frame::Frame;
use crate::plan::{Input, Instruction, Plan, Source};
use crate::step::{Trace, at_node};
use ff_op::{KernelHost, Specialization, Value};
use ff_tensor::{Result, bail};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Instant;

/// The step that a plan runs in.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// What kernels reach.
    pub host: &'a dyn KernelHost,
    /// Where to record what ran.
    pub trace: Option<&'a Trace>,
}

impl<'a> Surroundings<'a> {
    /// The host of the device that an instruction runs on.
    #[inline]
    pub fn host_of(&self, instruction: &Instruction) -> &'a dyn KernelHost {
        match instruction.device {
            None => self.host,
            Some(device) => self.host.on_device(usize::from(device)).unwrap_or(self.host),
        }
    }
}

/// Inputs of an instruction.
pub type Inputs = SmallVec<[Value; 4]>;

/// Runs all instructions of a plan in a frame whose feeds are set.
pub fn run(plan: &Plan, frame: &mut Frame, host: &dyn KernelHost, trace: Option<&Trace>) -> Result<()> {
    let cancellation = host.cancellation();
    let surroundings = Surroundings { host, trace };
    for number in 0..plan.instructions.len() {
        if cancellation.is_cancelled() {
            cancellation.check()?;
        }
        run_instruction(plan, number, frame, &surroundings)?;
    }
    Ok(())
}

/// As [`run`]; also gives the nanoseconds that each instruction took.
pub fn run_measured(plan: &Plan, frame: &mut Frame, host: &dyn KernelHost) -> Result<Vec<u32>> {
    let surroundings = Surroundings { host, trace: None };
    let mut costs = Vec::with_capacity(plan.instructions.len());
    for number in 0..plan.instructions.len() {
        host.cancellation().check()?;
        let start = Instant::now();
        run_instruction(plan, number, frame, &surroundings)?;
        costs.push(u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX));
    }
    Ok(costs)
}

/// Runs an instruction whose inputs are in the frame, and puts its outputs there. Errors name its node.
#[inline]
pub fn run_instruction(
    plan: &Plan,
    number: usize,
    frame: &mut Frame,
    surroundings: &Surroundings,
) -> Result<()> {
    let instruction = &plan.instructions[number];
    let mut inputs = Inputs::new();
    for input in &instruction.inputs {
        if let Err(error) = gather(plan, input, &mut frame.values, &mut inputs) {
            return Err(at_node(error, instruction.executable.node()));
        }
    }
    execute(plan, number, &mut inputs, frame, surroundings)
}

/// Runs an instruction on `inputs` and puts its outputs into the frame. Errors name its node.
#[inline]
pub fn execute(
    plan: &Plan,
    number: usize,
    inputs: &mut Inputs,
    frame: &mut Frame,
    surroundings: &Surroundings,
) -> Result<()> {
    let instruction = &plan.instructions[number];
    let start = surroundings.trace.map(|_| Trace::now());
    let host = surroundings.host_of(instruction);
    run_kernel(plan, number, inputs, frame, host)
        .map_err(|error| at_node(error, instruction.executable.node()))?;
    let first = instruction.first_output as usize;
    if let (Some(trace), Some(start)) = (surroundings.trace, start) {
        trace.record_on(instruction, host.device_name(), start, &frame.values[first..]);
    }
    let outputs = &mut frame.values[first..first + instruction.output_uses.len()];
    for (output, &uses) in outputs.iter_mut().zip(&instruction.output_uses) {
        if uses == 0 {
            *output = Value::Absent;
        }
    }
    Ok(())
}

#[inline]
fn run_kernel(
    plan: &Plan,
    number: usize,
    inputs: &mut Inputs,
    frame: &mut Frame,
    host: &dyn KernelHost,
) -> Result<()> {
    let instruction = &plan.instructions[number];
    let remembered = &mut frame.specializations[number];
    if remembered.find(inputs).is_none() {
        remembered.add(specialize(plan, instruction, inputs, host)?);
    }
    let Some(specialization) = remembered.last_used() else {
        bail!(Internal, "nothing is remembered")
    };
    let first = instruction.first_output as usize;
    let outputs = &mut frame.values[first..first + instruction.output_uses.len()];
    instruction.executable.run(specialization, inputs, outputs, host)
}

/// Adds an input's value to `inputs`: moved out of its slot by the last reader, else shared. Variables are read unless
/// the op wants the reference. (Values are large: each is moved once, and not through a result.)
#[inline(always)]
fn gather(plan: &Plan, input: &Input, values: &mut [Value], inputs: &mut Inputs) -> Result<()> {
    match input.source {
        Source::Constant(constant) => {
            inputs.push(Value::Tensor(plan.constants[constant as usize].clone()));
            return Ok(());
        }
        Source::Slot { slot, last: true } => inputs.push(std::mem::take(&mut values[slot as usize])),
        Source::Slot { slot, last: false } => inputs.push(values[slot as usize].clone()),
    }
    if let Some(value) = inputs.last_mut() {
        read_variable(value, input.is_ref)?;
    }
    Ok(())
}

/// Takes the value of a variable in its place, unless the reader wants the variable itself.
#[inline(always)]
pub fn read_variable(value: &mut Value, is_ref: bool) -> Result<()> {
    if let (Value::Ref(variable), false) = (&*value, is_ref) {
        *value = Value::Tensor(variable.read()?);
    }
    Ok(())
}

/// The specialization of an instruction for these inputs: one made for a node of its class, or a new one.
pub fn specialize(
    plan: &Plan,
    instruction: &Instruction,
    inputs: &[Value],
    host: &dyn KernelHost,
) -> Result<Arc<Specialization>> {
    const KEPT: usize = 32;
    let class = &plan.classes[instruction.class as usize];
    if let Some(known) = class.lock().iter().find(|known| known.fits(inputs)) {
        return Ok(known.clone());
    }
    let made = Arc::new(instruction.executable.specialize(inputs, host)?);
    let mut known = class.lock();
    known.truncate(KEPT - 1);
    known.insert(0, made.clone());
    Ok(made)
}
