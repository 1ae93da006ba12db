//! The code of a fusion: a loop over rows, and within a row one pass over its elements for each stage.
//!
//! The function is `(words, first row, end row, first element, end element, intermediate rows)`, see
//! [`crate::layout`]. On the host a pass goes in whole vectors and a masked one for what is left; reductions are made as
//! `ff_kernels::reduce` makes them: in 32 lanes that are combined in halves, or one after another for short rows. For
//! GPUs each thread has one element, or one row where rows are reduced.

mod row;

use super::elementwise::{self, Library, computed, stored};
use super::ir::{Ir, Kind, Val};
use super::random::buffer_words;
use super::reduction::{REDUCE_LANES, SHORT_ROW};
use crate::layout::Layout;
use crate::stages::{Stage, stages};
pub(super) use row::Row;

use ff_hlo::fusion::{FusionPlan, Level, NodeKind};
use ff_tensor::{Result, bail, status};
use inkwell::context::Context;
use llvm_sys::LLVMIntPredicate::*;

/// LLVM's number of the calling convention of GPU entries.
const PTX_KERNEL: u32 = 71;

/// Parameters of the functions for the host.
pub const HOST_PARAMETERS: &[Kind] = &[
    Kind::Pointer,
    Kind::I64,
    Kind::I64,
    Kind::I64,
    Kind::I64,
    Kind::Pointer,
];

/// Where values lie while code is made.
pub(super) struct Emitter<'p, 'c> {
    pub ir: Ir<'c>,
    pub plan: &'p FusionPlan,
    pub layout: &'p Layout,
    pub lanes: u32,
    gpu: bool,
    depths: Vec<usize>,
    stages: Vec<Stage>,
    rows: Vec<Option<usize>>,
    pub words: Val,
    /// Memory for lanes that are cut or passed to functions.
    buffers: Vec<Val>,
    /// Memory for random bits, if there are any.
    random: Option<Val>,
    /// Operands of reductions of short rows and ends of rows.
    pub(super) tails: Vec<Option<Val>>,
    pub(super) row_length: Val,
    scratch: Val,
}

/// The module of a plan for the host, with vectors of so many lanes.
pub fn host<'c>(
    context: &'c Context,
    name: &str,
    plan: &FusionPlan,
    layout: &Layout,
    lanes: u32,
) -> Result<Ir<'c>> {
    host_in(Ir::new(context, name, HOST_PARAMETERS), plan, layout, lanes)
}

/// As [`host`], in a function with [`HOST_PARAMETERS`] that has nothing in it.
pub fn host_in<'c>(ir: Ir<'c>, plan: &FusionPlan, layout: &Layout, lanes: u32) -> Result<Ir<'c>> {
    let parameters: Vec<Val> = (0..6).map(|number| ir.parameter(number)).collect();
    let [words, first_row, end_row, first, end, scratch] = parameters[..] else {
        bail!(Internal, "a kernel has six parameters");
    };
    let mut emitter = Emitter::new(ir, plan, layout, lanes, false, words, scratch)?;
    emitter.make_buffers()?;
    let scalars = emitter.constants()?;
    let ir = &emitter.ir;
    ir.count_loop((first_row, end_row, 1), &[], &mut |row, _| {
        emitter.row(row, first, end, scalars.clone())?;
        Ok(Vec::new())
    })?;
    ir.ret();
    Ok(emitter.ir)
}

/// The module of a plan for GPUs: an entry `(words, threads)`.
pub fn gpu<'c>(context: &'c Context, name: &str, plan: &FusionPlan, layout: &Layout) -> Result<Ir<'c>> {
    let ir = Ir::new(context, name, &[Kind::Pointer, Kind::I64]);
    ir.set_calling_convention(PTX_KERNEL);
    let (words, threads) = (ir.parameter(0), ir.parameter(1));
    if plan.columns.is_some() {
        bail!(Unimplemented, "a fusion that sums columns has no code for GPUs");
    }
    if plan.draws() {
        bail!(
            Unimplemented,
            "a fusion that draws random bits has no code for GPUs"
        );
    }
    if !layout.library.is_empty() {
        bail!(
            Unimplemented,
            "a fusion that calls functions of the host has no code for GPUs"
        );
    }
    let emitter = Emitter::new(ir, plan, layout, 1, true, words, words)?;
    let ir = &emitter.ir;
    let register = |name: &str| ir.zext(ir.register(name), Kind::I64, 1);
    let block = ir.mul(register("ctaid.x"), register("ntid.x"));
    let thread = ir.add(block, register("tid.x"));
    let (body, done) = (ir.block(), ir.block());
    let inside = ir.icmp(LLVMIntULT, thread, threads);
    ir.branch(inside, body, done);
    ir.go(body);
    let scalars = emitter.constants()?;
    if plan.reduces() {
        emitter.row(thread, emitter.long(0), emitter.row_length, scalars)?;
    } else {
        let row = ir.udiv(thread, emitter.row_length);
        let element = ir.urem(thread, emitter.row_length);
        emitter.row(row, element, ir.add(element, emitter.long(1)), scalars)?;
    }
    ir.jump(done);
    ir.go(done);
    ir.ret();
    Ok(emitter.ir)
}

