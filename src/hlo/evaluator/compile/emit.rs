//! Steps in order: each fusion, each other instruction, each view that must be dense, after what it reads.

use super::Compiler;
use super::analyze::{Analysis, is_fused};
use super::leaf::{LeafId, Place, strided};
use crate::evaluator::code::{Operand, OutputArray, Step};
use crate::evaluator::steps::{self, Fused, PartialReduce};
use crate::evaluator::tile::{Access, Strided, TileBuilder, ValueId};
use crate::module::{Computation, Instruction, Module};
use crate::opcode::Opcode;
use ff_tensor::{DataType, Result, Shape, Tensor, status};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The steps of a computation.
pub(super) struct Emitted {
    pub steps: Vec<Step>,
    pub slots: usize,
    pub constants: Vec<Tensor>,
    pub results: Vec<Operand>,
}

/// Something that becomes one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Unit {
    /// The fusion of this group root.
    Group(usize),
    /// This instruction.
    Step(usize),
    /// The dense elements of this view or iota.
    Dense(LeafId),
}

struct Emitter<'a> {
    computation: &'a Computation,
    analysis: Analysis,
    /// Members of each group, by its root, in order.
    members: FxHashMap<usize, Vec<usize>>,
    done: FxHashMap<Unit, bool>,
    out: Emitted,
}

/// Makes the steps of a computation.
pub(super) fn emit(
    compiler: &mut Compiler,
    computation: &Computation,
    analysis: Analysis,
) -> Result<Emitted> {
    let mut members: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
    for (index, instruction) in computation.instructions.iter().enumerate() {
        if analysis.live[index] && is_fused(instruction) {
            members
                .entry(analysis.groups.root(index))
                .or_default()
                .push(index);
        }
    }
    let mut emitter = Emitter {
        computation,
        analysis,
        members,
        done: FxHashMap::default(),
        out: Emitted {
            steps: Vec::new(),
            slots: 0,
            constants: Vec::new(),
            results: Vec::new(),
        },
    };
    emitter.place_given();
    for index in 0..computation.instructions.len() {
        if emitter.analysis.live[index] && emitter.analysis.is_step(index, &computation.instructions[index]) {
            emitter.schedule(compiler, emitter.unit_of_step(index))?;
        }
    }
    for leaf in emitter.analysis.of[computation.root.0 as usize].clone() {
        if let Some(unit) = emitter.unit_of(leaf) {
            emitter.schedule(compiler, unit)?;
        }
        let operand = emitter.operand(leaf)?;
        emitter.out.results.push(operand);
    }
    Ok(emitter.out)
}

