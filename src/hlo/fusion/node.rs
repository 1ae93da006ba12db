//! The parts of a plan.

use crate::attributes::{Attributes, RngAlgorithm};
use crate::opcode::Opcode;
use ff_tensor::DataType;
use smallvec::SmallVec;

/// How often a value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Never: a constant.
    Constant,
    /// Once for each row.
    Narrow,
    /// With each element.
    Wide,
    /// Once for each element of a row, over several rows: sums of columns.
    Column,
}

/// What a node does.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Reads an element of this input.
    Load(usize),
    /// Reads an element at a place that is computed, see [`Read`]. Operands: a start for each of its [`Start`]s, then
    /// what takes the place of elements that are not there, if anything does (zero else).
    Read(usize),
    /// Random bits: the operands are the words of the generator's state, and the counter with this number says which
    /// element it is, in their order.
    Random(RngAlgorithm, usize),
    /// The value of this counter.
    Counter(usize),
    /// The value of this constant.
    Constant(usize),
    /// An elementwise opcode on the operands.
    Map(Opcode, Box<Attributes>),
    /// All elements of the operand in a row, combined by this opcode from its neutral value on.
    Reduce(Opcode),
    /// All elements of the operand in a column of so many rows as [`super::FusionPlan::columns`] says, combined by this
    /// opcode from its neutral value on. Only an output.
    Columns(Opcode),
}

/// A value of a plan. Operands are earlier nodes.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does.
    pub kind: NodeKind,
    /// What it reads.
    pub operands: SmallVec<[usize; 3]>,
    /// The element type that decides the work: that of the first operand that is not a predicate.
    pub operand_dtype: DataType,
    /// The element type of the result.
    pub dtype: DataType,
    /// How often it changes.
    pub level: Level,
}

/// A way in which elements of a parameter are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The parameter.
    pub parameter: usize,
    /// Its element type.
    pub dtype: DataType,
    /// The distance of neighbours along each extent of the plan, in elements.
    pub strides: SmallVec<[isize; 6]>,
    /// Where the first element lies.
    pub offset: isize,
    /// Wide or narrow; a narrow input has stride 0 along the row.
    pub level: Level,
    /// Whether element `i` of the result reads element `i`.
    pub direct: bool,
}

/// Elements of an input that lie where starts (numbers that are known when the code runs) say, or only in parts of
/// the result: padding, parts of a concatenation, dynamic slices, gathers.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The input; its walk is that of the element for starts of zero, spread axes left out.
    pub input: usize,
    /// What moves the element.
    pub starts: SmallVec<[Start; 2]>,
    /// Where it must lie.
    pub checks: SmallVec<[Check; 2]>,
    /// Whether an operand takes the place of elements that are not there.
    pub otherwise: bool,
}

/// A number, held between zero and a limit, moves an element by so many strides.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The largest number.
    pub limit: i64,
    /// The distance of neighbours along its axis, in elements.
    pub stride: i64,
}

/// An element is there if its place along an axis is at least zero and below a bound, and is a multiple of the distance
/// in which elements are spread.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The counter of the place.
    pub counter: usize,
    /// The start that is subtracted from it.
    pub start: Option<usize>,
    /// The bound.
    pub bound: i64,
    /// One more than the elements between neighbours, and the stride along the axis, if there are any between them. Not
    /// along rows.
    pub spread: Option<(i64, i64)>,
}

/// A count that rises with the place: `offset + sum(index * stride)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The element type.
    pub dtype: DataType,
    /// What a step along each extent adds.
    pub strides: SmallVec<[isize; 6]>,
    /// The first value.
    pub offset: isize,
    /// Wide or narrow.
    pub level: Level,
}

/// A result of the fusion.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The node that it is.
    pub node: usize,
    /// Its element type.
    pub dtype: DataType,
    /// One element for each element (wide), for each row (narrow), or for each column.
    pub level: Level,
}
