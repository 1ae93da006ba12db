//! Gradients of convolutions, as convolutions of rearranged operands.
//!
//! The gradient for the input slides the turned filter over the incoming gradient, spread by the strides. The
//! gradient for the filter slides the incoming gradient, as a window, over the input with images and channels
//! exchanged.

use super::{Axis, Convolution, conv};
use crate::gemm::{Element, Epilogue};
use crate::movement::{reverse, transpose};
use crate::pool::ThreadPool;
use crate::scratch::{self, OutOfMemory};

/// Writes the gradient for the input of `shape` into `result`; `incoming` has the shape of the output.
pub fn conv_backward_input<T: Element>(
    pool: &ThreadPool,
    shape: &Convolution,
    filter: &[T],
    incoming: &[T],
    result: &mut [T],
) -> Result<(), OutOfMemory> {
    let turned_axis = |a: &Axis| Axis {
        input: a.output,
        output: a.input,
        window: a.window,
        // The input's own spacing is the step; what was the step is the spacing.
        stride: a.input_dilation,
        low: (a.window.saturating_sub(1) * a.window_dilation) as isize - a.low,
        input_dilation: a.stride,
        window_dilation: a.window_dilation,
    };
    let turned = Convolution {
        batch: shape.batch,
        axes: [0, 1, 2].map(|i| turned_axis(&shape.axes[i])),
        in_channels: shape.out_channels,
        out_channels: shape.in_channels,
        groups: shape.groups,
    };
    let (taps, groups) = (shape.taps(), shape.groups);
    let (group_in, group_out) = (shape.in_channels / groups, shape.out_channels / groups);
    scratch::with(shape.filter_len(), |reversed: &mut [T]| {
        scratch::with(shape.filter_len(), |exchanged: &mut [T]| {
            let windows = shape.axes.map(|a| a.window);
            let dims = [windows[0], windows[1], windows[2], group_in * shape.out_channels];
            reverse(pool, &filter[..shape.filter_len()], &dims, &[0, 1, 2], reversed);
            // [taps, in, groups, out] to [taps, out, groups, in], each of one group.
            let dims = [taps, group_in, groups, group_out];
            transpose(pool, reversed, &dims, &[0, 3, 2, 1], exchanged);
            conv(pool, &turned, incoming, exchanged, result, &Epilogue::default())
        })?
    })?
}

/// Writes the gradient for the filter of `shape` into `result`; `incoming` has the shape of the output.
pub fn conv_backward_filter<T: Element>(
    pool: &ThreadPool,
    shape: &Convolution,
    input: &[T],
    incoming: &[T],
    result: &mut [T],
) -> Result<(), OutOfMemory> {
    let axis = |a: &Axis| Axis {
        input: a.input,
        output: a.window,
        window: a.output,
        stride: a.window_dilation,
        low: a.low,
        input_dilation: a.input_dilation,
        window_dilation: a.stride,
    };
    let groups = shape.groups;
    let (group_in, group_out) = (shape.in_channels / groups, shape.out_channels / groups);
    let exchanged = Convolution {
        batch: group_in,
        axes: [0, 1, 2].map(|i| axis(&shape.axes[i])),
        in_channels: shape.batch * groups,
        out_channels: shape.out_channels,
        groups,
    };
    let pixels: usize = shape.axes.iter().map(|a| a.input).product();
    let (windows, taps) = (shape.out_pixels(), shape.taps());
    scratch::with(shape.input_len(), |input_turned: &mut [T]| {
        scratch::with(shape.output_len(), |window: &mut [T]| {
            scratch::with(shape.filter_len(), |gradient: &mut [T]| {
                // [batch, pixels, groups, in] to [in, pixels, groups, batch].
                let dims = [shape.batch, pixels, groups, group_in];
                transpose(
                    pool,
                    &input[..shape.input_len()],
                    &dims,
                    &[3, 1, 2, 0],
                    input_turned,
                );
                // [batch, pixels, out] to [pixels, batch, out].
                let dims = [shape.batch, windows, shape.out_channels];
                transpose(pool, &incoming[..shape.output_len()], &dims, &[1, 0, 2], window);
                conv(
                    pool,
                    &exchanged,
                    input_turned,
                    window,
                    gradient,
                    &Epilogue::default(),
                )?;
                // [in, taps, out] to [taps, in, out].
                let dims = [group_in, taps, groups * group_out];
                transpose(
                    pool,
                    gradient,
                    &dims,
                    &[1, 0, 2],
                    &mut result[..shape.filter_len()],
                );
                Ok(())
            })?
        })?
    })?
}
