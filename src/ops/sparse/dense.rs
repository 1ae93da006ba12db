//! A sparse and a dense tensor: element by element where there are values, and matrix products.

use super::parts::{Sparse, check_parts};
use crate::linalg::{Field, match_field};
use crate::math::gradients::{binary, conjugate, typed, unary};
use crate::math::number::Number;
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, OutputRef, ShapeContext,
};
use ff_tensor::{DataType, PartialShape, Result, Tensor, dim, ensure};

const ELEMENTWISE: Op = Op {
    shape: |context| {
        check_parts(context, 0)?;
        let values = context.input(1);
        context.set_output(0, values);
        Ok(())
    },
    kernels: &[Kernel::native(elementwise)],
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseDenseCwiseAdd",
        ..ELEMENTWISE
    },
    &Op {
        name: "SparseDenseCwiseMul",
        gradient: Gradient::Fn(|context| elementwise_gradient(context, true)),
        ..ELEMENTWISE
    },
    &Op {
        name: "SparseDenseCwiseDiv",
        gradient: Gradient::Fn(|context| elementwise_gradient(context, false)),
        ..ELEMENTWISE
    },
    &Op {
        name: "SparseTensorDenseMatMul",
        shape: product_shape,
        kernels: &[Kernel::native(product)],
        gradient: Gradient::Fn(product_gradient),
        ..Op::PURE
    },
    &Op {
        name: "SparseMatMul",
        shape: both_dense_shape,
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(lower_both_dense),
        gradient: Gradient::Fn(both_dense_gradient),
        ..Op::PURE
    },
];

/// The element of the dense tensor, repeated along axes of extent 1 and new leading ones, at each place.
fn places_in_dense(sparse: &Sparse, dims: &[i64]) -> Result<Vec<usize>> {
    let missing = sparse.rank().checked_sub(dims.len());
    let fits = missing.is_some_and(|missing| {
        dims.iter()
            .zip(&sparse.dims[missing..])
            .all(|(&own, &other)| own == other || own == 1)
    });
    ensure!(
        fits,
        InvalidArgument,
        "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: {:?} vs. {dims:?}",
        sparse.dims
    );
    let missing = missing.unwrap_or(0);
    let strides = crate::movement::row_major(dims);
    let mut all = crate::wide::reserved(sparse.count())?;
    for number in 0..sparse.count() {
        ensure!(
            sparse.is_inside(number),
            InvalidArgument,
            "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape"
        );
        let own = sparse.place(number)[missing..]
            .iter()
            .zip(dims.iter().zip(&strides));
        all.push(
            own.map(|(&at, (&extent, &stride))| if extent == 1 { 0 } else { at * stride })
                .sum::<i64>() as usize,
        );
    }
    Ok(all)
}

fn elementwise(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::read(context, 0)?;
    let dense = context.input(3)?;
    let places = places_in_dense(&sparse, dense.dims())?;
    let name = context.node().op_name();
    let output = crate::match_real!(context.output_type(0), T => {
        let (values, other) = (sparse.values.as_slice::<T>()?, dense.as_slice::<T>()?);
        ensure!(
            !name.ends_with("Div") || dense.dtype().is_floating() || !other.contains(&T::default()),
            InvalidArgument,
            "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero "
        );
        let join = match name {
            "SparseDenseCwiseAdd" => <T as Number>::add,
            "SparseDenseCwiseMul" => <T as Number>::mul,
            _ => <T as Number>::div,
        };
        let joined = values.iter().zip(&places).map(|(&value, &at)| join(value, other[at]));
        Tensor::vector(&crate::wide::collected(joined)?)
    })?;
    context.set_output(0, output)
}

