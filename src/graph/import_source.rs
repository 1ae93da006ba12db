//! Where an import takes its nodes from: a decoded GraphDef, or the bytes of one, read in place.
//!
//! A message of ten thousand nodes is mostly names; decoding it makes an allocation for each of them and for each
//! table of attributes, most of which is thrown away again. [`read`] leaves texts where they are, and attributes
//! encoded until their node is added. What is not a node is decoded as usual.

use ff_proto::{AttrValue, Bytes, FullTypeDef, GraphDef, Message, NodeDef};
use ff_tensor::{Result, Status, status};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use smallvec::SmallVec;
use std::borrow::Cow;

/// A node definition.
pub struct NodeSource<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its op.
    pub op: &'a str,
    /// The device that it asks for.
    pub device: &'a str,
    /// Its inputs, as they are written.
    pub input: SmallVec<[&'a str; 2]>,
    /// Its attributes, by name and without repetition.
    pub attr: SmallVec<[(&'a str, AttrSource<'a>); 1]>,
    /// Its full type; few nodes have one.
    pub full_type: Option<Box<FullTypeDef>>,
}

/// An attribute's value.
pub enum AttrSource<'a> {
    /// Decoded.
    Message(&'a AttrValue),
    /// Encoded, as a slice of a message. A value given by an entry without one is no bytes.
    Encoded {
        /// The whole message.
        message: &'a Bytes,
        /// The value in it.
        value: &'a [u8],
    },
}

impl<'a> AttrSource<'a> {
    /// The value. INVALID_ARGUMENT for bytes that are none.
    pub fn value(&self) -> Result<Cow<'a, AttrValue>> {
        match self {
            AttrSource::Message(value) => Ok(Cow::Borrowed(value)),
            AttrSource::Encoded { value: [], .. } => Ok(Cow::Owned(AttrValue::default())),
            AttrSource::Encoded { message, value } => {
                let value = AttrValue::decode(message.slice_ref(value));
                value.map(Cow::Owned).map_err(|_| invalid())
            }
        }
    }
}

impl<'a> NodeSource<'a> {
    /// An attribute's value. INVALID_ARGUMENT for bytes that are none.
    pub fn attr(&self, name: &str) -> Result<Option<Cow<'a, AttrValue>>> {
        let found = self.attr.iter().find(|(key, _)| *key == name);
        found.map(|(_, source)| source.value()).transpose()
    }
}

impl<'a> From<&'a NodeDef> for NodeSource<'a> {
    fn from(def: &'a NodeDef) -> NodeSource<'a> {
        let attr = |(name, value): (&'a String, &'a AttrValue)| (name.as_str(), AttrSource::Message(value));
        NodeSource {
            name: &def.name,
            op: &def.op,
            device: &def.device,
            input: def.input.iter().map(String::as_str).collect(),
            attr: def.attr.iter().map(attr).collect(),
            full_type: def.experimental_type.clone().map(Box::new),
        }
    }
}

#[cold]
fn invalid() -> Status {
    status!(InvalidArgument, "Invalid GraphDef")
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| invalid())
}

/// Field numbers of `GraphDef.node` and of `NodeDef`, `NodeDef.AttrEntry`.
const NODE: u32 = 1;
const NAME: u32 = 1;
const OP: u32 = 2;
const INPUT: u32 = 3;
const DEVICE: u32 = 4;
const ATTR: u32 = 5;
const FULL_TYPE: u32 = 7;
const KEY: u32 = 1;
const VALUE: u32 = 2;

/// The nodes of an encoded GraphDef, read in place, and the rest of it. INVALID_ARGUMENT, "Invalid GraphDef", for other
/// bytes; but values of attributes are not looked at.
pub fn read(message: &Bytes) -> Result<(Vec<NodeSource<'_>>, GraphDef)> {
    let mut rest = GraphDef::default();
    let mut nodes = Vec::new();
    fields(message, |number, content, record| match (number, content) {
        (NODE, Content::Bytes(bytes)) => {
            nodes.push(node(message, bytes)?);
            Ok(())
        }
        _ => rest.merge(message.slice_ref(record)).map_err(|_| invalid()),
    })?;
    Ok((nodes, rest))
}

fn node<'a>(message: &'a Bytes, bytes: &'a [u8]) -> Result<NodeSource<'a>> {
    let mut node = NodeSource {
        name: "",
        op: "",
        device: "",
        input: SmallVec::new(),
        attr: SmallVec::new(),
        full_type: None,
    };
    fields(bytes, |number, content, record| {
        match (number, content) {
            (NAME, Content::Bytes(bytes)) => node.name = text(bytes)?,
            (OP, Content::Bytes(bytes)) => node.op = text(bytes)?,
            (INPUT, Content::Bytes(bytes)) => node.input.push(text(bytes)?),
            (DEVICE, Content::Bytes(bytes)) => node.device = text(bytes)?,
            (ATTR, Content::Bytes(bytes)) => node.attr.push(entry(message, bytes)?),
            (FULL_TYPE, Content::Bytes(bytes)) => {
                let full_type = node.full_type.get_or_insert_default();
                full_type.merge(bytes).map_err(|_| invalid())?;
            }
            // Nothing that an import looks at; decoded to find out whether it is well-formed.
            _ => NodeDef::default().merge(record).map_err(|_| invalid())?,
        }
        Ok(())
    })?;
    if !node.attr.is_sorted_by(|(a, _), (b, _)| a < b) {
        sort(&mut node.attr);
    }
    Ok(node)
}

