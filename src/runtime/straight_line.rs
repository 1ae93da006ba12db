//! The straight-line engine: instructions in order, on the caller's thread.
//!
//! For plans in which no node waits for another of the same step. The steady state infers no shape, looks nothing
//! up and takes no lock; an input whose last reader runs is moved to it, so that its memory can be reused.

use crate::frame::Frame;
use crate::plan::{Input, Instruction, Plan, Source};
use crate::step::{Trace, at_node};
use ff_op::{KernelHost, Specialization, Value};
use ff_tensor::Result;
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
        inputs.push(gather(plan, input, &mut frame.values)?);
    }
    let specialization = match frame.specialization(number, &inputs) {
        Some(specialization) => specialization.clone(),
        None => {
            let made = specialize(instruction, &inputs, host)?;
            frame.remember(number, made.clone());
            made
        }
    };
    let mut outputs: SmallVec<[Value; 2]> = SmallVec::new();
    outputs.resize_with(instruction.output_uses.len(), Value::default);
    instruction
        .executable
        .run(&specialization, &mut inputs, &mut outputs, host)?;
    let first = instruction.first_output as usize;
    for (index, output) in outputs.into_iter().enumerate() {
        if instruction.output_uses[index] > 0 {
            frame.values[first + index] = output;
        }
    }
    Ok(())
}

/// An input's value: moved out of its slot by the last reader, else shared. Variables are read unless the op wants
/// the reference.
pub fn gather(plan: &Plan, input: &Input, values: &mut [Value]) -> Result<Value> {
    let value = match input.source {
        Source::Constant(constant) => return Ok(Value::Tensor(plan.constants[constant as usize].clone())),
        Source::Slot { slot, last: true } => std::mem::take(&mut values[slot as usize]),
        Source::Slot { slot, last: false } => values[slot as usize].clone(),
    };
    match value {
        Value::Ref(variable) if !input.is_ref => Ok(Value::Tensor(variable.read()?)),
        value => Ok(value),
    }
}

/// The specialization of an instruction for these inputs: one that another frame made, or a new one.
pub fn specialize(
    instruction: &Instruction,
    inputs: &[Value],
    host: &dyn KernelHost,
) -> Result<Arc<Specialization>> {
    const KEPT: usize = 8;
    if let Some(known) = instruction.known.lock().iter().find(|known| known.fits(inputs)) {
        return Ok(known.clone());
    }
    let made = Arc::new(instruction.executable.specialize(inputs, host)?);
    let mut known = instruction.known.lock();
    known.truncate(KEPT - 1);
    known.insert(0, made.clone());
    Ok(made)
}
