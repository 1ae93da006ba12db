//! Record and event files against files of the reference.

mod common;

use common::data;
use ff_checkpoint::{Compression, EventsWriter, RecordReader, RecordWriter};
use ff_platform::files;
use ff_proto::event::What;
use ff_proto::{Event, Message};
use ff_tensor::{Code, Result};

const FILES: [(&str, Compression); 3] = [
    ("records.tfrecord", Compression::None),
    ("records.gzip", Compression::Gzip),
    ("records.zlib", Compression::Zlib),
];

fn records() -> [Vec<u8>; 3] {
    [vec![], b"first".to_vec(), vec![b'x'; 1000]]
}

fn read_all(bytes: Vec<u8>, compression: Compression) -> (Vec<Vec<u8>>, Result<()>) {
    let mut reader = RecordReader::of_bytes(bytes.into(), compression);
    let mut records = Vec::new();
    loop {
        match reader.read() {
            Ok(Some(record)) => records.push(record.to_vec()),
            Ok(None) => return (records, Ok(())),
            Err(error) => return (records, Err(error)),
        }
    }
}

#[test]
fn records_of_the_reference_are_read() {
    for (name, compression) in FILES {
        let (found, end) = read_all(std::fs::read(data(name)).unwrap(), compression);
        end.unwrap();
        assert_eq!(found, records());
    }
    let mut reader = RecordReader::open(&data("records.tfrecord"), Compression::None).unwrap();
    reader.read().unwrap();
    assert_eq!(reader.offset(), 16);
    reader.read().unwrap();
    reader.seek(16).unwrap();
    assert_eq!(reader.read().unwrap().unwrap(), &b"first"[..]);
}

#[test]
fn records_are_written() {
    for (name, compression) in FILES {
        let path = format!("ram://records/{name}");
        let mut writer = RecordWriter::create(&path, compression).unwrap();
        for record in records() {
            writer.write(&record).unwrap();
        }
        writer.flush().unwrap();
        writer.close().unwrap();
        let written = files::read(&path).unwrap();
        if compression == Compression::None {
            assert_eq!(written, std::fs::read(data(name)).unwrap());
        }
        let (found, end) = read_all(written, compression);
        end.unwrap();
        assert_eq!(found, records());
    }
    assert_eq!(
        Compression::from_name("LZ").unwrap_err().code(),
        Code::InvalidArgument
    );
    assert_eq!(Compression::from_name("GZIP").unwrap(), Compression::Gzip);
}

#[test]
fn damage_has_the_texts_of_the_reference() {
    let file = std::fs::read(data("records.tfrecord")).unwrap();
    let flipped = |at: usize| {
        let mut bytes = file.clone();
        bytes[at] ^= 1;
        bytes
    };
    let first = "corrupted record at 0 (Is this even a TFRecord file?)";
    let truncated =
        |at: usize| format!("truncated record at {at}' failed with Read less bytes than requested");
    for (bytes, count, message) in [
        (file[..5].to_vec(), 0, String::new()),
        (file[..14].to_vec(), 0, truncated(0)),
        (file[..20].to_vec(), 1, String::new()),
        (file[..30].to_vec(), 1, truncated(16)),
        (file[..file.len() - 3].to_vec(), 2, truncated(37)),
        (flipped(0), 0, first.into()),
        (flipped(9), 0, first.into()),
        (flipped(13), 0, "corrupted record at 12".into()),
        (flipped(16), 1, "corrupted record at 16".into()),
        (flipped(33), 1, "corrupted record at 28".into()),
    ] {
        let (found, end) = read_all(bytes, Compression::None);
        assert_eq!(found.len(), count);
        assert_eq!(
            end.err()
                .map_or(String::new(), |error| error.message().to_string()),
            message
        );
    }
    for (name, compression) in FILES {
        let file = std::fs::read(data(name)).unwrap();
        for at in 0..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x40;
            let _ = read_all(damaged, compression);
            let _ = read_all(file[..at].to_vec(), compression);
        }
    }
}

#[test]
fn event_files_start_with_their_version() {
    let mut writer = EventsWriter::create("ram://events/events", ".v2").unwrap();
    let path = writer.path().to_string();
    assert!(path.starts_with("ram://events/events.out.tfevents.") && path.ends_with(".v2"));
    writer
        .write(&Event {
            step: 7,
            ..Default::default()
        })
        .unwrap();
    writer.close().unwrap();
    let (found, end) = read_all(files::read(&path).unwrap(), Compression::None);
    end.unwrap();
    let events: Vec<_> = found
        .iter()
        .map(|bytes| Event::decode(&bytes[..]).unwrap())
        .collect();
    assert_eq!(events[0].what, Some(What::FileVersion("brain.Event:2".into())));
    assert!(events[0].wall_time > 1.6e9);
    assert_eq!(events[1].step, 7);
}
