//! The constants of the `f32` functions; [`double`] has those of `f64`. Polynomials were fitted by weighted minimax over
//! the stated interval and are listed from the constant term upwards.

pub mod double;

/// Adding and subtracting this rounds to an integer, which then sits in the low bits of the sum: 1.5 * 2^23.
pub const ROUND: f32 = 12_582_912.0;
/// `1 / ln 2`.
pub const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// The leading bits of `ln 2`: multiples up to 2^9 are exact.
pub const LN_2_HIGH: f32 = 0.693_359_4;
/// `ln 2 - LN_2_HIGH`.
pub const LN_2_LOW: f32 = -2.121_944_4e-4;

/// Below this `exp` is zero; it bounds the reduction.
pub const EXP_LOWEST: f32 = -104.0;
/// Above this `exp` is infinite.
pub const EXP_HIGHEST: f32 = 89.0;
/// `(exp(r) - 1 - r) / r^2` for `|r| <= ln(2)/2`, relative error of `exp - 1` 2.4e-10.
pub const EXP: [f32; 6] = [
    0.5,
    0.166_666_66,
    0.041_666_36,
    0.008_333_39,
    0.001_394_066_8,
    0.000_198_458_8,
];

/// The bits of `sqrt(1/2)`: mantissas are taken from there up to `sqrt 2`.
pub const LOG_FIRST_BITS: u32 = 0x3f35_04f3;
/// `(log(1 + f) - f + f^2/2) / f^3` for `1 + f` in `[sqrt(1/2), sqrt 2]`, relative error of `log` 5.9e-9.
pub const LOG: [f32; 8] = [
    0.333_333_3,
    -0.250_008_23,
    0.200_012_27,
    -0.166_233_57,
    0.142_017_62,
    -0.131_601_94,
    0.127_615_5,
    -0.076_344_3,
];

/// Where `erf` changes from [`ERF_SMALL`] to [`ERF_LARGE`].
pub const ERF_SPLIT: f32 = 0.92;
/// From here on `erf` rounds to one.
pub const ERF_ONE: f32 = 4.0;
/// `erf(x) / x - 1` in powers of `x^2` for `|x| <= ERF_SPLIT`, relative error of `erf` 4e-10.
pub const ERF_SMALL: [f32; 7] = [
    0.128_379_17,
    -0.376_126_35,
    0.112_836_97,
    -0.026_859_5,
    0.005_201_286,
    -0.000_814_559_7,
    8.382_389e-5,
];
/// `log(1 - erf(x)) + x` for `ERF_SPLIT <= x <= ERF_ONE`, relative error of `erf` 5e-11.
pub const ERF_LARGE: [f32; 8] = [
    0.000_174_683_98,
    -0.129_514_93,
    -0.633_346_9,
    -0.108_280_085,
    0.025_119_424,
    -0.004_171_061_3,
    0.000_434_462_27,
    -2.109_501_8e-5,
];

/// `2 / pi`.
pub const TWO_OVER_PI: f64 = std::f64::consts::FRAC_2_PI;
/// `pi / 2` rounded to `f64`.
pub const HALF_PI_HIGH: f64 = std::f64::consts::FRAC_PI_2;
/// `pi / 2 - HALF_PI_HIGH`.
pub const HALF_PI_LOW: f64 = 6.123_233_995_736_766e-17;
/// As [`ROUND`], for `f64`: 1.5 * 2^52.
pub const ROUND_F64: f64 = 6_755_399_441_055_744.0;
/// Beyond this the reduction of `sin` and `cos` needs more bits of pi.
pub const TRIG_LARGE: f32 = 1e9;
/// `(sin(r) - r) / r^3` in powers of `r^2`, for `|r| <= pi/4`: Taylor's series.
pub const SIN: [f64; 5] = [
    -1.0 / 6.0,
    1.0 / 120.0,
    -1.0 / 5040.0,
    1.0 / 362_880.0,
    -1.0 / 39_916_800.0,
];
/// `cos(r) - 1` over `r^2` in powers of `r^2`, for `|r| <= pi/4`: Taylor's series.
pub const COS: [f64; 6] = [
    -1.0 / 2.0,
    1.0 / 24.0,
    -1.0 / 720.0,
    1.0 / 40_320.0,
    -1.0 / 3_628_800.0,
    1.0 / 479_001_600.0,
];
