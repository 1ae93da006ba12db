//! The compiler's intermediate representation, in XLA's terms (HLO), and what runs it without machine code.
//!
//! - [`Module`], [`Computation`], [`Instruction`]: the program as plain data, with [`Opcode`] and [`Attributes`].
//! - [`Builder`]: makes modules, with every shape checked by the shape rules.
//!
//! It knows nothing of graphs and ops: a numeric op is *lowered* to HLO by the crates above. Extents are concrete.

mod attributes;
pub mod buffers;
mod builder;
pub mod evaluator;
pub mod fusion;
mod module;
mod opcode;
pub mod passes;
mod shape;
mod shape_rules;
pub mod text;
mod verifier;
mod view;

pub use attributes::{
    Attributes, CheckConfig, ConvolutionConfig, ConvolutionDims, Direction, DotDims, FftKind, GatherDims,
    PadConfig, PadDimension, RngAlgorithm, ScanConfig, ScatterDims, TransposeKind, TriangularSolveOptions,
    Window, WindowDimension,
};
pub use builder::{Builder, FromF64, Op, broadcast_dims, reducer_name, scalar_tensor};
pub use evaluator::Program;
pub use module::{Computation, ComputationId, Instruction, InstructionId, Module, ProgramShape};
pub use opcode::{ALL as OPCODES, Arity, Class, Opcode, Types};
pub use shape::{ArrayShape, Dims, HloShape, type_from_name, type_name};
pub use shape_rules::{Query, infer};
pub use text::{html, parse, print, svg};
pub use verifier::verify;
