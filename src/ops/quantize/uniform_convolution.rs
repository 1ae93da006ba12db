//! Convolutions of uniformly quantized tensors, also with a left side that is quantized on the way.
//!
//! Axes may stand in any order, as the attribute `dimension_numbers` says; there are strides, dilations on both sides,
//! padding, and groups of features or of a batch.

use super::range::{from_integers, integers};
use super::uniform::{Multiplier, Scales, limits};
use super::uniform_product::quantize_all;
use crate::movement::transpose;
use crate::wide::{reserved, zeros};
use ff_op::{Attrs, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure, status};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "UniformQuantizedConvolution",
        shape,
        kernels: &[Kernel::native(convolution)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
    &Op {
        name: "UniformQuantizedConvolutionHybrid",
        shape,
        kernels: &[Kernel::native(hybrid)],
        lower: Some(crate::host_call::lower),
        ..Op::PURE
    },
];

/// Which axis is what: of the input batch, feature and space; of the filter outputs, inputs and space; of the output as of
/// the input.
struct Axes {
    input: Vec<usize>,
    filter: Vec<usize>,
    output: Vec<usize>,
}

/// The fields of a serialized message of integers, by number; packed ones too.
fn fields(mut bytes: &[u8]) -> Option<[Vec<i64>; 10]> {
    fn varint(bytes: &mut &[u8]) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = bytes.split_first()?;
            *bytes = rest;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }
    let mut all: [Vec<i64>; 10] = Default::default();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let field = all.get_mut((tag >> 3) as usize)?;
        match tag & 7 {
            0 => field.push(varint(&mut bytes)? as i64),
            2 => {
                let length = varint(&mut bytes)? as usize;
                let mut packed = bytes.get(..length)?;
                bytes = &bytes[length..];
                while !packed.is_empty() {
                    field.push(varint(&mut packed)? as i64);
                }
            }
            _ => return None,
        }
    }
    Some(all)
}

impl Axes {
    /// From an attribute. INVALID_ARGUMENT when it does not name axes of tensors of this rank.
    fn of(attrs: &Attrs, rank: usize) -> Result<Axes> {
        let text = attrs.bytes("dimension_numbers")?;
        let all = fields(text)
            .ok_or_else(|| status!(InvalidArgument, "Error parsing convolution dimension numbers."))?;
        if all[3].is_empty() {
            let order: Vec<usize> = (0..rank).collect();
            return Ok(Axes {
                input: order.clone(),
                filter: order.clone(),
                output: order,
            });
        }
        let axes = |first: usize, second: usize, space: usize| -> Result<Vec<usize>> {
            ensure!(
                all[space].len() == rank - 2,
                InvalidArgument,
                "Spatial dimensions size must be rank - 2. Given rank {rank} and spatial dimensions size {}",
                all[space].len()
            );
            let single = |field: usize| all[field].last().copied().unwrap_or(0);
            let named = [single(first), single(second)];
            let mut axes = Vec::with_capacity(rank);
            for axis in named.into_iter().chain(all[space].iter().copied()) {
                ensure!(
                    (0..rank as i64).contains(&axis),
                    InvalidArgument,
                    "Each dimension number must be in region [0, rank). Given rank {rank} and dimension number value {axis}"
                );
                ensure!(
                    !axes.contains(&(axis as usize)),
                    InvalidArgument,
                    "Dimension number {axis} is there twice"
                );
                axes.push(axis as usize);
            }
            Ok(axes)
        };
        Ok(Axes {
            input: axes(1, 2, 3)?,
            filter: axes(5, 4, 6)?,
            output: axes(7, 8, 9)?,
        })
    }
}

/// A spatial axis.
#[derive(Clone, Copy)]
struct Space {
    input: i64,
    filter: i64,
    output: i64,
    stride: i64,
    input_dilation: i64,
    filter_dilation: i64,
    before: i64,
}

/// Everything but the numbers.
struct Geometry {
    axes: Axes,
    space: Vec<Space>,
    batch: i64,
    features: i64,
    feature_groups: i64,
    batch_groups: i64,
}

fn dilated(extent: i64, dilation: i64) -> Result<i64> {
    if extent == 0 {
        return Ok(0);
    }
    dim::add(dim::mul(extent - 1, dilation)?, 1)
}