/// By the values at their places; by the dense tensor summed where it was repeated.
fn elementwise_gradient(context: &mut GradientContext, is_product: bool) -> Result<()> {
    let (incoming, values, dense) = (
        context.incoming_or_zeros(0)?,
        context.input(1)?,
        context.input(3)?,
    );
    let (places, dims) = (context.input(0)?, context.input(2)?);
    let attrs = typed(context.dtype(dense)).with("out_type", DataType::INT64);
    let dense_dims = context.op("Shape", &[dense], attrs)?;
    // The dense extents with leading ones, then how often each axis is repeated.
    let rank = context.op(
        "Shape",
        &[dims],
        typed(DataType::INT64).with("out_type", DataType::INT32),
    )?;
    let own = context.op(
        "Shape",
        &[dense_dims],
        typed(DataType::INT64).with("out_type", DataType::INT32),
    )?;
    let missing = binary(context, "Sub", rank, own)?;
    let (one, zero) = (context.constant(Tensor::scalar(1i64)?)?, context.int32(0)?);
    let attrs = typed(DataType::INT64).with("index_type", DataType::INT32);
    let ones = context.op("Fill", &[missing, one], attrs)?;
    let attrs = typed(DataType::INT64)
        .with("N", 2i64)
        .with("Tidx", DataType::INT32);
    let full = context.op("ConcatV2", &[ones, dense_dims, zero], attrs)?;
    let scale = binary(context, "FloorDiv", dims, full)?;
    let scaled = binary(context, "FloorDiv", places, scale)?;
    let first = context.int32s(&[0])?;
    let attrs = typed(DataType::INT32)
        .with("N", 2i64)
        .with("Tidx", DataType::INT32);
    let begin = context.op("ConcatV2", &[first, missing, zero], attrs)?;
    let size = context.int32s(&[-1, -1])?;
    let attrs = typed(DataType::INT64).with("Index", DataType::INT32);
    let scaled = context.op("Slice", &[scaled, begin, size], attrs)?;
    let attrs = Attrs::new()
        .with("Tparams", context.dtype(dense))
        .with("Tindices", DataType::INT64);
    let at_places = context.op("GatherNd", &[dense, scaled], attrs)?;
    let (by_values, by_dense) = if is_product {
        (
            binary(context, "Mul", incoming, at_places)?,
            binary(context, "Mul", incoming, values)?,
        )
    } else {
        let square = unary(context, "Square", at_places)?;
        let negative = unary(context, "Neg", values)?;
        let ratio = binary(context, "Div", negative, square)?;
        (
            binary(context, "Div", incoming, at_places)?,
            binary(context, "Mul", incoming, ratio)?,
        )
    };
    let zeros = unary(context, "ZerosLike", dense)?;
    let attrs = typed(context.dtype(dense)).with("Tindices", DataType::INT64);
    let by_dense = context.op(
        "SparseTensorDenseAdd",
        &[scaled, by_dense, dense_dims, zeros],
        attrs,
    )?;
    context.set(1, by_values);
    context.set(3, by_dense);
    Ok(())
}

/// Rows and columns of a matrix as it is multiplied.
fn turned(rows: i64, columns: i64, adjoint: bool) -> (i64, i64) {
    if adjoint { (columns, rows) } else { (rows, columns) }
}

fn product_shape(context: &mut ShapeContext) -> Result<()> {
    check_parts(context, 0)?;
    let attrs = context.attrs();
    let (adjoint_a, adjoint_b) = (attrs.bool("adjoint_a")?, attrs.bool("adjoint_b")?);
    let dense = context.input_with_rank(3, 2)?;
    let (inner, columns) = turned(dense.dim(0), dense.dim(1), adjoint_b);
    let mut rows = dim::UNKNOWN;
    if let Some(dims) = context.input_as_i64s(2)? {
        ensure!(
            dims.len() == 2,
            InvalidArgument,
            "Tensor 'a_shape' must have 2 elements"
        );
        let (own, other) = turned(dims[0], dims[1], adjoint_a);
        rows = own;
        ensure!(
            inner < 0 || other == inner,
            InvalidArgument,
            "Cannot multiply A and B because inner dimension does not match: {other} vs. {inner}.  Did you forget a transpose?  Dimensions of A: [{}, {}).  Dimensions of B: {dense}",
            dims[0],
            dims[1]
        );
    }
    context.set_output(0, PartialShape::new(&[rows, columns]));
    Ok(())
}

