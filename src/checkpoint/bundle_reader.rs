//! Reading tensor bundles.

use crate::bundle_format::{VERSION, data_path, decode_strings, decode_variants, index_path};
use crate::ordered_code::tensor_slice_key;
use crate::slice_copy::{assemble, slice_of};
use crate::table_reader::Table;
use crate::{TensorSlice, crc};
use bytes::Bytes;
use ff_platform::files;
use ff_proto::bundle_header_proto::Endianness;
use ff_proto::{BundleEntryProto, BundleHeaderProto, Message, VersionDef};
use ff_tensor::{Buffer, DataType, Result, Shape, Status, Tensor, bail, ensure, status};
use std::collections::HashSet;
use std::sync::OnceLock;

/// A tensor bundle, open for reading by any number of threads.
///
/// Files are mapped; tensors are views of them where alignment allows, else copies. Each tensor's checksum is verified
/// when it is read.
pub struct BundleReader {
    prefix: String,
    index: Table,
    header: BundleHeaderProto,
    shards: Vec<OnceLock<Bytes>>,
}

/// More data files than any checkpoint has; keeps a damaged header from costing memory.
const MAX_SHARDS: i32 = 1 << 20;

impl BundleReader {
    /// Opens `prefix.index`. NOT_FOUND when it is not there, DATA_LOSS when it is damaged, INVALID_ARGUMENT when it is of
    /// a newer format.
    pub fn open(prefix: &str) -> Result<BundleReader> {
        let path = index_path(prefix);
        let damaged = |part: &str, error: &str| {
            status!(
                DataLoss,
                "Unable to read file ({path}). Perhaps the file is corrupt or was produced by a newer version of \
                 TensorFlow with format changes ({part}): {error}"
            )
        };
        let index = Table::open(Bytes::from_owner(files::map(&path)?))?;
        let header = index.get(b"");
        let header = header.map_err(|error| damaged("failed to seek to header entry", error.message()))?;
        let Some(header) = header else {
            return Err(damaged("failed to seek to header entry", "there is none"));
        };
        let header = BundleHeaderProto::decode(header.clone())
            .map_err(|error| damaged("unable to parse header", &error.to_string()))?;
        check_version(header.version.as_ref())?;
        ensure!(
            (0..=MAX_SHARDS).contains(&header.num_shards),
            DataLoss,
            "{path} claims {} data files",
            header.num_shards
        );
        Ok(BundleReader {
            prefix: prefix.to_string(),
            index,
            shards: (0..header.num_shards).map(|_| OnceLock::new()).collect(),
            header,
        })
    }

    /// The prefix that was opened.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The header.
    pub fn header(&self) -> &BundleHeaderProto {
        &self.header
    }

    /// All entries but the header, with their keys (those of slices too), in order. DATA_LOSS for damage.
    pub fn entries(&self) -> Result<Vec<(Vec<u8>, BundleEntryProto)>> {
        let mut entries = Vec::new();
        for block in self.index.blocks() {
            for entry in block?.iter().filter(|entry| !entry.key.is_empty()) {
                entries.push((entry.key.clone(), parse_entry(&entry.key, &entry.value)?));
            }
        }
        Ok(entries)
    }

    /// The names of all tensors, in order; a partitioned tensor counts once. DATA_LOSS for damage.
    pub fn names(&self) -> Result<Vec<Vec<u8>>> {
        let entries = self.entries()?;
        let mut parts = HashSet::new();
        for (key, entry) in &entries {
            for slice in &entry.slices {
                parts.insert(tensor_slice_key(key, &TensorSlice::from_proto(slice)?));
            }
        }
        let names = entries.into_iter().map(|(key, _)| key);
        Ok(names.filter(|key| !parts.contains(key)).collect())
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: impl AsRef<[u8]>) -> bool {
        let name = name.as_ref();
        !name.is_empty() && matches!(self.index.get(name), Ok(Some(_)))
    }

