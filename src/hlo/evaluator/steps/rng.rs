//! `rng-bit-generator`: counter-based random bits (Salmon et al. 2011).

use crate::attributes::RngAlgorithm;
use crate::evaluator::code::{Kernel, StepContext};
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

impl Kernel for RngBitGenerator {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let mut state = step.take_input(0, 0)?;
        let mut bits = step.allocate(1)?;
        let words = bits.bytes_mut().unwrap_or_default();
        {
            let state = state.as_mut_slice::<u64>()?;
            let key = halves(state[0]);
            let mut counter = u128::from(state[1]);
            match self.algorithm {
                RngAlgorithm::Philox => {
                    counter |= u128::from(state[2]) << 64;
                    for chunk in words.chunks_mut(16) {
                        let [c0, c1] = halves(counter as u64);
                        let [c2, c3] = halves((counter >> 64) as u64);
                        write_words(chunk, &philox([c0, c1, c2, c3], key));
                        counter = counter.wrapping_add(1);
                    }
                    (state[1], state[2]) = (counter as u64, (counter >> 64) as u64);
                }
                RngAlgorithm::ThreeFry => {
                    for chunk in words.chunks_mut(8) {
                        write_words(chunk, &threefry(halves(counter as u64), key));
                        counter = counter.wrapping_add(1);
                    }
                    state[1] = counter as u64;
                }
            }
        }
        step.set(0, state);
        step.set(1, bits);
        Ok(())
    }
}

/// Writes as many words as there is room for.
fn write_words(out: &mut [u8], words: &[u32]) {
    for (out, word) in out.chunks_mut(4).zip(words) {
        out.copy_from_slice(&word.to_ne_bytes()[..out.len()]);
    }
}
