//! Protobuf messages as trees of fields, without their schemas: to change them so that they can still be read.
//!
//! Whether a field of bytes is a message is guessed: it is one if all of it reads as fields. What does not read is kept
//! as bytes, so that a tree always encodes to what it was read from.

use crate::random::Random;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer, a bool or an enumerator.
    Varint(u64),
    /// Four bytes.
    Fixed32([u8; 4]),
    /// Eight bytes.
    Fixed64([u8; 8]),
    /// Text, bytes or packed numbers.
    Bytes(Vec<u8>),
    /// A message.
    Message(Vec<Field>),
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its number.
    pub number: u64,
    /// Its value.
    pub value: Value,
}

/// Deepest nesting that is looked into.
const MAX_DEPTH: usize = 24;

/// The fields of a message; none where the bytes are not a message.
pub fn parse(bytes: &[u8]) -> Option<Vec<Field>> {
    parse_nested(bytes, 0)
}

fn parse_nested(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = read_varint(&mut bytes)?;
        let number = tag >> 3;
        if number == 0 || number >= 1 << 29 {
            return None;
        }
        let value = match tag & 7 {
            0 => Value::Varint(read_varint(&mut bytes)?),
            1 => Value::Fixed64(take(&mut bytes, 8)?.try_into().ok()?),
            5 => Value::Fixed32(take(&mut bytes, 4)?.try_into().ok()?),
            2 => {
                let length = read_varint(&mut bytes)?;
                value_of_bytes(take(&mut bytes, usize::try_from(length).ok()?)?, depth)
            }
            _ => return None,
        };
        fields.push(Field { number, value });
    }
    Some(fields)
}

