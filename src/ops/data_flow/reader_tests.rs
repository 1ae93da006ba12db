//! Readers; keys and records are those of the reference.

use super::tests::Subject;
use crate::testing::*;
use ff_op::Attrs;
use ff_tensor::{Code, DataType, PartialShape, Tensor};

fn text(tensor: &Tensor) -> String {
    let strings = tensor.strings().unwrap().iter();
    let strings: Vec<_> = strings
        .map(|string| String::from_utf8_lossy(string.as_bytes()).into_owned())
        .collect();
    strings.join(",")
}

/// Keys and records of these files until the names are used up.
fn records(op: &str, attrs: Attrs, files: &[&str], limit: Option<i64>) -> Vec<(String, String)> {
    let reader = Subject::new(op, &[], attrs);
    let names_only = Attrs::new()
        .with("component_types", vec![DataType::STRING])
        .with("shapes", vec![PartialShape::scalar()]);
    let queue = reader
        .runner
        .run("FIFOQueueV2", &[], names_only)
        .unwrap()
        .remove(0);
    let names = [queue.clone(), strings(&[files.len() as i64], files)];
    reader
        .runner
        .run("QueueEnqueueManyV2", &names, Attrs::new())
        .unwrap();
    let close = std::slice::from_ref(&queue);
    reader.runner.run("QueueCloseV2", close, Attrs::new()).unwrap();
    let mut all = Vec::new();
    loop {
        let result = match limit {
            None => reader.run("ReaderReadV2", close, Attrs::new()),
            Some(limit) => reader.run("ReaderReadUpToV2", &[queue.clone(), scalar(limit)], Attrs::new()),
        };
        match result {
            Ok(record) => all.push((text(&record[0]), text(&record[1]))),
            Err(error) => {
                assert_eq!(error.code(), Code::OutOfRange, "{error}");
                return all;
            }
        }
    }
}

fn values(records: Vec<(String, String)>) -> Vec<String> {
    records.into_iter().map(|(_, value)| value).collect()
}

#[test]
fn file_after_file() {
    let folder = std::env::temp_dir().join(format!("ff_readers_{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_string()
    };
    let (empty, lines) = (write("empty", b""), write("lines", b"a\nbb\r\nccc\n\nlast"));
    let pair = |name: &str, number: usize, text: &str| (format!("{name}:{number}"), text.to_string());
    let skip = Attrs::new().with("skip_header_lines", 1i64);
    assert_eq!(
        records("TextLineReaderV2", skip, &[&empty, &lines], None),
        [
            pair(&lines, 2, "bb"),
            pair(&lines, 3, "ccc"),
            pair(&lines, 4, ""),
            pair(&lines, 5, "last")
        ]
    );
    let some = records("TextLineReaderV2", Attrs::new(), &[&empty, &lines], Some(3));
    assert_eq!(values(some), ["a,bb,ccc", ",last"]);
    let fixed = write("fixed", b"HHaabbccFF");
    let lengths = Attrs::new()
        .with("header_bytes", 2i64)
        .with("record_bytes", 2i64)
        .with("footer_bytes", 2i64);
    assert_eq!(
        records("FixedLengthRecordReaderV2", lengths.clone(), &[&fixed], None),
        [
            pair(&fixed, 0, "aa"),
            pair(&fixed, 1, "bb"),
            pair(&fixed, 2, "cc")
        ]
    );
    let hops = lengths.with("hop_bytes", 1i64);
    let hops = records("FixedLengthRecordReaderV2", hops, &[&fixed], None);
    assert_eq!(values(hops), ["aa", "ab", "bb", "bc", "cc"]);
    let whole = records("WholeFileReaderV2", Attrs::new(), &[&fixed], None);
    assert_eq!(values(whole), ["HHaabbccFF"]);
    let names = records("IdentityReaderV2", Attrs::new(), &["x", "y"], None);
    assert_eq!(values(names), ["x", "y"]);
    let path = folder.join("records").to_str().unwrap().to_string();
    let mut writer = ff_checkpoint::RecordWriter::create(&path, ff_checkpoint::Compression::None).unwrap();
    writer.write(b"one").unwrap();
    writer.write(b"second").unwrap();
    writer.close().unwrap();
    assert_eq!(
        records("TFRecordReaderV2", Attrs::new(), &[&path], None),
        [pair(&path, 0, "one"), pair(&path, 19, "second")]
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_position_is_kept_and_found_again() {
    let reader = Subject::new("IdentityReaderV2", &[], Attrs::new());
    let state = reader.run("ReaderSerializeStateV2", &[], Attrs::new()).unwrap();
    assert_eq!(text(&state[0]), "");
    let position = strings(&[], &["\u{8}\u{2}\u{10}\u{2}\u{18}\u{2}"]);
    reader
        .run(
            "ReaderRestoreStateV2",
            std::slice::from_ref(&position),
            Attrs::new(),
        )
        .unwrap();
    let produced = reader
        .run("ReaderNumRecordsProducedV2", &[], Attrs::new())
        .unwrap();
    assert_eq!(produced[0].single::<i64>().unwrap(), 2);
    let state = reader.run("ReaderSerializeStateV2", &[], Attrs::new()).unwrap();
    assert_eq!(text(&state[0]), text(&position));
    let lines = Subject::new("TextLineReaderV2", &[], Attrs::new());
    let state = lines.run("ReaderSerializeStateV2", &[], Attrs::new());
    assert_eq!(code(state), Some(Code::Unimplemented));
}
