//! Optimizer steps: ops that change variables by a gradient.
//!
//! Each optimizer is one [`step::Rule`]: what happens to one element. Its forms (dense and sparse, resource and
//! reference variables) are rows of one table and share everything else.

mod adagrad;
mod adam;
mod descent;
mod ftrl;
mod proximal;
mod rms_prop;
mod sdca;
mod sdca_loss;
mod sign;
mod slots;
mod step;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    adagrad::ADADELTA,
    adagrad::ADAGRAD,
    adagrad::ADAGRAD_DUAL,
    adagrad::ADAGRAD_V2,
    adam::ADAM,
    adam::ADA_MAX,
    adam::AMSGRAD,
    descent::GRADIENT_DESCENT,
    descent::KERAS_MOMENTUM,
    descent::MOMENTUM,
    ftrl::FTRL,
    proximal::ADAGRAD,
    proximal::GRADIENT_DESCENT,
    rms_prop::CENTERED,
    rms_prop::PLAIN,
    sdca::OPS,
    sign::ADD_SIGN,
    sign::POWER_SIGN,
];

#[cfg(test)]
mod tests;
