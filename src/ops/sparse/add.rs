//! Sums and extremes of two sparse tensors, and of a sparse and a dense one.

use super::parts::{Sparse, check_parts, matrix, set_parts};
use crate::math::number::{Number, maximum, minimum};
use crate::movement::row_major;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext};
use ff_tensor::{PartialShape, Result, Tensor, dim, ensure};
use std::cmp::Ordering;

const EXTREME: Op = Op {
    shape: |context| {
        let rank = dim::merge(check_parts(context, 0)?, check_parts(context, 3)?)?;
        set_parts(context, 0, rank);
        Ok(())
    },
    kernels: &[Kernel::native(extremes)],
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseAdd",
        shape: |context| {
            context.input_with_rank(6, 0)?;
            let rank = dim::merge(check_parts(context, 0)?, check_parts(context, 3)?)?;
            set_parts(context, 0, rank);
            Ok(())
        },
        kernels: &[Kernel::native(add)],
        gradient: Gradient::Fn(add_gradient),
        ..Op::PURE
    },
    &Op {
        name: "SparseAddGrad",
        shape: add_grad_shape,
        kernels: &[Kernel::native(spread)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "SparseSparseMaximum",
        ..EXTREME
    },
    &Op {
        name: "SparseSparseMinimum",
        ..EXTREME
    },
    &Op {
        name: "SparseTensorDenseAdd",
        shape: |context| {
            check_parts(context, 0)?;
            let dense = context.input(3);
            context.set_output(0, dense);
            Ok(())
        },
        kernels: &[Kernel::native(add_dense)],
        gradient: Gradient::Fn(add_dense_gradient),
        ..Op::PURE
    },
];

/// Which value of the first and of the second tensor stands at each place of either, in the order of places.
fn union(a: &Sparse, b: &Sparse) -> Result<Vec<(Option<usize>, Option<usize>)>> {
    ensure!(
        a.rank() == b.rank(),
        InvalidArgument,
        "Ranks of input tensors must match, but saw ranks: {} and {}",
        a.rank(),
        b.rank()
    );
    for axis in 0..a.rank() {
        ensure!(
            a.dims[axis] == b.dims[axis],
            InvalidArgument,
            "Operands' shapes do not match: got {} and {} for dimension {axis}",
            a.dims[axis],
            b.dims[axis]
        );
    }
    let (mut i, mut j, mut all) = (0, 0, Vec::new());
    while i < a.count() && j < b.count() {
        match a.place(i).cmp(b.place(j)) {
            Ordering::Less => {
                all.push((Some(i), None));
                i += 1;
            }
            Ordering::Greater => {
                all.push((None, Some(j)));
                j += 1;
            }
            Ordering::Equal => {
                all.push((Some(i), Some(j)));
                (i, j) = (i + 1, j + 1);
            }
        }
    }
    all.extend((i..a.count()).map(|i| (Some(i), None)));
    all.extend((j..b.count()).map(|j| (None, Some(j))));
    Ok(all)
}

/// The places of pairs, as a matrix.
fn places_of(a: &Sparse, b: &Sparse, pairs: &[(Option<usize>, Option<usize>)]) -> Result<Tensor> {
    let mut places = Vec::with_capacity(pairs.len() * a.rank());
    for &(i, j) in pairs {
        match (i, j) {
            (Some(i), _) => places.extend_from_slice(a.place(i)),
            (None, Some(j)) => places.extend_from_slice(b.place(j)),
            (None, None) => {}
        }
    }
    matrix(&places, pairs.len(), a.rank())
}

/// A real scalar.
fn real_scalar(tensor: &Tensor) -> Result<f64> {
    let values = if tensor.dtype().is_floating() {
        <f64 as crate::linalg::Field>::elements(tensor)?
    } else {
        crate::match_integer!(tensor.dtype(), T => {
            Ok(tensor.as_slice::<T>()?.iter().map(|&x| x as f64).collect::<Vec<f64>>())
        })?
    };
    values
        .first()
        .copied()
        .ok_or_else(|| ff_tensor::status!(InvalidArgument, "expected a scalar"))
}

