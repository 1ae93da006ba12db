//! `CombinedNonMaxSuppression`: the best boxes of all classes, for a batch of images.

use super::suppression::{Rule, intersection_over_union, suppress};
use crate::wide::{single, zeros};
use ff_op::{Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Tensor, dim, ensure};

/// Every op of this file.
pub static OPS: &[&Op] = &[&Op {
    name: "CombinedNonMaxSuppression",
    shape,
    kernels: &[Kernel::native(run)],
    ..Op::PURE
}];

/// Boxes `[batch, boxes, 1 or classes, 4]`, scores `[batch, boxes, classes]`.
fn shape(context: &mut ShapeContext) -> Result<()> {
    let (boxes, scores) = (context.input_with_rank(0, 4)?, context.input_with_rank(1, 3)?);
    for input in 2..6 {
        context.input_with_rank(input, 0)?;
    }
    dim::merge(boxes.dim(3), 4)?;
    let batch = dim::merge(boxes.dim(0), scores.dim(0))?;
    dim::merge(boxes.dim(1), scores.dim(1))?;
    let (classes, boxes_of) = (scores.dim(2), boxes.dim(2));
    ensure!(
        boxes_of < 0 || classes < 0 || boxes_of == 1 || boxes_of == classes,
        InvalidArgument,
        "third dimension of boxes must be either 1 or equal to the third dimension of scores"
    );
    let most = (context.input_as_scalar(2)?, context.input_as_scalar(3)?);
    let count = match most {
        (Some(each), Some(all)) => {
            ensure!(each > 0, InvalidArgument, "max_size_per_class must be positive");
            ensure!(all > 0, InvalidArgument, "max_total_size must be > 0");
            match context.attrs().bool("pad_per_class")? {
                true if classes < 0 => dim::UNKNOWN,
                true => all.min(each.saturating_mul(classes)),
                false => all,
            }
        }
        _ => dim::UNKNOWN,
    };
    context.set_output(0, PartialShape::new(&[batch, count, 4]));
    context.set_output(1, PartialShape::new(&[batch, count]));
    context.set_output(2, PartialShape::new(&[batch, count]));
    context.set_output(3, PartialShape::new(&[batch]));
    Ok(())
}

fn run(context: &mut KernelContext) -> Result<()> {
    let each = context.input_i64(2)?;
    let (overlap, score) = (
        single(context.input(4)?)? as f32,
        single(context.input(5)?)? as f32,
    );
    ensure!(
        (0.0..=1.0).contains(&overlap),
        InvalidArgument,
        "iou_threshold must be in [0, 1]"
    );
    let clip = context.attrs().bool("clip_boxes")?;
    let rule = Rule {
        most: each as usize,
        overlap,
        score,
        sigma: 0.0,
    };
    let (boxes, scores) = (context.input(0)?, context.input(1)?);
    let (count, boxes_of, classes) = (
        boxes.dims()[1] as usize,
        boxes.dims()[2] as usize,
        scores.dims()[2] as usize,
    );
    let shape = context.output_shape(1)?.clone();
    let (batch, size) = (shape.dim(0), shape.dim(1));
    let (boxes, scores) = (boxes.as_slice::<f32>()?, scores.as_slice::<f32>()?);
    let mut out_boxes: Vec<f32> = zeros(batch * size * 4)?;
    let mut out_scores: Vec<f32> = zeros(batch * size)?;
    let mut out_classes: Vec<f32> = zeros(batch * size)?;
    let mut valid: Vec<i32> = zeros(batch)?;
    for image in 0..batch {
        let at = |class: usize, index: usize| {
            let class = if boxes_of == 1 { 0 } else { class };
            &boxes[((image * count + index) * boxes_of + class) * 4..][..4]
        };
        let mut taken: Vec<(f32, usize, usize)> = Vec::new();
        for class in 0..classes {
            let of_class = (0..count).map(|index| scores[(image * count + index) * classes + class]);
            let best = suppress(of_class, &rule, |i, j| {
                intersection_over_union(at(class, i), at(class, j))
            });
            taken.extend(best.into_iter().map(|(index, score)| (score, class, index)));
        }
        taken.sort_by(|a, b| b.0.total_cmp(&a.0));
        taken.truncate(size);
        valid[image] = taken.len() as i32;
        for (i, (score, class, index)) in taken.into_iter().enumerate() {
            let place = image * size + i;
            for (to, &from) in out_boxes[place * 4..][..4].iter_mut().zip(at(class, index)) {
                *to = if clip { from.clamp(0.0, 1.0) } else { from };
            }
            out_scores[place] = score;
            out_classes[place] = class as f32;
        }
    }
    context.set_output(
        0,
        Tensor::from_slice(context.output_shape(0)?.clone(), &out_boxes)?,
    )?;
    context.set_output(1, Tensor::from_slice(shape.clone(), &out_scores)?)?;
    context.set_output(2, Tensor::from_slice(shape, &out_classes)?)?;
    context.set_output(3, Tensor::vector(&valid)?)
}

#[cfg(test)]
fn boxes() -> Tensor {
    let values = [
        0.0f32, 0.0, 0.1, 0.1, 0.0, 0.01, 0.1, 0.11, 0.0, 0.6, 0.1, 0.7, 0.8, 0.8, 1.9, 0.9,
    ];
    crate::testing::t(&[1, 4, 1, 4], &values)
}

#[cfg(test)]
fn scores() -> Tensor {
    crate::testing::t(&[1, 4, 2], &[0.9f32, 0.2, 0.8, 0.3, 0.75, 0.4, 0.1, 0.7])
}

crate::op_cases! {
    ordinary: Case::op("CombinedNonMaxSuppression").inputs([boxes(), scores(), scalar(3), scalar(5), scalar(0.5f32), scalar(0.0f32)]);
    per_class: Case::op("CombinedNonMaxSuppression").attr("pad_per_class", true)
        .inputs([boxes(), scores(), scalar(2), scalar(50), scalar(0.5f32), scalar(0.25f32)]);
    not_clipped: Case::op("CombinedNonMaxSuppression").attr("clip_boxes", false)
        .inputs([boxes(), scores(), scalar(2), scalar(3), scalar(0.5f32), scalar(0.25f32)]);
    boxes_of_each_class: Case::op("CombinedNonMaxSuppression")
        .inputs([cycle(DataType::FLOAT, &[2, 3, 2, 4]), cycle(DataType::FLOAT, &[2, 3, 2]), scalar(2), scalar(3), scalar(0.5f32), scalar(0.25f32)]);
    no_size: Case::op("CombinedNonMaxSuppression").fails(Code::InvalidArgument)
        .inputs([boxes(), scores(), scalar(3), scalar(0), scalar(0.5f32), scalar(0.0f32)]);
    threshold: Case::op("CombinedNonMaxSuppression").fails(Code::InvalidArgument)
        .inputs([boxes(), scores(), scalar(3), scalar(5), scalar(1.5f32), scalar(0.0f32)]);
    misfit: Case::op("CombinedNonMaxSuppression").fails(Code::InvalidArgument)
        .inputs([boxes(), cycle(DataType::FLOAT, &[1, 3, 2]), scalar(3), scalar(5), scalar(0.5f32), scalar(0.0f32)]);
}
