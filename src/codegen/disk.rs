//! Objects in files, shared by processes.
//!
//! A file holds the whole key (structure, processor, releases), the object and a checksum; one that is not as it should be
//! is ignored, and written anew. Files appear under their name only when they are complete.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: &[u8; 8] = b"FFKERNL1";

/// A folder of objects.
pub(crate) struct DiskCache {
    folder: PathBuf,
    /// What objects depend on beside their structure.
    target: String,
}

impl DiskCache {
    pub fn new(folder: PathBuf) -> DiskCache {
        let target = format!("{} {}", env!("CARGO_PKG_VERSION"), crate::target());
        DiskCache { folder, target }
    }

    fn key(&self, structure: &str) -> String {
        format!("{}\n{structure}", self.target)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!(
            "{:016x}{:016x}.ffkernel",
            hash(key.as_bytes(), 1),
            hash(key.as_bytes(), 2)
        ))
    }

    /// The object of a structure, if there is a sound file.
    pub fn read(&self, structure: &str) -> Option<Vec<u8>> {
        let key = self.key(structure);
        let bytes = std::fs::read(self.path(&key)).ok()?;
        let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
        let rest = body.strip_prefix(MAGIC)?;
        let (length, rest) = rest.split_at_checked(8)?;
        let length = u64::from_le_bytes(length.try_into().ok()?) as usize;
        let (found, object) = rest.split_at_checked(length)?;
        let sound = found == key.as_bytes() && sum == hash(body, 3).to_le_bytes();
        sound.then(|| object.to_vec())
    }

    /// Keeps an object; failures are ignored, as the cache only saves time.
    pub fn write(&self, structure: &str, object: &[u8]) {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let key = self.key(structure);
        let mut body = MAGIC.to_vec();
        body.extend((key.len() as u64).to_le_bytes());
        body.extend(key.as_bytes());
        body.extend(object);
        body.extend(hash(&body, 3).to_le_bytes());
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let draft = self
            .folder
            .join(format!(".{}-{number}.draft", std::process::id()));
        let written = std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&draft, body));
        if written.is_err() || std::fs::rename(&draft, self.path(&key)).is_err() {
            let _ = std::fs::remove_file(&draft);
        }
    }
}

fn hash(bytes: &[u8], seed: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, bytes).hash(&mut hasher);
    hasher.finish()
}
