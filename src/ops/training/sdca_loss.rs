//! The losses of dual coordinate ascent (Shalev-Shwartz and Zhang, 2013): how a dual variable is updated, what the primal
//! and the dual loss are, and the primal's slope.

use ff_tensor::{Result, bail, ensure};

/// A loss by its name.
#[derive(Clone, Copy, PartialEq)]
pub enum Loss {
    /// Of the logarithm of odds.
    Logistic,
    /// Half the square of the error.
    Squared,
    /// Of margins below one.
    Hinge,
    /// As `Hinge`, with a parabola instead of the corner.
    SmoothHinge,
    /// Of counts.
    Poisson,
}

/// An example as the losses see it.
#[derive(Clone, Copy)]
pub struct Point {
    /// Its label, as [`Loss::label`] gives it.
    pub label: f64,
    /// Its weight.
    pub weight: f64,
    /// Its dual variable.
    pub dual: f64,
}

const NEWTON_STEPS: usize = 10;

impl Loss {
    /// From the attribute `loss_type`.
    pub fn named(name: &str) -> Result<Loss> {
        Ok(match name {
            "logistic_loss" => Loss::Logistic,
            "squared_loss" => Loss::Squared,
            "hinge_loss" => Loss::Hinge,
            "smooth_hinge_loss" => Loss::SmoothHinge,
            "poisson_loss" => Loss::Poisson,
            other => bail!(InvalidArgument, "Unsupported loss type: {other}"),
        })
    }

    /// The label that the loss computes with: -1 and 1 for classes 0 and 1. INVALID_ARGUMENT for other classes.
    pub fn label(self, label: f32) -> Result<f32> {
        match self {
            Loss::Squared => Ok(label),
            Loss::Poisson => {
                ensure!(
                    label >= 0.0 || label.is_nan(),
                    InvalidArgument,
                    "Only non-negative labels can be used with the Poisson log loss. Found example with label: {label}"
                );
                Ok(label)
            }
            _ if label == 0.0 => Ok(-1.0),
            _ if label == 1.0 => Ok(1.0),
            _ => bail!(
                InvalidArgument,
                "Only labels of 0.0 or 1.0 are supported right now. Found example with label: {label}"
            ),
        }
    }

    /// The dual variable that is best while the others stay, for a prediction and the example's weighted norm, times the
    /// number of partitions.
    pub fn updated_dual(self, point: Point, prediction: f64, norm: f64) -> f64 {
        let Point { label, weight, dual } = point;
        let scale = norm * weight;
        match self {
            Loss::Squared => dual + (label - dual - prediction) / (1.0 + scale),
            Loss::Hinge => into_range(dual + (label - prediction) / scale, label),
            Loss::SmoothHinge => into_range(dual + (label - prediction - dual) / (scale + 1.0), label),
            Loss::Logistic => {
                let mut x = 0.0f64;
                for _ in 0..NEWTON_STEPS {
                    let t = x.tanh();
                    let value = -2.0 * label * x - prediction - scale * (0.5 * (1.0 + t) / label - dual);
                    let slope = -2.0 * label - scale * (1.0 - t * t) * 0.5 / label;
                    x -= value / slope;
                }
                0.5 * (1.0 + x.tanh()) / label
            }
            Loss::Poisson => {
                let rest = label - dual;
                let mut x = if rest > 0.0 { rest.ln() } else { 0.0 };
                for _ in 0..NEWTON_STEPS {
                    let e = x.exp();
                    x -= (x - prediction - scale * (rest - e)) / (1.0 + scale * e);
                }
                label - x.exp()
            }
        }
    }

    /// The conjugate at the dual variable.
    pub fn dual_loss(self, Point { label, weight, dual }: Point) -> f64 {
        let margin = dual * label;
        match self {
            Loss::Squared => dual * (0.5 * dual - label) * weight,
            Loss::Logistic => {
                let term = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
                (term(margin) + term(1.0 - margin)) * weight
            }
            Loss::Hinge | Loss::SmoothHinge if !(0.0..=1.0).contains(&margin) => f64::MAX,
            Loss::Hinge => -margin * weight,
            Loss::SmoothHinge => (-margin + 0.5 * dual * dual) * weight,
            Loss::Poisson => match label - dual {
                0.0 => 0.0,
                rest if rest < 0.0 => f64::MAX,
                rest => rest * (rest.ln() - 1.0) * weight,
            },
        }
    }

    /// The loss of a prediction.
    pub fn primal_loss(self, Point { label, weight, .. }: Point, prediction: f64) -> f64 {
        let margin = label * prediction;
        match self {
            Loss::Squared => (prediction - label) * (prediction - label) * weight * 0.5,
            Loss::Logistic if margin > 0.0 => (-margin).exp().ln_1p() * weight,
            Loss::Logistic => (margin.exp().ln_1p() - margin) * weight,
            Loss::Hinge => (1.0 - margin).max(0.0) * weight,
            Loss::SmoothHinge if margin >= 1.0 => 0.0,
            Loss::SmoothHinge if margin <= 0.0 => (0.5 - margin) * weight,
            Loss::SmoothHinge => (1.0 - margin) * (1.0 - margin) * weight * 0.5,
            Loss::Poisson => (prediction.exp() - prediction * label) * weight,
        }
    }

    /// The slope of the loss of a prediction, of weight one.
    pub fn slope(self, label: f64, prediction: f64) -> f64 {
        let margin = label * prediction;
        match self {
            Loss::Squared => prediction - label,
            Loss::Logistic if margin > 0.0 => -label * (-margin).exp() / (1.0 + (-margin).exp()),
            Loss::Logistic => -label / (1.0 + margin.exp()),
            Loss::Hinge if margin < 1.0 => -label,
            Loss::SmoothHinge if margin <= 0.0 => -label,
            Loss::SmoothHinge if margin < 1.0 => prediction - label,
            Loss::Hinge | Loss::SmoothHinge => 0.0,
            Loss::Poisson => prediction.exp() - label,
        }
    }

    /// How steep the slope can get, as its inverse.
    pub fn smoothness(self) -> f64 {
        match self {
            Loss::Logistic => 4.0,
            Loss::Hinge => 0.0,
            _ => 1.0,
        }
    }
}

/// The nearest dual variable whose product with the label is from 0 to 1.
fn into_range(dual: f64, label: f64) -> f64 {
    match label * dual {
        product if product < 0.0 => 0.0,
        product if product > 1.0 => label,
        _ => dual,
    }
}
