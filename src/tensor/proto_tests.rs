use super::*;
use crate::{Code, PartialShape, f16};
use ff_proto::tensor_shape_proto::Dim;

fn proto(dtype: DataType, dims: &[i64]) -> TensorProto {
    TensorProto {
        dtype: dtype.0,
        tensor_shape: Some(TensorShapeProto {
            dim: dims
                .iter()
                .map(|&size| Dim {
                    size,
                    ..Default::default()
                })
                .collect(),
            unknown_rank: false,
        }),
        ..Default::default()
    }
}

fn message_of(error: Result<Tensor>) -> String {
    let error = error.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().starts_with("Cannot parse tensor from proto: "));
    error.message().to_string()
}

#[test]
fn the_last_value_repeats_and_surplus_is_ignored() {
    let float = |dims: &[i64], values: &[f32]| {
        let tensor = Tensor::from_proto(&TensorProto {
            float_val: values.to_vec(),
            ..proto(DataType::FLOAT, dims)
        });
        tensor.unwrap().as_slice::<f32>().unwrap().to_vec()
    };
    assert_eq!(float(&[3], &[1.0, 2.0]), [1.0, 2.0, 2.0]);
    assert_eq!(float(&[1], &[1.0, 2.0]), [1.0]);
    assert_eq!(float(&[2], &[]), [0.0, 0.0]);
    assert_eq!(float(&[], &[5.0]), [5.0]);
    assert!(float(&[0, 7], &[5.0]).is_empty());
}

#[test]
fn narrow_types_share_the_integer_field() {
    let decode = |dtype, values: &[i32]| {
        let tensor = Tensor::from_proto(&TensorProto {
            int_val: values.to_vec(),
            ..proto(dtype, &[values.len() as i64])
        });
        tensor.unwrap()
    };
    let bytes = decode(DataType::UINT8, &[1, -1, 15, 300]);
    assert_eq!(bytes.as_slice::<u8>().unwrap(), [1, 255, 15, 44]);
    let nibbles = decode(DataType::INT4, &[1, -1, 15, 300]);
    assert_eq!(nibbles.bytes(), [1, 15, 15, 12]);
    assert_eq!(nibbles.to_proto_fields().int_val, [1, -1, -1, -4]);
    let half = Tensor::from_proto(&TensorProto {
        half_val: vec![0x3c00, 0x1_3c00],
        ..proto(DataType::HALF, &[2])
    });
    assert_eq!(half.unwrap().as_slice::<f16>().unwrap(), [f16::ONE; 2]);
    let complex = Tensor::from_proto(&TensorProto {
        scomplex_val: vec![1.0, 2.0, 3.0],
        ..proto(DataType::COMPLEX64, &[2])
    });
    assert_eq!(
        complex.unwrap().as_slice::<Complex64>().unwrap(),
        [Complex64::new(1.0, 2.0); 2]
    );
}

#[test]
fn content_is_viewed_when_aligned_and_copied_when_not() {
    let bytes: Vec<u8> = (0..64u8).collect();
    let bytes = Bytes::from(bytes);
    let misaligned = (bytes.as_ptr() as usize).next_multiple_of(8) - bytes.as_ptr() as usize;
    for shift in 0..9 {
        let content = bytes.slice(misaligned + shift..misaligned + shift + 16);
        let tensor = Tensor::from_proto(&TensorProto {
            tensor_content: content.clone(),
            ..proto(DataType::INT64, &[2])
        })
        .unwrap();
        assert_eq!(tensor.bytes(), &content[..]);
        assert_eq!(
            tensor.data_ptr().cast_const() == content.as_ptr(),
            shift.is_multiple_of(8)
        );
    }
}

#[test]
fn bad_messages_are_refused() {
    let content = |dtype, dims: &[i64], content: &'static [u8]| {
        message_of(Tensor::from_proto(&TensorProto {
            tensor_content: Bytes::from_static(content),
            ..proto(dtype, dims)
        }))
    };
    content(DataType::FLOAT, &[2], b"123");
    content(DataType::FLOAT, &[2], b"123456789");
    let text = content(DataType::FLOAT, &[2, -1], b"123");
    assert!(text.ends_with("Shape [2,?] is not fully defined"));
    let text = content(DataType::FLOAT, &[1 << 40, 1 << 40], b"123");
    assert!(text.contains("is too large (more than 2**63 - 1 entries)"));
    content(DataType::INVALID, &[], b"");
    content(DataType(77), &[], b"");
    content(DataType::FLOAT.to_ref(), &[], b"1234");
    content(DataType::STRING, &[2], b"\x01\x02ab");
    content(DataType::STRING, &[2], b"\x01\x02abcd");
    content(DataType::STRING, &[1 << 40], b"\x01\x02abcd");
    content(DataType::VARIANT, &[1], b"\x01\xff");
    let huge = Tensor::from_proto(&proto(DataType::FLOAT, &[1 << 60]));
    assert_eq!(huge.unwrap_err().code(), Code::ResourceExhausted);
}

