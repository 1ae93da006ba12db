//! Every elementwise opcode against the mathematics or literal values.

use super::{evaluate, tensor};
use crate::{Direction, Opcode};
use ff_tensor::{Bool, Complex64, DataType, Element, Tensor, bf16, f16};

fn unary<T: Element>(opcode: Opcode, values: &[T]) -> Tensor {
    evaluate(&[tensor(&[values.len() as i64], values)], |b, p| {
        b.unary(opcode, p[0])
    })
}

fn binary<T: Element>(opcode: Opcode, lhs: &[T], rhs: &[T]) -> Vec<T> {
    let shape = [lhs.len() as i64];
    let result = evaluate(&[tensor(&shape, lhs), tensor(&shape, rhs)], |b, p| {
        b.binary(opcode, p[0], p[1])
    });
    result.as_slice::<T>().unwrap().to_vec()
}

#[test]
fn functions_of_one_real_number() {
    type Reference = fn(f64) -> f64;
    let rows: &[(Opcode, Reference)] = &[
        (Opcode::Abs, f64::abs),
        (Opcode::Acos, f64::acos),
        (Opcode::Asin, f64::asin),
        (Opcode::Asinh, f64::asinh),
        (Opcode::Atan, f64::atan),
        (Opcode::Atanh, f64::atanh),
        (Opcode::Cbrt, f64::cbrt),
        (Opcode::Ceil, f64::ceil),
        (Opcode::Cosh, f64::cosh),
        (Opcode::Cosine, f64::cos),
        (Opcode::Exponential, f64::exp),
        (Opcode::ExponentialMinusOne, f64::exp_m1),
        (Opcode::Floor, f64::floor),
        (Opcode::Log, f64::ln),
        (Opcode::LogPlusOne, f64::ln_1p),
        (Opcode::Logistic, |x| 1.0 / (1.0 + (-x).exp())),
        (Opcode::Negate, |x| -x),
        (Opcode::Real, |x| x),
        (Opcode::Imag, |_| 0.0),
        (Opcode::RoundNearestAfz, f64::round),
        (Opcode::RoundNearestEven, f64::round_ties_even),
        (Opcode::Rsqrt, |x| 1.0 / x.sqrt()),
        (Opcode::Sign, |x| if x == 0.0 { x } else { x.signum() }),
        (Opcode::Sine, f64::sin),
        (Opcode::Sinh, f64::sinh),
        (Opcode::Sqrt, f64::sqrt),
        (Opcode::Tan, f64::tan),
        (Opcode::Tanh, f64::tanh),
    ];
    let x = [
        -2.5f64, -1.0, -0.75, -0.5, -1e-3, 0.0, 0.25, 0.5, 0.9, 1.0, 1.5, 7.0,
    ];
    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    for &(opcode, reference) in rows {
        for (result, &x) in unary(opcode, &x).as_slice::<f64>().unwrap().iter().zip(&x) {
            close(*result, reference(x), 1e-15, opcode, x);
        }
        for (result, &x) in unary(opcode, &narrow)
            .as_slice::<f32>()
            .unwrap()
            .iter()
            .zip(&narrow)
        {
            close(
                f64::from(*result),
                reference(f64::from(x)),
                5e-7,
                opcode,
                f64::from(x),
            );
        }
    }
}

#[track_caller]
fn close(result: f64, expected: f64, tolerance: f64, opcode: Opcode, x: f64) {
    let fine = result == expected
        || (result.is_nan() && expected.is_nan())
        || (result - expected).abs() <= tolerance * expected.abs().max(1e-30);
    assert!(fine, "{opcode}({x}) is {result}, not {expected}");
}

#[test]
fn special_functions_have_their_known_values() {
    let values = |opcode, x: &[f64]| unary(opcode, x).as_slice::<f64>().unwrap().to_vec();
    let near = |opcode, x: f64, expected: f64| close(values(opcode, &[x])[0], expected, 1e-14, opcode, x);
    near(Opcode::Erf, 0.5, 0.520_499_877_813_046_5);
    near(Opcode::Erfc, 2.0, 0.004_677_734_981_047_266);
    near(Opcode::ErfInv, 0.520_499_877_813_046_5, 0.5);
    near(Opcode::ErfInv, -0.999, -2.326_753_765_513_525);
    near(Opcode::LogGamma, 0.5, 0.572_364_942_924_700_1);
    near(Opcode::Digamma, 1.0, -0.577_215_664_901_532_9);
    near(Opcode::Digamma, 2.5, 0.703_156_640_645_243_2);
    near(Opcode::Acosh, 2.0, 1.316_957_896_924_816_7);
    let finite = unary(Opcode::IsFinite, &[1.0f32, f32::INFINITY, f32::NAN]);
    assert_eq!(
        finite.as_slice::<Bool>().unwrap(),
        [Bool::TRUE, Bool::FALSE, Bool::FALSE]
    );
}

