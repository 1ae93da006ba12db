//! Fields that this version of the messages does not know.
//!
//! Decoding drops them. A caller that must give back what it was given (a newer writer's NodeDef that only passes
//! through) keeps the encoded message, asks here for its unknown fields, and appends them to its own encoding:
//! concatenated encodings are one message. Only the top level of the given bytes is looked at; apply [`fields`] to a
//! payload to go one level down. No field is interpreted.

use crate::{Bytes, DecodeError, Message};
use bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// One field of an encoded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawField {
    /// The field's number.
    pub number: u32,
    /// The whole field: its key and its value.
    pub encoded: Bytes,
    /// What a length-delimited field holds (string, bytes, message, packed list); `None` for other wire types.
    pub payload: Option<Bytes>,
}

/// The top-level fields of an encoded message, in their order; slices of `message`, not copies.
pub fn fields(message: &Bytes) -> impl Iterator<Item = Result<RawField, DecodeError>> + use<> {
    let mut rest = message.clone();
    std::iter::from_fn(move || {
        if !rest.has_remaining() {
            return None;
        }
        let field = next_field(&mut rest);
        if field.is_err() {
            rest.clear();
        }
        Some(field)
    })
}

fn next_field(rest: &mut Bytes) -> Result<RawField, DecodeError> {
    let start = rest.clone();
    let (number, wire_type) = decode_key(rest)?;
    let before_value = rest.clone();
    skip_field(wire_type, number, rest, DecodeContext::default())?;
    let encoded = start.slice(..start.len() - rest.len());
    let payload = if wire_type == WireType::LengthDelimited {
        let mut value = before_value.slice(..before_value.len() - rest.len());
        decode_varint(&mut value)?;
        Some(value)
    } else {
        None
    };
    Ok(RawField {
        number,
        encoded,
        payload,
    })
}

/// The encoded top-level fields of `message` whose numbers are not in `known`, concatenated; empty for most messages.
pub fn unknown_fields(message: &Bytes, known: &[u32]) -> Result<Bytes, DecodeError> {
    let mut kept = Vec::new();
    for field in fields(message) {
        let field = field?;
        if !known.contains(&field.number) {
            kept.extend_from_slice(&field.encoded);
        }
    }
    Ok(kept.into())
}

/// The encoding of `message` with `unknown` (from [`unknown_fields`]) after its own fields.
pub fn encode_with_unknown<M: Message>(message: &M, unknown: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(message.encoded_len() + unknown.len());
    message.encode_raw(&mut encoded);
    encoded.extend_from_slice(unknown);
    encoded
}

/// The field numbers of the messages that pass through the library, for [`unknown_fields`].
pub mod known {
    /// `NodeDef`: name, op, input, device, attr, experimental_debug_info, experimental_type.
    pub const NODE_DEF: &[u32] = &[1, 2, 3, 4, 5, 6, 7];
    /// `GraphDef`: node, library, version, versions, debug_info.
    pub const GRAPH_DEF: &[u32] = &[1, 2, 3, 4, 5];
    /// `FunctionDef`: signature, node_def, ret, attr, control_ret, arg_attr, resource_arg_unique_id.
    pub const FUNCTION_DEF: &[u32] = &[1, 3, 4, 5, 6, 7, 8];
    /// `FunctionDefLibrary`: function, gradient, registered_gradients.
    pub const FUNCTION_DEF_LIBRARY: &[u32] = &[1, 2, 3];
    /// `AttrValue`: list, s, i, f, b, type, shape, tensor, placeholder, func.
    pub const ATTR_VALUE: &[u32] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeDef;

    #[test]
    fn unknown_fields_survive_a_round_trip() {
        let node = NodeDef {
            name: "n".into(),
            op: "NoOp".into(),
            ..Default::default()
        };
        // Field 100: varint 5; field 101: string "x"; field 102: fixed32; field 103: a group with one varint.
        let extra = [
            0xa0, 0x06, 5, 0xaa, 0x06, 1, b'x', 0xb5, 0x06, 1, 2, 3, 4, 0xbb, 0x06, 0x08, 1, 0xbc, 0x06,
        ];
        let encoded = Bytes::from(encode_with_unknown(&node, &extra));
        let unknown = unknown_fields(&encoded, known::NODE_DEF).unwrap();
        assert_eq!(&unknown[..], extra);
        assert_eq!(
            encode_with_unknown(&NodeDef::decode(encoded.clone()).unwrap(), &unknown),
            encoded
        );
        let payloads: Vec<_> = fields(&encoded)
            .filter_map(|field| field.unwrap().payload)
            .collect();
        assert_eq!(payloads, ["n", "NoOp", "x"]);
    }

    #[test]
    fn truncated_field_is_an_error() {
        for bad in [&[0x0a, 5, b'x'][..], &[0x80], &[0x00], &[0x0b, 0x08]] {
            assert!(
                unknown_fields(&Bytes::copy_from_slice(bad), &[]).is_err(),
                "{bad:?}"
            );
        }
    }
}
