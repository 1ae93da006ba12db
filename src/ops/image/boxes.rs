//! Drawing the outlines of boxes on images.

use crate::wide::{f32s, from_f32s};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, shapes};
use ff_tensor::{Result, dim, ensure};

const DRAW: Op = Op {
    name: "DrawBoundingBoxes",
    shape,
    kernels: &[Kernel::native(draw)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &DRAW,
    &Op {
        name: "DrawBoundingBoxesV2",
        gradient: Gradient::Missing,
        ..DRAW
    },
];

/// Colours of boxes that have none: red, green, blue and alpha.
const COLORS: [[f32; 4]; 10] = [
    [1.0, 1.0, 0.0, 1.0],
    [0.0, 0.0, 1.0, 1.0],
    [1.0, 0.0, 0.0, 1.0],
    [0.0, 1.0, 0.0, 1.0],
    [0.5, 0.0, 0.5, 1.0],
    [0.5, 0.5, 0.0, 1.0],
    [0.5, 0.0, 0.0, 1.0],
    [0.0, 0.0, 0.5, 1.0],
    [0.0, 1.0, 1.0, 1.0],
    [1.0, 0.0, 1.0, 1.0],
];

fn shape(context: &mut ShapeContext) -> Result<()> {
    let images = context.input_with_rank_at_least(0, 3)?;
    let boxes = context.input_with_rank(1, 3)?;
    dim::merge(boxes.dim(2), 4)?;
    if let Some(rank) = images.rank() {
        ensure!(
            rank == 4,
            InvalidArgument,
            "Shape must be rank 4 but is rank {rank}"
        );
    }
    shapes::unchanged(context)
}

/// The colour of each box in turn, one number per channel.
fn colors(context: &KernelContext, channels: usize) -> Result<Vec<Vec<f32>>> {
    ensure!(
        matches!(channels, 1 | 3 | 4),
        InvalidArgument,
        "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)"
    );
    if context.num_inputs() == 3 {
        let given = context.input(2)?;
        ensure!(
            given.rank() == 2,
            InvalidArgument,
            "The shape of colors must be 2-D, got {}",
            given.shape()
        );
        let (count, depth) = (given.dims()[0], given.dims()[1] as usize);
        if count > 0 {
            ensure!(
                depth >= channels,
                InvalidArgument,
                "depth of colors {depth} is less than the channels of the images {channels}"
            );
            return Ok(f32s(given)?.chunks_exact(depth).map(<[f32]>::to_vec).collect());
        }
    }
    let mut table: Vec<Vec<f32>> = COLORS.iter().map(|color| color.to_vec()).collect();
    if channels == 1 {
        table.iter_mut().for_each(|color| color[0] = 1.0);
    }
    Ok(table)
}

fn draw(context: &mut KernelContext) -> Result<()> {
    let dims = context.input(0)?.dims().to_vec();
    let [batch, height, width, channels] = dims[..] else {
        ff_tensor::bail!(InvalidArgument, "The rank of the images should be 4");
    };
    let boxes = context.input(1)?;
    ensure!(
        boxes.dims()[0] == batch,
        InvalidArgument,
        "The batch sizes should be the same"
    );
    let colors = colors(context, channels as usize)?;
    let mut pixels = f32s(context.input(0)?)?.into_owned();
    let (count, boxes) = (boxes.dims()[1] as usize, f32s(boxes)?);
    for (number, corners) in boxes.chunks_exact(4).enumerate() {
        let (image, color) = (number / count, &colors[number % count % colors.len()]);
        let row = |at: f32| (at * (height - 1) as f32) as i64;
        let column = |at: f32| (at * (width - 1) as f32) as i64;
        let (top, left) = (row(corners[0]), column(corners[1]));
        let (bottom, right) = (row(corners[2]), column(corners[3]));
        let outside = top >= height || bottom < 0 || left >= width || right < 0;
        if top > bottom || left > right || outside {
            continue;
        }
        let mut paint = |y: i64, x: i64| {
            let at = ((image as i64 * height + y) * width + x) * channels;
            pixels[at as usize..][..channels as usize].copy_from_slice(&color[..channels as usize]);
        };
        let (rows, columns) = (
            top.max(0)..=bottom.min(height - 1),
            left.max(0)..=right.min(width - 1),
        );
        for x in columns {
            if top >= 0 {
                paint(top, x);
            }
            if bottom < height {
                paint(bottom, x);
            }
        }
        for y in rows {
            if left >= 0 {
                paint(y, left);
            }
            if right < width {
                paint(y, right);
            }
        }
    }
    let result = from_f32s(context.output_type(0), context.output_shape(0)?.clone(), &pixels)?;
    context.set_output(0, result)
}

#[cfg(test)]
fn outlines() -> ff_tensor::Tensor {
    crate::testing::t(
        &[1, 3, 4],
        &[0.1f32, 0.2, 0.7, 0.8, -0.5, 0.5, 0.4, 2.0, 0.9, 0.1, 0.2, 0.2],
    )
}

crate::op_cases! {
    grey_of_a_given_color: Case::op("DrawBoundingBoxesV2").inputs([t(&[1, 1, 2, 1], &[0.0f32, 0.0]), t(&[1, 1, 4], &[0.0f32, 0.0, 0.0, 0.0]), t(&[1, 1], &[0.25f32])])
        .gives(t(&[1, 1, 2, 1], &[0.25f32, 0.0]));
    colored: family(&["DrawBoundingBoxes"], &[DataType::FLOAT, DataType::HALF], |op, dtype| Case::op(op).inputs([cycle(dtype, &[1, 7, 6, 3]), outlines()]));
    gray: Case::op("DrawBoundingBoxes").inputs([cycle(DataType::FLOAT, &[1, 7, 6, 1]), outlines()]);
    own_colors: family(&["DrawBoundingBoxesV2"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 7, 6, 4]), outlines(), t(&[2, 4], &[0.25f32, 0.5, 0.75, 1.0, 9.0, 8.0, 7.0, 6.0])])
    });
    no_boxes: Case::op("DrawBoundingBoxes").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 3]), t::<f32>(&[1, 0, 4], &[])]);
    two_channels: Case::op("DrawBoundingBoxes").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 2]), outlines()]).fails(Code::InvalidArgument);
    other_batch: Case::op("DrawBoundingBoxes").inputs([cycle(DataType::FLOAT, &[2, 4, 4, 3]), outlines()]).fails(Code::InvalidArgument);
    short_boxes: Case::op("DrawBoundingBoxesV2").inputs([cycle(DataType::FLOAT, &[1, 4, 4, 3]), cycle(DataType::FLOAT, &[1, 2, 3]), t(&[1, 3], &[0.0f32, 1.0, 2.0])])
        .fails(Code::InvalidArgument);
}
