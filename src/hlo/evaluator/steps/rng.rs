//! `rng-bit-generator`: counter-based random bits (Salmon et al. 2011).

use super::dot::elements;
use crate::attributes::RngAlgorithm;
use crate::evaluator::code::{Kernel, StepContext};
use ff_kernels::memory::SharedMut;
use ff_tensor::Result;

struct RngBitGenerator {
    algorithm: RngAlgorithm,
}

/// The kernel of a random bit generator.
pub(super) fn kernel(algorithm: RngAlgorithm) -> Box<dyn Kernel> {
    Box::new(RngBitGenerator { algorithm })
}

/// Philox 4x32 with ten rounds: four words for a counter and a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    for _ in 0..10 {
        let first = MULTIPLIERS[0] * u64::from(counter[0]);
        let second = MULTIPLIERS[1] * u64::from(counter[2]);
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// Threefry 2x32 with twenty rounds: two words for a counter and a key.
pub fn threefry(counter: [u32; 2], key: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], 0x1BD1_1BDA ^ key[0] ^ key[1]];
    let mut x = [counter[0].wrapping_add(keys[0]), counter[1].wrapping_add(keys[1])];
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(keys[(group + 1) % 3]);
        x[1] = x[1]
            .wrapping_add(keys[(group + 2) % 3])
            .wrapping_add(group as u32 + 1);
    }
    x
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// Nanoseconds for a block.
const BLOCK_COST: f64 = 20.0;

/// A key, and the counter of the first block.
struct Start {
    algorithm: RngAlgorithm,
    key: [u32; 2],
    counter: u128,
}

impl Start {
    fn of(algorithm: RngAlgorithm, state: &[u64]) -> Start {
        let upper = match algorithm {
            RngAlgorithm::Philox => state[2],
            RngAlgorithm::ThreeFry => 0,
        };
        Start {
            algorithm,
            key: halves(state[0]),
            counter: u128::from(upper) << 64 | u128::from(state[1]),
        }
    }

    /// Writes words, the block of this number first.
    fn write(&self, first: usize, words: &mut [u8]) {
        let counter = self.counter.wrapping_add(first as u128);
        match self.algorithm {
            RngAlgorithm::Philox => write_blocks(words, counter, |counter| {
                let ([c0, c1], [c2, c3]) = (halves(counter as u64), halves((counter >> 64) as u64));
                philox([c0, c1, c2, c3], self.key)
            }),
            RngAlgorithm::ThreeFry => write_blocks(words, counter, |counter| {
                threefry(halves(counter as u64), self.key)
            }),
        }
    }

    /// Sets the counter of a state that is so many blocks on.
    fn advance(&self, state: &mut [u64], blocks: usize) {
        let counter = self.counter.wrapping_add(blocks as u128);
        state[1] = counter as u64;
        if self.algorithm == RngAlgorithm::Philox {
            state[2] = (counter >> 64) as u64;
        }
    }
}

impl Kernel for RngBitGenerator {
    /// The next state and the bits, or the bits alone.
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let with_state = step.num_outputs() == 2;
        let start = Start::of(self.algorithm, elements(step.input(0)?));
        let mut bits = step.allocate(usize::from(with_state))?;
        let words = bits.bytes_mut().unwrap_or_default();
        let (len, block) = (words.len(), self.algorithm.block_bytes());
        let blocks = len.div_ceil(block);
        let words = SharedMut::new(words);
        step.pool().parallel_for(blocks, BLOCK_COST, |range| {
            // SAFETY: ranges of blocks are disjoint.
            let part = unsafe { words.range(range.start * block..len.min(range.end * block)) };
            start.write(range.start, part);
        });
        if with_state {
            let mut state = step.take_input(0, 0)?;
            start.advance(state.as_mut_slice::<u64>()?, blocks);
            step.set(0, state);
        }
        step.set(usize::from(with_state), bits);
        Ok(())
    }
}

/// Writes blocks of words, as many as there is room for; the last may be a part of one.
fn write_blocks<const N: usize>(out: &mut [u8], mut counter: u128, block: impl Fn(u128) -> [u32; N]) {
    let mut blocks = out.chunks_exact_mut(4 * N);
    for out in &mut blocks {
        for (out, word) in out.chunks_exact_mut(4).zip(block(counter)) {
            out.copy_from_slice(&word.to_ne_bytes());
        }
        counter = counter.wrapping_add(1);
    }
    let rest = blocks.into_remainder().chunks_exact_mut(4);
    for (out, word) in rest.zip(block(counter)) {
        out.copy_from_slice(&word.to_ne_bytes());
    }
}
