//! A tensor: element type, shape, and a zero-copy view of a shared buffer.

use crate::{
    Bool, Buffer, DataType, Element, PartialShape, ResourceHandle, Result, Shape, SharedBuffer, TString,
    VariantValue, bail, ensure, status,
};
use std::fmt;

/// A typed, shaped view of a buffer. Cloning shares the buffer.
///
/// A tensor is read-only while its buffer is shared; [`Tensor::as_mut_slice`] gives write access to the one owner.
#[derive(Clone)]
pub struct Tensor {
    dtype: DataType,
    shape: Shape,
    data: *mut u8,
    buffer: SharedBuffer,
}

// SAFETY: `data` points into `buffer`, which is Send and Sync; writing needs `&mut Tensor` and a single owner.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

/// Bytes that one element of a type takes in a buffer.
fn element_size(dtype: DataType) -> usize {
    match dtype {
        DataType::STRING => std::mem::size_of::<TString>(),
        DataType::RESOURCE => std::mem::size_of::<ResourceHandle>(),
        DataType::VARIANT => std::mem::size_of::<VariantValue>(),
        other => other.size(),
    }
}

impl Tensor {
    fn from_buffer(dtype: DataType, shape: Shape, buffer: SharedBuffer) -> Tensor {
        Tensor {
            dtype,
            shape,
            data: buffer.start(),
            buffer,
        }
    }

    /// A tensor of plain elements with unspecified (but initialised) values; strings, resources and variants
    /// are empty ones. RESOURCE_EXHAUSTED when memory is out, INVALID_ARGUMENT for an unknown type.
    pub fn allocate(dtype: DataType, shape: Shape) -> Result<Tensor> {
        let count = shape.num_elements();
        let buffer = match dtype {
            DataType::STRING => Buffer::of_strings(filled(&shape)?)?,
            DataType::RESOURCE => Buffer::of_resources(filled(&shape)?)?,
            DataType::VARIANT => Buffer::of_variants(filled(&shape)?)?,
            _ => {
                ensure!(
                    dtype.is_plain(),
                    InvalidArgument,
                    "Cannot allocate a tensor of type {dtype}"
                );
                let bytes = count
                    .checked_mul(dtype.size())
                    .filter(|&bytes| bytes <= isize::MAX as usize);
                let oom = || {
                    status!(
                        ResourceExhausted,
                        "OOM when allocating tensor with shape{shape} and type {dtype}"
                    )
                };
                Buffer::allocate(bytes.ok_or_else(oom)?).map_err(|_| oom())?
            }
        };
        Ok(Tensor::from_buffer(dtype, shape, buffer))
    }

    /// A tensor of zeros (empty strings, empty handles).
    pub fn zeros(dtype: DataType, shape: Shape) -> Result<Tensor> {
        let mut tensor = Tensor::allocate(dtype, shape)?;
        if let Some(bytes) = tensor.bytes_mut() {
            bytes.fill(0);
        }
        Ok(tensor)
    }

    /// A tensor with these elements. INVALID_ARGUMENT when their number does not fit the shape.
    pub fn from_slice<T: Element>(shape: Shape, values: &[T]) -> Result<Tensor> {
        ensure!(
            values.len() == shape.num_elements(),
            InvalidArgument,
            "{} elements do not fill shape {shape}",
            values.len()
        );
        let mut tensor = Tensor::allocate(T::DTYPE, shape)?;
        tensor.as_mut_slice::<T>()?.copy_from_slice(values);
        Ok(tensor)
    }

    /// A vector with these elements.
    pub fn vector<T: Element>(values: &[T]) -> Result<Tensor> {
        Tensor::from_slice(Shape::vector(values.len()), values)
    }

    /// A scalar.
    pub fn scalar<T: Element>(value: T) -> Result<Tensor> {
        Tensor::from_slice(Shape::scalar(), &[value])
    }

