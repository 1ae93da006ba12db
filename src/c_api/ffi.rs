//! What C values are in Rust: the types of parameters of exported functions.
//!
//! Values of these types come from C, which vouches for what their documentation says; so their methods are safe. They
//! never follow NULL: a missing string or array is INVALID_ARGUMENT that names the argument. A count below zero counts
//! as zero. The C headers show each as the plain C type that it is.

use ff_tensor::{Result, status};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// A handle that threads share, or NULL. In C a pointer that is not `const`, because C code holds it as one; in Rust
/// a shared reference, because what changes lies behind locks.
pub type Handle<'a, T> = Option<&'a T>;

/// Where one result goes, or NULL.
pub type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// A value of the C enumeration `T`, which may be any number.
#[repr(transparent)]
pub struct Enum<T>(pub i32, PhantomData<T>);

impl<T> Enum<T> {
    /// The value with this number.
    pub const fn new(number: i32) -> Enum<T> {
        Enum(number, PhantomData)
    }
}

impl<T> Clone for Enum<T> {
    fn clone(&self) -> Enum<T> {
        *self
    }
}

impl<T> Copy for Enum<T> {}

impl<T> Default for Enum<T> {
    fn default() -> Enum<T> {
        Enum::new(0)
    }
}

/// `const char*`: NULL, or a string that ends with a zero byte, lives for the call and does not change meanwhile.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Text<'a>(*const c_char, PhantomData<&'a CStr>);

impl<'a> Text<'a> {
    /// The string as C passes it.
    pub fn new(text: &'a CStr) -> Text<'a> {
        Text(text.as_ptr(), PhantomData)
    }

    /// NULL.
    pub const NULL: Text<'static> = Text(std::ptr::null(), PhantomData);

    /// What C passes.
    pub fn pointer(self) -> *const c_char {
        self.0
    }

    /// The bytes, if this is not NULL.
    pub fn bytes(self) -> Option<&'a [u8]> {
        // SAFETY: C vouches for it.
        (!self.0.is_null()).then(|| unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }

    /// The text; other bytes than UTF-8 become replacement characters. INVALID_ARGUMENT for NULL.
    pub fn text(self, name: &str) -> Result<Cow<'a, str>> {
        Ok(String::from_utf8_lossy(
            self.bytes().ok_or_else(|| missing(name))?,
        ))
    }

    /// Whether there is a text. INVALID_ARGUMENT for NULL.
    pub fn given(self, name: &str) -> Result<()> {
        if self.0.is_null() {
            Err(missing(name))
        } else {
            Ok(())
        }
    }

    /// The text; NULL is the empty text.
    pub fn or_empty(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes().unwrap_or_default())
    }
}

/// `const char**`: as [`Array`] of [`Text`], in prototypes that leave the elements without `const`.
pub type Names<'a> = Array<'a, Text<'a>>;

/// `const void*`: NULL, or as many bytes as another argument says, for the call.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Blob<'a>(*const c_void, PhantomData<&'a [u8]>);

impl<'a> Blob<'a> {
    /// Bytes as C passes them.
    pub fn new(bytes: &'a [u8]) -> Blob<'a> {
        Blob(bytes.as_ptr().cast(), PhantomData)
    }

    /// The bytes. INVALID_ARGUMENT for NULL unless there are none.
    pub fn bytes(self, length: usize, name: &str) -> Result<&'a [u8]> {
        // SAFETY: C vouches for it.
        unsafe { slice(self.0.cast(), length, name) }
    }
}

/// `const T*`: NULL, or as many elements as another argument says, for the call.
#[repr(transparent)]
pub struct Array<'a, T>(*const T, PhantomData<&'a [T]>);

impl<T> Clone for Array<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<'_, T> {}

impl<'a, T> Array<'a, T> {
    /// NULL.
    pub const NULL: Array<'a, T> = Array(std::ptr::null(), PhantomData);

    /// The array that starts where C says.
    pub fn at(start: *const T) -> Array<'a, T> {
        Array(start, PhantomData)
    }

    /// An array as C passes it.
    pub fn new(elements: &'a [T]) -> Array<'a, T> {
        Array(elements.as_ptr(), PhantomData)
    }

    /// Whether this is NULL.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The elements. INVALID_ARGUMENT for NULL unless there are none.
    pub fn of(self, count: c_int, name: &str) -> Result<&'a [T]> {
        // SAFETY: C vouches for it.
        unsafe { slice(self.0, usize::try_from(count).unwrap_or(0), name) }
    }
}

impl<'a> Array<'a, c_char> {
    /// Characters as bytes, with the length as bytes are counted. INVALID_ARGUMENT for NULL unless there are none.
    pub fn bytes(self, length: usize, name: &str) -> Result<&'a [u8]> {
        Blob(self.0.cast(), PhantomData).bytes(length, name)
    }
}

