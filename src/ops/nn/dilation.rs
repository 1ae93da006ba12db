//! Grayscale dilation: the largest sum of image and filter under a window, with gradients.

use super::geometry::{Axis, Format, Padding, axis, output_extent};
use crate::wide::{f64s, from_f64s, zeros};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Result, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Dilation2D",
        shape,
        kernels: &[Kernel::native(forward)],
        gradient: Gradient::Fn(gradient),
        ..Op::PURE
    },
    &Op {
        name: "Dilation2DBackpropInput",
        shape: |context| {
            let input = context.input(0);
            context.set_output(0, input);
            Ok(())
        },
        kernels: &[Kernel::native(|context| backward(context, false))],
        ..Op::PURE
    },
    &Op {
        name: "Dilation2DBackpropFilter",
        shape: |context| {
            let filter = context.input(1);
            context.set_output(0, filter);
            Ok(())
        },
        kernels: &[Kernel::native(|context| backward(context, true))],
        ..Op::PURE
    },
];

const FORMAT: Format = Format {
    spatial: 2,
    channels_last: true,
};

fn shape(context: &mut ShapeContext) -> Result<()> {
    let (input, filter) = (context.input_with_rank(0, 4)?, context.input_with_rank(1, 3)?);
    let strides = FORMAT.spatial_of(context.attrs(), "strides", false)?;
    let rates = FORMAT.spatial_of(context.attrs(), "rates", false)?;
    let padding = Padding::of(context.attrs(), FORMAT)?;
    let channels = dim::merge(input.dim(3), filter.dim(2))?;
    let mut extents = Vec::new();
    for i in 0..2 {
        let (extent, window) = (input.dim(i as i64 + 1), filter.dim(i as i64));
        extents.push(output_extent(&padding, i, extent, window, strides[i], rates[i])?);
    }
    context.set_output(0, FORMAT.shape(input.dim(0), &extents, channels));
    Ok(())
}

/// Extents and windows of an image of a batch, all with channels last.
struct Windows {
    batch: usize,
    channels: usize,
    axes: [Axis; 2],
}

impl Windows {
    fn of(context: &KernelContext) -> Result<Windows> {
        let (input, filter) = (context.input(0)?.dims(), context.input(1)?.dims());
        ensure!(
            input.len() == 4 && filter.len() == 3 && input[3] == filter[2],
            InvalidArgument,
            "input must be 4-dimensional, filter 3-dimensional, and their depths equal: {input:?} and {filter:?}"
        );
        let strides = FORMAT.spatial_of(context.attrs(), "strides", false)?;
        let rates = FORMAT.spatial_of(context.attrs(), "rates", false)?;
        let padding = Padding::of(context.attrs(), FORMAT)?;
        let along = |i: usize| axis(&padding, i, input[i + 1], filter[i], strides[i], rates[i]);
        Ok(Windows {
            batch: input[0] as usize,
            channels: input[3] as usize,
            axes: [along(0)?, along(1)?],
        })
    }

    /// Calls `found(output, input element, filter element)` with the place of the first largest sum.
    fn for_each_largest(&self, x: &[f64], filter: &[f64], mut found: impl FnMut(usize, usize, usize)) {
        let [rows, columns] = self.axes;
        let mut output = 0;
        for b in 0..self.batch as i64 {
            for y in 0..rows.output {
                for x_out in 0..columns.output {
                    for c in 0..self.channels {
                        let mut best: Option<(f64, usize, usize)> = None;
                        for fy in 0..rows.window {
                            let row = y * rows.stride - rows.low + fy * rows.dilation;
                            for fx in 0..columns.window {
                                let column = x_out * columns.stride - columns.low + fx * columns.dilation;
                                if !(0..rows.input).contains(&row) || !(0..columns.input).contains(&column) {
                                    continue;
                                }
                                let from = ((b * rows.input + row) * columns.input + column) as usize
                                    * self.channels
                                    + c;
                                let by = (fy * columns.window + fx) as usize * self.channels + c;
                                let sum = x[from] + filter[by];
                                if best.is_none_or(|best| sum > best.0) {
                                    best = Some((sum, from, by));
                                }
                            }
                        }
                        if let Some((_, from, by)) = best {
                            found(output, from, by);
                        }
                        output += 1;
                    }
                }
            }
        }
    }
}

