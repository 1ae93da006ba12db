//! Every message type, with every field set, as the reference encodes it: decoding and encoding loses nothing.
//!
//! `tools/reference/proto_fixtures.py` writes the data and the list of types.

use ff_proto::{Bytes, Message, Name};
use prost_reflect::{DescriptorPool, DynamicMessage};
use std::collections::{BTreeMap, BTreeSet};

type Recode = fn(Bytes) -> Vec<u8>;

static DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
static FIXTURES: &[u8] = include_bytes!("messages.bin");

fn case<M: Message + Name + Default>() -> (String, Recode) {
    (M::full_name(), |encoded| {
        M::decode(encoded).unwrap().encode_to_vec()
    })
}

fn next_part<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (length, after) = rest.split_first_chunk::<4>().unwrap();
    let (part, after) = after.split_at(u32::from_le_bytes(*length) as usize);
    *rest = after;
    part
}

fn fixtures() -> impl Iterator<Item = (&'static str, Bytes)> {
    let mut rest = FIXTURES;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let name = std::str::from_utf8(next_part(&mut rest)).unwrap();
        Some((name, Bytes::from_static(next_part(&mut rest))))
    })
}

/// prost writes a oneof at the place of its smallest number and leaves out empty values of map entries: the bytes may
/// differ from the reference's, never what they say. The judge is a decoder by descriptor, which keeps unknown fields.
#[test]
fn every_message_says_the_same_as_in_the_reference() {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let types: BTreeMap<String, Recode> = include!("messages.in").into();
    let mut seen = BTreeSet::new();
    for (name, encoded) in fixtures() {
        let recoded = types[name](encoded.clone());
        seen.insert(name);
        let decode = |bytes| DynamicMessage::decode(pool.get_message_by_name(name).unwrap(), bytes).unwrap();
        assert_eq!(decode(Bytes::from(recoded)), decode(encoded), "{name}");
    }
    assert_eq!(seen.len(), types.len());
}
