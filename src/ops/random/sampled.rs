//! Distributions by rejection, sample by sample: gamma, Poisson, binomial.
//!
//! Each sample draws from a stretch of the stream of its own. Parameters have a
//! tensor each; the samples of all of them follow on leading axes.

use super::stream::reserve;
use super::words::Words;
use ff_kernels::random::{Philox, stateful_steps};
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, bail, ensure};

const STATELESS: Op = Op {
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "RandomGamma",
        shape: |context| appended_shape(context, 1),
        kernels: &[Kernel::native(|context| drawn(context, Kind::Gamma))],
        gradient: Gradient::Fn(|context| gamma_gradient(context, 1)),
        ..Op::STATEFUL
    },
    &Op {
        name: "RandomPoissonV2",
        shape: |context| appended_shape(context, 1),
        kernels: &[Kernel::native(|context| drawn(context, Kind::Poisson))],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
    &Op {
        name: "RandomPoisson",
        shape: |context| appended_shape(context, 1),
        kernels: &[Kernel::native(|context| drawn(context, Kind::Poisson))],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
    &Op {
        name: "StatelessRandomGammaV2",
        shape: |context| {
            super::stateless::check_seed(context, 1)?;
            given_shape(context, 0, &[2])
        },
        kernels: &[Kernel::native(|context| stateless(context, Kind::Gamma, &[2]))],
        gradient: Gradient::Fn(|context| gamma_gradient(context, 2)),
        ..STATELESS
    },
    &Op {
        name: "StatelessRandomGammaV3",
        shape: |context| {
            super::stateless::check_key_and_counter(context)?;
            given_shape(context, 0, &[4])
        },
        kernels: &[Kernel::native(|context| stateless(context, Kind::Gamma, &[4]))],
        gradient: Gradient::Fn(|context| gamma_gradient(context, 4)),
        ..STATELESS
    },
    &Op {
        name: "StatelessRandomPoisson",
        shape: |context| {
            super::stateless::check_seed(context, 1)?;
            given_shape(context, 0, &[2])
        },
        kernels: &[Kernel::native(|context| stateless(context, Kind::Poisson, &[2]))],
        ..STATELESS
    },
    &Op {
        name: "StatelessRandomBinomial",
        shape: |context| {
            super::stateless::check_seed(context, 1)?;
            given_shape(context, 0, &[2, 3])
        },
        kernels: &[Kernel::native(|context| {
            stateless(context, Kind::Binomial, &[2, 3])
        })],
        ..STATELESS
    },
    &Op {
        name: "StatefulRandomBinomial",
        shape: |context| given_shape(context, 2, &[3, 4]),
        kernels: &[Kernel::native(from_variable)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
];

/// What is drawn.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Gamma,
    Poisson,
    Binomial,
}

/// The shape of input 0, then that of the parameter.
fn appended_shape(context: &mut ShapeContext, parameter: usize) -> Result<()> {
    context.input_with_rank(0, 1)?;
    let shape = context.input_as_shape(0)?.concat(&context.input(parameter));
    context.set_output(0, shape);
    Ok(())
}

/// The shape that an input says, which must end with what the parameters' shapes are broadcast to.
fn given_shape(context: &mut ShapeContext, input: usize, parameters: &[usize]) -> Result<()> {
    let shape = context.input_as_shape(input)?;
    let mut joint = PartialShape::scalar();
    for &index in parameters {
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

/// From the node's own stream.
fn drawn(context: &mut KernelContext, kind: Kind) -> Result<()> {
    let wanted = context.input_i64s(0)?;
    if let Some(bad) = wanted.iter().find(|&&dim| dim < 0) {
        bail!(InvalidArgument, "Dimension {bad} must be >= 0");
    }
    let parameter = context.input(1)?;
    let shape = Shape::new(&[&wanted, parameter.dims()].concat())?;
    let parameters = vec![(super::as_f64s(parameter)?, parameter.dims().to_vec())];
    if shape.num_elements() == 0 {
        let empty = Tensor::zeros(context.output_type(0), shape)?;
        return context.set_output(0, empty);
    }
    let philox = reserve(context, stateful_steps(shape.num_elements()))?;
    let output = samples(context, kind, philox, shape, &parameters, context.output_type(0))?;
    context.set_output(0, output)
}

/// The parameters at some inputs, and their extents.
fn parameters(context: &KernelContext, inputs: &[usize]) -> Result<Vec<(Vec<f64>, Vec<i64>)>> {
    let parameter = |&index: &usize| {
        let tensor = context.input(index)?;
        Ok((super::as_f64s(tensor)?, tensor.dims().to_vec()))
    };
    inputs.iter().map(parameter).collect()
}

/// By a seed, or by key and counter.
fn stateless(context: &mut KernelContext, kind: Kind, inputs: &[usize]) -> Result<()> {
    let philox = super::stateless::stream(context, context.node().op_name().ends_with("V3"))?;
    let shape = context.output_shape(0)?.clone();
    let parameters = parameters(context, inputs)?;
    let output = samples(context, kind, philox, shape, &parameters, context.output_type(0))?;
    context.set_output(0, output)
}

fn from_variable(context: &mut KernelContext) -> Result<()> {
    let shape = context.output_shape(0)?.clone();
    let parameters = parameters(context, &[3, 4])?;
    let philox = super::generator::advance(context, shape.num_elements() as u64)?;
    let output = samples(
        context,
        Kind::Binomial,
        philox,
        shape,
        &parameters,
        context.output_type(0),
    )?;
    context.set_output(0, output)
}

/// The element of a parameter that belongs to one of the entries of the extents `dims`.
pub fn element(parameter: &(Vec<f64>, Vec<i64>), dims: &[i64], entry: usize) -> f64 {
    let (values, own) = parameter;
    let (mut rest, mut at, mut stride) = (entry as i64, 0i64, 1i64);
    for (axis, &extent) in dims.iter().enumerate().rev() {
        let index = rest % extent.max(1);
        rest /= extent.max(1);
        if let Some(place) = (axis + own.len()).checked_sub(dims.len()) {
            if own[place] > 1 {
                at += index * stride;
            }
            stride *= own[place];
        }
    }
    values[at as usize]
}

/// A tensor of samples: entry `b` of the parameters has samples at `b`, `b + entries`, `b + 2 entries`, ..
fn samples(
    context: &KernelContext,
    kind: Kind,
    philox: Philox,
    shape: Shape,
    parameters: &[(Vec<f64>, Vec<i64>)],
    dtype: DataType,
) -> Result<Tensor> {
    let mut joint = PartialShape::scalar();
    for (_, dims) in parameters {
        joint = ff_op::shapes::broadcast(&joint, &PartialShape::new(dims))?;
    }
    let dims = joint.dims().unwrap_or_default();
    let entries: i64 = dims.iter().product();
    let (entries, total) = (entries as usize, shape.num_elements());
    let mut values = crate::wide::zeros(total)?;
    let mut made = 0u64;
    let each = total.checked_div(entries).unwrap_or(0);
    let largest = largest(dtype);
    for entry in 0..entries.min(total) {
        let own: Vec<f64> = parameters
            .iter()
            .map(|parameter| element(parameter, dims, entry))
            .collect();
        for sample in 0..each {
            made += 1;
            if made.is_multiple_of(1 << 14) {
                context.host().cancellation().check()?;
            }
            let steps = if kind == Kind::Binomial {
                binomial_steps(own[0], own[1])
            } else {
                stateful_steps(1)
            };
            let mut source = Source::new(philox.after(steps * (entry * each + sample) as u64));
            values[sample * entries + entry] = match kind {
                Kind::Gamma => gamma(&mut source, own[0]),
                Kind::Poisson => poisson(&mut source, own[0], largest),
                Kind::Binomial => binomial(&mut source, own[0], own[1]),
            };
        }
    }
    if dtype.is_floating() {
        return <f64 as crate::linalg::Field>::tensor(dtype, shape, &values);
    }
    crate::match_type!(dtype, (i32, i64), T => {
        Tensor::from_slice(shape, &crate::wide::collected(values.iter().map(|&x| x as T))?)
    })
}

/// The largest number of a type.
fn largest(dtype: DataType) -> f64 {
    match dtype {
        DataType::INT32 => f64::from(i32::MAX),
        DataType::INT64 => i64::MAX as f64,
        DataType::HALF => 65504.0,
        DataType::BFLOAT16 => 3.389_531_389_251_535_5e38,
        DataType::FLOAT => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// Uniform and normal doubles; of each pair that a step gives, the second comes first.
struct Source {
    words: Words,
    uniform: Option<f64>,
    normal: Option<f64>,
}

impl Source {
    fn new(philox: Philox) -> Source {
        Source {
            words: Words::new(philox),
            uniform: None,
            normal: None,
        }
    }

    fn uniform(&mut self) -> f64 {
        if let Some(kept) = self.uniform.take() {
            return kept;
        }
        let first = self.words.next_double();
        self.uniform = Some(first);
        self.words.next_double()
    }

    fn normal(&mut self) -> f64 {
        if let Some(kept) = self.normal.take() {
            return kept;
        }
        let step = std::array::from_fn(|_| self.words.next_word());
        let [first, second, ..] =
            ff_kernels::random::Distribution::<f64>::sample(&ff_kernels::random::Normal, step);
        self.normal = Some(first);
        second
    }
}

/// By Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).
fn gamma(source: &mut Source, alpha: f64) -> f64 {
    if alpha == 1.0 {
        return -(-source.uniform()).ln_1p();
    }
    if alpha.is_nan() {
        return f64::NAN;
    }
    let small = alpha < 1.0;
    let d = alpha + if small { 2.0 / 3.0 } else { -1.0 / 3.0 };
    let c = 1.0 / 3.0 / d.sqrt();
    if !c.is_finite() {
        return f64::NAN;
    }
    loop {
        let x = source.normal();
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = source.uniform();
        if u < 1.0 - 0.0331 * (x * x) * (x * x) || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            let sample = d * v;
            return if small {
                sample * source.uniform().powf(1.0 / alpha)
            } else {
                sample
            };
        }
    }
}

/// By Knuth for small rates, by Hörmann's transformed rejection (1993) for others. The reference never ends for a rate
/// that is not a number, or that lies far beyond the largest number of the type; here the sample is not a number, or that
/// largest number, then.
fn poisson(source: &mut Source, rate: f64, largest: f64) -> f64 {
    if rate.is_nan() {
        return f64::NAN;
    }
    if rate < 0.0 {
        return 0.0;
    }
    if rate.is_infinite() {
        return f64::INFINITY;
    }
    if rate - largest > 40.0 * rate.sqrt() {
        return largest;
    }
    if rate < 10.0 {
        let end = (-rate).exp();
        let (mut product, mut x) = (1.0, 0.0);
        loop {
            product *= source.uniform();
            if product <= end && x <= largest {
                return x;
            }
            x += 1.0;
        }
    }
    let log_rate = rate.ln();
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse = 1.1239 + 1.1328 / (b - 3.4);
    loop {
        let u = source.uniform() - 0.5;
        let v = source.uniform();
        let shifted = 0.5 - u.abs();
        let k = ((2.0 * a / shifted + b) * u + rate + 0.43).floor();
        if k > largest {
            continue;
        }
        if shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2.0) {
            return k;
        }
        if k < 0.0 || (shifted < 0.013 && v > shifted) {
            continue;
        }
        let s = (v * inverse / (a / (shifted * shifted) + b)).ln();
        if s <= -rate + k * log_rate - log_gamma(k + 1.0) {
            return k;
        }
    }
}

fn log_gamma(x: f64) -> f64 {
    ff_kernels::math::Real::log_gamma(x)
}

/// Steps that each binomial sample has to itself, which depends on the method.
fn binomial_steps(count: f64, probability: f64) -> u64 {
    if count * probability.min(1.0 - probability) >= 10.0 {
        256
    } else {
        42
    }
}

/// Of `count` trials that succeed with a probability.
fn binomial(source: &mut Source, count: f64, probability: f64) -> f64 {
    if count.is_nan() || probability.is_nan() {
        return f64::NAN;
    }
    if count <= 0.0 || probability <= 0.0 {
        return 0.0;
    }
    if probability >= 1.0 {
        return count;
    }
    if probability <= 0.5 {
        return binomial_of_half(source, count, probability);
    }
    count - binomial_of_half(source, count, 1.0 - probability)
}

fn binomial_of_half(source: &mut Source, count: f64, probability: f64) -> f64 {
    if count * probability >= 10.0 {
        return transformed_rejection(source, count, probability);
    }
    let (mut sum, mut number) = (0.0, 0.0);
    loop {
        sum += (source.uniform().ln() / (-probability).ln_1p()).ceil();
        if sum > count {
            return number;
        }
        number += 1.0;
    }
}

/// What Stirling's formula leaves of the logarithm of `k!`.
fn stirling_tail(k: f64) -> f64 {
    const FIRST: [f64; 10] = [
        0.0810614667953272,
        0.0413406959554092,
        0.0276779256849983,
        0.02079067210376509,
        0.0166446911898211,
        0.0138761288230707,
        0.0118967099458917,
        0.010411265261972,
        0.00925546218271273,
        0.00833056343336287,
    ];
    if k <= 9.0 {
        return FIRST[k.max(0.0) as usize];
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}

/// By Hörmann, "The generation of binomial random variates" (1993).
fn transformed_rejection(source: &mut Source, count: f64, p: f64) -> f64 {
    let deviation = (count * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let c = count * p + 0.5;
    let v_r = 0.92 - 4.2 / b;
    let r = p / (1.0 - p);
    let alpha = (2.83 + 5.1 / b) * deviation;
    let m = ((count + 1.0) * p).floor();
    loop {
        let u = source.uniform();
        let v = source.uniform();
        let u = u - 0.5;
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + c).floor();
        if us >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || k > count {
            continue;
        }
        let v = (v * alpha / (a / (us * us) + b)).ln();
        let bound = (m + 0.5) * ((m + 1.0) / (r * (count - m + 1.0))).ln()
            + (count + 1.0) * ((count - m + 1.0) / (count - k + 1.0)).ln()
            + (k + 0.5) * (r * (count - k + 1.0) / (k + 1.0)).ln()
            + stirling_tail(m)
            + stirling_tail(count - m)
            - stirling_tail(k)
            - stirling_tail(count - k);
        if v <= bound {
            return k;
        }
    }
}

/// How the samples change with the shape parameter, summed over the samples of each.
fn gamma_gradient(context: &mut GradientContext, parameter: usize) -> Result<()> {
    let (incoming, alpha, samples) = (
        context.incoming_or_zeros(0)?,
        context.input(parameter)?,
        context.output(0),
    );
    let derivative = crate::math::gradients::binary(context, "RandomGammaGrad", alpha, samples)?;
    let product = crate::math::gradients::binary(context, "Mul", incoming, derivative)?;
    crate::math::gradients::set_reduced(context, parameter, product)
}

/// Attributes with the seeds of the stateful cases.
#[cfg(test)]
fn seeded(case: crate::testing::Case) -> crate::testing::Case {
    case.attr("seed", 7i64).attr("seed2", 11i64)
}

/// A case by a seed.
#[cfg(test)]
fn by_seed(op: &'static str, dims: &[i32]) -> crate::testing::Case {
    use crate::testing::{Case, vector};
    Case::op(op).inputs([vector(dims), vector(&[1, 2])])
}

crate::op_cases! {
    shapes_of_two_axes: family(&["RandomGamma", "RandomPoisson"], &FLOATS[..1], |op, dtype| {
        seeded(Case::op(op).inputs([t(&[1, 1], &[3]), numbers(dtype, &[1], &[0.5])])).fails(Code::InvalidArgument)
    });
    gammas: family(&["RandomGamma"], &FLOATS[..3], |op, dtype| {
        seeded(Case::op(op).inputs([vector(&[3]), numbers(dtype, &[4], &[0.5, 1.0, 3.0, 10.0])]))
    });
    poissons: family(&["RandomPoissonV2"], &[DataType::FLOAT, DataType::DOUBLE, DataType::INT32, DataType::INT64, DataType::HALF], |op, dtype| {
        seeded(Case::op(op).inputs([vector(&[4]), vector(&[0.5f32, 3.0, 12.5, 200.0])]).attr("dtype", dtype))
    });
    poissons_first: family(&["RandomPoisson"], &FLOATS[..3], |op, dtype| {
        seeded(Case::op(op).inputs([vector(&[2, 2]), numbers(dtype, &[2], &[3.0, 40.0])]))
    });
    gammas_by_seed: family(&["StatelessRandomGammaV2"], &FLOATS[..3], |op, dtype| {
        by_seed(op, &[3, 4]).input(numbers(dtype, &[4], &[0.25, 1.0, 3.0, 50.0]))
    });
    gammas_by_key: family(&["StatelessRandomGammaV3"], &FLOATS[..3], |op, dtype| {
        Case::op(op).inputs([vector(&[2, 3]), vector(&[5u64]), vector(&[1u64, 2]), scalar(1), numbers(dtype, &[3], &[0.5, 1.0, 7.0])])
    });
    poissons_by_seed: family(&["StatelessRandomPoisson"], &[DataType::FLOAT, DataType::DOUBLE, DataType::INT32, DataType::INT64], |op, dtype| {
        by_seed(op, &[5, 2]).input(vector(&[4.0f64, 31.5])).attr("dtype", dtype)
    });
    binomials: family(&["StatelessRandomBinomial"], &[DataType::FLOAT, DataType::DOUBLE, DataType::INT32, DataType::INT64], |op, dtype| {
        by_seed(op, &[4, 2, 3]).inputs([t(&[2, 1], &[6.0f32, 100.0]), vector(&[0.25f32, 0.5, 0.875])]).attr("dtype", dtype)
    });
    binomials_certain: by_seed("StatelessRandomBinomial", &[2, 4]).inputs([vector(&[0.0f32, 5.0, 5.0, -1.0]), vector(&[0.5f32, 0.0, 1.0, 0.5])]);
    nothing: by_seed("StatelessRandomGammaV2", &[0, 2]).input(vector(&[1.0f32, 2.0])).gives(t::<f32>(&[0, 2], &[]));
    shapes_misfit: by_seed("StatelessRandomGammaV2", &[3]).input(vector(&[1.0f32, 2.0])).fails(Code::InvalidArgument);
    poisson_shapes_misfit: by_seed("StatelessRandomPoisson", &[3]).input(vector(&[1.0f32, 2.0])).attr("dtype", DataType::FLOAT).fails(Code::InvalidArgument);
    negative_shape: Case::op("RandomGamma").inputs([vector(&[-3]), vector(&[1.0f32])]).fails(Code::InvalidArgument);
}

#[cfg(test)]
mod tests {
    use crate::random::generator::tests::with_state;
    use crate::testing::{OpRunner, scalar, vector};
    use ff_op::Attrs;

    #[test]
    fn samples_have_their_mean() {
        let (runner, handle) = with_state(vector(&[1i64, 2, 3]));
        let inputs = [
            handle,
            scalar(1i64),
            vector(&[2000, 1]),
            vector(&[40.0f32]),
            vector(&[0.25f32]),
        ];
        let made = runner
            .run("StatefulRandomBinomial", &inputs, Attrs::new())
            .unwrap();
        let made = made[0].to_i64_vec().unwrap();
        let mean = made.iter().sum::<i64>() as f64 / made.len() as f64;
        assert!((mean - 10.0).abs() < 0.3, "{mean}");
    }

    #[test]
    fn rates_that_are_no_numbers_end() {
        let inputs = [
            vector(&[3]),
            vector(&[1, 2]),
            vector(&[f32::NAN, -1.0, f32::INFINITY]),
        ];
        let attrs = Attrs::new().with("dtype", ff_tensor::DataType::FLOAT);
        let made = OpRunner::new()
            .run("StatelessRandomPoisson", &inputs, attrs)
            .unwrap();
        let made = made[0].as_slice::<f32>().unwrap();
        assert!(made[0].is_nan() && made[1] == 0.0 && made[2].is_infinite());
    }
}
