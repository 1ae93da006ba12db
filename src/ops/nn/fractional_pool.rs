//! Fractional pooling: windows of random extents, with gradients.

use crate::image::sample_box::Numbers;
use crate::math::number::Number;
use crate::wide::{Real, f64s, from_f64s, lowest, zeros};
use ff_kernels::random::Philox;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, dim, ensure};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

const TYPES: &[(&str, &[DataType])] = &[(
    "T",
    &[
        DataType::FLOAT,
        DataType::DOUBLE,
        DataType::INT32,
        DataType::INT64,
    ],
)];

const POOL: Op = Op {
    name: "FractionalMaxPool",
    shape: pool_shape,
    kernels: &[Kernel::native(|context| pool(context, true)).for_types(TYPES)],
    gradient: Gradient::Fn(max_gradient),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &POOL,
    &Op {
        name: "FractionalAvgPool",
        kernels: &[Kernel::native(|context| pool(context, false)).for_types(TYPES)],
        gradient: Gradient::Fn(avg_gradient),
        ..POOL
    },
    &Op {
        name: "FractionalMaxPoolGrad",
        shape: |context| {
            let input = context.input_with_rank(0, 4)?;
            context.set_output(0, input);
            Ok(())
        },
        kernels: &[Kernel::native(max_backward).for_types(TYPES)],
        ..Op::PURE
    },
    &Op {
        name: "FractionalAvgPoolGrad",
        shape: |context| {
            let shape = context.input_as_shape(0)?.with_rank(4)?;
            context.set_output(0, shape);
            Ok(())
        },
        kernels: &[Kernel::native(avg_backward).for_types(TYPES)],
        ..Op::PURE
    },
];

/// The four ratios of input to output extents. INVALID_ARGUMENT unless batch and channels stay.
fn ratios(attrs: &Attrs) -> Result<[f64; 4]> {
    let list = attrs.floats("pooling_ratio")?;
    ensure!(
        list.len() == 4,
        InvalidArgument,
        "pooling_ratio field must specify 4 dimensions"
    );
    ensure!(
        list.iter().all(|&ratio| ratio >= 1.0),
        InvalidArgument,
        "pooling_ratio cannot be smaller than 1, got: {list:?}"
    );
    Ok([0, 1, 2, 3].map(|i| f64::from(list[i])))
}

fn pool_shape(context: &mut ShapeContext) -> Result<()> {
    let input = context.input_with_rank(0, 4)?;
    let ratios = ratios(context.attrs())?;
    let mut dims = [dim::UNKNOWN; 4];
    for (i, to) in dims.iter_mut().enumerate() {
        let extent = input.dim(i as i64);
        if extent >= 0 {
            *to = (extent as f64 / ratios[i]).floor() as i64;
            ensure!(
                *to > 0 || extent == 0,
                InvalidArgument,
                "Size computed for {i}th dim is {to}"
            );
        }
    }
    context.set_output(0, PartialShape::new(&dims));
    for (output, extent) in [(1, dims[1]), (2, dims[2])] {
        let count = if extent >= 0 { extent + 1 } else { dim::UNKNOWN };
        context.set_output(output, PartialShape::new(&[count]));
    }
    Ok(())
}

/// Where the windows begin, and the end of the last one.
fn boundaries(input: usize, output: usize, pseudo_random: bool, stream: &mut Philox) -> Result<Vec<i64>> {
    let mut sizes = crate::wide::filled(output, (input / output) as i64)?;
    // Random numbers are drawn where every window is as large as the others, too.
    if pseudo_random {
        let mut numbers = Numbers::new(*stream);
        stream.skip(1);
        let alpha = input as f64 / output as f64;
        let k = (input / output) as f64;
        let most = ((k + 2.0) / alpha - 1.0).min((input as f64 + 1.0 - k) / alpha - (output as f64 - 1.0));
        let u = numbers.double() * most;
        let edge = |i: usize| match i {
            0 => 1,
            i if i == output => input as i64 + 1,
            i => (alpha * (i as f64 + u)).ceil() as i64,
        };
        for (i, size) in sizes.iter_mut().enumerate() {
            *size = edge(i + 1) - edge(i);
        }
    } else {
        let mut numbers = Numbers::new(*stream);
        stream.skip((output as u64).div_ceil(4));
        for size in &mut sizes[..input % output] {
            *size += 1;
        }
        for i in 0..output.saturating_sub(1) {
            let other = i + numbers.word() as usize % (output - i);
            sizes.swap(i, other);
        }
    }
    let mut at = 0;
    let mut edges = crate::wide::reserved(sizes.len() + 1)?;
    edges.push(0);
    for size in sizes {
        at += size;
        edges.push(at);
    }
    Ok(edges)
}