#[test]
fn arithmetic_of_reals() {
    let (a, b) = ([7.5f32, -7.5, 1.0, f32::NAN], [2.0f32, 2.0, 0.0, 1.0]);
    assert_eq!(binary(Opcode::Add, &a, &b)[..2], [9.5, -5.5]);
    assert_eq!(binary(Opcode::Subtract, &a, &b)[..2], [5.5, -9.5]);
    assert_eq!(binary(Opcode::Multiply, &a, &b)[..2], [15.0, -15.0]);
    assert_eq!(binary(Opcode::Divide, &a, &b)[..3], [3.75, -3.75, f32::INFINITY]);
    assert_eq!(binary(Opcode::Remainder, &a, &b)[..2], [1.5, -1.5]);
    assert_eq!(binary(Opcode::Power, &a, &b)[..3], [56.25, 56.25, 1.0]);
    assert_eq!(binary(Opcode::Maximum, &a, &b)[..2], [7.5, 2.0]);
    assert_eq!(binary(Opcode::Minimum, &a, &b)[..2], [2.0, -7.5]);
    assert!(binary(Opcode::Maximum, &a, &b)[3].is_nan() && binary(Opcode::Minimum, &b, &a)[3].is_nan());
    assert_eq!(
        binary(Opcode::Atan2, &[1.0f64], &[-1.0])[0],
        2.356_194_490_192_345
    );
    assert_eq!(
        binary(Opcode::NextAfter, &[1.0f32, 0.0], &[2.0, -1.0]),
        [1.000_000_1, -f32::from_bits(1)]
    );
}

#[test]
fn arithmetic_of_integers_wraps() {
    assert_eq!(binary(Opcode::Add, &[i8::MAX, 1], &[1i8, 2]), [i8::MIN, 3]);
    assert_eq!(
        binary(Opcode::Divide, &[7i32, -7, 5, i32::MIN], &[2, 2, 0, -1]),
        [3, -3, -1, i32::MIN]
    );
    assert_eq!(binary(Opcode::Divide, &[7u8], &[0u8]), [255]);
    assert_eq!(binary(Opcode::Remainder, &[7i64, -7, 5], &[4, 4, 0]), [3, -3, 5]);
    assert_eq!(
        binary(Opcode::Power, &[3i32, 2, -1, 5], &[4, -1, -3, 0]),
        [81, 0, -1, 1]
    );
    assert_eq!(binary(Opcode::ShiftLeft, &[1u16, 1], &[3u16, 16]), [8, 0]);
    assert_eq!(
        binary(Opcode::ShiftRightLogical, &[-1i32, -1], &[28, 40]),
        [15, 0]
    );
    assert_eq!(
        binary(Opcode::ShiftRightArithmetic, &[-16i32, -16], &[2, 40]),
        [-4, -1]
    );
    assert_eq!(binary(Opcode::And, &[6u32], &[3]), [2]);
    assert_eq!(binary(Opcode::Or, &[6u32], &[3]), [7]);
    assert_eq!(binary(Opcode::Xor, &[6u64], &[3]), [5]);
    assert_eq!(binary(Opcode::Maximum, &[-1i16, 3], &[2, -5]), [2, 3]);
    assert_eq!(unary(Opcode::Not, &[5u8]).as_slice::<u8>().unwrap(), [250]);
    assert_eq!(
        unary(Opcode::Abs, &[i32::MIN, -3]).as_slice::<i32>().unwrap(),
        [i32::MIN, 3]
    );
    assert_eq!(
        unary(Opcode::Sign, &[-7i8, 0, 9]).as_slice::<i8>().unwrap(),
        [-1, 0, 1]
    );
    assert_eq!(unary(Opcode::Popcnt, &[0xf0u8]).as_slice::<u8>().unwrap(), [4]);
    assert_eq!(
        unary(Opcode::CountLeadingZeros, &[1i64])
            .as_slice::<i64>()
            .unwrap(),
        [63]
    );
}

#[test]
fn truth_values() {
    let (t, f) = (Bool::TRUE, Bool::FALSE);
    let (a, b) = ([t, t, f, f], [t, f, t, f]);
    assert_eq!(binary(Opcode::And, &a, &b), [t, f, f, f]);
    assert_eq!(binary(Opcode::Or, &a, &b), [t, t, t, f]);
    assert_eq!(binary(Opcode::Xor, &a, &b), [f, t, t, f]);
    assert_eq!(unary(Opcode::Not, &[t, f]).as_slice::<Bool>().unwrap(), [f, t]);
    let less = evaluate(
        &[tensor(&[2], &[1.0f32, f32::NAN]), tensor(&[2], &[2.0f32, 1.0])],
        |b, p| b.compare(Direction::Lt, p[0], p[1]),
    );
    assert_eq!(less.as_slice::<Bool>().unwrap(), [t, f]);
}

