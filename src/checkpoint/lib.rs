//! Checkpoints and records: the files that hold tensors and messages.
//!
//! - [`Checkpoint`] opens a checkpoint of either format; [`BundleReader`] and [`V1Reader`] are the formats.
//! - [`BundleWriter`] and [`V1Writer`] write the same bytes as TensorFlow for the same tensors in the same order;
//!   [`merge_bundles`] makes one bundle of several.
//! - [`TensorSlice`] and [`ShapeAndSlice`]: parts of tensors, as saving and restoring ops name them.
//! - [`RecordReader`], [`RecordWriter`]: TFRecord files, also compressed; [`EventsWriter`]: event files.
//!
//! Paths may be URIs of any file system that [`ff_platform::files`] knows. Readers take any bytes: damage is a status
//! (DATA_LOSS mostly), and memory is bounded by the size of the files. Names of tensors are byte strings.
//! Nothing here knows graphs, ops or variables.

mod bundle_format;
mod bundle_reader;
mod bundle_writer;
mod checkpoint;
mod crc;
mod events;
mod ordered_code;
mod record;
mod slice;
mod slice_copy;
mod table_format;
mod table_reader;
mod table_writer;
mod v1_reader;
mod v1_writer;

pub use bundle_reader::BundleReader;
pub use bundle_writer::{BundleWriter, merge_bundles};
pub use checkpoint::Checkpoint;
pub use events::EventsWriter;
pub use record::{Compression, RecordReader, RecordWriter};
pub use slice::{Extent, ShapeAndSlice, TensorSlice};
pub use v1_reader::V1Reader;
pub use v1_writer::V1Writer;
