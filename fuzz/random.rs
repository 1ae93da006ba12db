//! Choices: a generator of random numbers, and inputs read as sequences of choices.
//!
//! The same seed or the same bytes give the same choices on every machine. Nothing here is for cryptography.

/// A small generator (xorshift64*).
pub struct Random(u64);

/// Numbers at which arithmetic goes wrong.
pub const TELLING: [i64; 24] = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    64,
    127,
    128,
    255,
    256,
    65_535,
    1 << 20,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 31,
    1 << 32,
    1 << 40,
    1 << 61,
    1 << 62,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
];

impl Random {
    /// A generator for this seed.
    pub fn new(seed: u64) -> Random {
        let mixed = (seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mut random = Random((mixed ^ (mixed >> 31)) | 1);
        random.next();
        random
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`; 0 when that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 16) % end.max(1) as u64) as usize
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these; there must be one.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A number at which arithmetic may go wrong, or any.
    pub fn number(&mut self) -> i64 {
        if self.one_in(8) {
            self.next() as i64
        } else {
            *self.pick(&TELLING)
        }
    }

    /// `length` random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.next() >> 32) as u8).collect()
    }
}

/// An input that is a sequence of choices: each takes bytes from the front; past the end every choice is 0.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    /// The choices in these bytes.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices(bytes)
    }

    /// Whether all choices are made.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// A number below `end`; 0 when that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let wide = if end > 256 {
            usize::from(self.byte()) << 8
        } else {
            0
        };
        (wide | usize::from(self.byte())) % end.max(1)
    }

    /// True about once in `times`, never when choices are over.
    pub fn one_in(&mut self, times: usize) -> bool {
        !self.is_empty() && self.below(times) == times - 1
    }

    /// One of these; there must be one.
    pub fn pick<'b, T>(&mut self, choices: &'b [T]) -> &'b T {
        &choices[self.below(choices.len())]
    }

    /// A small number mostly, else one at which arithmetic may go wrong.
    pub fn number(&mut self) -> i64 {
        match self.below(8) {
            7 => *self.pick(&TELLING),
            6 => i64::from(self.byte() as i8),
            _ => self.below(5) as i64,
        }
    }
}
