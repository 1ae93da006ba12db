//! The end of planning: the elements are split into rows and axes that suit all walks.

use super::FusionPlan;
use super::node::{Counter, Input, Level, NodeKind, Output};
use super::planner::{Planner, Value};
use crate::module::Computation;
use crate::view::Walk;
use ff_tensor::{Result, bail, ensure};
use smallvec::SmallVec;

/// The most axes of a plan.
const MAX_RANK: usize = 6;

impl Planner {
    /// The number of elements of wide values, and of a row if rows are reduced or combined.
    fn sizes(&self) -> Result<(usize, Option<usize>)> {
        let all = self.elements.iter().flatten().copied().max().unwrap_or(1);
        let Some(&(elements, results)) = self.reductions.first() else {
            let same = self.elements.iter().flatten().all(|&count| count == all) && self.spreads.is_empty();
            ensure!(
                same,
                Unimplemented,
                "a fusion of arrays of several extents has no plan"
            );
            let columns = self.columns.iter().all(|&other| other == self.columns[0]);
            ensure!(
                columns,
                Unimplemented,
                "a fusion of arrays of several extents has no plan"
            );
            return Ok((all, self.columns.first().map(|&(_, row)| row)));
        };
        let fits = elements == all
            && self.columns.is_empty()
            && results < elements
            && self.reductions.iter().all(|&pair| pair == (elements, results))
            && self.spreads.iter().all(|&pair| pair == (results, elements))
            && self
                .elements
                .iter()
                .flatten()
                .all(|&count| count == elements || count == results);
        ensure!(
            fits,
            Unimplemented,
            "a fusion of arrays of several extents has no plan"
        );
        Ok((elements, Some(elements / results)))
    }

    /// The extents on which every walk is a walk along neighbouring axes.
    fn extents(&self, elements: usize, row: Option<usize>) -> Result<SmallVec<[usize; 6]>> {
        let mut steps: Vec<usize> = vec![1, elements];
        steps.extend(row);
        steps.extend(self.columns.first().map(|(rows, row)| rows * row));
        let walks = self
            .inputs
            .iter()
            .map(|input| (&input.walk, input.elements))
            .chain(
                self.counters
                    .iter()
                    .map(|counter| (&counter.walk, counter.elements)),
            );
        for (walk, count) in walks {
            let scale = if count == elements { 1 } else { row.unwrap_or(1) };
            steps.extend(walk.boundaries().iter().map(|boundary| boundary * scale));
        }
        steps.sort_unstable();
        steps.dedup();
        let mut extents: SmallVec<[usize; 6]> = SmallVec::new();
        for pair in steps.windows(2) {
            ensure!(
                pair[1] % pair[0] == 0,
                Unimplemented,
                "a fusion of views that do not fit together"
            );
            extents.push(pair[1] / pair[0]);
        }
        if extents.is_empty() {
            extents.push(1);
        }
        extents.reverse();
        ensure!(
            extents.len() <= MAX_RANK && row.is_none_or(|row| extents.last() == Some(&row)),
            Unimplemented,
            "a fusion with views within reduced rows has no plan"
        );
        Ok(extents)
    }

    pub(super) fn finish(mut self, computation: &Computation) -> Result<FusionPlan> {
        let root = computation.root.0 as usize;
        let roots: SmallVec<[usize; 4]> = match self.values[root] {
            Value::Tuple => computation.instructions[root]
                .operands
                .iter()
                .map(|id| id.0 as usize)
                .collect(),
            _ => SmallVec::from_slice(&[root]),
        };
        let (elements, row) = self.sizes()?;
        let extents = self.extents(elements, row)?;
        let level_of = |count: usize| {
            if count == elements {
                Level::Wide
            } else {
                Level::Narrow
            }
        };
        let mut outputs = Vec::new();
        for root in roots {
            let Value::Node {
                node,
                elements: count,
            } = self.values[root]
            else {
                bail!(Unimplemented, "a fusion that gives what it takes has no plan");
            };
            let dtype = self.nodes[node].dtype;
            if matches!(self.nodes[node].kind, NodeKind::Columns(_)) {
                outputs.push(Output {
                    node,
                    dtype,
                    level: Level::Column,
                });
                continue;
            }
            let narrow = self.columns.is_empty() && row.is_some_and(|row| count * row == elements);
            ensure!(
                count == elements || narrow,
                Unimplemented,
                "a fusion of arrays of several extents has no plan"
            );
            outputs.push(Output {
                node,
                dtype,
                level: level_of(count),
            });
        }
        let mut levels: Vec<Level> = Vec::with_capacity(self.nodes.len());
        for (node, count) in self.nodes.iter_mut().zip(&self.elements) {
            node.level = match (&node.kind, *count) {
                (NodeKind::Columns(_), _) => Level::Column,
                (_, Some(count)) => level_of(count),
                (_, None) => Level::Constant,
            };
            let reads = node
                .operands
                .iter()
                .all(|&operand| levels.get(operand) != Some(&Level::Column));
            ensure!(
                reads,
                Unimplemented,
                "a fusion that reads sums of columns has no plan"
            );
            ensure!(
                !matches!(node.kind, NodeKind::Read(_) | NodeKind::Random(..)) || node.level == Level::Wide,
                Unimplemented,
                "a fusion that reads at computed places for rows has no plan"
            );
            levels.push(node.level);
        }
        let along = |walk: &Walk, count: usize| -> Result<SmallVec<[isize; 6]>> {
            let rank = if count == elements {
                extents.len()
            } else {
                extents.len() - 1
            };
            let Some(mut strides) = walk.on(&extents[..rank]) else {
                bail!(Unimplemented, "a fusion of views that do not fit together");
            };
            strides.resize(extents.len(), 0);
            Ok(strides)
        };
        let mut inputs = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            let wide = input.elements == elements;
            inputs.push(Input {
                parameter: input.what.0,
                dtype: input.what.1,
                strides: along(&input.walk, input.elements)?,
                offset: input.walk.offset,
                level: level_of(input.elements),
                direct: wide
                    && !self.reads.iter().any(|read| read.input == number)
                    && input.walk.offset == 0
                    && input.walk.axes[..] == [(elements, 1)],
            });
        }
        let mut counters = Vec::new();
        for counter in &self.counters {
            counters.push(Counter {
                dtype: counter.what,
                strides: along(&counter.walk, counter.elements)?,
                offset: counter.walk.offset,
                level: level_of(counter.elements),
            });
        }
        for check in self.reads.iter().flat_map(|read| &read.checks) {
            ensure!(
                check.spread.is_none() || counters[check.counter].strides.last() == Some(&0),
                Unimplemented,
                "a fusion that spreads elements along rows has no plan"
            );
        }
        Ok(FusionPlan {
            extents,
            parameters: computation.parameters.len(),
            inputs,
            counters,
            constants: self.constants,
            nodes: self.nodes,
            reads: self.reads,
            outputs,
            columns: self.columns.first().map(|columns| columns.0),
        })
    }
}
