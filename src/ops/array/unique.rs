//! Ops whose output shape depends on values: where a condition holds, and which values are there.

use super::shape::of_type;
use crate::movement::{Writer, row_major};
use crate::wide;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};
use rustc_hash::FxHashMap;

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Where",
        shape: |context| {
            let rank = context.input(0).rank().map_or(dim::UNKNOWN, |rank| rank as i64);
            context.set_output(0, PartialShape::new(&[dim::UNKNOWN, rank]));
            Ok(())
        },
        kernels: &[Kernel::native(positions)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "Unique",
        ..UNIQUE
    },
    &Op {
        name: "UniqueV2",
        ..UNIQUE
    },
    &Op {
        name: "UniqueWithCounts",
        ..UNIQUE
    },
    &Op {
        name: "UniqueWithCountsV2",
        ..UNIQUE
    },
    &Op {
        name: "ListDiff",
        shape: |context| {
            context.input_with_rank(0, 1)?;
            context.input_with_rank(1, 1)?;
            context.set_output(0, PartialShape::of_rank(1));
            context.set_output(1, PartialShape::of_rank(1));
            Ok(())
        },
        kernels: &[Kernel::native(difference)],
        lower: Some(crate::lowering::by_value),
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

const UNIQUE: Op = Op {
    shape: unique_shape,
    kernels: &[Kernel::native(unique)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// Row-major positions of the elements that are not zero.
fn positions(context: &mut KernelContext) -> Result<()> {
    let input = context.take_input(0)?;
    let size = input.dtype().size();
    ensure!(
        size > 0,
        InvalidArgument,
        "Where does not take elements of type {}",
        input.dtype()
    );
    ensure!(
        input.rank() > 0,
        InvalidArgument,
        "WhereOp : Unhandled input dimensions: 0"
    );
    let floating = input.dtype().is_floating() || input.dtype().is_complex();
    // A floating zero may have its sign bit set, in each part of a complex number.
    let part = if input.dtype().is_complex() {
        size / 2
    } else {
        size
    };
    let is_zero = |bytes: &[u8]| {
        bytes.chunks(part).all(|part| {
            let (last, first) = (part[part.len() - 1], &part[..part.len() - 1]);
            first.iter().all(|&byte| byte == 0) && (last == 0 || (floating && last == 0x80))
        })
    };
    let strides = row_major(input.dims());
    let mut found = Vec::new();
    for (index, bytes) in input.bytes().chunks(size).enumerate() {
        if !is_zero(bytes) {
            wide::reserve(&mut found, strides.len())?;
            let mut rest = index as i64;
            for &stride in &strides {
                found.push(rest / stride);
                rest %= stride;
            }
        }
    }
    let rank = input.rank();
    let rows = (found.len() / rank) as i64;
    context.set_output(0, Tensor::from_slice(Shape::new(&[rows, rank as i64])?, &found)?)
}

/// The bytes that tell the element, or the slice, at a position of a tensor seen as rows.
fn keys(input: &Tensor, rows: usize) -> Result<Vec<Vec<u8>>> {
    if input.dtype() == DataType::STRING {
        let width = input.num_elements() / rows.max(1);
        let strings = input.strings()?;
        let key = |row: usize| {
            let mut key = Vec::new();
            for string in &strings[row * width..(row + 1) * width] {
                key.extend((string.len() as u64).to_le_bytes());
                key.extend(string.as_bytes());
            }
            key
        };
        return wide::collected((0..rows).map(key));
    }
    ensure!(
        input.dtype().is_plain(),
        InvalidArgument,
        "cannot compare elements of type {}",
        input.dtype()
    );
    let width = input.bytes().len() / rows.max(1);
    wide::collected((0..rows).map(|row| input.bytes()[row * width..(row + 1) * width].to_vec()))
}

fn unique_shape(context: &mut ShapeContext) -> Result<()> {
    let v2 = context.num_inputs() > 1;
    let input = context.input(0);
    if !v2 {
        let input = context.input_with_rank(0, 1)?;
        context.set_output(0, PartialShape::of_rank(1));
        context.set_output(1, input);
    } else {
        if let Some(rank) = input.rank() {
            context.set_output(0, PartialShape::of_rank(rank));
        }
        context.set_output(1, PartialShape::of_rank(1));
    }
    if context.num_outputs() > 2 {
        context.set_output(2, PartialShape::of_rank(1));
    }
    Ok(())
}

/// The axis along which slices are compared: 0 unless the second input names one.
fn unique_axis(context: &KernelContext, rank: usize) -> Result<usize> {
    if context.num_inputs() == 1 {
        ensure!(rank == 1, InvalidArgument, "unique expects a 1D vector.");
        return Ok(0);
    }
    ensure!(
        context.input(1)?.rank() == 1,
        InvalidArgument,
        "axis expects a 1D vector."
    );
    match context.input_i64s(1)?[..] {
        [] => {
            ensure!(rank == 1, InvalidArgument, "unique expects a 1D vector.");
            Ok(0)
        }
        [axis] => {
            let place = if axis < 0 { axis + rank as i64 } else { axis };
            ensure!(
                (0..rank as i64).contains(&place),
                InvalidArgument,
                "axis has to be between [0, {rank})"
            );
            Ok(place as usize)
        }
        _ => ff_tensor::bail!(
            InvalidArgument,
            "axis does not support input tensors larger than 1 elements"
        ),
    }
}

fn unique(context: &mut KernelContext) -> Result<()> {
    let input = context.input(0)?.clone();
    let axis = unique_axis(context, input.rank())?;
    let mut order: Vec<usize> = (0..input.rank()).collect();
    order.remove(axis);
    order.insert(0, axis);
    let turned = if axis == 0 {
        input
    } else {
        crate::movement::transpose(&input, &order)?
    };
    let rows = turned.dims()[0] as usize;
    let (mut firsts, mut indices, mut counts) = (Vec::new(), wide::reserved(rows)?, Vec::new());
    let mut seen: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
    for (row, key) in keys(&turned, rows)?.into_iter().enumerate() {
        let number = *seen.entry(key).or_insert_with(|| {
            firsts.push(row);
            counts.push(0i64);
            firsts.len() - 1
        });
        indices.push(number as i64);
        counts[number] += 1;
    }
    let mut dims = turned.dims().to_vec();
    dims[0] = firsts.len() as i64;
    let width = turned.num_elements() / rows.max(1);
    let mut writer = Writer::new(turned.dtype(), Shape::new(&dims)?)?;
    for (number, &row) in firsts.iter().enumerate() {
        writer.copy(number * width, &turned, row * width, width)?;
    }
    let values = writer.finish()?;
    let mut back: Vec<usize> = crate::wide::collected(1..order.len())?;
    back.insert(axis, 0);
    let values = if axis == 0 {
        values
    } else {
        crate::movement::transpose(&values, &back)?
    };
    context.set_output(0, values)?;
    let dtype = context.output_type(1);
    context.set_output(1, of_type(dtype, Shape::vector(rows), &indices)?)?;
    if context.num_outputs() > 2 {
        context.set_output(2, of_type(dtype, Shape::vector(counts.len()), &counts)?)?;
    }
    Ok(())
}

/// The elements of the first vector that are not in the second, and where they are.
fn difference(context: &mut KernelContext) -> Result<()> {
    let (a, b) = (context.input(0)?.clone(), context.input(1)?);
    let known: rustc_hash::FxHashSet<Vec<u8>> = keys(b, b.num_elements())?.into_iter().collect();
    let all = keys(&a, a.num_elements())?;
    let kept: Vec<i64> = (0..all.len())
        .filter(|&i| !known.contains(&all[i]))
        .map(|i| i as i64)
        .collect();
    let mut writer = Writer::new(a.dtype(), Shape::vector(kept.len()))?;
    for (to, &from) in kept.iter().enumerate() {
        writer.copy(to, &a, from as usize, 1)?;
    }
    context.set_output(0, writer.finish()?)?;
    context.set_output(
        1,
        of_type(context.output_type(1), Shape::vector(kept.len()), &kept)?,
    )
}

crate::op_cases! {
    unique_of_a_matrix_of_axes: Case::op("UniqueV2").inputs([vector::<i32>(&[]), t::<i64>(&[0, 0], &[])]).fails(Code::InvalidArgument);
    where_true: Case::op("Where").input(bools(&[2, 2], &[false, true, true, false])).gives(t(&[2, 2], &[0i64, 1, 1, 0]));
    where_not_zero: Case::op("Where").input(vector(&[0.0f32, -0.0, 2.0, f32::NAN])).gives(t(&[2, 1], &[2i64, 3]));
    where_nowhere: Case::op("Where").input(t::<i32>(&[0, 2], &[])).gives(t::<i64>(&[0, 2], &[]));
    where_scalar: Case::op("Where").input(bools(&[], &[true])).fails(Code::InvalidArgument);
    unique_numbers: Case::op("Unique").input(vector(&[4, 1, 4, 4, 2])).gives(vector(&[4, 1, 2])).gives(vector(&[0, 1, 0, 0, 2]));
    unique_strings: Case::op("Unique").input(strings(&[3], &["b", "a", "b"])).attr("out_idx", DataType::INT64);
    unique_matrix: Case::op("Unique").input(t(&[1, 1], &[1])).fails(Code::InvalidArgument);
    unique_rows: Case::op("UniqueV2").inputs([t(&[3, 2], &[1, 2, 3, 4, 1, 2]), vector(&[0])]);
    unique_columns: Case::op("UniqueV2").inputs([t(&[2, 3], &[1, 2, 1, 3, 4, 3]), vector(&[1i64])]);
    unique_of_axis_outside: Case::op("UniqueV2").inputs([t(&[2, 3], &[1, 2, 1, 3, 4, 3]), vector(&[2i64])])
        .fails(Code::InvalidArgument);
    counted: Case::op("UniqueWithCounts").input(vector(&[4i64, 1, 4]))
        .gives(vector(&[4i64, 1])).gives(vector(&[0, 1, 0])).gives(vector(&[2, 1]));
    counted_v2: Case::op("UniqueWithCountsV2").inputs([vector(&[4i64, 1, 4]), vector::<i64>(&[])]);
    more_rows_than_memory: Case::op("UniqueV2").inputs([t::<f32>(&[1 << 50, 0], &[]), vector(&[0])]).fails(Code::ResourceExhausted);
    rest: Case::op("ListDiff").inputs([vector(&[1, 2, 3, 2]), vector(&[2])]).gives(vector(&[1, 3])).gives(vector(&[0, 2]));
    rest_of_matrix: Case::op("ListDiff").inputs([t(&[1, 1], &[1]), vector(&[2])]).fails(Code::InvalidArgument);
}
