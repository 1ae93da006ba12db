//! A value for each row of a sparse tensor that has none.

use super::parts::{Sparse, check_parts, matrix};
use crate::math::number::Number;
use crate::movement::Writer;
use crate::wide;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef};
use ff_tensor::{Bool, PartialShape, Result, Shape, Tensor, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseFillEmptyRows",
        shape: |context| {
            let rank = check_parts(context, 0)?;
            context.input_with_rank(3, 0)?;
            let count = context.input(0).dim(0);
            let rows = context.input_as_i64s(2)?.and_then(|dims| dims.first().copied());
            let rows = rows.filter(|&rows| rows >= 0).unwrap_or(dim::UNKNOWN);
            context.set_output(0, PartialShape::new(&[dim::UNKNOWN, rank]));
            context.set_output(1, PartialShape::of_rank(1));
            context.set_output(2, PartialShape::new(&[rows]));
            context.set_output(3, PartialShape::new(&[count]));
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let sparse = Sparse::read(context, 0)?;
            fill(context, &sparse, false)
        })],
        gradient: Gradient::Fn(gradient),
        ..Op::PURE
    },
    &Op {
        name: "SparseFillEmptyRowsGrad",
        ..SPREAD
    },
    &Op {
        name: "RaggedFillEmptyRows",
        shape: |context| {
            let count = context.input_with_rank(0, 1)?.dim(0);
            let count = dim::merge(count, context.input_with_rank(1, 1)?.dim(0))?;
            context.input_with_rank(2, 0)?;
            context.input_with_rank(3, 0)?;
            let rows = context.input_as_scalar(2)?.filter(|&rows| rows >= 0);
            context.set_output(0, PartialShape::of_rank(1));
            context.set_output(1, PartialShape::of_rank(1));
            context.set_output(2, PartialShape::new(&[rows.unwrap_or(dim::UNKNOWN)]));
            context.set_output(3, PartialShape::new(&[count]));
            Ok(())
        },
        kernels: &[Kernel::native(|context| {
            let sparse = Sparse {
                places: context.input_i64s(0)?,
                values: context.input(1)?.clone(),
                dims: vec![context.input_i64(2)?],
            };
            fill(context, &sparse, true)
        })],
        gradient: Gradient::Fn(gradient),
        ..Op::PURE
    },
    &Op {
        name: "RaggedFillEmptyRowsGrad",
        ..SPREAD
    },
];

const SPREAD: Op = Op {
    shape: |context| {
        let map = context.input_with_rank(0, 1)?;
        context.input_with_rank(1, 1)?;
        context.set_output(0, map);
        context.set_output(1, PartialShape::scalar());
        Ok(())
    },
    kernels: &[Kernel::native(spread)],
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// Values row by row, those of a row in their order; where each input value went. Places of one axis can be given as a
/// vector.
fn fill(context: &mut KernelContext, sparse: &Sparse, as_vector: bool) -> Result<()> {
    let default = context.input(3)?.clone();
    ensure!(sparse.rank() > 0, InvalidArgument, "Dense shape cannot be empty.");
    let (rows, rank) = (sparse.dims[0], sparse.rank());
    ensure!(
        rows > 0 || sparse.count() == 0,
        InvalidArgument,
        "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {}",
        sparse.count()
    );
    let mut counts: Vec<usize> = wide::zeros(Shape::new(&[rows])?.num_elements())?;
    for number in 0..sparse.count() {
        let row = sparse.place(number)[0];
        ensure!(
            row >= 0,
            InvalidArgument,
            "indices({number}, 0) is invalid: {row} < 0"
        );
        ensure!(
            row < rows,
            InvalidArgument,
            "indices({number}, 0) is invalid: {row} >= {rows}"
        );
        counts[row as usize] += 1;
    }
    let mut next = wide::reserved(counts.len())?;
    let mut total = 0;
    for &count in &counts {
        next.push(total);
        total += count.max(1);
    }
    let mut places: Vec<i64> = wide::zeros(total.saturating_mul(rank))?;
    let mut values = Writer::new(sparse.values.dtype(), Shape::vector(total))?;
    for (row, _) in counts.iter().enumerate().filter(|(_, count)| **count == 0) {
        places[next[row] * rank] = row as i64;
        values.copy(next[row], &default, 0, 1)?;
    }
    let mut map = wide::reserved(sparse.count())?;
    for number in 0..sparse.count() {
        let place = sparse.place(number);
        let to = next[place[0] as usize];
        next[place[0] as usize] += 1;
        places[to * rank..(to + 1) * rank].copy_from_slice(place);
        values.copy(to, &sparse.values, number, 1)?;
        map.push(to as i64);
    }
    let empty: Vec<Bool> = counts.iter().map(|&count| Bool::from(count == 0)).collect();
    let places = match as_vector {
        true => Tensor::vector(&places)?,
        false => matrix(&places, total, rank)?,
    };
    context.set_output(0, places)?;
    context.set_output(1, values.finish()?)?;
    context.set_output(2, Tensor::vector(&empty)?)?;
    context.set_output(3, Tensor::vector(&map)?)
}

/// The incoming value where each value went; the sum of the others is for the one that filled up.
fn spread(context: &mut KernelContext) -> Result<()> {
    let map = context.input_i64s(0)?;
    let count = context.input(1)?.num_elements();
    if let Some(bad) = map.iter().find(|&&at| !(0..count as i64).contains(&at)) {
        ff_tensor::bail!(
            InvalidArgument,
            "Elements in reverse index must be in [0, {count}) but got {bad}"
        );
    }
    let (own, rest) = crate::match_number!(context.output_type(0), T => {
        let incoming = context.input_slice::<T>(1)?;
        let mut used: Vec<bool> = wide::zeros(count)?;
        map.iter().for_each(|&at| used[at as usize] = true);
        let own: Vec<T> = map.iter().map(|&at| incoming[at as usize]).collect();
        let others = incoming.iter().zip(&used).filter(|(_, used)| !**used);
        let rest = others.fold(T::default(), |sum, (&value, _)| Number::add(sum, value));
        Ok((Tensor::vector(&own)?, Tensor::scalar(rest)?))
    })?;
    context.set_output(0, own)?;
    context.set_output(1, rest)
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, map) = (context.incoming_or_zeros(1)?, context.output(3));
    let attrs = Attrs::new().with("T", context.dtype(incoming));
    let op = format!("{}Grad", context.node().op_name());
    let node = context.node_of(&op, &[map, incoming], attrs)?;
    context.set(1, OutputRef { node, index: 0 });
    context.set(3, OutputRef { node, index: 1 });
    Ok(())
}

