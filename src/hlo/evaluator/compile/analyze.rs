//! The leaves of every live instruction, and the groups of those that are fused.

use super::group::Groups;
use super::leaf::{Leaf, LeafId, Place, View, strided};
use crate::attributes::Attributes;
use crate::evaluator::steps::PartialReduce;
use crate::module::{Computation, Instruction, Module};
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, HloShape};
use ff_tensor::{DataType, Result, Tensor, bail};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Elements below which a badly strided view is read in place rather than copied.
const SMALL_VIEW: usize = 4096;

/// What is known about a computation before steps are made.
pub(super) struct Analysis {
    pub leaves: Vec<Leaf>,
    /// The leaves of each instruction's result; none for dead instructions.
    pub of: Vec<SmallVec<[LeafId; 1]>>,
    pub live: Vec<bool>,
    pub groups: Groups,
    /// The group root whose fusion also does a reduction, by instruction.
    pub merged: Vec<Option<usize>>,
    /// The reductions of each fusion, by its group root.
    pub reductions: FxHashMap<usize, Vec<usize>>,
    /// Values known when compiling: constants and extents, with their leaves.
    pub constants: Vec<(LeafId, Tensor)>,
}

/// Whether an instruction joins fusions.
pub(super) fn is_fused(instruction: &Instruction) -> bool {
    instruction.opcode.is_elementwise()
        && !matches!(instruction.opcode, Opcode::BitcastConvert | Opcode::Copy)
}

impl Analysis {
    pub fn of(module: &Module, computation: &Computation) -> Result<Analysis> {
        let count = computation.instructions.len();
        let mut analysis = Analysis {
            leaves: Vec::with_capacity(count),
            of: vec![SmallVec::new(); count],
            live: live_instructions(computation),
            groups: Groups::new(count),
            merged: vec![None; count],
            reductions: FxHashMap::default(),
            constants: Vec::new(),
        };
        // Parameters come first, in order: their leaves are the first slots.
        for &parameter in &computation.parameters {
            let instruction = computation.instruction(parameter);
            analysis.of[parameter.0 as usize] = analysis.add_leaves(&instruction.shape, |_| Place::Given, 0);
        }
        for index in 0..count {
            if analysis.live[index] && computation.instructions[index].opcode != Opcode::Parameter {
                analysis.of[index] = analysis.instruction(computation, index)?;
            }
        }
        analysis.merge_reductions(module, computation);
        analysis.demand(computation);
        Ok(analysis)
    }

    fn add(&mut self, leaf: Leaf) -> LeafId {
        self.leaves.push(leaf);
        self.leaves.len() - 1
    }

    fn add_leaves(
        &mut self,
        shape: &HloShape,
        place: impl Fn(usize) -> Place,
        ready: u32,
    ) -> SmallVec<[LeafId; 1]> {
        let leaves = shape.leaves();
        leaves
            .into_iter()
            .enumerate()
            .map(|(i, leaf)| self.add(Leaf::new(leaf, place(i), ready)))
            .collect()
    }

