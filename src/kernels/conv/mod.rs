//! Convolutions over one to three spatial axes, channels last: `[batch, spatial.., in]` with filters
//! `[spatial.., in / groups, out]`, with strides, padding, dilation of the input and of the window, and groups.
//!
//! In general a convolution is a matrix product whose left rows are gathered through pointers, never copied
//! ([`conv`]); one input channel per group has a direct kernel ([`depthwise`]); elements without microkernels have
//! plain loops ([`conv_any`]). Gradients are convolutions too ([`conv_backward_input`], [`conv_backward_filter`]).
//!
//! Other layouts are the caller's transposes.

mod depthwise;
mod general;
mod gradients;
mod rows;

pub use depthwise::depthwise;
pub use general::conv_any;
pub use gradients::{conv_backward_filter, conv_backward_input};

use crate::gemm::{
    Element, Epilogue, Half, Kernels, Matrix, PackedB, Panels, Product, RowSource, gemm, gemm_packed, pack_b,
    packed_len, shifted, sums_along_terms,
};
use crate::pool::ThreadPool;
use crate::scratch::{self, OutOfMemory};
use rows::{Gather, PaddedCopy};

/// One spatial axis: output `o` and window position `w` meet at `o * stride + w * window_dilation - low` of an
/// input whose elements are `input_dilation` apart, with zeros between and around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Input extent.
    pub input: usize,
    /// Output extent.
    pub output: usize,
    /// Window extent.
    pub window: usize,
    /// Step of the window.
    pub stride: usize,
    /// Padding before the first element; negative crops.
    pub low: isize,
    /// Distance between input elements.
    pub input_dilation: usize,
    /// Distance between window elements.
    pub window_dilation: usize,
}

impl Axis {
    /// An axis of extent one.
    pub const UNIT: Axis = Axis {
        input: 1,
        output: 1,
        window: 1,
        stride: 1,
        low: 0,
        input_dilation: 1,
        window_dilation: 1,
    };

    /// The input element under window position `window` for output `output`, if it is not padding.
    #[inline]
    pub fn source(&self, output: usize, window: usize) -> Option<usize> {
        let at = (output * self.stride + window * self.window_dilation) as isize - self.low;
        let at = usize::try_from(at).ok()?;
        let inside = at.is_multiple_of(self.input_dilation) && at / self.input_dilation < self.input;
        inside.then_some(at / self.input_dilation)
    }

    /// Positions that the window visits, padding included.
    fn span(&self) -> usize {
        if self.output == 0 || self.window == 0 {
            return 0;
        }
        (self.output - 1) * self.stride + (self.window - 1) * self.window_dilation + 1
    }

    /// True if every visited position is an input element.
    fn is_inside(&self) -> bool {
        self.low == 0 && self.input_dilation == 1 && self.span() <= self.input
    }
}

/// The extents of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Images.
    pub batch: usize,
    /// Spatial axes, outermost first; fewer than three are preceded by [`Axis::UNIT`].
    pub axes: [Axis; 3],
    /// Input channels, of all groups.
    pub in_channels: usize,
    /// Output channels, of all groups.
    pub out_channels: usize,
    /// Groups: output channels of a group see only its share of the input channels.
    pub groups: usize,
}

impl Convolution {
    /// A convolution over the given axes, at most three.
    pub fn new(
        batch: usize,
        axes: &[Axis],
        in_channels: usize,
        out_channels: usize,
        groups: usize,
    ) -> Convolution {
        assert!(axes.len() <= 3, "more than three spatial axes");
        assert!(groups > 0 && in_channels.is_multiple_of(groups) && out_channels.is_multiple_of(groups));
        let mut all = [Axis::UNIT; 3];
        all[3 - axes.len()..].copy_from_slice(axes);
        Convolution {
            batch,
            axes: all,
            in_channels,
            out_channels,
            groups,
        }
    }

    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.batch * self.axes.iter().map(|a| a.input).product::<usize>() * self.in_channels
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        self.batch * self.out_pixels() * self.out_channels
    }

    /// Elements of the filter.
    pub fn filter_len(&self) -> usize {
        self.taps() * self.group_in() * self.out_channels
    }

    /// Output positions of an image.
    pub fn out_pixels(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    /// Positions of the window.
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.window).product()
    }

    fn group_in(&self) -> usize {
        self.in_channels / self.groups
    }

    fn group_out(&self) -> usize {
        self.out_channels / self.groups
    }

    /// True if the output is the product of the input, as it is, with the filter.
    fn is_product(&self) -> bool {
        self.groups == 1
            && self.axes.iter().all(|a| {
                a.window == 1 && a.stride == 1 && a.low == 0 && a.input == a.output && a.input_dilation == 1
            })
    }

    /// Whether [`conv_packed`] gives the bits of [`conv`]: not where the latter has loops of its own.
    pub fn takes_packed(&self) -> bool {
        let is_depthwise = self.groups > 1 && self.group_in() == 1;
        let few = self.is_product()
            && sums_along_terms(
                (self.batch * self.out_pixels(), self.out_channels),
                1,
                (self.out_channels, 1),
            );
        !is_depthwise && !few
    }

    fn check<T>(&self, input: &[T], output: &[T]) {
        assert!(input.len() >= self.input_len(), "input is too small");
        assert!(output.len() >= self.output_len(), "output is too small");
        let axes = &self.axes;
        assert!(
            axes.iter()
                .all(|a| a.stride > 0 && a.input_dilation > 0 && a.window_dilation > 0)
        );
    }
}

