//! A sparse tensor's three parts, read from inputs and written to outputs.

use crate::movement::Writer;
use ff_op::{KernelContext, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure};

/// A sparse tensor.
pub struct Sparse {
    /// The place of each value, one after the other.
    pub places: Vec<i64>,
    /// The values.
    pub values: Tensor,
    /// The extents.
    pub dims: Vec<i64>,
}

impl Sparse {
    /// From places at input `first`, values after them and extents after these. INVALID_ARGUMENT when they do not fit
    /// each other; whether places are inside is not checked.
    pub fn read(context: &KernelContext, first: usize) -> Result<Sparse> {
        Sparse::new(
            context.input(first)?,
            context.input(first + 1)?.clone(),
            context.input_i64s(first + 2)?,
        )
    }

    /// From its parts; see [`Sparse::read`].
    pub fn new(places: &Tensor, values: Tensor, dims: Vec<i64>) -> Result<Sparse> {
        ensure!(
            places.rank() == 2,
            InvalidArgument,
            "Input indices should be a matrix but received shape: {}",
            places.shape()
        );
        ensure!(
            values.rank() == 1 && values.dims()[0] == places.dims()[0],
            InvalidArgument,
            "Number of values must match first dimension of indices. Got {} values, indices shape: {}",
            values.num_elements(),
            places.shape()
        );
        ensure!(
            places.dims()[1] == dims.len() as i64,
            InvalidArgument,
            "Number of dimensions must match second dimension of indices. Got {} dimensions, indices shape: {}",
            dims.len(),
            places.shape()
        );
        Ok(Sparse {
            places: places.to_i64_vec()?,
            values,
            dims,
        })
    }

    /// INVALID_ARGUMENT where a place lies outside of the extents.
    pub fn check_bounds(&self) -> Result<()> {
        for number in 0..self.count() {
            let place = self.place(number);
            ensure!(
                place
                    .iter()
                    .zip(&self.dims)
                    .all(|(at, extent)| (0..*extent).contains(at)),
                InvalidArgument,
                "Sparse index tuple indices[{number}, :] = {place:?} is out of bounds of {:?}",
                self.dims
            );
        }
        Ok(())
    }

    /// INVALID_ARGUMENT where a place lies outside of the extents, comes after a later one, or comes twice.
    pub fn check_order(&self) -> Result<()> {
        self.check_bounds()?;
        for number in 1..self.count() {
            let (before, place) = (self.place(number - 1), self.place(number));
            ensure!(
                before != place,
                InvalidArgument,
                "indices[{number}] = {place:?} is repeated"
            );
            ensure!(
                before < place,
                InvalidArgument,
                "indices[{number}] = {place:?} is out of order. Many sparse ops require sorted indices."
            );
        }
        Ok(())
    }

    /// Number of values.
    pub fn count(&self) -> usize {
        self.values.num_elements()
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The place of a value.
    pub fn place(&self, number: usize) -> &[i64] {
        &self.places[number * self.rank()..(number + 1) * self.rank()]
    }

    /// The numbers of the values in the order of their places; values at one place stay in order.
    pub fn sorted(&self) -> Result<Vec<usize>> {
        let mut order: Vec<usize> = crate::wide::collected(0..self.count())?;
        order.sort_by(|&a, &b| self.place(a).cmp(self.place(b)));
        Ok(order)
    }

    /// Whether a place is inside.
    pub fn is_inside(&self, number: usize) -> bool {
        self.place(number)
            .iter()
            .zip(&self.dims)
            .all(|(at, extent)| (0..*extent).contains(at))
    }
}

/// Some values of a vector.
pub fn take(values: &Tensor, numbers: &[usize]) -> Result<Tensor> {
    let mut writer = Writer::new(values.dtype(), Shape::vector(numbers.len()))?;
    for (to, &from) in numbers.iter().enumerate() {
        writer.copy(to, values, from, 1)?;
    }
    writer.finish()
}

/// Places as a matrix with `rank` columns; `count` of them, which says more where there are no columns.
pub fn matrix(places: &[i64], count: usize, rank: usize) -> Result<Tensor> {
    Tensor::from_slice(Shape::new(&[count as i64, rank as i64])?, places)
}

/// Shapes of the three parts of a sparse tensor from input `first` on: its rank, or unknown.
pub fn check_parts(context: &ShapeContext, first: usize) -> Result<i64> {
    let places = context.input_with_rank(first, 2)?;
    let values = context.input_with_rank(first + 1, 1)?;
    let dims = context.input_with_rank(first + 2, 1)?;
    dim::merge(places.dim(0), values.dim(0))?;
    dim::merge(places.dim(1), dims.dim(0))
}

/// Sets the shapes of the three parts of a sparse tensor of unknown size from output `first` on.
pub fn set_parts(context: &mut ShapeContext, first: usize, rank: i64) {
    context.set_output(first, PartialShape::new(&[dim::UNKNOWN, rank]));
    context.set_output(first + 1, PartialShape::of_rank(1));
    context.set_output(first + 2, PartialShape::new(&[rank]));
}
