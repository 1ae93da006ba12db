//! Bundles against files of the reference: reading them, writing the same bytes, and damaged ones.

mod common;

use common::{data, pattern, same, slice, types};
use ff_checkpoint::{BundleReader, BundleWriter, TensorSlice, merge_bundles};
use ff_platform::files;
use ff_tensor::{Code, DataType, Shape, Tensor};

const SUFFIXES: [&str; 2] = [".index", ".data-00000-of-00001"];

fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap().to_string();
    (folder, path)
}

fn assert_same_files(ours: &str, reference: &str, suffixes: &[&str]) {
    for suffix in suffixes {
        let expected = std::fs::read(format!("{}{suffix}", data(reference))).unwrap();
        assert_eq!(
            std::fs::read(format!("{ours}{suffix}")).unwrap(),
            expected,
            "{reference}{suffix}"
        );
    }
}

#[test]
fn every_type_is_read_and_written() {
    let reader = BundleReader::open(&data("types")).unwrap();
    let (_folder, path) = folder();
    let prefix = format!("{path}/new/types");
    let mut writer = BundleWriter::create(&prefix).unwrap();
    for (name, tensor) in types() {
        let read = reader.read(&name).unwrap();
        assert!(same(&read, &tensor), "{}", String::from_utf8_lossy(&name));
        writer.add(&name, &tensor).unwrap();
    }
    writer.finish().unwrap();
    assert_same_files(&prefix, "types", &SUFFIXES);
    let mut names: Vec<_> = types().into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(reader.names().unwrap(), names);
    assert_eq!(files::list(&format!("{path}/new")).unwrap().len(), 2);
}

/// In the reference two who ask one reader at once may get each other's answers; so the C programs cannot compare it.
#[test]
fn a_reader_is_shared_by_threads() {
    let reader = BundleReader::open(&data("types")).unwrap();
    let expected = types();
    std::thread::scope(|scope| {
        for first in 0..4 {
            let (reader, expected) = (&reader, &expected);
            scope.spawn(move || {
                for turn in 0..200 {
                    let (name, tensor) = &expected[(first + turn) % expected.len()];
                    assert!(reader.contains(name) && !reader.contains("nobody"));
                    assert!(same(&reader.read(name).unwrap(), tensor));
                }
            });
        }
    });
}

fn parts() -> (Tensor, Tensor) {
    (
        pattern(DataType::FLOAT, &[5, 3], 0),
        pattern(DataType::INT32, &[4, 6], 0),
    )
}

fn part(whole: &Tensor, text: &str) -> Tensor {
    // Through a bundle in memory: a slice of a whole tensor.
    let mut writer = BundleWriter::create("ram://parts/whole").unwrap();
    writer.add("whole", whole).unwrap();
    writer.finish().unwrap();
    let reader = BundleReader::open("ram://parts/whole").unwrap();
    reader.read_slice("whole", &slice(text)).unwrap()
}

#[test]
fn partitioned_tensors() {
    let (rows, grid) = parts();
    let reader = BundleReader::open(&data("slices")).unwrap();
    for (name, whole) in [
        ("rows", &rows),
        ("grid", &grid),
        ("full", &rows),
        ("whole", &rows),
    ] {
        assert!(same(&reader.read(name).unwrap(), whole), "{name}");
        assert_eq!(
            reader.dtype_and_shape(name).unwrap(),
            (whole.dtype(), whole.shape().clone())
        );
    }
    let wanted = "1,3:2,3";
    assert!(same(
        &reader.read_slice("grid", &slice(wanted)).unwrap(),
        &part(&grid, wanted)
    ));
    assert!(same(
        &reader.read_slice("rows", &slice("2,3:-")).unwrap(),
        &part(&rows, "2,3:-")
    ));
    let error = reader.read("wide").unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(
        error.message(),
        "Does not have sufficient slices for partitioned tensor wide to restore in slice_spec: -:-"
    );
    assert!(reader.read_slice("wide", &slice("120,9:-")).is_ok());
    let names = reader.names().unwrap();
    assert_eq!(
        names,
        ["full", "grid", "rows", "whole", "wide"].map(|name| name.as_bytes().to_vec())
    );

    let (_folder, path) = folder();
    let prefix = format!("{path}/slices");
    let mut writer = BundleWriter::create(&prefix).unwrap();
    let mut add = |name: &str, dims: &[i64], text: &str, whole: &Tensor| {
        let shape = Shape::new(dims).unwrap();
        writer
            .add_slice(name, &shape, &slice(text), &part(whole, text))
            .unwrap();
    };
    add("rows", &[5, 3], "0,2:-", &rows);
    add("rows", &[5, 3], "2,3:-", &rows);
    writer.add("whole", &rows).unwrap();
    for text in ["0,2:0,3", "0,2:3,3", "2,2:0,3", "2,2:3,3"] {
        writer
            .add_slice("grid", grid.shape(), &slice(text), &part(&grid, text))
            .unwrap();
    }
    let wide = pattern(DataType::UINT8, &[300, 2], 0);
    writer
        .add_slice(
            "wide",
            wide.shape(),
            &slice("100,100:-"),
            &part(&wide, "100,100:-"),
        )
        .unwrap();
    writer
        .add_slice("full", rows.shape(), &TensorSlice::full(2), &rows)
        .unwrap();
    let error = writer.add_slice("rows", &Shape::vector(9), &slice("0,3"), &part(&rows, "0,1:-"));
    assert_eq!(error.unwrap_err().code(), Code::InvalidArgument);
    writer.finish().unwrap();
    assert_same_files(&prefix, "slices", &SUFFIXES);
}

