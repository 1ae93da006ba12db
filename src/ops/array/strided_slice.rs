//! StridedSlice and its relatives: `x[begin:end:stride, ..., newaxis, i]` in one op.
//!
//! A sparse specification (one entry per item between the brackets, with five bit masks) is resolved against the
//! input's extents once, by [`Slice::resolve`]; shape functions, kernels and lowering all work on the result.

use crate::movement::{self, Region, Writer, row_major};
use ff_hlo::Op as HloOp;
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext, Variable,
};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure};

pub static OPS: &[&Op] = &[
    &Op {
        name: "StridedSlice",
        shape: slice_shape,
        kernels: &[Kernel::native(slice)],
        lower: Some(lower_slice),
        gradient: Gradient::Fn(slice_gradient),
        ..Op::PURE
    },
    &Op {
        name: "StridedSliceGrad",
        shape: |context| {
            let shape = context.input_as_shape(0)?;
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(scatter)],
        lower: Some(lower_scatter),
        gradient: Gradient::Fn(scatter_gradient),
        ..Op::PURE
    },
    &Op {
        name: "TensorStridedSliceUpdate",
        shape: ff_op::shapes::unchanged,
        kernels: &[Kernel::native(update)],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::Fn(update_gradient),
        ..Op::PURE
    },
    &Op {
        name: "StridedSliceAssign",
        shape: ff_op::shapes::unchanged,
        kernels: &[Kernel::native(assign_reference)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
    &Op {
        name: "ResourceStridedSliceAssign",
        shape: ff_op::shapes::none,
        kernels: &[Kernel::native(assign_resource)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
];

/// The items between the brackets; entries of `begin` and `end` are missing when they are not known.
struct Spec {
    begin: Option<Vec<i64>>,
    end: Option<Vec<i64>>,
    strides: Vec<i64>,
    masks: Masks,
}

/// Bit `i` speaks of item `i`.
#[derive(Clone, Copy, Default)]
struct Masks {
    begin: i64,
    end: i64,
    ellipsis: i64,
    new_axis: i64,
    shrink: i64,
}

impl Masks {
    fn of(attrs: &Attrs) -> Result<Masks> {
        Ok(Masks {
            begin: attrs.int("begin_mask")?,
            end: attrs.int("end_mask")?,
            ellipsis: attrs.int("ellipsis_mask")?,
            new_axis: attrs.int("new_axis_mask")?,
            shrink: attrs.int("shrink_axis_mask")?,
        })
    }
}

fn bit(mask: i64, index: usize) -> bool {
    index < 63 && mask >> index & 1 == 1
}

/// What a specification says of one axis of the input.
#[derive(Clone, Copy)]
struct AxisItem {
    begin: Option<i64>,
    end: Option<i64>,
    stride: i64,
    begin_masked: bool,
    end_masked: bool,
    shrink: bool,
}

const WHOLE_AXIS: AxisItem = AxisItem {
    begin: Some(0),
    end: Some(0),
    stride: 1,
    begin_masked: true,
    end_masked: true,
    shrink: false,
};

/// Where an extent of the result comes from.
enum Extent {
    Axis(usize),
    One,
}

/// A specification resolved against extents.
struct Slice {
    /// First element along each input axis; 0 where not known.
    begin: Vec<i64>,
    strides: Vec<i64>,
    /// Number of elements taken along each input axis; -1 where not known.
    sizes: Vec<i64>,
    /// Extents of the result.
    result: Vec<i64>,
}

impl Slice {
    /// Resolves a specification; extents and entries may be unknown. INVALID_ARGUMENT when they do not fit.
    fn resolve(spec: &Spec, dims: &[i64]) -> Result<Slice> {
        let (items, extents) = expand(spec, dims.len())?;
        let mut slice = Slice {
            begin: Vec::with_capacity(dims.len()),
            strides: items.iter().map(|item| item.stride).collect(),
            sizes: Vec::with_capacity(dims.len()),
            result: Vec::with_capacity(extents.len()),
        };
        for (axis, (item, &extent)) in items.iter().zip(dims).enumerate() {
            let (begin, size) = resolve_axis(axis, item, extent)?;
            slice.begin.push(begin);
            slice.sizes.push(size);
        }
        slice.result.extend(extents.iter().map(|extent| match extent {
            Extent::Axis(axis) => slice.sizes[*axis],
            Extent::One => 1,
        }));
        Ok(slice)
    }

    /// The slice as a region of a tensor with these extents.
    fn region(&self, dims: &[i64]) -> (i64, Vec<i64>) {
        let dense = row_major(dims);
        let offset = self
            .begin
            .iter()
            .zip(&dense)
            .map(|(begin, step)| begin * step)
            .sum();
        let strides = self.strides.iter().zip(&dense);
        (offset, strides.map(|(stride, step)| stride * step).collect())
    }
}

/// One item per input axis, and where the extents of the result come from.
fn expand(spec: &Spec, rank: usize) -> Result<(Vec<AxisItem>, Vec<Extent>)> {
    let (masks, count) = (&spec.masks, spec.strides.len());
    ensure!(
        masks.ellipsis.count_ones() <= 1,
        InvalidArgument,
        "Multiple ellipses in slice spec not allowed"
    );
    let ellipsis = (0..count).find(|&i| bit(masks.ellipsis, i)).unwrap_or(count);
    let is_axis = |&i: &usize| i != ellipsis && !bit(masks.new_axis, i);
    let axes_after = (ellipsis + 1..count).filter(is_axis).count();
    let (mut items, mut extents) = (Vec::with_capacity(rank), Vec::new());
    for i in 0..=count {
        if i == ellipsis {
            while items.len() + axes_after < rank {
                extents.push(Extent::Axis(items.len()));
                items.push(WHOLE_AXIS);
            }
        } else if i == count {
            break;
        } else if bit(masks.new_axis, i) {
            extents.push(Extent::One);
        } else {
            ensure!(
                items.len() < rank,
                InvalidArgument,
                "Index out of range using input dim {}; input has only {rank} dims",
                items.len()
            );
            let shrink = bit(masks.shrink, i);
            if !shrink {
                extents.push(Extent::Axis(items.len()));
            }
            items.push(AxisItem {
                begin: spec.begin.as_ref().map(|begin| begin[i]),
                end: spec.end.as_ref().map(|end| end[i]),
                stride: spec.strides[i],
                begin_masked: bit(masks.begin, i),
                end_masked: bit(masks.end, i),
                shrink,
            });
        }
    }
    Ok((items, extents))
}

/// First element and number of elements along one axis; the number is -1 where it is not known.
fn resolve_axis(axis: usize, item: &AxisItem, extent: i64) -> Result<(i64, i64)> {
    let stride = item.stride;
    ensure!(stride != 0, InvalidArgument, "strides[{axis}] must be non-zero");
    if item.shrink {
        ensure!(
            stride > 0,
            InvalidArgument,
            "only stride 1 allowed on non-range indexing."
        );
        let (Some(begin), true) = (item.begin, dim::is_known(extent)) else {
            return Ok((0, 1));
        };
        let place = if begin < 0 {
            begin.saturating_add(extent)
        } else {
            begin
        };
        ensure!(
            (0..extent).contains(&place),
            InvalidArgument,
            "slice index {begin} of dimension {axis} out of bounds."
        );
        return Ok((place, 1));
    }
    if !dim::is_known(extent) {
        return Ok((0, dim::UNKNOWN));
    }
    let (first, last) = if stride > 0 { (0, extent) } else { (-1, extent - 1) };
    let place = |value: i64| {
        if value < 0 {
            value.saturating_add(extent)
        } else {
            value
        }
        .clamp(first, last)
    };
    let (low, high) = if stride > 0 { (first, last) } else { (last, first) };
    let begin = if item.begin_masked {
        Some(low)
    } else {
        item.begin.map(place)
    };
    let end = if item.end_masked {
        Some(high)
    } else {
        item.end.map(place)
    };
    let (Some(begin), Some(end)) = (begin, end) else {
        return Ok((0, dim::UNKNOWN));
    };
    let length = end - begin;
    let size = if length == 0 || (length < 0) != (stride < 0) {
        0
    } else {
        length / stride + i64::from(length % stride != 0)
    };
    Ok((begin, size))
}

fn check_lengths(begin: Option<&Tensor>, end: Option<&Tensor>, strides: &Tensor) -> Result<()> {
    for tensor in [begin, end, Some(strides)].into_iter().flatten() {
        ensure!(
            tensor.rank() == 1
                && tensor.num_elements() == strides.num_elements()
                && tensor.num_elements() < 32,
            InvalidArgument,
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes {} and {} instead.",
            tensor.shape(),
            strides.shape()
        );
    }
    Ok(())
}

fn spec_of(attrs: &Attrs, begin: Option<Tensor>, end: Option<Tensor>, strides: &Tensor) -> Result<Spec> {
    check_lengths(begin.as_ref(), end.as_ref(), strides)?;
    let values = |tensor: Option<Tensor>| tensor.map(|tensor| tensor.to_i64_vec()).transpose();
    Ok(Spec {
        begin: values(begin)?,
        end: values(end)?,
        strides: strides.to_i64_vec()?,
        masks: Masks::of(attrs)?,
    })
}

fn slice_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input(0);
    let mut items = context.input_with_rank(1, 1)?;
    for index in [2, 3] {
        items = items.merge(&context.input_with_rank(index, 1)?)?;
    }
    let (Some(strides), Some(dims)) = (context.input_value(3), input.dims()) else {
        return Ok(());
    };
    let (begin, end) = (context.input_value(1), context.input_value(2));
    let spec = spec_of(context.attrs(), begin, end, &strides)?;
    let slice = Slice::resolve(&spec, dims)?;
    context.set_output(0, PartialShape::new(&slice.result));
    if let Some(handle) = context.input_handle(0) {
        context.set_output_handle(0, handle);
    }
    Ok(())
}

/// The slice that a kernel's inputs `first..first + 3` and masks mean for these extents.
fn resolve_at(context: &KernelContext, first: usize, dims: &[i64]) -> Result<Slice> {
    let [begin, end, strides] = [0, 1, 2].map(|i| context.input(first + i));
    let spec = spec_of(
        context.attrs(),
        Some(begin?.clone()),
        Some(end?.clone()),
        strides?,
    )?;
    Slice::resolve(&spec, dims)
}

fn slice(context: &mut KernelContext) -> Result<()> {
    let slice = resolve_at(context, 1, context.input(0)?.dims())?;
    let input = context.take_input(0)?;
    let shape = Shape::new(&slice.result)?;
    let whole =
        slice.strides.iter().all(|&stride| stride == 1) && shape.num_elements() == input.num_elements();
    if whole {
        return context.set_output(0, input.into_shape(shape)?);
    }
    let (offset, strides) = slice.region(input.dims());
    let region = Region {
        offset,
        strides: &strides,
    };
    let output = movement::read(&input, Shape::new(&slice.sizes)?, region)?;
    context.set_output(0, output.into_shape(shape)?)
}

/// Writes `value`, which must have the slice's shape, into a slice.
fn write(writer: &mut Writer, dims: &[i64], slice: &Slice, value: &Tensor) -> Result<()> {
    ensure!(
        value.dims() == slice.result,
        InvalidArgument,
        "shape of value must match the slice: got {}, expected {}",
        value.shape(),
        PartialShape::new(&slice.result)
    );
    let (offset, strides) = slice.region(dims);
    let to = Region {
        offset,
        strides: &strides,
    };
    let dense = row_major(&slice.sizes);
    let from = Region {
        offset: 0,
        strides: &dense,
    };
    writer.write(&slice.sizes, to, value, from)
}

fn scatter(context: &mut KernelContext) -> Result<()> {
    let dims = context.input_i64s(0)?;
    let slice = resolve_at(context, 1, &dims)?;
    let gradient = context.take_input(4)?;
    let mut writer = Writer::zeros(gradient.dtype(), Shape::new(&dims)?)?;
    write(&mut writer, &dims, &slice, &gradient)?;
    context.set_output(0, writer.finish()?)
}

/// A value of the slice's shape: the value itself, or repeated along axes where it has extent 1.
fn fit(value: &Tensor, slice: &Slice) -> Result<Tensor> {
    if value.dims() == slice.result {
        return Ok(value.clone());
    }
    let shape = Shape::new(&slice.result)?;
    let joined = ff_op::shapes::broadcast(&value.partial_shape(), &PartialShape::from(&shape))?;
    ensure!(
        joined == PartialShape::from(&shape),
        InvalidArgument,
        "value of shape {} does not fit a slice of shape {shape}",
        value.shape()
    );
    movement::broadcast(value, shape)
}

fn update(context: &mut KernelContext) -> Result<()> {
    let dims = context.input(0)?.dims().to_vec();
    let slice = resolve_at(context, 1, &dims)?;
    let value = fit(&context.take_input(4)?, &slice)?;
    let mut writer = Writer::onto(context.take_input(0)?)?;
    write(&mut writer, &dims, &slice, &value)?;
    context.set_output(0, writer.finish()?)
}

/// Replaces a slice of a variable's value.
fn assign(context: &KernelContext, variable: &mut Tensor) -> Result<()> {
    let dims = variable.dims().to_vec();
    let slice = resolve_at(context, 1, &dims)?;
    let value = fit(context.input(4)?, &slice)?;
    let mut writer = Writer::onto(std::mem::replace(variable, value.clone()))?;
    let written = write(&mut writer, &dims, &slice, &value);
    *variable = writer.finish()?;
    written
}

fn assign_reference(context: &mut KernelContext) -> Result<()> {
    let variable = context.ref_input(0)?.clone();
    variable.update(|tensor| assign(context, tensor))?;
    context.set_output_ref(0, variable);
    Ok(())
}

fn assign_resource(context: &mut KernelContext) -> Result<()> {
    let variable = context.resource::<Variable>(0)?;
    variable.update(|tensor| assign(context, tensor))
}

/// The slice that a lowering's constant inputs `first..first + 3` mean.
fn resolve_constants(context: &mut LowerContext, first: usize, dims: &[i64]) -> Result<Slice> {
    let (begin, end) = (context.constant(first)?, context.constant(first + 1)?);
    let strides = context.constant(first + 2)?;
    let spec = spec_of(context.attrs(), Some(begin), Some(end), &strides)?;
    Slice::resolve(&spec, dims)
}

fn lower_slice(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let slice = resolve_constants(context, 1, &dims)?;
    let mut value = context.input(0)?;
    let (mut start, mut limit, mut stride) = (Vec::new(), Vec::new(), Vec::new());
    let mut reversed = Vec::new();
    for axis in 0..dims.len() {
        let (begin, step, size) = (slice.begin[axis], slice.strides[axis].abs(), slice.sizes[axis]);
        let first = if slice.strides[axis] < 0 {
            reversed.push(axis as i64);
            dims[axis] - 1 - begin
        } else {
            begin
        };
        let first = if size == 0 { 0 } else { first };
        start.push(first);
        limit.push(if size == 0 {
            0
        } else {
            first + (size - 1) * step + 1
        });
        stride.push(step);
    }
    if !reversed.is_empty() {
        value = context.builder.reverse(value, &reversed)?;
    }
    value = context.builder.slice(value, &start, &limit, &stride)?;
    value = context.builder.reshape(value, &slice.result)?;
    context.set_output(0, value);
    Ok(())
}

/// Zeros with the incoming gradient in the slice: a pad, with gaps for strides, reversed for negative ones.
fn lower_scatter(context: &mut LowerContext) -> Result<()> {
    let dims = context.constant_i64s(0)?;
    let slice = resolve_constants(context, 1, &dims)?;
    let gradient = context.input(4)?;
    let gradient = context.builder.reshape(gradient, &slice.sizes)?;
    let value = pad_into(context, gradient, &dims, &slice)?;
    context.set_output(0, value);
    Ok(())
}

fn pad_into(context: &mut LowerContext, mut value: HloOp, dims: &[i64], slice: &Slice) -> Result<HloOp> {
    let dtype = context.builder.dtype(value);
    if slice.sizes.contains(&0) {
        return context.builder.full(dtype, dims, 0.0);
    }
    let mut config = ff_hlo::PadConfig::default();
    let mut reversed = Vec::new();
    for axis in 0..dims.len() {
        let (stride, size) = (slice.strides[axis], slice.sizes[axis]);
        let first = if stride < 0 {
            reversed.push(axis as i64);
            slice.begin[axis] + (size - 1) * stride
        } else {
            slice.begin[axis]
        };
        let step = stride.abs();
        config.push(ff_hlo::PadDimension {
            low: first,
            high: dims[axis] - first - (size - 1) * step - 1,
            interior: step - 1,
        });
    }
    if !reversed.is_empty() {
        value = context.builder.reverse(value, &reversed)?;
    }
    let zero = context.builder.scalar(dtype, 0.0)?;
    context.builder.pad(value, zero, config)
}

/// The five masks of a node, for a node of its gradient.
fn mask_attrs(attrs: &Attrs) -> Result<Attrs> {
    let names = [
        "begin_mask",
        "end_mask",
        "ellipsis_mask",
        "new_axis_mask",
        "shrink_axis_mask",
    ];
    names
        .iter()
        .try_fold(Attrs::new(), |masks, name| Ok(masks.with(name, attrs.int(name)?)))
}

fn slice_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, masks) = (context.incoming_or_zeros(0)?, mask_attrs(context.attrs())?);
    let index_type = context.attrs().dtype("Index")?;
    let input = context.input(0)?;
    let shape = context.op("Shape", &[input], Attrs::new().with("out_type", index_type))?;
    let (begin, end, strides) = (context.input(1)?, context.input(2)?, context.input(3)?);
    let scattered = context.op("StridedSliceGrad", &[shape, begin, end, strides, gradient], masks)?;
    context.set(0, scattered);
    Ok(())
}

fn scatter_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, masks) = (context.incoming_or_zeros(0)?, mask_attrs(context.attrs())?);
    let (begin, end, strides) = (context.input(1)?, context.input(2)?, context.input(3)?);
    let sliced = context.op("StridedSlice", &[gradient, begin, end, strides], masks)?;
    context.set(4, sliced);
    Ok(())
}

