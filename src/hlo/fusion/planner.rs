//! From the computation of a fusion to its plan.
//!
//! Instructions are taken in order. While extents are not known, views of parameters and counters are walks that are
//! pending; [`Planner::finish`] splits the elements into rows and axes that suit all of them.

use super::FusionPlan;
use super::forms::{change, columns_have_code, operand_dims, reduces_columns, reduces_rows, starts_neutral};
use super::node::{Counter, Input, Level, Node, NodeKind, Output};
use crate::attributes::Attributes;
use crate::evaluator::recognize_reducer;
use crate::module::{Computation, Instruction};
use crate::opcode::Opcode;
use crate::shape::ArrayShape;
use crate::view::{View, Walk};
use ff_tensor::{DataType, Result, Tensor, bail, ensure};
use smallvec::SmallVec;

/// The most axes of a plan.
const MAX_RANK: usize = 6;

/// What an instruction of the computation is.
#[derive(Clone)]
pub(super) enum Value {
    /// A node, seen with this many elements.
    Node { node: usize, elements: usize },
    /// Elements of a parameter.
    View {
        parameter: usize,
        dtype: DataType,
        view: View,
    },
    /// Counts: a view of 0, 1, 2...
    Counter { dtype: DataType, view: View },
    /// The results.
    Tuple,
}

/// A node or a walk while extents are not known.
struct Pending<T> {
    what: T,
    walk: Walk,
    elements: usize,
}

/// See the module.
#[derive(Default)]
pub(super) struct Planner {
    pub(super) values: Vec<Value>,
    nodes: Vec<Node>,
    /// Elements of each node; none for constants.
    elements: Vec<Option<usize>>,
    inputs: Vec<Pending<(usize, DataType)>>,
    counters: Vec<Pending<DataType>>,
    constants: Vec<Tensor>,
    /// Elements of rows' values and of what they are spread over.
    spreads: Vec<(usize, usize)>,
    /// Elements that are reduced, and results.
    reductions: Vec<(usize, usize)>,
    /// Rows that are combined and their length, of each reduction of columns.
    columns: Vec<(usize, usize)>,
}

impl Planner {
    /// What an instruction is, for those after it.
    pub(super) fn instruction(
        &mut self,
        computations: &[Computation],
        computation: &Computation,
        instruction: &Instruction,
    ) -> Result<Value> {
        if instruction.opcode == Opcode::Tuple {
            return Ok(Value::Tuple);
        }
        let shape = instruction.array_shape()?;
        ensure!(
            shape.num_elements() > 0,
            Unimplemented,
            "a fusion of empty arrays has no plan"
        );
        let operand = instruction.operands.first().map(|id| id.0 as usize);
        match (instruction.opcode, &instruction.attributes, operand) {
            (Opcode::Parameter, Attributes::Parameter(number), _) => Ok(Value::View {
                parameter: *number,
                dtype: shape.dtype,
                view: View::dense(&shape.dims),
            }),
            (Opcode::Constant, Attributes::Constant(value), _) if value.num_elements() == 1 => {
                self.constants.push(value.clone());
                let kind = NodeKind::Constant(self.constants.len() - 1);
                let node = self.push(kind, SmallVec::new(), (shape.dtype, shape.dtype), None);
                Ok(Value::Node { node, elements: 1 })
            }
            (Opcode::Iota, Attributes::Dimension(axis), _) => {
                let mut view = View::dense(&shape.dims);
                for (place, stride) in view.strides.iter_mut().enumerate() {
                    *stride = i64::from(place as i64 == *axis);
                }
                Ok(Value::Counter {
                    dtype: shape.dtype,
                    view,
                })
            }
            (Opcode::Reshape | Opcode::Copy, _, Some(operand)) => self.reshape(operand, shape),
            (Opcode::Broadcast | Opcode::Transpose | Opcode::Reverse | Opcode::Slice, _, Some(operand)) => {
                self.moved(operand, instruction, shape)
            }
            (
                Opcode::Reduce,
                Attributes::Reduce {
                    dimensions,
                    computation: called,
                },
                Some(operand),
            ) if instruction.operands.len() == 2 => {
                let reducer = computations.get(called.0 as usize).and_then(recognize_reducer);
                let Some(opcode) = reducer else {
                    bail!(Unimplemented, "a fusion with an unusual reducer has no plan");
                };
                let source = computation.instruction(instruction.operands[0]).array_shape()?;
                if let Some(columns) = reduces_columns(source, dimensions) {
                    return self.reduce_columns(computation, instruction, columns, opcode);
                }
                ensure!(
                    reduces_rows(source, dimensions),
                    Unimplemented,
                    "a fusion that reduces scattered axes has no plan"
                );
                self.reduce(computation, instruction, (operand, source.num_elements()), opcode)
            }
            (opcode, attributes, Some(_)) if opcode.is_elementwise() && opcode != Opcode::BitcastConvert => {
                let typed = usize::from(opcode == Opcode::Select);
                let operand_dtype = computation
                    .instruction(instruction.operands[typed])
                    .array_shape()?
                    .dtype;
                let elements = shape.num_elements();
                let mut operands = SmallVec::new();
                for id in &instruction.operands {
                    operands.push(self.node_of(id.0 as usize, elements)?);
                }
                let kind = NodeKind::Map(opcode, Box::new(attributes.clone()));
                let constant = operands
                    .iter()
                    .all(|&operand: &usize| self.elements[operand].is_none());
                let count = if constant { None } else { Some(elements) };
                let node = self.push(kind, operands, (operand_dtype, shape.dtype), count);
                Ok(Value::Node { node, elements })
            }
            _ => bail!(Unimplemented, "a fusion with {} has no plan", instruction.opcode),
        }
    }