#[cfg(test)]
fn case(places: Tensor, values: Tensor, dims: [i64; 2], default: Tensor) -> crate::testing::Case {
    crate::testing::Case::op("SparseFillEmptyRows").inputs([
        places,
        values,
        crate::testing::vector(&dims),
        default,
    ])
}

crate::op_cases! {
    filled: family(&["SparseFillEmptyRows"], &[FRACTIONS, INTEGERS].concat(), |_, dtype| {
        case(t(&[3, 2], &[3i64, 0, 1, 2, 1, 0]), numbers(dtype, &[3], &[1.0, 2.0, 3.0]), [4, 3], numbers(dtype, &[], &[9.0]))
    });
    filled_with_text: case(t(&[1, 2], &[1i64, 0]), strings(&[1], &["a"]), [3, 1], strings(&[], &["-"]));
    filled_all: case(t::<i64>(&[0, 2], &[]), vector::<f32>(&[]), [2, 3], scalar(9.0f32));
    filled_nothing: case(t::<i64>(&[0, 2], &[]), vector::<f32>(&[]), [0, 3], scalar(9.0f32));
    row_outside: case(t(&[1, 2], &[4i64, 0]), vector(&[1.0f32]), [4, 3], scalar(9.0f32)).fails(Code::InvalidArgument);
    no_rows: case(t(&[1, 2], &[4i64, 0]), vector(&[1.0f32]), [0, 3], scalar(9.0f32)).fails(Code::InvalidArgument);
    ragged: family(&["RaggedFillEmptyRows"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| Case::op(op)
        .inputs([vector(&[0i64, 3, 1]), numbers(dtype, &[3], &[1.0, 2.0, 3.0]), scalar(5i64), numbers(dtype, &[], &[9.0])]));
    ragged_text: Case::op("RaggedFillEmptyRows").inputs([vector(&[1i64]), strings(&[1], &["a"]), scalar(2i64), strings(&[], &["-"])]);
    ragged_all: Case::op("RaggedFillEmptyRows").inputs([vector::<i64>(&[]), vector::<f32>(&[]), scalar(2i64), scalar(9.0f32)]);
    ragged_outside: Case::op("RaggedFillEmptyRows").inputs([vector(&[5i64]), vector(&[1.0f32]), scalar(5i64), scalar(9.0f32)])
        .fails(Code::InvalidArgument);
    ragged_no_rows: Case::op("RaggedFillEmptyRows").inputs([vector(&[0i64]), vector(&[1.0f32]), scalar(0i64), scalar(9.0f32)])
        .fails(Code::InvalidArgument);
    ragged_negative: Case::op("RaggedFillEmptyRows").inputs([vector(&[0i64]), vector(&[1.0f32]), scalar(-3i64), scalar(9.0f32)])
        .fails(Code::InvalidArgument);
    ragged_misfit: Case::op("RaggedFillEmptyRows").inputs([vector(&[0i64]), vector(&[1.0f32, 2.0]), scalar(3i64), scalar(9.0f32)])
        .fails(Code::InvalidArgument);
    ragged_back: Case::op("RaggedFillEmptyRowsGrad").inputs([vector(&[3i64, 1]), vector(&[1.0f32, 2.0, 3.0, 4.0])])
        .gives(vector(&[4.0f32, 2.0])).gives(scalar(4.0f32));
    back: family(&["SparseFillEmptyRowsGrad"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([vector(&[3i64, 1]), numbers(dtype, &[4], &[1.0, 2.0, 3.0, 4.0])])
    });
    back_outside: Case::op("SparseFillEmptyRowsGrad").inputs([vector(&[4i64, 1]), vector(&[1.0f32, 2.0])]).fails(Code::InvalidArgument);
}