    /// The entry of a key. NOT_FOUND ("Key x not found in checkpoint") when there is none.
    pub fn entry(&self, key: impl AsRef<[u8]>) -> Result<BundleEntryProto> {
        let key = key.as_ref();
        let value = if key.is_empty() {
            None
        } else {
            self.index.get(key)?
        };
        let missing = || status!(NotFound, "Key {} not found in checkpoint", printed(key));
        parse_entry(key, value.ok_or_else(missing)?)
    }

    /// Element type and shape of a tensor; those of the whole for a partitioned one.
    pub fn dtype_and_shape(&self, name: impl AsRef<[u8]>) -> Result<(DataType, Shape)> {
        let name = name.as_ref();
        let entry = self.entry(name)?;
        Ok((DataType(entry.dtype), shape_of(name, &entry)?))
    }

    /// A whole tensor, put together from its slices if it is partitioned.
    ///
    /// NOT_FOUND for a missing name or data file, OUT_OF_RANGE for a data file that is too short, DATA_LOSS for damage,
    /// INVALID_ARGUMENT when slices are missing.
    pub fn read(&self, name: impl AsRef<[u8]>) -> Result<Tensor> {
        let name = name.as_ref();
        let entry = self.entry(name)?;
        if entry.slices.is_empty() {
            return self.value(name, &entry);
        }
        self.partitioned(name, &entry, &TensorSlice::full(shape_of(name, &entry)?.rank()))
    }

    /// A slice of a tensor, however that is stored. Errors as for [`BundleReader::read`]; INTERNAL when the slice does
    /// not lie in the tensor.
    pub fn read_slice(&self, name: impl AsRef<[u8]>, slice: &TensorSlice) -> Result<Tensor> {
        let name = name.as_ref();
        let entry = self.entry(name)?;
        if entry.slices.is_empty() {
            return slice_of(&self.value(name, &entry)?, slice);
        }
        self.partitioned(name, &entry, slice)
    }

    fn partitioned(&self, name: &[u8], entry: &BundleEntryProto, wanted: &TensorSlice) -> Result<Tensor> {
        let shape = shape_of(name, entry)?;
        let stored = entry
            .slices
            .iter()
            .map(TensorSlice::from_proto)
            .collect::<Result<Vec<_>>>()?;
        let read = |number: usize| {
            let key = tensor_slice_key(name, &stored[number]);
            let part = self.entry(&key)?;
            ensure!(
                part.slices.is_empty(),
                DataLoss,
                "a slice of {} has slices",
                printed(name)
            );
            let tensor = self.value(&key, &part)?;
            ensure!(
                part.dtype == entry.dtype && tensor.shape() == &stored[number].shape_in(&shape)?,
                DataLoss,
                "slice {} of {} has type {} and shape {}",
                stored[number],
                printed(name),
                tensor.dtype(),
                tensor.shape()
            );
            Ok(tensor)
        };
        match assemble(DataType(entry.dtype), &shape, wanted, &stored, read)? {
            Some(tensor) => Ok(tensor),
            None => bail!(
                InvalidArgument,
                "Does not have sufficient slices for partitioned tensor {} to restore in slice_spec: {wanted}",
                printed(name)
            ),
        }
    }

    /// The bytes of a data file.
    fn shard(&self, number: i32) -> Result<&Bytes> {
        let cell = usize::try_from(number)
            .ok()
            .and_then(|number| self.shards.get(number));
        let Some(cell) = cell else {
            bail!(DataLoss, "{} has no data file {number}", self.prefix);
        };
        if let Some(bytes) = cell.get() {
            return Ok(bytes);
        }
        let region = files::map(&data_path(&self.prefix, number, self.header.num_shards))?;
        Ok(cell.get_or_init(|| Bytes::from_owner(region)))
    }

