//! The matrix and its elements.

use crate::OutOfMemory;
use num_complex::Complex64;
use std::ops::{Add, AddAssign, Div, Index, IndexMut, Mul, MulAssign, Neg, Sub, SubAssign};

/// A number that matrices are computed in: `f64` or a complex number of two.
pub trait Scalar:
    Copy
    + Default
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// A real number.
    fn real(value: f64) -> Self;
    /// The complex conjugate.
    fn conj(self) -> Self;
    /// The real part.
    fn re(self) -> f64;
    /// The imaginary part.
    fn im(self) -> f64;
    /// The absolute value.
    fn size(self) -> f64;
    /// The square of the absolute value.
    fn square_size(self) -> f64 {
        self.re() * self.re() + self.im() * self.im()
    }
    /// 1.
    fn one() -> Self {
        Self::real(1.0)
    }
}

impl Scalar for f64 {
    fn real(value: f64) -> Self {
        value
    }
    fn conj(self) -> Self {
        self
    }
    fn re(self) -> f64 {
        self
    }
    fn im(self) -> f64 {
        0.0
    }
    fn size(self) -> f64 {
        self.abs()
    }
}

impl Scalar for Complex64 {
    fn real(value: f64) -> Self {
        Complex64::new(value, 0.0)
    }
    fn conj(self) -> Self {
        Complex64::conj(&self)
    }
    fn re(self) -> f64 {
        self.re
    }
    fn im(self) -> f64 {
        self.im
    }
    fn size(self) -> f64 {
        self.norm()
    }
}

/// What a method that may not converge, or not apply, gives; none then.
pub type Attempt<T> = Result<Option<T>, OutOfMemory>;

/// A dense matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// The elements, row by row.
    pub data: Vec<T>,
}

impl<T: Scalar> Matrix<T> {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Result<Matrix<T>, OutOfMemory> {
        let count = rows.saturating_mul(columns);
        let bytes = count.saturating_mul(size_of::<T>());
        let mut data = Vec::new();
        data.try_reserve_exact(count).map_err(|_| OutOfMemory { bytes })?;
        data.resize(count, T::default());
        Ok(Matrix { rows, columns, data })
    }

    /// The identity, or its first columns or rows.
    pub fn identity(rows: usize, columns: usize) -> Result<Matrix<T>, OutOfMemory> {
        let mut matrix = Matrix::zeros(rows, columns)?;
        for i in 0..rows.min(columns) {
            matrix[(i, i)] = T::one();
        }
        Ok(matrix)
    }

    /// A matrix with the same elements.
    pub fn copy(&self) -> Result<Matrix<T>, OutOfMemory> {
        let mut copy = Matrix::zeros(self.rows, self.columns)?;
        copy.data.copy_from_slice(&self.data);
        Ok(copy)
    }

    /// The conjugate transpose.
    pub fn adjoint(&self) -> Result<Matrix<T>, OutOfMemory> {
        let mut result = Matrix::zeros(self.columns, self.rows)?;
        for i in 0..self.rows {
            for j in 0..self.columns {
                result[(j, i)] = self[(i, j)].conj();
            }
        }
        Ok(result)
    }

    /// The product with another matrix.
    pub fn times(&self, other: &Matrix<T>) -> Result<Matrix<T>, OutOfMemory> {
        assert_eq!(self.columns, other.rows);
        let mut result = Matrix::zeros(self.rows, other.columns)?;
        for i in 0..self.rows {
            for k in 0..self.columns {
                let factor = self[(i, k)];
                let (target, source) = (result.row_mut(i), other.row(k));
                target
                    .iter_mut()
                    .zip(source)
                    .for_each(|(sum, &value)| *sum += factor * value);
            }
        }
        Ok(result)
    }

    /// Adds a multiple of another matrix.
    pub fn add_scaled(&mut self, factor: T, other: &Matrix<T>) {
        self.data
            .iter_mut()
            .zip(&other.data)
            .for_each(|(sum, &value)| *sum += factor * value);
    }

    /// Multiplies all elements.
    pub fn scale(&mut self, factor: T) {
        self.data.iter_mut().for_each(|value| *value *= factor);
    }

    /// A row.
    pub fn row(&self, row: usize) -> &[T] {
        &self.data[row * self.columns..(row + 1) * self.columns]
    }

    /// A row.
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        &mut self.data[row * self.columns..(row + 1) * self.columns]
    }

    /// Exchanges two rows.
    pub fn swap_rows(&mut self, a: usize, b: usize) {
        for column in 0..self.columns {
            self.data
                .swap(a * self.columns + column, b * self.columns + column);
        }
    }

    /// The first columns.
    pub fn first_columns(&self, count: usize) -> Result<Matrix<T>, OutOfMemory> {
        let mut result = Matrix::zeros(self.rows, count)?;
        for row in 0..self.rows {
            result.row_mut(row).copy_from_slice(&self.row(row)[..count]);
        }
        Ok(result)
    }

    /// The largest sum of absolute values of a column.
    pub fn norm1(&self) -> f64 {
        let column = |column| (0..self.rows).map(|row| self[(row, column)].size()).sum::<f64>();
        (0..self.columns)
            .map(column)
            .fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a })
    }
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;
    fn index(&self, (row, column): (usize, usize)) -> &T {
        &self.data[row * self.columns + column]
    }
}

impl<T> IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut T {
        &mut self.data[row * self.columns + column]
    }
}
