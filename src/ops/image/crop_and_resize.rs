//! `CropAndResize` and its gradients: boxes cut out of images and resized to one size.
//!
//! Boxes are `[y1, x1, y2, x2]` in units of the image's height - 1 and width - 1; points outside of the image take
//! the extrapolation value, and pass no gradient.

use super::{NUMBERS, image_extents, set_sized_image};
use crate::wide::{f32s, from_f64s, zeros};
use ff_kernels::memory::SharedMut;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "CropAndResize",
        shape: |context| {
            let image = context.input_with_rank(0, 4)?;
            let boxes = check_boxes(context, 1)?;
            set_sized_image(context, boxes, 3, image.dim(3))
        },
        kernels: &[Kernel::native(crop).for_types(NUMBERS)],
        gradient: Gradient::Fn(gradient),
        ..Op::PURE
    },
    &Op {
        name: "CropAndResizeGradImage",
        shape: |context| {
            let shape = context.input_as_shape(3)?.with_rank(4)?;
            let incoming = context.input_with_rank(0, 4)?;
            let boxes = check_boxes(context, 1)?;
            dim::merge(incoming.dim(0), boxes)?;
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(image_gradient)],
        ..Op::PURE
    },
    &Op {
        name: "CropAndResizeGradBoxes",
        shape: |context| {
            let incoming = context.input_with_rank(0, 4)?;
            let boxes = check_boxes(context, 2)?;
            dim::merge(incoming.dim(0), boxes)?;
            context.set_output(0, PartialShape::new(&[boxes, 4]));
            Ok(())
        },
        kernels: &[Kernel::native(box_gradient).for_types(NUMBERS)],
        ..Op::PURE
    },
];

/// The number of boxes: boxes at an input, their images at the next.
fn check_boxes(context: &ShapeContext, index: usize) -> Result<i64> {
    let (boxes, images) = (
        context.input_with_rank(index, 2)?,
        context.input_with_rank(index + 1, 1)?,
    );
    dim::merge(boxes.dim(1), 4)?;
    dim::merge(boxes.dim(0), images.dim(0))
}

/// One crop: where its rows and columns lie in the image. Coordinates outside of the image are absent.
struct Crop {
    image: usize,
    rows: Vec<Option<f32>>,
    columns: Vec<Option<f32>>,
}

/// Coordinates of `count` points from `start` to `end` on an axis of `extent` pixels.
fn points(start: f32, end: f32, extent: usize, count: usize) -> Result<Vec<Option<f32>>> {
    let reach = extent as f32 - 1.0;
    let step = if count > 1 {
        (end - start) * reach / (count as f32 - 1.0)
    } else {
        0.0
    };
    let point = |i| {
        let at = if count > 1 {
            start * reach + i as f32 * step
        } else {
            0.5 * (start + end) * reach
        };
        (at >= 0.0 && at <= reach).then_some(at)
    };
    crate::wide::collected((0..count).map(point))
}

/// The crops of boxes at an input. OUT_OF_RANGE when a box is of no image.
fn crops(context: &KernelContext, boxes: usize, image: [usize; 3], crop: [usize; 2]) -> Result<Vec<Crop>> {
    let [batch, height, width] = image;
    let images = context.input_slice::<i32>(boxes + 1)?;
    ensure!(
        images
            .iter()
            .all(|&image| (0..batch as i64).contains(&i64::from(image))),
        OutOfRange,
        "box_index has values outside [0, batch_size)"
    );
    ensure!(
        height > 0 && width > 0,
        InvalidArgument,
        "image dimensions must be positive"
    );
    let boxes = f32s(context.input(boxes)?)?;
    let crop_of = |(&image, b): (&i32, &[f32])| {
        Ok(Crop {
            image: image as usize,
            rows: points(b[0], b[2], height, crop[0])?,
            columns: points(b[1], b[3], width, crop[1])?,
        })
    };
    images.iter().zip(boxes.chunks_exact(4)).map(crop_of).collect()
}

/// Neighbours below and above a coordinate, and the weight of the one above.
fn neighbours(at: f32) -> (usize, usize, f32) {
    (at.floor() as usize, at.ceil() as usize, at - at.floor())
}