#[test]
fn bundles_are_merged() {
    let (_folder, path) = folder();
    for name in ["a", "b"] {
        for suffix in SUFFIXES {
            let from = data(&format!("keep-{name}{suffix}"));
            std::fs::copy(from, format!("{path}/part-{name}{suffix}")).unwrap();
        }
    }
    let prefixes = [format!("{path}/part-b"), format!("{path}/part-a")];
    let merged = format!("{path}/merged");
    merge_bundles(&prefixes, &merged, false).unwrap();
    let suffixes = [".index", ".data-00000-of-00002", ".data-00001-of-00002"];
    assert_same_files(&merged, "merged", &suffixes);
    assert_eq!(files::list(&path).unwrap().len(), 3);
    let reader = BundleReader::open(&merged).unwrap();
    assert!(same(&reader.read("rows").unwrap(), &parts().0));
    assert!(same(
        &reader.read("b/x").unwrap(),
        &pattern(DataType::FLOAT, &[4], 3)
    ));

    let kept = [data("keep-a"), data("nope")];
    let error = merge_bundles(&kept, &format!("{path}/other"), false).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let error = merge_bundles(&[data("keep-a"), data("keep-a")], &format!("{path}/x"), false).unwrap_err();
    assert!(error.message().starts_with("Duplicate tensor keyed by"));
    assert!(error.message().contains("encountered, when merging prefix: "));
    let none = merge_bundles(&[data("nope")], &format!("{path}/x"), true).unwrap_err();
    assert_eq!(none.code(), Code::InvalidArgument);
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// The index has several blocks. Size and checksums are those of the reference's files.
#[test]
fn large_indexes_have_the_same_blocks() {
    let (_folder, path) = folder();
    let prefix = format!("{path}/large");
    let mut writer = BundleWriter::create(&prefix).unwrap();
    for i in 0..6000usize {
        let name = format!("variable_{i:05}/{}", "n".repeat(i % 50));
        writer.add(name, &Tensor::scalar(i as f32).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let index = std::fs::read(format!("{prefix}.index")).unwrap();
    assert_eq!((index.len(), fnv(&index)), (270_093, 0x40f8_690e_19d4_3724));
    let data = std::fs::read(format!("{prefix}.data-00000-of-00001")).unwrap();
    assert_eq!(fnv(&data), 0x3e2b_f774_e1e6_4c08);
    let reader = BundleReader::open(&prefix).unwrap();
    let read = reader.read("variable_05555/nnnnn").unwrap();
    assert_eq!(read.single::<f32>().unwrap(), 5555.0);
}

#[test]
fn aligned_tensors_are_views_of_the_file() {
    let (_folder, path) = folder();
    let prefix = format!("{path}/aligned");
    let mut writer = BundleWriter::create_aligned(&prefix, 64).unwrap();
    writer.add("a", &Tensor::vector(&[1u8]).unwrap()).unwrap();
    writer.add("b", &Tensor::vector(&[2.0f64, 3.0]).unwrap()).unwrap();
    writer.finish().unwrap();
    let reader = BundleReader::open(&prefix).unwrap();
    assert_eq!(reader.entry("b").unwrap().offset, 64);
    let (b, again) = (reader.read("b").unwrap(), reader.read("b").unwrap());
    assert_eq!(b.data_ptr(), again.data_ptr());
    drop(reader);
    files::delete_recursively(&path).unwrap();
    assert_eq!(b.as_slice::<f64>().unwrap(), [2.0, 3.0]);
}

#[test]
fn missing_things_and_wrong_calls() {
    let error = BundleReader::open("/nonexistent/x").err().unwrap();
    assert_eq!(error.code(), Code::NotFound);
    assert_eq!(error.message(), "/nonexistent/x.index; No such file or directory");
    let reader = BundleReader::open(&data("types")).unwrap();
    for name in ["nope", ""] {
        let error = reader.read(name).unwrap_err();
        assert_eq!(error.code(), Code::NotFound);
        assert_eq!(error.message(), format!("Key {name} not found in checkpoint"));
        assert!(!reader.contains(name));
    }
    assert!(reader.contains("scalar"));
    let mut writer = BundleWriter::create("ram://wrong/x").unwrap();
    let one = Tensor::scalar(1.0f32).unwrap();
    writer.add("a", &one).unwrap();
    let error = writer.add("a", &one).unwrap_err();
    assert_eq!(error.message(), "Adding duplicate key: a");
    drop(writer);
    assert!(files::list("ram://wrong").is_err() || files::list("ram://wrong").unwrap().is_empty());
    let (_folder, path) = folder();
    std::fs::copy(data("types.index"), format!("{path}/types.index")).unwrap();
    let error = BundleReader::open(&format!("{path}/types"))
        .unwrap()
        .read("scalar")
        .unwrap_err();
    assert_eq!(
        error.message(),
        format!("{path}/types.data-00000-of-00001; No such file or directory")
    );
}

/// Opens a bundle and reads everything in it, whatever comes of it.
fn read_all(prefix: &str) -> Vec<Code> {
    let reader = match BundleReader::open(prefix) {
        Ok(reader) => reader,
        Err(error) => return vec![error.code()],
    };
    let names = reader.names().unwrap_or_default();
    names
        .iter()
        .filter_map(|name| reader.read(name).err().map(|error| error.code()))
        .collect()
}

#[test]
fn damaged_bundles_are_errors() {
    for name in ["types", "slices", "variants"] {
        let prefix = format!("ram://damaged/{name}");
        let content = SUFFIXES.map(|suffix| std::fs::read(data(&format!("{name}{suffix}"))).unwrap());
        let restore = || {
            for (suffix, bytes) in SUFFIXES.iter().zip(&content) {
                files::write_atomically(&format!("{prefix}{suffix}"), bytes).unwrap();
            }
        };
        for (suffix, bytes) in SUFFIXES.iter().zip(&content) {
            restore();
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << (at % 8);
                files::write_atomically(&format!("{prefix}{suffix}"), &damaged).unwrap();
                read_all(&prefix);
                files::write_atomically(&format!("{prefix}{suffix}"), &bytes[..at]).unwrap();
                assert!(!read_all(&prefix).is_empty());
            }
        }
    }
}

#[test]
fn damage_has_the_texts_of_the_reference() {
    let prefix = "ram://texts/types";
    let content = SUFFIXES.map(|suffix| std::fs::read(data(&format!("types{suffix}"))).unwrap());
    let with = |file: usize, at: usize| {
        for (i, suffix) in SUFFIXES.iter().enumerate() {
            let mut bytes = content[i].clone();
            if i == file {
                bytes[at] ^= 0xff;
            }
            files::write_atomically(&format!("{prefix}{suffix}"), &bytes).unwrap();
        }
        BundleReader::open(prefix)
    };
    for (at, name, message) in [
        (
            756,
            "string",
            "The length checksum does not match: expected 3175638260 but actual is 1280012764",
        ),
        (
            765,
            "string",
            "TensorBundle at ram://texts/types shard 0 (10 bytes): Checksum does not match: stored 4211753886 vs. \
             calculated on the restored bytes 1450643663",
        ),
        (
            459,
            "strings",
            "TensorBundle at ram://texts/types shard 0 (314 bytes): Checksum does not match: stored 937726936 vs. \
             calculated on the restored bytes 3244998464",
        ),
        (
            414,
            "layer/float/value",
            "TensorBundle at ram://texts/types shard 0 (24 bytes): Checksum does not match: stored 454407019 vs. \
             calculated on the restored bytes 1583457017",
        ),
    ] {
        let error = with(1, at).unwrap().read(name).unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::DataLoss, message));
    }
    let error = with(0, 100).err().unwrap();
    assert_eq!(
        error.message(),
        "Unable to read file (ram://texts/types.index). Perhaps the file is corrupt or was produced by a newer \
         version of TensorFlow with format changes (failed to seek to header entry): block checksum mismatch"
    );
    let error = with(0, 862).err().unwrap();
    assert_eq!(error.message(), "not an sstable (bad magic number)");
    files::write_atomically(&format!("{prefix}{}", SUFFIXES[0]), &content[0]).unwrap();
    files::write_atomically(&format!("{prefix}{}", SUFFIXES[1]), &content[1][..100]).unwrap();
    let error = BundleReader::open(prefix).unwrap().read("scalar").unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (Code::OutOfRange, "Read less bytes than requested")
    );
}

#[test]
fn variants_keep_their_messages() {
    let reader = BundleReader::open(&data("variants")).unwrap();
    let lists = reader.read("lists").unwrap();
    assert_eq!((lists.dtype(), lists.dims()), (DataType::VARIANT, &[2][..]));
    let list = lists.variants().unwrap()[1]
        .get::<ff_tensor::VariantProto>()
        .unwrap();
    assert_eq!(list.0.type_name, "tensorflow::TensorList");
    let element = Tensor::from_proto(&list.0.tensors[0]).unwrap();
    assert_eq!(element.as_slice::<f32>().unwrap(), [5.0, 6.0]);
    let (_folder, path) = folder();
    let prefix = format!("{path}/variants");
    let mut writer = BundleWriter::create(&prefix).unwrap();
    writer.add("lists", &lists).unwrap();
    writer.finish().unwrap();
    assert_same_files(&prefix, "variants", &SUFFIXES);
}