/// An attribute with a number for each spatial axis; 1 for all where it is empty.
fn per_axis(attrs: &Attrs, name: &str, count: usize) -> Result<Vec<i64>> {
    let values = attrs.ints(name)?;
    if values.is_empty() {
        return Ok(vec![1; count]);
    }
    ensure!(
        values.len() == count,
        InvalidArgument,
        "Size of {name} Attr must be dims - 2."
    );
    ensure!(
        values.iter().all(|&value| value >= 1),
        InvalidArgument,
        "All elements of {name} must be >= 1. Given {values:?}"
    );
    Ok(values.to_vec())
}

fn check_padding(attrs: &Attrs) -> Result<(&str, &[i64])> {
    let (padding, explicit) = (attrs.string("padding")?, attrs.ints("explicit_padding")?);
    ensure!(
        matches!(padding, "EXPLICIT" | "SAME" | "VALID"),
        InvalidArgument,
        "padding Attr must be one of [EXPLICIT | SAME | VALID], but given: {padding}"
    );
    ensure!(
        padding == "EXPLICIT" || explicit.is_empty(),
        InvalidArgument,
        "If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. Given padding {padding} and explicit_padding of size {}",
        explicit.len()
    );
    Ok((padding, explicit))
}

fn check_groups(name: &str, groups: i64, input: i64, outputs: i64) -> Result<()> {
    ensure!(
        groups > 0,
        InvalidArgument,
        "{name} must be a positive integer, given: {groups}"
    );
    ensure!(
        input % groups == 0,
        InvalidArgument,
        "{name} must divide the lhs dimension size, but {groups} does not divide {input}"
    );
    ensure!(
        outputs % groups == 0,
        InvalidArgument,
        "rhs output dimension size must be a multiple of {name}, but {outputs} is not a multiple of {groups}"
    );
    Ok(())
}

impl Geometry {
    /// From attributes and extents. INVALID_ARGUMENT when they do not fit.
    fn of(attrs: &Attrs, input: &[i64], filter: &[i64]) -> Result<Geometry> {
        ensure!(
            input.len() == filter.len(),
            InvalidArgument,
            "lhs and rhs must have same dims. Given lhs and rhs of shapes: {input:?} {filter:?}"
        );
        ensure!(
            input.len() > 2,
            InvalidArgument,
            "lhs and rhs shape dims must be at least 3. Given: {}",
            input.len()
        );
        let count = input.len() - 2;
        let strides = per_axis(attrs, "window_strides", count)?;
        let input_dilations = per_axis(attrs, "lhs_dilation", count)?;
        let filter_dilations = per_axis(attrs, "rhs_dilation", count)?;
        let axes = Axes::of(attrs, input.len())?;
        let (feature_groups, batch_groups) =
            (attrs.int("feature_group_count")?, attrs.int("batch_group_count")?);
        let (features, inner) = (input[axes.input[1]], filter[axes.filter[1]]);
        let (batch, outputs) = (input[axes.input[0]], filter[axes.filter[0]]);
        check_groups("feature_group_count", feature_groups, features, outputs)?;
        ensure!(
            features / feature_groups == inner,
            InvalidArgument,
            "lhs feature dimension size divided by feature_group_count must equal the rhs input feature dimension size, but {features} / {feature_groups} != {inner}"
        );
        check_groups("batch_group_count", batch_groups, batch, outputs)?;
        let (padding, explicit) = check_padding(attrs)?;
        ensure!(
            padding != "EXPLICIT" || (explicit.len() == 2 * count && explicit.iter().all(|&pad| pad >= 0)),
            InvalidArgument,
            "explicit_padding Attr must hold 2 * (rank - 2) elements >= 0. Given rank {} and {explicit:?}",
            input.len()
        );
        let mut space = Vec::with_capacity(count);
        for i in 0..count {
            let mut own = Space {
                input: input[axes.input[i + 2]],
                filter: filter[axes.filter[i + 2]],
                output: 0,
                stride: strides[i],
                input_dilation: input_dilations[i],
                filter_dilation: filter_dilations[i],
                before: 0,
            };
            own.place(padding, explicit.get(2 * i..2 * i + 2))?;
            space.push(own);
        }
        Ok(Geometry {
            axes,
            space,
            batch,
            features: outputs,
            feature_groups,
            batch_groups,
        })
    }

