//! Writing tensor bundles, byte for byte as the reference does.

use crate::bundle_format::{VERSION, data_path, encode_strings, encode_variants, index_path};
use crate::ordered_code::tensor_slice_key;
use crate::table_writer::TableWriter;
use crate::{BundleReader, TensorSlice, crc};
use ff_platform::{WritableFile, files};
use ff_proto::{BundleEntryProto, BundleHeaderProto, Message, VersionDef};
use ff_tensor::{Code, DataType, Result, Shape, Tensor, bail, ensure};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

type Entries = BTreeMap<Vec<u8>, BundleEntryProto>;

/// Writes a tensor bundle with one data file.
///
/// Files appear under their names only when [`BundleWriter::finish`] succeeds; until then, and after an error, what was
/// at the prefix before is untouched.
pub struct BundleWriter {
    prefix: String,
    entries: Entries,
    data: Option<Box<dyn WritableFile>>,
    temporary: String,
    size: i64,
    alignment: i64,
}

/// Makes the folder of a prefix if needed, but not the folders that it lies in: NOT_FOUND without those.
fn make_folder_of(prefix: &str) -> Result<()> {
    match prefix.rsplit_once('/') {
        Some((folder, _)) if !folder.is_empty() && !files::is_directory(folder) => {
            match files::create_directory(folder) {
                Err(error) if error.code() == Code::AlreadyExists => Ok(()),
                result => result,
            }
        }
        _ => Ok(()),
    }
}

impl BundleWriter {
    /// Starts a bundle; makes the folder of the prefix if needed, in a folder that exists.
    pub fn create(prefix: &str) -> Result<BundleWriter> {
        BundleWriter::create_aligned(prefix, 1)
    }

    /// As `create`; each tensor starts at a multiple of `alignment` bytes. INVALID_ARGUMENT when that is 0.
    pub fn create_aligned(prefix: &str, alignment: u32) -> Result<BundleWriter> {
        ensure!(
            alignment > 0,
            InvalidArgument,
            "the alignment of a bundle cannot be 0"
        );
        make_folder_of(prefix)?;
        let temporary = files::temporary_beside(&data_path(prefix, 0, 1));
        Ok(BundleWriter {
            prefix: prefix.to_string(),
            entries: BTreeMap::new(),
            data: Some(files::create(&temporary)?),
            temporary,
            size: 0,
            alignment: i64::from(alignment),
        })
    }

    /// Adds a tensor. INVALID_ARGUMENT for a name that is empty or was added before, or for a type that cannot be saved.
    pub fn add(&mut self, name: impl AsRef<[u8]>, tensor: &Tensor) -> Result<()> {
        let name = name.as_ref();
        ensure!(
            !name.is_empty(),
            InvalidArgument,
            "The key of a tensor cannot be empty"
        );
        ensure!(
            !self.entries.contains_key(name),
            InvalidArgument,
            "Adding duplicate key: {}",
            String::from_utf8_lossy(name)
        );
        let encoded;
        let (content, checksum) = match tensor.dtype() {
            DataType::STRING => {
                encoded = encode_strings(tensor.strings()?);
                (&encoded.0[..], encoded.1)
            }
            DataType::VARIANT => {
                encoded = encode_variants(tensor.variants()?);
                (&encoded.0[..], encoded.1)
            }
            dtype if dtype.is_plain() => (tensor.bytes(), crc::crc32c(tensor.bytes())),
            other => bail!(InvalidArgument, "a tensor of type {other} cannot be saved"),
        };
        self.pad()?;
        let entry = BundleEntryProto {
            dtype: tensor.dtype().0,
            shape: Some(tensor.shape().to_proto()),
            offset: self.size,
            size: content.len() as i64,
            crc32c: crc::mask(checksum),
            ..Default::default()
        };
        if let Some(data) = &mut self.data {
            data.append(content)?;
        }
        self.size += content.len() as i64;
        self.entries.insert(name.to_vec(), entry);
        Ok(())
    }

    /// Adds a slice of the tensor `name`, whose whole shape is `shape`. A full slice is stored as a whole tensor.
    ///
    /// INVALID_ARGUMENT when another slice of it had another type or whole shape or was the same, or the name belongs to
    /// a tensor that is not partitioned; INTERNAL when the slice does not lie in the shape.
    pub fn add_slice(
        &mut self,
        name: impl AsRef<[u8]>,
        shape: &Shape,
        slice: &TensorSlice,
        tensor: &Tensor,
    ) -> Result<()> {
        let name = name.as_ref();
        let slice_shape = slice.shape_in(shape)?;
        ensure!(
            &slice_shape == tensor.shape() && !name.is_empty(),
            InvalidArgument,
            "Slice {slice} of shape {shape} does not match the shape of the tensor to save: {}",
            tensor.shape()
        );
        if slice.is_full() {
            return self.add(name, tensor);
        }
        let new = BundleEntryProto {
            dtype: tensor.dtype().0,
            shape: Some(shape.to_proto()),
            slices: vec![slice.to_proto()],
            ..Default::default()
        };
        check_mergeable(name, self.entries.get(name), &new)?;
        self.add(tensor_slice_key(name, slice), tensor)?;
        merge_entry(&mut self.entries, name, new);
        Ok(())
    }

    fn pad(&mut self) -> Result<()> {
        let padding = (self.alignment - self.size % self.alignment) % self.alignment;
        if padding > 0
            && let Some(data) = &mut self.data
        {
            data.append(&vec![0; padding as usize])?;
            self.size += padding;
        }
        Ok(())
    }

