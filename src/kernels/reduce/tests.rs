use super::*;
use half::f16;

fn numbers(len: usize) -> Vec<f32> {
    (0..len)
        .map(|i| ((i * 7919) % 1000) as f32 * 0.01 - 4.0)
        .collect()
}

/// The definition, in `f64`.
fn naive(x: &[f32], dims: &[usize], reduced: &[bool]) -> Vec<f64> {
    let kept: usize = dims
        .iter()
        .zip(reduced)
        .filter(|&(_, &r)| !r)
        .map(|(&d, _)| d)
        .product();
    let mut out = vec![0.0; kept];
    for (flat, &value) in x.iter().enumerate() {
        let (mut rest, mut at, mut step) = (flat, 0, 1);
        for axis in (0..dims.len()).rev() {
            let index = rest % dims[axis];
            rest /= dims[axis];
            if !reduced[axis] {
                at += index * step;
                step *= dims[axis];
            }
        }
        out[at] += f64::from(value);
    }
    out
}

#[test]
fn sums_over_all_sets_of_axes() {
    for dims in [
        vec![3, 40, 5, 7],
        vec![2, 300, 3, 1],
        vec![1, 1, 1, 9000],
        vec![700, 2, 2, 9],
        vec![5, 1500],
    ] {
        let x = numbers(dims.iter().product());
        for set in 0..1 << dims.len() {
            let reduced: Vec<bool> = (0..dims.len()).map(|axis| set >> axis & 1 == 1).collect();
            let expected = naive(&x, &dims, &reduced);
            let mut results = Vec::new();
            for threads in [1, 2, 3] {
                let mut out = vec![f32::NAN; expected.len()];
                sum(&ThreadPool::new(threads), &x, &dims, &reduced, &mut out).unwrap();
                for (&g, &e) in out.iter().zip(&expected) {
                    assert!(
                        (f64::from(g) - e).abs() <= 1e-4 * (1.0 + e.abs()),
                        "{dims:?} {reduced:?}: {g} for {e}"
                    );
                }
                results.push(out);
            }
            assert!(
                results.iter().all(|r| *r == results[0]),
                "bits depend on the threads"
            );
        }
    }
}

#[test]
fn large_sums_are_accurate() {
    let x = vec![0.1_f32; 10_000_000];
    let mut out = [0.0];
    sum(&ThreadPool::new(2), &x, &[x.len()], &[true], &mut out).unwrap();
    assert!((out[0] - 1_000_000.0).abs() < 1.0, "{}", out[0]);
}

#[test]
fn other_reductions() {
    let pool = ThreadPool::serial();
    let x = [1.0, 5.0, -2.0, f32::NAN, 3.0, 4.0];
    let mut out = [0.0; 2];
    max(pool, &x, &[2, 3], &[false, true], &mut out, f32::NEG_INFINITY).unwrap();
    assert!(out[0] == 5.0 && out[1].is_nan());
    min(pool, &x, &[2, 3], &[false, true], &mut out, f32::INFINITY).unwrap();
    assert!(out[0] == -2.0 && out[1].is_nan());
    let mut out = [0; 2];
    mean(pool, &[1, 2, 4, -7, -7, -7], &[2, 3], &[false, true], &mut out).unwrap();
    assert_eq!(out, [2, -7]);
    product(pool, &[1, 2, 3, 4], &[2, 2], &[true, false], &mut out).unwrap();
    assert_eq!(out, [3, 8]);
    let mut out = [9; 2];
    all(pool, &[1, 2, 0, 1], &[2, 2], &[false, true], &mut out).unwrap();
    assert_eq!(out, [1, 0]);
    any(pool, &[0, 0, 0, 1], &[2, 2], &[false, true], &mut out).unwrap();
    assert_eq!(out, [0, 1]);
    let mut out = [f16::ZERO];
    sum(pool, &[f16::from_f32(0.25); 4096], &[4096], &[true], &mut out).unwrap();
    assert_eq!(out[0], f16::from_f32(1024.0));
    let mut out = [0.0];
    sum(pool, &[] as &[f32], &[0], &[true], &mut out).unwrap();
    assert_eq!(out, [0.0]);
    mean(pool, &[] as &[f32], &[0], &[true], &mut out).unwrap();
    assert!(out[0].is_nan());
}

#[test]
fn first_of_the_best() {
    let x = [3, 1, 3, 2, 5, 5];
    let mut out = [0; 2];
    arg_reduce(ThreadPool::serial(), &x, (2, 3, 1), &mut out, |a, b| a > b);
    assert_eq!(out, [0, 1]);
    let mut out = [0; 3];
    arg_reduce(ThreadPool::serial(), &x, (1, 2, 3), &mut out, |a, b| a < b);
    assert_eq!(out, [1, 0, 0]);
}
