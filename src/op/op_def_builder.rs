//! Op definitions from specifications in words: `"T: {float, int32} = DT_FLOAT"`, `"values: N * T"`.
//!
//! The grammar is that of op registration; the texts of errors are the reference's. Errors are collected, so that
//! [`OpDefBuilder::finish`] names all of them.

use ff_proto::op_def::{ArgDef, AttrDef};
use ff_proto::{AttrValue, OpDef, attr_value};
use ff_tensor::{DataType, Result, bail, ensure, status};
use std::collections::HashSet;

/// The numeric types that are neither complex nor quantized.
const REAL_TYPES: [i32; 12] = [1, 2, 3, 4, 5, 6, 9, 14, 17, 19, 22, 23];
/// All numeric types.
const NUMBER_TYPES: [i32; 19] = [1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22, 23];
const QUANTIZED_TYPES: [i32; 5] = [11, 12, 13, 15, 16];

/// Collects the parts of an op definition.
#[derive(Default)]
pub struct OpDefBuilder {
    /// Flags and deprecation, set directly.
    pub def: OpDef,
    attrs: Vec<String>,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl OpDefBuilder {
    /// A definition of this name without parts.
    pub fn new(name: &str) -> OpDefBuilder {
        let def = OpDef {
            name: name.to_string(),
            ..OpDef::default()
        };
        OpDefBuilder {
            def,
            ..OpDefBuilder::default()
        }
    }

    /// Adds an attribute: `name: type`, `name: type >= minimum`, `name: type = default`.
    pub fn attr(&mut self, specification: &str) {
        self.attrs.push(specification.to_string());
    }

    /// Adds an input: `name: type`, `name: number * type`, `name: Ref(type)`.
    pub fn input(&mut self, specification: &str) {
        self.inputs.push(specification.to_string());
    }

    /// Adds an output, said as an input is.
    pub fn output(&mut self, specification: &str) {
        self.outputs.push(specification.to_string());
    }

    /// The definition. INVALID_ARGUMENT with every error that was found.
    pub fn finish(self) -> Result<OpDef> {
        let mut def = self.def;
        let mut errors = Vec::new();
        for specification in &self.attrs {
            match parse_attr(specification) {
                Ok(attr) => def.attr.push(attr),
                Err(error) => errors.push(explain(error, "Attr", specification, &def.name)),
            }
        }
        for (kind, specifications) in [("Input", &self.inputs), ("Output", &self.outputs)] {
            for specification in specifications {
                let arg = parse_arg(specification, &mut def.attr);
                match arg {
                    Ok(arg) => {
                        def.is_stateful |= arg.r#type == DataType::RESOURCE.0;
                        let args = if kind == "Input" {
                            &mut def.input_arg
                        } else {
                            &mut def.output_arg
                        };
                        args.push(arg);
                    }
                    Err(error) => errors.push(explain(error, kind, specification, &def.name)),
                }
            }
        }
        ensure!(errors.is_empty(), InvalidArgument, "{}", errors.join("\n"));
        check_names(&def)?;
        Ok(def)
    }
}

fn explain(error: ff_tensor::Status, kind: &str, specification: &str, op: &str) -> String {
    format!("{} from {kind}(\"{specification}\") for Op {op}", error.message())
}

/// Op names are written in camel case, arguments and attributes have names of their own.
fn check_names(def: &OpDef) -> Result<()> {
    let name = def.name.trim_start_matches('_');
    let valid = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'>');
    ensure!(
        valid,
        InvalidArgument,
        "Invalid name: {} (Did you use CamelCase?)",
        def.name
    );
    let mut names = HashSet::new();
    let attrs = def.attr.iter().map(|attr| &attr.name);
    let args = def.input_arg.iter().chain(&def.output_arg).map(|arg| &arg.name);
    match attrs.chain(args).find(|name| !names.insert(name.as_str())) {
        Some(twice) => bail!(InvalidArgument, "Duplicate name: {twice}"),
        None => Ok(()),
    }
}

