//! Elementwise instructions.

use super::{Builder, Op};
use crate::attributes::{Attributes, Direction};
use crate::opcode::{Class, Opcode};
use crate::shape::HloShape;
use ff_tensor::{DataType, Result, ensure};

impl Builder {
    /// An opcode of one operand. INVALID_ARGUMENT for another class of opcode.
    pub fn unary(&mut self, opcode: Opcode, operand: Op) -> Result<Op> {
        ensure!(
            opcode.class() == Class::Unary || opcode == Opcode::Copy,
            InvalidArgument,
            "{opcode} is not a unary elementwise opcode"
        );
        self.emit(opcode, &[operand], Attributes::None)
    }

    /// An opcode of two operands of the same shape. INVALID_ARGUMENT for another class of opcode.
    pub fn binary(&mut self, opcode: Opcode, lhs: Op, rhs: Op) -> Result<Op> {
        ensure!(
            opcode.class() == Class::Binary || opcode == Opcode::Complex,
            InvalidArgument,
            "{opcode} is not a binary elementwise opcode"
        );
        self.emit(opcode, &[lhs, rhs], Attributes::None)
    }

    /// Compares two values of the same shape; the result is pred.
    pub fn compare(&mut self, direction: Direction, lhs: Op, rhs: Op) -> Result<Op> {
        self.emit(Opcode::Compare, &[lhs, rhs], Attributes::Compare(direction))
    }

    /// `on_true` where `pred` (a scalar, or of the same extents) holds, `on_false` elsewhere.
    pub fn select(&mut self, pred: Op, on_true: Op, on_false: Op) -> Result<Op> {
        self.emit(Opcode::Select, &[pred, on_true, on_false], Attributes::None)
    }

    /// `minimum(maximum(operand, min), max)`; the bounds are scalars or of the same extents.
    pub fn clamp(&mut self, min: Op, operand: Op, max: Op) -> Result<Op> {
        self.emit(Opcode::Clamp, &[min, operand, max], Attributes::None)
    }

    /// The values in another element type; the value itself when the type is already right.
    pub fn convert(&mut self, operand: Op, dtype: DataType) -> Result<Op> {
        let shape = self.array_shape(operand)?;
        if shape.dtype == dtype {
            return Ok(operand);
        }
        let declared = shape.with_dtype(dtype).into();
        self.emit_declared(Opcode::Convert, &[operand], Attributes::None, Some(declared))
    }

    /// The bits as another element type. A narrower type adds a last axis, a wider one takes it away.
    pub fn bitcast_convert(&mut self, operand: Op, dtype: DataType) -> Result<Op> {
        let shape = self.array_shape(operand)?;
        let mut dims = shape.dims.clone();
        let (from, to) = (shape.dtype.size(), dtype.size());
        ensure!(to > 0, InvalidArgument, "Cannot reinterpret {shape} as {dtype}");
        if from > to {
            dims.push((from / to) as i64);
        } else if from < to {
            dims.pop();
        }
        let declared = HloShape::array(dtype, &dims);
        self.emit_declared(
            Opcode::BitcastConvert,
            &[operand],
            Attributes::None,
            Some(declared),
        )
    }

    /// Rounds to a format with these bits, kept in the operand's type.
    pub fn reduce_precision(&mut self, operand: Op, exponent_bits: u32, mantissa_bits: u32) -> Result<Op> {
        let attributes = Attributes::Precision {
            exponent_bits,
            mantissa_bits,
        };
        self.emit(Opcode::ReducePrecision, &[operand], attributes)
    }
}
