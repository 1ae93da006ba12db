//! `RaggedTensorToTensor`: rows cut or filled up to a regular shape.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, TString, Tensor, bail, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "RaggedTensorToTensor",
    shape,
    kernels: &[Kernel::native(run)],
    gradient: Gradient::Missing,
    ..Op::PURE
}];

fn shape(context: &mut ShapeContext) -> Result<()> {
    let wanted = context.input_as_shape(0)?;
    let values = context.input(1);
    let kinds = context.attrs().strings("row_partition_types")?;
    let layers = match kinds.first() {
        Some(kind) if &kind[..] == b"FIRST_DIM_SIZE" => kinds.len() - 1,
        _ => kinds.len(),
    };
    let Some(value_dims) = values.dims() else {
        context.set_output(0, wanted);
        return Ok(());
    };
    ensure!(
        !value_dims.is_empty(),
        InvalidArgument,
        "values must be at least a vector"
    );
    let mut dims = vec![dim::UNKNOWN; layers + 1];
    dims.extend_from_slice(&value_dims[1..]);
    let made = PartialShape::new(&dims);
    context.set_output(0, made.merge(&wanted)?);
    Ok(())
}

/// One layer: the row of the layer above that each row is in.
enum Partition {
    Rowids(Vec<i64>),
    Splits(Vec<i64>),
}

/// How the rows are cut, and the number of rows of the first layer.
fn partitions(context: &KernelContext) -> Result<(i64, Vec<Partition>)> {
    let kinds = context.attrs().strings("row_partition_types")?;
    let mut partitions = Vec::new();
    let mut first = None;
    for (i, kind) in kinds.iter().enumerate() {
        let values = context.input_i64s(3 + i)?;
        match &kind[..] {
            b"FIRST_DIM_SIZE" => first = values.first().copied(),
            b"VALUE_ROWIDS" => partitions.push(Partition::Rowids(values)),
            b"ROW_SPLITS" => {
                ensure!(
                    !values.is_empty() && values.windows(2).all(|pair| pair[0] <= pair[1]),
                    InvalidArgument,
                    "Invalid row split: {values:?}"
                );
                first = first.or(Some(values.len() as i64 - 1));
                partitions.push(Partition::Splits(values));
            }
            other => bail!(
                InvalidArgument,
                "Unknown string for partition info type: {}",
                String::from_utf8_lossy(other)
            ),
        }
    }
    match first {
        Some(first) if first >= 0 && !partitions.is_empty() => Ok((first, partitions)),
        _ => bail!(
            InvalidArgument,
            "Cannot handle row partitions without the number of rows"
        ),
    }
}

impl Partition {
    /// The row above of each of `count` rows, and the largest number of rows in one.
    fn rows(&self) -> Result<Vec<i64>> {
        let edges = match self {
            Partition::Rowids(rows) => return Ok(rows.clone()),
            Partition::Splits(edges) => edges,
        };
        let mut rows = Vec::new();
        for (row, pair) in edges.windows(2).enumerate() {
            let count = pair[1].saturating_sub(pair[0]).max(0) as usize;
            crate::wide::reserve(&mut rows, count)?;
            rows.resize(rows.len() + count, row as i64);
        }
        Ok(rows)
    }
}

/// The largest number of equal neighbours.
fn longest_run(rows: &[i64]) -> i64 {
    rows.chunk_by(|a, b| a == b)
        .map(|run| run.len() as i64)
        .max()
        .unwrap_or(0)
}

fn run(context: &mut KernelContext) -> Result<()> {
    let (first, partitions) = partitions(context)?;
    let (values, default) = (context.input(1)?, context.input(2)?);
    let rows = partitions
        .iter()
        .map(Partition::rows)
        .collect::<Result<Vec<Vec<i64>>>>()?;
    let inner = values.dims()[1..].to_vec();
    let wanted = context.input(0)?;
    ensure!(
        wanted.rank() <= 1,
        InvalidArgument,
        "Shape must be at most rank 1 but is rank {}",
        wanted.rank()
    );
    let mut dims = vec![first];
    dims.extend(rows.iter().map(|rows| longest_run(rows)));
    dims.extend_from_slice(&inner);
    if wanted.rank() > 0 {
        let extents = wanted.to_i64_vec()?;
        ensure!(
            extents.len() == dims.len(),
            InvalidArgument,
            "rt_input.shape and shape={extents:?} are incompatible: rank {} != {}",
            dims.len(),
            extents.len()
        );
        for (to, &extent) in dims.iter_mut().zip(&extents).filter(|(_, extent)| **extent >= 0) {
            *to = extent;
        }
    }
    let layers = rows.len() + 1;
    ensure!(
        dims[layers..] == inner,
        InvalidArgument,
        "shape {dims:?} does not fit values of shape {}",
        values.shape()
    );
    ensure!(
        default.rank() <= inner.len() && fits(default.dims(), &inner),
        InvalidArgument,
        "default_value.shape={} and rt_input.flat_values.shape={} are incompatible",
        default.shape(),
        values.shape()
    );
    let outer: usize = crate::wide::count(&dims[..layers])?;
    let places = places(&rows, &dims[..layers], values.dims()[0])?;
    let mut source: Vec<Option<usize>> = crate::wide::filled(outer, None)?;
    for (row, place) in places.into_iter().enumerate() {
        if let Some(place) = place {
            source[place] = Some(row);
        }
    }
    let output = assemble(values, default, &source, &Shape::new(&dims)?, &inner)?;
    context.set_output(0, output)
}

/// Whether a shape is broadcast to another.
fn fits(from: &[i64], to: &[i64]) -> bool {
    from.iter()
        .rev()
        .zip(to.iter().rev())
        .all(|(&a, &b)| a == 1 || a == b)
}

