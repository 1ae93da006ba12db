//! `TF_Tensor`: elements with a type and a shape.
//!
//! Memory of ours is 64-byte aligned and shared by reference counts. Memory that a program brings is used in place
//! where its address is a multiple of 64; otherwise it is copied and given back at once.

use crate::TF_Status;
use crate::datatype::{TF_DataType, data_type, to_c};
use crate::ffi::{Array, Enum, given, given_mut};
use crate::guard::{guard, quiet};
use crate::tensor_cache;
use ff_proto::{Message, ResourceHandleProto};
use ff_tensor::{
    Buffer, DataType, Deallocator, ResourceHandle, Result, Shape, SharedBuffer, Tensor, ensure, status,
};
use std::ffi::{c_int, c_uchar, c_void};
use std::ptr::null_mut;

/// Alignment in bytes of memory that is used in place.
const ALIGNMENT: usize = 64;
/// Bytes of a `TF_TString`.
const STRING_SIZE: usize = 24;

/// Where a temporary tensor is wanted.
#[repr(C)]
pub struct TF_AllocatorAttributes {
    /// `TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE`.
    pub struct_size: usize,
    /// Not 0 for memory that the host can read and write.
    pub on_host: c_uchar,
}

/// Elements of one type in the order of rows, with a shape. Threads may read one tensor at the same time.
pub struct TF_Tensor {
    tensor: Tensor,
    /// Bytes that the program sees.
    byte_size: usize,
    /// The serialized handle of a resource tensor: what the program sees of it. In a box, as few tensors have one.
    handle: Option<Box<Handle>>,
}

struct Handle {
    bytes: Tensor,
    /// Whether the program wrote the bytes, so that they are what counts.
    from_program: bool,
}

impl TF_Tensor {
    /// A tensor for a program. INVALID_ARGUMENT for more than one resource, as upstream.
    pub fn new(tensor: Tensor) -> Result<TF_Tensor> {
        if tensor.dtype() == DataType::RESOURCE {
            return TF_Tensor::of_resource(tensor);
        }
        let byte_size = match tensor.dtype() {
            DataType::STRING => tensor.num_elements() * STRING_SIZE,
            _ => tensor.byte_size(),
        };
        Ok(TF_Tensor {
            tensor,
            byte_size,
            handle: None,
        })
    }

    /// A tensor for a program, in its box.
    pub fn boxed(tensor: Tensor) -> Result<Box<TF_Tensor>> {
        TF_Tensor::new(tensor).map(Box::new)
    }

    fn of_resource(tensor: Tensor) -> Result<TF_Tensor> {
        ensure!(
            tensor.rank() == 0,
            InvalidArgument,
            "Unexpected non-scalar DT_RESOURCE tensor seen (shape: {})",
            tensor.shape()
        );
        let bytes: Vec<u8> = tensor.resources()?[0].to_proto().encode_to_vec();
        Ok(TF_Tensor {
            tensor,
            byte_size: bytes.len(),
            handle: Some(Box::new(Handle {
                bytes: Tensor::vector(&bytes)?,
                from_program: false,
            })),
        })
    }

    /// The tensor for the library. INVALID_ARGUMENT when a program wrote bytes that are no handle.
    pub fn tensor(&self) -> Result<Tensor> {
        let Some(handle) = self.handle.as_ref().filter(|handle| handle.from_program) else {
            return Ok(self.tensor.clone());
        };
        ensure!(
            self.tensor.rank() == 0,
            InvalidArgument,
            "Malformed TF_RESOURCE tensor: expected a scalar, got a tensor with shape {}",
            self.tensor.shape()
        );
        let malformed = || {
            status!(
                InvalidArgument,
                "Malformed TF_RESOURCE tensor: unable to parse resource handle"
            )
        };
        let proto = ResourceHandleProto::decode(handle.bytes.bytes()).map_err(|_| malformed())?;
        Tensor::from_resources(Shape::scalar(), vec![ResourceHandle::from_proto(&proto)?])
    }

