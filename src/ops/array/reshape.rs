//! The same elements in another shape.

use crate::math::gradients::{shape_of, typed};
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Status, bail, dim, ensure, status};

static RESHAPE: Op = Op {
    name: "Reshape",
    shape: reshape_shape,
    kernels: &[Kernel::native(view)],
    lower: Some(lower_reshape),
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};
static EXPAND_DIMS: Op = Op {
    name: "ExpandDims",
    shape: expand_shape,
    lower: Some(lower_expand),
    ..RESHAPE
};
static SQUEEZE: Op = Op {
    name: "Squeeze",
    shape: squeeze_shape,
    lower: Some(lower_squeeze),
    ..RESHAPE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&RESHAPE, &EXPAND_DIMS, &SQUEEZE];

/// The output's shape was inferred from full shapes and values: only the view is left to make.
fn view(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let tensor = context.take_input(0)?.into_shape(shape)?;
    context.set_output(0, tensor)
}

/// The wanted shape with at most one extent of -1, which takes what is left.
fn reshape_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input(0);
    let wanted = context.input(1).with_rank_at_most(1);
    let wanted = wanted
        .and_then(|_| context.input_as_shape(1))
        .map_err(|error| wrong_sizes(context, error))?;
    let value = context.input_value(1);
    // The scalar -1 is an unknown shape to shape functions, and a list of one extent to the kernel.
    let wanted = match &value {
        Some(open) if open.rank() == 0 => PartialShape::new(&[dim::UNKNOWN]),
        _ => wanted,
    };
    let Some(wanted_dims) = wanted.dims() else {
        return Ok(());
    };
    let total = input.num_elements();
    let unknown: Vec<usize> = wanted_dims
        .iter()
        .enumerate()
        .filter(|(_, extent)| **extent < 0)
        .map(|(axis, _)| axis)
        .collect();
    let known: i64 = wanted_dims
        .iter()
        .filter(|extent| **extent >= 0)
        .try_fold(1, |product, &extent| dim::mul(product, extent))?;
    if value.is_some() && unknown.len() > 1 {
        bail!(
            InvalidArgument,
            "Only one input size may be -1, not both {} and {}",
            unknown[0],
            unknown[1]
        );
    }
    let mut dims = wanted_dims.to_vec();
    if let (true, [axis]) = (total >= 0, &unknown[..]) {
        if known == 0 {
            // Extents of zero on both sides cancel out; what remains is divided and rounded down, as the reference does.
            let rest = (
                product_of_nonzero(input.dims().unwrap_or(&[])),
                product_of_nonzero(wanted_dims),
            );
            ensure!(
                total == 0,
                InvalidArgument,
                "Input to reshape is a tensor with {total} values, but the requested shape has 0"
            );
            dims[*axis] = rest.0 / rest.1;
            context.set_output(0, PartialShape::new(&dims));
            return Ok(());
        }
        if total % known != 0 {
            let error = status!(
                InvalidArgument,
                "Dimension size must be evenly divisible by {known} but is {total}"
            );
            return Err(context.in_words_of_kernel(error, || {
                format!("Input to reshape is a tensor with {total} values, but the requested shape requires a multiple of {known}")
            }));
        }
        dims[*axis] = total / known;
    } else if total >= 0 && unknown.is_empty() {
        if total != known {
            let error = status!(
                InvalidArgument,
                "Cannot reshape a tensor with {total} elements to shape {wanted} ({known} elements)"
            );
            return Err(context.in_words_of_kernel(error, || {
                format!(
                    "Input to reshape is a tensor with {total} values, but the requested shape has {known}"
                )
            }));
        }
    } else if let (Some(input_dims), [axis]) = (input.dims(), &unknown[..]) {
        // Of both sides, one extent is unknown: it must be what makes the products equal.
        let unknown_input = input_dims.iter().filter(|extent| **extent < 0).count();
        let known_input: i64 = input_dims.iter().filter(|extent| **extent >= 0).product();
        if unknown_input == 1 && known_input == known && known != 0 {
            dims[*axis] = dim::UNKNOWN;
        }
    }
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

