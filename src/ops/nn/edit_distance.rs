//! `EditDistance`: how many insertions, removals and replacements make one sequence of another.
//!
//! Both inputs are sparse; the sequences lie along the last axis.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};
use std::collections::BTreeMap;

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "EditDistance",
    shape,
    kernels: &[Kernel::native(run)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

fn shape(context: &mut ShapeContext) -> Result<()> {
    for first in [0, 3] {
        let (indices, values) = (
            context.input_with_rank(first, 2)?,
            context.input_with_rank(first + 1, 1)?,
        );
        dim::merge(indices.dim(0), values.dim(0))?;
        let dims = context.input_with_rank(first + 2, 1)?;
        dim::merge(indices.dim(1), dims.dim(0))?;
    }
    let (hypothesis, truth) = (context.input_as_i64s(2)?, context.input_as_i64s(5)?);
    if let (Some(hypothesis), Some(truth)) = (hypothesis, truth) {
        let dims = output_dims(&hypothesis, &truth)?;
        context.set_output(0, PartialShape::new(&dims));
    }
    Ok(())
}

/// The larger extent of each axis but the last.
fn output_dims(hypothesis: &[i64], truth: &[i64]) -> Result<Vec<i64>> {
    ensure!(
        hypothesis.len() >= 2 && truth.len() >= 2,
        InvalidArgument,
        "Input SparseTensors must have rank at least 2, but ranks are {} and {}",
        hypothesis.len(),
        truth.len()
    );
    ensure!(
        hypothesis.len() == truth.len(),
        InvalidArgument,
        "Expected hypothesis_shape and truth_shape to be equal in rank, got {} and {}",
        hypothesis.len(),
        truth.len()
    );
    let last = truth.len() - 1;
    Ok((0..last).map(|axis| hypothesis[axis].max(truth[axis])).collect())
}

/// Elements of each sequence, by the sequence's place: numbers of the input's elements.
fn sequences(context: &KernelContext, first: usize) -> Result<BTreeMap<Vec<i64>, Vec<usize>>> {
    let indices = context.input(first)?;
    let columns = indices.dims()[1] as usize;
    ensure!(
        columns > 0,
        InvalidArgument,
        "indices must have at least one column"
    );
    let mut sequences: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
    for (element, index) in indices.as_slice::<i64>()?.chunks_exact(columns).enumerate() {
        sequences
            .entry(index[..columns - 1].to_vec())
            .or_default()
            .push(element);
    }
    Ok(sequences)
}

/// Whether elements `i` of the hypothesis and `j` of the truth are equal.
fn equal(hypothesis: &Tensor, truth: &Tensor, i: usize, j: usize) -> Result<bool> {
    if truth.dtype() == DataType::STRING {
        return Ok(hypothesis.strings()?[i] == truth.strings()?[j]);
    }
    if truth.dtype().is_floating() || truth.dtype().is_complex() {
        return same_number(hypothesis, truth, i, j);
    }
    let size = truth.dtype().size();
    let element = |tensor: &Tensor, at: usize| tensor.bytes()[at * size..][..size].to_vec();
    Ok(element(hypothesis, i) == element(truth, j))
}

/// Zeros of both signs are equal, NaNs are not.
fn same_number(a: &Tensor, b: &Tensor, i: usize, j: usize) -> Result<bool> {
    use ff_tensor::{Complex64, Complex128, bf16, f16};
    crate::match_type!(a.dtype(), (f32, f64, f16, bf16, Complex64, Complex128), T => {
        Ok(a.as_slice::<T>()?[i] == b.as_slice::<T>()?[j])
    })
}

/// The distance of Levenshtein, one row of the table at a time.
fn distance(
    truth: &[usize],
    hypothesis: &[usize],
    same: impl Fn(usize, usize) -> Result<bool>,
) -> Result<usize> {
    let mut row: Vec<usize> = (0..=truth.len()).collect();
    for (i, &h) in hypothesis.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &t) in truth.iter().enumerate() {
            let replaced = diagonal + usize::from(!same(h, t)?);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    Ok(row[truth.len()])
}

fn run(context: &mut KernelContext) -> Result<()> {
    let normalize = context.attrs().bool("normalize")?;
    let (left, right) = (context.input_i64s(2)?, context.input_i64s(5)?);
    let dims = output_dims(&left, &right)?;
    ensure!(
        left.iter().chain(&right).all(|&extent| extent >= 0),
        InvalidArgument,
        "shapes must not be negative: {dims:?}"
    );
    let (hypotheses, truths) = (sequences(context, 0)?, sequences(context, 3)?);
    let mut output = Tensor::zeros(DataType::FLOAT, Shape::new(&dims)?)?;
    let (hypothesis, truth) = (context.input(1)?, context.input(4)?);
    let values = output.as_mut_slice::<f32>()?;
    let places: std::collections::BTreeSet<&Vec<i64>> = hypotheses.keys().chain(truths.keys()).collect();
    for place in places {
        let mut at = 0;
        for (&index, &extent) in place.iter().zip(&dims) {
            at = i64::wrapping_add(i64::wrapping_mul(at, extent), index);
        }
        // Indices of an axis may lie beyond its extent, as long as the output has the place that they come to.
        ensure!(
            (0..values.len() as i64).contains(&at),
            Internal,
            "Index {place:?} is outside of the output of shape {dims:?}"
        );
        let none = Vec::new();
        let h = hypotheses.get(place).unwrap_or(&none);
        let t = truths.get(place).unwrap_or(&none);
        let count = distance(t, h, |i, j| equal(hypothesis, truth, i, j))? as f32;
        values[at as usize] = match (normalize, t.len()) {
            (false, _) => count,
            (true, 0) => f32::INFINITY,
            (true, length) => count / length as f32,
        };
    }
    context.set_output(0, output)
}

crate::op_cases! {
    beyond_an_axis: Case::op("EditDistance").attr("normalize", false)
        .inputs([t(&[1, 3], &[2i64, 2, 2]), vector(&[7]), vector(&[0i64, 0, 0])]).inputs([t(&[1, 3], &[0i64, 0, 0]), vector(&[7]), vector(&[4i64, 2, 4])])
        .gives(t(&[4, 2], &[1.0f32, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]));
    negative_extents: Case::op("EditDistance")
        .inputs([t(&[1, 2], &[0i64, 0]), vector(&[7]), vector(&[-1i64, 3])]).inputs([t(&[1, 2], &[0i64, 0]), vector(&[7]), vector(&[4i64, 2])]).fails(Code::InvalidArgument);
    characters: Case::op("EditDistance")
        .inputs([t(&[6, 2], &[0i64, 0, 0, 1, 0, 2, 1, 0, 1, 1, 3, 0]), strings(&[6], &["a", "b", "c", "x", "y", "q"]), vector(&[4i64, 3])])
        .inputs([t(&[5, 2], &[0i64, 0, 0, 1, 1, 0, 1, 1, 2, 0]), strings(&[5], &["a", "c", "y", "y", "z"]), vector(&[4i64, 2])]);
    not_normalized: family(&["EditDistance"], &[FRACTIONS, &INTEGERS[..6]].concat(), |op, dtype| {
        Case::op(op).attr("normalize", false)
            .inputs([t(&[4, 2], &[0i64, 0, 0, 1, 1, 0, 2, 0]), numbers(dtype, &[4], &[1.0, 2.0, 3.0, 4.0]), vector(&[3i64, 3])])
            .inputs([t(&[4, 2], &[0i64, 0, 0, 1, 0, 2, 1, 0]), numbers(dtype, &[4], &[1.0, 3.0, 2.0, 3.0]), vector(&[2i64, 3])])
    });
    nothing: Case::op("EditDistance")
        .inputs([t::<i64>(&[0, 2], &[]), vector::<i64>(&[]), vector(&[2i64, 3])]).inputs([t::<i64>(&[0, 2], &[]), vector::<i64>(&[]), vector(&[2i64, 3])]);
    outside: Case::op("EditDistance").fails(Code::Internal)
        .inputs([t(&[1, 2], &[5i64, 0]), vector(&[1i64]), vector(&[2i64, 3])]).inputs([t::<i64>(&[0, 2], &[]), vector::<i64>(&[]), vector(&[2i64, 3])]);
    misfit: Case::op("EditDistance").fails(Code::InvalidArgument)
        .inputs([t(&[1, 2], &[0i64, 0]), vector(&[1i64]), vector(&[2i64, 3])]).inputs([t::<i64>(&[0, 3], &[]), vector::<i64>(&[]), vector(&[2i64, 3, 2])]);
}
