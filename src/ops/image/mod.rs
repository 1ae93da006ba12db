//! Image ops: resizing, cropping, colours, boxes, patches.

mod boxes;
mod codec;
mod color;
mod combined_suppression;
mod crop_and_resize;
mod glimpse;
mod lower_color;
mod lower_resize;
mod patches;
mod projective;
mod resize;
mod resize_gradient;
pub mod sample_box;
pub mod sampling;
mod scale_and_translate;
mod suppression;

pub use codec::png_of;
use ff_op::{KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, dim, ensure};

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    boxes::OPS,
    color::OPS,
    combined_suppression::OPS,
    crop_and_resize::OPS,
    glimpse::OPS,
    patches::OPS,
    projective::OPS,
    resize::OPS,
    resize_gradient::OPS,
    sample_box::OPS,
    scale_and_translate::OPS,
    suppression::OPS,
];

/// The ops of image files.
pub static CODECS: &[&[&Op]] = codec::OPS;

/// Sets output 0 to `[batch, height, width, channels]`, where the value of an input says height and width.
fn set_sized_image(context: &mut ShapeContext, batch: i64, size: usize, channels: i64) -> Result<()> {
    let shape = context.input_with_rank(size, 1)?;
    dim::merge(shape.dim(0), 2)?;
    let (height, width) = match context.input_as_i64s(size)? {
        Some(values) if values.len() == 2 => {
            ensure!(
                values.iter().all(|&extent| extent >= 0),
                InvalidArgument,
                "output dimensions must be positive, got {values:?}"
            );
            (values[0], values[1])
        }
        _ => (dim::UNKNOWN, dim::UNKNOWN),
    };
    context.set_output(0, PartialShape::new(&[batch, height, width, channels]));
    Ok(())
}

/// Batch, height, width and channels of an input of rank 4.
fn image_extents(context: &KernelContext, index: usize) -> Result<[usize; 4]> {
    match *context.input(index)?.dims() {
        [a, b, c, d] => Ok([a as usize, b as usize, c as usize, d as usize]),
        _ => ff_tensor::bail!(
            InvalidArgument,
            "input must be 4-dimensional {}",
            context.input(index)?.shape()
        ),
    }
}

/// Every type for numbers that image ops take.
const NUMBERS: &[(&str, &[DataType])] = &[(
    "T",
    &[
        DataType::FLOAT,
        DataType::DOUBLE,
        DataType::HALF,
        DataType::BFLOAT16,
        DataType::INT8,
        DataType::INT16,
        DataType::INT32,
        DataType::INT64,
        DataType::UINT8,
        DataType::UINT16,
        DataType::UINT32,
        DataType::UINT64,
    ],
)];
