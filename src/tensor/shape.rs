//! Shapes: fully known, and partially known.

use crate::{Result, ensure, status};
use smallvec::SmallVec;
use std::fmt;
use std::mem::MaybeUninit;

/// The largest rank a tensor may have.
const MAX_RANK: usize = 254;

/// Extents kept without an allocation of their own.
const INLINE: usize = 4;

/// A fully known shape: every extent is at least 0 and their product fits `i64`.
#[derive(Eq)]
pub struct Shape {
    dims: SmallVec<[i64; INLINE]>,
    elements: usize,
}

impl PartialEq for Shape {
    /// As the derived one, but without a call for a few extents: kernels compare shapes in every step.
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        self.elements == other.elements
            && self.dims.len() == other.dims.len()
            && self.dims.iter().zip(&other.dims).all(|(a, b)| a == b)
    }
}

impl std::hash::Hash for Shape {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.dims.hash(state);
    }
}

impl Clone for Shape {
    /// As the derived one, but few extents are copied with the room for them, in two moves and without a call.
    #[inline]
    fn clone(&self) -> Shape {
        let dims = match self.dims.spilled() {
            true => SmallVec::from_slice(&self.dims),
            // SAFETY: not spilled, so the extents start a room for `INLINE`, of which `len` are initialised.
            false => unsafe {
                let room = self.dims.as_ptr().cast::<MaybeUninit<[i64; INLINE]>>();
                SmallVec::from_buf_and_len_unchecked(room.read(), self.dims.len())
            },
        };
        Shape {
            dims,
            elements: self.elements,
        }
    }
}

impl Shape {
    /// The shape with these extents. INVALID_ARGUMENT for a negative extent, too many of them, or too large a product.
    pub fn new(dims: &[i64]) -> Result<Shape> {
        ensure!(
            dims.len() <= MAX_RANK,
            InvalidArgument,
            "Too many dimensions in tensor: {}",
            dims.len()
        );
        let mut elements: i64 = 1;
        for &extent in dims {
            ensure!(
                extent >= 0,
                InvalidArgument,
                "Expected shape dimensions to be non-negative, got {extent}"
            );
            elements = elements.checked_mul(extent).ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "Shape {} would have more than 2**63 - 1 elements",
                    Dims(dims)
                )
            })?;
        }
        Ok(Shape {
            dims: SmallVec::from_slice(dims),
            elements: elements as usize,
        })
    }

    /// The shape of a single element.
    pub fn scalar() -> Shape {
        Shape {
            dims: SmallVec::new(),
            elements: 1,
        }
    }

    /// The shape `[n]`.
    pub fn vector(n: usize) -> Shape {
        Shape {
            dims: SmallVec::from_slice(&[n as i64]),
            elements: n,
        }
    }

    /// The extents.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// The number of extents.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// One extent. Panics if there is none at `axis`.
    pub fn dim(&self, axis: usize) -> usize {
        self.dims[axis] as usize
    }

    /// The product of the extents.
    pub fn num_elements(&self) -> usize {
        self.elements
    }

    /// Whether there is exactly one element in no dimensions.
    pub fn is_scalar(&self) -> bool {
        self.dims.is_empty()
    }

    /// The axis meant by a possibly negative number. INVALID_ARGUMENT when there is none.
    pub fn axis(&self, axis: i64) -> Result<usize> {
        let rank = self.rank() as i64;
        ensure!(
            -rank <= axis && axis < rank,
            InvalidArgument,
            "Expected dimension in the range [{}, {rank}), but got {axis}",
            -rank
        );
        Ok((if axis < 0 { axis + rank } else { axis }) as usize)
    }
}

struct Dims<'a>(&'a [i64]);

impl fmt::Display for Dims<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, &extent) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            if extent < 0 {
                f.write_str("?")?
            } else {
                write!(f, "{extent}")?
            }
        }
        f.write_str("]")
    }
}

/// `[2,3]`; a scalar is `[]`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Dims(&self.dims).fmt(f)
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Arithmetic on extents where -1 means unknown.
pub mod dim {
    use crate::{Result, ensure, status};

    /// An extent that is not known.
    pub const UNKNOWN: i64 = -1;

    /// Whether the extent is known.
    pub fn is_known(a: i64) -> bool {
        a >= 0
    }

    /// `a + b`; INVALID_ARGUMENT on overflow.
    pub fn add(a: i64, b: i64) -> Result<i64> {
        if a < 0 || b < 0 {
            return Ok(if a == 0 {
                b
            } else if b == 0 {
                a
            } else {
                UNKNOWN
            });
        }
        a.checked_add(b)
            .ok_or_else(|| status!(InvalidArgument, "Dimension size overflow from adding {a} and {b}"))
    }

