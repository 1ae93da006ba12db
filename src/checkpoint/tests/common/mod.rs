//! The tensors that tools/reference/checkpoint_fixtures.py saves, made by the same rules.

#![allow(dead_code, missing_docs)] // each test file uses a part

use ff_checkpoint::TensorSlice;
use ff_tensor::{DataType, Shape, TString, Tensor};

pub fn data(name: &str) -> String {
    format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Byte i is (start + 37 i + 11) mod 251.
pub fn pattern(dtype: DataType, dims: &[i64], start: usize) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, Shape::new(dims).unwrap()).unwrap();
    for (i, byte) in tensor.bytes_mut().unwrap().iter_mut().enumerate() {
        *byte = ((start + i * 37 + 11) % 251) as u8;
        if dtype == DataType::BOOL {
            *byte &= 1;
        }
    }
    tensor
}

fn strings(dims: &[i64], values: &[&[u8]]) -> Tensor {
    let values = values.iter().map(|&value| TString::from(value)).collect();
    Tensor::from_strings(Shape::new(dims).unwrap(), values).unwrap()
}

const TYPES: [DataType; 17] = [
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::INT32,
    DataType::UINT8,
    DataType::INT16,
    DataType::INT8,
    DataType::COMPLEX64,
    DataType::INT64,
    DataType::BOOL,
    DataType::BFLOAT16,
    DataType::UINT16,
    DataType::COMPLEX128,
    DataType::HALF,
    DataType::UINT32,
    DataType::UINT64,
    DataType::FLOAT8_E5M2,
    DataType::FLOAT8_E4M3FN,
];

/// The tensors of the checkpoint `types`, in the order of saving.
pub fn types() -> Vec<(Vec<u8>, Tensor)> {
    let mut tensors = Vec::new();
    for dtype in TYPES.into_iter().rev() {
        let name = format!("layer/{dtype}/value");
        tensors.push((name.into_bytes(), pattern(dtype, &[2, 3], 0)));
    }
    let mut add = |name: &[u8], tensor: Tensor| tensors.push((name.to_vec(), tensor));
    add(b"scalar", Tensor::scalar(1.5f32).unwrap());
    let empty = Shape::new(&[0, 4]).unwrap();
    add(b"empty", Tensor::zeros(DataType::FLOAT, empty).unwrap());
    add(
        b"strings",
        strings(&[2, 2], &[b"", b"one", &[b'x'; 300], b"\0\xff"]),
    );
    add(b"string", strings(&[], &[b"hello"]));
    add(b"no_strings", strings(&[0], &[]));
    add("\0odd\u{ff} name".as_bytes(), Tensor::scalar(-1i64).unwrap());
    tensors
}

/// The tensors of the first-format checkpoint `v1.ckpt`.
pub fn types_v1() -> Vec<(Vec<u8>, Tensor)> {
    let left_out = [
        "uint32",
        "uint64",
        "float8_e5m2",
        "float8_e4m3fn",
        "uint16",
        "complex128",
        "bfloat16",
    ];
    let mut tensors = types();
    tensors.retain(|(name, _)| {
        !left_out
            .iter()
            .any(|dtype| name.starts_with(format!("layer/{dtype}/").as_bytes()))
    });
    let zeros = Tensor::zeros(DataType::FLOAT, Shape::vector(1000)).unwrap();
    tensors.push((b"zeros".to_vec(), zeros));
    tensors
}

pub fn slice(text: &str) -> TensorSlice {
    TensorSlice::parse(text).unwrap()
}

pub fn same(a: &Tensor, b: &Tensor) -> bool {
    let content = match a.dtype() {
        DataType::STRING => a.strings() == b.strings(),
        _ => a.bytes() == b.bytes(),
    };
    a.dtype() == b.dtype() && a.shape() == b.shape() && content
}
