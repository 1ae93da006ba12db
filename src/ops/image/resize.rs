//! Resizing images: nearest, linear, cubic, and by area.

use super::sampling::{Scale, area, cubic, linear};
use super::{NUMBERS, image_extents, set_sized_image};
use crate::wide::f32s;
use ff_kernels::ThreadPool;
use ff_kernels::memory::SharedMut;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef};
use ff_tensor::{DataType, Result, Tensor, ensure};

const RESIZE: Op = Op {
    name: "ResizeBilinear",
    shape: |context| {
        let image = context.input_with_rank(0, 4)?;
        set_sized_image(context, image.dim(0), 1, image.dim(3))
    },
    kernels: &[Kernel::native(bilinear).for_types(NUMBERS)],
    lower: Some(super::lower_resize::bilinear),
    gradient: Gradient::Fn(|context| gradient(context, "ResizeBilinearGrad")),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &RESIZE,
    &Op {
        name: "ResizeNearestNeighbor",
        kernels: &[Kernel::native(nearest).for_types(NUMBERS)],
        lower: Some(super::lower_resize::nearest),
        gradient: Gradient::Fn(nearest_gradient),
        ..RESIZE
    },
    &Op {
        name: "ResizeBicubic",
        kernels: &[Kernel::native(bicubic).for_types(NUMBERS)],
        lower: None,
        gradient: Gradient::Fn(|context| match context.input_type(0) {
            DataType::FLOAT | DataType::DOUBLE => gradient(context, "ResizeBicubicGrad"),
            _ => Ok(()),
        }),
        ..RESIZE
    },
    &Op {
        name: "ResizeArea",
        kernels: &[Kernel::native(by_area).for_types(NUMBERS)],
        lower: None,
        gradient: Gradient::Missing,
        ..RESIZE
    },
];

/// Extents and scales of a resize.
pub struct Geometry {
    /// Images.
    pub batch: usize,
    /// Height and width.
    pub input: [usize; 2],
    /// Height and width.
    pub output: [usize; 2],
    /// Channels.
    pub channels: usize,
    /// Scales of height and width.
    pub scale: [Scale; 2],
}

/// The scales from `input` to `output`. INVALID_ARGUMENT for attributes that exclude each other.
pub fn scales(attrs: &Attrs, input: [usize; 2], output: [usize; 2]) -> Result<[Scale; 2]> {
    let align = attrs.bool("align_corners")?;
    let half_pixel = attrs.bool("half_pixel_centers").unwrap_or(false);
    ensure!(
        !(align && half_pixel),
        InvalidArgument,
        "If half_pixel_centers is True, align_corners must be False."
    );
    Ok([0, 1].map(|axis| Scale::new(input[axis], output[axis], align, half_pixel)))
}

impl Geometry {
    /// From an image at input 0 and a size at input 1. INVALID_ARGUMENT for empty images or sizes.
    fn of(context: &KernelContext) -> Result<Geometry> {
        let [batch, height, width, channels] = image_extents(context, 0)?;
        let size = context.input_i64s(1)?;
        ensure!(
            size.len() == 2,
            InvalidArgument,
            "shape_t must have two elements {}",
            context.input(1)?.shape()
        );
        ensure!(
            size[0] > 0 && size[1] > 0,
            InvalidArgument,
            "output dimensions must be positive"
        );
        ensure!(
            channels > 0,
            InvalidArgument,
            "image must have at least one channel"
        );
        ensure!(
            height > 0 && width > 0,
            InvalidArgument,
            "input image must be of non-zero size"
        );
        let (input, output) = ([height, width], [size[0] as usize, size[1] as usize]);
        Ok(Geometry {
            batch,
            input,
            output,
            channels,
            scale: scales(context.attrs(), input, output)?,
        })
    }

    fn image_len(&self) -> usize {
        self.input[0] * self.input[1] * self.channels
    }

    /// Calls `body(image, output row, its elements)` for every row of the output, on several threads.
    fn rows<T: Send>(
        &self,
        pool: &ThreadPool,
        output: &mut [T],
        body: impl Fn(usize, usize, &mut [T]) + Sync,
    ) {
        let row = self.output[1] * self.channels;
        let shared = SharedMut::new(output);
        pool.parallel_for(self.batch * self.output[0], 4.0 * row as f64, |rows| {
            for index in rows {
                // SAFETY: rows are disjoint.
                let out = unsafe { shared.range(index * row..(index + 1) * row) };
                body(index / self.output[0], index % self.output[0], out);
            }
        });
    }
}