    fn data(&self) -> *mut c_void {
        match &self.handle {
            Some(handle) => handle.bytes.data_ptr().cast(),
            None => self.tensor.data_ptr().cast(),
        }
    }

    /// Memory for a program to fill, at least as many bytes as the shape needs; none when `len` is less.
    pub fn allocate(dtype: DataType, shape: Shape, len: usize) -> Result<TF_Tensor> {
        let tensor = match dtype {
            DataType::RESOURCE => {
                return Ok(TF_Tensor {
                    tensor: Tensor::allocate(dtype, shape)?,
                    byte_size: len,
                    handle: Some(Box::new(Handle {
                        bytes: Tensor::allocate(DataType::UINT8, Shape::vector(len))?,
                        from_program: true,
                    })),
                });
            }
            DataType::STRING | DataType::VARIANT => Tensor::allocate(dtype, shape)?,
            _ => {
                ensure!(
                    dtype.is_plain() && !dtype.is_ref() && fits(&shape, dtype.size(), len),
                    InvalidArgument,
                    "{len} bytes are too few for shape {shape} and type {dtype}"
                );
                Tensor::view_of(dtype, shape, Buffer::allocate(len)?)?
            }
        };
        let byte_size = if dtype == DataType::STRING {
            len.max(tensor.num_elements() * STRING_SIZE)
        } else {
            len
        };
        Ok(TF_Tensor {
            tensor,
            byte_size,
            handle: None,
        })
    }

    /// As [`TF_Tensor::allocate`], in its box; small ones are tensors that this thread deleted.
    fn allocate_boxed(dtype: DataType, shape: Shape, len: usize) -> Result<Box<TF_Tensor>> {
        let is_plain = dtype.is_plain() && !dtype.is_ref() && fits(&shape, dtype.size(), len);
        let kept = if is_plain { tensor_cache::take(len) } else { None };
        let Some(mut kept) = kept else {
            return Ok(Box::new(TF_Tensor::allocate(dtype, shape, len)?));
        };
        match kept.tensor.renew(dtype, shape, len) {
            Ok(()) => {
                kept.byte_size = len;
                Ok(kept)
            }
            Err(shape) => Ok(Box::new(TF_Tensor::allocate(dtype, shape, len)?)),
        }
    }

    /// The bytes of the block that this tensor alone holds, if it can serve as another tensor.
    pub(crate) fn reusable_bytes(&self) -> Option<usize> {
        let buffer = self.tensor.buffer();
        let alone = self.handle.is_none() && buffer.is_unique();
        alone.then(|| buffer.plain_capacity()).flatten()
    }

    /// A tensor over a program's memory.
    pub(crate) fn over(dtype: DataType, shape: Shape, memory: Foreign) -> Result<TF_Tensor> {
        if dtype == DataType::RESOURCE {
            let mut tensor = TF_Tensor::allocate(dtype, shape, memory.len)?;
            if let Some(handle) = &mut tensor.handle {
                memory.copy_to(handle.bytes.bytes_mut().unwrap_or_default());
            }
            return Ok(tensor);
        }
        let len = memory.len;
        let buffer = if dtype.is_plain() && !(memory.data as usize).is_multiple_of(ALIGNMENT) {
            let mut copy = Tensor::allocate(DataType::UINT8, Shape::vector(len))?;
            memory.copy_to(copy.bytes_mut().unwrap_or_default());
            copy.buffer().clone()
        } else {
            memory.into_buffer()
        };
        ensure!(
            !dtype.is_plain() || fits(&shape, dtype.size(), len),
            InvalidArgument,
            "{len} bytes are too few for shape {shape} and type {dtype}"
        );
        Ok(TF_Tensor {
            tensor: Tensor::view_of(dtype, shape, buffer)?,
            byte_size: len,
            handle: None,
        })
    }
}

fn fits(shape: &Shape, size: usize, len: usize) -> bool {
    shape
        .num_elements()
        .checked_mul(size)
        .is_some_and(|bytes| bytes <= len)
}

/// Memory of a program: goes into a buffer, or is given back when this is dropped.
pub(crate) struct Foreign {
    data: *mut c_void,
    len: usize,
    deallocator: Option<Deallocator>,
}

