//! `TF_ShapeInferenceContext`: what a shape function of a registered op sees.

use crate::TF_Status;
use crate::datatype::{TF_DataType, to_c};
use crate::ffi::{Enum, Out, Text, given, given_mut, put};
use crate::guard::{guard, quiet};
use ff_op::ShapeContext;
use ff_tensor::{PartialShape, Result, dim, ensure, status};
use std::ffi::c_int;

/// What a shape function sees; valid during its call, on its thread.
pub struct TF_ShapeInferenceContext {
    /// The context, for the length of the call.
    context: *mut ShapeContext<'static>,
}

/// A shape, maybe of unknown rank or extents. It belongs to who made it; one thread at a time may change it.
pub struct TF_ShapeHandle {
    shape: PartialShape,
}

/// An extent, maybe unknown. It belongs to who made it; one thread at a time may change it.
pub struct TF_DimensionHandle {
    extent: i64,
}

/// A shape function: looks at the context, sets the shapes of the outputs, or sets `status` to an error.
pub type ShapeInferenceFunction =
    Option<unsafe extern "C" fn(ctx: *mut TF_ShapeInferenceContext, status: *mut TF_Status)>;

/// Runs a shape function of C.
pub(crate) fn infer_with(
    function: unsafe extern "C" fn(*mut TF_ShapeInferenceContext, *mut TF_Status),
    context: &mut ShapeContext,
) -> Result<()> {
    let mut status = TF_Status::default();
    let mut view = TF_ShapeInferenceContext {
        context: (context as *mut ShapeContext).cast(),
    };
    // SAFETY: both live for the call, and C vouches that its function takes them.
    unsafe { function(&raw mut view, &raw mut status) };
    match status.error() {
        Some(error) => Err(error.clone()),
        None => Ok(()),
    }
}

impl TF_ShapeInferenceContext {
    fn context(&self) -> &ShapeContext<'static> {
        // SAFETY: valid during the call of the shape function, on its thread alone.
        unsafe { &*self.context }
    }

    fn context_mut(&mut self) -> &mut ShapeContext<'static> {
        // SAFETY: as above.
        unsafe { &mut *self.context }
    }
}

fn handle(shape: PartialShape) -> Option<Box<TF_ShapeHandle>> {
    Some(Box::new(TF_ShapeHandle { shape }))
}

fn index_of(index: c_int, count: usize, what: &str) -> Result<usize> {
    usize::try_from(index)
        .ok()
        .filter(|&index| index < count)
        .ok_or_else(|| status!(InvalidArgument, "{what} index out of range"))
}

/// The number of inputs; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextNumInputs(ctx: Option<&mut TF_ShapeInferenceContext>) -> i64 {
    ctx.map_or(0, |ctx| ctx.context().num_inputs() as i64)
}

/// A new handle of an unknown shape. Free it with `TF_DeleteShapeHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewShapeHandle() -> Option<Box<TF_ShapeHandle>> {
    handle(PartialShape::unknown())
}

/// Puts the shape of input `i` into `handle`. INVALID_ARGUMENT when there is no such input.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextGetInput(
    ctx: Option<&mut TF_ShapeInferenceContext>,
    i: c_int,
    handle: Option<&mut TF_ShapeHandle>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let context = given_mut(ctx, "ctx")?.context();
        let index = index_of(i, context.num_inputs(), "input")?;
        given_mut(handle, "handle")?.shape = context.input(index);
        Ok(())
    });
}

/// Makes a copy of a shape that of output `i`. INVALID_ARGUMENT when there is no such output.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextSetOutput(
    ctx: Option<&mut TF_ShapeInferenceContext>,
    i: c_int,
    handle: Option<&mut TF_ShapeHandle>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let context = given_mut(ctx, "ctx")?.context_mut();
        let index = index_of(i, context.num_outputs(), "output")?;
        context.set_output(index, given_mut(handle, "handle")?.shape.clone());
        Ok(())
    });
}

/// A new handle of the shape without dimensions. Free it with `TF_DeleteShapeHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextScalar(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
) -> Option<Box<TF_ShapeHandle>> {
    handle(PartialShape::scalar())
}

