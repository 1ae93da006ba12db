//! `DecodeJSONExample`: examples in the JSON form of their message, as serialized messages.

use ff_op::{Kernel, KernelContext, Op};
use ff_proto::{BytesList, Example, Feature, Features, FloatList, Int64List, feature::Kind};
use ff_tensor::{Result, Status, Tensor, ensure, status};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "DecodeJSONExample",
    shape: ff_op::shapes::unchanged,
    kernels: &[Kernel::native(decode)],
    ..Op::PURE
}];

/// A JSON value; text and numbers as they were written.
enum Json {
    Text(String),
    Number(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
    Null,
    Truth,
}

/// Deepest nesting of a document.
const DEPTH: usize = 32;

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

fn broken() -> Status {
    status!(InvalidArgument, "not valid JSON")
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.take(byte) { Ok(()) } else { Err(broken()) }
    }

    fn value(&mut self, depth: usize) -> Result<Json> {
        ensure!(depth < DEPTH, InvalidArgument, "JSON is nested too deeply");
        match self.peek().ok_or_else(broken)? {
            b'"' => Ok(Json::Text(self.string()?)),
            b'{' => {
                self.at += 1;
                let mut members = Vec::new();
                if self.take(b'}') {
                    return Ok(Json::Object(members));
                }
                loop {
                    self.peek();
                    let name = self.string()?;
                    self.expect(b':')?;
                    members.push((name, self.value(depth + 1)?));
                    if !self.take(b',') {
                        break;
                    }
                }
                self.expect(b'}')?;
                Ok(Json::Object(members))
            }
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                if self.take(b']') {
                    return Ok(Json::List(items));
                }
                loop {
                    items.push(self.value(depth + 1)?);
                    if !self.take(b',') {
                        break;
                    }
                }
                self.expect(b']')?;
                Ok(Json::List(items))
            }
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<Json> {
        let start = self.at;
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        while self.text.get(self.at).is_some_and(part) {
            self.at += 1;
        }
        let word = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        match word.as_str() {
            "null" => Ok(Json::Null),
            "true" | "false" => Ok(Json::Truth),
            word if word.parse::<f64>().is_ok() => Ok(Json::Number(word.to_string())),
            _ => Err(broken()),
        }
    }

    fn string(&mut self) -> Result<String> {
        self.expect(b'"')?;
        let mut bytes = Vec::new();
        loop {
            let byte = *self.text.get(self.at).ok_or_else(broken)?;
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    let escaped = *self.text.get(self.at).ok_or_else(broken)?;
                    self.at += 1;
                    let mut encoded = [0; 4];
                    let character = match escaped {
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => self.unicode()?,
                        b'"' | b'\\' | b'/' => char::from(escaped),
                        _ => return Err(broken()),
                    };
                    bytes.extend_from_slice(character.encode_utf8(&mut encoded).as_bytes());
                }
                other => bytes.push(other),
            }
        }
        String::from_utf8(bytes).map_err(|_| broken())
    }

    fn four_digits(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).ok_or_else(broken)?;
        self.at += 4;
        let digits = std::str::from_utf8(digits).map_err(|_| broken())?;
        u32::from_str_radix(digits, 16).map_err(|_| broken())
    }

    /// A character by number; one beyond 16 bits is written as two halves.
    fn unicode(&mut self) -> Result<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or_else(broken);
        }
        ensure!(
            self.text.get(self.at..self.at + 2) == Some(b"\\u"),
            InvalidArgument,
            "not valid JSON"
        );
        self.at += 2;
        let second = self.four_digits()?.wrapping_sub(0xdc00);
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + second).ok_or_else(broken)
    }
}

/// Members of an object; none for null.
fn members(json: Json) -> Result<Vec<(String, Json)>> {
    match json {
        Json::Object(members) => Ok(members),
        Json::Null => Ok(Vec::new()),
        _ => Err(broken()),
    }
}

fn items(json: Json) -> Result<Vec<Json>> {
    match json {
        Json::List(items) => Ok(items),
        Json::Null => Ok(Vec::new()),
        _ => Err(broken()),
    }
}

/// Bytes from base64, in the plain or the file-name alphabet, with or without padding.
fn base64(text: &str) -> Result<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return Err(broken()),
        };
        bits = (bits << 6 | u32::from(value)) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Ok(bytes)
}

/// The values of a list, each by `read`.
fn list<T>(json: Json, read: impl Fn(Json) -> Result<T>) -> Result<Vec<T>> {
    let mut values = Vec::new();
    for (name, value) in members(json)? {
        ensure!(name == "value", InvalidArgument, "not valid JSON: {name}");
        for item in items(value)? {
            values.push(read(item)?);
        }
    }
    Ok(values)
}

