//! Matrix products beside their definition, at every level of the processor and for several numbers of threads.
//!
//! A file of its own, and so a process of its own: a limit of the level holds for the whole process, and the bits of a
//! product depend on the level.

use ff_kernels::ThreadPool;
use ff_kernels::cpu::{self, Level};
use ff_kernels::gemm::{
    Activation, Batch, Epilogue, Matrix, PackedB, batch_gemm, batch_gemm_any, gemm, gemm_any, gemm_half,
    gemm_packed,
};
use std::sync::Mutex;

fn random(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// The definition, in `f64`.
fn naive((m, n, k): (usize, usize, usize), a: Matrix<'_, f32>, b: Matrix<'_, f32>) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            for p in 0..k {
                let x = f64::from(a.data[i * a.row_step + p * a.column_step]);
                c[i * n + j] += x * f64::from(b.data[p * b.row_step + j * b.column_step]);
            }
        }
    }
    c
}

fn assert_close(got: &[f32], expected: &[f64], k: usize, what: &str) {
    assert_eq!(got.len(), expected.len());
    let bound = 1e-6 * (k as f64 + 1.0).sqrt() * 2.0;
    for (i, (&g, &e)) in got.iter().zip(expected).enumerate() {
        assert!(
            (f64::from(g) - e).abs() <= bound * (1.0 + e.abs()),
            "{what}, element {i}: {g} for {e}"
        );
    }
}

const SHAPES: [(usize, usize, usize); 18] = [
    (1, 1, 1),
    (1, 70, 33),
    (2, 3, 500),
    (3, 5, 7),
    (5, 64, 1),
    (6, 16, 4),
    (7, 17, 9),
    (8, 130, 40),
    (12, 65, 200),
    (13, 1, 300),
    (17, 129, 5),
    (31, 33, 35),
    (40, 4, 64),
    (64, 64, 64),
    (65, 127, 193),
    (100, 200, 400),
    (4, 300, 1000),
    (3, 130, 0),
];

#[test]
fn all_shapes_and_transposes() {
    for level in [Level::Avx512, Level::Avx2, Level::Baseline] {
        let _limit = cpu::limit(level);
        for shape in SHAPES {
            for transposes in 0..4 {
                one_shape(shape, transposes & 1 == 1, transposes & 2 == 2, level);
            }
        }
    }
}

fn one_shape((m, n, k): (usize, usize, usize), transpose_a: bool, transpose_b: bool, level: Level) {
    let (a, b) = (random(m * k, 1), random(k * n, 2));
    let a = if transpose_a {
        Matrix::transposed(&a, m)
    } else {
        Matrix::new(&a, k)
    };
    let b = if transpose_b {
        Matrix::transposed(&b, k)
    } else {
        Matrix::new(&b, n)
    };
    let what = format!("{m} x {n} x {k}, transposed {transpose_a} {transpose_b}, {level:?}");
    let expected = naive((m, n, k), a, b);
    let bias = random(n, 3);
    let epilogue = Epilogue {
        bias: Some(&bias),
        activation: Activation::Relu6,
        row: None,
    };
    let mut results = Vec::new();
    for threads in [1, 2, 3] {
        let pool = ThreadPool::new(threads);
        let mut c = vec![f32::NAN; m * n];
        gemm(&pool, (m, n, k), a, b, &mut c, n, false, &Epilogue::default()).unwrap();
        assert_close(&c, &expected, k, &what);
        gemm(&pool, (m, n, k), a, b, &mut c, n, true, &Epilogue::default()).unwrap();
        let twice: Vec<f64> = expected.iter().map(|x| 2.0 * x).collect();
        assert_close(&c, &twice, k, &what);
        let mut finished = vec![f32::NAN; m * n];
        gemm(&pool, (m, n, k), a, b, &mut finished, n, false, &epilogue).unwrap();
        let activated: Vec<f64> = (0..m * n)
            .map(|at| (expected[at] + f64::from(bias[at % n])).clamp(0.0, 6.0))
            .collect();
        assert_close(&finished, &activated, k, &what);
        let packed = PackedB::new(&pool, k, n, b).unwrap();
        let mut c_packed = vec![f32::NAN; m * n];
        gemm_packed(&pool, m, a, &packed, &mut c_packed, n, false, &epilogue).unwrap();
        assert_close(&c_packed, &activated, k, &what);
        results.push((c, finished, c_packed));
    }
    assert!(
        results.iter().all(|r| *r == results[0]),
        "{what}: bits depend on the threads"
    );
}

#[test]
fn strided_c_and_row_callback() {
    let (m, n, k) = (23, 150, 77);
    let (a, b) = (random(m * k, 4), random(k * n, 5));
    let (a, b) = (Matrix::new(&a, k), Matrix::new(&b, n));
    let expected = naive((m, n, k), a, b);
    let seen = Mutex::new(vec![0; m * n]);
    let finish = |row: usize, column: usize, x: &mut [f32]| {
        for (j, x) in x.iter_mut().enumerate() {
            seen.lock().unwrap()[row * n + column + j] += 1;
            *x = -*x;
        }
    };
    let epilogue = Epilogue {
        row: Some(&finish),
        ..Epilogue::default()
    };
    let mut c = vec![7.0; m * 160];
    gemm(
        &ThreadPool::new(2),
        (m, n, k),
        a,
        b,
        &mut c,
        160,
        false,
        &epilogue,
    )
    .unwrap();
    assert!(seen.into_inner().unwrap().iter().all(|&count| count == 1));
    for i in 0..m {
        let negated: Vec<f64> = expected[i * n..(i + 1) * n].iter().map(|x| -x).collect();
        assert_close(&c[i * 160..i * 160 + n], &negated, k, "row");
        assert!(
            c[i * 160 + n..(i + 1) * 160].iter().all(|&x| x == 7.0),
            "outside of C"
        );
    }
}

