//! The 128-bit fingerprint of strings (CityHash128, by G. Pike and J. Alakuijala).

use super::hash_functions::{K0, K1, fingerprint_to_16, mix, shift_mix, weak, word};

fn mix_two(u: u64, v: u64) -> u64 {
    mix(u, v, 0x9ddf_ea08_eb38_2d69)
}

/// The fingerprint: the low and the high word.
pub fn fingerprint128(bytes: &[u8]) -> [u64; 2] {
    if bytes.len() < 16 {
        return short(bytes, [K0, K1]);
    }
    let seed = [word(bytes, 0), word(bytes, 8).wrapping_add(K0)];
    match &bytes[16..] {
        rest if rest.len() < 128 => short(rest, seed),
        rest => long(rest, seed),
    }
}

/// Of less than 128 bytes.
fn short(s: &[u8], [mut a, mut b]: [u64; 2]) -> [u64; 2] {
    let length = s.len();
    let (mut c, mut d);
    if length <= 16 {
        a = shift_mix(a.wrapping_mul(K1)).wrapping_mul(K1);
        c = b.wrapping_mul(K1).wrapping_add(fingerprint_to_16(s));
        d = shift_mix(a.wrapping_add(if length >= 8 { word(s, 0) } else { c }));
    } else {
        c = mix_two(word(s, length - 8).wrapping_add(K1), a);
        d = mix_two(
            b.wrapping_add(length as u64),
            c.wrapping_add(word(s, length - 16)),
        );
        a = a.wrapping_add(d);
        for at in (0..length - 16).step_by(16) {
            a = (a ^ shift_mix(word(s, at).wrapping_mul(K1)).wrapping_mul(K1)).wrapping_mul(K1);
            b ^= a;
            c = (c ^ shift_mix(word(s, at + 8).wrapping_mul(K1)).wrapping_mul(K1)).wrapping_mul(K1);
            d ^= c;
        }
    }
    a = mix_two(a, c);
    b = mix_two(d, b);
    [a ^ b, mix_two(b, a)]
}

struct State {
    x: u64,
    y: u64,
    z: u64,
    v: (u64, u64),
    w: (u64, u64),
}

impl State {
    fn mix(&mut self, s: &[u8]) {
        let State { x, y, z, v, w } = self;
        let sum = x.wrapping_add(*y).wrapping_add(v.0).wrapping_add(word(s, 8));
        *x = sum.rotate_right(37).wrapping_mul(K1) ^ w.1;
        let sum = y.wrapping_add(v.1).wrapping_add(word(s, 48));
        *y = sum.rotate_right(42).wrapping_mul(K1);
        *y = y.wrapping_add(v.0).wrapping_add(word(s, 40));
        *z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(K1);
        *v = weak(s, v.1.wrapping_mul(K1), x.wrapping_add(w.0));
        *w = weak(&s[32..], z.wrapping_add(w.1), y.wrapping_add(word(s, 16)));
        std::mem::swap(z, x);
    }

    /// Mixes in 32 bytes of the end.
    fn mix_tail(&mut self, s: &[u8]) {
        let State { x, y, z, v, w } = self;
        *y = x
            .wrapping_add(*y)
            .rotate_right(42)
            .wrapping_mul(K0)
            .wrapping_add(v.1);
        w.0 = w.0.wrapping_add(word(s, 16));
        *x = x.wrapping_mul(K0).wrapping_add(w.0);
        *z = z.wrapping_add(w.1).wrapping_add(word(s, 0));
        w.1 = w.1.wrapping_add(v.0);
        *v = weak(s, v.0.wrapping_add(*z), v.1);
        v.0 = v.0.wrapping_mul(K0);
    }
}

/// Of 128 bytes and more.
fn long(s: &[u8], [x, y]: [u64; 2]) -> [u64; 2] {
    let z = (s.len() as u64).wrapping_mul(K1);
    let first = (y ^ K1)
        .rotate_right(49)
        .wrapping_mul(K1)
        .wrapping_add(word(s, 0));
    let second = first.rotate_right(42).wrapping_mul(K1).wrapping_add(word(s, 8));
    let third = y
        .wrapping_add(z)
        .rotate_right(35)
        .wrapping_mul(K1)
        .wrapping_add(x);
    let fourth = x.wrapping_add(word(s, 88)).rotate_right(53).wrapping_mul(K1);
    let mut state = State {
        x,
        y,
        z,
        v: (first, second),
        w: (third, fourth),
    };
    let whole = s.len() / 128 * 128;
    for chunk in s[..whole].chunks_exact(64) {
        state.mix(chunk);
    }
    let State { x, y, z, v, w } = &mut state;
    *x = x.wrapping_add(v.0.wrapping_add(*z).rotate_right(49).wrapping_mul(K0));
    *y = y.wrapping_mul(K0).wrapping_add(w.1.rotate_right(37));
    *z = z.wrapping_mul(K0).wrapping_add(w.0.rotate_right(27));
    w.0 = w.0.wrapping_mul(9);
    v.0 = v.0.wrapping_mul(K0);
    for done in (0..s.len() - whole).step_by(32) {
        state.mix_tail(&s[s.len() - done - 32..]);
    }
    let State { x, y, z, v, w } = state;
    let x = mix_two(x, v.0);
    let y = mix_two(y.wrapping_add(z), w.0);
    [
        mix_two(x.wrapping_add(v.1), w.1).wrapping_add(y),
        mix_two(x.wrapping_add(w.1), y.wrapping_add(v.1)),
    ]
}
