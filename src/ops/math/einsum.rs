//! Einstein sums of one or two operands, as transpositions, a product over batches, and sums.

use ff_hlo::{Builder, Dims, DotDims, Op as HloOp};
use ff_op::{Gradient, Kernel, LowerContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, bail, dim, ensure};

/// Sums of products by an equation.
pub static EINSUM: Op = Op {
    name: "Einsum",
    shape,
    kernels: &[Kernel::FROM_LOWERING],
    lower: Some(lower),
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[&EINSUM];

/// An axis of an operand: a letter, or one of the axes that `...` stands for, counted from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Letter(char),
    Ellipsis(usize),
}

/// An equation with its labels, not yet matched with ranks.
struct Equation {
    inputs: Vec<String>,
    output: String,
}

fn parse(text: &str) -> Result<Equation> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let Some((inputs, output)) = text.split_once("->") else {
        bail!(
            InvalidArgument,
            "Expecting exactly one '->' in einsum equation: {text}"
        );
    };
    let inputs: Vec<String> = inputs.split(',').map(str::to_string).collect();
    ensure!(
        (1..=2).contains(&inputs.len()),
        InvalidArgument,
        "Expecting 1 or 2 input subscripts in equation '{text}' but got: {}",
        inputs.len()
    );
    Ok(Equation {
        inputs,
        output: output.to_string(),
    })
}

/// The labels of a subscript for an operand of this rank. INVALID_ARGUMENT when they do not go together.
fn labels(subscript: &str, rank: usize) -> Result<Vec<Label>> {
    let letters = subscript.chars().filter(|&c| c != '.').count();
    let has_ellipsis = subscript.contains("...");
    ensure!(
        subscript.chars().all(|c| c.is_ascii_alphabetic() || c == '.')
            && subscript.matches('.').count() == if has_ellipsis { 3 } else { 0 },
        InvalidArgument,
        "Invalid einsum subscript: {subscript}"
    );
    ensure!(
        if has_ellipsis {
            letters <= rank
        } else {
            letters == rank
        },
        InvalidArgument,
        "Expected input to have rank {letters}{} but got: {rank} for subscript {subscript}",
        if has_ellipsis { " or more" } else { "" }
    );
    let (before, after) = subscript.split_once("...").unwrap_or((subscript, ""));
    let hidden = rank - letters;
    let mut all: Vec<Label> = before.chars().map(Label::Letter).collect();
    all.extend((0..hidden).rev().map(Label::Ellipsis));
    all.extend(after.chars().map(Label::Letter));
    Ok(all)
}

/// The labels of the output, when its `...` stands for this many axes.
fn output_labels(subscript: &str, hidden: usize) -> Result<Vec<Label>> {
    let letters = subscript.chars().filter(|&c| c != '.').count();
    let has_ellipsis = subscript.contains("...");
    let all = labels(subscript, letters + if has_ellipsis { hidden } else { 0 })?;
    for (i, label) in all.iter().enumerate() {
        ensure!(
            !all[..i].contains(label),
            InvalidArgument,
            "einsum output {subscript} repeats a label"
        );
    }
    Ok(all)
}

fn hidden_axes(all: &[Vec<Label>]) -> usize {
    all.iter()
        .map(|list| {
            list.iter()
                .filter(|label| matches!(label, Label::Ellipsis(_)))
                .count()
        })
        .max()
        .unwrap_or(0)
}

