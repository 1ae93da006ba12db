//! A checkpoint of either format.

use crate::bundle_format::index_path;
use crate::{BundleReader, TensorSlice, V1Reader};
use ff_platform::files;
use ff_tensor::{DataType, Result, Shape, Tensor};

/// A checkpoint of either format, open for reading.
pub enum Checkpoint {
    /// A tensor bundle.
    Bundle(BundleReader),
    /// The first format.
    V1(V1Reader),
}

impl Checkpoint {
    /// Opens the bundle `prefix` if its index exists, else the first-format files that match `prefix`.
    ///
    /// NOT_FOUND ("Unsuccessful TensorSliceReader constructor: Failed to find any matching files for <prefix>") when there
    /// is neither, DATA_LOSS for damage.
    pub fn open(prefix: &str) -> Result<Checkpoint> {
        if files::exists(&index_path(prefix)) {
            return BundleReader::open(prefix).map(Checkpoint::Bundle);
        }
        V1Reader::open(prefix).map(Checkpoint::V1)
    }

    /// The names of all tensors, in order. DATA_LOSS for damage.
    pub fn names(&self) -> Result<Vec<Vec<u8>>> {
        match self {
            Checkpoint::Bundle(reader) => reader.names(),
            Checkpoint::V1(reader) => Ok(reader.names()),
        }
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: impl AsRef<[u8]>) -> bool {
        match self {
            Checkpoint::Bundle(reader) => reader.contains(name),
            Checkpoint::V1(reader) => reader.contains(name),
        }
    }

    /// Element type and shape of a whole tensor. NOT_FOUND when there is none of this name.
    pub fn dtype_and_shape(&self, name: impl AsRef<[u8]>) -> Result<(DataType, Shape)> {
        match self {
            Checkpoint::Bundle(reader) => reader.dtype_and_shape(name),
            Checkpoint::V1(reader) => reader.dtype_and_shape(name),
        }
    }

    /// A whole tensor; see [`BundleReader::read`] for the errors.
    pub fn read(&self, name: impl AsRef<[u8]>) -> Result<Tensor> {
        match self {
            Checkpoint::Bundle(reader) => reader.read(name),
            Checkpoint::V1(reader) => reader.read(name),
        }
    }

    /// A slice of a tensor, however that is stored; see [`BundleReader::read_slice`] for the errors.
    pub fn read_slice(&self, name: impl AsRef<[u8]>, slice: &TensorSlice) -> Result<Tensor> {
        match self {
            Checkpoint::Bundle(reader) => reader.read_slice(name, slice),
            Checkpoint::V1(reader) => reader.read_slice(name, slice),
        }
    }
}
