//! Crosses of columns: every combination of one feature from each column, row by row, as text or as a hash.
//!
//! Columns are sparse, ragged or dense; features are text or integers. The hashes are part of saved models.

use super::parts::{matrix, set_parts};
use crate::string::hash_functions::{fingerprint64, siphash};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, TString, Tensor, bail, dim, ensure};

const CROSS: Op = Op {
    shape: |context| {
        set_parts(context, 0, 2);
        Ok(())
    },
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SparseCross",
        kernels: &[Kernel::native(|context| {
            let attrs = context.attrs();
            let maker = match attrs.dtype("out_type")? {
                DataType::STRING => Maker::Text(b"_X_".to_vec()),
                _ => Maker::Hash {
                    start: Some(attrs.int("hash_key")? as u64),
                    buckets: attrs.int("num_buckets")?,
                    key: None,
                },
            };
            let is_number = |dtypes: &[DataType]| dtypes.contains(&DataType::INT64);
            let types = ["sparse_types", "dense_types"].map(|name| attrs.types(name).map(is_number));
            ensure!(
                attrs.dtype("internal_type")? != DataType::STRING
                    || types.into_iter().all(|found| found == Ok(false)),
                InvalidArgument,
                "Inputs should be of internal type string but an integer was received"
            );
            let inputs = 3 * attrs.int("N")? as usize + attrs.types("dense_types")?.len();
            cross_sparse(context, inputs, &maker)
        })],
        ..CROSS
    },
    &Op {
        name: "SparseCrossV2",
        kernels: &[Kernel::native(|context| {
            let last = context.num_inputs() - 1;
            let separator = scalar_input(context, last)?.strings()?[0].as_bytes().to_vec();
            cross_sparse(context, last, &Maker::Text(separator))
        })],
        ..CROSS
    },
    &Op {
        name: "SparseCrossHashed",
        kernels: &[Kernel::native(|context| {
            let last = context.num_inputs() - 1;
            let salt = context.input_i64s(last)?;
            ensure!(
                salt.len() == 2,
                InvalidArgument,
                "Input \"salt\" must have length 2 but has length {}",
                salt.len()
            );
            let strong = scalar_input(context, last - 1)?.to_bool()?;
            let buckets = scalar_input(context, last - 2)?.to_i64_vec()?[0];
            let key = strong.then_some([salt[0] as u64, salt[1] as u64]);
            cross_sparse(
                context,
                last - 2,
                &Maker::Hash {
                    start: None,
                    buckets,
                    key,
                },
            )
        })],
        ..CROSS
    },
    &Op {
        name: "RaggedCross",
        shape: ragged_shape,
        kernels: &[Kernel::native(cross_ragged)],
        ..CROSS
    },
];

fn ragged_shape(context: &mut ShapeContext) -> Result<()> {
    let attrs = context.attrs();
    let ragged = attrs.types("ragged_values_types")?.len();
    let sparse = attrs.int("Nsparse")? as usize;
    let dense = attrs.types("dense_types")?.len();
    let mut rows = dim::UNKNOWN;
    let mut at = 0;
    for number in 0..2 * ragged {
        let input = context.input_with_rank(at, 1)?;
        let extent = input.dim(0);
        if number >= ragged && extent > 0 {
            rows = dim::merge(rows, extent - 1)?;
        }
        at += 1;
    }
    for kind in 0..3 {
        for _ in 0..sparse {
            context.input_with_rank(at, if kind == 0 { 2 } else { 1 })?;
            at += 1;
        }
    }
    for _ in 0..dense {
        rows = dim::merge(rows, context.input_with_rank(at, 2)?.dim(0))?;
        at += 1;
    }
    context.set_output(0, PartialShape::of_rank(1));
    let edges = if rows >= 0 { rows + 1 } else { dim::UNKNOWN };
    context.set_output(1, PartialShape::new(&[edges]));
    Ok(())
}

fn scalar_input<'a>(context: &'a KernelContext, index: usize) -> Result<&'a Tensor> {
    let tensor = context.input(index)?;
    ensure!(
        tensor.rank() == 0,
        InvalidArgument,
        "Input {index} must be a scalar, not {}",
        tensor.shape()
    );
    Ok(tensor)
}

/// A column: its features, and which of them are a row's.
struct Column {
    features: Tensor,
    rows: Vec<std::ops::Range<usize>>,
}

/// How the features of a combination become one value.
enum Maker {
    Text(Vec<u8>),
    Hash {
        start: Option<u64>,
        buckets: i64,
        key: Option<[u64; 2]>,
    },
}

