//! Blocks that move as a whole: concatenate, pad, dynamic slices, bitcasts that change the size of elements.

use super::nd::{BlockCopy, offset, scaled};
use super::operands;
use crate::attributes::PadDimension;
use crate::evaluator::code::{Kernel, StepContext};
use crate::module::{Computation, Instruction};
use crate::shape::{ArrayShape, Dims};
use ff_tensor::{DataType, Result, Tensor, status};

struct Concatenate {
    /// For each operand: its block, and where it starts in the result, in bytes.
    parts: Vec<(BlockCopy, usize)>,
}

/// The kernel of `concatenate`.
pub(super) fn concatenate(
    computation: &Computation,
    instruction: &Instruction,
    dimension: i64,
) -> Result<Box<dyn Kernel>> {
    let result = instruction.array_shape()?;
    let (strides, size) = (result.strides(), result.dtype.size());
    let mut parts = Vec::new();
    let mut start = 0;
    for operand in operands(computation, instruction)? {
        let block = BlockCopy::new(&operand.dims, &operand.strides(), &strides, size);
        parts.push((block, (start * strides[dimension as usize]) as usize * size));
        start += operand.dims[dimension as usize];
    }
    Ok(Box::new(Concatenate { parts }))
}

impl Kernel for Concatenate {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let result = step.allocate(0)?;
        for (index, (block, start)) in self.parts.iter().enumerate() {
            if block.elements() > 0 {
                // SAFETY: each block has the extents of its operand, and its own part of the new result.
                unsafe { block.run(step.pool(), step.input_ptr(index)?, result.data_ptr().add(*start)) };
            }
        }
        step.set(0, result);
        Ok(())
    }
}

struct Pad {
    block: BlockCopy,
    /// Elements before the block, in operand and result.
    from: usize,
    to: usize,
    size: usize,
    covers_all: bool,
}

/// The kernel of `pad`.
pub(super) fn pad(
    computation: &Computation,
    instruction: &Instruction,
    config: &[PadDimension],
) -> Result<Box<dyn Kernel>> {
    let operand = operands(computation, instruction)?.swap_remove(0);
    let result = instruction.array_shape()?;
    let (mut dims, mut from, mut to) = (Dims::new(), Dims::new(), Dims::new());
    for (axis, pad) in config.iter().enumerate() {
        let step = pad.interior + 1;
        // The operand's elements first..last land inside the result.
        let first = if pad.low < 0 {
            (-pad.low + step - 1) / step
        } else {
            0
        };
        let room = result.dims[axis] - pad.low;
        let last = if room <= 0 {
            0
        } else {
            ((room + step - 1) / step).min(operand.dims[axis])
        };
        dims.push((last - first).max(0));
        from.push(first);
        to.push(pad.low + first * step);
    }
    let (from_strides, to_strides) = (operand.strides(), result.strides());
    let steps = scaled(&to_strides, config.iter().map(|pad| pad.interior + 1));
    let size = result.dtype.size();
    let block = BlockCopy::new(&dims, &from_strides, &steps, size);
    let empty = block.elements() == 0;
    Ok(Box::new(Pad {
        covers_all: block.elements() == result.num_elements(),
        block,
        from: if empty {
            0
        } else {
            offset(&from, &from_strides) as usize
        },
        to: if empty {
            0
        } else {
            offset(&to, &to_strides) as usize
        },
        size,
    }))
}

/// Fills memory with one element.
///
/// # Safety
/// `value` is one element of `size` bytes and `out` has room for `count`, both aligned for it; they do not overlap.
pub(super) unsafe fn fill(value: *const u8, out: *mut u8, size: usize, count: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        match size {
            1 => std::ptr::write_bytes(out, *value, count),
            4 => std::slice::from_raw_parts_mut(out.cast::<u32>(), count).fill(*value.cast()),
            _ => {
                for index in 0..count {
                    std::ptr::copy_nonoverlapping(value, out.add(index * size), size);
                }
            }
        }
    }
}

impl Kernel for Pad {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let result = step.allocate(0)?;
        let out = result.data_ptr();
        // SAFETY: the result is new memory of as many elements; the block was cut to lie within both arrays.
        unsafe {
            if !self.covers_all {
                fill(step.input_ptr(1)?, out, self.size, result.num_elements());
            }
            let (from, to) = (self.from * self.size, self.to * self.size);
            if self.block.elements() > 0 {
                self.block
                    .run(step.pool(), step.input_ptr(0)?.add(from), out.add(to));
            }
        }
        step.set(0, result);
        Ok(())
    }
}

