//! The left rows of a convolution's product: for each output pixel the input under the window, in segments of
//! contiguous elements.

use super::Convolution;
use crate::elementwise::cost;
use crate::gemm::{Element, MAX_ROWS, RowPointers, RowSource};
use crate::memory::SharedMut;
use crate::pool::ThreadPool;
use std::ops::Range;

/// Elements of padded input that are made at a time.
const COPY_ELEMENTS: usize = 2 << 20;

/// Gathers rows from an input that is complete, or whose missing elements are replaced by a row of zeros.
#[derive(Clone, Copy)]
pub struct Gather<'a, T> {
    shape: &'a Convolution,
    data: &'a [T],
    /// Spatial extents of `data`.
    extents: [usize; 3],
    /// Where windows reach outside: what is read there.
    zeros: Option<&'a [T]>,
    channel: usize,
    /// Window positions per segment: one, or a row of the window.
    taps: usize,
}

impl<'a, T: Element> Gather<'a, T> {
    /// For data that covers every position of every window.
    pub fn inside(shape: &'a Convolution, data: &'a [T], extents: [usize; 3]) -> Gather<'a, T> {
        let last = &shape.axes[2];
        let whole_rows = shape.groups == 1 && last.window_dilation == 1;
        for (axis, &extent) in shape.axes.iter().zip(&extents) {
            assert!(axis.span() <= extent, "windows reach outside");
        }
        assert!(data.len() >= shape.batch * extents.iter().product::<usize>() * shape.in_channels);
        let taps = if whole_rows { last.window } else { 1 };
        Gather {
            shape,
            data,
            extents,
            zeros: None,
            channel: 0,
            taps,
        }
    }

    /// For the bare input; `zeros` is as long as a group's channels.
    pub fn checked(shape: &'a Convolution, input: &'a [T], zeros: &'a [T]) -> Gather<'a, T> {
        let extents = shape.axes.map(|a| a.input);
        assert!(zeros.len() >= shape.in_channels / shape.groups);
        assert!(shape.axes.iter().all(|a| a.input_dilation == 1));
        assert!(input.len() >= shape.input_len());
        Gather {
            shape,
            data: input,
            extents,
            zeros: Some(zeros),
            channel: 0,
            taps: 1,
        }
    }

    /// The rows of the group whose first input channel is `channel`.
    pub fn group(&self, channel: usize) -> Gather<'a, T> {
        Gather { channel, ..*self }
    }

    /// Image, and position of the first window element in the data along each axis (negative in padding), of the rows
    /// from `row` on.
    fn origins(&self, row: usize, origins: &mut [(isize, [isize; 3])]) {
        let axes = &self.shape.axes;
        let (rest, mut x) = (row / axes[2].output, row % axes[2].output);
        let (rest, mut y) = (rest / axes[1].output, rest % axes[1].output);
        let (mut image, mut z) = (rest / axes[0].output, rest % axes[0].output);
        let low = axes.map(|axis| if self.zeros.is_some() { axis.low } else { 0 });
        for origin in origins {
            let at = |axis: usize, o: usize| (o * axes[axis].stride) as isize - low[axis];
            *origin = (image as isize, [at(0, z), at(1, y), at(2, x)]);
            x += 1;
            if x == axes[2].output {
                (x, y) = (0, y + 1);
            }
            if y == axes[1].output {
                (y, z) = (0, z + 1);
            }
            if z == axes[0].output {
                (z, image) = (0, image + 1);
            }
        }
    }

    /// The window position where a segment starts; the last one counts segments of a row.
    fn window_place(&self, segment: usize, per_row: usize) -> (usize, usize, usize) {
        let (rest, wx) = (segment / per_row.max(1), segment % per_row.max(1));
        let window = self.shape.axes[1].window.max(1);
        (rest / window, rest % window, wx)
    }
}

