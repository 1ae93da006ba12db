//! Random bits: blocks of Philox and Threefry, and the lanes that lie in them.
//!
//! Elements are the words of one block after the other. A vector of elements may start within a block, so enough blocks
//! for any start are computed side by side, one in each 64-bit lane, and written to memory, from which the elements are
//! read. Words of 32 bits lie in lanes of 64, which are what products need.

use super::elementwise::{self, stored};
use super::fusion::Emitter;
use super::ir::{Kind, Val};
use super::lanes::Place;
use ff_hlo::RngAlgorithm;
use ff_hlo::fusion::NodeKind;
use ff_tensor::{DataType, Result, bail, status};
use llvm_sys::LLVMIntPredicate::*;

/// Words of 64 bits of the blocks that a vector of so many lanes may lie in.
pub(super) fn buffer_words(lanes: u32) -> u32 {
    2 * lanes
}

/// Elements of a block.
fn elements(algorithm: RngAlgorithm, dtype: DataType) -> u32 {
    (algorithm.block_bytes() / dtype.size()) as u32
}

/// Arithmetic on words in lanes of 64 bits, whose upper halves are zero.
struct Words<'a, 'p, 'c> {
    emitter: &'a Emitter<'p, 'c>,
    lanes: u32,
}

impl Words<'_, '_, '_> {
    fn long(&self, value: u64) -> Val {
        self.emitter.ir.int(Kind::I64, self.lanes, value as i64)
    }

    fn splat(&self, value: Val) -> Val {
        self.emitter.ir.splat(value, Kind::I64, self.lanes)
    }

    /// The lower half.
    fn low(&self, x: Val) -> Val {
        self.emitter.ir.and(x, self.long(0xffff_ffff))
    }

    /// The upper half.
    fn high(&self, x: Val) -> Val {
        self.emitter.ir.lshr(x, self.long(32))
    }

    fn join(&self, low: Val, high: Val) -> Val {
        let ir = &self.emitter.ir;
        ir.or(low, ir.shl(high, self.long(32)))
    }

    fn sum(&self, a: Val, b: Val) -> Val {
        self.low(self.emitter.ir.add(a, b))
    }

    fn rotated(&self, x: Val, bits: u64) -> Val {
        let ir = &self.emitter.ir;
        let up = ir.shl(x, self.long(bits));
        self.low(ir.or(up, ir.lshr(x, self.long(32 - bits))))
    }

    /// Philox 4x32 with ten rounds: two pairs of words.
    fn philox(&self, key: Val, [low, high]: [Val; 2]) -> [Val; 2] {
        let ir = &self.emitter.ir;
        let mut c = [self.low(low), self.high(low), self.low(high), self.high(high)];
        let mut key = [self.low(key), self.high(key)];
        for _ in 0..10 {
            let first = ir.mul(c[0], self.long(0xD251_1F53));
            let second = ir.mul(c[2], self.long(0xCD9E_8D57));
            let mixed = |product: Val, word: Val, key: Val| ir.xor(ir.xor(self.high(product), word), key);
            c = [
                self.low(mixed(second, c[1], key[0])),
                self.low(second),
                self.low(mixed(first, c[3], key[1])),
                self.low(first),
            ];
            key = [
                self.sum(key[0], self.long(0x9E37_79B9)),
                self.sum(key[1], self.long(0xBB67_AE85)),
            ];
        }
        [self.join(c[0], c[1]), self.join(c[2], c[3])]
    }

    /// Threefry 2x32 with twenty rounds: a pair of words.
    fn threefry(&self, key: Val, counter: Val) -> Val {
        const ROTATIONS: [[u64; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
        let ir = &self.emitter.ir;
        let (k0, k1) = (self.low(key), self.high(key));
        let keys = [k0, k1, ir.xor(self.long(0x1BD1_1BDA), ir.xor(k0, k1))];
        let mut x = [
            self.sum(self.low(counter), keys[0]),
            self.sum(self.high(counter), keys[1]),
        ];
        for group in 0..5 {
            for rotation in ROTATIONS[group % 2] {
                x[0] = self.sum(x[0], x[1]);
                x[1] = ir.xor(self.rotated(x[1], rotation), x[0]);
            }
            x[0] = self.sum(x[0], keys[(group + 1) % 3]);
            let key = self.sum(keys[(group + 2) % 3], self.long(group as u64 + 1));
            x[1] = self.sum(x[1], key);
        }
        self.join(x[0], x[1])
    }
}

impl Place<'_, '_, '_> {
    /// Lanes of random bits.
    pub fn random_bits(&self, number: usize) -> Result<Val> {
        let (emitter, ir, lanes) = (self.emitter, &self.emitter.ir, self.emitter.lanes);
        let node = &emitter.plan.nodes[number];
        let NodeKind::Random(algorithm, counter) = node.kind else {
            bail!(Internal, "a kernel draws bits for what is not random");
        };
        let word = |word: usize| {
            let value = node
                .operands
                .get(word)
                .and_then(|&operand| self.row.scalars[operand]);
            value.ok_or_else(|| status!(Internal, "the state of a generator changes along a row"))
        };
        let first = self.row.counters[counter].ok_or_else(|| status!(Internal, "a counter has no start"))?;
        let (first, each) = (ir.add(first, self.element), elements(algorithm, node.dtype));
        let block = ir.lshr(first, emitter.long(i64::from(each.ilog2())));
        let within = ir.and(first, emitter.long(i64::from(each) - 1));

        let blocks = (lanes / each + u32::from(each > 1)).next_power_of_two();
        let words = Words {
            emitter,
            lanes: blocks,
        };
        let numbers = ir.add(words.splat(block), ir.steps(Kind::I64, blocks));
        let (key, counter) = (words.splat(word(0)?), words.splat(word(1)?));
        let low = ir.add(counter, numbers);
        let buffer = emitter.random_buffer()?;
        match algorithm {
            RngAlgorithm::Philox => {
                let carry = ir.zext(ir.icmp(LLVMIntULT, low, numbers), Kind::I64, blocks);
                let high = ir.add(words.splat(word(2)?), carry);
                let [a, b] = words.philox(key, [low, high]);
                ir.store(ir.interleaved(a, b, blocks), buffer, Kind::I64);
            }
            RngAlgorithm::ThreeFry => ir.store(words.threefry(key, low), buffer, Kind::I64),
        }
        let kind = stored(node.dtype)?;
        let bytes = ir.mul(within, emitter.long(i64::from(kind.bytes())));
        let raw = ir.load(ir.offset(buffer, bytes), kind, lanes);
        Ok(elementwise::widen(ir, node.dtype, raw, lanes))
    }
}
