//! Plain gradient descent, and momentum (Polyak) with Nesterov's look-ahead, in TensorFlow's and in Keras' form.

use super::step::{Numbers, Rule, Trained, optimizer};
use ff_op::Op;
use ff_tensor::{Complex64, Complex128, Result, bf16, f16};

/// Plain gradient descent.
pub static GRADIENT_DESCENT: &[&Op] = optimizer!(
    GradientDescent,
    1,
    (f32, f64, f16, bf16, Complex64, Complex128),
    ["ApplyGradientDescent", "ResourceApplyGradientDescent"]
);
/// Momentum.
pub static MOMENTUM: &[&Op] = optimizer!(
    Momentum,
    2,
    (f32, f64, f16, bf16, Complex64, Complex128),
    [
        "ApplyMomentum",
        "ResourceApplyMomentum",
        "SparseApplyMomentum",
        "ResourceSparseApplyMomentum",
    ]
);
/// Momentum as Keras has it: the slot holds steps, not gradients.
pub static KERAS_MOMENTUM: &[&Op] = optimizer!(
    KerasMomentum,
    2,
    (f32, f64, f16, bf16, Complex64, Complex128),
    ["ResourceApplyKerasMomentum", "ResourceSparseApplyKerasMomentum"]
);

/// `var -= alpha * delta`.
#[derive(Clone, Copy)]
struct GradientDescent<T> {
    alpha: T,
}

impl<T: Trained> Rule<T, 1> for GradientDescent<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Ok(GradientDescent {
            alpha: numbers.scalar("alpha")?,
        })
    }

    #[inline(always)]
    fn step(&self, [var]: [T; 1], gradient: T) -> [T; 1] {
        [var.sub(self.alpha.mul(gradient))]
    }
}

/// `accum = accum * momentum + grad; var -= lr * accum`, or with Nesterov `var -= lr * (grad + momentum * accum)`.
#[derive(Clone, Copy)]
struct Momentum<T> {
    rate: T,
    momentum: T,
    nesterov: bool,
}

impl<T: Trained> Rule<T, 2> for Momentum<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Ok(Momentum {
            rate: numbers.scalar("lr")?,
            momentum: numbers.scalar("momentum")?,
            nesterov: numbers.flag("use_nesterov", false),
        })
    }

    #[inline(always)]
    fn step(&self, [var, accum]: [T; 2], gradient: T) -> [T; 2] {
        let accum = accum.mul(self.momentum).add(gradient);
        let change = if self.nesterov {
            gradient
                .mul(self.rate)
                .add(accum.mul(self.momentum).mul(self.rate))
        } else {
            accum.mul(self.rate)
        };
        [var.sub(change), accum]
    }
}

/// `accum = accum * momentum - lr * grad; var += accum`, or with Nesterov `var += accum * momentum - lr * grad`.
#[derive(Clone, Copy)]
struct KerasMomentum<T>(Momentum<T>);

impl<T: Trained> Rule<T, 2> for KerasMomentum<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Momentum::read(numbers).map(KerasMomentum)
    }

    #[inline(always)]
    fn step(&self, [var, accum]: [T; 2], gradient: T) -> [T; 2] {
        let Momentum {
            rate,
            momentum,
            nesterov,
        } = self.0;
        let fresh = gradient.mul(rate);
        let accum = accum.mul(momentum).sub(fresh);
        let change = if nesterov {
            accum.mul(momentum).sub(fresh)
        } else {
            accum
        };
        [var.add(change), accum]
    }
}
