//! Random programs: what is compiled has the bits of what the evaluator computes, but for the payload of NaN.
//!
//! `FF_RANDOM_PROGRAMS=100000 cargo test -p ff-codegen --test random --release` runs more of them; `FF_RANDOM_SEED` says
//! where they start.

#![cfg(feature = "llvm")]

use ff_codegen::{Compiler, compile};
use ff_hlo::{Builder, Direction, HloShape, Module, Op, Opcode, Program, print};
use ff_kernels::ThreadPool;
use ff_tensor::{DataType, Result, Shape, Tensor};

/// A small generator of its own (xorshift): tests are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next(from.len())]
    }
}

const TYPES: &[DataType] = &[
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
    Opcode::Ceil,
    Opcode::Cosine,
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
struct Maker<'r> {
    random: &'r mut Random,
    b: Builder,
    values: Vec<Op>,
    inputs: Parameters,
}

impl Maker<'_> {
    fn input(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
        let number = self.inputs.len();
        self.inputs.push((dtype, dims.to_vec()));
        self.b.parameter(number, HloShape::array(dtype, dims), "x")
    }

    /// An earlier value of a type and of extents, or a new one.
    fn value(&mut self, dtype: DataType, dims: &[i64]) -> Result<Op> {
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
            2 if !dims.is_empty() && dtype != DataType::BOOL => self.rows(x, dims),
            3 if !dims.is_empty() && dtype != DataType::BOOL => self.rows(x, dims),
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

fn program(random: &mut Random) -> Result<(Module, Parameters)> {
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

fn input(random: &mut Random, dtype: DataType, dims: &[i64]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, Shape::new(dims).unwrap()).unwrap();
    let size = dtype.size();
    for element in tensor.bytes_mut().unwrap().chunks_exact_mut(size) {
        let small = random.next(4001) as f64 / 500.0 - 4.0;
        match dtype {
            DataType::FLOAT if random.next(16) == 0 => {
                let odd = random.pick(&[0.0, -0.0, f32::INFINITY, f32::NAN, 1e-40, 3e38, 1e10, -1e10]);
                element.copy_from_slice(&odd.to_ne_bytes());
            }
            DataType::FLOAT => element.copy_from_slice(&(small as f32).to_ne_bytes()),
            DataType::DOUBLE if random.next(16) == 0 => {
                let odd = random.pick(&[
                    0.0,
                    -0.0,
                    f64::INFINITY,
                    f64::NAN,
                    1e-310,
                    1e308,
                    1e10,
                    -1e10,
                    700.0,
                    -0.1,
                ]);
                element.copy_from_slice(&odd.to_ne_bytes());
            }
            DataType::DOUBLE => element.copy_from_slice(&small.to_ne_bytes()),
            DataType::BFLOAT16 => {
                element.copy_from_slice(&((small as f32).to_bits() >> 16).to_ne_bytes()[..2])
            }
            DataType::HALF => {
                let bits = 0x3000 + random.next(0x1400) as u16 + ((random.next(2) as u16) << 15);
                element.copy_from_slice(&bits.to_ne_bytes());
            }
            DataType::BOOL => element[0] = random.next(2) as u8,
            _ if random.next(4) == 0 => element.iter_mut().for_each(|byte| *byte = random.next(256) as u8),
            _ => element[0] = random.next(20) as u8,
        }
    }
    tensor
}

/// The bits of a tensor with one pattern for all that is not a number.
fn bits(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = tensor.bytes().to_vec();
    let size = tensor.dtype().size();
    for element in bytes.chunks_exact_mut(size) {
        let nan = match tensor.dtype() {
            DataType::FLOAT => f32::from_ne_bytes(element.try_into().unwrap()).is_nan(),
            DataType::DOUBLE => f64::from_ne_bytes(element.try_into().unwrap()).is_nan(),
            DataType::HALF => u16::from_ne_bytes(element.try_into().unwrap()) & 0x7fff > 0x7c00,
            DataType::BFLOAT16 => u16::from_ne_bytes(element.try_into().unwrap()) & 0x7fff > 0x7f80,
            _ => false,
        };
        if nan {
            element.fill(0xff);
        }
    }
    bytes
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(otherwise)
}

#[test]
fn compiled_programs_have_the_evaluators_bits() {
    let (count, seed) = (number("FF_RANDOM_PROGRAMS", 1500), number("FF_RANDOM_SEED", 1));
    let compiler = Compiler::new(16 << 20, None);
    let pool = ThreadPool::new(2);
    for round in 0..count {
        let mut random = Random((seed + round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        random.next(2);
        let Ok((module, shapes)) = program(&mut random) else {
            continue;
        };
        let inputs: Vec<Tensor> = shapes
            .iter()
            .map(|(dtype, dims)| input(&mut random, *dtype, dims))
            .collect();
        let owned = || {
            inputs
                .iter()
                .map(|input| input.deep_copy().unwrap())
                .collect::<Vec<_>>()
        };
        let Ok(evaluated) = Program::compile(&module) else {
            continue;
        };
        let expected = evaluated.run(&pool, owned()).unwrap();
        let program = compile(&module, &compiler).unwrap();
        let computed = program.run(&pool, owned()).unwrap();
        for (index, (a, b)) in computed.iter().zip(&expected).enumerate() {
            assert!(
                bits(a) == bits(b),
                "program {round}, result {index}\n{}\n{a:?}\n{b:?}",
                print(&module)
            );
        }
    }
    assert!(count < 1000 || compiler.num_compiled() > 100);
}
