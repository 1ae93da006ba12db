//! Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) and distributions over it,
//! number for number as TensorFlow draws them.
//!
//! A generator is a key and a 128-bit counter; a step gives four words. Output elements are made in groups of as
//! many as one step gives, and group `i` starts `i` steps from the beginning, so any part can be made on any
//! thread. The truncated normal rejects samples: each of its groups has steps of its own reserved.

use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use half::{bf16, f16};

/// A generator: what its next step will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Philox {
    key: [u32; 2],
    counter: [u32; 4],
}

/// Steps that four elements of a truncated normal have to themselves: 256 words for each.
const RESERVED_STEPS: u64 = 256;

/// Steps that a stateful op advances its generator by for `len` elements of any distribution.
pub fn stateful_steps(len: usize) -> u64 {
    256 * len as u64
}

fn words(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

impl Philox {
    /// From a key and a counter, low words first: what the stateless ops of the second version are given.
    pub fn new(key: u64, counter: [u64; 2]) -> Philox {
        let ([c0, c1], [c2, c3]) = (words(counter[0]), words(counter[1]));
        Philox {
            key: words(key),
            counter: [c0, c1, c2, c3],
        }
    }

    /// From the two seeds of a stateful op: the first is the key, the second the high half of the counter.
    pub fn from_seeds(seed: u64, seed2: u64) -> Philox {
        Philox::new(seed, [0, seed2])
    }

    /// From the seed pair of the stateless ops of the first version, which is scrambled.
    pub fn from_stateless_seed(seed: [u64; 2]) -> Philox {
        let mixed = Philox {
            key: [0x3ec8_f720, 0x0246_1e29],
            ..Philox::new(0, seed)
        }
        .step();
        Philox {
            key: [mixed[0], mixed[1]],
            counter: [0, 0, mixed[2], mixed[3]],
        }
    }

    /// The key, as [`Self::new`] takes it.
    pub fn key(&self) -> u64 {
        u64::from(self.key[0]) | u64::from(self.key[1]) << 32
    }

    /// The counter, as [`Self::new`] takes it.
    pub fn counter(&self) -> [u64; 2] {
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [
            join(self.counter[0], self.counter[1]),
            join(self.counter[2], self.counter[3]),
        ]
    }

    /// Advances by `steps`.
    pub fn skip(&mut self, steps: u64) {
        let [low, high] = self.counter();
        let (low, carry) = low.overflowing_add(steps);
        *self = Philox::new(self.key(), [low, high.wrapping_add(u64::from(carry))]);
    }

    /// The generator `steps` from here.
    pub fn after(mut self, steps: u64) -> Philox {
        self.skip(steps);
        self
    }

    /// The next four words.
    pub fn step(&mut self) -> [u32; 4] {
        let (mut c, mut key) = (self.counter, self.key);
        for round in 0..10 {
            if round > 0 {
                key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
            }
            let (first, second) = (u64::from(c[0]) * 0xd251_1f53, u64::from(c[2]) * 0xcd9e_8d57);
            c = [
                (second >> 32) as u32 ^ c[1] ^ key[0],
                second as u32,
                (first >> 32) as u32 ^ c[3] ^ key[1],
                first as u32,
            ];
        }
        self.skip(1);
        c
    }
}

/// A distribution that makes a fixed number of elements from each step.
pub trait Distribution<T>: Sync {
    /// Elements of a step, at most four.
    const ELEMENTS: usize;
    /// The elements; those beyond `ELEMENTS` do not count.
    fn sample(&self, words: [u32; 4]) -> [T; 4];
}

/// Uniform over `[0, 1)`.
#[derive(Clone, Copy, Debug)]
pub struct Uniform;

/// Normal with mean zero and deviation one (Box and Muller).
#[derive(Clone, Copy, Debug)]
pub struct Normal;

/// Uniform over the integers `low..high`.
#[derive(Clone, Copy, Debug)]
pub struct UniformInteger<T> {
    /// The first.
    pub low: T,
    /// One beyond the last.
    pub high: T,
}

/// Uniform over all values of an integer type.
#[derive(Clone, Copy, Debug)]
pub struct FullInteger;

/// 23 bits as the mantissa of a number in [1, 2), minus one.
fn unit_f32(x: u32) -> f32 {
    f32::from_bits(0x3f80_0000 | (x & 0x007f_ffff)) - 1.0
}

fn unit_f64(high: u32, low: u32) -> f64 {
    let mantissa = u64::from(high & 0x000f_ffff) << 32 | u64::from(low);
    f64::from_bits(0x3ff0_0000_0000_0000 | mantissa) - 1.0
}

/// By the C library's `f32` functions, whose last bits TensorFlow's numbers have.
fn normal_pair_f32(x0: u32, x1: u32) -> (f32, f32) {
    let u = unit_f32(x0).max(1e-7);
    let angle = (2.0 * std::f64::consts::PI * f64::from(unit_f32(x1))) as f32;
    let radius = (-2.0 * u.ln()).sqrt();
    (angle.sin() * radius, angle.cos() * radius)
}

fn normal_pair_f64(words: [u32; 4]) -> (f64, f64) {
    let u = unit_f64(words[0], words[1]).max(1e-7);
    let angle = 2.0 * std::f64::consts::PI * unit_f64(words[2], words[3]);
    let radius = (-2.0 * u.ln()).sqrt();
    (angle.sin() * radius, angle.cos() * radius)
}

impl Distribution<f32> for Uniform {
    const ELEMENTS: usize = 4;
    fn sample(&self, words: [u32; 4]) -> [f32; 4] {
        words.map(unit_f32)
    }
}

impl Distribution<f64> for Uniform {
    const ELEMENTS: usize = 2;
    fn sample(&self, w: [u32; 4]) -> [f64; 4] {
        [unit_f64(w[0], w[1]), unit_f64(w[2], w[3]), 0.0, 0.0]
    }
}

impl Distribution<f16> for Uniform {
    const ELEMENTS: usize = 4;
    fn sample(&self, words: [u32; 4]) -> [f16; 4] {
        words.map(|x| f16::from_f32(f16::from_bits(0x3c00 | (x & 0x3ff) as u16).to_f32() - 1.0))
    }
}

impl Distribution<bf16> for Uniform {
    const ELEMENTS: usize = 4;
    fn sample(&self, words: [u32; 4]) -> [bf16; 4] {
        words.map(|x| bf16::from_f32(bf16::from_bits(0x3f80 | (x & 0x7f) as u16).to_f32() - 1.0))
    }
}

impl Distribution<f32> for Normal {
    const ELEMENTS: usize = 4;
    fn sample(&self, w: [u32; 4]) -> [f32; 4] {
        let ((a, b), (c, d)) = (normal_pair_f32(w[0], w[1]), normal_pair_f32(w[2], w[3]));
        [a, b, c, d]
    }
}

impl Distribution<f64> for Normal {
    const ELEMENTS: usize = 2;
    fn sample(&self, words: [u32; 4]) -> [f64; 4] {
        let (a, b) = normal_pair_f64(words);
        [a, b, 0.0, 0.0]
    }
}

impl Distribution<f16> for Normal {
    const ELEMENTS: usize = 4;
    fn sample(&self, words: [u32; 4]) -> [f16; 4] {
        Distribution::<f32>::sample(self, words).map(f16::from_f32)
    }
}

impl Distribution<bf16> for Normal {
    const ELEMENTS: usize = 4;
    fn sample(&self, words: [u32; 4]) -> [bf16; 4] {
        Distribution::<f32>::sample(self, words).map(bf16::from_f32)
    }
}

macro_rules! integers {
    ($($ty:ty, $unsigned:ty, $elements:literal, $from:expr);* $(;)?) => {
        $(
            impl Distribution<$ty> for UniformInteger<$ty> {
                const ELEMENTS: usize = $elements;
                fn sample(&self, words: [u32; 4]) -> [$ty; 4] {
                    let range = (self.high as $unsigned).wrapping_sub(self.low as $unsigned).max(1);
                    $from(words).map(|x: $unsigned| self.low.wrapping_add((x % range) as $ty))
                }
            }
            impl Distribution<$ty> for FullInteger {
                const ELEMENTS: usize = $elements;
                fn sample(&self, words: [u32; 4]) -> [$ty; 4] {
                    $from(words).map(|x: $unsigned| x as $ty)
                }
            }
        )*
    };
}

fn four(words: [u32; 4]) -> [u32; 4] {
    words
}

fn two(w: [u32; 4]) -> [u64; 4] {
    let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    [join(w[0], w[1]), join(w[2], w[3]), 0, 0]
}

integers!(
    i32, u32, 4, four;
    u32, u32, 4, four;
    i64, u64, 2, two;
    u64, u64, 2, two;
);

/// Fills `out` from the steps of `generator`, which is not advanced: see [`steps_of`].
pub fn fill<T: Copy + Send, D: Distribution<T>>(
    pool: &ThreadPool,
    generator: Philox,
    distribution: &D,
    out: &mut [T],
) {
    let total = out.len();
    let out = SharedMut::new(out);
    pool.parallel_for(total.div_ceil(D::ELEMENTS), 20.0, |groups| {
        let mut generator = generator.after(groups.start as u64);
        for group in groups {
            let start = group * D::ELEMENTS;
            // SAFETY: groups are disjoint.
            let out = unsafe { out.range(start..total.min(start + D::ELEMENTS)) };
            let sample = distribution.sample(generator.step());
            out.copy_from_slice(&sample[..out.len()]);
        }
    });
}

/// Steps that `len` elements of a distribution use.
pub fn steps_of<T, D: Distribution<T>>(_: &D, len: usize) -> u64 {
    len.div_ceil(D::ELEMENTS) as u64
}

/// An element that the truncated normal has.
pub trait TruncatedNormal: Copy + Send {
    /// Elements of a group.
    const ELEMENTS: usize;
    /// A group, from as many steps as it takes.
    fn group(generator: &mut Philox) -> [Self; 4];
}

/// Draws pairs until four elements lie within two deviations.
fn truncated_f32(generator: &mut Philox) -> [f32; 4] {
    let (mut kept, mut count) = ([0.0; 4], 0);
    loop {
        let w = generator.step();
        for (a, b) in [normal_pair_f32(w[0], w[1]), normal_pair_f32(w[2], w[3])] {
            for x in [a, b] {
                if x.abs() < 2.0 {
                    kept[count] = x;
                    count += 1;
                    if count == 4 {
                        return kept;
                    }
                }
            }
        }
    }
}

impl TruncatedNormal for f32 {
    const ELEMENTS: usize = 4;
    fn group(generator: &mut Philox) -> [f32; 4] {
        truncated_f32(generator)
    }
}

impl TruncatedNormal for f16 {
    const ELEMENTS: usize = 4;
    fn group(generator: &mut Philox) -> [f16; 4] {
        truncated_f32(generator).map(f16::from_f32)
    }
}

impl TruncatedNormal for bf16 {
    const ELEMENTS: usize = 4;
    fn group(generator: &mut Philox) -> [bf16; 4] {
        truncated_f32(generator).map(bf16::from_f32)
    }
}

impl TruncatedNormal for f64 {
    const ELEMENTS: usize = 2;
    fn group(generator: &mut Philox) -> [f64; 4] {
        let (mut kept, mut count) = ([0.0; 4], 0);
        loop {
            let (a, b) = normal_pair_f64(generator.step());
            for x in [a, b] {
                if x.abs() < 2.0 {
                    kept[count] = x;
                    count += 1;
                    if count == 2 {
                        return kept;
                    }
                }
            }
        }
    }
}

/// Steps between the groups of a truncated normal.
fn truncated_stride<T: TruncatedNormal>() -> u64 {
    RESERVED_STEPS * T::ELEMENTS as u64 / 4
}

/// Fills `out` with normal numbers that lie within two deviations. `generator` is not advanced: see
/// [`steps_of_truncated`].
pub fn fill_truncated_normal<T: TruncatedNormal>(pool: &ThreadPool, generator: Philox, out: &mut [T]) {
    let total = out.len();
    let out = SharedMut::new(out);
    pool.parallel_for(total.div_ceil(T::ELEMENTS), 40.0, |groups| {
        for group in groups {
            let start = group * T::ELEMENTS;
            // SAFETY: groups are disjoint.
            let out = unsafe { out.range(start..total.min(start + T::ELEMENTS)) };
            let sample = T::group(&mut generator.after(group as u64 * truncated_stride::<T>()));
            out.copy_from_slice(&sample[..out.len()]);
        }
    });
}

/// Steps that `len` elements of a truncated normal reserve.
pub fn steps_of_truncated<T: TruncatedNormal>(len: usize) -> u64 {
    len.div_ceil(T::ELEMENTS) as u64 * truncated_stride::<T>()
}

#[cfg(test)]
mod tests;
