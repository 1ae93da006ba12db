//! The code of reductions along rows: in 32 lanes side by side, combined in halves, as `ff_kernels::reduce` makes them, or
//! one element after another for short rows.

use super::elementwise::{self, computed};
use super::fusion::{Emitter, Row, in_memory};
use super::ir::{Kind, Val};
use crate::stages::Stage;
use ff_hlo::fusion::NodeKind;
use ff_tensor::{Result, bail, status};
use llvm_sys::LLVMIntPredicate::*;

/// Elements that `ff_kernels::reduce` folds side by side.
pub(super) const REDUCE_LANES: u32 = 32;
/// Rows below this are folded one element after another.
pub(super) const SHORT_ROW: i64 = 64;

impl Emitter<'_, '_> {
    /// The start of each reduction, in `count` vectors.
    pub(super) fn starts(&self, stage: &Stage, count: u32, lanes: u32) -> Result<Vec<(Val, Kind, u32)>> {
        let mut starts = Vec::new();
        for &number in &stage.reductions {
            let (opcode, dtype) = self.reduction(number)?;
            let start = elementwise::neutral(&self.ir, opcode, dtype, lanes)?;
            for _ in 0..count {
                starts.push((start, computed(dtype)?, lanes));
            }
        }
        Ok(starts)
    }

    fn reduction(&self, number: usize) -> Result<(ff_hlo::Opcode, ff_tensor::DataType)> {
        let node = &self.plan.nodes[number];
        match node.kind {
            NodeKind::Reduce(opcode) => Ok((opcode, node.dtype)),
            _ => bail!(Internal, "a kernel reduces what is no reduction"),
        }
    }

    pub(super) fn combined(
        &self,
        stage: &Stage,
        sums: &[Val],
        values: &[Val],
        lanes: u32,
    ) -> Result<Vec<Val>> {
        let mut out = Vec::with_capacity(sums.len());
        for ((&number, &sum), &value) in stage.reductions.iter().zip(sums).zip(values) {
            let (opcode, dtype) = self.reduction(number)?;
            out.push(elementwise::combine(&self.ir, opcode, dtype, sum, value, lanes)?);
        }
        Ok(out)
    }

    /// A total as an element of its type.
    pub(super) fn finished(&self, number: usize, total: Val) -> Val {
        elementwise::rounded(&self.ir, self.plan.nodes[number].dtype, total, 1)
    }

    /// 32 lanes side by side; what is left, and short rows, by way of memory.
    pub(super) fn reducing_stage(&self, row: &mut Row, stage: &Stage, values: &[Option<Val>]) -> Result<()> {
        let (ir, lanes) = (&self.ir, self.lanes);
        let parts = REDUCE_LANES / lanes;
        let long_row = ir.icmp(LLVMIntSGE, self.row_length, self.long(SHORT_ROW));
        let whole = ir.and(self.row_length, self.long(!(i64::from(REDUCE_LANES) - 1)));
        let middle = ir.select(long_row, whole, self.long(0));
        let starts = self.starts(stage, parts, lanes)?;
        let span = i64::from(REDUCE_LANES);
        let sums = ir.count_loop((self.long(0), middle, span), &starts, &mut |element, sums| {
            let mut next = vec![self.long(0); sums.len()];
            for part in 0..parts {
                let at = ir.add(element, self.long(i64::from(part * lanes)));
                let operands = self.body(row, stage, values, at, None)?;
                let pick = |reduction: usize| reduction * parts as usize + part as usize;
                let before: Vec<Val> = (0..operands.len())
                    .map(|reduction| sums[pick(reduction)])
                    .collect();
                for (reduction, sum) in self
                    .combined(stage, &before, &operands, lanes)?
                    .into_iter()
                    .enumerate()
                {
                    next[pick(reduction)] = sum;
                }
            }
            Ok(next)
        })?;
        ir.count_loop(
            (middle, self.row_length, i64::from(lanes)),
            &[],
            &mut |element, _| {
                let operands = self.body(row, stage, values, element, Some(self.row_length))?;
                for (&number, value) in stage.reductions.iter().zip(operands) {
                    self.write_tail(number, ir.sub(element, middle), value)?;
                }
                Ok(Vec::new())
            },
        )?;
        let rest = ir.sub(self.row_length, middle);
        let (wide, short, after) = (ir.block(), ir.block(), ir.block());
        ir.branch(long_row, wide, short);
        ir.go(wide);
        let mut folded = Vec::new();
        for (reduction, &number) in stage.reductions.iter().enumerate() {
            let start = reduction * parts as usize;
            folded.push(self.fold_lanes(number, &sums[start..start + parts as usize], rest)?);
        }
        let wide = ir.here();
        ir.jump(after);
        ir.go(short);
        let starts = self.starts(stage, 1, 1)?;
        let serial = ir.count_loop((self.long(0), rest, 1), &starts, &mut |element, sums| {
            let mut operands = Vec::new();
            for &number in &stage.reductions {
                operands.push(self.read_tail(number, element, 1)?);
            }
            self.combined(stage, sums, &operands, 1)
        })?;
        let short = ir.here();
        ir.jump(after);
        ir.go(after);
        let mut totals = Vec::new();
        for (reduction, &number) in stage.reductions.iter().enumerate() {
            let total = ir.phi(computed(self.plan.nodes[number].dtype)?, 1);
            ir.incoming(total, folded[reduction], wide);
            ir.incoming(total, serial[reduction], short);
            totals.push((number, total));
        }
        for (number, total) in totals {
            row.scalars[number] = Some(self.finished(number, total));
        }
        Ok(())
    }

