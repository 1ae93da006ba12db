//! Matrices made of diagonals, diagonals taken out of matrices and put into them, in all three versions.
//!
//! A range of diagonals `lower..=upper` (0 is the main one, positive ones lie above it) is packed into rows, the
//! uppermost first; shorter diagonals are padded on the left or on the right. The first version knows only the main
//! diagonal, the second only padding on the right.

use crate::math::gradients::unary;
use crate::movement::{Region, Writer};
use ff_hlo::{Builder, Op as HloOp};
use ff_op::{
    Attrs, Gradient, GradientContext, Kernel, KernelContext, LowerContext, Op, OutputRef, ShapeContext,
};
use ff_tensor::{Bool, DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

const DIAG: Op = Op {
    shape: diag_shape,
    kernels: &[Kernel::native(diag)],
    lower: Some(lower_diag),
    gradient: Gradient::Fn(diag_gradient),
    ..Op::PURE
};
const PART: Op = Op {
    shape: part_shape,
    kernels: &[Kernel::native(part)],
    lower: Some(lower_part),
    gradient: Gradient::Fn(part_gradient),
    ..Op::PURE
};
const SET: Op = Op {
    shape: set_shape,
    kernels: &[Kernel::native(set)],
    lower: Some(lower_set),
    gradient: Gradient::Fn(set_gradient),
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "MatrixDiag",
        ..DIAG
    },
    &Op {
        name: "MatrixDiagV2",
        ..DIAG
    },
    &Op {
        name: "MatrixDiagV3",
        ..DIAG
    },
    &Op {
        name: "BatchMatrixDiag",
        gradient: Gradient::Missing,
        ..DIAG
    },
    &Op {
        name: "MatrixDiagPart",
        ..PART
    },
    &Op {
        name: "MatrixDiagPartV2",
        ..PART
    },
    &Op {
        name: "MatrixDiagPartV3",
        ..PART
    },
    &Op {
        name: "BatchMatrixDiagPart",
        gradient: Gradient::Missing,
        ..PART
    },
    &Op {
        name: "MatrixSetDiag",
        ..SET
    },
    &Op {
        name: "MatrixSetDiagV2",
        ..SET
    },
    &Op {
        name: "MatrixSetDiagV3",
        ..SET
    },
    &Op {
        name: "BatchMatrixSetDiag",
        gradient: Gradient::Missing,
        ..SET
    },
];

/// A range of diagonals of matrices of certain extents.
#[derive(Clone, Copy)]
struct Band {
    lower: i64,
    upper: i64,
}

impl Band {
    /// From the one or two numbers of an op's input.
    fn new(numbers: &[i64]) -> Result<Band> {
        let (lower, upper) = match numbers {
            [single] => (*single, *single),
            [lower, upper] => (*lower, *upper),
            _ => ff_tensor::bail!(
                InvalidArgument,
                "diag_index must have only one or two elements, received {} elements.",
                numbers.len()
            ),
        };
        ensure!(
            lower <= upper,
            InvalidArgument,
            "lower_diag_index must not be larger than upper_diag_index: {lower} > {upper}"
        );
        Ok(Band { lower, upper })
    }

    fn count(self) -> i64 {
        self.upper - self.lower + 1
    }

    /// Length of the longest diagonal.
    fn longest(self, rows: i64, columns: i64) -> i64 {
        (rows + self.upper.min(0)).min(columns - self.lower.max(0))
    }

    /// INVALID_ARGUMENT when a diagonal lies outside the matrices.
    fn check(self, rows: i64, columns: i64) -> Result<()> {
        for (index, name) in [(self.lower, "lower"), (self.upper, "upper")] {
            ensure!(
                (-rows < index && index < columns) || index == 0,
                InvalidArgument,
                "{name}_diag_index is out of bound: {index} It must be between {} and {columns}",
                -rows
            );
        }
        Ok(())
    }
}

