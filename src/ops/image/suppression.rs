//! `NonMaxSuppression`, versions 1 to 5 and by given overlaps: the best boxes that do not overlap better ones.

use crate::wide::{f32s, from_f32s, reserve, single};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

const SUPPRESSION: Op = Op {
    name: "NonMaxSuppression",
    shape: |context| shape(context, false),
    kernels: &[Kernel::native(run)],
    lower: Some(crate::host_call::lower),
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &SUPPRESSION,
    &Op {
        name: "NonMaxSuppressionV2",
        ..SUPPRESSION
    },
    &Op {
        name: "NonMaxSuppressionV3",
        ..SUPPRESSION
    },
    &Op {
        name: "NonMaxSuppressionV4",
        ..SUPPRESSION
    },
    &Op {
        name: "NonMaxSuppressionV5",
        ..SUPPRESSION
    },
    &Op {
        name: "NonMaxSuppressionWithOverlaps",
        shape: |context| shape(context, true),
        ..SUPPRESSION
    },
];

fn shape(context: &mut ShapeContext, overlaps: bool) -> Result<()> {
    let (boxes, scores) = (context.input_with_rank(0, 2)?, context.input_with_rank(1, 1)?);
    for input in 2..context.num_inputs() {
        context.input_with_rank(input, 0)?;
    }
    dim::merge(boxes.dim(0), scores.dim(0))?;
    dim::merge(boxes.dim(1), if overlaps { boxes.dim(0) } else { 4 })?;
    let padded = context.attrs().bool("pad_to_max_output_size").unwrap_or(false);
    let count = match context.input_as_scalar(2)? {
        Some(most) if padded => {
            ensure!(
                most >= 0,
                InvalidArgument,
                "max_output_size must be non-negative, got {most}"
            );
            most
        }
        _ => dim::UNKNOWN,
    };
    let last = context.num_outputs() - 1;
    for output in 0..=last {
        let shape = if output == last && last > 0 {
            PartialShape::scalar()
        } else {
            PartialShape::new(&[count])
        };
        context.set_output(output, shape);
    }
    Ok(())
}

/// What decides which boxes are taken.
pub struct Rule {
    /// Most boxes.
    pub most: usize,
    /// Boxes that overlap a better one by more are dropped.
    pub overlap: f32,
    /// Boxes of a score that is not larger are dropped.
    pub score: f32,
    /// Deviation of the bell curve that lowers scores of overlapping boxes; 0 for none.
    pub sigma: f32,
}

struct Candidate {
    score: f32,
    index: usize,
    /// Taken boxes before this one have been looked at.
    seen: usize,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Candidate {}
impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.index.cmp(&self.index))
    }
}

/// Indices and scores of the boxes taken, best first; `overlap(i, j)` says how much two boxes overlap.
pub fn suppress(
    scores: impl Iterator<Item = f32>,
    rule: &Rule,
    overlap: impl Fn(usize, usize) -> f32,
) -> Vec<(usize, f32)> {
    let candidates = scores.enumerate().filter(|&(_, score)| score > rule.score);
    let mut queue: BinaryHeap<Candidate> = candidates
        .map(|(index, score)| Candidate {
            score,
            index,
            seen: 0,
        })
        .collect();
    let soft = rule.sigma > 0.0;
    let scale = if soft { -0.5 / rule.sigma } else { 0.0 };
    let mut taken: Vec<(usize, f32)> = Vec::new();
    while taken.len() < rule.most {
        let Some(mut next) = queue.pop() else { break };
        let before = next.score;
        let mut dropped = false;
        for &(other, _) in taken[next.seen..].iter().rev() {
            let similarity = overlap(next.index, other);
            next.score *= if similarity <= rule.overlap {
                (scale * similarity * similarity).exp()
            } else {
                0.0
            };
            if !soft && similarity > rule.overlap {
                dropped = true;
                break;
            }
            if next.score <= rule.score {
                break;
            }
        }
        next.seen = taken.len();
        if dropped {
            continue;
        }
        if next.score == before {
            taken.push((next.index, next.score));
        } else if next.score > rule.score {
            queue.push(next);
        }
    }
    taken
}