impl<T: Element> RowSource<T> for Gather<'_, T> {
    fn segments(&self) -> usize {
        self.shape.taps() / self.taps.max(1)
    }

    fn segment(&self) -> usize {
        self.taps * (self.shape.in_channels / self.shape.groups)
    }

    fn step(&self) -> usize {
        1
    }

    fn pointers(
        &self,
        rows: Range<usize>,
        segments: Range<usize>,
        term: usize,
        table: &mut [RowPointers<T>],
    ) {
        let [a0, a1, a2] = &self.shape.axes;
        let [e0, e1, e2] = self.extents.map(|e| e as isize);
        let channels = self.shape.in_channels as isize;
        let per_row = a2.window / self.taps.max(1);
        // Image and first window element of each row; divisions once, then counted on.
        let mut origins = [(0, [0; 3]); MAX_ROWS];
        let count = rows.len().min(MAX_ROWS);
        self.origins(rows.start, &mut origins[..count]);
        let (channel, term) = (self.channel + term, term);
        let (mut wz, mut wy, mut wx) = self.window_place(segments.start, per_row);
        for pointers in table.iter_mut().take(segments.len()) {
            let dz = (wz * a0.window_dilation) as isize;
            let dy = (wy * a1.window_dilation) as isize;
            let dx = (wx * a2.window_dilation) as isize;
            for (pointer, &(image, [z, y, x])) in pointers.iter_mut().zip(&origins[..count]) {
                let (z, y, x) = (z + dz, y + dy, x + dx);
                let inside = (0..e0).contains(&z) && (0..e1).contains(&y) && (0..e2).contains(&x);
                *pointer = match self.zeros {
                    Some(zeros) if !inside => zeros.as_ptr().wrapping_add(term),
                    _ => {
                        let at = (((image * e0 + z) * e1 + y) * e2 + x) * channels;
                        self.data.as_ptr().wrapping_add(at as usize + channel)
                    }
                };
            }
            wx += 1;
            if wx == per_row {
                (wx, wy) = (0, wy + 1);
            }
            if wy == a1.window {
                (wy, wz) = (0, wz + 1);
            }
        }
    }
}

/// A copy of the input with its padding and its dilation filled in with zeros.
pub struct PaddedCopy {
    /// Spatial extents of the copy.
    pub extents: [usize; 3],
    /// Images to copy at a time.
    pub images: usize,
    channels: usize,
}

impl PaddedCopy {
    /// Plans the copy for a convolution.
    pub fn new(shape: &Convolution) -> PaddedCopy {
        let extents = shape.axes.map(|a| a.span());
        let image = extents.iter().product::<usize>() * shape.in_channels;
        let images = (COPY_ELEMENTS / image.max(1)).clamp(1, shape.batch.max(1));
        PaddedCopy {
            extents,
            images,
            channels: shape.in_channels,
        }
    }

    /// Elements of the copy of `images` images.
    pub fn len(&self, images: usize) -> usize {
        images * self.extents.iter().product::<usize>() * self.channels
    }

    /// Fills the copy from the input.
    pub fn fill<T: Element>(&self, pool: &ThreadPool, shape: &Convolution, input: &[T], to: &mut [T]) {
        let [e0, e1, e2] = self.extents;
        let row = e2 * self.channels;
        let to = SharedMut::new(to);
        let [a0, a1, a2] = &shape.axes;
        // The copy's position `at` is what window element 0 of output `at` would see with a stride of one.
        let unstrided = |axis: &super::Axis| super::Axis { stride: 1, ..*axis };
        let (u0, u1, u2) = (unstrided(a0), unstrided(a1), unstrided(a2));
        pool.parallel_for(shape.batch * e0 * e1, row as f64 * cost::SIMPLE, |lines| {
            for line in lines {
                // SAFETY: lines are disjoint.
                let out = unsafe { to.range(line * row..(line + 1) * row) };
                let (rest, y) = (line / e1, line % e1);
                let (image, z) = (rest / e0, rest % e0);
                let (Some(z), Some(y)) = (u0.source(z, 0), u1.source(y, 0)) else {
                    out.fill(T::default());
                    continue;
                };
                let from = ((image * a0.input + z) * a1.input + y) * a2.input * self.channels;
                let from = &input[from..from + a2.input * self.channels];
                if a2.input_dilation == 1 {
                    copy_line(from, a2.low * self.channels as isize, out);
                    continue;
                }
                for (x, out) in out.chunks_exact_mut(self.channels.max(1)).enumerate() {
                    match u2.source(x, 0) {
                        Some(x) => out.copy_from_slice(&from[x * self.channels..(x + 1) * self.channels]),
                        None => out.fill(T::default()),
                    }
                }
            }
        });
    }
}

/// `out[i] = from[i - low]`, zero outside.
fn copy_line<T: Element>(from: &[T], low: isize, out: &mut [T]) {
    let before = usize::try_from(low).unwrap_or(0).min(out.len());
    let skipped = usize::try_from(-low).unwrap_or(0).min(from.len());
    let copied = (out.len() - before).min(from.len() - skipped);
    out[..before].fill(T::default());
    out[before..before + copied].copy_from_slice(&from[skipped..skipped + copied]);
    out[before + copied..].fill(T::default());
}
