//! Clusters of points: the nearest centers, and centers to begin with, drawn by their distances (k-means++, k-MC2).
//!
//! Distances are squared and Euclidean, half the norms less the product of two points; sums are in double precision.

use crate::random::words::Words;
use crate::wide::{filled, reserved, zeros};
use ff_kernels::random::Philox;
use ff_op::{Gradient, Kernel, KernelContext, Op, shapes};
use ff_tensor::{Result, Shape, Tensor, ensure};
use std::collections::HashSet;

const CLUSTERING: Op = Op {
    shape: shapes::unknown,
    gradient: Gradient::Missing,
    ..Op::PURE
};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "KmeansPlusPlusInitialization",
        kernels: &[Kernel::native(first_centers)],
        ..CLUSTERING
    },
    &Op {
        name: "KMC2ChainInitialization",
        shape: shapes::scalar,
        kernels: &[Kernel::native(chain)],
        ..CLUSTERING
    },
    &Op {
        name: "NearestNeighbors",
        kernels: &[Kernel::native(nearest)],
        ..CLUSTERING
    },
];

/// The rows of a matrix.
struct Points<'a> {
    values: &'a [f32],
    width: usize,
    /// Half the squared length of each.
    halves: Vec<f32>,
}

impl<'a> Points<'a> {
    fn of(tensor: &'a Tensor) -> Result<Points<'a>> {
        let (values, width) = (tensor.as_slice::<f32>()?, tensor.dims()[1] as usize);
        let mut halves = zeros(tensor.dims()[0] as usize)?;
        for (i, half) in halves.iter_mut().enumerate() {
            let row = &values[i * width..(i + 1) * width];
            *half = (0.5 * product(row, row)) as f32;
        }
        Ok(Points {
            values,
            width,
            halves,
        })
    }

    fn row(&self, i: usize) -> &'a [f32] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    fn count(&self) -> usize {
        self.halves.len()
    }

    /// For each point half its squared distance to one of them.
    fn half_distances(&self, to: usize) -> impl Iterator<Item = f32> + '_ {
        let row = self.row(to);
        let distance = move |i: usize| (self.halves[i] - product(self.row(i), row) as f32) + self.halves[to];
        (0..self.count()).map(distance)
    }
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
}

fn check_matrix(context: &KernelContext, input: usize, name: &str) -> Result<()> {
    let rank = context.input(input)?.rank();
    ensure!(rank == 2, InvalidArgument, "Input {name} should be a matrix.");
    Ok(())
}

fn whole(context: &KernelContext, input: usize, name: &str) -> Result<i64> {
    let tensor = context.input(input)?;
    ensure!(
        tensor.rank() == 0,
        InvalidArgument,
        "Input {name} should be a scalar."
    );
    tensor.single::<i64>()
}

fn unit(words: &mut Words) -> f32 {
    f32::from_bits(0x3f80_0000 | (words.next_word() & 0x007f_ffff)) - 1.0
}

fn below(words: &mut Words, count: usize) -> usize {
    let low = u64::from(words.next_word());
    let word = low | u64::from(words.next_word()) << 32;
    (word % count as u64) as usize
}

/// Points drawn one after the other, each with a chance in proportion to its distance from those before.
struct Draw<'a> {
    points: Points<'a>,
    words: Words,
    drawn: HashSet<usize>,
    /// To the nearest point drawn so far.
    distances: Vec<f32>,
    sums: Vec<f32>,
}

impl Draw<'_> {
    fn one(&mut self) -> usize {
        let count = self.points.count();
        if self.drawn.is_empty() {
            return below(&mut self.words, count);
        }
        // Where rounding leaves no other point a chance, any of them is taken.
        for tries in 0.. {
            let total = self.sums[count - 1];
            let index = if total > 0.0 && tries < 10_000 {
                let level = unit(&mut self.words) * total;
                self.sums.partition_point(|&sum| sum <= level).min(count - 1)
            } else {
                below(&mut self.words, count)
            };
            if !self.drawn.contains(&index) {
                return index;
            }
        }
        0
    }

    /// Draws some points, and keeps the one that lowers the distances most.
    fn best_of(&mut self, tries: i64) -> Result<usize> {
        let (mut best, mut least) = (0, f32::INFINITY);
        let mut kept = zeros(self.points.count())?;
        let mut own = zeros(self.points.count())?;
        for _ in 0..tries {
            let index = self.one();
            let nearer = self.points.half_distances(index).zip(&self.distances);
            for (to, (new, &old)) in own.iter_mut().zip(nearer) {
                *to = old.min(new);
            }
            let sum = own.iter().map(|&x| f64::from(x)).sum::<f64>() as f32;
            if sum < least {
                (best, least) = (index, sum);
                std::mem::swap(&mut kept, &mut own);
            }
        }
        std::mem::swap(&mut self.distances, &mut kept);
        Ok(best)
    }
}

