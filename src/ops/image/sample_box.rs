//! Random crops: `SampleDistortedBoundingBox` in three versions, and `RandomCrop`.

use crate::random::stream::reserve;
use crate::wide::{f32s, f64s, single};
use ff_kernels::random::Philox;
use ff_op::{Attrs, Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, bail, dim, ensure};

const SAMPLE: Op = Op {
    name: "SampleDistortedBoundingBox",
    shape: sample_shape,
    kernels: &[Kernel::native(sample).for_types(&[("T", crate::dispatch::INTEGERS)])],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &SAMPLE,
    &Op {
        name: "SampleDistortedBoundingBoxV2",
        ..SAMPLE
    },
    &Op {
        name: "StatelessSampleDistortedBoundingBox",
        effects: ff_op::Effects::Pure,
        gradient: Gradient::Missing,
        ..SAMPLE
    },
    &Op {
        name: "RandomCrop",
        shape: crop_shape,
        kernels: &[Kernel::native(random_crop)],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
];

fn sample_shape(context: &mut ShapeContext) -> Result<()> {
    let (size, boxes) = (context.input_with_rank(0, 1)?, context.input_with_rank(1, 3)?);
    dim::merge(size.dim(0), 3)?;
    dim::merge(boxes.dim(2), 4)?;
    if context.num_inputs() > 2 {
        context.input_with_rank(2, 0)?;
    }
    if context.num_inputs() > 3 {
        let seed = context.input_with_rank(3, 1)?;
        dim::merge(seed.dim(0), 2)?;
    }
    context.set_output(0, PartialShape::new(&[3]));
    context.set_output(1, PartialShape::new(&[3]));
    context.set_output(2, PartialShape::new(&[1, 1, 4]));
    Ok(())
}

/// Single numbers of a stream, in order.
pub struct Numbers {
    philox: Philox,
    ready: [u32; 4],
    used: usize,
}

impl Numbers {
    /// From the start of a stream.
    pub fn new(philox: Philox) -> Numbers {
        Numbers {
            philox,
            ready: [0; 4],
            used: 4,
        }
    }

    /// The next 32 bits.
    pub fn word(&mut self) -> u32 {
        if self.used == 4 {
            self.ready = self.philox.step();
            self.used = 0;
        }
        self.used += 1;
        self.ready[self.used - 1]
    }

    /// From 0 to 1, without 1.
    fn float(&mut self) -> f32 {
        f32::from_bits((127 << 23) | (self.word() & 0x7f_ffff)) - 1.0
    }

    /// From 0 to 1, without 1.
    pub fn double(&mut self) -> f64 {
        let high = u64::from(self.word() & 0xf_ffff);
        let low = u64::from(self.word());
        f64::from_bits((1023 << 52) | (high << 32) | low) - 1.0
    }

    /// From 0 to `n`, without `n`, all equally likely.
    fn below(&mut self, n: u32) -> u32 {
        if n & n.wrapping_sub(1) == 0 {
            return self.word() & n.wrapping_sub(1);
        }
        let uneven = (u32::MAX % n) + 1;
        loop {
            let drawn = self.word();
            if drawn >= uneven {
                return drawn % n;
            }
        }
    }
}

/// Whole pixels: left, top, right, bottom.
type Rectangle = [i32; 4];

fn area(r: &Rectangle) -> f32 {
    (r[2].saturating_sub(r[0])).saturating_mul(r[3].saturating_sub(r[1])) as f32
}

fn intersection(a: &Rectangle, b: &Rectangle) -> Rectangle {
    let met = [a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])];
    if met[0] > met[2] || met[1] > met[3] {
        [0; 4]
    } else {
        met
    }
}