/// The diagonals that an input of the first context says; the main one where there is no such input.
fn band(context: &ShapeContext, index: usize) -> Result<Option<Band>> {
    if index >= context.num_inputs() {
        return Ok(Some(Band { lower: 0, upper: 0 }));
    }
    context.input_with_rank_at_most(index, 1)?;
    context
        .input_as_i64s(index)?
        .map(|numbers| Band::new(&numbers))
        .transpose()
}

fn kernel_band(context: &KernelContext, index: usize) -> Result<Band> {
    if index >= context.num_inputs() {
        return Band::new(&[0]);
    }
    Band::new(&context.input_i64s(index)?)
}

/// Where each diagonal lies: its first element in a matrix and in the packed form, and its length.
struct Diagonals {
    batches: i64,
    matrix: i64,
    packed: i64,
    step: i64,
    each: Vec<(i64, i64, i64)>,
}

fn diagonals(attrs: &Attrs, band: Band, dims: &[i64], width: i64) -> Diagonals {
    let (rows, columns) = (dims[dims.len() - 2], dims[dims.len() - 1]);
    let alignment = attrs.string("align").unwrap_or("LEFT_LEFT");
    let left = |d: i64| (d >= 0 && alignment.starts_with("LEFT")) || (d <= 0 && alignment.ends_with("LEFT"));
    let mut each = Vec::new();
    for d in (band.lower..=band.upper).rev() {
        let length = (rows + d.min(0)).min(columns - d.max(0)).max(0);
        let padding = if left(d) { 0 } else { width - length };
        let first = (-d).max(0) * columns + d.max(0);
        each.push((first, (band.upper - d) * width + padding, length));
    }
    Diagonals {
        batches: dims[..dims.len() - 2].iter().product(),
        matrix: rows * columns,
        packed: band.count() * width,
        step: columns + 1,
        each,
    }
}

impl Diagonals {
    /// For each element of a matrix, its place in the packed form, or the other way round; none where there is none.
    fn sources(&self, into_matrix: bool) -> Result<Vec<Option<i64>>> {
        let count = if into_matrix { self.matrix } else { self.packed };
        let mut sources = crate::wide::filled(count as usize, None)?;
        for &(in_matrix, in_packed, length) in &self.each {
            for i in 0..length {
                let (to, from) = (in_matrix + i * self.step, in_packed + i);
                let (to, from) = if into_matrix { (to, from) } else { (from, to) };
                sources[to as usize] = Some(from);
            }
        }
        Ok(sources)
    }

    /// Copies all diagonals into matrices, or out of them.
    fn copy(&self, writer: &mut Writer, source: &Tensor, into_matrix: bool) -> Result<()> {
        let (matrix, packed) = ([self.matrix, self.step], [self.packed, 1]);
        for &(in_matrix, in_packed, length) in &self.each {
            let matrix = Region {
                offset: in_matrix,
                strides: &matrix,
            };
            let packed = Region {
                offset: in_packed,
                strides: &packed,
            };
            let (to, from) = if into_matrix {
                (matrix, packed)
            } else {
                (packed, matrix)
            };
            writer.write(&[self.batches, length], to, source, from)?;
        }
        Ok(())
    }
}

/// The single element that fills up; zero in the first version.
fn padding(context: &KernelContext, index: usize) -> Result<Tensor> {
    if index >= context.num_inputs() {
        return Tensor::zeros(context.output_type(0), Shape::scalar());
    }
    Ok(context.input(index)?.clone())
}

