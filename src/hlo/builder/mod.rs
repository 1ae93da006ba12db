//! The builder: makes one computation of a module, instruction by instruction, and checks every shape.
//!
//! Methods return an [`Op`], a small handle that is valid in its own builder only. Broadcasts are explicit here;
//! `numpy` adds the helpers that broadcast, fill and reduce by common functions. Errors are INVALID_ARGUMENT from the
//! shape rules and leave the builder as it was.

mod elementwise;
mod indexing;
mod movement;
mod numpy;
mod structure;

#[cfg(test)]
mod tests;

use crate::attributes::Attributes;
use crate::module::{Computation, ComputationId, Instruction, InstructionId, Module};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, HloShape};
use crate::shape_rules::{Query, infer};
use ff_tensor::{DataType, Element, Result, Tensor, ensure, status};
use smallvec::SmallVec;
use std::sync::Arc;

pub(crate) use numpy::identity_tensor;
pub use numpy::{FromF64, broadcast_dims, reducer_name, scalar_tensor};

/// A value in a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op(pub(crate) InstructionId);

/// Builds one computation, with the computations that it calls.
pub struct Builder {
    name: String,
    instructions: Vec<Instruction>,
    parameters: Vec<Option<InstructionId>>,
    /// Finished computations that instructions may call.
    computations: Vec<Computation>,
    node: Option<Arc<str>>,
}

impl Builder {
    /// A builder of a computation of this name, which also names the module.
    pub fn new(name: impl Into<String>) -> Builder {
        Builder {
            name: name.into(),
            instructions: Vec::new(),
            parameters: Vec::new(),
            computations: Vec::new(),
            node: None,
        }
    }

    /// A builder for a computation to be called; give its module to [`Builder::add_computation`].
    pub fn sub_builder(&self, name: impl Into<String>) -> Builder {
        let mut builder = Builder::new(name);
        builder.node = self.node.clone();
        builder
    }

    /// Builds a computation to be called: `build` adds its instructions and returns its root.
    pub fn computation(
        &mut self,
        name: impl Into<String>,
        build: impl FnOnce(&mut Builder) -> Result<Op>,
    ) -> Result<ComputationId> {
        let mut builder = self.sub_builder(name);
        let root = build(&mut builder)?;
        let module = builder.finish(root)?;
        Ok(self.add_computation(module))
    }

    /// Takes in all computations of a module; the result is its entry, which instructions may now call.
    pub fn add_computation(&mut self, module: Module) -> ComputationId {
        let offset = self.computations.len() as u32;
        let entry = ComputationId(module.entry.0 + offset);
        self.computations
            .extend(module.computations.into_iter().map(|mut computation| {
                for instruction in &mut computation.instructions {
                    instruction
                        .attributes
                        .map_called_computations(|id| ComputationId(id.0 + offset));
                }
                computation
            }));
        entry
    }

    /// The name of the graph node that the instructions from now on come from.
    pub fn set_node(&mut self, node: Option<Arc<str>>) {
        self.node = node;
    }