impl<'p, 'c> Emitter<'p, 'c> {
    fn new(
        ir: Ir<'c>,
        plan: &'p FusionPlan,
        layout: &'p Layout,
        lanes: u32,
        gpu: bool,
        words: Val,
        scratch: Val,
    ) -> Result<Emitter<'p, 'c>> {
        let (stages, rows) = stages(plan);
        let mut emitter = Emitter {
            row_length: words,
            ir,
            plan,
            layout,
            lanes,
            gpu,
            depths: plan.depths(),
            stages,
            rows,
            words,
            buffers: Vec::new(),
            random: None,
            tails: vec![None; plan.nodes.len()],
            scratch,
        };
        if gpu && emitter.rows.iter().any(Option::is_some) {
            // Intermediate rows would be memory of each thread: values are computed again instead.
            emitter.compute_again();
        }
        emitter.row_length = emitter.word(layout.extent_word(plan.extents.len() - 1));
        Ok(emitter)
    }

    /// Replaces reads of intermediate rows by the nodes that made them.
    fn compute_again(&mut self) {
        for stage in &mut self.stages {
            let mut needed = vec![false; self.plan.nodes.len()];
            let mut pending: Vec<usize> = stage.read.drain(..).chain(stage.nodes.iter().copied()).collect();
            while let Some(number) = pending.pop() {
                if self.plan.nodes[number].level == Level::Wide && !needed[number] {
                    needed[number] = true;
                    pending.extend(&self.plan.nodes[number].operands);
                }
            }
            stage.save.clear();
            stage.nodes = (0..needed.len()).filter(|&number| needed[number]).collect();
        }
    }

    pub fn long(&self, value: i64) -> Val {
        self.ir.int(Kind::I64, 1, value)
    }

    fn word_place(&self, word: usize) -> Val {
        self.ir.offset(self.words, self.long(8 * word as i64))
    }

    pub fn word(&self, word: usize) -> Val {
        self.ir.load(self.word_place(word), Kind::I64, 1)
    }

    pub(super) fn pointer_word(&self, word: usize) -> Val {
        self.ir.load(self.word_place(word), Kind::Pointer, 1)
    }

    /// Memory of the function, in its first block.
    fn make_buffers(&mut self) -> Result<()> {
        for _ in 0..4 {
            self.buffers.push(self.ir.stack(Kind::I64, self.lanes));
        }
        if self.plan.draws() {
            self.random = Some(self.ir.stack(Kind::I64, buffer_words(self.lanes)));
        }
        for (number, node) in self.plan.nodes.iter().enumerate() {
            if matches!(node.kind, NodeKind::Reduce(_)) {
                let kind = in_memory(computed(node.dtype)?);
                self.tails[number] = Some(self.ir.stack(kind, SHORT_ROW as u32 + REDUCE_LANES));
            }
        }
        Ok(())
    }

    /// The values of constants, and of what is computed of them alone.
    fn constants(&self) -> Result<Vec<Option<Val>>> {
        let mut scalars = vec![None; self.plan.nodes.len()];
        for (number, node) in self.plan.nodes.iter().enumerate() {
            if node.level != Level::Constant {
                continue;
            }
            if let NodeKind::Constant(constant) = node.kind {
                let place = self.word_place(self.layout.constant_word(constant));
                let raw = self.ir.load(place, stored(node.dtype)?, 1);
                scalars[number] = Some(elementwise::widen(&self.ir, node.dtype, raw, 1));
            } else {
                scalars[number] = Some(self.map(number, &scalars, 1)?);
            }
        }
        Ok(scalars)
    }