/// A crop of an area within the range and of this width over height, at a random place; none if it does not fit.
fn random_rectangle(
    numbers: &mut Numbers,
    width: i32,
    height: i32,
    area_range: (f32, f32),
    ratio: f32,
) -> Option<Rectangle> {
    if area_range.1 <= 0.0 || ratio <= 0.0 || width <= 0 || height <= 0 || area_range.0 > area_range.1 {
        return None;
    }
    let round = |x: f32| x.round_ties_even() as i32;
    let (least, most) = (
        area_range.0 * width as f32 * height as f32,
        area_range.1 * width as f32 * height as f32,
    );
    let mut rows = round((least / ratio).sqrt());
    let mut most_rows = round((most / ratio).sqrt());
    if round(most_rows as f32 * ratio) > width {
        most_rows = ((width as f32 + 0.5 - 0.0000001) / ratio) as i32;
    }
    most_rows = most_rows.min(height);
    rows = rows.min(most_rows);
    if rows < most_rows {
        rows += numbers.below((most_rows - rows + 1) as u32) as i32;
    }
    let mut columns = round(rows as f32 * ratio);
    let mut area = columns as f32 * rows as f32;
    if area < least {
        rows += 1;
        columns = round(rows as f32 * ratio);
        area = columns as f32 * rows as f32;
    }
    if area > most {
        rows -= 1;
        columns = round(rows as f32 * ratio);
        area = columns as f32 * rows as f32;
    }
    if area < least || area > most || columns > width || rows > height || columns <= 0 || rows <= 0 {
        return None;
    }
    let y = match height - rows {
        0 => 0,
        free => numbers.below(free as u32) as i32,
    };
    let x = match width - columns {
        0 => 0,
        free => numbers.below(free as u32) as i32,
    };
    Some([x, y, x + columns, y + rows])
}

/// Whether the crop holds enough of one of the objects.
fn covers(crop: &Rectangle, least: f32, objects: &[Rectangle]) -> bool {
    area(crop) >= 1.0
        && objects.iter().any(|object| {
            let size = area(object);
            size >= 1.0 && area(&intersection(crop, object)) / size >= least
        })
}

/// The ranges that the attributes say.
struct Ranges {
    ratio: (f32, f32),
    area: (f32, f32),
    attempts: i64,
}

fn ranges(attrs: &Attrs) -> Result<Ranges> {
    let pair = |name: &str| match attrs.floats(name)? {
        &[low, high] => Ok((low, high)),
        other => bail!(
            InvalidArgument,
            "{name} field must specify 2 dimensions, got {}",
            other.len()
        ),
    };
    let (ratio, area) = (pair("aspect_ratio_range")?, pair("area_range")?);
    let attempts = attrs.int("max_attempts")?;
    ensure!(
        ratio.0 > 0.0 && ratio.1 > 0.0,
        InvalidArgument,
        "aspect_ratio_range must be non-negative: [{}, {}]",
        ratio.0,
        ratio.1
    );
    ensure!(
        area.0 > 0.0 && area.1 > 0.0,
        InvalidArgument,
        "area_range must be non-negative: [{}, {}]",
        area.0,
        area.1
    );
    ensure!(
        area.0 <= 1.0 && area.1 <= 1.0,
        InvalidArgument,
        "area_range must be less then or equal to 1.0: [{}, {}]",
        area.0,
        area.1
    );
    ensure!(
        attempts > 0,
        InvalidArgument,
        "max_attempts must be non-negative: {attempts}"
    );
    Ok(Ranges {
        ratio,
        area,
        attempts,
    })
}

