//! `CTCLoss`: the negative log likelihood of label sequences (Graves 2006), and its gradient for the logits.
//!
//! The blank label is the last class. All sums of probabilities are sums of logarithms, in `f64`.

use crate::wide::{f64s, from_f64s, zeros};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

const CTC: Op = Op {
    name: "CTCLoss",
    shape,
    kernels: &[Kernel::native(run)],
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&CTC];

/// Logits `[time, batch, classes]`, labels as a sparse matrix `[batch, ..]`, and the length of each sequence.
fn shape(context: &mut ShapeContext) -> Result<()> {
    let inputs = context.input_with_rank(0, 3)?;
    let (indices, values) = (context.input_with_rank(1, 2)?, context.input_with_rank(2, 1)?);
    let lengths = context.input_with_rank(3, 1)?;
    dim::merge(indices.dim(0), values.dim(0))?;
    let batch = dim::merge(inputs.dim(1), lengths.dim(0))?;
    context.set_output(0, PartialShape::new(&[batch]));
    context.set_output(1, inputs.with_dim(1, batch)?);
    Ok(())
}

/// The labels of each sequence.
fn labels_of(indices: &[i64], values: &[i32], columns: usize, batch: usize) -> Result<Vec<Vec<i32>>> {
    let mut labels: Vec<Vec<i32>> = crate::wide::zeros(batch)?;
    let mut last = 0;
    for (index, &value) in indices.chunks_exact(columns.max(1)).zip(values) {
        let row = index[0];
        ensure!(
            (0..batch as i64).contains(&row),
            InvalidArgument,
            "labels batch index must be between 0 and {batch} but saw: {row}"
        );
        ensure!(
            row >= last,
            InvalidArgument,
            "labels indices must be ordered by batch"
        );
        last = row;
        labels[row as usize].push(value);
    }
    Ok(labels)
}

/// `ln(e^a + e^b)`.
fn log_sum(a: f64, b: f64) -> f64 {
    if a == f64::NEG_INFINITY {
        b
    } else if b == f64::NEG_INFINITY {
        a
    } else {
        a.max(b) + (a.min(b) - a.max(b)).exp().ln_1p()
    }
}

/// How labels and paths are read.
struct Rules {
    collapse: bool,
    merge: bool,
    ignore_longer: bool,
}

/// The labels with blanks between them. INVALID_ARGUMENT for labels that cannot be.
fn with_blanks(
    labels: &[i32],
    batch: usize,
    classes: usize,
    length: usize,
    rules: &Rules,
) -> Result<Vec<usize>> {
    ensure!(
        !labels.is_empty(),
        InvalidArgument,
        "Labels length is zero in batch {batch}"
    );
    let blank = classes - 1;
    let mut path = vec![blank];
    let mut ended = false;
    for (i, &label) in labels.iter().enumerate() {
        if i > 0 && rules.collapse && label == labels[i - 1] {
            continue;
        }
        if label >= blank as i32 {
            ended = true;
            continue;
        }
        ensure!(
            !ended,
            InvalidArgument,
            "Saw a non-null label (index >= num_classes - 1) following a null label, batch: {batch} num_classes: {classes} labels: {labels:?}"
        );
        ensure!(
            label >= 0,
            InvalidArgument,
            "All labels must be nonnegative integers, batch: {batch} labels: {labels:?}"
        );
        path.extend([label as usize, blank]);
    }
    ensure!(
        rules.ignore_longer || labels.len() <= length,
        InvalidArgument,
        "Not enough time for target transition sequence (required: {}, available: {length}){batch}You can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs",
        labels.len()
    );
    Ok(path)
}

/// A matrix of a row for each step.
struct Table {
    columns: usize,
    values: Vec<f64>,
}

impl Table {
    fn new(rows: usize, columns: usize, value: f64) -> Result<Table> {
        Ok(Table {
            columns,
            values: crate::wide::filled(rows * columns, value)?,
        })
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }

    fn set(&mut self, row: usize, column: usize, value: f64) {
        self.values[row * self.columns + column] = value;
    }
}

/// Positions of the path that lie on some way from its start to its end at step `t` of `steps`.
fn reachable(t: usize, steps: usize, path: usize) -> std::ops::Range<usize> {
    path.saturating_sub(2 * (steps - t))..path.min(2 * (t + 1))
}