impl Emitter<'_> {
    /// Gives parameters their slots and constants their places.
    fn place_given(&mut self) {
        for &parameter in &self.computation.parameters {
            for leaf in self.analysis.of[parameter.0 as usize].clone() {
                self.analysis.leaves[leaf].operand = Some(self.new_slot());
            }
        }
        for (leaf, value) in std::mem::take(&mut self.analysis.constants) {
            self.analysis.leaves[leaf].operand = Some(Operand::Constant(self.out.constants.len() as u32));
            self.out.constants.push(value);
        }
    }

    fn new_slot(&mut self) -> Operand {
        self.out.slots += 1;
        Operand::Slot(self.out.slots as u32 - 1)
    }

    /// The unit that runs an instruction: its own, or the fusion that does its reduction.
    fn unit_of_step(&self, index: usize) -> Unit {
        self.analysis.merged[index].map_or(Unit::Step(index), Unit::Group)
    }

    /// The unit that makes the dense elements of a leaf, if there is one.
    fn unit_of(&self, leaf: LeafId) -> Option<Unit> {
        let mut at = leaf;
        loop {
            let found = &self.analysis.leaves[at];
            return match found.place {
                Place::Given => None,
                Place::Fused(member) => Some(Unit::Group(self.analysis.groups.root(member))),
                Place::Step(index) => Some(self.unit_of_step(index)),
                Place::View { .. } | Place::Iota { .. } if found.dense => Some(Unit::Dense(at)),
                Place::Iota { .. } => None,
                Place::View { base, .. } | Place::Cast { base } => {
                    at = base;
                    continue;
                }
            };
        }
    }

    /// The units that a unit reads.
    fn dependencies(&self, unit: Unit) -> Vec<Unit> {
        let mut found = Vec::new();
        let mut add_operands = |index: usize| {
            for operand in &self.computation.instructions[index].operands {
                for &leaf in &self.analysis.of[operand.0 as usize] {
                    found.extend(self.unit_of(leaf).filter(|&other| other != unit));
                }
            }
        };
        match unit {
            Unit::Group(root) => self.members[&root]
                .iter()
                .for_each(|&member| add_operands(member)),
            Unit::Step(index) => add_operands(index),
            Unit::Dense(leaf) => {
                if let Place::View { base, .. } = self.analysis.leaves[leaf].place {
                    found.extend(self.unit_of(base));
                }
            }
        }
        found
    }

    /// Emits a unit after everything that it reads.
    fn schedule(&mut self, compiler: &mut Compiler, unit: Unit) -> Result<()> {
        let mut pending = vec![unit];
        while let Some(&unit) = pending.last() {
            match self.done.get(&unit) {
                Some(true) => {
                    pending.pop();
                }
                Some(false) => {
                    pending.pop();
                    self.emit_unit(compiler, unit)?;
                    self.done.insert(unit, true);
                }
                None => {
                    self.done.insert(unit, false);
                    let dependencies = self.dependencies(unit);
                    pending.extend(
                        dependencies
                            .into_iter()
                            .filter(|other| !self.done.contains_key(other)),
                    );
                }
            }
        }
        Ok(())
    }

    fn emit_unit(&mut self, compiler: &mut Compiler, unit: Unit) -> Result<()> {
        match unit {
            Unit::Group(root) => self.emit_group(compiler, root),
            Unit::Step(index) => self.emit_step(compiler, index),
            Unit::Dense(leaf) => self.emit_dense(leaf),
        }
    }

    /// Where the dense elements of a leaf lie.
    fn operand(&self, leaf: LeafId) -> Result<Operand> {
        let mut at = leaf;
        while let Place::Cast { base } = self.analysis.leaves[at].place {
            at = base;
        }
        self.analysis.leaves[at]
            .operand
            .ok_or_else(|| status!(Internal, "A value is read before it is computed"))
    }

    /// A new slot for the dense elements of a leaf.
    fn make_output(&mut self, leaf: LeafId) -> Result<OutputArray> {
        let operand = self.new_slot();
        let slot = self.out.slots as u32 - 1;
        let leaf = &mut self.analysis.leaves[leaf];
        leaf.operand = Some(operand);
        Ok(OutputArray {
            slot,
            dtype: leaf.dtype,
            shape: Shape::new(&leaf.dims)?,
        })
    }

    fn push(&mut self, step: Step) {
        self.out.steps.push(step);
    }

    fn emit_step(&mut self, compiler: &mut Compiler, index: usize) -> Result<()> {
        let instruction = &self.computation.instructions[index];
        let kernel = steps::kernel(compiler, self.computation, instruction)?;
        let mut operands = SmallVec::new();
        for operand in &instruction.operands {
            for &leaf in &self.analysis.of[operand.0 as usize] {
                operands.push(self.operand(leaf)?);
            }
        }
        let mut outputs = SmallVec::new();
        if !instruction.shape.leaves().is_empty() {
            for leaf in self.analysis.of[index].clone() {
                outputs.push(self.make_output(leaf)?);
            }
        }
        self.push(Step {
            kernel,
            operands,
            outputs,
            dying: 0,
            release: SmallVec::new(),
            node: instruction.node.clone(),
        });
        Ok(())
    }

    fn emit_group(&mut self, compiler: &Compiler, root: usize) -> Result<()> {
        let members = self.members.remove(&root).unwrap_or_default();
        let mut fusion = Fusion {
            emitter: self,
            root,
            builder: TileBuilder::default(),
            values: FxHashMap::default(),
            inputs: FxHashMap::default(),
            operands: SmallVec::new(),
        };
        for &member in &members {
            fusion.add(member)?;
        }
        let mut stored: Vec<(LeafId, ValueId)> = Vec::new();
        for &member in &members {
            let leaf = fusion.emitter.analysis.of[member][0];
            if fusion.emitter.analysis.leaves[leaf].dense {
                stored.push((leaf, fusion.values[&member]));
            }
        }
        for &(leaf, value) in &stored {
            fusion
                .builder
                .output(value, fusion.emitter.analysis.leaves[leaf].dtype);
        }
        let reduced = fusion.reduced(compiler.module, &stored)?;
        let Fusion {
            builder, operands, ..
        } = fusion;
        let leaf = self.analysis.of[members[0]][0];
        let mut kernel = Fused::new(
            builder.finish(),
            self.analysis.leaves[leaf].elements,
            stored.len(),
        );
        let mut outputs: SmallVec<[OutputArray; 1]> = SmallVec::new();
        for (leaf, _) in &stored {
            outputs.push(self.make_output(*leaf)?);
        }
        for (index, source, part) in reduced {
            outputs.push(self.make_output(self.analysis.of[index][0])?);
            kernel.reduce(source, part);
        }
        let last = members
            .last()
            .map(|&member| &self.computation.instructions[member]);
        let node = last.and_then(|instruction| instruction.node.clone());
        self.push_fused(kernel, operands, outputs, node);
        Ok(())
    }

    fn push_fused(
        &mut self,
        kernel: Fused,
        operands: SmallVec<[Operand; 4]>,
        outputs: SmallVec<[OutputArray; 1]>,
        node: Option<Arc<str>>,
    ) {
        self.push(Step {
            kernel: Box::new(kernel),
            operands,
            outputs,
            dying: 0,
            release: SmallVec::new(),
            node,
        });
    }

    /// A step that lays out the elements of a view or an iota.
    fn emit_dense(&mut self, leaf: LeafId) -> Result<()> {
        let found = self.analysis.leaves[leaf].clone();
        match found.place {
            Place::View { base, view } => {
                let operands = SmallVec::from_slice(&[self.operand(base)?]);
                let outputs = SmallVec::from_iter([self.make_output(leaf)?]);
                self.push(Step {
                    kernel: steps::strided_copy(strided(&view), found.dtype, found.elements),
                    operands,
                    outputs,
                    dying: 0,
                    release: SmallVec::new(),
                    node: None,
                });
            }
            Place::Iota { inner, extent } => {
                let mut builder = TileBuilder::default();
                let value = builder.iota(found.dtype, inner, extent)?;
                builder.output(value, found.dtype);
                let outputs = SmallVec::from_iter([self.make_output(leaf)?]);
                let kernel = Fused::new(builder.finish(), found.elements, 1);
                self.push_fused(kernel, SmallVec::new(), outputs, None);
            }
            _ => {}
        }
        Ok(())
    }
}