/// The objects' rectangles; the whole image where there are none and the attribute allows it.
fn objects(context: &KernelContext, width: i32, height: i32) -> Result<Vec<Rectangle>> {
    let boxes = f32s(context.input(1)?)?;
    let mut objects = Vec::new();
    for b in boxes.chunks_exact(4) {
        ensure!(
            b.iter().all(|edge| (0.0..=1.0).contains(edge)),
            InvalidArgument,
            "All bounding box coordinates must be in [0.0, 1.0]: {b:?}"
        );
        ensure!(
            b[0] < b[2] && b[1] < b[3],
            InvalidArgument,
            "Bounding box edges must be ordered: {b:?}"
        );
        let (w, h) = (width as f32, height as f32);
        objects.push([
            (b[1] * w) as i32,
            (b[0] * h) as i32,
            (b[3] * w) as i32,
            (b[2] * h) as i32,
        ]);
    }
    if objects.is_empty() {
        ensure!(
            context.attrs().bool("use_image_if_no_bounding_boxes")?,
            InvalidArgument,
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes."
        );
        objects.push([0, 0, width, height]);
    }
    Ok(objects)
}

fn sample(context: &mut KernelContext) -> Result<()> {
    let ranges = ranges(context.attrs())?;
    let size = f64s(context.input(0)?)?.into_owned();
    let (height, width) = (size[0] as i32, size[1] as i32);
    ensure!(
        height > 0 && width > 0,
        InvalidArgument,
        "Image height and width must be positive, got {height} and {width}"
    );
    let least = match context.num_inputs() {
        2 => context.attrs().float("min_object_covered")?,
        _ => single(context.input(2)?)? as f32,
    };
    ensure!(
        least >= 0.0,
        InvalidArgument,
        "Min object covered must be non-negative: {least}"
    );
    let objects = objects(context, width, height)?;
    let philox = match context.num_inputs() {
        4 => match context.input_i64s(3)?[..] {
            [a, b] => Philox::from_stateless_seed([a as u64, b as u64]),
            _ => bail!(InvalidArgument, "seed must have shape [2]"),
        },
        _ => reserve(context, (4 * ranges.attempts as u64).div_ceil(4))?,
    };
    let mut numbers = Numbers::new(philox);
    let mut found = None;
    for _ in 0..ranges.attempts {
        let ratio = numbers.float() * (ranges.ratio.1 - ranges.ratio.0) + ranges.ratio.0;
        let crop = random_rectangle(&mut numbers, width, height, ranges.area, ratio);
        if let Some(crop) = crop.filter(|crop| covers(crop, least, &objects)) {
            found = Some(crop);
            break;
        }
    }
    let [left, top, right, bottom] = found.unwrap_or([0, 0, width, height]);
    let dtype = context.output_type(0);
    let vector = |values: [i32; 3]| crate::wide::from_f64s(dtype, Shape::vector(3), &values.map(f64::from));
    let (begin, extent) = (vector([top, left, 0])?, vector([bottom - top, right - left, -1])?);
    context.set_output(0, begin)?;
    context.set_output(1, extent)?;
    let (w, h) = (width as f32, height as f32);
    let edges = [
        top as f32 / h,
        left as f32 / w,
        bottom as f32 / h,
        right as f32 / w,
    ];
    context.set_output(2, Tensor::from_slice(Shape::new(&[1, 1, 4])?, &edges)?)
}

fn crop_shape(context: &mut ShapeContext) -> Result<()> {
    let image = context.input_with_rank(0, 3)?;
    let size = context.input_with_rank(1, 1)?;
    dim::merge(size.dim(0), 2)?;
    let (height, width) = match context.input_as_i64s(1)? {
        Some(values) if values.len() == 2 && values.iter().all(|&extent| extent >= 0) => {
            (values[0], values[1])
        }
        _ => (dim::UNKNOWN, dim::UNKNOWN),
    };
    context.set_output(0, PartialShape::new(&[height, width, image.dim(2)]));
    Ok(())
}

