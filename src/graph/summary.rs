//! Ops, nodes and attributes in the words of error messages.
//!
//! The texts equal the reference's, where programs and people know them from. Only made when an error is made.

use ff_op::{AttrValue, NodeInfo};
use ff_proto::OpDef;
use ff_proto::op_def::ArgDef;
use ff_tensor::{DataType, PartialShape, Tensor};
use std::fmt::Write;

/// Longest escaped string that is printed in full.
const STRING_LIMIT: usize = 80;
/// Lists of this length and more lose their middle.
const LIST_LIMIT: usize = 30;
/// Elements printed of a tensor attribute.
const TENSOR_LIMIT: usize = 3;

/// `Op<name=MatMul; signature=a:T, b:T -> product:T; attr=transpose_a:bool,default=false; ...>`.
pub fn op(def: &OpDef) -> String {
    let mut text = format!(
        "Op<name={}; signature={} -> {}",
        def.name,
        args(&def.input_arg),
        args(&def.output_arg)
    );
    for attr in &def.attr {
        let _ = write!(text, "; attr={}:{}", attr.name, attr.r#type);
        if let Some(value) = &attr.default_value {
            let _ = write!(text, ",default={}", proto_value(value));
        }
        if attr.has_minimum {
            let _ = write!(text, ",min={}", attr.minimum);
        }
        if let Some(value) = &attr.allowed_values {
            let _ = write!(text, ",allowed={}", proto_value(value));
        }
    }
    let flags = [
        ("is_commutative", def.is_commutative),
        ("is_aggregate", def.is_aggregate),
        ("is_stateful", def.is_stateful),
        ("allows_uninitialized_input", def.allows_uninitialized_input),
    ];
    for (flag, set) in flags {
        if set {
            let _ = write!(text, "; {flag}=true");
        }
    }
    text.push('>');
    text
}

/// `a:T, b:N*float, c:Ref(T)`.
pub fn args(args: &[ArgDef]) -> String {
    let one = |arg: &ArgDef| {
        let (open, close) = if arg.is_ref { ("Ref(", ")") } else { ("", "") };
        let number = if arg.number_attr.is_empty() {
            String::new()
        } else {
            format!("{}*", arg.number_attr)
        };
        let dtype = if arg.r#type == DataType::INVALID.0 {
            arg.type_attr.clone()
        } else {
            DataType(arg.r#type).to_string()
        };
        format!("{}:{open}{number}{dtype}{close}", arg.name)
    };
    args.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn proto_value(value: &ff_proto::AttrValue) -> String {
    match AttrValue::from_proto(value) {
        Ok(value) => attr(&value),
        Err(_) => "<Unknown AttrValue type>".to_string(),
    }
}

/// The value of an attribute: `DT_FLOAT`, `[1, 2]`, `"NHWC"`.
pub fn attr(value: &AttrValue) -> String {
    match value {
        AttrValue::String(bytes) => string(bytes),
        AttrValue::Int(int) => int.to_string(),
        AttrValue::Float(x) => float(*x),
        AttrValue::Bool(bool) => bool.to_string(),
        AttrValue::Type(dtype) => dtype.wire_name(),
        AttrValue::Shape(shape) => shape.to_string(),
        AttrValue::Tensor(value) => tensor(value),
        AttrValue::Func(function) => func(function),
        AttrValue::Placeholder(name) => format!("${name}"),
        AttrValue::Strings(values) => list(values, |x| string(x)),
        AttrValue::Ints(values) => list(values, i64::to_string),
        AttrValue::Floats(values) => list(values, |x| float(*x)),
        AttrValue::Bools(values) => list(values, bool::to_string),
        AttrValue::Types(values) => list(values, |x| x.wire_name()),
        AttrValue::Shapes(values) => list(values, PartialShape::to_string),
        AttrValue::Tensors(values) => list(values, tensor),
        AttrValue::Funcs(values) => list(values, func),
        AttrValue::EmptyList => "[]".to_string(),
        AttrValue::Unset => "<Unknown AttrValue type>".to_string(),
    }
}

fn list<T>(values: &[T], print: impl Fn(&T) -> String) -> String {
    let mut pieces: Vec<String> = values.iter().map(print).collect();
    if pieces.len() >= LIST_LIMIT {
        pieces.splice(5..pieces.len() - 5, ["...".to_string()]);
    }
    format!("[{}]", pieces.join(", "))
}

fn func(function: &ff_op::FunctionRef) -> String {
    let mut pieces: Vec<String> = function
        .attrs
        .iter()
        .map(|(name, value)| format!("{name}={}", attr(value)))
        .collect();
    pieces.sort();
    format!("{}[{}]", function.name, pieces.join(", "))
}

fn escaped(bytes: &[u8]) -> String {
    let mut escaped = String::new();
    for &byte in bytes {
        match byte {
            b'\n' => escaped.push_str("\\n"),
            b'\r' => escaped.push_str("\\r"),
            b'\t' => escaped.push_str("\\t"),
            b'"' | b'\'' | b'\\' => {
                escaped.push('\\');
                escaped.push(byte as char);
            }
            0x20..0x7f => escaped.push(byte as char),
            _ => {
                let _ = write!(escaped, "\\{byte:03o}");
            }
        }
    }
    escaped
}

fn string(bytes: &[u8]) -> String {
    let mut escaped = escaped(bytes);
    if escaped.len() >= STRING_LIMIT {
        let tail = escaped.split_off(escaped.len() - 10);
        escaped.truncate(10);
        return format!("\"{escaped}...{tail}\"");
    }
    format!("\"{escaped}\"")
}

/// Six significant digits, as C++ streams print.
fn float(x: f32) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string().to_lowercase();
    }
    let exponent = format!("{:.5e}", x.abs());
    let exponent: i32 = exponent
        .split_once('e')
        .and_then(|(_, text)| text.parse().ok())
        .unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return trimmed(&format!("{x:.*}", (5 - exponent) as usize));
    }
    let text = format!("{x:.5e}");
    let (mantissa, _) = text.split_once('e').unwrap_or((&text, ""));
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
}

