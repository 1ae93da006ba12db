//! `ImageProjectiveTransformV2` and `V3`: output pixels look up where a projective map says.

use super::{image_extents, set_sized_image};
use crate::wide::{f32s, from_f32s, zeros};
use ff_kernels::memory::SharedMut;
use ff_op::{Attrs, Gradient, GradientContext, Kernel, KernelContext, Op, OutputRef};
use ff_tensor::{DataType, Result, Shape, Tensor, bail, ensure};

const TRANSFORM: Op = Op {
    name: "ImageProjectiveTransformV2",
    shape: |context| {
        let image = context.input_with_rank(0, 4)?;
        set_sized_image(context, image.dim(0), 2, image.dim(3))
    },
    kernels: &[Kernel::native(transform).for_types(&[(
        "dtype",
        &[
            DataType::FLOAT,
            DataType::DOUBLE,
            DataType::HALF,
            DataType::BFLOAT16,
            DataType::INT32,
            DataType::INT64,
            DataType::UINT8,
        ],
    )])],
    gradient: Gradient::Fn(gradient),
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &TRANSFORM,
    &Op {
        name: "ImageProjectiveTransformV3",
        ..TRANSFORM
    },
];

/// What lies outside of an image.
#[derive(Clone, Copy)]
enum Fill {
    Constant,
    Reflect,
    Wrap,
    Nearest,
}

impl Fill {
    fn of(attrs: &Attrs) -> Result<Fill> {
        Ok(match attrs.string("fill_mode")? {
            "CONSTANT" => Fill::Constant,
            "REFLECT" => Fill::Reflect,
            "WRAP" => Fill::Wrap,
            "NEAREST" => Fill::Nearest,
            other => bail!(
                InvalidArgument,
                "Invalid mode {other}. Only REFLECT, WRAP, CONSTANT, or NEAREST are supported."
            ),
        })
    }

    /// The coordinate that stands for `at` on an axis of `extent` pixels.
    fn place(self, at: f32, extent: usize) -> f32 {
        let len = extent as f32;
        let at = match self {
            Fill::Constant => return at,
            Fill::Nearest => at,
            _ if extent <= 1 => 0.0,
            Fill::Reflect => {
                let double = 2.0 * len;
                if at < 0.0 {
                    let moved = if at < double {
                        double * (-at / double).trunc() + at
                    } else {
                        at
                    };
                    if moved < -len {
                        moved + double
                    } else {
                        -moved - 1.0
                    }
                } else if at > len - 1.0 {
                    let moved = at - double * (at / double).trunc();
                    if moved >= len { double - moved - 1.0 } else { moved }
                } else {
                    at
                }
            }
            Fill::Wrap => {
                let last = len - 1.0;
                if at < 0.0 {
                    at + len * ((-at / last).trunc() + 1.0)
                } else if at > last {
                    at - len * (at / last).trunc()
                } else {
                    at
                }
            }
        };
        at.max(0.0).min(len - 1.0)
    }
}

/// Reads pixels of one image.
struct Reader<'a> {
    image: &'a [f32],
    extents: [usize; 3],
    fill: f32,
}

impl Reader<'_> {
    fn read(&self, y: f32, x: f32, channel: usize) -> f32 {
        let [height, width, channels] = self.extents;
        if !(y >= 0.0 && x >= 0.0 && y < height as f32 && x < width as f32) {
            return self.fill;
        }
        self.image[(y as usize * width + x as usize) * channels + channel]
    }

    fn linear(&self, y: f32, x: f32, channel: usize) -> f32 {
        let (top, left) = (y.floor(), x.floor());
        let (bottom, right) = (top + 1.0, left + 1.0);
        let row = |row: f32| {
            (right - x) * self.read(row, left, channel) + (x - left) * self.read(row, right, channel)
        };
        (bottom - y) * row(top) + (y - top) * row(bottom)
    }
}

