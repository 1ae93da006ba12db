//! Random elementwise programs: fused as a whole, and instruction by instruction, they agree on every bit.

use crate::evaluator::Program;
use crate::{Attributes, Builder, Direction, HloShape, InstructionId, Module, Op, Opcode};
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

    fn float(&mut self) -> f32 {
        self.next(4001) as f32 / 1000.0 - 2.0
    }
}

/// A program of `count` random instructions on arrays of `dims` and what broadcasts to them.
fn program(random: &mut Random, dtype: DataType, dims: &[i64], count: usize) -> Result<Module> {
    let mut b = Builder::new("random");
    let mut values: Vec<Op> = Vec::new();
    values.push(b.parameter(0, HloShape::array(dtype, dims), "x")?);
    values.push(b.parameter(1, HloShape::array(dtype, dims), "y")?);
    let row = b.parameter(2, HloShape::array(dtype, &dims[1..]), "row")?;
    values.push(b.broadcast_to(row, dims)?);
    values.push(b.iota(dtype, dims, random.next(dims.len()))?);
    values.push(b.scalar_like(1.5, values[0])?);
    let unary = [
        Opcode::Negate,
        Opcode::Abs,
        Opcode::Tanh,
        Opcode::Exponential,
        Opcode::Sine,
        Opcode::Floor,
    ];
    let binary = [
        Opcode::Add,
        Opcode::Subtract,
        Opcode::Multiply,
        Opcode::Maximum,
        Opcode::Divide,
    ];
    for _ in 0..count {
        let mut pick = || values[random.next(values.len())];
        let (x, y, z) = (pick(), pick(), pick());
        let value = match random.next(8) {
            0..3 => b.unary(unary[random.next(unary.len())], x)?,
            3..6 => b.binary(binary[random.next(binary.len())], x, y)?,
            6 => {
                let less = b.compare(Direction::Lt, x, y)?;
                b.select(less, z, x)?
            }
            _ => {
                let turned = b.reverse(x, &[0])?;
                b.add(turned, y)?
            }
        };
        values.push(value);
    }
    let root = b.tuple(&values[values.len() - 3..])?;
    b.finish(root)
}

/// Every instruction as a program of its own.
fn run_one_by_one(module: &Module, inputs: &[Tensor]) -> Vec<Tensor> {
    let computation = module.entry_computation();
    let mut values: Vec<Option<Tensor>> = Vec::new();
    for instruction in &computation.instructions {
        if instruction.opcode == Opcode::Tuple {
            break;
        }
        if let Attributes::Parameter(number) = instruction.attributes {
            values.push(Some(inputs[number].clone()));
            continue;
        }
        let mut single = module.clone();
        let entry = single.entry_computation_mut();
        entry.instructions.clear();
        entry.parameters.clear();
        let mut arguments = Vec::new();
        let mut copy = instruction.clone();
        for (number, operand) in copy.operands.iter_mut().enumerate() {
            let mut parameter = computation.instruction(*operand).clone();
            parameter.opcode = Opcode::Parameter;
            parameter.attributes = Attributes::Parameter(number);
            parameter.operands.clear();
            arguments.extend(values[operand.0 as usize].clone());
            entry.instructions.push(parameter);
            entry.parameters.push(InstructionId(number as u32));
            *operand = InstructionId(number as u32);
        }
        entry.root = InstructionId(entry.instructions.len() as u32);
        entry.instructions.push(copy);
        let program = Program::compile(&single).unwrap();
        values.push(program.run(ThreadPool::serial(), arguments).unwrap().pop());
    }
    let root = computation.root_instruction();
    root.operands
        .iter()
        .filter_map(|operand| values[operand.0 as usize].clone())
        .collect()
}

fn input(random: &mut Random, dtype: DataType, dims: &[i64]) -> Tensor {
    let shape = Shape::new(dims).unwrap();
    let values: Vec<f32> = (0..shape.num_elements()).map(|_| random.float()).collect();
    let single = Tensor::from_slice(shape, &values).unwrap();
    let mut b = Builder::new("convert");
    let x = b
        .parameter(0, HloShape::array(DataType::FLOAT, dims), "x")
        .unwrap();
    let root = b.convert(x, dtype).unwrap();
    let program = Program::compile(&b.finish(root).unwrap()).unwrap();
    program.run(ThreadPool::serial(), vec![single]).unwrap().remove(0)
}

#[test]
fn fused_and_unfused_agree_on_every_bit() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let pool = ThreadPool::new(2);
    for round in 0..40 {
        let dtype = [
            DataType::FLOAT,
            DataType::DOUBLE,
            DataType::BFLOAT16,
            DataType::HALF,
        ][round % 4];
        let dims = [[3, 5], [64, 33], [1, 1], [7, 700]][round / 4 % 4];
        let module = program(&mut random, dtype, &dims, 5 + round).unwrap();
        let inputs = [
            input(&mut random, dtype, &dims),
            input(&mut random, dtype, &dims),
            input(&mut random, dtype, &dims[1..]),
        ];
        let fused = Program::compile(&module).unwrap();
        let owned = inputs.iter().map(|input| input.deep_copy().unwrap()).collect();
        let together = fused.run(&pool, owned).unwrap();
        for (a, b) in together.iter().zip(run_one_by_one(&module, &inputs)) {
            assert!(a.bytes() == b.bytes(), "round {round}: {dtype} {dims:?}");
        }
    }
}

#[test]
fn reductions_in_fusions_keep_their_bits() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let pool = ThreadPool::new(2);
    let cases: &[(&[i64], &[i64])] = &[
        (&[37, 100], &[1]),
        (&[5, 6, 33], &[1]),
        (&[3, 5000], &[1]),
        (&[4, 1, 3, 5], &[2, 3]),
    ];
    for dtype in [DataType::FLOAT, DataType::HALF, DataType::DOUBLE] {
        for (dims, axes) in cases {
            let mut b = Builder::new("reductions");
            let x = b.parameter(0, HloShape::array(dtype, dims), "x").unwrap();
            let exp = b.unary(Opcode::Exponential, x).unwrap();
            let square = b.multiply(exp, x).unwrap();
            let sum = b.reduce_sum(exp, axes).unwrap();
            let squares = b.reduce_sum(square, axes).unwrap();
            let largest = b.reduce_max(square, axes).unwrap();
            let wide = b.broadcast_reduced(sum, dims, axes).unwrap();
            let share = b.divide(exp, wide).unwrap();
            let root = b.tuple(&[share, squares, largest]).unwrap();
            let module = b.finish(root).unwrap();
            let program = Program::compile(&module).unwrap();
            assert_eq!(program.num_steps(), 2);
            let input = input(&mut random, dtype, dims);
            let together = program.run(&pool, vec![input.deep_copy().unwrap()]).unwrap();
            for (a, b) in together.iter().zip(run_one_by_one(&module, &[input])) {
                assert!(a.bytes() == b.bytes(), "{dtype} {dims:?} {axes:?}");
            }
        }
    }
}
