//! Comparing tensors, for tests and tools.

use crate::element::*;
use crate::{DataType, Result, Tensor, bf16, ensure, f16};

impl Tensor {
    /// Whether type, shape and all elements are the same, bit for bit. Resources and variants are the same when they are
    /// the same objects.
    pub fn bitwise_eq(&self, other: &Tensor) -> bool {
        if self.dtype() != other.dtype() || self.shape() != other.shape() {
            return false;
        }
        match self.dtype() {
            DataType::STRING => self.strings() == other.strings(),
            DataType::RESOURCE => {
                let pairs = self
                    .resources()
                    .unwrap_or(&[])
                    .iter()
                    .zip(other.resources().unwrap_or(&[]));
                pairs.into_iter().all(|(a, b)| a.same_object(b))
            }
            DataType::VARIANT => {
                let pairs = self
                    .variants()
                    .unwrap_or(&[])
                    .iter()
                    .zip(other.variants().unwrap_or(&[]));
                pairs.into_iter().all(|(a, b)| match (a.object(), b.object()) {
                    (Some(a), Some(b)) => std::sync::Arc::ptr_eq(a, b),
                    (a, b) => a.is_none() && b.is_none(),
                })
            }
            _ => self.bytes() == other.bytes(),
        }
    }

    /// The elements as `f64`: exact but for large 64-bit integers; the magnitude of complex ones.
    /// INVALID_ARGUMENT for strings, resources and variants.
    pub fn to_f64_vec(&self) -> Result<Vec<f64>> {
        ensure!(
            self.dtype().is_plain(),
            InvalidArgument,
            "elements of type {} are not numbers",
            self.dtype()
        );
        Ok(match self.dtype() {
            DataType::FLOAT => self.list(|v: f32| f64::from(v)),
            DataType::DOUBLE => self.list(|v: f64| v),
            DataType::HALF => self.list(|v: f16| v.to_f64()),
            DataType::BFLOAT16 => self.list(|v: bf16| v.to_f64()),
            DataType::FLOAT8_E5M2 => self.list(|v: Float8E5M2| f64::from(v.to_f32())),
            DataType::FLOAT8_E4M3FN => self.list(|v: Float8E4M3Fn| f64::from(v.to_f32())),
            DataType::FLOAT8_E4M3FNUZ => self.list(|v: Float8E4M3Fnuz| f64::from(v.to_f32())),
            DataType::FLOAT8_E4M3B11FNUZ => self.list(|v: Float8E4M3B11Fnuz| f64::from(v.to_f32())),
            DataType::FLOAT8_E5M2FNUZ => self.list(|v: Float8E5M2Fnuz| f64::from(v.to_f32())),
            DataType::FLOAT4_E2M1FN => self.list(|v: Float4E2M1Fn| f64::from(v.to_f32())),
            DataType::INT64 => self.list(|v: i64| v as f64),
            DataType::UINT32 => self.list(|v: u32| f64::from(v)),
            DataType::UINT64 => self.list(|v: u64| v as f64),
            DataType::BOOL => self.list(|v: Bool| f64::from(u8::from(v.get()))),
            DataType::COMPLEX64 => self.list(|v: Complex64| f64::from(v.norm())),
            DataType::COMPLEX128 => self.list(|v: Complex128| v.norm()),
            _ => self.small_integers().into_iter().map(f64::from).collect(),
        })
    }

    /// The largest difference of two elements at the same place. Equal infinities, and two NaNs, do not differ; a NaN and
    /// a number differ infinitely. INVALID_ARGUMENT when types or shapes differ, or the elements are not numbers.
    pub fn max_abs_difference(&self, other: &Tensor) -> Result<f64> {
        ensure!(
            self.dtype() == other.dtype() && self.shape() == other.shape(),
            InvalidArgument,
            "{self:?} and {other:?} cannot be compared"
        );
        let parts = |tensor: &Tensor| match tensor.dtype() {
            DataType::COMPLEX64 => Ok(tensor
                .list(|v: Complex64| [f64::from(v.re), f64::from(v.im)])
                .concat()),
            DataType::COMPLEX128 => Ok(tensor.list(|v: Complex128| [v.re, v.im]).concat()),
            _ => tensor.to_f64_vec(),
        };
        let difference = |(a, b): (f64, f64)| {
            if a == b || (a.is_nan() && b.is_nan()) {
                return 0.0;
            }
            let difference = (a - b).abs();
            if difference.is_nan() {
                f64::INFINITY
            } else {
                difference
            }
        };
        let pairs = parts(self)?.into_iter().zip(parts(other)?);
        Ok(pairs.map(difference).fold(0.0, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use crate::{DataType, Shape, TString, Tensor};

    #[test]
    fn differences() {
        let a = Tensor::vector(&[1.0f32, f32::NAN, f32::INFINITY]).unwrap();
        let b = Tensor::vector(&[1.5f32, f32::NAN, f32::INFINITY]).unwrap();
        assert_eq!(a.max_abs_difference(&b).unwrap(), 0.5);
        assert!(a.bitwise_eq(&a.deep_copy().unwrap()) && !a.bitwise_eq(&b));
        let c = Tensor::vector(&[1.0f32, 2.0, f32::INFINITY]).unwrap();
        assert_eq!(a.max_abs_difference(&c).unwrap(), f64::INFINITY);
        assert!(a.max_abs_difference(&Tensor::vector(&[1.0f32]).unwrap()).is_err());
        let bytes = Tensor::vector(&[250u8, 3]).unwrap();
        assert_eq!(bytes.to_f64_vec().unwrap(), [250.0, 3.0]);
        let strings = Tensor::from_strings(Shape::scalar(), vec![TString::from("x")]).unwrap();
        assert!(strings.bitwise_eq(&strings.deep_copy().unwrap()) && strings.to_f64_vec().is_err());
        let variants = Tensor::zeros(DataType::VARIANT, Shape::vector(2)).unwrap();
        assert!(variants.bitwise_eq(&variants.clone()));
    }
}
