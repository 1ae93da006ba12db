//! Writing tables, byte for byte as the reference does (without compression).

use crate::crc;
use crate::table_format::{FOOTER, Handle, MAGIC, UNCOMPRESSED, put_varint};
use ff_platform::WritableFile;
use ff_tensor::{Result, ensure};

/// A data block is written when it is this large.
const BLOCK_SIZE: usize = 262_144;
/// Every how many entries a data block has a whole key.
const RESTART_INTERVAL: usize = 16;

struct BlockBuilder {
    content: Vec<u8>,
    restarts: Vec<u32>,
    interval: usize,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    fn new(interval: usize) -> BlockBuilder {
        BlockBuilder {
            content: Vec::new(),
            restarts: vec![0],
            interval,
            since_restart: 0,
            last_key: Vec::new(),
        }
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since_restart < self.interval {
            shared = common_start(&self.last_key, key);
        } else {
            self.restarts.push(self.content.len() as u32);
            self.since_restart = 0;
        }
        for number in [shared, key.len() - shared, value.len()] {
            put_varint(&mut self.content, number as u64);
        }
        self.content.extend_from_slice(&key[shared..]);
        self.content.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        self.since_restart += 1;
    }

    fn size(&self) -> usize {
        self.content.len() + self.restarts.len() * 4 + 4
    }

    /// The finished block; the builder starts anew.
    fn finish(&mut self) -> Vec<u8> {
        let mut content = std::mem::take(&mut self.content);
        for &restart in &self.restarts {
            content.extend_from_slice(&restart.to_le_bytes());
        }
        content.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        *self = BlockBuilder::new(self.interval);
        content
    }
}

/// Writes a table. Keys must come in ascending order.
pub struct TableWriter {
    file: Box<dyn WritableFile>,
    offset: u64,
    data: BlockBuilder,
    index: BlockBuilder,
    /// A block that is written but not yet in the index: its last key and its handle.
    pending: Option<(Vec<u8>, Handle)>,
}

impl TableWriter {
    /// A writer of an empty file.
    pub fn new(file: Box<dyn WritableFile>) -> TableWriter {
        TableWriter {
            file,
            offset: 0,
            data: BlockBuilder::new(RESTART_INTERVAL),
            index: BlockBuilder::new(1),
            pending: None,
        }
    }

    /// Adds an entry. INTERNAL when the key is not above the last one.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some((last, handle)) = self.pending.take() {
            self.add_to_index(&separator(last, key), handle);
        }
        ensure!(
            self.data.content.is_empty() || self.data.last_key.as_slice() < key,
            Internal,
            "keys of a table must ascend"
        );
        self.data.add(key, value);
        if self.data.size() >= BLOCK_SIZE {
            self.write_data_block()?;
        }
        Ok(())
    }

    fn add_to_index(&mut self, key: &[u8], handle: Handle) {
        let mut encoded = Vec::new();
        handle.put(&mut encoded);
        self.index.add(key, &encoded);
    }

    fn write_data_block(&mut self) -> Result<()> {
        if self.data.content.is_empty() {
            return Ok(());
        }
        let last_key = self.data.last_key.clone();
        let block = self.data.finish();
        let handle = self.write_block(&block)?;
        self.pending = Some((last_key, handle));
        Ok(())
    }

    fn write_block(&mut self, block: &[u8]) -> Result<Handle> {
        let handle = Handle {
            offset: self.offset,
            size: block.len() as u64,
        };
        let checksum = crc::mask(crc::extend(crc::crc32c(block), &[UNCOMPRESSED]));
        self.file.append(block)?;
        self.file.append(&[UNCOMPRESSED])?;
        self.file.append(&checksum.to_le_bytes())?;
        self.offset += block.len() as u64 + 5;
        Ok(handle)
    }

    /// Writes what remains and closes the file. Returns its length.
    pub fn finish(mut self) -> Result<u64> {
        self.write_data_block()?;
        let unused = self.write_block(&BlockBuilder::new(RESTART_INTERVAL).finish())?;
        if let Some((last, handle)) = self.pending.take() {
            self.add_to_index(&successor(last), handle);
        }
        let index = self.index.finish();
        let index = self.write_block(&index)?;
        let mut footer = Vec::with_capacity(FOOTER);
        unused.put(&mut footer);
        index.put(&mut footer);
        footer.resize(FOOTER - 8, 0);
        footer.extend_from_slice(&MAGIC.to_le_bytes());
        self.file.append(&footer)?;
        self.file.close()?;
        Ok(self.offset + FOOTER as u64)
    }
}

