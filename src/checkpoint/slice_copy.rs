//! Putting a part of a tensor together from stored slices.

use crate::TensorSlice;
use ff_tensor::{DataType, Result, Shape, Tensor, bail, ensure};

/// A half-open range in each dimension.
type Ranges = Vec<(i64, i64)>;

fn elements(ranges: &Ranges) -> usize {
    ranges.iter().map(|(start, end)| (end - start) as usize).product()
}

fn intersection(a: &Ranges, b: &Ranges) -> Option<Ranges> {
    let mut both = Vec::with_capacity(a.len());
    for (x, y) in a.iter().zip(b) {
        let (start, end) = (x.0.max(y.0), x.1.min(y.1));
        if start >= end {
            return None;
        }
        both.push((start, end));
    }
    Some(both)
}

/// The stored slices that overlap what is wanted, by their number and place. None unless together they cover it.
/// INVALID_ARGUMENT when they overlap each other there.
fn covering(stored: &[Ranges], wanted: &Ranges) -> Result<Option<Vec<(usize, Ranges)>>> {
    let mut parts: Vec<(usize, Ranges)> = Vec::new();
    let mut found = 0;
    for (number, ranges) in stored.iter().enumerate() {
        let Some(part) = intersection(ranges, wanted) else {
            continue;
        };
        // The usual partitions are along one axis and sorted: then only the neighbour can overlap.
        if let Some((other, _)) = parts
            .iter()
            .find(|(_, other)| intersection(other, &part).is_some())
        {
            bail!(
                InvalidArgument,
                "Overlapping slices: number {other} and number {number}"
            );
        }
        found += elements(&part);
        parts.push((number, part));
    }
    Ok((found == elements(wanted)).then_some(parts))
}

/// The part `wanted` of a tensor of which `stored` slices exist; `read` gets one by its number. None when the stored
/// slices do not cover it. INVALID_ARGUMENT for types that are not plain.
pub fn assemble(
    dtype: DataType,
    shape: &Shape,
    wanted: &TensorSlice,
    stored: &[TensorSlice],
    mut read: impl FnMut(usize) -> Result<Tensor>,
) -> Result<Option<Tensor>> {
    let target = wanted.ranges(shape)?;
    let places = stored
        .iter()
        .map(|slice| slice.ranges(shape))
        .collect::<Result<Vec<_>>>()?;
    if let Some(number) = places.iter().position(|place| *place == target) {
        return read(number).map(Some);
    }
    ensure!(dtype.is_plain(), InvalidArgument, "Dtype {dtype} not supported.");
    let Some(parts) = covering(&places, &target)? else {
        return Ok(None);
    };
    let mut result = Tensor::allocate(dtype, wanted.shape_in(shape)?)?;
    for (number, part) in parts {
        let source = read(number)?;
        ensure!(
            source.dtype() == dtype && source.num_elements() == elements(&places[number]),
            DataLoss,
            "a slice has type {} and shape {}, not type {dtype} and the shape of its place",
            source.dtype(),
            source.shape()
        );
        if let Some(bytes) = result.bytes_mut() {
            copy(
                source.bytes(),
                &places[number],
                bytes,
                &target,
                &part,
                dtype.size(),
            );
        }
    }
    Ok(Some(result))
}

/// The part `wanted` of a whole tensor. INTERNAL when it does not lie in its shape.
pub fn slice_of(whole: &Tensor, wanted: &TensorSlice) -> Result<Tensor> {
    let all = TensorSlice::full(whole.rank());
    let part = assemble(
        whole.dtype(),
        whole.shape(),
        wanted,
        &[all],
        |_| Ok(whole.clone()),
    )?;
    match part {
        Some(part) => Ok(part),
        None => bail!(Internal, "slice {wanted} is not part of shape {}", whole.shape()),
    }
}

/// Copies the elements of `part` between two row-major arrays that lie at these places of one tensor.
fn copy(from: &[u8], from_place: &Ranges, to: &mut [u8], to_place: &Ranges, part: &Ranges, size: usize) {
    let rank = part.len();
    // The innermost dimensions that both arrays have whole are one run.
    let mut run_axis = rank;
    let mut run = size;
    while run_axis > 0 {
        run_axis -= 1;
        run *= (part[run_axis].1 - part[run_axis].0) as usize;
        if part[run_axis] != from_place[run_axis] || part[run_axis] != to_place[run_axis] {
            break;
        }
    }
    let offset = |index: &[i64], place: &Ranges| {
        let position = index.iter().zip(place).fold(0, |position, (&at, &(start, end))| {
            position * (end - start) as usize + (at - start) as usize
        });
        position * size
    };
    let mut index: Vec<i64> = part.iter().map(|range| range.0).collect();
    loop {
        let (source, target) = (offset(&index, from_place), offset(&index, to_place));
        to[target..target + run].copy_from_slice(&from[source..source + run]);
        let mut axis = run_axis;
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < part[axis].1 {
                break;
            }
            index[axis] = part[axis].0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_from_all_slices() {
        let shape = Shape::new(&[4, 3, 5]).unwrap();
        let whole = Tensor::from_slice(shape.clone(), &(0..60).collect::<Vec<i32>>()).unwrap();
        let texts = ["0,1:-:-", "1,3:0,2:-", "1,3:2,1:0,3", "1,3:2,1:3,2"];
        let stored: Vec<_> = texts
            .iter()
            .map(|text| TensorSlice::parse(text).unwrap())
            .collect();
        let pieces: Vec<_> = stored
            .iter()
            .map(|slice| slice_of(&whole, slice).unwrap())
            .collect();
        assert_eq!(pieces[3].as_slice::<i32>().unwrap(), [28, 29, 43, 44, 58, 59]);
        for text in ["-:-:-", "0,2:-:1,3", "2,1:2,1:4,1", "0,1:-:-", "1,3:1,2:2,2"] {
            let wanted = TensorSlice::parse(text).unwrap();
            let part = assemble(DataType::INT32, &shape, &wanted, &stored, |number| {
                Ok(pieces[number].clone())
            });
            let expected = slice_of(&whole, &wanted).unwrap();
            assert_eq!(part.unwrap().unwrap().bytes(), expected.bytes(), "{text}");
        }
        let wanted = TensorSlice::full(3);
        let part = assemble(DataType::INT32, &shape, &wanted, &stored[1..], |number| {
            Ok(pieces[number].clone())
        });
        assert!(part.unwrap().is_none());
    }

    #[test]
    fn overlaps_and_scalars() {
        let shape = Shape::vector(4);
        let stored = ["0,3", "2,2"].map(|text| TensorSlice::parse(text).unwrap());
        let read = |_| Tensor::zeros(DataType::FLOAT, Shape::vector(3));
        assert!(assemble(DataType::FLOAT, &shape, &TensorSlice::full(1), &stored, read).is_err());
        let scalar = Tensor::scalar(7i64).unwrap();
        assert_eq!(
            slice_of(&scalar, &TensorSlice::full(0))
                .unwrap()
                .single::<i64>()
                .unwrap(),
            7
        );
    }
}