impl Foreign {
    /// Memory that a program gives with the function that takes it back.
    pub(crate) fn new(
        data: *mut c_void,
        len: usize,
        function: Option<unsafe extern "C" fn(*mut c_void, usize, *mut c_void)>,
        arg: *mut c_void,
    ) -> Foreign {
        Foreign {
            data,
            len,
            deallocator: Some(Deallocator { function, arg }),
        }
    }

    fn copy_to(&self, room: &mut [u8]) {
        if !self.data.is_null() && room.len() == self.len {
            // SAFETY: the program vouches for `len` bytes; the room is fresh memory of the same length.
            unsafe { std::ptr::copy_nonoverlapping(self.data.cast(), room.as_mut_ptr(), self.len) };
        }
    }

    fn into_buffer(mut self) -> SharedBuffer {
        let deallocator = self.deallocator.take().unwrap_or(Deallocator {
            function: None,
            arg: null_mut(),
        });
        let len = if self.data.is_null() { 0 } else { self.len };
        // SAFETY: the program vouches for `len` bytes until its deallocator is called.
        unsafe { Buffer::foreign(self.data, len, deallocator) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(Deallocator {
            function: Some(function),
            arg,
        }) = self.deallocator.take()
        {
            // SAFETY: the program's own deallocator, called once with what it was given.
            unsafe { function(self.data, self.len, arg) };
        }
    }
}

/// The shape with these extents. INVALID_ARGUMENT for negative ones, too many elements, or NULL with a rank.
pub(crate) fn shape_of(dims: Array<i64>, num_dims: c_int) -> Result<Shape> {
    Shape::new(dims.of(num_dims, "dims")?)
}

/// A tensor over memory of the caller: `len` bytes at `data`, in use until `deallocator` is called with `data`, `len`
/// and `deallocator_arg`. That happens exactly once, on any thread, maybe later than `TF_DeleteTensor`; right away
/// where the memory was copied because its address is not a multiple of 64. `deallocator` may be NULL. Elements of
/// `TF_STRING` are `TF_TString`.
///
/// NULL, with the memory given back, when `len` is too short for type and shape or the shape is not valid.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewTensor(
    dtype: Enum<TF_DataType>,
    dims: Array<i64>,
    num_dims: c_int,
    data: *mut c_void,
    len: usize,
    deallocator: Option<unsafe extern "C" fn(data: *mut c_void, len: usize, arg: *mut c_void)>,
    deallocator_arg: *mut c_void,
) -> Option<Box<TF_Tensor>> {
    quiet(None, || {
        let memory = Foreign::new(data, len, deallocator, deallocator_arg);
        let shape = shape_of(dims, num_dims)?;
        Ok(Some(Box::new(TF_Tensor::over(data_type(dtype), shape, memory)?)))
    })
}

/// The alignment in bytes from which memory is used in place.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TensorDefaultAlignment() -> usize {
    ALIGNMENT
}

/// A tensor with `len` bytes of aligned memory to be filled; its values are unspecified, strings are empty. Deleting
/// the last holder of a tensor of strings frees the strings.
///
/// NULL when `len` is too short for type and shape, when the shape is not valid, or when memory is out.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AllocateTensor(
    dtype: Enum<TF_DataType>,
    dims: Array<i64>,
    num_dims: c_int,
    len: usize,
) -> Option<Box<TF_Tensor>> {
    quiet(None, || {
        let shape = shape_of(dims, num_dims)?;
        TF_Tensor::allocate_boxed(data_type(dtype), shape, len).map(Some)
    })
}

/// The same tensor if nobody else holds its memory and the library allocated it, so that its owner may give it away;
/// otherwise NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TensorMaybeMove(tensor: Option<&mut TF_Tensor>) -> Option<&mut TF_Tensor> {
    tensor.filter(|it| it.tensor.buffer().is_ours() && it.tensor.buffer().is_unique())
}

/// Frees a tensor; its memory goes when nobody else holds it. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteTensor(tensor: Option<Box<TF_Tensor>>) {
    quiet((), || {
        if let Some(tensor) = tensor {
            tensor_cache::give(tensor);
        }
        Ok(())
    });
}

