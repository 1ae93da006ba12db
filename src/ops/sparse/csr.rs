//! Sparse matrices by compressed rows, as variants: the value, and how ops see it.
//!
//! A matrix, or a batch of matrices of one shape. Within a row the columns need not be sorted.

use ff_op::{KernelContext, ShapeContext};
use ff_tensor::{
    DataType, PartialShape, Result, Shape, Tensor, VariantObject, VariantValue, dim, ensure, status,
};

/// A sparse matrix or a batch of them.
#[derive(Clone)]
pub struct Csr {
    /// Extents: rows and columns, and before them the number of matrices of a batch.
    pub dims: Vec<i64>,
    /// Where the values of each matrix start, and where the last ones end.
    pub batch_starts: Vec<i32>,
    /// For each matrix where the values of each row start, counted from the matrix's first, and where the last end.
    pub row_starts: Vec<i32>,
    /// The column of each value.
    pub columns: Vec<i32>,
    /// The values, a vector.
    pub values: Tensor,
}

impl VariantObject for Csr {
    fn type_name(&self) -> &str {
        "tensorflow::CSRSparseMatrix"
    }
}

/// The places of a matrix's values within a [`Csr`].
pub struct Part<'a> {
    /// Where each row starts among the part's values.
    pub rows: &'a [i32],
    /// Columns of the part's values.
    pub columns: &'a [i32],
    /// Number of the part's first value.
    pub first: usize,
}

impl Part<'_> {
    /// The part's values of a row, as numbers among its values.
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        self.rows[row] as usize..self.rows[row + 1] as usize
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.rows.len() - 1
    }
}

impl Csr {
    /// Number of matrices.
    pub fn batch(&self) -> usize {
        self.batch_starts.len() - 1
    }

    /// Rows of a matrix.
    pub fn rows(&self) -> usize {
        self.dims[self.dims.len() - 2] as usize
    }

    /// Columns of a matrix.
    pub fn width(&self) -> usize {
        self.dims[self.dims.len() - 1] as usize
    }

    /// One of the matrices.
    pub fn part(&self, number: usize) -> Part<'_> {
        let stride = self.rows() + 1;
        let (first, end) = (self.batch_starts[number], self.batch_starts[number + 1]);
        Part {
            rows: &self.row_starts[number * stride..(number + 1) * stride],
            columns: &self.columns[first as usize..end as usize],
            first: first as usize,
        }
    }

    /// The matrix at a variant input, of this type. INVALID_ARGUMENT for anything else.
    pub fn at<'a>(context: &'a KernelContext, input: usize, dtype: Option<DataType>) -> Result<&'a Csr> {
        let variants = context.input(input)?.variants()?;
        let found = match variants {
            [one] => one.get::<Csr>(),
            _ => None,
        };
        let matrix = found.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Could not retrieve Variant input {input} of {}: it is no CSRSparseMatrix",
                context.node().describe()
            )
        })?;
        let fits = dtype.is_none_or(|dtype| dtype == matrix.values.dtype());
        ensure!(
            fits,
            InvalidArgument,
            "dtype of input is not equal to 'type': {} vs. {}",
            matrix.values.dtype(),
            dtype.unwrap_or(DataType::INVALID)
        );
        Ok(matrix)
    }

    /// Sets output 0 to this matrix.
    pub fn give(self, context: &mut KernelContext) -> Result<()> {
        let variants = vec![VariantValue::new(self)];
        context.set_output(0, Tensor::from_variants(Shape::scalar(), variants)?)
    }

    /// The extents of a matrix, or a batch, of other rows and columns.
    pub fn dims_with(&self, rows: usize, columns: usize) -> Vec<i64> {
        let mut dims = self.dims.clone();
        let rank = dims.len();
        (dims[rank - 2], dims[rank - 1]) = (rows as i64, columns as i64);
        dims
    }
}

/// Checks extents of a matrix or a batch: rank 2 or 3, and so few rows that 32 bits count them.
pub fn check_extents(dims: &[i64]) -> Result<()> {
    ensure!(
        dims.len() == 2 || dims.len() == 3,
        InvalidArgument,
        "SparseTensor must have rank 2 or 3; but indices has rank: {}",
        dims.len()
    );
    let batch = if dims.len() == 3 { dims[0] } else { 1 };
    let rows = dims[dims.len() - 2];
    let count = rows.checked_add(1).and_then(|rows| rows.checked_mul(batch));
    let fits = |count: i64| count <= i64::from(i32::MAX);
    ensure!(
        batch < i64::from(i32::MAX),
        InvalidArgument,
        "dense_shape batch_size must be < Int32Max, but the input value is {batch}"
    );
    ensure!(
        count.is_some_and(fits),
        InvalidArgument,
        "The csr row index size, computed based on the dense_shape, must be <= Int32Max, but is too large."
    );
    ensure!(
        dims[dims.len() - 1] <= i64::from(i32::MAX),
        InvalidArgument,
        "The number of columns must be <= Int32Max, but is {}",
        dims[dims.len() - 1]
    );
    Ok(())
}

/// Extents and type of the matrix at a variant input, of rank 2 or 3; none while a kernel is about to run, which looks itself.
/// INVALID_ARGUMENT when the graph does not tell.
pub fn input_shape(context: &ShapeContext, input: usize) -> Result<Option<(DataType, PartialShape)>> {
    context.input_with_rank(input, 0)?;
    let held = context.input_handle(input);
    let Some([(dtype, shape)]) = held.as_deref() else {
        ensure!(
            context.in_step(),
            InvalidArgument,
            "Unable to access shape and type info from variant input {input}"
        );
        return Ok(None);
    };
    let shape = shape.with_rank_at_least(2)?.with_rank_at_most(3)?;
    ensure!(
        shape.rank().is_some(),
        InvalidArgument,
        "sparse_matrix has an unknown rank."
    );
    Ok(Some((*dtype, shape)))
}

/// Output 0 is a variant of a matrix of these extents.
pub fn set_output_shape(context: &mut ShapeContext, dtype: DataType, shape: PartialShape) {
    context.set_output(0, PartialShape::scalar());
    context.set_output_handle(0, vec![(dtype, shape)]);
}

/// A batch's extent, if there is one, and rows and columns.
pub fn with_batch(of: &PartialShape, rows: i64, columns: i64) -> PartialShape {
    match of.rank() {
        Some(3) => PartialShape::new(&[of.dim(0), rows, columns]),
        Some(2) => PartialShape::new(&[rows, columns]),
        _ => PartialShape::new(&[dim::UNKNOWN, rows, columns]),
    }
}