fn shape(context: &mut ShapeContext) -> Result<()> {
    let equation = parse(context.attrs().string("equation")?)?;
    ensure!(
        equation.inputs.len() == context.num_inputs(),
        InvalidArgument,
        "Expected {} inputs for einsum, got {}",
        equation.inputs.len(),
        context.num_inputs()
    );
    let mut all = Vec::new();
    for (subscript, input) in equation.inputs.iter().zip(context.inputs()) {
        let Some(rank) = input.rank() else { return Ok(()) };
        all.push(labels(subscript, rank)?);
    }
    let output = output_labels(&equation.output, hidden_axes(&all))?;
    let mut dims = Vec::with_capacity(output.len());
    for label in output {
        let mut extent = None;
        for (list, input) in all.iter().zip(context.inputs()) {
            for (axis, _) in list.iter().enumerate().filter(|(_, other)| **other == label) {
                let next = input.dim(axis as i64);
                extent = Some(match (extent, label) {
                    (None, _) => next,
                    (Some(1), Label::Ellipsis(_)) => next,
                    (Some(known), Label::Ellipsis(_)) if next == 1 => known,
                    (Some(known), _) => dim::merge(known, next)?,
                });
            }
        }
        match extent {
            Some(extent) => dims.push(extent),
            None => bail!(
                InvalidArgument,
                "einsum output names a label that no input has: {}",
                equation.output
            ),
        }
    }
    context.set_output(0, PartialShape::new(&dims));
    Ok(())
}

/// An operand with its labels, one per axis and no label twice.
struct Operand {
    value: HloOp,
    labels: Vec<Label>,
}

fn position(labels: &[Label], label: Label) -> Option<usize> {
    labels.iter().position(|other| *other == label)
}

/// Sums away the axes whose labels are not kept.
fn sum_unless(builder: &mut Builder, operand: Operand, keep: impl Fn(Label) -> bool) -> Result<Operand> {
    let axes: Vec<i64> = operand
        .labels
        .iter()
        .enumerate()
        .filter(|(_, label)| !keep(**label))
        .map(|(axis, _)| axis as i64)
        .collect();
    if axes.is_empty() {
        return Ok(operand);
    }
    let value = builder.reduce_sum(operand.value, &axes)?;
    Ok(Operand {
        value,
        labels: operand.labels.into_iter().filter(|label| keep(*label)).collect(),
    })
}

/// Takes the diagonal of axes that share a label: elsewhere the operand is made zero, then it is summed.
fn diagonal(builder: &mut Builder, mut operand: Operand) -> Result<Operand> {
    while let Some((second, label)) = operand
        .labels
        .iter()
        .copied()
        .enumerate()
        .find(|(axis, label)| operand.labels[..*axis].contains(label))
    {
        let first = position(&operand.labels, label).unwrap_or(0);
        let dims = builder.dims(operand.value).to_vec();
        let rows = builder.iota(ff_tensor::DataType::INT32, &dims, first)?;
        let columns = builder.iota(ff_tensor::DataType::INT32, &dims, second)?;
        let on = builder.compare(ff_hlo::Direction::Eq, rows, columns)?;
        let dtype = builder.dtype(operand.value);
        let zeros = builder.full(dtype, &dims, 0.0)?;
        let masked = builder.select(on, operand.value, zeros)?;
        operand.value = builder.reduce_sum(masked, &[second as i64])?;
        operand.labels.remove(second);
    }
    Ok(operand)
}

fn lower(context: &mut LowerContext) -> Result<()> {
    let equation = parse(context.attrs().string("equation")?)?;
    let mut operands = Vec::new();
    for (index, subscript) in equation.inputs.iter().enumerate() {
        let value = context.input(index)?;
        let labels = labels(subscript, context.builder.rank(value))?;
        operands.push(diagonal(context.builder, Operand { value, labels })?);
    }
    let all: Vec<Vec<Label>> = operands.iter().map(|operand| operand.labels.clone()).collect();
    let output = output_labels(&equation.output, hidden_axes(&all))?;
    let builder = &mut *context.builder;
    let result = match <[Operand; 2]>::try_from(operands) {
        Ok([a, b]) => product(builder, a, b, &output)?,
        Err(mut operands) => match operands.pop() {
            Some(operand) => sum_unless(builder, operand, |label| output.contains(&label))?,
            None => bail!(Internal, "einsum without inputs"),
        },
    };
    let result = arrange(builder, result, &output)?;
    context.set_output(0, result);
    Ok(())
}

