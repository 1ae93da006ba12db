//! The element types of tensors, with the numbers of `TF_DataType` and `DataType` on the wire.

use std::fmt;

/// An element type. Values of 100 more than a type mean a reference to a variable of that type.
///
/// Any number can be held, so that unknown types survive a round trip; [`DataType::is_known`] tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(transparent)]
pub struct DataType(pub i32);

const REF_OFFSET: i32 = 100;

/// Number, wire name (without `DT_`), printed name, bytes per element (0 where an element is not plain bytes).
struct Row(&'static str, &'static str, usize);

/// One row per type, in the order of their numbers.
const ROWS: [Row; 34] = [
    Row("INVALID", "INVALID", 0),
    Row("FLOAT", "float", 4),
    Row("DOUBLE", "double", 8),
    Row("INT32", "int32", 4),
    Row("UINT8", "uint8", 1),
    Row("INT16", "int16", 2),
    Row("INT8", "int8", 1),
    Row("STRING", "string", 0),
    Row("COMPLEX64", "complex64", 8),
    Row("INT64", "int64", 8),
    Row("BOOL", "bool", 1),
    Row("QINT8", "qint8", 1),
    Row("QUINT8", "quint8", 1),
    Row("QINT32", "qint32", 4),
    Row("BFLOAT16", "bfloat16", 2),
    Row("QINT16", "qint16", 2),
    Row("QUINT16", "quint16", 2),
    Row("UINT16", "uint16", 2),
    Row("COMPLEX128", "complex128", 16),
    Row("HALF", "half", 2),
    Row("RESOURCE", "resource", 0),
    Row("VARIANT", "variant", 0),
    Row("UINT32", "uint32", 4),
    Row("UINT64", "uint64", 8),
    Row("FLOAT8_E5M2", "float8_e5m2", 1),
    Row("FLOAT8_E4M3FN", "float8_e4m3fn", 1),
    Row("FLOAT8_E4M3FNUZ", "float8_e4m3fnuz", 1),
    Row("FLOAT8_E4M3B11FNUZ", "float8_e4m3b11fnuz", 1),
    Row("FLOAT8_E5M2FNUZ", "float8_e5m2fnuz", 1),
    Row("INT4", "int4", 1),
    Row("UINT4", "uint4", 1),
    Row("INT2", "int2", 1),
    Row("UINT2", "uint2", 1),
    Row("FLOAT4_E2M1FN", "float4_e2m1fn", 1),
];

#[allow(missing_docs)] // the names are the definition
impl DataType {
    pub const INVALID: DataType = DataType(0);
    pub const FLOAT: DataType = DataType(1);
    pub const DOUBLE: DataType = DataType(2);
    pub const INT32: DataType = DataType(3);
    pub const UINT8: DataType = DataType(4);
    pub const INT16: DataType = DataType(5);
    pub const INT8: DataType = DataType(6);
    pub const STRING: DataType = DataType(7);
    pub const COMPLEX64: DataType = DataType(8);
    pub const INT64: DataType = DataType(9);
    pub const BOOL: DataType = DataType(10);
    pub const QINT8: DataType = DataType(11);
    pub const QUINT8: DataType = DataType(12);
    pub const QINT32: DataType = DataType(13);
    pub const BFLOAT16: DataType = DataType(14);
    pub const QINT16: DataType = DataType(15);
    pub const QUINT16: DataType = DataType(16);
    pub const UINT16: DataType = DataType(17);
    pub const COMPLEX128: DataType = DataType(18);
    pub const HALF: DataType = DataType(19);
    pub const RESOURCE: DataType = DataType(20);
    pub const VARIANT: DataType = DataType(21);
    pub const UINT32: DataType = DataType(22);
    pub const UINT64: DataType = DataType(23);
    pub const FLOAT8_E5M2: DataType = DataType(24);
    pub const FLOAT8_E4M3FN: DataType = DataType(25);
    pub const FLOAT8_E4M3FNUZ: DataType = DataType(26);
    pub const FLOAT8_E4M3B11FNUZ: DataType = DataType(27);
    pub const FLOAT8_E5M2FNUZ: DataType = DataType(28);
    pub const INT4: DataType = DataType(29);
    pub const UINT4: DataType = DataType(30);
    pub const INT2: DataType = DataType(31);
    pub const UINT2: DataType = DataType(32);
    pub const FLOAT4_E2M1FN: DataType = DataType(33);
}

