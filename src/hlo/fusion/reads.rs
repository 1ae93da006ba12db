//! Instructions that move elements in ways that are no views, as reads at computed places; and random bits, which depend
//! on the place.

use super::node::{Check, NodeKind, Read, Start};
use super::planner::{Pending, Planner, Value};
use crate::attributes::{Attributes, GatherDims, PadDimension, RngAlgorithm};
use crate::module::{Computation, Instruction, InstructionId};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims};
use crate::view::{View, Walk};
use ff_tensor::{DataType, Result, bail, ensure};
use smallvec::SmallVec;

/// A read being planned.
struct Builder<'s> {
    shape: &'s ArrayShape,
    /// The walk of the element for starts of zero.
    view: View,
    starts: SmallVec<[Start; 2]>,
    checks: SmallVec<[Check; 2]>,
    operands: SmallVec<[usize; 3]>,
}

impl<'s> Builder<'s> {
    /// Of the element at `offset`, for every place.
    fn new(shape: &'s ArrayShape, offset: i64) -> Builder<'s> {
        Builder {
            shape,
            view: View {
                dims: Dims::from_slice(&shape.dims),
                strides: Dims::from_elem(0, shape.rank()),
                offset,
            },
            starts: SmallVec::new(),
            checks: SmallVec::new(),
            operands: SmallVec::new(),
        }
    }

    /// The index along an axis of the result, less `low`.
    fn place(&self, axis: usize, low: i64) -> View {
        let mut view = Builder::new(self.shape, -low).view;
        view.strides[axis] = 1;
        view
    }
}

impl Planner {
    /// The node of a padding, concatenation, dynamic slice or gather, or of random bits.
    pub(super) fn read(&mut self, computation: &Computation, instruction: &Instruction) -> Result<Value> {
        let shape = instruction.array_shape()?;
        let elements = shape.num_elements();
        let shape_of = |id: InstructionId| computation.instruction(id).array_shape();
        let operands = &instruction.operands;
        let node = match (instruction.opcode, &instruction.attributes) {
            (Opcode::Pad, Attributes::Pad(config)) => self.pad(operands, shape, config)?,
            (Opcode::Concatenate, Attributes::Dimension(axis)) => {
                let mut node = None;
                let mut low = 0;
                for &operand in operands {
                    let extent = shape_of(operand)?.dims[*axis as usize];
                    node = Some(self.part(operand, shape, (*axis as usize, low, extent), node)?);
                    low += extent;
                }
                let Some(node) = node else {
                    bail!(Unimplemented, "a concatenation of nothing has no plan");
                };
                node
            }
            (Opcode::DynamicSlice, _) => self.dynamic_slice(operands, shape_of(operands[0])?, shape)?,
            (Opcode::DynamicUpdateSlice, _) => {
                self.dynamic_update(operands, shape, shape_of(operands[1])?)?
            }
            (Opcode::RngBitGenerator, Attributes::Rng(algorithm)) => {
                self.random_bits(operands[0], shape, *algorithm)?
            }
            (Opcode::Gather, Attributes::Gather(dims)) => {
                self.gather(operands, shape_of(operands[0])?, shape, dims)?
            }
            (opcode, _) => bail!(Internal, "{opcode} has attributes of another opcode"),
        };
        Ok(Value::Node { node, elements })
    }

    /// An operand that lies in a parameter.
    fn viewed(&self, operand: InstructionId) -> Result<(usize, DataType, View)> {
        match &self.values[operand.0 as usize] {
            Value::View {
                parameter,
                dtype,
                view,
            } => Ok((*parameter, *dtype, view.clone())),
            _ => bail!(Unimplemented, "a fusion that moves what it computes has no plan"),
        }
    }