/// Rows and columns of matrices that have room for the diagonals.
fn matrix_extents(band: Band, width: i64, rows: i64, columns: i64) -> Result<(i64, i64)> {
    let least_rows = width - band.upper.min(0);
    let least_columns = width + band.lower.max(0);
    ensure!(
        rows == -1 || rows >= least_rows,
        InvalidArgument,
        "The number of rows is too small."
    );
    ensure!(
        columns == -1 || columns >= least_columns,
        InvalidArgument,
        "The number of columns is too small."
    );
    let (rows, columns) = match (rows, columns) {
        (-1, -1) => (least_rows.max(least_columns), least_rows.max(least_columns)),
        (-1, columns) => (least_rows, columns),
        (rows, -1) => (rows, least_columns),
        both => both,
    };
    ensure!(
        rows == least_rows || columns == least_columns,
        InvalidArgument,
        "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal."
    );
    Ok((rows, columns))
}

fn diag_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank_at_least(0, 1)?;
    for index in 2..context.num_inputs() {
        context.input_with_rank(index, 0)?;
    }
    let later = context.num_inputs() > 1;
    let band = band(context, 1)?;
    let (rows, columns) = match later {
        true => (context.input_as_scalar(2)?, context.input_as_scalar(3)?),
        false => (Some(-1), Some(-1)),
    };
    let (Some(rank), Some(band)) = (input.rank(), band) else {
        return Ok(());
    };
    let kept = if band.count() > 1 {
        rank as i64 - 2
    } else {
        rank as i64 - 1
    };
    ensure!(
        band.count() == 1 || rank >= 2,
        InvalidArgument,
        "Shape must be at least rank 2 but is rank {rank}"
    );
    if band.count() > 1 {
        dim::merge(input.dim(-2), band.count())?;
    }
    let batch = input.slice(0, Some(kept));
    let width = input.dim(-1);
    let extents = match (rows, columns) {
        (Some(rows), Some(columns)) if width >= 0 => {
            let (rows, columns) = matrix_extents(band, width, rows, columns)?;
            [rows, columns]
        }
        _ => [dim::UNKNOWN; 2],
    };
    context.set_output(0, batch.concat(&PartialShape::new(&extents)));
    Ok(())
}

fn diag(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let band = kernel_band(context, 1)?;
    let input = context.input(0)?;
    let width = input.dims()[input.rank() - 1];
    let mut writer = Writer::filled(&padding(context, 4)?, shape.clone())?;
    diagonals(context.attrs(), band, shape.dims(), width).copy(&mut writer, input, true)?;
    context.set_output(0, writer.finish()?)
}

/// Shape of the packed diagonals of matrices.
fn packed_shape(input: &PartialShape, band: Band) -> Result<PartialShape> {
    let (rows, columns) = (input.dim(-2), input.dim(-1));
    let mut last = Vec::new();
    if band.count() > 1 {
        last.push(band.count());
    }
    if rows >= 0 && columns >= 0 {
        band.check(rows, columns)?;
        last.push(band.longest(rows, columns));
    } else {
        last.push(dim::UNKNOWN);
    }
    Ok(input.slice(0, Some(-2)).concat(&PartialShape::new(&last)))
}

fn part_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank_at_least(0, 2)?;
    if context.num_inputs() > 2 {
        context.input_with_rank(2, 0)?;
    }
    let band = band(context, 1)?;
    if let (Some(_), Some(band)) = (input.rank(), band) {
        let shape = packed_shape(&input, band)?;
        context.set_output(0, shape);
    }
    Ok(())
}

fn part(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let band = kernel_band(context, 1)?;
    let input = context.input(0)?;
    let width = shape.dims()[shape.rank() - 1];
    let mut writer = Writer::filled(&padding(context, 2)?, shape)?;
    diagonals(context.attrs(), band, input.dims(), width).copy(&mut writer, input, false)?;
    context.set_output(0, writer.finish()?)
}

fn set_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank_at_least(0, 2)?;
    let diagonal = context.input_with_rank_at_least(1, 1)?;
    let band = band(context, 2)?;
    let mut output = input.clone();
    if let (Some(rank), Some(band)) = (input.rank(), band) {
        packed_shape(&input, band)?.merge(&diagonal)?;
        let batch = input.slice(0, Some(-2));
        if let Some(known) = diagonal.rank() {
            let batch = batch.merge(&diagonal.slice(0, Some(known.min(rank - 2) as i64)))?;
            output = batch.concat(&input.slice(-2, None));
        }
    }
    context.set_output(0, output);
    Ok(())
}

