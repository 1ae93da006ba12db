//! Sliding windows as patches: `ExtractImagePatches` and `ExtractVolumePatches`.
//!
//! Each output pixel holds the pixels of its window, one after the other; zeros outside of the image.

use crate::nn::geometry::{Axis, Format, Padding, axis, output_extent};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, Result, Tensor, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ExtractImagePatches",
        shape: |context| shape(context, 2),
        kernels: &[Kernel::native(|context| extract(context, 2))],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::Fn(|context| gradient(context, 2)),
        ..Op::PURE
    },
    &Op {
        name: "ExtractVolumePatches",
        shape: |context| shape(context, 3),
        kernels: &[Kernel::native(|context| extract(context, 3))],
        gradient: Gradient::Fn(|context| gradient(context, 3)),
        ..Op::PURE
    },
];

/// Window extents, strides and dilations of the spatial axes.
fn window(attrs: &Attrs, format: Format) -> Result<[Vec<i64>; 3]> {
    Ok([
        format.spatial_of(attrs, "ksizes", false)?,
        format.spatial_of(attrs, "strides", false)?,
        format.spatial_of(attrs, "rates", false)?,
    ])
}

fn shape(context: &mut ShapeContext, spatial: usize) -> Result<()> {
    let format = Format {
        spatial,
        channels_last: true,
    };
    let input = context.input_with_rank(0, spatial + 2)?;
    let [windows, strides, rates] = window(context.attrs(), format)?;
    let padding = Padding::of(context.attrs(), format)?;
    let mut extents = Vec::with_capacity(spatial);
    let mut depth = input.dim(spatial as i64 + 1);
    for i in 0..spatial {
        let extent = input.dim(i as i64 + 1);
        extents.push(output_extent(
            &padding, i, extent, windows[i], strides[i], rates[i],
        )?);
        depth = dim::mul(depth, windows[i])?;
    }
    context.set_output(0, format.shape(input.dim(0), &extents, depth));
    Ok(())
}

fn extract(context: &mut KernelContext, spatial: usize) -> Result<()> {
    let format = Format {
        spatial,
        channels_last: true,
    };
    let [windows, strides, rates] = window(context.attrs(), format)?;
    let padding = Padding::of(context.attrs(), format)?;
    let mut output = context.allocate_output(0)?;
    let input = context.input(0)?;
    let dims = input.dims();
    // A plane is a volume of one layer.
    let unit = Axis {
        input: 1,
        window: 1,
        stride: 1,
        dilation: 1,
        low: 0,
        high: 0,
        output: 1,
    };
    let mut axes = [unit; 3];
    for i in 0..spatial {
        axes[3 - spatial + i] = axis(&padding, i, dims[i + 1], windows[i], strides[i], rates[i])?;
    }
    let pixel = dims[spatial + 1] as usize * input.dtype().size();
    let source = input.bytes();
    let target = output.bytes_mut().unwrap_or(&mut []);
    target.fill(0);
    if pixel > 0 && !target.is_empty() {
        let patch: i64 = windows.iter().product();
        for (index, out) in target.chunks_exact_mut(patch as usize * pixel).enumerate() {
            copy_patch(&axes, index as i64, source, pixel, out);
        }
    }
    context.set_output(0, output)
}

/// Copies the window of one output pixel; pixels outside are left as they are.
fn copy_patch(axes: &[Axis; 3], index: i64, source: &[u8], pixel: usize, out: &mut [u8]) {
    let mut rest = index;
    let mut corner = [0; 3];
    for i in (0..3).rev() {
        corner[i] = rest % axes[i].output * axes[i].stride - axes[i].low;
        rest /= axes[i].output;
    }
    let mut to = 0;
    for z in 0..axes[0].window {
        for y in 0..axes[1].window {
            for x in 0..axes[2].window {
                let at = [z, y, x];
                let place = [0, 1, 2].map(|i| corner[i] + at[i] * axes[i].dilation);
                if (0..3).all(|i| (0..axes[i].input).contains(&place[i])) {
                    let from = ((rest * axes[0].input + place[0]) * axes[1].input + place[1]) * axes[2].input
                        + place[2];
                    out[to..to + pixel].copy_from_slice(&source[from as usize * pixel..][..pixel]);
                }
                to += pixel;
            }
        }
    }
}

