//! Shapes of the IR: an array with an element type and extents in row-major order, or a tuple of shapes.
//!
//! Extents are known and not negative. There is no layout other than row-major.

use ff_tensor::{DataType, Result, Shape, bail, ensure, status};
use smallvec::SmallVec;
use std::fmt;

/// Extents, axes or offsets, one for each dimension.
pub type Dims = SmallVec<[i64; 4]>;

/// The shape of an array.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ArrayShape {
    /// The element type.
    pub dtype: DataType,
    /// The extents, the last one varying fastest.
    pub dims: Dims,
}

/// The shape of a value: an array or a tuple.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum HloShape {
    /// An array.
    Array(ArrayShape),
    /// Several values.
    Tuple(Vec<HloShape>),
}

impl ArrayShape {
    /// The shape with this element type and these extents.
    pub fn new(dtype: DataType, dims: &[i64]) -> ArrayShape {
        ArrayShape {
            dtype,
            dims: Dims::from_slice(dims),
        }
    }

    /// The shape of one element.
    pub fn scalar(dtype: DataType) -> ArrayShape {
        ArrayShape {
            dtype,
            dims: Dims::new(),
        }
    }

    /// The number of extents.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// The product of the extents.
    pub fn num_elements(&self) -> usize {
        self.dims.iter().product::<i64>() as usize
    }

    /// The bytes of all elements.
    pub fn byte_size(&self) -> usize {
        self.num_elements() * self.dtype.size()
    }

    /// Whether there are no dimensions.
    pub fn is_scalar(&self) -> bool {
        self.dims.is_empty()
    }

    /// The same extents with another element type.
    pub fn with_dtype(&self, dtype: DataType) -> ArrayShape {
        ArrayShape {
            dtype,
            dims: self.dims.clone(),
        }
    }

    /// INVALID_ARGUMENT unless the type is plain, the extents are not negative and their product fits.
    pub fn validate(&self) -> Result<()> {
        ensure!(
            self.dtype.is_plain() && !self.dtype.is_ref(),
            InvalidArgument,
            "Element type {} has no arrays in HLO",
            self.dtype
        );
        let elements = Shape::new(&self.dims)?.num_elements();
        ensure!(
            elements
                .checked_mul(self.dtype.size())
                .is_some_and(|bytes| bytes <= isize::MAX as usize),
            InvalidArgument,
            "Shape {self} has more bytes than memory can hold"
        );
        Ok(())
    }

    /// The tensor shape with these extents.
    pub fn to_tensor_shape(&self) -> Result<Shape> {
        Shape::new(&self.dims)
    }

    /// The row-major strides, in elements.
    pub fn strides(&self) -> Dims {
        let mut strides = Dims::from_elem(1, self.rank());
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis] * self.dims[axis];
        }
        strides
    }
}

impl HloShape {
    /// An array shape.
    pub fn array(dtype: DataType, dims: &[i64]) -> HloShape {
        HloShape::Array(ArrayShape::new(dtype, dims))
    }

    /// The array, or INVALID_ARGUMENT for a tuple.
    pub fn as_array(&self) -> Result<&ArrayShape> {
        match self {
            HloShape::Array(array) => Ok(array),
            HloShape::Tuple(_) => Err(status!(InvalidArgument, "Expected an array, got tuple {self}")),
        }
    }

    /// The elements of a tuple, or INVALID_ARGUMENT for an array.
    pub fn as_tuple(&self) -> Result<&[HloShape]> {
        match self {
            HloShape::Tuple(elements) => Ok(elements),
            HloShape::Array(_) => Err(status!(InvalidArgument, "Expected a tuple, got array {self}")),
        }
    }

    /// Whether this is a tuple.
    pub fn is_tuple(&self) -> bool {
        matches!(self, HloShape::Tuple(_))
    }

