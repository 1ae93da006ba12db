//! The schemas (op defs) of all ops of the reference, as data.
//!
//! `ops.bin` is embedded in the library: an index, then the op defs sorted by name, without descriptions
//! (`tools/reference/op_schemas.py` writes it and states its form). Looking one up decodes that one, once; nothing
//! happens at start-up. This is only what an op *looks like*; what it does is in the registry, which also holds the
//! ops that are registered at run time.

use ff_proto::{Bytes, Message, OpDef, OpList};
use std::sync::{Arc, OnceLock};

static DATA: &[u8] = include_bytes!("ops.bin");

/// The number of ops.
pub const COUNT: usize = word(include_bytes!("ops.bin"), 0) as usize;

const RECORDS: usize = 4 * (COUNT + 1);

static DECODED: [OnceLock<Option<Arc<OpDef>>>; COUNT] = [const { OnceLock::new() }; COUNT];

/// The schema of the op `name`; `None` if the reference has no such op.
pub fn find(name: &str) -> Option<Arc<OpDef>> {
    decoded(index_of(name)?)
}

/// Whether the reference has an op `name`; decodes nothing.
pub fn contains(name: &str) -> bool {
    index_of(name).is_some()
}

/// The names of all ops, sorted; decodes nothing.
pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
    (0..COUNT).map(|index| std::str::from_utf8(name_at(index)).unwrap_or_default())
}

/// All schemas, sorted by name.
pub fn all() -> OpList {
    OpList {
        op: (0..COUNT).filter_map(decoded).map(|op| (*op).clone()).collect(),
    }
}

/// All schemas as an encoded `OpList`.
pub fn all_encoded() -> &'static [u8] {
    &DATA[RECORDS..]
}

/// The little-endian word `index` of `data`.
const fn word(data: &[u8], index: usize) -> u32 {
    let at = 4 * index;
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

fn index_of(name: &str) -> Option<usize> {
    let (mut low, mut high) = (0, COUNT);
    while low < high {
        let middle = low + (high - low) / 2;
        match name_at(middle).cmp(name.as_bytes()) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Equal => return Some(middle),
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

fn decoded(index: usize) -> Option<Arc<OpDef>> {
    // The data is a constant that a test decodes in full, so that `None` does not occur.
    DECODED[index]
        .get_or_init(|| {
            OpDef::decode(Bytes::from_static(op_def(index)))
                .ok()
                .map(Arc::new)
        })
        .clone()
}

/// The encoded op def `index`.
fn op_def(index: usize) -> &'static [u8] {
    let start = word(DATA, 1 + index) as usize;
    let end = if index + 1 < COUNT {
        word(DATA, 2 + index) as usize
    } else {
        DATA.len() - RECORDS
    };
    delimited(&DATA[RECORDS + start..RECORDS + end]).1
}

/// The name of op `index`: the first field of its op def.
fn name_at(index: usize) -> &'static [u8] {
    let (length, rest) = delimited(op_def(index));
    &rest[..length]
}

/// Skips the one-byte key of a length-delimited field: its length, and the bytes from its value on.
fn delimited(field: &[u8]) -> (usize, &[u8]) {
    let (mut length, mut at) = (0, 1);
    loop {
        let byte = field[at];
        length |= usize::from(byte & 0x7f) << (7 * (at - 1));
        at += 1;
        if byte & 0x80 == 0 {
            return (length, &field[at..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_proto::DataType;

    #[test]
    fn every_op_is_found_by_its_name() {
        assert_eq!(COUNT, 1799);
        assert!(names().is_sorted());
        for name in names() {
            assert_eq!(find(name).unwrap().name, name);
        }
    }

    #[test]
    fn unknown_names_are_not_found() {
        for name in ["", "MatMu", "MatMul2", "\u{10ffff}", "A\0"] {
            assert!(find(name).is_none() && !contains(name), "{name:?}");
        }
    }

    #[test]
    fn lookups_share_one_schema() {
        assert!(Arc::ptr_eq(&find("MatMul").unwrap(), &find("MatMul").unwrap()));
    }

    #[test]
    fn matmul_has_its_arguments_and_attributes() {
        let op = find("MatMul").unwrap();
        let inputs: Vec<_> = op
            .input_arg
            .iter()
            .map(|arg| (arg.name.as_str(), arg.type_attr.as_str()))
            .collect();
        assert_eq!(inputs, [("a", "T"), ("b", "T")]);
        assert_eq!(op.output_arg[0].name, "product");
        let attributes: Vec<_> = op.attr.iter().map(|attr| attr.name.as_str()).collect();
        assert_eq!(
            attributes,
            ["transpose_a", "transpose_b", "T", "grad_a", "grad_b"]
        );
        let Some(ff_proto::attr_value::Value::List(types)) = op.attr[2]
            .allowed_values
            .as_ref()
            .and_then(|allowed| allowed.value.clone())
        else {
            panic!("T has no allowed values")
        };
        assert!(types.r#type.contains(&(DataType::DtBfloat16 as i32)));
    }

    #[test]
    fn the_encoded_list_is_the_decoded_one() {
        let list = OpList::decode(all_encoded()).unwrap();
        assert_eq!(list, all());
        assert_eq!(list.encode_to_vec(), all_encoded());
    }
}
