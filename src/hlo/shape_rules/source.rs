//! Opcodes whose values come from nowhere, or from outside the module.

use super::{Query, axis, wrong_attributes};
use crate::attributes::{Attributes, RngAlgorithm};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, HloShape};
use ff_tensor::{DataType, Result, ensure};

pub(super) fn infer(query: &Query) -> Result<HloShape> {
    match (query.opcode, query.attributes) {
        (Opcode::Parameter, Attributes::Parameter(_)) => Ok(query.declared()?.clone()),
        (Opcode::Constant, Attributes::Constant(tensor)) => {
            Ok(HloShape::array(tensor.dtype(), tensor.dims()))
        }
        (Opcode::Iota, Attributes::Dimension(dimension)) => {
            let declared = query.declared()?.as_array()?;
            axis(*dimension, declared.rank(), "Iota dimension")?;
            ensure!(
                Opcode::Iota.types().accept(declared.dtype),
                InvalidArgument,
                "Iota counts in numbers, not in {declared}"
            );
            Ok(declared.clone().into())
        }
        (Opcode::GetDimensionSize, Attributes::Dimension(dimension)) => {
            axis(*dimension, query.array(0)?.rank(), "Dimension")?;
            Ok(ArrayShape::scalar(DataType::INT32).into())
        }
        (Opcode::RngBitGenerator, Attributes::Rng(algorithm)) => rng(query, *algorithm),
        (Opcode::CustomCall, Attributes::CustomCall { .. }) => Ok(query.declared()?.clone()),
        _ => wrong_attributes(),
    }
}

fn rng(query: &Query, algorithm: RngAlgorithm) -> Result<HloShape> {
    let state = query.array(0)?;
    let words = algorithm.state_words() as i64;
    ensure!(
        *state == ArrayShape::new(DataType::UINT64, &[words]),
        InvalidArgument,
        "The state of {algorithm:?} is u64[{words}], got {state}"
    );
    let declared = query.declared()?;
    let bits = match declared {
        HloShape::Tuple(parts) => match &parts[..] {
            [first, HloShape::Array(bits)] if first == query.operands[0] => Some(bits),
            _ => None,
        },
        HloShape::Array(bits) => Some(bits),
    };
    ensure!(
        bits.is_some_and(|bits| matches!(bits.dtype, DataType::UINT32 | DataType::UINT64)),
        InvalidArgument,
        "The result must be an array of u32 or u64, alone or after the state, got {declared}"
    );
    Ok(declared.clone())
}
