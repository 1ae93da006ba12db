//! Sets: the last axis of a dense or sparse tensor is one, the axes before it say which.
//!
//! Results are sparse tensors, sorted within each set. A result's last extent is the size of the largest set.

use super::parts::{Sparse, matrix, set_parts};
use crate::movement::Writer;
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, bail, dim, ensure};
use std::collections::{BTreeMap, BTreeSet};

const SETS: Op = Op {
    kernels: &[Kernel::native(combine)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SetSize",
        kernels: &[Kernel::native(sizes)],
        ..SETS
    },
    &Op {
        name: "DenseToDenseSetOperation",
        shape: dense_to_dense,
        ..SETS
    },
    &Op {
        name: "DenseToSparseSetOperation",
        shape: |context| {
            check_sparse(context, 1)?;
            let rank = context.input_with_rank_at_least(0, 2)?.rank();
            let other = context.input(3).dim(0);
            let rank = dim::merge(rank.map_or(dim::UNKNOWN, |rank| rank as i64), other)?;
            set_parts(context, 0, rank);
            Ok(())
        },
        ..SETS
    },
    &Op {
        name: "SparseToSparseSetOperation",
        shape: |context| {
            check_sparse(context, 0)?;
            check_sparse(context, 3)?;
            let rank = dim::merge(context.input(2).dim(0), context.input(5).dim(0))?;
            set_parts(context, 0, rank);
            Ok(())
        },
        ..SETS
    },
];

fn check_sparse(context: &ShapeContext, first: usize) -> Result<()> {
    super::parts::check_parts(context, first).map(|_| ())
}

fn dense_to_dense(context: &mut ShapeContext) -> Result<()> {
    let a = context.input_with_rank_at_least(0, 2)?;
    let b = context.input_with_rank_at_least(1, 2)?;
    let known = |shape: &PartialShape| shape.rank().map_or(dim::UNKNOWN, |rank| rank as i64);
    let rank = dim::merge(known(&a), known(&b))?;
    if a.rank().is_some() && b.rank().is_some() {
        a.slice(0, Some(-1)).merge(&b.slice(0, Some(-1)))?;
    }
    set_parts(context, 0, rank);
    Ok(())
}

/// An element of a set.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i64),
    Text(Vec<u8>),
}

fn keys(values: &Tensor) -> Result<Vec<Key>> {
    if values.dtype() == DataType::STRING {
        let text = |text: &ff_tensor::TString| Key::Text(text.as_bytes().to_vec());
        return crate::wide::collected(values.strings()?.iter().map(text));
    }
    if matches!(values.dtype(), DataType::INT32 | DataType::INT64) {
        return crate::wide::collected(values.to_i64_vec()?.into_iter().map(Key::Number));
    }
    let numbers = crate::wide::f64s(values)?;
    crate::wide::collected(numbers.iter().map(|&value| Key::Number(value as i64)))
}

/// The elements of each set that has any, with the number of the value that brought it.
type Sets = BTreeMap<Vec<i64>, BTreeMap<Key, usize>>;

/// The leading extents. INVALID_ARGUMENT below rank 2.
fn leading(dims: &[i64]) -> Result<&[i64]> {
    ensure!(
        dims.len() >= 2,
        InvalidArgument,
        "Shape {dims:?} has rank {} < 2",
        dims.len()
    );
    Ok(&dims[..dims.len() - 1])
}

fn sets_of_dense(tensor: &Tensor) -> Result<Sets> {
    let dims = leading(tensor.dims())?;
    let width = tensor.dims()[dims.len()] as usize;
    let mut sets = Sets::new();
    for (number, key) in keys(tensor)?.into_iter().enumerate() {
        let mut rest = (number / width) as i64;
        let mut place = vec![0; dims.len()];
        for axis in (0..dims.len()).rev() {
            place[axis] = rest % dims[axis];
            rest /= dims[axis];
        }
        sets.entry(place).or_default().entry(key).or_insert(number);
    }
    Ok(sets)
}

/// Fails for places outside, and, where it is asked for, for places out of order.
pub fn check_places(sparse: &Sparse, in_order: bool) -> Result<()> {
    for number in 0..sparse.count() {
        ensure!(
            sparse.is_inside(number),
            InvalidArgument,
            "Index {:?} at row {number} is out of bounds of {:?}",
            sparse.place(number),
            sparse.dims
        );
        if in_order && number > 0 {
            let (before, here) = (sparse.place(number - 1), sparse.place(number));
            ensure!(
                before < here,
                InvalidArgument,
                "indices[{number}] = {here:?} is out of order or repeated"
            );
        }
    }
    Ok(())
}