fn entropy() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_i64(ff_platform::time::now_nanoseconds());
    hasher.finish()
}

/// The node's stream, from its start: each run of a deterministic node makes the same windows.
fn stream(attrs: &Attrs) -> Result<Philox> {
    let (seed, seed2) = (attrs.int("seed")?, attrs.int("seed2")?);
    if !attrs.bool("deterministic")? {
        ensure!(
            seed == 0 && seed2 == 0,
            InvalidArgument,
            "Both seed and seed2 should be 0 if deterministic is false."
        );
    }
    Ok(match (seed, seed2) {
        (0, 0) => Philox::from_seeds(entropy(), entropy()),
        _ => Philox::from_seeds(seed as u64, seed2 as u64),
    })
}

/// The pixels of a window; one more where windows overlap.
fn window(edges: &[i64], i: usize, overlapping: bool, extent: usize) -> Range<usize> {
    let end = if overlapping {
        edges[i + 1] + 1
    } else {
        edges[i + 1]
    };
    let extent = extent as i64;
    edges[i].clamp(0, extent) as usize..end.clamp(0, extent) as usize
}

/// Extents and boundaries of a pooled image.
struct Windows {
    input: [usize; 4],
    output: [usize; 4],
    rows: Vec<i64>,
    columns: Vec<i64>,
    overlapping: bool,
}

impl Windows {
    /// Calls `body(output element of channel 0, rows, columns, image)` for every window.
    fn for_each(&self, mut body: impl FnMut(usize, Range<usize>, Range<usize>, usize)) {
        let [batch, height, width, channels] = self.output;
        for image in 0..batch {
            for y in 0..height {
                for x in 0..width {
                    let rows = window(&self.rows, y, self.overlapping, self.input[1]);
                    let columns = window(&self.columns, x, self.overlapping, self.input[2]);
                    body(
                        ((image * height + y) * width + x) * channels,
                        rows,
                        columns,
                        image,
                    );
                }
            }
        }
    }

    fn place(&self, image: usize, row: usize, column: usize) -> usize {
        ((image * self.input[1] + row) * self.input[2] + column) * self.input[3]
    }

    /// The place of the largest element of each window; none where none is larger than `lowest`.
    fn largest(&self, x: &[f64], lowest: f64) -> Result<Vec<Option<usize>>> {
        let mut places = crate::wide::filled(self.output.iter().product(), None)?;
        self.for_each(|to, rows, columns, image| {
            for c in 0..self.input[3] {
                let mut best = (lowest, None);
                for row in rows.clone() {
                    for column in columns.clone() {
                        let at = self.place(image, row, column) + c;
                        if x[at] > best.0 {
                            best = (x[at], Some(at));
                        }
                    }
                }
                places[to + c] = best.1;
            }
        });
        Ok(places)
    }

    /// The mean of each window; sums of integers wrap around.
    fn averages<T: Number + Real>(&self, x: &[T]) -> Result<Vec<T>> {
        let mut sums = zeros::<T>(self.output.iter().product())?;
        self.for_each(|to, rows, columns, image| {
            let count = T::from_f64((rows.len() * columns.len()) as f64);
            let sums = &mut sums[to..to + self.input[3]];
            for row in rows {
                for column in columns.clone() {
                    let from = &x[self.place(image, row, column)..];
                    sums.iter_mut().zip(from).for_each(|(sum, &x)| *sum = sum.add(x));
                }
            }
            sums.iter_mut().for_each(|sum| *sum = sum.div(count));
        });
        Ok(sums)
    }
}

fn extents(dims: &[i64]) -> Result<[usize; 4]> {
    match *dims {
        [a, b, c, d] if dims.iter().all(|&extent| extent >= 0) => {
            Ok([a as usize, b as usize, c as usize, d as usize])
        }
        _ => ff_tensor::bail!(InvalidArgument, "tensor_in must be 4-dimensional, got {dims:?}"),
    }
}

