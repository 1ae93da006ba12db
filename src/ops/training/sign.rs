//! AddSign and PowerSign (Bello et al. 2017): steps that are larger where gradient and momentum agree in sign.

use super::step::{Numbers, Rule, TrainedReal, optimizer};
use ff_op::Op;
use ff_tensor::{Result, bf16, f16};

/// AddSign.
pub static ADD_SIGN: &[&Op] = optimizer!(
    AddSign,
    2,
    (f32, f64, f16, bf16),
    ["ApplyAddSign", "ResourceApplyAddSign"]
);
/// PowerSign.
pub static POWER_SIGN: &[&Op] = optimizer!(
    PowerSign,
    2,
    (f32, f64, f16, bf16),
    ["ApplyPowerSign", "ResourceApplyPowerSign"]
);

/// What both share: `m = beta m + (1 - beta) grad`.
#[derive(Clone, Copy)]
struct Signs<T> {
    rate: T,
    decay: T,
    beta: T,
}

impl<T: TrainedReal> Signs<T> {
    fn of(numbers: &Numbers) -> Result<Self> {
        Ok(Signs {
            rate: numbers.scalar("lr")?,
            decay: numbers.scalar("sign_decay")?,
            beta: numbers.scalar("beta")?,
        })
    }

    /// The new momentum, and `sign_decay` with the sign of its agreement with the gradient.
    #[inline(always)]
    fn step(&self, m: T, gradient: T) -> (T, T) {
        let m = m.mul(self.beta).add(gradient.mul(T::one().sub(self.beta)));
        (m, self.decay.mul(gradient.sign().mul(m.sign())))
    }
}

/// `var -= lr (alpha + sign_decay sign(grad) sign(m)) grad`.
#[derive(Clone, Copy)]
struct AddSign<T> {
    signs: Signs<T>,
    alpha: T,
}

impl<T: TrainedReal> Rule<T, 2> for AddSign<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Ok(AddSign {
            signs: Signs::of(numbers)?,
            alpha: numbers.scalar("alpha")?,
        })
    }

    #[inline(always)]
    fn step(&self, [var, m]: [T; 2], gradient: T) -> [T; 2] {
        let (m, agreement) = self.signs.step(m, gradient);
        let scale = self.signs.rate.mul(self.alpha.add(agreement));
        [var.sub(scale.mul(gradient)), m]
    }
}

/// `var -= lr exp(logbase sign_decay sign(grad) sign(m)) grad`.
#[derive(Clone, Copy)]
struct PowerSign<T> {
    signs: Signs<T>,
    logbase: T,
}

impl<T: TrainedReal> Rule<T, 2> for PowerSign<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Ok(PowerSign {
            signs: Signs::of(numbers)?,
            logbase: numbers.scalar("logbase")?,
        })
    }

    #[inline(always)]
    fn step(&self, [var, m]: [T; 2], gradient: T) -> [T; 2] {
        let (m, agreement) = self.signs.step(m, gradient);
        let scale = self.signs.rate.mul(self.logbase.mul(agreement).exponential());
        [var.sub(scale.mul(gradient)), m]
    }
}
