//! Keys that sort as what they encode: strings, and whole numbers of any sign in few bytes.

use crate::TensorSlice;

/// Appends a string: NUL and 0xff are escaped, and NUL 1 ends it.
fn write_string(key: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            0 => key.extend_from_slice(&[0, 0xff]),
            0xff => key.extend_from_slice(&[0xff, 0]),
            other => key.push(other),
        }
    }
    key.extend_from_slice(&[0, 1]);
}

/// Appends a number of at least zero: the count of its bytes, then the bytes, the largest first.
fn write_unsigned(key: &mut Vec<u8>, value: u64) {
    let bytes = value.to_be_bytes();
    let skipped = (value.leading_zeros() / 8) as usize;
    key.push((8 - skipped) as u8);
    key.extend_from_slice(&bytes[skipped..]);
}

/// Appends a number of any sign. As in UTF-8, leading ones tell the count of bytes, 1 to 10; a negative number has all
/// of that inverted.
fn write_signed(key: &mut Vec<u8>, value: i64) {
    let magnitude = if value < 0 { !value } else { value };
    let bits = (64 - magnitude.leading_zeros()) as usize;
    let length = bits / 7 + 1;
    let mut bytes = [if value < 0 { 0xff } else { 0 }; 10];
    bytes[2..].copy_from_slice(&value.to_be_bytes());
    let encoded = &mut bytes[10 - length..];
    // `length` ones from the highest bit on; they can reach into the second byte.
    let header = !(u16::MAX >> length);
    encoded[0] ^= (header >> 8) as u8;
    if length > 1 {
        encoded[1] ^= header as u8;
    }
    key.extend_from_slice(encoded);
}

/// The key under which a slice of a tensor is stored, in both checkpoint formats.
pub fn tensor_slice_key(name: &[u8], slice: &TensorSlice) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 8);
    write_unsigned(&mut key, 0);
    write_string(&mut key, name);
    write_unsigned(&mut key, slice.rank() as u64);
    for extent in slice.extents() {
        write_signed(&mut key, extent.start);
        write_signed(&mut key, extent.length.unwrap_or(-1));
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(value: i64) -> Vec<u8> {
        let mut key = Vec::new();
        write_signed(&mut key, value);
        key
    }

    #[test]
    fn keys_sort_as_numbers() {
        assert_eq!(signed(0), [0x80]);
        assert_eq!(signed(-1), [0x7f]);
        assert_eq!(signed(63), [0xbf]);
        assert_eq!(signed(64), [0xc0, 0x40]);
        assert_eq!(signed(100), [0xc0, 0x64]);
        assert_eq!(signed(-65), [0x3f, 0xbf]);
        let mut values = vec![0, i64::MIN, i64::MAX];
        for shift in 0..63 {
            for near in [-1, 0, 1] {
                let value: i64 = (1 << shift) + near;
                values.extend([value, -value]);
            }
        }
        values.sort();
        values.dedup();
        for pair in values.windows(2) {
            assert!(signed(pair[0]) < signed(pair[1]), "{pair:?}");
        }
        assert_eq!(signed(i64::MAX).len(), 10);
    }

    #[test]
    fn slice_keys() {
        let slice = TensorSlice::parse("0,2:-").unwrap();
        assert_eq!(
            tensor_slice_key(b"rows", &slice),
            b"\0rows\0\x01\x01\x02\x80\x82\x80\x7f"
        );
        assert_eq!(
            tensor_slice_key(b"a\0\xff", &TensorSlice::full(0)),
            b"\0a\0\xff\xff\0\0\x01\0"
        );
    }
}
