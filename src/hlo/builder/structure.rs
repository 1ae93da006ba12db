//! Instructions that call computations, build tuples, check values, or give values from outside.

use super::{Builder, Op};
use crate::attributes::{Attributes, CheckConfig, RngAlgorithm, ScanConfig};
use crate::module::ComputationId;
use crate::opcode::Opcode;
use crate::shape::HloShape;
use ff_tensor::{Code, DataType, Result};

impl Builder {
    /// Applies `body` to the state while `condition` holds.
    pub fn while_loop(&mut self, condition: ComputationId, body: ComputationId, init: Op) -> Result<Op> {
        self.emit(Opcode::While, &[init], Attributes::While { condition, body })
    }

    /// Applies a computation at each place along an axis; see [`ScanConfig`]. `sequences` are cut into slices.
    pub fn scan(
        &mut self,
        sequences: &[Op],
        carries: &[Op],
        dimension: usize,
        reverse: bool,
        computation: ComputationId,
    ) -> Result<Op> {
        let config = ScanConfig {
            dimension: dimension as i64,
            num_carries: carries.len() as i64,
            reverse,
            computation,
        };
        self.emit(
            Opcode::Scan,
            &[sequences, carries].concat(),
            Attributes::Scan(config),
        )
    }

    /// The result of one branch on its argument: that of number `index` (the last one when out of range), or, for a
    /// pred, the first when true, the second when false.
    pub fn conditional(&mut self, index: Op, branches: &[(ComputationId, Op)]) -> Result<Op> {
        let mut operands = vec![index];
        operands.extend(branches.iter().map(|branch| branch.1));
        let attributes = Attributes::Branches(branches.iter().map(|branch| branch.0).collect());
        self.emit(Opcode::Conditional, &operands, attributes)
    }

    /// The result of a computation.
    pub fn call(&mut self, computation: ComputationId, operands: &[Op]) -> Result<Op> {
        self.emit(Opcode::Call, operands, Attributes::Call(computation))
    }

    /// A computation of scalars, applied element by element.
    pub fn map(&mut self, computation: ComputationId, operands: &[Op]) -> Result<Op> {
        self.emit(Opcode::Map, operands, Attributes::Map(computation))
    }

    /// Several values as one.
    pub fn tuple(&mut self, elements: &[Op]) -> Result<Op> {
        self.emit(Opcode::Tuple, elements, Attributes::None)
    }

    /// One value of a tuple.
    pub fn get_tuple_element(&mut self, tuple: Op, index: usize) -> Result<Op> {
        self.check_op(tuple)?;
        let source = &self.instructions[tuple.0.0 as usize];
        if source.opcode == Opcode::Tuple
            && let Some(&element) = source.operands.get(index)
        {
            return Ok(Op(element));
        }
        self.emit(Opcode::GetTupleElement, &[tuple], Attributes::TupleIndex(index))
    }

    /// All values of a tuple.
    pub fn tuple_elements(&mut self, tuple: Op) -> Result<Vec<Op>> {
        self.check_op(tuple)?;
        let count = self.shape_of(tuple).as_tuple()?.len();
        (0..count)
            .map(|index| self.get_tuple_element(tuple, index))
            .collect()
    }

    /// The value, as something that optimizations do not look through.
    pub fn opt_barrier(&mut self, operand: Op) -> Result<Op> {
        self.emit(Opcode::OptBarrier, &[operand], Attributes::None)
    }

    /// The result of a function outside the module.
    pub fn custom_call(
        &mut self,
        target: &str,
        operands: &[Op],
        shape: impl Into<HloShape>,
        config: &str,
    ) -> Result<Op> {
        let attributes = Attributes::CustomCall {
            target: target.into(),
            config: config.into(),
        };
        self.emit_declared(Opcode::CustomCall, operands, attributes, Some(shape.into()))
    }

    /// Random bits: a tuple of the next state and an array of u32 or u64.
    pub fn rng_bit_generator(
        &mut self,
        algorithm: RngAlgorithm,
        state: Op,
        dtype: DataType,
        dims: &[i64],
    ) -> Result<Op> {
        self.check_op(state)?;
        let declared = HloShape::Tuple(vec![self.shape_of(state).clone(), HloShape::array(dtype, dims)]);
        self.emit_declared(
            Opcode::RngBitGenerator,
            &[state],
            Attributes::Rng(algorithm),
            Some(declared),
        )
    }

    /// Random bits alone: an array of u32 or u64.
    pub fn random_bits(
        &mut self,
        algorithm: RngAlgorithm,
        state: Op,
        dtype: DataType,
        dims: &[i64],
    ) -> Result<Op> {
        self.check_op(state)?;
        self.emit_declared(
            Opcode::RngBitGenerator,
            &[state],
            Attributes::Rng(algorithm),
            Some(HloShape::array(dtype, dims)),
        )
    }

    /// The extent of an axis as an s32 scalar.
    pub fn get_dimension_size(&mut self, operand: Op, axis: usize) -> Result<Op> {
        self.emit(
            Opcode::GetDimensionSize,
            &[operand],
            Attributes::Dimension(axis as i64),
        )
    }

    /// Fails the run with this error unless all of `predicate` (pred, any extents) is true.
    ///
    /// It stays although nothing reads its result (an empty tuple). In the message `{index}` stands for the place of
    /// the first false element.
    pub fn check(&mut self, predicate: Op, code: Code, message: &str) -> Result<Op> {
        self.check_values(predicate, &[], code, message)
    }

    /// As [`Builder::check`]; `{0}`, `{1}`... in the message stand for the elements of `values` at that place.
    pub fn check_values(&mut self, predicate: Op, values: &[Op], code: Code, message: &str) -> Result<Op> {
        let attributes = Attributes::Check(CheckConfig {
            code,
            message: message.into(),
        });
        self.emit(Opcode::Check, &[&[predicate], values].concat(), attributes)
    }
}
