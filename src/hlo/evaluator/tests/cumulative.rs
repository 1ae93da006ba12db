//! Windows that reach from one end: sums beside loops, along each axis, forwards and backwards, and windows that do not.

use super::{evaluate, tensor};
use crate::{Opcode, Window, WindowDimension};
use ff_tensor::{DataType, Element, Tensor, f16};

/// Results of `join` along an axis, one after another from a start.
fn expected<T: Element + Copy>(
    x: &[T],
    (outer, extent, inner): (usize, usize, usize),
    start: T,
    backwards: bool,
    join: fn(T, T) -> T,
) -> Vec<T> {
    let mut out = x.to_vec();
    for line in 0..outer * inner {
        let mut total = start;
        for turn in 0..extent {
            let place = if backwards { extent - 1 - turn } else { turn };
            let at = (line / inner * extent + place) * inner + line % inner;
            total = join(total, x[at]);
            out[at] = total;
        }
    }
    out
}

fn windows(axis: usize, low: i64, high: i64) -> Window {
    let mut window = Window::from_elem(WindowDimension::new(1), 3);
    window[axis].size = low + high + 1;
    (window[axis].padding_low, window[axis].padding_high) = (low, high);
    window
}

fn running(x: &Tensor, start: f64, opcode: Opcode, window: Window) -> Tensor {
    evaluate(&[x.deep_copy().unwrap()], |b, p| {
        let init = b.scalar(x.dtype(), start)?;
        let join = b.reducer(opcode, x.dtype())?;
        b.reduce_window(&[p[0]], &[init], join, window)
    })
}

fn check<T: Element + Copy>(of: fn(f64) -> T, opcode: Opcode, start: f64, join: fn(T, T) -> T) {
    for dims in [[3_i64, 5, 4], [2, 3, 40], [4, 7, 1]] {
        let count = dims.iter().product::<i64>();
        let values: Vec<T> = (0..count)
            .map(|i| of((i * 7919 % 23) as f64 * 0.3 - 2.0))
            .collect();
        let x = tensor(&dims, &values);
        for axis in 0..3 {
            let part = |dims: &[i64]| dims.iter().product::<i64>() as usize;
            let sizes = (part(&dims[..axis]), dims[axis] as usize, part(&dims[axis + 1..]));
            for backwards in [false, true] {
                let far = dims[axis] - 1;
                let (low, high) = if backwards { (0, far) } else { (far, 0) };
                let got = running(&x, start, opcode, windows(axis, low, high));
                let wanted = expected(&values, sizes, of(start), backwards, join);
                assert_eq!(
                    got.bytes(),
                    tensor(&dims, &wanted).bytes(),
                    "{opcode} {dims:?} {axis} {backwards}"
                );
            }
        }
    }
}

#[test]
fn running_sums_and_their_like() {
    check(|x| x as f32, Opcode::Add, 0.0, |a, b| a + b);
    check(|x| x as f32, Opcode::Add, 2.5, |a, b| a + b);
    check(|x| x, Opcode::Multiply, 1.0, |a: f64, b| a * b);
    check(|x| x as f32, Opcode::Maximum, f64::NEG_INFINITY, f32::max);
    check(f16::from_f64, Opcode::Add, 0.0, |a, b| a + b);
    check(|x| x as i8, Opcode::Multiply, 1.0, i8::wrapping_mul);
    check(|x| x as u32, Opcode::Add, 0.0, u32::wrapping_add);
    check(|x| x as i64, Opcode::Xor, 0.0, |a, b| a ^ b);
}

#[test]
fn reducers_that_are_no_opcode() {
    let x = tensor(&[2, 3, 1], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    for (low, high) in [(2, 0), (0, 2)] {
        let got = evaluate(&[x.deep_copy().unwrap()], |b, p| {
            let scalar = crate::ArrayShape::scalar(DataType::FLOAT);
            // 2 (a + b): the order counts.
            let join = b.computation("join", |b| {
                let (a, c) = (b.parameter(0, scalar.clone(), "a")?, b.parameter(1, scalar, "c")?);
                let sum = b.add(a, c)?;
                b.add(sum, sum)
            })?;
            let init = b.scalar(DataType::FLOAT, 0.0)?;
            b.reduce_window(&[p[0]], &[init], join, windows(1, low, high))
        });
        let mut by_hand = [0.0_f32; 6];
        for (row, values) in by_hand.chunks_mut(3).zip([[1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]]) {
            for (place, out) in row.iter_mut().enumerate() {
                let seen = if low > 0 {
                    &values[..=place]
                } else {
                    &values[place..]
                };
                *out = seen.iter().fold(0.0, |a, b| 2.0 * (a + b));
            }
        }
        assert_eq!(got.as_slice::<f32>().unwrap(), by_hand);
    }
}

#[test]
fn windows_that_do_not_reach() {
    let x = tensor(&[1, 4, 1], &[1.0_f32, 2.0, 4.0, 8.0]);
    let sums = |low, high| {
        let sums = running(&x, 0.0, Opcode::Add, windows(1, low, high));
        sums.as_slice::<f32>().unwrap().to_vec()
    };
    assert_eq!(sums(2, 0), [1.0, 3.0, 7.0, 14.0]);
    assert_eq!(sums(3, 1), [3.0, 7.0, 15.0, 15.0]);
    assert_eq!(sums(5, 0), [1.0, 3.0, 7.0, 15.0]);
}
