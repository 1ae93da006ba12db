//! The text form of messages (`saved_model.pbtxt`, text GraphDefs).
//!
//! [`parse`] accepts the text-format language; unknown field and enum names are errors, as are messages nested deeper
//! than 100. [`print`] writes the multi-line form of the reference: fields in the order of their numbers, one line per
//! element of a repeated field, maps as key/value entries, strings in octal escapes. The descriptors behind both are
//! embedded and decoded at the first use. Large contents are copied: this is not a path for big weights.

use crate::Bytes;
use prost::{Message, Name};
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MapKey, MessageDescriptor, Value};
use std::sync::LazyLock;

/// Why a text could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError(String);

impl std::fmt::Display for TextError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TextError {}

/// Reads a message from its text form.
pub fn parse<M: Message + Name + Default>(text: &str) -> Result<M, TextError> {
    check_depth(text)?;
    let message = DynamicMessage::parse_text_format(descriptor::<M>()?, text).map_err(error)?;
    M::decode(Bytes::from(message.encode_to_vec())).map_err(error)
}

/// Writes the text form of a message, a newline after each line.
pub fn print<M: Message + Name>(message: &M) -> Result<String, TextError> {
    let encoded = Bytes::from(message.encode_to_vec());
    let message = DynamicMessage::decode(descriptor::<M>()?, encoded).map_err(error)?;
    let mut printer = Printer {
        out: String::new(),
        indent: 0,
    };
    printer.message(&message);
    Ok(printer.out)
}

const MAX_DEPTH: usize = 100;

static POOL: LazyLock<Result<DescriptorPool, TextError>> = LazyLock::new(|| {
    DescriptorPool::decode(&include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"))[..]).map_err(error)
});

fn error(cause: impl std::fmt::Display) -> TextError {
    TextError(cause.to_string())
}

fn descriptor<M: Name>() -> Result<MessageDescriptor, TextError> {
    let name = M::full_name();
    let pool = POOL.as_ref().map_err(Clone::clone)?;
    pool.get_message_by_name(&name)
        .ok_or_else(|| TextError(format!("no descriptor of {name}")))
}

/// The parser recurses over nested messages; this bounds it before it starts.
fn check_depth(text: &str) -> Result<(), TextError> {
    let mut depth = 0usize;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'#' => drop(bytes.by_ref().find(|&byte| byte == b'\n')),
            b'"' | b'\'' => skip_string(&mut bytes, byte),
            b'{' | b'<' | b'[' => depth += 1,
            b'}' | b'>' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > 2 * MAX_DEPTH {
            return Err(TextError("message is nested too deeply".into()));
        }
    }
    Ok(())
}

fn skip_string(bytes: &mut std::str::Bytes<'_>, quote: u8) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            // The language has no strings over several lines: the parser reports this one.
            b'\n' => return,
            _ if byte == quote => return,
            _ => {}
        }
    }
}

struct Printer {
    out: String,
    indent: usize,
}

impl Printer {
    // Recursion is bounded: the message has been decoded, which allows 100 levels.
    fn message(&mut self, message: &DynamicMessage) {
        let mut fields: Vec<_> = message.fields().collect();
        fields.sort_by_key(|(field, _)| field.number());
        for (field, value) in fields {
            match value {
                Value::List(items) => {
                    items
                        .iter()
                        .for_each(|item| self.field(field.name(), item, &field.kind()));
                }
                Value::Map(entries) => {
                    let mut entries: Vec<_> = entries.iter().collect();
                    entries.sort_by(|a, b| a.0.cmp(b.0));
                    for (key, value) in entries {
                        self.entry(field.name(), key, value, &field.kind());
                    }
                }
                value => self.field(field.name(), value, &field.kind()),
            }
        }
    }

    fn entry(&mut self, name: &str, key: &MapKey, value: &Value, kind: &Kind) {
        let Kind::Message(entry) = kind else { return };
        self.open(name);
        let key_kind = entry.map_entry_key_field().kind();
        self.field("key", &Value::from(key.clone()), &key_kind);
        self.field("value", value, &entry.map_entry_value_field().kind());
        self.close();
    }

    fn field(&mut self, name: &str, value: &Value, kind: &Kind) {
        if let Value::Message(message) = value {
            self.open(name);
            self.message(message);
            self.close();
        } else {
            self.start(name);
            self.out.push_str(": ");
            self.scalar(value, kind);
            self.out.push('\n');
        }
    }

    fn open(&mut self, name: &str) {
        self.start(name);
        self.out.push_str(" {\n");
        self.indent += 2;
    }

    fn close(&mut self) {
        self.indent -= 2;
        self.start("}\n");
    }

    fn start(&mut self, text: &str) {
        self.out.extend(std::iter::repeat_n(' ', self.indent));
        self.out.push_str(text);
    }

    fn scalar(&mut self, value: &Value, kind: &Kind) {
        match (value, kind) {
            (Value::EnumNumber(number), Kind::Enum(descriptor)) => match descriptor.get_value(*number) {
                Some(value) => self.out.push_str(value.name()),
                None => self.out.push_str(&number.to_string()),
            },
            (Value::F32(value), _) => self.out.push_str(&float(f64::from(*value), [6, 9], |text| {
                text.parse::<f32>().is_ok_and(|parsed| parsed == *value)
            })),
            (Value::F64(value), _) => self.out.push_str(&float(*value, [15, 17], |text| {
                text.parse::<f64>().is_ok_and(|parsed| parsed == *value)
            })),
            (Value::String(text), _) => self.quoted(text.as_bytes()),
            (Value::Bytes(bytes), _) => self.quoted(bytes),
            (Value::Bool(value), _) => self.out.push_str(&value.to_string()),
            (Value::I32(value), _) => self.out.push_str(&value.to_string()),
            (Value::I64(value), _) => self.out.push_str(&value.to_string()),
            (Value::U32(value), _) => self.out.push_str(&value.to_string()),
            (Value::U64(value), _) => self.out.push_str(&value.to_string()),
            // An enum value always comes with its kind; composite values do not reach this point.
            (Value::EnumNumber(_) | Value::Message(_) | Value::List(_) | Value::Map(_), _) => {}
        }
    }

    fn quoted(&mut self, bytes: &[u8]) {
        self.out.push('"');
        for &byte in bytes {
            match byte {
                b'\n' => self.out.push_str("\\n"),
                b'\r' => self.out.push_str("\\r"),
                b'\t' => self.out.push_str("\\t"),
                b'"' | b'\'' | b'\\' => self.out.extend(['\\', byte as char]),
                b' '..=b'~' => self.out.push(byte as char),
                _ => self.out.push_str(&format!("\\{byte:03o}")),
            }
        }
        self.out.push('"');
    }
}

/// A number in the `%g` form: with the first count of digits that reads back as the same value.
fn float(value: f64, digits: [usize; 2], exact: impl Fn(&str) -> bool) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let short = general(value, digits[0]);
    if exact(&short) {
        short
    } else {
        general(value, digits[1])
    }
}

/// C's `%.{digits}g`.
fn general(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    } else {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        trim(&format!("{value:.decimals$}"))
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
