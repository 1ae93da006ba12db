//! Slices: for each dimension of a tensor a start and a length, or all of it.

use ff_proto::TensorSliceProto;
use ff_proto::tensor_slice_proto::Extent as ExtentProto;
use ff_proto::tensor_slice_proto::extent::HasLengthHack;
use ff_tensor::{Result, Shape, bail, ensure, status};
use std::fmt;

/// A part of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The first index.
    pub start: i64,
    /// How many indices; none means all (and a start of 0).
    pub length: Option<i64>,
}

impl Extent {
    const FULL: Extent = Extent {
        start: 0,
        length: None,
    };
}

/// A part of a tensor. Starts are at least 0 and lengths above 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorSlice(Vec<Extent>);

impl TensorSlice {
    /// All of a tensor of this rank.
    pub fn full(rank: usize) -> TensorSlice {
        TensorSlice(vec![Extent::FULL; rank])
    }

    /// The slice of a text such as `0,10:-:5,3`. INVALID_ARGUMENT when it is not one.
    pub fn parse(text: &str) -> Result<TensorSlice> {
        let mut extents = Vec::new();
        for item in text.split(':').filter(|item| !item.is_empty()) {
            if item == "-" {
                extents.push(Extent::FULL);
                continue;
            }
            let numbers = item
                .split_once(',')
                .and_then(|(start, length)| Some((start.parse().ok()?, length.parse().ok()?)));
            let Some((start, length)) = numbers else {
                bail!(
                    InvalidArgument,
                    "Expected a pair of numbers or '-' but got '{item}': string = {text}"
                );
            };
            extents
                .push(extent(start, length).map_err(|error| error.suffixed(&format!(": string = {text}")))?);
        }
        Ok(TensorSlice(extents))
    }

    /// The slice of a message. INVALID_ARGUMENT for a negative start or a length below 1.
    pub fn from_proto(proto: &TensorSliceProto) -> Result<TensorSlice> {
        let convert = |item: &ExtentProto| match item.has_length_hack {
            Some(HasLengthHack::Length(length)) => extent(item.start, length),
            None if item.start == 0 => Ok(Extent::FULL),
            None => Err(status!(
                InvalidArgument,
                "Slice with a start of {} but no length",
                item.start
            )),
        };
        proto
            .extent
            .iter()
            .map(convert)
            .collect::<Result<_>>()
            .map(TensorSlice)
    }

    /// The message of the slice.
    pub fn to_proto(&self) -> TensorSliceProto {
        let convert = |item: &Extent| ExtentProto {
            start: item.start,
            has_length_hack: item.length.map(HasLengthHack::Length),
        };
        TensorSliceProto {
            extent: self.0.iter().map(convert).collect(),
        }
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The parts, one per dimension.
    pub fn extents(&self) -> &[Extent] {
        &self.0
    }

    /// Whether this is all of the tensor, said as such.
    pub fn is_full(&self) -> bool {
        self.0.iter().all(|extent| extent.length.is_none())
    }

    /// The slice's place in a tensor: its range in each dimension. INTERNAL when it does not lie in the shape.
    pub fn ranges(&self, shape: &Shape) -> Result<Vec<(i64, i64)>> {
        ensure!(
            self.rank() == shape.rank(),
            Internal,
            "Mismatching ranks: shape = {shape}, slice = {self}"
        );
        let mut ranges = Vec::with_capacity(self.rank());
        for (axis, (extent, &size)) in self.0.iter().zip(shape.dims()).enumerate() {
            let length = extent.length.unwrap_or(size);
            let end = extent.start.checked_add(length).filter(|&end| end <= size);
            let Some(end) = end else {
                bail!(
                    Internal,
                    "Extent in dimension {axis} out of bounds: shape = {shape}, slice = {self}"
                );
            };
            ranges.push((extent.start, end));
        }
        Ok(ranges)
    }

    /// The shape of this slice of a tensor. INTERNAL when it does not lie in the tensor's shape.
    pub fn shape_in(&self, shape: &Shape) -> Result<Shape> {
        let ranges = self.ranges(shape)?;
        Shape::new(&ranges.iter().map(|(start, end)| end - start).collect::<Vec<_>>())
    }
}

fn extent(start: i64, length: i64) -> Result<Extent> {
    ensure!(
        start >= 0 && length > 0,
        InvalidArgument,
        "Expected non-negative start and positive length but got start = {start}, length = {length}"
    );
    Ok(Extent {
        start,
        length: Some(length),
    })
}

/// `0,10:-:5,3`.
impl fmt::Display for TensorSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, extent) in self.0.iter().enumerate() {
            f.write_str(if axis > 0 { ":" } else { "" })?;
            match extent.length {
                Some(length) => write!(f, "{},{length}", extent.start)?,
                None => f.write_str("-")?,
            }
        }
        Ok(())
    }
}