/// A filter packed once for many convolutions.
#[derive(Debug)]
pub struct PackedFilter<T: Element> {
    groups: Vec<PackedB<T>>,
}

impl<T: Element> PackedFilter<T> {
    /// Packs a filter of `[taps.., in / groups, out]`; `rows` is taps times input channels of a group.
    pub fn new(
        pool: &ThreadPool,
        filter: &[T],
        rows: usize,
        out_channels: usize,
        groups: usize,
    ) -> Result<PackedFilter<T>, OutOfMemory> {
        let each = out_channels / groups;
        let pack = |group: usize| {
            let part = &filter[(group * each).min(filter.len())..];
            PackedB::new(
                pool,
                rows,
                each,
                Matrix {
                    data: part,
                    row_step: out_channels,
                    column_step: 1,
                },
            )
        };
        Ok(PackedFilter {
            groups: (0..groups).map(pack).collect::<Result<_, _>>()?,
        })
    }

    /// The memory it holds, in bytes.
    pub fn bytes(&self) -> usize {
        self.groups.iter().map(PackedB::bytes).sum()
    }
}

/// The convolution of `input` with `filter`, followed by `epilogue` (its rows are output pixels).
pub fn conv<T: Element>(
    pool: &ThreadPool,
    shape: &Convolution,
    input: &[T],
    filter: &[T],
    output: &mut [T],
    epilogue: &Epilogue<'_, T>,
) -> Result<(), OutOfMemory> {
    assert!(filter.len() >= shape.filter_len(), "filter is too small");
    if shape.groups > 1 && shape.group_in() == 1 {
        depthwise(pool, shape, input, filter, output, epilogue);
        return Ok(());
    }
    shape.check(input, output);
    if shape.is_product() {
        let extents = (
            shape.batch * shape.out_pixels(),
            shape.out_channels,
            shape.in_channels,
        );
        let (a, b) = (Matrix::new(input, extents.2), Matrix::new(filter, extents.1));
        return gemm(pool, extents, a, b, output, extents.1, false, epilogue);
    }
    let (rows, each) = (shape.taps() * shape.group_in(), shape.group_out());
    let kernels = T::kernels();
    let too_large = OutOfMemory { bytes: usize::MAX };
    let len = packed_len(kernels, rows, each).ok_or(too_large)?;
    let all = len.checked_mul(shape.groups).ok_or(too_large)?;
    scratch::with(all, |packed: &mut [T]| {
        for (group, packed) in packed.chunks_exact_mut(len.max(1)).enumerate() {
            let data = &filter[(group * each).min(filter.len())..];
            let part = Matrix {
                data,
                row_step: shape.out_channels,
                column_step: 1,
            };
            pack_b(pool, kernels, rows, each, part, packed);
        }
        let panels = |group: usize| Panels::packed(kernels, rows, &packed[group * len..]);
        run(
            pool,
            shape,
            input,
            &Filter {
                kernels,
                panels: &panels,
            },
            output,
            epilogue,
        )
    })?
}

/// The packed filter of each group.
struct Filter<'a, T: Element> {
    kernels: &'static Kernels<T>,
    panels: &'a dyn Fn(usize) -> Panels<T>,
}

/// [`conv`] with a packed filter.
pub fn conv_packed<T: Element>(
    pool: &ThreadPool,
    shape: &Convolution,
    input: &[T],
    filter: &PackedFilter<T>,
    output: &mut [T],
    epilogue: &Epilogue<'_, T>,
) -> Result<(), OutOfMemory> {
    shape.check(input, output);
    let rows = shape.taps() * shape.group_in();
    assert!(filter.groups.len() == shape.groups);
    assert!(
        filter
            .groups
            .iter()
            .all(|g| g.k() == rows && g.n() == shape.group_out())
    );
    if shape.output_len() == 0 {
        return Ok(());
    }
    if shape.is_product() {
        let m = shape.batch * shape.out_pixels();
        let a = Matrix::new(input, shape.in_channels);
        let step = shape.out_channels;
        return gemm_packed(pool, m, a, &filter.groups[0], output, step, false, epilogue);
    }
    let panels = |group: usize| filter.groups[group].panels();
    let kernels = filter.groups[0].kernels();
    run(
        pool,
        shape,
        input,
        &Filter {
            kernels,
            panels: &panels,
        },
        output,
        epilogue,
    )
}