/// Whether one may step over the position between `from` and `to`.
fn skips(path: &[usize], blank: usize, merge: bool, from: usize, to: usize) -> bool {
    path[to] != blank && !(merge && path[from] == path[to])
}

/// Logarithms of the sums over the first parts of all ways.
fn forward(path: &[usize], y: &Table, steps: usize, merge: bool, blank: usize) -> Result<Table> {
    let mut table = Table::new(steps, path.len(), f64::NEG_INFINITY)?;
    for (u, &label) in path.iter().enumerate().take(2) {
        table.set(0, u, y.at(0, label).ln());
    }
    for t in 1..steps {
        for u in reachable(t, steps, path.len()) {
            let mut sum = f64::NEG_INFINITY;
            if merge || path[u] == blank {
                sum = table.at(t - 1, u);
            }
            if u > 0 {
                sum = log_sum(sum, table.at(t - 1, u - 1));
            }
            if u > 1 && skips(path, blank, merge, u - 2, u) {
                sum = log_sum(sum, table.at(t - 1, u - 2));
            }
            table.set(t, u, y.at(t, path[u]).ln() + sum);
        }
    }
    Ok(table)
}

/// Logarithms of the sums over the last parts of all ways.
fn backward(path: &[usize], y: &Table, steps: usize, merge: bool, blank: usize) -> Result<Table> {
    let mut table = Table::new(steps, path.len(), f64::NEG_INFINITY)?;
    for u in path.len().saturating_sub(2)..path.len() {
        table.set(steps - 1, u, 0.0);
    }
    for t in (0..steps - 1).rev() {
        for u in reachable(t, steps, path.len()) {
            let next = |u: usize| table.at(t + 1, u) + y.at(t + 1, path[u]).ln();
            let mut sum = f64::NEG_INFINITY;
            if merge || path[u] == blank {
                sum = log_sum(sum, next(u));
            }
            if u + 1 < path.len() {
                sum = log_sum(sum, next(u + 1));
            }
            if u + 2 < path.len() && path[u] != blank && !(merge && path[u] == path[u + 2]) {
                sum = log_sum(sum, next(u + 2));
            }
            table.set(t, u, sum);
        }
    }
    Ok(table)
}

/// The loss of one sequence; its gradient for step `t` and class `c` goes to `gradient(t, c)`.
fn loss_of(
    path: &[usize],
    y: &Table,
    steps: usize,
    merge: bool,
    mut gradient: impl FnMut(usize, usize, f64),
) -> Result<f64> {
    let classes = y.columns;
    let (alpha, beta) = (
        forward(path, y, steps, merge, classes - 1)?,
        backward(path, y, steps, merge, classes - 1)?,
    );
    let total = (0..path.len())
        .map(|u| alpha.at(0, u) + beta.at(0, u))
        .fold(f64::NEG_INFINITY, log_sum);
    let mut sums: Vec<f64> = zeros(classes)?;
    for t in 0..steps {
        sums.fill(f64::NEG_INFINITY);
        for (u, &label) in path.iter().enumerate() {
            sums[label] = log_sum(sums[label], alpha.at(t, u) + beta.at(t, u));
        }
        for (c, &sum) in sums.iter().enumerate() {
            let share = if total == f64::NEG_INFINITY {
                0.0
            } else {
                (sum - total).exp()
            };
            gradient(t, c, y.at(t, c) - share);
        }
    }
    Ok(-total)
}