/// A scalar integer of any type. Values beyond `i64` are the largest one.
pub(super) fn integer_at(tensor: &Tensor, dtype: DataType, index: usize) -> Result<i64> {
    let size = dtype.size();
    let bytes = tensor.bytes().get(index * size..(index + 1) * size);
    let bytes = bytes.ok_or_else(|| status!(Internal, "An index is missing"))?;
    /// The bytes as a number.
    macro_rules! number {
        ($t:ty) => {
            <$t>::from_ne_bytes(bytes.try_into().unwrap_or_default())
        };
    }
    Ok(match dtype {
        DataType::INT8 => i64::from(number!(i8)),
        DataType::INT16 => i64::from(number!(i16)),
        DataType::INT32 => i64::from(number!(i32)),
        DataType::INT64 => number!(i64),
        DataType::UINT8 => i64::from(number!(u8)),
        DataType::UINT16 => i64::from(number!(u16)),
        DataType::UINT32 => i64::from(number!(u32)),
        DataType::UINT64 => i64::try_from(number!(u64)).unwrap_or(i64::MAX),
        other => {
            return Err(status!(
                Unimplemented,
                "Indices of type {other} are not implemented"
            ));
        }
    })
}

struct DynamicSlice {
    block: BlockCopy,
    /// Operand of the first start index.
    first_index: usize,
    index_type: DataType,
    /// The largest start of each axis, and what a step along it means in elements.
    limits: Dims,
    strides: Dims,
    size: usize,
    /// Whether the block goes into the operand instead of out of it.
    update: bool,
}

/// The kernel of `dynamic-slice` and `dynamic-update-slice`.
pub(super) fn dynamic_slice(
    computation: &Computation,
    instruction: &Instruction,
    update: bool,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let first_index = if update { 2 } else { 1 };
    let (operand, block) = (
        &shapes[0],
        if update {
            &shapes[1]
        } else {
            instruction.array_shape()?
        },
    );
    let index_type = shapes
        .get(first_index)
        .map_or(DataType::INT32, |shape| shape.dtype);
    let same = shapes[first_index..]
        .iter()
        .all(|shape: &ArrayShape| shape.dtype == index_type);
    if !same {
        return Err(status!(
            Unimplemented,
            "Start indices of several types are not implemented"
        ));
    }
    let (strides, size) = (operand.strides(), operand.dtype.size());
    let (from, to) = if update {
        (block.strides(), strides.clone())
    } else {
        (strides.clone(), block.strides())
    };
    Ok(Box::new(DynamicSlice {
        block: BlockCopy::new(&block.dims, &from, &to, size),
        first_index,
        index_type,
        limits: operand
            .dims
            .iter()
            .zip(&block.dims)
            .map(|(extent, size)| extent - size)
            .collect(),
        strides,
        size,
        update,
    }))
}

impl DynamicSlice {
    /// Bytes before the block in the operand.
    fn start(&self, step: &StepContext) -> Result<usize> {
        let mut start = 0;
        for (axis, (&limit, &stride)) in self.limits.iter().zip(&self.strides).enumerate() {
            let index = integer_at(step.input(self.first_index + axis)?, self.index_type, 0)?;
            start += index.clamp(0, limit) * stride;
        }
        Ok(start as usize * self.size)
    }
}

impl Kernel for DynamicSlice {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let start = self.start(step)?;
        let result = if self.update {
            step.take_input(0, 0)?
        } else {
            step.allocate(0)?
        };
        if self.block.elements() > 0 {
            let out = result.data_ptr();
            // SAFETY: the start was clamped so that the block lies within the operand; the result is owned by this step.
            unsafe {
                if self.update {
                    self.block.run(step.pool(), step.input_ptr(1)?, out.add(start));
                } else {
                    self.block.run(step.pool(), step.input_ptr(0)?.add(start), out);
                }
            }
        }
        step.set(0, result);
        Ok(())
    }
}

struct SameBytes;

/// The kernel of a bitcast that changes the size of elements.
pub(super) fn same_bytes() -> Box<dyn Kernel> {
    Box::new(SameBytes)
}

impl Kernel for SameBytes {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let mut result = step.allocate(0)?;
        if let Some(bytes) = result.bytes_mut() {
            bytes.copy_from_slice(step.input(0)?.bytes());
        }
        step.set(0, result);
        Ok(())
    }
}
