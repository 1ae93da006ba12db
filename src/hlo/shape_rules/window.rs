//! Opcodes with sliding windows: convolution, reduce-window, select-and-scatter.

use super::{Query, array_or_tuple, axis_set, check_reducer, wrong_attributes};
use crate::attributes::{Attributes, ConvolutionConfig, PadDimension, WindowDimension};
use crate::module::ComputationId;
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims, HloShape};
use ff_tensor::{DataType, Result, ensure, status};

pub(super) fn infer(query: &Query) -> Result<HloShape> {
    match (query.opcode, query.attributes) {
        (Opcode::Convolution, Attributes::Convolution(config)) => convolution(query, config),
        (Opcode::ReduceWindow, Attributes::ReduceWindow { window, computation }) => {
            reduce_window(query, window, *computation)
        }
        (
            Opcode::SelectAndScatter,
            Attributes::SelectAndScatter {
                window,
                select,
                scatter,
            },
        ) => select_and_scatter(query, window, *select, *scatter),
        _ => wrong_attributes(),
    }
}

/// The number of places of a window. INVALID_ARGUMENT when the window is malformed or the numbers overflow.
pub(crate) fn window_places(extent: i64, window: &WindowDimension) -> Result<i64> {
    let w = window;
    ensure!(
        w.size >= 1 && w.stride >= 1 && w.window_dilation >= 1 && w.base_dilation >= 1,
        InvalidArgument,
        "Window dimension has a size, stride or dilation below 1: {w:?}"
    );
    let pad = PadDimension {
        low: w.padding_low,
        high: w.padding_high,
        interior: w.base_dilation - 1,
    };
    let base = super::movement::padded_extent(extent, &pad)?;
    let reach = (w.size - 1)
        .checked_mul(w.window_dilation)
        .and_then(|reach| reach.checked_add(1))
        .ok_or_else(|| status!(InvalidArgument, "Window dimension overflows: {w:?}"))?;
    Ok(if base < reach || extent == 0 && base <= 0 {
        0
    } else {
        (base - reach) / w.stride + 1
    })
}

/// The extents of the windows' places.
fn window_dims(extents: &[i64], window: &[WindowDimension]) -> Result<Dims> {
    ensure!(
        extents.len() == window.len(),
        InvalidArgument,
        "A window over {} dimensions does not fit rank {}",
        window.len(),
        extents.len()
    );
    extents
        .iter()
        .zip(window)
        .map(|(&extent, window)| window_places(extent, window))
        .collect()
}

/// The axes in the order batch, feature, spatial; INVALID_ARGUMENT unless they are a permutation.
fn check_axes(batch: i64, feature: i64, spatial: &[i64], shape: &ArrayShape) -> Result<()> {
    let axes: Dims = [batch, feature].iter().chain(spatial).copied().collect();
    ensure!(
        axes.len() == shape.rank(),
        InvalidArgument,
        "Convolution has {} dimensions, got {shape}",
        axes.len()
    );
    axis_set(&axes, shape.rank(), "Convolution dimension")?;
    Ok(())
}