fn run(context: &mut KernelContext) -> Result<()> {
    let dims = context.input(0)?.dims().to_vec();
    let (time, batch, classes) = (dims[0] as usize, dims[1] as usize, dims[2] as usize);
    ensure!(
        time > 0 && batch > 0 && classes > 0,
        InvalidArgument,
        "inputs must not be empty, got {dims:?}"
    );
    let attrs = context.attrs();
    let rules = Rules {
        collapse: attrs.bool("preprocess_collapse_repeated")?,
        merge: attrs.bool("ctc_merge_repeated")?,
        ignore_longer: attrs.bool("ignore_longer_outputs_than_inputs")?,
    };
    let lengths = context.input_slice::<i32>(3)?;
    for (b, &length) in lengths.iter().enumerate() {
        ensure!(
            (0..=time as i64).contains(&i64::from(length)),
            InvalidArgument,
            "sequence_length({b}) <= {time}, got {length}"
        );
    }
    let indices = context.input(1)?;
    let columns = indices.dims()[1] as usize;
    ensure!(columns > 0, InvalidArgument, "labels_indices must have a column");
    let labels = labels_of(indices.as_slice()?, context.input_slice(2)?, columns, batch)?;
    let logits = f64s(context.input(0)?)?;
    let mut losses: Vec<f64> = zeros(batch)?;
    let mut gradients: Vec<f64> = zeros(logits.len())?;
    for (b, labels) in labels.iter().enumerate() {
        let length = lengths[b] as usize;
        let path = with_blanks(labels, b, classes, length, &rules)?;
        if length == 0 || (rules.ignore_longer && labels.len() > length) {
            continue;
        }
        let place = |t: usize| (t * batch + b) * classes;
        let mut y = Table::new(length, classes, 0.0)?;
        for t in 0..length {
            let row = &logits[place(t)..][..classes];
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
            for (c, x) in row.iter().enumerate() {
                y.set(t, c, (x - largest).exp() / sum);
            }
        }
        losses[b] = loss_of(&path, &y, length, rules.merge, |t, c, gradient| {
            gradients[place(t) + c] = gradient;
        })?;
    }
    let dtype = context.output_type(0);
    let losses = from_f64s(dtype, Shape::vector(batch), &losses)?;
    let gradients = from_f64s(dtype, Shape::new(&dims)?, &gradients)?;
    context.set_output(0, losses)?;
    context.set_output(1, gradients)
}

/// The op itself has made the gradient; each sequence's part is scaled.
fn gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, made) = (context.incoming_or_zeros(0)?, context.output(1));
    let dtype = context.input_type(0);
    let axis = context.constant(Tensor::scalar(-1i32)?)?;
    let attrs = Attrs::new().with("T", dtype).with("Tdim", DataType::INT32);
    let column = context.op("ExpandDims", &[incoming, axis], attrs)?;
    let gradient = crate::math::gradients::binary(context, "Mul", column, made)?;
    context.set(0, gradient);
    Ok(())
}

#[cfg(test)]
fn logits(dtype: DataType) -> Tensor {
    let values: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 13) / 4.0).collect();
    crate::testing::numbers(dtype, &[5, 2, 4], &values)
}

crate::op_cases! {
    ordinary: family(&["CTCLoss"], &[DataType::FLOAT, DataType::DOUBLE], |op, dtype| {
        Case::op(op).inputs([logits(dtype), t(&[4, 2], &[0i64, 0, 0, 1, 1, 0, 1, 1]), vector(&[1, 2, 0, 0]), vector(&[5, 4])])
    });
    not_merged: Case::op("CTCLoss").inputs([logits(DataType::FLOAT), t(&[4, 2], &[0i64, 0, 0, 1, 1, 0, 1, 1]), vector(&[1, 1, 0, 0]), vector(&[5, 4])])
        .attr("ctc_merge_repeated", false);
    collapsed: Case::op("CTCLoss").inputs([logits(DataType::FLOAT), t(&[4, 2], &[0i64, 0, 0, 1, 1, 0, 1, 1]), vector(&[1, 1, 0, 2]), vector(&[5, 4])])
        .attr("preprocess_collapse_repeated", true);
    longer_ignored: Case::op("CTCLoss").inputs([logits(DataType::FLOAT), t(&[4, 2], &[0i64, 0, 0, 1, 1, 0, 1, 1]), vector(&[1, 2, 0, 2]), vector(&[5, 1])])
        .attr("ignore_longer_outputs_than_inputs", true);
    longer: Case::op("CTCLoss").inputs([logits(DataType::FLOAT), t(&[4, 2], &[0i64, 0, 0, 1, 1, 0, 1, 1]), vector(&[1, 2, 0, 2]), vector(&[5, 1])])
        .fails(Code::InvalidArgument);
    no_labels: Case::op("CTCLoss").inputs([logits(DataType::FLOAT), t(&[2, 2], &[0i64, 0, 0, 1]), vector(&[1, 2]), vector(&[5, 4])])
        .fails(Code::InvalidArgument);
    too_long: Case::op("CTCLoss").inputs([logits(DataType::FLOAT), t(&[2, 2], &[0i64, 0, 1, 0]), vector(&[1, 2]), vector(&[5, 6])])
        .fails(Code::InvalidArgument);
    misfit: Case::op("CTCLoss").inputs([logits(DataType::FLOAT), t(&[2, 2], &[0i64, 0, 1, 0]), vector(&[1, 2, 3]), vector(&[5, 4])])
        .fails(Code::InvalidArgument);
}