fn sets_of_sparse(context: &KernelContext, first: usize) -> Result<(Sets, Sparse)> {
    let sparse = Sparse::read(context, first)?;
    leading(&sparse.dims)?;
    Shape::new(&sparse.dims)?;
    check_places(&sparse, context.attrs().bool("validate_indices")?)?;
    let mut sets = Sets::new();
    for (number, key) in keys(&sparse.values)?.into_iter().enumerate() {
        let place = leading(sparse.place(number))?.to_vec();
        sets.entry(place).or_default().entry(key).or_insert(number);
    }
    Ok((sets, sparse))
}

fn sizes(context: &mut KernelContext) -> Result<()> {
    let (sets, sparse) = sets_of_sparse(context, 0)?;
    let dims = leading(&sparse.dims)?;
    let mut output = Tensor::zeros(DataType::INT32, Shape::new(dims)?)?;
    let values = output.as_mut_slice::<i32>()?;
    for (place, set) in &sets {
        let at = place
            .iter()
            .zip(dims)
            .fold(0, |at, (index, extent)| at * extent + index);
        values[at as usize] = set.len() as i32;
    }
    context.set_output(0, output)
}

/// Which elements stay, of those that are only in the first, only in the second, or in both.
fn kept(operation: &[u8]) -> Result<[bool; 3]> {
    Ok(match operation.to_ascii_lowercase().as_slice() {
        b"a-b" => [true, false, false],
        b"b-a" => [false, true, false],
        b"intersection" => [false, false, true],
        b"union" => [true, true, true],
        _ => bail!(
            InvalidArgument,
            "Invalid set_operation {}.",
            String::from_utf8_lossy(operation)
        ),
    })
}

fn combine(context: &mut KernelContext) -> Result<()> {
    let [first, second, both] = kept(context.attrs().bytes("set_operation")?)?;
    let (dense, second_at) = match context.num_inputs() {
        2 => (true, 1),
        4 => (true, 1),
        _ => (false, 3),
    };
    let (a, a_values, a_dims) = operand(context, 0, dense)?;
    let (b, b_values, b_dims) = operand(context, second_at, context.num_inputs() == 2)?;
    ensure!(
        leading(&a_dims)? == leading(&b_dims)?,
        InvalidArgument,
        "Mismatched group shapes {a_dims:?} and {b_dims:?}"
    );
    let mut result: Vec<(Vec<i64>, bool, usize)> = Vec::new();
    let mut largest = 0;
    let places: BTreeSet<&Vec<i64>> = a.keys().chain(b.keys()).collect();
    let empty = BTreeMap::new();
    for place in places {
        let (x, y) = (a.get(place).unwrap_or(&empty), b.get(place).unwrap_or(&empty));
        let elements: BTreeSet<&Key> = x.keys().chain(y.keys()).collect();
        let mut size = 0;
        for key in elements {
            let (in_a, in_b) = (x.get(key), y.get(key));
            let stays = match (in_a, in_b) {
                (Some(_), Some(_)) => both,
                (Some(_), None) => first,
                _ => second,
            };
            if let (true, Some(&number)) = (stays, in_a.or(in_b)) {
                let mut at = place.clone();
                at.push(size);
                result.push((at, in_a.is_some(), number));
                size += 1;
            }
        }
        largest = largest.max(size);
    }
    let mut dims = leading(&a_dims)?.to_vec();
    dims.push(largest);
    let mut values = Writer::new(context.output_type(1), Shape::vector(result.len()))?;
    for (to, (_, from_first, number)) in result.iter().enumerate() {
        values.copy(to, if *from_first { &a_values } else { &b_values }, *number, 1)?;
    }
    let places: Vec<i64> = result
        .iter()
        .flat_map(|(place, ..)| place.iter().copied())
        .collect();
    context.set_output(0, matrix(&places, result.len(), dims.len())?)?;
    context.set_output(1, values.finish()?)?;
    context.set_output(2, Tensor::vector(&dims)?)
}

/// The sets from an input on, its values, and its extents.
fn operand(context: &KernelContext, first: usize, dense: bool) -> Result<(Sets, Tensor, Vec<i64>)> {
    if dense {
        let tensor = context.input(first)?;
        return Ok((sets_of_dense(tensor)?, tensor.clone(), tensor.dims().to_vec()));
    }
    let (sets, sparse) = sets_of_sparse(context, first)?;
    let dims = sparse.dims.clone();
    ensure!(!dims.is_empty(), InvalidArgument, "no extents");
    Ok((sets, sparse.values, dims))
}