#[test]
fn complex_numbers() {
    let z = [Complex64::new(3.0, 4.0), Complex64::new(0.5, -0.25)];
    assert_eq!(unary(Opcode::Abs, &z).as_slice::<f32>().unwrap()[0], 5.0);
    assert_eq!(
        unary(Opcode::Sqrt, &z).as_slice::<Complex64>().unwrap()[0],
        Complex64::new(2.0, 1.0)
    );
    assert_eq!(unary(Opcode::Imag, &z).as_slice::<f32>().unwrap(), [4.0, -0.25]);
    let product = binary(Opcode::Multiply, &z[..1], &[Complex64::new(0.0, 1.0)]);
    assert_eq!(product[0], Complex64::new(-4.0, 3.0));
    let pairs = [
        (Opcode::Exponential, Opcode::Log),
        (Opcode::Sine, Opcode::Asin),
        (Opcode::Cosine, Opcode::Acos),
        (Opcode::Tan, Opcode::Atan),
        (Opcode::Sinh, Opcode::Asinh),
        (Opcode::Tanh, Opcode::Atanh),
        (Opcode::ExponentialMinusOne, Opcode::LogPlusOne),
    ];
    for (function, inverse) in pairs {
        let there = unary(inverse, &z[1..]);
        let back = unary(function, there.as_slice::<Complex64>().unwrap());
        let back = back.as_slice::<Complex64>().unwrap()[0];
        assert!(
            (back - z[1]).norm() < 1e-6,
            "{function} of {inverse} gives {back}"
        );
    }
    let made = evaluate(&[tensor(&[1], &[1.0f64]), tensor(&[1], &[2.0f64])], |b, p| {
        b.binary(Opcode::Complex, p[0], p[1])
    });
    assert_eq!(made.dtype(), DataType::COMPLEX128);
}

#[test]
fn conversions_are_the_processors() {
    let x = [1e20f32, -1e20, f32::NAN, 300.7, -300.7, 3e9, -1.5];
    let to = |dtype| evaluate(&[tensor(&[7], &x)], |b, p| b.convert(p[0], dtype));
    assert_eq!(
        to(DataType::INT8).as_slice::<i8>().unwrap(),
        [0, 0, 0, 44, -44, 0, -1]
    );
    assert_eq!(
        to(DataType::UINT8).as_slice::<u8>().unwrap(),
        [0, 0, 0, 44, 212, 0, 255]
    );
    let low = i32::MIN;
    assert_eq!(
        to(DataType::INT32).as_slice::<i32>().unwrap(),
        [low, low, low, 300, -300, low, -1]
    );
    assert_eq!(
        to(DataType::INT64).as_slice::<i64>().unwrap()[3..],
        [300, -300, 3_000_000_000, -1]
    );
    assert_eq!(
        to(DataType::UINT64).as_slice::<u64>().unwrap()[4],
        18_446_744_073_709_551_316
    );
    assert_eq!(to(DataType::BOOL).as_slice::<Bool>().unwrap()[0], Bool::TRUE);
    assert_eq!(to(DataType::HALF).as_slice::<f16>().unwrap()[0], f16::INFINITY);
    let bits = evaluate(&[tensor(&[1], &[1.0f32])], |b, p| {
        b.bitcast_convert(p[0], DataType::UINT16)
    });
    assert_eq!(
        (bits.dims(), bits.as_slice::<u16>().unwrap()),
        (&[1, 2][..], &[0, 0x3f80][..])
    );
    let same = evaluate(&[tensor(&[1], &[1.0f32])], |b, p| {
        b.bitcast_convert(p[0], DataType::INT32)
    });
    assert_eq!(same.as_slice::<i32>().unwrap(), [0x3f80_0000]);
}

#[test]
fn small_floats_round_after_each_instruction() {
    let x = [bf16::from_f32(1.0), bf16::from_f32(256.0)];
    let result = evaluate(&[tensor(&[2], &x)], |b, p| {
        let one = b.scalar_like(1.0, p[0])?;
        let more = b.add(p[0], one)?;
        b.subtract(more, p[0])
    });
    // 257 is not a bfloat16: the sum rounds back to 256.
    assert_eq!(result.as_slice::<bf16>().unwrap(), [bf16::ONE, bf16::ZERO]);
    let half = binary(Opcode::Multiply, &[f16::from_f32(0.1)], &[f16::from_f32(3.0)]);
    assert_eq!(half[0], f16::from_f32(f16::from_f32(0.1).to_f32() * 3.0));
    let reduced = evaluate(&[tensor(&[3], &[1.0f32 + 1.0 / 256.0, 1e30, -1e-30])], |b, p| {
        b.reduce_precision(p[0], 5, 7)
    });
    assert_eq!(reduced.as_slice::<f32>().unwrap(), [1.0, f32::INFINITY, 0.0]);
}

#[test]
fn select_and_clamp_take_scalars() {
    let x = tensor(&[3], &[-5.0f32, 0.5, 5.0]);
    let clamped = evaluate(std::slice::from_ref(&x), |b, p| {
        let (low, high) = (b.scalar(DataType::FLOAT, -1.0)?, b.scalar(DataType::FLOAT, 1.0)?);
        b.clamp(low, p[0], high)
    });
    assert_eq!(clamped.as_slice::<f32>().unwrap(), [-1.0, 0.5, 1.0]);
    let chosen = evaluate(&[tensor(&[], &[Bool::FALSE]), x], |b, p| {
        let other = b.unary(Opcode::Negate, p[1])?;
        b.select(p[0], p[1], other)
    });
    assert_eq!(chosen.as_slice::<f32>().unwrap(), [5.0, -0.5, -5.0]);
}