fn first_centers(context: &mut KernelContext) -> Result<()> {
    check_matrix(context, 0, "points")?;
    let wanted = whole(context, 1, "num_to_sample")?;
    let seed = whole(context, 2, "seed")?;
    let retries = match whole(context, 3, "num_retries_per_sample")? {
        negative if negative < 0 => 2 + (wanted as f64).ln() as i64,
        given => given,
    };
    let (count, width) = (context.input(0)?.dims()[0], context.input(0)?.dims()[1]);
    ensure!(count > 0, InvalidArgument, "Expected points.rows() > 0.");
    ensure!(wanted > 0, InvalidArgument, "Expected num_to_sample > 0.");
    ensure!(
        wanted <= count,
        InvalidArgument,
        "Expected num_to_sample <= points.rows(). {wanted} vs {count}."
    );
    let mut output = context.allocate(context.output_type(0), Shape::new(&[wanted, width])?)?;
    let mut draw = Draw {
        points: Points::of(context.input(0)?)?,
        words: Words::new(Philox::new(seed as u64, [0, 0])),
        drawn: HashSet::new(),
        distances: filled(count as usize, f32::INFINITY)?,
        sums: zeros(count as usize)?,
    };
    let width = width as usize;
    for i in 0..wanted as usize {
        context.host().cancellation().check()?;
        if i > 0 {
            let mut sum = 0.0;
            for (to, &distance) in draw.sums.iter_mut().zip(&draw.distances) {
                sum += distance;
                *to = sum;
            }
        }
        let index = draw.best_of(retries.saturating_add(1))?;
        output.as_mut_slice::<f32>()?[i * width..(i + 1) * width].copy_from_slice(draw.points.row(index));
        draw.drawn.insert(index);
    }
    context.set_output(0, output)
}

fn chain(context: &mut KernelContext) -> Result<()> {
    let distances = context.input(0)?;
    ensure!(
        distances.rank() == 1,
        InvalidArgument,
        "Input distances should be a vector."
    );
    let seed = whole(context, 1, "seed")?;
    let distances = distances.as_slice::<f32>()?;
    let Some(&first) = distances.first() else {
        ff_tensor::bail!(InvalidArgument, "Expected distances_tensor.size() > 0.");
    };
    let mut words = Words::new(Philox::new(seed as u64, [0, 0]));
    let (mut at, mut own) = (0, first);
    for (i, &other) in distances.iter().enumerate().skip(1) {
        if other > unit(&mut words) * own {
            (at, own) = (i, other);
        }
    }
    context.set_output(0, Tensor::scalar(at as i64)?)
}

fn nearest(context: &mut KernelContext) -> Result<()> {
    check_matrix(context, 0, "points")?;
    check_matrix(context, 1, "centers")?;
    let wanted = whole(context, 2, "k")?;
    let (a, b) = (context.input(0)?.dims(), context.input(1)?.dims());
    ensure!(a[0] > 0, InvalidArgument, "Expected points.rows() > 0.");
    ensure!(
        a[1] == b[1],
        InvalidArgument,
        "Expected point_dimensions == center_dimensions: {} vs {}.",
        a[1],
        b[1]
    );
    ensure!(wanted >= 0, InvalidArgument, "Expected k >= 0.");
    let kept = wanted.min(b[0]) as usize;
    let shape = Shape::new(&[a[0], kept as i64])?;
    let mut indices = context.allocate(context.output_type(0), shape.clone())?;
    let mut distances = context.allocate(context.output_type(1), shape)?;
    let (points, centers) = (Points::of(context.input(0)?)?, Points::of(context.input(1)?)?);
    if kept > 0 {
        let rows = indices.as_mut_slice::<i64>()?.chunks_exact_mut(kept);
        let rows = rows.zip(distances.as_mut_slice::<f32>()?.chunks_exact_mut(kept));
        let mut all: Vec<(f32, usize)> = reserved(centers.count())?;
        for (i, (indices, distances)) in rows.enumerate() {
            if i % 64 == 0 {
                context.host().cancellation().check()?;
            }
            let row = points.row(i);
            let partial = |j: usize| (centers.halves[j] - product(row, centers.row(j)) as f32, j);
            all.clear();
            all.extend((0..centers.count()).map(partial));
            all.select_nth_unstable_by(kept - 1, order);
            all[..kept].sort_unstable_by(order);
            for ((index, distance), &(partial, center)) in indices.iter_mut().zip(distances).zip(&all) {
                *index = center as i64;
                *distance = 2.0 * (points.halves[i] + partial);
            }
        }
    }
    context.set_output(0, indices)?;
    context.set_output(1, distances)
}

