//! Arguments of modules: literals of the command line, or random numbers.

use ff_hlo::{ArrayShape, Attributes};
use ff_tensor::{DataType, Result, Shape, Tensor, bf16, ensure, f16, status};

/// The value of a literal as `f32[2] {1, 2}`.
pub fn literal(text: &str) -> Result<Tensor> {
    let end = text
        .find(']')
        .ok_or_else(|| status!(InvalidArgument, "{text:?} does not begin with a shape, as f32[2]"))?;
    let (shape, elements) = text.split_at(end + 1);
    let module = format!(
        "HloModule literal\nENTRY %e () -> {shape} {{\n  ROOT %c = {shape} constant({})\n}}",
        elements.trim()
    );
    let module =
        ff_hlo::parse(&module).map_err(|error| status!(InvalidArgument, "{text:?}: {}", error.message()))?;
    match &module.entry_computation().root_instruction().attributes {
        Attributes::Constant(value) => Ok(value.clone()),
        _ => Err(status!(InvalidArgument, "{text:?} is no literal")),
    }
}

/// A small generator: the same numbers everywhere.
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From -2 to 2.
    fn number(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 * 4.0 - 2.0
    }

    /// An array of numbers between -2 and 2, integers between -8 and 7 (0 and 15 without a sign).
    pub fn array(&mut self, shape: &ArrayShape) -> Result<Tensor> {
        let mut tensor = Tensor::zeros(shape.dtype, Shape::new(&shape.dims)?)?;
        let size = shape.dtype.size();
        let dtype = shape.dtype;
        let bytes = tensor.bytes_mut().unwrap_or_default();
        // Complex elements are two numbers.
        let (part, dtype) = match dtype {
            DataType::COMPLEX64 => (4, DataType::FLOAT),
            DataType::COMPLEX128 => (8, DataType::DOUBLE),
            _ => (size, dtype),
        };
        ensure!(
            part > 0,
            InvalidArgument,
            "There are no random elements of type {dtype}"
        );
        for element in bytes.chunks_exact_mut(part) {
            let number = self.number();
            match dtype {
                DataType::FLOAT => element.copy_from_slice(&(number as f32).to_ne_bytes()),
                DataType::DOUBLE => element.copy_from_slice(&number.to_ne_bytes()),
                DataType::HALF => element.copy_from_slice(&f16::from_f64(number).to_bits().to_ne_bytes()),
                DataType::BFLOAT16 => {
                    element.copy_from_slice(&bf16::from_f64(number).to_bits().to_ne_bytes());
                }
                DataType::BOOL => element[0] = (self.next() >> 40 & 1) as u8,
                DataType::UINT8 | DataType::UINT16 | DataType::UINT32 | DataType::UINT64 => {
                    element[0] = (self.next() >> 40 & 15) as u8;
                }
                _ => {
                    let value = (self.next() >> 40 & 15) as i64 - 8;
                    element.copy_from_slice(&value.to_le_bytes()[..part]);
                }
            }
        }
        Ok(tensor)
    }
}
