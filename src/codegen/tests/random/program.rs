//! Random programs: elementwise instructions, views, random bits, reductions, and moves of elements, of arrays of one shape.

use crate::Random;
use ff_hlo::{Builder, Direction, HloShape, Module, Op, Opcode, RngAlgorithm};
use ff_tensor::{DataType, Result};

pub const TYPES: &[DataType] = &[
    DataType::FLOAT,
    DataType::FLOAT,
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::HALF,
    DataType::BFLOAT16,
    DataType::INT32,
    DataType::INT64,
    DataType::INT8,
    DataType::UINT8,
    DataType::INT16,
    DataType::UINT16,
    DataType::UINT32,
    DataType::UINT64,
    DataType::BOOL,
];

const FLOAT_UNARY: &[Opcode] = &[
    Opcode::Abs,
    Opcode::Acos,
    Opcode::Acosh,
    Opcode::Asin,
    Opcode::Asinh,
    Opcode::Atanh,
    Opcode::Ceil,
    Opcode::Cosh,
    Opcode::Cosine,
    Opcode::Sinh,
    Opcode::Erf,
    Opcode::Erfc,
    Opcode::Exponential,
    Opcode::ExponentialMinusOne,
    Opcode::Floor,
    Opcode::Log,
    Opcode::LogPlusOne,
    Opcode::Logistic,
    Opcode::Negate,
    Opcode::RoundNearestAfz,
    Opcode::RoundNearestEven,
    Opcode::Rsqrt,
    Opcode::Sign,
    Opcode::Sine,
    Opcode::Sqrt,
    Opcode::Tan,
    Opcode::Tanh,
    Opcode::Atan,
];

const FLOAT_BINARY: &[Opcode] = &[
    Opcode::Add,
    Opcode::Add,
    Opcode::Atan2,
    Opcode::Divide,
    Opcode::Maximum,
    Opcode::Minimum,
    Opcode::Multiply,
    Opcode::Multiply,
    Opcode::Power,
    Opcode::Remainder,
    Opcode::Subtract,
];

const INTEGER_UNARY: &[Opcode] = &[
    Opcode::Abs,
    Opcode::CountLeadingZeros,
    Opcode::Negate,
    Opcode::Not,
    Opcode::Popcnt,
    Opcode::Sign,
];

const INTEGER_BINARY: &[Opcode] = &[
    Opcode::Add,
    Opcode::And,
    Opcode::Divide,
    Opcode::Maximum,
    Opcode::Minimum,
    Opcode::Multiply,
    Opcode::Or,
    Opcode::Power,
    Opcode::Remainder,
    Opcode::ShiftLeft,
    Opcode::ShiftRightArithmetic,
    Opcode::ShiftRightLogical,
    Opcode::Subtract,
    Opcode::Xor,
];

const DIRECTIONS: &[Direction] = &[
    Direction::Eq,
    Direction::Ne,
    Direction::Lt,
    Direction::Le,
    Direction::Gt,
    Direction::Ge,
];

/// A program being made.
pub struct Maker<'r> {
    pub random: &'r mut Random,
    pub b: Builder,
    pub values: Vec<Op>,
    inputs: Parameters,
}

