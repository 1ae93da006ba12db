//! Numbers by a seed that is an input: equal seeds give equal numbers.
//!
//! The first versions take two seed numbers, the second ones a key and a counter of a named algorithm. Philox is the
//! only algorithm here, as on the reference's CPU.

use super::{allocate, bits, distribution, fill_floats, fill_range, shape_from_input};
use ff_kernels::random::{FullInteger, Philox, fill};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
#[cfg(test)]
use ff_tensor::DataType;
use ff_tensor::{PartialShape, Result, Tensor, bail, dim, ensure};

const SEEDED: Op = Op {
    name: "StatelessRandomUniform",
    shape: |context| {
        check_seed(context, 1)?;
        shape_from_input(context)
    },
    kernels: &[Kernel::native(floats)],
    lower: Some(bits::uniform),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};
const KEYED: Op = Op {
    name: "StatelessRandomUniformV2",
    shape: |context| {
        check_key_and_counter(context)?;
        shape_from_input(context)
    },
    ..SEEDED
};
/// What is more than arithmetic on the bits of each element.
const SEEDED_CALL: Op = Op {
    lower: Some(crate::host_call::lower),
    ..SEEDED
};
const KEYED_CALL: Op = Op {
    lower: Some(crate::host_call::lower),
    ..KEYED
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &SEEDED,
    &Op {
        name: "StatelessRandomNormal",
        ..SEEDED_CALL
    },
    &Op {
        name: "StatelessTruncatedNormal",
        ..SEEDED_CALL
    },
    &Op {
        name: "StatelessRandomUniformInt",
        kernels: &[Kernel::native(integers)],
        ..SEEDED_CALL
    },
    &Op {
        name: "StatelessRandomUniformFullInt",
        kernels: &[Kernel::native(full_integers)],
        lower: Some(bits::full_integers),
        ..SEEDED
    },
    &KEYED,
    &Op {
        name: "StatelessRandomNormalV2",
        ..KEYED_CALL
    },
    &Op {
        name: "StatelessTruncatedNormalV2",
        ..KEYED_CALL
    },
    &Op {
        name: "StatelessRandomUniformIntV2",
        kernels: &[Kernel::native(integers)],
        ..KEYED_CALL
    },
    &Op {
        name: "StatelessRandomUniformFullIntV2",
        kernels: &[Kernel::native(full_integers)],
        lower: Some(bits::full_integers),
        ..KEYED
    },
    &Op {
        name: "StatelessRandomGetKeyCounter",
        shape: key_counter_shape,
        kernels: &[Kernel::native(key_counter)],
        ..SEEDED_CALL
    },
    &Op {
        name: "StatelessRandomGetKeyCounterAlg",
        shape: key_counter_shape,
        kernels: &[Kernel::native(key_counter)],
        ..SEEDED_CALL
    },
    &Op {
        name: "StatelessRandomGetAlg",
        shape: ff_op::shapes::scalar,
        kernels: &[Kernel::native(|context| {
            context.set_output(0, Tensor::scalar(PHILOX)?)
        })],
        ..SEEDED_CALL
    },
];

/// Numbers of the algorithms.
pub(super) const PHILOX: i32 = 1;
pub(super) const AUTOMATIC: i64 = 3;

/// The input is a pair of seeds.
pub(super) fn check_seed(context: &ShapeContext, index: usize) -> Result<()> {
    let seed = context.input_with_rank(index, 1)?;
    dim::merge(seed.dim(0), 2)?;
    Ok(())
}

/// The stream of the pair of seeds at an input.
pub(super) fn seed(context: &KernelContext, index: usize) -> Result<Philox> {
    let seed = context.input_i64s(index)?;
    let [first, second] = seed[..] else {
        bail!(
            InvalidArgument,
            "seed must have shape [2], not {}",
            context.input(index)?.shape()
        );
    };
    Ok(Philox::from_stateless_seed([first as u64, second as u64]))
}

/// Inputs: shape, key, counter, algorithm.
pub(super) fn check_key_and_counter(context: &ShapeContext) -> Result<()> {
    let key = context.input_with_rank(1, 1)?;
    context.input_with_rank(2, 1)?;
    context.input_with_rank(3, 0)?;
    dim::merge(key.dim(0), 1)?;
    Ok(())
}

fn is_keyed(context: &KernelContext) -> bool {
    context.node().op_name().ends_with("V2")
}

