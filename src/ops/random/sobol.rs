//! Points of the Sobol sequence (Joe and Kuo, "Remark on algorithm 659", 2003), which fill a cube evenly.
//!
//! Each axis has direction numbers: the first ones are in `sobol.bin` (see `tools/reference/tables.py`), the others follow
//! from the axis's primitive polynomial. The polynomials are those of degree 1, 2, .. in the order of their coefficients.

use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, dim, ensure};

/// The ops of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "SobolSample",
    shape,
    kernels: &[Kernel::native(sample)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
}];

const AXES: usize = 21_200;
const DIGITS: usize = 31;
static FIRST_NUMBERS: &[u8] = include_bytes!("sobol.bin");

fn shape(context: &mut ShapeContext) -> Result<()> {
    for input in 0..3 {
        context.input_with_rank(input, 0)?;
    }
    let extent = |input| -> Result<i64> { Ok(context.input_as_scalar(input)?.unwrap_or(dim::UNKNOWN)) };
    let (axes, count) = (extent(0)?, extent(1)?);
    // The kernel refuses numbers below one.
    if axes >= -1 && count >= -1 {
        context.set_output(0, PartialShape::new(&[count, axes]));
    } else {
        context.set_output(0, PartialShape::of_rank(2));
    }
    Ok(())
}

/// The product of two polynomials over bits, modulo a third of this degree.
fn product(mut a: u32, mut b: u32, polynomial: u32, degree: u32) -> u32 {
    let mut result = 0;
    while b > 0 {
        if b & 1 == 1 {
            result ^= a;
        }
        b >>= 1;
        a <<= 1;
        if a >> degree & 1 == 1 {
            a ^= polynomial;
        }
    }
    result
}

/// The prime factors of a number.
fn primes(mut number: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut prime = 2;
    while prime * prime <= number {
        if number.is_multiple_of(prime) {
            found.push(prime);
            while number.is_multiple_of(prime) {
                number /= prime;
            }
        }
        prime += 1;
    }
    if number > 1 {
        found.push(number);
    }
    found
}

/// Whether the powers of x modulo a polynomial are all polynomials of lower degree; `order` is how many those are, with its
/// prime factors.
fn is_primitive(polynomial: u32, degree: u32, order: u32, primes: &[u32]) -> bool {
    let power = |mut exponent: u32| {
        let (mut base, mut result) = (if degree == 1 { 1 } else { 2 }, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = product(result, base, polynomial, degree);
            }
            base = product(base, base, polynomial, degree);
            exponent >>= 1;
        }
        result
    };
    power(order) == 1 && primes.iter().all(|prime| power(order / prime) != 1)
}

/// The direction numbers of the first axes: that of digit `k` has `k + 1` bits.
fn directions(axes: usize) -> Result<Vec<[u32; DIGITS]>> {
    let mut all = crate::wide::reserved(axes)?;
    all.push([1; DIGITS]);
    let mut bit = 0;
    for degree in 1u32.. {
        let order = (1 << degree) - 1;
        let primes = primes(order);
        for inner in 0..1u32 << (degree - 1) {
            if all.len() == axes {
                return Ok(all);
            }
            let polynomial = 1 << degree | inner << 1 | 1;
            if is_primitive(polynomial, degree, order, &primes) {
                all.push(axis(degree as usize, inner, &mut bit));
            }
        }
    }
    Ok(all)
}

/// The numbers of the axis whose first ones begin at a bit of the table.
fn axis(degree: usize, inner: u32, bit: &mut usize) -> [u32; DIGITS] {
    let mut numbers = [0; DIGITS];
    for (digit, number) in numbers[..degree].iter_mut().enumerate() {
        *number = 1;
        for place in 1..=digit {
            let byte = FIRST_NUMBERS.get(*bit / 8).copied().unwrap_or(0);
            *number |= u32::from(byte >> (*bit % 8) & 1) << place;
            *bit += 1;
        }
    }
    for digit in degree..DIGITS {
        let mut number = numbers[digit - degree] ^ numbers[digit - degree] << degree;
        for back in 1..degree {
            if inner >> (degree - 1 - back) & 1 == 1 {
                number ^= numbers[digit - back] << back;
            }
        }
        numbers[digit] = number;
    }
    numbers
}

