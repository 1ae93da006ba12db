//! Readers: records of the files whose names come from a queue.

use super::store::Tuple;
use ff_checkpoint::{Compression, RecordReader};
use ff_platform::files;
use ff_tensor::{Result, TString, Tensor, ensure, status};
use parking_lot::Mutex;

/// What a reader does with a file.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// The name is key and record.
    Identity,
    /// The whole file is a record; its key is the name.
    WholeFile,
    /// Lines, after so many that are skipped; keys are `name:line`, from 1.
    Lines {
        /// How many are skipped.
        skip: usize,
    },
    /// Records of one length; keys are `name:record`, from 0.
    FixedLength {
        /// Bytes before the first record.
        header: usize,
        /// Bytes of a record.
        record: usize,
        /// Bytes after the last record.
        footer: usize,
        /// From the start of a record to that of the next; 0 for the length of a record.
        hop: usize,
    },
    /// TFRecords; keys are `name:offset`.
    Records(Compression),
}

/// A key and a record.
pub type Record = (TString, TString);

/// A reader. Its operations may be called from any thread.
pub struct Reader {
    format: Format,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    work: Option<Work>,
    produced: i64,
    started: i64,
    finished: i64,
}

/// A file under way.
struct Work {
    name: String,
    content: Content,
}

enum Content {
    /// Nothing read yet.
    Whole,
    Bytes {
        bytes: Vec<u8>,
        at: usize,
        number: usize,
    },
    Records(Box<RecordReader>),
}

impl Reader {
    /// A reader that has read nothing.
    pub fn new(format: Format) -> Reader {
        Reader {
            format,
            state: Mutex::default(),
        }
    }

    /// Records read so far.
    pub fn produced(&self) -> i64 {
        self.state.lock().produced
    }

    /// Files read to their ends so far.
    pub fn finished(&self) -> i64 {
        self.state.lock().finished
    }

    /// Forgets everything.
    pub fn reset(&self) {
        *self.state.lock() = State::default();
    }

    /// Where the reader is, for formats that can say. UNIMPLEMENTED for the others.
    pub fn position(&self) -> Result<(i64, i64, i64)> {
        ensure!(
            matches!(self.format, Format::Identity | Format::WholeFile),
            Unimplemented,
            "Reader SerializeState"
        );
        let state = self.state.lock();
        Ok((state.started, state.finished, state.produced))
    }

    /// Goes to a position. UNIMPLEMENTED for formats that cannot, INVALID_ARGUMENT for one that cannot be.
    pub fn set_position(&self, (started, finished, produced): (i64, i64, i64)) -> Result<()> {
        ensure!(
            matches!(self.format, Format::Identity | Format::WholeFile),
            Unimplemented,
            "Reader RestoreState"
        );
        ensure!(
            started >= 0 && finished >= 0 && produced >= 0 && finished <= started,
            InvalidArgument,
            "Unexpected negative or inconsistent value when restoring a reader"
        );
        *self.state.lock() = State {
            work: None,
            produced,
            started,
            finished,
        };
        Ok(())
    }

    /// The next records of the file under way, at most `limit`; none when it has ended or there is no file.
    pub fn read(&self, limit: usize) -> Result<Vec<Record>> {
        let state = &mut *self.state.lock();
        let mut records = Vec::new();
        while records.len() < limit {
            let Some(work) = &mut state.work else { break };
            match work.next(self.format) {
                Ok(Some(record)) => records.push(record),
                Ok(None) => {
                    state.work = None;
                    state.finished += 1;
                }
                Err(error) => {
                    state.work = None;
                    return Err(error);
                }
            }
        }
        state.produced += records.len() as i64;
        Ok(records)
    }

    /// Starts with the file that an element of a queue names.
    pub fn start(&self, tuple: &Tuple) -> Result<()> {
        let name = match tuple.first().map(Tensor::strings) {
            Some(Ok([name])) => String::from_utf8_lossy(name.as_bytes()).into_owned(),
            _ => return Err(status!(InvalidArgument, "Expected to dequeue one string")),
        };
        let content = self.open(&name)?;
        let mut state = self.state.lock();
        state.started += 1;
        state.work = Some(Work { name, content });
        Ok(())
    }

    fn open(&self, name: &str) -> Result<Content> {
        Ok(match self.format {
            Format::Identity | Format::WholeFile => Content::Whole,
            Format::Records(compression) => {
                Content::Records(Box::new(RecordReader::open(name, compression)?))
            }
            Format::Lines { skip } => {
                let bytes = files::read(name)?;
                let mut at = 0;
                for _ in 0..skip {
                    let end = bytes[at..].iter().position(|&byte| byte == b'\n');
                    at = end.map_or(bytes.len(), |end| at + end + 1);
                }
                Content::Bytes {
                    bytes,
                    at,
                    number: skip,
                }
            }
            Format::FixedLength { header, footer, .. } => {
                let mut bytes = files::read(name)?;
                bytes.truncate(bytes.len().saturating_sub(footer));
                Content::Bytes {
                    bytes,
                    at: header,
                    number: 0,
                }
            }
        })
    }
}

impl Work {
    fn next(&mut self, format: Format) -> Result<Option<Record>> {
        let name = &self.name;
        match (&mut self.content, format) {
            (Content::Records(reader), _) => {
                let key = format!("{name}:{}", reader.offset());
                let record = reader.read()?;
                Ok(record.map(|record| (TString::from(key.as_str()), TString::from(&record[..]))))
            }
            (Content::Whole, _) => {
                let value = match format {
                    Format::WholeFile => TString::from(&files::read(name)?[..]),
                    _ => TString::from(name.as_str()),
                };
                self.content = Content::Bytes {
                    bytes: Vec::new(),
                    at: 0,
                    number: 0,
                };
                Ok(Some((TString::from(self.name.as_str()), value)))
            }
            (Content::Bytes { bytes, at, number }, Format::Lines { .. }) => {
                if *at >= bytes.len() {
                    return Ok(None);
                }
                let rest = &bytes[*at..];
                let end = rest.iter().position(|&byte| byte == b'\n');
                let line = &rest[..end.unwrap_or(rest.len())];
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                *number += 1;
                let record = (
                    TString::from(format!("{name}:{number}").as_str()),
                    TString::from(line),
                );
                *at += end.map_or(rest.len(), |end| end + 1);
                Ok(Some(record))
            }
            (Content::Bytes { bytes, at, number }, Format::FixedLength { record, hop, .. }) => {
                let Some(value) = bytes.get(*at..*at + record) else {
                    return Ok(None);
                };
                let key = format!("{name}:{number}");
                let found = (TString::from(key.as_str()), TString::from(value));
                *number += 1;
                *at += if hop == 0 { record } else { hop };
                Ok(Some(found))
            }
            (Content::Bytes { .. }, _) => Ok(None),
        }
    }
}
