//! The words of a random stream, one by one, for ops that draw as they go.

use ff_kernels::random::Philox;

/// The words from a position of a stream on.
pub struct Words {
    philox: Philox,
    step: [u32; 4],
    used: usize,
}

impl Words {
    /// The words from the position of `philox` on.
    pub fn new(philox: Philox) -> Words {
        Words {
            philox,
            step: [0; 4],
            used: 4,
        }
    }

    /// The next word.
    pub fn next_word(&mut self) -> u32 {
        if self.used == 4 {
            self.step = self.philox.step();
            self.used = 0;
        }
        self.used += 1;
        self.step[self.used - 1]
    }

    /// The next double in [0, 1), of two words.
    pub fn next_double(&mut self) -> f64 {
        let mantissa = u64::from(self.next_word() & 0xf_ffff) << 32;
        let mantissa = mantissa | u64::from(self.next_word());
        f64::from_bits(1023 << 52 | mantissa) - 1.0
    }
}
