//! What reader and writer of tables share.
//!
//! A table is a file of sorted keys with values, in blocks:
//!
//! - a *data block* holds entries (`shared`, `unshared`, `value length` as varints, then the unshared end of the key and
//!   the value), then the offsets of its restarts (entries whose key is whole) and their count, 32 bits each;
//! - after each block one byte tells its compression and four the masked crc32c of both;
//! - the *index block* has an entry per data block: a key not below any in it, and its handle (offset and size);
//! - the *footer*, the last 48 bytes, holds the handles of an unused block and of the index, and a magic number.

use bytes::Buf;

/// Bytes in the footer.
pub const FOOTER: usize = 48;
/// The last eight bytes of each table.
pub const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// Bytes after each block: compression and checksum.
pub const TRAILER: usize = 5;
/// The block is stored as it is.
pub const UNCOMPRESSED: u8 = 0;
/// The block is compressed by Snappy.
pub const SNAPPY: u8 = 1;

/// Where a block lies in its file, without its trailer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handle {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: u64,
}

/// Takes a varint off the front of `bytes`.
pub fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(bytes).ok()
}

/// Appends a varint.
pub fn put_varint(bytes: &mut Vec<u8>, value: u64) {
    prost::encoding::encode_varint(value, bytes);
}

impl Handle {
    /// Takes a handle off the front of `bytes`.
    pub fn take(bytes: &mut &[u8]) -> Option<Handle> {
        Some(Handle {
            offset: take_varint(bytes)?,
            size: take_varint(bytes)?,
        })
    }

    /// Appends the handle.
    pub fn put(self, bytes: &mut Vec<u8>) {
        put_varint(bytes, self.offset);
        put_varint(bytes, self.size);
    }
}

/// The 32-bit number at the end of `bytes`, taken off.
pub fn take_last_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (rest, mut last) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    *bytes = rest;
    Some(last.get_u32_le())
}