impl Maker<'_> {
    pub fn input(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let number = self.inputs.len();
        self.inputs.push((dtype, dims.to_vec()));
        self.b.parameter(number, HloShape::array(dtype, dims), "x")
    }

    /// An earlier value of a type and of extents, or a new one.
    pub fn value(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let fitting: Vec<Op> = self
            .values
            .iter()
            .copied()
            .filter(|&value| self.b.dtype(value) == dtype && self.b.dims(value) == dims)
            .collect();
        if !fitting.is_empty() && self.random.next(8) > 0 {
            return Ok(self.random.pick(&fitting));
        }
        let op = self.source(dtype, dims)?;
        self.values.push(op);
        Ok(op)
    }

    /// A new value: an input, perhaps seen through a view, a counter, or a constant.
    fn source(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let rank = dims.len();
        if rank > 0 && self.random.next(3) == 0 {
            return self.moved(dtype, dims);
        }
        if matches!(dtype, DataType::UINT32 | DataType::UINT64) && self.random.next(3) == 0 {
            return self.bits(dtype, dims);
        }
        match self.random.next(9) {
            0 if dtype != DataType::BOOL && rank > 0 => {
                let axis = self.random.next(rank);
                self.b.iota(dtype, dims, axis)
            }
            1 if dtype != DataType::BOOL => {
                let like = self.input(dtype, dims)?;
                self.b.scalar_like(3.0, like)
            }
            2 if rank > 0 => {
                let from = self.random.next(rank);
                let row = self.input(dtype, &dims[from..])?;
                self.b.broadcast_to(row, dims)
            }
            3 if rank > 1 => {
                let column = self.input(dtype, &dims[..rank - 1])?;
                let axes: Vec<i64> = (0..rank as i64 - 1).collect();
                self.b.broadcast_in_dim(column, dims, &axes)
            }
            4 if rank > 1 => {
                let mut turned = dims.to_vec();
                turned.swap(rank - 1, rank - 2);
                let x = self.input(dtype, &turned)?;
                let mut axes: Vec<i64> = (0..rank as i64).collect();
                axes.swap(rank - 1, rank - 2);
                self.b.transpose(x, &axes)
            }
            5 if rank > 0 => {
                let x = self.input(dtype, dims)?;
                let axis = self.random.next(rank) as i64;
                self.b.reverse(x, &[axis])
            }
            6 if rank > 0 => {
                let wide: Vec<i64> = dims.iter().map(|&extent| 2 * extent + 1).collect();
                let x = self.input(dtype, &wide)?;
                let limit: Vec<i64> = dims.iter().map(|&extent| 2 * extent + 1).collect();
                self.b.slice(x, &vec![1; rank], &limit, &vec![2; rank])
            }
            7 => {
                let flat = self.input(dtype, &[dims.iter().product()])?;
                self.b.reshape(flat, dims)
            }
            _ => self.input(dtype, dims),
        }
    }

    /// Random bits, from the part of a generator's result or alone.
    fn bits(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let algorithm = self.random.pick(&[RngAlgorithm::Philox, RngAlgorithm::ThreeFry]);
        let state = self.input(DataType::UINT64, &[algorithm.state_words() as i64])?;
        if self.random.next(2) == 0 {
            return self.b.random_bits(algorithm, state, dtype, dims);
        }
        let both = self.b.rng_bit_generator(algorithm, state, dtype, dims)?;
        let next = self.b.get_tuple_element(both, 0)?;
        self.values.push(next);
        self.b.get_tuple_element(both, 1)
    }

    fn instruction(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let x = self.value(dtype, dims)?;
        match self.random.next(12) {
            0 => {
                let other = self.random.pick(TYPES);
                let y = self.value(other, dims)?;
                self.b.convert(y, dtype)
            }
            1 => {
                let other = self.random.pick(TYPES);
                let (y, z) = (self.value(other, dims)?, self.value(other, dims)?);
                let direction = self.random.pick(DIRECTIONS);
                let condition = self.b.compare(direction, y, z)?;
                let w = self.value(dtype, dims)?;
                self.values.push(condition);
                self.b.select(condition, x, w)
            }
            2 | 3 if !dims.is_empty() => self.rows(x, dims),
            4 if dtype != DataType::BOOL => {
                let (low, high) = (self.value(dtype, dims)?, self.value(dtype, dims)?);
                self.b
                    .emit(Opcode::Clamp, &[low, x, high], ff_hlo::Attributes::None)
            }
            5..8 if dtype == DataType::BOOL => self.b.unary(Opcode::Not, x),
            5..8 if dtype.is_floating() => {
                let opcode = self.random.pick(FLOAT_UNARY);
                self.b.unary(opcode, x)
            }
            5..8 => {
                let opcode = self.random.pick(INTEGER_UNARY);
                self.b.unary(opcode, x)
            }
            _ => {
                let y = self.value(dtype, dims)?;
                let opcode = if dtype == DataType::BOOL {
                    self.random.pick(&[Opcode::And, Opcode::Or, Opcode::Xor])
                } else if dtype.is_floating() {
                    self.random.pick(FLOAT_BINARY)
                } else {
                    self.random.pick(INTEGER_BINARY)
                };
                self.b.binary(opcode, x, y)
            }
        }
    }

    /// A reduction, and what it is spread over.
    fn rows(&mut self, x: Op, dims: &[i64]) -> Result<Op> {
        let rank = dims.len() as i64;
        let axes: Vec<i64> = match self.random.next(4) {
            0 => (0..rank).collect(),
            1 => vec![0],
            2 if rank == 3 => vec![1],
            _ => vec![rank - 1],
        };
        let total = match self.random.next(4) {
            way if self.b.dtype(x) == DataType::BOOL => {
                let any = self.b.reduce_by([Opcode::And, Opcode::Or][way % 2], x, &axes)?;
                let wide = self.b.broadcast_reduced(any, dims, &axes)?;
                self.values.push(any);
                return self.b.binary(Opcode::Xor, x, wide);
            }
            0 => self.b.reduce_max(x, &axes)?,
            1 => self.b.reduce_min(x, &axes)?,
            _ => self.b.reduce_sum(x, &axes)?,
        };
        let small = self.b.dims(total).to_vec();
        let dtype = self.b.dtype(total);
        let factor = self.value(dtype, &small)?;
        let scaled = self.b.multiply(total, factor)?;
        self.values.push(scaled);
        let wide = self.b.broadcast_reduced(scaled, dims, &axes)?;
        self.b.subtract(x, wide)
    }
}

/// Types and extents of the parameters.
type Parameters = Vec<(DataType, Vec<i64>)>;

pub fn program(random: &mut Random) -> Result<(Module, Parameters)> {
    let shapes: &[&[i64]] = &[
        &[],
        &[1],
        &[7],
        &[100],
        &[3, 5],
        &[5, 70],
        &[2, 3, 33],
        &[64, 9],
        &[2, 130],
        &[4, 1, 16],
        &[3, 40, 2],
        &[1, 1000],
        &[300, 6],
        &[2, 200, 5],
    ];
    let dims = random.pick(shapes);
    let count = 3 + random.next(14);
    let mut maker = Maker {
        random,
        b: Builder::new("random"),
        values: Vec::new(),
        inputs: Vec::new(),
    };
    let main = maker.random.pick(TYPES);
    for _ in 0..count {
        let dtype = if maker.random.next(4) == 0 {
            maker.random.pick(TYPES)
        } else {
            main
        };
        let value = maker.instruction(dtype, dims)?;
        maker.values.push(value);
    }
    let results = maker.values.len().min(1 + maker.random.next(3));
    let mut roots: Vec<Op> = vec![maker.values[maker.values.len() - 1]];
    for _ in 1..results {
        let root = maker.values[maker.random.next(maker.values.len())];
        roots.push(root);
    }
    let root = maker.b.tuple(&roots)?;
    Ok((maker.b.finish(root)?, maker.inputs))
}