    fn tail(&self, number: usize, element: Val) -> Result<(Val, Kind)> {
        let base = self.tails[number].ok_or_else(|| status!(Internal, "a reduction has no memory"))?;
        let kind = in_memory(computed(self.plan.nodes[number].dtype)?);
        let bytes = self.ir.mul(element, self.long(i64::from(kind.bytes())));
        Ok((self.ir.offset(base, bytes), kind))
    }

    fn write_tail(&self, number: usize, element: Val, value: Val) -> Result<()> {
        let (place, kind) = self.tail(number, element)?;
        let raw = self.to_memory(value, computed(self.plan.nodes[number].dtype)?, self.lanes);
        self.ir.store(raw, place, kind);
        Ok(())
    }

    fn read_tail(&self, number: usize, element: Val, lanes: u32) -> Result<Val> {
        let (place, kind) = self.tail(number, element)?;
        let raw = self.ir.load(place, kind, lanes);
        Ok(self.of_memory(raw, computed(self.plan.nodes[number].dtype)?, lanes))
    }

    /// Adds the `rest` elements at the end of a long row to the lanes, then folds the lanes in halves.
    fn fold_lanes(&self, number: usize, sums: &[Val], rest: Val) -> Result<Val> {
        let (ir, lanes) = (&self.ir, self.lanes);
        let (opcode, dtype) = self.reduction(number)?;
        let mut vectors = Vec::new();
        for (part, &sum) in sums.iter().enumerate() {
            let start = self.long(i64::from(part as u32 * lanes));
            let value = self.read_tail(number, start, lanes)?;
            let more = elementwise::combine(ir, opcode, dtype, sum, value, lanes)?;
            let left = ir.trunc(ir.sub(rest, start), Kind::I32, 1);
            let inside = ir.icmp(
                LLVMIntSLT,
                ir.steps(Kind::I32, lanes),
                ir.splat(left, Kind::I32, lanes),
            );
            vectors.push(ir.select(inside, more, sum));
        }
        while vectors.len() > 1 {
            let upper = vectors.split_off(vectors.len() / 2);
            for (low, high) in vectors.iter_mut().zip(upper) {
                *low = elementwise::combine(ir, opcode, dtype, *low, high, lanes)?;
            }
        }
        let (mut value, mut width) = (vectors[0], lanes);
        while width > 1 {
            width /= 2;
            let (low, high) = (ir.part(value, 0, width), ir.part(value, width, width));
            value = elementwise::combine(ir, opcode, dtype, low, high, width)?;
        }
        Ok(value)
    }
}
