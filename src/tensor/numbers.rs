//! Numbers as text, as `printf` and the reference print them.

/// `value` as C's `%.<precision>g`: `precision` significant digits without trailing zeros, in scientific form when the
/// exponent is below -4 or not below the precision.
pub fn format_general(value: f64, precision: usize) -> String {
    if value.is_nan() {
        return "nan".to_string();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_string();
    }
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(digits), exponent.unsigned_abs());
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_string()
}

/// Without zeros at the end of its fraction.
fn without_zeros(digits: &str) -> &str {
    if !digits.contains('.') {
        return digits;
    }
    digits.trim_end_matches('0').trim_end_matches('.')
}

/// Six significant digits if they are exact, else nine: `0.1`, `0.333333343`, `1e+10`.
pub fn format_f32(value: f32) -> String {
    let short = format_general(f64::from(value), 6);
    if value.is_nan() || short.parse() == Ok(value) {
        return short;
    }
    format_general(f64::from(value), 9)
}

/// Fifteen significant digits if they are exact, else seventeen.
pub fn format_f64(value: f64) -> String {
    let short = format_general(value, 15);
    if value.is_nan() || short.parse() == Ok(value) {
        return short;
    }
    format_general(value, 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of `printf`.
    #[test]
    fn general_form() {
        for (value, precision, expected) in [
            (0.0, 6, "0"),
            (-0.0, 6, "-0"),
            (1.0, 6, "1"),
            (100000.0, 6, "100000"),
            (1e6, 6, "1e+06"),
            (999999.5, 6, "1e+06"),
            (0.0001, 6, "0.0001"),
            (0.00001, 6, "1e-05"),
            (123.456, 4, "123.5"),
            (1.5e300, 6, "1.5e+300"),
            (2.5, 1, "2"),
            (f64::NEG_INFINITY, 6, "-inf"),
        ] {
            assert_eq!(format_general(value, precision), expected);
        }
    }

    /// The texts are those of the reference's Assert.
    #[test]
    fn shortest_of_two_forms() {
        let floats = [
            0.1,
            1.0 / 3.0,
            1e10,
            123_456.79,
            1234567.0,
            16777216.0,
            3.4e38,
            1000000.5f32,
        ];
        assert_eq!(
            floats.map(format_f32).join(" "),
            "0.1 0.333333343 1e+10 123456.789 1234567 16777216 3.4e+38 1000000.5"
        );
        let doubles = [0.1, 1.0 / 3.0, 1e10, 1e-10, 1e15, 123456789012345678.0, f64::NAN];
        assert_eq!(
            doubles.map(format_f64).join(" "),
            "0.1 0.33333333333333331 10000000000 1e-10 1e+15 1.2345678901234568e+17 nan"
        );
    }
}