fn transform(context: &mut KernelContext) -> Result<()> {
    let [batch, height, width, channels] = image_extents(context, 0)?;
    let attrs = context.attrs();
    let fill_mode = Fill::of(attrs)?;
    let linear = match attrs.string("interpolation")? {
        "NEAREST" => false,
        "BILINEAR" => true,
        other => bail!(
            InvalidArgument,
            "Invalid interpolation {other}. Supported types: NEAREST, BILINEAR"
        ),
    };
    let maps = context.input(1)?;
    ensure!(
        maps.rank() == 2 && maps.dims()[1] == 8 && (maps.dims()[0] == batch as i64 || maps.dims()[0] == 1),
        InvalidArgument,
        "Input transform should be num_images x 8 or 1 x 8"
    );
    let size = context.input_i64s(2)?;
    ensure!(
        size.len() == 2 && size[0] > 0 && size[1] > 0,
        InvalidArgument,
        "new dimensions must be positive"
    );
    let fill = match context.num_inputs() {
        4 => crate::wide::single(context.input(3)?)? as f32,
        _ => 0.0,
    };
    let maps = maps.as_slice::<f32>()?;
    let image = f32s(context.input(0)?)?;
    let dims = [batch as i64, size[0], size[1], channels as i64];
    let shape = Shape::new(&dims)?;
    let mut result = zeros(shape.num_elements())?;
    let (rows, row) = (size[0] as usize, size[1] as usize * channels);
    let shared = SharedMut::new(&mut result);
    context
        .pool()
        .parallel_for(batch * rows, 10.0 * row as f64, |lines| {
            for line in lines {
                // SAFETY: lines are disjoint.
                let out = unsafe { shared.range(line * row..(line + 1) * row) };
                let (b, y) = (line / rows, (line % rows) as f32);
                let map = if maps.len() == 8 {
                    maps
                } else {
                    &maps[b * 8..][..8]
                };
                let reader = Reader {
                    image: &image[b * height * width * channels..][..height * width * channels],
                    extents: [height, width, channels],
                    fill,
                };
                for (x, out) in out.chunks_exact_mut(channels.max(1)).enumerate() {
                    let x = x as f32;
                    let projection = map[6] * x + map[7] * y + 1.0;
                    if projection == 0.0 {
                        out.fill(fill);
                        continue;
                    }
                    let from_x = fill_mode.place((map[0] * x + map[1] * y + map[2]) / projection, width);
                    let from_y = fill_mode.place((map[3] * x + map[4] * y + map[5]) / projection, height);
                    for (channel, out) in out.iter_mut().enumerate() {
                        *out = if linear {
                            reader.linear(from_y, from_x, channel)
                        } else {
                            reader.read(from_y.round_ties_even(), from_x.round_ties_even(), channel)
                        };
                    }
                }
            }
        });
    let result = from_f32s(context.output_type(0), shape, &result)?;
    context.set_output(0, result)
}

/// The maps' inverses, as flat rows of eight.
fn inverted(context: &mut GradientContext, maps: OutputRef) -> Result<OutputRef> {
    let int = |name: &str| {
        Attrs::new()
            .with("T", DataType::FLOAT)
            .with(name, DataType::INT32)
    };
    let axis = context.constant(Tensor::scalar(1i32)?)?;
    let dims = crate::math::gradients::shape_of(context, maps)?;
    let (begin, length) = (context.int32s(&[0])?, context.int32s(&[1])?);
    let slice = Attrs::new()
        .with("T", DataType::INT32)
        .with("Index", DataType::INT32);
    let count = context.op("Slice", &[dims, begin, length], slice)?;
    let concat = Attrs::new()
        .with("T", DataType::INT32)
        .with("Tidx", DataType::INT32)
        .with("N", 2i64);
    let zero = context.constant(Tensor::scalar(0i32)?)?;
    let column = context.op("ConcatV2", &[count, length, zero], concat)?;
    let one = context.constant(Tensor::scalar(1.0f32)?)?;
    let ones = context.op(
        "Fill",
        &[column, one],
        Attrs::new()
            .with("T", DataType::FLOAT)
            .with("index_type", DataType::INT32),
    )?;
    let nine = context.op("ConcatV2", &[maps, ones, axis], int("Tidx").with("N", 2i64))?;
    let square = context.int32s(&[-1, 3, 3])?;
    let matrices = context.op("Reshape", &[nine, square], int("Tshape"))?;
    let inverse = context.op(
        "MatrixInverse",
        &[matrices],
        Attrs::new().with("T", DataType::FLOAT).with("adjoint", false),
    )?;
    let flat = context.int32s(&[-1, 9])?;
    let flat = context.op("Reshape", &[inverse, flat], int("Tshape"))?;
    let (begin, last) = (context.int32s(&[0, 8])?, context.int32s(&[-1, 1])?);
    let last = context.op("Slice", &[flat, begin, last], int("Index"))?;
    let scaled = context.op("RealDiv", &[flat, last], Attrs::new().with("T", DataType::FLOAT))?;
    let (begin, eight) = (context.int32s(&[0, 0])?, context.int32s(&[-1, 8])?);
    context.op("Slice", &[scaled, begin, eight], int("Index"))
}

