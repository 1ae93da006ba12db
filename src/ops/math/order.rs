//! Numbers as integers in the same order, so that searching and ranking need no loop for each type.

use ff_tensor::{Result, Tensor};

/// A number with a place in the order of all numbers of its type.
trait Ranked: Copy {
    /// Larger for larger numbers, equal for equal ones (both zeros too); not-a-number is above all.
    fn rank(self) -> u64;
}

macro_rules! integers {
    ($($signed:ty),*; $($unsigned:ty),*) => {
        $(impl Ranked for $signed {
            fn rank(self) -> u64 { (i64::from(self) as u64) ^ (1 << 63) }
        })*
        $(impl Ranked for $unsigned {
            fn rank(self) -> u64 { u64::from(self) }
        })*
    };
}
integers!(i8, i16, i32, i64; u8, u16, u32, u64);

impl Ranked for f64 {
    fn rank(self) -> u64 {
        if self.is_nan() {
            return u64::MAX;
        }
        let bits = (self + 0.0).to_bits();
        if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
    }
}

macro_rules! floats {
    ($($name:ty),*) => {$(
        impl Ranked for $name {
            fn rank(self) -> u64 { f64::from(self).rank() }
        }
    )*};
}
floats!(f32, ff_tensor::f16, ff_tensor::bf16);

/// The rank of each element of a tensor of integers or floating-point numbers. UNIMPLEMENTED for other types.
pub fn ranks(tensor: &Tensor) -> Result<Vec<u64>> {
    crate::match_real!(tensor.dtype(), T => {
        Ok(tensor.as_slice::<T>()?.iter().map(|&value| value.rank()).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept() {
        let floats = [
            f64::NEG_INFINITY,
            -2.5,
            -1e-300,
            0.0,
            1e-300,
            7.0,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(floats.windows(2).all(|pair| pair[0].rank() < pair[1].rank()));
        assert_eq!((-0.0f64).rank(), 0.0f64.rank());
        assert!((-3i8).rank() < 2i8.rank() && i64::MIN.rank() < i64::MAX.rank());
    }
}
