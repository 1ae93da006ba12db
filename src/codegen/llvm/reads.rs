//! Reads at computed places: padding, parts of concatenations, dynamic slices, gathers.
//!
//! What is the same all along a row is computed once for it. Where neighbours along the row are neighbours in memory a
//! read is one (masked) load of a vector, if any of its lanes is there; elsewhere lanes are read one by one, and those that are not there from a place
//! that always is.

use super::elementwise::{self, computed, stored};
use super::fusion::{Emitter, Row};
use super::ir::{Kind, Val};
use super::lanes::Place;
use ff_tensor::{DataType, Result, status};
use llvm_sys::LLVMIntPredicate::*;

/// What is known of a read in a row.
#[derive(Clone)]
pub(super) struct RowRead {
    /// The address of the row's first element, for starts of zero where they change along the row.
    from: Val,
    /// Whether any element of the row is there, if some may not be.
    inside: Option<Val>,
    /// Starts that change along the row.
    starts: Vec<usize>,
    /// Checks that change along the row, and the place at its first element.
    checks: Vec<(usize, Val)>,
}

impl Emitter<'_, '_> {
    /// A start as a 64-bit integer between zero and its limit.
    fn held(&self, value: Val, dtype: DataType, limit: Val, lanes: u32) -> Result<Val> {
        let ir = &self.ir;
        let kind = computed(dtype)?;
        let signed = elementwise::is_signed(dtype);
        let wide = match kind {
            Kind::I64 => value,
            _ if signed => ir.sext(value, Kind::I64, lanes),
            _ => ir.zext(value, Kind::I64, lanes),
        };
        let zero = ir.int(Kind::I64, lanes, 0);
        let limit = ir.splat(limit, Kind::I64, lanes);
        let wide = if signed {
            ir.select(ir.icmp(LLVMIntSLT, wide, zero), zero, wide)
        } else {
            wide
        };
        Ok(ir.select(ir.icmp(LLVMIntULT, wide, limit), wide, limit))
    }

    /// The start of a read, in the elements of a place or of the row.
    fn start(&self, number: usize, (read, start): (usize, usize), value: Val, lanes: u32) -> Result<Val> {
        let operand = self.plan.nodes[number].operands[start];
        let limit = self.word(self.layout.start_word(read, start));
        self.held(value, self.plan.nodes[operand].dtype, limit, lanes)
    }

    /// What is known of a read in a row.
    pub(super) fn row_read(
        &self,
        row: &Row,
        number: usize,
        index: usize,
        coordinates: &[Val],
    ) -> Result<RowRead> {
        let ir = &self.ir;
        let read = &self.plan.reads[index];
        let word = self.layout.input_word(read.input);
        let mut known = RowRead {
            from: ir.offset(self.pointer_word(word), self.along(word, coordinates)),
            inside: None,
            starts: Vec::new(),
            checks: Vec::new(),
        };
        let mut starts = vec![None; read.starts.len()];
        for start in 0..read.starts.len() {
            let Some(value) = row.scalars[self.plan.nodes[number].operands[start]] else {
                known.starts.push(start);
                continue;
            };
            let value = self.start(number, (index, start), value, 1)?;
            let stride = self.word(self.layout.start_word(index, start) + 1);
            known.from = ir.offset(known.from, ir.mul(value, stride));
            starts[start] = Some(value);
        }
        for (number, check) in read.checks.iter().enumerate() {
            let mut place = self.row_counter(check.counter, coordinates);
            let start = check.start.map(|start| starts[start]);
            if let Some(Some(start)) = start {
                place = ir.sub(place, start);
            }
            let moves = self.inner_stride(&self.plan.counters[check.counter].strides) != 0;
            if moves || start == Some(None) {
                known.checks.push((number, place));
                continue;
            }
            let word = self.layout.check_word(index, number);
            let mut inside = ir.icmp(LLVMIntULT, place, self.word(word));
            if check.spread.is_some() {
                let spread = self.word(word + 1);
                let index = ir.udiv(place, spread);
                let exact = ir.icmp(LLVMIntEQ, ir.mul(index, spread), place);
                inside = ir.and(inside, exact);
                known.from = ir.offset(known.from, ir.mul(index, self.word(word + 2)));
            }
            known.inside = Some(known.inside.map_or(inside, |other| ir.and(other, inside)));
        }
        Ok(known)
    }
}