    /// `a * b`; INVALID_ARGUMENT on overflow.
    pub fn mul(a: i64, b: i64) -> Result<i64> {
        if a == 0 || b == 0 {
            return Ok(0);
        }
        if a < 0 || b < 0 {
            return Ok(if a == 1 {
                b
            } else if b == 1 {
                a
            } else {
                UNKNOWN
            });
        }
        a.checked_mul(b).ok_or_else(|| {
            status!(
                InvalidArgument,
                "Negative dimension size caused by overflow when multiplying {a} and {b}"
            )
        })
    }

    /// The one extent that both mean. INVALID_ARGUMENT when both are known and differ.
    pub fn merge(a: i64, b: i64) -> Result<i64> {
        if a < 0 {
            return Ok(b);
        }
        ensure!(
            b < 0 || a == b,
            InvalidArgument,
            "Dimensions must be equal, but are {a} and {b}"
        );
        Ok(a)
    }
}

/// A shape of which the rank or some extents (-1) may be unknown.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct PartialShape(Option<SmallVec<[i64; 4]>>);

impl PartialShape {
    /// The shape of which nothing is known.
    pub fn unknown() -> PartialShape {
        PartialShape(None)
    }

    /// The shape with these extents; any negative one is unknown.
    pub fn new(dims: &[i64]) -> PartialShape {
        PartialShape(Some(
            dims.iter().map(|&extent| extent.max(dim::UNKNOWN)).collect(),
        ))
    }

    /// A scalar's shape.
    pub fn scalar() -> PartialShape {
        PartialShape::new(&[])
    }

    /// A shape of this rank with all extents unknown.
    pub fn of_rank(rank: usize) -> PartialShape {
        PartialShape(Some(SmallVec::from_elem(dim::UNKNOWN, rank)))
    }

    /// The extents, if the rank is known.
    pub fn dims(&self) -> Option<&[i64]> {
        self.0.as_deref()
    }

