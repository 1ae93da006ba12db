//! Stochastic dual coordinate ascent: one pass over a batch of examples of a linear model, and what belongs to it.
//!
//! The reference visits the examples in an order that is another each time; here it is drawn from a fixed stream.

use super::sdca_loss::{Loss, Point};
use crate::random::words::Words;
use crate::wide::{collected, reserved, zeros};
use ff_kernels::random::Philox;
use ff_op::{Attrs, Gradient, Kernel, KernelContext, NodeInfo, Op, ShapeContext, shapes};
use ff_tensor::{PartialShape, Result, Shape, Tensor, dim, ensure, status};
use std::collections::{HashMap, HashSet};

const OPTIMIZER: Op = Op {
    shape: optimizer_shape,
    kernels: &[Kernel::native(optimize)],
    gradient: Gradient::NotDifferentiable,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "SdcaOptimizer",
        ..OPTIMIZER
    },
    &Op {
        name: "SdcaOptimizerV2",
        ..OPTIMIZER
    },
    &Op {
        name: "SdcaShrinkL1",
        shape: shapes::none,
        kernels: &[Kernel::native(shrink_variables)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
    &Op {
        name: "SdcaFprint",
        shape: |context| {
            let count = context.input_with_rank(0, 1)?.dim(0);
            context.set_output(0, PartialShape::new(&[count, 2]));
            Ok(())
        },
        kernels: &[Kernel::native(fingerprints)],
        gradient: Gradient::NotDifferentiable,
        ..Op::PURE
    },
];

fn optimizer_shape(context: &mut ShapeContext) -> Result<()> {
    let node = context.node();
    for (input, output) in [
        ("sparse_weights", "out_delta_sparse_weights"),
        ("dense_weights", "out_delta_dense_weights"),
    ] {
        let outputs = node.output_range_of(output)?;
        for (from, to) in node.input_range_of(input)?.zip(outputs) {
            let shape = context.input(from);
            context.set_output(to, shape);
        }
    }
    context.set_output(0, PartialShape::new(&[dim::UNKNOWN, 4]));
    Ok(())
}

/// The penalties of weights.
#[derive(Clone, Copy)]
struct Penalty {
    squares: f64,
    shrinkage: f64,
}

impl Penalty {
    fn of(attrs: &Attrs) -> Result<Penalty> {
        let (magnitudes, squares) = (attrs.float("l1")?, attrs.float("l2")?);
        Ok(Penalty {
            squares: f64::from(squares),
            shrinkage: f64::from(magnitudes / squares),
        })
    }

    /// The weight, that much nearer to zero.
    fn shrink(self, weight: f64) -> f64 {
        let rest = weight.abs() - self.shrinkage;
        if rest > 0.0 { rest.copysign(weight) } else { 0.0 }
    }

    fn shrink_narrow(self, weight: f32) -> f32 {
        let sign = if weight == 0.0 { 0.0 } else { weight.signum() };
        sign * (weight.abs() - self.shrinkage as f32).max(0.0)
    }
}

/// Sparse features of a kind: what an example has of them, and the weights.
struct SparseGroup<'a> {
    features: &'a [i64],
    /// One for each feature; all are 1 where there are none.
    values: Option<&'a [f32]>,
    /// For each example where its features start, and where the last ones end.
    starts: Vec<usize>,
    places: HashMap<i64, usize>,
    weights: &'a [f32],
    changes: Vec<f32>,
}

impl<'a> SparseGroup<'a> {
    /// From the tensors of a kind. INVALID_ARGUMENT for features without a weight.
    fn new(
        [examples, features, indices]: [&'a [i64]; 3],
        values: Option<&'a [f32]>,
        weights: &'a [f32],
        count: usize,
    ) -> Result<SparseGroup<'a>> {
        ensure!(
            examples.len() == features.len(),
            InvalidArgument,
            "Found mismatched example_indices and feature_indices [{examples:?}] vs [{features:?}]"
        );
        ensure!(
            values.is_none_or(|values| values.len() >= features.len()) && indices.len() <= weights.len(),
            InvalidArgument,
            "Expected a value for each sparse feature and a weight for each index"
        );
        let places: HashMap<i64, usize> = indices.iter().copied().zip(0..).collect();
        let mut starts = reserved(count + 1)?;
        let mut at = 0;
        for example in 0..count as i64 {
            starts.push(at);
            while examples.get(at) == Some(&example) {
                ensure!(
                    places.contains_key(&features[at]),
                    InvalidArgument,
                    "Found sparse feature indices out of valid range: {}",
                    features[at]
                );
                at += 1;
            }
        }
        starts.push(at);
        Ok(SparseGroup {
            features,
            values,
            starts,
            places,
            weights,
            changes: zeros(weights.len())?,
        })
    }

