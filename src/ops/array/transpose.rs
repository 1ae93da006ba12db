//! Axes in another order, and inverse permutations.

use crate::movement::transpose as moved;
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, ShapeContext, shapes,
};
use ff_tensor::{PartialShape, Result, Tensor, dim, ensure};

static TRANSPOSE: Op = Op {
    name: "Transpose",
    shape: transpose_shape,
    kernels: &[Kernel::native(|context| transpose(context, false))],
    lower: Some(lower),
    gradient: Gradient::Fn(|context| gradient(context, "Transpose")),
    ..Op::PURE
};
static CONJUGATE_TRANSPOSE: Op = Op {
    name: "ConjugateTranspose",
    kernels: &[Kernel::native(|context| transpose(context, true))],
    lower: Some(|context| {
        let permutation = permutation(&context.constant_i64s(1)?, context.input_dims(0)?.len())?;
        let input = context.input(0)?;
        let input = context.builder.conjugate(input)?;
        let axes: Vec<i64> = permutation.iter().map(|&axis| axis as i64).collect();
        let result = context.builder.transpose(input, &axes)?;
        context.set_output(0, result);
        Ok(())
    }),
    gradient: Gradient::Fn(|context| gradient(context, "ConjugateTranspose")),
    ..TRANSPOSE
};
static INVERT_PERMUTATION: Op = Op {
    name: "InvertPermutation",
    shape: |context| {
        context.input_with_rank(0, 1)?;
        shapes::unchanged(context)
    },
    kernels: &[Kernel::native(invert)],
    lower: Some(super::lower_index::invert),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&TRANSPOSE, &CONJUGATE_TRANSPOSE, &INVERT_PERMUTATION];

/// The axes in their new order. INVALID_ARGUMENT unless each is named once.
fn permutation(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    ensure!(
        axes.len() == rank,
        InvalidArgument,
        "transpose expects a vector of size {rank}. But input(1) is a vector of size {}",
        axes.len()
    );
    let mut seen = vec![false; rank];
    let mut places = Vec::with_capacity(rank);
    for &axis in axes {
        let place = if axis < 0 { axis + rank as i64 } else { axis };
        ensure!(
            (0..rank as i64).contains(&place),
            InvalidArgument,
            "{axis} is out of range [0 .. {rank})"
        );
        seen[place as usize] = true;
        places.push(place as usize);
    }
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        ff_tensor::bail!(
            InvalidArgument,
            "{missing} is missing from {{{}}}.",
            axes.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
        );
    }
    Ok(places)
}

fn transpose_shape(context: &mut ShapeContext) -> Result<()> {
    let (input, order) = (context.input(0), context.input_with_rank(1, 1)?);
    let count = order.dim(0);
    let rank = input.rank().or(usize::try_from(count).ok());
    let Some(rank) = rank else { return Ok(()) };
    let input = input.with_rank(rank)?;
    dim::merge(count, rank as i64)?;
    match context.input_as_i64s(1)? {
        Some(axes) => {
            let places = permutation(&axes, rank)?;
            let dims: Vec<i64> = places.iter().map(|&place| input.dim(place as i64)).collect();
            context.set_output(0, PartialShape::new(&dims));
        }
        None => context.set_output(0, PartialShape::of_rank(rank)),
    }
    Ok(())
}

fn transpose(context: &mut KernelContext, conjugate: bool) -> Result<()> {
    let input = context.input(0)?;
    let places = permutation(&context.input_i64s(1)?, input.rank())?;
    // Axes of extent 1 may go anywhere: then the elements stay where they are.
    let long: Vec<usize> = places
        .iter()
        .copied()
        .filter(|&place| input.dims()[place] != 1)
        .collect();
    let mut result = if long.is_sorted() {
        let shape = context.output_shape(0)?.clone();
        context.take_input(0)?.into_shape(shape)?
    } else {
        moved(input, &places)?
    };
    if conjugate && result.dtype().is_complex() {
        result.make_writable()?;
        crate::match_type!(result.dtype(), (ff_tensor::Complex64, ff_tensor::Complex128), T => {
            result.as_mut_slice::<T>()?.iter_mut().for_each(|value| *value = value.conj());
            Ok(())
        })?;
    }
    context.set_output(0, result)
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let places = permutation(&context.constant_i64s(1)?, context.input_dims(0)?.len())?;
    let axes: Vec<i64> = places.iter().map(|&axis| axis as i64).collect();
    let input = context.input(0)?;
    let result = context.builder.transpose(input, &axes)?;
    context.set_output(0, result);
    Ok(())
}

fn gradient(context: &mut GradientContext, op: &str) -> Result<()> {
    let (incoming, order) = (context.incoming_or_zeros(0)?, context.input(1)?);
    let index_type = context.dtype(order);
    let inverse = context.op("InvertPermutation", &[order], Attrs::new().with("T", index_type))?;
    let attrs = Attrs::new()
        .with("T", context.dtype(incoming))
        .with("Tperm", index_type);
    let gradient = context.op(op, &[incoming, inverse], attrs)?;
    context.set(0, gradient);
    Ok(())
}

fn invert(context: &mut KernelContext) -> Result<()> {
    let order = context.input_i64s(0)?;
    let mut inverse = crate::wide::filled(order.len(), -1i64)?;
    for (index, &place) in order.iter().enumerate() {
        ensure!(
            (0..order.len() as i64).contains(&place),
            InvalidArgument,
            "{place} is not between 0 and {}",
            order.len()
        );
        ensure!(
            inverse[place as usize] == -1,
            InvalidArgument,
            "{place} is duplicated in the input."
        );
        inverse[place as usize] = index as i64;
    }
    let shape = context.input(0)?.shape().clone();
    let result: Tensor = super::shape::of_type(context.output_type(0), shape, &inverse)?;
    context.set_output(0, result)
}

crate::op_cases! {
    inverted: Case::op("InvertPermutation").input(vector(&[2, 0, 1])).gives(vector(&[1, 2, 0]));
    inverted_twice_the_same: Case::op("InvertPermutation").input(vector(&[2, 0, 0])).fails(Code::InvalidArgument);
    turned: Case::op("Transpose").inputs([counting(DataType::BFLOAT16, &[2, 3, 4]), vector(&[2, 0, 1])]);
    turned_strings: Case::op("Transpose").inputs([counting(DataType::STRING, &[2, 3]), vector(&[1i64, 0])]);
    turned_ones: Case::op("Transpose").inputs([counting(DataType::COMPLEX128, &[1, 3, 1]), vector(&[2, 1, 0])]);
    turned_nothing: Case::op("Transpose").inputs([counting(DataType::INT32, &[0, 3]), vector(&[1, 0])]);
    turned_scalar: Case::op("Transpose").inputs([scalar(3), vector::<i32>(&[])]).gives(scalar(3));
    turned_twice_the_same: Case::op("Transpose").inputs([counting(DataType::INT32, &[2, 3]), vector(&[1, 1])])
        .fails(Code::InvalidArgument);
    turned_outside: Case::op("Transpose").inputs([counting(DataType::INT32, &[2, 3]), vector(&[1, 2])])
        .fails(Code::InvalidArgument);
    turned_conjugate: Case::op("ConjugateTranspose")
        .inputs([t(&[1, 2], &[ff_tensor::Complex64::new(1.0, 2.0), ff_tensor::Complex64::new(3.0, -1.0)]), vector(&[1, 0])]);
}
