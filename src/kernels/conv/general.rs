//! Convolutions of any element, by the definition.

use super::Convolution;
use crate::gemm::Scalar;
use crate::memory::SharedMut;
use crate::pool::ThreadPool;

/// As [`super::conv`] without an epilogue, for elements without microkernels.
pub fn conv_any<T: Scalar>(
    pool: &ThreadPool,
    shape: &Convolution,
    input: &[T],
    filter: &[T],
    output: &mut [T],
) {
    shape.check(input, output);
    assert!(filter.len() >= shape.filter_len(), "filter is too small");
    if shape.output_len() == 0 {
        return;
    }
    let output = SharedMut::new(output);
    let channels = shape.out_channels;
    let cost = (shape.taps() * shape.group_in() * channels) as f64;
    pool.parallel_for(shape.batch * shape.out_pixels(), cost, |pixels| {
        for pixel in pixels {
            // SAFETY: pixels are disjoint.
            let out = unsafe { output.range(pixel * channels..(pixel + 1) * channels) };
            one_pixel(shape, input, filter, pixel, out);
        }
    });
}

fn one_pixel<T: Scalar>(shape: &Convolution, input: &[T], filter: &[T], pixel: usize, out: &mut [T]) {
    let [a0, a1, a2] = &shape.axes;
    let (rest, x) = (pixel / a2.output, pixel % a2.output);
    let (rest, y) = (rest / a1.output, rest % a1.output);
    let (image, z) = (rest / a0.output, rest % a0.output);
    let (group_in, group_out) = (shape.group_in(), shape.group_out());
    out.fill(T::default());
    for tap in 0..shape.taps() {
        let (rest, wx) = (tap / a2.window, tap % a2.window);
        let (wz, wy) = (rest / a1.window, rest % a1.window);
        let (Some(z), Some(y), Some(x)) = (a0.source(z, wz), a1.source(y, wy), a2.source(x, wx)) else {
            continue;
        };
        let from = (((image * a0.input + z) * a1.input + y) * a2.input + x) * shape.in_channels;
        for c in 0..group_in {
            let taps = &filter[(tap * group_in + c) * shape.out_channels..][..shape.out_channels];
            for (group, (out, taps)) in out
                .chunks_exact_mut(group_out)
                .zip(taps.chunks_exact(group_out))
                .enumerate()
            {
                let value = input[from + group * group_in + c];
                for (out, &tap) in out.iter_mut().zip(taps) {
                    *out = out.multiply_add(value, tap);
                }
            }
        }
    }
}
