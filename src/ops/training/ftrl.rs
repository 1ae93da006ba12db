//! Follow the regularized leader, proximal (McMahan et al. 2013), with the shrinkage of its second version.

use super::step::{Numbers, Rule, TrainedReal, optimizer};
use ff_op::Op;
use ff_tensor::{Result, bf16, ensure, f16};

/// Both versions.
pub static FTRL: &[&Op] = optimizer!(
    Ftrl,
    3,
    (f32, f64, f16, bf16),
    [
        "ApplyFtrl",
        "ApplyFtrlV2",
        "ResourceApplyFtrl",
        "ResourceApplyFtrlV2",
        "SparseApplyFtrl",
        "SparseApplyFtrlV2",
        "ResourceSparseApplyFtrl",
        "ResourceSparseApplyFtrlV2",
    ]
);

/// With `p = -lr_power` and `g = grad + 2 l2_shrinkage var`:
/// `accum' = accum + grad^2`, `linear += g - (accum'^p - accum^p) / lr var`,
/// `var = (clip(linear, -l1, l1) - linear) / (accum'^p / lr + 2 l2)`.
/// Dense updates make `var` zero where `linear` is within its bounds, whatever the divisor is.
/// With `multiply_linear_by_lr`, `linear` is kept `lr` times as large.
#[derive(Clone, Copy)]
struct Ftrl<T> {
    rate: T,
    l1: T,
    l2: T,
    shrinkage: Option<T>,
    power: T,
    is_root: bool,
    multiply: bool,
    sparse: bool,
}

impl<T: TrainedReal> Rule<T, 3> for Ftrl<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        let power: T = numbers.scalar("lr_power")?;
        let (rate, zero): (T, T) = (numbers.scalar("lr")?, T::default());
        let multiply = numbers.flag("multiply_linear_by_lr", false);
        // Dense updates take any numbers.
        let sparse = numbers.has("indices");
        let regularizer = |name, called| match sparse {
            true => numbers.not_negative(name, called),
            false => numbers.scalar(name),
        };
        ensure!(
            !sparse || rate > zero || (multiply && rate >= zero),
            InvalidArgument,
            "lr is not a positive scalar (or zero if multiply_linear_by_lr is set): []"
        );
        ensure!(
            !sparse || power <= zero,
            InvalidArgument,
            "lr_power is not a non-positive scalar: []"
        );
        let shrinkage = match numbers.has("l2_shrinkage") {
            true => Some(regularizer(
                "l2_shrinkage",
                "l2 shrinkage regularization strength",
            )?),
            false => None,
        };
        Ok(Ftrl {
            rate,
            l1: regularizer("l1", "l1 regularization strength")?,
            l2: regularizer("l2", "l2 regularization strength")?,
            shrinkage,
            power: T::default().sub(power),
            is_root: power == T::of(-0.5),
            multiply,
            sparse,
        })
    }

    #[inline(always)]
    fn step(&self, [var, accum, linear]: [T; 3], gradient: T) -> [T; 3] {
        let two = T::of(2.0);
        let raised = |x: T| {
            if self.is_root {
                x.root()
            } else {
                x.power(self.power)
            }
        };
        let shrunk = match self.shrinkage {
            Some(shrinkage) => gradient.add(two.mul(shrinkage).mul(var)),
            None => gradient,
        };
        let new_accum = accum.add(gradient.mul(gradient));
        let growth = raised(new_accum).sub(raised(accum));
        let (change, bound, curvature) = if self.multiply {
            (
                shrunk.mul(self.rate).sub(growth.mul(var)),
                self.l1.mul(self.rate),
                raised(new_accum).add(two.mul(self.l2).mul(self.rate)),
            )
        } else {
            (
                shrunk.sub(growth.div(self.rate).mul(var)),
                self.l1,
                raised(new_accum).div(self.rate).add(two.mul(self.l2)),
            )
        };
        let linear = linear.add(change);
        let lower = T::default().sub(bound);
        if !(self.sparse || linear > bound || linear < lower) {
            return [T::default(), new_accum, linear];
        }
        let clipped = if linear > bound {
            bound
        } else {
            linear.larger(lower)
        };
        [clipped.sub(linear).div(curvature), new_accum, linear]
    }
}

#[cfg(test)]
fn updated(linear: f64, l2: f64) -> crate::testing::Case {
    use crate::testing::{Case, numbers};
    let one = |x: f64| numbers(ff_tensor::DataType::FLOAT, &[1], &[x]);
    let number = |x: f64| numbers(ff_tensor::DataType::FLOAT, &[], &[x]);
    Case::op("ResourceApplyFtrl")
        .variable(one(0.0))
        .variable(one(0.25))
        .variable(one(linear))
        .inputs([one(0.5), number(0.1), number(9.0), number(l2), number(-0.5)])
}

crate::op_cases! {
    within_bounds: updated(0.5, f64::NAN).gives(vector(&[0.0f32])).gives(vector(&[0.5f32])).gives(vector(&[1.0f32]));
    beyond_bounds: updated(20.0, 1.0);
    no_number: updated(f64::NAN, 1.0).gives(vector(&[0.0f32])).gives(vector(&[0.5f32])).gives(vector(&[f32::NAN]));
}
