//! Lanes of inputs, counters and outputs at a place in a row, all of them or those before the end of the row.

use super::elementwise::{self, computed, stored};
use super::fusion::{Emitter, Row, in_memory};
use super::ir::{Kind, Val};
use ff_hlo::fusion::NodeKind;
use ff_tensor::{Result, bail, status};
use llvm_sys::LLVMIntPredicate::*;

/// A place in a row.
pub(super) struct Place<'a, 'p, 'c> {
    pub(super) emitter: &'a Emitter<'p, 'c>,
    pub(super) row: &'a Row,
    pub(super) element: Val,
    /// The lanes to read and write, and how many they are; all of them if there is none.
    pub(super) cut: Option<(Val, Val)>,
}

impl<'a, 'p, 'c> Place<'a, 'p, 'c> {
    /// The place from `element` on, where only lanes before `end` exist if it is given.
    pub fn new(
        emitter: &'a Emitter<'p, 'c>,
        row: &'a Row,
        element: Val,
        end: Option<Val>,
    ) -> Place<'a, 'p, 'c> {
        let (ir, lanes) = (&emitter.ir, emitter.lanes);
        let cut = end.map(|end| {
            let left = ir.sub(end, element);
            let few = ir.icmp(LLVMIntSLT, left, emitter.long(i64::from(lanes)));
            let left = ir.select(few, left, emitter.long(i64::from(lanes)));
            let short = ir.splat(ir.trunc(left, Kind::I32, 1), Kind::I32, lanes);
            (ir.icmp(LLVMIntSLT, ir.steps(Kind::I32, lanes), short), left)
        });
        Place {
            emitter,
            row,
            element,
            cut,
        }
    }

    /// Lanes of an input.
    pub fn load(&self, input: usize) -> Result<Val> {
        let (ir, lanes) = (&self.emitter.ir, self.emitter.lanes);
        let source = &self.emitter.plan.inputs[input];
        let kind = stored(source.dtype)?;
        let start = self.row.inputs[input].ok_or_else(|| status!(Internal, "an input has no address"))?;
        let size = self.emitter.long(i64::from(kind.bytes()));
        let raw = if source.strides.last() != Some(&1) {
            self.gather(input, start, kind)
        } else {
            self.read(ir.offset(start, ir.mul(self.element, size)), kind)?
        };
        Ok(elementwise::widen(ir, source.dtype, raw, lanes))
    }

    /// Lanes from an address on.
    pub(super) fn read(&self, from: Val, kind: Kind) -> Result<Val> {
        let (ir, lanes) = (&self.emitter.ir, self.emitter.lanes);
        Ok(match self.cut {
            None => ir.load(from, kind, lanes),
            Some((mask, _)) if kind.bytes() >= 4 => ir.masked_load(from, mask, kind, lanes),
            Some((_, left)) => {
                let buffer = self.emitter.buffer(0)?;
                self.copy(from, buffer, left, kind)?;
                ir.load(buffer, kind, lanes)
            }
        })
    }

    /// Lanes that lie apart, one by one. Lanes that do not exist read the last one that does.
    fn gather(&self, input: usize, start: Val, kind: Kind) -> Val {
        let ir = &self.emitter.ir;
        let rank = self.emitter.plan.extents.len();
        let stride = self.emitter.word(self.emitter.layout.input_word(input) + rank);
        let mut lanes = Vec::new();
        for lane in 0..self.emitter.lanes {
            let mut index = self.emitter.long(i64::from(lane));
            if let Some((_, left)) = self.cut {
                let last = ir.sub(left, self.emitter.long(1));
                index = ir.select(ir.icmp(LLVMIntSLT, index, left), index, last);
            }
            let bytes = ir.mul(ir.add(self.element, index), stride);
            lanes.push(ir.load(ir.offset(start, bytes), kind, 1));
        }
        ir.vector(kind, &lanes)
    }

    /// Lanes of a counter.
    pub fn count(&self, counter: usize) -> Result<Val> {
        let (ir, lanes) = (&self.emitter.ir, self.emitter.lanes);
        let source = &self.emitter.plan.counters[counter];
        let rank = self.emitter.plan.extents.len();
        let stride = self
            .emitter
            .word(self.emitter.layout.counter_word(counter) + rank);
        let start = self.row.counters[counter].ok_or_else(|| status!(Internal, "a counter has no start"))?;
        let first = ir.trunc(ir.add(start, ir.mul(self.element, stride)), Kind::I32, 1);
        let stride = ir.splat(ir.trunc(stride, Kind::I32, 1), Kind::I32, lanes);
        let steps = ir.mul(ir.steps(Kind::I32, lanes), stride);
        let count = ir.add(ir.splat(first, Kind::I32, lanes), steps);
        self.emitter.counted(count, source.dtype, lanes)
    }

    /// The address of an output.
    fn output(&self, output: usize, kind: Kind) -> Val {
        let ir = &self.emitter.ir;
        let bytes = ir.mul(self.element, self.emitter.long(i64::from(kind.bytes())));
        ir.offset(self.row.outputs[output], bytes)
    }

    /// Combines lanes with those of an output that sums columns, which lie as they are computed.
    pub fn accumulate(&self, output: usize, value: Val) -> Result<()> {
        let (ir, lanes) = (&self.emitter.ir, self.emitter.lanes);
        let source = &self.emitter.plan.outputs[output];
        let NodeKind::Columns(opcode) = self.emitter.plan.nodes[source.node].kind else {
            bail!(Internal, "a kernel sums columns of what has none");
        };
        let computed = computed(source.dtype)?;
        let kind = in_memory(computed);
        let place = self.output(output, kind);
        let before = self.emitter.of_memory(self.read(place, kind)?, computed, lanes);
        let sum = elementwise::combine(ir, opcode, source.dtype, before, value, lanes)?;
        self.write(self.emitter.to_memory(sum, computed, lanes), place, kind)
    }

    /// Writes lanes of an output.
    pub fn store(&self, output: usize, value: Val) -> Result<()> {
        let (ir, lanes) = (&self.emitter.ir, self.emitter.lanes);
        let dtype = self.emitter.plan.outputs[output].dtype;
        let kind = stored(dtype)?;
        let raw = elementwise::narrow(ir, dtype, value, lanes);
        self.write(raw, self.output(output, kind), kind)
    }

    /// Writes lanes from an address on.
    fn write(&self, raw: Val, to: Val, kind: Kind) -> Result<()> {
        let (ir, lanes) = (&self.emitter.ir, self.emitter.lanes);
        match self.cut {
            None => ir.store(raw, to, kind),
            Some((mask, _)) if kind.bytes() >= 4 => ir.masked_store(raw, to, mask, kind, lanes),
            Some((_, left)) => {
                let buffer = self.emitter.buffer(0)?;
                ir.store(raw, buffer, kind);
                self.copy(buffer, to, left, kind)?;
            }
        }
        Ok(())
    }

    /// Copies elements one by one.
    fn copy(&self, from: Val, to: Val, count: Val, kind: Kind) -> Result<()> {
        let ir = &self.emitter.ir;
        let size = self.emitter.long(i64::from(kind.bytes()));
        ir.count_loop((self.emitter.long(0), count, 1), &[], &mut |index, _| {
            let bytes = ir.mul(index, size);
            let element = ir.load(ir.offset(from, bytes), kind, 1);
            ir.store(element, ir.offset(to, bytes), kind);
            Ok(Vec::new())
        })?;
        Ok(())
    }
}