    /// Checks every array in it, see [`ArrayShape::validate`].
    pub fn validate(&self) -> Result<()> {
        let mut pending = vec![self];
        while let Some(shape) = pending.pop() {
            match shape {
                HloShape::Array(array) => array.validate()?,
                HloShape::Tuple(elements) => pending.extend(elements),
            }
        }
        Ok(())
    }

    /// The arrays in it, in order, tuples flattened.
    pub fn leaves(&self) -> Vec<&ArrayShape> {
        let mut leaves = Vec::new();
        let mut pending = vec![self];
        while let Some(shape) = pending.pop() {
            match shape {
                HloShape::Array(array) => leaves.push(array),
                HloShape::Tuple(elements) => pending.extend(elements.iter().rev()),
            }
        }
        leaves
    }
}

impl From<ArrayShape> for HloShape {
    fn from(array: ArrayShape) -> HloShape {
        HloShape::Array(array)
    }
}

/// The text names of element types; those of the quantized types are ours.
const TYPE_NAMES: [(DataType, &str); 30] = [
    (DataType::BOOL, "pred"),
    (DataType::INT2, "s2"),
    (DataType::INT4, "s4"),
    (DataType::INT8, "s8"),
    (DataType::INT16, "s16"),
    (DataType::INT32, "s32"),
    (DataType::INT64, "s64"),
    (DataType::UINT2, "u2"),
    (DataType::UINT4, "u4"),
    (DataType::UINT8, "u8"),
    (DataType::UINT16, "u16"),
    (DataType::UINT32, "u32"),
    (DataType::UINT64, "u64"),
    (DataType::HALF, "f16"),
    (DataType::BFLOAT16, "bf16"),
    (DataType::FLOAT, "f32"),
    (DataType::DOUBLE, "f64"),
    (DataType::COMPLEX64, "c64"),
    (DataType::COMPLEX128, "c128"),
    (DataType::FLOAT8_E5M2, "f8e5m2"),
    (DataType::FLOAT8_E4M3FN, "f8e4m3fn"),
    (DataType::FLOAT8_E4M3FNUZ, "f8e4m3fnuz"),
    (DataType::FLOAT8_E4M3B11FNUZ, "f8e4m3b11fnuz"),
    (DataType::FLOAT8_E5M2FNUZ, "f8e5m2fnuz"),
    (DataType::FLOAT4_E2M1FN, "f4e2m1fn"),
    (DataType::QINT8, "qs8"),
    (DataType::QUINT8, "qu8"),
    (DataType::QINT16, "qs16"),
    (DataType::QUINT16, "qu16"),
    (DataType::QINT32, "qs32"),
];

/// The text name of an element type, `f32` for float.
pub fn type_name(dtype: DataType) -> &'static str {
    TYPE_NAMES
        .iter()
        .find(|(known, _)| *known == dtype)
        .map_or("invalid", |(_, name)| name)
}

/// The element type with this text name. INVALID_ARGUMENT when there is none.
pub fn type_from_name(name: &str) -> Result<DataType> {
    match TYPE_NAMES.iter().find(|(_, known)| *known == name) {
        Some((dtype, _)) => Ok(*dtype),
        None => bail!(InvalidArgument, "Unknown element type {name}"),
    }
}

/// `f32[2,3]{1,0}`; a scalar is `f32[]`.
impl fmt::Display for ArrayShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", type_name(self.dtype))?;
        for (i, extent) in self.dims.iter().enumerate() {
            write!(f, "{}{extent}", if i > 0 { "," } else { "" })?;
        }
        f.write_str("]")?;
        if self.rank() > 0 {
            f.write_str("{")?;
            for axis in (0..self.rank()).rev() {
                write!(f, "{axis}{}", if axis > 0 { "," } else { "" })?;
            }
            f.write_str("}")?;
        }
        Ok(())
    }
}

/// `(f32[2]{0}, s32[])` for a tuple.
impl fmt::Display for HloShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HloShape::Array(array) => array.fmt(f),
            HloShape::Tuple(elements) => {
                f.write_str("(")?;
                for (i, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl fmt::Debug for ArrayShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for HloShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