    /// The value of a node that computes, from those of its operands.
    fn map(&self, number: usize, values: &[Option<Val>], lanes: u32) -> Result<Val> {
        let node = &self.plan.nodes[number];
        let NodeKind::Map(opcode, attributes) = &node.kind else {
            bail!(Internal, "a kernel reads a value before it is computed");
        };
        let mut operands = Vec::with_capacity(3);
        for &operand in &node.operands {
            let value = values[operand]
                .ok_or_else(|| status!(Internal, "a kernel reads a value of another stage"))?;
            operands.push(value);
        }
        elementwise::map(
            &self.ir,
            self,
            (number, node),
            (*opcode, &**attributes),
            &operands,
            lanes,
        )
    }

    /// Scalars that a stage reads, in all lanes.
    fn splats(&self, row: &Row, stage: &Stage) -> Result<Vec<Option<Val>>> {
        let mut values = vec![None; self.plan.nodes.len()];
        let spread = |number: usize| -> Result<Option<Val>> {
            let kind = computed(self.plan.nodes[number].dtype)?;
            Ok(row.scalars[number].map(|scalar| self.ir.splat(scalar, kind, self.lanes)))
        };
        let mut used: Vec<usize> = stage
            .nodes
            .iter()
            .flat_map(|&node| self.plan.nodes[node].operands.clone())
            .collect();
        used.extend(&stage.nodes);
        used.extend(stage.outputs.iter().map(|&output| self.plan.outputs[output].node));
        let summed = |&output: &usize| self.plan.nodes[self.plan.outputs[output].node].operands[0];
        used.extend(stage.columns.iter().map(summed));
        for number in used {
            if values[number].is_none() {
                values[number] = spread(number)?;
            }
        }
        Ok(values)
    }

    fn stage(&self, row: &mut Row, at: usize) -> Result<()> {
        let stage = &self.stages[at];
        let work = [&stage.outputs, &stage.reductions, &stage.save, &stage.columns];
        if work.iter().all(|list| list.is_empty()) {
            return Ok(());
        }
        let values = self.splats(row, stage)?;
        if self.gpu {
            self.serial_stage(row, stage, &values)
        } else if stage.reductions.is_empty() {
            self.plain_stage(row, stage, &values)
        } else {
            self.reducing_stage(row, stage, &values)
        }
    }

    /// One element after another.
    fn serial_stage(&self, row: &mut Row, stage: &Stage, values: &[Option<Val>]) -> Result<()> {
        let carried = self.starts(stage, 1, 1)?;
        let totals = self
            .ir
            .count_loop((row.first, row.end, 1), &carried, &mut |element, sums| {
                let operands = self.body(row, stage, values, element, None)?;
                self.combined(stage, sums, &operands, 1)
            })?;
        for (&number, total) in stage.reductions.iter().zip(totals) {
            row.scalars[number] = Some(self.finished(number, total));
        }
        Ok(())
    }

