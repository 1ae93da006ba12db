//! Decoding of graphs: sharing of large contents, nesting limits, bad input.

use ff_proto::{Bytes, GraphDef, Message, NodeDef, TensorProto, attr_value::Value};

fn constant(content: Vec<u8>) -> GraphDef {
    let tensor = TensorProto {
        tensor_content: content.into(),
        ..Default::default()
    };
    let value = ff_proto::AttrValue {
        value: Some(Value::Tensor(Box::new(tensor))),
    };
    let node = NodeDef {
        name: "c".into(),
        op: "Const".into(),
        attr: [("value".into(), value)].into(),
        ..Default::default()
    };
    GraphDef {
        node: vec![node],
        ..Default::default()
    }
}

#[test]
fn tensor_content_is_a_slice_of_the_input() {
    let encoded = Bytes::from(constant(vec![7; 1 << 16]).encode_to_vec());
    let graph = GraphDef::decode(encoded.clone()).unwrap();
    let Some(Value::Tensor(tensor)) = &graph.node[0].attr["value"].value else {
        panic!("no tensor")
    };
    assert_eq!(tensor.tensor_content.len(), 1 << 16);
    assert!(encoded.as_ptr_range().contains(&tensor.tensor_content.as_ptr()));
}

/// A field of wire type 2.
fn delimited(number: u8, payload: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encoding::encode_varint(payload.len() as u64, &mut field);
    field.extend_from_slice(payload);
    field
}

/// A node with an attribute of `depth` nested functions.
fn nested_functions(depth: usize) -> Vec<u8> {
    let mut value = Vec::new();
    for _ in 0..depth {
        // AttrValue.func { attr { value } }
        value = delimited(10, &delimited(2, &delimited(2, &value)));
    }
    delimited(1, &delimited(5, &delimited(2, &value)))
}

#[test]
fn deep_messages_are_an_error() {
    // Three levels each, as in the reference: 100 levels in all.
    assert!(GraphDef::decode(&nested_functions(32)[..]).is_ok());
    for depth in [33, 34, 10_000] {
        let encoded = nested_functions(depth);
        assert!(GraphDef::decode(&encoded[..]).is_err());
        assert!(GraphDef::decode(Bytes::from(encoded)).is_err());
    }
}

#[test]
fn deep_groups_are_an_error() {
    assert!(GraphDef::decode(&[0x0b; 100_000][..]).is_err());
}

#[test]
fn every_prefix_and_every_flipped_bit_is_decoded_or_refused() {
    let encoded = constant((0..64).collect()).encode_to_vec();
    for end in 0..encoded.len() {
        let _ = GraphDef::decode(&encoded[..end]);
    }
    for bit in 0..encoded.len() * 8 {
        let mut damaged = encoded.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let _ = GraphDef::decode(&damaged[..]);
    }
}
