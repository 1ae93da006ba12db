//! Adagrad (Duchi et al. 2011), its dual averaging form, and Adadelta (Zeiler 2012).

use super::step::{Numbers, Rule, Trained, TrainedReal, optimizer};
use ff_op::Op;
use ff_tensor::{Complex64, Complex128, Result, bf16, f16};

/// Adagrad.
pub static ADAGRAD: &[&Op] = optimizer!(
    Adagrad,
    2,
    (f32, f64, f16, bf16, Complex64, Complex128),
    [
        "ApplyAdagrad",
        "ResourceApplyAdagrad",
        "SparseApplyAdagrad",
        "ResourceSparseApplyAdagrad",
    ]
);
/// Adagrad with an epsilon.
pub static ADAGRAD_V2: &[&Op] = optimizer!(
    AdagradV2,
    2,
    (f32, f64, f16, bf16, Complex64, Complex128),
    [
        "ApplyAdagradV2",
        "ResourceApplyAdagradV2",
        "SparseApplyAdagradV2",
        "ResourceSparseApplyAdagradV2",
    ]
);
/// Adagrad by dual averaging.
pub static ADAGRAD_DUAL: &[&Op] = optimizer!(
    AdagradDual,
    3,
    (f32, f64),
    [
        "ApplyAdagradDA",
        "ResourceApplyAdagradDA",
        "SparseApplyAdagradDA",
        "ResourceSparseApplyAdagradDA",
    ]
);
/// Adadelta.
pub static ADADELTA: &[&Op] = optimizer!(
    Adadelta,
    3,
    (f32, f64, f16, bf16, Complex64, Complex128),
    [
        "ApplyAdadelta",
        "ResourceApplyAdadelta",
        "SparseApplyAdadelta",
        "ResourceSparseApplyAdadelta",
    ]
);

/// `accum += grad^2; var -= lr grad / sqrt(accum)`.
#[derive(Clone, Copy)]
struct Adagrad<T> {
    rate: T,
    update_slots: bool,
}

impl<T: Trained> Adagrad<T> {
    fn of(numbers: &Numbers) -> Result<Self> {
        Ok(Adagrad {
            rate: numbers.scalar("lr")?,
            update_slots: numbers.flag("update_slots", true),
        })
    }

    #[inline(always)]
    fn accumulate(&self, accum: T, gradient: T) -> T {
        if self.update_slots {
            accum.add(gradient.mul(gradient))
        } else {
            accum
        }
    }
}

impl<T: Trained> Rule<T, 2> for Adagrad<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Adagrad::of(numbers)
    }

    #[inline(always)]
    fn step(&self, [var, accum]: [T; 2], gradient: T) -> [T; 2] {
        let accum = self.accumulate(accum, gradient);
        let change = gradient.mul(self.rate).mul(accum.inverse_root());
        [var.sub(change), accum]
    }
}

/// `accum += grad^2; var -= lr grad / (sqrt(accum) + epsilon)`.
#[derive(Clone, Copy)]
struct AdagradV2<T> {
    base: Adagrad<T>,
    epsilon: T,
}

impl<T: Trained> Rule<T, 2> for AdagradV2<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Ok(AdagradV2 {
            base: Adagrad::of(numbers)?,
            epsilon: numbers.scalar("epsilon")?,
        })
    }

    #[inline(always)]
    fn step(&self, [var, accum]: [T; 2], gradient: T) -> [T; 2] {
        let accum = self.base.accumulate(accum, gradient);
        let change = gradient.mul(self.base.rate).div(accum.root().add(self.epsilon));
        [var.sub(change), accum]
    }
}

/// With the sums `g` of gradients and `gg` of their squares and the number of steps `n`:
/// `var = -sign(g) lr max(|g| - l1 n, 0) / (l2 n lr + sqrt(gg))`.
#[derive(Clone, Copy)]
struct AdagradDual<T> {
    rate: T,
    /// `l1 n`.
    threshold: T,
    /// `l2 n lr`.
    shrinkage: T,
    /// Whether `l1` is positive.
    sparse: bool,
}

impl<T: TrainedReal> Rule<T, 3> for AdagradDual<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        let (l1, l2): (T, T) = (numbers.scalar("l1")?, numbers.scalar("l2")?);
        let steps = T::of(numbers.scalar::<i64>("global_step")? as f64);
        let rate: T = numbers.scalar("lr")?;
        Ok(AdagradDual {
            rate,
            threshold: l1.mul(steps),
            shrinkage: l2.mul(steps).mul(rate),
            sparse: l1 > T::default(),
        })
    }

    #[inline(always)]
    fn step(&self, [_, sum, squares]: [T; 3], gradient: T) -> [T; 3] {
        let sum = sum.add(gradient);
        let squares = squares.add(gradient.mul(gradient));
        let direction = if self.sparse {
            let beyond = sum.magnitude().sub(self.threshold).larger(T::default());
            sum.sign().mul(beyond)
        } else {
            sum
        };
        let scale = T::default().sub(self.rate);
        let var = scale.mul(direction).div(self.shrinkage.add(squares.root()));
        [var, sum, squares]
    }
}

/// `accum = rho accum + (1 - rho) grad^2`, `update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) grad`,
/// `var -= lr update`, `accum_update = rho accum_update + (1 - rho) update^2`.
#[derive(Clone, Copy)]
struct Adadelta<T> {
    rate: T,
    rho: T,
    epsilon: T,
}

impl<T: Trained> Rule<T, 3> for Adadelta<T> {
    fn read(numbers: &Numbers) -> Result<Self> {
        Ok(Adadelta {
            rate: numbers.scalar("lr")?,
            rho: numbers.scalar("rho")?,
            epsilon: numbers.scalar("epsilon")?,
        })
    }

    #[inline(always)]
    fn step(&self, [var, accum, accum_update]: [T; 3], gradient: T) -> [T; 3] {
        let rest = T::one().sub(self.rho);
        let accum = accum.mul(self.rho).add(gradient.mul(gradient).mul(rest));
        let scale = accum_update
            .add(self.epsilon)
            .root()
            .mul(accum.add(self.epsilon).inverse_root());
        let update = scale.mul(gradient);
        let accum_update = accum_update.mul(self.rho).add(update.mul(update).mul(rest));
        [var.sub(update.mul(self.rate)), accum, accum_update]
    }
}
