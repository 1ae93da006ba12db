//! Checks of a node against its schema: attributes of the right kind, allowed, complete; the op not deprecated.
//!
//! Shapes are not looked at, and neither are the nodes that inputs come from.

use crate::summary;
use ff_op::{AttrValue, Attrs, NodeInfo};
use ff_proto::OpDef;
use ff_proto::attr_value::{ListValue, Value};
use ff_proto::op_def::AttrDef;
use ff_tensor::{DataType, Result, Status, bail, ensure, status};

/// Adds the schema's defaults for attributes that are not set.
pub fn add_defaults(def: &OpDef, attrs: &mut Attrs) -> Result<()> {
    for attr in &def.attr {
        if let Some(default) = &attr.default_value
            && attrs.get(&attr.name).is_none()
        {
            attrs.set(attr.name.as_str(), AttrValue::from_proto(default)?);
        }
    }
    Ok(())
}

/// Checks all attributes of a node. INVALID_ARGUMENT, naming node and op, when one is missing, of the wrong kind or
/// not allowed. Attributes that the schema does not have are left alone.
pub fn attrs(def: &OpDef, name: &str, attrs: &Attrs) -> Result<()> {
    let mut missing = Vec::new();
    for attr in &def.attr {
        match attrs.get(&attr.name) {
            None => missing.push(attr.name.as_str()),
            Some(AttrValue::Placeholder(_)) => {}
            Some(value) => value_of(value, attr).map_err(|error| explain(error, def, name))?,
        }
    }
    if !missing.is_empty() {
        missing.sort_unstable();
        bail!(
            InvalidArgument,
            "NodeDef missing attr{} '{}' from {}; NodeDef: {{{{node {name}}}}}",
            if missing.len() == 1 { "" } else { "s" },
            missing.join("', '"),
            summary::op(def)
        );
    }
    Ok(())
}

#[cold]
fn explain(error: Status, def: &OpDef, name: &str) -> Status {
    error.suffixed(&format!(
        "\n\t; NodeDef: {{{{node {name}}}}}; {}",
        summary::op(def)
    ))
}

