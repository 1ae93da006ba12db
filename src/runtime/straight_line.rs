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

/// Runs all instructions of a plan in a frame whose feeds are set.
pub fn run(plan: &Plan, frame: &mut Frame, host: &dyn KernelHost, trace: Option<&Trace>) -> Result<()> {
    let cancellation = host.cancellation();
    for (number, instruction) in plan.instructions.iter().enumerate() {
        if cancellation.is_cancelled() {
            cancellation.check()?;
        }
        let start = trace.map(|_| Trace::now());
        run_instruction(plan, number, instruction, frame, host)
            .map_err(|error| at_node(error, instruction.executable.node()))?;
        if let (Some(trace), Some(start)) = (trace, start) {
            trace.record(
                instruction.executable.node(),
                start,
                &frame.values[instruction.first_output as usize..],
            );
        }
    }
    Ok(())
}

fn run_instruction(
    plan: &Plan,
    number: usize,
    instruction: &Instruction,
    frame: &mut Frame,
    host: &dyn KernelHost,
) -> Result<()> {
    let mut inputs: SmallVec<[Value; 4]> = SmallVec::new();
    for input in &instruction.inputs {
        gather(plan, input, &mut frame.values, &mut inputs)?;
    }
    let remembered = &mut frame.specializations[number];
    if remembered.find(&inputs).is_none() {
        remembered.add(specialize(plan, instruction, &inputs, host)?);
    }
    let Some(specialization) = remembered.last_used() else {
        bail!(Internal, "nothing is remembered")
    };
    let first = instruction.first_output as usize;
    let outputs = &mut frame.values[first..first + instruction.output_uses.len()];
    instruction
        .executable
        .run(specialization, &mut inputs, outputs, host)?;
    for (output, &uses) in outputs.iter_mut().zip(&instruction.output_uses) {
        if uses == 0 {
            *output = Value::Absent;
        }
    }
    Ok(())
}

/// Adds an input's value to `inputs`: moved out of its slot by the last reader, else shared. Variables are read unless
/// the op wants the reference. (Values are large: each is moved once, and not through a result.)
#[inline(always)]
fn gather(plan: &Plan, input: &Input, values: &mut [Value], inputs: &mut SmallVec<[Value; 4]>) -> Result<()> {
    match input.source {
        Source::Constant(constant) => {
            inputs.push(Value::Tensor(plan.constants[constant as usize].clone()));
            return Ok(());
        }
        Source::Slot { slot, last: true } => inputs.push(std::mem::take(&mut values[slot as usize])),
        Source::Slot { slot, last: false } => inputs.push(values[slot as usize].clone()),
    }
    if let Some(value) = inputs.last_mut()
        && let (Value::Ref(variable), false) = (&*value, input.is_ref)
    {
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
