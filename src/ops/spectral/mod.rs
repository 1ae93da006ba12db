//! Discrete Fourier transforms over the last one to three axes, and spectra of sound.

mod audio;
mod gradient;
mod transform;

use ff_op::Op;

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[audio::OPS, transform::OPS];