/// The stream that the inputs after the first name: a pair of seeds, or key, counter and algorithm.
pub(super) fn stream(context: &KernelContext, keyed: bool) -> Result<Philox> {
    if !keyed {
        return seed(context, 1);
    }
    let algorithm = context.input_i64(3)?;
    if algorithm != i64::from(PHILOX) && algorithm != AUTOMATIC {
        bail!(InvalidArgument, "Unsupported algorithm id: {algorithm}");
    }
    let key = context.input(1)?.single::<u64>()?;
    let counter = context.input_slice::<u64>(2)?;
    // The reference reads beyond the end of a shorter one.
    ensure!(
        counter.len() >= 2,
        InvalidArgument,
        "counter must be a vector with length at least 2; got shape: {}",
        context.input(2)?.shape()
    );
    Ok(Philox::new(key, [counter[0], counter[1]]))
}

fn floats(context: &mut KernelContext) -> Result<()> {
    let (philox, mut output) = (stream(context, is_keyed(context))?, allocate(context)?);
    fill_floats(
        context,
        distribution(context.node().op_name()),
        philox,
        &mut output,
    )?;
    context.set_output(0, output)
}

fn integers(context: &mut KernelContext) -> Result<()> {
    let (philox, mut output) = (stream(context, is_keyed(context))?, allocate(context)?);
    let low = if is_keyed(context) { 4 } else { 2 };
    fill_range(context, low, philox, &mut output)?;
    context.set_output(0, output)
}

fn full_integers(context: &mut KernelContext) -> Result<()> {
    let (philox, mut output) = (stream(context, is_keyed(context))?, allocate(context)?);
    crate::match_type!(output.dtype(), (i32, i64, u32, u64), T => {
        fill(context.pool(), philox, &FullInteger, output.as_mut_slice::<T>()?);
        Ok(())
    })?;
    context.set_output(0, output)
}

fn key_counter_shape(context: &mut ShapeContext) -> Result<()> {
    check_seed(context, 0)?;
    context.set_output(0, PartialShape::new(&[1]));
    context.set_output(1, PartialShape::new(&[2]));
    if context.num_outputs() > 2 {
        context.set_output(2, PartialShape::scalar());
    }
    Ok(())
}

fn key_counter(context: &mut KernelContext) -> Result<()> {
    let philox = seed(context, 0)?;
    context.set_output(0, Tensor::vector(&[philox.key()])?)?;
    context.set_output(1, Tensor::vector(&philox.counter())?)?;
    if context.num_outputs() > 2 {
        context.set_output(2, Tensor::scalar(PHILOX)?)?;
    }
    Ok(())
}

#[cfg(test)]
fn case(op: &'static str, dtype: DataType, extent: i32) -> crate::testing::Case {
    use crate::testing::{Case, vector};
    Case::op(op)
        .attr("dtype", dtype)
        .input(vector(&[extent]))
        .input(vector(&[1, 2]))
}

#[cfg(test)]
fn keyed(op: &'static str, key: u64, counter: &[u64], algorithm: i32) -> crate::testing::Case {
    use crate::testing::{Case, scalar, vector};
    Case::op(op)
        .attr("dtype", DataType::FLOAT)
        .input(vector(&[5]))
        .input(vector(&[key]))
        .input(vector(counter))
        .input(scalar(algorithm))
}

#[cfg(test)]
fn floats_of(bits: [u32; 5]) -> Tensor {
    crate::testing::vector(&bits.map(f32::from_bits))
}