/// Intersection over union of two boxes given by any two opposite corners; 0 for empty ones.
pub fn intersection_over_union(a: &[f32], b: &[f32]) -> f32 {
    let ordered = |p: &[f32]| [p[0].min(p[2]), p[1].min(p[3]), p[0].max(p[2]), p[1].max(p[3])];
    let (a, b) = (ordered(a), ordered(b));
    let area = |p: &[f32; 4]| (p[2] - p[0]) * (p[3] - p[1]);
    let (area_a, area_b) = (area(&a), area(&b));
    if area_a <= 0.0 || area_b <= 0.0 {
        return 0.0;
    }
    let height = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let width = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let intersection = height * width;
    intersection / (area_a + area_b - intersection)
}

/// A threshold at an input, or by default of none.
fn threshold(context: &KernelContext, input: usize, default: f32) -> Result<f32> {
    match input < context.num_inputs() {
        true => Ok(single(context.input(input)?)? as f32),
        false => Ok(default),
    }
}

fn run(context: &mut KernelContext) -> Result<()> {
    let overlaps = context.node().op_name().ends_with("Overlaps");
    let most = context.input_i64(2)?;
    ensure!(
        most >= 0,
        InvalidArgument,
        "output size must be non-negative, got {most}"
    );
    let rule = Rule {
        most: most as usize,
        overlap: match context.num_inputs() {
            3 => context.attrs().float("iou_threshold")?,
            _ => single(context.input(3)?)? as f32,
        },
        score: threshold(context, 4, f32::MIN)?,
        sigma: threshold(context, 5, 0.0)?,
    };
    ensure!(
        overlaps || (0.0..=1.0).contains(&rule.overlap),
        InvalidArgument,
        "iou_threshold must be in [0, 1]"
    );
    ensure!(
        rule.sigma >= 0.0,
        InvalidArgument,
        "soft_nms_sigma_val must be non-negative"
    );
    let (boxes, scores) = (f32s(context.input(0)?)?, f32s(context.input(1)?)?);
    let count = scores.len();
    let taken = if overlaps {
        suppress(scores.iter().copied(), &rule, |i, j| boxes[i * count + j])
    } else {
        suppress(scores.iter().copied(), &rule, |i, j| {
            intersection_over_union(&boxes[i * 4..][..4], &boxes[j * 4..][..4])
        })
    };
    let valid = taken.len();
    let mut indices: Vec<i32> = taken.iter().map(|&(index, _)| index as i32).collect();
    let mut kept: Vec<f32> = taken.iter().map(|&(_, score)| score).collect();
    if context.attrs().bool("pad_to_max_output_size").unwrap_or(false) {
        let more = (most as usize).saturating_sub(valid);
        reserve(&mut indices, more)?;
        reserve(&mut kept, more)?;
        indices.resize(most as usize, 0);
        kept.resize(most as usize, 0.0);
    }
    let last = context.num_outputs() - 1;
    context.set_output(0, Tensor::vector(&indices)?)?;
    if last == 2 {
        let kept = from_f32s(context.output_type(1), Shape::vector(kept.len()), &kept)?;
        context.set_output(1, kept)?;
    }
    if last > 0 {
        context.set_output(last, Tensor::scalar(valid as i32)?)?;
    }
    Ok(())
}

#[cfg(test)]
const BOXES: [f64; 24] = [
    0.0, 0.0, 1.0, 1.0, 0.0, 0.1, 1.0, 1.1, 0.0, -0.1, 1.0, 0.9, 0.0, 10.0, 1.0, 11.0, 1.0, 10.1, 0.0, 11.1,
    0.0, 100.0, 1.0, 101.0,
];
#[cfg(test)]
const SCORES: [f64; 6] = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3];