/// A number whose size can be told.
trait Measured: Number {
    fn magnitude(self) -> f64;
}

macro_rules! sized {
    ($($name:ty: |$x:ident| $size:expr),* $(,)?) => {
        $(impl Measured for $name {
            fn magnitude(self) -> f64 { let $x = self; $size }
        })*
    };
}
sized!(
    f32: |x| f64::from(x.abs()), f64: |x| x.abs(), i8: |x| f64::from(x).abs(), i16: |x| f64::from(x).abs(),
    i32: |x| f64::from(x).abs(), i64: |x| (x as f64).abs(),
    ff_tensor::Complex64: |x| f64::from(x.norm()), ff_tensor::Complex128: |x| x.norm(),
);

/// Sums of two values whose size is below the threshold are left out.
fn add(context: &mut KernelContext) -> Result<()> {
    let (a, b) = (Sparse::read(context, 0)?, Sparse::read(context, 3)?);
    let threshold = real_scalar(context.input(6)?)?;
    let pairs = union(&a, &b)?;
    let (kept, values) = crate::match_type!(
        context.output_type(1),
        (f32, f64, i8, i16, i32, i64, ff_tensor::Complex64, ff_tensor::Complex128),
        T => add_values::<T>(&a, &b, &pairs, threshold)
    )?;
    let places = places_of(&a, &b, &kept)?;
    context.set_output(0, places)?;
    context.set_output(1, values)?;
    context.set_output(2, Tensor::vector(&a.dims)?)
}

type Pairs = Vec<(Option<usize>, Option<usize>)>;

fn add_values<T: Measured>(
    a: &Sparse,
    b: &Sparse,
    pairs: &[(Option<usize>, Option<usize>)],
    threshold: f64,
) -> Result<(Pairs, Tensor)> {
    let (x, y) = (a.values.as_slice::<T>()?, b.values.as_slice::<T>()?);
    let (mut kept, mut sums) = (Vec::new(), Vec::new());
    for &(i, j) in pairs {
        let (sum, counts) = match (i, j) {
            (Some(i), Some(j)) => {
                let sum = x[i].add(y[j]);
                (sum, threshold <= sum.magnitude())
            }
            (Some(i), None) => (x[i], true),
            (None, Some(j)) => (y[j], true),
            (None, None) => continue,
        };
        if counts {
            kept.push((i, j));
            sums.push(sum);
        }
    }
    Ok((kept, Tensor::vector(&sums)?))
}

fn add_grad_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 1)?;
    for (index, output) in [(1, 0), (2, 1)] {
        let places = context.input_with_rank(index, 2)?;
        context.set_output(output, PartialShape::new(&[places.dim(0)]));
    }
    context.input_with_rank(3, 2)?;
    Ok(())
}

/// The incoming value at each place of both tensors; zero where the sum left it out.
fn spread(context: &mut KernelContext) -> Result<()> {
    let (incoming, sum) = (context.input(0)?, context.input(3)?);
    ensure!(
        incoming.num_elements() as i64 == sum.dims()[0],
        InvalidArgument,
        "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): got {} and {}",
        incoming.num_elements(),
        sum.dims()[0]
    );
    let rank = sum.dims()[1] as usize;
    let places = sum.to_i64_vec()?;
    let numbers = 0..incoming.num_elements();
    let known: rustc_hash::FxHashMap<&[i64], usize> = numbers
        .map(|number| (&places[number * rank..(number + 1) * rank], number))
        .collect();
    let mut outputs = Vec::new();
    for index in 1..3 {
        let own = context.input(index)?;
        ensure!(
            own.dims()[1] as usize == rank,
            InvalidArgument,
            "The densified operands should have the same ndims; for A, B and Sum got: {rank} and {}",
            own.dims()[1]
        );
        let (count, places) = (own.dims()[0] as usize, own.to_i64_vec()?);
        let mut writer = crate::movement::Writer::zeros(incoming.dtype(), ff_tensor::Shape::vector(count))?;
        for number in 0..count {
            if let Some(&from) = known.get(&places[number * rank..(number + 1) * rank]) {
                writer.copy(number, incoming, from, 1)?;
            }
        }
        outputs.push(writer.finish()?);
    }
    for (index, output) in outputs.into_iter().enumerate() {
        context.set_output(index, output)?;
    }
    Ok(())
}

