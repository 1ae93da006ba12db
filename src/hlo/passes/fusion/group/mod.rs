//! Which instructions are fused together.

mod reads;

use crate::attributes::Attributes;
use crate::evaluator::recognize_reducer;
use crate::fusion::{change, columns_have_code, is_read, reduces_columns, reduces_rows, starts_neutral};
use crate::module::{Computation, Instruction};
use crate::opcode::Opcode;
use crate::view::{View, Walk};
use ff_tensor::DataType;
use smallvec::SmallVec;

/// The most instructions in a fusion: bounds registers and the time of compiling.
const MAX_MEMBERS: usize = 96;
/// The longest row that is reduced in a fusion: longer ones are folded in blocks, by a kernel of its own.
const LONGEST_ROW: usize = 4096;
/// Elements below which a badly strided view is read in place.
const SMALL_VIEW: usize = 4096;

/// The members of each group, in order, and what may be copied into fusions.
pub(super) struct Groups {
    pub groups: Vec<Vec<usize>>,
    /// Whether a view, counter, constant or read is copied into the fusions that read it.
    pub copied: Vec<bool>,
    /// Whether it is copied as a read at computed places ([`is_read`]), or as a reshape of one.
    pub reads: Vec<bool>,
}

/// What an instruction is to those that read it.
#[derive(Clone)]
enum Source {
    /// Computed outside of fusions, or not fusable.
    Outside,
    /// In a group, seen with this many elements: reshapes, and what a row's value is spread over.
    Member { member: usize, elements: usize },
    /// Elements of another instruction, or a counter (of none).
    View(View),
    /// A scalar constant, perhaps broadcast.
    Constant,
    /// Elements of other instructions at computed places.
    Read,
}

/// A group: instructions of one level on arrays of one number of elements.
#[derive(Clone, Copy)]
struct Group {
    level: u32,
    elements: usize,
    /// Elements of a row, if rows are reduced.
    row: Option<usize>,
    /// Rows that are combined and their length, if columns are reduced.
    columns: Option<(usize, usize)>,
    members: usize,
}

impl Group {
    /// The number of values of rows.
    fn rows(&self) -> Option<usize> {
        self.row.map(|row| self.elements / row)
    }

    /// The group that both can be part of.
    fn with(&self, other: &Group) -> Option<Group> {
        let row = self.row.or(other.row);
        let columns = self.columns.or(other.columns);
        let fits = (row.is_none() || columns.is_none())
            && (other.columns.is_none() || other.columns == columns)
            && self.elements == other.elements
            && self.level == other.level
            && (other.row.is_none() || other.row == row)
            && self.members + other.members <= MAX_MEMBERS;
        fits.then_some(Group {
            row,
            columns,
            members: self.members + other.members,
            ..*self
        })
    }
}

struct Finder<'a> {
    computation: &'a Computation,
    sources: Vec<Source>,
    /// From when on a value can be read from outside its group.
    ready: Vec<u32>,
    parent: Vec<usize>,
    /// By root.
    groups: Vec<Option<Group>>,
    copied: Vec<bool>,
    reads: Vec<bool>,
    /// Reductions of columns that are in groups: those who read them stand outside.
    columns: Vec<bool>,
}

/// Finds the groups of a computation; reducers are among `computations`.
pub(super) fn find(computations: &[Computation], computation: &Computation) -> Groups {
    let count = computation.instructions.len();
    let mut finder = Finder {
        computation,
        sources: Vec::with_capacity(count),
        ready: Vec::with_capacity(count),
        parent: (0..count).collect(),
        groups: vec![None; count],
        copied: vec![false; count],
        reads: vec![false; count],
        columns: vec![false; count],
    };
    for (index, instruction) in computation.instructions.iter().enumerate() {
        let ready = instruction
            .operands
            .iter()
            .map(|id| finder.ready[id.0 as usize])
            .max();
        finder.ready.push(ready.unwrap_or(0));
        let source = finder.classify(computations, index, instruction);
        finder.sources.push(source);
    }
    finder.settle_reads();
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); count];
    for index in 0..count {
        if finder.is_member(index) {
            groups[finder.root(index)].push(index);
        }
    }
    // One instruction and a read are worth a fusion too.
    let reads = |&member: &usize| {
        let operands = &computation.instructions[member].operands;
        operands.iter().any(|id| finder.reads[id.0 as usize])
    };
    groups.retain(|members| members.len() > 1 || members.iter().any(reads));
    Groups {
        groups,
        copied: finder.copied,
        reads: finder.reads,
    }
}