/// What is left of a specification.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip_spaces(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// Takes `text` and the spaces after it, if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let found = self.0.strip_prefix(text);
        if let Some(rest) = found {
            self.0 = rest.trim_start();
        }
        found.is_some()
    }

    /// Takes the longest start of these bytes, and the spaces after it.
    fn take_while(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let length = self.0.bytes().take_while(|&b| fits(b)).count();
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest.trim_start();
        taken
    }

    /// Takes a name that starts with a letter that fits.
    fn name(&mut self, first: impl Fn(u8) -> bool) -> Option<&'a str> {
        if !self.0.bytes().next().is_some_and(first) {
            return None;
        }
        Some(self.take_while(|b| b.is_ascii_alphanumeric() || b == b'_'))
    }

    fn expect_end(&self) -> Result<()> {
        ensure!(
            self.0.is_empty(),
            InvalidArgument,
            "Extra '{}' unparsed at the end",
            self.0
        );
        Ok(())
    }
}

fn parse_attr(specification: &str) -> Result<AttrDef> {
    let mut rest = Rest(specification);
    rest.skip_spaces();
    let name = rest
        .name(|b| b.is_ascii_alphabetic())
        .filter(|_| rest.take(":"))
        .ok_or_else(|| status!(InvalidArgument, "Trouble parsing '<name>:'"))?;
    let mut attr = AttrDef {
        name: name.to_string(),
        ..AttrDef::default()
    };
    let is_list = rest.take("list(");
    let base = parse_type(&mut rest, &mut attr)?;
    if is_list && !rest.take(")") {
        bail!(InvalidArgument, "Expected ) to close 'list(', not: '{}'", rest.0);
    }
    attr.r#type = if is_list {
        format!("list({base})")
    } else {
        base.to_string()
    };
    if (is_list || base == "int") && rest.take(">=") {
        let digits = rest.take_while(|b| b.is_ascii_digit() || b == b'-');
        attr.minimum = digits.parse().map_err(|_| {
            status!(
                InvalidArgument,
                "Could not parse integer lower limit after '>=', found '{digits}{}' instead",
                rest.0
            )
        })?;
        attr.has_minimum = true;
    }
    if rest.take("=") {
        let text = rest.0.trim();
        attr.default_value = Some(
            parse_default(base, is_list, text)
                .ok_or_else(|| status!(InvalidArgument, "Could not parse default value '{text}'"))?,
        );
        rest.0 = "";
    }
    rest.expect_end()?;
    Ok(attr)
}

/// Takes the type of an attribute (without `list`), and puts the values that it allows into `attr`.
fn parse_type(rest: &mut Rest, attr: &mut AttrDef) -> Result<&'static str> {
    const SETS: [(&str, &[i32]); 5] = [
        ("numbertype", &NUMBER_TYPES),
        ("numerictype", &NUMBER_TYPES),
        ("realnumbertype", &REAL_TYPES),
        ("realnumerictype", &REAL_TYPES),
        ("quantizedtype", &QUANTIZED_TYPES),
    ];
    if rest.take("{") {
        return parse_choice(rest, attr, &SETS);
    }
    const PLAIN: [&str; 8] = [
        "string", "int", "float", "bool", "type", "shape", "tensor", "func",
    ];
    let before = rest.0;
    let word = rest.take_while(|b| b.is_ascii_alphanumeric() || b == b'_');
    if let Some((_, types)) = SETS.iter().find(|(name, _)| *name == word) {
        allow_types(attr, types);
        return Ok("type");
    }
    PLAIN
        .into_iter()
        .find(|plain| *plain == word)
        .ok_or_else(|| status!(InvalidArgument, "Trouble parsing type string at '{before}'"))
}