#[test]
fn large_k_in_parts() {
    let (m, n, k) = (20, 70, 9000);
    let (a, b) = (random(m * k, 6), random(k * n, 7));
    let (a, b) = (Matrix::transposed(&a, m), Matrix::new(&b, n));
    let mut c = vec![0.0; m * n];
    let bias = vec![1.0; n];
    let epilogue = Epilogue {
        bias: Some(&bias),
        ..Epilogue::default()
    };
    gemm(&ThreadPool::new(2), (m, n, k), a, b, &mut c, n, false, &epilogue).unwrap();
    let expected: Vec<f64> = naive((m, n, k), a, b).iter().map(|x| x + 1.0).collect();
    assert_close(&c, &expected, k, "large k");
    for k in [9000, 4097, 4224] {
        let pool = ThreadPool::new(2);
        gemm(&pool, (m, n, k), a, b, &mut c, n, false, &epilogue).unwrap();
        let packed = PackedB::new(&pool, k, n, b).unwrap();
        let mut c_packed = vec![0.0; m * n];
        gemm_packed(&pool, m, a, &packed, &mut c_packed, n, false, &epilogue).unwrap();
        assert!(c == c_packed, "k {k}: bits depend on what was packed before");
    }
}

#[test]
fn other_elements() {
    let pool = ThreadPool::new(2);
    let (m, n, k) = (9, 21, 70);
    let a: Vec<i32> = (0..(m * k) as i32).map(|i| i % 13 - 6).collect();
    let b: Vec<i32> = (0..(k * n) as i32).map(|i| i % 7 - 3).collect();
    let mut c = vec![0; m * n];
    gemm_any(
        &pool,
        (m, n, k),
        Matrix::new(&a, k),
        Matrix::transposed(&b, k),
        &mut c,
        n,
        false,
    );
    let sum = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[j * k + p]).sum::<i32>();
    assert!((0..m * n).all(|at| c[at] == sum(at / n, at % n)));

    let wide = |x: &[i32]| {
        x.iter()
            .map(|&v| half::bf16::from_f32(v as f32))
            .collect::<Vec<_>>()
    };
    let (a_half, b_half) = (wide(&a), wide(&b));
    let mut c_half = vec![half::bf16::ZERO; m * n];
    let (a_half, b_half) = (Matrix::new(&a_half, k), Matrix::transposed(&b_half, k));
    gemm_half(
        &pool,
        (m, n, k),
        a_half,
        b_half,
        &mut c_half,
        n,
        false,
        &Epilogue::default(),
    )
    .unwrap();
    assert!((0..m * n).all(|at| c_half[at] == half::bf16::from_f32(c[at] as f32)));

    let double = |x: &[i32]| x.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    let (a_double, b_double) = (double(&a), double(&b));
    let mut c_double = vec![0.0; m * n];
    let (a_double, b_double) = (Matrix::new(&a_double, k), Matrix::transposed(&b_double, k));
    gemm(
        &pool,
        (m, n, k),
        a_double,
        b_double,
        &mut c_double,
        n,
        false,
        &Epilogue::default(),
    )
    .unwrap();
    assert!((0..m * n).all(|at| c_double[at] == f64::from(c[at])));
}

#[test]
fn batches_broadcast() {
    let (m, n, k) = (10, 20, 30);
    let (a, b) = (random(6 * m * k, 8), random(3 * n * k, 9));
    let offsets: Vec<(usize, usize)> = (0..6).map(|i| (i * m * k, i % 3 * n * k)).collect();
    let batch = Batch {
        extents: (m, n, k),
        offsets: &offsets,
        a_steps: (k, 1),
        b_steps: (1, k),
    };
    let mut c = vec![0.0; 6 * m * n];
    batch_gemm(&ThreadPool::new(2), &batch, &a, &b, &mut c).unwrap();
    let mut generic = vec![0.0; 6 * m * n];
    batch_gemm_any(&ThreadPool::new(2), &batch, &a, &b, &mut generic);
    for (i, &(at_a, at_b)) in offsets.iter().enumerate() {
        let (a, b) = (Matrix::new(&a[at_a..], k), Matrix::transposed(&b[at_b..], k));
        let expected = naive((m, n, k), a, b);
        assert_close(&c[i * m * n..(i + 1) * m * n], &expected, k, "batch");
        assert_close(&generic[i * m * n..(i + 1) * m * n], &expected, k, "batch of any");
    }
}

#[test]
fn activations_keep_what_is_not_a_number() {
    let a = [f32::NAN; 70];
    let b = [1.0; 70];
    for n in [16, 64, 70] {
        let mut c = vec![0.0; n];
        let epilogue = Epilogue {
            activation: Activation::Relu6,
            ..Epilogue::default()
        };
        let (a, b) = (Matrix::new(&a, 1), Matrix::new(&b, n));
        gemm(ThreadPool::serial(), (1, n, 1), a, b, &mut c, n, false, &epilogue).unwrap();
        assert!(c.iter().all(|x| x.is_nan()));
    }
}
