//! Replaces `call`, `fusion` and `map` by the instructions of what they call.
//!
//! *Assumes* a verified module. *Guarantees* that none of the three is left; a mapped computation becomes elementwise
//! instructions on arrays. *Does not* remove computations that nobody calls any more, and fails for a map over
//! anything but elementwise instructions on scalars.

use super::Changed;
use crate::attributes::Attributes;
use crate::module::{Computation, ComputationId, Instruction, InstructionId, Module};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims, HloShape};
use ff_tensor::{Result, bail, ensure};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The most instructions that a module may grow to.
const MAX_INSTRUCTIONS: usize = 4 << 20;

/// Whether a fusion of this computation stays.
pub type Keep<'a> = &'a dyn Fn(ComputationId) -> bool;

fn is_call(instruction: &Instruction, keep: Keep) -> bool {
    match (instruction.opcode, &instruction.attributes) {
        (Opcode::Fusion, Attributes::Call(called)) => !keep(*called),
        (opcode, _) => matches!(opcode, Opcode::Call | Opcode::Map),
    }
}

/// The module without calls but those of fusions to `keep`; the module itself when it has none.
pub fn flatten<'m>(module: &'m Module, keep: Keep) -> Result<Cow<'m, Module>> {
    let calls = |computation: &Computation| computation.instructions.iter().any(|call| is_call(call, keep));
    if !module.computations.iter().any(calls) {
        return Ok(Cow::Borrowed(module));
    }
    let mut copy = module.clone();
    run_except(&mut copy, keep)?;
    Ok(Cow::Owned(copy))
}

/// Runs the pass. RESOURCE_EXHAUSTED when the module would grow beyond measure.
pub fn run(module: &mut Module) -> Result<Changed> {
    run_except(module, &|_| false)
}

fn run_except(module: &mut Module, keep: Keep) -> Result<Changed> {
    let mut changed = false;
    let mut total = 0;
    for index in 0..module.computations.len() {
        // Callees come first, so they are free of calls already.
        let (callees, rest) = module.computations.split_at_mut(index);
        let computation = &mut rest[0];
        if computation.instructions.iter().any(|call| is_call(call, keep)) {
            *computation = without_calls(computation, callees, keep, MAX_INSTRUCTIONS.saturating_sub(total))?;
            changed = true;
        }
        total += computation.instructions.len();
    }
    Ok(changed.into())
}

fn without_calls(
    computation: &Computation,
    callees: &[Computation],
    keep: Keep,
    limit: usize,
) -> Result<Computation> {
    let mut out: Vec<Instruction> = Vec::with_capacity(computation.instructions.len());
    let mut place: Vec<InstructionId> = Vec::with_capacity(computation.instructions.len());
    for instruction in &computation.instructions {
        let mut copy = instruction.clone();
        copy.operands
            .iter_mut()
            .for_each(|operand| *operand = place[operand.0 as usize]);
        if !is_call(instruction, keep) {
            place.push(InstructionId(out.len() as u32));
            out.push(copy);
            continue;
        }
        let called = instruction.attributes.called_computations();
        let callee = &callees[called[0].0 as usize];
        ensure!(
            out.len() + callee.instructions.len() <= limit,
            ResourceExhausted,
            "Computation {} grows beyond {limit} instructions when calls are inlined",
            computation.name
        );
        let dims = if instruction.opcode == Opcode::Map {
            Some(instruction.array_shape()?.dims.clone())
        } else {
            None
        };
        place.push(splice(&mut out, callee, &copy.operands, dims.as_ref())?);
    }
    Ok(Computation {
        name: computation.name.clone(),
        parameters: computation
            .parameters
            .iter()
            .map(|id| place[id.0 as usize])
            .collect(),
        root: place[computation.root.0 as usize],
        instructions: out,
    })
}

/// Appends the instructions of `callee` on these arguments; scalars become arrays of extents `dims` for a map.
fn splice(
    out: &mut Vec<Instruction>,
    callee: &Computation,
    arguments: &[InstructionId],
    dims: Option<&Dims>,
) -> Result<InstructionId> {
    let mut place: Vec<InstructionId> = Vec::with_capacity(callee.instructions.len());
    for instruction in &callee.instructions {
        if let Attributes::Parameter(number) = instruction.attributes {
            place.push(arguments[number]);
            continue;
        }
        let mut copy = instruction.clone();
        copy.operands
            .iter_mut()
            .for_each(|operand| *operand = place[operand.0 as usize]);
        let id = InstructionId(out.len() as u32);
        let Some(dims) = dims else {
            out.push(copy);
            place.push(id);
            continue;
        };
        let dtype = copy.array_shape()?.dtype;
        let wide = HloShape::Array(ArrayShape {
            dtype,
            dims: dims.clone(),
        });
        match copy.opcode {
            Opcode::Constant => {
                out.push(copy);
                out.push(Instruction {
                    opcode: Opcode::Broadcast,
                    shape: wide,
                    operands: SmallVec::from_slice(&[id]),
                    attributes: Attributes::Dimensions(Dims::new()),
                    name: None,
                    node: None,
                });
            }
            opcode if opcode.is_elementwise() => {
                copy.shape = wide;
                out.push(copy);
            }
            other => bail!(Unimplemented, "A map over {other} is not implemented"),
        }
        place.push(InstructionId(out.len() as u32 - 1));
    }
    Ok(place[callee.root.0 as usize])
}
