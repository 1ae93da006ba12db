//! A sum of rows by index, each with the number of rows that went into it.

use crate::math::number::Number;
use ff_kernels::math::Real;
use ff_op::Value;
use ff_tensor::{PartialShape, Result, Shape, Tensor, ensure};
use std::collections::BTreeMap;

/// See the module.
pub struct SparseSum {
    /// For each index its row in `values`, and how many rows were added.
    places: BTreeMap<i64, (usize, usize)>,
    /// The rows, one after the other, as single tensors.
    rows: Vec<Tensor>,
    row_dims: Vec<i64>,
}

impl SparseSum {
    /// A sum that starts with these rows.
    pub fn new(indices: &[i64], values: &Tensor) -> Result<SparseSum> {
        let mut sum = SparseSum {
            places: BTreeMap::new(),
            rows: Vec::new(),
            row_dims: values.dims()[1..].to_vec(),
        };
        sum.add(indices, values)?;
        Ok(sum)
    }

    /// Adds rows. INVALID_ARGUMENT when their shape differs from those before.
    pub fn add(&mut self, indices: &[i64], values: &Tensor) -> Result<()> {
        ensure!(
            values.rank() == self.row_dims.len() + 1,
            InvalidArgument,
            "Shape mismatch: expected values rank {}, got {}",
            self.row_dims.len() + 1,
            values.rank()
        );
        for (axis, (own, dim)) in self.row_dims.iter().zip(&values.dims()[1..]).enumerate() {
            ensure!(
                own == dim,
                InvalidArgument,
                "Shape mismatch: expected values dim {} to be {own}, got {dim}",
                axis + 1
            );
        }
        for (position, &index) in indices.iter().enumerate() {
            let row = super::rows::row(values, position)?;
            match self.places.get_mut(&index) {
                None => {
                    self.places.insert(index, (self.rows.len(), 1));
                    self.rows.push(row);
                }
                Some((place, count)) => {
                    *count += 1;
                    add_row(&mut self.rows[*place], &row)?;
                }
            }
        }
        Ok(())
    }

    /// Indices in ascending order, their rows (divided by how many there were, for the mean), and the shape of the whole,
    /// whose first extent is the accumulator's.
    pub fn finish(mut self, mean: bool, shape: &PartialShape) -> Result<Vec<Value>> {
        let indices: Vec<i64> = self.places.keys().copied().collect();
        let mut rows = Vec::with_capacity(indices.len());
        for (place, count) in self.places.values().copied() {
            if mean && count > 1 {
                divide_row(&mut self.rows[place], count)?;
            }
            rows.push(self.rows[place].clone());
        }
        let dtype = rows.first().map_or(ff_tensor::DataType::FLOAT, Tensor::dtype);
        let values = super::rows::stack(dtype, &self.row_dims, &rows)?;
        let first = if shape.rank().is_some() { shape.dim(0) } else { -1 };
        let whole = [&[first], &self.row_dims[..]].concat();
        let shape = Tensor::from_slice(Shape::vector(whole.len()), &whole)?;
        let tensors = [Tensor::vector(&indices)?, values, shape];
        Ok(tensors.map(Value::Tensor).into())
    }
}

fn add_row(sum: &mut Tensor, row: &Tensor) -> Result<()> {
    sum.make_writable()?;
    crate::match_float!(sum.dtype(), T => {
        let row = row.as_slice::<T>()?;
        for (sum, &value) in sum.as_mut_slice::<T>()?.iter_mut().zip(row) {
            *sum = Number::add(*sum, value);
        }
        Ok(())
    })
}

fn divide_row(row: &mut Tensor, count: usize) -> Result<()> {
    row.make_writable()?;
    crate::match_float!(row.dtype(), T => {
        let count = <T as Real>::from_f64(count as f64);
        row.as_mut_slice::<T>()?.iter_mut().for_each(|value| *value = Number::div(*value, count));
        Ok(())
    })
}
