//! Exponential, logarithm and square root of matrices.

use super::gradients;
use super::matrices::{map, match_field, matrices, no_memory, stack};
use super::shapes::same_square;
use ff_kernels::linalg::{Matrix, matrix_exponential, matrix_logarithm, matrix_square_root};
use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_tensor::{Complex128, Result};

const BASE: Op = Op {
    shape: same_square,
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "MatrixExponential",
        kernels: &[Kernel::native(|context| {
            match_field!(context.output_type(0), T => {
                map::<T>(context, |matrix| matrix_exponential(matrix).map_err(no_memory))
            })
        })],
        ..BASE
    },
    &Op {
        name: "MatrixLogarithm",
        kernels: &[Kernel::native(|context| complex(context, matrix_logarithm))],
        ..BASE
    },
    &Op {
        name: "MatrixSquareRoot",
        kernels: &[Kernel::native(|context| complex(context, matrix_square_root))],
        gradient: Gradient::Fn(gradients::of_square_root),
        ..BASE
    },
];

/// Where a real matrix has no real result, as where the method fails, all is not-a-number.
fn complex(
    context: &mut KernelContext,
    f: impl Fn(&Matrix<Complex128>) -> std::result::Result<Option<Matrix<Complex128>>, ff_kernels::OutOfMemory>,
) -> Result<()> {
    let dtype = context.output_type(0);
    let broken = Complex128::new(f64::NAN, f64::NAN);
    let mut results = Vec::new();
    for matrix in matrices::<Complex128>(context.input(0)?)? {
        let result = f(&matrix).map_err(no_memory)?.filter(|result| {
            let largest = result.data.iter().map(|value| value.norm()).fold(0.0, f64::max);
            dtype.is_complex() || result.data.iter().all(|value| value.im.abs() <= 1e-6 * largest)
        });
        results.push(match result {
            Some(result) => result,
            None => Matrix {
                data: vec![broken; matrix.data.len()],
                ..matrix
            },
        });
    }
    let output = stack(dtype, context.output_shape(0)?.clone(), &results)?;
    context.set_output(0, output)
}

#[cfg(test)]
use super::factor::{FIELDS, positive, sample};

crate::op_cases! {
    roots: family(&["MatrixSquareRoot"], FIELDS, |op, dtype| Case::op(op).input(positive(dtype)));
    roots_of_batch: family(&["MatrixSquareRoot"], FIELDS, |op, dtype| Case::op(op).input(sample(dtype, &[2, 3, 3])));
    root_of_negative: Case::op("MatrixSquareRoot").input(t(&[2, 2], &[-1.0f64, 0.0, 0.0, 2.0])).without_gradient();
    logarithms: family(&["MatrixLogarithm"], &FIELDS[2..], |op, dtype| Case::op(op).input(sample(dtype, &[2, 3, 3])));
    exponentials: family(&["MatrixExponential"], FIELDS, |op, dtype| Case::op(op).input(sample(dtype, &[2, 3, 3])));
    nothing: family(&["MatrixSquareRoot", "MatrixLogarithm", "MatrixExponential"], &FIELDS[3..], |op, dtype| {
        Case::op(op).input(sample(dtype, &[2, 0, 0]))
    });
    not_square: family(&["MatrixSquareRoot", "MatrixLogarithm", "MatrixExponential"], &FIELDS[3..], |op, dtype| {
        Case::op(op).input(sample(dtype, &[2, 3])).fails(Code::InvalidArgument)
    });
}
