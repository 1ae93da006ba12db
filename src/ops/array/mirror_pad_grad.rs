//! MirrorPadGrad: paddings folded back onto the elements that they mirror.

use crate::match_number;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, bail, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "MirrorPadGrad",
    shape: mirror_pad_grad_shape,
    kernels: &[Kernel::native(mirror_pad_grad)],
    lower: Some(lower_mirror_pad_grad),
    gradient: Gradient::Fn(mirror_pad_grad_gradient),
    ..Op::PURE
}];

/// Pairs (before, after), one per axis. INVALID_ARGUMENT for other shapes and negative numbers.
fn paddings_of(value: &Tensor, rank: usize) -> Result<Vec<(i64, i64)>> {
    ensure!(
        value.dims() == [rank as i64, 2],
        InvalidArgument,
        "The first dimension of paddings must be the rank of inputs [{rank},2], got {}",
        value.shape()
    );
    let values = value.to_i64_vec()?;
    let pairs: Vec<(i64, i64)> = values.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    if let Some((before, after)) = pairs.iter().find(|(before, after)| *before < 0 || *after < 0) {
        bail!(InvalidArgument, "Paddings must be non-negative: {before} {after}");
    }
    Ok(pairs)
}

/// How far the mirror lies from the edge: 0 where the edge itself is repeated (SYMMETRIC), 1 where it is not.
fn mirror_offset(attrs: &Attrs) -> Result<i64> {
    match attrs.string("mode")? {
        "SYMMETRIC" => Ok(0),
        "REFLECT" => Ok(1),
        other => bail!(
            InvalidArgument,
            "mode must be either REFLECT or SYMMETRIC, not {other}"
        ),
    }
}

/// A mirrored band along an axis: where it starts in the padded tensor, and which element it begins with, going back.
struct Band {
    padded: i64,
    inner: i64,
    count: i64,
}

/// The bands before and after an axis of `extent` elements.
fn bands(extent: i64, (before, after): (i64, i64), offset: i64) -> [Band; 2] {
    [
        Band {
            padded: 0,
            inner: before - 1 + offset,
            count: before,
        },
        Band {
            padded: before + extent,
            inner: extent - 1 - offset,
            count: after,
        },
    ]
}

fn mirror_pad_grad_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, paddings) = (context.incoming_or_zeros(0)?, context.input(1)?);
    let attrs = Attrs::new().with("mode", context.attrs().string("mode")?);
    let output = context.op("MirrorPad", &[gradient, paddings], attrs)?;
    context.set(0, output);
    Ok(())
}

fn unpadded(dims: &[i64], paddings: &[(i64, i64)], offset: i64) -> Result<Vec<i64>> {
    let mut inner = Vec::with_capacity(dims.len());
    for (axis, (&extent, &(before, after))) in dims.iter().zip(paddings).enumerate() {
        if extent < 0 {
            inner.push(dim::UNKNOWN);
            continue;
        }
        let rest = extent - before - after;
        ensure!(
            rest > 0 && before <= rest - offset && after <= rest - offset,
            InvalidArgument,
            "Total paddings along dimension {axis} must be less than its extent {extent}: {before}, {after}"
        );
        inner.push(rest);
    }
    Ok(inner)
}

fn mirror_pad_grad_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input(0);
    context.input_with_rank(1, 2)?;
    let Some(dims) = input.dims() else { return Ok(()) };
    let output = match context.input_value(1) {
        Some(value) => {
            let offset = mirror_offset(context.attrs())?;
            PartialShape::new(&unpadded(dims, &paddings_of(&value, dims.len())?, offset)?)
        }
        None => PartialShape::of_rank(dims.len()),
    };
    context.set_output(0, output);
    Ok(())
}

/// The paddings are known.
fn lower_mirror_pad_grad(context: &mut LowerContext) -> Result<()> {
    let offset = mirror_offset(context.attrs())?;
    let paddings = paddings_of(&context.constant(1)?, context.input_dims(0)?.len())?;
    let input = context.input(0)?;
    let output = super::lower_movement::fold_mirrored(context.builder, input, &paddings, offset)?;
    context.set_output(0, output);
    Ok(())
}

/// Folds the paddings back onto the elements that they mirror: the sum of all that came from an element.
fn mirror_pad_grad(context: &mut KernelContext) -> Result<()> {
    let offset = mirror_offset(context.attrs())?;
    let paddings = paddings_of(context.input(1)?, context.input(0)?.rank())?;
    let mut current = context.take_input(0)?;
    for (axis, &(before, after)) in paddings.iter().enumerate() {
        if (before, after) == (0, 0) {
            continue;
        }
        current = fold_axis(&current, axis, (before, after), offset)?;
    }
    context.set_output(0, current)
}

fn fold_axis(padded: &Tensor, axis: usize, pads: (i64, i64), offset: i64) -> Result<Tensor> {
    let mut dims = padded.dims().to_vec();
    let outer: i64 = dims[..axis].iter().product();
    let inner: i64 = dims[axis + 1..].iter().product();
    let wide = dims[axis];
    let extent = wide - pads.0 - pads.1;
    dims[axis] = extent;
    let mut output = Tensor::zeros(padded.dtype(), Shape::new(&dims)?)?;
    let bands = bands(extent, pads, offset);
    match_number!(padded.dtype(), T => {
        let (source, target) = (padded.as_slice::<T>()?, output.as_mut_slice::<T>()?);
        for block in 0..outer {
            let mut add = |to: i64, from: i64| {
                for i in 0..inner {
                    let (to, from) = ((block * extent + to) * inner + i, (block * wide + from) * inner + i);
                    target[to as usize] += source[from as usize];
                }
            };
            for i in 0..extent {
                add(i, pads.0 + i);
            }
            for band in &bands {
                for i in 0..band.count {
                    add(band.inner - i, band.padded + i);
                }
            }
        }
        Ok(())
    })?;
    Ok(output)
}

crate::op_cases! {
    folded: Case::op("MirrorPadGrad").inputs([counting(DataType::FLOAT, &[6, 7]), t(&[2, 2], &[2, 1, 0, 3])])
        .attr("mode", "REFLECT");
    folded_edge: Case::op("MirrorPadGrad").inputs([counting(DataType::DOUBLE, &[6]), t(&[1, 2], &[1, 2])])
        .attr("mode", "SYMMETRIC");
    folded_too_far: Case::op("MirrorPadGrad").inputs([counting(DataType::DOUBLE, &[4]), t(&[1, 2], &[2, 2])])
        .attr("mode", "SYMMETRIC").fails(Code::InvalidArgument);
}