fn forward(context: &mut KernelContext) -> Result<()> {
    let windows = Windows::of(context)?;
    let (x, filter) = (f64s(context.input(0)?)?, f64s(context.input(1)?)?);
    let shape = context.output_shape(0)?.clone();
    let mut result: Vec<f64> = zeros(shape.num_elements())?;
    windows.for_each_largest(&x, &filter, |output, from, by| {
        result[output] = x[from] + filter[by];
    });
    let result = from_f64s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

fn backward(context: &mut KernelContext, of_filter: bool) -> Result<()> {
    let windows = Windows::of(context)?;
    let [rows, columns] = windows.axes;
    let incoming = context.input(2)?;
    let expected = [
        windows.batch as i64,
        rows.output,
        columns.output,
        windows.channels as i64,
    ];
    ensure!(
        incoming.dims() == expected,
        InvalidArgument,
        "out_backprop has incompatible size: {} instead of {expected:?}",
        incoming.shape()
    );
    let (x, filter, incoming) = (
        f64s(context.input(0)?)?,
        f64s(context.input(1)?)?,
        f64s(incoming)?,
    );
    let result_like = context.input(usize::from(of_filter))?;
    let mut result: Vec<f64> = zeros(result_like.num_elements())?;
    windows.for_each_largest(&x, &filter, |output, from, by| {
        result[if of_filter { by } else { from }] += incoming[output];
    });
    let shape = result_like.shape().clone();
    let result = from_f64s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let inputs = [context.input(0)?, context.input(1)?, incoming];
    let attrs = context.attrs();
    let attrs = Attrs::new()
        .with("T", attrs.dtype("T")?)
        .with("strides", attrs.ints("strides")?.to_vec())
        .with("rates", attrs.ints("rates")?.to_vec())
        .with("padding", attrs.string("padding")?);
    for (index, op) in ["Dilation2DBackpropInput", "Dilation2DBackpropFilter"]
        .into_iter()
        .enumerate()
    {
        let gradient = context.op(op, &inputs, attrs.clone())?;
        context.set(index, gradient);
    }
    Ok(())
}

#[cfg(test)]
fn rated(case: crate::testing::Case) -> crate::testing::Case {
    case.attr("strides", vec![1i64, 2, 1, 1])
        .attr("rates", vec![1i64, 2, 1, 1])
        .attr("padding", "SAME")
}

crate::op_cases! {
    every_type: family(&["Dilation2D"], &[FLOATS, &INTEGERS[..6]].concat(), |op, dtype| {
        rated(Case::op(op).inputs([cycle(dtype, &[2, 5, 4, 2]), cycle(dtype, &[2, 3, 2])]))
    });
    inside: Case::op("Dilation2D").inputs([cycle(DataType::FLOAT, &[2, 5, 4, 2]), cycle(DataType::FLOAT, &[2, 3, 2])])
        .attr("strides", vec![1i64; 4]).attr("rates", vec![1i64; 4]).attr("padding", "VALID");
    no_images: rated(Case::op("Dilation2D").inputs([cycle(DataType::FLOAT, &[0, 5, 4, 2]), cycle(DataType::FLOAT, &[2, 3, 2])]));
    misfit: rated(Case::op("Dilation2D").inputs([cycle(DataType::FLOAT, &[2, 5, 4, 2]), cycle(DataType::FLOAT, &[2, 3, 3])])).fails(Code::InvalidArgument);
    backward: family(&["Dilation2DBackpropInput", "Dilation2DBackpropFilter"], &[FLOATS, &INTEGERS[..6]].concat(), |op, dtype| {
        rated(Case::op(op).inputs([cycle(dtype, &[1, 5, 4, 2]), cycle(dtype, &[2, 3, 2]), cycle(dtype, &[1, 3, 4, 2])]))
    });
    backward_misfit: family(&["Dilation2DBackpropInput", "Dilation2DBackpropFilter"], &FLOATS[..1], |op, dtype| {
        rated(Case::op(op).inputs([cycle(dtype, &[1, 5, 4, 2]), cycle(dtype, &[2, 3, 2]), cycle(dtype, &[1, 3, 3, 2])])).fails(Code::InvalidArgument)
    });
}
