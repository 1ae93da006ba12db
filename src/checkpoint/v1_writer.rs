//! Writing checkpoints of the first format, byte for byte as the reference does.

use crate::TensorSlice;
use crate::ordered_code::tensor_slice_key;
use crate::table_writer::TableWriter;
use ff_platform::files;
use ff_proto::{
    Message, SavedSlice, SavedSliceMeta, SavedTensorSliceMeta, SavedTensorSlices, TensorProto, VersionDef,
};
use ff_tensor::{DataType, Result, Shape, Tensor, ensure};
use std::collections::BTreeMap;

/// The largest encoded slice: a message cannot be larger.
const MAX_SLICE_BYTES: usize = i32::MAX as usize;
/// The version of the format.
const VERSION: i32 = 1;

/// Writes a checkpoint of the first format: one table file, made whole by [`V1Writer::finish`].
///
/// The file lists tensors in the order in which they were added. The ops `Save` and `SaveSlices` add them in the order of
/// their names.
pub struct V1Writer {
    path: String,
    tensors: Vec<SavedSliceMeta>,
    slices: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl V1Writer {
    /// A writer of the file at `path`. Nothing is written yet.
    pub fn new(path: &str) -> V1Writer {
        V1Writer {
            path: path.to_string(),
            tensors: Vec::new(),
            slices: BTreeMap::new(),
        }
    }

    /// Adds a whole tensor. Errors as for [`V1Writer::add_slice`].
    pub fn add(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        self.add_slice(name, tensor.shape(), &TensorSlice::full(tensor.rank()), tensor)
    }

    /// Adds a slice of the tensor `name`, whose whole shape is `shape`.
    ///
    /// INTERNAL when the slice does not lie in the shape, or another slice of the tensor had another type or whole shape;
    /// INVALID_ARGUMENT for resources, variants and slices above 2 GB.
    pub fn add_slice(
        &mut self,
        name: &str,
        shape: &Shape,
        slice: &TensorSlice,
        tensor: &Tensor,
    ) -> Result<()> {
        let dtype = tensor.dtype();
        ensure!(
            &slice.shape_in(shape)? == tensor.shape(),
            Internal,
            "Slice {slice} of shape {shape} does not match the shape of the tensor to save: {}",
            tensor.shape()
        );
        ensure!(
            dtype.is_plain() || dtype == DataType::STRING,
            InvalidArgument,
            "a tensor of type {dtype} cannot be saved"
        );
        let data = TensorProto {
            dtype: 0,
            tensor_shape: None,
            ..tensor.to_proto_fields()
        };
        let message = SavedTensorSlices {
            meta: None,
            data: Some(SavedSlice {
                name: name.to_string(),
                slice: Some(slice.to_proto()),
                data: Some(data),
            }),
        };
        let size = message.encoded_len();
        ensure!(
            size <= MAX_SLICE_BYTES,
            InvalidArgument,
            "Tensor slice is too large to serialize (conservative estimate: {size} bytes)"
        );
        let known = self.list(name, shape, dtype)?;
        let proto = slice.to_proto();
        if !known.slice.contains(&proto) {
            known.slice.push(proto);
        }
        self.slices
            .insert(tensor_slice_key(name.as_bytes(), slice), message.encode_to_vec());
        Ok(())
    }

    /// The listed tensor of this name, made if needed.
    fn list(&mut self, name: &str, shape: &Shape, dtype: DataType) -> Result<&mut SavedSliceMeta> {
        let shape = shape.to_proto();
        let at = match self.tensors.iter().position(|tensor| tensor.name == name) {
            Some(at) => at,
            None => {
                self.tensors.push(SavedSliceMeta {
                    name: name.to_string(),
                    shape: Some(shape.clone()),
                    r#type: dtype.0,
                    slice: Vec::new(),
                });
                self.tensors.len() - 1
            }
        };
        let tensor = &mut self.tensors[at];
        ensure!(
            tensor.shape == Some(shape) && tensor.r#type == dtype.0,
            Internal,
            "Mismatching shapes or types of the slices of tensor {name}"
        );
        Ok(tensor)
    }

    /// Writes the file: a temporary one beside it is renamed when it is complete. Returns its length.
    pub fn finish(self) -> Result<u64> {
        let temporary = files::temporary_beside(&self.path);
        let written = self.write(&temporary).and_then(|length| {
            files::rename(&temporary, &self.path)?;
            Ok(length)
        });
        if written.is_err() {
            let _ = files::delete(&temporary);
        }
        written
    }

    fn write(&self, path: &str) -> Result<u64> {
        let listing = SavedTensorSlices {
            meta: Some(SavedTensorSliceMeta {
                tensor: self.tensors.clone(),
                versions: Some(VersionDef {
                    producer: VERSION,
                    ..Default::default()
                }),
            }),
            data: None,
        };
        let mut table = TableWriter::new(files::create(path)?);
        table.add(b"", &listing.encode_to_vec())?;
        for (key, value) in &self.slices {
            table.add(key, value)?;
        }
        table.finish()
    }
}