/// Checks one attribute against its definition.
fn value_of(value: &AttrValue, def: &AttrDef) -> Result<()> {
    kind(value, &def.r#type).map_err(|error| error.suffixed(&format!("\n\t for attr '{}'", def.name)))?;
    if def.has_minimum {
        minimum(value, def)?;
    }
    match def
        .allowed_values
        .as_ref()
        .and_then(|allowed| allowed.value.as_ref())
    {
        Some(Value::List(list)) => allowed(value, def, list),
        _ => Ok(()),
    }
}

fn kind(value: &AttrValue, expected: &str) -> Result<()> {
    let is_list = expected.starts_with("list(");
    if value.is_empty_list() {
        ensure!(
            is_list,
            InvalidArgument,
            "AttrValue missing value with expected type '{expected}'"
        );
        return Ok(());
    }
    ensure!(
        !matches!(value, AttrValue::Unset),
        InvalidArgument,
        "AttrValue missing value with expected type '{expected}'"
    );
    ensure!(
        value.kind() == expected,
        InvalidArgument,
        "AttrValue had value with type '{}' when '{expected}' expected",
        value.kind()
    );
    match value {
        AttrValue::Type(dtype) => valid_type(*dtype, "has invalid DataType"),
        AttrValue::Types(types) => types
            .iter()
            .try_for_each(|dtype| valid_type(*dtype, "contains invalid DataType")),
        _ => Ok(()),
    }
}

fn valid_type(dtype: DataType, invalid: &str) -> Result<()> {
    if dtype == DataType::INVALID {
        bail!(InvalidArgument, "AttrValue {invalid}");
    }
    ensure!(
        dtype.is_known(),
        InvalidArgument,
        "AttrValue has invalid DataType enum: {}",
        dtype.0
    );
    ensure!(
        !dtype.is_ref(),
        InvalidArgument,
        "AttrValue must not have reference type value of {dtype}"
    );
    Ok(())
}

fn minimum(value: &AttrValue, def: &AttrDef) -> Result<()> {
    let (name, minimum) = (&def.name, def.minimum);
    if let AttrValue::Int(int) = value {
        ensure!(
            *int >= minimum,
            InvalidArgument,
            "Value for attr '{name}' of {int} must be at least minimum {minimum}"
        );
        return Ok(());
    }
    let length = list_length(value) as i64;
    ensure!(
        length >= minimum,
        InvalidArgument,
        "Length for attr '{name}' of {length} must be at least minimum {minimum}"
    );
    Ok(())
}

fn list_length(value: &AttrValue) -> usize {
    match value {
        AttrValue::Strings(list) => list.len(),
        AttrValue::Ints(list) => list.len(),
        AttrValue::Floats(list) => list.len(),
        AttrValue::Bools(list) => list.len(),
        AttrValue::Types(list) => list.len(),
        AttrValue::Shapes(list) => list.len(),
        AttrValue::Tensors(list) => list.len(),
        AttrValue::Funcs(list) => list.len(),
        _ => 0,
    }
}

fn allowed(value: &AttrValue, def: &AttrDef, allowed: &ListValue) -> Result<()> {
    let one_type = |dtype: &DataType| {
        if allowed.r#type.contains(&dtype.0) {
            return Ok(());
        }
        let names = allowed.r#type.iter().map(|&number| DataType(number).to_string());
        Err(not_allowed(&def.name, &dtype.to_string(), names))
    };
    let one_string = |bytes: &bytes::Bytes| {
        if allowed.s.contains(bytes) {
            return Ok(());
        }
        let quoted = |bytes: &[u8]| format!("\"{}\"", String::from_utf8_lossy(bytes));
        Err(not_allowed(
            &def.name,
            &quoted(bytes),
            allowed.s.iter().map(|bytes| quoted(bytes)),
        ))
    };
    match value {
        AttrValue::Type(dtype) => one_type(dtype),
        AttrValue::Types(types) => types.iter().try_for_each(one_type),
        AttrValue::String(bytes) => one_string(bytes),
        AttrValue::Strings(strings) => strings.iter().try_for_each(one_string),
        _ => Ok(()),
    }
}

#[cold]
fn not_allowed(name: &str, value: &str, allowed: impl Iterator<Item = String>) -> Status {
    status!(
        InvalidArgument,
        "Value for attr '{name}' of {value} is not in the list of allowed values: {}",
        allowed.collect::<Vec<_>>().join(", ")
    )
}

/// Checks that a graph of this version may use the op. UNIMPLEMENTED when it was removed before.
pub fn not_deprecated(def: &OpDef, graph_version: i32) -> Result<()> {
    match &def.deprecation {
        Some(deprecation) if graph_version >= deprecation.version => Err(status!(
            Unimplemented,
            "Op {} is not available in GraphDef version {graph_version}. It has been removed in version {}. {}.",
            def.name,
            deprecation.version,
            deprecation.explanation
        )),
        _ => Ok(()),
    }
}

/// Checks the number of inputs given to a node.
pub fn input_count(info: &NodeInfo, given: usize) -> Result<()> {
    if given == info.input_types.len() {
        return Ok(());
    }
    let types: Vec<String> = info.input_types.iter().map(DataType::to_string).collect();
    bail!(
        InvalidArgument,
        "NodeDef expected inputs '{}' do not match {given} inputs specified; {}; NodeDef: {}",
        types.join(", "),
        summary::op(&info.op.def),
        info.describe()
    )
}

/// Whether an output of type `actual` may be read where `expected` is asked for: references can be read as values.
pub fn types_compatible(expected: DataType, actual: DataType) -> bool {
    expected == actual || (!expected.is_ref() && expected == actual.base())
}