/// Whether the attribute `method` says `bilinear`, not `nearest`. INVALID_ARGUMENT for another.
fn is_linear(context: &KernelContext) -> Result<bool> {
    let method = context.attrs().string("method")?;
    ensure!(
        method == "bilinear" || method == "nearest",
        InvalidArgument,
        "method must be 'bilinear' or 'nearest', got {method}"
    );
    Ok(method == "bilinear")
}

fn crop(context: &mut KernelContext) -> Result<()> {
    let [batch, height, width, channels] = image_extents(context, 0)?;
    let size = context.input_i64s(3)?;
    ensure!(
        size.len() == 2 && size[0] > 0 && size[1] > 0,
        InvalidArgument,
        "crop dimensions must be positive"
    );
    let (linear, outside) = (is_linear(context)?, context.attrs().float("extrapolation_value")?);
    let size = [size[0] as usize, size[1] as usize];
    let mut output = context.allocate_output(0)?;
    let crops = crops(context, 1, [batch, height, width], size)?;
    let image = f32s(context.input(0)?)?;
    let row = size[1] * channels;
    let shared = SharedMut::new(output.as_mut_slice::<f32>()?);
    let pixel =
        |b: usize, y: usize, x: usize| &image[((b * height + y) * width + x) * channels..][..channels];
    context
        .pool()
        .parallel_for(crops.len() * size[0], 5.0 * row as f64, |lines| {
            for line in lines {
                // SAFETY: lines are disjoint.
                let out = unsafe { shared.range(line * row..(line + 1) * row) };
                let crop = &crops[line / size[0]];
                let y = crop.rows[line % size[0]];
                for (out, x) in out.chunks_exact_mut(channels.max(1)).zip(&crop.columns) {
                    let (Some(y), Some(x)) = (y, *x) else {
                        out.fill(outside);
                        continue;
                    };
                    if !linear {
                        out.copy_from_slice(pixel(crop.image, y.round() as usize, x.round() as usize));
                        continue;
                    }
                    let ((top, bottom, down), (left, right, along)) = (neighbours(y), neighbours(x));
                    let at = |y, x| pixel(crop.image, y, x);
                    let corners = [at(top, left), at(top, right), at(bottom, left), at(bottom, right)];
                    for (c, out) in out.iter_mut().enumerate() {
                        let above = corners[0][c] + (corners[1][c] - corners[0][c]) * along;
                        let below = corners[2][c] + (corners[3][c] - corners[2][c]) * along;
                        *out = above + (below - above) * down;
                    }
                }
            }
        });
    context.set_output(0, output)
}

/// Extents of crops and their channels. INVALID_ARGUMENT where a crop has no pixels.
fn crop_extents(context: &KernelContext) -> Result<[usize; 3]> {
    let [_, height, width, channels] = image_extents(context, 0)?;
    ensure!(
        height > 0 && width > 0,
        InvalidArgument,
        "grads dimensions must be positive"
    );
    Ok([height, width, channels])
}

