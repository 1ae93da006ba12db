//! Moving elements between tensors by strides, whatever their type.
//!
//! Everything that only moves elements (slice, transpose, pad, tile, concat, ..) is one or more calls of
//! [`Writer::write`]. Plain elements are copied by their size, strings, handles and variants are cloned.
//! It does not check shapes against an op's rules; a region outside its tensor is an INTERNAL error.

use ff_tensor::{DataType, ResourceHandle, Result, Shape, TString, Tensor, VariantValue, ensure};
use smallvec::SmallVec;

/// Where the elements of a region lie in a tensor: a first element and a step along each axis, in elements.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// The element at the region's origin.
    pub offset: i64,
    /// The distance between neighbours along each axis; 0 repeats, negative goes backwards.
    pub strides: &'a [i64],
}

/// The strides of a dense tensor with these extents.
pub fn row_major(dims: &[i64]) -> SmallVec<[i64; 6]> {
    let mut strides = SmallVec::from_elem(1, dims.len());
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis].max(1);
    }
    strides
}

/// A new tensor of shape `shape` whose elements are a region of `source`.
pub fn read(source: &Tensor, shape: Shape, region: Region) -> Result<Tensor> {
    let mut writer = Writer::new(source.dtype(), shape.clone())?;
    let strides = row_major(shape.dims());
    let to = Region {
        offset: 0,
        strides: &strides,
    };
    writer.write(shape.dims(), to, source, region)?;
    writer.finish()
}

/// `source` with its axes permuted: axis `i` of the result is axis `permutation[i]` of the source.
pub fn transpose(source: &Tensor, permutation: &[usize]) -> Result<Tensor> {
    let strides = row_major(source.dims());
    let dims: SmallVec<[i64; 6]> = permutation.iter().map(|&axis| source.dims()[axis]).collect();
    let strides: SmallVec<[i64; 6]> = permutation.iter().map(|&axis| strides[axis]).collect();
    let region = Region {
        offset: 0,
        strides: &strides,
    };
    read(source, Shape::new(&dims)?, region)
}

/// `source` repeated along axes of extent 1, and along new leading axes, to fill `shape`.
pub fn broadcast(source: &Tensor, shape: Shape) -> Result<Tensor> {
    let strides = row_major(source.dims());
    let missing = shape.rank() - source.rank();
    let mut repeated: SmallVec<[i64; 6]> = SmallVec::from_elem(0, missing);
    let step = |(&stride, &extent): (&i64, &i64)| if extent == 1 { 0 } else { stride };
    repeated.extend(strides.iter().zip(source.dims()).map(step));
    let region = Region {
        offset: 0,
        strides: &repeated,
    };
    read(source, shape, region)
}

enum Elements {
    Plain(Tensor),
    Strings(Vec<TString>),
    Resources(Vec<ResourceHandle>),
    Variants(Vec<VariantValue>),
}

/// A tensor in the making.
pub struct Writer {
    shape: Shape,
    elements: Elements,
}

impl Writer {
    /// A tensor whose elements are unspecified until written.
    pub fn new(dtype: DataType, shape: Shape) -> Result<Writer> {
        Writer::onto(Tensor::allocate(dtype, shape)?)
    }

    /// A tensor of zeros, or empty strings, handles or variants.
    pub fn zeros(dtype: DataType, shape: Shape) -> Result<Writer> {
        Writer::onto(Tensor::zeros(dtype, shape)?)
    }

    /// A tensor of this shape filled with a single element.
    pub fn filled(value: &Tensor, shape: Shape) -> Result<Writer> {
        let mut writer = Writer::new(value.dtype(), shape)?;
        let (zeros, count) = ([0], [writer.shape.num_elements() as i64]);
        let to = Region {
            offset: 0,
            strides: &[1],
        };
        let from = Region {
            offset: 0,
            strides: &zeros,
        };
        writer.write(&count, to, value, from)?;
        Ok(writer)
    }

    /// A tensor that starts with the elements of another; in its own memory if nobody shares it.
    pub fn onto(mut tensor: Tensor) -> Result<Writer> {
        let shape = tensor.shape().clone();
        let elements = match tensor.dtype() {
            DataType::STRING => Elements::Strings(tensor.strings()?.to_vec()),
            DataType::RESOURCE => Elements::Resources(tensor.resources()?.to_vec()),
            DataType::VARIANT => Elements::Variants(tensor.variants()?.to_vec()),
            _ => {
                tensor.make_writable()?;
                Elements::Plain(tensor)
            }
        };
        Ok(Writer { shape, elements })
    }

    /// Copies a region of `dims` extents from `source`. INTERNAL when a region leaves its tensor.
    pub fn write(&mut self, dims: &[i64], to: Region, source: &Tensor, from: Region) -> Result<()> {
        if dims.contains(&0) {
            return Ok(());
        }
        check_region(dims, to, self.shape.num_elements())?;
        check_region(dims, from, source.num_elements())?;
        let walk = Walk::new(dims, to, from);
        match &mut self.elements {
            Elements::Strings(strings) => walk.copy(strings, source.strings()?),
            Elements::Resources(handles) => walk.copy(handles, source.resources()?),
            Elements::Variants(values) => walk.copy(values, source.variants()?),
            Elements::Plain(tensor) => copy_plain(&walk, tensor, source)?,
        }
        Ok(())
    }

    /// Copies `count` neighbouring elements.
    pub fn copy(&mut self, to: usize, source: &Tensor, from: usize, count: usize) -> Result<()> {
        let region = |offset: usize| Region {
            offset: offset as i64,
            strides: &[1],
        };
        self.write(&[count as i64], region(to), source, region(from))
    }

