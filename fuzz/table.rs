//! Tables (the files of checkpoints), read and written without checks: to change them under checksums that hold.

/// Bytes in the footer, magic number included.
const FOOTER: usize = 48;

fn take_varint(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0usize;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= usize::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Where the blocks of a table lie, without their trailers: the data blocks, then the index.
pub fn blocks(table: &[u8]) -> Option<Vec<(usize, usize)>> {
    let mut footer = &table[table.len().checked_sub(FOOTER)?..];
    take_varint(&mut footer)?;
    take_varint(&mut footer)?;
    let index = (take_varint(&mut footer)?, take_varint(&mut footer)?);
    let mut found = Vec::new();
    for (_, value) in entries(table.get(index.0..index.0.checked_add(index.1)?)?)? {
        let mut handle = &value[..];
        found.push((take_varint(&mut handle)?, take_varint(&mut handle)?));
    }
    found.push(index);
    Some(found)
}

/// The keys and values of a block that is not compressed.
pub fn entries(block: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let (rest, count) = block.split_at_checked(block.len().checked_sub(4)?)?;
    let restarts = u32::from_le_bytes(count.try_into().ok()?) as usize;
    let mut rest = rest.get(..rest.len().checked_sub(restarts.checked_mul(4)?)?)?;
    let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    while !rest.is_empty() {
        let shared = take_varint(&mut rest)?;
        let unshared = take_varint(&mut rest)?;
        let length = take_varint(&mut rest)?;
        let mut key = match found.last() {
            Some((key, _)) => key.get(..shared)?.to_vec(),
            None => Vec::new(),
        };
        let (end, after) = rest.split_at_checked(unshared)?;
        let (value, after) = after.split_at_checked(length)?;
        key.extend(end);
        found.push((key, value.to_vec()));
        rest = after;
    }
    Some(found)
}

/// Puts checksums behind blocks whose content has changed.
pub fn mend_checksums(table: &mut [u8], blocks: &[(usize, usize)]) {
    for &(offset, size) in blocks {
        let end = offset + size;
        if end + 5 <= table.len() {
            let sum = masked(&table[offset..end + 1]);
            table[end + 1..end + 5].copy_from_slice(&sum);
        }
    }
}

fn masked(content: &[u8]) -> [u8; 4] {
    let sum = crc32c::crc32c(content);
    sum.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn write_block(table: &mut Vec<u8>, entries: &[(Vec<u8>, Vec<u8>)]) -> (usize, usize) {
    let offset = table.len();
    for (key, value) in entries {
        put_varint(table, 0);
        put_varint(table, key.len());
        put_varint(table, value.len());
        table.extend(key);
        table.extend(value);
    }
    table.extend([0, 0, 0, 0, 1, 0, 0, 0]);
    let size = table.len() - offset;
    table.push(0);
    let sum = masked(&table[offset..]);
    table.extend(sum);
    (offset, size)
}

/// A table of these entries, in one block, in this order.
pub fn write(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut table = Vec::new();
    let data = write_block(&mut table, entries);
    let mut handle = Vec::new();
    put_varint(&mut handle, data.0);
    put_varint(&mut handle, data.1);
    let last = entries.last().map(|(key, _)| key.clone()).unwrap_or_default();
    let index = write_block(&mut table, &[(last, handle.clone())]);
    let mut footer = handle;
    put_varint(&mut footer, index.0);
    put_varint(&mut footer, index.1);
    footer.resize(FOOTER - 8, 0);
    footer.extend(0xdb47_7524_8b80_fb57u64.to_le_bytes());
    table.extend(footer);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let wanted = vec![(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), vec![7; 200])];
        let mut table = write(&wanted);
        let blocks = blocks(&table).unwrap();
        assert_eq!(blocks.len(), 2);
        let (offset, size) = blocks[0];
        assert_eq!(entries(&table[offset..offset + size]).unwrap(), wanted);
        let before = table.clone();
        mend_checksums(&mut table, &blocks);
        assert_eq!(table, before);
    }
}
