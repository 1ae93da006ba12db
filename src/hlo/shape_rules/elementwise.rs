//! Elementwise opcodes: equal extents in, the same extents out; the element type follows the opcode.

use super::{Query, wrong_attributes};
use crate::attributes::Attributes;
use crate::opcode::{Class, Opcode};
use crate::shape::{ArrayShape, HloShape};
use ff_tensor::{DataType, Result, bail, ensure};

pub(super) fn infer(query: &Query) -> Result<HloShape> {
    match query.opcode.class() {
        Class::Unary => unary(query),
        Class::Binary => binary(query),
        _ => other(query),
    }
}

/// The type of the parts of a complex number; other types as they are.
fn part_type(dtype: DataType) -> DataType {
    match dtype {
        DataType::COMPLEX64 => DataType::FLOAT,
        DataType::COMPLEX128 => DataType::DOUBLE,
        other => other,
    }
}

fn unary(query: &Query) -> Result<HloShape> {
    let operand = query.array(0)?;
    let dtype = match query.opcode {
        Opcode::IsFinite => DataType::BOOL,
        Opcode::Abs | Opcode::Real | Opcode::Imag => part_type(operand.dtype),
        _ => operand.dtype,
    };
    Ok(operand.with_dtype(dtype).into())
}

fn binary(query: &Query) -> Result<HloShape> {
    let (lhs, rhs) = (query.array(0)?, query.array(1)?);
    ensure_same(lhs, rhs)?;
    Ok(lhs.clone().into())
}

/// INVALID_ARGUMENT unless both have the same type and extents.
fn ensure_same(lhs: &ArrayShape, rhs: &ArrayShape) -> Result<()> {
    ensure!(
        lhs == rhs,
        InvalidArgument,
        "Operands must have the same shape and element type, got {lhs} and {rhs}"
    );
    Ok(())
}

fn other(query: &Query) -> Result<HloShape> {
    let first = query.array(0)?;
    match query.opcode {
        Opcode::Compare => {
            ensure_same(first, query.array(1)?)?;
            let Attributes::Compare(direction) = query.attributes else {
                return wrong_attributes();
            };
            use crate::attributes::Direction::{Eq, Ne};
            ensure!(
                !first.dtype.is_complex() || matches!(direction, Eq | Ne),
                InvalidArgument,
                "Complex numbers of {first} have no order"
            );
            Ok(first.with_dtype(DataType::BOOL).into())
        }
        Opcode::Complex => {
            ensure_same(first, query.array(1)?)?;
            match first.dtype {
                DataType::FLOAT => Ok(first.with_dtype(DataType::COMPLEX64).into()),
                DataType::DOUBLE => Ok(first.with_dtype(DataType::COMPLEX128).into()),
                other => bail!(InvalidArgument, "No complex type has parts of type {other}"),
            }
        }
        Opcode::Select => select(query),
        Opcode::Clamp => clamp(query),
        Opcode::Convert => convert(query),
        Opcode::BitcastConvert => bitcast_convert(query),
        Opcode::ReducePrecision => {
            let Attributes::Precision { exponent_bits, .. } = query.attributes else {
                return wrong_attributes();
            };
            ensure!(
                *exponent_bits >= 1,
                InvalidArgument,
                "Exponent bits must be at least 1"
            );
            Ok(first.clone().into())
        }
        _ => Ok(first.clone().into()),
    }
}

/// Whether a side operand fits: a scalar, or of the same extents.
fn fits(side: &ArrayShape, main: &ArrayShape) -> bool {
    side.is_scalar() || side.dims == main.dims
}

fn select(query: &Query) -> Result<HloShape> {
    let (pred, on_true, on_false) = (query.array(0)?, query.array(1)?, query.array(2)?);
    ensure!(
        pred.dtype == DataType::BOOL,
        InvalidArgument,
        "Select's first operand must be pred, got {pred}"
    );
    ensure_same(on_true, on_false)?;
    ensure!(
        fits(pred, on_true),
        InvalidArgument,
        "Select's predicate {pred} is neither a scalar nor of the extents of {on_true}"
    );
    Ok(on_true.clone().into())
}

fn clamp(query: &Query) -> Result<HloShape> {
    let (min, operand, max) = (query.array(0)?, query.array(1)?, query.array(2)?);
    ensure!(
        min.dtype == operand.dtype && max.dtype == operand.dtype && fits(min, operand) && fits(max, operand),
        InvalidArgument,
        "Clamp's bounds {min} and {max} do not fit {operand}"
    );
    Ok(operand.clone().into())
}

fn convert(query: &Query) -> Result<HloShape> {
    let operand = query.array(0)?;
    let declared = query.declared()?.as_array()?;
    let target = declared.dtype;
    ensure!(
        declared.dims == operand.dims && crate::opcode::Types::NumberOrPred.accept(target),
        InvalidArgument,
        "Cannot convert {operand} to {declared}"
    );
    Ok(declared.clone().into())
}

fn bitcast_convert(query: &Query) -> Result<HloShape> {
    let operand = query.array(0)?;
    let declared = query.declared()?.as_array()?;
    let (from, to) = (operand.dtype.size(), declared.dtype.size());
    let split = (from > to).then(|| (from / to) as i64);
    let joined = (from < to).then(|| (to / from) as i64);
    let dims = &operand.dims[..];
    let expected: Option<Vec<i64>> = match (split, joined) {
        (Some(ratio), _) => Some(dims.iter().copied().chain([ratio]).collect()),
        (_, Some(ratio)) => match dims {
            [rest @ .., last] if *last == ratio => Some(rest.to_vec()),
            _ => None,
        },
        _ => Some(dims.to_vec()),
    };
    ensure!(
        expected.as_deref() == Some(&declared.dims[..]),
        InvalidArgument,
        "Cannot reinterpret {operand} as {declared}"
    );
    Ok(declared.clone().into())
}