fn set(context: &mut KernelContext) -> Result<()> {
    let band = kernel_band(context, 2)?;
    let diagonal = context.input(1)?.clone();
    let input = context.take_input(0)?;
    let dims = input.dims().to_vec();
    let width = diagonal.dims()[diagonal.rank() - 1];
    let mut writer = Writer::onto(input)?;
    diagonals(context.attrs(), band, &dims, width).copy(&mut writer, &diagonal, true)?;
    context.set_output(0, writer.finish()?)
}

fn lower_band(context: &mut LowerContext, index: usize) -> Result<Band> {
    if index >= context.num_inputs() {
        return Band::new(&[0]);
    }
    Band::new(&context.constant_i64s(index)?)
}

/// Elements of `from` where they have a source, else those of `rest`, whose shape the result has.
fn rearranged(
    builder: &mut Builder,
    from: HloOp,
    rest: HloOp,
    batches: i64,
    sources: &[Option<i64>],
) -> Result<HloOp> {
    let dims = builder.dims(rest).to_vec();
    if dims.contains(&0) || builder.dims(from).contains(&0) {
        return Ok(rest);
    }
    let width = builder.dims(from).iter().product::<i64>() / batches;
    let flat = builder.reshape(from, &[batches, width])?;
    let places: Vec<i64> = sources.iter().map(|source| source.unwrap_or(0)).collect();
    let taken = crate::lowering::take(builder, flat, &places, 1)?;
    let is_there: Vec<Bool> = sources
        .iter()
        .map(|source| Bool::from(source.is_some()))
        .collect();
    let is_there = builder.constant_vector(&is_there)?;
    let all = [batches, sources.len() as i64];
    let is_there = builder.broadcast_to(is_there, &all)?;
    let rest = builder.reshape(rest, &all)?;
    let chosen = builder.select(is_there, taken, rest)?;
    builder.reshape(chosen, &dims)
}

/// An array of the element that an input holds; of zeros where there is no such input.
fn lower_padding(context: &mut LowerContext, index: usize, dims: &[i64]) -> Result<HloOp> {
    if index >= context.num_inputs() {
        let dtype = context.output_type(0);
        return context.builder.full(dtype, dims, 0.0);
    }
    let value = context.input(index)?;
    context.builder.broadcast_scalar(value, dims)
}

fn lower_diag(context: &mut LowerContext) -> Result<()> {
    let band = lower_band(context, 1)?;
    let input_dims = context.input_dims(0)?;
    let (kept, width) = (
        input_dims.len() - if band.count() > 1 { 2 } else { 1 },
        input_dims[input_dims.len() - 1],
    );
    let mut extents = [-1, -1];
    if context.num_inputs() > 1 {
        for (index, extent) in extents.iter_mut().enumerate() {
            *extent = context.constant_i64s(2 + index)?.first().copied().unwrap_or(-1);
        }
    }
    let (rows, columns) = matrix_extents(band, width, extents[0], extents[1])?;
    let dims = [&input_dims[..kept], &[rows, columns]].concat();
    let rest = lower_padding(context, 4, &dims)?;
    let all = diagonals(context.attrs(), band, &dims, width);
    let input = context.input(0)?;
    let output = rearranged(context.builder, input, rest, all.batches, &all.sources(true)?)?;
    context.set_output(0, output);
    Ok(())
}

