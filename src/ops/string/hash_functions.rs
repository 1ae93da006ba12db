//! Hash functions that name buckets; their values are part of saved models and must not change.
//!
//! [`hash64`] is a variant of Murmur 2, [`fingerprint64`] is FarmHash's stable 64-bit fingerprint, [`siphash`] is
//! SipHash-2-4 (Aumasson and Bernstein, 2012).

pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// The bytes that are left over at the end, as one word.
fn tail_word(bytes: &[u8]) -> u64 {
    let bits = |(index, &byte): (usize, &u8)| u64::from(byte) << (8 * index);
    bytes.iter().enumerate().map(bits).sum()
}

/// The hash of `StringToHashBucket`.
pub fn hash64(bytes: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = 0x00DE_CAFC_AFFE ^ (bytes.len() as u64).wrapping_mul(M);
    let words = bytes.chunks_exact(8);
    let tail = words.remainder();
    for chunk in words {
        let mut k = word(chunk, 0).wrapping_mul(M);
        k = (k ^ k >> 47).wrapping_mul(M);
        hash = (hash ^ k).wrapping_mul(M);
    }
    if !tail.is_empty() {
        hash = (hash ^ tail_word(tail)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}

pub(super) const K0: u64 = 0xc3a5_c85c_97cb_3127;
pub(super) const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

pub(super) fn shift_mix(value: u64) -> u64 {
    value ^ value >> 47
}

pub(super) fn mix(u: u64, v: u64, mul: u64) -> u64 {
    let a = shift_mix((u ^ v).wrapping_mul(mul));
    shift_mix((v ^ a).wrapping_mul(mul)).wrapping_mul(mul)
}

/// The hash of `StringToHashBucketFast`.
pub fn fingerprint64(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..=16 => fingerprint_to_16(bytes),
        17..=32 => fingerprint_to_32(bytes),
        33..=64 => fingerprint_to_64(bytes),
        _ => fingerprint_long(bytes),
    }
}

fn multiplier(length: usize) -> u64 {
    K2.wrapping_add(length as u64 * 2)
}

pub(super) fn fingerprint_to_16(s: &[u8]) -> u64 {
    let (length, mul) = (s.len(), multiplier(s.len()));
    if length >= 8 {
        let a = word(s, 0).wrapping_add(K2);
        let b = word(s, length - 8);
        let c = b.rotate_right(37).wrapping_mul(mul).wrapping_add(a);
        let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(mul);
        return mix(c, d, mul);
    }
    if length >= 4 {
        let (a, b) = (tail_word(&s[..4]), tail_word(&s[length - 4..]));
        return mix((length as u64).wrapping_add(a << 3), b, mul);
    }
    if length == 0 {
        return K2;
    }
    let y = u64::from(s[0]) + (u64::from(s[length / 2]) << 8);
    let z = length as u64 + (u64::from(s[length - 1]) << 2);
    shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
}

/// The two words that the first and last 16 bytes give, before they are mixed.
fn ends(s: &[u8], first: u64, mul: u64) -> (u64, u64) {
    let (b, length) = (word(s, 8), s.len());
    let c = word(s, length - 8).wrapping_mul(mul);
    let d = word(s, length - 16).wrapping_mul(K2);
    let y = first
        .wrapping_add(b)
        .rotate_right(43)
        .wrapping_add(c.rotate_right(30))
        .wrapping_add(d);
    let z = first
        .wrapping_add(b.wrapping_add(K2).rotate_right(18))
        .wrapping_add(c);
    (y, z)
}

fn fingerprint_to_32(s: &[u8]) -> u64 {
    let mul = multiplier(s.len());
    let (y, z) = ends(s, word(s, 0).wrapping_mul(K1), mul);
    mix(y, z, mul)
}

fn fingerprint_to_64(s: &[u8]) -> u64 {
    let (length, mul) = (s.len(), multiplier(s.len()));
    let a = word(s, 0).wrapping_mul(K2);
    let (y, z) = ends(s, a, mul);
    let z = mix(y, z, mul);
    let e = word(s, 16).wrapping_mul(mul);
    let f = word(s, 24);
    let g = y.wrapping_add(word(s, length - 32)).wrapping_mul(mul);
    let h = z.wrapping_add(word(s, length - 24)).wrapping_mul(mul);
    let first = e
        .wrapping_add(f)
        .rotate_right(43)
        .wrapping_add(g.rotate_right(30))
        .wrapping_add(h);
    let second = e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g);
    mix(first, second, mul)
}