fn random_crop(context: &mut KernelContext) -> Result<()> {
    let image = context.input(0)?.clone();
    let size = context.input_i64s(1)?;
    let (height, width) = (image.dims()[0], image.dims()[1]);
    ensure!(
        size[0] >= 0 && size[1] >= 0 && height >= size[0] && width >= size[1],
        FailedPrecondition,
        "Target size {} x {} is larger than the image's {height} x {width}",
        size[0],
        size[1]
    );
    let mut numbers = Numbers::new(reserve(context, 1)?);
    let mut draw = |free: i64| match free {
        0 => 0,
        free => (numbers.word() as i64 % (free + 1)) as usize,
    };
    // The column is drawn first.
    let left = draw(width - size[1]);
    let top = draw(height - size[0]);
    let mut output = context.allocate_output(0)?;
    let pixel = image.dims()[2] as usize * image.dtype().size();
    let (line, row) = (size[1] as usize * pixel, width as usize * pixel);
    if let Some(bytes) = output.bytes_mut().filter(|bytes| !bytes.is_empty()) {
        for (y, out) in bytes.chunks_exact_mut(line).enumerate() {
            out.copy_from_slice(&image.bytes()[(top + y) * row + left * pixel..][..line]);
        }
    }
    context.set_output(0, output)
}

#[cfg(test)]
fn object() -> Tensor {
    crate::testing::t(&[1, 1, 4], &[0.25f32, 0.125, 0.75, 0.875])
}

crate::op_cases! {
    seeded: Case::op("SampleDistortedBoundingBox").attr("seed", 7i64).attr("seed2", 11i64).inputs([vector(&[48, 64, 3]), object()]);
    seeded_narrow: Case::op("SampleDistortedBoundingBox").attr("seed", 3i64).attr("seed2", 5i64).attr("min_object_covered", 0.9f32)
        .attr("area_range", vec![0.3f32, 0.8]).inputs([vector(&[48i64, 64, 3]), object()]);
    second: Case::op("SampleDistortedBoundingBoxV2").attr("seed", 7i64).attr("seed2", 12i64).inputs([vector(&[480, 640, 3]), object(), scalar(0.5f32)]);
    stateless: family(&["StatelessSampleDistortedBoundingBox"], &[DataType::INT32, DataType::INT64, DataType::INT16], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[3], &[480.0, 640.0, 3.0]), object(), scalar(0.5f32), vector(&[1, 2])])
    });
    no_objects: family(&["SampleDistortedBoundingBox"], &[DataType::INT32], |op, _| {
        Case::op(op).inputs([vector(&[48, 64, 3]), t::<f32>(&[1, 0, 4], &[])]).fails(Code::InvalidArgument)
    });
    second_no_objects: family(&["SampleDistortedBoundingBoxV2"], &[DataType::INT32], |op, _| {
        Case::op(op).inputs([vector(&[48, 64, 3]), t::<f32>(&[1, 0, 4], &[]), scalar(0.5f32)]).fails(Code::InvalidArgument)
    });
    whole_image: Case::op("StatelessSampleDistortedBoundingBox").attr("use_image_if_no_bounding_boxes", true)
        .inputs([vector(&[48, 64, 3]), t::<f32>(&[1, 0, 4], &[]), scalar(0.5f32), vector(&[1, 2])]);
    short_seed: Case::op("StatelessSampleDistortedBoundingBox")
        .inputs([vector(&[48, 64, 3]), object(), scalar(0.5f32), vector(&[1, 2, 3])]).fails(Code::InvalidArgument);
    crop: family(&["RandomCrop"], &[DataType::FLOAT, DataType::UINT8, DataType::INT32], |op, dtype| {
        Case::op(op).attr("seed", 7i64).attr("seed2", 11i64).inputs([counting(dtype, &[9, 8, 2]), vector(&[4i64, 5])])
    });
    crop_of_all: Case::op("RandomCrop").inputs([counting(DataType::FLOAT, &[3, 2, 2]), vector(&[3i64, 2])]).gives(counting(DataType::FLOAT, &[3, 2, 2]));
    crop_too_large: Case::op("RandomCrop").inputs([counting(DataType::FLOAT, &[3, 2, 2]), vector(&[4i64, 2])]).fails(Code::FailedPrecondition);
}