fn gradient(context: &mut GradientContext) -> Result<()> {
    let (incoming, image, maps) = (
        context.incoming_or_zeros(0)?,
        context.input(0)?,
        context.input(1)?,
    );
    let maps = inverted(context, maps)?;
    let size = super::resize::size_of(context, image)?;
    let attrs = Attrs::new()
        .with("dtype", context.input_type(0))
        .with("interpolation", context.attrs().string("interpolation")?)
        .with("fill_mode", context.attrs().string("fill_mode")?);
    let gradient = context.op("ImageProjectiveTransformV2", &[incoming, maps, size], attrs)?;
    context.set(0, gradient);
    Ok(())
}

#[cfg(test)]
fn map() -> Tensor {
    crate::testing::t(&[1, 8], &[0.9f32, -0.3, 1.25, 0.2, 1.1, -1.75, 0.01, -0.02])
}

crate::op_cases! {
    every_type: family(&["ImageProjectiveTransformV2"], &[FLOATS, &[DataType::INT32, DataType::INT64, DataType::UINT8]].concat(), |op, dtype| {
        Case::op(op).inputs([cycle(dtype, &[2, 5, 4, 2]), map(), vector(&[6, 7])]).attr("interpolation", "BILINEAR")
    });
    nearest: Case::op("ImageProjectiveTransformV2").inputs([cycle(DataType::FLOAT, &[2, 5, 4, 2]), map(), vector(&[6, 7])]).attr("interpolation", "NEAREST");
    reflected: Case::op("ImageProjectiveTransformV2").inputs([cycle(DataType::FLOAT, &[1, 3, 2, 2]), map(), vector(&[9, 12])])
        .attr("interpolation", "BILINEAR").attr("fill_mode", "REFLECT");
    wrapped: Case::op("ImageProjectiveTransformV2").inputs([cycle(DataType::FLOAT, &[1, 3, 2, 2]), map(), vector(&[9, 12])])
        .attr("interpolation", "BILINEAR").attr("fill_mode", "WRAP");
    edge_repeated: Case::op("ImageProjectiveTransformV2").inputs([cycle(DataType::FLOAT, &[1, 3, 2, 2]), map(), vector(&[9, 12])])
        .attr("interpolation", "NEAREST").attr("fill_mode", "NEAREST");
    filled: Case::op("ImageProjectiveTransformV3").inputs([cycle(DataType::FLOAT, &[1, 3, 2, 2]), map(), vector(&[9, 12]), scalar(-3.5f32)])
        .attr("interpolation", "BILINEAR");
    map_per_image: Case::op("ImageProjectiveTransformV3").inputs([cycle(DataType::FLOAT, &[2, 3, 2, 2]), cycle(DataType::FLOAT, &[2, 8]), vector(&[3, 3]), scalar(-3.5f32)])
        .attr("interpolation", "BILINEAR");
    short_map: Case::op("ImageProjectiveTransformV2").inputs([cycle(DataType::FLOAT, &[1, 3, 2, 2]), cycle(DataType::FLOAT, &[1, 7]), vector(&[9, 12])])
        .attr("interpolation", "BILINEAR").fails(Code::InvalidArgument);
    empty_size: Case::op("ImageProjectiveTransformV2").inputs([cycle(DataType::FLOAT, &[1, 3, 2, 2]), map(), vector(&[0, 12])])
        .attr("interpolation", "BILINEAR").fails(Code::InvalidArgument);
}
