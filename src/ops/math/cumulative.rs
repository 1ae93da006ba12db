//! Running sums, products and log-sum-exps along an axis.

use super::gradients::{binary, scalar_like, typed, unary};
use super::number::Number;
use ff_kernels::math::Real;
use ff_op::{Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef, ShapeContext};
use ff_tensor::{DataType, Element, Result, ensure};

static CUMSUM: Op = Op {
    name: "Cumsum",
    shape,
    kernels: &[Kernel::native(
        |context| crate::match_number!(context.output_type(0), T => run::<T>(context, T::default(), T::add)),
    )],
    lower: Some(super::lower_count::cumulative),
    gradient: Gradient::Fn(sum_gradient),
    ..Op::PURE
};
static CUMPROD: Op = Op {
    name: "Cumprod",
    kernels: &[Kernel::native(
        |context| crate::match_number!(context.output_type(0), T => run::<T>(context, T::one(), T::mul)),
    )],
    gradient: Gradient::Fn(product_gradient),
    ..CUMSUM
};
static CUMULATIVE_LOGSUMEXP: Op = Op {
    name: "CumulativeLogsumexp",
    kernels: &[Kernel::native(|context| {
        crate::match_float!(context.output_type(0), T => {
            run::<T>(context, T::from_f64(f64::NEG_INFINITY), log_sum_exp)
        })
    })],
    gradient: Gradient::Fn(log_sum_gradient),
    ..CUMSUM
};

/// The ops of this file.
pub static OPS: &[&Op] = &[&CUMSUM, &CUMPROD, &CUMULATIVE_LOGSUMEXP];

fn shape(context: &mut ShapeContext) -> Result<()> {
    context.set_output(0, context.input(0));
    Ok(())
}

/// `log(e^a + e^b)`.
fn log_sum_exp<T: Real>(a: T, b: T) -> T {
    let (a, b) = (a.to_f64(), b.to_f64());
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY || high == f64::INFINITY {
        return T::from_f64(high);
    }
    T::from_f64(high + (low - high).exp().ln_1p())
}

/// The possibly negative axis in input 1.
fn axis(context: &KernelContext) -> Result<usize> {
    let rank = context.input(0)?.rank() as i64;
    ensure!(
        context.input(1)?.rank() == 0,
        InvalidArgument,
        "ScanOp: axis must be a scalar, not {}",
        context.input(1)?.shape()
    );
    let axis = context.input_i64(1)?;
    ensure!(
        (-rank..rank).contains(&axis),
        InvalidArgument,
        "ScanOp: Expected scan axis in the range [{}, {rank}), but got {axis}",
        -rank
    );
    Ok((if axis < 0 { axis + rank } else { axis }) as usize)
}

fn run<T: Element>(context: &mut KernelContext, start: T, join: fn(T, T) -> T) -> Result<()> {
    let axis = axis(context)?;
    let attrs = context.attrs();
    let (exclusive, reverse) = (attrs.bool("exclusive")?, attrs.bool("reverse")?);
    let (mut output, in_place) = context.forward_or_allocate(0, 0)?;
    let dims = output.dims();
    let extent = dims[axis] as usize;
    let inner: usize = dims[axis + 1..].iter().map(|&extent| extent as usize).product();
    let values = output.as_mut_slice::<T>()?;
    if !in_place {
        values.copy_from_slice(context.input_slice(0)?);
    }
    if extent == 0 || inner == 0 {
        return context.set_output(0, output);
    }
    for block in values.chunks_exact_mut(extent * inner) {
        for column in 0..inner {
            let mut total = start;
            for turn in 0..extent {
                let row = if reverse { extent - 1 - turn } else { turn };
                let slot = &mut block[row * inner + column];
                let sum = join(total, *slot);
                *slot = if exclusive { total } else { sum };
                total = sum;
            }
        }
    }
    context.set_output(0, output)
}

/// Adds the same op on another value, forwards or backwards.
fn again(context: &mut GradientContext, op: &str, value: OutputRef, backwards: bool) -> Result<OutputRef> {
    let (attrs, axis) = (context.attrs(), context.input(1)?);
    let reverse = attrs.bool("reverse")? != backwards;
    let attrs = typed(context.dtype(value))
        .with("Tidx", context.dtype(axis))
        .with("exclusive", attrs.bool("exclusive")?)
        .with("reverse", reverse);
    context.op(op, &[value, axis], attrs)
}