    /// The tensor.
    pub fn finish(self) -> Result<Tensor> {
        match self.elements {
            Elements::Plain(tensor) => Ok(tensor),
            Elements::Strings(strings) => Tensor::from_strings(self.shape, strings),
            Elements::Resources(handles) => Tensor::from_resources(self.shape, handles),
            Elements::Variants(values) => Tensor::from_variants(self.shape, values),
        }
    }
}

/// Copies elements as the bytes that they are.
fn copy_plain(walk: &Walk, target: &mut Tensor, source: &Tensor) -> Result<()> {
    ensure!(
        source.dtype().base() == target.dtype().base(),
        InvalidArgument,
        "Expected a tensor of type {}, got one of type {}",
        target.dtype(),
        source.dtype()
    );
    let size = source.dtype().size();
    let Some(bytes) = target.bytes_mut() else {
        ff_tensor::bail!(Internal, "the tensor being written is shared");
    };
    match size {
        1 => walk.copy(bytes, source.bytes()),
        2 => walk.copy(bytes.as_chunks_mut::<2>().0, source.bytes().as_chunks::<2>().0),
        4 => walk.copy(bytes.as_chunks_mut::<4>().0, source.bytes().as_chunks::<4>().0),
        8 => walk.copy(bytes.as_chunks_mut::<8>().0, source.bytes().as_chunks::<8>().0),
        16 => walk.copy(bytes.as_chunks_mut::<16>().0, source.bytes().as_chunks::<16>().0),
        other => ff_tensor::bail!(Internal, "elements of {other} bytes cannot be moved"),
    }
    Ok(())
}

/// Fails unless all elements of a region (of no zero extent) are among the `count` of its tensor.
fn check_region(dims: &[i64], region: Region, count: usize) -> Result<()> {
    let (mut low, mut high) = (i128::from(region.offset), i128::from(region.offset));
    for (&extent, &stride) in dims.iter().zip(region.strides) {
        let reach = i128::from(extent - 1) * i128::from(stride);
        if reach < 0 { low += reach } else { high += reach }
    }
    ensure!(
        dims.len() == region.strides.len() && low >= 0 && high < count as i128,
        Internal,
        "a region leaves its tensor"
    );
    Ok(())
}

/// One axis of a copy: extent, stride in the target, stride in the source.
type Axis = (i64, i64, i64);

/// The order in which two regions are walked: as few axes as possible, the last one innermost.
struct Walk {
    axes: SmallVec<[Axis; 6]>,
    to: i64,
    from: i64,
}

impl Walk {
    fn new(dims: &[i64], to: Region, from: Region) -> Walk {
        let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
        for axis in 0..dims.len() {
            let next = (dims[axis], to.strides[axis], from.strides[axis]);
            if next.0 == 1 {
                continue;
            }
            match axes.last_mut() {
                // Neighbouring axes that are dense in both regions are one.
                Some(last) if last.1 == next.1 * next.0 && last.2 == next.2 * next.0 => {
                    *last = (last.0 * next.0, next.1, next.2);
                }
                _ => axes.push(next),
            }
        }
        Walk {
            axes,
            to: to.offset,
            from: from.offset,
        }
    }

    fn copy<T: Clone>(&self, target: &mut [T], source: &[T]) {
        let Some((&(length, to_step, from_step), outer)) = self.axes.split_last() else {
            target[self.to as usize] = source[self.from as usize].clone();
            return;
        };
        let mut position: SmallVec<[i64; 6]> = SmallVec::from_elem(0, outer.len());
        let (mut to, mut from) = (self.to, self.from);
        loop {
            copy_row(target, (to, to_step), source, (from, from_step), length);
            let mut axis = outer.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                let (extent, to_stride, from_stride) = outer[axis];
                position[axis] += 1;
                (to, from) = (to + to_stride, from + from_stride);
                if position[axis] < extent {
                    break;
                }
                (to, from) = (to - extent * to_stride, from - extent * from_stride);
                position[axis] = 0;
            }
        }
    }
}

fn copy_row<T: Clone>(target: &mut [T], to: (i64, i64), source: &[T], from: (i64, i64), length: i64) {
    let ((to, to_step), (from, from_step)) = (to, from);
    let count = length as usize;
    if to_step == 1 {
        let row = &mut target[to as usize..to as usize + count];
        match from_step {
            1 => row.clone_from_slice(&source[from as usize..from as usize + count]),
            0 => row.fill(source[from as usize].clone()),
            _ => {
                for (i, slot) in row.iter_mut().enumerate() {
                    *slot = source[(from + i as i64 * from_step) as usize].clone();
                }
            }
        }
        return;
    }
    for i in 0..length {
        target[(to + i * to_step) as usize] = source[(from + i * from_step) as usize].clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_read_in_any_order_and_checked() {
        let source = Tensor::from_slice(Shape::new(&[2, 3]).unwrap(), &[1i32, 2, 3, 4, 5, 6]).unwrap();
        let turned = transpose(&source, &[1, 0]).unwrap();
        assert_eq!(turned.dims(), &[3, 2]);
        assert_eq!(turned.as_slice::<i32>().unwrap(), &[1, 4, 2, 5, 3, 6]);
        let backwards = Region {
            offset: 5,
            strides: &[-1],
        };
        let reversed = read(&source, Shape::vector(6), backwards).unwrap();
        assert_eq!(reversed.as_slice::<i32>().unwrap(), &[6, 5, 4, 3, 2, 1]);
        assert!(read(&source, Shape::vector(7), backwards).is_err());
        let names = Tensor::from_strings(Shape::vector(2), vec!["a".into(), "b".into()]).unwrap();
        let wide = broadcast(&names, Shape::new(&[2, 2]).unwrap()).unwrap();
        assert_eq!(wide.strings().unwrap()[3].as_bytes(), b"b");
    }
}