/// # Safety
/// `data` is NULL or valid for reads of `count` elements that live for `'a` and stay unchanged.
unsafe fn slice<'a, T>(data: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(missing(name));
    }
    // SAFETY: passed on to the caller.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// `T*`: NULL, or room for as many elements as another argument says.
#[repr(transparent)]
pub struct Room<'a, T>(*mut T, PhantomData<&'a mut [T]>);

impl<T> Clone for Room<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Room<'_, T> {}

impl<'a, T> Room<'a, T> {
    /// Room as C passes it.
    pub fn new(elements: &'a mut [T]) -> Room<'a, T> {
        Room(elements.as_mut_ptr(), PhantomData)
    }

    /// Where the element with this number goes; nowhere for NULL.
    pub fn at(self, index: usize) -> *mut T {
        if self.0.is_null() {
            return std::ptr::null_mut();
        }
        self.0.wrapping_add(index)
    }

    /// Whether this is NULL.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The elements of an array that only its prototype does not call `const`. INVALID_ARGUMENT for NULL unless there
    /// are none.
    pub fn of(self, count: c_int, name: &str) -> Result<&'a [T]> {
        Array(self.0, PhantomData).of(count, name)
    }

    /// Writes as many of `values` as there is room for, and returns how many that is. NULL has no room.
    pub fn write(self, count: c_int, values: impl IntoIterator<Item = T>) -> usize {
        let count = if self.0.is_null() {
            0
        } else {
            usize::try_from(count).unwrap_or(0)
        };
        let mut written = 0;
        for value in values.into_iter().take(count) {
            // SAFETY: C vouches for room for `count` elements; what was there has no owner.
            unsafe { self.0.add(written).write(value) };
            written += 1;
        }
        written
    }

    /// Writes all of `values`. INVALID_ARGUMENT for NULL, or when there is room for fewer.
    pub fn write_all(self, count: c_int, values: Vec<T>, name: &str) -> Result<()> {
        let length = values.len();
        if self.0.is_null() && length > 0 {
            return Err(missing(name));
        }
        match self.write(count, values) == length {
            true => Ok(()),
            false => Err(status!(
                InvalidArgument,
                "{name} has room for {count}, not for {length}"
            )),
        }
    }
}

impl<'a, T> Room<'a, *mut T> {
    /// Handles that C passes in an array that is not `const`. INVALID_ARGUMENT for NULL unless there are none.
    pub fn handles(self, count: c_int, name: &str) -> Result<Vec<Handle<'a, T>>> {
        let array: Array<'a, *mut T> = Array(self.0, PhantomData);
        // SAFETY: each is NULL or an object of C's that lives for the call.
        let handle = |pointer: &*mut T| unsafe { pointer.as_ref() };
        Ok(array.of(count, name)?.iter().map(handle).collect())
    }
}

/// The object behind a handle. INVALID_ARGUMENT for NULL, naming the argument.
pub fn given<'a, T: ?Sized>(handle: Option<&'a T>, name: &str) -> Result<&'a T> {
    handle.ok_or_else(|| missing(name))
}

/// As [`given`], to change the object.
pub fn given_mut<'a, T>(handle: Option<&'a mut T>, name: &str) -> Result<&'a mut T> {
    handle.ok_or_else(|| missing(name))
}

/// As [`given`], taking the object over.
pub fn given_box<T>(handle: Option<Box<T>>, name: &str) -> Result<Box<T>> {
    handle.ok_or_else(|| missing(name))
}

/// Puts a result where it goes. INVALID_ARGUMENT for NULL.
pub fn put<T>(out: Out<T>, value: T, name: &str) -> Result<()> {
    given_mut(out, name)?.write(value);
    Ok(())
}

/// The error for a NULL argument.
#[cold]
pub fn missing(name: &str) -> ff_tensor::Status {
    status!(InvalidArgument, "{name} is NULL")
}

/// A length as C counts it.
pub fn c_count(length: usize) -> c_int {
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

/// Text as a C string; it ends at a zero byte, if it has one.
pub fn c_string(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().take_while(|&byte| byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_an_error_unless_empty() {
        assert!(Text::NULL.text("name").is_err());
        assert_eq!(Text::NULL.or_empty(), "");
        let none: Array<i32> = Array(std::ptr::null(), PhantomData);
        assert!(none.of(1, "values").is_err());
        assert_eq!(none.of(0, "values").unwrap(), []);
        assert_eq!(none.of(-5, "values").unwrap(), []);
        assert_eq!(Array::new(&[1, 2, 3]).of(2, "values").unwrap(), [1, 2]);
    }

    #[test]
    fn room_is_filled_as_far_as_it_goes() {
        let mut room = [0; 2];
        assert_eq!(Room::new(&mut room).write(2, [7, 8, 9]), 2);
        assert_eq!(room, [7, 8]);
        assert!(Room::new(&mut room).write_all(2, vec![1, 2, 3], "room").is_err());
        assert_eq!(c_string("a\0b").as_bytes(), b"a");
    }
}