fn product(context: &mut KernelContext) -> Result<()> {
    let sparse = Sparse::new(
        context.input(0)?,
        context.input(1)?.clone(),
        context.input_i64s(2)?,
    )?;
    ensure!(
        sparse.rank() == 2,
        InvalidArgument,
        "Tensor 'a_shape' must have 2 elements"
    );
    if context.output_type(0) == DataType::INT32 {
        let (values, dense) = (
            sparse.values.as_slice::<i32>()?.to_vec(),
            context.input_slice::<i32>(3)?.to_vec(),
        );
        let sums = multiply(
            context,
            &sparse,
            &values,
            &dense,
            |a, b, c| a.wrapping_add(b.wrapping_mul(c)),
            |x| x,
        )?;
        let output = Tensor::from_slice(context.output_shape(0)?.clone(), &sums)?;
        return context.set_output(0, output);
    }
    match_field!(context.output_type(0), T => {
        let (values, dense) = (T::elements(&sparse.values)?, T::elements(context.input(3)?)?);
        let sums = multiply(context, &sparse, &values, &dense, |a, b, c| a + b * c, ff_kernels::linalg::Scalar::conj)?;
        let output = <T as Field>::tensor(context.output_type(0), context.output_shape(0)?.clone(), &sums)?;
        context.set_output(0, output)
    })
}

/// Adds a multiple of a row of the dense matrix for each value.
fn multiply<T: Copy + Default>(
    context: &KernelContext,
    sparse: &Sparse,
    values: &[T],
    dense: &[T],
    add: impl Fn(T, T, T) -> T,
    conj: impl Fn(T) -> T,
) -> Result<Vec<T>> {
    let attrs = context.attrs();
    let (adjoint_a, adjoint_b) = (attrs.bool("adjoint_a")?, attrs.bool("adjoint_b")?);
    let shape = context.output_shape(0)?;
    let (rows, columns) = (shape.dims()[0], shape.dims()[1] as usize);
    let width = context.input(3)?.dims()[1] as usize;
    let inner = context.input(3)?.dims()[usize::from(adjoint_b)];
    let mut sums: Vec<T> = crate::wide::zeros(shape.num_elements())?;
    for (number, &value) in values.iter().enumerate() {
        let place = sparse.place(number);
        let (m, k) = turned(place[0], place[1], adjoint_a);
        let (at_m, at_k) = (usize::from(adjoint_a), usize::from(!adjoint_a));
        ensure!(
            (0..inner).contains(&k),
            InvalidArgument,
            "k ({k}) from index[{number},{at_k}] out of bounds (>={inner})"
        );
        ensure!(
            (0..rows).contains(&m),
            InvalidArgument,
            "m ({m}) from index[{number},{at_m}] out of bounds (>={rows})"
        );
        let value = if adjoint_a { conj(value) } else { value };
        let target = &mut sums[m as usize * columns..(m as usize + 1) * columns];
        for (column, sum) in target.iter_mut().enumerate() {
            let other = if adjoint_b {
                conj(dense[column * width + k as usize])
            } else {
                dense[k as usize * width + column]
            };
            *sum = add(*sum, value, other);
        }
    }
    Ok(sums)
}

/// A column of the places.
fn column(context: &mut GradientContext, places: OutputRef, which: i32) -> Result<OutputRef> {
    let (begin, end, step) = (
        context.int32s(&[0, which])?,
        context.int32s(&[0, which + 1])?,
        context.int32s(&[1, 1])?,
    );
    let attrs = typed(context.dtype(places))
        .with("Index", DataType::INT32)
        .with("begin_mask", 1i64)
        .with("end_mask", 1i64)
        .with("shrink_axis_mask", 2i64);
    context.op("StridedSlice", &[places, begin, end, step], attrs)
}

fn gather_rows(context: &mut GradientContext, values: OutputRef, rows: OutputRef) -> Result<OutputRef> {
    let zero = context.int32(0)?;
    let attrs = Attrs::new()
        .with("Tparams", context.dtype(values))
        .with("Tindices", context.dtype(rows))
        .with("Taxis", DataType::INT32);
    context.op("GatherV2", &[values, rows, zero], attrs)
}

/// The conjugate transpose of a matrix.
fn adjoint(context: &mut GradientContext, matrix: OutputRef) -> Result<OutputRef> {
    let order = context.int32s(&[1, 0])?;
    let attrs = typed(context.dtype(matrix)).with("Tperm", DataType::INT32);
    let turned = context.op("Transpose", &[matrix, order], attrs)?;
    conjugate(context, turned)
}

