//! Quantized types with a range: the numbers that their integers stand for.

use ff_tensor::{DataType, Result, Tensor, bail, ensure};

/// The least and the largest integer of a quantized type, and its number of bits.
#[derive(Clone, Copy)]
pub struct Levels {
    /// Least integer.
    pub lowest: i64,
    /// Largest integer.
    pub highest: i64,
    bits: u32,
}

impl Levels {
    /// Of a quantized type. UNIMPLEMENTED for others.
    pub fn of(dtype: DataType) -> Result<Levels> {
        let (signed, bits) = match dtype {
            DataType::QINT8 => (true, 8),
            DataType::QUINT8 => (false, 8),
            DataType::QINT16 => (true, 16),
            DataType::QUINT16 => (false, 16),
            DataType::QINT32 => (true, 32),
            other => bail!(Unimplemented, "no quantized numbers of type {other}"),
        };
        let count = 1i64 << bits;
        let lowest = if signed { -count / 2 } else { 0 };
        Ok(Levels {
            lowest,
            highest: lowest + count - 1,
            bits,
        })
    }

    /// Whether there are negative integers.
    pub fn is_signed(self) -> bool {
        self.lowest < 0
    }

    fn steps(self) -> f64 {
        (1i64 << self.bits) as f64
    }

    /// The integer for a number, also beyond the type's limits.
    pub fn unclamped(self, x: f32, range: Range) -> i64 {
        if range.min == range.max {
            return self.lowest;
        }
        let width = f64::from(range.max - range.min) * (self.steps() / (self.steps() - 1.0));
        let scale = self.steps() / width;
        ((f64::from(x) * scale).round() - (f64::from(range.min) * scale).round()) as i64 + self.lowest
    }

    /// The integer for a number.
    pub fn quantize(self, x: f32, range: Range) -> i64 {
        self.unclamped(x, range).clamp(self.lowest, self.highest)
    }

    /// The number that an integer stands for.
    pub fn dequantize(self, value: i64, range: Range) -> f32 {
        if range.min == range.max {
            return range.min;
        }
        let width = f64::from(range.max - range.min) * (self.steps() / (self.steps() - 1.0));
        let scale = width / self.steps();
        let start = (range.min / scale as f32).round() * scale as f32;
        (f64::from(start) + (value - self.lowest) as f64 * scale) as f32
    }

    /// How much one step is.
    pub fn step(self, range: Range) -> f32 {
        (range.max - range.min) / (self.highest - self.lowest) as f32
    }
}

/// The numbers that the least and the largest integer stand for.
#[derive(Clone, Copy, PartialEq)]
pub struct Range {
    /// Of the least integer.
    pub min: f32,
    /// Of the largest integer.
    pub max: f32,
}

impl Range {
    /// From two tensors of one element. INVALID_ARGUMENT for others.
    pub fn of(min: &Tensor, max: &Tensor) -> Result<Range> {
        for limit in [min, max] {
            ensure!(
                limit.num_elements() == 1,
                InvalidArgument,
                "min and max must have one element, got shape {}",
                limit.shape()
            );
        }
        Ok(Range {
            min: min.as_slice::<f32>()?[0],
            max: max.as_slice::<f32>()?[0],
        })
    }

    /// The range of 32-bit products of numbers of two quantized types.
    pub fn of_products(a: (Levels, Range), b: (Levels, Range)) -> Range {
        let step = a.0.step(a.1) * b.0.step(b.1);
        Range {
            min: step * i32::MIN as f32,
            max: step * i32::MAX as f32,
        }
    }
}

/// The integers of a quantized tensor.
pub fn integers(tensor: &Tensor) -> Result<Vec<i64>> {
    use ff_tensor::{QInt8, QInt16, QInt32, QUInt8, QUInt16};
    crate::match_type!(tensor.dtype(), (QInt8, QUInt8, QInt16, QUInt16, QInt32), T => {
        crate::wide::collected(tensor.as_slice::<T>()?.iter().map(|x| i64::from(x.0)))
    })
}

/// A quantized tensor from integers within the type's limits.
pub fn from_integers(dtype: DataType, shape: ff_tensor::Shape, values: &[i64]) -> Result<Tensor> {
    let wide: Vec<f64> = crate::wide::collected(values.iter().map(|&value| value as f64))?;
    crate::wide::from_f64s(dtype, shape, &wide)
}
