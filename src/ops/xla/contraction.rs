//! Sums of products: general dot products and convolutions with their axes as messages.

use super::{message, of_rank};
use ff_hlo::{ConvolutionConfig, ConvolutionDims, Dims, DotDims, Window, WindowDimension};
use ff_op::{Gradient, Kernel, LowerContext, Op, ShapeContext};
use ff_proto::messages::xla::{ConvolutionDimensionNumbers, DotDimensionNumbers};
use ff_tensor::{DataType, PartialShape, Result, dim, ensure, status};

static DOT: Op = Op {
    name: "XlaDot",
    shape: dot_shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(dot),
    gradient: Gradient::Missing,
    ..Op::PURE
};
static CONVOLUTION: Op = Op {
    name: "XlaConv",
    shape: |context| {
        if let Some(rank) = context.input(0).rank() {
            context.set_output(0, of_rank(rank));
        }
        Ok(())
    },
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(convolution),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file; those of version 2 choose the element type of the result.
pub static OPS: &[&Op] = &[
    &DOT,
    &Op {
        name: "XlaDotV2",
        ..DOT
    },
    &CONVOLUTION,
    &Op {
        name: "XlaConvV2",
        ..CONVOLUTION
    },
    &Op {
        name: "XlaEinsum",
        ..crate::math::einsum::EINSUM
    },
];

/// Axes of an operand. INVALID_ARGUMENT when one is outside or named twice.
fn checked(axes: &[i64], rank: usize) -> Result<()> {
    for (place, &axis) in axes.iter().enumerate() {
        ensure!(
            (0..rank as i64).contains(&axis) && !axes[..place].contains(&axis),
            InvalidArgument,
            "Invalid dimension {axis} of an operand of rank {rank} in the dimension numbers"
        );
    }
    Ok(())
}

/// Batch axes, then those of the left operand that are left, then those of the right.
fn dot_shape(context: &mut ShapeContext) -> Result<()> {
    let numbers: DotDimensionNumbers = message(context.attrs(), "dimension_numbers")?;
    let (lhs, rhs) = (context.input(0), context.input(1));
    let (Some(lhs_rank), Some(rhs_rank)) = (lhs.rank(), rhs.rank()) else {
        return Ok(());
    };
    let lhs_used = [
        &numbers.lhs_batch_dimensions[..],
        &numbers.lhs_contracting_dimensions,
    ]
    .concat();
    let rhs_used = [
        &numbers.rhs_batch_dimensions[..],
        &numbers.rhs_contracting_dimensions,
    ]
    .concat();
    ensure!(
        numbers.lhs_batch_dimensions.len() == numbers.rhs_batch_dimensions.len()
            && lhs_used.len() == rhs_used.len(),
        InvalidArgument,
        "The operands have different numbers of batch or contracting dimensions"
    );
    checked(&lhs_used, lhs_rank)?;
    checked(&rhs_used, rhs_rank)?;
    let batch = numbers.lhs_batch_dimensions.len();
    let mut dims = Vec::new();
    for (place, (&left, &right)) in lhs_used.iter().zip(&rhs_used).enumerate() {
        let extent = dim::merge(lhs.dim(left), rhs.dim(right))?;
        if place < batch {
            dims.push(extent);
        }
    }
    let free = |shape: &PartialShape, used: &[i64], rank: usize| -> Vec<i64> {
        let axes = (0..rank as i64).filter(|axis| !used.contains(axis));
        axes.map(|axis| shape.dim(axis)).collect()
    };
    dims.extend(free(&lhs, &lhs_used, lhs_rank));
    dims.extend(free(&rhs, &rhs_used, rhs_rank));
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

/// The element type of the result, where it is not the operands'.
fn preferred(context: &LowerContext) -> Result<Option<DataType>> {
    let operands = [context.input(0)?, context.input(1)?].map(|operand| context.builder.dtype(operand));
    let result = context.output_type(0);
    Ok(Some(result).filter(|dtype| operands != [*dtype; 2]))
}

fn dot(context: &mut LowerContext) -> Result<()> {
    let numbers: DotDimensionNumbers = message(context.attrs(), "dimension_numbers")?;
    let dims = DotDims {
        lhs_batch: Dims::from_vec(numbers.lhs_batch_dimensions),
        rhs_batch: Dims::from_vec(numbers.rhs_batch_dimensions),
        lhs_contracting: Dims::from_vec(numbers.lhs_contracting_dimensions),
        rhs_contracting: Dims::from_vec(numbers.rhs_contracting_dimensions),
    };
    let (lhs, rhs, dtype) = (context.input(0)?, context.input(1)?, preferred(context)?);
    let product = context.builder.dot_general(lhs, rhs, dims, dtype)?;
    context.set_output(0, product);
    Ok(())
}

fn convolution(context: &mut LowerContext) -> Result<()> {
    let numbers: ConvolutionDimensionNumbers = message(context.attrs(), "dimension_numbers")?;
    let spatial = numbers.input_spatial_dimensions.len();
    let strides = sized(context, 2, spatial)?;
    let padding = sized(context, 3, 2 * spatial)?;
    let (lhs_dilation, rhs_dilation) = (sized(context, 4, spatial)?, sized(context, 5, spatial)?);
    let groups = sized(context, 6, 1)?[0];
    let batch_groups = match context.attrs().get("batch_group_count") {
        Some(_) => context.attrs().int("batch_group_count")?,
        None => 1,
    };
    let (input, kernel, dtype) = (context.input(0)?, context.input(1)?, preferred(context)?);
    let kernel_dims = context.builder.dims(kernel);
    let mut window = Window::new();
    for (axis, &place) in numbers.kernel_spatial_dimensions.iter().enumerate().take(spatial) {
        let size = usize::try_from(place)
            .ok()
            .and_then(|place| kernel_dims.get(place));
        let size = size.ok_or_else(|| status!(InvalidArgument, "The kernel has no dimension {place}"))?;
        window.push(WindowDimension {
            stride: strides[axis],
            padding_low: padding[2 * axis],
            padding_high: padding[2 * axis + 1],
            base_dilation: lhs_dilation[axis],
            window_dilation: rhs_dilation[axis],
            ..WindowDimension::new(*size)
        });
    }
    let config = ConvolutionConfig {
        window,
        dims: ConvolutionDims {
            input_batch: numbers.input_batch_dimension,
            input_feature: numbers.input_feature_dimension,
            input_spatial: Dims::from_vec(numbers.input_spatial_dimensions),
            kernel_input_feature: numbers.kernel_input_feature_dimension,
            kernel_output_feature: numbers.kernel_output_feature_dimension,
            kernel_spatial: Dims::from_vec(numbers.kernel_spatial_dimensions),
            output_batch: numbers.output_batch_dimension,
            output_feature: numbers.output_feature_dimension,
            output_spatial: Dims::from_vec(numbers.output_spatial_dimensions),
        },
        feature_group_count: groups,
        batch_group_count: batch_groups,
    };
    let result = context.builder.convolution(input, kernel, config, dtype)?;
    context.set_output(0, result);
    Ok(())
}

/// The numbers that an input must hold. INVALID_ARGUMENT when there are not `count`.
fn sized(context: &mut LowerContext, input: usize, count: usize) -> Result<Vec<i64>> {
    let values = context.constant_i64s(input)?;
    ensure!(
        values.len() == count,
        InvalidArgument,
        "Input {input} to {} must hold {count} numbers, it holds {}",
        context.node().describe(),
        values.len()
    );
    Ok(values)
}

#[cfg(test)]
fn matrices() -> ff_op::AttrValue {
    use ff_proto::Message;
    let numbers = DotDimensionNumbers {
        lhs_contracting_dimensions: vec![1],
        rhs_contracting_dimensions: vec![0],
        ..DotDimensionNumbers::default()
    };
    ff_op::AttrValue::String(numbers.encode_to_vec().into())
}

#[cfg(test)]
fn images() -> ff_op::AttrValue {
    use ff_proto::Message;
    let numbers = ConvolutionDimensionNumbers {
        input_feature_dimension: 2,
        input_spatial_dimensions: vec![1],
        kernel_spatial_dimensions: vec![0],
        kernel_input_feature_dimension: 1,
        kernel_output_feature_dimension: 2,
        output_feature_dimension: 2,
        output_spatial_dimensions: vec![1],
        ..ConvolutionDimensionNumbers::default()
    };
    ff_op::AttrValue::String(numbers.encode_to_vec().into())
}

crate::op_cases! {
    product: Case::op("XlaDot").inputs([t(&[1, 2], &[2.0f32, 3.0]), t(&[2, 1], &[5.0f32, 7.0])])
        .attr("dimension_numbers", matrices()).attr("precision_config", "").gives(t(&[1, 1], &[31.0f32]));
    widened: Case::op("XlaDotV2").inputs([t(&[1, 2], &[100i8, 100]), t(&[2, 1], &[100i8, -1])])
        .attr("dimension_numbers", matrices()).attr("precision_config", "").attr("preferred_element_type", DataType::INT32)
        .gives(t(&[1, 1], &[9900i32]));
    misfit: Case::op("XlaDot").inputs([t(&[1, 2], &[2.0f32, 3.0]), t(&[1, 1], &[5.0f32])])
        .attr("dimension_numbers", matrices()).attr("precision_config", "").fails(Code::InvalidArgument);
    not_a_message: Case::op("XlaDot").inputs([t(&[1, 1], &[2.0f32]), t(&[1, 1], &[5.0f32])])
        .attr("dimension_numbers", ff_op::AttrValue::String(vec![0xff].into())).attr("precision_config", "").fails(Code::InvalidArgument);
    convolved: family(&["XlaConv", "XlaConvV2"], &[DataType::FLOAT], |op, dtype| {
        let case = Case::op(op).inputs([t(&[1, 3, 1], &[1.0f32, 2.0, 3.0]), t(&[2, 1, 1], &[1.0f32, 10.0])])
            .inputs([vector(&[1]), t(&[1, 2], &[0, 1]), vector(&[1]), vector(&[1]), scalar(1)])
            .attr("dimension_numbers", images()).attr("precision_config", "").gives(t(&[1, 3, 1], &[21.0f32, 32.0, 3.0]));
        if op == "XlaConvV2" { case.attr("preferred_element_type", dtype) } else { case }
    });
    strides_misfit: Case::op("XlaConv").inputs([t(&[1, 3, 1], &[1.0f32, 2.0, 3.0]), t(&[2, 1, 1], &[1.0f32, 10.0])])
        .inputs([vector(&[1, 1]), t(&[1, 2], &[0, 1]), vector(&[1]), vector(&[1]), scalar(1)])
        .attr("dimension_numbers", images()).attr("precision_config", "").fails(Code::InvalidArgument);
    by_equation: Case::op("XlaEinsum").inputs([t(&[1, 2], &[2.0f32, 3.0]), t(&[2, 1], &[5.0f32, 7.0])])
        .attr("equation", "ab,bc->ac").gives(t(&[1, 1], &[31.0f32]));
}