/// Two fingerprints as one.
fn fingerprint_of_two(a: u64, b: u64) -> u64 {
    const MUL: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |x: u64| x ^ (x >> 47);
    let mut result = a ^ MUL;
    result ^= mix(b.wrapping_mul(MUL)).wrapping_mul(MUL);
    result = result.wrapping_mul(MUL);
    result = mix(result).wrapping_mul(MUL);
    mix(result)
}

enum Made {
    Texts(Vec<TString>),
    Hashes(Vec<i64>),
}

impl Made {
    fn len(&self) -> usize {
        match self {
            Made::Texts(values) => values.len(),
            Made::Hashes(values) => values.len(),
        }
    }

    fn finish(self) -> Result<Tensor> {
        match self {
            Made::Texts(values) => Tensor::from_strings(Shape::vector(values.len()), values),
            Made::Hashes(values) => Tensor::vector(&values),
        }
    }
}

impl Maker {
    fn start(&self) -> Made {
        match self {
            Maker::Text(_) => Made::Texts(Vec::new()),
            Maker::Hash { .. } => Made::Hashes(Vec::new()),
        }
    }

    /// Adds a combination: one feature of each column, by number.
    fn push(&self, made: &mut Made, columns: &[Column], chosen: &[usize]) -> Result<()> {
        let features = || {
            columns
                .iter()
                .map(|column| &column.features)
                .zip(chosen.iter().copied())
        };
        match (self, made) {
            (Maker::Text(separator), Made::Texts(values)) => {
                let parts: Result<Vec<Vec<u8>>> =
                    features().map(|(features, at)| text(features, at)).collect();
                values.push(TString::from(parts?.join(&separator[..]).as_slice()));
            }
            (Maker::Hash { start, buckets, key }, Made::Hashes(values)) => {
                let mut hash = *start;
                for (features, at) in features() {
                    let next = fingerprint(features, at, *key)?;
                    hash = Some(hash.map_or(next, |hash| fingerprint_of_two(hash, next)));
                }
                let modulus = if *buckets > 0 {
                    *buckets as u64
                } else {
                    i64::MAX as u64
                };
                values.push((hash.unwrap_or(0) % modulus) as i64);
            }
            _ => bail!(Internal, "values of two kinds"),
        }
        Ok(())
    }
}

fn text(features: &Tensor, at: usize) -> Result<Vec<u8>> {
    if features.dtype() == DataType::STRING {
        return Ok(features.strings()?[at].as_bytes().to_vec());
    }
    Ok(features.as_slice::<i64>()?[at].to_string().into_bytes())
}

fn fingerprint(features: &Tensor, at: usize, key: Option<[u64; 2]>) -> Result<u64> {
    if features.dtype() != DataType::STRING {
        return Ok(features.as_slice::<i64>()?[at] as u64);
    }
    let bytes = features.strings()?[at].as_bytes();
    Ok(key.map_or_else(|| fingerprint64(bytes), |key| siphash(key, bytes)))
}

/// A sparse column; its number of rows is the first extent. Rows out of order are not found.
fn sparse_column(
    context: &KernelContext,
    places: usize,
    values: usize,
    dims: usize,
) -> Result<(Column, i64)> {
    let (places, values) = (context.input(places)?, context.input(values)?);
    ensure!(
        places.rank() == 2 && places.dims()[1] == 2,
        InvalidArgument,
        "Input indices should be a matrix of two columns but received shape {}",
        places.shape()
    );
    ensure!(
        values.rank() == 1 && values.dims()[0] == places.dims()[0],
        InvalidArgument,
        "Expected size of values to be {} got {}",
        places.dims()[0],
        values.shape()
    );
    let dims = context.input(dims)?;
    ensure!(
        dims.rank() == 1 && dims.num_elements() == 2,
        InvalidArgument,
        "Input shape should be a vector of two elements but received shape {}",
        dims.shape()
    );
    let rows = dims.to_i64_vec()?[0];
    let count = Shape::new(&[rows])?.num_elements();
    let firsts: Vec<i64> = places.as_slice::<i64>()?.iter().step_by(2).copied().collect();
    let mut at = 0;
    let mut ranges = crate::wide::filled(count, 0..0)?;
    for (row, range) in ranges.iter_mut().enumerate() {
        let start = at;
        while firsts.get(at) == Some(&(row as i64)) {
            at += 1;
        }
        *range = start..at;
    }
    let column = Column {
        features: values.clone(),
        rows: ranges,
    };
    Ok((column, rows))
}

fn dense_column(context: &KernelContext, index: usize, number: usize) -> Result<(Column, i64)> {
    let values = context.input(index)?;
    ensure!(
        values.rank() == 2,
        InvalidArgument,
        "Dense inputs should be a matrix but received shape {} at position {number}",
        values.shape()
    );
    let (rows, width) = (values.dims()[0], values.dims()[1] as usize);
    let ranges = (0..rows as usize)
        .map(|row| row * width..(row + 1) * width)
        .collect();
    let column = Column {
        features: values.clone(),
        rows: ranges,
    };
    Ok((column, rows))
}