/// A new handle of the shape of a vector. Free it with `TF_DeleteShapeHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextVectorFromSize(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
    size: usize,
) -> Option<Box<TF_ShapeHandle>> {
    let extent = i64::try_from(size).unwrap_or(dim::UNKNOWN);
    handle(PartialShape::new(&[extent]))
}

/// A new handle of an unknown extent. Free it with `TF_DeleteDimensionHandle`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewDimensionHandle() -> Option<Box<TF_DimensionHandle>> {
    Some(Box::new(TF_DimensionHandle { extent: dim::UNKNOWN }))
}

/// Gets an attribute that is an element type. NOT_FOUND when it is not set, INVALID_ARGUMENT when it is of another kind.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContext_GetAttrType(
    ctx: Option<&mut TF_ShapeInferenceContext>,
    attr_name: Text,
    val: Out<Enum<TF_DataType>>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let context = given_mut(ctx, "ctx")?.context();
        put(
            val,
            to_c(context.attrs().dtype(&attr_name.text("attr_name")?)?),
            "val",
        )
    });
}

/// The number of dimensions; -1 when it is not known.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextRank(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
    handle: Option<&mut TF_ShapeHandle>,
) -> i64 {
    handle
        .and_then(|handle| handle.shape.rank())
        .map_or(-1, |rank| rank as i64)
}

/// 1 when the number of dimensions is known, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextRankKnown(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
    handle: Option<&mut TF_ShapeHandle>,
) -> c_int {
    c_int::from(handle.is_some_and(|handle| handle.shape.rank().is_some()))
}

/// What a rank check of a shape gives goes into `result`, which may be the handle of the shape itself.
fn ranked(
    handle: *mut TF_ShapeHandle,
    rank: i64,
    result: *mut TF_ShapeHandle,
    check: impl FnOnce(&PartialShape, usize) -> Result<PartialShape>,
) -> Result<()> {
    let rank = usize::try_from(rank).map_err(|_| status!(InvalidArgument, "a rank is {rank}"))?;
    // SAFETY: NULL, or a handle of the caller's; the reference ends before that of `result` begins.
    let shape = check(&given(unsafe { handle.as_ref() }, "handle")?.shape, rank)?;
    // SAFETY: as above.
    given_mut(unsafe { result.as_mut() }, "result")?.shape = shape;
    Ok(())
}

/// Puts the shape with this rank into `result`. INVALID_ARGUMENT when it is known to have another.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextWithRank(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
    handle: *mut TF_ShapeHandle,
    rank: i64,
    result: *mut TF_ShapeHandle,
    status: Option<&mut TF_Status>,
) {
    guard(status, || ranked(handle, rank, result, PartialShape::with_rank));
}

/// Puts the shape into `result`. INVALID_ARGUMENT when it is known to have a lower rank.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextWithRankAtLeast(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
    handle: *mut TF_ShapeHandle,
    rank: i64,
    result: *mut TF_ShapeHandle,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        ranked(handle, rank, result, PartialShape::with_rank_at_least)
    });
}

/// Puts the shape into `result`. INVALID_ARGUMENT when it is known to have a higher rank.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextWithRankAtMost(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
    handle: *mut TF_ShapeHandle,
    rank: i64,
    result: *mut TF_ShapeHandle,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        ranked(handle, rank, result, PartialShape::with_rank_at_most)
    });
}

/// Puts extent `i` of a shape into `result`, counted from the end when it is negative; unknown when it is not known.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextDim(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
    shape_handle: Option<&mut TF_ShapeHandle>,
    i: i64,
    result: Option<&mut TF_DimensionHandle>,
) {
    quiet((), || {
        let extent = given_mut(shape_handle, "shape_handle")?.shape.dim(i);
        given_mut(result, "result")?.extent = extent;
        Ok(())
    });
}

