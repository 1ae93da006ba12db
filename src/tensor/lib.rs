//! Tensors and what they are made of: status codes, element types, shapes, buffers.
//!
//! Everything above this crate speaks in these types. They know nothing of graphs or ops.
//!
//! - [`Status`], [`Code`], [`Result`]: errors are values with a code, a message and optional payloads.
//! - [`DataType`] and [`Element`]: the element types of the wire format and their Rust counterparts.
//! - [`Shape`] (fully known) and [`PartialShape`] (unknown rank or extents).
//! - [`Buffer`]: 64-byte aligned, reference-counted memory; ours, or foreign with its deallocator.
//! - [`Tensor`]: a typed, shaped, zero-copy view of a buffer.
//! - [`TString`]: the 24-byte string element of the C ABI.
//! - [`ResourceHandle`] and [`VariantValue`]: elements of resource and variant tensors; [`VariantProto`] keeps a variant
//!   whose type only a higher layer knows.
//! - Messages: [`Tensor::from_proto`], [`Tensor::to_proto`] and its other forms; `from_proto` and `to_proto` of shapes
//!   and handles.
//! - Numbers below a byte or of 8-bit floats convert by `to_f32`, `from_f32`, `to_i32`, `from_i32`.
//! - Text: [`Tensor::summarize`] (Assert, Print), [`Tensor::summarize_ends`] (PrintV2), [`format_f32`], [`format_f64`].
//! - Tests: [`Tensor::bitwise_eq`], [`Tensor::max_abs_difference`].

mod allocator;
mod buffer;
mod compare;
mod dtype;
mod element;
mod numbers;
mod proto;
mod proto_encode;
mod proto_shape;
mod resource;
mod shape;
mod small_floats;
mod small_ints;
mod status;
mod summary;
mod tensor;
mod tstring;
mod variant;

pub use allocator::ALIGNMENT;
pub use buffer::{Buffer, Deallocator, SharedBuffer};
pub use dtype::DataType;
pub use element::{
    Bool, Complex64, Complex128, Element, Float4E2M1Fn, Float8E4M3B11Fnuz, Float8E4M3Fn, Float8E4M3Fnuz,
    Float8E5M2, Float8E5M2Fnuz, Int2, Int4, QInt8, QInt16, QInt32, QUInt8, QUInt16, UInt2, UInt4,
};
pub use half::{bf16, f16};
pub use numbers::{format_f32, format_f64, format_general};
pub use proto_encode::VariantProto;
pub use resource::{HandleInfo, ResourceHandle};
pub use shape::{PartialShape, Shape, dim};
pub use status::{Code, Result, Status};
pub use tensor::Tensor;
pub use tstring::TString;
pub use variant::{VariantObject, VariantValue};