    /// Places in the weights and values of an example's features.
    fn of(&self, example: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        (self.starts[example]..self.starts[example + 1]).map(|at| {
            let value = self.values.map_or(1.0, |values| f64::from(values[at]));
            let place = self.places.get(&self.features[at]).copied().unwrap_or(0);
            (place, value)
        })
    }
}

/// Dense features of a kind: a row for each example, and the weights.
struct DenseGroup<'a> {
    features: &'a [f32],
    width: usize,
    weights: &'a [f32],
    changes: Vec<f32>,
}

impl<'a> DenseGroup<'a> {
    fn new(features: &'a Tensor, index: usize, weights: &'a [f32], count: usize) -> Result<DenseGroup<'a>> {
        ensure!(
            features.rank() == 2,
            InvalidArgument,
            "Dense features at index {index} must be rank 2 but is rank {}",
            features.rank()
        );
        let width = features.dims()[1] as usize;
        // The reference compares the last column only.
        ensure!(
            width > 0 && width <= weights.len(),
            InvalidArgument,
            "More dense features than we have parameters for: {width}"
        );
        ensure!(
            width == weights.len() && features.dims()[0] >= count as i64,
            InvalidArgument,
            "Expected {count} rows of {} dense features, got {}",
            weights.len(),
            features.shape()
        );
        Ok(DenseGroup {
            features: features.as_slice()?,
            width,
            weights,
            changes: zeros(weights.len())?,
        })
    }

    fn of(&self, example: usize) -> &'a [f32] {
        &self.features[example * self.width..(example + 1) * self.width]
    }
}

/// The examples and the model.
struct Problem<'a> {
    loss: Loss,
    penalty: Penalty,
    partitions: f64,
    sparse: Vec<SparseGroup<'a>>,
    dense: Vec<DenseGroup<'a>>,
    weights: &'a [f32],
    labels: &'a [f32],
    norms: Vec<f64>,
}