fn convolution(query: &Query, config: &ConvolutionConfig) -> Result<HloShape> {
    let (input, kernel) = (query.array(0)?, query.array(1)?);
    let dims = &config.dims;
    ensure!(
        input.dtype == kernel.dtype || query.declared.is_some(),
        InvalidArgument,
        "Element types of {input} and {kernel} do not go together"
    );
    check_axes(dims.input_batch, dims.input_feature, &dims.input_spatial, input)?;
    check_axes(
        dims.kernel_output_feature,
        dims.kernel_input_feature,
        &dims.kernel_spatial,
        kernel,
    )?;
    let rank = input.rank();
    ensure!(
        kernel.rank() == rank && dims.output_spatial.len() + 2 == rank && config.window.len() + 2 == rank,
        InvalidArgument,
        "Convolution of {input} with {kernel} has a window over {} dimensions",
        config.window.len()
    );
    let input_features = input.dims[dims.input_feature as usize];
    let kernel_features = kernel.dims[dims.kernel_input_feature as usize];
    let output_features = kernel.dims[dims.kernel_output_feature as usize];
    let batch = input.dims[dims.input_batch as usize];
    let (groups, batch_groups) = (config.feature_group_count, config.batch_group_count);
    ensure!(
        groups >= 1 && batch_groups >= 1 && (groups == 1 || batch_groups == 1),
        InvalidArgument,
        "Convolution has {groups} feature groups and {batch_groups} batch groups"
    );
    ensure!(
        kernel_features.checked_mul(groups) == Some(input_features) && output_features % groups == 0,
        InvalidArgument,
        "Expected the input feature dimension ({input_features}) to be the kernel's ({kernel_features}) times \
         feature_group_count ({groups}), which divides the output features ({output_features})"
    );
    ensure!(
        batch % batch_groups == 0 && output_features % batch_groups == 0,
        InvalidArgument,
        "Batch {batch} and output features {output_features} are not multiples of batch_group_count {batch_groups}"
    );
    let mut result = Dims::from_elem(0, rank);
    let mut output_axes = axis_set(&dims.output_spatial, rank, "Convolution dimension")?;
    for (i, window) in config.window.iter().enumerate() {
        ensure!(
            kernel.dims[dims.kernel_spatial[i] as usize] == window.size,
            InvalidArgument,
            "Window size {} is not the kernel's in {kernel}",
            window.size
        );
        result[dims.output_spatial[i] as usize] =
            window_places(input.dims[dims.input_spatial[i] as usize], window)?;
    }
    for (axis, extent) in [
        (dims.output_batch, batch / batch_groups),
        (dims.output_feature, output_features),
    ] {
        let free = usize::try_from(axis)
            .ok()
            .filter(|&axis| axis < rank && !output_axes[axis]);
        let axis =
            free.ok_or_else(|| status!(InvalidArgument, "Output dimension {axis} is wrong or repeated"))?;
        output_axes[axis] = true;
        result[axis] = extent;
    }
    let dtype = match query.declared {
        Some(declared) => declared.as_array()?.dtype,
        None => input.dtype,
    };
    Ok(HloShape::array(dtype, &result))
}

fn reduce_window(query: &Query, window: &[WindowDimension], computation: ComputationId) -> Result<HloShape> {
    let arrays = query.arrays()?;
    ensure!(
        arrays.len().is_multiple_of(2),
        InvalidArgument,
        "Reduce-window takes as many initial values as arrays, got {} operands",
        arrays.len()
    );
    let (inputs, inits) = arrays.split_at(arrays.len() / 2);
    for (input, init) in inputs.iter().zip(inits) {
        ensure!(
            input.dims == inputs[0].dims && init.is_scalar() && init.dtype == input.dtype,
            InvalidArgument,
            "Array {input} and initial value {init} do not go together, or with {}",
            inputs[0]
        );
    }
    let types: Vec<DataType> = inputs.iter().map(|input| input.dtype).collect();
    check_reducer(query.called(computation)?, &types)?;
    let dims = window_dims(&inputs[0].dims, window)?;
    Ok(array_or_tuple(
        types.iter().map(|&dtype| ArrayShape::new(dtype, &dims)).collect(),
    ))
}

fn select_and_scatter(
    query: &Query,
    window: &[WindowDimension],
    select: ComputationId,
    scatter: ComputationId,
) -> Result<HloShape> {
    let (operand, source, init) = (query.array(0)?, query.array(1)?, query.array(2)?);
    let selector = query.called(select)?.program_shape();
    let scalar = HloShape::Array(ArrayShape::scalar(operand.dtype));
    ensure!(
        selector.parameters.len() == 2
            && selector.parameters.iter().all(|parameter| *parameter == scalar)
            && selector.result == HloShape::Array(ArrayShape::scalar(DataType::BOOL)),
        InvalidArgument,
        "Select function must take two scalars of the type of {operand} to pred"
    );
    check_reducer(query.called(scatter)?, &[source.dtype])?;
    let expected = ArrayShape::new(operand.dtype, &window_dims(&operand.dims, window)?);
    ensure!(
        *source == expected,
        InvalidArgument,
        "Source {source} does not have the shape of the windows, {expected}"
    );
    ensure!(
        init.is_scalar() && init.dtype == operand.dtype,
        InvalidArgument,
        "Initial value {init} does not fit {operand}"
    );
    Ok(operand.clone().into())
}
