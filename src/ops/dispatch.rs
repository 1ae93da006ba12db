//! From a tensor's element type to a Rust type: the one place that does it.

use ff_tensor::DataType;

/// Floating-point types of up to 64 bits.
pub const FLOATS: &[DataType] = &[
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::BFLOAT16,
];

/// Integers of 8 to 64 bits.
pub const INTEGERS: &[DataType] = &[
    DataType::INT8,
    DataType::INT16,
    DataType::INT32,
    DataType::INT64,
    DataType::UINT8,
    DataType::UINT16,
    DataType::UINT32,
    DataType::UINT64,
];

/// Types for which elementwise ops have native loops; the others run their lowerings. Each native loop is compiled for
/// every level of processor, so the list is short.
pub const FAST: &[(&str, &[DataType])] = &[("T", &[DataType::FLOAT, DataType::INT32])];

/// The floating-point types among [`FAST`].
pub const FAST_FLOATS: &[(&str, &[DataType])] = &[("T", &[DataType::FLOAT])];

/// The integers among [`FAST`].
pub const FAST_INTEGERS: &[(&str, &[DataType])] = &[("T", &[DataType::INT32])];

/// `match_type!(dtype, (f32, i64), T => body)` runs `body`, a `Result`, with `T` as the Rust type of `dtype`.
/// UNIMPLEMENTED for a type that is not listed.
#[macro_export]
macro_rules! match_type {
    ($dtype:expr, ($($rust:ty),+ $(,)?), $name:ident => $body:expr) => {
        match $dtype {
            $(dtype if dtype == <$rust as ff_tensor::Element>::DTYPE => { type $name = $rust; $body })+
            other => Err(ff_tensor::status!(Unimplemented, "no kernel for type {other}")),
        }
    };
}

/// [`match_type`] over the floating-point types of up to 64 bits.
#[macro_export]
macro_rules! match_float {
    ($dtype:expr, $name:ident => $body:expr) => {
        $crate::match_type!($dtype, (f32, f64, ff_tensor::f16, ff_tensor::bf16), $name => $body)
    };
}

/// [`match_type`] over the integers of 8 to 64 bits.
#[macro_export]
macro_rules! match_integer {
    ($dtype:expr, $name:ident => $body:expr) => {
        $crate::match_type!($dtype, (i32, i64, i8, i16, u8, u16, u32, u64), $name => $body)
    };
}

/// [`match_type`] over floats, integers and complex numbers.
#[macro_export]
macro_rules! match_number {
    ($dtype:expr, $name:ident => $body:expr) => {
        $crate::match_type!(
            $dtype,
            (
                f32, f64, i32, i64, ff_tensor::f16, ff_tensor::bf16, i8, i16, u8, u16, u32, u64,
                ff_tensor::Complex64, ff_tensor::Complex128
            ),
            $name => $body
        )
    };
}

/// [`match_type`] over floats and integers.
#[macro_export]
macro_rules! match_real {
    ($dtype:expr, $name:ident => $body:expr) => {
        $crate::match_type!(
            $dtype,
            (f32, f64, i32, i64, ff_tensor::f16, ff_tensor::bf16, i8, i16, u8, u16, u32, u64),
            $name => $body
        )
    };
}

/// [`match_type`] over [`dispatch::FAST`](crate::dispatch::FAST).
#[macro_export]
macro_rules! match_fast {
    ($dtype:expr, $name:ident => $body:expr) => {
        $crate::match_type!($dtype, (f32, i32), $name => $body)
    };
}

/// [`match_type`] over [`dispatch::FAST_FLOATS`](crate::dispatch::FAST_FLOATS).
#[macro_export]
macro_rules! match_fast_float {
    ($dtype:expr, $name:ident => $body:expr) => {
        $crate::match_type!($dtype, (f32), $name => $body)
    };
}

/// [`match_type`] over [`dispatch::FAST_INTEGERS`](crate::dispatch::FAST_INTEGERS).
#[macro_export]
macro_rules! match_fast_integer {
    ($dtype:expr, $name:ident => $body:expr) => {
        $crate::match_type!($dtype, (i32), $name => $body)
    };
}