fn bilinear(context: &mut KernelContext) -> Result<()> {
    let geometry = Geometry::of(context)?;
    let mut output = context.allocate_output(0)?;
    if geometry.batch == 0 {
        return context.set_output(0, output);
    }
    let [height, width] = geometry.input;
    let ys = linear(geometry.scale[0], height, geometry.output[0])?;
    let xs = linear(geometry.scale[1], width, geometry.output[1])?;
    let image = f32s(context.input(0)?)?;
    let (row, channels) = (width * geometry.channels, geometry.channels);
    geometry.rows(context.pool(), output.as_mut_slice::<f32>()?, |batch, y, out| {
        let y = ys[y];
        let image = &image[batch * geometry.image_len()..][..geometry.image_len()];
        let (top, bottom) = (&image[y.lower * row..][..row], &image[y.upper * row..][..row]);
        for (out, x) in out.chunks_exact_mut(channels).zip(&xs) {
            let (left, right) = (x.lower * channels, x.upper * channels);
            for (c, out) in out.iter_mut().enumerate() {
                let above = top[left + c] + (top[right + c] - top[left + c]) * x.weight;
                let below = bottom[left + c] + (bottom[right + c] - bottom[left + c]) * x.weight;
                *out = above + (below - above) * y.weight;
            }
        }
    });
    context.set_output(0, output)
}

fn nearest(context: &mut KernelContext) -> Result<()> {
    let geometry = Geometry::of(context)?;
    let mut output = context.allocate_output(0)?;
    if geometry.batch == 0 {
        return context.set_output(0, output);
    }
    let size = output.dtype().size() * geometry.channels;
    let source = |axis: usize, x: usize| geometry.scale[axis].nearest(x, geometry.input[axis]);
    let columns = crate::wide::collected((0..geometry.output[1]).map(|x| source(1, x) * size))?;
    let image = context.input(0)?.bytes();
    let row = geometry.input[1] * size;
    let bytes = Geometry {
        channels: size,
        ..geometry
    };
    let target = output.bytes_mut().unwrap_or(&mut []);
    bytes.rows(context.pool(), target, |batch, y, out| {
        let y = bytes.scale[0].nearest(y, bytes.input[0]);
        let line = &image[(batch * bytes.input[0] + y) * row..][..row];
        for (out, &x) in out.chunks_exact_mut(size).zip(&columns) {
            out.copy_from_slice(&line[x..x + size]);
        }
    });
    context.set_output(0, output)
}

fn bicubic(context: &mut KernelContext) -> Result<()> {
    let geometry = Geometry::of(context)?;
    let mut output = context.allocate_output(0)?;
    if geometry.batch == 0 {
        return context.set_output(0, output);
    }
    let [height, width] = geometry.input;
    let ys = cubic(geometry.scale[0], height, geometry.output[0])?;
    let xs = cubic(geometry.scale[1], width, geometry.output[1])?;
    let image = f32s(context.input(0)?)?;
    let (row, channels) = (width * geometry.channels, geometry.channels);
    geometry.rows(context.pool(), output.as_mut_slice::<f32>()?, |batch, y, out| {
        let image = &image[batch * geometry.image_len()..][..geometry.image_len()];
        let y = ys[y];
        let lines = y.index.map(|index| &image[index * row..][..row]);
        let column = |at: usize| (0..4).map(|i| lines[i][at] * y.weight[i]).sum::<f32>();
        for (out, x) in out.chunks_exact_mut(channels).zip(&xs) {
            for (c, out) in out.iter_mut().enumerate() {
                *out = (0..4)
                    .map(|i| column(x.index[i] * channels + c) * x.weight[i])
                    .sum();
            }
        }
    });
    context.set_output(0, output)
}