    /// The output's extents: batch, feature and space.
    fn ordered_dims(&self) -> Vec<i64> {
        let mut dims = vec![self.batch / self.batch_groups, self.features];
        dims.extend(self.space.iter().map(|space| space.output));
        dims
    }

    /// The output's extents.
    fn dims(&self) -> Vec<i64> {
        let ordered = self.ordered_dims();
        let mut dims = ordered.clone();
        for (&axis, &extent) in self.axes.output.iter().zip(&ordered) {
            dims[axis] = extent;
        }
        dims
    }
}

impl Space {
    /// Finds the padding before and the output's extent.
    fn place(&mut self, padding: &str, explicit: Option<&[i64]>) -> Result<()> {
        let input = dilated(self.input, self.input_dilation)?;
        let filter = dilated(self.filter, self.filter_dilation)?;
        let total = match (padding, explicit) {
            ("EXPLICIT", Some(&[before, after])) => {
                self.before = before;
                dim::add(before, after)?
            }
            ("SAME", _) => {
                let outputs = input.div_ceil_of(self.stride);
                let total = ((outputs - 1) * self.stride + filter - input).max(0);
                self.before = total / 2;
                total
            }
            _ => 0,
        };
        let room = dim::add(input, total)? - filter + 1;
        ensure!(room >= 0, InvalidArgument, "Dimension {room} must be >= 0");
        self.output = room.div_ceil_of(self.stride);
        Ok(())
    }

    /// The input's place under a place of the window; none in the padding and between dilated elements.
    fn source(&self, output: i64, filter: i64) -> Option<i64> {
        let at = output * self.stride + filter * self.filter_dilation - self.before;
        (at >= 0 && at % self.input_dilation == 0)
            .then_some(at / self.input_dilation)
            .filter(|&at| at < self.input)
    }
}

trait DivCeil {
    fn div_ceil_of(self, by: i64) -> i64;
}

impl DivCeil for i64 {
    fn div_ceil_of(self, by: i64) -> i64 {
        (self + by - 1).div_euclid(by)
    }
}

fn shape(context: &mut ShapeContext) -> Result<()> {
    let attrs = context.attrs();
    check_padding(attrs)?;
    let (input, filter) = (context.input(0), context.input(1));
    match (input.to_shape(), filter.to_shape()) {
        (Some(input), Some(filter)) => {
            let dims = Geometry::of(attrs, input.dims(), filter.dims())?.dims();
            context.set_output(0, PartialShape::new(&dims));
        }
        _ => {
            if let Some(rank) = input.rank().or(filter.rank()) {
                context.set_output(0, PartialShape::of_rank(rank));
            }
        }
    }
    Ok(())
}

/// Integers of a tensor with its axes in this order.
fn ordered(tensor: &Tensor, axes: &[usize]) -> Result<(Vec<i64>, Vec<i64>)> {
    let turned = transpose(tensor, axes)?;
    Ok((integers(&turned)?, turned.dims().to_vec()))
}

/// Sums of products of integers less their zero points, for each place of the ordered output; and of which entry of the
/// batch each is. Padding counts as zero.
fn sums(
    context: &KernelContext,
    geometry: &Geometry,
    (input, input_zero): (&[i64], &dyn Fn(usize) -> i64),
    (filter, filter_zero): (&[i64], &dyn Fn(usize) -> i64),
    finish: &mut dyn FnMut(i32, usize, usize),
) -> Result<()> {
    let output = geometry.ordered_dims();
    let places: i64 = output[2..].iter().product();
    let taps: i64 = geometry.space.iter().map(|space| space.filter).product();
    let area: i64 = geometry.space.iter().map(|space| space.input).product();
    let all_features = input.len() as i64 / (geometry.batch * area).max(1);
    let inner = all_features / geometry.feature_groups;
    for entry in 0..output[0] {
        for feature in 0..output[1] {
            context.host().cancellation().check()?;
            let source = feature / (output[1] / geometry.batch_groups) * output[0] + entry;
            let first = feature / (output[1] / geometry.feature_groups) * inner;
            let (zero, filter_zero) = (input_zero(source as usize), filter_zero(feature as usize));
            for place in 0..places {
                let mut sum = 0i64;
                for tap in 0..taps {
                    let Some(at) = under(&geometry.space, place, tap) else {
                        continue;
                    };
                    for i in 0..inner {
                        let x = input[(((source * all_features) + first + i) * area + at) as usize];
                        let w = filter[((feature * inner + i) * taps + tap) as usize];
                        sum += (x - zero) * (w - filter_zero);
                    }
                }
                finish(sum as i32, source as usize, feature as usize);
            }
        }
    }
    Ok(())
}

