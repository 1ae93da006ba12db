//! `fft`: transforms of any length over up to three axes, in double precision.
//!
//! Powers of two by radix-2 steps, other lengths as a convolution of the next power of two (Bluestein).

use super::matrix::{Preparation, finish};
use super::operands;
use crate::attributes::FftKind;
use crate::evaluator::code::{Kernel, StepContext};
use crate::module::{Computation, Instruction};
use crate::shape::Dims;
use ff_tensor::{Complex128, DataType, Result, Shape, Tensor};

struct Fft {
    prepare: Preparation,
    kind: FftKind,
    lengths: Dims,
    /// Extent of the last axis of operand and result.
    last_in: usize,
    last_out: usize,
    dtype: DataType,
}

/// The kernel of a Fourier transform.
pub(super) fn kernel(
    computation: &Computation,
    instruction: &Instruction,
    kind: FftKind,
    lengths: &[i64],
) -> Result<Box<dyn Kernel>> {
    let operand = operands(computation, instruction)?.swap_remove(0);
    let result = instruction.array_shape()?;
    let axes: Vec<usize> = (0..operand.rank()).collect();
    Ok(Box::new(Fft {
        prepare: Preparation::new(&operand, &axes, DataType::COMPLEX128)?,
        kind,
        lengths: Dims::from_slice(lengths),
        last_in: operand.dims[operand.rank() - 1] as usize,
        last_out: result.dims[result.rank() - 1] as usize,
        dtype: result.dtype,
    }))
}

fn angle(k: usize, n: usize, inverse: bool) -> Complex128 {
    let turn = std::f64::consts::TAU * (k as f64) / (n as f64);
    let (sin, cos) = turn.sin_cos();
    Complex128::new(cos, if inverse { sin } else { -sin })
}

/// The transform of a power of two, in place, without scaling.
fn radix_2(x: &mut [Complex128], inverse: bool) {
    let n = x.len();
    let bits = n.trailing_zeros();
    for i in 0..n {
        let j = if bits == 0 {
            0
        } else {
            i.reverse_bits() >> (usize::BITS - bits)
        };
        if i < j {
            x.swap(i, j);
        }
    }
    let roots: Vec<Complex128> = (0..n / 2).map(|k| angle(k, n, inverse)).collect();
    let mut half = 1;
    while half < n {
        for start in (0..n).step_by(2 * half) {
            for k in 0..half {
                let odd = x[start + half + k] * roots[k * (n / (2 * half))];
                let even = x[start + k];
                x[start + k] = even + odd;
                x[start + half + k] = even - odd;
            }
        }
        half *= 2;
    }
}

/// The transform of any length, in place, without scaling.
fn transform(x: &mut [Complex128], inverse: bool) {
    let n = x.len();
    if n <= 1 {
        return;
    }
    if n.is_power_of_two() {
        return radix_2(x, inverse);
    }
    let zero = Complex128::new(0.0, 0.0);
    let chirp: Vec<Complex128> = (0..n).map(|k| angle(k * k % (2 * n), 2 * n, inverse)).collect();
    let size = (2 * n - 1).next_power_of_two();
    let mut a = vec![zero; size];
    let mut b = vec![zero; size];
    for k in 0..n {
        a[k] = x[k] * chirp[k];
        b[k] = chirp[k].conj();
        if k > 0 {
            b[size - k] = b[k];
        }
    }
    radix_2(&mut a, false);
    radix_2(&mut b, false);
    a.iter_mut().zip(&b).for_each(|(a, b)| *a *= b);
    radix_2(&mut a, true);
    let scale = 1.0 / size as f64;
    for k in 0..n {
        x[k] = a[k] * chirp[k] * scale;
    }
}

impl Fft {
    /// Transforms an array of the full lengths along all transformed axes.
    fn transform_all(&self, x: &mut [Complex128], inverse: bool) {
        let total: usize = self.lengths.iter().product::<i64>() as usize;
        if total == 0 {
            return;
        }
        let mut line = Vec::new();
        for block in x.chunks_exact_mut(total) {
            let mut inner = 1;
            for &length in self.lengths.iter().rev() {
                let length = length as usize;
                for first in 0..total / length {
                    let start = first / inner * inner * length + first % inner;
                    line.clear();
                    line.extend((0..length).map(|k| block[start + k * inner]));
                    transform(&mut line, inverse);
                    line.iter()
                        .enumerate()
                        .for_each(|(k, &value)| block[start + k * inner] = value);
                }
                inner *= length;
            }
            if inverse {
                block.iter_mut().for_each(|value| *value /= total as f64);
            }
        }
    }

    /// Fills up the half of a spectrum that a real array makes superfluous.
    fn complete(&self, half: &[Complex128]) -> Vec<Complex128> {
        let length = self.lengths[self.lengths.len() - 1] as usize;
        let rows = half.len().checked_div(self.last_in).unwrap_or(0);
        let outer: Dims = Dims::from_slice(&self.lengths[..self.lengths.len() - 1]);
        let rows_in_block: usize = outer.iter().product::<i64>() as usize;
        let mut full = vec![Complex128::new(0.0, 0.0); rows * length];
        for row in 0..rows {
            // The row at the negative frequencies of the outer axes.
            let (block, within) = (row / rows_in_block * rows_in_block, row % rows_in_block);
            let mut mirrored = super::nd::unflatten(within, &outer);
            for (index, &extent) in mirrored.iter_mut().zip(&outer) {
                *index = (extent - *index) % extent;
            }
            let mirror = block
                + mirrored
                    .iter()
                    .zip(&outer)
                    .fold(0, |place, (index, extent)| place * extent + index) as usize;
            for k in 0..length {
                full[row * length + k] = if k < self.last_in {
                    half[row * self.last_in + k]
                } else {
                    half[mirror * self.last_in + length - k].conj()
                };
            }
        }
        full
    }
}

impl Kernel for Fft {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let mut prepared = self.prepare.run(step, 0)?;
        let operand = prepared.as_mut_slice::<Complex128>()?;
        let inverse = matches!(self.kind, FftKind::Ifft | FftKind::Irfft);
        let mut all = if self.kind == FftKind::Irfft {
            self.complete(operand)
        } else {
            operand.to_vec()
        };
        self.transform_all(&mut all, inverse);
        if self.kind == FftKind::Rfft && self.last_in > 0 {
            all = all
                .chunks_exact(self.last_in)
                .flat_map(|row| row[..self.last_out].to_vec())
                .collect();
        }
        let shape = step.output(0).shape.clone();
        let made = if self.dtype.is_complex() {
            Tensor::from_slice(Shape::vector(all.len()), &all)?
        } else {
            let real: Vec<f64> = all.iter().map(|value| value.re).collect();
            Tensor::from_slice(Shape::vector(real.len()), &real)?
        };
        let result = finish(step, made, self.dtype, &shape)?;
        step.set(0, result);
        Ok(())
    }
}