    /// The tensor that an entry without slices describes.
    fn value(&self, key: &[u8], entry: &BundleEntryProto) -> Result<Tensor> {
        let (dtype, shape) = (DataType(entry.dtype), shape_of(key, entry)?);
        if dtype.is_plain() {
            let expected = shape.num_elements().checked_mul(dtype.size());
            ensure!(
                !dtype.is_ref() && expected.is_some_and(|expected| i64::try_from(expected) == Ok(entry.size)),
                DataLoss,
                "Invalid size in bundle entry: key {}; stored size {}; expected size {}",
                printed(key),
                entry.size,
                expected.unwrap_or(usize::MAX)
            );
        }
        let shard = self.shard(entry.shard_id)?;
        let start = usize::try_from(entry.offset).ok();
        let end = start
            .zip(usize::try_from(entry.size).ok())
            .and_then(|(start, size)| start.checked_add(size));
        let (Some(start), Some(end)) = (start, end) else {
            bail!(DataLoss, "Invalid place in bundle entry: key {}", printed(key));
        };
        ensure!(end <= shard.len(), OutOfRange, "Read less bytes than requested");
        let content = shard.slice(start..end);
        let (tensor, checksum) = match dtype {
            DataType::STRING => decode_strings(&content, shape)?,
            DataType::VARIANT => decode_variants(&content, shape)?,
            _ if dtype.is_plain() => {
                let checksum = crc::crc32c(&content);
                (plain_tensor(dtype, shape, content, self.is_swapped())?, checksum)
            }
            other => bail!(
                DataLoss,
                "a checkpoint cannot hold type {other}: key {}",
                printed(key)
            ),
        };
        let stored = crc::unmask(entry.crc32c);
        ensure!(
            stored == checksum,
            DataLoss,
            "TensorBundle at {} shard {} ({} bytes): Checksum does not match: stored {stored:08} vs. calculated on \
             the restored bytes {checksum}",
            self.prefix,
            entry.shard_id,
            entry.size
        );
        Ok(tensor)
    }

    /// Whether numbers were written by a machine of the other byte order.
    fn is_swapped(&self) -> bool {
        (self.header.endianness == Endianness::Big as i32) != cfg!(target_endian = "big")
    }
}

/// A tensor of plain elements from its bytes: a view if they are aligned and in this machine's order.
fn plain_tensor(dtype: DataType, shape: Shape, content: Bytes, swapped: bool) -> Result<Tensor> {
    if !swapped && !content.is_empty() && (content.as_ptr() as usize).is_multiple_of(dtype.size().min(8)) {
        // SAFETY: the mapping is read-only, and the box keeps it alive at its address.
        let buffer = unsafe { Buffer::shared(content.as_ptr(), content.len(), Box::new(content.clone())) };
        return Tensor::view_of(dtype, shape, buffer);
    }
    let mut tensor = Tensor::allocate(dtype, shape)?;
    if let Some(bytes) = tensor.bytes_mut() {
        bytes.copy_from_slice(&content);
        let number = if dtype.is_complex() {
            dtype.size() / 2
        } else {
            dtype.size()
        };
        if swapped {
            bytes.chunks_exact_mut(number).for_each(<[u8]>::reverse);
        }
    }
    Ok(tensor)
}

fn parse_entry(key: &[u8], value: &Bytes) -> Result<BundleEntryProto> {
    BundleEntryProto::decode(value.clone())
        .map_err(|error| status!(DataLoss, "Entry for key {} not parseable: {error}", printed(key)))
}

fn shape_of(key: &[u8], entry: &BundleEntryProto) -> Result<Shape> {
    let shape = entry.shape.clone().unwrap_or_default();
    let damaged = |error: Status| {
        status!(
            DataLoss,
            "Invalid tensor shape: {} {}",
            printed(key),
            error.message()
        )
    };
    Shape::from_proto(&shape).map_err(damaged)
}

fn printed(key: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(key)
}

/// INVALID_ARGUMENT when the version says that we cannot read it.
fn check_version(version: Option<&VersionDef>) -> Result<()> {
    let Some(version) = version else { return Ok(()) };
    ensure!(
        version.min_consumer <= VERSION,
        InvalidArgument,
        "Checkpoint min consumer version {} above current version {VERSION} for TensorFlow 2.21.0.  Please upgrade \
         TensorFlow.",
        version.min_consumer
    );
    ensure!(
        !version.bad_consumers.contains(&VERSION),
        InvalidArgument,
        "Checkpoint disallows consumer version {VERSION}.  Please upgrade TensorFlow: this version is likely buggy."
    );
    Ok(())
}