/// By name; of several entries with one name the last counts.
fn sort(entries: &mut SmallVec<[(&str, AttrSource); 1]>) {
    entries.reverse();
    entries.sort_by_key(|(name, _)| *name);
    let mut last = None;
    entries.retain(|(name, _)| last.replace(*name) != Some(*name));
}

fn entry<'a>(message: &'a Bytes, bytes: &'a [u8]) -> Result<(&'a str, AttrSource<'a>)> {
    let mut key = "";
    let mut value: &[u8] = &[];
    fields(bytes, |number, content, _| {
        match (number, content) {
            (KEY, Content::Bytes(bytes)) => key = text(bytes)?,
            (VALUE, Content::Bytes(bytes)) => value = bytes,
            (KEY | VALUE, Content::Other) => return Err(invalid()),
            _ => {}
        }
        Ok(())
    })?;
    Ok((key, AttrSource::Encoded { message, value }))
}

/// What a field holds.
enum Content<'a> {
    /// A text or a message.
    Bytes(&'a [u8]),
    /// A number, or a group.
    Other,
}

/// Calls `each` with the number, the content, and the whole record of every field of a message.
fn fields<'a>(
    message: &'a [u8],
    mut each: impl FnMut(u32, Content<'a>, &'a [u8]) -> Result<()>,
) -> Result<()> {
    let mut left = message;
    while !left.is_empty() {
        let record = left;
        let (number, wire_type) = decode_key(&mut left).map_err(|_| invalid())?;
        let content = if wire_type == WireType::LengthDelimited {
            let length = decode_varint(&mut left).map_err(|_| invalid())?;
            let length = usize::try_from(length).map_err(|_| invalid())?;
            let (content, after) = left.split_at_checked(length).ok_or_else(invalid)?;
            left = after;
            Content::Bytes(content)
        } else {
            skip_field(wire_type, number, &mut left, DecodeContext::default()).map_err(|_| invalid())?;
            Content::Other
        };
        each(number, content, &record[..record.len() - left.len()])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_proto::attr_value::Value;

    fn sample() -> GraphDef {
        let value = |value| AttrValue { value: Some(value) };
        let node = NodeDef {
            name: "n".to_string(),
            op: "Op".to_string(),
            device: "/cpu:0".to_string(),
            input: vec!["a".to_string(), "^b".to_string()],
            attr: [("T", Value::Type(1)), ("N", Value::I(3))]
                .map(|(name, member)| (name.to_string(), value(member)))
                .into(),
            ..NodeDef::default()
        };
        let mut graph = GraphDef {
            node: vec![node.clone(), node],
            ..GraphDef::default()
        };
        graph.versions.get_or_insert_default().producer = 7;
        graph
            .library
            .get_or_insert_default()
            .function
            .push(Default::default());
        graph
    }

    #[test]
    fn bytes_read_in_place_say_what_the_message_says() {
        let graph = sample();
        let bytes = Bytes::from(graph.encode_to_vec());
        let (nodes, rest) = read(&bytes).unwrap();
        assert_eq!(rest.versions, graph.versions);
        assert_eq!(rest.library, graph.library);
        assert_eq!(nodes.len(), 2);
        for (read, def) in nodes.iter().zip(&graph.node) {
            let decoded = NodeSource::from(def);
            assert_eq!((read.name, read.op, read.device), ("n", "Op", "/cpu:0"));
            assert_eq!(read.input, decoded.input);
            for name in ["N", "T", "none"] {
                assert_eq!(read.attr(name).unwrap().as_deref(), def.attr.get(name));
            }
        }
    }

    #[test]
    fn of_repeated_attributes_the_last_counts() {
        let entry = |key: u8, value: u8| [0x2a, 7, 0x0a, 1, key, 0x12, 2, 0x18, value];
        let node = [entry(b'b', 1), entry(b'a', 2), entry(b'b', 3)].concat();
        let mut graph = vec![0x0a, node.len() as u8];
        graph.extend(node);
        let decoded = GraphDef::decode(&graph[..]).unwrap();
        let bytes = Bytes::from(graph);
        let (nodes, _) = read(&bytes).unwrap();
        assert_eq!(nodes[0].attr.len(), 2);
        for name in ["a", "b"] {
            assert_eq!(
                nodes[0].attr(name).unwrap().as_deref(),
                decoded.node[0].attr.get(name)
            );
        }
    }

    #[test]
    fn damaged_bytes_are_refused_where_the_decoder_refuses_them() {
        let whole = sample().encode_to_vec();
        for place in 0..whole.len() {
            for damaged in [
                whole[..place].to_vec(),
                flipped(&whole, place, 0x80),
                flipped(&whole, place, 7),
            ] {
                let bytes = Bytes::from(damaged);
                let decoded = GraphDef::decode(bytes.clone());
                let values = read(&bytes).and_then(|(nodes, _)| {
                    let values = nodes.iter().flat_map(|node| &node.attr);
                    values.map(|(_, source)| source.value().map(|_| ())).collect()
                });
                let values: Result<Vec<()>> = values;
                assert_eq!(values.is_ok(), decoded.is_ok(), "{place}: {bytes:?}");
            }
        }
    }

    fn flipped(bytes: &[u8], place: usize, bits: u8) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        bytes[place] ^= bits;
        bytes
    }
}
