//! What reader and writer of tensor bundles share: names of files, and the layout of strings and variants.
//!
//! A bundle is an index (`prefix.index`, a table) and data shards (`prefix.data-00000-of-00001`). Under the empty key
//! the index has a `BundleHeaderProto`, under the name of each tensor a `BundleEntryProto`. A partitioned tensor has an
//! entry that lists its slices, and an entry per slice under [`crate::ordered_code::tensor_slice_key`].
//!
//! Strings are stored as all lengths (varints), the masked crc32c of the lengths (as 32-bit numbers, or 64-bit where
//! one is larger), then all bytes. The checksum of a string tensor is over the lengths in that form, the stored
//! checksum and the bytes. Each variant is its length, its message, and the checksum so far.

use crate::crc;
use crate::table_format::{put_varint, take_varint};
use ff_proto::{Message, VariantTensorDataProto};
use ff_tensor::{Result, Shape, Status, TString, Tensor, VariantProto, VariantValue, ensure, status};

/// The version of the format that we write, and the newest that we read.
pub const VERSION: i32 = 1;

/// The index file of a checkpoint.
pub fn index_path(prefix: &str) -> String {
    format!("{prefix}.index")
}

/// One of the data files of a checkpoint.
pub fn data_path(prefix: &str, shard: i32, shards: i32) -> String {
    format!("{prefix}.data-{shard:05}-of-{shards:05}")
}

/// A length as it enters the checksum.
fn length_bytes(length: u64) -> ([u8; 8], usize) {
    let size = if length <= u64::from(u32::MAX) { 4 } else { 8 };
    (length.to_le_bytes(), size)
}

/// Extends a checksum by a length.
fn extend_by_length(crc: u32, length: u64) -> u32 {
    let (bytes, size) = length_bytes(length);
    crc::extend(crc, &bytes[..size])
}

/// Strings as they are stored, and their checksum.
pub fn encode_strings(strings: &[TString]) -> (Vec<u8>, u32) {
    let mut content = Vec::new();
    let mut checksum = 0;
    for string in strings {
        let length = string.len() as u64;
        put_varint(&mut content, length);
        checksum = extend_by_length(checksum, length);
    }
    let stored = crc::mask(checksum).to_le_bytes();
    content.extend_from_slice(&stored);
    checksum = crc::extend(checksum, &stored);
    for string in strings {
        content.extend_from_slice(string.as_bytes());
        checksum = crc::extend(checksum, string.as_bytes());
    }
    (content, checksum)
}

fn truncated() -> Status {
    status!(DataLoss, "the stored elements end too early")
}

/// Strings from their stored form, and the checksum. DATA_LOSS when they are damaged.
pub fn decode_strings(content: &[u8], shape: Shape) -> Result<(Tensor, u32)> {
    let count = shape.num_elements();
    // Each length takes at least one byte: this bounds the allocation by the file.
    ensure!(
        count <= content.len(),
        DataLoss,
        "the stored elements end too early"
    );
    let mut rest = content;
    let mut lengths = Vec::with_capacity(count);
    let mut checksum = 0;
    for _ in 0..count {
        let length = take_varint(&mut rest).ok_or_else(truncated)?;
        checksum = extend_by_length(checksum, length);
        lengths.push(length);
    }
    let (stored, mut rest) = rest.split_first_chunk::<4>().ok_or_else(truncated)?;
    let expected = crc::unmask(u32::from_le_bytes(*stored));
    ensure!(
        expected == checksum,
        DataLoss,
        "The length checksum does not match: expected {expected:08} but actual is {checksum:08}"
    );
    checksum = crc::extend(checksum, stored);
    let mut strings = Vec::with_capacity(count);
    for length in lengths {
        let length = usize::try_from(length).map_err(|_| truncated())?;
        let (string, after) = rest.split_at_checked(length).ok_or_else(truncated)?;
        checksum = crc::extend(checksum, string);
        strings.push(TString::from(string));
        rest = after;
    }
    ensure!(
        rest.is_empty(),
        DataLoss,
        "{} bytes follow the stored strings",
        rest.len()
    );
    Ok((Tensor::from_strings(shape, strings)?, checksum))
}

/// Variants as they are stored, and their checksum.
pub fn encode_variants(values: &[VariantValue]) -> (Vec<u8>, u32) {
    let mut content = Vec::new();
    let mut checksum = 0;
    for value in values {
        let message = value.to_proto().encode_to_vec();
        let length = message.len() as u64;
        put_varint(&mut content, length);
        checksum = crc::extend(checksum, &length.to_le_bytes());
        content.extend_from_slice(&message);
        checksum = crc::extend(checksum, &message);
        let stored = crc::mask(checksum).to_le_bytes();
        content.extend_from_slice(&stored);
        checksum = crc::extend(checksum, &stored);
    }
    (content, checksum)
}

/// Variants from their stored form, and the checksum. DATA_LOSS when they are damaged.
pub fn decode_variants(content: &[u8], shape: Shape) -> Result<(Tensor, u32)> {
    let count = shape.num_elements();
    ensure!(
        count <= content.len(),
        DataLoss,
        "the stored elements end too early"
    );
    let mut rest = content;
    let mut values = Vec::with_capacity(count);
    let mut checksum = 0;
    for _ in 0..count {
        let length = take_varint(&mut rest).ok_or_else(truncated)?;
        checksum = crc::extend(checksum, &length.to_le_bytes());
        let length = usize::try_from(length).map_err(|_| truncated())?;
        let (message, after) = rest.split_at_checked(length).ok_or_else(truncated)?;
        checksum = crc::extend(checksum, message);
        let (stored, after) = after.split_first_chunk::<4>().ok_or_else(truncated)?;
        let expected = crc::unmask(u32::from_le_bytes(*stored));
        ensure!(
            expected == checksum,
            DataLoss,
            "The variant checksum does not match: expected {expected:08} but actual is {checksum:08}"
        );
        checksum = crc::extend(checksum, stored);
        let proto = VariantTensorDataProto::decode(message)
            .map_err(|error| status!(DataLoss, "a variant's message is damaged: {error}"))?;
        values.push(VariantValue::new(VariantProto(proto)));
        rest = after;
    }
    ensure!(
        rest.is_empty(),
        DataLoss,
        "{} bytes follow the stored variants",
        rest.len()
    );
    Ok((Tensor::from_variants(shape, values)?, checksum))
}