fn add_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, a, b, sum) = (
        context.incoming_or_zeros(1)?,
        context.input(0)?,
        context.input(3)?,
        context.output(0),
    );
    let attrs = Attrs::new().with("T", context.dtype(incoming));
    let node = context.node_of("SparseAddGrad", &[incoming, a, b, sum], attrs)?;
    context.set(1, OutputRef { node, index: 0 });
    context.set(4, OutputRef { node, index: 1 });
    Ok(())
}

/// Of both values at each place of either tensor; what is not there counts as zero.
fn extremes(context: &mut KernelContext) -> Result<()> {
    let (a, b) = (Sparse::read(context, 0)?, Sparse::read(context, 3)?);
    super::sets::check_places(&a, false)?;
    super::sets::check_places(&b, false)?;
    let pairs = union(&a, &b)?;
    let largest = context.node().op_name() == "SparseSparseMaximum";
    let values = crate::match_real!(context.output_type(1), T => {
        let (x, y) = (a.values.as_slice::<T>()?, b.values.as_slice::<T>()?);
        let join = if largest { maximum::<T> } else { minimum::<T> };
        let value = |values: &[T], at: Option<usize>| at.map_or(T::default(), |at| values[at]);
        let all: Vec<T> = pairs.iter().map(|&(i, j)| join(value(x, i), value(y, j))).collect();
        Tensor::vector(&all)
    })?;
    let places = places_of(&a, &b, &pairs)?;
    context.set_output(0, places)?;
    context.set_output(1, values)
}

fn add_dense(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 0)?;
    let mut dense = context.take_input(3)?;
    ensure!(
        dense.rank() == sparse.rank(),
        InvalidArgument,
        "Two operands have different ndims; got {} and {}",
        sparse.rank(),
        dense.rank()
    );
    for (axis, (own, other)) in sparse.dims.iter().zip(dense.dims()).enumerate() {
        ensure!(
            own == other,
            InvalidArgument,
            "Dimension {axis} does not equal (no broadcasting is supported): sparse side {own} vs dense side {other}"
        );
    }
    let strides = row_major(dense.dims());
    dense.make_writable()?;
    crate::match_number!(dense.dtype(), T => {
        let (values, sums) = (sparse.values.as_slice::<T>()?, dense.as_mut_slice::<T>()?);
        for (number, &value) in values.iter().enumerate() {
            ensure!(
                sparse.is_inside(number),
                InvalidArgument,
                "Sparse tensor has an invalid index: a_indices({number}) = {:?}, dense tensor shape: {:?}",
                sparse.place(number),
                sparse.dims
            );
            let at: i64 = sparse.place(number).iter().zip(&strides).map(|(at, stride)| at * stride).sum();
            sums[at as usize] = Number::add(sums[at as usize], value);
        }
        Ok(())
    })?;
    context.set_output(0, dense)
}

fn add_dense_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, places) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let attrs = Attrs::new()
        .with("Tparams", context.dtype(incoming))
        .with("Tindices", context.dtype(places));
    let values = context.op("GatherNd", &[incoming, places], attrs)?;
    context.set(1, values);
    context.set(3, incoming);
    Ok(())
}

#[cfg(test)]
use super::arrange::{case, places};