/// Chooses how the rows are gathered.
fn run<T: Element>(
    pool: &ThreadPool,
    shape: &Convolution,
    input: &[T],
    filter: &Filter<'_, T>,
    output: &mut [T],
    epilogue: &Epilogue<'_, T>,
) -> Result<(), OutOfMemory> {
    let bias_fits = epilogue.bias.is_none_or(|bias| bias.len() >= shape.out_channels);
    assert!(bias_fits, "bias is too short");
    if shape.output_len() == 0 {
        return Ok(());
    }
    if shape.axes.iter().all(Axis::is_inside) {
        let extents = shape.axes.map(|a| a.input);
        return products(
            pool,
            shape,
            0,
            &Gather::inside(shape, input, extents),
            filter,
            output,
            epilogue,
        );
    }
    if shape.group_in() >= 32 && shape.axes.iter().all(|a| a.input_dilation == 1) {
        return scratch::with(shape.group_in(), |zeros: &mut [T]| {
            zeros.fill(T::default());
            products(
                pool,
                shape,
                0,
                &Gather::checked(shape, input, zeros),
                filter,
                output,
                epilogue,
            )
        })?;
    }
    let copy = PaddedCopy::new(shape);
    let (image_in, image_out) = (shape.input_len() / shape.batch, shape.output_len() / shape.batch);
    for first in (0..shape.batch).step_by(copy.images) {
        let batch = copy.images.min(shape.batch - first);
        let part = Convolution { batch, ..*shape };
        let (input, output) = (&input[first * image_in..], &mut output[first * image_out..]);
        scratch::with(copy.len(batch), |padded: &mut [T]| {
            copy.fill(pool, &part, input, padded);
            let rows = Gather::inside(&part, padded, copy.extents);
            products(
                pool,
                &part,
                first * shape.out_pixels(),
                &rows,
                filter,
                output,
                epilogue,
            )
        })??;
    }
    Ok(())
}

/// One product per group. `first_row` is the first output pixel's number in the whole.
fn products<T: Element>(
    pool: &ThreadPool,
    shape: &Convolution,
    first_row: usize,
    rows: &Gather<'_, T>,
    filter: &Filter<'_, T>,
    output: &mut [T],
    epilogue: &Epilogue<'_, T>,
) -> Result<(), OutOfMemory> {
    debug_assert_eq!(rows.segments() * rows.segment(), shape.taps() * shape.group_in());
    for group in 0..shape.groups {
        let rows = rows.group(group * shape.group_in());
        let column = group * shape.group_out();
        shifted(Some(epilogue), first_row, column, |epilogue| {
            let product = Product {
                kernels: filter.kernels,
                m: shape.batch * shape.out_pixels(),
                n: shape.group_out(),
                a: &rows,
                b: (filter.panels)(group),
                c_step: shape.out_channels,
                accumulate: false,
                epilogue,
            };
            // SAFETY: `Gather` gives addresses inside its data for every output pixel; the packed filter holds
            // the rows of all columns.
            unsafe { product.run(pool, &mut output[column..]) }
        })?;
    }
    Ok(())
}

/// The convolution of 16-bit floats, computed in `f32` with one rounding at the end.
pub fn conv_half<T: Half>(
    pool: &ThreadPool,
    shape: &Convolution,
    input: &[T],
    filter: &[T],
    output: &mut [T],
    epilogue: &Epilogue<'_, f32>,
) -> Result<(), OutOfMemory> {
    use crate::elementwise::{cost::SIMPLE, unary};
    shape.check(input, output);
    scratch::with(shape.input_len(), |wide_input: &mut [f32]| {
        scratch::with(shape.filter_len(), |wide_filter: &mut [f32]| {
            scratch::with(shape.output_len(), |wide_output: &mut [f32]| {
                unary(pool, &input[..wide_input.len()], wide_input, SIMPLE, T::widen);
                unary(pool, &filter[..wide_filter.len()], wide_filter, SIMPLE, T::widen);
                conv(pool, shape, wide_input, wide_filter, wide_output, epilogue)?;
                unary(
                    pool,
                    wide_output,
                    &mut output[..shape.output_len()],
                    SIMPLE,
                    T::narrow,
                );
                Ok(())
            })?
        })?
    })?
}

#[cfg(test)]
mod tests;
