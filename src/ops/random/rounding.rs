//! `StochasticCastToInt`: up or down, with a chance in proportion to how near each is.
//!
//! The reference gives elements random numbers in an order that depends on its processor's vectors; here each element that is no
//! integer takes the next step of the stream.

use super::stateless::check_key_and_counter;
use crate::wide::{f64s, from_f64s, zeros};
use ff_kernels::random::{Distribution, Philox, Uniform};
use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_tensor::{DataType, Result, bail, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "StochasticCastToInt",
    shape: |context| {
        check_key_and_counter(context)?;
        shapes::unchanged(context)
    },
    kernels: &[Kernel::native(cast)],
    lower: Some(crate::host_call::lower),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

/// From 0 to below 1, in the precision of a type.
fn unit(philox: &mut Philox, dtype: DataType) -> f64 {
    let step = philox.step();
    match dtype {
        DataType::DOUBLE => Distribution::<f64>::sample(&Uniform, step)[0],
        DataType::HALF => f64::from(Distribution::<ff_tensor::f16>::sample(&Uniform, step)[0]),
        DataType::BFLOAT16 => f64::from(Distribution::<ff_tensor::bf16>::sample(&Uniform, step)[0]),
        _ => f64::from(Distribution::<f32>::sample(&Uniform, step)[0]),
    }
}

fn cast(context: &mut KernelContext) -> Result<()> {
    let algorithm = context.input_i64(3)?;
    if algorithm != 1 && algorithm != 3 {
        bail!(InvalidArgument, "Unsupported algorithm id: {algorithm}");
    }
    let (key, counter) = (context.input_slice::<u64>(1)?, context.input_slice::<u64>(2)?);
    ensure!(
        key.len() == 1 && counter.len() >= 2,
        InvalidArgument,
        "key must have one element and counter at least two; got {} and {}",
        key.len(),
        counter.len()
    );
    let mut philox = Philox::from_seeds(counter[0], key[0]);
    let (from, to) = (context.input(0)?.dtype(), context.output_type(0));
    let bits = 8 * to.size() as i32 - 1;
    let (least, most) = (-(2f64.powi(bits)), 2f64.powi(bits) - 1.0);
    let numbers = f64s(context.input(0)?)?;
    let mut rounded = zeros(numbers.len())?;
    for (to, &x) in rounded.iter_mut().zip(numbers.iter()) {
        *to = if x.is_nan() {
            0.0
        } else if x <= least || x >= most || x == x.floor() {
            x.clamp(least, most)
        } else if x < 0.0 {
            (x + unit(&mut philox, from)).floor()
        } else {
            (x + 1.0 - unit(&mut philox, from)).floor()
        };
    }
    let shape = context.output_shape(0)?.clone();
    let result = from_f64s(to, shape, &rounded)?;
    context.set_output(0, result)
}

#[cfg(test)]
fn case(x: ff_tensor::Tensor, to: DataType) -> crate::testing::Case {
    use crate::testing::*;
    Case::op("StochasticCastToInt")
        .inputs([x, vector(&[7u64]), vector(&[3u64, 0]), scalar(1)])
        .attr("Tout", to)
}

crate::op_cases! {
    whole_numbers: case(vector(&[1.0f32, -2.0, 0.0, f32::NAN, f32::INFINITY, -1e9, 200.0]), DataType::INT8)
        .gives(vector(&[1i8, -2, 0, 0, 127, -128, 127]));
    wide_numbers: case(vector(&[5e9f64, -5e9, 70_000.0]), DataType::INT32).gives(vector(&[i32::MAX, i32::MIN, 70_000]));
    nothing: case(t::<f32>(&[0, 2], &[]), DataType::INT16);
    unknown_algorithm: Case::op("StochasticCastToInt").inputs([vector(&[1.5f32]), vector(&[7u64]), vector(&[3u64, 0]), scalar(9)])
        .attr("Tout", DataType::INT32).fails(Code::InvalidArgument);
    two_keys: Case::op("StochasticCastToInt").inputs([vector(&[1.5f32]), vector(&[7u64, 8]), vector(&[3u64, 0]), scalar(1)])
        .attr("Tout", DataType::INT32).fails(Code::InvalidArgument);
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, scalar, t, vector};
    use ff_op::Attrs;
    use ff_tensor::DataType;

    #[test]
    fn the_mean_stays() {
        let (count, x) = (20_000, -1.25f32);
        let inputs = [
            t(&[count], &vec![x; count as usize]),
            vector(&[7u64]),
            vector(&[3u64, 0]),
            scalar(1),
        ];
        let attrs = Attrs::new().with("Tout", DataType::INT32);
        let rounded = OpRunner::new()
            .run("StochasticCastToInt", &inputs, attrs)
            .unwrap();
        let values = rounded[0].as_slice::<i32>().unwrap();
        assert!(values.iter().all(|value| (-2..=-1).contains(value)));
        let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count as f64;
        assert!((mean - f64::from(x)).abs() < 0.02, "{mean}");
    }
}
