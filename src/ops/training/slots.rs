//! The variables that an optimizer step changes: resource or reference variables, locked together.

use ff_op::{KernelContext, NodeInfo, RefVariable, ShapeContext, Variable};
use ff_tensor::{DataType, PartialShape, Result, Tensor, ensure, status};
use parking_lot::RwLockWriteGuard;
use std::sync::Arc;

/// Where an optimizer op has its inputs.
#[derive(Clone, Copy)]
pub struct Places {
    /// The gradient.
    pub gradient: usize,
    /// The rows that it is for; none when it is for all.
    pub indices: Option<usize>,
}

impl Places {
    /// The places of a node's inputs.
    pub fn of(node: &NodeInfo) -> Result<Places> {
        let gradient = node
            .input_range_of("grad")
            .or_else(|_| node.input_range_of("delta"))?;
        let indices = node.input_range_of("indices").ok();
        Ok(Places {
            gradient: gradient.start,
            indices: indices.map(|range| range.start),
        })
    }
}

/// A variable of either kind.
enum Slot {
    /// Behind a handle.
    Resource(Arc<Variable>),
    /// Behind a reference edge.
    Reference(Arc<RefVariable>),
}

impl Slot {
    /// The variable at an input.
    fn at(context: &KernelContext, index: usize) -> Result<Slot> {
        match context.node().input_types[index] {
            DataType::RESOURCE => Ok(Slot::Resource(context.resource(index)?)),
            _ => Ok(Slot::Reference(context.ref_input(index)?.clone())),
        }
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Option<Tensor>> {
        match self {
            Slot::Resource(variable) => variable.lock(),
            Slot::Reference(variable) => variable.lock(),
        }
    }

    fn address(&self) -> usize {
        match self {
            Slot::Resource(variable) => Arc::as_ptr(variable) as usize,
            Slot::Reference(variable) => Arc::as_ptr(variable) as usize,
        }
    }

    fn name(&self) -> &str {
        match self {
            Slot::Resource(variable) => &variable.name,
            Slot::Reference(variable) => &variable.name,
        }
    }
}

type Guard<'a> = RwLockWriteGuard<'a, Option<Tensor>>;

/// Locks variables in the order of their addresses. INVALID_ARGUMENT when two of them are one.
fn lock_all<'a>(slots: &'a [Slot], node: &NodeInfo) -> Result<Vec<Guard<'a>>> {
    let mut order: Vec<usize> = (0..slots.len()).collect();
    order.sort_by_key(|&index| slots[index].address());
    let differ = |pair: &[usize]| slots[pair[0]].address() != slots[pair[1]].address();
    ensure!(
        order.windows(2).all(differ),
        InvalidArgument,
        "{} was given one variable for two of its inputs",
        node.describe()
    );
    let mut guards: Vec<(usize, Guard)> = order
        .into_iter()
        .map(|index| (index, slots[index].lock()))
        .collect();
    guards.sort_by_key(|(index, _)| *index);
    Ok(guards.into_iter().map(|(_, guard)| guard).collect())
}

/// Changes the variables at the first `N` inputs together: they are initialised, of one shape that fits the gradient,
/// of its type, and writable when `update` sees them. Sets the reference output, if the op has one.
/// FAILED_PRECONDITION for an uninitialised variable, INVALID_ARGUMENT for shapes or types that differ.
pub fn update<const N: usize>(
    context: &mut KernelContext,
    update: impl FnOnce(&KernelContext, Places, [&mut Tensor; N]) -> Result<()>,
) -> Result<()> {
    let places = Places::of(context.node())?;
    let slots: Vec<Slot> = (0..N)
        .map(|index| Slot::at(context, index))
        .collect::<Result<_>>()?;
    let mut guards = lock_all(&slots, context.node())?;
    let mut tensors: Vec<&mut Tensor> = Vec::with_capacity(N);
    for (guard, slot) in guards.iter_mut().zip(&slots) {
        let tensor = guard.as_mut().ok_or_else(|| {
            status!(
                FailedPrecondition,
                "Attempting to use uninitialized variables: {}",
                slot.name()
            )
        })?;
        check(context, places, tensors.first().map(|tensor| &**tensor), tensor)?;
        tensor.make_writable()?;
        tensors.push(tensor);
    }
    let tensors: [&mut Tensor; N] = tensors
        .try_into()
        .map_err(|_| status!(Internal, "wrong number of variables"))?;
    update(context, places, tensors)?;
    drop(guards);
    if let (1, Slot::Reference(variable)) = (context.num_outputs(), &slots[0]) {
        context.set_output_ref(0, variable.clone());
    }
    Ok(())
}