    fn push(
        &mut self,
        kind: NodeKind,
        operands: SmallVec<[usize; 3]>,
        (operand_dtype, dtype): (DataType, DataType),
        elements: Option<usize>,
    ) -> usize {
        self.nodes.push(Node {
            kind,
            operands,
            operand_dtype,
            dtype,
            level: Level::Constant,
        });
        self.elements.push(elements);
        self.nodes.len() - 1
    }

    fn reshape(&self, operand: usize, shape: &ArrayShape) -> Result<Value> {
        let cannot = || ff_tensor::status!(Unimplemented, "a reshape in a fusion needs a copy");
        Ok(match self.values[operand].clone() {
            Value::View {
                parameter,
                dtype,
                view,
            } => Value::View {
                parameter,
                dtype,
                view: view.reshape(&shape.dims).ok_or_else(cannot)?,
            },
            Value::Counter { dtype, view } => Value::Counter {
                dtype,
                view: view.reshape(&shape.dims).ok_or_else(cannot)?,
            },
            other => other,
        })
    }

    /// A broadcast, transpose, reversal or slice.
    fn moved(&mut self, operand: usize, instruction: &Instruction, shape: &ArrayShape) -> Result<Value> {
        let change = |view: &View| change(view, instruction, shape);
        match self.values[operand].clone() {
            Value::View {
                parameter,
                dtype,
                view,
            } => Ok(Value::View {
                parameter,
                dtype,
                view: change(&view)?,
            }),
            Value::Counter { dtype, view } => Ok(Value::Counter {
                dtype,
                view: change(&view)?,
            }),
            Value::Node { node, .. } if self.elements[node].is_none() => Ok(Value::Node {
                node,
                elements: shape.num_elements(),
            }),
            Value::Node { node, elements } => {
                let source = View::dense(&operand_dims(instruction, shape, elements)?);
                let walk = Walk::of(&change(&source)?);
                let wide = shape.num_elements();
                let spread = match &walk.axes[..] {
                    [(all, 0)] => elements == 1 && *all == wide,
                    [(rows, 1), (_, 0)] => *rows == elements,
                    [(rows, 1)] => *rows == elements && wide == elements,
                    _ => false,
                };
                ensure!(
                    spread && walk.offset == 0,
                    Unimplemented,
                    "a fusion that moves what it computes has no plan"
                );
                if wide != elements {
                    self.spreads.push((elements, wide));
                }
                Ok(Value::Node { node, elements: wide })
            }
            Value::Tuple => bail!(Internal, "a tuple inside of a fusion"),
        }
    }