/// What saving and restoring ops take as `shape_and_slice`: the shape of a whole tensor, and a slice of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeAndSlice {
    /// Shape of the whole tensor.
    pub shape: Shape,
    /// The part that is meant.
    pub slice: TensorSlice,
    /// Shape of the part.
    pub slice_shape: Shape,
}

impl ShapeAndSlice {
    /// Reads a text such as `4 6 0,2:-`. INVALID_ARGUMENT when it is not one, INTERNAL when the slice does not lie in
    /// the shape.
    pub fn parse(text: &str) -> Result<ShapeAndSlice> {
        let Some((dims, slice)) = text.rsplit_once(' ') else {
            bail!(
                InvalidArgument,
                "Need least two elements in shape_and_slice specification: {text}"
            );
        };
        let slice = TensorSlice::parse(slice)?;
        let number = |dim: &str| {
            dim.parse::<i64>().map_err(|_| {
                status!(
                    InvalidArgument,
                    "Non numerical dimension in shape_and_slice: {text}"
                )
            })
        };
        let dims = dims.split(' ').map(number).collect::<Result<Vec<_>>>()?;
        let shape = Shape::new(&dims)?;
        let slice_shape = slice.shape_in(&shape)?;
        Ok(ShapeAndSlice {
            shape,
            slice,
            slice_shape,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff_tensor::Code;

    #[test]
    fn texts_of_slices() {
        for text in ["-", "0,2:-", "-:5,3:-", "1,9223372036854775806"] {
            let slice = TensorSlice::parse(text).unwrap();
            assert_eq!(slice.to_string(), text);
            assert_eq!(TensorSlice::from_proto(&slice.to_proto()).unwrap(), slice);
        }
        assert!(TensorSlice::parse("-:-").unwrap().is_full());
        assert_eq!(TensorSlice::parse("").unwrap().rank(), 0);
    }

    #[test]
    fn shapes_with_slices() {
        let parsed = ShapeAndSlice::parse("4 6 0,2:-").unwrap();
        assert_eq!(parsed.shape.dims(), [4, 6]);
        assert_eq!(parsed.slice_shape.dims(), [2, 6]);
    }

    #[test]
    fn bad_texts_have_the_texts_of_the_reference() {
        for (text, code, message) in [
            (
                "5",
                Code::InvalidArgument,
                "Need least two elements in shape_and_slice specification: 5",
            ),
            (
                "x 3 -:-",
                Code::InvalidArgument,
                "Non numerical dimension in shape_and_slice: x 3 -:-",
            ),
            (
                "5 3",
                Code::InvalidArgument,
                "Expected a pair of numbers or '-' but got '3': string = 3",
            ),
            (
                "5 3 -",
                Code::Internal,
                "Mismatching ranks: shape = [5,3], slice = -",
            ),
            (
                "5 3 0,9:-",
                Code::Internal,
                "Extent in dimension 0 out of bounds: shape = [5,3], slice = 0,9:-",
            ),
            (
                "5 3 0,0:-",
                Code::InvalidArgument,
                "Expected non-negative start and positive length but got start = 0, length = 0: string = 0,0:-",
            ),
            (
                "5 3 -1,2:-",
                Code::InvalidArgument,
                "Expected non-negative start and positive length but got start = -1, length = 2: string = -1,2:-",
            ),
        ] {
            let error = ShapeAndSlice::parse(text).unwrap_err();
            assert_eq!((error.code(), error.message()), (code, message));
        }
        assert!(ShapeAndSlice::parse("5 -3 -:-").is_err());
        assert!(ShapeAndSlice::parse("9223372036854775807 4 -:-").is_err());
        assert!(ShapeAndSlice::parse("5 9223372036854775807,9223372036854775807").is_err());
    }
}
