//! Grayscale dilation: the largest sum of image and filter under a window, with gradients.

use super::geometry::{Axis, Format, Padding, axis, inferred_extents};
use crate::math::number::{Number, Ordered};
use crate::wide::{Real, lowest, zeros};
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{Element, Result, Tensor, dim, ensure};

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

/// Strides and rates along rows and columns. UNIMPLEMENTED where there are some along others.
fn steps(attrs: &Attrs) -> Result<(Vec<i64>, Vec<i64>)> {
    for name in ["strides", "rates"] {
        ensure!(
            !matches!(attrs.ints(name), Ok(&[a, _, _, b]) if (a, b) != (1, 1)),
            Unimplemented,
            "{name} are only supported across spatial dimensions."
        );
    }
    let along = |name| FORMAT.spatial_of(attrs, name, false);
    Ok((along("strides")?, along("rates")?))
}

fn shape(context: &mut ShapeContext) -> Result<()> {
    let (input, filter) = (context.input_with_rank(0, 4)?, context.input_with_rank(1, 3)?);
    let (strides, rates) = steps(context.attrs())?;
    let padding = Padding::of(context.attrs(), FORMAT)?;
    let channels = dim::merge(input.dim(3), filter.dim(2))?;
    let steps = |i: usize| [filter.dim(i as i64), strides[i], rates[i]];
    let extents = inferred_extents(context, FORMAT, &padding, &input, steps)?;
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
        let (strides, rates) = steps(context.attrs())?;
        let padding = Padding::of(context.attrs(), FORMAT)?;
        let along = |i: usize| axis(&padding, i, input[i + 1], filter[i], strides[i], rates[i]);
        Ok(Windows {
            batch: input[0] as usize,
            channels: input[3] as usize,
            axes: [along(0)?, along(1)?],
        })
    }

    /// Calls `found(output, largest sum, input element, filter element)` with the place of the first largest sum. Where no
    /// sum is larger than the lowest number, that is it, and its place the window's first.
    fn for_each_largest<T: Ordered>(
        &self,
        (x, filter, least): (&[T], &[T], T),
        mut found: impl FnMut(usize, T, usize, usize),
    ) {
        let [rows, columns] = self.axes;
        let place = |b: i64, row: i64, column: i64| {
            ((b * rows.input + row) * columns.input + column) as usize * self.channels
        };
        let mut output = 0;
        for b in 0..self.batch as i64 {
            for y in 0..rows.output {
                let top = y * rows.stride - rows.low;
                for x_out in 0..columns.output {
                    let left = x_out * columns.stride - columns.low;
                    for c in 0..self.channels {
                        let mut best = (least, place(b, top.max(0), left.max(0)) + c, c);
                        for fy in 0..rows.window {
                            let row = top + fy * rows.dilation;
                            for fx in 0..columns.window {
                                let column = left + fx * columns.dilation;
                                if !(0..rows.input).contains(&row) || !(0..columns.input).contains(&column) {
                                    continue;
                                }
                                let from = place(b, row, column) + c;
                                let by = (fy * columns.window + fx) as usize * self.channels + c;
                                let sum = x[from].add(filter[by]);
                                if sum > best.0 {
                                    best = (sum, from, by);
                                }
                            }
                        }
                        found(output, best.0, best.1, best.2);
                        output += 1;
                    }
                }
            }
        }
    }
}

fn forward(context: &mut KernelContext) -> Result<()> {
    let windows = Windows::of(context)?;
    let shape = context.output_shape(0)?.clone();
    let result = crate::match_real!(context.output_type(0), T => {
        let mut result = zeros::<T>(shape.num_elements())?;
        let operands = (context.input_slice(0)?, context.input_slice(1)?, T::from_f64(lowest(T::DTYPE)));
        windows.for_each_largest(operands, |output, sum, _, _| result[output] = sum);
        Tensor::from_slice(shape, &result)
    })?;
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
    let shape = context.input(usize::from(of_filter))?.shape().clone();
    let result = crate::match_real!(context.output_type(0), T => {
        let mut result = zeros::<T>(shape.num_elements())?;
        let incoming = context.input_slice::<T>(2)?;
        let operands = (context.input_slice(0)?, context.input_slice(1)?, T::from_f64(lowest(T::DTYPE)));
        windows.for_each_largest(operands, |output, _, from, by| {
            if let Some(sum) = result.get_mut(if of_filter { by } else { from }) {
                *sum = sum.add(incoming[output]);
            }
        });
        Tensor::from_slice(shape, &result)
    })?;
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
    sums_wrap_around: family(&["Dilation2D"], &INTEGERS[..6], |op, dtype| {
        rated(Case::op(op).inputs([numbers(dtype, &[1, 1, 3, 1], &[100.0, 127.0, 1.0]), numbers(dtype, &[1, 1, 1], &[100.0])]))
    });
    no_numbers: rated(Case::op("Dilation2D").inputs([t(&[1, 2, 2, 1], &[f32::NAN, 1.0, 2.0, f32::NAN]), t(&[2, 2, 1], &[0.0f32; 4])]))
        .without_gradient();
    no_numbers_back: family(&["Dilation2DBackpropInput", "Dilation2DBackpropFilter"], &[DataType::FLOAT], |op, _| {
        rated(Case::op(op).inputs([t(&[1, 1, 2, 1], &[f32::NAN; 2]), t(&[3, 3, 1], &[0.0f32; 9]), t(&[1, 1, 2, 1], &[1.0f32, 2.0])]))
    });
    steps_of_channels: Case::op("Dilation2D").inputs([cycle(DataType::FLOAT, &[1, 2, 2, 1]), cycle(DataType::FLOAT, &[2, 2, 1])])
        .attr("strides", vec![1i64, 1, 1, 3]).attr("rates", vec![1i64; 4]).attr("padding", "SAME").fails(Code::Unimplemented);
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
