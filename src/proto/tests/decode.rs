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