/// A fusion being built.
struct Fusion<'e, 'a> {
    emitter: &'e mut Emitter<'a>,
    root: usize,
    builder: TileBuilder,
    /// Values of members.
    values: FxHashMap<usize, ValueId>,
    /// Values of outside leaves.
    inputs: FxHashMap<LeafId, ValueId>,
    operands: SmallVec<[Operand; 4]>,
}

impl Fusion<'_, '_> {
    fn add(&mut self, member: usize) -> Result<()> {
        let instruction: &Instruction = &self.emitter.computation.instructions[member];
        let result = instruction.array_shape()?;
        let elements = result.num_elements();
        let mut args: SmallVec<[ValueId; 3]> = SmallVec::new();
        for operand in &instruction.operands {
            let leaf = self.emitter.analysis.of[operand.0 as usize][0];
            args.push(self.argument(leaf, elements)?);
        }
        // A predicate that comes first says nothing about the type of the work.
        let typed = if instruction.opcode == Opcode::Select {
            1
        } else {
            0
        };
        let operand = self
            .emitter
            .computation
            .instruction(instruction.operands[typed])
            .array_shape()?
            .dtype;
        let value = self.builder.map(
            instruction.opcode,
            &instruction.attributes,
            &args,
            operand,
            result.dtype,
        )?;
        self.values.insert(member, value);
        Ok(())
    }