/// The input's place, as a number, under a place of the filter at a place of the output.
fn under(space: &[Space], mut place: i64, mut tap: i64) -> Option<i64> {
    let (mut at, mut stride) = (0, 1);
    for axis in space.iter().rev() {
        at += axis.source(place % axis.output, tap % axis.filter)? * stride;
        stride *= axis.input;
        place /= axis.output;
        tap /= axis.filter;
    }
    Some(at)
}

/// The axes of an output that was computed in order, moved to where they belong.
fn moved(tensor: &Tensor, axes: &Axes) -> Result<Tensor> {
    let mut back = vec![0; axes.output.len()];
    for (i, &axis) in axes.output.iter().enumerate() {
        back[axis] = i;
    }
    transpose(tensor, &back)
}

/// Checks that scales belong to the whole tensor, or to the slices of one axis.
fn check_axis(attrs: &Attrs, name: &str, allowed: usize) -> Result<i64> {
    let axis = attrs.int(name)?;
    ensure!(
        axis == -1 || axis == allowed as i64,
        InvalidArgument,
        "{name} Attr must be -1 (per-tensor) or {allowed} (per-channel)."
    );
    Ok(axis)
}

/// Scales, checked against the slices that they are for.
fn scales(context: &KernelContext, first: usize, axis: i64, dims: &[i64]) -> Result<Scales> {
    for input in [first, first + 1] {
        let shape = context.input(input)?.shape();
        let fits = match usize::try_from(axis) {
            Ok(axis) => shape.dims() == [dims[axis]],
            Err(_) => shape.is_scalar(),
        };
        ensure!(
            fits,
            InvalidArgument,
            "scales/zero_points must be scalars, or vectors of one for each slice. Given: {shape}"
        );
    }
    // Counted by slices here, not by elements.
    Scales::of(context, first, &[], axis)
}

fn convolution(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let (least, largest) = limits(attrs, "output_")?;
    ensure!(
        attrs.int("lhs_quantization_axis")? == -1,
        InvalidArgument,
        "lhs_quantization_axis Attr must be -1 (per-tensor)."
    );
    let geometry = Geometry::of(attrs, context.input(0)?.dims(), context.input(1)?.dims())?;
    let axes = &geometry.axes;
    let left = scales(context, 2, -1, &[])?;
    let axis = check_axis(attrs, "rhs_quantization_axis", axes.filter[0])?;
    let right = scales(context, 4, axis, context.input(1)?.dims())?;
    let to_axis = check_axis(attrs, "output_quantization_axis", axes.output[1])?;
    let to = scales(context, 6, to_axis, &geometry.dims())?;
    ensure!(
        axis >= 0 || to_axis < 0,
        InvalidArgument,
        "If rhs is per-tensor quantized, output must be also per-tensor quantized. Given output scales/zero_points of rank 1"
    );
    let mut multipliers = reserved(geometry.features as usize)?;
    for feature in 0..geometry.features as usize {
        let scale = f64::from(left.scales[0]) * f64::from(right.scales[right.at(feature)]);
        multipliers.push(Multiplier::new(scale / f64::from(to.scales[to.at(feature)])));
    }
    let (input, _) = ordered(context.input(0)?, &axes.input)?;
    let (filter, _) = ordered(context.input(1)?, &axes.filter)?;
    let shape = Shape::new(&geometry.ordered_dims())?;
    let mut results: Vec<i64> = reserved(shape.num_elements())?;
    let filter_zero = |feature: usize| right.zeros[right.at(feature)];
    sums(
        context,
        &geometry,
        (&input, &|_| left.zeros[0]),
        (&filter, &filter_zero),
        &mut |sum, _, feature| {
            let product = multipliers[feature].apply(i64::from(sum));
            results.push(
                super::uniform::moved(product, to.zeros[to.at(feature)])
                    .min(largest)
                    .max(least),
            );
        },
    )?;
    let result = from_integers(context.output_type(0), shape, &results)?;
    let result = moved(&result, axes)?;
    context.set_output(0, result)
}

