//! `cholesky` and `triangular-solve`: unblocked, in double precision, matrix by matrix.

use super::matrix::{Preparation, finish};
use super::operands;
use crate::attributes::{TransposeKind, TriangularSolveOptions};
use crate::evaluator::code::{Kernel, StepContext};
use crate::module::{Computation, Instruction};
use crate::shape::ArrayShape;
use ff_tensor::{Complex128, DataType, Result, Tensor};
use std::ops::{AddAssign, Div, Mul, Sub, SubAssign};

/// A number that matrices are computed in.
trait Number:
    ff_tensor::Element
    + Default
    + Mul<Output = Self>
    + Sub<Output = Self>
    + Div<Output = Self>
    + SubAssign
    + AddAssign
{
    fn conjugate(self) -> Self;
    /// The square root of a positive real number; NaN for any other.
    fn positive_root(self) -> Self;
}

impl Number for f64 {
    fn conjugate(self) -> f64 {
        self
    }
    fn positive_root(self) -> f64 {
        if self > 0.0 { self.sqrt() } else { f64::NAN }
    }
}

impl Number for Complex128 {
    fn conjugate(self) -> Complex128 {
        self.conj()
    }
    fn positive_root(self) -> Complex128 {
        Complex128::new(self.re.positive_root(), 0.0)
    }
}

fn computed_type(dtype: DataType) -> DataType {
    if dtype.is_complex() {
        DataType::COMPLEX128
    } else {
        DataType::DOUBLE
    }
}

/// The operand in double precision, as memory of its own.
fn prepare(shape: &ArrayShape) -> Result<Preparation> {
    let axes: Vec<usize> = (0..shape.rank()).collect();
    Preparation::new(shape, &axes, computed_type(shape.dtype))
}

struct Cholesky {
    prepare: Preparation,
    size: usize,
    lower: bool,
    shape: ArrayShape,
}

/// The kernel of a Cholesky factorization.
pub(super) fn cholesky(
    computation: &Computation,
    instruction: &Instruction,
    lower: bool,
) -> Result<Box<dyn Kernel>> {
    let shape = operands(computation, instruction)?.swap_remove(0);
    Ok(Box::new(Cholesky {
        prepare: prepare(&shape)?,
        size: shape.dims[shape.rank() - 1] as usize,
        lower,
        shape,
    }))
}

/// Replaces a Hermitian matrix by its factor; the other triangle becomes zero.
fn factor<T: Number>(a: &mut [T], n: usize, lower: bool) {
    if !lower {
        adjoint_in_place(a, n);
    }
    for j in 0..n {
        for i in j..n {
            let mut sum = a[i * n + j];
            for k in 0..j {
                sum -= a[i * n + k] * a[j * n + k].conjugate();
            }
            a[i * n + j] = if i == j {
                sum.positive_root()
            } else {
                sum / a[j * n + j]
            };
        }
    }
    for i in 0..n {
        a[i * n + i + 1..(i + 1) * n].fill(T::default());
    }
    if !lower {
        adjoint_in_place(a, n);
    }
}

fn adjoint_in_place<T: Number>(a: &mut [T], n: usize) {
    for i in 0..n {
        for j in 0..i {
            a.swap(i * n + j, j * n + i);
        }
    }
    a.iter_mut().for_each(|value| *value = value.conjugate());
}

impl Kernel for Cholesky {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let mut matrices = self.prepare.run(step, 0)?;
        let elements = self.size * self.size;
        if elements > 0 {
            match computed_type(self.shape.dtype) {
                DataType::DOUBLE => {
                    let all = matrices.as_mut_slice::<f64>()?;
                    all.chunks_exact_mut(elements)
                        .for_each(|a| factor(a, self.size, self.lower));
                }
                _ => {
                    let all = matrices.as_mut_slice::<Complex128>()?;
                    all.chunks_exact_mut(elements)
                        .for_each(|a| factor(a, self.size, self.lower));
                }
            }
        }
        let shape = step.output(0).shape.clone();
        let result = finish(step, matrices, self.shape.dtype, &shape)?;
        step.set(0, result);
        Ok(())
    }
}

struct TriangularSolve {
    matrix: Preparation,
    right: Preparation,
    options: TriangularSolveOptions,
    size: usize,
    rows: usize,
    columns: usize,
    dtype: DataType,
}

/// The kernel of a triangular solve.
pub(super) fn triangular_solve(
    computation: &Computation,
    instruction: &Instruction,
    options: TriangularSolveOptions,
) -> Result<Box<dyn Kernel>> {
    let shapes = operands(computation, instruction)?;
    let (a, b) = (&shapes[0], &shapes[1]);
    Ok(Box::new(TriangularSolve {
        matrix: prepare(a)?,
        right: prepare(b)?,
        options,
        size: a.dims[a.rank() - 1] as usize,
        rows: b.dims[b.rank() - 2] as usize,
        columns: b.dims[b.rank() - 1] as usize,
        dtype: b.dtype,
    }))
}

impl TriangularSolve {
    /// Element (i, j) of the matrix as it is applied from the left.
    fn element<T: Number>(&self, a: &[T], i: usize, j: usize) -> T {
        let n = self.size;
        // From the right, `x op(a) = b` is the transpose of a system from the left.
        let transposed = (self.options.transpose != TransposeKind::None) == self.options.left_side;
        let value = if transposed { a[j * n + i] } else { a[i * n + j] };
        if self.options.transpose == TransposeKind::Adjoint {
            value.conjugate()
        } else {
            value
        }
    }

    fn solve<T: Number>(&self, a: &[T], b: &mut [T]) {
        let (n, options) = (self.size, &self.options);
        let transposed = (options.transpose != TransposeKind::None) == options.left_side;
        let forward = options.lower != transposed;
        let systems = if options.left_side {
            self.columns
        } else {
            self.rows
        };
        // Unknown i of system s.
        let place = |i: usize, s: usize| {
            if options.left_side {
                i * self.columns + s
            } else {
                s * self.columns + i
            }
        };
        for s in 0..systems {
            for turn in 0..n {
                let i = if forward { turn } else { n - 1 - turn };
                let mut sum = b[place(i, s)];
                let known = if forward { 0..i } else { i + 1..n };
                for j in known {
                    sum -= self.element(a, i, j) * b[place(j, s)];
                }
                b[place(i, s)] = if options.unit_diagonal {
                    sum
                } else {
                    sum / self.element(a, i, i)
                };
            }
        }
    }

    fn solve_all<T: Number>(&self, a: &Tensor, b: &mut Tensor) -> Result<()> {
        let matrices = a.as_slice::<T>()?.chunks_exact((self.size * self.size).max(1));
        let rights = b
            .as_mut_slice::<T>()?
            .chunks_exact_mut((self.rows * self.columns).max(1));
        matrices.zip(rights).for_each(|(a, b)| self.solve(a, b));
        Ok(())
    }
}

impl Kernel for TriangularSolve {
    fn run(&self, step: &mut StepContext) -> Result<()> {
        let a = self.matrix.run(step, 0)?;
        let mut b = self.right.run(step, 1)?;
        match computed_type(self.dtype) {
            DataType::DOUBLE => self.solve_all::<f64>(&a, &mut b)?,
            _ => self.solve_all::<Complex128>(&a, &mut b)?,
        }
        let shape = step.output(0).shape.clone();
        let result = finish(step, b, self.dtype, &shape)?;
        step.set(0, result);
        Ok(())
    }
}
