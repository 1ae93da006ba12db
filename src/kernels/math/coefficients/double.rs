//! The constants of the functions of double precision. Polynomials were fitted by weighted minimax over the stated
//! interval and are listed from the constant term upwards.

/// `ln 2` rounded to `f64`.
pub const LN_2: f64 = std::f64::consts::LN_2;
/// `ln 2 - LN_2`.
pub const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;

/// Below this `exp` is zero; it bounds the reduction.
pub const EXP_LOWEST: f64 = -746.0;
/// Above this `exp` is infinite.
pub const EXP_HIGHEST: f64 = 710.0;
/// Below this `expm1(x)` and `log1p(x)` are `x`.
pub const TINY: f64 = 1e-17;
/// `(exp(r) - 1 - r) / r^2` for `|r| <= ln(2)/2`, relative error of `exp - 1` 2.6e-19.
pub const EXP: [f64; 11] = [
    0.5,
    0.16666666666666677,
    0.04166666666666652,
    0.008333333333321619,
    0.001388888888895663,
    0.00019841269886175926,
    2.4801587185768594e-05,
    2.7557244139119907e-06,
    2.755738977152702e-07,
    2.5109068274237708e-08,
    2.0879777868460715e-09,
];

/// The bits of `sqrt(1/2)`: mantissas are taken from there up to `sqrt 2`.
pub const LOG_FIRST_BITS: i64 = 0x3fe6_a09e_667f_3bcd;
/// `(2 atanh(s) - 2 s) / s^3` in powers of `s^2` for `(1 + s)/(1 - s)` in `[sqrt(1/2), sqrt 2]`, relative error of the
/// logarithm 1.3e-18.
pub const LOG: [f64; 7] = [
    0.6666666666666734,
    0.3999999999941439,
    0.2857142874248002,
    0.22222198561404438,
    0.18183565050203576,
    0.15314029256920986,
    0.14796189683925395,
];
/// `(atanh(s) / s - 1 - s^2/3) / s^4` in powers of `s^2` for the same `s`, relative error of the logarithm 1.2e-20.
pub const POWER_LOG: [f64; 7] = [
    0.20000000000001128,
    0.14285714285049353,
    0.11111111260040238,
    0.09090892176412499,
    0.07693379009861447,
    0.06628400479505432,
    0.06598245818210871,
];
/// `1/3` rounded to `f64`.
pub const THIRD: f64 = 1.0 / 3.0;
/// `1/3 - THIRD`.
pub const THIRD_REST: f64 = 1.850_371_707_708_594e-17;

/// From here on `erf` rounds to one.
pub const ERF_ONE: f64 = 5.95;
/// `erf(x) / x - 1` in powers of `x^2` for `|x| <= 1`, relative error of `erf` 1.4e-19.
pub const ERF_SMALL: [f64; 13] = [
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954858,
    -0.02686617064507296,
    0.00522397762478137,
    -0.0008548326978765149,
    0.00012055331037551108,
    -1.4925593518728226e-05,
    1.6460972954153765e-06,
    -1.635002619207727e-07,
    1.4657883530919653e-08,
    -1.136567067182716e-09,
    5.945255584223488e-11,
];
/// `log(1 - erf(x)) + x` for `1 <= x <= ERF_ONE`, relative error of `erf` 1.3e-18.
pub const ERF_LARGE: [f64; 19] = [
    -1.7960304947442018e-07,
    -0.12837732942551325,
    -0.6366284882163669,
    -0.10274725398621597,
    0.019078158318130745,
    0.0002804854855051846,
    -0.0017689978841423921,
    0.0006411708908811565,
    -4.4821651602834044e-05,
    -7.036681020554558e-05,
    4.5037320274276205e-05,
    -1.6513873795356223e-05,
    4.327013602548155e-06,
    -8.505665264902684e-07,
    1.257035174533184e-07,
    -1.3626515482548944e-08,
    1.0256838320978157e-09,
    -4.795941269920164e-11,
    1.0495955098852448e-12,
];

/// `pi / 2` in three parts of 53 bits, all positive: the sine of a negative zero stays one.
pub const HALF_PI: [f64; 3] = [
    std::f64::consts::FRAC_PI_2,
    6.123233995736765e-17,
    1.082856673921914e-32,
];
/// `(sin(r) - r) / r^3` in powers of `r^2`, for `|r| <= pi/4`, relative error of the sine 3.6e-18.
pub const SIN: [f64; 6] = [
    -0.16666666666666632,
    0.008333333333322337,
    -0.00019841269829737766,
    2.755731366489145e-06,
    -2.5050753522756284e-08,
    1.5896511683247772e-10,
];
/// `(cos(r) - 1 + r^2/2) / r^4` in powers of `r^2`, for `|r| <= pi/4`, relative error of the cosine 5.8e-20.
pub const COS: [f64; 6] = [
    0.041666666666666595,
    -0.0013888888888872902,
    2.4801587288750656e-05,
    -2.755731414889697e-07,
    2.0875696566133817e-09,
    -1.1358308521788795e-11,
];

/// `(atan(y) - y) / y^3` in powers of `y^2`, for `|y| <= tan(pi/8)`, relative error of the angle 1.3e-18.
pub const ATAN: [f64; 11] = [
    -0.333333333333332,
    0.19999999999953874,
    -0.14285714280226436,
    0.11111110784987892,
    -0.09090897802197713,
    0.07692061008703235,
    -0.06663113039415723,
    0.058479541056077326,
    -0.05039592715755337,
    0.0380717575563673,
    -0.017914944722583287,
];
/// `(asin(y) - y) / y^3` in powers of `y^2`, for `|y| <= 1/2`, relative error of the angle 1e-18.
pub const ASIN: [f64; 13] = [
    0.16666666666666763,
    0.0749999999996994,
    0.04464285717544636,
    0.030381942667155066,
    0.022372216146087462,
    0.01735159099739314,
    0.01398107462921819,
    0.011396817717938431,
    0.010792072864215135,
    0.003661473614728437,
    0.0218174558143627,
    -0.02115568329387577,
    0.03272715351841117,
];
