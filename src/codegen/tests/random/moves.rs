//! Instructions that move elements in ways that are no views.

use crate::program::Maker;
use ff_hlo::{GatherDims, Op, PadConfig, PadDimension};
use ff_tensor::{DataType, Result};

const INDEX_TYPES: &[DataType] = &[
    DataType::INT32,
    DataType::INT64,
    DataType::UINT8,
    DataType::UINT64,
    DataType::INT8,
];

impl Maker<'_> {
    /// Extents of something that is moved to become these: an input, or a value that is computed.
    fn moving(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        match self.random.next(4) {
            0 => {
                let x = self.input(dtype, dims)?;
                let axis = self.random.next(dims.len()) as i64;
                self.b.reverse(x, &[axis])
            }
            1 => {
                let (x, y) = (self.input(dtype, dims)?, self.input(dtype, dims)?);
                self.b.binary(ff_hlo::Opcode::Maximum, x, y)
            }
            _ => self.input(dtype, dims),
        }
    }

    /// A value of these extents whose elements come from elsewhere.
    pub fn moved(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        match self.random.next(6) {
            0 => self.padded(dtype, dims),
            1 => self.concatenated(dtype, dims),
            2 => self.sliced(dtype, dims),
            3 => self.updated(dtype, dims),
            _ => self.gathered(dtype, dims),
        }
    }

    fn padded(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let (mut from, mut config) = (dims.to_vec(), PadConfig::new());
        for extent in &mut from {
            let mut pad = PadDimension::default();
            if self.random.next(2) == 0 {
                pad.interior = [0, 0, 0, 1, 2][self.random.next(5)];
                pad.low = self.random.next(5) as i64 - 2;
                let step = pad.interior + 1;
                let inner = 1 + self.random.next((*extent as usize).div_ceil(step as usize) + 1) as i64;
                pad.high = *extent - pad.low - ((inner - 1) * step + 1);
                *extent = inner;
            }
            config.push(pad);
        }
        let x = self.moving(dtype, &from)?;
        let value = self.input(dtype, &[])?;
        self.b.pad(x, value, config)
    }

    fn concatenated(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let axis = self.random.next(dims.len());
        let mut left = dims[axis];
        let mut parts = Vec::new();
        while left > 0 {
            let extent = 1 + self.random.next(left as usize) as i64;
            let mut part = dims.to_vec();
            part[axis] = extent;
            parts.push(self.moving(dtype, &part)?);
            left -= extent;
        }
        self.b.concatenate(&parts, axis)
    }

    fn starts(&mut self, count: usize) -> Result<Vec<Op>> {
        let dtype = self.random.pick(INDEX_TYPES);
        (0..count).map(|_| self.input(dtype, &[])).collect()
    }

    fn sliced(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let mut from = dims.to_vec();
        for extent in &mut from {
            *extent += self.random.next(4) as i64;
        }
        let x = self.moving(dtype, &from)?;
        let starts = self.starts(dims.len())?;
        self.b.dynamic_slice(x, &starts, dims)
    }

    fn updated(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let mut part = dims.to_vec();
        for extent in &mut part {
            *extent = 1 + self.random.next(*extent as usize) as i64;
        }
        let x = self.moving(dtype, dims)?;
        let update = self.moving(dtype, &part)?;
        let starts = self.starts(dims.len())?;
        self.b.dynamic_update_slice(x, update, &starts)
    }

    /// Rows of a table, or parts of them, by one index or two.
    fn gathered(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let rank = dims.len();
        let batch = 1 + self.random.next(rank);
        let components = 1 + self.random.next(2);
        let index_type = self.random.pick(INDEX_TYPES);
        let mut index_dims = dims[..batch].to_vec();
        if components > 1 || self.random.next(2) == 0 {
            index_dims.push(components as i64);
        }
        let indices = self.moving(index_type, &index_dims)?;
        // The operand: the axes that indices mean, then those of the slices, which may be cut.
        let mut from: Vec<i64> = (0..components).map(|_| 1 + self.random.next(12) as i64).collect();
        let mut sizes = vec![1; components];
        for &extent in &dims[batch..] {
            from.push(extent + self.random.next(2) as i64);
            sizes.push(extent);
        }
        let x = self.moving(dtype, &from)?;
        self.b.gather(
            x,
            indices,
            GatherDims {
                offset_dims: (batch as i64..rank as i64).collect(),
                collapsed_slice_dims: (0..components as i64).collect(),
                start_index_map: (0..components as i64).collect(),
                index_vector_dim: batch as i64,
                slice_sizes: sizes.into_iter().collect(),
                ..GatherDims::default()
            },
        )
    }
}