/// Puts dimensions `start` to `end` (not included) of a shape into `result`; negative numbers count from the end, too large
/// ones are the rank. INVALID_ARGUMENT when the end comes before the start.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextSubshape(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
    shape_handle: *mut TF_ShapeHandle,
    start: i64,
    end: i64,
    result: *mut TF_ShapeHandle,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        // SAFETY: NULL, or a handle of the caller's; the reference ends before that of `result` begins.
        let part = subshape(
            &given(unsafe { shape_handle.as_ref() }, "shape_handle")?.shape,
            start,
            end,
        );
        // SAFETY: as above.
        put_shape(part, unsafe { result.as_mut() })
    });
}

/// Puts a shape where it goes: one of which nothing is known, and the error, where it could not be made.
fn put_shape(shape: Result<PartialShape>, result: Option<&mut TF_ShapeHandle>) -> Result<()> {
    let (shape, outcome) = match shape {
        Ok(shape) => (shape, Ok(())),
        Err(error) => (PartialShape::unknown(), Err(error)),
    };
    given_mut(result, "result")?.shape = shape;
    outcome
}

fn subshape(shape: &PartialShape, start: i64, end: i64) -> Result<PartialShape> {
    let Some(dims) = shape.dims() else {
        return Ok(PartialShape::unknown());
    };
    let rank = dims.len() as i64;
    let place = |index: i64| if index < 0 { index + rank } else { index.min(rank) };
    let (from, to) = (place(start), place(end));
    for (what, given, index) in [("start", start, from), ("end", end, to)] {
        ensure!(
            index >= 0,
            InvalidArgument,
            "Subshape {what} out of bounds: {given}, for shape with rank {rank}"
        );
    }
    ensure!(
        from <= to,
        InvalidArgument,
        "Subshape must have computed start <= end, but is {from} and {to} (computed from start {start} and end {end} over shape with rank {rank})"
    );
    Ok(PartialShape::new(&dims[from as usize..to as usize]))
}

/// Makes the shapes of all outputs unknown.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextSetUnknownShape(
    ctx: Option<&mut TF_ShapeInferenceContext>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let context = given_mut(ctx, "ctx")?.context_mut();
        (0..context.num_outputs()).for_each(|index| context.set_output(index, PartialShape::unknown()));
        Ok(())
    });
}

/// 1 when an extent is known, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DimensionHandleValueKnown(dim_handle: Option<&mut TF_DimensionHandle>) -> c_int {
    c_int::from(dim_handle.is_some_and(|handle| dim::is_known(handle.extent)))
}

/// The value of an extent; -1 when it is not known.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DimensionHandleValue(dim_handle: Option<&mut TF_DimensionHandle>) -> i64 {
    dim_handle.map_or(dim::UNKNOWN, |handle| handle.extent)
}

/// Puts the dimensions of `first` and then those of `second` into `result`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_ShapeInferenceContextConcatenateShapes(
    _ctx: Option<&mut TF_ShapeInferenceContext>,
    first: *mut TF_ShapeHandle,
    second: *mut TF_ShapeHandle,
    result: *mut TF_ShapeHandle,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        // SAFETY: NULL, or handles of the caller's; the references end before that of `result` begins.
        let (first, second) = unsafe { (first.as_ref(), second.as_ref()) };
        let whole = given(first, "first")?
            .shape
            .concat(&given(second, "second")?.shape);
        // SAFETY: as above.
        given_mut(unsafe { result.as_mut() }, "result")?.shape = whole;
        Ok(())
    });
}

/// Frees a handle; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteShapeHandle(_handle: Option<Box<TF_ShapeHandle>>) {}

/// Frees a handle; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteDimensionHandle(_handle: Option<Box<TF_DimensionHandle>>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_shapes() {
        let shape = PartialShape::new(&[2, -1, 4]);
        let part = |start, end| subshape(&shape, start, end).map(|part| part.dims().map(<[i64]>::to_vec));
        assert_eq!(part(0, i64::MAX).unwrap(), Some(vec![2, -1, 4]));
        assert_eq!(part(-2, -1).unwrap(), Some(vec![-1]));
        assert_eq!(part(5, 9).unwrap(), Some(vec![]));
        assert!(part(2, 1).is_err());
        assert_eq!(subshape(&PartialShape::unknown(), 1, 2).unwrap().rank(), None);
    }
}