fn value_of_bytes(content: &[u8], depth: usize) -> Value {
    let is_text = content
        .iter()
        .all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    if content.is_empty() || is_text || depth >= MAX_DEPTH || content.len() > 1 << 16 && depth > 4 {
        return Value::Bytes(content.to_vec());
    }
    match parse_nested(content, depth + 1) {
        Some(fields) => Value::Message(fields),
        None => Value::Bytes(content.to_vec()),
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The encoding of a message.
pub fn encode(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        let kind = match field.value {
            Value::Varint(_) => 0,
            Value::Fixed64(_) => 1,
            Value::Bytes(_) | Value::Message(_) => 2,
            Value::Fixed32(_) => 5,
        };
        write_varint(&mut out, field.number << 3 | kind);
        match &field.value {
            Value::Varint(value) => write_varint(&mut out, *value),
            Value::Fixed32(value) => out.extend(value),
            Value::Fixed64(value) => out.extend(value),
            Value::Bytes(content) => write_bytes(&mut out, content),
            Value::Message(inner) => write_bytes(&mut out, &encode(inner)),
        }
    }
    out
}

fn write_bytes(out: &mut Vec<u8>, content: &[u8]) {
    write_varint(out, content.len() as u64);
    out.extend(content);
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many fields there are, nested ones included.
pub fn count(fields: &[Field]) -> usize {
    fields
        .iter()
        .map(|field| match &field.value {
            Value::Message(inner) => 1 + count(inner),
            _ => 1,
        })
        .sum()
}

/// The list that holds the field with this number in the order of the encoding, and its place there.
pub fn locate(fields: &mut Vec<Field>, mut index: usize) -> Option<(&mut Vec<Field>, usize)> {
    let mut at = None;
    for (place, field) in fields.iter().enumerate() {
        let size = match &field.value {
            Value::Message(inner) => 1 + count(inner),
            _ => 1,
        };
        if index < size {
            at = Some(place);
            break;
        }
        index -= size;
    }
    let place = at?;
    if index == 0 {
        return Some((fields, place));
    }
    match &mut fields[place].value {
        Value::Message(inner) => locate(inner, index - 1),
        _ => None,
    }
}

/// Every text of a message, to be put elsewhere.
fn texts(fields: &[Field], found: &mut Vec<Vec<u8>>) {
    for field in fields {
        match &field.value {
            Value::Bytes(content) if content.len() < 200 => found.push(content.clone()),
            Value::Message(inner) => texts(inner, found),
            _ => {}
        }
    }
}

/// Changes a few fields; `donor` is another message whose parts may be put in.
pub fn mutate(fields: &mut Vec<Field>, donor: &[Field], random: &mut Random) {
    let mut words = Vec::new();
    texts(if random.one_in(4) { donor } else { fields }, &mut words);
    for _ in 0..=random.below(5) {
        let total = count(fields);
        if total == 0 {
            fields.push(new_field(random));
            continue;
        }
        let Some((list, place)) = locate(fields, random.below(total)) else {
            continue;
        };
        match random.below(12) {
            0 => drop(list.remove(place)),
            1 => {
                let copy = list[place].clone();
                let at = random.below(list.len() + 1);
                list.insert(at, copy);
            }
            2 => list[place].number = 1 + random.below(20) as u64,
            3 => list.insert(place, new_field(random)),
            4 => {
                let other = random.below(list.len());
                list.swap(place, other);
            }
            5 => {
                let other = random.below(list.len());
                list[place].value = list[other].value.clone();
            }
            6 if count(donor) > 0 => {
                let mut from = donor.to_vec();
                if let Some((from, at)) = locate(&mut from, random.below(count(donor))) {
                    list.insert(place, from[at].clone());
                }
            }
            7 if random.one_in(20) => nest(&mut list[place], random),
            _ => change_value(&mut list[place].value, &words, random),
        }
    }
}

fn new_field(random: &mut Random) -> Field {
    let value = match random.below(4) {
        0 => Value::Bytes(Vec::new()),
        1 => Value::Bytes(random.bytes(3)),
        _ => Value::Varint(random.number() as u64),
    };
    let number = 1 + random.below(16) as u64;
    Field { number, value }
}

/// Puts a message into itself, many times.
fn nest(field: &mut Field, random: &mut Random) {
    for _ in 0..random.below(150) {
        if let Value::Message(inner) = &field.value
            && count(inner) < 50
        {
            field.value = Value::Message(vec![field.clone()]);
        }
    }
}

fn change_value(value: &mut Value, words: &[Vec<u8>], random: &mut Random) {
    match value {
        Value::Varint(number) => {
            *number = match random.below(3) {
                0 => number.wrapping_add(random.below(5) as u64).wrapping_sub(2),
                1 => random.below(40) as u64,
                _ => random.number() as u64,
            }
        }
        Value::Fixed32(bytes) => *bytes = (random.next() as u32).to_le_bytes(),
        Value::Fixed64(bytes) => *bytes = random.number().to_le_bytes(),
        Value::Bytes(content) => match random.below(7) {
            0 => content.clear(),
            1 => bytes(content, random),
            2 => content.extend(random.bytes(1 + random_length(content))),
            3 if random.one_in(20) => *content = content.repeat(1000),
            4 => content.truncate(random.below(content.len() + 1)),
            _ if !words.is_empty() => *content = random.pick(words).clone(),
            _ => content.push(0),
        },
        Value::Message(inner) => {
            if random.one_in(2) {
                inner.clear();
            } else {
                inner.push(new_field(random));
            }
        }
    }
}

fn random_length(content: &[u8]) -> usize {
    content.len().min(16)
}

/// Changes a few bytes, whatever they mean: overwrites, flips, cuts, repeats.
pub fn bytes(content: &mut Vec<u8>, random: &mut Random) {
    const TELLING: [u8; 6] = [0x00, 0x01, 0x7f, 0x80, 0xff, b'\n'];
    for _ in 0..=random.below(4) {
        if content.is_empty() {
            content.push(random.next() as u8);
            continue;
        }
        let at = random.below(content.len());
        match random.below(6) {
            0 => content[at] ^= 1 << random.below(8),
            1 => content[at] = *random.pick(&TELLING),
            2 => content[at] = random.next() as u8,
            3 => {
                let end = (at + 1 + random.below(16)).min(content.len());
                content.drain(at..end);
            }
            4 => {
                let end = (at + 1 + random.below(16)).min(content.len());
                let copy = content[at..end].to_vec();
                content.splice(at..at, copy);
            }
            _ => content.insert(at, random.next() as u8),
        }
    }
}

/// A message changed as fields mostly, as bytes sometimes.
pub fn mutate_message(seed: &[u8], donor: &[u8], random: &mut Random) -> Vec<u8> {
    let mut content = seed.to_vec();
    match parse(seed) {
        Some(mut fields) if !random.one_in(10) => {
            mutate(&mut fields, &parse(donor).unwrap_or_default(), random);
            content = encode(&fields);
        }
        _ => bytes(&mut content, random),
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
        let message = b"\x0a\x04\x08\x01\x10\x02\x18\xac\x02\x25abcd\x29abcdefgh\x32\x03abc";
        let fields = parse(message).unwrap();
        assert_eq!(count(&fields), 7);
        assert_eq!(encode(&fields), message);
        assert_eq!(parse(b"\x0a\x05ab"), None);
    }

    #[test]
    fn changes_depend_on_the_seed_alone() {
        let message = b"\x0a\x04\x08\x01\x10\x02\x18\xac\x02";
        let change = |seed| mutate_message(message, message, &mut Random::new(seed));
        assert_eq!(change(7), change(7));
        assert!((0..20).any(|seed| change(seed) != change(seed + 1)));
    }
}
