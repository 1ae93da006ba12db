//! Combining elements by functions of scalars: along axes, in windows, at places.

use super::{computation, input_types, message, of_rank, set_results};
use ff_hlo::{Dims, ScatterDims, Window, WindowDimension};
use ff_op::{Gradient, Kernel, LowerContext, Op, ShapeContext};
use ff_proto::messages::xla::ScatterDimensionNumbers;
use ff_tensor::{PartialShape, Result, ensure};

const FOLD: Op = Op {
    name: "XlaReduce",
    shape: |context| reduced_shapes(context, false),
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(reduce),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &FOLD,
    &Op {
        name: "XlaVariadicReduce",
        ..FOLD
    },
    &Op {
        name: "XlaVariadicReduceV2",
        shape: |context| reduced_shapes(context, true),
        ..FOLD
    },
    &Op {
        name: "XlaReduceWindow",
        shape: rank_of_first,
        lower: Some(reduce_window),
        ..FOLD
    },
    &Op {
        name: "XlaSelectAndScatter",
        shape: ff_op::shapes::unchanged,
        lower: Some(select_and_scatter),
        ..FOLD
    },
    &Op {
        name: "XlaScatter",
        shape: ff_op::shapes::unchanged,
        lower: Some(scatter),
        ..FOLD
    },
];

fn rank_of_first(context: &mut ShapeContext) -> Result<()> {
    if let Some(rank) = context.input(0).rank() {
        context.set_output(0, of_rank(rank));
    }
    Ok(())
}

/// The axes that a fold takes away. INVALID_ARGUMENT when one is outside or named twice.
fn folded_axes(axes: &[i64], rank: usize) -> Result<()> {
    for (place, axis) in axes.iter().enumerate() {
        ensure!(
            (0..rank as i64).contains(axis) && !axes[..place].contains(axis),
            InvalidArgument,
            "Invalid dimensions_to_reduce argument: {axes:?} for an operand of rank {rank}"
        );
    }
    Ok(())
}

/// The axes that are left; their extents too if the op is one that tells.
fn reduced_shapes(context: &mut ShapeContext, with_extents: bool) -> Result<()> {
    let axes = context.attrs().ints("dimensions_to_reduce")?.to_vec();
    let mut common = PartialShape::unknown();
    for index in 0..context.num_outputs() {
        common = common.merge(&context.input(index))?;
        context.input_with_rank(context.num_outputs() + index, 0)?;
    }
    let Some(dims) = common.dims() else { return Ok(()) };
    folded_axes(&axes, dims.len())?;
    let left = (0..dims.len()).filter(|&axis| !axes.contains(&(axis as i64)));
    let left: Vec<i64> = left
        .map(|axis| if with_extents { dims[axis] } else { -1 })
        .collect();
    for index in 0..context.num_outputs() {
        context.set_output(index, PartialShape::new(&left));
    }
    Ok(())
}

fn reduce(context: &mut LowerContext) -> Result<()> {
    let count = context.node().output_types.len();
    let types = input_types(context, 0, 2 * count)?;
    let reducer = computation(context, "reducer", &types, count)?;
    let axes = context.attrs().ints("dimensions_to_reduce")?;
    let operands = (0..2 * count)
        .map(|index| context.input(index))
        .collect::<Result<Vec<_>>>()?;
    let (inputs, inits) = operands.split_at(count);
    if axes.is_empty() {
        // Nothing is combined, not even with what a fold starts from.
        for (index, &input) in inputs.iter().enumerate() {
            context.set_output(index, input);
        }
        return Ok(());
    }
    let result = context.builder.reduce(inputs, inits, reducer, axes)?;
    set_results(context, result)
}

/// A window from constant inputs: one number an axis for each of `fields` (sizes, strides, base dilations, window
/// dilations; left out for ones), and two for the padding.
fn window(
    context: &mut LowerContext,
    rank: usize,
    fields: [Option<usize>; 4],
    padding: usize,
) -> Result<Window> {
    let mut columns = Vec::with_capacity(4);
    for field in fields {
        let values = match field {
            Some(input) => context.constant_i64s(input)?,
            None => vec![1; rank],
        };
        ensure!(
            values.len() == rank,
            InvalidArgument,
            "The size of each window argument must be equal to the input rank ({} vs. {rank})",
            values.len()
        );
        columns.push(values);
    }
    let padding = context.constant_i64s(padding)?;
    ensure!(
        padding.len() == 2 * rank,
        InvalidArgument,
        "padding must be a matrix with minor dimension 2 and one row for each of {rank} dimensions"
    );
    Ok((0..rank)
        .map(|axis| WindowDimension {
            stride: columns[1][axis],
            base_dilation: columns[2][axis],
            window_dilation: columns[3][axis],
            padding_low: padding[2 * axis],
            padding_high: padding[2 * axis + 1],
            ..WindowDimension::new(columns[0][axis])
        })
        .collect())
}

fn reduce_window(context: &mut LowerContext) -> Result<()> {
    let (input, init) = (context.input(0)?, context.input(1)?);
    let rank = context.builder.rank(input);
    let window = window(context, rank, [Some(2), Some(3), Some(4), Some(5)], 6)?;
    let types = input_types(context, 0, 2)?;
    let reducer = computation(context, "computation", &types, 1)?;
    let result = context
        .builder
        .reduce_window(&[input], &[init], reducer, window)?;
    context.set_output(0, result);
    Ok(())
}

fn select_and_scatter(context: &mut LowerContext) -> Result<()> {
    let (operand, source, init) = (context.input(0)?, context.input(4)?, context.input(5)?);
    let rank = context.builder.rank(operand);
    let window = window(context, rank, [Some(1), Some(2), None, None], 3)?;
    let dtype = context.builder.dtype(operand);
    let select = computation(context, "select", &[dtype; 2], 1)?;
    let scatter = computation(context, "scatter", &[dtype; 2], 1)?;
    let builder = &mut *context.builder;
    let result = builder.select_and_scatter(operand, source, init, select, scatter, window)?;
    context.set_output(0, result);
    Ok(())
}

fn scatter(context: &mut LowerContext) -> Result<()> {
    let numbers: ScatterDimensionNumbers = message(context.attrs(), "dimension_numbers")?;
    let (operand, indices, updates) = (context.input(0)?, context.input(1)?, context.input(2)?);
    let dtype = context.builder.dtype(operand);
    let join = computation(context, "update_computation", &[dtype; 2], 1)?;
    let config = ScatterDims {
        update_window_dims: Dims::from_vec(numbers.update_window_dims),
        inserted_window_dims: Dims::from_vec(numbers.inserted_window_dims),
        scatter_dims_to_operand_dims: Dims::from_vec(numbers.scatter_dims_to_operand_dims),
        index_vector_dim: numbers.index_vector_dim,
        input_batching_dims: Dims::from_vec(numbers.input_batching_dims),
        scatter_indices_batching_dims: Dims::from_vec(numbers.scatter_indices_batching_dims),
        indices_are_sorted: context.attrs().bool("indices_are_sorted")?,
        unique_indices: false,
    };
    let result = context
        .builder
        .scatter(&[operand], indices, &[updates], config, join)?;
    context.set_output(0, result);
    Ok(())
}
