//! What instructions of a fusion may look like: moves of elements as views, and reductions of whole rows or columns.
//! The pass that fuses and the planner ask the same questions here.

use crate::attributes::Attributes;
use crate::module::Instruction;
use crate::opcode::Opcode;
use crate::shape::ArrayShape;
use crate::view::View;
use ff_tensor::{DataType, Result, bail, ensure};
use smallvec::SmallVec;

/// The operand's extents, from the attributes of a broadcast; one axis for other moves of as many elements.
pub(super) fn operand_dims(
    instruction: &Instruction,
    shape: &ArrayShape,
    elements: usize,
) -> Result<SmallVec<[i64; 4]>> {
    let Attributes::Dimensions(axes) = &instruction.attributes else {
        bail!(Unimplemented, "a fusion that moves what it computes has no plan");
    };
    ensure!(
        instruction.opcode == Opcode::Broadcast,
        Unimplemented,
        "a fusion that moves what it computes has no plan"
    );
    let dims: SmallVec<[i64; 4]> = axes.iter().map(|&axis| shape.dims[axis as usize]).collect();
    ensure!(
        dims.iter().product::<i64>() as usize == elements,
        Unimplemented,
        "a fusion that stretches axes of one element has no plan"
    );
    Ok(dims)
}

/// A view after a broadcast, transpose, reversal or slice.
pub(crate) fn change(view: &View, instruction: &Instruction, shape: &ArrayShape) -> Result<View> {
    Ok(match (&instruction.attributes, instruction.opcode) {
        (Attributes::Dimensions(axes), Opcode::Broadcast) => view.broadcast(&shape.dims, axes),
        (Attributes::Dimensions(axes), Opcode::Transpose) => view.transpose(axes),
        (Attributes::Dimensions(axes), _) => view.reverse(axes),
        (Attributes::Slice { start, stride, .. }, _) => view.slice(&shape.dims, start, stride),
        _ => bail!(
            Internal,
            "{} has attributes of another opcode",
            instruction.opcode
        ),
    })
}

/// Whether an opcode moves elements of its operands in ways that are no views, and that fusions read in place; or draws
/// random bits, which fusions do in place too.
pub(crate) fn is_read(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Concatenate | DynamicSlice | DynamicUpdateSlice | Gather | Pad | RngBitGenerator
    )
}

/// Whether the axes that go are the last ones, axes of one element aside, and rows have more than one element.
pub(crate) fn reduces_rows(source: &ArrayShape, dimensions: &[i64]) -> bool {
    let mut row = 1;
    let mut kept_behind = false;
    for axis in (0..source.rank()).rev() {
        let extent = source.dims[axis];
        if extent == 1 {
            continue;
        }
        if dimensions.contains(&(axis as i64)) {
            if kept_behind {
                return false;
            }
            row *= extent;
        } else {
            kept_behind = true;
        }
    }
    row > 1 && source.num_elements() > 0
}

/// Whether an initial value is the constant from which a reduction by an opcode starts by itself.
pub(crate) fn starts_neutral(initial: &Instruction, opcode: Opcode) -> bool {
    match &initial.attributes {
        Attributes::Constant(value) => crate::evaluator::is_identity(opcode, value),
        _ => false,
    }
}

/// Whether columns of a type are combined by an opcode in code.
pub(crate) fn columns_have_code(opcode: Opcode, dtype: DataType) -> bool {
    use DataType as T;
    match opcode {
        Opcode::Add | Opcode::Multiply | Opcode::Maximum | Opcode::Minimum => {
            dtype.is_integer() || matches!(dtype, T::FLOAT | T::DOUBLE | T::HALF | T::BFLOAT16)
        }
        Opcode::And | Opcode::Or => dtype == T::BOOL,
        _ => false,
    }
}

/// The rows that are combined and their length, where neighbouring axes go that are not the last ones, axes of one
/// element aside.
pub(crate) fn reduces_columns(source: &ArrayShape, dimensions: &[i64]) -> Option<(usize, usize)> {
    let gone = |axis: usize| dimensions.contains(&(axis as i64));
    let axes: SmallVec<[usize; 6]> = (0..source.rank())
        .filter(|&axis| source.dims[axis] != 1)
        .collect();
    let first = axes.iter().position(|&axis| gone(axis))?;
    let end = first + axes[first..].iter().take_while(|&&axis| gone(axis)).count();
    let product = |axes: &[usize]| {
        axes.iter()
            .map(|&axis| source.dims[axis] as usize)
            .product::<usize>()
    };
    let later = axes[end..].iter().any(|&axis| gone(axis));
    let fits = !later && end < axes.len() && source.num_elements() > 0;
    fits.then(|| (product(&axes[first..end]), product(&axes[end..])))
}
