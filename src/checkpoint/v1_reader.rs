//! Reading checkpoints of the first format: tables of `SavedTensorSlices`.
//!
//! Under the empty key a file lists its tensors and their slices; under [`tensor_slice_key`] it holds the values of
//! each, in the fields of a `TensorProto` that has neither type nor shape. The slices of one tensor may lie in several
//! files.

use crate::TensorSlice;
use crate::ordered_code::tensor_slice_key;
use crate::slice_copy::assemble;
use crate::table_reader::Table;
use bytes::Bytes;
use ff_platform::files;
use ff_proto::{BundleHeaderProto, Message, SavedSliceMeta, SavedTensorSlices, TensorProto};
use ff_tensor::{Code, DataType, Result, Shape, Status, Tensor, ensure, status};
use std::collections::BTreeMap;

/// A tensor of a checkpoint: what the files say of it.
struct Stored {
    dtype: DataType,
    shape: Shape,
    slices: Vec<TensorSlice>,
    /// The file of each slice.
    files: Vec<usize>,
}

/// A checkpoint of the first format, open for reading by any number of threads.
pub struct V1Reader {
    pattern: String,
    tables: Vec<Table>,
    tensors: BTreeMap<Vec<u8>, Stored>,
}

impl V1Reader {
    /// Opens all files that match the pattern (often the path of one). NOT_FOUND when there are none, DATA_LOSS when one
    /// is damaged or something else.
    pub fn open(pattern: &str) -> Result<V1Reader> {
        let paths = files::matching_paths(pattern)?;
        ensure!(
            !paths.is_empty(),
            NotFound,
            "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {pattern}"
        );
        let mut reader = V1Reader {
            pattern: pattern.to_string(),
            tables: Vec::new(),
            tensors: BTreeMap::new(),
        };
        for path in &paths {
            reader.add_file(path)?;
        }
        Ok(reader)
    }

    fn add_file(&mut self, path: &str) -> Result<()> {
        let unusable = |error: Status| {
            status!(
                DataLoss,
                "Unable to open table file {path}: {error}: perhaps your file is in a different file format and you \
                 need to use a different restore operator?",
                error = wire_form(&error)
            )
        };
        let table = files::map(path).and_then(|region| Table::open(Bytes::from_owner(region)));
        let table = table.map_err(unusable)?;
        let missing = || {
            status!(
                DataLoss,
                "Failed to find the saved tensor slices at the beginning of the checkpoint file: {path}"
            )
        };
        let listing = table.get(b"").map_err(|_| missing())?.ok_or_else(missing)?;
        let meta = match SavedTensorSlices::decode(listing.clone()) {
            Ok(listing) => listing.meta.unwrap_or_default(),
            // The index of a bundle is a table too; it lists nothing that this format knows.
            Err(_) if BundleHeaderProto::decode(listing.clone()).is_ok() => Default::default(),
            Err(error) => {
                return Err(status!(
                    DataLoss,
                    "Failed to parse initial chunk of {path}: {error}"
                ));
            }
        };
        let file = self.tables.len();
        self.tables.push(table);
        meta.tensor
            .iter()
            .try_for_each(|tensor| self.add_tensor(tensor, file))
    }