/// Where each row of the values goes; nowhere if it is cut off.
fn places(rows: &[Vec<i64>], dims: &[i64], count: i64) -> Result<Vec<Option<usize>>> {
    let mut above: Vec<Option<usize>> = Vec::new();
    // Without rows above, a row number is its place.
    let top = |row: i64| (row < dims[0]).then_some(row as usize);
    for (layer, rows) in rows.iter().enumerate() {
        let (mut next, mut before, mut within) = (Vec::with_capacity(rows.len()), -1, 0);
        for &row in rows {
            ensure!(
                row >= before && row >= 0,
                InvalidArgument,
                "Invalid row id: {row} follows {before}"
            );
            within = if row == before { within + 1 } else { 0 };
            before = row;
            let parent = if layer == 0 {
                top(row)
            } else {
                match above.get(row as usize) {
                    Some(&parent) => parent,
                    None => bail!(InvalidArgument, "Row id {row} is out of range"),
                }
            };
            let extent = dims[layer + 1];
            next.push(match parent {
                Some(parent) if within < extent => Some(parent * extent as usize + within as usize),
                _ => None,
            });
        }
        above = next;
    }
    ensure!(
        above.len() as i64 == count,
        InvalidArgument,
        "The row partition has {} rows, but there are {count} values",
        above.len()
    );
    Ok(above)
}

/// Copies the rows of the values, and the default where there is none.
fn assemble(
    values: &Tensor,
    default: &Tensor,
    source: &[Option<usize>],
    shape: &Shape,
    inner: &[i64],
) -> Result<Tensor> {
    let each = inner.iter().product::<i64>() as usize;
    // Place in the default of each element of a row.
    let place = |element: usize| {
        let (mut rest, mut at, mut step) = (element as i64, 0, 1);
        for (axis, &extent) in inner.iter().enumerate().rev() {
            let index = rest % extent;
            rest /= extent;
            let own = (axis + default.rank())
                .checked_sub(inner.len())
                .map(|axis| default.dims()[axis]);
            if let Some(own) = own {
                at += if own == 1 { 0 } else { index * step };
                step *= own;
            }
        }
        at as usize
    };
    let default_at = crate::wide::collected((0..each).map(place))?;
    if values.dtype() == DataType::STRING {
        let (all, fill) = (values.strings()?, default.strings()?);
        let made: Vec<TString> = source
            .iter()
            .flat_map(|row| {
                (0..each)
                    .map(|i| match row {
                        Some(row) => all[row * each + i].clone(),
                        None => fill[default_at[i]].clone(),
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        return Tensor::from_strings(shape.clone(), made);
    }
    let size = values.dtype().size();
    let mut output = Tensor::allocate(values.dtype(), shape.clone())?;
    let (all, fill) = (values.bytes(), default.bytes());
    let bytes = output.bytes_mut().unwrap_or(&mut []);
    if each > 0 {
        for (out, row) in bytes.chunks_exact_mut(each * size).zip(source) {
            match row {
                Some(row) => out.copy_from_slice(&all[row * each * size..][..each * size]),
                None => {
                    for (out, &at) in out.chunks_exact_mut(size).zip(&default_at) {
                        out.copy_from_slice(&fill[at * size..][..size]);
                    }
                }
            }
        }
    }
    Ok(output)
}

#[cfg(test)]
fn kinds(list: &[&'static str]) -> Vec<ff_proto::Bytes> {
    list.iter()
        .map(|text| ff_proto::Bytes::from_static(text.as_bytes()))
        .collect()
}

crate::op_cases! {
    by_splits: family(&["RaggedTensorToTensor"], &[DataType::FLOAT, DataType::INT32, DataType::STRING, DataType::BOOL], |op, dtype| {
        Case::op(op).inputs([scalar(-1), counting(dtype, &[5]), counting(dtype, &[]), vector(&[0i64, 2, 2, 5])]).attr("row_partition_types", kinds(&["ROW_SPLITS"]))
    });
    by_rowids: Case::op("RaggedTensorToTensor").inputs([vector(&[4, 2]), counting(DataType::FLOAT, &[5]), scalar(9.5f32), scalar(3i64), vector(&[0i64, 0, 2, 2, 2])])
        .attr("row_partition_types", kinds(&["FIRST_DIM_SIZE", "VALUE_ROWIDS"]));
    layers: Case::op("RaggedTensorToTensor").inputs([vector(&[-1i64, -1, 2, 2]), counting(DataType::FLOAT, &[5, 2]), vector(&[9.5f32, 8.5]), vector(&[0, 2, 3]), vector(&[0, 2, 2, 5])])
        .attr("row_partition_types", kinds(&["ROW_SPLITS", "ROW_SPLITS"]));
    nothing: Case::op("RaggedTensorToTensor").inputs([vector(&[2, 3]), counting(DataType::FLOAT, &[0]), scalar(9.5f32), vector(&[0i64, 0, 0])]).attr("row_partition_types", kinds(&["ROW_SPLITS"]));
    misfit: Case::op("RaggedTensorToTensor").inputs([vector(&[2, 3]), counting(DataType::FLOAT, &[4]), scalar(9.5f32), vector(&[0i64, 2, 9])]).attr("row_partition_types", kinds(&["ROW_SPLITS"]))
        .fails(Code::InvalidArgument);
    wrong_default: Case::op("RaggedTensorToTensor").inputs([scalar(-1), counting(DataType::FLOAT, &[4, 2]), vector(&[9.5f32, 1.0, 2.0]), vector(&[0i64, 2, 4])])
        .attr("row_partition_types", kinds(&["ROW_SPLITS"])).fails(Code::InvalidArgument);
}