    /// The node of a value that is read by an instruction of this many elements.
    fn node_of(&mut self, value: usize, elements: usize) -> Result<usize> {
        let wide = |view: View| {
            let walk = Walk::of(&view);
            if walk.elements() == 1 && elements != 1 {
                let mut axes = SmallVec::new();
                axes.push((elements, 0));
                return Walk {
                    axes,
                    offset: walk.offset,
                };
            }
            walk
        };
        match self.values[value].clone() {
            Value::Node { node, elements: seen } => {
                ensure!(
                    seen == elements || seen == 1,
                    Unimplemented,
                    "a fusion of arrays of several extents has no plan"
                );
                if seen == 1 && elements != 1 && self.elements[node].is_some() {
                    self.spreads.push((1, elements));
                }
                Ok(node)
            }
            Value::View {
                parameter,
                dtype,
                view,
            } => {
                let walk = wide(view);
                let known = self.inputs.iter().position(|input| {
                    input.what == (parameter, dtype) && input.walk == walk && input.elements == elements
                });
                if let Some(known) = known {
                    let same = |node: &Node| matches!(node.kind, NodeKind::Load(input) if input == known);
                    if let Some(node) = self.nodes.iter().position(same) {
                        return Ok(node);
                    }
                }
                self.inputs.push(Pending {
                    what: (parameter, dtype),
                    walk,
                    elements,
                });
                let kind = NodeKind::Load(self.inputs.len() - 1);
                Ok(self.push(kind, SmallVec::new(), (dtype, dtype), Some(elements)))
            }
            Value::Counter { dtype, view } => {
                let walk = wide(view);
                self.counters.push(Pending {
                    what: dtype,
                    walk,
                    elements,
                });
                let kind = NodeKind::Counter(self.counters.len() - 1);
                Ok(self.push(kind, SmallVec::new(), (dtype, dtype), Some(elements)))
            }
            Value::Tuple => bail!(Internal, "a tuple inside of a fusion"),
        }
    }

    fn reduce(
        &mut self,
        computation: &Computation,
        instruction: &Instruction,
        (operand, elements): (usize, usize),
        opcode: Opcode,
    ) -> Result<Value> {
        let shape = instruction.array_shape()?;
        let results = shape.num_elements();
        self.reductions.push((elements, results));
        let source = self.node_of(operand, elements)?;
        ensure!(
            self.elements[source].is_some(),
            Unimplemented,
            "a reduction of a constant has no plan"
        );
        let kind = NodeKind::Reduce(opcode);
        let types = (shape.dtype, shape.dtype);
        let mut node = self.push(kind, SmallVec::from_slice(&[source]), types, Some(results));
        let initial = computation.instruction(instruction.operands[1]);
        if !starts_neutral(initial, opcode) {
            let first = self.node_of(instruction.operands[1].0 as usize, results)?;
            let kind = NodeKind::Map(opcode, Box::new(Attributes::None));
            node = self.push(kind, SmallVec::from_slice(&[first, node]), types, Some(results));
        }
        Ok(Value::Node {
            node,
            elements: results,
        })
    }

    fn reduce_columns(
        &mut self,
        computation: &Computation,
        instruction: &Instruction,
        columns: (usize, usize),
        opcode: Opcode,
    ) -> Result<Value> {
        let shape = instruction.array_shape()?;
        let operand = computation.instruction(instruction.operands[0]).array_shape()?;
        let initial = computation.instruction(instruction.operands[1]);
        ensure!(
            starts_neutral(initial, opcode) && columns_have_code(opcode, shape.dtype),
            Unimplemented,
            "a fusion that reduces columns of {} by {opcode} has no plan",
            shape.dtype
        );
        let source = self.node_of(instruction.operands[0].0 as usize, operand.num_elements())?;
        ensure!(
            self.elements[source].is_some(),
            Unimplemented,
            "a reduction of a constant has no plan"
        );
        self.columns.push(columns);
        let types = (shape.dtype, shape.dtype);
        let node = self.push(
            NodeKind::Columns(opcode),
            SmallVec::from_slice(&[source]),
            types,
            None,
        );
        let elements = shape.num_elements();
        Ok(Value::Node { node, elements })
    }

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
        for input in &self.inputs {
            let wide = input.elements == elements;
            inputs.push(Input {
                parameter: input.what.0,
                dtype: input.what.1,
                strides: along(&input.walk, input.elements)?,
                offset: input.walk.offset,
                level: level_of(input.elements),
                direct: wide && input.walk.offset == 0 && input.walk.axes[..] == [(elements, 1)],
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
        Ok(FusionPlan {
            extents,
            parameters: computation.parameters.len(),
            inputs,
            counters,
            constants: self.constants,
            nodes: self.nodes,
            outputs,
            columns: self.columns.first().map(|columns| columns.0),
        })
    }
}
