//! Literal values are what TensorFlow 2.21 draws.

use super::*;

fn draw<T: Copy + Send + Default, D: Distribution<T>>(
    generator: Philox,
    distribution: &D,
    len: usize,
) -> Vec<T> {
    let mut out = vec![T::default(); len];
    fill(&ThreadPool::new(2), generator, distribution, &mut out);
    out
}

fn stateful() -> Philox {
    Philox::from_seeds(1, 2)
}

fn stateless() -> Philox {
    Philox::new(5, [7, 9])
}

#[test]
fn known_answer() {
    // The published vectors: all zeros, and all ones.
    let zeros = Philox::new(0, [0, 0]).step();
    assert_eq!(zeros, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    let ones = Philox::new(u64::MAX, [u64::MAX; 2]).step();
    assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
}

#[test]
fn uniform_numbers() {
    let x: Vec<f32> = draw(stateless(), &Uniform, 6);
    assert_eq!(
        x,
        [
            0.264_794,
            0.736_408_35,
            0.392_086_86,
            0.356_477_5,
            0.962_231_9,
            0.509_495_4
        ]
    );
    let x: Vec<f64> = draw(stateless(), &Uniform, 3);
    assert_eq!(x, [0.11835196565167672, 0.1366953279012395, 0.697855868394478]);
    let x: Vec<f16> = draw(stateful(), &Uniform, 4);
    assert_eq!(x.map_f32(), [0.202_148_44, 0.456_054_7, 0.802_734_4, 0.465_820_3]);
    let x: Vec<bf16> = draw(stateful(), &Uniform, 4);
    assert_eq!(x.map_f32(), [0.617_187_5, 0.648_437_5, 0.421_875, 0.726_562_5]);
}

trait MapF32 {
    fn map_f32(&self) -> Vec<f32>;
}
impl MapF32 for Vec<f16> {
    fn map_f32(&self) -> Vec<f32> {
        self.iter().map(|x| x.to_f32()).collect()
    }
}
impl MapF32 for Vec<bf16> {
    fn map_f32(&self) -> Vec<f32> {
        self.iter().map(|x| x.to_f32()).collect()
    }
}

fn close(got: &[f32], expected: &[f32]) {
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() <= 2e-7 * (1.0 + e.abs()), "{g} for {e}");
    }
}

#[test]
fn normal_numbers() {
    let x: Vec<f32> = draw(stateless(), &Normal, 100_000);
    close(&x[255..258], &[1.104_000_6, 0.592_456_04, -0.402_711_93]);
    close(
        &x[1023..1027],
        &[-0.298_564_17, -0.005_955_793_4, 0.932_813_76, 0.078_164_71],
    );
    close(&x[99_997..], &[0.692_904_65, -0.470_709_23, -2.296_012]);
    let sum: f64 = x.iter().map(|&x| f64::from(x)).sum();
    assert!((sum - 116.798_448_413_667_53).abs() < 1e-4);
    let x: Vec<f64> = draw(stateless(), &Normal, 3);
    for (g, e) in x
        .iter()
        .zip([1.5641634732522505, 1.3496582151271743, -0.11144528313281421])
    {
        assert!((g - e).abs() < 1e-15);
    }
    let x: Vec<f16> = draw(stateful(), &Normal, 3);
    assert_eq!(x.map_f32(), [-1.046_875, 0.839_843_75, 1.235_351_6]);
}

#[test]
fn truncated_numbers() {
    let mut x = vec![0.0_f32; 100_000];
    fill_truncated_normal(&ThreadPool::new(2), stateless(), &mut x);
    close(
        &x[..6],
        &[
            -1.624_275_8,
            -0.139_049_17,
            1.073_422_7,
            -0.848_709_17,
            -0.005_955_793_4,
            0.932_813_76,
        ],
    );
    close(&x[255..258], &[-1.804_985_9, 0.979_285_5, 1.828_412_9]);
    let sum: f64 = x.iter().map(|&x| f64::from(x)).sum();
    assert!((sum + 370.719_103_754_734_7).abs() < 1e-4);
    let mut x = [0.0_f64; 6];
    fill_truncated_normal(ThreadPool::serial(), stateless(), &mut x);
    let expected = [
        1.5641634732522505,
        1.3496582151271743,
        -1.7053298514833455,
        0.3281789249538767,
        -1.2978065712276265,
        1.3309654737319363,
    ];
    for (g, e) in x.iter().zip(expected) {
        assert!((g - e).abs() < 1e-15, "{g} for {e}");
    }
}

#[test]
fn integers() {
    let x: Vec<i32> = draw(stateful(), &UniformInteger { low: -5, high: 100 }, 10);
    assert_eq!(x, [84, 75, 22, 54, 81, 56, 38, 38, 78, 95]);
    let x: Vec<i64> = draw(stateful(), &UniformInteger { low: -5, high: 100 }, 10);
    assert_eq!(x, [89, 6, 52, 21, 58, 8, 51, 9, 69, 69]);
    let x: Vec<u32> = draw(stateless(), &FullInteger, 5);
    assert_eq!(x, [832693445, 132006561, 1697787879, 1890427150, 1417357930]);
    let x: Vec<u64> = draw(stateless(), &FullInteger, 3);
    assert_eq!(x, [566963863185122501, 8119322786418274279, 16879833511832005226]);
}

#[test]
fn stateful_ops_advance() {
    let second = stateful().after(stateful_steps(3));
    let x: Vec<f32> = draw(second, &Uniform, 3);
    assert_eq!(x, [0.168_407_32, 0.889_106_15, 0.535_496_95]);
    let mut x = [0.0_f32; 3];
    fill_truncated_normal(ThreadPool::serial(), second, &mut x);
    close(&x, &[-1.211_300_8, 1.447_580_6, 0.025_218_027]);
}

#[test]
fn stateless_seeds_are_scrambled() {
    let generator = Philox::from_stateless_seed([3, 4]);
    assert_eq!(generator.key(), 5186321457711525117);
    assert_eq!(generator.counter(), [0, 2956673722964415482]);
    let x: Vec<f32> = draw(generator, &Uniform, 4);
    assert_eq!(x, [0.243_287_44, 0.983_506_3, 0.220_417_26, 0.467_920_18]);
}

#[test]
fn skipping() {
    let mut generator = Philox::new(3, [u64::MAX, 4]);
    generator.skip(2);
    assert_eq!(generator.counter(), [1, 5]);
    let x: Vec<f32> = draw(stateless().after(1), &Uniform, 2);
    assert_eq!(x, [0.962_231_9, 0.509_495_4]);
    assert_eq!(steps_of::<f32, _>(&Uniform, 5), 2);
    assert_eq!(steps_of_truncated::<f64>(3), 256);
}