fn hybrid(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let geometry = Geometry::of(attrs, context.input(0)?.dims(), context.input(1)?.dims())?;
    let axes = &geometry.axes;
    let axis = check_axis(attrs, "rhs_quantization_axis", axes.filter[0])?;
    let right = scales(context, 2, axis, context.input(1)?.dims())?;
    let turned = transpose(context.input(0)?, &axes.input)?;
    let numbers = turned.as_slice::<f32>()?;
    let mut input: Vec<i64> = reserved(numbers.len())?;
    let mut quantized: Vec<(f32, i64)> = zeros(geometry.batch as usize)?;
    let row = numbers.len() / quantized.len().max(1);
    for (entry, own) in quantized.iter_mut().enumerate() {
        let (values, scale, zero) = quantize_all(&numbers[entry * row..(entry + 1) * row]);
        input.extend(values);
        *own = (scale, zero);
    }
    let (filter, _) = ordered(context.input(1)?, &axes.filter)?;
    let shape = Shape::new(&geometry.ordered_dims())?;
    let mut results: Vec<f32> = reserved(shape.num_elements())?;
    let filter_zero = |feature: usize| right.zeros[right.at(feature)];
    sums(
        context,
        &geometry,
        (&input, &|entry| quantized[entry].1),
        (&filter, &filter_zero),
        &mut |sum, entry, feature| {
            results.push(sum as f32 * quantized[entry].0 * right.scales[right.at(feature)]);
        },
    )?;
    let result = moved(&Tensor::from_slice(shape, &results)?, axes)?;
    context.set_output(0, result)
}

#[cfg(test)]
use super::convert::q;

#[cfg(test)]
fn numbers_of(count: i64, by: i64) -> Vec<i64> {
    (0..count).map(|i| (i * by + 3) % 23 - 11).collect()
}

#[cfg(test)]
fn bounded(case: crate::testing::Case, prefixes: &[&str]) -> crate::testing::Case {
    prefixes.iter().fold(case, |case, &prefix| {
        let (least, largest) = match prefix {
            "output_" => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (-128, 127),
        };
        case.attr(&format!("{prefix}quantization_min_val"), least)
            .attr(&format!("{prefix}quantization_max_val"), largest)
    })
}

#[cfg(test)]
fn plain(input: &[i64], filter: &[i64]) -> crate::testing::Case {
    use crate::testing::*;
    use ff_tensor::DataType;
    let count = |dims: &[i64]| dims.iter().product::<i64>();
    let case = Case::op("UniformQuantizedConvolution")
        .inputs([
            q(DataType::QINT8, input, &numbers_of(count(input), 7)),
            q(DataType::QINT8, filter, &numbers_of(count(filter), 5)),
        ])
        .inputs([scalar(0.5f32), scalar(2), scalar(0.25f32), scalar(-3)])
        .inputs([scalar(0.375f32), scalar(-20)])
        .attr("Tout", DataType::QINT32)
        .attr("padding", "VALID");
    bounded(case, &["lhs_", "rhs_", "output_"])
}

#[cfg(test)]
fn mixed(dims: &[i64], filter: &[i64]) -> crate::testing::Case {
    use crate::testing::*;
    use ff_tensor::DataType;
    let count = |dims: &[i64]| dims.iter().product::<i64>();
    let numbers: Vec<f32> = numbers_of(count(dims), 7)
        .iter()
        .map(|&x| x as f32 * 0.75)
        .collect();
    let case = Case::op("UniformQuantizedConvolutionHybrid")
        .inputs([
            t(dims, &numbers),
            q(DataType::QINT8, filter, &numbers_of(count(filter), 5)),
        ])
        .attr("Tout", DataType::FLOAT)
        .attr("padding", "SAME");
    bounded(case, &["rhs_"])
}

/// Batch, space and features in this order; the filter's space first.
#[cfg(test)]
const LAST: &str =
    "\x08\0\x10\x03\x1a\x02\x01\x02\x20\x02\x28\x03\x32\x02\0\x01\x38\0\x40\x03\x4a\x02\x01\x02";