impl<'a> Problem<'a> {
    fn read(context: &'a KernelContext) -> Result<Problem<'a>> {
        let (node, attrs): (&NodeInfo, &Attrs) = (context.node(), context.attrs());
        let start = |name: &str| Ok::<usize, ff_tensor::Status>(node.input_range_of(name)?.start);
        let groups = node.input_range_of("sparse_indices")?.len();
        let valued = node.input_range_of("sparse_feature_values")?.len();
        let kinds = node.input_range_of("dense_features")?.len();
        ensure!(
            groups + kinds > 0,
            InvalidArgument,
            "Requires at least one feature to train."
        );
        let weights = context.input_slice::<f32>(start("example_weights")?)?;
        let labels = context.input_slice::<f32>(start("example_labels")?)?;
        ensure!(
            weights.len() == labels.len(),
            InvalidArgument,
            "Expected {} example labels but got {}",
            weights.len(),
            labels.len()
        );
        let (mut sparse, mut dense) = (Vec::new(), Vec::new());
        for i in 0..groups {
            let whole = |name: &str| context.input_slice::<i64>(start(name)? + i);
            let parts = [
                whole("sparse_example_indices")?,
                whole("sparse_feature_indices")?,
                whole("sparse_indices")?,
            ];
            let values = match i < valued {
                true => Some(context.input_slice::<f32>(start("sparse_feature_values")? + i)?),
                false => None,
            };
            let own = context.input_slice::<f32>(start("sparse_weights")? + i)?;
            sparse.push(SparseGroup::new(parts, values, own, weights.len())?);
        }
        for i in 0..kinds {
            let features = context.input(start("dense_features")? + i)?;
            let own = context.input_slice::<f32>(start("dense_weights")? + i)?;
            dense.push(DenseGroup::new(features, i, own, weights.len())?);
        }
        let mut problem = Problem {
            loss: Loss::named(attrs.string("loss_type")?)?,
            penalty: Penalty::of(attrs)?,
            partitions: attrs.int("num_loss_partitions")? as f64,
            sparse,
            dense,
            weights,
            labels,
            norms: Vec::new(),
        };
        problem.norms = crate::wide::try_collected((0..weights.len()).map(|i| problem.squared_norm(i)))?;
        Ok(problem)
    }

    fn squared_norm(&self, example: usize) -> Result<f64> {
        let mut norm = 0.0;
        for group in &self.sparse {
            let mut seen = HashSet::new();
            for (place, value) in group.of(example) {
                ensure!(
                    seen.insert(place),
                    InvalidArgument,
                    "Duplicate index in sparse vector."
                );
                norm += value * value;
            }
        }
        for group in &self.dense {
            norm += f64::from(group.of(example).iter().map(|x| x * x).sum::<f32>());
        }
        Ok(norm)
    }

    /// Predictions by the weights as they were, and with the changes so far.
    fn predictions(&self, example: usize) -> (f64, f64) {
        let (mut before, mut now) = (0.0, 0.0);
        for group in &self.sparse {
            for (place, value) in group.of(example) {
                let (weight, change) = (group.weights[place], group.changes[place]);
                let changed = weight + change * self.partitions as f32;
                before += value * self.penalty.shrink(f64::from(weight));
                now += value * self.penalty.shrink(f64::from(changed));
            }
        }
        for group in &self.dense {
            let (mut own_before, mut own_now) = (0.0f32, 0.0f32);
            let weights = group.weights.iter().zip(&group.changes);
            for (&x, (&weight, &change)) in group.of(example).iter().zip(weights) {
                own_before += x * self.penalty.shrink_narrow(weight);
                own_now += x * self
                    .penalty
                    .shrink_narrow(weight + change * self.partitions as f32);
            }
            before += f64::from(own_before);
            now += f64::from(own_now);
        }
        (before, now)
    }

    /// Adds a multiple of the example to the changes of the weights.
    fn change(&mut self, example: usize, by: f64) {
        for group in &mut self.sparse {
            for at in group.starts[example]..group.starts[example + 1] {
                let value = group.values.map_or(1.0, |values| f64::from(values[at]));
                let place = group.places.get(&group.features[at]).copied().unwrap_or(0);
                let changed = f64::from(group.changes[place]) + value * by;
                group.changes[place] = changed as f32;
            }
        }
        for group in &mut self.dense {
            let row = &group.features[example * group.width..(example + 1) * group.width];
            for (change, &x) in group.changes.iter_mut().zip(row) {
                *change += x * by as f32;
            }
        }
    }

    /// One example's turn: its row of the state is dual variable, primal loss, dual loss and weight.
    fn visit(&mut self, example: usize, state: &mut [f32]) -> Result<()> {
        let weight = f64::from(self.weights[example]);
        let point = Point {
            label: f64::from(self.loss.label(self.labels[example])?),
            weight,
            dual: f64::from(state[0]),
        };
        let (before, now) = self.predictions(example);
        let norm = self.partitions * (self.norms[example] / self.penalty.squares);
        let dual = self.loss.updated_dual(point, now, norm);
        self.change(example, (dual - point.dual) * weight / self.penalty.squares);
        state[0] = dual as f32;
        state[1] = self.loss.primal_loss(point, before) as f32;
        state[2] = self.loss.dual_loss(point) as f32;
        state[3] = self.weights[example];
        Ok(())
    }

    /// Examples in the order of their turns: shuffled, or drawn by how much they can gain.
    fn order(&self, state: &[f32], adaptive: bool) -> Result<Vec<usize>> {
        let count = self.weights.len();
        let mut words = Words::new(Philox::from_seeds(0, 0));
        let mut order: Vec<usize> = collected(0..count)?;
        if !adaptive {
            for i in (1..count).rev() {
                order.swap(i, words.next_word() as usize % (i + 1));
            }
            return Ok(order);
        }
        let mut chances: Vec<f64> = reserved(count)?;
        for example in 0..count {
            let label = self.loss.label(self.labels[example]);
            let label = f64::from(label.unwrap_or(self.labels[example]));
            let gain = f64::from(state[example * 4]) + self.loss.slope(label, self.predictions(example).1);
            let size = self.norms[example] + self.penalty.squares * self.loss.smoothness();
            let chance = f64::from(self.weights[example]) * size.sqrt() * gain.abs();
            chances.push(if chance.is_finite() { chance } else { 0.0 });
        }
        draw(&chances, &mut words)
    }
}

/// As many examples as there are chances. One that was drawn is kept with a tenth of its chance before; those that are
/// still missing after enough tries follow by their chances.
fn draw(chances: &[f64], words: &mut Words) -> Result<Vec<usize>> {
    let count = chances.len();
    let mut sums: Vec<f64> = reserved(count)?;
    let mut total = 0.0;
    for chance in chances {
        total += chance;
        sums.push(total);
    }
    let (mut order, mut drawn) = (reserved(count)?, zeros::<i32>(count)?);
    let mut passed_over = 0;
    while total > 0.0 && order.len() < count && passed_over < count {
        let level = words.next_double() * total;
        let example = sums.partition_point(|&sum| sum <= level).min(count - 1);
        if words.next_double() > 0.1f64.powi(drawn[example]) {
            passed_over += 1;
            continue;
        }
        drawn[example] += 1;
        order.push(example);
    }
    let mut rest: Vec<usize> = reserved(count)?;
    rest.extend((0..count).filter(|&example| drawn[example] == 0));
    rest.sort_by(|&a, &b| chances[b].total_cmp(&chances[a]));
    rest.truncate(count - order.len());
    order.extend(rest);
    Ok(order)
}

fn optimize(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let adaptive = attrs.bool("adaptive").or_else(|_| attrs.bool("adaptative"))?;
    let at = context.node().input_range_of("example_state_data")?.start;
    let mut state = context.input(at)?.deep_copy()?;
    let mut problem = Problem::read(context)?;
    let count = problem.weights.len();
    ensure!(
        state.rank() == 2,
        InvalidArgument,
        "example_state_data must be rank 2 but is rank {}",
        state.rank()
    );
    ensure!(
        state.dims() == [count as i64, 4],
        InvalidArgument,
        "Expected shape [{count},4] for example_state_data, got {}",
        state.shape()
    );
    let rows = state.as_mut_slice::<f32>()?;
    for (turn, example) in problem.order(rows, adaptive)?.into_iter().enumerate() {
        if turn % 256 == 0 {
            context.host().cancellation().check()?;
        }
        problem.visit(example, &mut rows[example * 4..example * 4 + 4])?;
    }
    let sparse = problem.sparse.into_iter().map(|group| group.changes);
    let changes: Vec<Vec<f32>> = sparse
        .chain(problem.dense.into_iter().map(|group| group.changes))
        .collect();
    for (output, changes) in (1..).zip(changes) {
        let shape = context.output_shape(output)?.clone();
        context.set_output(output, Tensor::from_slice(shape, &changes)?)?;
    }
    context.set_output(0, state)
}

fn shrink_variables(context: &mut KernelContext) -> Result<()> {
    let penalty = Penalty::of(context.attrs())?;
    for input in 0..context.num_inputs() {
        let variable = context.ref_input(input)?.clone();
        let mut guard = variable.lock();
        let tensor = guard.as_mut().ok_or_else(|| {
            status!(
                FailedPrecondition,
                "Attempting to use uninitialized value {}",
                variable.name
            )
        })?;
        tensor.make_writable()?;
        for weight in tensor.as_mut_slice::<f32>()? {
            *weight = penalty.shrink_narrow(*weight);
        }
    }
    Ok(())
}

fn fingerprints(context: &mut KernelContext) -> Result<()> {
    let strings = context.input(0)?.strings()?;
    let mut values: Vec<i64> = reserved(2 * strings.len())?;
    for string in strings {
        let [low, high] = crate::string::fingerprint128(string.as_bytes());
        // Zero and one mark empty places in tables.
        let low = if low >= 2 { low } else { low.wrapping_add(!1) };
        values.extend([low as i64, high as i64]);
    }
    let shape = Shape::new(&[strings.len() as i64, 2])?;
    context.set_output(0, Tensor::from_slice(shape, &values)?)
}

#[cfg(test)]
fn one(loss: &str, label: f32) -> crate::testing::Case {
    use crate::testing::*;
    Case::op("SdcaOptimizerV2")
        .inputs([vector(&[0i64, 0]), vector(&[3i64, 5]), vector(&[0.5f32, -1.5])])
        .inputs([t(&[1, 2], &[0.25f32, 2.0]), vector(&[0.75f32]), vector(&[label])])
        .inputs([
            vector(&[5i64, 3]),
            vector(&[0.125f32, -0.5]),
            vector(&[0.25f32, 0.5]),
        ])
        .input(t(&[1, 4], &[0.0f32; 4]))
        .attr("loss_type", loss)
        .attr("num_sparse_features_with_values", 1i64)
        .attr("num_sparse_features", 1i64)
        .attr("num_dense_features", 1i64)
        .attr("l1", 0.125f32)
        .attr("l2", 0.75f32)
        .attr("num_loss_partitions", 2i64)
        .attr("num_inner_iterations", 1i64)
}

#[cfg(test)]
fn texts() -> Tensor {
    use crate::testing::strings;
    let long: Vec<String> = [16, 17, 40, 127, 128, 129, 200, 300, 1000]
        .iter()
        .map(|&n| "ab-c".repeat(n)[..n].to_string())
        .collect();
    let mut all = vec!["", "a", "abc", "abcdefgh", "fifteen letters"];
    all.extend(long.iter().map(String::as_str));
    strings(&[all.len() as i64], &all)
}

crate::op_cases! {
    logistic: one("logistic_loss", 1.0);
    logistic_of_the_other: one("logistic_loss", 0.0);
    logistic_of_no_class: one("logistic_loss", 0.5).fails(Code::InvalidArgument);
    squared: one("squared_loss", 2.5);
    hinge: one("hinge_loss", 1.0);
    hinge_of_the_other: one("hinge_loss", 0.0);
    smooth_hinge: one("smooth_hinge_loss", 0.0);
    poisson: one("poisson_loss", 3.0);
    poisson_of_negative: one("poisson_loss", -3.0).fails(Code::InvalidArgument);
    adaptive: one("logistic_loss", 1.0).attr("adaptive", true);
    first_version: Case::op("SdcaOptimizer").inputs([t(&[1, 2], &[0.25f32, 2.0]), vector(&[0.75f32]), vector(&[1.0f32])])
        .inputs([vector(&[0.25f32, 0.5]), t(&[1, 4], &[0.5f32, 0.0, 0.0, 0.0])]).attr("loss_type", "squared_loss")
        .attr("num_sparse_features_with_values", 0i64).attr("num_sparse_features", 0i64).attr("num_dense_features", 1i64)
        .attr("l1", 0.0f32).attr("l2", 1.0f32).attr("num_loss_partitions", 1i64).attr("num_inner_iterations", 1i64);
    state_misfit: Case::op("SdcaOptimizerV2").inputs([t(&[1, 2], &[0.25f32, 2.0]), vector(&[0.75f32]), vector(&[1.0f32])])
        .inputs([vector(&[0.25f32, 0.5]), t(&[1, 3], &[0.5f32, 0.0, 0.0])]).attr("loss_type", "squared_loss")
        .attr("num_sparse_features_with_values", 0i64).attr("num_sparse_features", 0i64).attr("num_dense_features", 1i64)
        .attr("l1", 0.0f32).attr("l2", 1.0f32).attr("num_loss_partitions", 1i64).attr("num_inner_iterations", 1i64).fails(Code::InvalidArgument);
    shrunk: Case::op("SdcaShrinkL1").variable(vector(&[1.0f32, -0.25, 0.5, -2.0, 0.0])).variable(vector(&[0.75f32]))
        .attr("l1", 0.5f32).attr("l2", 1.0f32).attr("num_features", 2i64);
    names: Case::op("SdcaFprint").input(texts());
    names_none: Case::op("SdcaFprint").input(strings(&[0], &[]));
    names_in_matrix: Case::op("SdcaFprint").input(strings(&[1, 1], &["a"])).fails(Code::InvalidArgument);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_turn() {
        let mut words = Words::new(Philox::from_seeds(0, 0));
        let mut order = draw(&[0.0, 3.0, 1.0, 0.0], &mut words).unwrap();
        assert_eq!(order.len(), 4);
        order.sort_unstable();
        order.dedup();
        assert!(order.contains(&1) && order.len() > 1);
    }
}
