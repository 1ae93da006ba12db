//! `sort` and `topk`.
//!
//! Sorting is a merge sort of places: it is stable and ends for any comparator. Comparisons of a first key by `<` or
//! `>` are typed; NaN comes last in either order. Any other comparator is called for each pair.

use super::function::{Known, RowFunction, recognize};
use super::operands;
use crate::attributes::Direction;
use crate::evaluator::code::{Kernel, StepContext};
use crate::module::{Computation, Instruction};
use ff_tensor::{DataType, Result, Tensor, bail, bf16, f16};
use std::cmp::Ordering;

/// How an element orders: numbers by value, NaN last, as a key of its bits.
type KeyFn = fn(&[u8]) -> i128;

/// A key that orders as the element does: floats by value with NaN above all, integers as they are.
fn key_function(dtype: DataType) -> Option<KeyFn> {
    fn float_key(value: f64) -> i128 {
        if value.is_nan() {
            return i128::MAX;
        }
        let bits = (value + 0.0).to_bits() as i64;
        i128::from(if bits < 0 {
            i64::MIN.wrapping_sub(bits)
        } else {
            bits
        })
    }
    /// Reads an integer.
    macro_rules! integer {
        ($t:ty) => {
            |bytes| i128::from(<$t>::from_ne_bytes(bytes.try_into().unwrap_or_default()))
        };
    }
    Some(match dtype {
        DataType::FLOAT => |bytes| {
            float_key(f64::from(f32::from_ne_bytes(
                bytes.try_into().unwrap_or_default(),
            )))
        },
        DataType::DOUBLE => |bytes| float_key(f64::from_ne_bytes(bytes.try_into().unwrap_or_default())),
        DataType::HALF => |bytes| {
            float_key(f16::from_bits(u16::from_ne_bytes(bytes.try_into().unwrap_or_default())).to_f64())
        },
        DataType::BFLOAT16 => |bytes| {
            float_key(bf16::from_bits(u16::from_ne_bytes(bytes.try_into().unwrap_or_default())).to_f64())
        },
        DataType::INT8 => integer!(i8),
        DataType::INT16 => integer!(i16),
        DataType::INT32 => integer!(i32),
        DataType::INT64 => integer!(i64),
        DataType::UINT8 | DataType::BOOL => integer!(u8),
        DataType::UINT16 => integer!(u16),
        DataType::UINT32 => integer!(u32),
        DataType::UINT64 => integer!(u64),
        _ => return None,
    })
}

enum Order {
    Ascending(KeyFn),
    Descending(KeyFn),
    Function(RowFunction),
}

struct Sort {
    order: Order,
    sizes: Vec<usize>,
    /// Rows before the axis, its extent, elements behind it.
    outer: usize,
    extent: usize,
    inner: usize,
}

/// The kernel of a sort.
pub(super) fn sort(
    computation: &Computation,
    instruction: &Instruction,
    dimension: i64,
    comparator: &Computation,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let order = match (recognize(comparator), key_function(shapes[0].dtype)) {
        (Some(Known::Compare(Direction::Lt | Direction::Le)), Some(key)) => Order::Ascending(key),
        (Some(Known::Compare(Direction::Gt | Direction::Ge)), Some(key)) => Order::Descending(key),
        _ => Order::Function(RowFunction::compile(comparator)?),
    };
    let axis = dimension as usize;
    let dims = &shapes[0].dims;
    Ok(Box::new(Sort {
        order,
        sizes: shapes.iter().map(|shape| shape.dtype.size()).collect(),
        outer: dims[..axis].iter().product::<i64>() as usize,
        extent: dims[axis] as usize,
        inner: dims[axis + 1..].iter().product::<i64>() as usize,
    }))
}

