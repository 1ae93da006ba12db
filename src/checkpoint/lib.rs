//! Checkpoints and records: the files that hold tensors and messages.

mod bundle_format;
mod bundle_reader;
mod bundle_writer;
mod crc;
mod ordered_code;
mod slice;
mod slice_copy;
mod table_format;
mod table_reader;
mod table_writer;

pub use bundle_reader::BundleReader;
pub use bundle_writer::{BundleWriter, merge_bundles};
pub use slice::{Extent, ShapeAndSlice, TensorSlice};
