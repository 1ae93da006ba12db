//! Ragged tensors: values with boundaries of rows, in several layers.

mod dense;
mod gather;
mod range;
mod sparse;
mod variant;

use ff_op::Op;
use ff_tensor::{DataType, Result, Tensor, ensure};

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[dense::OPS, gather::OPS, range::OPS, sparse::OPS, variant::OPS];

/// Boundaries as an int32 or int64 vector.
fn splits_tensor(dtype: DataType, edges: &[i64]) -> Result<Tensor> {
    if dtype == DataType::INT64 {
        return Tensor::vector(edges);
    }
    let edges: Vec<i32> = crate::wide::collected(edges.iter().map(|&edge| edge as i32))?;
    Tensor::vector(&edges)
}

/// Checks boundaries: they start with 0, do not decrease, and end with the number of rows of the next layer.
fn check_splits(edges: &[i64], rows: i64) -> Result<()> {
    ensure!(
        edges.first() == Some(&0),
        InvalidArgument,
        "First value of ragged splits must be 0."
    );
    ensure!(
        edges.windows(2).all(|pair| pair[0] <= pair[1]),
        InvalidArgument,
        "Ragged splits must be sorted in ascending order: {edges:?}"
    );
    ensure!(
        edges.last() == Some(&rows),
        InvalidArgument,
        "Final value of ragged splits must match the length of the next layer: {edges:?} and {rows}"
    );
    Ok(())
}

/// Some rows of a tensor, one after the other. The rows have been checked.
fn take_rows(values: &Tensor, rows: &[std::ops::Range<i64>]) -> Result<Tensor> {
    let count: i64 = rows.iter().map(|range| range.end - range.start).sum();
    let mut dims = values.dims().to_vec();
    dims[0] = count;
    let shape = ff_tensor::Shape::new(&dims)?;
    let row: usize = dims[1..].iter().product::<i64>() as usize;
    let spans = rows
        .iter()
        .map(|range| range.start as usize * row..range.end as usize * row);
    if values.dtype() == DataType::STRING {
        let all = values.strings()?;
        let taken = spans.flat_map(|span| all[span].iter().cloned()).collect();
        return Tensor::from_strings(shape, taken);
    }
    ensure!(
        values.dtype().is_plain(),
        Unimplemented,
        "no rows of type {}",
        values.dtype()
    );
    let size = values.dtype().size();
    let mut taken = Tensor::allocate(values.dtype(), shape)?;
    if let Some(bytes) = taken.bytes_mut() {
        let mut at = 0;
        for span in spans {
            let from = &values.bytes()[span.start * size..span.end * size];
            bytes[at..at + from.len()].copy_from_slice(from);
            at += from.len();
        }
    }
    Ok(taken)
}
