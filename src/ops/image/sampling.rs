//! Where the pixels of a resized image come from: scales, linear and cubic weights, along one axis.
//!
//! All numbers are `f32`, in the order of operations of the reference, so that pixels on an edge fall on its side.

use crate::wide::{collected, try_collected};
use ff_tensor::Result;

/// How an axis is scaled.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Input extent over output extent.
    pub factor: f32,
    /// Whether pixels are sampled at their centres.
    pub half_pixel: bool,
    /// Whether the centres of corner pixels are kept in place.
    pub align_corners: bool,
}

impl Scale {
    /// The scale from `input` to `output` pixels.
    pub fn new(input: usize, output: usize, align_corners: bool, half_pixel: bool) -> Scale {
        let factor = if align_corners && output > 1 {
            (input as f32 - 1.0) / (output as f32 - 1.0)
        } else {
            input as f32 / output as f32
        };
        Scale {
            factor,
            half_pixel,
            align_corners,
        }
    }

    /// Where output pixel `x` lies in the input.
    pub fn source(&self, x: usize) -> f32 {
        if self.half_pixel {
            (x as f32 + 0.5) * self.factor - 0.5
        } else {
            x as f32 * self.factor
        }
    }

    /// The input pixel nearest to output pixel `x`.
    pub fn nearest(&self, x: usize, input: usize) -> usize {
        let x = if self.half_pixel { x as f32 + 0.5 } else { x as f32 } * self.factor;
        let x = if self.align_corners { x.round() } else { x.floor() };
        (x.max(0.0) as usize).min(input - 1)
    }
}

/// Two neighbours and the weight of the second.
#[derive(Clone, Copy, Default)]
pub struct Linear {
    /// The pixel at or before.
    pub lower: usize,
    /// The pixel after.
    pub upper: usize,
    /// Weight of `upper`.
    pub weight: f32,
}

/// The neighbours of each of `output` pixels among `input` pixels.
pub fn linear(scale: Scale, input: usize, output: usize) -> Result<Vec<Linear>> {
    let neighbours = |x| {
        let at = scale.source(x);
        let floor = at.floor();
        let upper = (at.ceil() as usize).min(input - 1);
        Linear {
            lower: (floor.max(0.0) as usize).min(upper),
            upper,
            weight: at - floor,
        }
    };
    collected((0..output).map(neighbours))
}

/// Four neighbours and their weights.
#[derive(Clone, Copy, Default)]
pub struct Cubic {
    /// Pixels.
    pub index: [usize; 4],
    /// Weights.
    pub weight: [f32; 4],
}

const TABLE: usize = 1024;

/// Weights of the two near (`2 i`) and far (`2 i + 1`) neighbours at distance `i / 1024`, for the parameter `a`.
fn table(a: f64) -> Vec<f32> {
    let mut table = Vec::with_capacity(2 * TABLE + 2);
    for i in 0..=TABLE {
        let x = f64::from((i as f64 / TABLE as f64) as f32);
        table.push((((a + 2.0) * x - (a + 3.0)) * x * x + 1.0) as f32);
        let x = f64::from(x as f32 + 1.0);
        table.push((((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a) as f32);
    }
    table
}

/// The neighbours of each of `output` pixels among `input` pixels. With half-pixel centres the kernel is Keys's
/// (`a = -0.5`) and outside pixels have no weight; else `a = -0.75` and the edge is repeated.
pub fn cubic(scale: Scale, input: usize, output: usize) -> Result<Vec<Cubic>> {
    let keys = scale.half_pixel;
    let table = table(if keys { -0.5 } else { -0.75 });
    let bound = |at: i64| at.clamp(0, input as i64 - 1);
    let neighbours = |x| {
        let at = scale.source(x);
        let floor = at.floor() as i64;
        let delta = at - floor as f32;
        let offset = ((delta * TABLE as f32).round_ties_even() as usize).min(TABLE);
        let near = TABLE - offset;
        let mut weight = [
            table[offset * 2 + 1],
            table[offset * 2],
            table[near * 2],
            table[near * 2 + 1],
        ];
        let places = [floor - 1, floor, floor + 1, floor + 2];
        if keys {
            for (weight, &place) in weight.iter_mut().zip(&places) {
                if bound(place) != place {
                    *weight = 0.0;
                }
            }
            let sum: f32 = weight.iter().sum();
            if sum.abs() >= 1000.0 * f32::MIN_POSITIVE {
                weight = weight.map(|weight| weight * (1.0 / sum));
            }
        }
        Cubic {
            index: places.map(|place| bound(place) as usize),
            weight,
        }
    };
    collected((0..output).map(neighbours))
}

/// The share of input pixels in one output pixel.
pub struct Area {
    /// First input pixel.
    pub start: i64,
    /// Share of each pixel from `start` on.
    pub shares: Vec<f32>,
}

/// The shares of each of `output` pixels.
pub fn area(factor: f32, output: usize) -> Result<Vec<Area>> {
    let shares = |x| {
        let (low, high) = (x as f32 * factor, (x as f32 + 1.0) * factor);
        let (start, end) = (low.floor() as i64, high.ceil() as i64);
        let share = |pixel: i64| {
            let (left, right) = (pixel as f32, (pixel + 1) as f32);
            match (left < low, right > high) {
                (true, true) => factor,
                (true, false) => right - low,
                (false, true) => high - left,
                (false, false) => 1.0,
            }
        };
        Ok(Area {
            start,
            shares: collected((0..(end - start).max(0) as usize).map(|at| share(start + at as i64)))?,
        })
    };
    try_collected((0..output).map(shares))
}
