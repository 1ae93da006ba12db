//! A function in the form in which people read it: a line per node. For debugging; nothing reads it back.

use crate::summary;
use ff_op::AttrValue;
use ff_proto::{FunctionDef, NodeDef};
use std::fmt::Write;

/// The text of a function: `f(a:float) -> (b:float) {`, its nodes, what it returns, `}`.
pub fn function_text(def: &FunctionDef) -> String {
    let signature = def.signature.clone().unwrap_or_default();
    let mut text = format!("\n{}", signature.name);
    if !signature.attr.is_empty() {
        let attrs = signature
            .attr
            .iter()
            .map(|attr| format!("{}:{}", attr.name, attr.r#type));
        let _ = write!(text, "[{}]", attrs.collect::<Vec<_>>().join(", "));
    }
    let (inputs, outputs) = (
        summary::args(&signature.input_arg),
        summary::args(&signature.output_arg),
    );
    let _ = writeln!(text, "({inputs}) -> ({outputs}) {{");
    for node in &def.node_def {
        let _ = writeln!(text, "  {}", node_text(node));
    }
    for (name, value) in &def.ret {
        let _ = writeln!(text, "  return {name} = {value}");
    }
    text.push_str("}\n");
    text
}

fn node_text(node: &NodeDef) -> String {
    let mut text = format!("{} = {}", node.name, node.op);
    let mut attrs: Vec<String> = node
        .attr
        .iter()
        .map(|(name, value)| format!("{name}={}", value_text(value)))
        .collect();
    attrs.sort();
    if !attrs.is_empty() {
        if !node.device.is_empty() {
            attrs.push(format!("device={}", short_device(&node.device)));
        }
        let _ = write!(text, "[{}]", attrs.join(", "));
    }
    let data = node.input.iter().filter(|input| !input.starts_with('^'));
    let controls = node.input.iter().filter_map(|input| input.strip_prefix('^'));
    let data: Vec<&str> = data.map(String::as_str).collect();
    let controls: Vec<&str> = controls.collect();
    let _ = write!(text, "({})", data.join(", "));
    if !controls.is_empty() {
        let _ = write!(text, " @ {}", controls.join(", "));
    }
    text
}

/// As in other texts, but types by their short names.
fn value_text(value: &ff_proto::AttrValue) -> String {
    match AttrValue::from_proto(value) {
        Ok(AttrValue::Type(dtype)) => dtype.to_string(),
        Ok(AttrValue::Types(types)) => {
            let types: Vec<String> = types.iter().map(|dtype| dtype.to_string()).collect();
            format!("{{{}}}", types.join(", "))
        }
        Ok(value) => summary::attr(&value),
        Err(_) => "<Unknown AttrValue type>".to_string(),
    }
}

/// Kind and number of a device: `CPU:0` for `/job:a/device:CPU:0` and `/cpu:0`.
fn short_device(device: &str) -> String {
    let last = device.rsplit('/').next().unwrap_or(device);
    let last = last.strip_prefix("device:").unwrap_or(last);
    match last.split_once(':') {
        Some((kind, number)) => format!("{}:{number}", kind.to_uppercase()),
        None => last.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_proto::text::parse;

    #[test]
    fn functions_read_as_in_the_reference() {
        let def: FunctionDef = parse(
            "signature{name:'f' input_arg{name:'a' type:DT_FLOAT} output_arg{name:'b' type:DT_FLOAT}}
             node_def{name:'n' op:'Identity' input:'a' input:'^c' device:'/cpu:0'
                      attr{key:'_x' value{i:3}} attr{key:'T' value{type:DT_FLOAT}}}
             ret{key:'b' value:'n:output:0'}",
        )
        .unwrap();
        assert_eq!(
            function_text(&def),
            "\nf(a:float) -> (b:float) {\n  n = Identity[T=float, _x=3, device=CPU:0](a) @ c\n  return b = n:output:0\n}\n"
        );
    }
}
