//! From the computation of a fusion to its plan.
//!
//! Instructions are taken in order. While extents are not known, views of parameters and counters are walks that are
//! pending; [`Planner::finish`] (`extents.rs`) splits the elements into rows and axes that suit all of them.

use super::forms::{
    change, columns_have_code, is_read, operand_dims, reduces_columns, reduces_rows, starts_neutral,
};
use super::node::{Level, Node, NodeKind, Read};
use crate::attributes::Attributes;
use crate::evaluator::recognize_reducer;
use crate::module::{Computation, Instruction};
use crate::opcode::Opcode;
use crate::shape::ArrayShape;
use crate::view::{View, Walk};
use ff_tensor::{DataType, Result, Tensor, bail, ensure};
use smallvec::SmallVec;

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
pub(super) struct Pending<T> {
    pub what: T,
    pub walk: Walk,
    pub elements: usize,
}

/// See the module.
#[derive(Default)]
pub(super) struct Planner {
    pub(super) values: Vec<Value>,
    pub(super) nodes: Vec<Node>,
    /// Elements of each node; none for constants.
    pub(super) elements: Vec<Option<usize>>,
    pub(super) inputs: Vec<Pending<(usize, DataType)>>,
    pub(super) counters: Vec<Pending<DataType>>,
    pub(super) constants: Vec<Tensor>,
    /// Elements of rows' values and of what they are spread over.
    pub(super) spreads: Vec<(usize, usize)>,
    /// Elements that are reduced, and results.
    pub(super) reductions: Vec<(usize, usize)>,
    /// Reads at computed places.
    pub(super) reads: Vec<Read>,
    /// Rows that are combined and their length, of each reduction of columns.
    pub(super) columns: Vec<(usize, usize)>,
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
            _ if is_read(instruction.opcode) => self.read(computation, instruction),
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

    pub(super) fn push(
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
    pub(super) fn node_of(&mut self, value: usize, elements: usize) -> Result<usize> {
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
            } => Ok(self.load((parameter, dtype), wide(view), elements)),
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

    /// The node that reads a parameter along a walk.
    pub(super) fn load(&mut self, what: (usize, DataType), walk: Walk, elements: usize) -> usize {
        for (known, input) in self.inputs.iter().enumerate() {
            if input.what == what && input.walk == walk && input.elements == elements {
                let same = |node: &Node| matches!(node.kind, NodeKind::Load(input) if input == known);
                if let Some(node) = self.nodes.iter().position(same) {
                    return node;
                }
            }
        }
        self.inputs.push(Pending { what, walk, elements });
        let kind = NodeKind::Load(self.inputs.len() - 1);
        self.push(kind, SmallVec::new(), (what.1, what.1), Some(elements))
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
}
