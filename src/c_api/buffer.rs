//! `TF_Buffer`: bytes with the function that frees them.

use crate::ffi::{Blob, given, given_mut, missing};
use crate::guard::quiet;
use ff_proto::{Bytes, Message};
use ff_tensor::{Result, ensure, status};
use std::ffi::c_void;
use std::ptr::null;

/// Bytes, most often a serialized message, with the function that frees them. Programs may fill the fields
/// themselves. Not for use by two threads at once.
#[repr(C)]
pub struct TF_Buffer {
    /// First byte; NULL when there are none.
    pub data: *const c_void,
    /// Number of bytes.
    pub length: usize,
    /// Frees `data`; NULL when nothing is to be freed.
    pub data_deallocator: Option<unsafe extern "C" fn(data: *mut c_void, length: usize)>,
}

impl TF_Buffer {
    /// A buffer without bytes.
    pub const fn empty() -> TF_Buffer {
        TF_Buffer {
            data: null(),
            length: 0,
            data_deallocator: None,
        }
    }

    /// A buffer with a copy of these bytes. RESOURCE_EXHAUSTED when memory is out.
    pub fn of_bytes(bytes: &[u8]) -> Result<TF_Buffer> {
        TF_Buffer::filled(bytes.len(), |room| room.copy_from_slice(bytes))
    }

    /// A buffer with the encoding of a message. RESOURCE_EXHAUSTED when memory is out.
    pub fn of_message(message: &impl Message) -> Result<TF_Buffer> {
        TF_Buffer::filled(message.encoded_len(), |mut room| {
            // There is room for all of it.
            let _ = message.encode(&mut room);
        })
    }

    /// `length` bytes from `malloc` that `fill` fills, whatever they held.
    fn filled(length: usize, fill: impl FnOnce(&mut [u8])) -> Result<TF_Buffer> {
        // SAFETY: any size may be asked for.
        let data = unsafe { libc::calloc(length.max(1), 1) };
        ensure!(
            !data.is_null(),
            ResourceExhausted,
            "OOM when allocating {length} bytes"
        );
        // SAFETY: a fresh block of at least `length` bytes, all zero.
        fill(unsafe { std::slice::from_raw_parts_mut(data.cast(), length) });
        Ok(TF_Buffer {
            data,
            length,
            data_deallocator: Some(free_bytes),
        })
    }

    /// The bytes. INVALID_ARGUMENT for NULL with a length.
    pub fn bytes(&self) -> Result<&[u8]> {
        if self.length == 0 {
            return Ok(&[]);
        }
        ensure!(
            !self.data.is_null(),
            InvalidArgument,
            "a buffer has a length but no data"
        );
        // SAFETY: who filled the buffer put `length` bytes at `data`.
        Ok(unsafe { std::slice::from_raw_parts(self.data.cast(), self.length) })
    }

    /// Decodes the bytes of a buffer. INVALID_ARGUMENT, with this text, for other bytes.
    pub fn decode<M: Message + Default>(&self, text: &str) -> Result<M> {
        decode(self.bytes()?, text)
    }
}

/// Decodes a message. INVALID_ARGUMENT, with this text, for other bytes.
pub(crate) fn decode<M: Message + Default>(bytes: &[u8], text: &str) -> Result<M> {
    M::decode(Bytes::copy_from_slice(bytes)).map_err(|_| status!(InvalidArgument, "{text}"))
}

/// Puts a message into a buffer that a caller gave to be filled. INVALID_ARGUMENT unless it is empty.
pub(crate) fn fill(buffer: Option<&mut TF_Buffer>, message: &impl Message) -> Result<()> {
    let buffer = given_mut(buffer, "the buffer")?;
    ensure!(
        buffer.data.is_null(),
        InvalidArgument,
        "Passing non-empty TF_Buffer is invalid."
    );
    *buffer = TF_Buffer::of_message(message)?;
    Ok(())
}

/// As [`fill`], with these bytes.
pub(crate) fn fill_bytes(buffer: Option<&mut TF_Buffer>, bytes: &[u8]) -> Result<()> {
    let buffer = given_mut(buffer, "the buffer")?;
    ensure!(
        buffer.data.is_null(),
        InvalidArgument,
        "Passing non-empty TF_Buffer is invalid."
    );
    *buffer = TF_Buffer::of_bytes(bytes)?;
    Ok(())
}

/// Frees what `malloc` gave.
unsafe extern "C" fn free_bytes(data: *mut c_void, _length: usize) {
    // SAFETY: the buffer owned this block.
    unsafe { libc::free(data) };
}

/// A buffer with a copy of `proto_len` bytes; NULL when memory is out or `proto` is NULL with a length. Free it with
/// `TF_DeleteBuffer`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewBufferFromString(proto: Blob, proto_len: usize) -> Option<Box<TF_Buffer>> {
    quiet(None, || {
        let bytes = proto.bytes(proto_len, "proto")?;
        Ok(Some(Box::new(TF_Buffer::of_bytes(bytes)?)))
    })
}

/// A buffer without bytes. Free it with `TF_DeleteBuffer`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewBuffer() -> Box<TF_Buffer> {
    Box::new(TF_Buffer::empty())
}

/// Frees a buffer, and its bytes by its deallocator; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteBuffer(buffer: Option<Box<TF_Buffer>>) {
    quiet((), || {
        let buffer = buffer.ok_or_else(|| missing("buffer"))?;
        if let (Some(deallocator), false) = (buffer.data_deallocator, buffer.data.is_null()) {
            // SAFETY: the deallocator that came with these bytes.
            unsafe { deallocator(buffer.data.cast_mut(), buffer.length) };
        }
        Ok(())
    });
}

/// The fields of a buffer, which keeps its bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetBuffer(buffer: Option<&mut TF_Buffer>) -> TF_Buffer {
    quiet(TF_Buffer::empty(), || {
        let buffer = given(buffer.as_deref(), "buffer")?;
        Ok(TF_Buffer {
            data: buffer.data,
            length: buffer.length,
            data_deallocator: buffer.data_deallocator,
        })
    })
}
