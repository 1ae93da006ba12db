//! The first format against files of the reference.

mod common;

use common::{data, pattern, same, slice, types_v1};
use ff_checkpoint::{BundleWriter, Checkpoint, V1Reader, V1Writer};
use ff_platform::files;
use ff_tensor::{Code, DataType, Shape, Tensor};

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(data(name)).unwrap()
}

#[test]
fn every_type_is_read_and_written() {
    let reader = V1Reader::open(&data("v1.ckpt")).unwrap();
    let mut tensors = types_v1();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(reader.names().len(), tensors.len());
    let mut writer = V1Writer::new("ram://v1/types");
    for (name, tensor) in &tensors {
        assert!(
            same(&reader.read(name).unwrap(), tensor),
            "{}",
            String::from_utf8_lossy(name)
        );
        writer.add(std::str::from_utf8(name).unwrap(), tensor).unwrap();
    }
    let length = writer.finish().unwrap();
    let ours = files::read("ram://v1/types").unwrap();
    assert_eq!(ours.len() as u64, length);
    assert_eq!(ours, bytes("v1.ckpt"));
}

#[test]
fn slices_of_one_and_of_several_files() {
    let rows = pattern(DataType::FLOAT, &[5, 3], 0);
    let reader = V1Reader::open(&data("v1_slices.ckpt")).unwrap();
    assert!(same(&reader.read("rows").unwrap(), &rows));
    assert!(same(&reader.read("whole").unwrap(), &rows));
    let (top, rest) = (slice("0,2:-"), slice("2,3:-"));
    let part = |slice: &ff_checkpoint::TensorSlice| reader.read_slice("rows", slice).unwrap();
    let corner = part(&slice("1,2:0,2"));
    let expected: Vec<f32> = [3, 4, 6, 7].map(|i| rows.as_slice::<f32>().unwrap()[i]).to_vec();
    assert_eq!(corner.as_slice::<f32>().unwrap(), expected);

    let mut writer = V1Writer::new("ram://v1/slices");
    writer.add_slice("rows", rows.shape(), &top, &part(&top)).unwrap();
    writer
        .add_slice("rows", rows.shape(), &rest, &part(&rest))
        .unwrap();
    writer.add("whole", &rows).unwrap();
    let error = writer.add_slice("rows", &Shape::new(&[6, 3]).unwrap(), &top, &part(&top));
    assert_eq!(error.unwrap_err().code(), Code::Internal);
    writer.finish().unwrap();
    assert_eq!(files::read("ram://v1/slices").unwrap(), bytes("v1_slices.ckpt"));

    for (file, slice) in [("0", &top), ("1", &rest)] {
        let mut writer = V1Writer::new(&format!("ram://v1/shard-{file}"));
        writer
            .add_slice("rows", rows.shape(), slice, &part(slice))
            .unwrap();
        writer.finish().unwrap();
    }
    let reader = Checkpoint::open("ram://v1/shard-?").unwrap();
    assert!(same(&reader.read("rows").unwrap(), &rows));
    let error = V1Reader::open("ram://v1/shard-0")
        .unwrap()
        .read("rows")
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn either_format_is_opened() {
    for name in ["types", "v1.ckpt"] {
        let checkpoint = Checkpoint::open(&data(name)).unwrap();
        assert_eq!(checkpoint.read("scalar").unwrap().single::<f32>().unwrap(), 1.5);
        let (dtype, shape) = checkpoint.dtype_and_shape("empty").unwrap();
        assert_eq!((dtype, shape.dims()), (DataType::FLOAT, &[0, 4][..]));
        assert!(checkpoint.contains("strings") && !checkpoint.contains("nope"));
        assert!(checkpoint.names().unwrap().contains(&b"string".to_vec()));
    }
    let mut writer = BundleWriter::create("ram://v1/bundle").unwrap();
    writer.add("a", &Tensor::scalar(1i32).unwrap()).unwrap();
    writer.finish().unwrap();
    assert!(matches!(
        Checkpoint::open("ram://v1/bundle").unwrap(),
        Checkpoint::Bundle(_)
    ));
}

#[test]
fn errors_have_the_texts_of_the_reference() {
    let text = |error: ff_tensor::Status| (error.code(), error.message().to_string());
    assert_eq!(
        text(Checkpoint::open("/nonexistent/x").err().unwrap()),
        (
            Code::NotFound,
            "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for /nonexistent/x".into()
        )
    );
    let path = data("v1.ckpt");
    assert_eq!(
        text(V1Reader::open(&path).unwrap().read("nope").unwrap_err()),
        (
            Code::NotFound,
            format!("Tensor name \"nope\" not found in checkpoint files {path}")
        )
    );
    let path = data("records.tfrecord");
    assert_eq!(
        text(V1Reader::open(&path).err().unwrap()),
        (
            Code::DataLoss,
            format!(
                "Unable to open table file {path}: DATA_LOSS: not an sstable (bad magic number): perhaps your file is \
                 in a different file format and you need to use a different restore operator?"
            )
        )
    );
    let index = V1Reader::open(&data("types.index")).unwrap();
    assert_eq!(index.read("scalar").unwrap_err().code(), Code::NotFound);
}

#[test]
fn damaged_files_are_errors() {
    let read_all = |content: &[u8]| {
        files::write_atomically("ram://v1/damaged", content).unwrap();
        if let Ok(reader) = V1Reader::open("ram://v1/damaged") {
            reader.names().iter().for_each(|name| drop(reader.read(name)));
        }
    };
    let file = bytes("v1_slices.ckpt");
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 1 << (at % 8);
        read_all(&damaged);
        read_all(&file[..at]);
    }
}