fn pool(context: &mut KernelContext, largest: bool) -> Result<()> {
    let attrs = context.attrs();
    let ratios = ratios(attrs)?;
    ensure!(
        ratios[0] == 1.0 && ratios[3] == 1.0,
        Unimplemented,
        "Fractional pooling is not yet supported on the batch nor channel dimension."
    );
    let dims = context.input(0)?.dims();
    if let Some(axis) = (0..dims.len().min(4)).find(|&axis| (dims[axis] as f64) < ratios[axis]) {
        ff_tensor::bail!(
            InvalidArgument,
            "Pooling ratio is higher than input dimension size for dimension {axis}: {} and {}",
            dims[axis],
            ratios[axis]
        );
    }
    let mut stream = stream(attrs)?;
    let (pseudo_random, overlapping) = (attrs.bool("pseudo_random")?, attrs.bool("overlapping")?);
    let shape = context.output_shape(0)?.clone();
    let (input, output) = (extents(context.input(0)?.dims())?, extents(shape.dims())?);
    ensure!(
        output[1] > 0 && output[2] > 0,
        InvalidArgument,
        "images must not be empty"
    );
    let windows = Windows {
        input,
        output,
        rows: boundaries(input[1], output[1], pseudo_random, &mut stream)?,
        columns: boundaries(input[2], output[2], pseudo_random, &mut stream)?,
        overlapping,
    };
    let x = f64s(context.input(0)?)?;
    let result = if largest {
        let lowest = lowest(context.output_type(0));
        let value = |place: Option<usize>| place.map_or(lowest, |place| x[place]);
        windows.largest(&x, lowest)?.into_iter().map(value).collect()
    } else {
        Vec::new()
    };
    let result = match (largest, context.output_type(0)) {
        (true, dtype) => from_f64s(dtype, shape, &result)?,
        (false, dtype) => crate::match_type!(dtype, (f32, f64, i32, i64), T => {
            Tensor::from_slice(shape, &windows.averages::<T>(context.input(0)?.as_slice()?)?)
        })?,
    };
    context.set_output(0, result)?;
    context.set_output(1, Tensor::vector(&windows.rows)?)?;
    context.set_output(2, Tensor::vector(&windows.columns)?)
}

/// The windows of a gradient: boundaries are two inputs, from `first` on.
fn given(context: &KernelContext, input: [usize; 4], output: &[i64], first: usize) -> Result<Windows> {
    let output = extents(output)?;
    ensure!(
        !output.contains(&0),
        InvalidArgument,
        "out_backprop must be positive for all dimension"
    );
    ensure!(
        input[1] > 0 && input[2] > 0,
        InvalidArgument,
        "Rows and columns of input must not be 0"
    );
    let overlapping = context.attrs().bool("overlapping")?;
    let (rows, columns) = (context.input_i64s(first)?, context.input_i64s(first + 1)?);
    for (edges, extent) in [(&rows, output[1]), (&columns, output[2])] {
        ensure!(
            edges.len() > extent,
            InvalidArgument,
            "Given an out_backprop extent of {extent}, the pooling sequence has {} elements",
            edges.len()
        );
        let last = |end: i64| if overlapping { end } else { end.saturating_sub(1) };
        ensure!(
            (0..extent).all(|i| edges[i] >= 0 && last(edges[i + 1]) >= 0),
            InvalidArgument,
            "pooling sequences must not be negative"
        );
    }
    ensure!(
        output[0] == input[0] && output[3] == input[3],
        InvalidArgument,
        "batch and channels of input and gradients differ"
    );
    Ok(Windows {
        input,
        output,
        rows,
        columns,
        overlapping,
    })
}