/// The type of the elements; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TensorType(tensor: Option<&TF_Tensor>) -> Enum<TF_DataType> {
    tensor.map_or(Enum::new(0), |it| to_c(it.tensor.dtype()))
}

/// Gives the tensor another shape with as many elements; any other shape is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetShape(tensor: Option<&mut TF_Tensor>, dims: Array<i64>, num_dims: c_int) {
    quiet((), || {
        let it = given_mut(tensor, "tensor")?;
        let shape = shape_of(dims, num_dims)?;
        it.tensor = it.tensor.reshape(shape)?;
        Ok(())
    });
}

/// The number of dimensions; -1 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NumDims(tensor: Option<&TF_Tensor>) -> c_int {
    tensor.map_or(-1, |it| it.tensor.rank() as c_int)
}

/// The extent of a dimension, counted from 0; -1 when there is no such dimension.
#[unsafe(no_mangle)]
pub extern "C" fn TF_Dim(tensor: Option<&TF_Tensor>, dim_index: c_int) -> i64 {
    let index = usize::try_from(dim_index).unwrap_or(usize::MAX);
    tensor
        .and_then(|it| it.tensor.dims().get(index).copied())
        .unwrap_or(-1)
}

/// The number of bytes of memory; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TensorByteSize(tensor: Option<&TF_Tensor>) -> usize {
    tensor.map_or(0, |it| it.byte_size)
}

/// The memory; NULL for NULL. It lives as long as the tensor. Only memory that the caller made or allocated may be
/// written, and not while a run reads it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TensorData(tensor: Option<&TF_Tensor>) -> *mut c_void {
    tensor.map_or(null_mut(), TF_Tensor::data)
}

/// The number of elements; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TensorElementCount(tensor: Option<&TF_Tensor>) -> i64 {
    tensor.map_or(0, |it| it.tensor.num_elements() as i64)
}

/// Makes `to` a tensor over the memory of `from`, with another type and shape.
///
/// INVALID_ARGUMENT when that takes another number of bytes, or elements of either are not plain bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TensorBitcastFrom(
    from: Option<&TF_Tensor>,
    dtype: Enum<TF_DataType>,
    to: *mut TF_Tensor,
    new_dims: Array<i64>,
    num_new_dims: c_int,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let source = &given(from, "from")?.tensor;
        let shape = shape_of(new_dims, num_new_dims)?;
        let dtype = data_type(dtype);
        ensure!(
            dtype.is_plain()
                && source.dtype().is_plain()
                && shape.num_elements().checked_mul(dtype.size()) == Some(source.byte_size()),
            InvalidArgument,
            "input and output shapes/data type sizes are not compatible"
        );
        let at_start = source.data_ptr() == source.buffer().start();
        let source = if at_start {
            source.clone()
        } else {
            source.deep_copy()?
        };
        let byte_size = source.byte_size();
        let cast = TF_Tensor {
            tensor: Tensor::view_of(dtype, shape, source.buffer().clone())?,
            byte_size,
            handle: None,
        };
        // SAFETY: NULL, or a tensor of the caller's; `from`, which it may be, is not used any more.
        *given_mut(unsafe { to.as_mut() }, "to")? = cast;
        Ok(())
    });
}

