//! Tensors as rows of one tensor, and back.

use crate::movement::{Region, Writer, row_major};
use ff_tensor::{DataType, Result, Shape, Tensor};

/// One tensor with a first axis over `tensors`, whose shapes fit in `row`; what they do not fill is zero.
pub fn stack(dtype: DataType, row: &[i64], tensors: &[Tensor]) -> Result<Tensor> {
    let shape = Shape::new(&[&[tensors.len() as i64], row].concat())?;
    let size: usize = row.iter().map(|&extent| extent as usize).product();
    let full = tensors.iter().all(|tensor| tensor.dims() == row);
    let mut writer = match full {
        true => Writer::new(dtype, shape)?,
        false => Writer::zeros(dtype, shape)?,
    };
    let strides = row_major(row);
    for (index, tensor) in tensors.iter().enumerate() {
        if tensor.num_elements() == 0 {
            continue;
        }
        if full {
            writer.copy(index * size, tensor, 0, size)?;
            continue;
        }
        let to = Region {
            offset: (index * size) as i64,
            strides: &strides,
        };
        let own = row_major(tensor.dims());
        let from = Region {
            offset: 0,
            strides: &own,
        };
        writer.write(tensor.dims(), to, tensor, from)?;
    }
    writer.finish()
}

/// A row of a tensor of at least rank 1, without the first axis.
pub fn row(tensor: &Tensor, index: usize) -> Result<Tensor> {
    tensor
        .rows(index, 1)?
        .into_shape(Shape::new(&tensor.dims()[1..])?)
}
