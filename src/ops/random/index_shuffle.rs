//! Shuffles without a stream: the place of one index in a permutation, and rows by a key.

use super::stateless::check_key_and_counter;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Tensor, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "RandomIndexShuffle",
    shape,
    kernels: &[Kernel::native(shuffle)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

/// Each of the three inputs is one for all, or one for each.
fn shape(context: &mut ShapeContext) -> Result<()> {
    let index = context.input_with_rank_at_most(0, 1)?;
    let seed = context.input_with_rank_at_least(1, 1)?.with_rank_at_most(2)?;
    let last = context.input_with_rank_at_most(2, 1)?;
    if seed.rank().is_some() {
        dim::merge(seed.dim(-1), 3)?;
    }
    let (Some(a), Some(b), Some(c)) = (index.rank(), seed.rank(), last.rank()) else {
        return Ok(());
    };
    let mut count = None;
    for (is_list, extent) in [
        (a == 1, index.dim(0)),
        (b == 2, seed.dim(0)),
        (c == 1, last.dim(0)),
    ] {
        if is_list {
            count = Some(count.map_or(Ok(extent), |count| dim::merge(count, extent))?);
        }
    }
    context.set_output(
        0,
        count.map_or(PartialShape::scalar(), |count| PartialShape::new(&[count])),
    );
    Ok(())
}

/// A block cipher on words of some bits (Simon, 2013), with few rounds.
struct Cipher {
    bits: u32,
    keys: Vec<u64>,
}

impl Cipher {
    fn new(bits: u32, seed: [u32; 3], rounds: usize) -> Cipher {
        let mask = (1u64 << bits) - 1;
        let right = |x: u64, by: u32| ((x >> by) | (x << (bits - by))) & mask;
        let mut z = 0x7369_f885_192c_0ef5u64 & mask;
        let mut keys: Vec<u64> = seed.iter().map(|&key| u64::from(key) & mask).collect();
        for i in 3..rounds {
            let before = keys[i - 1];
            keys.push((0xffff_fffc & mask) ^ (z & 1) ^ keys[i - 3] ^ right(before, 3) ^ right(before, 4));
            z >>= 1;
        }
        Cipher { bits, keys }
    }

    fn encrypt(&self, value: u64) -> u64 {
        let mask = (1u64 << self.bits) - 1;
        let turn = |x: u64, by: u32| ((x << by) | (x >> (self.bits - by))) & mask;
        let f = |x: u64| (turn(x, 1) & turn(x, 8)) ^ turn(x, 2);
        let (mut left, mut right) = ((value >> self.bits) & mask, value & mask);
        for pair in self.keys.chunks(2) {
            left ^= f(right) ^ pair[0];
            right ^= f(left) ^ pair.get(1).copied().unwrap_or(0);
        }
        left << self.bits | right
    }
}

/// The place of `index` among `0..=last`.
fn place(index: u64, seed: [u32; 3], last: u64, rounds: usize) -> u64 {
    let needed = if last <= 1 {
        0
    } else {
        u64::BITS - (last - 1).leading_zeros()
    };
    let block = (needed + needed % 2).max(16);
    let cipher = Cipher::new(block / 2, seed, rounds);
    let mut value = index;
    loop {
        value = cipher.encrypt(value);
        if value <= last {
            return value;
        }
    }
}

/// The elements of an integer tensor, as they are in 64 bits.
#[allow(clippy::unnecessary_cast)] // one of the types is u64 itself
fn wide(tensor: &Tensor) -> Result<Vec<u64>> {
    crate::match_integer!(tensor.dtype(), T => {
        Ok(tensor.as_slice::<T>()?.iter().map(|&x| x as u64).collect())
    })
}

fn shuffle(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let (indices, seeds, last) = (
        wide(context.input(0)?)?,
        wide(context.input(1)?)?,
        wide(context.input(2)?)?,
    );
    ensure!(
        !indices.is_empty(),
        InvalidArgument,
        "Index must be a scalar or vector."
    );
    let rounds = context.attrs().int("rounds")?;
    ensure!(
        rounds >= 4 && rounds % 2 == 0,
        InvalidArgument,
        "Rounds must be >= 4 and even, got {rounds}"
    );
    let of = |values: &[u64], at: usize| if values.len() > 1 { values[at] } else { values[0] };
    let count = shape.num_elements();
    let mut places = crate::wide::reserved(count)?;
    for at in 0..count {
        let row = if seeds.len() > 3 { at * 3 } else { 0 };
        let seed = [seeds[row] as u32, seeds[row + 1] as u32, seeds[row + 2] as u32];
        let (index, last) = (of(&indices, at), of(&last, at));
        ensure!(
            index <= last,
            InvalidArgument,
            "Index must be in [0, {last}], got {}",
            index as i64
        );
        places.push(place(index, seed, last, rounds as usize));
    }
    let output = crate::match_type!(context.output_type(0), (i32, i64, u32, u64), T => {
        Tensor::from_slice(shape, &places.iter().map(|&x| x as T).collect::<Vec<T>>())
    })?;
    context.set_output(0, output)
}

/// Inputs of the op that shuffles rows by key: the value comes before key, counter and algorithm.
pub fn rows_shape(context: &mut ShapeContext) -> Result<()> {
    check_key_and_counter(context)?;
    let value = context.input(0);
    context.set_output(0, value);
    Ok(())
}

#[cfg(test)]
fn case(indices: Tensor, last: Tensor) -> crate::testing::Case {
    crate::testing::Case::op("RandomIndexShuffle").inputs([
        indices,
        crate::testing::vector(&[1u32, 2, 3]),
        last,
    ])
}

#[cfg(test)]
use ff_tensor::DataType;

#[cfg(test)]
const TYPES: &[DataType] = &[
    DataType::INT32,
    DataType::INT64,
    DataType::UINT32,
    DataType::UINT64,
];

crate::op_cases! {
    places_of_nothing: Case::op("RandomIndexShuffle").inputs([vector::<i32>(&[]), vector(&[1u32, 2, 3]), scalar(4)]).fails(Code::InvalidArgument);
    few: case(vector(&[0, 1, 2, 3, 4]), scalar(4)).gives(vector(&[2, 0, 3, 4, 1]));
    many: case(vector(&[0i64, 1, 2, 3, 1_000_000]), scalar(100_000_000i64)).gives(vector(&[437138i64, 1485443, 2533808, 3582113, 81605879]));
    types: family(&["RandomIndexShuffle"], TYPES, |_, dtype| case(numbers(dtype, &[3], &[0.0, 5.0, 9.0]), numbers(dtype, &[], &[9.0])));
    several_ends: case(scalar(3), vector(&[3, 10, 100_000]));
    several_seeds: Case::op("RandomIndexShuffle").inputs([vector(&[3, 4]), t(&[2, 3], &[1u32, 2, 3, 4, 5, 6]), scalar(7)]).attr("rounds", 8i64);
    short_seed: Case::op("RandomIndexShuffle").inputs([scalar(3), vector(&[1u32, 2]), scalar(7)]).fails(Code::InvalidArgument);
    misfit: case(vector(&[0, 1]), vector(&[3, 3, 3])).fails(Code::InvalidArgument);
}