fn max_backward(context: &mut KernelContext) -> Result<()> {
    let input = extents(context.input(0)?.dims())?;
    ensure!(
        context.input(1)?.dims() == context.input(2)?.dims(),
        InvalidArgument,
        "orig_output and out_backprop must have the same shape"
    );
    let windows = given(context, input, context.input(2)?.dims(), 3)?;
    let (x, output, incoming) = (
        f64s(context.input(0)?)?,
        f64s(context.input(1)?)?,
        f64s(context.input(2)?)?,
    );
    ensure!(
        windows.rows.len().saturating_mul(windows.columns.len()) <= x.len(),
        InvalidArgument,
        "Pooling region has more elements than the input tensor"
    );
    let mut result: Vec<f64> = zeros(x.len())?;
    let lowest = lowest(context.output_type(0));
    for (element, place) in windows.largest(&x, lowest)?.into_iter().enumerate() {
        ensure!(
            place.map_or(lowest, |place| x[place]) == output[element],
            InvalidArgument,
            "tensor_out_dup is not the same as tensor_out"
        );
        if let Some(place) = place {
            result[place] += incoming[element];
        }
    }
    let shape = context.input(0)?.shape().clone();
    let result = from_f64s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

fn avg_backward(context: &mut KernelContext) -> Result<()> {
    let dims = context.input_i64s(0)?;
    let shape = Shape::new(&dims)?;
    let windows = given(context, extents(&dims)?, context.input(1)?.dims(), 2)?;
    let incoming = f64s(context.input(1)?)?;
    let mut result: Vec<f64> = zeros(shape.num_elements())?;
    windows.for_each(|from, rows, columns, image| {
        let count = (rows.len() * columns.len()) as f64;
        for row in rows {
            for column in columns.clone() {
                let to = windows.place(image, row, column);
                for c in 0..windows.input[3] {
                    result[to + c] += incoming[from + c] / count;
                }
            }
        }
    });
    let result = from_f64s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

fn max_gradient(context: &mut GradientContext) -> Result<()> {
    let incoming = context.incoming_or_zeros(0)?;
    let inputs = [
        context.input(0)?,
        context.output(0),
        incoming,
        context.output(1),
        context.output(2),
    ];
    let attrs = Attrs::new()
        .with("T", context.input_type(0))
        .with("overlapping", context.attrs().bool("overlapping")?);
    let gradient = context.op("FractionalMaxPoolGrad", &inputs, attrs)?;
    context.set(0, gradient);
    Ok(())
}

fn avg_gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, input) = (context.incoming_or_zeros(0)?, context.input(0)?);
    let attrs = Attrs::new()
        .with("T", context.input_type(0))
        .with("out_type", DataType::INT64);
    let dims = context.op("Shape", &[input], attrs)?;
    let inputs = [dims, incoming, context.output(1), context.output(2)];
    let attrs = Attrs::new()
        .with("T", context.input_type(0))
        .with("overlapping", context.attrs().bool("overlapping")?);
    let gradient = context.op("FractionalAvgPoolGrad", &inputs, attrs)?;
    context.set(0, gradient);
    Ok(())
}

#[cfg(test)]
const RATIOS: [f32; 4] = [1.0, 1.5, 1.7, 1.0];