fn product(builder: &mut Builder, a: Operand, b: Operand, output: &[Label]) -> Result<Operand> {
    let (a_labels, b_labels) = (a.labels.clone(), b.labels.clone());
    let a = sum_unless(builder, a, |label| {
        output.contains(&label) || b_labels.contains(&label)
    })?;
    let b = sum_unless(builder, b, |label| {
        output.contains(&label) || a_labels.contains(&label)
    })?;
    let (a, b) = (drop_ones(builder, a, &b)?, b);
    let b = drop_ones(builder, b, &a)?;
    let mut dims = DotDims::default();
    let mut labels = Vec::new();
    for (axis, label) in a.labels.iter().enumerate() {
        let Some(other) = position(&b.labels, *label) else {
            continue;
        };
        let (left, right): (&mut Dims, &mut Dims) = if output.contains(label) {
            labels.push(*label);
            (&mut dims.lhs_batch, &mut dims.rhs_batch)
        } else {
            (&mut dims.lhs_contracting, &mut dims.rhs_contracting)
        };
        left.push(axis as i64);
        right.push(other as i64);
    }
    labels.extend(a.labels.iter().filter(|label| !b.labels.contains(label)));
    labels.extend(b.labels.iter().filter(|label| !a.labels.contains(label)));
    Ok(Operand {
        value: builder.dot_general(a.value, b.value, dims, None)?,
        labels,
    })
}

/// Drops axes of extent 1 whose label has another extent in the other operand: they broadcast.
fn drop_ones(builder: &mut Builder, operand: Operand, other: &Operand) -> Result<Operand> {
    let (dims, other_dims) = (
        builder.dims(operand.value).to_vec(),
        builder.dims(other.value).to_vec(),
    );
    let keeps = |axis: usize| {
        let extent = position(&other.labels, operand.labels[axis]).map(|place| other_dims[place]);
        dims[axis] != 1 || extent.is_none_or(|extent| extent == 1)
    };
    let kept: Vec<usize> = (0..dims.len()).filter(|&axis| keeps(axis)).collect();
    if kept.len() == dims.len() {
        return Ok(operand);
    }
    let value = builder.reshape(
        operand.value,
        &kept.iter().map(|&axis| dims[axis]).collect::<Vec<_>>(),
    )?;
    Ok(Operand {
        value,
        labels: kept.into_iter().map(|axis| operand.labels[axis]).collect(),
    })
}

/// The axes in the order of the output.
fn arrange(builder: &mut Builder, operand: Operand, output: &[Label]) -> Result<HloOp> {
    let mut permutation = Vec::with_capacity(output.len());
    for label in output {
        match position(&operand.labels, *label) {
            Some(axis) => permutation.push(axis as i64),
            None => bail!(InvalidArgument, "einsum output names a label that no input has"),
        }
    }
    builder.transpose(operand.value, &permutation)
}

crate::op_cases! {
    products: family(&["Einsum"], &[FRACTIONS, &SIGNED[2..]].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 3, 4]), cycle(dtype, &[4, 5])]).attr("equation", "abc,cd->abd")
    });
    heads: Case::op("Einsum").inputs([cycle(DataType::FLOAT, &[2, 3, 2, 4]), cycle(DataType::FLOAT, &[2, 5, 2, 4])])
        .attr("equation", "aecd,abcd->acbe");
    traces: Case::op("Einsum").input(cycle(DataType::FLOAT, &[3, 3])).attr("equation", "ii->");
    diagonals: Case::op("Einsum").input(cycle(DataType::FLOAT, &[2, 3, 3])).attr("equation", "...ii->i...");
    ellipses: Case::op("Einsum").inputs([cycle(DataType::FLOAT, &[2, 1, 3]), cycle(DataType::FLOAT, &[4, 3])]).attr("equation", "...i,...i->...");
    malformed: Case::op("Einsum").input(cycle(DataType::FLOAT, &[3, 3])).attr("equation", "ij-i").fails(Code::InvalidArgument);
    misfits: Case::op("Einsum").inputs([cycle(DataType::FLOAT, &[2, 3]), cycle(DataType::FLOAT, &[2, 3])]).attr("equation", "ij,jk->ik")
        .fails(Code::InvalidArgument);
}
