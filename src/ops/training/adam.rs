//! Adam (Kingma and Ba 2015), in the form with the bias corrections folded into the learning rate.

use super::slots::{shape, update};
use crate::math::number::Number;
use ff_kernels::elementwise::cost;
use ff_kernels::math::Real;
use ff_kernels::memory::SharedMut;
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::Result;

static RESOURCE: Op = Op {
    name: "ResourceApplyAdam",
    shape: |context| shape(context, 3, 9),
    kernels: &[Kernel::native(apply)],
    gradient: Gradient::NotDifferentiable,
    ..Op::WRITES
};
static REFERENCE: Op = Op {
    name: "ApplyAdam",
    ..RESOURCE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&RESOURCE, &REFERENCE];

/// Inputs: var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad.
///
/// `rate = lr sqrt(1 - beta2_power) / (1 - beta1_power)`, `m += (grad - m)(1 - beta1)`,
/// `v += (grad^2 - v)(1 - beta2)`, `var -= rate m / (sqrt(v) + epsilon)`; with Nesterov `m` is replaced by
/// `grad (1 - beta1) + beta1 m` in the last.
fn apply(context: &mut KernelContext) -> Result<()> {
    let nesterov = context.attrs().bool("use_nesterov").unwrap_or(false);
    update(context, 9, |context, [var, m, v]| {
        crate::match_float!(var.dtype(), T => {
            let scalar = |index: usize| context.input(index)?.single::<T>();
            let one = T::one();
            let (power1, power2, rate) = (scalar(3)?, scalar(4)?, scalar(5)?);
            let (beta1, beta2, epsilon) = (scalar(6)?, scalar(7)?, scalar(8)?);
            let rate = rate.mul(Real::square_root(Number::sub(one, power2))).div(Number::sub(one, power1));
            let (rest1, rest2) = (Number::sub(one, beta1), Number::sub(one, beta2));
            let gradient = context.input_slice::<T>(9)?;
            let var = SharedMut::new(var.as_mut_slice::<T>()?);
            let (m, v) = (SharedMut::new(m.as_mut_slice::<T>()?), SharedMut::new(v.as_mut_slice::<T>()?));
            context.pool().parallel_for(gradient.len(), 4.0 * cost::SIMPLE, |range| {
                // SAFETY: the ranges of a loop are disjoint.
                let (var, m, v) = unsafe { (var.range(range.clone()), m.range(range.clone()), v.range(range.clone())) };
                for (((var, m), v), &gradient) in var.iter_mut().zip(m).zip(v).zip(&gradient[range]) {
                    *m = m.add(Number::sub(gradient, *m).mul(rest1));
                    *v = v.add(Number::sub(gradient.mul(gradient), *v).mul(rest2));
                    let direction = if nesterov { gradient.mul(rest1).add(beta1.mul(*m)) } else { *m };
                    *var = Number::sub(*var, direction.mul(rate).div(Real::square_root(*v).add(epsilon)));
                }
            });
            Ok(())
        })
    })
}
