//! Finds the tile function for an opcode and element types.

use super::{PLAIN, SIMPLE, TileFn, blend, complex, convert, float, integer};
use crate::attributes::Attributes;
use crate::opcode::Opcode;
use ff_tensor::{Complex64, Complex128, DataType};

/// The type that elements of a type are computed in.
pub(in crate::evaluator) fn compute_type(dtype: DataType) -> DataType {
    match dtype {
        DataType::HALF | DataType::BFLOAT16 => DataType::FLOAT,
        DataType::INT2 | DataType::INT4 | DataType::UINT2 | DataType::UINT4 => DataType::INT32,
        DataType::QINT8 => DataType::INT8,
        DataType::QUINT8 => DataType::UINT8,
        DataType::QINT16 => DataType::INT16,
        DataType::QUINT16 => DataType::UINT16,
        DataType::QINT32 => DataType::INT32,
        other if other.is_floating() && other.size() == 1 => DataType::FLOAT,
        other => other,
    }
}

/// The function of an elementwise opcode on operands computed in `operand` that gives elements computed in `result`.
///
/// None for `clamp`, which is two others, and for pairs that the shape rules exclude.
pub(in crate::evaluator) fn map_function(
    opcode: Opcode,
    attributes: &Attributes,
    operand: DataType,
    result: DataType,
) -> Option<TileFn> {
    match (opcode, attributes) {
        (Opcode::Convert, _) => convert::convert(operand, result),
        (Opcode::Select, _) => select(result),
        (Opcode::Compare, Attributes::Compare(direction)) => compare(*direction, operand),
        (Opcode::Complex, _) if result == DataType::COMPLEX64 => Some(float::complex::<Complex64>()),
        (Opcode::Complex, _) => Some(float::complex::<Complex128>()),
        (Opcode::ReducePrecision, _) if operand == DataType::DOUBLE => Some(float::reduce_precision::<f64>()),
        (Opcode::ReducePrecision, _) => Some(float::reduce_precision::<f32>()),
        _ => arithmetic(opcode, operand),
    }
}

/// The function of `select` for elements of a type.
fn select(dtype: DataType) -> Option<TileFn> {
    match dtype.size() {
        1 => Some(blend::<u8>()),
        2 => Some(blend::<u16>()),
        4 => Some(blend::<u32>()),
        8 if dtype == DataType::COMPLEX64 => Some(blend::<Complex64>()),
        8 => Some(blend::<u64>()),
        16 => Some(blend::<Complex128>()),
        _ => None,
    }
}

fn compare(direction: crate::attributes::Direction, dtype: DataType) -> Option<TileFn> {
    Some(match dtype {
        DataType::BOOL | DataType::UINT8 => float::compare::<u8, PLAIN>(direction),
        DataType::INT8 => float::compare::<i8, PLAIN>(direction),
        DataType::INT16 => float::compare::<i16, PLAIN>(direction),
        DataType::UINT16 => float::compare::<u16, PLAIN>(direction),
        DataType::INT32 => float::compare::<i32, SIMPLE>(direction),
        DataType::UINT32 => float::compare::<u32, PLAIN>(direction),
        DataType::INT64 => float::compare::<i64, SIMPLE>(direction),
        DataType::UINT64 => float::compare::<u64, PLAIN>(direction),
        DataType::FLOAT => float::compare::<f32, SIMPLE>(direction),
        DataType::DOUBLE => float::compare::<f64, SIMPLE>(direction),
        DataType::COMPLEX64 => return complex::compare::<Complex64>(direction),
        DataType::COMPLEX128 => return complex::compare::<Complex128>(direction),
        _ => return None,
    })
}

/// The function of a unary or binary opcode.
fn arithmetic(opcode: Opcode, dtype: DataType) -> Option<TileFn> {
    use integer::{signed, signless};
    match dtype {
        DataType::BOOL => integer::pred(opcode),
        DataType::INT8 => signless::<i8, PLAIN>(opcode).or_else(|| signed::<i8, PLAIN>(opcode)),
        DataType::UINT8 => signless::<i8, PLAIN>(opcode).or_else(|| signed::<u8, PLAIN>(opcode)),
        DataType::INT16 => signless::<i16, PLAIN>(opcode).or_else(|| signed::<i16, PLAIN>(opcode)),
        DataType::UINT16 => signless::<i16, PLAIN>(opcode).or_else(|| signed::<u16, PLAIN>(opcode)),
        DataType::INT32 => signless::<i32, SIMPLE>(opcode).or_else(|| signed::<i32, SIMPLE>(opcode)),
        DataType::UINT32 => signless::<i32, SIMPLE>(opcode).or_else(|| signed::<u32, PLAIN>(opcode)),
        DataType::INT64 => signless::<i64, SIMPLE>(opcode).or_else(|| signed::<i64, SIMPLE>(opcode)),
        DataType::UINT64 => signless::<i64, SIMPLE>(opcode).or_else(|| signed::<u64, PLAIN>(opcode)),
        DataType::FLOAT => float::unary::<f32>(opcode).or_else(|| float::binary::<f32>(opcode)),
        DataType::DOUBLE => float::unary::<f64>(opcode).or_else(|| float::binary::<f64>(opcode)),
        DataType::COMPLEX64 => {
            complex::unary::<Complex64>(opcode).or_else(|| complex::binary::<Complex64>(opcode))
        }
        DataType::COMPLEX128 => {
            complex::unary::<Complex128>(opcode).or_else(|| complex::binary::<Complex128>(opcode))
        }
        _ => None,
    }
}