impl DataType {
    fn row(self) -> Option<&'static Row> {
        usize::try_from(self.base().0).ok().and_then(|i| ROWS.get(i))
    }

    /// Whether this is one of the listed types (or a reference to one), and not `INVALID`.
    pub fn is_known(self) -> bool {
        self.base() != DataType::INVALID && self.row().is_some()
    }

    /// Whether this is a reference to a variable.
    pub fn is_ref(self) -> bool {
        self.0 > REF_OFFSET
    }

    /// The type with any reference taken off.
    pub fn base(self) -> DataType {
        if self.is_ref() {
            DataType(self.0 - REF_OFFSET)
        } else {
            self
        }
    }

    /// The reference to this type.
    pub fn to_ref(self) -> DataType {
        if self.is_ref() {
            self
        } else {
            DataType(self.0 + REF_OFFSET)
        }
    }

    /// Bytes per element as `TF_DataTypeSize` gives them: 0 for strings, resources, variants and unknown types.
    /// Types under a byte (int4, int2, float4) are stored one per byte.
    pub fn size(self) -> usize {
        self.row().map_or(0, |row| row.2)
    }

    /// Whether an element is plain bytes that can be copied as such.
    pub fn is_plain(self) -> bool {
        self.size() > 0
    }

    /// Whether the type is a binary floating-point type.
    pub fn is_floating(self) -> bool {
        use std::ops::RangeInclusive;
        const FLOAT8: RangeInclusive<i32> = 24..=28;
        matches!(
            self,
            DataType::FLOAT | DataType::DOUBLE | DataType::HALF | DataType::BFLOAT16
        ) || FLOAT8.contains(&self.0)
            || self == DataType::FLOAT4_E2M1FN
    }

    /// Whether the type is complex.
    pub fn is_complex(self) -> bool {
        matches!(self, DataType::COMPLEX64 | DataType::COMPLEX128)
    }

    /// Whether the type is an integer (not bool, not quantized).
    pub fn is_integer(self) -> bool {
        matches!(self.0, 3..=6 | 9 | 17 | 22 | 23 | 29..=32)
    }

    /// Whether the type is one of the quantized types.
    pub fn is_quantized(self) -> bool {
        matches!(self.0, 11..=13 | 15 | 16)
    }

    /// The name on the wire, such as `DT_FLOAT` or `DT_FLOAT_REF`.
    pub fn wire_name(self) -> String {
        match self.row() {
            Some(row) if self.is_ref() => format!("DT_{}_REF", row.0),
            Some(row) => format!("DT_{}", row.0),
            None => format!("DT_{}", self.0),
        }
    }

    /// The type with this wire name (`DT_FLOAT`).
    pub fn from_wire_name(name: &str) -> Option<DataType> {
        let name = name.strip_prefix("DT_")?;
        let (name, is_ref) = match name.strip_suffix("_REF") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let index = ROWS.iter().position(|row| row.0 == name)?;
        let dtype = DataType(index as i32);
        Some(if is_ref { dtype.to_ref() } else { dtype })
    }
}

/// The printed name as error messages have it: `float`, `int32`, `float_ref`.
impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row() {
            Some(row) if self.is_ref() => write!(f, "{}_ref", row.1),
            Some(row) => f.write_str(row.1),
            None => write!(f, "unknown dtype enum ({})", self.0),
        }
    }
}

impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.wire_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_references() {
        assert_eq!(DataType::FLOAT.to_ref().to_string(), "float_ref");
        assert_eq!(DataType::FLOAT.to_ref().base(), DataType::FLOAT);
        assert_eq!(DataType::from_wire_name("DT_INT8_REF"), Some(DataType(106)));
        assert_eq!(DataType::FLOAT4_E2M1FN.wire_name(), "DT_FLOAT4_E2M1FN");
        assert!(!DataType(77).is_known());
        assert_eq!(DataType::COMPLEX128.size(), 16);
    }
}