fn lower_part(context: &mut LowerContext) -> Result<()> {
    let band = lower_band(context, 1)?;
    let input_dims = context.input_dims(0)?;
    let shape = packed_shape(&PartialShape::new(&input_dims), band)?;
    let dims = shape.dims().unwrap_or_default().to_vec();
    let rest = lower_padding(context, 2, &dims)?;
    let all = diagonals(context.attrs(), band, &input_dims, dims[dims.len() - 1]);
    let input = context.input(0)?;
    let output = rearranged(context.builder, input, rest, all.batches, &all.sources(false)?)?;
    context.set_output(0, output);
    Ok(())
}

fn lower_set(context: &mut LowerContext) -> Result<()> {
    let band = lower_band(context, 2)?;
    let (dims, packed) = (context.input_dims(0)?, context.input_dims(1)?);
    let all = diagonals(context.attrs(), band, &dims, packed[packed.len() - 1]);
    let (rest, diagonal) = (context.input(0)?, context.input(1)?);
    let output = rearranged(context.builder, diagonal, rest, all.batches, &all.sources(true)?)?;
    context.set_output(0, output);
    Ok(())
}

/// Attributes of a node of the third version that packs as the present node does.
fn third(context: &GradientContext, dtype: DataType) -> Attrs {
    let alignment = context.attrs().string("align").unwrap_or("LEFT_LEFT").to_string();
    Attrs::new().with("T", dtype).with("align", alignment.as_str())
}

/// The diagonals of `value` that an input of the node says.
fn take_part(context: &mut GradientContext, value: OutputRef, index: usize) -> Result<OutputRef> {
    let dtype = context.dtype(value);
    if index >= context.num_inputs() {
        return unary(context, "MatrixDiagPart", value);
    }
    let zero = crate::math::gradients::scalar_like(context, 0.0, value)?;
    let (band, attrs) = (context.input(index)?, third(context, dtype));
    context.op("MatrixDiagPartV3", &[value, band, zero], attrs)
}

/// `value` with other diagonals.
fn put_part(
    context: &mut GradientContext,
    value: OutputRef,
    diagonal: OutputRef,
    index: usize,
) -> Result<OutputRef> {
    let dtype = context.dtype(value);
    if index >= context.num_inputs() {
        return context.op("MatrixSetDiag", &[value, diagonal], Attrs::new().with("T", dtype));
    }
    let (band, attrs) = (context.input(index)?, third(context, dtype));
    context.op("MatrixSetDiagV3", &[value, diagonal, band], attrs)
}

fn diag_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let gradient = take_part(context, incoming, 1)?;
    context.set(0, gradient);
    Ok(())
}

fn part_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, input) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let zeros = unary(context, "ZerosLike", input)?;
    let gradient = put_part(context, zeros, incoming, 1)?;
    context.set(0, gradient);
    Ok(())
}

fn set_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, diagonal) = (context.incoming_or_zeros(0)?, context.input(1)?);
    let zeros = unary(context, "ZerosLike", diagonal)?;
    let input = put_part(context, incoming, zeros, 2)?;
    let diagonal = take_part(context, incoming, 2)?;
    context.set(0, input);
    context.set(1, diagonal);
    Ok(())
}

#[cfg(test)]
const ALIGNMENTS: [&str; 4] = ["LEFT_LEFT", "RIGHT_LEFT", "LEFT_RIGHT", "RIGHT_RIGHT"];

#[cfg(test)]
const PLAIN: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::BFLOAT16,
    DataType::COMPLEX64,
    DataType::COMPLEX128,
    DataType::BOOL,
    DataType::INT8,
    DataType::INT16,
    DataType::INT32,
    DataType::INT64,
    DataType::UINT8,
    DataType::UINT16,
    DataType::UINT32,
    DataType::UINT64,
];

