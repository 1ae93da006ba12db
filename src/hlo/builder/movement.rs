//! Instructions that move elements by fixed rules.

use super::{Builder, Op};
use crate::attributes::{Attributes, PadConfig};
use crate::opcode::Opcode;
use crate::shape::{Dims, HloShape};
use ff_tensor::Result;

impl Builder {
    /// An array of extents `dims` in which operand axis `i` lies at axis `broadcast_dims[i]`, repeated elsewhere (and
    /// along axes where its extent is 1).
    pub fn broadcast_in_dim(&mut self, operand: Op, dims: &[i64], broadcast_dims: &[i64]) -> Result<Op> {
        let declared = HloShape::array(self.array_shape(operand)?.dtype, dims);
        let attributes = Attributes::Dimensions(Dims::from_slice(broadcast_dims));
        self.emit_declared(Opcode::Broadcast, &[operand], attributes, Some(declared))
    }

    /// The same elements in other extents; the value itself when they are already right.
    pub fn reshape(&mut self, operand: Op, dims: &[i64]) -> Result<Op> {
        let shape = self.array_shape(operand)?;
        if shape.dims[..] == *dims {
            return Ok(operand);
        }
        let declared = HloShape::array(shape.dtype, dims);
        self.emit_declared(Opcode::Reshape, &[operand], Attributes::None, Some(declared))
    }

    /// Axis `i` of the result is axis `permutation[i]` of the operand; the value itself for the identity.
    pub fn transpose(&mut self, operand: Op, permutation: &[i64]) -> Result<Op> {
        let rank = self.array_shape(operand)?.rank();
        if permutation.len() == rank && permutation.iter().enumerate().all(|(i, &axis)| i as i64 == axis) {
            return Ok(operand);
        }
        let attributes = Attributes::Dimensions(Dims::from_slice(permutation));
        self.emit(Opcode::Transpose, &[operand], attributes)
    }

    /// The elements in reverse order along these axes.
    pub fn reverse(&mut self, operand: Op, dimensions: &[i64]) -> Result<Op> {
        let attributes = Attributes::Dimensions(Dims::from_slice(dimensions));
        self.emit(Opcode::Reverse, &[operand], attributes)
    }

    /// Elements `start, start + stride, ...` below `limit` along each axis; the value itself when that is all of it.
    pub fn slice(&mut self, operand: Op, start: &[i64], limit: &[i64], stride: &[i64]) -> Result<Op> {
        let shape = self.array_shape(operand)?;
        let all = limit == &shape.dims[..]
            && start.len() == limit.len()
            && stride.len() == limit.len()
            && start.iter().all(|&s| s == 0)
            && stride.iter().all(|&s| s == 1);
        if all {
            return Ok(operand);
        }
        let attributes = Attributes::Slice {
            start: Dims::from_slice(start),
            limit: Dims::from_slice(limit),
            stride: Dims::from_slice(stride),
        };
        self.emit(Opcode::Slice, &[operand], attributes)
    }

    /// Elements `start..limit` along one axis.
    pub fn slice_in_dim(
        &mut self,
        operand: Op,
        start: i64,
        limit: i64,
        stride: i64,
        axis: usize,
    ) -> Result<Op> {
        let dims = Dims::from_slice(&self.array_shape(operand)?.dims);
        let (mut starts, mut limits) = (Dims::from_elem(0, dims.len()), dims.clone());
        let mut strides = Dims::from_elem(1, dims.len());
        if axis < dims.len() {
            (starts[axis], limits[axis], strides[axis]) = (start, limit, stride);
        }
        self.slice(operand, &starts, &limits, &strides)
    }

    /// A block of extents `sizes` at `start` (one integer scalar per axis), moved inside where it would stick out.
    pub fn dynamic_slice(&mut self, operand: Op, start: &[Op], sizes: &[i64]) -> Result<Op> {
        let mut operands = vec![operand];
        operands.extend_from_slice(start);
        self.emit(
            Opcode::DynamicSlice,
            &operands,
            Attributes::SliceSizes(Dims::from_slice(sizes)),
        )
    }

    /// The operand with the block at `start` replaced; the block is moved inside where it would stick out.
    pub fn dynamic_update_slice(&mut self, operand: Op, update: Op, start: &[Op]) -> Result<Op> {
        let mut operands = vec![operand, update];
        operands.extend_from_slice(start);
        self.emit(Opcode::DynamicUpdateSlice, &operands, Attributes::None)
    }

    /// The operands one after another along `dimension`; the value itself when there is one.
    pub fn concatenate(&mut self, operands: &[Op], dimension: usize) -> Result<Op> {
        if let [single] = operands {
            self.array_shape(*single)?;
            return Ok(*single);
        }
        self.emit(
            Opcode::Concatenate,
            operands,
            Attributes::Dimension(dimension as i64),
        )
    }

    /// The operand with `value` (a scalar) around and between its elements.
    pub fn pad(&mut self, operand: Op, value: Op, config: PadConfig) -> Result<Op> {
        self.emit(Opcode::Pad, &[operand, value], Attributes::Pad(config))
    }
}
