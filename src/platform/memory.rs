//! Files in memory: the scheme `ram://`.
//!
//! Folders need not be created before the files in them: a folder exists if it was created or anything lies in it.

use crate::file_system::{FileStat, FileSystem, RandomAccessFile, Region, WritableFile, not_found};
use crate::time::now_nanoseconds;
use ff_tensor::{Result, bail, status};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Files in memory. Paths have no leading or trailing slash.
#[derive(Default)]
pub struct MemoryFileSystem {
    entries: Mutex<BTreeMap<String, Entry>>,
}

#[derive(Clone)]
enum Entry {
    Directory,
    File(Arc<Content>),
}

struct Content {
    bytes: RwLock<Vec<u8>>,
    modified: Mutex<i64>,
}

impl Content {
    fn new() -> Arc<Content> {
        Arc::new(Content {
            bytes: RwLock::default(),
            modified: Mutex::new(now_nanoseconds()),
        })
    }
}

struct Reader(Arc<Content>);

impl RandomAccessFile for Reader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let bytes = self.0.bytes.read();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = into.len().min(bytes.len() - start);
        into[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }
}

struct Writer(Arc<Content>);

impl WritableFile for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut content = self.0.bytes.write();
        content
            .try_reserve(bytes.len())
            .map_err(|_| status!(ResourceExhausted, "no memory for {} bytes", bytes.len()))?;
        content.extend_from_slice(bytes);
        *self.0.modified.lock() = now_nanoseconds();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn position(&mut self) -> Result<u64> {
        Ok(self.0.bytes.read().len() as u64)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

fn clean(path: &str) -> &str {
    path.trim_matches('/')
}

/// What all entries in a folder start with.
fn prefix_of(directory: &str) -> String {
    if directory.is_empty() {
        String::new()
    } else {
        format!("{directory}/")
    }
}

fn has_children(entries: &BTreeMap<String, Entry>, directory: &str) -> bool {
    let prefix = prefix_of(directory);
    let mut from = entries.range(prefix.clone()..);
    from.next()
        .is_some_and(|(path, _)| path.starts_with(&prefix) && !path.is_empty())
}

impl MemoryFileSystem {
    fn file(&self, path: &str) -> Result<Arc<Content>> {
        let entries = self.entries.lock();
        match entries.get(clean(path)) {
            Some(Entry::File(content)) => Ok(content.clone()),
            Some(Entry::Directory) => bail!(FailedPrecondition, "{path}; Is a directory"),
            None if has_children(&entries, clean(path)) => {
                bail!(FailedPrecondition, "{path}; Is a directory")
            }
            None => Err(not_found(path)),
        }
    }

    /// The file at a path where a file can be, made if needed.
    fn writable(&self, path: &str, keep: bool) -> Result<Arc<Content>> {
        let mut entries = self.entries.lock();
        let key = clean(path);
        if has_children(&entries, key) || matches!(entries.get(key), Some(Entry::Directory)) {
            bail!(FailedPrecondition, "{path}; Is a directory");
        }
        for (at, _) in key.match_indices('/') {
            if let Some(Entry::File(_)) = entries.get(&key[..at]) {
                bail!(FailedPrecondition, "{path}; Not a directory");
            }
        }
        match entries.get(key) {
            Some(Entry::File(content)) if keep => Ok(content.clone()),
            _ => {
                let content = Content::new();
                entries.insert(key.to_string(), Entry::File(content.clone()));
                Ok(content)
            }
        }
    }
}

impl FileSystem for MemoryFileSystem {
    fn open(&self, path: &str) -> Result<Box<dyn RandomAccessFile>> {
        Ok(Box::new(Reader(self.file(path)?)))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        Ok(Box::new(Writer(self.writable(path, false)?)))
    }

    fn append(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        Ok(Box::new(Writer(self.writable(path, true)?)))
    }

    fn stat(&self, path: &str) -> Result<FileStat> {
        let entries = self.entries.lock();
        let key = clean(path);
        match entries.get(key) {
            Some(Entry::File(content)) => Ok(FileStat {
                length: content.bytes.read().len() as u64,
                modified_nanoseconds: *content.modified.lock(),
                is_directory: false,
            }),
            None if !key.is_empty() && !has_children(&entries, key) => Err(not_found(path)),
            _ => Ok(FileStat {
                length: 0,
                modified_nanoseconds: 0,
                is_directory: true,
            }),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        if !self.is_directory(path) {
            return Err(not_found(path));
        }
        let prefix = prefix_of(clean(path));
        let entries = self.entries.lock();
        let mut names = BTreeSet::new();
        for (key, _) in entries.range(prefix.clone()..) {
            let Some(rest) = key.strip_prefix(&prefix) else {
                break;
            };
            names.extend(
                rest.split('/')
                    .next()
                    .filter(|name| !name.is_empty())
                    .map(str::to_string),
            );
        }
        Ok(names.into_iter().collect())
    }

    fn delete_file(&self, path: &str) -> Result<()> {
        self.file(path)?;
        self.entries.lock().remove(clean(path));
        Ok(())
    }

    fn create_directory(&self, path: &str) -> Result<()> {
        if self.exists(path) {
            bail!(AlreadyExists, "{path}; File exists");
        }
        self.entries
            .lock()
            .insert(clean(path).to_string(), Entry::Directory);
        Ok(())
    }

    fn delete_directory(&self, path: &str) -> Result<()> {
        let mut entries = self.entries.lock();
        let key = clean(path);
        if has_children(&entries, key) {
            bail!(FailedPrecondition, "{path}; Directory not empty");
        }
        match entries.get(key) {
            Some(Entry::Directory) => {
                entries.remove(key);
                Ok(())
            }
            Some(Entry::File(_)) => bail!(FailedPrecondition, "{path}; Not a directory"),
            None => Err(not_found(path)),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let mut entries = self.entries.lock();
        let (old, new) = (clean(from), clean(to));
        if let Some(entry) = entries.remove(old) {
            entries.insert(new.to_string(), entry);
        } else if !has_children(&entries, old) {
            return Err(not_found(from));
        }
        let prefix = prefix_of(old);
        let moved: Vec<String> = entries
            .range(prefix.clone()..)
            .map(|(key, _)| key.clone())
            .take_while(|key| key.starts_with(&prefix))
            .collect();
        for key in moved.iter().filter(|_| old != new) {
            if let Some(entry) = entries.remove(key) {
                entries.insert(format!("{new}/{}", &key[prefix.len()..]), entry);
            }
        }
        Ok(())
    }

    fn map(&self, path: &str) -> Result<Region> {
        self.read(path).map(Region::new)
    }
}
