//! Random numbers, with streams of their own or by a seed given at each call.

mod bits;
mod candidates;
mod generator;
mod index_shuffle;
mod multinomial;
mod parameterized;
mod rounding;
mod sampled;
mod shuffle;
mod sobol;
mod stateful;
mod stateless;
pub mod stream;
pub mod words;

#[cfg(test)]
pub use generator::tests::with_state as generator_state;

use ff_op::{KernelContext, Op, ShapeContext};
use ff_tensor::{Result, Shape, Tensor, ensure};

/// Every op of this folder.
pub static OPS: &[&[&Op]] = &[
    candidates::OPS,
    generator::OPS,
    index_shuffle::OPS,
    multinomial::OPS,
    parameterized::OPS,
    rounding::OPS,
    sampled::OPS,
    shuffle::OPS,
    sobol::OPS,
    stateful::OPS,
    stateless::OPS,
];

/// Which numbers an op makes.
#[derive(Clone, Copy)]
enum Distribution {
    Uniform,
    Normal,
    TruncatedNormal,
}

/// The distribution that an op's name says.
fn distribution(op: &str) -> Distribution {
    if op.contains("Truncated") {
        Distribution::TruncatedNormal
    } else if op.contains("Normal") {
        Distribution::Normal
    } else {
        Distribution::Uniform
    }
}

/// The output has the shape that the first input says.
fn shape_from_input(context: &mut ShapeContext) -> Result<()> {
    let shape = context.input_as_shape(0)?;
    context.set_output(0, shape);
    Ok(())
}

/// A tensor of the shape that the first input says. INVALID_ARGUMENT for a negative extent.
fn allocate(context: &KernelContext) -> Result<Tensor> {
    let dims = context.input_i64s(0)?;
    ensure!(
        context.input(0)?.rank() == 1,
        InvalidArgument,
        "shape must be a vector of {{int32,int64}}, got shape {}",
        context.input(0)?.shape()
    );
    if let Some(bad) = dims.iter().find(|&&dim| dim < 0) {
        ff_tensor::bail!(InvalidArgument, "Dimension {bad} must be >= 0");
    }
    context.allocate(context.output_type(0), Shape::new(&dims)?)
}

/// Fills a tensor of a floating-point type.
fn fill_floats(
    context: &KernelContext,
    distribution: Distribution,
    philox: ff_kernels::random::Philox,
    output: &mut Tensor,
) -> Result<()> {
    use ff_kernels::random::{Normal, Uniform, fill, fill_truncated_normal};
    let pool = context.pool();
    crate::match_float!(output.dtype(), T => {
        let values = output.as_mut_slice::<T>()?;
        match distribution {
            Distribution::Uniform => fill(pool, philox, &Uniform, values),
            Distribution::Normal => fill(pool, philox, &Normal, values),
            Distribution::TruncatedNormal => fill_truncated_normal(pool, philox, values),
        }
        Ok(())
    })
}

/// Fills a tensor with integers in the range of the scalars at inputs `low` and `low + 1`.
/// INVALID_ARGUMENT for an empty range, unless no number is asked for.
fn fill_range(
    context: &KernelContext,
    low: usize,
    philox: ff_kernels::random::Philox,
    output: &mut Tensor,
) -> Result<()> {
    if output.num_elements() == 0 {
        return Ok(());
    }
    crate::match_type!(output.dtype(), (i32, i64, u32, u64), T => {
        let (low, high) = (context.input(low)?.single::<T>()?, context.input(low + 1)?.single::<T>()?);
        ensure!(low < high, InvalidArgument, "Need minval < maxval, got {low} >= {high}");
        let range = ff_kernels::random::UniformInteger { low, high };
        ff_kernels::random::fill(context.pool(), philox, &range, output.as_mut_slice::<T>()?);
        Ok(())
    })
}

/// The elements of a tensor of real numbers.
#[allow(clippy::useless_conversion)] // one of the types is f64 itself
fn as_f64s(tensor: &Tensor) -> Result<Vec<f64>> {
    if tensor.dtype().is_floating() {
        return crate::match_float!(tensor.dtype(), T => {
            crate::wide::collected(tensor.as_slice::<T>()?.iter().map(|&x| f64::from(x)))
        });
    }
    crate::match_integer!(tensor.dtype(), T => {
        crate::wide::collected(tensor.as_slice::<T>()?.iter().map(|&x| x as f64))
    })
}