crate::op_cases! {
    first: Case::op("NonMaxSuppression").inputs([numbers(DataType::FLOAT, &[6, 4], &BOXES), numbers(DataType::FLOAT, &[6], &SCORES), scalar(3)])
        .gives(vector(&[3, 0, 5]));
    second: family(&["NonMaxSuppressionV2"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[6, 4], &BOXES), numbers(dtype, &[6], &SCORES), scalar(30), numbers(dtype, &[], &[0.5])])
    });
    third: family(&["NonMaxSuppressionV3"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[6, 4], &BOXES), numbers(dtype, &[6], &SCORES), scalar(30), numbers(dtype, &[], &[0.85]), numbers(dtype, &[], &[0.4])])
    });
    fourth: family(&["NonMaxSuppressionV4"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[6, 4], &BOXES), numbers(dtype, &[6], &SCORES), scalar(7), numbers(dtype, &[], &[0.5]), numbers(dtype, &[], &[0.0])])
            .attr("pad_to_max_output_size", true)
    });
    soft: family(&["NonMaxSuppressionV5"], &[DataType::FLOAT, DataType::HALF], |op, dtype| {
        Case::op(op).inputs([numbers(dtype, &[6, 4], &BOXES), numbers(dtype, &[6], &SCORES), scalar(6)])
            .inputs([numbers(dtype, &[], &[0.9]), numbers(dtype, &[], &[0.0]), numbers(dtype, &[], &[0.5])])
    });
    hard: Case::op("NonMaxSuppressionV5").attr("pad_to_max_output_size", true)
        .inputs([numbers(DataType::FLOAT, &[6, 4], &BOXES), numbers(DataType::FLOAT, &[6], &SCORES), scalar(6), scalar(0.5f32), scalar(0.0f32), scalar(0.0f32)]);
    by_overlaps: Case::op("NonMaxSuppressionWithOverlaps")
        .inputs([t(&[3, 3], &[0.0f32, 0.9, 0.1, 0.9, 0.0, 0.2, 0.1, 0.2, 0.0]), vector(&[0.5f32, 0.7, 0.1]), scalar(3), scalar(0.5f32), scalar(0.0f32)]);
    none: Case::op("NonMaxSuppressionV3").inputs([t::<f32>(&[0, 4], &[]), vector::<f32>(&[]), scalar(3), scalar(0.5f32), scalar(0.0f32)]);
    negative_size: Case::op("NonMaxSuppressionV3").fails(Code::InvalidArgument)
        .inputs([t(&[1, 4], &[0.0f32, 0.0, 1.0, 1.0]), vector(&[1.0f32]), scalar(-3), scalar(0.5f32), scalar(0.0f32)]);
    threshold_out_of_range: Case::op("NonMaxSuppressionV3").fails(Code::InvalidArgument)
        .inputs([t(&[1, 4], &[0.0f32, 0.0, 1.0, 1.0]), vector(&[1.0f32]), scalar(3), scalar(1.5f32), scalar(0.0f32)]);
    misfit: family(&["NonMaxSuppressionV2", "NonMaxSuppressionWithOverlaps"], &[DataType::FLOAT], |op, dtype| {
        let case = Case::op(op).inputs([numbers(dtype, &[1, 4], &[0.0, 0.0, 1.0, 1.0]), vector(&[1.0f32, 2.0]), scalar(3), scalar(0.5f32)]);
        if op.ends_with("V2") { case } else { case.input(scalar(0.5f32)) }.fails(Code::InvalidArgument)
    });
    fifth_misfit: Case::op("NonMaxSuppressionV5").fails(Code::InvalidArgument)
        .inputs([t(&[1, 3], &[0.0f32, 0.0, 1.0]), vector(&[1.0f32]), scalar(3), scalar(0.5f32), scalar(0.0f32), scalar(0.0f32)]);
    fourth_misfit: Case::op("NonMaxSuppressionV4").fails(Code::InvalidArgument)
        .inputs([t(&[1, 3], &[0.0f32, 0.0, 1.0]), vector(&[1.0f32]), scalar(3), scalar(0.5f32), scalar(0.0f32)]);
    first_misfit: Case::op("NonMaxSuppression").fails(Code::InvalidArgument)
        .inputs([t(&[1, 3], &[0.0f32, 0.0, 1.0]), vector(&[1.0f32]), scalar(3)]);
}
