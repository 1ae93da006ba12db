//! Numbers: random bits from an explicit state, fewer bits of precision, the number of this replica.

use ff_hlo::{Builder, Op as HloOp, RngAlgorithm};
use ff_op::{Gradient, Kernel, LowerContext, Op, ShapeContext};
use ff_tensor::{DataType, Result, bail, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "XlaReplicaId",
        shape: ff_op::shapes::scalar,
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(|context| {
            let id = context.builder.constant_scalar(0i32)?;
            context.set_output(0, id);
            Ok(())
        }),
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "XlaReducePrecision",
        shape: ff_op::shapes::unchanged,
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(reduce_precision),
        gradient: Gradient::Missing,
        ..Op::PURE
    },
    &Op {
        name: "XlaRngBitGenerator",
        shape: random_shape,
        kernels: &[Kernel::FROM_LOWERING],
        lower: Some(random_bits),
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

fn reduce_precision(context: &mut LowerContext) -> Result<()> {
    let attrs = context.attrs();
    let (exponent, mantissa) = (attrs.int("exponent_bits")?, attrs.int("mantissa_bits")?);
    let bits = |name: &str, value: i64, least: i64| {
        let bits = u32::try_from(value).ok().filter(|_| value >= least);
        bits.ok_or_else(|| {
            ff_tensor::status!(InvalidArgument, "{name} must be at least {least}, got {value}")
        })
    };
    let (exponent, mantissa) = (
        bits("exponent_bits", exponent, 1)?,
        bits("mantissa_bits", mantissa, 0)?,
    );
    let operand = context.input(0)?;
    let result = context.builder.reduce_precision(operand, exponent, mantissa)?;
    context.set_output(0, result);
    Ok(())
}

fn random_shape(context: &mut ShapeContext) -> Result<()> {
    context.input_with_rank(0, 0)?;
    let state = context.input_with_rank(1, 1)?;
    let shape = context.input_as_shape(2)?;
    context.set_output(0, state);
    context.set_output(1, shape);
    Ok(())
}

/// Philox (1, and 3, which leaves the choice) or ThreeFry (2). The state is a key and a counter of one word; the upper
/// word of Philox's counter may follow, and is the key where it does not.
fn random_bits(context: &mut LowerContext) -> Result<()> {
    let algorithm = match context.constant(0)?.single::<i32>()? {
        1 | 3 => RngAlgorithm::Philox,
        2 => RngAlgorithm::ThreeFry,
        other => bail!(InvalidArgument, "Unsupported algorithm {other}"),
    };
    let dims = context.constant_i64s(2)?;
    let (state, words, dtype) = (context.input(1)?, context.input_dims(1)?, context.output_type(1));
    ensure!(
        words == [2] || (words == [3] && algorithm == RngAlgorithm::Philox),
        InvalidArgument,
        "The initial state of {algorithm:?} cannot have the shape {words:?}"
    );
    let drawn = match dtype {
        DataType::UINT64 => DataType::UINT64,
        _ => DataType::UINT32,
    };
    let builder = &mut *context.builder;
    let (next, bits) = match algorithm {
        RngAlgorithm::Philox => philox(builder, state, words[0], drawn, &dims)?,
        RngAlgorithm::ThreeFry if drawn == DataType::UINT64 => {
            parts(builder, algorithm, state, drawn, &dims)?
        }
        RngAlgorithm::ThreeFry => threefry(builder, state, &dims)?,
    };
    let bits = match builder.dtype(bits) == dtype {
        true => bits,
        false => builder.convert(bits, dtype)?,
    };
    context.set_output(0, next);
    context.set_output(1, bits);
    Ok(())
}

/// The next state and the bits.
fn parts(
    builder: &mut Builder,
    algorithm: RngAlgorithm,
    state: HloOp,
    dtype: DataType,
    dims: &[i64],
) -> Result<(HloOp, HloOp)> {
    let both = builder.rng_bit_generator(algorithm, state, dtype, dims)?;
    Ok((
        builder.get_tuple_element(both, 0)?,
        builder.get_tuple_element(both, 1)?,
    ))
}

fn philox(
    builder: &mut Builder,
    state: HloOp,
    words: i64,
    dtype: DataType,
    dims: &[i64],
) -> Result<(HloOp, HloOp)> {
    if words == 3 {
        return parts(builder, RngAlgorithm::Philox, state, dtype, dims);
    }
    let key = builder.slice(state, &[0], &[1], &[1])?;
    let widened = builder.concatenate(&[state, key], 0)?;
    let (next, bits) = parts(builder, RngAlgorithm::Philox, widened, dtype, dims)?;
    Ok((builder.slice(next, &[0], &[2], &[1])?, bits))
}

/// Words of 32 bits: an axis is cut in two, and the first words of all blocks come before the second ones in each part. The
/// axis is the first of even extent, else the longest, which is padded.
fn threefry(builder: &mut Builder, state: HloOp, dims: &[i64]) -> Result<(HloOp, HloOp)> {
    let (algorithm, dtype) = (RngAlgorithm::ThreeFry, DataType::UINT32);
    if dims.contains(&0) {
        return parts(builder, algorithm, state, dtype, dims);
    }
    let whole = if dims.is_empty() { &[1] } else { dims };
    let even = whole.iter().position(|extent| extent % 2 == 0);
    let longest = || (0..whole.len()).rev().max_by_key(|&axis| whole[axis]);
    let axis = even.or_else(longest).unwrap_or(0);
    let mut halves = whole.to_vec();
    halves[axis] = (whole[axis] + 1) / 2;
    let rank = whole.len() as i64;
    let (next, bits) = parts(builder, algorithm, state, dtype, &[&halves[..], &[2]].concat())?;
    let order: Vec<i64> = (0..=axis as i64)
        .chain([rank])
        .chain(axis as i64 + 1..rank)
        .collect();
    let moved = builder.transpose(bits, &order)?;
    halves[axis] *= 2;
    let joined = builder.reshape(moved, &halves)?;
    let cut = builder.slice_in_dim(joined, 0, whole[axis], 1, axis)?;
    Ok((next, builder.reshape(cut, dims)?))
}

crate::op_cases! {
    replica: Case::op("XlaReplicaId").gives(scalar(0));
    precision: Case::op("XlaReducePrecision").input(vector(&[1.3f32, 1e9])).attr("exponent_bits", 5).attr("mantissa_bits", 2)
        .gives(vector(&[1.25f32, f32::INFINITY]));
    no_exponent: Case::op("XlaReducePrecision").input(scalar(1.0f32)).attr("exponent_bits", 0).attr("mantissa_bits", 2)
        .fails(Code::InvalidArgument);
    drawn: Case::op("XlaRngBitGenerator").inputs([scalar(1), vector(&[1u64, 2]), vector(&[2])]).attr("dtype", DataType::UINT32)
        .gives(vector(&[1u64, 3])).gives(vector(&[2_100_602_697u32, 2_847_456_232]));
    unknown_algorithm: Case::op("XlaRngBitGenerator").inputs([scalar(4), vector(&[1u64, 2]), vector(&[2])])
        .attr("dtype", DataType::UINT32).fails(Code::InvalidArgument);
}