#[test]
fn strings_from_fields_and_from_content() {
    let fields = TensorProto {
        string_val: vec![Bytes::from_static(b"a"), Bytes::from_static(b"bb")],
        ..proto(DataType::STRING, &[3])
    };
    let tensor = Tensor::from_proto(&fields).unwrap();
    assert_eq!(tensor.strings().unwrap()[2].as_bytes(), b"bb");
    let content = tensor.to_proto();
    assert_eq!(&content.tensor_content[..], b"\x01\x02\x02abbbb");
    assert_eq!(Tensor::from_proto(&content).unwrap().strings(), tensor.strings());
}

#[test]
fn every_plain_type_survives_both_forms() {
    for number in 1..=33 {
        let dtype = DataType(number);
        if !dtype.is_plain() {
            continue;
        }
        let mut tensor = Tensor::zeros(dtype, Shape::new(&[2, 3]).unwrap()).unwrap();
        let mask = match dtype {
            DataType::BOOL => 1,
            DataType::INT4 | DataType::UINT4 | DataType::FLOAT4_E2M1FN => 0xf,
            DataType::INT2 | DataType::UINT2 => 3,
            _ => 0x7b,
        };
        let bytes = tensor.bytes_mut().unwrap().iter_mut().enumerate();
        bytes.for_each(|(i, byte)| *byte = (i * 37 + 11) as u8 & mask);
        for form in [
            tensor.to_proto(),
            tensor.to_proto_fields(),
            tensor.to_attr_proto(),
            tensor.to_proto_compressed(),
        ] {
            let back = Tensor::from_proto(&form).unwrap();
            assert_eq!(back.bytes(), tensor.bytes(), "{dtype}");
            assert_eq!((back.dtype(), back.shape()), (dtype, tensor.shape()));
        }
    }
}

#[test]
fn repeats_are_compressed() {
    let mut values = vec![0.0f32; 100];
    values[0] = 1.0;
    values[1] = -0.0;
    let tensor = Tensor::vector(&values).unwrap();
    let compressed = tensor.to_proto_compressed();
    assert_eq!(compressed.float_val.len(), 3);
    assert_eq!(Tensor::from_proto(&compressed).unwrap().bytes(), tensor.bytes());
}

#[test]
fn handles_and_variants_keep_their_messages() {
    let handle = ResourceHandleProto {
        device: "/device:CPU:0".into(),
        name: "v".into(),
        hash_code: 7,
        dtypes_and_shapes: vec![ff_proto::resource_handle_proto::DtypeAndShape {
            dtype: 1,
            shape: Some(PartialShape::new(&[-1, 2]).to_proto()),
        }],
        ..Default::default()
    };
    let fields = TensorProto {
        resource_handle_val: vec![handle.clone()],
        ..proto(DataType::RESOURCE, &[])
    };
    let tensor = Tensor::from_proto(&fields).unwrap();
    assert_eq!(tensor.resources().unwrap()[0].name, "v");
    assert_eq!(tensor.to_proto_fields(), fields);

    let list = VariantTensorDataProto {
        type_name: "tensorflow::TensorList".into(),
        metadata: Bytes::from_static(b"\x00\x01"),
        tensors: vec![proto(DataType::FLOAT, &[1])],
    };
    let fields = TensorProto {
        variant_val: vec![list, VariantTensorDataProto::default()],
        ..proto(DataType::VARIANT, &[2])
    };
    let tensor = Tensor::from_proto(&fields).unwrap();
    assert_eq!(tensor.to_proto_fields(), fields);
    let back = Tensor::from_proto(&tensor.to_proto()).unwrap();
    assert_eq!(back.to_proto_fields(), fields);
    assert!(back.variants().unwrap()[1].object().is_none());
}

#[test]
fn shapes_round_trip() {
    for dims in [&[][..], &[2, 3], &[0], &[-1, 4]] {
        let shape = PartialShape::new(dims);
        assert_eq!(PartialShape::from_proto(&shape.to_proto()).unwrap(), shape);
    }
    let unknown = PartialShape::unknown().to_proto();
    assert!(PartialShape::from_proto(&unknown).unwrap().rank().is_none());
    let mut bad = PartialShape::new(&[1, 2]).to_proto();
    bad.dim[1].size = -2;
    assert_eq!(
        PartialShape::from_proto(&bad).unwrap_err().message(),
        "Shape [1,-2] has dimensions with values below -1 (where -1 means unknown)"
    );
    bad.unknown_rank = true;
    assert!(PartialShape::from_proto(&bad).is_err());
    let long = PartialShape::new(&[1; 255]).to_proto();
    assert!(
        Shape::from_proto(&long)
            .unwrap_err()
            .message()
            .ends_with("has too many dimensions")
    );
}