/// By the distance, then by the number.
fn order(a: &(f32, usize), b: &(f32, usize)) -> std::cmp::Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

#[cfg(test)]
fn corners() -> Tensor {
    crate::testing::t(
        &[6, 2],
        &[
            0.0f32, 0.0, 0.25, 0.0, 10.0, 10.0, 10.0, 10.5, -10.0, 10.0, -10.25, 10.0,
        ],
    )
}

crate::op_cases! {
    nearest_one: Case::op("NearestNeighbors").inputs([corners(), t(&[3, 2], &[0.0f32, 1.0, 9.0, 9.0, -9.0, 9.0]), scalar(1i64)]);
    nearest_two: Case::op("NearestNeighbors").inputs([corners(), t(&[3, 2], &[0.0f32, 1.0, 9.0, 9.0, -9.0, 9.0]), scalar(2i64)]);
    nearest_all: Case::op("NearestNeighbors").inputs([corners(), t(&[3, 2], &[0.0f32, 1.0, 9.0, 9.0, 0.0, 1.0]), scalar(7i64)]);
    nearest_none: Case::op("NearestNeighbors").inputs([corners(), t::<f32>(&[0, 2], &[]), scalar(2i64)]);
    nearest_misfit: Case::op("NearestNeighbors").inputs([corners(), t(&[1, 3], &[0.0f32, 1.0, 9.0]), scalar(2i64)]).fails(Code::InvalidArgument);
    nearest_negative: Case::op("NearestNeighbors").inputs([corners(), t(&[1, 2], &[0.0f32, 1.0]), scalar(-2i64)]).fails(Code::InvalidArgument);
    nearest_of_vector: Case::op("NearestNeighbors").inputs([vector(&[1.0f32]), t(&[1, 2], &[0.0f32, 1.0]), scalar(2i64)]).fails(Code::InvalidArgument);
    nearest_of_nothing: Case::op("NearestNeighbors").inputs([t::<f32>(&[0, 2], &[]), t(&[1, 2], &[0.0f32, 1.0]), scalar(2i64)]).fails(Code::InvalidArgument);
    chain_of_five: Case::op("KMC2ChainInitialization").inputs([vector(&[1.0f32, 5.0, 0.5, 3.0, 0.125]), scalar(17i64)]);
    chain_of_many: Case::op("KMC2ChainInitialization").inputs([counting(DataType::FLOAT, &[50]), scalar(-3i64)]);
    chain_of_one: Case::op("KMC2ChainInitialization").inputs([vector(&[0.0f32]), scalar(2i64)]).gives(scalar(0i64));
    chain_of_none: Case::op("KMC2ChainInitialization").inputs([vector::<f32>(&[]), scalar(2i64)]).fails(Code::InvalidArgument);
    chain_of_matrix: Case::op("KMC2ChainInitialization").inputs([corners(), scalar(2i64)]).fails(Code::InvalidArgument);
    centers: Case::op("KmeansPlusPlusInitialization").inputs([corners(), scalar(3i64), scalar(99i64), scalar(-1i64)]);
    centers_without_retries: Case::op("KmeansPlusPlusInitialization").inputs([corners(), scalar(4i64), scalar(7i64), scalar(0i64)]);
    centers_all: Case::op("KmeansPlusPlusInitialization").inputs([corners(), scalar(6i64), scalar(123i64), scalar(3i64)]);
    centers_equal: Case::op("KmeansPlusPlusInitialization").inputs([t(&[3, 1], &[2.0f32, 2.0, 2.0]), scalar(2i64), scalar(5i64), scalar(1i64)]);
    centers_too_many: Case::op("KmeansPlusPlusInitialization").inputs([corners(), scalar(7i64), scalar(1i64), scalar(0i64)]).fails(Code::InvalidArgument);
    centers_none: Case::op("KmeansPlusPlusInitialization").inputs([corners(), scalar(0i64), scalar(1i64), scalar(0i64)]).fails(Code::InvalidArgument);
}