crate::op_cases! {
    uniform: case("StatelessRandomUniform", DataType::FLOAT, 5)
        .gives(floats_of([1062736984, 1044686728, 1065289852, 1042562200, 1049313868]));
    normal: case("StatelessRandomNormal", DataType::FLOAT, 5)
        .gives(floats_of([1057704653, 1045715841, 1033283812, 1027486248, 3215366783]));
    truncated: case("StatelessTruncatedNormal", DataType::FLOAT, 5)
        .gives(floats_of([1057704653, 1045715841, 1033283812, 1027486248, 1043086892]));
    many: case("StatelessRandomUniform", DataType::FLOAT, 1003);
    halves: case("StatelessRandomUniform", DataType::HALF, 1003);
    short_halves: case("StatelessRandomUniform", DataType::BFLOAT16, 1003);
    many_doubles: case("StatelessRandomUniform", DataType::DOUBLE, 1003);
    negative_seeds: Case::op("StatelessRandomUniform").attr("dtype", DataType::FLOAT)
        .inputs([vector(&[3, 4]), vector(&[-1, -7])]);
    no_numbers: case("StatelessRandomUniform", DataType::FLOAT, 0);
    full_range_unsigned: case("StatelessRandomUniformFullInt", DataType::UINT32, 7);
    doubles: case("StatelessRandomUniform", DataType::DOUBLE, 2)
        .gives(vector(&[f64::from_bits(4604952990652115426), f64::from_bits(4606910273233162022)]));
    range: case("StatelessRandomUniformInt", DataType::INT32, 5).input(scalar(0)).input(scalar(100))
        .gives(vector(&[40, 49, 94, 79, 27]));
    full_range_of_32_bits: case("StatelessRandomUniformFullInt", DataType::INT32, 5)
        .gives(vector(&[1105988140, 1738052849, -335576002, 370444179, 10670227]));
    full_range_of_64_bits: case("StatelessRandomUniformFullInt", DataType::UINT64, 3)
        .gives(vector(&[7464880146280614444u64, 1591045637757961278, 17389275318164050067]));
    key_and_counter: Case::op("StatelessRandomGetKeyCounterAlg").input(vector(&[1, 2]))
        .gives(vector(&[10413732777507651514u64])).gives(vector(&[0u64, 17830669156045600267])).gives(scalar(1));
    by_key: keyed("StatelessRandomUniformV2", 10413732777507651514, &[0, 17830669156045600267], 1)
        .gives(floats_of([1062736984, 1044686728, 1065289852, 1042562200, 1049313868]));
    counter_carries: keyed("StatelessRandomUniformV2", 5, &[u64::MAX, 3], 3)
        .gives(floats_of([1025850208, 1051110880, 1064988508, 1061918180, 1062666704]));
    normal_by_key: keyed("StatelessRandomNormalV2", 5, &[3, 7], 1);
    truncated_by_key: keyed("StatelessTruncatedNormalV2", 5, &[3, 7], 1);
    range_by_key: Case::op("StatelessRandomUniformIntV2")
        .inputs([vector(&[5]), vector(&[5u64]), vector(&[3u64, 7]), scalar(1), scalar(-3), scalar(100)]);
    full_range_by_key: keyed("StatelessRandomUniformFullIntV2", 5, &[3, 7], 1).attr("dtype", DataType::INT64);
    algorithm: Case::op("StatelessRandomGetAlg").gives(scalar(1));
    key_and_counter_only: Case::op("StatelessRandomGetKeyCounter").input(vector(&[1, 2]))
        .gives(vector(&[10413732777507651514u64])).gives(vector(&[0u64, 17830669156045600267]));
    unknown_algorithm: keyed("StatelessRandomUniformV2", 5, &[0, 0], 7).fails(Code::InvalidArgument);
    short_counter: keyed("StatelessRandomUniformV2", 5, &[0], 1).fails(Code::InvalidArgument);
    three_seeds: Case::op("StatelessRandomUniform").input(vector(&[5])).input(vector(&[1, 2, 3]))
        .fails(Code::InvalidArgument);
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, vector};
    use ff_op::Attrs;
    use ff_tensor::DataType;

    /// Every last bit of many numbers, by sums that the reference gives on Linux, whose C library both use.
    #[test]
    #[cfg(target_os = "linux")]
    fn last_bits() {
        for (op, single, double) in [
            ("StatelessRandomNormal", 21379034024789, 4009334629300130514),
            ("StatelessTruncatedNormal", 21295708821177, 8200981330761657434),
        ] {
            let numbers = |dtype: DataType| {
                let inputs = [vector(&[10_000]), vector(&[1, 2])];
                let made = OpRunner::new().run(op, &inputs, Attrs::new().with("dtype", dtype));
                made.unwrap().remove(0)
            };
            let made = numbers(DataType::FLOAT);
            let bits = made.as_slice::<f32>().unwrap().iter();
            assert_eq!(bits.map(|x| u64::from(x.to_bits())).sum::<u64>(), single, "{op}");
            let made = numbers(DataType::DOUBLE);
            let bits = made.as_slice::<f64>().unwrap().iter();
            let sum = bits.fold(0u64, |sum, x| sum.wrapping_add(x.to_bits()));
            assert_eq!(sum, double, "{op}");
        }
    }
}