    fn add_tensor(&mut self, meta: &SavedSliceMeta, file: usize) -> Result<()> {
        let name = &meta.name;
        let shape = Shape::from_proto(meta.shape.as_ref().unwrap_or(&Default::default()))
            .map_err(|error| status!(DataLoss, "tensor {name}: {}", error.message()))?;
        let dtype = DataType(meta.r#type);
        let stored = self
            .tensors
            .entry(name.clone().into_bytes())
            .or_insert_with(|| Stored {
                dtype,
                shape: shape.clone(),
                slices: Vec::new(),
                files: Vec::new(),
            });
        ensure!(
            stored.dtype == dtype && stored.shape == shape,
            Internal,
            "Incompatible tensors detected for tensor {name}: existing = {} {}, new = {dtype} {shape}",
            stored.dtype,
            stored.shape
        );
        for slice in &meta.slice {
            stored.slices.push(TensorSlice::from_proto(slice)?);
            stored.files.push(file);
        }
        Ok(())
    }

    fn stored(&self, name: &[u8]) -> Result<&Stored> {
        let missing = || {
            status!(
                NotFound,
                "Tensor name \"{}\" not found in checkpoint files {}",
                String::from_utf8_lossy(name),
                self.pattern
            )
        };
        self.tensors.get(name).ok_or_else(missing)
    }

    /// The names of all tensors, in order.
    pub fn names(&self) -> Vec<Vec<u8>> {
        self.tensors.keys().cloned().collect()
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: impl AsRef<[u8]>) -> bool {
        self.tensors.contains_key(name.as_ref())
    }

    /// Element type and shape of a whole tensor. NOT_FOUND when there is none of this name.
    pub fn dtype_and_shape(&self, name: impl AsRef<[u8]>) -> Result<(DataType, Shape)> {
        let stored = self.stored(name.as_ref())?;
        Ok((stored.dtype, stored.shape.clone()))
    }

    /// A whole tensor. NOT_FOUND for a missing name, DATA_LOSS for damage, INVALID_ARGUMENT when slices are missing.
    pub fn read(&self, name: impl AsRef<[u8]>) -> Result<Tensor> {
        let rank = self.stored(name.as_ref())?.shape.rank();
        self.read_slice(name, &TensorSlice::full(rank))
    }

    /// A slice of a tensor, however that is stored. Errors as for [`V1Reader::read`]; INTERNAL when the slice does not
    /// lie in the tensor.
    pub fn read_slice(&self, name: impl AsRef<[u8]>, slice: &TensorSlice) -> Result<Tensor> {
        let name = name.as_ref();
        let stored = self.stored(name)?;
        let read = |number: usize| self.value(name, stored, number);
        let whole = assemble(stored.dtype, &stored.shape, slice, &stored.slices, read)?;
        whole.ok_or_else(|| {
            status!(
                InvalidArgument,
                "Error copying slice data: tensor {} has not all of slice {slice}",
                String::from_utf8_lossy(name)
            )
        })
    }

    /// The values of one stored slice.
    fn value(&self, name: &[u8], stored: &Stored, number: usize) -> Result<Tensor> {
        let slice = &stored.slices[number];
        let damaged = |reason: &str| {
            status!(
                DataLoss,
                "slice {slice} of tensor {}: {reason}",
                String::from_utf8_lossy(name)
            )
        };
        let bytes = self.tables[stored.files[number]].get(&tensor_slice_key(name, slice))?;
        let bytes = bytes.ok_or_else(|| damaged("no values"))?;
        let message =
            SavedTensorSlices::decode(bytes.clone()).map_err(|error| damaged(&error.to_string()))?;
        let data = message.data.and_then(|data| data.data);
        let data = data.ok_or_else(|| damaged("no values"))?;
        let shape = slice.shape_in(&stored.shape)?;
        if count_values(&data, stored.dtype) != shape.num_elements() {
            return Err(damaged("a wrong number of values"));
        }
        let data = TensorProto {
            dtype: stored.dtype.0,
            tensor_shape: Some(shape.to_proto()),
            ..data
        };
        Tensor::from_proto(&data)
    }
}

/// `DATA_LOSS: not an sstable (bad magic number)`.
fn wire_form(error: &Status) -> String {
    let code = match error.code() {
        Code::DataLoss => "DATA_LOSS",
        Code::NotFound => "NOT_FOUND",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        _ => "UNKNOWN",
    };
    format!("{code}: {}", error.message())
}

/// How many elements of a type the fields of a message hold.
fn count_values(proto: &TensorProto, dtype: DataType) -> usize {
    match dtype {
        DataType::FLOAT => proto.float_val.len(),
        DataType::DOUBLE => proto.double_val.len(),
        DataType::INT64 => proto.int64_val.len(),
        DataType::UINT32 => proto.uint32_val.len(),
        DataType::UINT64 => proto.uint64_val.len(),
        DataType::BOOL => proto.bool_val.len(),
        DataType::STRING => proto.string_val.len(),
        DataType::HALF | DataType::BFLOAT16 => proto.half_val.len(),
        DataType::COMPLEX64 => proto.scomplex_val.len() / 2,
        DataType::COMPLEX128 => proto.dcomplex_val.len() / 2,
        dtype if dtype.is_floating() => proto.float8_val.len(),
        _ => proto.int_val.len(),
    }
}