    /// The rank, if known.
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(|dims| dims.len())
    }

    /// The extent at a possibly negative axis; unknown (-1) when the rank is unknown or there is no such axis.
    pub fn dim(&self, axis: i64) -> i64 {
        let Some(dims) = &self.0 else { return dim::UNKNOWN };
        let index = if axis < 0 { axis + dims.len() as i64 } else { axis };
        usize::try_from(index)
            .ok()
            .and_then(|i| dims.get(i).copied())
            .unwrap_or(dim::UNKNOWN)
    }

    /// Whether rank and all extents are known.
    pub fn is_fully_known(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|dims| dims.iter().all(|&extent| extent >= 0))
    }

    /// The full shape, if everything is known and the number of elements fits.
    pub fn to_shape(&self) -> Option<Shape> {
        if !self.is_fully_known() {
            return None;
        }
        Shape::new(self.dims()?).ok()
    }

    /// Number of elements, or -1 when unknown.
    pub fn num_elements(&self) -> i64 {
        self.to_shape()
            .map_or(dim::UNKNOWN, |shape| shape.num_elements() as i64)
    }

    /// What both shapes say together. INVALID_ARGUMENT when they contradict each other.
    pub fn merge(&self, other: &PartialShape) -> Result<PartialShape> {
        let (Some(a), Some(b)) = (&self.0, &other.0) else {
            return Ok(if self.0.is_none() {
                other.clone()
            } else {
                self.clone()
            });
        };
        ensure!(
            a.len() == b.len(),
            InvalidArgument,
            "Shapes must be equal rank, but are {} and {}",
            a.len(),
            b.len()
        );
        let mut dims = SmallVec::new();
        for (i, (&x, &y)) in a.iter().zip(b).enumerate() {
            ensure!(
                x < 0 || y < 0 || x == y,
                InvalidArgument,
                "Dimension {i} in both shapes must be equal, but are {x} and {y}. Shapes are {self} and {other}."
            );
            dims.push(if x < 0 { y } else { x });
        }
        Ok(PartialShape(Some(dims)))
    }

    /// Whether a full or partial shape could be this one.
    pub fn is_compatible_with(&self, other: &PartialShape) -> bool {
        self.merge(other).is_ok()
    }

    /// What remains true of both: extents that differ become unknown, and so does a rank that differs.
    pub fn relax(&self, other: &PartialShape) -> PartialShape {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) if a.len() == b.len() => PartialShape(Some(
                a.iter()
                    .zip(b)
                    .map(|(&x, &y)| if x == y { x } else { dim::UNKNOWN })
                    .collect(),
            )),
            _ => PartialShape::unknown(),
        }
    }

    /// This shape if it has, or may have, this rank. INVALID_ARGUMENT otherwise.
    pub fn with_rank(&self, rank: usize) -> Result<PartialShape> {
        match self.rank() {
            None => Ok(PartialShape::of_rank(rank)),
            Some(actual) if actual == rank => Ok(self.clone()),
            Some(actual) => Err(status!(
                InvalidArgument,
                "Shape must be rank {rank} but is rank {actual}"
            )),
        }
    }

    /// This shape if its rank is, or may be, at least `rank`. INVALID_ARGUMENT otherwise.
    pub fn with_rank_at_least(&self, rank: usize) -> Result<PartialShape> {
        match self.rank() {
            Some(actual) if actual < rank => Err(status!(
                InvalidArgument,
                "Shape must be at least rank {rank} but is rank {actual}"
            )),
            _ => Ok(self.clone()),
        }
    }

    /// This shape if its rank is, or may be, at most `rank`. INVALID_ARGUMENT otherwise.
    pub fn with_rank_at_most(&self, rank: usize) -> Result<PartialShape> {
        match self.rank() {
            Some(actual) if actual > rank => Err(status!(
                InvalidArgument,
                "Shape must be at most rank {rank} but is rank {actual}"
            )),
            _ => Ok(self.clone()),
        }
    }

    /// The extents from `start` to `end` (negative counts from the back); unknown when the rank is.
    pub fn slice(&self, start: i64, end: Option<i64>) -> PartialShape {
        let Some(dims) = &self.0 else {
            return PartialShape::unknown();
        };
        let rank = dims.len() as i64;
        let place = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize;
        let (start, end) = (place(start), place(end.unwrap_or(rank)));
        PartialShape::new(&dims[start..end.max(start)])
    }

    /// The extents of this shape, then those of `other`.
    pub fn concat(&self, other: &PartialShape) -> PartialShape {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => PartialShape(Some(a.iter().chain(b).copied().collect())),
            _ => PartialShape::unknown(),
        }
    }

    /// The same shape with one extent replaced; unknown when the rank is. INVALID_ARGUMENT for a bad axis.
    pub fn with_dim(&self, axis: i64, extent: i64) -> Result<PartialShape> {
        let Some(dims) = &self.0 else {
            return Ok(PartialShape::unknown());
        };
        let mut dims = dims.clone();
        let index = if axis < 0 { axis + dims.len() as i64 } else { axis };
        let slot = usize::try_from(index).ok().and_then(|i| dims.get_mut(i));
        let slot =
            slot.ok_or_else(|| status!(InvalidArgument, "Out of range dim_index {axis} for shape {self}"))?;
        *slot = extent;
        Ok(PartialShape(Some(dims)))
    }
}

impl From<&Shape> for PartialShape {
    fn from(shape: &Shape) -> PartialShape {
        PartialShape::new(shape.dims())
    }
}

/// `[?,3]`; `<unknown>` when the rank is not known.
impl fmt::Display for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(dims) => Dims(dims).fmt(f),
            None => f.write_str("<unknown>"),
        }
    }
}

impl fmt::Debug for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn full_shapes_are_checked() {
        assert_eq!(Shape::new(&[2, 3]).unwrap().num_elements(), 6);
        assert_eq!(Shape::new(&[-1]).unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(
            Shape::new(&[1 << 40, 1 << 40]).unwrap_err().code(),
            Code::InvalidArgument
        );
        assert_eq!(Shape::new(&[4, 5]).unwrap().axis(-1).unwrap(), 1);
        assert!(Shape::new(&[4, 5]).unwrap().axis(2).is_err());
    }

    #[test]
    fn partial_shapes_merge_and_relax() {
        let a = PartialShape::new(&[-1, 3]);
        let b = PartialShape::new(&[2, -1]);
        assert_eq!(a.merge(&b).unwrap(), PartialShape::new(&[2, 3]));
        assert_eq!(a.relax(&b), PartialShape::new(&[-1, -1]));
        assert!(a.merge(&PartialShape::new(&[2, 4])).is_err());
        assert_eq!(a.to_string(), "[?,3]");
        assert_eq!(PartialShape::unknown().to_string(), "<unknown>");
        assert_eq!(a.slice(-1, None), PartialShape::new(&[3]));
    }
}