    fn finish_read(&mut self, what: (usize, DataType), mut read: Builder, otherwise: Option<usize>) -> usize {
        let elements = read.shape.num_elements();
        self.inputs.push(Pending {
            what,
            walk: Walk::of(&read.view),
            elements,
        });
        read.operands.extend(otherwise);
        self.reads.push(Read {
            input: self.inputs.len() - 1,
            starts: read.starts,
            checks: read.checks,
            otherwise: otherwise.is_some(),
        });
        let kind = NodeKind::Read(self.reads.len() - 1);
        self.push(kind, read.operands, (what.1, what.1), Some(elements))
    }

    /// A check of the index along an axis of the result, less `low`.
    fn check(
        &mut self,
        read: &mut Builder,
        (axis, low, bound): (usize, i64, i64),
        start: Option<usize>,
        spread: Option<(i64, i64)>,
    ) {
        self.counters.push(Pending {
            what: DataType::INT64,
            walk: Walk::of(&read.place(axis, low)),
            elements: read.shape.num_elements(),
        });
        read.checks.push(Check {
            counter: self.counters.len() - 1,
            start,
            bound,
            spread,
        });
    }

    /// An operand that is the part of the result from `low` on along an axis; `otherwise` elsewhere.
    fn part(
        &mut self,
        operand: InstructionId,
        shape: &ArrayShape,
        (axis, low, extent): (usize, i64, i64),
        otherwise: Option<usize>,
    ) -> Result<usize> {
        let (parameter, dtype, view) = self.viewed(operand)?;
        let mut read = Builder::new(shape, view.offset - low * view.strides[axis]);
        read.view.strides = view.strides.clone();
        self.check(&mut read, (axis, low, extent), None, None);
        Ok(self.finish_read((parameter, dtype), read, otherwise))
    }

    fn pad(
        &mut self,
        operands: &[InstructionId],
        shape: &ArrayShape,
        config: &[PadDimension],
    ) -> Result<usize> {
        let (parameter, dtype, view) = self.viewed(operands[0])?;
        let mut read = Builder::new(shape, view.offset);
        for (axis, pad) in config.iter().enumerate() {
            let (extent, stride) = (view.dims[axis], view.strides[axis]);
            if pad.interior > 0 {
                let bound = (extent - 1) * (pad.interior + 1) + 1;
                let spread = Some((pad.interior + 1, stride));
                self.check(&mut read, (axis, pad.low, bound), None, spread);
                continue;
            }
            read.view.strides[axis] = stride;
            read.view.offset -= pad.low * stride;
            if pad.low > 0 || pad.high > 0 {
                self.check(&mut read, (axis, pad.low, extent), None, None);
            }
        }
        let otherwise = self.node_of(operands[1].0 as usize, shape.num_elements())?;
        Ok(self.finish_read((parameter, dtype), read, Some(otherwise)))
    }

    /// Adds the start of an axis, unless it can only be zero; its number.
    fn start(
        &mut self,
        read: &mut Builder,
        node: impl FnOnce(&mut Planner) -> Result<usize>,
        limit: i64,
        stride: i64,
    ) -> Result<Option<usize>> {
        if limit <= 0 {
            return Ok(None);
        }
        let node = node(self)?;
        ensure!(
            self.nodes[node].dtype.is_integer(),
            Unimplemented,
            "a start that is no integer has no plan"
        );
        read.operands.push(node);
        read.starts.push(Start { limit, stride });
        Ok(Some(read.starts.len() - 1))
    }

    fn dynamic_slice(
        &mut self,
        operands: &[InstructionId],
        from: &ArrayShape,
        shape: &ArrayShape,
    ) -> Result<usize> {
        let (parameter, dtype, view) = self.viewed(operands[0])?;
        let mut read = Builder::new(shape, view.offset);
        read.view.strides = view.strides.clone();
        for axis in 0..shape.rank() {
            let start = operands[1 + axis].0 as usize;
            self.start(
                &mut read,
                |planner| planner.node_of(start, shape.num_elements()),
                from.dims[axis] - shape.dims[axis],
                view.strides[axis],
            )?;
        }
        Ok(self.finish_read((parameter, dtype), read, None))
    }