#[cfg(test)]
fn sparse(case: crate::testing::Case, dtype: DataType) -> crate::testing::Case {
    use crate::testing::{numbers, t, vector};
    case.inputs([
        t(&[4, 2], &[0i64, 0, 0, 2, 1, 0, 1, 1]),
        numbers(dtype, &[4], &[5.0, 2.0, 3.0, 3.0]),
        vector(&[3i64, 3]),
    ])
}

#[cfg(test)]
const OPERATIONS: &[&str] = &["a-b", "b-a", "intersection", "union"];

#[cfg(test)]
const TYPES: &[DataType] = &[
    DataType::INT8,
    DataType::INT16,
    DataType::INT32,
    DataType::INT64,
    DataType::UINT8,
    DataType::UINT16,
];

crate::op_cases! {
    sizes: family(&["SetSize"], TYPES, |op, dtype| sparse(Case::op(op), dtype));
    sizes_of_text: Case::op("SetSize")
        .inputs([t(&[2, 2], &[0i64, 0, 0, 1]), strings(&[2], &["a", "a"]), vector(&[2i64, 2])])
        .gives(vector(&[1, 0]));
    sizes_of_nothing: Case::op("SetSize").inputs([t::<i64>(&[0, 3], &[]), vector::<i32>(&[]), vector(&[2i64, 2, 0])]);
    size_misfit: Case::op("SetSize").inputs([t(&[1, 2], &[0i64, 0]), vector(&[1, 2]), vector(&[2i64, 2])]).fails(Code::InvalidArgument);
    sizes_out_of_order: Case::op("SetSize").inputs([t(&[2, 2], &[1i64, 0, 0, 0]), vector(&[1, 2]), vector(&[2i64, 2])])
        .fails(Code::InvalidArgument);
    sizes_outside: Case::op("SetSize").inputs([t(&[1, 2], &[2i64, 0]), vector(&[1]), vector(&[2i64, 2])]).fails(Code::InvalidArgument);
    sizes_of_vector: Case::op("SetSize").inputs([t(&[1, 1], &[0i64]), vector(&[1]), vector(&[2i64])]).fails(Code::InvalidArgument);
    dense: family(OPERATIONS, TYPES, |operation, dtype| {
        Case::op("DenseToDenseSetOperation").attr("set_operation", operation)
            .inputs([numbers(dtype, &[2, 3], &[1.0, 9.0, 1.0, 4.0, 5.0, 6.0]), numbers(dtype, &[2, 2], &[9.0, 3.0, 7.0, 7.0])])
    });
    dense_text: Case::op("DenseToDenseSetOperation").attr("set_operation", "union")
        .inputs([strings(&[1, 2], &["b", "a"]), strings(&[1, 2], &["c", "a"])])
        .gives(t(&[3, 2], &[0i64, 0, 0, 1, 0, 2])).gives(strings(&[3], &["a", "b", "c"])).gives(vector(&[1i64, 3]));
    dense_nothing: Case::op("DenseToDenseSetOperation").attr("set_operation", "union").inputs([t::<i32>(&[0, 2], &[]), t::<i32>(&[0, 3], &[])]);
    dense_misfit: Case::op("DenseToDenseSetOperation").attr("set_operation", "union").inputs([t(&[1, 1], &[1]), t(&[2, 1], &[1, 2])])
        .fails(Code::InvalidArgument);
    dense_vector: Case::op("DenseToDenseSetOperation").attr("set_operation", "union").inputs([vector(&[1]), vector(&[1, 2])])
        .fails(Code::InvalidArgument);
    unknown: Case::op("DenseToDenseSetOperation").attr("set_operation", "xor").inputs([t(&[1, 1], &[1]), t(&[1, 1], &[1])])
        .fails(Code::InvalidArgument);
    mixed: family(OPERATIONS, TYPES, |operation, dtype| {
        sparse(Case::op("DenseToSparseSetOperation").attr("set_operation", operation)
            .input(numbers(dtype, &[3, 2], &[5.0, 1.0, 2.0, 2.0, 7.0, 8.0])), dtype)
    });
    mixed_misfit: sparse(Case::op("DenseToSparseSetOperation").attr("set_operation", "union").input(t(&[2, 1], &[1, 2])), DataType::INT32)
        .fails(Code::InvalidArgument);
    both_sparse: family(OPERATIONS, TYPES, |operation, dtype| {
        sparse(Case::op("SparseToSparseSetOperation").attr("set_operation", operation), dtype)
            .inputs([t(&[2, 2], &[0i64, 1, 2, 0]), numbers(dtype, &[2], &[2.0, 8.0]), vector(&[3i64, 9])])
    });
    both_sparse_misfit: sparse(sparse(Case::op("SparseToSparseSetOperation").attr("set_operation", "union"), DataType::INT32), DataType::INT32)
        .attr("validate_indices", false);
}
