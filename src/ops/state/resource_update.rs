//! Changing a resource variable in place: by a tensor, or row by row.

use super::resource::held_shape;
use crate::array::gather::gather_slices;
use crate::math::number::{Number, maximum, minimum};
use ff_kernels::elementwise::{binary_in_place, cost};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext, Variable};
use ff_tensor::{Result, Tensor, ensure};

const BASE: Op = Op {
    shape: update_shape,
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};

static ASSIGN_ADD: Op = Op {
    name: "AssignAddVariableOp",
    kernels: &[Kernel::native(|context| update(context, false))],
    ..BASE
};
static ASSIGN_SUB: Op = Op {
    name: "AssignSubVariableOp",
    kernels: &[Kernel::native(|context| update(context, true))],
    ..BASE
};
static RESOURCE_GATHER: Op = Op {
    name: "ResourceGather",
    shape: gather_shape,
    kernels: &[Kernel::native(gather)],
    gradient: Gradient::Missing,
    ..Op::READS
};
static RESOURCE_GATHER_ND: Op = Op {
    name: "ResourceGatherNd",
    shape: gather_nd_shape,
    kernels: &[Kernel::native(gather_nd)],
    gradient: Gradient::Missing,
    ..Op::READS
};

/// A row-by-row update by a rule.
macro_rules! scatter {
    ($name:literal, $rule:expr) => {
        Op {
            name: $name,
            shape: |context| held_shape(context).map(drop),
            kernels: &[Kernel::native(|context| {
                crate::match_number!(context.input(2)?.dtype(), T => scatter::<T>(context, $rule))
            })],
            ..BASE
        }
    };
}

/// A row-by-row update by a rule that needs an order.
macro_rules! scatter_ordered {
    ($name:literal, $rule:expr) => {
        Op {
            name: $name,
            shape: |context| held_shape(context).map(drop),
            kernels: &[Kernel::native(|context| {
                crate::match_real!(context.input(2)?.dtype(), T => scatter::<T>(context, $rule))
            })],
            ..BASE
        }
    };
}

static SCATTER_ADD: Op = scatter!("ResourceScatterAdd", Number::add);
static SCATTER_SUB: Op = scatter!("ResourceScatterSub", Number::sub);
static SCATTER_MUL: Op = scatter!("ResourceScatterMul", Number::mul);
static SCATTER_DIV: Op = scatter!("ResourceScatterDiv", Number::div);
static SCATTER_UPDATE: Op = scatter!("ResourceScatterUpdate", |_, b| b);
static SCATTER_MAX: Op = scatter_ordered!("ResourceScatterMax", maximum);
static SCATTER_MIN: Op = scatter_ordered!("ResourceScatterMin", minimum);

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &ASSIGN_ADD,
    &ASSIGN_SUB,
    &RESOURCE_GATHER,
    &RESOURCE_GATHER_ND,
    &SCATTER_ADD,
    &SCATTER_SUB,
    &SCATTER_MUL,
    &SCATTER_DIV,
    &SCATTER_UPDATE,
    &SCATTER_MAX,
    &SCATTER_MIN,
];

fn update_shape(context: &mut ShapeContext) -> Result<()> {
    // In a step the kernel looks at what the variable holds.
    if let (Some(shape), false) = (held_shape(context)?, context.in_step()) {
        shape.merge(&context.input(1))?;
    }
    Ok(())
}

fn update(context: &mut KernelContext, subtract: bool) -> Result<()> {
    let variable = context.resource::<Variable>(0)?;
    let delta = context.input(1)?;
    let name = if subtract {
        "AssignSubVariableOp"
    } else {
        "AssignAddVariableOp"
    };
    variable.update(|value| {
        ensure!(
            value.shape() == delta.shape(),
            InvalidArgument,
            "Cannot update variable with shape {} using a Tensor with shape {}, shapes must be equal.",
            value.shape(),
            delta.shape()
        );
        ensure!(
            value.dtype() == delta.dtype(),
            InvalidArgument,
            "{name} of type {} on a variable of type {}",
            delta.dtype(),
            value.dtype()
        );
        value.make_writable()?;
        crate::match_number!(value.dtype(), T => {
            let rule = |a: T, b: T| if subtract { a.sub(b) } else { a.add(b) };
            binary_in_place(context.pool(), value.as_mut_slice()?, delta.as_slice()?, cost::SIMPLE, rule);
            Ok(())
        })
    })
}

fn gather_shape(context: &mut ShapeContext) -> Result<()> {
    let Some(params) = held_shape(context)? else {
        return Ok(());
    };
    let batch = context.attrs().int("batch_dims").unwrap_or(0).max(0);
    let params = params.with_rank_at_least(1 + batch as usize)?;
    let indices = context.input_with_rank_at_least(1, batch as usize)?;
    let outer = params
        .slice(0, Some(batch))
        .merge(&indices.slice(0, Some(batch)))?;
    let inner = indices.slice(batch, None).concat(&params.slice(batch + 1, None));
    context.set_output(0, outer.concat(&inner));
    Ok(())
}