/// All columns have as many rows as the first; that number.
fn rows_of(columns: &[(Column, i64)]) -> Result<usize> {
    let rows = columns.first().map_or(0, |(_, rows)| *rows);
    for (number, (_, found)) in columns.iter().enumerate() {
        ensure!(
            *found == rows,
            InvalidArgument,
            "Expected batch size {rows} got {found} at column {number}"
        );
    }
    Ok(rows as usize)
}

/// The combinations of a row; the last column's feature changes first.
fn combine(maker: &Maker, made: &mut Made, columns: &[Column], row: usize) -> Result<()> {
    let ranges: Vec<_> = columns.iter().map(|column| column.rows[row].clone()).collect();
    if ranges.iter().any(|range| range.is_empty()) {
        return Ok(());
    }
    let mut chosen: Vec<usize> = ranges.iter().map(|range| range.start).collect();
    loop {
        maker.push(made, columns, &chosen)?;
        let mut axis = chosen.len();
        loop {
            if axis == 0 {
                return Ok(());
            }
            axis -= 1;
            chosen[axis] += 1;
            if chosen[axis] < ranges[axis].end {
                break;
            }
            chosen[axis] = ranges[axis].start;
        }
    }
}

fn cross_sparse(context: &mut KernelContext, inputs: usize, maker: &Maker) -> Result<()> {
    let sparse = context.attrs().int("N")? as usize;
    let mut columns = Vec::new();
    for number in 0..sparse {
        columns.push(sparse_column(
            context,
            number,
            sparse + number,
            2 * sparse + number,
        )?);
    }
    for (number, index) in (3 * sparse..inputs).enumerate() {
        columns.push(dense_column(context, index, number)?);
    }
    let rows = rows_of(&columns)?;
    let columns: Vec<Column> = columns.into_iter().map(|(column, _)| column).collect();
    let mut made = maker.start();
    let (mut places, mut largest) = (Vec::new(), 0);
    for row in 0..rows {
        let before = made.len();
        combine(maker, &mut made, &columns, row)?;
        let count = made.len() - before;
        largest = largest.max(count);
        (0..count).for_each(|number| places.extend([row as i64, number as i64]));
    }
    let count = made.len();
    context.set_output(0, matrix(&places, count, 2)?)?;
    context.set_output(1, made.finish()?)?;
    context.set_output(2, Tensor::vector(&[rows as i64, largest as i64])?)
}

fn ragged_column(context: &KernelContext, values: usize, splits: usize) -> Result<(Column, i64)> {
    let (values, splits) = (context.input(values)?, context.input_i64s(splits)?);
    ensure!(
        splits.first() == Some(&0),
        InvalidArgument,
        "Invalid ragged splits: first element of ragged splits must be 0"
    );
    let count = values.num_elements() as i64;
    ensure!(
        splits.windows(2).all(|pair| pair[0] <= pair[1]) && splits.last() == Some(&count),
        InvalidArgument,
        "Invalid ragged splits: last element of ragged splits must be the number of ragged values({count}) but is {}",
        splits[splits.len() - 1]
    );
    let ranges: Vec<_> = splits
        .windows(2)
        .map(|pair| pair[0] as usize..pair[1] as usize)
        .collect();
    let rows = ranges.len() as i64;
    Ok((
        Column {
            features: values.clone(),
            rows: ranges,
        },
        rows,
    ))
}

fn cross_ragged(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let ragged = attrs.types("ragged_values_types")?.len();
    let sparse = attrs.int("Nsparse")? as usize;
    let maker = match context.output_type(0) {
        DataType::STRING => Maker::Text(b"_X_".to_vec()),
        _ => Maker::Hash {
            start: Some(attrs.int("hash_key")? as u64),
            buckets: attrs.int("num_buckets")?,
            key: None,
        },
    };
    let (mut next_ragged, mut next_sparse, mut next_dense) = (0, 0, 0);
    let (first_sparse, first_dense) = (2 * ragged, 2 * ragged + 3 * sparse);
    let mut columns = Vec::new();
    for kind in attrs.bytes("input_order")? {
        columns.push(match kind {
            b'R' if next_ragged < ragged => {
                next_ragged += 1;
                ragged_column(context, next_ragged - 1, ragged + next_ragged - 1)?
            }
            b'S' if next_sparse < sparse => {
                let at = first_sparse + next_sparse;
                next_sparse += 1;
                sparse_column(context, at, at + sparse, at + 2 * sparse)?
            }
            b'D' if first_dense + next_dense < context.num_inputs() => {
                next_dense += 1;
                dense_column(context, first_dense + next_dense - 1, next_dense - 1)?
            }
            _ => bail!(InvalidArgument, "Unexpected input_order value."),
        });
    }
    let rows = rows_of(&columns)?;
    let columns: Vec<Column> = columns.into_iter().map(|(column, _)| column).collect();
    let mut made = maker.start();
    let mut splits = vec![0i64];
    for row in 0..rows {
        combine(&maker, &mut made, &columns, row)?;
        splits.push(made.len() as i64);
    }
    let splits = match context.output_type(1) {
        DataType::INT64 => Tensor::vector(&splits)?,
        _ => Tensor::vector(&splits.iter().map(|&edge| edge as i32).collect::<Vec<i32>>())?,
    };
    context.set_output(0, made.finish()?)?;
    context.set_output(1, splits)
}

