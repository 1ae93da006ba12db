//! What a fusion computes, as kernels see it.

use super::node::{Counter, Input, Level, Node, NodeKind, Output, Read};
use super::planner::Planner;
use crate::module::Computation;
use ff_tensor::{Result, Tensor};
use smallvec::SmallVec;

/// What a fusion computes.
///
/// Elements lie in rows: the last extent is the length of a row, the others count rows. Reductions go along rows.
#[derive(Clone, Debug)]
pub struct FusionPlan {
    /// Extents, the row last. Their product is the number of elements of wide values.
    pub extents: SmallVec<[usize; 6]>,
    /// The number of parameters.
    pub parameters: usize,
    /// How parameters are read.
    pub inputs: Vec<Input>,
    /// Reads at computed places.
    pub reads: Vec<Read>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Constants of one element.
    pub constants: Vec<Tensor>,
    /// The values, operands first.
    pub nodes: Vec<Node>,
    /// The results.
    pub outputs: Vec<Output>,
    /// Rows that are combined, column by column, if any are.
    pub columns: Option<usize>,
}

impl FusionPlan {
    /// The plan of a fusion's computation, whose reducers are among `computations`.
    ///
    /// UNIMPLEMENTED where the computation is not of the form that plans can say: elementwise instructions on arrays of
    /// one number of elements, views of parameters, reductions of whole rows, and values per row spread over rows.
    pub fn of(computations: &[Computation], computation: &Computation) -> Result<FusionPlan> {
        let mut planner = Planner::default();
        for instruction in &computation.instructions {
            let value = planner.instruction(computations, computation, instruction)?;
            planner.values.push(value);
        }
        planner.finish(computation)
    }

    /// Elements of a row.
    pub fn row(&self) -> usize {
        self.extents.last().copied().unwrap_or(1)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        let outer = self.extents.len().saturating_sub(1);
        self.extents[..outer].iter().product()
    }

    /// Whether rows are reduced.
    pub fn reduces(&self) -> bool {
        self.nodes
            .iter()
            .any(|node| matches!(node.kind, NodeKind::Reduce(_)))
    }

    /// Whether random bits are drawn.
    pub fn draws(&self) -> bool {
        self.nodes
            .iter()
            .any(|node| matches!(node.kind, NodeKind::Random(..)))
    }

    /// For each node: how many reductions of rows lie before it.
    pub fn depths(&self) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let before = node
                .operands
                .iter()
                .map(|&operand| depths[operand])
                .max()
                .unwrap_or(0);
            depths.push(before + usize::from(matches!(node.kind, NodeKind::Reduce(_))));
        }
        depths
    }

    /// Whether an output may be written over a parameter: each element is read for the last time when it is written.
    pub fn may_replace(&self, output: usize, parameter: usize) -> bool {
        let out = &self.outputs[output];
        let mut readers = self
            .inputs
            .iter()
            .filter(|input| input.parameter == parameter)
            .peekable();
        let direct = readers.peek().is_some()
            && readers.all(|input| input.direct && input.dtype.size() == out.dtype.size());
        // A value that later reductions wait for may be computed again from what it reads.
        direct && out.level == Level::Wide && !(self.reduces() && self.read_late(output, parameter))
    }

    /// Whether a parameter may be read after an output is written.
    fn read_late(&self, output: usize, parameter: usize) -> bool {
        let depths = self.depths();
        let written = depths[self.outputs[output].node];
        let deepest = depths.iter().copied().max().unwrap_or(0);
        let reads =
            |node: &Node| matches!(node.kind, NodeKind::Load(i) if self.inputs[i].parameter == parameter);
        written < deepest && self.nodes.iter().any(reads)
    }
}