/// Takes what follows `{`: strings, or types and sets of types.
fn parse_choice(rest: &mut Rest, attr: &mut AttrDef, sets: &[(&str, &[i32])]) -> Result<&'static str> {
    if rest.0.starts_with(['\'', '"']) {
        let end = rest
            .0
            .find('}')
            .ok_or_else(|| status!(InvalidArgument, "Trouble parsing allowed string at '{}'", rest.0))?;
        let list = rest.0[..end].trim_end().trim_end_matches(',');
        attr.allowed_values = Some(
            parse_default("string", true, &format!("[{list}]"))
                .ok_or_else(|| status!(InvalidArgument, "Trouble parsing allowed string at '{}'", rest.0))?,
        );
        rest.0 = rest.0[end + 1..].trim_start();
        return Ok("string");
    }
    let mut types = Vec::new();
    loop {
        let word = rest.take_while(|b| b.is_ascii_alphanumeric() || b == b'_');
        match sets.iter().find(|(name, _)| *name == word) {
            Some((_, set)) => types.extend_from_slice(set),
            None => types.push(
                type_named(word)
                    .ok_or_else(|| status!(InvalidArgument, "Unrecognized type string '{word}'"))?
                    .0,
            ),
        }
        if rest.take("}") {
            break;
        }
        ensure!(
            rest.take(","),
            InvalidArgument,
            "Expected , or }} after type, not: '{}'",
            rest.0
        );
        if rest.take("}") {
            break;
        }
    }
    allow_types(attr, &types);
    Ok("type")
}

fn allow_types(attr: &mut AttrDef, types: &[i32]) {
    let list = attr_value::ListValue {
        r#type: types.to_vec(),
        ..Default::default()
    };
    attr.allowed_values = Some(AttrValue {
        value: Some(attr_value::Value::List(Box::new(list))),
    });
}

/// The element type with this printed name.
fn type_named(word: &str) -> Option<DataType> {
    let word = if word == "float16" { "half" } else { word };
    (1..=33)
        .map(DataType)
        .flat_map(|dtype| [dtype, dtype.to_ref()])
        .find(|dtype| dtype.to_string() == word)
}

