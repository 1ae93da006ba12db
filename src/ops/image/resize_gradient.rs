//! Gradients of resizing: each output pixel's gradient goes to the pixels that it came from.

use super::resize::scales;
use super::sampling::{cubic, linear};
use super::{NUMBERS, image_extents, set_sized_image};
use crate::wide::{collected, f32s, from_f64s, zeros};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Result, Shape, ensure};

const LIKE_IMAGE: Op = Op {
    name: "ResizeBilinearGrad",
    shape: |context: &mut ShapeContext| {
        let image = context.input(1);
        context.set_output(0, image);
        Ok(())
    },
    kernels: &[Kernel::native(bilinear)],
    lower: Some(super::lower_resize::bilinear_gradient),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &LIKE_IMAGE,
    &Op {
        name: "ResizeBicubicGrad",
        kernels: &[Kernel::native(bicubic)],
        lower: None,
        gradient: Gradient::Missing,
        ..LIKE_IMAGE
    },
    &Op {
        name: "ResizeNearestNeighborGrad",
        shape: |context| {
            let incoming = context.input_with_rank(0, 4)?;
            set_sized_image(context, incoming.dim(0), 1, incoming.dim(3))
        },
        kernels: &[Kernel::native(nearest).for_types(NUMBERS)],
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

/// Sources of an output row or column: input pixel and weight.
type Sources = Vec<Vec<(usize, f32)>>;

/// Adds each gradient, weighted in `f32` as the reference does, to the pixels that `sources` (of rows, of columns) say.
fn spread(
    context: &mut KernelContext,
    incoming: [usize; 4],
    image: [usize; 2],
    sources: [Sources; 2],
) -> Result<()> {
    let [batch, height, width, channels] = incoming;
    let dims = [batch, image[0], image[1], channels].map(|extent| extent as i64);
    let shape = Shape::new(&dims)?;
    let mut result: Vec<f64> = zeros(shape.num_elements())?;
    let gradients = f32s(context.input(0)?)?;
    for (pixel, gradients) in gradients.chunks_exact(channels.max(1)).enumerate() {
        let (b, y, x) = (pixel / width / height, pixel / width % height, pixel % width);
        for &(row, weight_y) in &sources[0][y] {
            for &(column, weight_x) in &sources[1][x] {
                let to = &mut result[((b * image[0] + row) * image[1] + column) * channels..][..channels];
                for (to, &gradient) in to.iter_mut().zip(gradients) {
                    *to += f64::from(gradient * weight_y * weight_x);
                }
            }
        }
    }
    let result = from_f64s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

/// Extents of the gradients at input 0 and of the image at input 1.
fn extents(context: &KernelContext) -> Result<([usize; 4], [usize; 2])> {
    let incoming = image_extents(context, 0)?;
    let [batch, height, width, channels] = image_extents(context, 1)?;
    ensure!(
        batch == incoming[0] && channels == incoming[3],
        InvalidArgument,
        "batch and channels of the gradients and the image must be equal"
    );
    ensure!(
        height > 0 && width > 0 && incoming[1] > 0 && incoming[2] > 0,
        InvalidArgument,
        "resized and original images must not be empty"
    );
    Ok((incoming, [height, width]))
}

fn bilinear(context: &mut KernelContext) -> Result<()> {
    let (incoming, image) = extents(context)?;
    let scales = scales(context.attrs(), image, [incoming[1], incoming[2]])?;
    let sources = |axis: usize| {
        let places = linear(scales[axis], image[axis], incoming[axis + 1])?;
        let both = |place: &super::sampling::Linear| {
            let weight = place.weight;
            vec![(place.lower, 1.0 - weight), (place.upper, weight)]
        };
        collected(places.iter().map(both))
    };
    let sources = [sources(0)?, sources(1)?];
    spread(context, incoming, image, sources)
}

fn bicubic(context: &mut KernelContext) -> Result<()> {
    let (incoming, image) = extents(context)?;
    let scales = scales(context.attrs(), image, [incoming[1], incoming[2]])?;
    let sources = |axis: usize| {
        let places = cubic(scales[axis], image[axis], incoming[axis + 1])?;
        let all =
            |place: &super::sampling::Cubic| (0..4).map(|i| (place.index[i], place.weight[i])).collect();
        collected(places.iter().map(all))
    };
    let sources = [sources(0)?, sources(1)?];
    spread(context, incoming, image, sources)
}

fn nearest(context: &mut KernelContext) -> Result<()> {
    let incoming = image_extents(context, 0)?;
    let size = context.input_i64s(1)?;
    ensure!(
        size.len() == 2 && size.iter().all(|&extent| extent > 0),
        InvalidArgument,
        "shape_t's elements must be positive"
    );
    ensure!(
        incoming[1] > 0 && incoming[2] > 0,
        InvalidArgument,
        "input image must be of non-zero size"
    );
    let image = [size[0] as usize, size[1] as usize];
    let scales = scales(context.attrs(), image, [incoming[1], incoming[2]])?;
    let sources = |axis: usize| {
        let place = |x| vec![(scales[axis].nearest(x, image[axis]), 1.0)];
        collected((0..incoming[axis + 1]).map(place))
    };
    let sources = [sources(0)?, sources(1)?];
    spread(context, incoming, image, sources)
}

crate::op_cases! {
    linear_types: family(&["ResizeBilinearGrad"], FLOATS, |op, dtype| {
        Case::op(op).inputs([cycle(DataType::FLOAT, &[2, 5, 3, 2]), cycle(dtype, &[2, 3, 4, 2])])
    });
    cubic_types: family(&["ResizeBicubicGrad"], &FLOATS[..2], |op, dtype| {
        Case::op(op).inputs([cycle(DataType::FLOAT, &[2, 5, 3, 2]), cycle(dtype, &[2, 3, 4, 2])])
    });
    nearest_types: family(&["ResizeNearestNeighborGrad"], FLOATS, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 5, 3, 2]), vector(&[3, 4])])
    });
    nearest_integers: family(&["ResizeNearestNeighborGrad"], &[DataType::INT8, DataType::INT32, DataType::UINT8], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 5, 3, 2]), vector(&[3, 4])])
    });
    half_pixels: family(&["ResizeBilinearGrad", "ResizeBicubicGrad"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 3, 7, 1]), cycle(dtype, &[1, 5, 4, 1])]).attr("half_pixel_centers", true)
    });
    aligned: family(&["ResizeBilinearGrad", "ResizeBicubicGrad"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 3, 7, 1]), cycle(dtype, &[1, 5, 4, 1])]).attr("align_corners", true)
    });
    empty_size: Case::op("ResizeNearestNeighborGrad").inputs([cycle(DataType::FLOAT, &[1, 5, 3, 2]), vector(&[0, 4])])
        .fails(Code::InvalidArgument);
}
