//! Computes equal values once.
//!
//! *Assumes* a verified module. *Guarantees* that no two instructions of a computation have the same opcode, shape,
//! operands (in either order where that means the same) and attributes, unless they have side effects. *Does not* look
//! across computations, and leaves the dead copies out but nothing else.

use super::{Changed, rebuild};
use crate::attributes::Attributes;
use crate::module::{Instruction, InstructionId, Module};
use crate::opcode::Opcode;
use ff_tensor::{Result, Status};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// Runs the pass.
pub fn run(module: &mut Module) -> Result<Changed> {
    let mut changed = Changed::No;
    for computation in &mut module.computations {
        let mut seen: FxHashMap<u64, Vec<InstructionId>> = FxHashMap::default();
        let merged = rebuild::rewrite(computation, |rewriter, instruction| {
            if instruction.opcode == Opcode::Parameter || super::dce::must_stay(instruction) {
                return Ok::<_, Status>(None);
            }
            let candidates = seen.entry(hash(instruction)).or_default();
            let equal = candidates
                .iter()
                .find(|&&id| is_same(rewriter.get(id), instruction));
            if let Some(&id) = equal {
                return Ok(Some(id));
            }
            candidates.push(InstructionId(rewriter.out.len() as u32));
            Ok(None)
        })?;
        changed = changed.or(merged.into());
    }
    Ok(changed)
}

/// The operands, in an order of their own where theirs means nothing.
fn operands(instruction: &Instruction) -> SmallVec<[InstructionId; 2]> {
    let mut operands = instruction.operands.clone();
    if instruction.opcode.is_commutative() {
        operands.sort();
    }
    operands
}

fn hash(instruction: &Instruction) -> u64 {
    let mut hasher = FxHasher::default();
    (instruction.opcode, &instruction.shape, operands(instruction)).hash(&mut hasher);
    if let Attributes::Constant(value) = &instruction.attributes {
        value.bytes()[..value.bytes().len().min(64)].hash(&mut hasher);
    }
    hasher.finish()
}

fn is_same(a: &Instruction, b: &Instruction) -> bool {
    a.opcode == b.opcode
        && a.shape == b.shape
        && operands(a) == operands(b)
        && same_attributes(&a.attributes, &b.attributes)
}

/// Whether attributes say the same.
fn same_attributes(a: &Attributes, b: &Attributes) -> bool {
    use Attributes as A;
    match (a, b) {
        (A::None, A::None) => true,
        (A::Constant(a), A::Constant(b)) => {
            a.dtype() == b.dtype() && a.shape() == b.shape() && a.bytes() == b.bytes()
        }
        (A::Dimensions(a), A::Dimensions(b)) | (A::SliceSizes(a), A::SliceSizes(b)) => a == b,
        (A::Dimension(a), A::Dimension(b)) => a == b,
        (A::Compare(a), A::Compare(b)) => a == b,
        (A::Pad(a), A::Pad(b)) => a == b,
        (A::Gather(a), A::Gather(b)) => a == b,
        (A::Dot(a), A::Dot(b)) => a == b,
        (A::Convolution(a), A::Convolution(b)) => a == b,
        (A::TupleIndex(a), A::TupleIndex(b)) => a == b,
        (A::Map(a), A::Map(b)) => a == b,
        (A::Rng(a), A::Rng(b)) => a == b,
        (A::TriangularSolve(a), A::TriangularSolve(b)) => a == b,
        (A::Cholesky { lower: a }, A::Cholesky { lower: b }) => a == b,
        (
            A::Slice { start, limit, stride },
            A::Slice {
                start: start_b,
                limit: limit_b,
                stride: stride_b,
            },
        ) => start == start_b && limit == limit_b && stride == stride_b,
        (
            A::Precision {
                exponent_bits,
                mantissa_bits,
            },
            A::Precision {
                exponent_bits: exponent_b,
                mantissa_bits: mantissa_b,
            },
        ) => exponent_bits == exponent_b && mantissa_bits == mantissa_b,
        (
            A::Reduce {
                dimensions,
                computation,
            },
            A::Reduce {
                dimensions: dimensions_b,
                computation: computation_b,
            },
        ) => dimensions == dimensions_b && computation == computation_b,
        (
            A::ReduceWindow { window, computation },
            A::ReduceWindow {
                window: window_b,
                computation: computation_b,
            },
        ) => window == window_b && computation == computation_b,
        (
            A::TopK { k, largest },
            A::TopK {
                k: k_b,
                largest: largest_b,
            },
        ) => k == k_b && largest == largest_b,
        (
            A::Fft { kind, lengths },
            A::Fft {
                kind: kind_b,
                lengths: lengths_b,
            },
        ) => kind == kind_b && lengths == lengths_b,
        // Scatters, sorts and the like are rare: two of them stay two.
        _ => false,
    }
}