impl Finder<'_> {
    fn root(&self, mut index: usize) -> usize {
        while self.parent[index] != index {
            index = self.parent[index];
        }
        index
    }

    fn group(&self, member: usize) -> Group {
        let none = Group {
            level: 0,
            elements: 0,
            row: None,
            columns: None,
            members: 0,
        };
        self.groups[self.root(member)].unwrap_or(none)
    }

    fn classify(&mut self, computations: &[Computation], index: usize, instruction: &Instruction) -> Source {
        let Ok(shape) = instruction.array_shape() else {
            return Source::Outside;
        };
        if shape.num_elements() == 0 {
            return Source::Outside;
        }
        let operand = instruction.operands.first().map(|id| id.0 as usize);
        match (instruction.opcode, &instruction.attributes, operand) {
            (Opcode::Constant, _, _) if shape.num_elements() == 1 => {
                self.copied[index] = true;
                Source::Constant
            }
            (Opcode::Iota, Attributes::Dimension(axis), _) if is_computed(shape.dtype) => {
                self.copied[index] = true;
                let mut view = View::dense(&shape.dims);
                for (place, stride) in view.strides.iter_mut().enumerate() {
                    *stride = i64::from(place as i64 == *axis);
                }
                Source::View(view)
            }
            (opcode, _, Some(_)) if is_read(opcode) => {
                let fits = self.can_read(instruction);
                self.copied[index] = fits;
                self.reads[index] = fits;
                if fits { Source::Read } else { Source::Outside }
            }
            (
                Opcode::Reshape
                | Opcode::Copy
                | Opcode::Broadcast
                | Opcode::Transpose
                | Opcode::Reverse
                | Opcode::Slice,
                _,
                Some(operand),
            ) => self.view(index, instruction, operand),
            (
                Opcode::Reduce,
                Attributes::Reduce {
                    dimensions,
                    computation,
                },
                Some(operand),
            ) if instruction.operands.len() == 2 && is_computed(shape.dtype) => {
                let known = computations
                    .get(computation.0 as usize)
                    .and_then(recognize_reducer);
                let Ok(source) = self
                    .computation
                    .instruction(instruction.operands[0])
                    .array_shape()
                else {
                    return Source::Outside;
                };
                if let (Some(opcode), Some(columns)) = (known, reduces_columns(source, dimensions)) {
                    self.join_columns(index, instruction, columns, opcode);
                    return Source::Outside;
                }
                let fits = known.is_some_and(|opcode| can_reduce(opcode, shape.dtype))
                    && reduces_rows(source, dimensions)
                    && source.num_elements() / shape.num_elements() <= LONGEST_ROW;
                if !fits {
                    return Source::Outside;
                }
                let group = Group {
                    level: 0,
                    elements: source.num_elements(),
                    row: Some(source.num_elements() / shape.num_elements()),
                    columns: None,
                    members: 1,
                };
                self.join(
                    index,
                    group,
                    &[(operand, source.num_elements())],
                    shape.num_elements(),
                )
            }
            (opcode, _, Some(_)) if opcode.is_elementwise() && self.can_compute(instruction) => {
                let elements = shape.num_elements();
                let group = Group {
                    level: 0,
                    elements,
                    row: None,
                    columns: None,
                    members: 1,
                };
                let operands: SmallVec<[(usize, usize); 3]> = instruction
                    .operands
                    .iter()
                    .map(|id| (id.0 as usize, elements))
                    .collect();
                self.join(index, group, &operands, elements)
            }
            _ => Source::Outside,
        }
    }

    /// Lets a reduction of columns into the group that computes its operand, if there is one.
    fn join_columns(
        &mut self,
        index: usize,
        instruction: &Instruction,
        columns: (usize, usize),
        opcode: Opcode,
    ) {
        let operand = instruction.operands[0].0 as usize;
        let (Ok(shape), Source::Member { member, elements }) =
            (instruction.array_shape(), &self.sources[operand])
        else {
            return;
        };
        let neutral = starts_neutral(self.computation.instruction(instruction.operands[1]), opcode);
        let (root, group) = (self.root(*member), self.group(*member));
        let single = Group {
            columns: Some(columns),
            row: None,
            members: 1,
            ..group
        };
        let fits = neutral && columns_have_code(opcode, shape.dtype) && *elements == group.elements;
        let Some(both) = group.with(&single).filter(|_| fits) else {
            return;
        };
        self.parent[root] = index;
        self.groups[root] = None;
        self.groups[index] = Some(both);
        self.ready[index] = both.level + 1;
        self.columns[index] = true;
    }

    /// Whether code computes an elementwise instruction on these types.
    fn can_compute(&self, instruction: &Instruction) -> bool {
        let known = |dtype: DataType| is_computed(dtype);
        !matches!(
            instruction.opcode,
            Opcode::BitcastConvert | Opcode::Copy | Opcode::NextAfter
        ) && instruction.array_shape().is_ok_and(|shape| known(shape.dtype))
            && instruction.operands.iter().all(|&id| {
                let operand = self.computation.instruction(id).array_shape();
                operand.is_ok_and(|shape| known(shape.dtype))
            })
    }

    fn view(&mut self, index: usize, instruction: &Instruction, operand: usize) -> Source {
        let (Ok(shape), Ok(from)) = (
            instruction.array_shape(),
            self.computation.instructions[operand].array_shape(),
        ) else {
            return Source::Outside;
        };
        let same = matches!(instruction.opcode, Opcode::Reshape | Opcode::Copy);
        let source = match &self.sources[operand] {
            Source::Constant => Some(Source::Constant),
            Source::Member { member, elements } if same => Some(Source::Member {
                member: *member,
                elements: *elements,
            }),
            Source::Member { member, elements } => self
                .spread(instruction, *member, *elements)
                .or_else(|| self.dense_view(instruction, operand)),
            Source::Read => same.then_some(Source::Read),
            Source::Outside if same => View::dense(&from.dims).reshape(&shape.dims).map(Source::View),
            Source::Outside => self.dense_view(instruction, operand),
            Source::View(view) if same => view.reshape(&shape.dims).map(Source::View),
            Source::View(view) => change(view, instruction, shape).ok().map(Source::View),
        };
        let large = shape.num_elements() > SMALL_VIEW;
        match source {
            Some(Source::View(view)) if large && !matches!(Walk::of(&view).inner_stride(), -1..=1) => {
                Source::Outside
            }
            Some(source) => {
                self.copied[index] = true;
                self.reads[index] = matches!(source, Source::Read);
                source
            }
            None => Source::Outside,
        }
    }

    /// A view of the dense elements of an instruction.
    fn dense_view(&self, instruction: &Instruction, operand: usize) -> Option<Source> {
        let from = self.computation.instructions[operand].array_shape().ok()?;
        let view = change(
            &View::dense(&from.dims),
            instruction,
            instruction.array_shape().ok()?,
        )
        .ok()?;
        Some(Source::View(view))
    }

    /// Values of rows spread over rows.
    fn spread(&self, instruction: &Instruction, member: usize, elements: usize) -> Option<Source> {
        let (Opcode::Broadcast, Attributes::Dimensions(axes)) = (instruction.opcode, &instruction.attributes)
        else {
            return None;
        };
        let shape = instruction.array_shape().ok()?;
        let dims: SmallVec<[i64; 4]> = axes.iter().map(|&axis| shape.dims[axis as usize]).collect();
        let wide = shape.num_elements();
        let group = self.group(member);
        if group.rows() != Some(elements)
            || group.elements != wide
            || dims.iter().product::<i64>() as usize != elements
        {
            return None;
        }
        let walk = Walk::of(&View::dense(&dims).broadcast(&shape.dims, axes));
        let fits = match &walk.axes[..] {
            [(_, 0)] => elements == 1,
            [(rows, 1), (_, 0)] => *rows == elements,
            _ => false,
        };
        fits.then_some(Source::Member {
            member,
            elements: wide,
        })
    }

    /// Places an instruction that reads `operands`, each with a number of elements, in the group that `group` describes
    /// merged with those of its operands.
    fn join(&mut self, index: usize, group: Group, operands: &[(usize, usize)], results: usize) -> Source {
        let mut ready = 0;
        let mut members: SmallVec<[usize; 3]> = SmallVec::new();
        for &(operand, elements) in operands {
            match &self.sources[operand] {
                Source::Member {
                    member,
                    elements: seen,
                } if *seen == elements => members.push(*member),
                Source::Constant => {}
                _ => ready = ready.max(self.ready[operand]),
            }
        }
        let outside = |finder: &Finder, member: usize| finder.group(member).level + 1;
        // What cannot be joined is read from outside, which may raise the level and leave others behind.
        let merged = loop {
            let level = members
                .iter()
                .map(|&member| self.group(member).level)
                .fold(ready, u32::max);
            let mut merged = Group { level, ..group };
            let mut left = None;
            let mut joined: SmallVec<[usize; 3]> = SmallVec::new();
            for (place, &member) in members.iter().enumerate() {
                let root = self.root(member);
                if joined.contains(&root) {
                    continue;
                }
                let other = self.group(member);
                let narrow = group.row.is_none() && other.rows() == Some(group.elements);
                // A value of rows joins the group of the rows.
                let base = if narrow && joined.is_empty() {
                    Group {
                        elements: other.elements,
                        row: other.row,
                        ..merged
                    }
                } else {
                    merged
                };
                match base.with(&other) {
                    Some(both) => {
                        merged = both;
                        joined.push(root);
                    }
                    None => {
                        left = Some(place);
                        break;
                    }
                }
            }
            let Some(place) = left else {
                break merged;
            };
            ready = ready.max(outside(self, members[place]));
            members.remove(place);
        };
        let mut roots: SmallVec<[usize; 3]> = members.iter().map(|&member| self.root(member)).collect();
        roots.dedup();
        for root in roots {
            let root = self.root(root);
            self.parent[root] = index;
            self.groups[root] = None;
        }
        self.groups[index] = Some(merged);
        self.ready[index] = merged.level + 1;
        Source::Member {
            member: index,
            elements: results,
        }
    }
}

/// Whether code computes elements of a type.
pub(super) fn is_computed(dtype: DataType) -> bool {
    use DataType as T;
    matches!(
        dtype,
        T::FLOAT
            | T::DOUBLE
            | T::HALF
            | T::BFLOAT16
            | T::BOOL
            | T::INT8
            | T::INT16
            | T::INT32
            | T::INT64
            | T::UINT8
            | T::UINT16
            | T::UINT32
            | T::UINT64
    )
}

/// Whether code reduces elements of a type by an opcode.
fn can_reduce(opcode: Opcode, dtype: DataType) -> bool {
    let pred = dtype == DataType::BOOL;
    match opcode {
        Opcode::Add | Opcode::Multiply | Opcode::Maximum | Opcode::Minimum => !pred,
        Opcode::And | Opcode::Or => pred,
        _ => false,
    }
}
