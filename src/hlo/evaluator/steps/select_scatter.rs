//! `select-and-scatter`: each source element is combined in at the place that its window selects.

use super::function::{Known, RowFunction, recognize};
use super::nd::{advance, offset, unflatten};
use super::operands;
use super::reduce::is_identity;
use super::window::Windows;
use crate::attributes::{Attributes, Direction, WindowDimension};
use crate::evaluator::code::{Kernel, StepContext};
use crate::evaluator::tile::compute_type;
use crate::module::{Computation, Instruction};
use crate::opcode::Opcode;
use crate::shape::Dims;
use ff_tensor::{DataType, Result, bf16, f16};

/// Whether the first of two elements stays selected.
enum Select {
    /// Where a comparison of values that `f64` holds exactly has this outcome.
    Compare(Direction, bool, fn(&[u8]) -> f64),
    Function(RowFunction),
}

struct SelectAndScatter {
    windows: Windows,
    select: Select,
    scatter: RowFunction,
    size: usize,
}

/// The kernel of a select-and-scatter.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    window: &[WindowDimension],
    (select, scatter): (&Computation, &Computation),
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let (operand, source) = (&shapes[0], &shapes[1]);
    let init = &computation.instruction(instruction.operands[2]).attributes;
    let known = (recognize(select), recognize(scatter), init);
    if let (
        Some(Known::CompareNot(Direction::Lt)),
        Some(Known::Binary(Opcode::Add)),
        Attributes::Constant(init),
    ) = known
        && is_identity(Opcode::Add, init)
        && let Some(kernel) = super::pool::max_gradient(operand, &source.dims, window)
    {
        return Ok(kernel);
    }
    let select = match (recognize(select), reader(operand.dtype)) {
        (Some(Known::Compare(direction)), Some(read)) => Select::Compare(direction, true, read),
        (Some(Known::CompareNot(direction)), Some(read)) => Select::Compare(direction, false, read),
        _ => Select::Function(RowFunction::compile(select)?),
    };
    Ok(Box::new(SelectAndScatter {
        windows: Windows::new(operand, &source.dims, window),
        select,
        scatter: RowFunction::compile(scatter)?,
        size: operand.dtype.size(),
    }))
}

/// Reads an element as `f64`, for types whose values it holds exactly.
fn reader(dtype: DataType) -> Option<fn(&[u8]) -> f64> {
    /// Reads a number of a Rust type.
    macro_rules! read {
        ($t:ty) => {
            |bytes| f64::from(<$t>::from_ne_bytes(bytes.try_into().unwrap_or_default()))
        };
    }
    Some(match dtype {
        DataType::HALF => {
            |bytes| f16::from_bits(u16::from_ne_bytes(bytes.try_into().unwrap_or_default())).to_f64()
        }
        DataType::BFLOAT16 => {
            |bytes| bf16::from_bits(u16::from_ne_bytes(bytes.try_into().unwrap_or_default())).to_f64()
        }
        other if compute_type(other) != other => return None,
        DataType::FLOAT => read!(f32),
        DataType::DOUBLE => read!(f64),
        DataType::INT8 => read!(i8),
        DataType::INT16 => read!(i16),
        DataType::INT32 => read!(i32),
        DataType::UINT8 => read!(u8),
        DataType::UINT16 => read!(u16),
        DataType::UINT32 => read!(u32),
        _ => return None,
    })
}

impl SelectAndScatter {
    /// Whether the element `selected` stays selected against `candidate`.
    fn stays(&self, operand: &[u8], selected: usize, candidate: usize) -> bool {
        let element = |at: usize| &operand[at * self.size..(at + 1) * self.size];
        let (a, b) = (element(selected), element(candidate));
        match &self.select {
            Select::Compare(direction, outcome, read) => {
                let (a, b) = (read(a), read(b));
                let holds = match direction {
                    Direction::Eq => a == b,
                    Direction::Ne => a != b,
                    Direction::Lt => a < b,
                    Direction::Le => a <= b,
                    Direction::Gt => a > b,
                    Direction::Ge => a >= b,
                };
                holds == *outcome
            }
            Select::Function(function) => {
                let mut result = 0u8;
                // SAFETY: one element each of the operand's type, and one truth value.
                unsafe { function.call(&[a.as_ptr(), b.as_ptr()], &[&raw mut result], 1) };
                result != 0
            }
        }
    }

    /// The element that the window of a place selects; none when it covers padding only.
    fn selected(&self, operand: &[u8], place: &[i64]) -> Option<usize> {
        let w = &self.windows;
        let mut selected = None;
        let mut at = Dims::from_elem(0, w.sizes.len());
        loop {
            let index: Option<Dims> = (0..place.len())
                .map(|axis| w.index(axis, place[axis], at[axis]))
                .collect();
            if let Some(index) = index {
                let candidate = offset(&index, &w.strides) as usize;
                match selected {
                    Some(now) if self.stays(operand, now, candidate) => {}
                    _ => selected = Some(candidate),
                }
            }
            if !advance(&mut at, &w.sizes) {
                return selected;
            }
        }
    }
}

impl Kernel for SelectAndScatter {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let mut result = step.allocate(0)?;
        let (operand, source) = (step.input(0)?.bytes(), step.input(1)?.bytes());
        let (init, size) = (step.input_ptr(2)?, self.size);
        let elements = result.num_elements();
        let out = result.bytes_mut().unwrap_or_default();
        if elements > 0 {
            // SAFETY: the result has `elements` elements of the type of the initial value.
            unsafe { super::movement::fill(init, out.as_mut_ptr(), size, elements) };
            let mut combined = [0u64; 2];
            for (number, value) in source.chunks_exact(size).enumerate() {
                let place = unflatten(number, &self.windows.places);
                let Some(at) = self.selected(operand, &place) else {
                    continue;
                };
                let old = &mut out[at * size..(at + 1) * size];
                let target: *mut u8 = combined.as_mut_ptr().cast();
                // SAFETY: one element each of the operand's type.
                unsafe {
                    self.scatter.call(&[old.as_ptr(), value.as_ptr()], &[target], 1);
                    std::ptr::copy_nonoverlapping(target, old.as_mut_ptr(), size);
                }
            }
        }
        step.set(0, result);
        Ok(())
    }
}