/// The error of a shape operand that is none.
#[cold]
fn wrong_sizes(context: &ShapeContext, error: Status) -> Status {
    let shape = context.input(1);
    if let Some(rank) = shape.rank().filter(|rank| *rank > 1) {
        let error = status!(InvalidArgument, "Shape must be rank 1 but is rank {rank}");
        return context.in_words_of_kernel(error, || format!("sizes input must be 1-D, not {shape}"));
    }
    let sizes = context.input_as_i64s(1).ok().flatten().unwrap_or_default();
    match sizes.iter().position(|&size| size < -1) {
        Some(at) => context.in_words_of_kernel(error, || {
            format!("Size {at} must be non-negative, not {}", sizes[at])
        }),
        None => error,
    }
}

fn lower_reshape(context: &mut LowerContext) -> Result<()> {
    let mut wanted = context.constant_i64s(1)?;
    let dims = context.input_dims(0)?;
    let known = wanted.iter().filter(|extent| **extent >= 0).product::<i64>();
    let open = if known == 0 {
        product_of_nonzero(&dims) / product_of_nonzero(&wanted)
    } else {
        dims.iter().product::<i64>() / known
    };
    wanted
        .iter_mut()
        .filter(|extent| **extent < 0)
        .for_each(|extent| *extent = open);
    let input = context.input(0)?;
    let result = context.builder.reshape(input, &wanted)?;
    context.set_output(0, result);
    Ok(())
}

fn product_of_nonzero(dims: &[i64]) -> i64 {
    dims.iter().filter(|extent| **extent > 0).product()
}

/// The place of a new axis among `rank + 1`.
fn new_axis(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    ensure!(
        -rank - 1 <= axis && axis <= rank,
        InvalidArgument,
        "Tried to expand dim index {axis} for tensor with {rank} dimensions."
    );
    Ok((if axis < 0 { axis + rank + 1 } else { axis }) as usize)
}

fn expanded(dims: &[i64], axis: i64) -> Result<Vec<i64>> {
    let mut all = dims.to_vec();
    all.insert(new_axis(axis, dims.len())?, 1);
    Ok(all)
}

fn expand_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input(0);
    let axes = context.input(1);
    if let Some(count) = axes.to_shape().map(|shape| shape.num_elements()) {
        ensure!(
            count == 1,
            InvalidArgument,
            "'dim' input must be a tensor with a single value"
        );
    }
    let Some(dims) = input.dims() else { return Ok(()) };
    match context.input_as_scalar(1)? {
        Some(axis) => context.set_output(0, PartialShape::new(&expanded(dims, axis)?)),
        None => context.set_output(0, PartialShape::of_rank(dims.len() + 1)),
    }
    Ok(())
}

fn lower_expand(context: &mut LowerContext) -> Result<()> {
    let axis = *context
        .constant_i64s(1)?
        .first()
        .ok_or_else(|| status!(InvalidArgument, "no axis to expand"))?;
    let dims = expanded(&context.input_dims(0)?, axis)?;
    let input = context.input(0)?;
    let result = context.builder.reshape(input, &dims)?;
    context.set_output(0, result);
    Ok(())
}

/// Without `axes`, every extent of 1 goes; none if some extents are not known.
fn squeezed(dims: &[i64], axes: &[i64]) -> Result<Option<Vec<i64>>> {
    let rank = dims.len() as i64;
    if axes.is_empty() {
        let known = dims.iter().all(|extent| *extent >= 0);
        return Ok(known.then(|| dims.iter().copied().filter(|extent| *extent != 1).collect()));
    }
    let mut goes = vec![false; dims.len()];
    for &axis in axes {
        ensure!(
            -rank <= axis && axis < rank,
            InvalidArgument,
            "Tried to squeeze dim index {axis} for tensor with {rank} dimensions."
        );
        let place = (if axis < 0 { axis + rank } else { axis }) as usize;
        ensure!(
            dims[place] == 1 || dims[place] < 0,
            InvalidArgument,
            "Can not squeeze dim[{place}], expected a dimension of 1, got {}",
            dims[place]
        );
        goes[place] = true;
    }
    Ok(Some(
        dims.iter()
            .zip(goes)
            .filter(|(_, goes)| !goes)
            .map(|(extent, _)| *extent)
            .collect(),
    ))
}

