//! Drawing classes by unnormalised log-probabilities: `Multinomial`, `StatelessMultinomial`.

use super::stream::reserve;
use super::words::Words;
use ff_kernels::random::{Philox, stateful_steps};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Multinomial",
        shape,
        kernels: &[Kernel::native(stateful)],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
    &Op {
        name: "StatelessMultinomial",
        shape: |context| {
            super::stateless::check_seed(context, 2)?;
            shape(context)
        },
        kernels: &[Kernel::native(stateless)],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

fn shape(context: &mut ShapeContext) -> Result<()> {
    let logits = context.input_with_rank(0, 2)?;
    context.input_with_rank(1, 0)?;
    let samples = context.input_as_scalar(1)?.filter(|&samples| samples >= 0);
    let samples = samples.unwrap_or(dim::UNKNOWN);
    context.set_output(0, PartialShape::new(&[logits.dim(0), samples]));
    Ok(())
}

/// Draws of each row.
fn sample_count(context: &KernelContext) -> Result<usize> {
    let samples = context.input_i64(1)?;
    ensure!(
        samples >= 0,
        InvalidArgument,
        "num_samples should be non-negative, got {samples}"
    );
    let classes = context.input(0)?.dims()[1];
    ensure!(
        classes > 0,
        InvalidArgument,
        "num_classes should be positive, got {classes}"
    );
    Ok(samples as usize)
}

/// Steps set aside for the draws of all rows; a draw takes two words.
fn steps(context: &KernelContext, samples: usize) -> Result<u64> {
    let rows = context.input(0)?.dims()[0] as usize;
    Ok(stateful_steps(rows * samples.div_ceil(4) * 8))
}

fn stateful(context: &mut KernelContext) -> Result<()> {
    let samples = sample_count(context)?;
    let philox = reserve(context, steps(context, samples)?)?;
    draw(context, philox, samples)
}

fn stateless(context: &mut KernelContext) -> Result<()> {
    let samples = sample_count(context)?;
    draw(context, super::stateless::seed(context, 2)?, samples)
}

fn draw(context: &mut KernelContext, philox: Philox, samples: usize) -> Result<()> {
    let logits = context.input(0)?;
    let (rows, classes) = (logits.dims()[0], logits.dims()[1] as usize);
    let mut words = Words::new(philox);
    let mut drawn = Vec::new();
    let mut cumulative = Vec::new();
    let total = Shape::new(&[rows, samples as i64])?.num_elements();
    drawn
        .try_reserve_exact(total)
        .map_err(|_| ff_tensor::status!(ResourceExhausted, "no memory for {total} samples"))?;
    for row in super::as_f64s(logits)?.chunks(classes.max(1)) {
        accumulate(row, &mut cumulative);
        let sum = cumulative.last().copied().unwrap_or(0.0);
        for _ in 0..samples {
            let wanted = words.next_double() * sum;
            drawn.push(cumulative.partition_point(|&edge| edge <= wanted) as i64);
        }
    }
    let shape = Shape::new(&[rows, samples as i64])?;
    let output = match context.output_type(0) {
        DataType::INT32 => Tensor::from_slice(shape, &drawn.iter().map(|&x| x as i32).collect::<Vec<_>>())?,
        _ => Tensor::from_slice(shape, &drawn)?,
    };
    context.set_output(0, output)
}

/// The upper edge of each class on a line; infinite and undefined logits take no place.
fn accumulate(logits: &[f64], edges: &mut Vec<f64>) {
    let finite = logits.iter().copied().filter(|x| x.is_finite());
    let max = finite.fold(f64::MIN, f64::max);
    let mut total = 0.0;
    edges.clear();
    edges.extend(logits.iter().map(|&x| {
        total += if x.is_finite() { (x - max).exp() } else { 0.0 };
        total
    }));
}

crate::op_cases! {
    stateless_as_in_the_reference: Case::op("StatelessMultinomial")
        .input(t(&[2, 3], &[0.0f32, 1.0, 2.0, 3.0, 1.0, f32::NEG_INFINITY])).input(scalar(6)).input(vector(&[1, 2]))
        .gives(t(&[2, 6], &[2i64, 2, 1, 2, 2, 2, 0, 0, 0, 0, 0, 0]));
    as_in_the_reference: Case::op("Multinomial").attr("seed", 7i64).attr("seed2", 11i64)
        .input(t(&[2, 3], &[0.0f32, 1.0, 2.0, 3.0, 1.0, f32::NEG_INFINITY])).input(scalar(6))
        .gives(t(&[2, 6], &[1i64, 2, 2, 2, 1, 2, 0, 0, 0, 0, 0, 0]));
    no_samples: Case::op("Multinomial").input(t(&[1, 1], &[0.0f64])).input(scalar(0)).gives(t::<i64>(&[1, 0], &[]));
    nothing_to_draw_from: Case::op("Multinomial").input(t::<f32>(&[0, 0], &[])).input(scalar(0)).fails(Code::InvalidArgument);
    no_classes: Case::op("Multinomial").input(t::<f32>(&[2, 0], &[])).input(scalar(1)).fails(Code::InvalidArgument);
    negative_count: Case::op("Multinomial").input(t(&[1, 1], &[0.0f32])).input(scalar(-1))
        .fails(Code::InvalidArgument);
    needs_a_matrix: Case::op("Multinomial").input(vector(&[0.0f32])).input(scalar(1)).fails(Code::InvalidArgument);
}
