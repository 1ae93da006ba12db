use super::*;
use crate::{
    AttrValue, GraphDef, NodeDef, SavedModel, TensorProto, attr_value::ListValue, attr_value::Value as Attr,
};

// The expected text is what the reference prints for the same graph.
const NODE: &str = r#"node {
  name: "a"
  op: "NoOp"
  attr {
    key: "_e"
    value {
      list {
      }
    }
  }
  attr {
    key: "_lf"
    value {
      list {
        f: 0.1
        f: 1e+30
        f: inf
        f: -inf
        f: nan
        f: -0
        f: 2
        f: 1e-07
        f: 1234567
        f: 0.0001
        f: 1.234e-05
        f: 3.14159274
      }
    }
  }
  attr {
    key: "_s"
    value {
      s: "\000\377\'\"\n1\303\251\\\t\r"
    }
  }
  attr {
    key: "_tn"
    value {
      tensor {
        dtype: DT_DOUBLE
        double_val: 1e+22
        double_val: 123456789
        double_val: 0.33333333333333331
        double_val: 1e+15
        double_val: 1.2345678901234568e+17
      }
    }
  }
}
"#;

fn graph() -> GraphDef {
    let floats = [
        0.1,
        1e30,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        -0.0,
        2.0,
        1e-7,
        1234567.0,
        1e-4,
        1.234e-5,
        std::f32::consts::PI,
    ];
    let tensor = TensorProto {
        dtype: crate::DataType::DtDouble as i32,
        double_val: vec![1e22, 123456789.0, 1.0 / 3.0, 1e15, 123456789012345680.0],
        ..Default::default()
    };
    let attr = [
        ("_e", Attr::List(Default::default())),
        (
            "_lf",
            Attr::List(Box::new(ListValue {
                f: floats.to_vec(),
                ..Default::default()
            })),
        ),
        ("_s", Attr::S(Bytes::from_static(b"\x00\xff'\"\n1\xc3\xa9\\\t\r"))),
        ("_tn", Attr::Tensor(Box::new(tensor))),
    ];
    let attr = attr
        .map(|(name, value)| (name.to_owned(), AttrValue { value: Some(value) }))
        .into();
    let node = NodeDef {
        name: "a".into(),
        op: "NoOp".into(),
        attr,
        ..Default::default()
    };
    GraphDef {
        node: vec![node],
        ..Default::default()
    }
}

#[test]
fn prints_as_the_reference() {
    assert_eq!(print(&graph()).unwrap(), NODE);
}

#[test]
fn parses_what_it_prints() {
    let read: GraphDef = parse(NODE).unwrap();
    assert_eq!(read.encode_to_vec(), graph().encode_to_vec());
}

#[test]
fn parses_the_language() {
    let text = r#"
        # a comment with a brace {
        meta_graphs: [{ meta_info_def < tags: "serve", tags: 'two' "parts"; > }],
        saved_model_schema_version: 0x1
    "#;
    let model: SavedModel = parse(text).unwrap();
    assert_eq!(model.saved_model_schema_version, 1);
    assert_eq!(
        model.meta_graphs[0].meta_info_def.as_ref().unwrap().tags,
        ["serve", "twoparts"]
    );
}

#[test]
fn bad_text_is_an_error() {
    for text in [
        "nodes {}",
        "node {",
        "node { name: 5 }",
        "node { name: \"x }",
        "versions { producer: 99999999999 }",
    ] {
        assert!(parse::<GraphDef>(text).is_err(), "{text}");
    }
}

#[test]
fn deep_text_is_an_error() {
    let attr = |depth: usize| {
        let open = "func { attr { key: 'a' value { ".repeat(depth);
        format!(
            "node {{ attr {{ key: 'a' value {{ {open} {} }} }} }}",
            "} } }".repeat(depth)
        )
    };
    assert!(parse::<GraphDef>(&attr(20)).is_ok());
    for depth in [50, 65, 10_000] {
        assert!(parse::<GraphDef>(&attr(depth)).is_err());
    }
}