    /// A tensor of strings. INVALID_ARGUMENT when their number does not fit the shape.
    pub fn from_strings(shape: Shape, strings: Vec<TString>) -> Result<Tensor> {
        ensure!(
            strings.len() == shape.num_elements(),
            InvalidArgument,
            "{} strings do not fill shape {shape}",
            strings.len()
        );
        Ok(Tensor::from_buffer(
            DataType::STRING,
            shape,
            Buffer::of_strings(strings)?,
        ))
    }

    /// A tensor of handles. INVALID_ARGUMENT when their number does not fit the shape.
    pub fn from_resources(shape: Shape, handles: Vec<ResourceHandle>) -> Result<Tensor> {
        ensure!(
            handles.len() == shape.num_elements(),
            InvalidArgument,
            "handles do not fill shape {shape}"
        );
        Ok(Tensor::from_buffer(
            DataType::RESOURCE,
            shape,
            Buffer::of_resources(handles)?,
        ))
    }

    /// A tensor of variants. INVALID_ARGUMENT when their number does not fit the shape.
    pub fn from_variants(shape: Shape, values: Vec<VariantValue>) -> Result<Tensor> {
        ensure!(
            values.len() == shape.num_elements(),
            InvalidArgument,
            "variants do not fill shape {shape}"
        );
        Ok(Tensor::from_buffer(
            DataType::VARIANT,
            shape,
            Buffer::of_variants(values)?,
        ))
    }

    /// A view of all of a buffer as plain elements or (foreign memory) `TString` elements.
    /// INVALID_ARGUMENT when it is too short, or not aligned for the type.
    pub fn view_of(dtype: DataType, shape: Shape, buffer: SharedBuffer) -> Result<Tensor> {
        let size = element_size(dtype);
        ensure!(
            dtype.is_known() && !dtype.is_ref(),
            InvalidArgument,
            "Cannot view memory as type {dtype}"
        );
        ensure!(
            dtype.is_plain() || (dtype == DataType::STRING && !buffer.is_ours()),
            InvalidArgument,
            "Cannot view memory as type {dtype}"
        );
        let bytes = shape.num_elements().checked_mul(size);
        ensure!(
            bytes.is_some_and(|bytes| bytes <= buffer.len()),
            InvalidArgument,
            "{} bytes are too few for shape {shape} and type {dtype}",
            buffer.len()
        );
        let alignment = if dtype.is_complex() { size / 2 } else { size.min(8) };
        ensure!(
            shape.num_elements() == 0 || (buffer.start() as usize).is_multiple_of(alignment),
            InvalidArgument,
            "Memory is not aligned for type {dtype}"
        );
        Ok(Tensor::from_buffer(dtype, shape, buffer))
    }

    /// Makes this a tensor of another plain type and shape with `len` bytes of its own memory, values unspecified. Gives
    /// the shape back, and changes nothing, unless this alone holds memory of our allocator that is large enough.
    pub fn renew(&mut self, dtype: DataType, shape: Shape, len: usize) -> std::result::Result<(), Shape> {
        let needed = shape.num_elements().checked_mul(dtype.size());
        let fits = dtype.is_plain() && !dtype.is_ref() && needed.is_some_and(|bytes| bytes <= len);
        let buffer = SharedBuffer::get_mut(&mut self.buffer).filter(|_| fits);
        match buffer.filter(|buffer| buffer.plain_capacity() >= Some(len)) {
            Some(buffer) => self.data = buffer.with_len(len),
            None => return Err(shape),
        }
        self.dtype = dtype;
        self.shape = shape;
        Ok(())
    }

    /// The element type.
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The shape as one with nothing unknown.
    pub fn partial_shape(&self) -> PartialShape {
        PartialShape::from(&self.shape)
    }

