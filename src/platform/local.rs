//! The machine's own files.

use crate::file_system::{FileStat, FileSystem, RandomAccessFile, Region, WritableFile};
use crate::status_of;
use ff_tensor::{Result, status};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Seek, Write};
use std::time::UNIX_EPOCH;

/// The machine's own files, by absolute or relative path.
pub struct LocalFileSystem;

struct LocalFile {
    path: String,
    file: File,
}

impl RandomAccessFile for LocalFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let mut read = 0;
        while read < into.len() {
            match read_once(&self.file, offset.saturating_add(read as u64), &mut into[read..]) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(status_of(&self.path, &error)),
            }
        }
        Ok(read)
    }
}

#[cfg(unix)]
fn read_once(file: &File, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
    if i64::try_from(offset).is_err() {
        return Ok(0);
    }
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

#[cfg(windows)]
fn read_once(file: &File, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}

struct LocalWriter {
    path: String,
    file: BufWriter<File>,
}

impl WritableFile for LocalWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| status_of(&self.path, &error))
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|error| status_of(&self.path, &error))
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        let synced = self.file.get_ref().sync_all();
        synced.map_err(|error| status_of(&self.path, &error))
    }

    fn position(&mut self) -> Result<u64> {
        self.file
            .stream_position()
            .map_err(|error| status_of(&self.path, &error))
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}

fn writer(path: &str, options: &mut OpenOptions) -> Result<Box<dyn WritableFile>> {
    let file = options
        .create(true)
        .open(path)
        .map_err(|error| status_of(path, &error))?;
    Ok(Box::new(LocalWriter {
        path: path.to_string(),
        file: BufWriter::with_capacity(1 << 16, file),
    }))
}

impl FileSystem for LocalFileSystem {
    fn open(&self, path: &str) -> Result<Box<dyn RandomAccessFile>> {
        let file = File::open(path).map_err(|error| status_of(path, &error))?;
        Ok(Box::new(LocalFile {
            path: path.to_string(),
            file,
        }))
    }

    fn create(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        writer(path, OpenOptions::new().write(true).truncate(true))
    }

    fn append(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        writer(path, OpenOptions::new().append(true))
    }

    fn stat(&self, path: &str) -> Result<FileStat> {
        let metadata = fs::metadata(path).map_err(|error| status_of(path, &error))?;
        let modified = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(FileStat {
            length: metadata.len(),
            modified_nanoseconds: modified.map_or(0, |time| time.as_nanos() as i64),
            is_directory: metadata.is_dir(),
        })
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        let entries = fs::read_dir(if path.is_empty() { "." } else { path });
        let mut names = Vec::new();
        for entry in entries.map_err(|error| status_of(path, &error))? {
            let entry = entry.map_err(|error| status_of(path, &error))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn delete_file(&self, path: &str) -> Result<()> {
        fs::remove_file(path).map_err(|error| status_of(path, &error))
    }

    fn create_directory(&self, path: &str) -> Result<()> {
        fs::create_dir(path).map_err(|error| status_of(path, &error))
    }

    fn delete_directory(&self, path: &str) -> Result<()> {
        fs::remove_dir(path).map_err(|error| status_of(path, &error))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        fs::rename(from, to).map_err(|error| status_of(from, &error))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        fs::read(path).map_err(|error| status_of(path, &error))
    }

    fn map(&self, path: &str) -> Result<Region> {
        let file = File::open(path).map_err(|error| status_of(path, &error))?;
        let metadata = file.metadata().map_err(|error| status_of(path, &error))?;
        if metadata.is_dir() {
            return Err(status!(FailedPrecondition, "{path}; Is a directory"));
        }
        if !metadata.is_file() || metadata.len() == 0 {
            return self.read(path).map(Region::new);
        }
        // SAFETY: the mapping is read-only and private to this process; `Region` asks that the file is not shortened.
        match unsafe { memmap2::Mmap::map(&file) } {
            Ok(mapping) => Ok(Region::new(mapping)),
            Err(_) => self.read(path).map(Region::new),
        }
    }
}