    fn dynamic_update(
        &mut self,
        operands: &[InstructionId],
        shape: &ArrayShape,
        update: &ArrayShape,
    ) -> Result<usize> {
        let elements = shape.num_elements();
        let base = self.node_of(operands[0].0 as usize, elements)?;
        let (parameter, dtype, view) = self.viewed(operands[1])?;
        let mut read = Builder::new(shape, view.offset);
        read.view.strides = view.strides.clone();
        for axis in 0..shape.rank() {
            let start = operands[2 + axis].0 as usize;
            let limit = shape.dims[axis] - update.dims[axis];
            let number = self.start(
                &mut read,
                |planner| planner.node_of(start, elements),
                limit,
                -view.strides[axis],
            )?;
            if number.is_some() {
                self.check(&mut read, (axis, 0, update.dims[axis]), number, None);
            }
        }
        Ok(self.finish_read((parameter, dtype), read, Some(base)))
    }

    fn random_bits(
        &mut self,
        state: InstructionId,
        shape: &ArrayShape,
        algorithm: RngAlgorithm,
    ) -> Result<usize> {
        let (parameter, dtype, view) = self.viewed(state)?;
        let elements = shape.num_elements();
        let mut words = SmallVec::new();
        for word in 0..algorithm.state_words() as i64 {
            let place = Builder::new(shape, view.offset + word * view.strides[0]);
            words.push(self.load((parameter, dtype), Walk::of(&place.view), elements));
        }
        self.counters.push(Pending {
            what: DataType::INT64,
            walk: Walk::of(&View::dense(&shape.dims)),
            elements,
        });
        let kind = NodeKind::Random(algorithm, self.counters.len() - 1);
        Ok(self.push(kind, words, (DataType::UINT64, shape.dtype), Some(elements)))
    }

    fn gather(
        &mut self,
        operands: &[InstructionId],
        from: &ArrayShape,
        shape: &ArrayShape,
        dims: &GatherDims,
    ) -> Result<usize> {
        let (parameter, dtype, view) = self.viewed(operands[0])?;
        let (index_parameter, index_dtype, indices) = self.viewed(operands[1])?;
        let mut read = Builder::new(shape, view.offset);
        let has = |axes: &[i64], axis: usize| axes.contains(&(axis as i64));
        let dropped =
            |axis: usize| has(&dims.collapsed_slice_dims, axis) || has(&dims.operand_batching_dims, axis);
        let kept = (0..from.rank()).filter(|&axis| !dropped(axis));
        for (axis, &result) in kept.zip(&dims.offset_dims) {
            read.view.strides[result as usize] = view.strides[axis];
        }
        // The axes of the result that are axes of the indices, in their order.
        let batch: SmallVec<[usize; 4]> = (0..shape.rank())
            .filter(|&axis| !has(&dims.offset_dims, axis))
            .collect();
        let vector = dims.index_vector_dim as usize;
        let of_index = |axis: usize| batch[axis - usize::from(axis > vector)];
        for (&axis, &index_axis) in dims
            .operand_batching_dims
            .iter()
            .zip(&dims.start_indices_batching_dims)
        {
            read.view.strides[of_index(index_axis as usize)] = view.strides[axis as usize];
        }
        let mut walk = Builder::new(shape, indices.offset).view;
        for axis in (0..indices.dims.len()).filter(|&axis| axis != vector) {
            walk.strides[of_index(axis)] = indices.strides[axis];
        }
        let step = indices.strides.get(vector).copied().unwrap_or(0);
        for (component, &axis) in dims.start_index_map.iter().enumerate() {
            let axis = axis as usize;
            let mut walk = walk.clone();
            walk.offset += component as i64 * step;
            self.start(
                &mut read,
                |planner| {
                    Ok(planner.load(
                        (index_parameter, index_dtype),
                        Walk::of(&walk),
                        shape.num_elements(),
                    ))
                },
                from.dims[axis] - dims.slice_sizes[axis],
                view.strides[axis],
            )?;
        }
        Ok(self.finish_read((parameter, dtype), read, None))
    }
}