/// Two sparse tensors; the second has two values and these extents.
#[cfg(test)]
fn pair(op: &'static str, dtype: ff_tensor::DataType, dims: &[i64]) -> crate::testing::Case {
    use crate::testing::{numbers, t, vector};
    case(op, dtype).inputs([
        t(&[2, 2], &[0i64, 0, 1, 0]),
        numbers(dtype, &[2], &[10.0, -2.0]),
        vector(dims),
    ])
}

crate::op_cases! {
    sums: family(&["SparseAdd"], &[DataType::FLOAT, DataType::DOUBLE], |op, dtype| pair(op, dtype, &[2, 3]).input(numbers(dtype, &[], &[0.0])));
    sums_of_integers: family(&["SparseAdd"], SIGNED, |op, dtype| pair(op, dtype, &[2, 3]).input(numbers(dtype, &[], &[1.0])));
    sums_of_complex: pair("SparseAdd", DataType::COMPLEX64, &[2, 3]).input(scalar(1.5f32));
    sums_that_count: pair("SparseAdd", DataType::FLOAT, &[2, 3]).input(scalar(1.5f32));
    sums_misfit: pair("SparseAdd", DataType::FLOAT, &[2, 4]).input(scalar(0.0f32)).fails(Code::InvalidArgument);
    spread_out: Case::op("SparseAddGrad").inputs([vector(&[1.0f32, 2.0, 3.0]), places(), t(&[2, 2], &[0i64, 0, 1, 0]), t(&[3, 2], &[0i64, 0, 0, 1, 1, 2])])
        .gives(vector(&[2.0f32, 0.0, 3.0])).gives(vector(&[1.0f32, 0.0]));
    spread_misfit: Case::op("SparseAddGrad").inputs([vector(&[1.0f32]), places(), places(), places()]).fails(Code::InvalidArgument);
    extreme_of_any_order: family(&["SparseSparseMaximum", "SparseSparseMinimum"], &FLOATS[..1], |op, _| Case::op(op)
        .inputs([t(&[3, 1], &[1i64, 1, 0]), vector(&[1.0f32, 2.0, 3.0]), vector(&[2i64]), t(&[2, 1], &[1i64, 0]), vector(&[10.0f32, -1.0]), vector(&[2i64])]));
    extreme: family(&["SparseSparseMaximum", "SparseSparseMinimum"], &[FLOATS, SIGNED].concat(), |op, dtype| pair(op, dtype, &[2, 3]));
    extreme_outside: Case::op("SparseSparseMinimum").inputs([t(&[1, 1], &[2i64]), vector(&[0i32]), vector(&[2i64]), t(&[1, 1], &[0i64]), vector(&[9i32]), vector(&[2i64])])
        .fails(Code::InvalidArgument);
    extreme_misfit: family(&["SparseSparseMaximum", "SparseSparseMinimum"], &FLOATS[..1], |op, dtype| pair(op, dtype, &[3, 3]).fails(Code::InvalidArgument));
    to_dense: family(&["SparseTensorDenseAdd"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| case(op, dtype).input(cycle(dtype, &[2, 3])));
    to_dense_twice: Case::op("SparseTensorDenseAdd").inputs([t(&[2, 1], &[0i64, 0]), vector(&[10.0f32, -2.0]), vector(&[2i64]), vector(&[1.0f32, 1.0])])
        .gives(vector(&[9.0f32, 1.0]));
    to_dense_misfit: case("SparseTensorDenseAdd", DataType::FLOAT).input(cycle(DataType::FLOAT, &[2, 2])).fails(Code::InvalidArgument);
    to_dense_outside: Case::op("SparseTensorDenseAdd").inputs([t(&[1, 1], &[5i64]), vector(&[10.0f32]), vector(&[2i64]), vector(&[1.0f32, 1.0])])
        .fails(Code::InvalidArgument);
}