#[cfg(test)]
fn sparse_and_dense(op: &'static str) -> crate::testing::Case {
    use crate::testing::{Case, strings, t, vector};
    Case::op(op).attr("N", 1i64).inputs([
        t(&[3, 2], &[0i64, 0, 1, 0, 1, 1]),
        strings(&[3], &["x", "y", "z"]),
        vector(&[2i64, 2]),
        t(&[2, 2], &[1i64, 2, 3, 4]),
    ])
}

#[cfg(test)]
fn first_version(hashed: bool, buckets: i64, key: i64) -> crate::testing::Case {
    let out = if hashed { DataType::INT64 } else { DataType::STRING };
    sparse_and_dense("SparseCross")
        .attr("hashed_output", hashed)
        .attr("num_buckets", buckets)
        .attr("hash_key", key)
        .attr("out_type", out)
        .attr("internal_type", out)
        .attr("sparse_types", vec![DataType::STRING])
        .attr("dense_types", vec![DataType::INT64])
}

#[cfg(test)]
fn typed(op: &'static str) -> crate::testing::Case {
    sparse_and_dense(op)
        .attr("sparse_types", vec![DataType::STRING])
        .attr("dense_types", vec![DataType::INT64])
}

#[cfg(test)]
fn ragged_case(order: &str, hashed: bool) -> crate::testing::Case {
    use crate::testing::{Case, strings, vector};
    let out = if hashed { DataType::INT64 } else { DataType::STRING };
    Case::op("RaggedCross")
        .attr("input_order", order)
        .attr("hashed_output", hashed)
        .attr("num_buckets", 0i64)
        .attr("hash_key", 7i64)
        .attr("Nsparse", 0i64)
        .attr("ragged_values_types", vec![DataType::STRING])
        .attr("ragged_splits_types", vec![DataType::INT64])
        .attr("sparse_values_types", Vec::<DataType>::new())
        .attr("dense_types", vec![DataType::STRING])
        .attr("out_values_type", out)
        .attr("out_row_splits_type", DataType::INT64)
        .inputs([
            strings(&[3], &["a", "b", "c"]),
            vector(&[0i64, 2, 3]),
            strings(&[2, 1], &["x", "y"]),
        ])
}

crate::op_cases! {
    texts_of_first: first_version(false, 0, 0).attr("internal_type", DataType::INT64);
    texts_of_numbers: first_version(false, 0, 0).fails(Code::InvalidArgument);
    hashes_of_first: first_version(true, 0, 956_888_297_470);
    buckets_of_first: first_version(true, 100, 3);
    texts: typed("SparseCrossV2").input(strings(&[], &["-"]));
    separators: typed("SparseCrossV2").input(strings(&[1], &["-"])).fails(Code::InvalidArgument);
    hashes: typed("SparseCrossHashed").inputs([scalar(0i64), bools(&[], &[false]), vector(&[1i64, 2])]);
    strong_hashes: typed("SparseCrossHashed").inputs([scalar(1000i64), bools(&[], &[true]), vector(&[1i64, 2])]);
    short_salt: typed("SparseCrossHashed").inputs([scalar(1000i64), bools(&[], &[true]), vector(&[1i64])]).fails(Code::InvalidArgument);
    rows_misfit: Case::op("SparseCrossV2").attr("N", 0i64).attr("sparse_types", Vec::<DataType>::new()).attr("dense_types", vec![DataType::INT64, DataType::INT64])
        .inputs([t(&[1, 1], &[1i64]), t(&[2, 1], &[1i64, 2]), strings(&[], &["-"])]).fails(Code::InvalidArgument);
    nothing: Case::op("SparseCrossV2").attr("N", 0i64).attr("sparse_types", Vec::<DataType>::new()).attr("dense_types", Vec::<DataType>::new())
        .input(strings(&[], &["-"]));
    ragged_texts: ragged_case("RD", false);
    ragged_hashes: ragged_case("DR", true);
    ragged_order: ragged_case("DX", true).fails(Code::InvalidArgument);
}