/// Sorts places so that none comes before one that is `less`; equal ones keep their order.
fn merge_sort(places: &mut Vec<u32>, mut less: impl FnMut(u32, u32) -> bool) {
    const RUN: usize = 8;
    let len = places.len();
    for run in places.chunks_mut(RUN) {
        for i in 1..run.len() {
            let mut at = i;
            while at > 0 && less(run[at], run[at - 1]) {
                run.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    let mut merged: Vec<u32> = Vec::with_capacity(len);
    let mut width = RUN;
    while width < len {
        merged.clear();
        for pair in places.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let (Some(&l), Some(&r)) = (left.first(), right.first()) {
                if less(r, l) {
                    merged.push(r);
                    right = &right[1..];
                } else {
                    merged.push(l);
                    left = &left[1..];
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(places, &mut merged);
        width *= 2;
    }
}

impl Sort {
    /// The order of the elements of one row, `at(place)` being the element of a place.
    fn places(&self, operands: &[&[u8]], at: impl Fn(u32) -> usize) -> Vec<u32> {
        let mut places: Vec<u32> = (0..self.extent as u32).collect();
        let element = |operand: usize, place: u32| {
            let (start, size) = (at(place), self.sizes[operand]);
            &operands[operand][start * size..(start + 1) * size]
        };
        match &self.order {
            Order::Ascending(key) => {
                let keys: Vec<i128> = (0..self.extent as u32)
                    .map(|place| key(element(0, place)))
                    .collect();
                places.sort_by_key(|&place| keys[place as usize]);
            }
            Order::Descending(key) => {
                let keys: Vec<i128> = (0..self.extent as u32)
                    .map(|place| match key(element(0, place)) {
                        i128::MAX => i128::MAX,
                        key => -key,
                    })
                    .collect();
                places.sort_by_key(|&place| keys[place as usize]);
            }
            Order::Function(function) => merge_sort(&mut places, |a, b| {
                let parameters: Vec<*const u8> = (0..operands.len())
                    .flat_map(|operand| [element(operand, a).as_ptr(), element(operand, b).as_ptr()])
                    .collect();
                let mut result = 0u8;
                // SAFETY: one element of each operand for each parameter, and one truth value.
                unsafe { function.call(&parameters, &[&raw mut result], 1) };
                result != 0
            }),
        }
        places
    }
}

impl Kernel for Sort {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let count = self.sizes.len();
        if u32::try_from(self.extent).is_err() {
            bail!(
                Unimplemented,
                "Sorting {} elements is not implemented",
                self.extent
            );
        }
        let mut results = (0..count)
            .map(|i| step.allocate(i))
            .collect::<Result<Vec<Tensor>>>()?;
        let operands = (0..count)
            .map(|i| Ok(step.input(i)?.bytes()))
            .collect::<Result<Vec<&[u8]>>>()?;
        for row in 0..self.outer * self.inner {
            let start = row / self.inner * self.extent * self.inner + row % self.inner;
            let at = |place: u32| start + place as usize * self.inner;
            let places = self.places(&operands, at);
            for (operand, result) in results.iter_mut().enumerate() {
                let size = self.sizes[operand];
                let out = result.bytes_mut().unwrap_or_default();
                for (to, &from) in places.iter().enumerate() {
                    let (to, from) = (at(to as u32) * size, at(from) * size);
                    out[to..to + size].copy_from_slice(&operands[operand][from..from + size]);
                }
            }
        }
        for (index, result) in results.into_iter().enumerate() {
            step.set(index, result);
        }
        Ok(())
    }
}

struct TopK {
    key: KeyFn,
    largest: bool,
    size: usize,
    extent: usize,
    k: usize,
}

/// The kernel of topk.
pub(super) fn top_k(
    computation: &Computation,
    instruction: &Instruction,
    k: i64,
    largest: bool,
) -> Result<Box<dyn Kernel>> {
    let operand = operands(computation, instruction)?.swap_remove(0);
    let Some(key) = key_function(operand.dtype) else {
        bail!(Unimplemented, "topk of type {} is not implemented", operand.dtype);
    };
    Ok(Box::new(TopK {
        key,
        largest,
        size: operand.dtype.size(),
        extent: operand.dims[operand.rank() - 1] as usize,
        k: k as usize,
    }))
}

impl Kernel for TopK {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let (mut values, mut indices) = (step.allocate(0)?, step.allocate(1)?);
        let operand = step.input(0)?.bytes();
        let out = values.bytes_mut().unwrap_or_default();
        let places_out = indices.as_mut_slice::<i32>()?;
        if self.k > 0 {
            let rows = operand.chunks_exact(self.extent * self.size);
            for ((row, out), places_out) in rows
                .zip(out.chunks_exact_mut(self.k * self.size))
                .zip(places_out.chunks_exact_mut(self.k))
            {
                let mut keys: Vec<(i128, u32)> = row
                    .chunks_exact(self.size)
                    .zip(0..)
                    .map(|(element, place)| {
                        let key = (self.key)(element);
                        (
                            if self.largest {
                                key.checked_neg().unwrap_or(i128::MAX)
                            } else {
                                key
                            },
                            place,
                        )
                    })
                    .collect();
                if self.k < keys.len() {
                    keys.select_nth_unstable_by(self.k - 1, compare);
                }
                keys.truncate(self.k);
                keys.sort_unstable_by(compare);
                for (to, &(_, from)) in keys.iter().enumerate() {
                    let from_byte = from as usize * self.size;
                    out[to * self.size..(to + 1) * self.size]
                        .copy_from_slice(&row[from_byte..from_byte + self.size]);
                    places_out[to] = from as i32;
                }
            }
        }
        step.set(0, values);
        step.set(1, indices);
        Ok(())
    }
}

fn compare(a: &(i128, u32), b: &(i128, u32)) -> Ordering {
    a.cmp(b)
}