    /// Writes the index and puts both files in place.
    pub fn finish(mut self) -> Result<()> {
        if let Some(data) = self.data.take() {
            data.close()?;
        }
        let header = BundleHeaderProto {
            num_shards: 1,
            version: Some(VersionDef {
                producer: VERSION,
                ..Default::default()
            }),
            ..Default::default()
        };
        let place_data = || files::rename(&self.temporary, &data_path(&self.prefix, 0, 1));
        write_index(&self.prefix, &header, &self.entries, place_data)?;
        self.temporary.clear();
        Ok(())
    }
}

impl Drop for BundleWriter {
    fn drop(&mut self) {
        self.data = None;
        if !self.temporary.is_empty() {
            // An unfinished bundle leaves nothing; nobody is there to hear of an error.
            let _ = files::delete(&self.temporary);
        }
    }
}

/// Writes the index beside its place, has the data put in place, then puts the index there.
fn write_index(
    prefix: &str,
    header: &BundleHeaderProto,
    entries: &Entries,
    place_data: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let path = index_path(prefix);
    let temporary = files::temporary_beside(&path);
    let written = (|| {
        let mut table = TableWriter::new(files::create(&temporary)?);
        table.add(b"", &header.encode_to_vec())?;
        for (key, entry) in entries {
            table.add(key, &entry.encode_to_vec())?;
        }
        table.finish()?;
        place_data()?;
        files::rename(&temporary, &path)
    })();
    if written.is_err() {
        let _ = files::delete(&temporary);
    }
    written
}

/// Whether slices of `new` can join what is there under the name.
fn check_mergeable(name: &[u8], old: Option<&BundleEntryProto>, new: &BundleEntryProto) -> Result<()> {
    let Some(old) = old else { return Ok(()) };
    let name = String::from_utf8_lossy(name);
    ensure!(
        !old.slices.is_empty() && !new.slices.is_empty(),
        InvalidArgument,
        "Duplicate tensor keyed by {name}"
    );
    ensure!(
        old.dtype == new.dtype && old.shape == new.shape,
        InvalidArgument,
        "Slices of {name} differ in the type or shape of the whole tensor"
    );
    Ok(())
}

fn merge_entry(entries: &mut Entries, name: &[u8], new: BundleEntryProto) {
    match entries.entry(name.to_vec()) {
        Entry::Occupied(mut old) => old.get_mut().slices.extend(new.slices),
        Entry::Vacant(place) => {
            place.insert(new);
        }
    }
}

/// Makes one bundle of several: their data files are renamed, their indexes joined and deleted.
///
/// Slices of one tensor may come from several bundles. INVALID_ARGUMENT for a name that two have, for conflicting
/// versions or byte orders, and for a missing bundle (left out instead when `allow_missing`).
pub fn merge_bundles(prefixes: &[impl AsRef<str>], merged: &str, allow_missing: bool) -> Result<()> {
    let mut entries = Entries::new();
    let mut shards: Vec<String> = Vec::new();
    let mut header: Option<BundleHeaderProto> = None;
    for prefix in prefixes.iter().map(AsRef::as_ref) {
        if !files::exists(&index_path(prefix)) {
            ensure!(
                allow_missing,
                InvalidArgument,
                "allow_missing_files was set to false and {prefix} did not exist.NOT_FOUND: {prefix} not found"
            );
            continue;
        }
        let bundle = BundleReader::open(prefix)?;
        check_headers(header.as_ref(), bundle.header())?;
        header.get_or_insert_with(|| bundle.header().clone());
        merge_into(&mut entries, &mut shards, &bundle)?;
    }
    let Some(mut header) = header else {
        bail!(
            InvalidArgument,
            "At least one prefix checkpoint file must exist, but none existed."
        );
    };
    make_folder_of(merged)?;
    header.num_shards = shards.len() as i32;
    write_index(merged, &header, &entries, || {
        for (number, shard) in shards.iter().enumerate() {
            files::rename(shard, &data_path(merged, number as i32, shards.len() as i32))?;
        }
        Ok(())
    })?;
    for prefix in prefixes
        .iter()
        .map(AsRef::as_ref)
        .filter(|&prefix| prefix != merged)
    {
        // What was merged may stay; the new bundle is complete without this.
        let _ = files::delete(&index_path(prefix));
    }
    Ok(())
}

fn check_headers(first: Option<&BundleHeaderProto>, next: &BundleHeaderProto) -> Result<()> {
    let Some(first) = first else { return Ok(()) };
    ensure!(
        first.endianness == next.endianness,
        InvalidArgument,
        "Merging bundles with conflicting endianness; inputs corrupted?"
    );
    ensure!(
        first.version == next.version,
        InvalidArgument,
        "Merging bundles with different format versions: merged {:?} vs. curr {:?}",
        first.version,
        next.version
    );
    Ok(())
}

/// Adds the entries of one bundle, with the numbers that its data files get in the merged one.
fn merge_into(entries: &mut Entries, shards: &mut Vec<String>, bundle: &BundleReader) -> Result<()> {
    for (key, mut entry) in bundle.entries()? {
        check_mergeable(&key, entries.get(&key), &entry).map_err(|error| {
            error.suffixed(&format!(" encountered, when merging prefix: {}", bundle.prefix()))
        })?;
        if entry.slices.is_empty() {
            let path = data_path(bundle.prefix(), entry.shard_id, bundle.header().num_shards);
            let known = shards.iter().position(|shard| *shard == path);
            entry.shard_id = known.unwrap_or(shards.len()) as i32;
            if known.is_none() {
                shards.push(path);
            }
        }
        merge_entry(entries, &key, entry);
    }
    Ok(())
}