fn common_start(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// A short key that is not below `last` and below `next`.
fn separator(mut last: Vec<u8>, next: &[u8]) -> Vec<u8> {
    let at = common_start(&last, next);
    if let (Some(&byte), Some(&limit)) = (last.get(at), next.get(at))
        && byte < 0xff
        && byte + 1 < limit
    {
        last.truncate(at);
        last.push(byte + 1);
    }
    last
}

/// A short key that is not below `last`.
fn successor(mut last: Vec<u8>) -> Vec<u8> {
    if let Some(at) = last.iter().position(|&byte| byte != 0xff) {
        last.truncate(at + 1);
        last[at] += 1;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table_reader::{Table, count_entries};
    use ff_platform::files;
    use ff_tensor::Code;

    fn written(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let path = files::temporary_beside("ram://table");
        let mut writer = TableWriter::new(files::create(&path).unwrap());
        for (key, value) in entries {
            writer.add(key, value).unwrap();
        }
        let length = writer.finish().unwrap();
        let file = files::read(&path).unwrap();
        files::delete(&path).unwrap();
        assert_eq!(file.len() as u64, length);
        file
    }

    fn example(count: usize, value_size: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entry = |i: usize| (format!("key{i:06}").into_bytes(), vec![i as u8; value_size]);
        (0..count).map(entry).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for (count, size) in [(0, 0), (1, 0), (40, 7), (3000, 300), (3, 400_000)] {
            let entries = example(count, size);
            let table = Table::open(written(&entries).into()).unwrap();
            let mut all = Vec::new();
            for block in table.blocks() {
                all.extend(block.unwrap().iter().map(|e| (e.key.clone(), e.value.to_vec())));
            }
            assert_eq!(all, entries);
            for (key, value) in entries.iter().step_by(7) {
                assert_eq!(table.get(key).unwrap().unwrap(), &value[..]);
            }
            assert!(table.get(b"key").unwrap().is_none());
            assert!(table.get(b"key000001x").unwrap().is_none());
            assert!(table.get(b"z").unwrap().is_none());
        }
    }

    #[test]
    fn keys_must_ascend() {
        let mut writer = TableWriter::new(files::create("ram://descending").unwrap());
        writer.add(b"b", b"").unwrap();
        assert_eq!(writer.add(b"a", b"").unwrap_err().code(), Code::Internal);
    }

    #[test]
    fn keys_between() {
        assert_eq!(separator(b"abcd".to_vec(), b"abzz"), b"abd");
        assert_eq!(separator(b"abc".to_vec(), b"abd"), b"abc");
        assert_eq!(separator(b"ab".to_vec(), b"abc"), b"ab");
        assert_eq!(successor(b"\xff\xffa".to_vec()), b"\xff\xffb");
        assert_eq!(successor(b"\xff".to_vec()), b"\xff");
    }

    /// A table with one compressed block, made by hand.
    fn compressed(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let mut builder = BlockBuilder::new(RESTART_INTERVAL);
        entries.iter().for_each(|(key, value)| builder.add(key, value));
        let mut file = Vec::new();
        let mut write = |block: &[u8], compression: u8| {
            let handle = Handle {
                offset: file.len() as u64,
                size: block.len() as u64,
            };
            file.extend_from_slice(block);
            file.push(compression);
            let crc = crc::mask(crc::extend(crc::crc32c(block), &[compression]));
            file.extend_from_slice(&crc.to_le_bytes());
            handle
        };
        let block = snap::raw::Encoder::new().compress_vec(&builder.finish()).unwrap();
        let data = write(&block, crate::table_format::SNAPPY);
        let mut index = BlockBuilder::new(1);
        let mut handle = Vec::new();
        data.put(&mut handle);
        index.add(b"z", &handle);
        let index = write(&index.finish(), UNCOMPRESSED);
        let mut footer = Vec::new();
        data.put(&mut footer);
        index.put(&mut footer);
        footer.resize(FOOTER - 8, 0);
        footer.extend_from_slice(&MAGIC.to_le_bytes());
        file.extend_from_slice(&footer);
        file
    }

    #[test]
    fn compressed_blocks_are_read() {
        let entries = example(100, 50);
        let file = compressed(&entries);
        assert!(file.len() < 4000);
        let table = Table::open(file.into()).unwrap();
        for (key, value) in &entries {
            assert_eq!(table.get(key).unwrap().unwrap(), &value[..]);
        }
    }

    /// Reads everything, whatever comes of it.
    fn read_all(file: Vec<u8>) {
        if let Ok(table) = Table::open(file.into()) {
            table.blocks().for_each(|block| drop(block.map(<[_]>::len)));
            let _ = table.get(b"key000003");
        }
    }

    #[test]
    fn damaged_files_are_errors() {
        for file in [written(&example(40, 7)), compressed(&example(40, 7))] {
            for length in 0..file.len() {
                read_all(file[..length].to_vec());
            }
            for at in 0..file.len() {
                for flip in [1, 0x80, 0xff] {
                    let mut damaged = file.clone();
                    damaged[at] ^= flip;
                    read_all(damaged.clone());
                }
            }
        }
        let short = Table::open(vec![0; 47].into()).err().unwrap();
        assert_eq!(short.message(), "file is too short to be an sstable");
        let magic = Table::open(vec![0; 48].into()).err().unwrap();
        assert_eq!(magic.message(), "not an sstable (bad magic number)");
    }

    #[test]
    fn damaged_blocks_are_errors_also_when_the_checksum_fits() {
        let mut builder = BlockBuilder::new(RESTART_INTERVAL);
        for (key, value) in example(40, 7) {
            builder.add(&key, &value);
        }
        let block = builder.finish();
        assert_eq!(count_entries(&block).unwrap(), 40);
        for at in 0..block.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = block.clone();
                damaged[at] = value;
                let _ = count_entries(&damaged);
            }
            let _ = count_entries(&block[..at]);
        }
        // A thousand entries of which each claims all of a long key again.
        let mut bomb = Vec::new();
        for number in [0, 60_000, 0] {
            put_varint(&mut bomb, number);
        }
        bomb.resize(bomb.len() + 60_000, b'k');
        for _ in 0..20_000 {
            for number in [60_000, 0, 0] {
                put_varint(&mut bomb, number);
            }
        }
        bomb.extend_from_slice(&[0; 4]);
        assert_eq!(count_entries(&bomb).unwrap_err().code(), Code::DataLoss);
    }
}
