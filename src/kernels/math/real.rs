//! Mathematical functions over every floating-point type.

use half::{bf16, f16};

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// A floating-point element with the functions of this module.
        pub trait Real: Copy + Send + Sync + PartialOrd + Default + 'static {
            /// The value as `f64`, exactly.
            fn to_f64(self) -> f64;
            /// The nearest value, ties to even.
            fn from_f64(x: f64) -> Self;
            /// `self` to the power of `exponent`.
            fn power(self, exponent: Self) -> Self;
            /// The angle of the point (`x`, `self`) in radians.
            fn arc_tangent2(self, x: Self) -> Self;
            $($(#[$doc])* fn $name(self) -> Self;)*
        }

        impl Real for f32 {
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from(self) }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { x as f32 }
            #[inline(always)]
            fn power(self, exponent: Self) -> Self { single::power(self, exponent) }
            #[inline(always)]
            fn arc_tangent2(self, x: Self) -> Self { single::arc_tangent2(self, x) }
            $(#[inline(always)] fn $name(self) -> Self { single::$name(self) })*
        }
        impl Real for f64 {
            #[inline(always)]
            fn to_f64(self) -> f64 { self }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { x }
            #[inline(always)]
            fn power(self, exponent: Self) -> Self { double::power(self, exponent) }
            #[inline(always)]
            fn arc_tangent2(self, x: Self) -> Self { double::arc_tangent2(self, x) }
            $(#[inline(always)] fn $name(self) -> Self { double::$name(self) })*
        }
        impl Real for f16 {
            #[inline(always)]
            fn to_f64(self) -> f64 { self.to_f64() }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { f16::from_f64(x) }
            #[inline(always)]
            fn power(self, exponent: Self) -> Self { f16::from_f32(single::power(self.to_f32(), exponent.to_f32())) }
            #[inline(always)]
            fn arc_tangent2(self, x: Self) -> Self { f16::from_f32(single::arc_tangent2(self.to_f32(), x.to_f32())) }
            $(#[inline(always)] fn $name(self) -> Self { f16::from_f32(single::$name(self.to_f32())) })*
        }
        impl Real for bf16 {
            #[inline(always)]
            fn to_f64(self) -> f64 { self.to_f64() }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { bf16::from_f64(x) }
            #[inline(always)]
            fn power(self, exponent: Self) -> Self { bf16::from_f32(single::power(self.to_f32(), exponent.to_f32())) }
            #[inline(always)]
            fn arc_tangent2(self, x: Self) -> Self { bf16::from_f32(single::arc_tangent2(self.to_f32(), x.to_f32())) }
            $(#[inline(always)] fn $name(self) -> Self { bf16::from_f32(single::$name(self.to_f32())) })*
        }
    };
}

functions! {
    /// `e^x`.
    exponential,
    /// `e^x - 1`.
    exponential_minus_one,
    /// The natural logarithm.
    logarithm,
    /// `log(1 + x)`.
    logarithm_plus_one,
    /// `1 / (1 + e^-x)`.
    logistic,
    /// The hyperbolic tangent.
    hyperbolic_tangent,
    /// The error function.
    error_function,
    /// `1 - erf(x)`.
    complementary_error_function,
    /// Sine of radians.
    sine,
    /// Cosine of radians.
    cosine,
    /// Tangent of radians.
    tangent,
    /// Inverse sine.
    arc_sine,
    /// Inverse cosine.
    arc_cosine,
    /// Inverse tangent.
    arc_tangent,
    /// Hyperbolic sine.
    hyperbolic_sine,
    /// Hyperbolic cosine.
    hyperbolic_cosine,
    /// Inverse hyperbolic sine.
    area_sine,
    /// Inverse hyperbolic cosine.
    area_cosine,
    /// Inverse hyperbolic tangent.
    area_tangent,
    /// Square root.
    square_root,
    /// `1 / sqrt(x)`.
    reciprocal_square_root,
    /// Cube root.
    cube_root,
    /// The logarithm of the absolute value of the gamma function.
    log_gamma,
    /// Rounded down.
    floor,
    /// Rounded up.
    ceiling,
    /// Rounded to the nearest integer, ties to even.
    round_even,
    /// Rounded towards zero.
    truncate,
}

mod single {
    pub use super::super::{
        cos as cosine, erf as error_function, erfc as complementary_error_function, exp as exponential,
        expm1 as exponential_minus_one, log as logarithm, log1p as logarithm_plus_one,
        rsqrt as reciprocal_square_root, sigmoid as logistic, sin as sine, tanh as hyperbolic_tangent,
    };

    #[inline(always)]
    pub fn power(x: f32, exponent: f32) -> f32 {
        use super::super::{Scalar, double::pow_single};
        pow_single(Scalar, f64::from(x), f64::from(exponent)) as f32
    }

    #[inline(always)]
    pub fn arc_tangent2(y: f32, x: f32) -> f32 {
        super::double::arc_tangent2(f64::from(y), f64::from(x)) as f32
    }

    macro_rules! through_f64 {
        ($($name:ident),*) => {
            $(#[inline(always)] pub fn $name(x: f32) -> f32 { super::double::$name(f64::from(x)) as f32 })*
        };
    }
    through_f64!(
        tangent,
        arc_sine,
        arc_cosine,
        arc_tangent,
        hyperbolic_sine,
        hyperbolic_cosine,
        area_sine
    );
    through_f64!(area_cosine, area_tangent, cube_root, log_gamma);

    macro_rules! standard {
        ($($name:ident = $method:ident),* $(,)?) => {
            $(#[inline(always)] pub fn $name(x: f32) -> f32 { x.$method() })*
        };
    }
    standard!(
        square_root = sqrt,
        floor = floor,
        ceiling = ceil,
        truncate = trunc,
        round_even = round_ties_even
    );
}

mod double {
    macro_rules! standard {
        ($($name:ident = $method:ident),* $(,)?) => {
            $(#[inline(always)] pub fn $name(x: f64) -> f64 { x.$method() })*
        };
    }
    standard!(
        square_root = sqrt,
        cube_root = cbrt,
        floor = floor,
        ceiling = ceil,
        round_even = round_ties_even,
        truncate = trunc,
    );

    pub use libm::erfc as complementary_error_function;

    use super::super::{Scalar, double};

    macro_rules! own {
        ($($name:ident = $function:ident),* $(,)?) => {
            $(#[inline(always)] pub fn $name(x: f64) -> f64 { double::$function(Scalar, x) })*
        };
    }
    own!(
        exponential = exp,
        exponential_minus_one = expm1,
        logarithm = log,
        logarithm_plus_one = log1p,
        logistic = sigmoid,
        hyperbolic_tangent = tanh,
        error_function = erf,
        arc_sine = asin,
        arc_cosine = acos,
        arc_tangent = atan,
        hyperbolic_sine = sinh,
        hyperbolic_cosine = cosh,
        area_sine = asinh,
        area_cosine = acosh,
        area_tangent = atanh,
    );

    #[inline(always)]
    pub fn arc_tangent2(y: f64, x: f64) -> f64 {
        double::atan2(Scalar, y, x)
    }

    #[inline(always)]
    pub fn tangent(x: f64) -> f64 {
        if double::is_trig_large(Scalar, x) {
            x.tan()
        } else {
            double::tan(Scalar, x)
        }
    }

    #[inline(always)]
    pub fn power(x: f64, exponent: f64) -> f64 {
        double::pow(Scalar, x, exponent)
    }

    #[inline(always)]
    pub fn sine(x: f64) -> f64 {
        if double::is_trig_large(Scalar, x) {
            x.sin()
        } else {
            double::quarter_turned(Scalar, x, 0)
        }
    }

    #[inline(always)]
    pub fn cosine(x: f64) -> f64 {
        if double::is_trig_large(Scalar, x) {
            x.cos()
        } else {
            double::quarter_turned(Scalar, x, 1)
        }
    }

    #[inline(always)]
    pub fn reciprocal_square_root(x: f64) -> f64 {
        1.0 / x.sqrt()
    }

    /// Infinite at the poles: zero and the negative integers.
    pub fn log_gamma(x: f64) -> f64 {
        libm::lgamma(x)
    }
}
