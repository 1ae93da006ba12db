//! The variables that an optimizer step changes: resource or reference variables, locked together.

use ff_op::{KernelContext, RefVariable, ShapeContext, Variable};
use ff_tensor::{DataType, PartialShape, Result, Tensor, ensure, status};
use parking_lot::RwLockWriteGuard;
use std::sync::Arc;

/// A variable of either kind.
pub enum Slot {
    /// Behind a handle.
    Resource(Arc<Variable>),
    /// Behind a reference edge.
    Reference(Arc<RefVariable>),
}

impl Slot {
    /// The variable at an input.
    pub fn at(context: &KernelContext, index: usize) -> Result<Slot> {
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

/// Changes the variables at the first `N` inputs together: they are initialised, of the shape of the gradient, and
/// writable when `update` sees them. Sets the reference output, if the op has one.
/// FAILED_PRECONDITION for an uninitialised variable, INVALID_ARGUMENT for shapes that differ.
pub fn update<const N: usize>(
    context: &mut KernelContext,
    gradient: usize,
    update: impl FnOnce(&KernelContext, [&mut Tensor; N]) -> Result<()>,
) -> Result<()> {
    let slots: Vec<Slot> = (0..N)
        .map(|index| Slot::at(context, index))
        .collect::<Result<_>>()?;
    let mut order: Vec<usize> = (0..N).collect();
    order.sort_by_key(|&index| slots[index].address());
    ensure!(
        order
            .windows(2)
            .all(|pair| slots[pair[0]].address() != slots[pair[1]].address()),
        InvalidArgument,
        "{} was given one variable for two of its inputs",
        context.node().describe()
    );
    let mut guards: Vec<(usize, RwLockWriteGuard<'_, Option<Tensor>>)> = order
        .into_iter()
        .map(|index| (index, slots[index].lock()))
        .collect();
    guards.sort_by_key(|(index, _)| *index);
    let shape = context.input(gradient)?.shape().clone();
    let mut tensors = Vec::with_capacity(N);
    for ((_, guard), slot) in guards.iter_mut().zip(&slots) {
        let tensor = guard.as_mut().ok_or_else(|| {
            status!(
                FailedPrecondition,
                "Attempting to use uninitialized variables: {}",
                slot.name()
            )
        })?;
        ensure!(
            *tensor.shape() == shape,
            InvalidArgument,
            "var and grad do not have the same shape{} {shape}",
            tensor.shape()
        );
        tensor.make_writable()?;
        tensors.push(tensor);
    }
    let tensors: [&mut Tensor; N] = tensors
        .try_into()
        .map_err(|_| status!(Internal, "wrong number of variables"))?;
    update(context, tensors)?;
    drop(guards);
    if let (1, Slot::Reference(variable)) = (context.num_outputs(), &slots[0]) {
        context.set_output_ref(0, variable.clone());
    }
    Ok(())
}

/// Shapes of variables (inputs `0..variables`) and gradient agree, all other inputs up to the gradient are scalars.
pub fn shape(context: &mut ShapeContext, variables: usize, gradient: usize) -> Result<()> {
    let mut shape = context.input(gradient);
    for index in 0..variables {
        let variable = match context.input_handle(index).as_deref() {
            Some([(_, shape)]) => shape.clone(),
            _ if context.node().input_types[index] == DataType::RESOURCE => PartialShape::unknown(),
            _ => context.input(index),
        };
        shape = shape.merge(&variable)?;
    }
    for index in variables..context.num_inputs() {
        if index != gradient {
            context.input_with_rank(index, 0)?;
        }
    }
    if context.num_outputs() > 0 {
        context.set_output(0, shape);
    }
    Ok(())
}
