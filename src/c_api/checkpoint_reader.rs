//! `TF_CheckpointReader`: what a checkpoint holds, without a session.

use crate::TF_Status;
use crate::datatype::{TF_DataType, to_c};
use crate::ffi::{Enum, Handle, Room, Text, c_count, given};
use crate::guard::{guard, quiet};
use crate::tensor::TF_Tensor;
use ff_checkpoint::Checkpoint;
use ff_tensor::{Result, ensure};
use std::ffi::{CString, c_char, c_int};
use std::ptr::null;

/// An open checkpoint. Threads may read one at the same time.
pub struct TF_CheckpointReader {
    checkpoint: Checkpoint,
    names: Vec<CString>,
}

/// Opens a checkpoint of either format by its prefix. Free it with `TF_DeleteCheckpointReader`. NULL with NOT_FOUND when there
/// is none, DATA_LOSS when it is damaged.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewCheckpointReader(
    filename: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_CheckpointReader>> {
    guard(status, || {
        let checkpoint = Checkpoint::open(&filename.text("filename")?)?;
        let names = checkpoint.names()?.into_iter();
        // A name with a zero byte in it cannot be said in C.
        let names = names.filter_map(|name| CString::new(name).ok()).collect();
        Ok(Some(Box::new(TF_CheckpointReader { checkpoint, names })))
    })
}

/// Frees a reader and the names that it gave; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteCheckpointReader(reader: Option<Box<TF_CheckpointReader>>) {
    quiet((), || {
        drop(reader);
        Ok(())
    });
}

/// 1 if there is a tensor of this name, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CheckpointReaderHasTensor(reader: Handle<TF_CheckpointReader>, name: Text) -> c_int {
    quiet(0, || {
        let reader = given(reader, "reader")?;
        let name = name.bytes().unwrap_or_default();
        Ok(c_int::from(reader.checkpoint.contains(name)))
    })
}

/// The name of the tensor with this number, in order of names; it belongs to the reader. NULL when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CheckpointReaderGetVariable(
    reader: Handle<TF_CheckpointReader>,
    index: c_int,
) -> *const c_char {
    quiet(null(), || {
        let names = &given(reader, "reader")?.names;
        let name = usize::try_from(index).ok().and_then(|index| names.get(index));
        Ok(name.map_or(null(), |name| name.as_ptr()))
    })
}

/// The number of tensors.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CheckpointReaderSize(reader: Handle<TF_CheckpointReader>) -> c_int {
    quiet(0, || Ok(c_count(given(reader, "reader")?.names.len())))
}

/// The element type of a tensor; 0 when there is none of this name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CheckpointReaderGetVariableDataType(
    reader: Handle<TF_CheckpointReader>,
    name: Text,
) -> Enum<TF_DataType> {
    quiet(Enum::new(0), || {
        let (dtype, _) = look(reader, name)?;
        Ok(to_c(dtype))
    })
}

/// Writes the extents of a tensor. NOT_FOUND when there is none of this name, INVALID_ARGUMENT unless its rank is `num_dims`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CheckpointReaderGetVariableShape(
    reader: Handle<TF_CheckpointReader>,
    name: Text,
    dims: Room<i64>,
    num_dims: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let (_, shape) = look(reader, name)?;
        ensure!(
            c_count(shape.rank()) == num_dims,
            InvalidArgument,
            "Expected rank is {num_dims} but actual rank is {}",
            shape.rank()
        );
        dims.write_all(num_dims, shape.dims().to_vec(), "dims")
    });
}

/// The rank of a tensor; -1 when there is none of this name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CheckpointReaderGetVariableNumDims(
    reader: Handle<TF_CheckpointReader>,
    name: Text,
) -> c_int {
    quiet(-1, || Ok(c_count(look(reader, name)?.1.rank())))
}

/// The tensor of this name; the caller deletes it. NULL with NOT_FOUND when there is none, DATA_LOSS when it is damaged.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CheckpointReaderGetTensor(
    reader: Handle<TF_CheckpointReader>,
    name: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Tensor>> {
    guard(status, || {
        let checkpoint = &given(reader, "reader")?.checkpoint;
        let tensor = checkpoint.read(name.bytes().unwrap_or_default())?;
        Ok(Some(TF_Tensor::boxed(tensor)?))
    })
}

fn look(reader: Handle<TF_CheckpointReader>, name: Text) -> Result<(ff_tensor::DataType, ff_tensor::Shape)> {
    let checkpoint = &given(reader, "reader")?.checkpoint;
    checkpoint.dtype_and_shape(name.bytes().unwrap_or_default())
}
