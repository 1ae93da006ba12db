//! Event files: records of `Event` messages, as TensorBoard reads them.

use crate::{Compression, RecordWriter};
use ff_platform::{environment, files, time};
use ff_proto::event::What;
use ff_proto::{Event, Message, SourceMetadata};
use ff_tensor::Result;

/// Writes an event file. The file and its first event (the version) are made with the writer.
pub struct EventsWriter {
    path: String,
    records: RecordWriter,
}

impl EventsWriter {
    /// Creates `<prefix>.out.tfevents.<seconds since 1970>.<name of the machine><suffix>`, and its folder if needed.
    pub fn create(prefix: &str, suffix: &str) -> Result<EventsWriter> {
        let seconds = time::now_microseconds() / 1_000_000;
        let path = format!("{prefix}.out.tfevents.{seconds:010}.{}{suffix}", host_name());
        if let Some((folder, _)) = path.rsplit_once('/')
            && !folder.is_empty()
        {
            files::create_directories(folder)?;
        }
        let records = RecordWriter::create(&path, Compression::None)?;
        let mut writer = EventsWriter { path, records };
        writer.write(&Event {
            wall_time: seconds as f64,
            what: Some(What::FileVersion("brain.Event:2".to_string())),
            source_metadata: Some(SourceMetadata {
                writer: "tensorflow.core.util.events_writer".to_string(),
            }),
            ..Default::default()
        })?;
        writer.flush()?;
        Ok(writer)
    }

    /// The path of the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Adds an event.
    pub fn write(&mut self, event: &Event) -> Result<()> {
        self.write_encoded(&event.encode_to_vec())
    }

    /// Adds an event that is already encoded.
    pub fn write_encoded(&mut self, event: &[u8]) -> Result<()> {
        self.records.write(event)
    }

    /// Hands all events to the system.
    pub fn flush(&mut self) -> Result<()> {
        self.records.flush()
    }

    /// Completes the file and closes it.
    pub fn close(self) -> Result<()> {
        self.records.close()
    }
}

/// The name of the machine, as far as a file's name can have it.
fn host_name() -> String {
    let name = environment::host_name();
    name.chars()
        .map(|c| if c == '/' || c == '\\' { '_' } else { c })
        .collect()
}