/// The state that 64 bytes at a time are mixed into.
struct Long {
    x: u64,
    y: u64,
    z: u64,
    v: (u64, u64),
    w: (u64, u64),
}

/// 32 bytes and two seeds make two words.
pub(super) fn weak(s: &[u8], a: u64, b: u64) -> (u64, u64) {
    let (w, x, y, z) = (word(s, 0), word(s, 8), word(s, 16), word(s, 24));
    let a = a.wrapping_add(w);
    let b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let sum = a.wrapping_add(x).wrapping_add(y);
    (
        sum.wrapping_add(z),
        b.wrapping_add(sum.rotate_right(44)).wrapping_add(a),
    )
}

impl Long {
    /// Mixes in 64 bytes; `factor` is 1, and 9 for the last ones.
    fn mix(&mut self, s: &[u8], mul: u64, factor: u64) {
        let Long { x, y, z, v, w } = self;
        *x = x.wrapping_add(*y).wrapping_add(v.0).wrapping_add(word(s, 8));
        *x = x.rotate_right(37).wrapping_mul(mul);
        *y = y
            .wrapping_add(v.1)
            .wrapping_add(word(s, 48))
            .rotate_right(42)
            .wrapping_mul(mul);
        *x ^= w.1.wrapping_mul(factor);
        *y = y.wrapping_add(v.0.wrapping_mul(factor)).wrapping_add(word(s, 40));
        *z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(mul);
        *v = weak(s, v.1.wrapping_mul(mul), x.wrapping_add(w.0));
        *w = weak(&s[32..], z.wrapping_add(w.1), y.wrapping_add(word(s, 16)));
        std::mem::swap(z, x);
    }
}

fn fingerprint_long(s: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let mut state = Long {
        x: SEED.wrapping_mul(K2).wrapping_add(word(s, 0)),
        y,
        z: shift_mix(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2),
        v: (0, 0),
        w: (0, 0),
    };
    let whole = (s.len() - 1) / 64 * 64;
    for chunk in s[..whole].chunks_exact(64) {
        state.mix(chunk, K1, 1);
    }
    let mul = K1.wrapping_add((state.z & 0xff) << 1);
    state.w.0 = state.w.0.wrapping_add((s.len() - 1) as u64 & 63);
    state.v.0 = state.v.0.wrapping_add(state.w.0);
    state.w.0 = state.w.0.wrapping_add(state.v.0);
    state.mix(&s[s.len() - 64..], mul, 9);
    let Long { x, y, z, v, w } = state;
    let first = mix(v.0, w.0, mul)
        .wrapping_add(shift_mix(y).wrapping_mul(K0))
        .wrapping_add(z);
    let second = mix(v.1, w.1, mul).wrapping_add(x);
    mix(first, second, mul)
}

/// The hash of `StringToHashBucketStrong`.
pub fn siphash(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let words = bytes.chunks_exact(8);
    let last = tail_word(words.remainder()) | (bytes.len() as u64) << 56;
    for m in words.map(|chunk| word(chunk, 0)).chain([last]) {
        v[3] ^= m;
        sip_rounds(&mut v, 2);
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    sip_rounds(&mut v, 4);
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_rounds(v: &mut [u64; 4], count: usize) {
    for _ in 0..count {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    }
}
