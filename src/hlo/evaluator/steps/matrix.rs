//! Operands of contractions: brought into a form of a few strides, copied or converted only where they must be.

use crate::attributes::Attributes;
use crate::evaluator::code::StepContext;
use crate::evaluator::tile::{Access, Strided, TileBuilder, TileProgram, compute_type};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims};
use ff_tensor::{DataType, Result, Shape, Tensor, status};

/// Axes seen as one: extent and stride. None when they do not lie like one axis.
pub(super) fn merged(dims: &[i64], strides: &[i64]) -> Option<(usize, usize)> {
    let (mut extent, mut stride) = (1, 1);
    for (&dim, &step) in dims.iter().zip(strides).rev() {
        if dim == 1 {
            continue;
        }
        if extent == 1 {
            stride = step;
        } else if step != stride * extent {
            return None;
        }
        extent *= dim;
    }
    usize::try_from(stride)
        .ok()
        .map(|stride| (extent as usize, stride))
}

/// Makes an operand dense in a wanted order of axes and in the type that is computed in.
pub(super) struct Preparation {
    program: TileProgram,
    dtype: DataType,
    elements: usize,
}

impl Preparation {
    /// The operand's axes in the order `axes`, converted to `dtype`.
    pub fn new(shape: &ArrayShape, axes: &[usize], dtype: DataType) -> Result<Preparation> {
        let strides = shape.strides();
        let dims: Dims = axes.iter().map(|&axis| shape.dims[axis]).collect();
        let strides: Dims = axes.iter().map(|&axis| strides[axis]).collect();
        Preparation::along(shape, Strided::new(&dims, &strides, 0), dtype)
    }

    /// The operand's elements along a walk over all of them, converted to `dtype`.
    pub fn along(shape: &ArrayShape, walk: Strided, dtype: DataType) -> Result<Preparation> {
        let access = if walk.is_dense() {
            Access::Direct
        } else {
            Access::Strided(walk)
        };
        let mut builder = TileBuilder::default();
        let mut value = builder.input(shape.dtype, access);
        if shape.dtype != dtype && compute_type(shape.dtype) != dtype {
            value = builder.map(Opcode::Convert, &Attributes::None, &[value], shape.dtype, dtype)?;
        }
        builder.output(value, dtype);
        Ok(Preparation {
            program: builder.finish(),
            dtype,
            elements: shape.num_elements(),
        })
    }

    /// The prepared operand.
    pub fn run(&self, step: &StepContext, operand: usize) -> Result<Tensor> {
        let prepared = (step.environment().allocate)(self.dtype, Shape::vector(self.elements))?;
        // SAFETY: the program was made for the operand's extents and writes as many new elements.
        unsafe {
            self.program.run(
                step.pool(),
                &[step.input_ptr(operand)?],
                &[prepared.data_ptr()],
                0,
                self.elements,
            );
        }
        Ok(prepared)
    }
}

/// The type that a contraction is computed in, from the types of its operands and result.
pub(super) fn contraction_type(lhs: DataType, rhs: DataType, result: DataType) -> DataType {
    let own = matches!(result, DataType::HALF | DataType::BFLOAT16) && lhs == result && rhs == result;
    match result {
        _ if own => result,
        DataType::BOOL => DataType::INT32,
        other => compute_type(other),
    }
}

/// Converts what was computed to the type of the result.
pub(super) fn finish(step: &StepContext, computed: Tensor, dtype: DataType, shape: &Shape) -> Result<Tensor> {
    if computed.dtype() == dtype {
        return computed.into_shape(shape.clone());
    }
    let mut builder = TileBuilder::default();
    let mut value = builder.input(computed.dtype(), Access::Direct);
    if compute_type(dtype) != computed.dtype() {
        value = builder.map(
            Opcode::Convert,
            &Attributes::None,
            &[value],
            computed.dtype(),
            dtype,
        )?;
    }
    builder.output(value, dtype);
    let result = (step.environment().allocate)(dtype, shape.clone())?;
    let program = builder.finish();
    // SAFETY: both tensors have the elements of `shape`.
    unsafe {
        program.run(
            step.pool(),
            &[computed.data_ptr()],
            &[result.data_ptr()],
            0,
            shape.num_elements(),
        );
    }
    Ok(result)
}

/// RESOURCE_EXHAUSTED from a kernel that found no memory.
pub(super) fn out_of_memory(error: impl std::fmt::Debug) -> ff_tensor::Status {
    status!(ResourceExhausted, "OOM in a contraction: {error:?}")
}