    /// The leaf and the extents of an array operand.
    fn operand<'c>(
        &self,
        computation: &'c Computation,
        index: usize,
        which: usize,
    ) -> Result<(LeafId, &'c ArrayShape)> {
        let operand = computation.instructions[index].operands[which];
        let shape = computation.instruction(operand).array_shape()?;
        Ok((self.of[operand.0 as usize][0], shape))
    }

    fn instruction(&mut self, computation: &Computation, index: usize) -> Result<SmallVec<[LeafId; 1]>> {
        let instruction = &computation.instructions[index];
        let first = instruction.operands.first().map(|operand| operand.0 as usize);
        match (instruction.opcode, &instruction.attributes) {
            (Opcode::Constant, Attributes::Constant(value)) => {
                let leaf = self.add(Leaf::new(instruction.array_shape()?, Place::Given, 0));
                self.constants.push((leaf, value.clone()));
                Ok(SmallVec::from_slice(&[leaf]))
            }
            (Opcode::GetDimensionSize, Attributes::Dimension(axis)) => {
                let (_, shape) = self.operand(computation, index, 0)?;
                let extent = shape.dims[*axis as usize] as i32;
                let leaf = self.add(Leaf::new(instruction.array_shape()?, Place::Given, 0));
                self.constants.push((leaf, Tensor::scalar(extent)?));
                Ok(SmallVec::from_slice(&[leaf]))
            }
            (Opcode::Iota, Attributes::Dimension(axis)) => {
                let shape = instruction.array_shape()?;
                let axis = *axis as usize;
                let inner = shape.dims[axis + 1..].iter().product::<i64>() as usize;
                let place = Place::Iota {
                    inner,
                    extent: shape.dims[axis] as usize,
                };
                Ok(SmallVec::from_slice(&[self.add(Leaf::new(shape, place, 0))]))
            }
            (Opcode::Tuple, _) => Ok(instruction
                .operands
                .iter()
                .flat_map(|operand| self.of[operand.0 as usize].clone())
                .collect()),
            (Opcode::GetTupleElement, Attributes::TupleIndex(which)) => {
                let operand = instruction.operands[0];
                let elements = computation.instruction(operand).shape.as_tuple()?;
                let start: usize = elements[..*which]
                    .iter()
                    .map(|element| element.leaves().len())
                    .sum();
                let count = elements[*which].leaves().len();
                Ok(SmallVec::from_slice(
                    &self.of[operand.0 as usize][start..start + count],
                ))
            }
            (Opcode::Reshape | Opcode::Copy | Opcode::OptBarrier, _) => {
                Ok(first.map_or_else(SmallVec::new, |first| self.of[first].clone()))
            }
            (Opcode::Broadcast | Opcode::Transpose | Opcode::Reverse | Opcode::Slice, _) => {
                self.view(computation, index)
            }
            (Opcode::BitcastConvert, _) if same_size(computation, instruction)? => {
                let (base, _) = self.operand(computation, index, 0)?;
                let ready = self.leaves[base].ready;
                let leaf = Leaf::new(instruction.array_shape()?, Place::Cast { base }, ready);
                Ok(SmallVec::from_slice(&[self.add(leaf)]))
            }
            (Opcode::Call | Opcode::Map, _) => {
                bail!(
                    Internal,
                    "{} must be inlined before compiling",
                    instruction.opcode
                )
            }
            _ if is_fused(instruction) => self.fused(computation, index),
            _ => {
                let operands = instruction
                    .operands
                    .iter()
                    .flat_map(|operand| &self.of[operand.0 as usize]);
                let ready = operands.map(|&leaf| self.leaves[leaf].ready).max().unwrap_or(0);
                Ok(self.add_leaves(&instruction.shape, |_| Place::Step(index), ready))
            }
        }
    }

    fn view(&mut self, computation: &Computation, index: usize) -> Result<SmallVec<[LeafId; 1]>> {
        let instruction = &computation.instructions[index];
        let (leaf, shape) = self.operand(computation, index, 0)?;
        let (base, source) = self.leaves[leaf].as_view(leaf, &shape.dims);
        let result = instruction.array_shape()?;
        let view: View = match &instruction.attributes {
            Attributes::Dimensions(axes) => match instruction.opcode {
                Opcode::Broadcast => source.broadcast(&result.dims, axes),
                Opcode::Transpose => source.transpose(axes),
                _ => source.reverse(axes),
            },
            Attributes::Slice { start, stride, .. } => source.slice(&result.dims, start, stride),
            _ => bail!(
                Internal,
                "{} has attributes of another opcode",
                instruction.opcode
            ),
        };
        let walk = strided(&view);
        if walk.is_dense() && walk.offset() == 0 && self.leaves[base].elements == result.num_elements() {
            return Ok(SmallVec::from_slice(&[base]));
        }
        let ready = self.leaves[base].ready;
        let leaf = Leaf::new(result, Place::View { base, view }, ready);
        Ok(SmallVec::from_slice(&[self.add(leaf)]))
    }

    fn fused(&mut self, computation: &Computation, index: usize) -> Result<SmallVec<[LeafId; 1]>> {
        let instruction = &computation.instructions[index];
        let shape = instruction.array_shape()?;
        let elements = shape.num_elements();
        let (mut ready, mut members) = (0, SmallVec::<[usize; 3]>::new());
        for which in 0..instruction.operands.len() {
            let (leaf, _) = self.operand(computation, index, which)?;
            match self.leaves[leaf].place {
                Place::Fused(member) if self.leaves[leaf].elements == elements => members.push(member),
                _ => ready = ready.max(self.leaves[leaf].ready),
            }
        }
        let level = self.groups.place(index, ready, &members);
        let leaf = self.add(Leaf::new(shape, Place::Fused(index), level + 1));
        Ok(SmallVec::from_slice(&[leaf]))
    }

    /// Lets fusions do the reductions of what they compute, where these go part by part.
    fn merge_reductions(&mut self, module: &Module, computation: &Computation) {
        let mut units: FxHashMap<usize, usize> = FxHashMap::default();
        for (index, instruction) in computation.instructions.iter().enumerate() {
            let Attributes::Reduce {
                computation: called, ..
            } = instruction.attributes
            else {
                continue;
            };
            if !self.live[index] || instruction.operands.len() != 2 {
                continue;
            }
            let leaf = self.of[instruction.operands[0].0 as usize][0];
            let (Place::Fused(member), Ok(reducer)) = (&self.leaves[leaf].place, module.computation(called))
            else {
                continue;
            };
            let Some(part) = PartialReduce::of(computation, instruction, reducer) else {
                continue;
            };
            // All reductions of a fusion go in the same steps.
            let root = self.groups.root(*member);
            let unit = *units.entry(root).or_insert(part.unit);
            if unit == part.unit {
                self.merged[index] = Some(root);
                self.reductions.entry(root).or_default().push(index);
            }
        }
    }

    /// Whether an instruction becomes a step of its own.
    pub fn is_step(&self, index: usize, instruction: &Instruction) -> bool {
        let gives = self.of[index].first();
        instruction.opcode.has_side_effect()
            || calls_check(instruction)
            || gives.is_some_and(|&leaf| matches!(self.leaves[leaf].place, Place::Step(i) if i == index))
    }

    /// Marks the leaves whose elements someone needs one after another.
    fn demand(&mut self, computation: &Computation) {
        for (index, instruction) in computation.instructions.iter().enumerate() {
            if !self.live[index] {
                continue;
            }
            let fused = is_fused(instruction);
            let step = self.is_step(index, instruction);
            for operand in &instruction.operands {
                for leaf in self.of[operand.0 as usize].clone() {
                    if self.merged[index].is_some() {
                        continue;
                    }
                    if step {
                        self.leaves[leaf].dense = true;
                    } else if fused {
                        self.demand_in_fusion(leaf, index);
                    }
                }
            }
        }
        for leaf in self.of[computation.root.0 as usize].clone() {
            self.leaves[leaf].dense = true;
        }
        // Bases come before the views and casts of them.
        for leaf in (0..self.leaves.len()).rev() {
            if let Place::View { base, .. } | Place::Cast { base } = self.leaves[leaf].place {
                self.leaves[base].dense = true;
            }
        }
    }

    /// Marks an operand of a fused instruction unless the fusion computes it or reads it as a view.
    fn demand_in_fusion(&mut self, leaf: LeafId, index: usize) {
        let in_group = |member: usize| self.groups.root(member) == self.groups.root(index);
        let dense = match &self.leaves[leaf].place {
            Place::Given | Place::Step(_) | Place::Cast { .. } => true,
            Place::Fused(member) => !in_group(*member),
            Place::Iota { .. } => false,
            Place::View { view, .. } => {
                let walk = strided(view);
                let good = walk.is_splat() || matches!(walk.inner().1, -1..=1);
                !good && self.leaves[leaf].elements > SMALL_VIEW
            }
        };
        if dense {
            self.leaves[leaf].dense = true;
        }
    }
}

/// Whether a bitcast keeps the size of elements.
fn same_size(computation: &Computation, instruction: &Instruction) -> Result<bool> {
    let operand = computation.instruction(instruction.operands[0]).array_shape()?;
    let size = |dtype: DataType| dtype.size();
    Ok(size(operand.dtype) == size(instruction.array_shape()?.dtype))
}

/// The instructions that the root or a side effect needs.
fn live_instructions(computation: &Computation) -> Vec<bool> {
    let mut live = vec![false; computation.instructions.len()];
    live[computation.root.0 as usize] = true;
    for (index, instruction) in computation.instructions.iter().enumerate().rev() {
        if live[index] || instruction.opcode.has_side_effect() || calls_check(instruction) {
            live[index] = true;
            for operand in &instruction.operands {
                live[operand.0 as usize] = true;
            }
        }
    }
    live
}

/// Whether the instruction runs computations that may hold checks.
fn calls_check(instruction: &Instruction) -> bool {
    matches!(
        instruction.opcode,
        Opcode::Scan | Opcode::While | Opcode::Conditional
    )
}