fn by_area(context: &mut KernelContext) -> Result<()> {
    let geometry = Geometry::of(context)?;
    let mut output = context.allocate_output(0)?;
    if geometry.batch == 0 {
        return context.set_output(0, output);
    }
    let factors = [geometry.scale[0].factor, geometry.scale[1].factor];
    let scale = 1.0 / (factors[0] * factors[1]);
    let (ys, xs) = (
        area(factors[0], geometry.output[0])?,
        area(factors[1], geometry.output[1])?,
    );
    let image = f32s(context.input(0)?)?;
    let (row, channels) = (geometry.input[1] * geometry.channels, geometry.channels);
    let bound = |at: i64, axis: usize| at.clamp(0, geometry.input[axis] as i64 - 1) as usize;
    geometry.rows(context.pool(), output.as_mut_slice::<f32>()?, |batch, y, out| {
        let image = &image[batch * geometry.image_len()..][..geometry.image_len()];
        let y = &ys[y];
        for (out, x) in out.chunks_exact_mut(channels).zip(&xs) {
            out.fill(0.0);
            for (i, &share_y) in y.shares.iter().enumerate() {
                let line = &image[bound(y.start + i as i64, 0) * row..][..row];
                for (j, &share_x) in x.shares.iter().enumerate() {
                    let pixel = &line[bound(x.start + j as i64, 1) * channels..][..channels];
                    for (out, &value) in out.iter_mut().zip(pixel) {
                        *out += value * share_x * share_y;
                    }
                }
            }
            out.iter_mut().for_each(|out| *out *= scale);
        }
    });
    context.set_output(0, output)
}

/// The attributes that say how pixels map.
fn mapping(context: &GradientContext) -> Result<Attrs> {
    let attrs = context.attrs();
    Ok(Attrs::new()
        .with("align_corners", attrs.bool("align_corners")?)
        .with("half_pixel_centers", attrs.bool("half_pixel_centers")?))
}

fn gradient(context: &mut GradientContext, op: &str) -> Result<()> {
    let (incoming, image) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let attrs = mapping(context)?.with("T", context.input_type(0));
    let gradient = context.op(op, &[incoming, image], attrs)?;
    context.set(0, gradient);
    Ok(())
}

/// Height and width of an image, as an int32 vector.
pub fn size_of(context: &mut GradientContext, image: OutputRef) -> Result<OutputRef> {
    let shape = context.host.shape(image);
    if shape.rank() == Some(4) && shape.dim(1) >= 0 && shape.dim(2) >= 0 {
        return context.constant(Tensor::vector(&[shape.dim(1) as i32, shape.dim(2) as i32])?);
    }
    let dims = crate::math::gradients::shape_of(context, image)?;
    let (begin, size) = (context.int32s(&[1])?, context.int32s(&[2])?);
    let attrs = Attrs::new()
        .with("T", DataType::INT32)
        .with("Index", DataType::INT32);
    context.op("Slice", &[dims, begin, size], attrs)
}

fn nearest_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, image) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let size = size_of(context, image)?;
    let attrs = mapping(context)?.with("T", context.dtype(incoming));
    let gradient = context.op("ResizeNearestNeighborGrad", &[incoming, size], attrs)?;
    context.set(0, gradient);
    Ok(())
}

crate::op_cases! {
    no_images_of_rows_beyond_memory: family(&["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"], &FLOATS[..1], |op, _| Case::op(op)
        .inputs([t::<f32>(&[0, 1, 1, 1], &[]), vector(&[2147483646, 1])]).gives(t::<f32>(&[0, 2147483646, 1, 1], &[])).without_gradient());
    every_type: family(&["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"], &[FLOATS, &INTEGERS[..6]].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 4, 2]), vector(&[5, 3])])
    });
    half_pixels: family(&["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 5, 4, 1]), vector(&[3, 7])]).attr("half_pixel_centers", true)
    });
    aligned: family(&["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 5, 4, 1]), vector(&[3, 7])]).attr("align_corners", true)
    });
    smaller: family(&["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 7, 6, 3]), vector(&[2, 4])])
    });
    single_pixel: family(&["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 1, 1, 2]), vector(&[2, 2])])
    });
    no_images_of_many_rows: family(&["ResizeBilinear", "ResizeNearestNeighbor"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[0, 2, 2, 1]), vector(&[3, 3])])
    });
    empty_size: family(&["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 2, 2, 1]), vector(&[0, 3])]).fails(Code::InvalidArgument)
    });
    negative_size: family(&["ResizeBilinear", "ResizeNearestNeighbor"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 2, 2, 1]), vector(&[-2, 3])]).fails(Code::InvalidArgument)
    });
    empty_image: family(&["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 0, 2, 1]), vector(&[2, 3])]).fails(Code::InvalidArgument)
    });
    both_attributes: family(&["ResizeBilinear", "ResizeBicubic"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[1, 2, 2, 1]), vector(&[2, 3])]).attr("half_pixel_centers", true).attr("align_corners", true)
            .fails(Code::InvalidArgument)
    });
    three_sizes: Case::op("ResizeBilinear").inputs([cycle(DataType::FLOAT, &[1, 2, 2, 1]), vector(&[2, 3, 4])]).fails(Code::InvalidArgument);
}
