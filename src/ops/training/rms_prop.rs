//! RMSProp (Hinton) with momentum, plain and centered (Graves 2013).

use super::step::{Numbers, Rule, Trained, optimizer};
use ff_op::Op;
use ff_tensor::{Complex64, Complex128, Result, bf16, f16};

/// Plain.
pub static PLAIN: &[&Op] = optimizer!(
    RmsProp,
    3,
    (f32, f64, f16, bf16, Complex64, Complex128),
    [
        "ApplyRMSProp",
        "ResourceApplyRMSProp",
        "SparseApplyRMSProp",
        "ResourceSparseApplyRMSProp",
    ]
);
/// Centered.
pub static CENTERED: &[&Op] = optimizer!(
    Centered,
    4,
    (f32, f64, f16, bf16, Complex64, Complex128),
    [
        "ApplyCenteredRMSProp",
        "ResourceApplyCenteredRMSProp",
        "SparseApplyCenteredRMSProp",
        "ResourceSparseApplyCenteredRMSProp",
    ]
);

/// `ms += (grad^2 - ms)(1 - rho)`, `mom = momentum mom + lr grad / sqrt(ms + epsilon)`, `var -= mom`.
#[derive(Clone, Copy)]
struct RmsProp<T> {
    rate: T,
    rest: T,
    momentum: T,
    epsilon: T,
}

impl<T: Trained> RmsProp<T> {
    fn of(numbers: &Numbers) -> Result<Self> {
        let rho: T = numbers.scalar("rho")?;
        Ok(RmsProp {
            rate: numbers.scalar("lr")?,
            rest: T::one().sub(rho),
            momentum: numbers.scalar("momentum")?,
            epsilon: numbers.scalar("epsilon")?,
        })
    }

    #[inline(always)]
    fn mean_square(&self, ms: T, gradient: T) -> T {
        ms.add(gradient.mul(gradient).sub(ms).mul(self.rest))
    }

    /// The new momentum, where `variance` is what the gradient is divided by the root of.
    #[inline(always)]
    fn momentum(&self, mom: T, gradient: T, variance: T) -> T {
        let fresh = gradient.mul(self.rate).mul(variance.inverse_root());
        mom.mul(self.momentum).add(fresh)
    }
}

impl<T: Trained> Rule<T, 3> for RmsProp<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        RmsProp::of(numbers)
    }

    #[inline(always)]
    fn step(&self, [var, ms, mom]: [T; 3], gradient: T) -> [T; 3] {
        let ms = self.mean_square(ms, gradient);
        let mom = self.momentum(mom, gradient, ms.add(self.epsilon));
        [var.sub(mom), ms, mom]
    }
}

/// As plain, with the mean `mg` of the gradients: `ms - mg^2` in the place of `ms`.
#[derive(Clone, Copy)]
struct Centered<T>(RmsProp<T>);

impl<T: Trained> Rule<T, 4> for Centered<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        RmsProp::of(numbers).map(Centered)
    }

    #[inline(always)]
    fn step(&self, [var, mg, ms, mom]: [T; 4], gradient: T) -> [T; 4] {
        let ms = self.0.mean_square(ms, gradient);
        let mg = mg.add(gradient.sub(mg).mul(self.0.rest));
        let variance = ms.sub(mg.mul(mg)).add(self.0.epsilon);
        let mom = self.0.momentum(mom, gradient, variance);
        [var.sub(mom), mg, ms, mom]
    }
}
