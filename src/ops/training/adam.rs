//! Adam (Kingma and Ba 2015) with the bias corrections folded into the learning rate, its variant AdaMax of the same
//! paper, and AMSGrad (Reddi et al. 2018).

use super::step::{Numbers, Rule, Trained, TrainedReal, optimizer};
use ff_op::Op;
use ff_tensor::{Complex64, Complex128, Result, bf16, f16};

/// Adam.
pub static ADAM: &[&Op] = optimizer!(
    Adam,
    3,
    (f32, f64, f16, bf16, Complex64, Complex128),
    ["ApplyAdam", "ResourceApplyAdam"]
);
/// AMSGrad.
pub static AMSGRAD: &[&Op] = optimizer!(
    Amsgrad,
    4,
    (f32, f64, f16, bf16),
    ["ResourceApplyAdamWithAmsgrad"]
);
/// AdaMax.
pub static ADA_MAX: &[&Op] = optimizer!(AdaMax, 3, (f32, f64, f16), ["ApplyAdaMax", "ResourceApplyAdaMax"]);

/// `m += (grad - m)(1 - beta1)`, `v += (grad^2 - v)(1 - beta2)`, `var -= rate m / (sqrt(v) + epsilon)`; with Nesterov
/// `m` is replaced by `grad (1 - beta1) + beta1 m` in the last.
#[derive(Clone, Copy)]
struct Adam<T> {
    /// `lr sqrt(1 - beta2_power) / (1 - beta1_power)`.
    rate: T,
    beta1: T,
    rest1: T,
    rest2: T,
    epsilon: T,
    nesterov: bool,
}

impl<T: Trained> Adam<T> {
    fn of(numbers: &Numbers) -> Result<Self> {
        let one = T::one();
        let (beta1, beta2) = (numbers.scalar::<T>("beta1")?, numbers.scalar::<T>("beta2")?);
        let (power1, power2) = (
            numbers.scalar::<T>("beta1_power")?,
            numbers.scalar::<T>("beta2_power")?,
        );
        let rate: T = numbers.scalar("lr")?;
        Ok(Adam {
            rate: rate.mul(one.sub(power2).root()).div(one.sub(power1)),
            beta1,
            rest1: one.sub(beta1),
            rest2: one.sub(beta2),
            epsilon: numbers.scalar("epsilon")?,
            nesterov: numbers.flag("use_nesterov", false),
        })
    }

    /// The new moments.
    #[inline(always)]
    fn moments(&self, m: T, v: T, gradient: T) -> (T, T) {
        let m = m.add(gradient.sub(m).mul(self.rest1));
        let v = v.add(gradient.mul(gradient).sub(v).mul(self.rest2));
        (m, v)
    }
}

impl<T: Trained> Rule<T, 3> for Adam<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Adam::of(numbers)
    }

    #[inline(always)]
    fn step(&self, [var, m, v]: [T; 3], gradient: T) -> [T; 3] {
        let (m, v) = self.moments(m, v, gradient);
        let direction = if self.nesterov {
            gradient.mul(self.rest1).add(self.beta1.mul(m))
        } else {
            m
        };
        let change = direction.mul(self.rate).div(v.root().add(self.epsilon));
        [var.sub(change), m, v]
    }
}

/// As Adam, with the largest `v` so far in the last formula.
#[derive(Clone, Copy)]
struct Amsgrad<T>(Adam<T>);

impl<T: TrainedReal> Rule<T, 4> for Amsgrad<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Adam::of(numbers).map(Amsgrad)
    }

    #[inline(always)]
    fn step(&self, [var, m, v, largest]: [T; 4], gradient: T) -> [T; 4] {
        let (m, v) = self.0.moments(m, v, gradient);
        let largest = largest.larger(v);
        let change = m.mul(self.0.rate).div(largest.root().add(self.0.epsilon));
        [var.sub(change), m, v, largest]
    }
}

/// `m += (grad - m)(1 - beta1)`, `v = max(beta2 v, |grad|)`, `var -= lr / (1 - beta1_power) m / (v + epsilon)`.
#[derive(Clone, Copy)]
struct AdaMax<T> {
    rate: T,
    rest1: T,
    beta2: T,
    epsilon: T,
}

impl<T: TrainedReal> Rule<T, 3> for AdaMax<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        let (one, rate): (T, T) = (T::one(), numbers.scalar("lr")?);
        let power1: T = numbers.scalar("beta1_power")?;
        let beta1: T = numbers.scalar("beta1")?;
        Ok(AdaMax {
            rate: rate.div(one.sub(power1)),
            rest1: one.sub(beta1),
            beta2: numbers.scalar("beta2")?,
            epsilon: numbers.scalar("epsilon")?,
        })
    }

    #[inline(always)]
    fn step(&self, [var, m, v]: [T; 3], gradient: T) -> [T; 3] {
        let m = m.add(gradient.sub(m).mul(self.rest1));
        let v = self.beta2.mul(v).larger(gradient.magnitude());
        let change = self.rate.mul(m.div(v.add(self.epsilon)));
        [var.sub(change), m, v]
    }
}