    /// The extents.
    pub fn dims(&self) -> &[i64] {
        self.shape.dims()
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// The number of elements.
    pub fn num_elements(&self) -> usize {
        self.shape.num_elements()
    }

    /// Bytes of all elements as they lie in memory (24 for each string).
    pub fn byte_size(&self) -> usize {
        self.num_elements() * element_size(self.dtype)
    }

    /// Start of the elements.
    pub fn data_ptr(&self) -> *mut u8 {
        self.data
    }

    /// The buffer behind the view.
    pub fn buffer(&self) -> &SharedBuffer {
        &self.buffer
    }

    /// Whether this tensor alone owns its buffer and may write to it.
    pub fn is_writable(&self) -> bool {
        self.buffer.is_writable() && self.buffer.is_unique()
    }

    /// Whether both views share a buffer.
    pub fn shares_buffer(&self, other: &Tensor) -> bool {
        SharedBuffer::ptr_eq(&self.buffer, &other.buffer)
    }

    /// The bytes of a tensor of plain elements; empty for strings, resources and variants.
    pub fn bytes(&self) -> &[u8] {
        if !self.dtype.is_plain() || self.num_elements() == 0 {
            return &[];
        }
        // SAFETY: constructors checked that the buffer holds this many initialised bytes from `data` on.
        unsafe { std::slice::from_raw_parts(self.data, self.byte_size()) }
    }

    /// The bytes for writing; none unless the elements are plain and this is the buffer's only owner.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if !self.is_writable() {
            return None;
        }
        // SAFETY: as for `bytes`; the buffer has no other owner, so nobody else reads or writes.
        Some(unsafe { std::slice::from_raw_parts_mut(self.data, self.byte_size()) })
    }

    /// The elements. INVALID_ARGUMENT when they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.expect_type(T::DTYPE)?;
        if self.num_elements() == 0 {
            return Ok(&[]);
        }
        // SAFETY: the type is right, memory is aligned (checked for foreign memory), initialised and long enough.
        Ok(unsafe { std::slice::from_raw_parts(self.data.cast(), self.num_elements()) })
    }

    /// The elements for writing. INVALID_ARGUMENT when they are of another type, INTERNAL when the buffer is shared.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.expect_type(T::DTYPE)?;
        ensure!(
            self.is_writable(),
            Internal,
            "tensor of shape {} is shared and cannot be written",
            self.shape
        );
        if self.num_elements() == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as for `as_slice`; the buffer has no other owner.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.data.cast(), self.num_elements()) })
    }

    fn expect_type(&self, dtype: DataType) -> Result<()> {
        if self.dtype != dtype {
            bail!(
                InvalidArgument,
                "Expected a tensor of type {dtype}, got one of type {}",
                self.dtype
            );
        }
        Ok(())
    }

    /// The strings. INVALID_ARGUMENT for another type.
    pub fn strings(&self) -> Result<&[TString]> {
        self.expect_type(DataType::STRING)?;
        Ok(self.elements())
    }

    /// The handles. INVALID_ARGUMENT for another type.
    pub fn resources(&self) -> Result<&[ResourceHandle]> {
        self.expect_type(DataType::RESOURCE)?;
        Ok(self.elements())
    }

    /// The variants. INVALID_ARGUMENT for another type.
    pub fn variants(&self) -> Result<&[VariantValue]> {
        self.expect_type(DataType::VARIANT)?;
        Ok(self.elements())
    }

    /// The variants for changing them. INVALID_ARGUMENT for another type, INTERNAL when the buffer is shared.
    pub fn variants_mut(&mut self) -> Result<&mut [VariantValue]> {
        self.expect_type(DataType::VARIANT)?;
        ensure!(
            self.buffer.is_unique(),
            Internal,
            "tensor of shape {} is shared and cannot be written",
            self.shape
        );
        if self.num_elements() == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as for `elements`; the buffer has no other owner.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.data.cast(), self.num_elements()) })
    }

    /// The elements as values of `T`, which the caller has matched with the type.
    fn elements<T>(&self) -> &[T] {
        if self.num_elements() == 0 {
            return &[];
        }
        // SAFETY: callers checked the type; constructors filled the buffer with that many values.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.num_elements()) }
    }

    /// The one element of a tensor with exactly one. INVALID_ARGUMENT otherwise.
    pub fn single<T: Element>(&self) -> Result<T> {
        match self.as_slice::<T>()? {
            [value] => Ok(*value),
            _ => Err(status!(
                InvalidArgument,
                "Expected a single element, got shape {}",
                self.shape
            )),
        }
    }

    /// The elements as `i64`, for tensors of signed integers: shapes, axes, indices, most of them int32 or int64.
    /// INVALID_ARGUMENT otherwise.
    pub fn to_i64_vec(&self) -> Result<Vec<i64>> {
        match self.dtype {
            DataType::INT32 => collected(self.as_slice::<i32>()?.iter().map(|&x| i64::from(x))),
            DataType::INT64 => collected(self.as_slice::<i64>()?.iter().copied()),
            DataType::INT16 => collected(self.as_slice::<i16>()?.iter().map(|&x| i64::from(x))),
            DataType::INT8 => collected(self.as_slice::<i8>()?.iter().map(|&x| i64::from(x))),
            other => Err(status!(InvalidArgument, "Expected int32 or int64, got {other}")),
        }
    }

    /// The truth value of a bool scalar. INVALID_ARGUMENT otherwise.
    pub fn to_bool(&self) -> Result<bool> {
        Ok(self.single::<Bool>()?.get())
    }

    /// The same elements in another shape; shares the buffer. INVALID_ARGUMENT when the numbers of elements differ.
    pub fn reshape(&self, shape: Shape) -> Result<Tensor> {
        self.clone().into_shape(shape)
    }

    /// As [`Tensor::reshape`], but keeps the ownership of the buffer.
    pub fn into_shape(mut self, shape: Shape) -> Result<Tensor> {
        ensure!(
            shape.num_elements() == self.num_elements(),
            InvalidArgument,
            "Cannot reshape a tensor with {} elements to shape {shape}",
            self.num_elements()
        );
        self.shape = shape;
        Ok(self)
    }

    /// The same bytes as another plain type of the same size; shares the buffer. INVALID_ARGUMENT otherwise.
    pub fn reinterpret(&self, dtype: DataType) -> Result<Tensor> {
        ensure!(
            self.dtype.is_plain() && dtype.size() == self.dtype.size(),
            InvalidArgument,
            "Cannot reinterpret {} as {dtype}",
            self.dtype
        );
        Ok(Tensor {
            dtype,
            ..self.clone()
        })
    }

    /// Rows `start..start + count` along the first axis; shares the buffer. INVALID_ARGUMENT when out of range.
    pub fn rows(&self, start: usize, count: usize) -> Result<Tensor> {
        let total = self.dims().first().map_or(0, |&extent| extent as usize);
        ensure!(
            self.rank() > 0 && start.checked_add(count).is_some_and(|end| end <= total),
            InvalidArgument,
            "rows {start}..+{count} are out of range for shape {}",
            self.shape
        );
        let mut dims = self.dims().to_vec();
        let row_bytes = self.byte_size().checked_div(total).unwrap_or(0);
        dims[0] = count as i64;
        // SAFETY: the row lies within the elements of this view.
        let data = unsafe { self.data.add(start * row_bytes) };
        Ok(Tensor {
            dtype: self.dtype,
            shape: Shape::new(&dims)?,
            data,
            buffer: self.buffer.clone(),
        })
    }

    /// A copy with a buffer of its own from our allocator.
    pub fn deep_copy(&self) -> Result<Tensor> {
        let shape = self.shape.clone();
        match self.dtype {
            DataType::STRING => Tensor::from_strings(shape, self.strings()?.to_vec()),
            DataType::RESOURCE => Tensor::from_resources(shape, self.resources()?.to_vec()),
            DataType::VARIANT => Tensor::from_variants(shape, self.variants()?.to_vec()),
            dtype => {
                let mut copy = Tensor::allocate(dtype, shape)?;
                if let Some(bytes) = copy.bytes_mut() {
                    bytes.copy_from_slice(self.bytes());
                }
                Ok(copy)
            }
        }
    }

    /// Makes this tensor the only owner of writable memory, copying if it is shared or foreign.
    pub fn make_writable(&mut self) -> Result<()> {
        if !self.is_writable() {
            *self = self.deep_copy()?;
        }
        Ok(())
    }
}

