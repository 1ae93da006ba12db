//! Rows: where their elements lie, and the values that are the same all along them.

use super::Emitter;
use crate::llvm::elementwise::{self, computed, stored};
use crate::llvm::ir::{Kind, Val};
use crate::llvm::reads::RowRead;
use ff_hlo::fusion::{Level, NodeKind};
use ff_tensor::{Result, status};

/// What is known in a row.
pub struct Row {
    /// The first element of each input.
    pub inputs: Vec<Option<Val>>,
    /// The first value of each counter.
    pub counters: Vec<Option<Val>>,
    pub outputs: Vec<Val>,
    pub reads: Vec<Option<RowRead>>,
    /// Values of constants, of the row, and of wide inputs that are the same all along it.
    pub scalars: Vec<Option<Val>>,
    pub first: Val,
    pub end: Val,
}

impl Emitter<'_, '_> {
    /// The index along each outer axis.
    fn coordinates(&self, row: Val) -> Vec<Val> {
        let outer = self.plan.extents.len() - 1;
        let mut coordinates = vec![row; outer];
        let mut rest = row;
        for axis in (1..outer).rev() {
            let extent = self.word(self.layout.extent_word(axis));
            let quotient = self.ir.udiv(rest, extent);
            coordinates[axis] = self.ir.sub(rest, self.ir.mul(quotient, extent));
            rest = quotient;
        }
        if outer > 0 {
            coordinates[0] = rest;
        }
        coordinates
    }

    /// `first + sum(coordinate * stride)` for a table of a first value and strides.
    pub(in crate::llvm) fn along(&self, word: usize, coordinates: &[Val]) -> Val {
        let ir = &self.ir;
        let mut sum = self.long(0);
        for (axis, &coordinate) in coordinates.iter().enumerate() {
            sum = ir.add(sum, ir.mul(coordinate, self.word(word + 1 + axis)));
        }
        sum
    }

    pub(in crate::llvm) fn inner_stride(&self, strides: &[isize]) -> isize {
        strides.last().copied().unwrap_or(0)
    }

    /// Everything of one row.
    pub(super) fn row(&self, row: Val, first: Val, end: Val, scalars: Vec<Option<Val>>) -> Result<()> {
        let ir = &self.ir;
        let coordinates = self.coordinates(row);
        let mut known = Row {
            inputs: vec![None; self.plan.inputs.len()],
            counters: vec![None; self.plan.counters.len()],
            outputs: Vec::new(),
            reads: vec![None; self.plan.reads.len()],
            scalars,
            first,
            end,
        };
        for (number, output) in self.plan.outputs.iter().enumerate() {
            let base = self.pointer_word(self.layout.output_word(number));
            let size = i64::from(stored(output.dtype)?.bytes());
            let elements = match output.level {
                Level::Wide => ir.mul(row, self.row_length),
                Level::Column => self.long(0),
                _ => row,
            };
            known
                .outputs
                .push(ir.offset(base, ir.mul(elements, self.long(size))));
        }
        for (number, node) in self.plan.nodes.iter().enumerate() {
            self.row_source(&mut known, number, &node.kind, &coordinates)?;
        }
        self.narrow(&mut known, 0)?;
        for at in 0..self.stages.len() {
            self.stage(&mut known, at)?;
            self.narrow(&mut known, at + 1)?;
        }
        for (number, output) in self.plan.outputs.iter().enumerate() {
            if output.level == Level::Narrow {
                let value = known.scalars[output.node]
                    .ok_or_else(|| status!(Internal, "a kernel does not compute its output"))?;
                let raw = elementwise::narrow(ir, output.dtype, value, 1);
                ir.store(raw, known.outputs[number], stored(output.dtype)?);
            }
        }
        Ok(())
    }

    /// The place of an input or counter in this row, and its value if it is the same all along the row.
    fn row_source(&self, row: &mut Row, number: usize, kind: &NodeKind, coordinates: &[Val]) -> Result<()> {
        let ir = &self.ir;
        match *kind {
            NodeKind::Load(input) => {
                let word = self.layout.input_word(input);
                let source = &self.plan.inputs[input];
                let place = ir.offset(self.pointer_word(word), self.along(word, coordinates));
                row.inputs[input] = Some(place);
                if self.inner_stride(&source.strides) == 0 {
                    let raw = ir.load(place, stored(source.dtype)?, 1);
                    row.scalars[number] = Some(elementwise::widen(ir, source.dtype, raw, 1));
                }
            }
            NodeKind::Read(read) => row.reads[read] = Some(self.row_read(row, number, read, coordinates)?),
            NodeKind::Random(_, counter) => {
                row.counters[counter] = Some(self.row_counter(counter, coordinates));
            }
            NodeKind::Counter(counter) => {
                let source = &self.plan.counters[counter];
                let value = self.row_counter(counter, coordinates);
                row.counters[counter] = Some(value);
                if self.inner_stride(&source.strides) == 0 {
                    let value = ir.trunc(value, Kind::I32, 1);
                    row.scalars[number] = Some(self.counted(value, source.dtype, 1)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The value of a counter at the start of a row.
    pub(in crate::llvm) fn row_counter(&self, counter: usize, coordinates: &[Val]) -> Val {
        let word = self.layout.counter_word(counter);
        self.ir.add(self.word(word), self.along(word, coordinates))
    }

    /// A count, which fits 31 bits, as an element of a type.
    pub(in crate::llvm) fn counted(&self, count: Val, dtype: ff_tensor::DataType, lanes: u32) -> Result<Val> {
        let ir = &self.ir;
        Ok(match computed(dtype)? {
            Kind::I32 => count,
            kind @ (Kind::F32 | Kind::F64) => {
                elementwise::rounded(ir, dtype, ir.sitofp(count, kind, lanes), lanes)
            }
            Kind::I64 => ir.zext(count, Kind::I64, lanes),
            kind => ir.trunc(count, kind, lanes),
        })
    }

    /// The values of rows that so many reductions come before.
    pub(super) fn narrow(&self, row: &mut Row, depth: usize) -> Result<()> {
        for (number, node) in self.plan.nodes.iter().enumerate() {
            let wanted = node.level == Level::Narrow && self.depths[number] == depth;
            if wanted && matches!(node.kind, NodeKind::Map(..)) {
                row.scalars[number] = Some(self.map(number, &row.scalars, 1)?);
            }
        }
        Ok(())
    }
}
