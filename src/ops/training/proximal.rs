//! Forward-backward splitting (Duchi and Singer 2009): a step of descent, then shrinking towards zero by `l1` and `l2`.

use super::step::{Numbers, Rule, TrainedReal, optimizer};
use ff_op::Op;
use ff_tensor::{Result, ensure};

/// With plain descent.
pub static GRADIENT_DESCENT: &[&Op] = optimizer!(
    GradientDescent,
    1,
    (f32, f64),
    [
        "ApplyProximalGradientDescent",
        "ResourceApplyProximalGradientDescent",
        "SparseApplyProximalGradientDescent",
        "ResourceSparseApplyProximalGradientDescent",
    ]
);
/// With Adagrad's rate.
pub static ADAGRAD: &[&Op] = optimizer!(
    Adagrad,
    2,
    (f32, f64),
    [
        "ApplyProximalAdagrad",
        "ResourceApplyProximalAdagrad",
        "SparseApplyProximalAdagrad",
        "ResourceSparseApplyProximalAdagrad",
    ]
);

/// The penalties.
#[derive(Clone, Copy)]
struct Shrinking<T> {
    l1: T,
    l2: T,
}

impl<T: TrainedReal> Shrinking<T> {
    fn of(numbers: &Numbers) -> Result<Self> {
        Ok(Shrinking {
            l1: numbers.scalar("l1")?,
            l2: numbers.scalar("l2")?,
        })
    }

    /// `sign(x) max(|x| - rate l1, 0) / (1 + rate l2)` for `x = var - rate grad`.
    #[inline(always)]
    fn step(&self, var: T, rate: T, gradient: T) -> T {
        let moved = var.sub(gradient.mul(rate));
        let kept = if self.l1 > T::default() {
            let beyond = moved.magnitude().sub(rate.mul(self.l1)).larger(T::default());
            moved.sign().mul(beyond)
        } else {
            moved
        };
        kept.div(T::one().add(self.l2.mul(rate)))
    }
}

#[derive(Clone, Copy)]
struct GradientDescent<T> {
    alpha: T,
    shrinking: Shrinking<T>,
}

impl<T: TrainedReal> Rule<T, 1> for GradientDescent<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Ok(GradientDescent {
            alpha: numbers.scalar("alpha")?,
            shrinking: Shrinking::of(numbers)?,
        })
    }

    #[inline(always)]
    fn step(&self, [var]: [T; 1], gradient: T) -> [T; 1] {
        [self.shrinking.step(var, self.alpha, gradient)]
    }
}

#[derive(Clone, Copy)]
struct Adagrad<T> {
    rate: T,
    shrinking: Shrinking<T>,
}

impl<T: TrainedReal> Rule<T, 2> for Adagrad<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        let rate: T = numbers.scalar("lr")?;
        ensure!(
            rate > T::default(),
            InvalidArgument,
            "lr is not a positive scalar: []"
        );
        Ok(Adagrad {
            rate,
            shrinking: Shrinking {
                l1: numbers.not_negative("l1", "l1 regularization strength")?,
                l2: numbers.not_negative("l2", "l2 regularization strength")?,
            },
        })
    }

    #[inline(always)]
    fn step(&self, [var, accum]: [T; 2], gradient: T) -> [T; 2] {
        let accum = accum.add(gradient.mul(gradient));
        let rate = self.rate.mul(accum.inverse_root());
        [self.shrinking.step(var, rate, gradient), accum]
    }
}