/// A number, also as text.
fn number<T: std::str::FromStr>(json: Json) -> Result<T> {
    match json {
        Json::Number(text) | Json::Text(text) => text.parse().map_err(|_| broken()),
        _ => Err(broken()),
    }
}

fn feature(json: Json) -> Result<Feature> {
    let mut kind = None;
    for (name, value) in members(json)? {
        kind = Some(match name.as_str() {
            "bytesList" | "bytes_list" => Kind::BytesList(BytesList {
                value: list(value, |json| match json {
                    Json::Text(text) => Ok(base64(&text)?.into()),
                    _ => Err(broken()),
                })?,
            }),
            "floatList" | "float_list" => Kind::FloatList(FloatList {
                value: list(value, number)?,
            }),
            "int64List" | "int64_list" => Kind::Int64List(Int64List {
                value: list(value, number)?,
            }),
            _ => return Err(broken()),
        });
    }
    Ok(Feature { kind })
}

fn example(text: &[u8]) -> Result<Example> {
    let mut reader = Reader { text, at: 0 };
    let json = reader.value(0)?;
    ensure!(reader.peek().is_none(), InvalidArgument, "not valid JSON");
    let mut example = Example::default();
    for (name, value) in members(json)? {
        ensure!(name == "features", InvalidArgument, "not valid JSON: {name}");
        let mut features = Features::default();
        for (name, value) in members(value)? {
            ensure!(name == "feature", InvalidArgument, "not valid JSON: {name}");
            for (key, value) in members(value)? {
                features.feature.insert(key, feature(value)?);
            }
        }
        example.features = Some(features);
    }
    Ok(example)
}

/// Adds a field of bytes.
fn put(message: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    message.push(field << 3 | 2);
    put_number(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

/// Adds a number of 7 bits a byte.
fn put_number(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

/// The message with every number in a field of its own, as the reference writes what it reads from JSON.
fn encoded(example: &Example) -> Vec<u8> {
    let mut entries = Vec::new();
    for (key, feature) in example.features.iter().flat_map(|features| &features.feature) {
        let mut list = Vec::new();
        let mut kind = Vec::new();
        match &feature.kind {
            None => {}
            Some(Kind::BytesList(values)) => {
                values.value.iter().for_each(|value| put(&mut list, 1, value));
                put(&mut kind, 1, &list);
            }
            Some(Kind::FloatList(values)) => {
                for value in &values.value {
                    list.push(1 << 3 | 5);
                    list.extend_from_slice(&value.to_le_bytes());
                }
                put(&mut kind, 2, &list);
            }
            Some(Kind::Int64List(values)) => {
                for &value in &values.value {
                    list.push(1 << 3);
                    put_number(&mut list, value as u64);
                }
                put(&mut kind, 3, &list);
            }
        }
        let mut entry = Vec::new();
        put(&mut entry, 1, key.as_bytes());
        put(&mut entry, 2, &kind);
        put(&mut entries, 1, &entry);
    }
    let mut message = Vec::new();
    if example.features.is_some() {
        put(&mut message, 1, &entries);
    }
    message
}

fn decode(context: &mut KernelContext) -> Result<()> {
    let input = context.input(0)?;
    let mut outputs = Vec::new();
    for (index, text) in input.strings()?.iter().enumerate() {
        let example = example(text.as_bytes()).map_err(|error| {
            status!(
                InvalidArgument,
                "Error while parsing JSON: {} ({index})",
                error.message()
            )
        })?;
        outputs.push(encoded(&example).as_slice().into());
    }
    let output = Tensor::from_strings(input.shape().clone(), outputs)?;
    context.set_output(0, output)
}

crate::op_cases! {
    each_kind: family(&["DecodeJSONExample"], &[DataType::STRING], |op, _| {
        Case::op(op).input(strings(&[3], &[
            "{\"features\": {\"feature\": {\"a\": {\"int64List\": {\"value\": [1, \"2\", -3]}}}}}",
            "{\"features\": {\"feature\": {\"b\": {\"floatList\": {\"value\": [1.5, 2e3]}}}}}",
            " { \"features\" : { \"feature\" : { \"\\u00e9\\n\" : { \"bytesList\" : { \"value\" : [ \"YWJj\", \"\" ] } } } } } ",
        ]))
    });
    empty: Case::op("DecodeJSONExample").input(strings(&[], &["{}"]));
    broken: Case::op("DecodeJSONExample").input(strings(&[], &["{\"features\": "])).fails(Code::InvalidArgument);
    unknown: Case::op("DecodeJSONExample").input(strings(&[], &["{\"other\": {}}"])).fails(Code::InvalidArgument);
}