fn product_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, places, values, dims) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
        context.input(2)?,
    );
    let dense = context.input(3)?;
    let adjoint_a = context.attrs().bool("adjoint_a")?;
    let adjoint_b = context.attrs().bool("adjoint_b")?;
    let attrs = typed(context.dtype(values))
        .with("Tindices", context.dtype(places))
        .with("adjoint_a", !adjoint_a)
        .with("adjoint_b", false);
    let mut by_dense = context.op(
        "SparseTensorDenseMatMul",
        &[places, values, dims, incoming],
        attrs,
    )?;
    if adjoint_b {
        by_dense = adjoint(context, by_dense)?;
    }
    let (rows, columns) = (column(context, places, 0)?, column(context, places, 1)?);
    let right = if adjoint_b {
        adjoint(context, dense)?
    } else {
        dense
    };
    let (of_incoming, of_dense) = if adjoint_a {
        (columns, rows)
    } else {
        (rows, columns)
    };
    let (first, second) = (
        gather_rows(context, incoming, of_incoming)?,
        gather_rows(context, right, of_dense)?,
    );
    let second = conjugate(context, second)?;
    let product = binary(context, "Mul", first, second)?;
    let axis = context.int32(-1)?;
    let attrs = typed(context.dtype(product))
        .with("Tidx", DataType::INT32)
        .with("keep_dims", false);
    let sum = context.op("Sum", &[product, axis], attrs)?;
    let by_values = if adjoint_a { conjugate(context, sum)? } else { sum };
    context.set(1, by_values);
    context.set(3, by_dense);
    Ok(())
}

fn both_dense_shape(context: &mut ShapeContext) -> Result<()> {
    let (a, b) = (context.input_with_rank(0, 2)?, context.input_with_rank(1, 2)?);
    let attrs = context.attrs();
    let (rows, inner) = turned(a.dim(0), a.dim(1), attrs.bool("transpose_a")?);
    let (other, columns) = turned(b.dim(0), b.dim(1), attrs.bool("transpose_b")?);
    dim::merge(inner, other)?;
    context.set_output(0, PartialShape::new(&[rows, columns]));
    Ok(())
}

/// An ordinary product in `f32`: that operands are said to have many zeros changes nothing.
fn lower_both_dense(context: &mut LowerContext) -> Result<()> {
    let attrs = context.attrs();
    let turned = [attrs.bool("transpose_a")?, attrs.bool("transpose_b")?];
    let mut operands = Vec::new();
    for (index, turned) in turned.into_iter().enumerate() {
        let input = context.input(index)?;
        let wide = context.builder.convert(input, DataType::FLOAT)?;
        operands.push(if turned {
            context.builder.transpose(wide, &[1, 0])?
        } else {
            wide
        });
    }
    let dims = ff_hlo::DotDims::matmul(false, false);
    let result = context
        .builder
        .dot_general(operands[0], operands[1], dims, None)?;
    context.set_output(0, result);
    Ok(())
}

fn both_dense_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, a, b) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let (turned_a, turned_b) = (
        context.attrs().bool("transpose_a")?,
        context.attrs().bool("transpose_b")?,
    );
    let multiply = |context: &mut GradientContext,
                    x: OutputRef,
                    y: OutputRef,
                    turned: (bool, bool),
                    wanted: DataType| {
        let attrs = Attrs::new()
            .with("Ta", context.dtype(x))
            .with("Tb", context.dtype(y))
            .with("transpose_a", turned.0)
            .with("transpose_b", turned.1);
        let product = context.op("SparseMatMul", &[x, y], attrs)?;
        let attrs = Attrs::new().with("SrcT", DataType::FLOAT).with("DstT", wanted);
        if wanted == DataType::FLOAT {
            Ok(product)
        } else {
            context.op("Cast", &[product], attrs)
        }
    };
    let (of_a, of_b) = (context.dtype(a), context.dtype(b));
    let by_a = if turned_a {
        multiply(context, b, incoming, (turned_b, true), of_a)?
    } else {
        multiply(context, incoming, b, (false, !turned_b), of_a)?
    };
    let by_b = if turned_b {
        multiply(context, incoming, a, (true, turned_a), of_b)?
    } else {
        multiply(context, a, incoming, (!turned_a, false), of_b)?
    };
    context.set(0, by_a);
    context.set(1, by_b);
    Ok(())
}

