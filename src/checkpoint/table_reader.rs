//! Reading tables. Any bytes give entries or DATA_LOSS, in memory bounded by the size of the file.

use crate::crc;
use crate::table_format::{FOOTER, Handle, MAGIC, SNAPPY, TRAILER, UNCOMPRESSED, take_last_u32, take_varint};
use bytes::{Buf, Bytes};
use ff_tensor::{Result, Status, bail, ensure, status};
use std::sync::OnceLock;

/// An entry of a table. The value of an uncompressed block is a view of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Bytes,
}

/// A table. Blocks are checked and decoded when first needed.
pub struct Table {
    file: Bytes,
    blocks: Vec<Block>,
}

struct Block {
    /// Not below any key of the block.
    last_key: Vec<u8>,
    handle: Handle,
    entries: OnceLock<Vec<Entry>>,
}

impl Table {
    /// The table of a file's bytes. DATA_LOSS when they are not one.
    pub fn open(file: Bytes) -> Result<Table> {
        ensure!(
            file.len() >= FOOTER,
            DataLoss,
            "file is too short to be an sstable"
        );
        let mut footer = &file[file.len() - FOOTER..];
        let magic = (&footer[FOOTER - 8..]).get_u64_le();
        ensure!(magic == MAGIC, DataLoss, "not an sstable (bad magic number)");
        let handles = Handle::take(&mut footer).zip(Handle::take(&mut footer));
        let Some((_, index)) = handles else {
            bail!(DataLoss, "bad block handle");
        };
        let mut blocks = Vec::new();
        for entry in decode_block(&read_block(&file, index)?)? {
            let handle = Handle::take(&mut &entry.value[..]);
            blocks.push(Block {
                last_key: entry.key,
                handle: handle.ok_or_else(|| status!(DataLoss, "bad block handle"))?,
                entries: OnceLock::new(),
            });
        }
        Ok(Table { file, blocks })
    }

    fn entries_of<'a>(&'a self, block: &'a Block) -> Result<&'a [Entry]> {
        if let Some(entries) = block.entries.get() {
            return Ok(entries);
        }
        let entries = decode_block(&read_block(&self.file, block.handle)?)?;
        Ok(block.entries.get_or_init(|| entries))
    }

    /// The value of a key, if there is one. DATA_LOSS for a damaged block.
    pub fn get(&self, key: &[u8]) -> Result<Option<&Bytes>> {
        let at = self
            .blocks
            .partition_point(|block| block.last_key.as_slice() < key);
        let Some(block) = self.blocks.get(at) else {
            return Ok(None);
        };
        let entries = self.entries_of(block)?;
        let found = entries.binary_search_by(|entry| entry.key.as_slice().cmp(key));
        Ok(found.ok().map(|at| &entries[at].value))
    }

    /// All entries in the order of the file, block by block; one error for each damaged block.
    pub fn blocks(&self) -> impl Iterator<Item = Result<&[Entry]>> {
        self.blocks.iter().map(|block| self.entries_of(block))
    }
}

/// The content of a block, decompressed.
fn read_block(file: &Bytes, handle: Handle) -> Result<Bytes> {
    let range = usize::try_from(handle.offset)
        .ok()
        .zip(usize::try_from(handle.size).ok())
        .and_then(|(offset, size)| Some((offset, offset.checked_add(size)?)))
        .filter(|(_, end)| end.checked_add(TRAILER).is_some_and(|end| end <= file.len()));
    let Some((start, end)) = range else {
        bail!(DataLoss, "truncated block read");
    };
    let mut trailer = &file[end..end + TRAILER];
    let compression = trailer.get_u8();
    let stored = crc::unmask(trailer.get_u32_le());
    ensure!(
        stored == crc::crc32c(&file[start..end + 1]),
        DataLoss,
        "block checksum mismatch"
    );
    match compression {
        UNCOMPRESSED => Ok(file.slice(start..end)),
        SNAPPY => decompress(&file[start..end]),
        _ => bail!(DataLoss, "bad block type"),
    }
}

fn decompress(compressed: &[u8]) -> Result<Bytes> {
    let bad = |_| status!(DataLoss, "corrupted compressed block contents");
    let length = snap::raw::decompress_len(compressed).map_err(bad)?;
    // The densest code makes 64 bytes of 3: a larger claim is a lie, and would cost its memory.
    ensure!(
        length / 32 <= compressed.len(),
        DataLoss,
        "corrupted compressed block contents"
    );
    let mut content = vec![0; length];
    let written = snap::raw::Decoder::new()
        .decompress(compressed, &mut content)
        .map_err(bad)?;
    content.truncate(written);
    Ok(content.into())
}

/// The entries of a block.
fn decode_block(block: &Bytes) -> Result<Vec<Entry>> {
    fn bad() -> Status {
        status!(DataLoss, "bad entry in block")
    }
    let mut rest = &block[..];
    let restarts = take_last_u32(&mut rest).ok_or_else(bad)? as usize;
    let end = restarts
        .checked_mul(4)
        .and_then(|size| rest.len().checked_sub(size));
    let mut rest = &rest[..end.ok_or_else(bad)?];
    // Keys share their starts, so that a small block could claim much memory; a real one repeats a key 16 times.
    let mut budget = block.len().saturating_mul(64);
    let mut entries: Vec<Entry> = Vec::new();
    while !rest.is_empty() {
        let mut number = || take_varint(&mut rest).and_then(|number| usize::try_from(number).ok());
        let (Some(shared), Some(unshared), Some(length)) = (number(), number(), number()) else {
            return Err(bad());
        };
        let previous = entries.last().map_or(&[][..], |entry| &entry.key);
        let start = previous.get(..shared).ok_or_else(bad)?;
        let (end, after_key) = rest.split_at_checked(unshared).ok_or_else(bad)?;
        let (value, after) = after_key.split_at_checked(length).ok_or_else(bad)?;
        budget = budget.checked_sub(shared + unshared).ok_or_else(bad)?;
        entries.push(Entry {
            key: [start, end].concat(),
            value: block.slice_ref(value),
        });
        rest = after;
    }
    Ok(entries)
}

/// The number of entries of a block, for tests of damaged blocks whose checksum would hide the damage.
#[cfg(test)]
pub fn count_entries(block: &[u8]) -> Result<usize> {
    decode_block(&Bytes::copy_from_slice(block)).map(|entries| entries.len())
}
