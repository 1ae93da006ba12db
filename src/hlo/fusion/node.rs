//! The parts of a plan.

use crate::attributes::Attributes;
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
