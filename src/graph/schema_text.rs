//! Schemas in one line, as error messages quote them: `Op<name=Relu; signature=features:T -> activations:T; attr=...>`.

use ff_proto::OpDef;
use ff_proto::attr_value::Value;
use ff_proto::op_def::{ArgDef, AttrDef};
use ff_tensor::DataType;

/// The schema in one line.
pub fn op_summary(def: &OpDef) -> String {
    let mut text = format!(
        "Op<name={}; signature={} -> {}",
        def.name,
        args(&def.input_arg),
        args(&def.output_arg)
    );
    for attr in &def.attr {
        text.push_str("; attr=");
        text.push_str(&attr_summary(attr));
    }
    if def.is_commutative {
        text.push_str("; is_commutative=true");
    }
    if def.is_aggregate {
        text.push_str("; is_aggregate=true");
    }
    if def.is_stateful {
        text.push_str("; is_stateful=true");
    }
    if def.is_distributed_communication {
        text.push_str("; is_distributed_communication=true");
    }
    if def.allows_uninitialized_input {
        text.push_str("; allows_uninitialized_input=true");
    }
    text.push('>');
    text
}

fn args(list: &[ArgDef]) -> String {
    list.iter().map(arg).collect::<Vec<_>>().join(", ")
}

fn arg(arg: &ArgDef) -> String {
    let mut text = format!("{}:", arg.name);
    if arg.is_ref {
        text.push_str("Ref(");
    }
    if !arg.number_attr.is_empty() {
        text.push_str(&format!("{}*", arg.number_attr));
    }
    if arg.r#type != 0 {
        text.push_str(&DataType(arg.r#type).to_string());
    } else if !arg.type_attr.is_empty() {
        text.push_str(&arg.type_attr);
    } else {
        text.push_str(&arg.type_list_attr);
    }
    if arg.is_ref {
        text.push(')');
    }
    text
}

fn attr_summary(attr: &AttrDef) -> String {
    let mut text = format!("{}:{}", attr.name, attr.r#type);
    if let Some(default) = &attr.default_value {
        text.push_str(&format!(",default={}", value(default)));
    }
    if attr.has_minimum {
        text.push_str(&format!(",min={}", attr.minimum));
    }
    if let Some(allowed) = &attr.allowed_values {
        text.push_str(&format!(",allowed={}", value(allowed)));
    }
    text
}

/// An attribute's value as schemas print it.
fn value(proto: &ff_proto::AttrValue) -> String {
    let quoted = |text: &[u8]| format!("\"{}\"", String::from_utf8_lossy(text).escape_default());
    match &proto.value {
        Some(Value::S(text)) => quoted(text),
        Some(Value::I(int)) => int.to_string(),
        Some(Value::F(float)) => float.to_string(),
        Some(Value::B(bool)) => bool.to_string(),
        Some(Value::Type(number)) => DataType(*number).wire_name(),
        Some(Value::Shape(shape)) => ff_tensor::PartialShape::from_proto(shape)
            .map(|shape| shape.to_string())
            .unwrap_or_default(),
        Some(Value::List(list)) => {
            let mut items: Vec<String> = list.s.iter().map(|text| quoted(text)).collect();
            items.extend(list.i.iter().map(i64::to_string));
            items.extend(list.f.iter().map(f32::to_string));
            items.extend(list.b.iter().map(bool::to_string));
            items.extend(list.r#type.iter().map(|number| DataType(*number).wire_name()));
            format!("[{}]", items.join(", "))
        }
        _ => String::new(),
    }
}