/// Whether the memory is at an address that compute kernels can use.
#[unsafe(no_mangle)]
pub extern "C" fn TF_TensorIsAligned(tensor: Option<&TF_Tensor>) -> bool {
    tensor.is_some_and(|it| (it.data() as usize).is_multiple_of(ALIGNMENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_tensor::TString;

    unsafe extern "C" fn count(_: *mut c_void, len: usize, arg: *mut c_void) {
        // SAFETY: the tests pass a counter.
        unsafe { *arg.cast::<usize>() += len + 1 };
    }

    #[repr(align(64))]
    struct Aligned([f32; 20]);

    #[test]
    fn foreign_memory_is_shared_or_copied_and_given_back_once() {
        let mut freed = 0usize;
        let mut memory = Aligned([1.0; 20]);
        let start: *mut f32 = memory.0.as_mut_ptr();
        let over = |offset: usize, len: usize, freed: &mut usize| {
            let data = start.wrapping_add(offset).cast::<c_void>();
            let counter = (freed as *mut usize).cast();
            TF_NewTensor(
                Enum::new(1),
                Array::new(&[2, 2]),
                2,
                data,
                len,
                Some(count),
                counter,
            )
        };
        for (offset, in_place) in [(0, true), (1, false)] {
            freed = 0;
            let tensor = over(offset, 16, &mut freed);
            assert_eq!(TF_TensorData(tensor.as_deref()) == start.cast(), in_place);
            assert_eq!(freed, if in_place { 0 } else { 17 });
            TF_DeleteTensor(tensor);
            assert_eq!(freed, 17);
        }
        assert!(over(0, 12, &mut freed).is_none());
        assert_eq!(freed, 17 + 13);
    }

    #[test]
    fn misuse_gives_null() {
        let allocate = |dtype, dims: &[i64], len| {
            TF_AllocateTensor(Enum::new(dtype), Array::new(dims), dims.len() as c_int, len)
        };
        assert!(allocate(1, &[-1], 4).is_none());
        assert!(allocate(1, &[1 << 40, 1 << 40], 4).is_none());
        assert!(allocate(99, &[1], 4).is_none());
        assert!(allocate(101, &[1], 4).is_none());
        assert!(allocate(1, &[1], usize::MAX).is_none());
        assert_eq!(TF_NumDims(None), -1);
        assert!(TF_TensorData(None).is_null());
        TF_DeleteTensor(None);
    }

    #[test]
    fn strings_start_empty_and_are_freed() {
        let tensor = TF_AllocateTensor(Enum::new(7), Array::new(&[3]), 1, 72);
        let data = TF_TensorData(tensor.as_deref()).cast::<TString>();
        // SAFETY: the memory is three strings.
        let strings = unsafe { std::slice::from_raw_parts_mut(data, 3) };
        assert!(strings.iter().all(TString::is_empty));
        strings[1] = TString::from("a string of more than 22 bytes");
        assert_eq!(TF_TensorByteSize(tensor.as_deref()), 72);
        TF_DeleteTensor(tensor);
    }

    #[test]
    fn deleted_tensors_serve_again_only_when_nobody_holds_them() {
        let allocate =
            |extent: i64| TF_AllocateTensor(Enum::new(1), Array::new(&[extent]), 1, extent as usize * 4);
        let first = allocate(3);
        let data = TF_TensorData(first.as_deref());
        TF_DeleteTensor(first);
        let second = TF_AllocateTensor(Enum::new(9), Array::new(&[2, 4]), 2, 64);
        assert_eq!(TF_TensorData(second.as_deref()), data);
        assert_eq!(TF_TensorType(second.as_deref()).0, 9);
        assert_eq!(TF_TensorByteSize(second.as_deref()), 64);
        assert_eq!(
            (TF_NumDims(second.as_deref()), TF_Dim(second.as_deref(), 1)),
            (2, 4)
        );
        let holder = second.as_ref().unwrap().tensor().unwrap();
        TF_DeleteTensor(second);
        let third = allocate(3);
        assert_ne!(TF_TensorData(third.as_deref()), data);
        assert_eq!(holder.num_elements(), 8);
        let many: Vec<_> = (0..40).map(|_| allocate(100)).collect();
        for tensor in many {
            TF_DeleteTensor(tensor);
        }
        assert!(TF_AllocateTensor(Enum::new(1), Array::new(&[9]), 1, 35).is_none());
    }

    #[test]
    fn moves_only_what_it_alone_owns() {
        let mut tensor = TF_Tensor::new(Tensor::scalar(3i32).unwrap()).unwrap();
        assert!(TF_TensorMaybeMove(Some(&mut tensor)).is_some());
        let _holder = tensor.tensor().unwrap();
        assert!(TF_TensorMaybeMove(Some(&mut tensor)).is_none());
    }
}