fn sum_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let gradient = again(context, "Cumsum", incoming, true)?;
    context.set(0, gradient);
    Ok(())
}

fn product_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, x) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let product = again(context, "Cumprod", x, false)?;
    let scaled = binary(context, "Mul", product, incoming)?;
    let sum = again(context, "Cumsum", scaled, true)?;
    let gradient = binary(context, "DivNoNan", sum, x)?;
    context.set(0, gradient);
    Ok(())
}

/// `log(sign * dy)` where that is defined, and the lowest number elsewhere.
fn log_of_sign(context: &mut GradientContext, incoming: OutputRef, positive: bool) -> Result<OutputRef> {
    let dtype = context.dtype(incoming);
    let zero = scalar_like(context, 0.0, incoming)?;
    let test = binary(context, if positive { "Greater" } else { "Less" }, incoming, zero)?;
    let value = if positive {
        incoming
    } else {
        unary(context, "Neg", incoming)?
    };
    let log = unary(context, "Log", value)?;
    let lowest = match dtype {
        DataType::HALF => -65504.0,
        DataType::BFLOAT16 => -3.389_531_389_251_535_5e38,
        DataType::FLOAT => f64::from(f32::MIN),
        _ => f64::MIN,
    };
    let lowest = scalar_like(context, lowest, incoming)?;
    context.op("SelectV2", &[test, log, lowest], typed(dtype))
}

fn log_sum_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, x, y) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.output(0),
    );
    let mut parts = Vec::new();
    for positive in [true, false] {
        let log = log_of_sign(context, incoming, positive)?;
        let rest = binary(context, "Sub", log, y)?;
        let sum = again(context, "CumulativeLogsumexp", rest, true)?;
        let sum = binary(context, "AddV2", sum, x)?;
        parts.push(unary(context, "Exp", sum)?);
    }
    let gradient = binary(context, "Sub", parts[0], parts[1])?;
    context.set(0, gradient);
    Ok(())
}

#[cfg(test)]
fn with(exclusive: bool, reverse: bool) -> impl Fn(crate::testing::Case) -> crate::testing::Case {
    move |case| case.attr("exclusive", exclusive).attr("reverse", reverse)
}

crate::op_cases! {
    sums: family(&["Cumsum", "Cumprod"], &[FRACTIONS, INTEGERS].concat(), |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2, 3], &[1.0, 2.0, 3.0, 2.0, 0.0, 1.0]), scalar(1)])
    });
    sums_exclusive: family(&["Cumsum", "Cumprod", "CumulativeLogsumexp"], FLOATS, |op, dtype| {
        with(true, false)(Case::op(op).inputs([numbers(dtype, &[3, 2], &[1.0, 2.0, 3.0, 2.0, 0.5, 1.0]), scalar(0i64)]))
    });
    sums_backwards: family(&["Cumsum", "Cumprod", "CumulativeLogsumexp"], FLOATS, |op, dtype| {
        with(false, true)(Case::op(op).inputs([numbers(dtype, &[3, 2], &[1.0, 2.0, 3.0, 2.0, 0.5, 1.0]), scalar(-2)]))
    });
    both: family(&["Cumsum", "Cumprod", "CumulativeLogsumexp"], FLOATS, |op, dtype| {
        with(true, true)(Case::op(op).inputs([numbers(dtype, &[2, 3, 2], &[0.5; 12]), scalar(1)]))
    });
    logs: family(&["CumulativeLogsumexp"], FLOATS, |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[6], &[1.0, -2.0, 90.0, 2.0, f64::NEG_INFINITY, 1.0]), scalar(0)])
    });
    nothing: family(&["Cumsum", "Cumprod", "CumulativeLogsumexp"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[0, 2], &[]), scalar(0)])
    });
    axis_outside: family(&["Cumsum", "Cumprod", "CumulativeLogsumexp"], &FLOATS[..1], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[2], &[1.0, 2.0]), scalar(1)]).fails(Code::InvalidArgument)
    });
    axes: Case::op("Cumsum").inputs([vector(&[1.0f32]), vector(&[0, 0])]).fails(Code::InvalidArgument);
    of_scalar: Case::op("Cumsum").inputs([scalar(1.0f32), scalar(0)]).fails(Code::InvalidArgument);
}