/// Whether a variable fits the first one and the gradient.
fn check(context: &KernelContext, places: Places, first: Option<&Tensor>, tensor: &Tensor) -> Result<()> {
    let gradient = context.input(places.gradient)?;
    ensure!(
        tensor.dtype() == gradient.dtype(),
        InvalidArgument,
        "a variable of type {} was given a gradient of type {}",
        tensor.dtype(),
        gradient.dtype()
    );
    if let Some(first) = first {
        ensure!(
            tensor.shape() == first.shape(),
            InvalidArgument,
            "var and its slots do not have the same shape {} {}",
            first.shape(),
            tensor.shape()
        );
    }
    let Some(indices) = places.indices else {
        ensure!(
            tensor.shape() == gradient.shape(),
            InvalidArgument,
            "var and grad do not have the same shape{} {}",
            tensor.shape(),
            gradient.shape()
        );
        return Ok(());
    };
    let indices = context.input(indices)?;
    ensure!(
        tensor.rank() > 0,
        InvalidArgument,
        "var must be at least 1 dimensional"
    );
    ensure!(
        indices.rank() == 1,
        InvalidArgument,
        "indices must be one-dimensional"
    );
    ensure!(
        gradient.dims().first() == indices.dims().first(),
        InvalidArgument,
        "grad must be the same size as indices in the first dimension."
    );
    ensure!(
        gradient.dims().get(1..) == tensor.dims().get(1..),
        InvalidArgument,
        "var and grad must match in every dimension but the first: {} and {}",
        tensor.shape(),
        gradient.shape()
    );
    Ok(())
}

/// The variables (inputs before the first that is not one) and the gradient agree, all numbers are scalars.
pub fn shape(context: &mut ShapeContext) -> Result<()> {
    let node = context.node();
    let places = Places::of(node)?;
    let is_variable = |dtype: &DataType| *dtype == DataType::RESOURCE || dtype.is_ref();
    let variables = node
        .input_types
        .iter()
        .take_while(|dtype| is_variable(dtype))
        .count();
    let mut shape = PartialShape::unknown();
    for index in 0..variables {
        let variable = match context.input_handle(index).as_deref() {
            Some([(_, shape)]) => shape.clone(),
            _ if node.input_types[index] == DataType::RESOURCE => PartialShape::unknown(),
            _ => context.input(index),
        };
        shape = shape.merge(&variable)?;
    }
    let gradient = context.input(places.gradient);
    match places.indices {
        None => shape = shape.merge(&gradient)?,
        Some(indices) => {
            let indices = context.input_with_rank(indices, 1)?;
            gradient
                .with_rank_at_least(1)?
                .slice(0, Some(1))
                .merge(&indices)?;
            shape = shape.with_rank_at_least(1)?;
            gradient.slice(1, None).merge(&shape.slice(1, None))?;
        }
    }
    for index in variables..context.num_inputs() {
        if index != places.gradient && Some(index) != places.indices {
            context.input_with_rank(index, 0)?;
        }
    }
    if context.num_outputs() > 0 {
        context.set_output(0, shape);
    }
    Ok(())
}
