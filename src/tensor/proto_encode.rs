//! Encoding of tensors to their wire message, as raw bytes or as numbers in the field of their type.

use crate::element::*;
use crate::{DataType, Tensor, VariantObject, VariantValue, bf16, f16};
use bytes::Bytes;
use ff_proto::{Message, TensorProto, VariantTensorDataProto};

/// A variant value of a type that only a higher layer knows, kept as it came from the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantProto(pub VariantTensorDataProto);

impl VariantObject for VariantProto {
    fn type_name(&self) -> &str {
        &self.0.type_name
    }

    fn to_proto(&self) -> Option<VariantTensorDataProto> {
        Some(self.0.clone())
    }
}

impl VariantValue {
    /// The message of the value; an empty message for an empty variant, and only the type's name for a value that has
    /// no wire form.
    pub fn to_proto(&self) -> VariantTensorDataProto {
        let Some(object) = self.object() else {
            return VariantTensorDataProto::default();
        };
        object.to_proto().unwrap_or_else(|| VariantTensorDataProto {
            type_name: object.type_name().to_string(),
            ..Default::default()
        })
    }
}

/// Type and shape, without elements.
fn header(tensor: &Tensor) -> TensorProto {
    TensorProto {
        dtype: tensor.dtype().0,
        tensor_shape: Some(tensor.shape().to_proto()),
        ..Default::default()
    }
}

impl Tensor {
    /// The message with the elements as raw bytes (`tensor_content`). The bytes are copied.
    pub fn to_proto(&self) -> TensorProto {
        TensorProto {
            tensor_content: match self.dtype() {
                DataType::STRING => join_list(self.strings().unwrap_or(&[]), |s| s.as_bytes().to_vec()),
                DataType::RESOURCE => {
                    join_list(self.resources().unwrap_or(&[]), |h| h.to_proto().encode_to_vec())
                }
                DataType::VARIANT => {
                    join_list(self.variants().unwrap_or(&[]), |v| v.to_proto().encode_to_vec())
                }
                _ => Bytes::copy_from_slice(self.bytes()),
            },
            ..header(self)
        }
    }

    /// The message with every element in the field of its type.
    pub fn to_proto_fields(&self) -> TensorProto {
        let mut proto = header(self);
        self.fill_fields(&mut proto);
        proto
    }

    /// The form that attributes of nodes have: raw bytes for more than one element, fields for one or none.
    pub fn to_attr_proto(&self) -> TensorProto {
        if self.num_elements() > 1 {
            self.to_proto()
        } else {
            self.to_proto_fields()
        }
    }

    /// The smaller of two forms: raw bytes, or fields without the repeats of the last element (compared by their bits).
    pub fn to_proto_compressed(&self) -> TensorProto {
        let kept = self.num_elements() - self.trailing_repeats();
        let size = self.dtype().size();
        if !self.dtype().is_plain() || kept.saturating_mul(size.max(4)) >= self.byte_size() {
            return self.to_attr_proto();
        }
        match self
            .reshape(crate::Shape::vector(self.num_elements()))
            .and_then(|flat| flat.rows(0, kept))
        {
            Ok(head) => TensorProto {
                tensor_shape: Some(self.shape().to_proto()),
                ..head.to_proto_fields()
            },
            Err(_) => self.to_attr_proto(),
        }
    }

    /// How many elements at the end equal, bit for bit, the one before them.
    fn trailing_repeats(&self) -> usize {
        let size = self.dtype().size().max(1);
        let mut repeats = 0;
        let mut elements = self.bytes().chunks_exact(size).rev();
        if let Some(last) = elements.next() {
            repeats = elements.take_while(|element| *element == last).count();
        }
        repeats
    }

    fn fill_fields(&self, proto: &mut TensorProto) {
        match self.dtype() {
            DataType::FLOAT => proto.float_val = self.list(|v: f32| v),
            DataType::DOUBLE => proto.double_val = self.list(|v: f64| v),
            DataType::INT64 => proto.int64_val = self.list(|v: i64| v),
            DataType::UINT32 => proto.uint32_val = self.list(|v: u32| v),
            DataType::UINT64 => proto.uint64_val = self.list(|v: u64| v),
            DataType::BOOL => proto.bool_val = self.list(Bool::get),
            DataType::HALF => proto.half_val = self.list(|v: f16| i32::from(v.to_bits())),
            DataType::BFLOAT16 => proto.half_val = self.list(|v: bf16| i32::from(v.to_bits())),
            DataType::COMPLEX64 => {
                proto.scomplex_val = self
                    .list(|v: Complex64| [v.re, v.im])
                    .into_iter()
                    .flatten()
                    .collect()
            }
            DataType::COMPLEX128 => {
                proto.dcomplex_val = self
                    .list(|v: Complex128| [v.re, v.im])
                    .into_iter()
                    .flatten()
                    .collect()
            }
            DataType::STRING => {
                let strings = self.strings().unwrap_or(&[]).iter();
                proto.string_val = strings.map(|s| Bytes::copy_from_slice(s.as_bytes())).collect();
            }
            DataType::RESOURCE => {
                let handles = self.resources().unwrap_or(&[]).iter();
                proto.resource_handle_val = handles.map(|handle| handle.to_proto()).collect();
            }
            DataType::VARIANT => {
                let values = self.variants().unwrap_or(&[]).iter();
                proto.variant_val = values.map(VariantValue::to_proto).collect();
            }
            dtype if dtype.is_floating() => proto.float8_val = Bytes::copy_from_slice(self.bytes()),
            _ => proto.int_val = self.small_integers(),
        }
    }

    pub(crate) fn list<T: Element, S>(&self, convert: impl Fn(T) -> S) -> Vec<S> {
        let elements = self.as_slice::<T>().unwrap_or(&[]);
        elements.iter().map(|&element| convert(element)).collect()
    }

    /// The elements of the types that share the field of 32-bit integers.
    pub(crate) fn small_integers(&self) -> Vec<i32> {
        match self.dtype() {
            DataType::INT32 => self.list(|v: i32| v),
            DataType::INT16 => self.list(|v: i16| i32::from(v)),
            DataType::INT8 => self.list(|v: i8| i32::from(v)),
            DataType::UINT8 => self.list(|v: u8| i32::from(v)),
            DataType::UINT16 => self.list(|v: u16| i32::from(v)),
            DataType::QINT8 => self.list(|v: QInt8| i32::from(v.0)),
            DataType::QUINT8 => self.list(|v: QUInt8| i32::from(v.0)),
            DataType::QINT16 => self.list(|v: QInt16| i32::from(v.0)),
            DataType::QUINT16 => self.list(|v: QUInt16| i32::from(v.0)),
            DataType::QINT32 => self.list(|v: QInt32| v.0),
            DataType::INT4 => self.list(Int4::to_i32),
            DataType::UINT4 => self.list(UInt4::to_i32),
            DataType::INT2 => self.list(Int2::to_i32),
            DataType::UINT2 => self.list(UInt2::to_i32),
            _ => Vec::new(),
        }
    }
}

/// The raw form of a list of byte strings: all lengths as varints, then all bytes.
fn join_list<T>(elements: &[T], encode: impl Fn(&T) -> Vec<u8>) -> Bytes {
    let parts: Vec<Vec<u8>> = elements.iter().map(encode).collect();
    let mut content = Vec::new();
    for part in &parts {
        prost::encoding::encode_varint(part.len() as u64, &mut content);
    }
    for part in &parts {
        content.extend_from_slice(part);
    }
    content.into()
}
