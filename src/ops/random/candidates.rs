//! Candidate samplers: classes drawn for a loss over some of many classes, with how often each was to be expected.

use super::stream::reserve;
use super::words::Words;
use crate::wide;
use ff_op::{Attrs, Gradient, Kernel, KernelContext, Op, PrepareContext, Prepared, ShapeContext};
use ff_tensor::{PartialShape, Result, Shape, Tensor, bail, dim, ensure, status};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::any::Any;
use std::sync::Arc;

const SAMPLER: Op = Op {
    shape,
    prepare: Some(prepare),
    kernels: &[Kernel::native(sample)],
    gradient: Gradient::NotDifferentiable,
    ..Op::STATEFUL
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "AllCandidateSampler",
        ..SAMPLER
    },
    &Op {
        name: "UniformCandidateSampler",
        ..SAMPLER
    },
    &Op {
        name: "LogUniformCandidateSampler",
        ..SAMPLER
    },
    &Op {
        name: "LearnedUnigramCandidateSampler",
        ..SAMPLER
    },
    &Op {
        name: "ThreadUnsafeUnigramCandidateSampler",
        ..SAMPLER
    },
    &Op {
        name: "FixedUnigramCandidateSampler",
        ..SAMPLER
    },
    &Op {
        name: "ComputeAccidentalHits",
        shape: |context| {
            let truth = context.input_with_rank(0, 2)?;
            context.input_with_rank(1, 1)?;
            dim::merge(truth.dim(1), context.attrs().int("num_true")?)?;
            for index in 0..3 {
                context.set_output(index, PartialShape::of_rank(1));
            }
            Ok(())
        },
        kernels: &[Kernel::native(accidental_hits)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

fn shape(context: &mut ShapeContext) -> Result<()> {
    let truth = context.input_with_rank(0, 2)?;
    let attrs = context.attrs();
    let (columns, count) = (attrs.int("num_true")?, attrs.int("num_sampled")?);
    dim::merge(truth.dim(1), columns)?;
    context.set_output(0, PartialShape::new(&[count]));
    context.set_output(1, PartialShape::new(&[truth.dim(0), columns]));
    context.set_output(2, PartialShape::new(&[count]));
    Ok(())
}

/// How classes are drawn.
enum Sampler {
    All,
    Uniform(i64),
    LogUniform {
        range: i64,
        log_range: f64,
    },
    Fixed(Alias),
    /// By how often they were seen; the counts are the node's state.
    Learned(i64),
}

/// Drawing by fixed weights in constant time (Walker's alias method).
struct Alias {
    weights: Vec<f32>,
    total: f32,
    /// For each class the chance to keep it, and the one that it gives way to.
    table: Vec<(f32, usize)>,
}

impl Alias {
    fn new(weights: Vec<f32>, total: f32) -> Result<Alias> {
        let n = weights.len();
        let sum: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        // A weight times the number of classes is an `f32` product in the reference.
        let chance = |&weight: &f32| f64::from(weight * n as f32) / sum;
        let mut chances: Vec<f64> = wide::collected(weights.iter().map(chance))?;
        let mut table = wide::filled(n, (0.0, usize::MAX))?;
        let (mut low, mut high): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| chances[i] < 1.0);
        while !low.is_empty() && !high.is_empty() {
            let (Some(l), Some(h)) = (low.pop(), high.pop()) else {
                break;
            };
            table[l].1 = h;
            chances[h] -= 1.0 - chances[l];
            if chances[h] < 1.0 {
                low.push(h)
            } else {
                high.push(h)
            }
        }
        for (entry, &chance) in table.iter_mut().zip(&chances) {
            entry.0 = chance as f32;
        }
        for &rest in low.iter().chain(&high) {
            table[rest] = (1.0, rest);
        }
        Ok(Alias {
            weights,
            total,
            table,
        })
    }

    fn draw(&self, words: &mut Words) -> i64 {
        let kept = f32::from_bits(0x3f80_0000 | (words.next_word() & 0x007f_ffff)) - 1.0;
        let index = words.next_word() as usize % self.table.len();
        let (chance, other) = self.table[index];
        (if kept < chance { index } else { other }) as i64
    }
}

/// Counts of classes, with sums that make drawing quick (Fenwick's tree).
struct Counts {
    counts: Vec<u32>,
    tree: Vec<u32>,
    total: u32,
}

impl Counts {
    /// Every class once.
    fn new(range: usize) -> Result<Counts> {
        let mut counts = Counts {
            counts: wide::filled(range, 1)?,
            tree: wide::filled(range + 1, 1)?,
            total: range as u32,
        };
        // Each entry of the tree is the sum of as many classes as its lowest bit says.
        for (at, sum) in counts.tree.iter_mut().enumerate() {
            *sum = (at & at.wrapping_neg()) as u32;
        }
        Ok(counts)
    }

    fn see(&mut self, class: usize) {
        self.counts[class] += 1;
        self.total += 1;
        let mut at = class + 1;
        while at < self.tree.len() {
            self.tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    /// The first class at which the counts before and at it are more than `weight`.
    fn class_at(&self, mut weight: u32) -> usize {
        let (mut at, mut step) = (0, self.tree.len().next_power_of_two() / 2);
        while step > 0 {
            if at + step < self.tree.len() && self.tree[at + step] <= weight {
                at += step;
                weight -= self.tree[at];
            }
            step /= 2;
        }
        at
    }
}

/// An evenly distributed number below `n`: words that would favour some are passed over.
fn unbiased(words: &mut Words, n: u32) -> u32 {
    if n == 0 || n & (n - 1) == 0 {
        return words.next_word() & n.wrapping_sub(1);
    }
    let rest = u32::MAX % n + 1;
    loop {
        let word = words.next_word();
        if word >= rest {
            return word % n;
        }
    }
}

fn next_wide(words: &mut Words) -> u64 {
    let low = u64::from(words.next_word());
    low | u64::from(words.next_word()) << 32
}

impl Sampler {
    fn range(&self, count: i64) -> i64 {
        match self {
            Sampler::All => count,
            Sampler::Uniform(range) | Sampler::LogUniform { range, .. } | Sampler::Learned(range) => *range,
            Sampler::Fixed(alias) => alias.weights.len() as i64,
        }
    }

    fn draw(&self, words: &mut Words, counts: Option<&Counts>) -> i64 {
        match self {
            Sampler::All => 0,
            Sampler::Uniform(range) => (next_wide(words) % *range as u64) as i64,
            Sampler::LogUniform { range, log_range } => {
                ((words.next_double() * log_range).exp() as i64 - 1) % range
            }
            Sampler::Fixed(alias) => alias.draw(words),
            Sampler::Learned(_) => counts.map_or(-1, |counts| {
                let weight = unbiased(words, counts.total);
                counts.class_at(weight) as i64
            }),
        }
    }

    fn probability(&self, class: i64, counts: Option<&Counts>) -> f32 {
        match self {
            Sampler::All => 1.0,
            Sampler::Uniform(range) => 1.0 / *range as f32,
            Sampler::LogUniform { log_range, .. } => {
                let class = class as f64;
                (((class + 2.0) / (class + 1.0)).ln() / log_range) as f32
            }
            Sampler::Fixed(alias) => {
                let weight = usize::try_from(class)
                    .ok()
                    .and_then(|class| alias.weights.get(class));
                weight.map_or(0.0, |weight| weight / alias.total)
            }
            Sampler::Learned(_) => counts.map_or(0.0, |counts| {
                let seen = usize::try_from(class)
                    .ok()
                    .and_then(|class| counts.counts.get(class));
                (f64::from(seen.copied().unwrap_or(0)) / f64::from(counts.total)) as f32
            }),
        }
    }
}

fn prepare(context: &PrepareContext) -> Result<Prepared> {
    let attrs: &Attrs = &context.node.attrs;
    let range = || attrs.int("range_max");
    let sampler = match context.node.op_name() {
        "AllCandidateSampler" => Sampler::All,
        "UniformCandidateSampler" => Sampler::Uniform(range()?),
        "LogUniformCandidateSampler" => Sampler::LogUniform {
            range: range()?,
            log_range: (range()? as f64).ln_1p(),
        },
        "FixedUnigramCandidateSampler" => Sampler::Fixed(fixed(attrs, range()?)?),
        _ => {
            ensure!(
                range()? < i64::from(i32::MAX),
                InvalidArgument,
                "range_max is too large"
            );
            Sampler::Learned(range()?)
        }
    };
    if attrs.bool("unique")? {
        let count = attrs.int("num_sampled")?;
        ensure!(
            count <= sampler.range(count),
            InvalidArgument,
            "Sampler's range is too small."
        );
    }
    Ok(Arc::new(sampler))
}

/// Weights from the attribute `unigrams`, or from the last column of each line of a file.
fn unigrams(attrs: &Attrs) -> Result<Vec<f32>> {
    let (given, file) = (attrs.floats("unigrams")?, attrs.string("vocab_file")?);
    ensure!(
        file.is_empty() != given.is_empty(),
        InvalidArgument,
        "Must provide exactly one of vocab_file and unigrams."
    );
    if file.is_empty() {
        return Ok(given.to_vec());
    }
    let text = ff_platform::files::read(file)?;
    let mut weights = Vec::new();
    for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        let last = line.rsplit(',').next().unwrap_or_default().trim();
        weights.push(
            last.parse::<f32>()
                .map_err(|_| status!(InvalidArgument, "Wrong vocabulary format at line: {}", number + 1))?,
        );
    }
    Ok(weights)
}

fn fixed(attrs: &Attrs, range: i64) -> Result<Alias> {
    let (shards, shard) = (
        attrs.int("num_shards")?.max(1) as usize,
        attrs.int("shard")? as usize,
    );
    let distortion = attrs.float("distortion")?;
    let reserved = attrs.int("num_reserved_ids")?.max(0) as usize;
    let (mut weights, mut total) = (wide::zeros(reserved)?, 0.0f32);
    for (at, unigram) in unigrams(attrs)?.into_iter().enumerate() {
        // Numbers begin after those that are set aside.
        if (reserved + at) % shards == shard {
            let weight = unigram.powf(distortion);
            total += weight;
            weights.push(weight);
        }
    }
    ensure!(
        weights.len() as i64 == range,
        InvalidArgument,
        "range_max is {range}, but there are {} unigrams",
        weights.len()
    );
    Alias::new(weights, total)
}

/// The counts that a node keeps.
fn kept_counts(context: &KernelContext, range: i64) -> Result<Arc<dyn Any + Send + Sync>> {
    let mut make = || Ok(Arc::new(Mutex::new(Counts::new(range as usize)?)) as Arc<dyn Any + Send + Sync>);
    context
        .host()
        .node_state(&format!("{}/counts", context.node().name), &mut make)
}

/// How often a class of probability `p` was to be expected after `tries` draws that gave `count` classes.
fn expected(p: f32, count: usize, tries: usize) -> f32 {
    if tries == count {
        return p * count as f32;
    }
    -(tries as f32 * (-p).ln_1p()).exp_m1()
}

/// So many draws between looks at whether the step is cancelled.
const CHECKED: usize = 1 << 16;

fn sample(context: &mut KernelContext) -> Result<()> {
    let sampler: &Sampler = context.prepared()?;
    let attrs = context.attrs();
    let (count, unique) = (attrs.int("num_sampled")? as usize, attrs.bool("unique")?);
    let truth = context.input_slice::<i64>(0)?.to_vec();
    let philox = reserve(context, 512 * count as u64)?;
    let mut words = Words::new(philox);
    let state = match sampler {
        Sampler::Learned(range) => Some(kept_counts(context, *range)?),
        _ => None,
    };
    let mut counts = match &state {
        Some(state) => {
            let counts: &Mutex<Counts> = state.downcast_ref().ok_or_else(|| {
                status!(
                    Internal,
                    "{} has state of another kind",
                    context.node().describe()
                )
            })?;
            Some(counts.lock())
        }
        None => None,
    };
    let limit = sampler.range(count as i64);
    if let Some(bad) = truth.iter().find(|&&class| !(0..limit).contains(&class)) {
        bail!(
            InvalidArgument,
            "`true_candidate` out of range [0, {limit}), received {bad}"
        );
    }
    let (mut drawn, mut tries, mut seen) = (wide::reserved(count)?, 0, FxHashSet::default());
    if unique {
        seen.try_reserve(count)
            .map_err(|_| status!(ResourceExhausted, "OOM when drawing {count} classes"))?;
    }
    while drawn.len() < count {
        if matches!(sampler, Sampler::All) {
            drawn.push(drawn.len() as i64);
            tries += 1;
            continue;
        }
        tries += 1;
        if tries % CHECKED == 0 {
            context.host().cancellation().check()?;
        }
        ensure!(
            tries < i32::MAX as usize,
            Internal,
            "too few classes can be drawn"
        );
        let class = sampler.draw(&mut words, counts.as_deref());
        if !unique || seen.insert(class) {
            drawn.push(class);
        }
    }
    let all = matches!(sampler, Sampler::All);
    let likely = |class: &i64| {
        if all {
            1.0
        } else {
            expected(sampler.probability(*class, counts.as_deref()), count, tries)
        }
    };
    let of_drawn: Vec<f32> = wide::collected(drawn.iter().map(likely))?;
    let of_truth: Vec<f32> = wide::collected(truth.iter().map(likely))?;
    if let Some(counts) = &mut counts {
        truth.iter().for_each(|&class| counts.see(class as usize));
    }
    drop(counts);
    let shape: Shape = context.input(0)?.shape().clone();
    context.set_output(0, Tensor::vector(&drawn)?)?;
    context.set_output(1, Tensor::from_slice(shape, &of_truth)?)?;
    context.set_output(2, Tensor::vector(&of_drawn)?)
}

/// Where a drawn candidate is a true class: the row, the candidate's place, and the lowest number as its weight.
fn accidental_hits(context: &mut KernelContext) -> Result<()> {
    let columns = context.attrs().int("num_true")?.max(1) as usize;
    let (truth, drawn) = (context.input_slice::<i64>(0)?, context.input_slice::<i64>(1)?);
    let places: FxHashMap<i64, i64> = drawn
        .iter()
        .enumerate()
        .map(|(at, &class)| (class, at as i64))
        .collect();
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    for (row, classes) in truth.chunks(columns).enumerate() {
        for class in classes {
            if let Some(&place) = places.get(class) {
                rows.push(row as i32);
                found.push(place);
            }
        }
    }
    let weights = vec![f32::MIN; rows.len()];
    context.set_output(0, Tensor::vector(&rows)?)?;
    context.set_output(1, Tensor::vector(&found)?)?;
    context.set_output(2, Tensor::vector(&weights)?)
}

#[cfg(test)]
fn case(op: &'static str, count: i64, unique: bool) -> crate::testing::Case {
    let case = crate::testing::Case::op(op)
        .input(crate::testing::t(&[2, 2], &[0i64, 3, 7, 1]))
        .attr("num_true", 2i64)
        .attr("num_sampled", count)
        .attr("unique", unique)
        .attr("seed", 7i64)
        .attr("seed2", 11i64);
    match op {
        "AllCandidateSampler" => case,
        "FixedUnigramCandidateSampler" => case
            .attr("range_max", 9i64)
            .attr("unigrams", vec![1.0f32, 2.0, 5.0, 0.5, 3.0, 7.0, 1.0, 4.0])
            .attr("num_reserved_ids", 1i64)
            .attr("distortion", 0.75f32),
        _ => case.attr("range_max", 20i64),
    }
}

#[cfg(test)]
const NAMES: &[&str] = &[
    "AllCandidateSampler",
    "UniformCandidateSampler",
    "LogUniformCandidateSampler",
    "LearnedUnigramCandidateSampler",
    "ThreadUnsafeUnigramCandidateSampler",
    "FixedUnigramCandidateSampler",
];

#[cfg(test)]
const ANY: &[ff_tensor::DataType] = &[ff_tensor::DataType::INT64];

crate::op_cases! {
    repeated: family(&NAMES[1..], ANY, |op, _| case(op, 6, false));
    all: case("AllCandidateSampler", 8, false);
    all_too_few: case("AllCandidateSampler", 7, true).fails(Code::InvalidArgument);
    all_different: family(&NAMES[1..], ANY, |op, _| case(op, 7, true));
    too_many: family(&NAMES[1..], ANY, |op, _| case(op, 30, true).fails(Code::InvalidArgument));
    columns_misfit: family(NAMES, ANY, |op, _| case(op, 6, false).attr("num_true", 3i64).fails(Code::InvalidArgument));
    hits: Case::op("ComputeAccidentalHits").inputs([t(&[2, 2], &[0i64, 3, 7, 1]), vector(&[3i64, 9, 7, 3])]).attr("num_true", 2i64);
    no_hits: Case::op("ComputeAccidentalHits").inputs([t(&[1, 1], &[0i64]), vector(&[3i64])]).attr("num_true", 1i64)
        .gives(vector::<i32>(&[])).gives(vector::<i64>(&[])).gives(vector::<f32>(&[]));
    hits_misfit: Case::op("ComputeAccidentalHits").inputs([t(&[1, 1], &[0i64]), vector(&[3i64])]).attr("num_true", 2i64).fails(Code::InvalidArgument);
}
