//! Momentum (Polyak), with Nesterov's look-ahead, in TensorFlow's and in Keras' form.

use super::slots::{shape, update};
use crate::math::number::Number;
use ff_kernels::elementwise::{binary_in_place, cost};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::Result;

static RESOURCE: Op = Op {
    name: "ResourceApplyMomentum",
    shape: |context| shape(context, 2, 3),
    kernels: &[Kernel::native(apply)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static REFERENCE: Op = Op {
    name: "ApplyMomentum",
    ..RESOURCE
};
static KERAS: Op = Op {
    name: "ResourceApplyKerasMomentum",
    kernels: &[Kernel::native(apply_keras)],
    ..RESOURCE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&RESOURCE, &REFERENCE, &KERAS];

/// Inputs: var, accum, lr, grad, momentum.
/// `accum = accum * momentum + grad; var -= lr * accum`, or with Nesterov `var -= lr * (grad + momentum * accum)`.
fn apply(context: &mut KernelContext) -> Result<()> {
    let nesterov = context.attrs().bool("use_nesterov").unwrap_or(false);
    update(context, 3, |context, [var, accum]| {
        crate::match_type!(var.dtype(), (f32, f64, ff_tensor::f16, ff_tensor::bf16, ff_tensor::Complex64, ff_tensor::Complex128), T => {
            let (rate, momentum): (T, T) = (context.input(2)?.single()?, context.input(4)?.single()?);
            let (gradient, pool) = (context.input_slice::<T>(3)?, context.pool());
            binary_in_place(pool, accum.as_mut_slice()?, gradient, cost::SIMPLE, |accum: T, gradient: T| {
                accum.mul(momentum).add(gradient)
            });
            if nesterov {
                binary_in_place(pool, var.as_mut_slice()?, gradient, cost::SIMPLE, |var: T, gradient: T| {
                    var.sub(gradient.mul(rate))
                });
            }
            let factor = if nesterov { momentum.mul(rate) } else { rate };
            binary_in_place(pool, var.as_mut_slice()?, accum.as_slice()?, cost::SIMPLE, |var: T, accum: T| {
                var.sub(accum.mul(factor))
            });
            Ok(())
        })
    })
}

/// `accum = accum * momentum - lr * grad; var += accum`, or with Nesterov `var += accum * momentum - lr * grad`.
fn apply_keras(context: &mut KernelContext) -> Result<()> {
    let nesterov = context.attrs().bool("use_nesterov").unwrap_or(false);
    update(context, 3, |context, [var, accum]| {
        crate::match_type!(var.dtype(), (f32, f64, ff_tensor::f16, ff_tensor::bf16, ff_tensor::Complex64, ff_tensor::Complex128), T => {
            let (rate, momentum): (T, T) = (context.input(2)?.single()?, context.input(4)?.single()?);
            let (gradient, pool) = (context.input_slice::<T>(3)?, context.pool());
            binary_in_place(pool, accum.as_mut_slice()?, gradient, cost::SIMPLE, |accum: T, gradient: T| {
                accum.mul(momentum).sub(rate.mul(gradient))
            });
            if nesterov {
                binary_in_place(pool, var.as_mut_slice()?, gradient, cost::SIMPLE, |var: T, gradient: T| {
                    var.sub(gradient.mul(rate))
                });
            }
            binary_in_place(pool, var.as_mut_slice()?, accum.as_slice()?, cost::SIMPLE, |var: T, accum: T| {
                if nesterov { var.add(accum.mul(momentum)) } else { var.add(accum) }
            });
            Ok(())
        })
    })
}
