//! Uniform numbers in HLO: random bits, and arithmetic on each of them, which fusions do where the numbers are read.
//!
//! The numbers are those of the kernels, bit for bit. What has no bits of Philox, or is an error, calls the kernel.

use super::stateless::{AUTOMATIC, PHILOX};
use crate::host_call;
use ff_hlo::{Builder, Op as HloOp, Opcode, RngAlgorithm};
use ff_op::LowerContext;
use ff_tensor::{DataType, Result};

/// The key with which pairs of seeds are scrambled.
const SEEDS_KEY: u64 = 0x0246_1e29_3ec8_f720;

/// Numbers in `[0, 1)`.
pub(super) fn uniform(context: &mut LowerContext) -> Result<()> {
    let (dtype, drawn) = match context.output_type(0) {
        DataType::DOUBLE => (DataType::DOUBLE, DataType::UINT64),
        dtype => (dtype, DataType::UINT32),
    };
    let Some(bits) = random_bits(context, drawn)? else {
        return host_call::lower(context);
    };
    let b = &mut *context.builder;
    let number = match dtype {
        DataType::FLOAT => unit(b, bits, dtype, 23)?,
        DataType::HALF => unit(b, bits, dtype, 10)?,
        DataType::BFLOAT16 => unit(b, bits, dtype, 7)?,
        DataType::DOUBLE => {
            // The first word is the upper one.
            let high = shifted(b, Opcode::ShiftLeft, bits, 32)?;
            let low = shifted(b, Opcode::ShiftRightLogical, bits, 32)?;
            let turned = b.binary(Opcode::Or, high, low)?;
            unit(b, turned, dtype, 52)?
        }
        _ => return host_call::lower(context),
    };
    context.set_output(0, number);
    Ok(())
}

/// All values of an integer type.
pub(super) fn full_integers(context: &mut LowerContext) -> Result<()> {
    let dtype = context.output_type(0);
    let drawn = match dtype {
        DataType::INT64 | DataType::UINT64 => DataType::UINT64,
        _ => DataType::UINT32,
    };
    let Some(bits) = random_bits(context, drawn)? else {
        return host_call::lower(context);
    };
    let number = if dtype == drawn {
        bits
    } else {
        context.builder.convert(bits, dtype)?
    };
    context.set_output(0, number);
    Ok(())
}

fn shifted(b: &mut Builder, opcode: Opcode, bits: HloOp, by: i32) -> Result<HloOp> {
    let by = b.scalar_like(f64::from(by), bits)?;
    b.binary(opcode, bits, by)
}

/// The lowest bits as a fraction: exact in a type of so many bits behind the point.
fn unit(b: &mut Builder, bits: HloOp, dtype: DataType, digits: i32) -> Result<HloOp> {
    let mask = b.scalar_like(2f64.powi(digits) - 1.0, bits)?;
    let mantissa = b.binary(Opcode::And, bits, mask)?;
    // Processors convert signed integers.
    let signed = match b.dtype(bits) {
        DataType::UINT64 => DataType::INT64,
        _ => DataType::INT32,
    };
    let mantissa = b.convert(mantissa, signed)?;
    let number = b.convert(mantissa, dtype)?;
    let scale = b.scalar_like(2f64.powi(-digits), number)?;
    b.multiply(number, scale)
}

/// Bits of the stream that the inputs name, in the extents that the first input says, if they are known and it is Philox.
fn random_bits(context: &mut LowerContext, dtype: DataType) -> Result<Option<HloOp>> {
    let dims = context.constant_i64s(0).unwrap_or_else(|_| vec![-1]);
    if dims.iter().any(|&extent| extent < 0) {
        return Ok(None);
    }
    let state = if context.num_inputs() == 2 {
        of_seeds(context)?
    } else {
        of_key_and_counter(context)?
    };
    let Some(state) = state else { return Ok(None) };
    let bits = context
        .builder
        .random_bits(RngAlgorithm::Philox, state, dtype, &dims)?;
    Ok(Some(bits))
}

/// The state of the generator that a key and a counter name.
fn of_key_and_counter(context: &mut LowerContext) -> Result<Option<HloOp>> {
    let algorithm = context.constant(3).and_then(|value| value.single::<i32>());
    let is_philox = algorithm.is_ok_and(|value| value == PHILOX || i64::from(value) == AUTOMATIC);
    let (key, counter) = (context.input(1)?, context.input(2)?);
    let fits = context.input_dims(1)? == [1] && matches!(context.input_dims(2)?[..], [extent] if extent >= 2);
    if !is_philox || !fits {
        return Ok(None);
    }
    let counter = context.builder.slice(counter, &[0], &[2], &[1])?;
    context.builder.concatenate(&[key, counter], 0).map(Some)
}

/// The state of the generator that a pair of seeds names.
fn of_seeds(context: &mut LowerContext) -> Result<Option<HloOp>> {
    let seeds = context.input(1)?;
    if context.input_dims(1)? != [2] {
        return Ok(None);
    }
    let b = &mut *context.builder;
    let seeds = b.convert(seeds, DataType::UINT64)?;
    let key = b.constant_vector(&[SEEDS_KEY])?;
    let state = b.concatenate(&[key, seeds], 0)?;
    let mixed = b.random_bits(RngAlgorithm::Philox, state, DataType::UINT64, &[2])?;
    let key = b.slice(mixed, &[0], &[1], &[1])?;
    let high = b.slice(mixed, &[1], &[2], &[1])?;
    let low = b.constant_vector(&[0u64])?;
    b.concatenate(&[key, low, high], 0).map(Some)
}
