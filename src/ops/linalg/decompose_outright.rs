//! The decompositions of graphs that were made for XLA: always with all vectors, from the triangle that is asked for.
//!
//! Numbers of iterations and tolerances are not used: results are as exact as the type allows.

use super::decompose::{hermitian, least, row, set_all};
use super::matrices::{Field, match_field, matrices, no_memory};
use super::shapes::{batch, square};
use ff_kernels::linalg::svd;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "XlaSelfAdjointEig",
        shape: |context| {
            let shape = square(context, 0)?;
            if shape.rank().is_some() {
                context.set_output(0, shape.slice(0, Some(-1)));
                context.set_output(1, shape);
            }
            Ok(())
        },
        kernels: &[Kernel::native(
            |context| match_field!(context.output_type(0), T => eigen::<T>(context)),
        )],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "XlaSvd",
        shape: svd_shape,
        kernels: &[Kernel::native(
            |context| match_field!(context.output_type(0), T => singular::<T>(context)),
        )],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::Missing,
        ..Op::PURE
    },
];

fn svd_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank_at_least(0, 2)?;
    if input.rank().is_some() {
        let (leading, rows, columns) = (batch(&input), input.dim(-2), input.dim(-1));
        context.set_output(0, leading.concat(&PartialShape::new(&[least(rows, columns)])));
        context.set_output(1, leading.concat(&PartialShape::new(&[rows, rows])));
        context.set_output(2, leading.concat(&PartialShape::new(&[columns, columns])));
    }
    Ok(())
}

fn eigen<T: Field>(context: &mut KernelContext) -> Result<()> {
    let (values, vectors) = hermitian::<T>(context, context.attrs().bool("lower")?)?;
    set_all(context, &[(0, values), (1, vectors)])
}

fn singular<T: Field>(context: &mut KernelContext) -> Result<()> {
    let (mut values, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
    for matrix in matrices::<T>(context.input(0)?)? {
        let parts = svd(&matrix, true).map_err(no_memory)?;
        values.push(row(parts.values.iter().map(|&value| T::real(value)).collect()));
        left.push(parts.u);
        right.push(parts.v);
    }
    set_all(context, &[(0, values), (1, left), (2, right)])
}

crate::op_cases! {
    eigen_of_the_lower_triangle: Case::op("XlaSelfAdjointEig").input(t(&[2, 2], &[2.0f32, 7.0, 0.0, 3.0]))
        .attr("lower", true).attr("max_iter", 10).attr("epsilon", 1e-6f32)
        .gives(vector(&[2.0f32, 3.0])).gives(t(&[2, 2], &[1.0f32, 0.0, 0.0, 1.0]));
    eigen_of_the_upper_triangle: Case::op("XlaSelfAdjointEig").input(t(&[2, 2], &[2.0f32, 0.0, 7.0, 3.0]))
        .attr("lower", false).attr("max_iter", 10).attr("epsilon", 1e-6f32)
        .gives(vector(&[2.0f32, 3.0])).gives(t(&[2, 2], &[1.0f32, 0.0, 0.0, 1.0]));
    eigen_of_a_row: Case::op("XlaSelfAdjointEig").input(t(&[1, 2], &[2.0f32, 0.0]))
        .attr("lower", false).attr("max_iter", 10).attr("epsilon", 1e-6f32).fails(Code::InvalidArgument);
    singular_values_with_all_vectors: Case::op("XlaSvd").input(t(&[2, 1], &[3.0f32, 0.0]))
        .attr("max_iter", 10).attr("epsilon", 1e-6f32).attr("precision_config", "")
        .gives(vector(&[3.0f32])).gives(t(&[2, 2], &[1.0f32, 0.0, 0.0, 1.0])).gives(t(&[1, 1], &[1.0f32]));
}