fn update_gradient(context: &mut GradientContext) -> Result<()> {
    let (gradient, masks) = (context.incoming_or_zeros(0)?, mask_attrs(context.attrs())?);
    let (begin, end, strides) = (context.input(1)?, context.input(2)?, context.input(3)?);
    let value = context.input(4)?;
    let sliced = context.op("StridedSlice", &[gradient, begin, end, strides], masks.clone())?;
    let zeros = context.op("ZerosLike", &[value], Attrs::new())?;
    let kept = context.op(
        "TensorStridedSliceUpdate",
        &[gradient, begin, end, strides, zeros],
        masks,
    )?;
    context.set(0, kept);
    context.set(4, sliced);
    Ok(())
}

crate::op_cases! {
    columns_backwards: Case::op("StridedSlice")
        .input(t(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]))
        .inputs([vector(&[0, 2]), vector(&[2, -9]), vector(&[1, -2])])
        .gives(t(&[2, 2], &[3.0f32, 1.0, 6.0, 4.0]));
    all_masks: Case::op("StridedSlice")
        .input(counting(DataType::INT32, &[3, 4, 5]))
        .inputs([vector(&[1i64, 0, 0, -1]), vector(&[0i64, 0, 0, 0]), vector(&[1i64, 1, 1, 1])])
        .attr("shrink_axis_mask", 9i64).attr("ellipsis_mask", 2i64).attr("new_axis_mask", 4i64)
        .gives(t(&[4, 1], &[24i32, 29, 34, 39]));
    empty: Case::op("StridedSlice")
        .input(t(&[3], &[1i64, 2, 3])).inputs([vector(&[2]), vector(&[1]), vector(&[1])])
        .gives(t::<i64>(&[0], &[]));
    strings_by_steps: Case::op("StridedSlice")
        .input(strings(&[4], &["a", "b", "c", "d"])).inputs([vector(&[0]), vector(&[4]), vector(&[2])])
        .gives(strings(&[2], &["a", "c"]));
    zero_stride: Case::op("StridedSlice")
        .input(t(&[3], &[1i64, 2, 3])).inputs([vector(&[0]), vector(&[1]), vector(&[0])])
        .fails(Code::InvalidArgument);
    index_out_of_bounds: Case::op("StridedSlice")
        .input(t(&[3], &[1i64, 2, 3])).inputs([vector(&[3]), vector(&[4]), vector(&[1])])
        .attr("shrink_axis_mask", 1i64)
        .fails(Code::InvalidArgument);
    too_many_items: Case::op("StridedSlice")
        .input(t(&[3], &[1i64, 2, 3])).inputs([vector(&[0, 0]), vector(&[1, 1]), vector(&[1, 1])])
        .fails(Code::InvalidArgument);
    scattered: Case::op("StridedSliceGrad")
        .inputs([vector(&[5]), vector(&[4]), vector(&[0]), vector(&[-2]), t(&[2], &[1.0f32, 2.0])])
        .gives(t(&[5], &[0.0f32, 0.0, 2.0, 0.0, 1.0]));
    scattered_misfit: Case::op("StridedSliceGrad")
        .inputs([vector(&[5]), vector(&[0]), vector(&[2]), vector(&[1]), t(&[3], &[1.0f32, 2.0, 3.0])])
        .fails(Code::InvalidArgument);
    updated: Case::op("TensorStridedSliceUpdate")
        .inputs([vector(&[1i32, 2, 3]), vector(&[1]), vector(&[3]), vector(&[1]), vector(&[8i32, 9])])
        .gives(vector(&[1i32, 8, 9]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use ff_op::ShapeHost;

    /// Only strides are known.
    struct Strides(Tensor);

    impl ShapeHost for Strides {
        fn input_value(&self, index: usize) -> Option<Tensor> {
            (index == 3).then(|| self.0.clone())
        }
    }

    #[test]
    fn masks_tell_extents_where_bounds_do_not() {
        let case = [
            t::<f32>(&[0, 7, 3], &[]),
            vector(&[0, 0]),
            vector(&[0, 0]),
            vector(&[1, 1]),
        ];
        let attrs = Attrs::new()
            .with("begin_mask", 1i64)
            .with("end_mask", 1i64)
            .with("shrink_axis_mask", 2i64);
        let node = node("StridedSlice", "slice", &case, attrs).unwrap();
        let shapes = [
            PartialShape::new(&[-1, 7, 3]),
            PartialShape::of_rank(1),
            PartialShape::of_rank(1),
            PartialShape::new(&[2]),
        ];
        let host = Strides(vector(&[1, 1]));
        let mut context = ShapeContext::new(&node, &shapes, &host);
        slice_shape(&mut context).unwrap();
        assert_eq!(context.finish().0[..], [PartialShape::new(&[-1, 3])]);
        let known = [
            PartialShape::new(&[5, 7, 3]),
            shapes[1].clone(),
            shapes[2].clone(),
            shapes[3].clone(),
        ];
        let mut context = ShapeContext::new(&node, &known, &host);
        slice_shape(&mut context).unwrap();
        assert_eq!(context.finish().0[..], [PartialShape::new(&[5, 3])]);
    }
}
