//! Normal numbers between bounds, with parameters for each batch: by rejection, after Robert, "Simulation of truncated
//! normal variables" (1995).

use super::stream::reserve;
use ff_kernels::random::{Distribution, Normal, Philox, Uniform};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, bail, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "ParameterizedTruncatedNormal",
        shape: |context| {
            for index in 1..5 {
                context.input_with_rank_at_most(index, 1)?;
            }
            super::shape_from_input(context)
        },
        kernels: &[Kernel::native(drawn)],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
    &Op {
        name: "StatelessParameterizedTruncatedNormal",
        shape: by_seed_shape,
        kernels: &[Kernel::native(by_seed)],
        lower: Some(crate::host_call::lower),
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

/// Turns after which a sample is taken as it is.
const MOST_TURNS: u64 = 1000;
/// So many deviations within the bounds make plain normal samples the cheapest.
const PLAIN: f64 = 1.3;

/// Mean, deviation, lower and upper bound.
type Parameters = [f64; 4];

/// A type that samples are computed in.
macro_rules! sampler {
    ($function:ident, $type:ty) => {
        /// Fills `output` with samples, each put in place by `emit`.
        fn $function(
            philox: &mut Philox,
            parameters: Parameters,
            count: usize,
            emit: &mut dyn FnMut(usize, f64),
        ) -> Result<()> {
            let [mean, mut deviation, mut low, mut high] = parameters.map(|x| x as $type);
            ensure!(
                deviation > 0.0 && low < high && (low.is_finite() || high.is_finite()),
                InvalidArgument,
                "Invalid parameters"
            );
            if (low.is_infinite() && low < 0.0) || high < mean {
                (low, high) = (high, low);
                deviation = -deviation;
            }
            let (low, high) = ((low - mean) / deviation, (high - mean) / deviation);
            let root = (low * low + 4.0).sqrt();
            let cutoff = 2.0 * (0.5 + (low * (low - root)) / 4.0).exp() / (low + root);
            let plain = PLAIN as $type;
            let size = <Uniform as Distribution<$type>>::ELEMENTS;
            let (mut done, mut turns) = (0, 0);
            let mut accept = |value: $type, good: bool, done: &mut usize| {
                if good || turns + 1 >= MOST_TURNS {
                    emit(*done, f64::from(value * deviation + mean));
                    *done += 1;
                    turns = 0;
                } else {
                    turns += 1;
                }
            };
            if (low < -plain && high >= 0.0) || (high > plain && low <= 0.0) {
                while done < count {
                    let sample: [$type; 4] = Normal.sample(philox.step());
                    for &x in &sample[..size] {
                        if done < count {
                            accept(x, x >= low && x <= high, &mut done);
                        }
                    }
                }
            } else if high - low < cutoff {
                let plus = if low < 0.0 { 0.0 } else { low * low };
                while done < count {
                    let first: [$type; 4] = Uniform.sample(philox.step());
                    let second: [$type; 4] = Uniform.sample(philox.step());
                    for (&x, &u) in first[..size].iter().zip(&second) {
                        let z = x * (high - low) + low;
                        if done < count {
                            accept(z, u <= ((plus - z * z) / 2.0).exp(), &mut done);
                        }
                    }
                }
            } else {
                let alpha = (low + (low * low + 4.0).sqrt()) / 2.0;
                while done < count {
                    let sample: [$type; 4] = Uniform.sample(philox.step());
                    for pair in sample[..size].chunks(2) {
                        let z = -pair[0].ln() / alpha + low;
                        let x = if low < alpha { alpha - z } else { low - alpha };
                        if done < count {
                            accept(z, pair[1] <= (-x * x / 2.0).exp() && z < high, &mut done);
                        }
                    }
                }
            }
            Ok(())
        }
    };
}
sampler!(sample_f32, f32);
sampler!(sample_f64, f64);

fn sample(
    dtype: DataType,
    philox: &mut Philox,
    parameters: Parameters,
    count: usize,
    emit: &mut dyn FnMut(usize, f64),
) -> Result<()> {
    match dtype {
        DataType::DOUBLE => sample_f64(philox, parameters, count, emit),
        _ => sample_f32(philox, parameters, count, emit),
    }
}

/// Steps set aside for batches.
fn stride(batch: u64, samples: u64) -> u64 {
    batch * 2 * MOST_TURNS * (samples + 3) / 4
}

/// The first axis of the shape is that of the batches, if any parameter has more than one entry.
fn drawn(context: &mut KernelContext) -> Result<()> {
    let dims = context.input_i64s(0)?;
    ensure!(
        context.input(0)?.rank() == 1,
        InvalidArgument,
        "Input shape should be a vector, got shape: {}",
        context.input(0)?.shape()
    );
    ensure!(
        !dims.is_empty(),
        InvalidArgument,
        "Shape tensor must not be empty, got {}",
        context.input(0)?.shape()
    );
    if let Some(bad) = dims.iter().find(|&&dim| dim < 0) {
        bail!(InvalidArgument, "Dimension {bad} must be >= 0");
    }
    let shape = Shape::new(&dims)?;
    let total = shape.num_elements();
    let all: Vec<Vec<f64>> = (1..5)
        .map(|index| super::as_f64s(context.input(index)?))
        .collect::<Result<_>>()?;
    let mut batches = dims[0] as u64;
    for (values, name) in all.iter().zip(["means", "stdevs", "minvals", "maxvals"]) {
        ensure!(
            values.len() == 1 || values.len() as u64 == batches,
            InvalidArgument,
            "Input {name} should have length 1 or shape[0], got shape: [{}]",
            values.len()
        );
    }
    let mut samples = (total as u64).checked_div(batches).unwrap_or(0);
    let are_scalars = context.input(3)?.rank() == 0 && context.input(4)?.rank() == 0;
    if are_scalars && all.iter().all(|values| values.len() == 1) {
        // One batch's parameters for all, which the reference tells by the bounds: batches of a size that is good for threads.
        samples = DESIRED_BATCH;
        batches = (total as u64).div_ceil(samples);
    }
    let dtype = context.output_type(0);
    let mut values = crate::wide::zeros(total)?;
    if total > 0 {
        // Batches follow each other in the stream; each begins with a new step.
        let mut philox = reserve(context, stride(batches, samples))?;
        for batch in 0..batches {
            let first = (batch * samples) as usize;
            let count = (samples as usize).min(total - first);
            let own: Vec<f64> = all
                .iter()
                .map(|values| values[if values.len() == 1 { 0 } else { batch as usize }])
                .collect();
            sample(
                dtype,
                &mut philox,
                [own[0], own[1], own[2], own[3]],
                count,
                &mut |at, x| values[first + at] = x,
            )?;
        }
    }
    let output = <f64 as crate::linalg::Field>::tensor(dtype, shape, &values)?;
    context.set_output(0, output)
}

/// Samples of a batch where all batches have the same parameters.
const DESIRED_BATCH: u64 = 100;

fn by_seed_shape(context: &mut ShapeContext) -> Result<()> {
    super::stateless::check_seed(context, 1)?;
    let shape = context.input_as_shape(0)?;
    let mut joint = PartialShape::scalar();
    for index in 2..6 {
        joint = ff_op::shapes::broadcast(&joint, &context.input(index))?;
    }
    if let (Some(rank), Some(own)) = (shape.rank(), joint.rank()) {
        ensure!(
            own <= rank && shape.slice((rank - own) as i64, None).is_compatible_with(&joint),
            InvalidArgument,
            "Shape passed in must end with broadcasted shape."
        );
    }
    context.set_output(0, shape);
    Ok(())
}

/// The last axes are those of the parameters, broadcast; samples of each follow on the axes before.
fn by_seed(context: &mut KernelContext) -> Result<()> {
    let mut philox = super::stateless::stream(context, false)?;
    let shape = context.output_shape(0)?.clone();
    let mut joint = PartialShape::scalar();
    let mut all = Vec::new();
    for index in 2..6 {
        let tensor = context.input(index)?;
        joint = ff_op::shapes::broadcast(&joint, &tensor.partial_shape())?;
        all.push((super::as_f64s(tensor)?, tensor.dims().to_vec()));
    }
    let dims = joint.dims().unwrap_or_default();
    let batches: i64 = dims.iter().product();
    let (batches, total) = (batches as usize, shape.num_elements());
    let samples = total.checked_div(batches).unwrap_or(0);
    let dtype = context.output_type(0);
    let mut values = crate::wide::zeros(total)?;
    for batch in 0..batches.min(total) {
        let own: Vec<f64> = all
            .iter()
            .map(|parameter| super::sampled::element(parameter, dims, batch))
            .collect();
        let parameters = [own[0], own[1], own[2], own[3]];
        sample(dtype, &mut philox, parameters, samples, &mut |at, x| {
            values[at * batches + batch] = x
        })?;
    }
    let output = <f64 as crate::linalg::Field>::tensor(dtype, shape, &values)?;
    context.set_output(0, output)
}

#[cfg(test)]
fn case(dims: &[i32], dtype: DataType, all: [&[f64]; 4]) -> crate::testing::Case {
    use crate::testing::{Case, numbers, vector};
    let parameter = |values: &&[f64]| numbers(dtype, &[values.len() as i64], values);
    Case::op("ParameterizedTruncatedNormal")
        .input(vector(dims))
        .inputs(all.iter().map(parameter))
        .attr("seed", 7i64)
        .attr("seed2", 11i64)
}

#[cfg(test)]
fn seeded(dims: &[i32], dtype: DataType, extents: &[i64], all: [&[f64]; 4]) -> crate::testing::Case {
    use crate::testing::{Case, numbers, vector};
    let parameter = |values: &&[f64]| {
        let own: &[i64] = if values.len() == 1 { &[] } else { extents };
        numbers(dtype, own, values)
    };
    Case::op("StatelessParameterizedTruncatedNormal")
        .inputs([vector(dims), vector(&[1, 2])])
        .inputs(all.iter().map(parameter))
}

crate::op_cases! {
    drawn_by_a_matrix: Case::op("ParameterizedTruncatedNormal").inputs([t(&[1, 1], &[0]), vector::<f32>(&[]), vector::<f32>(&[]), vector::<f32>(&[]), vector::<f32>(&[])])
        .fails(Code::InvalidArgument);
    drawn_with_lists_of_one: Case::op("ParameterizedTruncatedNormal").attr("seed", 7i64).attr("seed2", 11i64)
        .inputs([vector(&[2]), vector(&[1.0f32]), scalar(1.0f32), scalar(-2.0f32), scalar(2.0f32)]).gives(vector(&[0.463_965_54f32, 0.083_500_09]));
    drawn_with_bounds_in_lists: Case::op("ParameterizedTruncatedNormal").attr("seed", 7i64).attr("seed2", 11i64)
        .inputs([vector(&[4, 2]), scalar(0.0f32), scalar(1.0f32), scalar(-2.0f32), vector(&[2.0f32])])
        .gives(t(&[4, 2], &[1.605_603_7f32, -0.536_034_46, 1.218_259_7, -0.209_146_07, -1.738_990_4, 0.245_164_93, -0.002_353_34, 0.908_286_2]));
    drawn_with_one_batch: Case::op("ParameterizedTruncatedNormal").attr("seed", 7i64).attr("seed2", 11i64)
        .inputs([vector(&[4, 2]), vector(&[0.0f32]), scalar(1.0f32), scalar(-2.0f32), scalar(2.0f32)])
        .gives(t(&[4, 2], &[1.605_603_7f32, -0.536_034_46, -0.916_499_9, 1.218_259_7, -0.209_146_07, 0.271_791_04, -0.269_896_33, -1.738_990_4]));
    plain: family(&["plain"], &FLOATS[..2], |_, dtype| case(&[6], dtype, [&[0.0], &[1.0], &[-2.0], &[2.0]]));
    narrow: family(&["narrow"], &FLOATS[..2], |_, dtype| case(&[6], dtype, [&[1.0], &[2.0], &[1.25], &[1.5]]));
    far: family(&["far"], &FLOATS[..2], |_, dtype| case(&[6], dtype, [&[0.0], &[1.0], &[2.0], &[f64::INFINITY]]));
    scalars: Case::op("ParameterizedTruncatedNormal")
        .inputs([vector(&[2, 150]), scalar(0.0f32), scalar(1.0f32), scalar(-2.0f32), scalar(2.0f32)]).attr("seed", 7i64).attr("seed2", 11i64);
    many: family(&["many"], &FLOATS[..2], |_, dtype| case(&[2, 150], dtype, [&[0.0], &[1.0], &[-2.0], &[2.0]]));
    batches: family(&["batches"], &FLOATS[..2], |_, dtype| {
        case(&[3, 4], dtype, [&[0.0, 1.0, -1.0], &[1.0], &[-2.0, 0.0, f64::NEG_INFINITY], &[2.0, 0.5, -3.0]])
    });
    by_seeds: family(&["by_seeds"], &FLOATS[..2], |_, dtype| seeded(&[6], dtype, &[], [&[0.0], &[1.0], &[-2.0], &[2.0]]));
    by_seeds_batches: family(&["by_seeds_batches"], &FLOATS[..2], |_, dtype| {
        seeded(&[4, 3], dtype, &[3], [&[0.0, 1.0, -1.0], &[1.0], &[-2.0, 0.0, -5.0], &[2.0, 0.5, -3.0]])
    });
    nothing: case(&[0], DataType::FLOAT, [&[0.0], &[1.0], &[-2.0], &[2.0]]).gives(vector::<f32>(&[]));
    no_bounds: case(&[3], DataType::FLOAT, [&[0.0], &[1.0], &[2.0], &[2.0]]).fails(Code::InvalidArgument);
    no_deviation: case(&[3], DataType::FLOAT, [&[0.0], &[-1.0], &[1.0], &[2.0]]).fails(Code::InvalidArgument);
    misfit: case(&[3], DataType::FLOAT, [&[0.0, 1.0], &[1.0], &[1.0], &[2.0]]).fails(Code::InvalidArgument);
    shape_misfit: seeded(&[4], DataType::FLOAT, &[3], [&[0.0, 1.0, -1.0], &[1.0], &[-2.0], &[2.0]]).fails(Code::InvalidArgument);
}