impl Place<'_, '_, '_> {
    /// Lanes of a read, given the values of its operands.
    pub fn read_at(&self, number: usize, index: usize, values: &[Option<Val>]) -> Result<Val> {
        let (emitter, ir, lanes) = (self.emitter, &self.emitter.ir, self.emitter.lanes);
        let read = &emitter.plan.reads[index];
        let source = &emitter.plan.inputs[read.input];
        let known = self.row.reads[index]
            .clone()
            .ok_or_else(|| status!(Internal, "a read has no row"))?;
        let otherwise = if read.otherwise {
            self.operand((number, read.starts.len()), values)?
        } else {
            elementwise::zero(ir, source.dtype, lanes)?
        };
        let is_inner = |&(check, _): &(usize, Val)| {
            let counter = read.checks[check].counter;
            emitter.plan.counters[counter].strides.last() == Some(&1)
        };
        let contiguous =
            source.strides.last() == Some(&1) && known.starts.is_empty() && known.checks.iter().all(is_inner);
        if lanes > 1 && contiguous {
            return self.neighbours(index, &known, otherwise);
        }
        let (offset, inside) = self.offsets((number, index), &known, values)?;
        let raw = self.one_by_one(known.from, offset, inside, stored(source.dtype)?);
        let value = elementwise::widen(ir, source.dtype, raw, lanes);
        Ok(match inside {
            None => value,
            Some(inside) => ir.select(inside, value, otherwise),
        })
    }

    fn operand(&self, (number, operand): (usize, usize), values: &[Option<Val>]) -> Result<Val> {
        let operand = self.emitter.plan.nodes[number].operands[operand];
        values[operand].ok_or_else(|| status!(Internal, "a read has no operands"))
    }

    /// Lanes that are neighbours in memory; nothing is read where none of them is there.
    fn neighbours(&self, index: usize, known: &RowRead, otherwise: Val) -> Result<Val> {
        let (emitter, ir, lanes) = (self.emitter, &self.emitter.ir, self.emitter.lanes);
        let source = &emitter.plan.inputs[emitter.plan.reads[index].input];
        let kind = stored(source.dtype)?;
        let size = emitter.long(i64::from(kind.bytes()));
        let from = ir.offset(known.from, ir.mul(self.element, size));
        let mut any = known.inside;
        let mut places = Vec::new();
        for &(check, first) in &known.checks {
            let bound = emitter.word(emitter.layout.check_word(index, check));
            let place = ir.add(first, self.element);
            let more = emitter.long(i64::from(lanes) - 1);
            let here = ir.icmp(LLVMIntULT, ir.add(place, more), ir.add(bound, more));
            any = Some(any.map_or(here, |any| ir.and(any, here)));
            places.push((place, bound));
        }
        let Some(any) = any else {
            let raw = self.read(from, kind)?;
            return Ok(elementwise::widen(ir, source.dtype, raw, lanes));
        };
        let (there, after) = (ir.block(), ir.block());
        let before = ir.here();
        ir.branch(any, there, after);
        ir.go(there);
        let mut mask = None;
        for (place, bound) in places {
            // Places are near their bounds here, and fit 32 bits.
            let spread = |x: Val| ir.splat(ir.trunc(x, Kind::I32, 1), Kind::I32, lanes);
            let place = ir.add(spread(place), ir.steps(Kind::I32, lanes));
            let here = ir.icmp(LLVMIntULT, place, spread(bound));
            mask = Some(mask.map_or(here, |mask| ir.and(mask, here)));
        }
        let raw = match mask {
            None => self.read(from, kind)?,
            Some(mask) => ir.masked_load(from, self.within(mask), kind, lanes),
        };
        let value = elementwise::widen(ir, source.dtype, raw, lanes);
        let value = mask.map_or(value, |mask| ir.select(mask, value, otherwise));
        let there = ir.here();
        ir.jump(after);
        ir.go(after);
        let chosen = ir.phi(computed(source.dtype)?, lanes);
        ir.incoming(chosen, otherwise, before);
        ir.incoming(chosen, value, there);
        Ok(chosen)
    }

    /// Bytes of each lane from the row's first element, and which lanes are there.
    fn offsets(
        &self,
        (number, index): (usize, usize),
        known: &RowRead,
        values: &[Option<Val>],
    ) -> Result<(Val, Option<Val>)> {
        let (emitter, ir, lanes) = (self.emitter, &self.emitter.ir, self.emitter.lanes);
        let read = &emitter.plan.reads[index];
        let rank = emitter.plan.extents.len();
        let splat = |x: Val| ir.splat(x, Kind::I64, lanes);
        let along = |word: usize| {
            let stride = emitter.word(word + rank);
            let steps = ir.mul(ir.steps(Kind::I64, lanes), splat(stride));
            ir.add(splat(ir.mul(self.element, stride)), steps)
        };
        let mut offset = along(emitter.layout.input_word(read.input));
        let mut starts = vec![None; read.starts.len()];
        for &start in &known.starts {
            let value = self.operand((number, start), values)?;
            let value = emitter.start(number, (index, start), value, lanes)?;
            let stride = emitter.word(emitter.layout.start_word(index, start) + 1);
            offset = ir.add(offset, ir.mul(value, splat(stride)));
            starts[start] = Some(value);
        }
        let mut inside = known.inside.map(|inside| ir.splat(inside, Kind::I1, lanes));
        for &(check, first) in &known.checks {
            let source = &read.checks[check];
            let mut place = ir.add(splat(first), along(emitter.layout.counter_word(source.counter)));
            if let Some(start) = source.start.and_then(|start| starts[start]) {
                place = ir.sub(place, start);
            }
            let bound = emitter.word(emitter.layout.check_word(index, check));
            let here = ir.icmp(LLVMIntULT, place, splat(bound));
            inside = Some(inside.map_or(here, |other| ir.and(other, here)));
        }
        Ok((offset, inside))
    }

    /// A mask without the lanes that are cut off.
    fn within(&self, mask: Val) -> Val {
        self.cut.map_or(mask, |(cut, _)| self.emitter.ir.and(mask, cut))
    }

    /// Lanes that lie so many bytes from an address; those outside of the mask from a place that is always there.
    fn one_by_one(&self, from: Val, offset: Val, mask: Option<Val>, kind: Kind) -> Val {
        let (emitter, ir, lanes) = (self.emitter, &self.emitter.ir, self.emitter.lanes);
        let mask = match (mask, self.cut) {
            (Some(mask), _) => Some(self.within(mask)),
            (None, cut) => cut.map(|(cut, _)| cut),
        };
        let pick = |vector: Val, lane: u32| {
            if lanes == 1 {
                vector
            } else {
                ir.part(vector, lane, 1)
            }
        };
        let mut elements = Vec::new();
        for lane in 0..lanes {
            let mut place = ir.offset(from, pick(offset, lane));
            if let Some(mask) = mask {
                place = ir.select(pick(mask, lane), place, emitter.words);
            }
            elements.push(ir.load(place, kind, 1));
        }
        ir.vector(kind, &elements)
    }
}