    /// The reductions that the fusion does: the instruction, the program's output that it reads, and its parts.
    /// Outputs that are not stored are added to the program.
    fn reduced(
        &mut self,
        module: &Module,
        stored: &[(LeafId, ValueId)],
    ) -> Result<Vec<(usize, usize, PartialReduce)>> {
        let mut found = Vec::new();
        let mut outputs: Vec<LeafId> = stored.iter().map(|(leaf, _)| *leaf).collect();
        let computation = self.emitter.computation;
        let indices = self
            .emitter
            .analysis
            .reductions
            .get(&self.root)
            .cloned()
            .unwrap_or_default();
        for index in indices {
            let instruction = &computation.instructions[index];
            let called = instruction.attributes.called_computations()[0];
            let part = PartialReduce::of(computation, instruction, module.computation(called)?);
            let part = part.ok_or_else(|| status!(Internal, "A fused reduction has no parts"))?;
            let leaf = self.emitter.analysis.of[instruction.operands[0].0 as usize][0];
            let source = match outputs.iter().position(|&other| other == leaf) {
                Some(source) => source,
                None => {
                    let Place::Fused(member) = self.emitter.analysis.leaves[leaf].place else {
                        return Err(status!(Internal, "A fused reduction reads a value from outside"));
                    };
                    self.builder
                        .output(self.values[&member], self.emitter.analysis.leaves[leaf].dtype);
                    outputs.push(leaf);
                    outputs.len() - 1
                }
            };
            found.push((index, source, part));
        }
        Ok(found)
    }

    /// The value of an operand: a member's, or an input's.
    fn argument(&mut self, leaf: LeafId, elements: usize) -> Result<ValueId> {
        let analysis = &self.emitter.analysis;
        let found = &analysis.leaves[leaf];
        if let Place::Fused(member) = found.place
            && analysis.groups.root(member) == self.root
        {
            return self
                .values
                .get(&member)
                .copied()
                .ok_or_else(|| status!(Internal, "A fusion reads a value before it is computed"));
        }
        if let Some(&value) = self.inputs.get(&leaf) {
            return Ok(value);
        }
        let (dtype, place, dense) = (found.dtype, found.place.clone(), found.dense);
        let value = match place {
            Place::Iota { inner, extent } if !dense => self.builder.iota(dtype, inner, extent)?,
            Place::View { base, view } if !dense => {
                let base_dtype = analysis.leaves[base].dtype;
                let operand = self.emitter.operand(base)?;
                self.input(operand, base_dtype, access(strided(&view)))
            }
            _ => {
                let splat = found.elements == 1 && elements != 1;
                let operand = self.emitter.operand(leaf)?;
                self.input(
                    operand,
                    dtype,
                    if splat { Access::Splat(0) } else { Access::Direct },
                )
            }
        };
        self.inputs.insert(leaf, value);
        Ok(value)
    }

    fn input(&mut self, operand: Operand, dtype: DataType, access: Access) -> ValueId {
        self.operands.push(operand);
        self.builder.input(dtype, access)
    }
}

/// How a fusion reads along a walk.
fn access(walk: Strided) -> Access {
    if walk.is_splat() {
        return Access::Splat(walk.offset());
    }
    if walk.is_dense() && walk.offset() == 0 {
        return Access::Direct;
    }
    Access::Strided(walk)
}
