//! Decoding logits to label sequences: the best class of each step, or the best beams.

use crate::wide::{f64s, from_f64s};
use ff_op::{Gradient, Kernel, KernelContext, Op, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure};
use rustc_hash::FxHashMap;

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "CTCGreedyDecoder",
        shape: |context| shape(context, 1),
        kernels: &[Kernel::native(greedy)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
    &Op {
        name: "CTCBeamSearchDecoder",
        shape: |context| {
            let paths = context.attrs().int("top_paths")?;
            shape(context, paths)
        },
        kernels: &[Kernel::native(beams)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

/// Indices, values and shapes of `paths` sparse matrices, then a score for each sequence and path.
fn shape(context: &mut ShapeContext, paths: i64) -> Result<()> {
    let inputs = context.input_with_rank(0, 3)?;
    let lengths = context.input_with_rank(1, 1)?;
    let batch = dim::merge(inputs.dim(1), lengths.dim(0))?;
    let paths_each = paths as usize;
    for path in 0..paths_each {
        context.set_output(path, PartialShape::new(&[dim::UNKNOWN, 2]));
        context.set_output(paths_each + path, PartialShape::new(&[dim::UNKNOWN]));
        context.set_output(2 * paths_each + path, PartialShape::new(&[2]));
    }
    context.set_output(3 * paths_each, PartialShape::new(&[batch, paths]));
    Ok(())
}

/// Logits of a batch of sequences.
struct Logits {
    values: Vec<f64>,
    batch: usize,
    classes: usize,
    lengths: Vec<usize>,
}

impl Logits {
    fn of(context: &KernelContext) -> Result<Logits> {
        let input = context.input(0)?;
        let (time, batch, classes) = (
            input.dims()[0],
            input.dims()[1] as usize,
            input.dims()[2] as usize,
        );
        ensure!(
            time > 0 && batch > 0 && classes > 0,
            InvalidArgument,
            "inputs must not be empty, got {}",
            input.shape()
        );
        let lengths = context.input_slice::<i32>(1)?;
        for (b, &length) in lengths.iter().enumerate() {
            ensure!(
                i64::from(length) <= time,
                FailedPrecondition,
                "sequence_length({b}) <= {time}"
            );
        }
        Ok(Logits {
            values: f64s(input)?.into_owned(),
            batch,
            classes,
            lengths: lengths.iter().map(|&length| length.max(0) as usize).collect(),
        })
    }

    fn step(&self, sequence: usize, t: usize) -> &[f64] {
        &self.values[(t * self.batch + sequence) * self.classes..][..self.classes]
    }
}

/// Sets the sparse matrices of the paths: `decoded[sequence][path]`.
fn set_paths(context: &mut KernelContext, decoded: &[Vec<Vec<i64>>], paths: usize) -> Result<()> {
    for path in 0..paths {
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        let mut longest = 0;
        for (row, sequence) in decoded.iter().enumerate() {
            for (column, &label) in sequence[path].iter().enumerate() {
                indices.extend([row as i64, column as i64]);
                values.push(label);
            }
            longest = longest.max(sequence[path].len());
        }
        let rows = Shape::new(&[values.len() as i64, 2])?;
        context.set_output(path, Tensor::from_slice(rows, &indices)?)?;
        context.set_output(paths + path, Tensor::vector(&values)?)?;
        let shape = Tensor::vector(&[decoded.len() as i64, longest as i64])?;
        context.set_output(2 * paths + path, shape)?;
    }
    Ok(())
}

fn greedy(context: &mut KernelContext) -> Result<()> {
    let logits = Logits::of(context)?;
    let merge = context.attrs().bool("merge_repeated")?;
    let blank = context.attrs().int("blank_index")?;
    let classes = logits.classes as i64;
    ensure!(
        (-classes..classes).contains(&blank),
        InvalidArgument,
        "blank_index expected to be between {} and {}, but was {blank}",
        -classes,
        classes - 1
    );
    let blank = blank.rem_euclid(classes);
    let (mut scores, mut decoded) = (Vec::new(), Vec::new());
    for sequence in 0..logits.batch {
        let (mut score, mut before) = (0.0, -1);
        let mut labels = Vec::new();
        for t in 0..logits.lengths[sequence] {
            let (mut best, mut largest) = (0, f64::NEG_INFINITY);
            for (class, &value) in logits.step(sequence, t).iter().enumerate() {
                if value > largest {
                    (best, largest) = (class as i64, value);
                }
            }
            score -= largest;
            if best != blank && !(merge && best == before) {
                labels.push(best);
            }
            before = best;
        }
        scores.push(score);
        decoded.push(vec![labels]);
    }
    set_paths(context, &decoded, 1)?;
    let shape = Shape::new(&[logits.batch as i64, 1])?;
    let scores = from_f64s(context.output_type(3), shape, &scores)?;
    context.set_output(3, scores)
}

/// Logarithms of the probabilities of a beam: in all, ending in blank, ending in its label.
#[derive(Clone, Copy)]
struct Odds {
    total: f64,
    blank: f64,
    label: f64,
}

const NEVER: Odds = Odds {
    total: f64::NEG_INFINITY,
    blank: f64::NEG_INFINITY,
    label: f64::NEG_INFINITY,
};

/// A beam: the labels of its parent and one more.
struct Beam {
    parent: Option<usize>,
    label: usize,
    children: FxHashMap<usize, usize>,
    old: Odds,
    new: Odds,
}

/// `ln(e^a + e^b)`, in `f32` steps as the reference takes them.
fn log_sum(a: f64, b: f64) -> f64 {
    if a == f64::NEG_INFINITY {
        b
    } else if b == f64::NEG_INFINITY {
        a
    } else {
        let bend = (a.min(b) - a.max(b)).exp().ln_1p();
        a.max(b) + bend
    }
}

/// The search of one sequence.
struct Search {
    beams: Vec<Beam>,
    /// The beams that are followed, at most `width`.
    leaves: Vec<usize>,
    width: usize,
}

impl Search {
    fn new(width: usize) -> Search {
        let start = Odds {
            total: 0.0,
            blank: 0.0,
            label: f64::NEG_INFINITY,
        };
        let root = Beam {
            parent: None,
            label: usize::MAX,
            children: FxHashMap::default(),
            old: NEVER,
            new: start,
        };
        Search {
            beams: vec![root],
            leaves: vec![0],
            width,
        }
    }

    /// The leaves, the likeliest first.
    fn sorted(&self) -> Vec<usize> {
        let mut leaves = self.leaves.clone();
        leaves.sort_by(|&a, &b| self.beams[b].new.total.total_cmp(&self.beams[a].new.total));
        leaves
    }

    /// The place among the leaves of the least likely one.
    fn worst(&self) -> Option<usize> {
        let total = |&place: &usize| self.beams[self.leaves[place]].new.total;
        (0..self.leaves.len()).min_by(|a, b| total(a).total_cmp(&total(b)))
    }

    fn is_candidate(&self, odds: Odds) -> bool {
        odds.total > f64::NEG_INFINITY
            && (self.leaves.len() < self.width
                || self
                    .worst()
                    .is_some_and(|place| odds.total > self.beams[self.leaves[place]].new.total))
    }

    fn child(&mut self, parent: usize, label: usize) -> usize {
        if let Some(&child) = self.beams[parent].children.get(&label) {
            return child;
        }
        let child = self.beams.len();
        self.beams.push(Beam {
            parent: Some(parent),
            label,
            children: FxHashMap::default(),
            old: NEVER,
            new: NEVER,
        });
        self.beams[parent].children.insert(label, child);
        child
    }

    /// Takes the probabilities of one more step in.
    fn step(&mut self, logits: &[f64]) {
        let blank = logits.len() - 1;
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let offset = largest + logits.iter().map(|x| (x - largest).exp()).sum::<f64>().ln();
        let branches = self.sorted();
        for &b in &branches {
            self.beams[b].old = self.beams[b].new;
        }
        for &b in &branches {
            if let Some(parent) = self.beams[b].parent {
                let label = self.beams[b].label;
                let above = &self.beams[parent];
                let mut odds = self.beams[b].new.label;
                if above.new.total != f64::NEG_INFINITY {
                    let before = if label == above.label {
                        above.old.blank
                    } else {
                        above.old.total
                    };
                    odds = log_sum(odds, before);
                }
                self.beams[b].new.label = odds + logits[label] - offset;
            }
            let beam = &mut self.beams[b];
            beam.new.blank = beam.old.total + logits[blank] - offset;
            beam.new.total = log_sum(beam.new.blank, beam.new.label);
        }
        self.leaves = branches.clone();
        for &b in &branches {
            if self.is_candidate(self.beams[b].old) {
                self.grow(b, &logits[..blank], offset);
            }
        }
    }

    /// Follows the children of a beam that are likelier than the least likely leaf.
    fn grow(&mut self, b: usize, logits: &[f64], offset: f64) {
        for (label, &logit) in logits.iter().enumerate() {
            let child = self.child(b, label);
            if self.beams[child].new.total != f64::NEG_INFINITY {
                continue;
            }
            let beam = &self.beams[b];
            let before = if label == beam.label {
                beam.old.blank
            } else {
                beam.old.total
            };
            let odds = logit - offset + before;
            let odds = Odds {
                total: odds,
                blank: f64::NEG_INFINITY,
                label: odds,
            };
            if !self.is_candidate(odds) {
                self.beams[child].old = NEVER;
                self.beams[child].new = NEVER;
                continue;
            }
            self.beams[child].new = odds;
            if self.leaves.len() == self.width
                && let Some(place) = self.worst()
            {
                let dropped = self.leaves.swap_remove(place);
                self.beams[dropped].new = NEVER;
            }
            self.leaves.push(child);
        }
    }

    fn labels(&self, leaf: usize, merge: bool) -> Vec<i64> {
        let (mut labels, mut before, mut at) = (Vec::new(), usize::MAX, leaf);
        while let Some(parent) = self.beams[at].parent {
            let label = self.beams[at].label;
            if !merge || label != before {
                labels.push(label as i64);
            }
            (before, at) = (label, parent);
        }
        labels.reverse();
        labels
    }
}

fn beams(context: &mut KernelContext) -> Result<()> {
    let logits = Logits::of(context)?;
    let attrs = context.attrs();
    let (width, paths) = (attrs.int("beam_width")?, attrs.int("top_paths")?);
    let merge = attrs.bool("merge_repeated")?;
    ensure!(
        paths <= width,
        InvalidArgument,
        "requested more paths than the beam width."
    );
    let (mut scores, mut decoded) = (Vec::new(), Vec::new());
    for sequence in 0..logits.batch {
        let mut search = Search::new(width as usize);
        for t in 0..logits.lengths[sequence] {
            search.step(logits.step(sequence, t));
        }
        let best = search.sorted();
        ensure!(
            best.len() >= paths as usize,
            InvalidArgument,
            "Less leaves in the beam search than requested."
        );
        let best = &best[..paths as usize];
        scores.extend(best.iter().map(|&leaf| search.beams[leaf].new.total));
        decoded.push(
            best.iter()
                .map(|&leaf| search.labels(leaf, merge))
                .collect::<Vec<_>>(),
        );
    }
    set_paths(context, &decoded, paths as usize)?;
    let last = 3 * paths as usize;
    let shape = Shape::new(&[logits.batch as i64, paths])?;
    let scores = from_f64s(context.output_type(last), shape, &scores)?;
    context.set_output(last, scores)
}

#[cfg(test)]
fn some_logits(dtype: ff_tensor::DataType) -> Tensor {
    let values: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 13) / 4.0).collect();
    crate::testing::numbers(dtype, &[5, 2, 4], &values)
}

crate::op_cases! {
    best_classes: family(&["CTCGreedyDecoder"], &[DataType::FLOAT, DataType::DOUBLE], |op, dtype| {
        Case::op(op).inputs([some_logits(dtype), vector(&[5, 3])])
    });
    best_classes_merged: Case::op("CTCGreedyDecoder").inputs([some_logits(DataType::FLOAT), vector(&[5, 4])]).attr("merge_repeated", true).attr("blank_index", 1i64);
    blank_out_of_range: Case::op("CTCGreedyDecoder").inputs([some_logits(DataType::FLOAT), vector(&[5, 4])]).attr("blank_index", 9i64).fails(Code::InvalidArgument);
    too_long: family(&["CTCGreedyDecoder", "CTCBeamSearchDecoder"], &[DataType::FLOAT], |op, dtype| {
        let case = Case::op(op).inputs([some_logits(dtype), vector(&[6, 4])]).fails(Code::FailedPrecondition);
        if op.starts_with("CTCB") { case.attr("beam_width", 2i64).attr("top_paths", 1i64) } else { case }
    });
    best_beams: family(&["CTCBeamSearchDecoder"], &[DataType::FLOAT, DataType::DOUBLE], |op, dtype| {
        Case::op(op).inputs([some_logits(dtype), vector(&[5, 3])]).attr("beam_width", 4i64).attr("top_paths", 3i64).attr("merge_repeated", false)
    });
    narrow_beams: Case::op("CTCBeamSearchDecoder").inputs([some_logits(DataType::FLOAT), vector(&[4, 5])]).attr("beam_width", 2i64).attr("top_paths", 2i64);
    more_paths_than_beams: Case::op("CTCBeamSearchDecoder").inputs([some_logits(DataType::FLOAT), vector(&[4, 5])]).attr("beam_width", 2i64).attr("top_paths", 3i64)
        .fails(Code::InvalidArgument);
}
