//! What a file system can do. Paths are as the caller wrote them, with any scheme taken off by [`crate::files`].

use ff_tensor::{Result, Status, bail, status};
use std::sync::Arc;

/// What is known of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Bytes in the file.
    pub length: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub modified_nanoseconds: i64,
    /// Whether this is a folder.
    pub is_directory: bool,
}

/// A file open for reads at any place, by many threads.
pub trait RandomAccessFile: Send + Sync {
    /// Reads up to `into.len()` bytes from `offset`; the number read is smaller only at the end of the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize>;

    /// Fills `into` from `offset`. OUT_OF_RANGE when the file ends before.
    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let read = self.read_at(offset, into)?;
        if read < into.len() {
            bail!(
                OutOfRange,
                "EOF reached, {} bytes were requested, {read} were read",
                into.len()
            );
        }
        Ok(())
    }
}

/// A file open for appending. Dropping it closes it; [`WritableFile::close`] also tells of errors.
pub trait WritableFile: Send {
    /// Adds bytes to the end.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
    /// Hands buffered bytes to the system.
    fn flush(&mut self) -> Result<()>;
    /// As `flush`, and makes them survive a crash of the machine.
    fn sync(&mut self) -> Result<()> {
        self.flush()
    }
    /// The number of bytes in the file.
    fn position(&mut self) -> Result<u64>;
    /// Flushes and closes.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The bytes of a whole file, mapped or read. Cloning is cheap.
///
/// A mapped file must not be shortened while the region lives (replacing it by a rename is safe).
#[derive(Clone)]
pub struct Region(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Region {
    /// A region that owns this memory.
    pub fn new(memory: impl AsRef<[u8]> + Send + Sync + 'static) -> Region {
        Region(Arc::new(memory))
    }
}

impl std::ops::Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl std::fmt::Debug for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Region({} bytes)", self.len())
    }
}

impl AsRef<[u8]> for Region {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// A file system. Methods return NOT_FOUND for what is not there, with the path in the message.
pub trait FileSystem: Send + Sync {
    /// Opens a file for reading.
    fn open(&self, path: &str) -> Result<Box<dyn RandomAccessFile>>;
    /// Creates a file, or empties the one that is there.
    fn create(&self, path: &str) -> Result<Box<dyn WritableFile>>;
    /// Opens a file to add to its end; creates it if needed.
    fn append(&self, path: &str) -> Result<Box<dyn WritableFile>>;
    /// What is known of a path.
    fn stat(&self, path: &str) -> Result<FileStat>;
    /// The names in a folder, sorted, without `.` and `..`.
    fn list(&self, path: &str) -> Result<Vec<String>>;
    /// Deletes a file.
    fn delete_file(&self, path: &str) -> Result<()>;
    /// Creates a folder in an existing one. ALREADY_EXISTS when something is there.
    fn create_directory(&self, path: &str) -> Result<()>;
    /// Deletes an empty folder.
    fn delete_directory(&self, path: &str) -> Result<()>;
    /// Renames a file, replacing any file at the new path.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// The bytes of a whole file.
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let length = self.stat(path)?.length;
        let file = self.open(path)?;
        let mut bytes = Vec::new();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        bytes
            .try_reserve_exact(length)
            .map_err(|_| status!(ResourceExhausted, "{path} has {length} bytes"))?;
        bytes.resize(length, 0);
        let read = file.read_at(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The bytes of a whole file, mapped where the file system can.
    fn map(&self, path: &str) -> Result<Region> {
        self.read(path).map(Region::new)
    }

    /// Creates a folder and those that it lies in; those that exist are left as they are.
    fn create_directories(&self, path: &str) -> Result<()> {
        let mut end = 0;
        loop {
            end = match path[end..].find(|c| c != '/') {
                Some(start) => {
                    let start = end + start;
                    path[start..]
                        .find('/')
                        .map_or(path.len(), |length| start + length)
                }
                None => return Ok(()),
            };
            match self.create_directory(&path[..end]) {
                Err(error) if !self.is_directory(&path[..end]) => return Err(error),
                _ => {}
            }
        }
    }

    /// Deletes a folder with all that it holds, in a file system that can do so at once; none where that is done one by one.
    fn delete_recursively(&self, path: &str) -> Option<Result<()>> {
        let _ = path;
        None
    }

    /// The paths that match a pattern, with their scheme, of a file system that finds them itself; none where listing
    /// folders finds them.
    fn matching_paths(&self, pattern: &str) -> Option<Result<Vec<String>>> {
        let _ = pattern;
        None
    }

    /// Whether there is a file or folder.
    fn exists(&self, path: &str) -> bool {
        self.stat(path).is_ok()
    }

    /// Whether there is a folder.
    fn is_directory(&self, path: &str) -> bool {
        self.stat(path).is_ok_and(|stat| stat.is_directory)
    }
}

/// The NOT_FOUND of a path.
#[cold]
pub(crate) fn not_found(path: &str) -> Status {
    status!(NotFound, "{path}; No such file or directory")
}