crate::op_cases! {
    whole: plain(&[2, 2, 3, 4], &[3, 2, 2, 2]);
    line: plain(&[1, 1, 5], &[2, 1, 3]);
    same: plain(&[1, 2, 3, 4], &[3, 2, 2, 2]).attr("padding", "SAME").attr("window_strides", vec![2i64, 1]);
    dilated_sides: plain(&[1, 2, 5, 4], &[3, 2, 2, 2]).attr("lhs_dilation", vec![2i64, 1]).attr("rhs_dilation", vec![1i64, 2]);
    padded: plain(&[1, 2, 3, 4], &[3, 2, 2, 2]).attr("padding", "EXPLICIT").attr("explicit_padding", vec![1i64, 0, 0, 2]);
    features_in_groups: plain(&[2, 4, 3, 3], &[6, 2, 2, 2]).attr("feature_group_count", 2i64);
    batch_in_groups: plain(&[4, 2, 3, 3], &[6, 2, 2, 2]).attr("batch_group_count", 2i64);
    features_last: plain(&[1, 4, 3, 2], &[2, 2, 2, 3]).attr("dimension_numbers", LAST);
    misfit: plain(&[1, 3, 3, 4], &[3, 2, 2, 2]).fails(Code::InvalidArgument);
    ranks: plain(&[1, 2, 4], &[3, 2, 2, 2]).fails(Code::InvalidArgument);
    planes: plain(&[1, 2], &[3, 2]).fails(Code::InvalidArgument);
    unknown_padding: plain(&[2, 2, 3, 4], &[3, 2, 2, 2]).attr("padding", "FULL").fails(Code::InvalidArgument);
    no_stride: plain(&[2, 2, 3, 4], &[3, 2, 2, 2]).attr("window_strides", vec![0i64, 1]).fails(Code::InvalidArgument);
    too_much_padding: plain(&[2, 2, 3, 4], &[3, 2, 2, 2]).attr("explicit_padding", vec![0i64, 1, 1, 1]).fails(Code::InvalidArgument);
    no_groups: plain(&[2, 2, 3, 4], &[3, 2, 2, 2]).attr("batch_group_count", 0i64).fails(Code::InvalidArgument);
    scales_each: bounded(Case::op("UniformQuantizedConvolution")
        .inputs([q(DataType::QINT8, &[1, 2, 3, 3], &numbers_of(18, 7)), q(DataType::QINT8, &[3, 2, 2, 2], &numbers_of(24, 5))])
        .inputs([scalar(0.5f32), scalar(2), vector(&[0.25f32, 0.5, 0.125]), vector(&[-3, 0, 2])])
        .inputs([vector(&[0.375f32, 0.5, 1.0]), vector(&[-20, 0, 4])]).attr("Tout", DataType::QINT32).attr("padding", "VALID")
        .attr("rhs_quantization_axis", 0i64).attr("output_quantization_axis", 1i64), &["lhs_", "rhs_", "output_"]);
    scales_misfit: bounded(Case::op("UniformQuantizedConvolution")
        .inputs([q(DataType::QINT8, &[1, 2, 3, 3], &numbers_of(18, 7)), q(DataType::QINT8, &[3, 2, 2, 2], &numbers_of(24, 5))])
        .inputs([scalar(0.5f32), scalar(2), vector(&[0.25f32, 0.5]), vector(&[-3, 0])])
        .inputs([scalar(0.375f32), scalar(-20)]).attr("Tout", DataType::QINT32).attr("padding", "VALID")
        .attr("rhs_quantization_axis", 0i64), &["lhs_", "rhs_", "output_"]).fails(Code::InvalidArgument);
    no_scale: bounded(Case::op("UniformQuantizedConvolution")
        .inputs([q(DataType::QINT8, &[1, 1, 3], &[1, 2, 3]), q(DataType::QINT8, &[1, 1, 1], &[1])])
        .inputs([scalar(0.0f32), scalar(2), scalar(0.25f32), scalar(-3), scalar(0.375f32), scalar(-20)])
        .attr("Tout", DataType::QINT32).attr("padding", "VALID"), &["lhs_", "rhs_", "output_"]).fails(Code::InvalidArgument);
    mixed_sides: mixed(&[2, 2, 3, 3], &[3, 2, 2, 2]).inputs([scalar(2.0f32), scalar(4)]);
    mixed_each: mixed(&[2, 2, 3, 3], &[3, 2, 2, 2]).inputs([vector(&[2.0f32, 0.5, 0.25]), vector(&[4, 0, -1])]).attr("rhs_quantization_axis", 0i64);
    mixed_misfit: mixed(&[2, 3, 3, 3], &[3, 2, 2, 2]).inputs([scalar(2.0f32), scalar(4)]).fails(Code::InvalidArgument);
}
