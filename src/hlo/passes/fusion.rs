//! Fusion: elementwise instructions, and reductions of rows between them, become one `fusion` instruction.
//!
//! *Assumes* a verified module without calls. *Guarantees* that each fusion has a plan ([`FusionPlan`]), that it has at
//! least two instructions that compute, or one and a read in place, and that it makes no cycle: members have one *level*, and what a member reads
//! from outside was ready at that level. Producers, consumers and siblings that share a consumer are fused; several
//! results become a tuple; broadcasts, slices, reversals, transposes, counters and scalar constants are copied into the
//! fusions that read them. Reductions of rows and what follows from them per row (softmax, normalizations) join the
//! fusion that makes the rows; reductions of columns join the fusion that computes what they combine. Padding,
//! concatenations, dynamic slices and gathers of what lies in memory are read in place by the one fusion that reads them,
//! where rows are long enough. *Does not* recompute an instruction in two fusions, fuse complex numbers or types that
//! are not computed as they are stored (but `f16` and `bf16`), or copy transposes of large arrays, which are better
//! done on their own.

mod build;
mod group;

use super::Changed;
use crate::attributes::Attributes;
use crate::module::{Computation, ComputationId, Module};
use crate::opcode::Opcode;
use ff_tensor::Result;

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let embedded = embedded(module);
    let old = std::mem::take(&mut module.computations);
    let mut out: Vec<Computation> = Vec::with_capacity(old.len());
    let mut place: Vec<ComputationId> = Vec::with_capacity(old.len());
    let mut changed = false;
    for (index, mut computation) in old.into_iter().enumerate() {
        for instruction in &mut computation.instructions {
            instruction
                .attributes
                .map_called_computations(|id| place[id.0 as usize]);
        }
        if !embedded[index] {
            let groups = group::find(&out, &computation);
            changed |= build::replace(&mut out, &mut computation, &groups)?;
        }
        place.push(ComputationId(out.len() as u32));
        out.push(computation);
    }
    module.computations = out;
    module.entry = place[module.entry.0 as usize];
    Ok(changed.into())
}

/// Computations that instructions apply to elements, and fusions: nothing is fused in them.
fn embedded(module: &Module) -> Vec<bool> {
    let mut embedded = vec![false; module.computations.len()];
    for instruction in module
        .computations
        .iter()
        .flat_map(|computation| &computation.instructions)
    {
        let runs = matches!(
            instruction.opcode,
            Opcode::While | Opcode::Conditional | Opcode::Call
        );
        if !runs && !matches!(instruction.attributes, Attributes::None) {
            for called in instruction.attributes.called_computations() {
                embedded[called.0 as usize] = true;
            }
        }
    }
    embedded
}