/// The value that a text in the form of messages describes.
fn parse_default(base: &str, is_list: bool, text: &str) -> Option<AttrValue> {
    let field = match base {
        "string" => "s",
        "int" => "i",
        "float" => "f",
        "bool" => "b",
        other => other,
    };
    if !is_list {
        return ff_proto::text::parse(&format!("{field}: {text}")).ok();
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let message = if inner.trim().is_empty() {
        "list { }".to_string()
    } else {
        format!("list {{ {field}: {text} }}")
    };
    ff_proto::text::parse(&message).ok()
}

fn parse_arg(specification: &str, attrs: &mut [AttrDef]) -> Result<ArgDef> {
    let mut rest = Rest(specification);
    rest.skip_spaces();
    let name = rest
        .name(|b| b.is_ascii_lowercase())
        .filter(|_| rest.take(":"))
        .ok_or_else(|| status!(InvalidArgument, "Trouble parsing 'name:'"))?;
    let mut arg = ArgDef {
        name: name.to_string(),
        is_ref: rest.take("Ref("),
        ..ArgDef::default()
    };
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let mut word = rest.take_while(is_name);
    if rest.take("*") {
        arg.number_attr = word.to_string();
        word = rest.take_while(is_name);
    }
    set_type(&mut arg, word, attrs)?;
    if arg.is_ref && !rest.take(")") {
        bail!(
            InvalidArgument,
            "Did not find closing ')' for 'Ref(', instead found: '{}'",
            rest.0
        );
    }
    rest.expect_end()?;
    Ok(arg)
}

/// Fills in what the words of an argument's type refer to; an attribute that gives a length is at least 1.
fn set_type(arg: &mut ArgDef, word: &str, attrs: &mut [AttrDef]) -> Result<()> {
    let find = |name: &str| attrs.iter().position(|attr| attr.name == name);
    let unknown = |name: &str| status!(InvalidArgument, "Reference to unknown attr '{name}'");
    let mut length = None;
    if !arg.number_attr.is_empty() {
        let index = find(&arg.number_attr).ok_or_else(|| unknown(&arg.number_attr))?;
        ensure!(
            attrs[index].r#type == "int",
            InvalidArgument,
            "Reference to attr '{}' with type {} that isn't int",
            arg.number_attr,
            attrs[index].r#type
        );
        length = Some(index);
    }
    if let Some(dtype) = type_named(word) {
        arg.r#type = dtype.0;
    } else {
        let index = find(word).ok_or_else(|| unknown(word))?;
        match attrs[index].r#type.as_str() {
            "type" => arg.type_attr = word.to_string(),
            "list(type)" => {
                arg.type_list_attr = word.to_string();
                length = Some(index);
            }
            other => bail!(
                InvalidArgument,
                "Reference to attr '{word}' with type {other} that isn't type or list(type)"
            ),
        }
    }
    if let Some(attr) = length.map(|index| &mut attrs[index])
        && !attr.has_minimum
    {
        attr.has_minimum = true;
        attr.minimum = 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(attrs: &[&str], inputs: &[&str]) -> String {
        let mut builder = OpDefBuilder::new("Bad");
        attrs.iter().for_each(|attr| builder.attr(attr));
        inputs.iter().for_each(|input| builder.input(input));
        builder.finish().unwrap_err().message().to_string()
    }

    #[test]
    fn specifications_become_definitions() {
        let mut builder = OpDefBuilder::new("Aaa");
        for attr in [
            "T: type",
            "N: int",
            "M: list({float,int32}) >= 2",
            "e: {'x', 'yy'} = 'x'",
            "i: int >= -3 = 4",
            "l: list(int) = [1, 2]",
            "none: list(int) = []",
            "shape: shape = {dim { size: 3 }}",
            "t: {realnumbertype, string}",
        ] {
            builder.attr(attr);
        }
        builder.input("a: T");
        builder.input("b: N * T");
        builder.input("r: Ref(float)");
        builder.output("handle: resource");
        let def = builder.finish().unwrap();
        let expected = r#"name: "Aaa"
            input_arg { name: "a" type_attr: "T" }
            input_arg { name: "b" type_attr: "T" number_attr: "N" }
            input_arg { name: "r" type: DT_FLOAT is_ref: true }
            output_arg { name: "handle" type: DT_RESOURCE }
            attr { name: "T" type: "type" }
            attr { name: "N" type: "int" has_minimum: true minimum: 1 }
            attr { name: "M" type: "list(type)" has_minimum: true minimum: 2
                   allowed_values { list { type: DT_FLOAT type: DT_INT32 } } }
            attr { name: "e" type: "string" default_value { s: "x" } allowed_values { list { s: "x" s: "yy" } } }
            attr { name: "i" type: "int" default_value { i: 4 } has_minimum: true minimum: -3 }
            attr { name: "l" type: "list(int)" default_value { list { i: 1 i: 2 } } }
            attr { name: "none" type: "list(int)" default_value { list { } } }
            attr { name: "shape" type: "shape" default_value { shape { dim { size: 3 } } } }
            attr { name: "t" type: "type" allowed_values { list { type: DT_FLOAT type: DT_DOUBLE type: DT_INT32
                   type: DT_UINT8 type: DT_INT16 type: DT_INT8 type: DT_INT64 type: DT_BFLOAT16 type: DT_UINT16
                   type: DT_HALF type: DT_UINT32 type: DT_UINT64 type: DT_STRING } } }
            is_stateful: true"#;
        assert_eq!(def, ff_proto::text::parse(expected).unwrap());
    }

    #[test]
    fn errors_are_those_of_the_reference() {
        for (attr, error) in [
            ("T type", "Trouble parsing '<name>:'"),
            ("T: typ", "Trouble parsing type string at 'typ'"),
            ("T: int = x", "Could not parse default value 'x'"),
            ("s: string >= 2", "Extra '>= 2' unparsed at the end"),
            ("x: {float, blah}", "Unrecognized type string 'blah'"),
        ] {
            assert_eq!(
                error_of(&[attr], &[]),
                format!("{error} from Attr(\"{attr}\") for Op Bad")
            );
        }
        for (input, error) in [
            ("a", "Trouble parsing 'name:'"),
            ("a: U", "Reference to unknown attr 'U'"),
            (
                "x: Ref(float",
                "Did not find closing ')' for 'Ref(', instead found: ''",
            ),
            ("y: float junk", "Extra 'junk' unparsed at the end"),
        ] {
            assert_eq!(
                error_of(&[], &[input]),
                format!("{error} from Input(\"{input}\") for Op Bad")
            );
        }
        assert_eq!(error_of(&["a: int"], &["a: float"]), "Duplicate name: a");
        assert!(OpDefBuilder::new("lower").finish().is_err());
    }
}