fn image_gradient(context: &mut KernelContext) -> Result<()> {
    let [crop_height, crop_width, channels] = crop_extents(context)?;
    let dims = context.input_i64s(3)?;
    ensure!(
        dims.len() == 4 && dims.iter().all(|&extent| extent >= 0) && dims[3] == channels as i64,
        InvalidArgument,
        "image_size and grads are incompatible"
    );
    let shape = Shape::new(&dims)?;
    let [batch, height, width] = [dims[0], dims[1], dims[2]].map(|extent| extent as usize);
    let linear = is_linear(context)?;
    let crops = crops(context, 1, [batch, height, width], [crop_height, crop_width])?;
    let incoming = f32s(context.input(0)?)?;
    let mut result: Vec<f64> = zeros(shape.num_elements())?;
    for (pixel, gradients) in incoming.chunks_exact(channels.max(1)).enumerate() {
        let crop = &crops[pixel / crop_width / crop_height];
        let (Some(y), Some(x)) = (
            crop.rows[pixel / crop_width % crop_height],
            crop.columns[pixel % crop_width],
        ) else {
            continue;
        };
        let mut add = |y: usize, x: usize, (down, along): (f32, f32)| {
            let to = &mut result[((crop.image * height + y) * width + x) * channels..][..channels];
            for (to, &gradient) in to.iter_mut().zip(gradients) {
                *to += f64::from(along * (down * gradient));
            }
        };
        if linear {
            let ((top, bottom, down), (left, right, along)) = (neighbours(y), neighbours(x));
            add(top, left, (1.0 - down, 1.0 - along));
            add(top, right, (1.0 - down, along));
            add(bottom, left, (down, 1.0 - along));
            add(bottom, right, (down, along));
        } else {
            add(y.round() as usize, x.round() as usize, (1.0, 1.0));
        }
    }
    let result = from_f64s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

fn box_gradient(context: &mut KernelContext) -> Result<()> {
    let [crop_height, crop_width, channels] = crop_extents(context)?;
    let [batch, height, width, depth] = image_extents(context, 1)?;
    ensure!(
        depth == channels,
        InvalidArgument,
        "image, grads depth differ: {depth} and {channels}"
    );
    let mut output = context.allocate_output(0)?;
    let crops = crops(context, 2, [batch, height, width], [crop_height, crop_width])?;
    let (incoming, image) = (f32s(context.input(0)?)?, f32s(context.input(1)?)?);
    let mut sums: Vec<[f32; 4]> = zeros(crops.len())?;
    // How much the two ends of an axis move the point `i`.
    let shares = |i: usize, count: usize, extent: usize| {
        let reach = extent as f32 - 1.0;
        if count > 1 {
            let after = i as f32 * (reach / (count as f32 - 1.0));
            (reach - after, after)
        } else {
            (0.5 * reach, 0.5 * reach)
        }
    };
    for (pixel, gradients) in incoming.chunks_exact(channels.max(1)).enumerate() {
        let number = pixel / crop_width / crop_height;
        let (row, column) = (pixel / crop_width % crop_height, pixel % crop_width);
        let crop = &crops[number];
        let (Some(y), Some(x)) = (crop.rows[row], crop.columns[column]) else {
            continue;
        };
        let ((top, bottom, down), (left, right, along)) = (neighbours(y), neighbours(x));
        let at =
            |y: usize, x: usize| &image[((crop.image * height + y) * width + x) * channels..][..channels];
        let corners = [at(top, left), at(top, right), at(bottom, left), at(bottom, right)];
        let (mut slope_y, mut slope_x) = (0.0, 0.0);
        for (c, &gradient) in gradients.iter().enumerate() {
            let [tl, tr, bl, br] = corners.map(|corner| corner[c]);
            slope_y += gradient * ((1.0 - along) * (bl - tl) + along * (br - tr));
            slope_x += gradient * ((1.0 - down) * (tr - tl) + down * (br - bl));
        }
        let (y1, y2) = shares(row, crop_height, height);
        let (x1, x2) = shares(column, crop_width, width);
        let sum = &mut sums[number];
        for (sum, share) in sum
            .iter_mut()
            .zip([slope_y * y1, slope_x * x1, slope_y * y2, slope_x * x2])
        {
            *sum += share;
        }
    }
    output.as_mut_slice::<f32>()?.copy_from_slice(sums.as_flattened());
    context.set_output(0, output)
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let (image, boxes, images) = (context.input(0)?, context.input(1)?, context.input(2)?);
    let dtype = context.input_type(0);
    if matches!(dtype, DataType::FLOAT | DataType::DOUBLE | DataType::HALF) {
        let size = crate::math::gradients::shape_of(context, image)?;
        let attrs = Attrs::new()
            .with("T", dtype)
            .with("method", context.attrs().string("method")?);
        let gradient = context.op("CropAndResizeGradImage", &[incoming, boxes, images, size], attrs)?;
        context.set(0, gradient);
    }
    let attrs = Attrs::new().with("T", dtype).with("method", "bilinear");
    let gradient = context.op("CropAndResizeGradBoxes", &[incoming, image, boxes, images], attrs)?;
    context.set(1, gradient);
    Ok(())
}

#[cfg(test)]
fn boxes() -> ff_tensor::Tensor {
    crate::testing::t(
        &[3, 4],
        &[0.0f32, 0.0, 1.0, 1.0, 0.2, 0.3, 1.4, 0.7, 0.9, 0.1, 0.4, -0.3],
    )
}

crate::op_cases! {
    gradients_of_no_pixels: Case::op("CropAndResizeGradImage").attr("T", DataType::FLOAT)
        .inputs([t::<f32>(&[0, 0, 0, 2], &[]), t::<f32>(&[0, 4], &[]), vector::<i32>(&[]), vector(&[2, 2, 2, 2])]).fails(Code::InvalidArgument);
    gradients_of_boxes_of_no_pixels: Case::op("CropAndResizeGradBoxes")
        .inputs([t::<f32>(&[0, 0, 0, 1], &[]), t::<f32>(&[0, 1, 1, 1], &[]), t::<f32>(&[0, 4], &[]), vector::<i32>(&[])]).fails(Code::InvalidArgument);
    every_type: family(&["CropAndResize"], &[&FLOATS[..3], &INTEGERS[..6]].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 4, 5, 2]), boxes(), vector(&[0, 1, 0]), vector(&[3, 2])]).attr("extrapolation_value", -1.5f32)
    });
    nearest: Case::op("CropAndResize").inputs([cycle(DataType::FLOAT, &[2, 4, 5, 2]), boxes(), vector(&[0, 1, 0]), vector(&[3, 2])])
        .attr("method", "nearest").without_gradient();
    single_point: Case::op("CropAndResize").inputs([cycle(DataType::FLOAT, &[2, 4, 5, 2]), boxes(), vector(&[0, 1, 0]), vector(&[1, 1])]);
    no_boxes: Case::op("CropAndResize").inputs([cycle(DataType::FLOAT, &[2, 4, 5, 2]), t::<f32>(&[0, 4], &[]), vector::<i32>(&[]), vector(&[1, 1])]);
    no_such_image: Case::op("CropAndResize").inputs([cycle(DataType::FLOAT, &[2, 4, 5, 2]), boxes(), vector(&[0, 2, 0]), vector(&[1, 1])])
        .fails(Code::OutOfRange);
    empty_crop: Case::op("CropAndResize").inputs([cycle(DataType::FLOAT, &[2, 4, 5, 2]), boxes(), vector(&[0, 1, 0]), vector(&[0, 1])])
        .fails(Code::InvalidArgument);
    misfit: Case::op("CropAndResize").inputs([cycle(DataType::FLOAT, &[2, 4, 5, 2]), boxes(), vector(&[0, 1]), vector(&[1, 1])])
        .fails(Code::InvalidArgument);
    image_types: family(&["CropAndResizeGradImage"], &FLOATS[..3], |op, dtype| {
        Case::op(op).inputs([cycle(DataType::FLOAT, &[3, 3, 2, 2]), boxes(), vector(&[0, 1, 0]), vector(&[2, 4, 5, 2])]).attr("T", dtype)
    });
    image_nearest: Case::op("CropAndResizeGradImage").inputs([cycle(DataType::FLOAT, &[3, 3, 2, 2]), boxes(), vector(&[0, 1, 0]), vector(&[2, 4, 5, 2])])
        .attr("T", DataType::FLOAT).attr("method", "nearest");
    image_out_of_range: Case::op("CropAndResizeGradImage").inputs([cycle(DataType::FLOAT, &[3, 3, 2, 2]), boxes(), vector(&[0, 9, 0]), vector(&[2, 4, 5, 2])])
        .attr("T", DataType::FLOAT).fails(Code::OutOfRange);
    box_types: family(&["CropAndResizeGradBoxes"], &[&FLOATS[..3], &INTEGERS[..6]].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(DataType::FLOAT, &[3, 3, 2, 2]), cycle(dtype, &[2, 4, 5, 2]), boxes(), vector(&[0, 1, 0])])
    });
    box_single: Case::op("CropAndResizeGradBoxes").inputs([cycle(DataType::FLOAT, &[3, 1, 1, 2]), cycle(DataType::FLOAT, &[2, 4, 5, 2]), boxes(), vector(&[0, 1, 0])]);
    box_out_of_range: Case::op("CropAndResizeGradBoxes").inputs([cycle(DataType::FLOAT, &[3, 1, 1, 2]), cycle(DataType::FLOAT, &[2, 4, 5, 2]), boxes(), vector(&[0, -1, 0])])
        .fails(Code::OutOfRange);
}
