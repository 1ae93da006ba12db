//! Relocatable objects of a whole program: the code of its fusions, and a table through which a runtime finds it.
//!
//! What it does not do: it does not know what the words of the table mean.

/// A word of 64 bits in the table of an object.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A number.
    Number(u64),
    /// The address of these bytes, which are aligned for every kind of element; zero for none.
    Bytes(&'a [u8]),
    /// The address of the code of the fusion with this number.
    Function(usize),
    /// The address of another table; zero where it is empty.
    Table(&'a [Entry<'a>]),
}