crate::op_cases! {
    rows_of_one_size: family(&["FractionalMaxPool", "FractionalAvgPool"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 2, 9, 1])).attr("pooling_ratio", RATIOS.to_vec()).attr("deterministic", true).attr("seed", 3i64).attr("seed2", 5i64)
    });
    rows_of_one_size_pseudo_random: family(&["FractionalMaxPool", "FractionalAvgPool"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 4, 9, 1])).attr("pooling_ratio", vec![1.0f32, 2.0, 1.7, 1.0]).attr("deterministic", true).attr("seed", 3i64).attr("seed2", 5i64)
            .attr("pseudo_random", true)
    });
    random: family(&["FractionalMaxPool", "FractionalAvgPool"], &[DataType::FLOAT, DataType::DOUBLE, DataType::INT32, DataType::INT64], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[2, 8, 9, 2])).attr("pooling_ratio", RATIOS.to_vec()).attr("deterministic", true).attr("seed", 3i64).attr("seed2", 5i64)
    });
    pseudo_random: family(&["FractionalMaxPool", "FractionalAvgPool"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[2, 8, 9, 2])).attr("pooling_ratio", RATIOS.to_vec()).attr("deterministic", true).attr("seed", 3i64).attr("seed2", 5i64)
            .attr("pseudo_random", true).attr("overlapping", true)
    });
    regular: family(&["FractionalMaxPool", "FractionalAvgPool"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 8, 9, 2])).attr("pooling_ratio", vec![1.0f32, 2.0, 3.0, 1.0])
    });
    sums_wrap_around: Case::op("FractionalAvgPool").input(t(&[1, 2, 2, 1], &[i32::MAX, i32::MAX, i32::MAX, 5])).attr("pooling_ratio", vec![1.0f32, 2.0, 2.0, 1.0]);
    no_numbers: Case::op("FractionalMaxPool").input(t(&[1, 2, 4, 1], &[1.0, f32::NAN, f32::NAN, f32::NAN, 2.0, f32::NAN, f32::NAN, f32::NEG_INFINITY]))
        .attr("pooling_ratio", vec![1.0f32, 2.0, 2.0, 1.0]).without_gradient();
    no_images: Case::op("FractionalMaxPool").input(t::<f64>(&[0, 2, 2, 1], &[])).attr("pooling_ratio", vec![1.0f32, 1.5, 1.5, 1.0]).fails(Code::InvalidArgument);
    too_small: family(&["FractionalMaxPool", "FractionalAvgPool"], &FLOATS[..1], |op, dtype| {
        Case::op(op).input(cycle(dtype, &[1, 1, 9, 2])).attr("pooling_ratio", vec![1.0f32, 2.0, 3.0, 1.0]).fails(Code::InvalidArgument)
    });
    backward: family(&["FractionalMaxPoolGrad"], &[DataType::FLOAT, DataType::DOUBLE, DataType::INT32, DataType::INT64], |op, dtype| {
        Case::op(op).inputs([counting(dtype, &[1, 4, 3, 1]), numbers(dtype, &[1, 2, 2, 1], &[4.0, 5.0, 10.0, 11.0]), counting(dtype, &[1, 2, 2, 1])])
            .inputs([vector(&[0i64, 2, 4]), vector(&[0i64, 2, 3])])
    });
    backward_of_others: Case::op("FractionalMaxPoolGrad").inputs([counting(DataType::FLOAT, &[1, 4, 3, 1]), counting(DataType::FLOAT, &[1, 2, 2, 1]), counting(DataType::FLOAT, &[1, 2, 2, 1])])
        .inputs([vector(&[0i64, 2, 4]), vector(&[0i64, 2, 3])]).fails(Code::InvalidArgument);
    backward_avg: family(&["FractionalAvgPoolGrad"], &[DataType::FLOAT, DataType::DOUBLE], |op, dtype| {
        Case::op(op).inputs([vector(&[1i64, 4, 3, 1]), counting(dtype, &[1, 2, 2, 1]), vector(&[0i64, 2, 4]), vector(&[0i64, 2, 3])]).attr("overlapping", true)
    });
    backward_avg_short: Case::op("FractionalAvgPoolGrad").inputs([vector(&[1i64, 4, 3, 1]), counting(DataType::FLOAT, &[1, 2, 2, 1]), vector(&[0i64]), vector(&[0i64, 2, 3])])
        .fails(Code::InvalidArgument);
    backward_of_nothing: Case::op("FractionalMaxPoolGrad").inputs([t::<f32>(&[0, 0, 0, 0], &[]), t::<f32>(&[0, 1, 1, 0], &[]), t::<f32>(&[0, 1, 1, 0], &[])])
        .inputs([vector(&[1i64, 1]), vector(&[0i64, 2])]).fails(Code::InvalidArgument);
    backward_of_more_edges_than_pixels: Case::op("FractionalMaxPoolGrad").inputs([counting(DataType::FLOAT, &[1, 2, 2, 1]), counting(DataType::FLOAT, &[1, 2, 2, 1])])
        .inputs([counting(DataType::FLOAT, &[1, 2, 2, 1]), vector(&[0i64, 1, 2]), vector(&[0i64, 1, 2])]).fails(Code::InvalidArgument);
    backward_avg_of_nothing: Case::op("FractionalAvgPoolGrad").inputs([vector(&[1i64, 1, 1, 1]), t::<f32>(&[1, 0, 0, 1], &[]), vector(&[1i64]), vector(&[0i64])])
        .fails(Code::InvalidArgument);
    backward_avg_of_empty_windows: Case::op("FractionalAvgPoolGrad").inputs([vector(&[1i64, 1, 1, 1]), t(&[1, 1, 1, 1], &[2.0f32]), vector(&[0i64, 0]), vector(&[0i64, 1])])
        .fails(Code::InvalidArgument);
    backward_avg_of_later_edges: Case::op("FractionalAvgPoolGrad").inputs([vector(&[1i64, 1, 1, 1]), t(&[1, 1, 1, 1], &[2.0f32]), vector(&[0i64, 1, -1]), vector(&[0i64, 1])])
        .gives(t(&[1, 1, 1, 1], &[2.0f32]));
}
