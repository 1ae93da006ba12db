//! TFRecord files: byte strings, each with checksums.
//!
//! A record is its length (64 bits), the masked crc32c of that, the bytes, and the masked crc32c of those. The whole
//! file may be a gzip or zlib stream.

use crate::crc;
use bytes::Bytes;
use ff_platform::{WritableFile, files};
use ff_tensor::{Result, bail, ensure, status};
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::{self, Cursor, Read, Write};

/// Bytes before the content of a record: its length and the checksum of that.
const HEADER: usize = 12;

/// How a record file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// As a gzip stream.
    Gzip,
    /// As a zlib stream.
    Zlib,
}

impl Compression {
    /// The compression that ops name "", "GZIP" or "ZLIB". INVALID_ARGUMENT otherwise.
    pub fn from_name(name: &str) -> Result<Compression> {
        match name {
            "" => Ok(Compression::None),
            "GZIP" => Ok(Compression::Gzip),
            "ZLIB" => Ok(Compression::Zlib),
            other => Err(status!(InvalidArgument, "Unsupported compression_type: {other}.")),
        }
    }
}

enum Source {
    Plain(Bytes),
    Stream(Box<dyn Read + Send>),
}

/// Reads the records of a file in order.
pub struct RecordReader {
    source: Source,
    /// Place of the next record in the uncompressed file.
    offset: u64,
}

impl RecordReader {
    /// Opens a file. NOT_FOUND when it is not there.
    pub fn open(path: &str, compression: Compression) -> Result<RecordReader> {
        Ok(RecordReader::of_bytes(
            Bytes::from_owner(files::map(path)?),
            compression,
        ))
    }

    /// Reads the records of a file's bytes.
    pub fn of_bytes(bytes: Bytes, compression: Compression) -> RecordReader {
        let source = match compression {
            Compression::None => Source::Plain(bytes),
            Compression::Gzip => {
                Source::Stream(Box::new(flate2::bufread::MultiGzDecoder::new(Cursor::new(bytes))))
            }
            Compression::Zlib => {
                Source::Stream(Box::new(flate2::bufread::ZlibDecoder::new(Cursor::new(bytes))))
            }
        };
        RecordReader { source, offset: 0 }
    }

    /// Place of the next record in the uncompressed file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes to the record at an earlier [`RecordReader::offset`] of an uncompressed file. UNIMPLEMENTED for streams.
    pub fn seek(&mut self, offset: u64) -> Result<()> {
        ensure!(
            matches!(self.source, Source::Plain(_)),
            Unimplemented,
            "compressed record files are read in order"
        );
        self.offset = offset;
        Ok(())
    }

    /// Up to `length` bytes from `offset`; shorter at the end of the file.
    fn take(&mut self, offset: u64, length: u64) -> Result<Bytes> {
        match &mut self.source {
            Source::Plain(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let rest = bytes.len() - start;
                let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest);
                Ok(bytes.slice(start..start + length))
            }
            Source::Stream(stream) => {
                // Grows as bytes arrive: a length that lies costs no memory.
                let mut bytes = Vec::new();
                let read = stream.take(length).read_to_end(&mut bytes);
                read.map_err(|error| status!(DataLoss, "damaged compressed data: {error}"))?;
                Ok(bytes.into())
            }
        }
    }

    /// `length` bytes at `offset` and the checksum that follows. None at the end of the file.
    fn checked(&mut self, offset: u64, length: u64) -> Result<Option<Bytes>> {
        let bytes = self.take(offset, length.saturating_add(4))?;
        if (bytes.len() as u64) < length.saturating_add(4) {
            return Ok(None);
        }
        let (content, stored) = bytes.split_at(bytes.len() - 4);
        let stored = u32::from_le_bytes([stored[0], stored[1], stored[2], stored[3]]);
        if crc::unmask(stored) != crc::crc32c(content) {
            let hint = if offset == 0 {
                " (Is this even a TFRecord file?)"
            } else {
                ""
            };
            bail!(DataLoss, "corrupted record at {offset}{hint}");
        }
        Ok(Some(bytes.slice(..content.len())))
    }

    /// The next record, or none at the end of the file. DATA_LOSS ("corrupted record at 12", "truncated record at 0")
    /// for a damaged one; the place then stays as it was.
    pub fn read(&mut self) -> Result<Option<Bytes>> {
        let start = self.offset;
        let Some(header) = self.checked(start, 8)? else {
            return Ok(None);
        };
        let mut length = [0; 8];
        length.copy_from_slice(&header);
        let length = u64::from_le_bytes(length);
        let Some(content) = self.checked(start + HEADER as u64, length)? else {
            bail!(
                DataLoss,
                "truncated record at {start}' failed with Read less bytes than requested"
            );
        };
        self.offset = start + HEADER as u64 + length + 4;
        Ok(Some(content))
    }
}

/// A file as the target of a compressing stream.
struct Target(Box<dyn WritableFile>);

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(io::Error::other)
    }
}

enum Sink {
    Plain(Target),
    Gzip(GzEncoder<Target>),
    Zlib(ZlibEncoder<Target>),
}

/// Writes records to a file. [`RecordWriter::close`] completes it.
pub struct RecordWriter {
    sink: Sink,
}

impl RecordWriter {
    /// Creates a file, or empties the one that is there.
    pub fn create(path: &str, compression: Compression) -> Result<RecordWriter> {
        Ok(RecordWriter::to_file(files::create(path)?, compression))
    }

    /// Writes to an open file.
    pub fn to_file(file: Box<dyn WritableFile>, compression: Compression) -> RecordWriter {
        let (target, level) = (Target(file), flate2::Compression::default());
        let sink = match compression {
            Compression::None => Sink::Plain(target),
            Compression::Gzip => Sink::Gzip(GzEncoder::new(target, level)),
            Compression::Zlib => Sink::Zlib(ZlibEncoder::new(target, level)),
        };
        RecordWriter { sink }
    }

    /// Adds a record.
    pub fn write(&mut self, record: &[u8]) -> Result<()> {
        let length = (record.len() as u64).to_le_bytes();
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&length);
        header[8..].copy_from_slice(&crc::mask(crc::crc32c(&length)).to_le_bytes());
        let footer = crc::mask(crc::crc32c(record)).to_le_bytes();
        let sink = self.as_write();
        [&header[..], record, &footer]
            .into_iter()
            .try_for_each(|bytes| sink.write_all(bytes))
            .map_err(status_of)
    }

    fn as_write(&mut self) -> &mut dyn Write {
        match &mut self.sink {
            Sink::Plain(target) => target,
            Sink::Gzip(encoder) => encoder,
            Sink::Zlib(encoder) => encoder,
        }
    }

    /// Hands all records to the system.
    pub fn flush(&mut self) -> Result<()> {
        self.as_write().flush().map_err(status_of)
    }

    /// Completes the file and closes it.
    pub fn close(self) -> Result<()> {
        let target = match self.sink {
            Sink::Plain(target) => target,
            Sink::Gzip(encoder) => encoder.finish().map_err(status_of)?,
            Sink::Zlib(encoder) => encoder.finish().map_err(status_of)?,
        };
        target.0.close()
    }
}

/// The status that a [`Target`] put into an error.
fn status_of(error: io::Error) -> ff_tensor::Status {
    match error.downcast::<ff_tensor::Status>() {
        Ok(status) => status,
        Err(error) => status!(Unknown, "{error}"),
    }
}