fn squeeze_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input(0);
    let axes = context.attrs().ints("squeeze_dims")?;
    let Some(dims) = input.dims() else { return Ok(()) };
    if let Some(rest) = squeezed(dims, axes)? {
        context.set_output(0, PartialShape::new(&rest));
    }
    Ok(())
}

fn lower_squeeze(context: &mut LowerContext) -> Result<()> {
    let dims = context.input_dims(0)?;
    let rest = squeezed(&dims, context.attrs().ints("squeeze_dims")?)?.unwrap_or_default();
    Shape::new(&rest)?;
    let input = context.input(0)?;
    let result = context.builder.reshape(input, &rest)?;
    context.set_output(0, result);
    Ok(())
}

/// The gradient in the input's shape.
fn gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, input) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let dims = shape_of(context, input)?;
    let attrs = typed(context.dtype(incoming)).with("Tshape", DataType::INT32);
    let reshaped = context.op("Reshape", &[incoming, dims], attrs)?;
    context.set(0, reshaped);
    Ok(())
}

crate::op_cases! {
    reshaped_open: Case::op("Reshape").inputs([counting(DataType::INT32, &[2, 3]), vector(&[3, -1])])
        .gives(counting(DataType::INT32, &[3, 2]));
    reshaped_to_scalar: Case::op("Reshape").inputs([counting(DataType::STRING, &[1, 1]), vector::<i64>(&[])])
        .gives(counting(DataType::STRING, &[]));
    reshaped_wrong: Case::op("Reshape").inputs([counting(DataType::INT32, &[2, 3]), vector(&[4, -1])])
        .fails(Code::InvalidArgument);
    reshaped_two_open: Case::op("Reshape").inputs([counting(DataType::INT32, &[2, 3]), vector(&[-1, -1])])
        .fails(Code::InvalidArgument);
    reshaped_empty_open: Case::op("Reshape").inputs([counting(DataType::INT32, &[0, 3]), vector(&[0, -1])])
        .gives(counting(DataType::INT32, &[0, 3]));
    reshaped_by_scalar: Case::op("Reshape").inputs([counting(DataType::INT32, &[2, 3]), scalar(6)]).fails(Code::InvalidArgument);
    reshaped_by_open_scalar: Case::op("Reshape").inputs([counting(DataType::INT32, &[2, 3]), scalar(-1)])
        .gives(counting(DataType::INT32, &[6]));
    reshaped_by_matrix: Case::op("Reshape").inputs([counting(DataType::INT32, &[2, 3]), t(&[1, 1], &[6])]).fails(Code::InvalidArgument);
    expanded_last: Case::op("ExpandDims").inputs([counting(DataType::INT32, &[2, 3]), scalar(-1)])
        .gives(counting(DataType::INT32, &[2, 3, 1]));
    expanded_outside: Case::op("ExpandDims").inputs([counting(DataType::INT32, &[2, 3]), scalar(3)])
        .fails(Code::InvalidArgument);
    squeezed_all: Case::op("Squeeze").input(counting(DataType::INT32, &[1, 3, 1])).gives(counting(DataType::INT32, &[3]));
    squeezed_one: Case::op("Squeeze").input(counting(DataType::INT32, &[1, 3, 1])).attr("squeeze_dims", vec![-1i64])
        .gives(counting(DataType::INT32, &[1, 3]));
    squeezed_wide: Case::op("Squeeze").input(counting(DataType::INT32, &[1, 3])).attr("squeeze_dims", vec![1i64])
        .fails(Code::InvalidArgument);
}
