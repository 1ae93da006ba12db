//! The vector product.

use super::gradients::binary;
use ff_hlo::Opcode;
use ff_op::{Gradient, Kernel, LowerContext, Op};
use ff_tensor::{Result, dim};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "Cross",
    shape: |context| {
        let shape = context.input(0).merge(&context.input(1))?;
        if shape.rank().is_some() {
            let shape = shape.with_rank_at_least(1)?;
            dim::merge(shape.dim(-1), 3)?;
        }
        context.set_output(0, shape);
        Ok(())
    },
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower),
    gradient: Gradient::Fn(|context| {
        let (incoming, u, v) = (
            context.incoming_or_zeros(0)?,
            context.input(0)?,
            context.input(1)?,
        );
        let (du, dv) = (
            binary(context, "Cross", v, incoming)?,
            binary(context, "Cross", incoming, u)?,
        );
        context.set(0, du);
        context.set(1, dv);
        Ok(())
    }),
    ..Op::PURE
}];

fn lower(context: &mut LowerContext) -> Result<()> {
    let (u, v) = (context.input(0)?, context.input(1)?);
    let axis = context.builder.rank(u) - 1;
    let mut parts = Vec::new();
    for component in 0..3i64 {
        let (next, last) = ((component + 1) % 3, (component + 2) % 3);
        let mut product = |first: i64, second: i64| {
            let a = context.builder.slice_in_dim(u, first, first + 1, 1, axis)?;
            let b = context.builder.slice_in_dim(v, second, second + 1, 1, axis)?;
            context.builder.multiply(a, b)
        };
        let (plus, minus) = (product(next, last)?, product(last, next)?);
        parts.push(context.builder.binary(Opcode::Subtract, plus, minus)?);
    }
    let result = context.builder.concatenate(&parts, axis)?;
    context.set_output(0, result);
    Ok(())
}

crate::op_cases! {
    product: family(&["Cross"], &[FLOATS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 0.0, 5.0]), numbers(dtype, &[2, 3], &[3.0, 1.0, 2.0, 1.0, 1.0, 1.0])])
    });
    nothing: Case::op("Cross").inputs([t::<f32>(&[0, 3], &[]), t::<f32>(&[0, 3], &[])]);
    of_pairs: Case::op("Cross").inputs([vector(&[1.0f32, 2.0]), vector(&[1.0f32, 2.0])]).fails(Code::InvalidArgument);
    misfit: Case::op("Cross").inputs([vector(&[1.0f32, 2.0, 3.0]), t(&[1, 3], &[1.0f32, 2.0, 3.0])]).fails(Code::InvalidArgument);
}