#[cfg(test)]
use super::arrange::case;

#[cfg(test)]
const NAMES: &[&str] = &[
    "SparseDenseCwiseAdd",
    "SparseDenseCwiseMul",
    "SparseDenseCwiseDiv",
];

#[cfg(test)]
const FACTORS: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::INT32,
    DataType::COMPLEX64,
    DataType::COMPLEX128,
    DataType::BFLOAT16,
];

crate::op_cases! {
    at_places: family(NAMES, &[FLOATS, INTEGERS].concat(), |op, dtype| {
        case(op, dtype).input(numbers(dtype, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
    });
    repeated: family(NAMES, &FLOATS[..2], |op, dtype| case(op, dtype).input(numbers(dtype, &[2, 1], &[4.0, 5.0])));
    repeated_rows: family(NAMES, &FLOATS[..2], |op, dtype| case(op, dtype).input(numbers(dtype, &[3], &[4.0, 5.0, 6.0])));
    repeated_number: family(NAMES, &FLOATS[..2], |op, dtype| case(op, dtype).input(numbers(dtype, &[], &[4.0])));
    misfit: family(NAMES, &FLOATS[..1], |op, dtype| case(op, dtype).input(numbers(dtype, &[2], &[4.0, 5.0])).fails(Code::InvalidArgument));
    too_many_axes: family(NAMES, &FLOATS[..1], |op, dtype| case(op, dtype).input(numbers(dtype, &[1, 2, 3], &[4.0; 6])).fails(Code::InvalidArgument));
    by_zero: case("SparseDenseCwiseDiv", DataType::INT32).input(t(&[2, 3], &[0, 0, 0, 1, 1, 2])).fails(Code::InvalidArgument);
    outside: family(NAMES, &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([t(&[1, 1], &[5i64]), numbers(dtype, &[1], &[1.0]), vector(&[2i64]), numbers(dtype, &[2], &[4.0, 5.0])]).fails(Code::InvalidArgument)
    });
    products: family(&["SparseTensorDenseMatMul"], FACTORS, |op, dtype| case(op, dtype).input(cycle(dtype, &[3, 2])));
    products_adjoint: family(&["SparseTensorDenseMatMul"], FACTORS, |op, dtype| case(op, dtype).input(cycle(dtype, &[2, 4])).attr("adjoint_a", true));
    products_both: family(&["SparseTensorDenseMatMul"], FACTORS, |op, dtype| {
        case(op, dtype).input(cycle(dtype, &[4, 2])).attr("adjoint_a", true).attr("adjoint_b", true)
    });
    products_misfit: case("SparseTensorDenseMatMul", DataType::FLOAT).input(cycle(DataType::FLOAT, &[2, 2])).fails(Code::InvalidArgument);
    products_outside: Case::op("SparseTensorDenseMatMul").inputs([t(&[1, 2], &[0i64, 3]), vector(&[1.0f32]), vector(&[2i64, 3]), cycle(DataType::FLOAT, &[3, 2])])
        .fails(Code::InvalidArgument);
    products_nothing: Case::op("SparseTensorDenseMatMul").inputs([t::<i64>(&[0, 2], &[]), vector::<f32>(&[]), vector(&[2i64, 3]), cycle(DataType::FLOAT, &[3, 2])]);
    dense_factors: family(&["SparseMatMul"], &[DataType::FLOAT, DataType::BFLOAT16], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3]), cycle(DataType::FLOAT, &[3, 4])])
    });
    dense_factors_turned: family(&["SparseMatMul"], &[DataType::FLOAT, DataType::BFLOAT16], |op, dtype| {
        Case::op(op).inputs([cycle(DataType::FLOAT, &[3, 2]), cycle(dtype, &[4, 3])]).attr("transpose_a", true).attr("transpose_b", true).attr("a_is_sparse", true)
    });
    dense_factors_misfit: Case::op("SparseMatMul").inputs([cycle(DataType::FLOAT, &[3, 2]), cycle(DataType::FLOAT, &[4, 3])]).fails(Code::InvalidArgument);
}