fn sample(context: &mut KernelContext) -> Result<()> {
    let single = |input: usize| context.input(input)?.single::<i32>();
    let (axes, count, skip) = (single(0)?, single(1)?, single(2)?);
    ensure!(axes >= 1, InvalidArgument, "dim must be at least one");
    ensure!(axes <= AXES as i32, InvalidArgument, "dim must be at most {AXES}");
    ensure!(count >= 1, InvalidArgument, "num_results must be at least one");
    ensure!(skip >= 0, InvalidArgument, "skip must be non-negative");
    ensure!(
        count < i32::MAX - skip,
        InvalidArgument,
        "num_results+skip must be less than {}",
        i32::MAX
    );
    let mut output = context.allocate_output(0)?;
    let axes = axes as usize;
    let first = skip as u32 + 1;
    match context.output_type(0) {
        DataType::DOUBLE => fill(context, output.as_mut_slice::<f64>()?, axes, first, |x| x)?,
        _ => fill(context, output.as_mut_slice::<f32>()?, axes, first, |x| x as f32)?,
    }
    context.set_output(0, output)
}

/// Points from number `first` on, one after the other.
fn fill<T>(
    context: &KernelContext,
    output: &mut [T],
    axes: usize,
    first: u32,
    narrow: fn(f64) -> T,
) -> Result<()> {
    let directions = directions(axes)?;
    // A point in units of 2^-31.
    let mut point = crate::wide::zeros::<u32>(axes)?;
    let gray = first ^ first >> 1;
    for (axis, own) in point.iter_mut().zip(&directions) {
        for digit in (0..DIGITS).filter(|digit| gray >> digit & 1 == 1) {
            *axis ^= own[digit] << (DIGITS - 1 - digit);
        }
    }
    for (number, row) in output.chunks_exact_mut(axes).enumerate() {
        if number > 0 {
            // From one point to the next the code of its number changes in one digit.
            let digit = (first + number as u32 - 1).trailing_ones() as usize;
            for (axis, own) in point.iter_mut().zip(&directions) {
                *axis ^= own[digit] << (DIGITS - 1 - digit);
            }
        }
        if number % 4096 == 0 {
            context.host().cancellation().check()?;
        }
        for (to, &axis) in row.iter_mut().zip(&point) {
            *to = narrow(f64::from(axis) / (1u64 << DIGITS) as f64);
        }
    }
    Ok(())
}

crate::op_cases! {
    points: Case::op("SobolSample").inputs([scalar(4), scalar(4), scalar(0)]).attr("dtype", DataType::DOUBLE).gives(t(&[4, 4], &[
        0.5f64, 0.5, 0.5, 0.5, 0.75, 0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.375, 0.375, 0.625, 0.875,
    ]));
    points_later: Case::op("SobolSample").inputs([scalar(1111), scalar(3), scalar(123_456)]);
    points_of_many_axes: Case::op("SobolSample").inputs([scalar(21_200), scalar(2), scalar(77)]);
    points_much_later: Case::op("SobolSample").inputs([scalar(7), scalar(5), scalar(1_000_000_000)]).attr("dtype", DataType::DOUBLE);
    points_many: Case::op("SobolSample").inputs([scalar(3), scalar(1200), scalar(17)]).attr("dtype", DataType::DOUBLE);
    no_axes: Case::op("SobolSample").inputs([scalar(0), scalar(4), scalar(0)]).fails(Code::InvalidArgument);
    too_many_axes: Case::op("SobolSample").inputs([scalar(21_201), scalar(4), scalar(0)]).fails(Code::InvalidArgument);
    no_points: Case::op("SobolSample").inputs([scalar(2), scalar(0), scalar(0)]).fails(Code::InvalidArgument);
    before_the_first: Case::op("SobolSample").inputs([scalar(2), scalar(2), scalar(-1)]).fails(Code::InvalidArgument);
    beyond_the_last: Case::op("SobolSample").inputs([scalar(2), scalar(2), scalar(i32::MAX - 1)]).fails(Code::InvalidArgument);
    axes_in_a_list: Case::op("SobolSample").inputs([vector(&[2]), scalar(2), scalar(0)]).fails(Code::InvalidArgument);
}
