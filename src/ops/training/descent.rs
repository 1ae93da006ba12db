//! Plain gradient descent: `var -= alpha * delta`.

use super::slots::{shape, update};
use crate::math::number::Number;
use ff_kernels::elementwise::{binary_in_place, cost};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::Result;

static RESOURCE: Op = Op {
    name: "ResourceApplyGradientDescent",
    shape: |context| shape(context, 1, 2),
    kernels: &[Kernel::native(apply)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static REFERENCE: Op = Op {
    name: "ApplyGradientDescent",
    ..RESOURCE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&RESOURCE, &REFERENCE];

/// Inputs: var, alpha, delta.
fn apply(context: &mut KernelContext) -> Result<()> {
    update(context, 2, |context, [var]| {
        crate::match_number!(var.dtype(), T => {
            let alpha: T = context.input(1)?.single()?;
            let delta = context.input_slice::<T>(2)?;
            binary_in_place(context.pool(), var.as_mut_slice()?, delta, cost::SIMPLE, |var: T, delta: T| {
                var.sub(alpha.mul(delta))
            });
            Ok(())
        })
    })
}
