//! Instructions that move elements by values, or combine them.

use super::{Builder, Op};
use crate::attributes::{
    Attributes, ConvolutionConfig, DotDims, FftKind, GatherDims, ScatterDims, TriangularSolveOptions, Window,
};
use crate::module::ComputationId;
use crate::opcode::Opcode;
use crate::shape::{Dims, HloShape};
use crate::shape_rules::{Query, infer};
use ff_tensor::{DataType, Result};

impl Builder {
    /// Slices of the operand at the places that `indices` name, moved inside where they would stick out.
    pub fn gather(&mut self, operand: Op, indices: Op, dims: GatherDims) -> Result<Op> {
        self.emit(Opcode::Gather, &[operand, indices], Attributes::Gather(dims))
    }

    /// The operands with `updates` combined in at the places that `indices` name; updates that stick out are dropped.
    pub fn scatter(
        &mut self,
        operands: &[Op],
        indices: Op,
        updates: &[Op],
        dims: ScatterDims,
        computation: ComputationId,
    ) -> Result<Op> {
        let all = [operands, &[indices], updates].concat();
        self.emit(Opcode::Scatter, &all, Attributes::Scatter { dims, computation })
    }

    /// Sums of products over the contracting axes; elements of `preferred` type, or of the operands'.
    pub fn dot_general(
        &mut self,
        lhs: Op,
        rhs: Op,
        dims: DotDims,
        preferred: Option<DataType>,
    ) -> Result<Op> {
        self.contraction(Opcode::Dot, lhs, rhs, Attributes::Dot(dims), preferred)
    }

    /// A convolution; elements of `preferred` type, or of the operands'.
    pub fn convolution(
        &mut self,
        input: Op,
        kernel: Op,
        config: ConvolutionConfig,
        preferred: Option<DataType>,
    ) -> Result<Op> {
        self.contraction(
            Opcode::Convolution,
            input,
            kernel,
            Attributes::Convolution(config),
            preferred,
        )
    }

    fn contraction(
        &mut self,
        opcode: Opcode,
        lhs: Op,
        rhs: Op,
        attributes: Attributes,
        preferred: Option<DataType>,
    ) -> Result<Op> {
        let Some(dtype) = preferred else {
            return self.emit(opcode, &[lhs, rhs], attributes);
        };
        self.check_op(lhs)?;
        self.check_op(rhs)?;
        // The extents are inferred; only the type is declared.
        let inferred = infer(&Query {
            opcode,
            operands: &[self.shape_of(lhs), self.shape_of(rhs)],
            attributes: &attributes,
            declared: Some(&HloShape::array(dtype, &[])),
            computations: &self.computations,
        })?;
        self.emit_declared(opcode, &[lhs, rhs], attributes, Some(inferred))
    }

    /// Combines all elements along `dimensions`, starting from `inits`; an array for one input, else a tuple.
    pub fn reduce(
        &mut self,
        inputs: &[Op],
        inits: &[Op],
        computation: ComputationId,
        dimensions: &[i64],
    ) -> Result<Op> {
        let dimensions = Dims::from_slice(dimensions);
        let attributes = Attributes::Reduce {
            dimensions,
            computation,
        };
        self.emit(Opcode::Reduce, &[inputs, inits].concat(), attributes)
    }

    /// Combines the elements of each window, starting from `inits`; an array for one input, else a tuple.
    pub fn reduce_window(
        &mut self,
        inputs: &[Op],
        inits: &[Op],
        computation: ComputationId,
        window: Window,
    ) -> Result<Op> {
        let attributes = Attributes::ReduceWindow { window, computation };
        self.emit(Opcode::ReduceWindow, &[inputs, inits].concat(), attributes)
    }

    /// An array like `operand` of `init`, to which each element of `source` is scattered at the place that `select`
    /// chooses in its window.
    pub fn select_and_scatter(
        &mut self,
        operand: Op,
        source: Op,
        init: Op,
        select: ComputationId,
        scatter: ComputationId,
        window: Window,
    ) -> Result<Op> {
        let attributes = Attributes::SelectAndScatter {
            window,
            select,
            scatter,
        };
        self.emit(Opcode::SelectAndScatter, &[operand, source, init], attributes)
    }

    /// Sorts along an axis by a comparator ("comes before") of two elements of each input: `a0, b0, a1, b1, ...`.
    pub fn sort(
        &mut self,
        inputs: &[Op],
        dimension: usize,
        comparator: ComputationId,
        stable: bool,
    ) -> Result<Op> {
        let attributes = Attributes::Sort {
            dimension: dimension as i64,
            stable,
            computation: comparator,
        };
        self.emit(Opcode::Sort, inputs, attributes)
    }

    /// The `k` largest (or smallest) elements of the last axis in order, and their places (s32); ties by place.
    pub fn top_k(&mut self, operand: Op, k: i64, largest: bool) -> Result<Op> {
        self.emit(Opcode::TopK, &[operand], Attributes::TopK { k, largest })
    }

    /// A Fourier transform over the last `lengths.len()` axes.
    pub fn fft(&mut self, operand: Op, kind: FftKind, lengths: &[i64]) -> Result<Op> {
        let lengths = Dims::from_slice(lengths);
        self.emit(Opcode::Fft, &[operand], Attributes::Fft { kind, lengths })
    }

    /// Cholesky factors of the last two axes. The other triangle of the result is zero; NaN where not positive definite.
    pub fn cholesky(&mut self, operand: Op, lower: bool) -> Result<Op> {
        self.emit(Opcode::Cholesky, &[operand], Attributes::Cholesky { lower })
    }

    /// Solutions of triangular systems in the last two axes.
    pub fn triangular_solve(&mut self, a: Op, b: Op, options: TriangularSolveOptions) -> Result<Op> {
        self.emit(
            Opcode::TriangularSolve,
            &[a, b],
            Attributes::TriangularSolve(options),
        )
    }
}