/// `indices[..-1] + params[depth..]`.
fn gather_nd_shape(context: &mut ShapeContext) -> Result<()> {
    let indices = context.input_with_rank_at_least(1, 1)?;
    let Some(params) = held_shape(context)? else {
        return Ok(());
    };
    let depth = indices.dim(-1);
    if let (Some(rank), true) = (params.rank(), depth >= 0) {
        ensure!(
            depth <= rank as i64,
            InvalidArgument,
            "indices.shape[-1] must be <= params.rank, but saw indices shape: {indices} and params shape: {params}"
        );
        context.set_output(0, indices.slice(0, Some(-1)).concat(&params.slice(depth, None)));
    }
    Ok(())
}

/// The value of the variable, of the type that the node says. INVALID_ARGUMENT for another.
fn read_typed(context: &KernelContext) -> Result<Tensor> {
    let value = context.resource::<Variable>(0)?.read()?;
    let wanted = context.attrs().dtype("dtype")?;
    ensure!(
        value.dtype() == wanted,
        InvalidArgument,
        "Trying to read variable with wrong dtype. Expected {wanted} got {}",
        value.dtype()
    );
    Ok(value)
}

fn gather_nd(context: &mut KernelContext) -> Result<()> {
    let (params, indices) = (read_typed(context)?, context.input(1)?);
    let depth = indices.dims().last().copied().unwrap_or(0) as usize;
    ensure!(
        indices.rank() > 0 && depth <= params.rank(),
        InvalidArgument,
        "index innermost dimension length must be <= params rank; saw: {depth} vs. {}",
        params.rank()
    );
    let outer = &indices.dims()[..indices.rank() - 1];
    let shape = ff_tensor::Shape::new(&[outer, &params.dims()[depth..]].concat())?;
    let slices = gather_slices(&params, indices, shape, false)?;
    context.set_output(0, slices)
}

/// Elements of one row, and how many rows there are.
fn rows(value: &Tensor) -> (usize, i64) {
    let count = value.dims().first().copied().unwrap_or(1);
    (
        value
            .dims()
            .iter()
            .skip(1)
            .map(|&extent| extent as usize)
            .product(),
        count,
    )
}

fn check_index(index: i64, count: i64, position: usize) -> Result<usize> {
    ensure!(
        (0..count).contains(&index),
        InvalidArgument,
        "indices[{position}] = {index} is not in [0, {count})"
    );
    Ok(index as usize)
}

fn gather(context: &mut KernelContext) -> Result<()> {
    let value = read_typed(context)?;
    let indices = context.input_i64s(1)?;
    let places = context.input(1)?.dims();
    let batch = context.attrs().int("batch_dims").unwrap_or(0).max(0) as usize;
    ensure!(
        value.rank() > batch && places.len() >= batch && value.dims()[..batch] == places[..batch],
        InvalidArgument,
        "params.shape {} and indices.shape {} must agree in the first {batch} dimensions, and params have one more",
        value.shape(),
        context.input(1)?.shape()
    );
    let elements = |dims: &[i64]| dims.iter().map(|&extent| extent as usize).product::<usize>();
    let (row, count) = (elements(&value.dims()[batch + 1..]), value.dims()[batch]);
    let of_batch = elements(&places[batch..]);
    let shape = ff_tensor::Shape::new(&[places, &value.dims()[batch + 1..]].concat())?;
    let mut writer = crate::movement::Writer::new(value.dtype(), shape)?;
    for (position, index) in indices.into_iter().enumerate() {
        let index = check_index(index, count, position)?;
        if row > 0 {
            let start = position / of_batch * count as usize + index;
            writer.copy(position * row, &value, start * row, row)?;
        }
    }
    let result = writer.finish()?;
    context.set_output(0, result)
}

/// Inputs: handle, indices, updates (one row per index, or a scalar for all).
fn scatter<T: Number>(context: &mut KernelContext, rule: impl Fn(T, T) -> T) -> Result<()> {
    let variable = context.resource::<Variable>(0)?;
    let indices = context.input_i64s(1)?;
    let updates = context.input(2)?;
    let is_scalar = updates.num_elements() == 1 && updates.rank() == 0;
    let index_dims = context.input(1)?.dims().to_vec();
    variable.update(|value| {
        let (row, count) = rows(value);
        ensure!(
            is_scalar || updates.dims() == [&index_dims, value.dims().get(1..).unwrap_or(&[])].concat(),
            InvalidArgument,
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape {}, indices.shape {index_dims:?}, params.shape {}",
            updates.shape(),
            value.shape()
        );
        for (position, &index) in indices.iter().enumerate() {
            check_index(index, count, position)?;
        }
        value.make_writable()?;
        let (values, updates) = (value.as_mut_slice::<T>()?, updates.as_slice::<T>()?);
        for (position, &index) in indices.iter().enumerate() {
            let target = &mut values[index as usize * row..(index as usize + 1) * row];
            for (column, slot) in target.iter_mut().enumerate() {
                *slot = rule(*slot, updates[if is_scalar { 0 } else { position * row + column }]);
            }
        }
        Ok(())
    })
}