    /// The module whose entry gives `root`. INVALID_ARGUMENT when a parameter number is missing.
    pub fn finish(self, root: Op) -> Result<Module> {
        self.check_op(root)?;
        let mut parameters = Vec::with_capacity(self.parameters.len());
        for (index, parameter) in self.parameters.iter().enumerate() {
            parameters.push(parameter.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Computation {} has no parameter {index}",
                    self.name
                )
            })?);
        }
        let mut computations = self.computations;
        let entry = ComputationId(computations.len() as u32);
        computations.push(Computation {
            name: self.name.clone(),
            instructions: self.instructions,
            parameters,
            root: root.0,
        });
        Ok(Module {
            name: self.name,
            computations,
            entry,
        })
    }

    /// The shape of a value. Panics for a handle of another builder that is out of range here.
    pub fn shape_of(&self, op: Op) -> &HloShape {
        &self.instructions[op.0.0 as usize].shape
    }

    /// The shape of an array. INVALID_ARGUMENT for a tuple.
    pub fn array_shape(&self, op: Op) -> Result<&ArrayShape> {
        self.check_op(op)?;
        self.shape_of(op).as_array()
    }

    /// The extents of an array; none for a tuple.
    pub fn dims(&self, op: Op) -> &[i64] {
        match self.shape_of(op) {
            HloShape::Array(array) => &array.dims,
            HloShape::Tuple(_) => &[],
        }
    }

    /// The rank of an array; 0 for a tuple.
    pub fn rank(&self, op: Op) -> usize {
        self.dims(op).len()
    }

    /// The element type of an array; INVALID for a tuple.
    pub fn dtype(&self, op: Op) -> DataType {
        match self.shape_of(op) {
            HloShape::Array(array) => array.dtype,
            HloShape::Tuple(_) => DataType::INVALID,
        }
    }

    /// The value of a constant, if that is what `op` is.
    pub fn constant_value(&self, op: Op) -> Option<&Tensor> {
        match &self.instructions.get(op.0.0 as usize)?.attributes {
            Attributes::Constant(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The computations that instructions may call.
    pub fn computations(&self) -> &[Computation] {
        &self.computations
    }

    /// The instructions so far.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    fn check_op(&self, op: Op) -> Result<()> {
        ensure!(
            (op.0.0 as usize) < self.instructions.len(),
            InvalidArgument,
            "A value of another computation is used in {}",
            self.name
        );
        Ok(())
    }

    /// Adds an instruction whose shape follows from its operands.
    pub fn emit(&mut self, opcode: Opcode, operands: &[Op], attributes: Attributes) -> Result<Op> {
        self.emit_declared(opcode, operands, attributes, None)
    }

    /// Adds an instruction, with the shape of its result where the operands do not decide it.
    pub fn emit_declared(
        &mut self,
        opcode: Opcode,
        operands: &[Op],
        attributes: Attributes,
        declared: Option<HloShape>,
    ) -> Result<Op> {
        for &operand in operands {
            self.check_op(operand)?;
        }
        let shape = {
            let shapes: SmallVec<[&HloShape; 4]> = operands.iter().map(|&op| self.shape_of(op)).collect();
            infer(&Query {
                opcode,
                operands: &shapes,
                attributes: &attributes,
                declared: declared.as_ref(),
                computations: &self.computations,
            })?
        };
        let id = InstructionId(self.instructions.len() as u32);
        self.instructions.push(Instruction {
            opcode,
            shape,
            operands: operands.iter().map(|op| op.0).collect(),
            attributes,
            name: None,
            node: self.node.clone(),
        });
        Ok(Op(id))
    }

    /// Gives an instruction a name for people.
    pub fn set_name(&mut self, op: Op, name: &str) {
        if let Some(instruction) = self.instructions.get_mut(op.0.0 as usize) {
            instruction.name = Some(name.into());
        }
    }

    /// A parameter. INVALID_ARGUMENT when the number is taken.
    pub fn parameter(&mut self, index: usize, shape: impl Into<HloShape>, name: &str) -> Result<Op> {
        const MAX_PARAMETERS: usize = 1 << 20;
        ensure!(
            index < MAX_PARAMETERS && self.parameters.get(index).is_none_or(Option::is_none),
            InvalidArgument,
            "Parameter {index} of {} is defined twice, or too large a number",
            self.name
        );
        let shape = shape.into();
        let op = self.emit_declared(Opcode::Parameter, &[], Attributes::Parameter(index), Some(shape))?;
        self.set_name(op, name);
        if self.parameters.len() <= index {
            self.parameters.resize(index + 1, None);
        }
        self.parameters[index] = Some(op.0);
        Ok(op)
    }

    /// A constant. INVALID_ARGUMENT for strings, resources and variants.
    pub fn constant(&mut self, value: Tensor) -> Result<Op> {
        self.emit(Opcode::Constant, &[], Attributes::Constant(value))
    }

    /// A constant of one element.
    pub fn constant_scalar<T: Element>(&mut self, value: T) -> Result<Op> {
        self.constant(Tensor::scalar(value)?)
    }

    /// A constant vector.
    pub fn constant_vector<T: Element>(&mut self, values: &[T]) -> Result<Op> {
        self.constant(Tensor::vector(values)?)
    }

    /// An array whose elements count along `dimension` from 0.
    pub fn iota(&mut self, dtype: DataType, dims: &[i64], dimension: usize) -> Result<Op> {
        let shape = HloShape::array(dtype, dims);
        self.emit_declared(
            Opcode::Iota,
            &[],
            Attributes::Dimension(dimension as i64),
            Some(shape),
        )
    }
}