crate::op_cases! {
    first_versions: family(&["MatrixDiag", "BatchMatrixDiag"], &PLAIN[..6], |op, dtype| Case::op(op).input(cycle(dtype, &[2, 3])));
    first_of_nothing: Case::op("MatrixDiag").input(t::<f32>(&[2, 0], &[])).gives(t::<f32>(&[2, 0, 0], &[]));
    first_of_scalar: Case::op("MatrixDiag").input(scalar(1)).fails(Code::InvalidArgument);
    second: family(&["MatrixDiagV2", "MatrixDiagV3"], PLAIN, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3]), scalar(1), scalar(-1), scalar(-1), numbers(dtype, &[], &[1.0])])
    });
    several: family(&["MatrixDiagV2", "MatrixDiagV3"], &PLAIN[..1], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 3]), vector(&[-1, 1]), scalar(4), scalar(3), numbers(dtype, &[], &[9.0])])
    });
    aligned: family(&ALIGNMENTS, &PLAIN[..1], |align, dtype| {
        Case::op("MatrixDiagV3").attr("align", align)
            .inputs([cycle(dtype, &[4, 3]), vector(&[-1, 2]), scalar(-1), scalar(4), numbers(dtype, &[], &[9.0])])
    });
    rows_too_few: Case::op("MatrixDiagV3").inputs([vector(&[1, 2]), scalar(1), scalar(1), scalar(-1), scalar(0)]).fails(Code::InvalidArgument);
    extents_too_large: Case::op("MatrixDiagV3").inputs([vector(&[1, 2]), scalar(1), scalar(9), scalar(9), scalar(0)]).fails(Code::InvalidArgument);
    range_backwards: Case::op("MatrixDiagV3").inputs([t(&[2, 1], &[1, 2]), vector(&[1, 0]), scalar(-1), scalar(-1), scalar(0)]).fails(Code::InvalidArgument);
    parts_first: family(&["MatrixDiagPart", "BatchMatrixDiagPart"], &PLAIN[..6], |op, dtype| Case::op(op).input(cycle(dtype, &[2, 3, 2])));
    part_of_vector: Case::op("MatrixDiagPart").input(vector(&[1])).fails(Code::InvalidArgument);
    parts: family(&["MatrixDiagPartV2", "MatrixDiagPartV3"], PLAIN, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 4]), vector(&[-1, 2]), numbers(dtype, &[], &[1.0])])
    });
    parts_aligned: family(&ALIGNMENTS, &PLAIN[..1], |align, dtype| {
        Case::op("MatrixDiagPartV3").attr("align", align).inputs([cycle(dtype, &[2, 3, 4]), vector(&[-2, 2]), numbers(dtype, &[], &[9.0])])
    });
    part_outside: Case::op("MatrixDiagPartV3").inputs([cycle(DataType::INT32, &[3, 4]), scalar(4), scalar(0)]).fails(Code::InvalidArgument);
    sets_first: family(&["MatrixSetDiag", "BatchMatrixSetDiag"], PLAIN, |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 4]), cycle(dtype, &[2, 3])])
    });
    sets: family(&["MatrixSetDiagV2", "MatrixSetDiagV3"], &PLAIN[..7], |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 4]), numbers(dtype, &[2, 2, 3], &[9.0; 12]), vector(&[-1, 0])])
    });
    sets_aligned: family(&ALIGNMENTS, &PLAIN[..1], |align, dtype| {
        Case::op("MatrixSetDiagV3").attr("align", align).inputs([cycle(dtype, &[3, 4]), numbers(dtype, &[4, 3], &[9.0, 8.0, 7.0, 9.0, 8.0, 7.0, 9.0, 8.0, 7.0, 9.0, 8.0, 7.0]), vector(&[-1, 2])])
    });
    set_misfit: Case::op("MatrixSetDiag").inputs([cycle(DataType::INT32, &[2, 3]), vector(&[1, 2, 3])]).fails(Code::InvalidArgument);
    set_misfit_band: Case::op("MatrixSetDiagV3").inputs([cycle(DataType::INT32, &[2, 3]), t(&[1, 2], &[1, 2]), vector(&[0, 1])]).fails(Code::InvalidArgument);
}
