//! `TF_ShapeAndTypeList`: plain data that C code may read and fill. Its memory comes from `malloc`.

use crate::datatype::TF_DataType;
use crate::ffi::{Array, Enum, given_mut};
use crate::guard::quiet;
use ff_tensor::{Result, ensure};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// A shape and an element type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TF_ShapeAndType {
    /// Number of dimensions; -1 for an unknown rank.
    pub num_dims: c_int,
    /// The extents; -1 for an unknown one.
    pub dims: *mut i64,
    /// The type; 0 for an unknown one.
    pub dtype: Enum<TF_DataType>,
}

/// Shapes and types. One thread at a time may change it.
#[repr(C)]
pub struct TF_ShapeAndTypeList {
    /// How many there are.
    pub num_items: c_int,
    /// The shapes and types.
    pub items: *mut TF_ShapeAndType,
}

/// Room for `count` values, all zero; NULL for none. RESOURCE_EXHAUSTED when memory is out.
fn room<T>(count: usize) -> Result<*mut T> {
    if count == 0 {
        return Ok(null_mut());
    }
    // SAFETY: any size may be asked for; `calloc` checks the product.
    let memory = unsafe { libc::calloc(count, size_of::<T>()) };
    ensure!(
        !memory.is_null(),
        ResourceExhausted,
        "OOM when allocating {count} values"
    );
    Ok(memory.cast())
}

fn free<T>(memory: *mut T) {
    // SAFETY: the memory came from `room`, or is NULL.
    unsafe { libc::free(memory.cast::<c_void>()) };
}

/// A list of `num_shapes` unknown shapes of unknown types. Free it with `TF_DeleteShapeAndTypeList`. NULL when memory is out.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewShapeAndTypeList(num_shapes: c_int) -> Option<Box<TF_ShapeAndTypeList>> {
    quiet(None, || {
        let count = usize::try_from(num_shapes).unwrap_or(0);
        let items: *mut TF_ShapeAndType = room(count)?;
        for index in 0..count {
            let unknown = TF_ShapeAndType {
                num_dims: -1,
                dims: null_mut(),
                dtype: Enum::new(0),
            };
            // SAFETY: there is room for `count` items.
            unsafe { items.add(index).write(unknown) };
        }
        Ok(Some(Box::new(TF_ShapeAndTypeList {
            num_items: num_shapes.max(0),
            items,
        })))
    })
}

/// Changes an item. INVALID_ARGUMENT for NULL and for an index that is none.
fn change(
    list: Option<&mut TF_ShapeAndTypeList>,
    index: c_int,
    change: impl FnOnce(&mut TF_ShapeAndType) -> Result<()>,
) {
    quiet((), || {
        let list = given_mut(list, "shape_list")?;
        ensure!(
            (0..list.num_items).contains(&index) && !list.items.is_null(),
            InvalidArgument,
            "there is no item {index}"
        );
        // SAFETY: a list has as many items as it says, all of them written.
        change(unsafe { &mut *list.items.add(index as usize) })
    });
}

/// Sets a shape; a negative `num_dims` is an unknown rank. Ignored for an index that is none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeAndTypeListSetShape(
    shape_list: Option<&mut TF_ShapeAndTypeList>,
    index: c_int,
    dims: Array<i64>,
    num_dims: c_int,
) {
    change(shape_list, index, |item| {
        let extents = dims.of(num_dims, "dims")?;
        let copy: *mut i64 = room(extents.len())?;
        for (index, extent) in extents.iter().enumerate() {
            // SAFETY: there is room for all extents.
            unsafe { copy.add(index).write(*extent) };
        }
        free(item.dims);
        (item.num_dims, item.dims) = (num_dims.max(-1), copy);
        Ok(())
    });
}

/// Makes a shape unknown. Ignored for an index that is none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeAndTypeListSetUnknownShape(
    shape_list: Option<&mut TF_ShapeAndTypeList>,
    index: c_int,
) {
    change(shape_list, index, |item| {
        free(item.dims);
        (item.num_dims, item.dims) = (-1, null_mut());
        Ok(())
    });
}

/// Sets a type. Ignored for an index that is none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeAndTypeListSetDtype(
    shape_list: Option<&mut TF_ShapeAndTypeList>,
    index: c_int,
    dtype: Enum<TF_DataType>,
) {
    change(shape_list, index, |item| {
        item.dtype = dtype;
        Ok(())
    });
}

/// Frees a list; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteShapeAndTypeList(shape_list: Option<Box<TF_ShapeAndTypeList>>) {
    quiet((), || {
        let Some(list) = shape_list else { return Ok(()) };
        for index in 0..usize::try_from(list.num_items).unwrap_or(0) {
            if !list.items.is_null() {
                // SAFETY: a list has as many items as it says, all of them written.
                free(unsafe { (*list.items.add(index)).dims });
            }
        }
        free(list.items);
        Ok(())
    });
}

/// Frees `num_items` lists, and the array of them, which the library made. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteShapeAndTypeListArray(
    shape_list_array: *mut Option<Box<TF_ShapeAndTypeList>>,
    num_items: c_int,
) {
    quiet((), || {
        if shape_list_array.is_null() {
            return Ok(());
        }
        for index in 0..usize::try_from(num_items).unwrap_or(0) {
            // SAFETY: the array has as many lists as the caller says, each NULL or one to be freed.
            TF_DeleteShapeAndTypeList(unsafe { shape_list_array.add(index).read() });
        }
        free(shape_list_array);
        Ok(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_set_and_freed() {
        let mut list = TF_NewShapeAndTypeList(2);
        TF_ShapeAndTypeListSetShape(list.as_deref_mut(), 0, Array::new(&[2, -1]), 2);
        TF_ShapeAndTypeListSetDtype(list.as_deref_mut(), 0, Enum::new(1));
        TF_ShapeAndTypeListSetShape(list.as_deref_mut(), 5, Array::new(&[1]), 1);
        // SAFETY: the first of two items, with two extents.
        let (item, extents) = unsafe {
            let item = *list.as_ref().unwrap().items;
            (item, [*item.dims, *item.dims.add(1)])
        };
        assert_eq!((item.num_dims, item.dtype.0, extents), (2, 1, [2, -1]));
        TF_ShapeAndTypeListSetUnknownShape(list.as_deref_mut(), 0);
        TF_DeleteShapeAndTypeList(list);
        TF_DeleteShapeAndTypeList(TF_NewShapeAndTypeList(-3));
        TF_DeleteShapeAndTypeList(None);
        TF_DeleteShapeAndTypeListArray(null_mut(), 3);
        TF_ShapeAndTypeListSetDtype(None, 0, Enum::new(1));
    }
}