/// Taking patches is a convolution with a filter of ones and zeros; the gradient is that convolution's.
/// UNIMPLEMENTED where the number of channels is unknown.
fn gradient(context: &mut GradientContext, spatial: usize) -> Result<()> {
    let format = Format {
        spatial,
        channels_last: true,
    };
    let (incoming, images) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let [windows, ..] = window(context.attrs(), format)?;
    let channels = context.host.shape(images).dim(spatial as i64 + 1);
    ensure!(
        channels >= 0,
        Unimplemented,
        "the gradient of {} needs a known number of channels",
        context.node().op_name()
    );
    let depth = windows.iter().product::<i64>() * channels;
    let mut dims = windows;
    dims.extend([channels, depth]);
    let dtype = context.input_type(0);
    let filter = context.constant(identity(&dims, depth)?)?;
    let cast = Attrs::new().with("SrcT", DataType::FLOAT).with("DstT", dtype);
    let filter = context.op("Cast", &[filter], cast)?;
    let size = crate::math::gradients::shape_of(context, images)?;
    // Patches of volumes are not dilated.
    let rates = match context.attrs().ints("rates") {
        Ok(rates) => rates.to_vec(),
        Err(_) => vec![1; spatial + 2],
    };
    let attrs = Attrs::new()
        .with("T", dtype)
        .with("strides", context.attrs().ints("strides")?.to_vec())
        .with("dilations", rates)
        .with("padding", context.attrs().string("padding")?);
    let op = if spatial == 2 {
        "Conv2DBackpropInput"
    } else {
        "Conv3DBackpropInputV2"
    };
    let gradient = context.op(op, &[size, filter, incoming], attrs)?;
    context.set(0, gradient);
    Ok(())
}

/// A filter that puts each element of a window into a channel of its own.
fn identity(dims: &[i64], depth: i64) -> Result<Tensor> {
    let mut filter = Tensor::zeros(DataType::FLOAT, ff_tensor::Shape::new(dims)?)?;
    let values = filter.as_mut_slice::<f32>()?;
    for i in 0..depth as usize {
        values[i * (depth as usize + 1)] = 1.0;
    }
    Ok(filter)
}

crate::op_cases! {
    planes: family(&["ExtractImagePatches"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).input(cycle(dtype, &[2, 5, 4, 2])).attr("ksizes", vec![1i64, 2, 3, 1]).attr("strides", vec![1i64, 2, 1, 1])
            .attr("rates", vec![1i64, 1, 1, 1]).attr("padding", "SAME")
    });
    planes_dilated: Case::op("ExtractImagePatches").input(cycle(DataType::FLOAT, &[1, 6, 7, 1])).attr("ksizes", vec![1i64, 2, 3, 1])
        .attr("strides", vec![1i64, 2, 1, 1]).attr("rates", vec![1i64, 2, 2, 1]).attr("padding", "VALID");
    planes_dilated_padded: Case::op("ExtractImagePatches").input(cycle(DataType::FLOAT, &[1, 6, 7, 1])).attr("ksizes", vec![1i64, 2, 3, 1])
        .attr("strides", vec![1i64, 2, 1, 1]).attr("rates", vec![1i64, 2, 2, 1]).attr("padding", "SAME");
    planes_of_rank_three: Case::op("ExtractImagePatches").input(cycle(DataType::FLOAT, &[6, 7, 1])).attr("ksizes", vec![1i64, 2, 3, 1])
        .attr("strides", vec![1i64, 2, 1, 1]).attr("rates", vec![1i64, 2, 2, 1]).attr("padding", "SAME").fails(Code::InvalidArgument);
    volumes: family(&["ExtractVolumePatches"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 3, 5, 4, 2])).attr("ksizes", vec![1i64, 2, 2, 3, 1]).attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "SAME")
    });
    volumes_inside: Case::op("ExtractVolumePatches").input(cycle(DataType::FLOAT, &[1, 3, 5, 4, 2])).attr("ksizes", vec![1i64, 2, 2, 3, 1])
        .attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "VALID");
    volumes_of_rank_four: Case::op("ExtractVolumePatches").input(cycle(DataType::FLOAT, &[3, 5, 4, 2])).attr("ksizes", vec![1i64, 2, 2, 3, 1])
        .attr("strides", vec![1i64, 1, 2, 1, 1]).attr("padding", "VALID").fails(Code::InvalidArgument);
}