/// As many default values as the shape has elements. RESOURCE_EXHAUSTED when memory is out.
fn filled<T: Default + Clone>(shape: &Shape) -> Result<Vec<T>> {
    let count = shape.num_elements();
    let mut values = Vec::new();
    values
        .try_reserve_exact(count)
        .map_err(|_| status!(ResourceExhausted, "OOM when allocating tensor with shape{shape}"))?;
    values.resize(count, T::default());
    Ok(values)
}

/// What an iterator that knows its length gives. RESOURCE_EXHAUSTED when memory is out.
fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let (count, mut values) = (items.len(), Vec::new());
    values
        .try_reserve_exact(count)
        .map_err(|_| status!(ResourceExhausted, "OOM when allocating {count} elements"))?;
    values.extend(items);
    Ok(values)
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{} {}>", self.dtype, self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Deallocator};
    use std::ffi::c_void;

    #[test]
    fn views_share_and_writers_are_alone() {
        let mut a = Tensor::from_slice(Shape::new(&[2, 3]).unwrap(), &[1i32, 2, 3, 4, 5, 6]).unwrap();
        assert!(a.is_writable());
        let row = a.rows(1, 1).unwrap();
        assert_eq!(row.as_slice::<i32>().unwrap(), [4, 5, 6]);
        assert_eq!(a.as_mut_slice::<i32>().unwrap_err().code(), Code::Internal);
        drop(row);
        a.as_mut_slice::<i32>().unwrap()[0] = 9;
        assert_eq!(
            a.reshape(Shape::vector(6)).unwrap().as_slice::<i32>().unwrap()[0],
            9
        );
        assert!(a.reshape(Shape::vector(5)).is_err());
        assert!(a.as_slice::<f32>().is_err());
        assert_eq!(a.data_ptr() as usize % 64, 0);
    }

    #[test]
    fn huge_requests_are_refused() {
        let shape = Shape::new(&[1 << 60]).unwrap();
        assert_eq!(
            Tensor::allocate(DataType::FLOAT, shape).unwrap_err().code(),
            Code::ResourceExhausted
        );
        let shape = Shape::new(&[1 << 46]).unwrap();
        assert_eq!(
            Tensor::allocate(DataType::DOUBLE, shape.clone())
                .unwrap_err()
                .code(),
            Code::ResourceExhausted
        );
        assert_eq!(
            Tensor::allocate(DataType::STRING, shape).unwrap_err().code(),
            Code::ResourceExhausted
        );
    }

    #[test]
    fn foreign_memory_is_given_back_once() {
        unsafe extern "C" fn count(_: *mut c_void, len: usize, arg: *mut c_void) {
            // SAFETY: the test passes a pointer to a usize.
            unsafe { *arg.cast::<usize>() += len };
        }
        let mut freed = 0usize;
        let mut data = [1.0f32, 2.0];
        let deallocator = Deallocator {
            function: Some(count),
            arg: (&raw mut freed).cast(),
        };
        // SAFETY: `data` outlives the buffer.
        let buffer = unsafe { Buffer::foreign(data.as_mut_ptr().cast(), 8, deallocator) };
        let mut tensor = Tensor::view_of(DataType::FLOAT, Shape::vector(2), buffer).unwrap();
        assert!(!tensor.is_writable());
        tensor.make_writable().unwrap();
        assert_eq!(freed, 8);
        assert_eq!(tensor.as_slice::<f32>().unwrap(), [1.0, 2.0]);
    }

    #[test]
    fn strings_are_dropped_with_their_tensor() {
        let strings = vec![
            TString::from("a"),
            TString::from("a string of more than 22 bytes"),
        ];
        let tensor = Tensor::from_strings(Shape::vector(2), strings).unwrap();
        assert_eq!(tensor.byte_size(), 48);
        let copy = tensor.deep_copy().unwrap();
        drop(tensor);
        assert_eq!(copy.strings().unwrap()[1].len(), 30);
    }
}