fn trimmed(digits: &str) -> String {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        digits.to_string()
    }
}

fn tensor(value: &Tensor) -> String {
    format!(
        "Tensor<type: {} shape: {} values: {}>",
        value.dtype(),
        value.shape(),
        values(value, TENSOR_LIMIT)
    )
}

/// The first `limit` elements of a tensor, separated by spaces, and `...` when there are more.
pub fn values(value: &Tensor, limit: usize) -> String {
    let count = value.num_elements().min(limit);
    let mut pieces: Vec<String> = (0..count).map(|index| element(value, index)).collect();
    if let Some(last) = pieces.last_mut()
        && value.num_elements() > limit
    {
        last.push_str("...");
    }
    pieces.join(" ")
}

fn element(value: &Tensor, index: usize) -> String {
    fn at<T: ff_tensor::Element>(value: &Tensor, index: usize) -> Option<T> {
        value
            .as_slice::<T>()
            .ok()
            .and_then(|slice| slice.get(index))
            .copied()
    }
    let text = match value.dtype() {
        DataType::FLOAT => at::<f32>(value, index).map(float),
        DataType::DOUBLE => at::<f64>(value, index).map(|x| float(x as f32)),
        DataType::INT32 => at::<i32>(value, index).map(|x| x.to_string()),
        DataType::INT64 => at::<i64>(value, index).map(|x| x.to_string()),
        DataType::UINT8 => at::<u8>(value, index).map(|x| x.to_string()),
        DataType::INT8 => at::<i8>(value, index).map(|x| x.to_string()),
        DataType::BOOL => at::<ff_tensor::Bool>(value, index).map(|x| u8::from(x.get()).to_string()),
        DataType::STRING => value
            .strings()
            .ok()
            .and_then(|strings| strings.get(index))
            .map(|text| escaped(text.as_bytes())),
        _ => None,
    };
    text.unwrap_or_else(|| "?".to_string())
}

/// `{{node m}} = MatMul[T=DT_FLOAT, ...](a, b:1)`, with these printed inputs.
pub fn node(info: &NodeInfo, inputs: &[String]) -> String {
    let mut attrs: Vec<String> = info
        .attrs
        .iter()
        .map(|(name, value)| format!("{name}={}", attr(value)))
        .collect();
    attrs.sort();
    if !info.device.is_empty() {
        attrs.push(format!("_device=\"{}\"", info.device));
    }
    format!(
        "{} = {}[{}]({})",
        info.describe(),
        info.op_name(),
        attrs.join(", "),
        inputs.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_op::schema;

    #[test]
    fn ops_read_as_in_the_reference() {
        let text = |name| op(&schema::find(name).unwrap());
        assert_eq!(
            text("Placeholder"),
            "Op<name=Placeholder; signature= -> output:dtype; attr=dtype:type; attr=shape:shape,default=<unknown>>"
        );
        assert_eq!(
            text("Assign"),
            "Op<name=Assign; signature=ref:Ref(T), value:T -> output_ref:Ref(T); attr=T:type; attr=validate_shape:bool,default=true; attr=use_locking:bool,default=true; allows_uninitialized_input=true>"
        );
        assert!(text("AddN").starts_with(
            "Op<name=AddN; signature=inputs:N*T -> sum:T; attr=N:int,min=1; attr=T:type,allowed=[DT_FLOAT, DT_DOUBLE, DT_INT32, "
        ));
        assert!(text("Conv2D").contains("attr=data_format:string,default=\"NHWC\",allowed=[\"NHWC\", \"NCHW\"]; attr=dilations:list(int),default=[1, 1, 1, 1]>"));
        assert_eq!(
            text("IdentityN"),
            "Op<name=IdentityN; signature=input: -> output:; attr=T:list(type),min=1>"
        );
    }

    #[test]
    fn numbers_print_as_streams_print_them() {
        let printed = [
            (1.0, "1"),
            (0.1, "0.1"),
            (1e-5, "1e-05"),
            (1234567.0, "1.23457e+06"),
            (-2.5, "-2.5"),
        ];
        for (x, text) in printed {
            assert_eq!(float(x), text);
        }
    }

    #[test]
    fn long_values_are_shortened() {
        let long = AttrValue::Ints((0..40).collect());
        assert_eq!(attr(&long), "[0, 1, 2, 3, 4, ..., 35, 36, 37, 38, 39]");
        let text = attr(&AttrValue::from(&"x".repeat(90)[..]));
        assert_eq!(text, "\"xxxxxxxxxx...xxxxxxxxxx\"");
    }
}