    /// Whole vectors, then what is left.
    fn plain_stage(&self, row: &Row, stage: &Stage, values: &[Option<Val>]) -> Result<()> {
        let ir = &self.ir;
        let whole = ir.and(
            ir.sub(row.end, row.first),
            self.long(!(i64::from(self.lanes) - 1)),
        );
        let middle = ir.add(row.first, whole);
        let step = i64::from(self.lanes);
        ir.count_loop((row.first, middle, step), &[], &mut |element, _| {
            self.body(row, stage, values, element, None)?;
            Ok(Vec::new())
        })?;
        ir.count_loop((middle, row.end, step), &[], &mut |element, _| {
            self.body(row, stage, values, element, Some(row.end))?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// A value in a register as it lies in intermediate memory.
    pub(super) fn to_memory(&self, value: Val, kind: Kind, lanes: u32) -> Val {
        if kind == Kind::I1 {
            self.ir.zext(value, Kind::I8, lanes)
        } else {
            value
        }
    }

    /// And back.
    pub(super) fn of_memory(&self, raw: Val, kind: Kind, lanes: u32) -> Val {
        if kind == Kind::I1 {
            self.ir.icmp(LLVMIntNE, raw, self.ir.int(Kind::I8, lanes, 0))
        } else {
            raw
        }
    }

    /// The intermediate row of a node, from an element on.
    fn saved(&self, number: usize, element: Val) -> Result<(Val, Kind)> {
        let index = self.rows[number].ok_or_else(|| status!(Internal, "a value has no intermediate row"))?;
        let kind = in_memory(computed(self.plan.nodes[number].dtype)?);
        let distance = self.word(self.layout.scratch_word());
        let row = self.ir.mul(distance, self.long(index as i64));
        let bytes = self.ir.mul(element, self.long(i64::from(kind.bytes())));
        Ok((self.ir.offset(self.scratch, self.ir.add(row, bytes)), kind))
    }

    /// Computes a stage from an element on, in all lanes that are before `end`; gives the operands of the reductions.
    pub(super) fn body(
        &self,
        row: &Row,
        stage: &Stage,
        splats: &[Option<Val>],
        element: Val,
        end: Option<Val>,
    ) -> Result<Vec<Val>> {
        let (ir, lanes) = (&self.ir, self.lanes);
        let mut values = splats.to_vec();
        let place = super::lanes::Place::new(self, row, element, end);
        for &number in &stage.read {
            let (from, kind) = self.saved(number, element)?;
            let raw = ir.load(from, kind, lanes);
            values[number] = Some(self.of_memory(raw, computed(self.plan.nodes[number].dtype)?, lanes));
        }
        for &number in &stage.nodes {
            if values[number].is_some() {
                continue;
            }
            values[number] = Some(match self.plan.nodes[number].kind {
                NodeKind::Load(input) => place.load(input)?,
                NodeKind::Counter(counter) => place.count(counter)?,
                NodeKind::Read(read) => place.read_at(number, read, &values)?,
                NodeKind::Random(..) => place.random_bits(number)?,
                _ => self.map(number, &values, lanes)?,
            });
        }
        let value = |number: usize| {
            values[number].ok_or_else(|| status!(Internal, "a kernel does not compute what it needs"))
        };
        for &number in &stage.save {
            let (to, kind) = self.saved(number, element)?;
            let raw = self.to_memory(value(number)?, computed(self.plan.nodes[number].dtype)?, lanes);
            ir.store(raw, to, kind);
        }
        for &output in &stage.outputs {
            place.store(output, value(self.plan.outputs[output].node)?)?;
        }
        for &output in &stage.columns {
            let node = self.plan.outputs[output].node;
            place.accumulate(output, value(self.plan.nodes[node].operands[0])?)?;
        }
        stage
            .reductions
            .iter()
            .map(|&number| value(self.plan.nodes[number].operands[0]))
            .collect()
    }

    /// Memory for random bits.
    pub(super) fn random_buffer(&self) -> Result<Val> {
        self.random
            .ok_or_else(|| status!(Internal, "a kernel has no memory for random bits"))
    }

    /// Memory for lanes.
    pub(super) fn buffer(&self, number: usize) -> Result<Val> {
        self.buffers
            .get(number)
            .copied()
            .ok_or_else(|| status!(Unimplemented, "GPUs have no memory for lanes"))
    }
}

/// The kind in which registers of a kind lie in intermediate memory.
pub(super) fn in_memory(kind: Kind) -> Kind {
    if kind == Kind::I1 { Kind::I8 } else { kind }
}

impl<'c> Library<'c> for Emitter<'_, 'c> {
    fn call(&self, ir: &Ir<'c>, node: usize, operands: &[Val], lanes: u32) -> Result<Val> {
        let word = self
            .layout
            .library_word(node)
            .ok_or_else(|| status!(Internal, "a kernel calls a function that it was not given"))?;
        let source = &self.plan.nodes[node];
        let (operand, result) = (computed(source.operand_dtype)?, computed(source.dtype)?);
        let out = self.buffer(0)?;
        let mut arguments = vec![
            (self.pointer_word(word), Kind::Pointer),
            (self.word(word + 1), Kind::I64),
            (out, Kind::Pointer),
        ];
        for number in 0..3 {
            let buffer = self.buffer(1 + number)?;
            if let Some(&value) = operands.get(number) {
                ir.store(self.to_memory(value, operand, lanes), buffer, in_memory(operand));
            }
            arguments.push((buffer, Kind::Pointer));
        }
        arguments.push((self.long(i64::from(lanes)), Kind::I64));
        ir.call_pointer(self.pointer_word(0), &arguments);
        let raw = ir.load(out, in_memory(result), lanes);
        Ok(self.of_memory(raw, result, lanes))
    }
}
