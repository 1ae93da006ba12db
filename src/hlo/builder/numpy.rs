//! Helpers on top of the instructions: numpy broadcasting, constants like another value, common reductions and
//! compositions.

use super::{Builder, Op};
use crate::attributes::Direction;
use crate::module::ComputationId;
use crate::opcode::Opcode;
use crate::shape::{ArrayShape, Dims};
use ff_tensor::{
    Bool, Complex64, Complex128, DataType, Element, Result, Tensor, bail, bf16, ensure, f16, status,
};

/// Element types that a number literal can be written in.
pub trait FromF64: Element {
    /// The nearest value; integers are cut, truth values are `value != 0`.
    fn from_f64(value: f64) -> Self;
}

/// Implements [`FromF64`] by `as`.
macro_rules! from_f64 {
    ($($rust:ty),*) => {
        $(impl FromF64 for $rust { fn from_f64(value: f64) -> $rust { value as $rust } })*
    };
}

from_f64!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64);

impl FromF64 for f16 {
    fn from_f64(value: f64) -> f16 {
        f16::from_f64(value)
    }
}

impl FromF64 for bf16 {
    fn from_f64(value: f64) -> bf16 {
        bf16::from_f64(value)
    }
}

impl FromF64 for Bool {
    fn from_f64(value: f64) -> Bool {
        Bool::from(value != 0.0)
    }
}

impl FromF64 for Complex64 {
    fn from_f64(value: f64) -> Complex64 {
        Complex64::new(value as f32, 0.0)
    }
}

impl FromF64 for Complex128 {
    fn from_f64(value: f64) -> Complex128 {
        Complex128::new(value, 0.0)
    }
}

/// A scalar tensor of any number type from a literal. INVALID_ARGUMENT for other types.
pub fn scalar_tensor(dtype: DataType, value: f64) -> Result<Tensor> {
    match dtype {
        DataType::FLOAT => Tensor::scalar(f32::from_f64(value)),
        DataType::DOUBLE => Tensor::scalar(value),
        DataType::HALF => Tensor::scalar(f16::from_f64(value)),
        DataType::BFLOAT16 => Tensor::scalar(bf16::from_f64(value)),
        DataType::INT8 => Tensor::scalar(value as i8),
        DataType::INT16 => Tensor::scalar(value as i16),
        DataType::INT32 => Tensor::scalar(value as i32),
        DataType::INT64 => Tensor::scalar(value as i64),
        DataType::UINT8 => Tensor::scalar(value as u8),
        DataType::UINT16 => Tensor::scalar(value as u16),
        DataType::UINT32 => Tensor::scalar(value as u32),
        DataType::UINT64 => Tensor::scalar(value as u64),
        DataType::BOOL => Tensor::scalar(Bool::from_f64(value)),
        DataType::COMPLEX64 => Tensor::scalar(Complex64::from_f64(value)),
        DataType::COMPLEX128 => Tensor::scalar(Complex128::from_f64(value)),
        other => bail!(
            InvalidArgument,
            "No number of type {other} can be written as a literal"
        ),
    }
}

/// The identity of `minimum` (`largest`) or `maximum` in a type: infinity, or the end of the range.
fn extreme_tensor(dtype: DataType, largest: bool) -> Result<Tensor> {
    fn pick<T: Element>(low: T, high: T, largest: bool) -> Result<Tensor> {
        Tensor::scalar(if largest { high } else { low })
    }
    match dtype {
        DataType::INT8 => pick(i8::MIN, i8::MAX, largest),
        DataType::INT16 => pick(i16::MIN, i16::MAX, largest),
        DataType::INT32 => pick(i32::MIN, i32::MAX, largest),
        DataType::INT64 => pick(i64::MIN, i64::MAX, largest),
        DataType::UINT8 => pick(u8::MIN, u8::MAX, largest),
        DataType::UINT16 => pick(u16::MIN, u16::MAX, largest),
        DataType::UINT32 => pick(u32::MIN, u32::MAX, largest),
        DataType::UINT64 => pick(u64::MIN, u64::MAX, largest),
        DataType::BOOL => pick(Bool::FALSE, Bool::TRUE, largest),
        _ if dtype.is_floating() => {
            scalar_tensor(dtype, if largest { f64::INFINITY } else { f64::NEG_INFINITY })
        }
        other => bail!(InvalidArgument, "Type {other} has no order"),
    }
}

/// The value from which a reduction by an opcode starts. INVALID_ARGUMENT when there is none.
pub(crate) fn identity_tensor(opcode: Opcode, dtype: DataType) -> Result<Tensor> {
    match opcode {
        Opcode::Add | Opcode::Or | Opcode::Xor => scalar_tensor(dtype, 0.0),
        Opcode::Multiply => scalar_tensor(dtype, 1.0),
        Opcode::And if dtype == DataType::BOOL => scalar_tensor(dtype, 1.0),
        Opcode::Maximum => extreme_tensor(dtype, false),
        Opcode::Minimum => extreme_tensor(dtype, true),
        other => bail!(InvalidArgument, "No reduction by {other} is known for {dtype}"),
    }
}

/// The name of the computation of two scalars that [`Builder::reducer`] makes: `add_f32`.
pub fn reducer_name(opcode: Opcode, dtype: DataType) -> String {
    format!("{}_{}", opcode.name(), crate::shape::type_name(dtype))
}

impl Builder {
    /// A scalar constant of a type.
    pub fn scalar(&mut self, dtype: DataType, value: f64) -> Result<Op> {
        self.constant(scalar_tensor(dtype, value)?)
    }

    /// A constant of the shape and type of `like`, all of one value.
    pub fn scalar_like(&mut self, value: f64, like: Op) -> Result<Op> {
        let shape = self.array_shape(like)?.clone();
        self.full(shape.dtype, &shape.dims, value)
    }

    /// An array of one value.
    pub fn full(&mut self, dtype: DataType, dims: &[i64], value: f64) -> Result<Op> {
        let scalar = self.scalar(dtype, value)?;
        self.broadcast_scalar(scalar, dims)
    }

    /// A scalar, repeated to these extents.
    pub fn broadcast_scalar(&mut self, scalar: Op, dims: &[i64]) -> Result<Op> {
        if dims.is_empty() {
            return Ok(scalar);
        }
        self.broadcast_in_dim(scalar, dims, &[])
    }

    /// The smallest (or largest) value of a type as a scalar; infinities for floating-point types.
    pub fn extreme_scalar(&mut self, dtype: DataType, largest: bool) -> Result<Op> {
        self.constant(extreme_tensor(dtype, largest)?)
    }

    /// Repeats a value to `dims` by numpy's rules: axes are matched from the last, extent 1 and missing ones repeat.
    pub fn broadcast_to(&mut self, operand: Op, dims: &[i64]) -> Result<Op> {
        let shape = self.array_shape(operand)?;
        if shape.dims[..] == *dims {
            return Ok(operand);
        }
        ensure!(
            shape.rank() <= dims.len(),
            InvalidArgument,
            "Incompatible shapes: {shape} cannot be broadcast to {dims:?}"
        );
        let first = dims.len() - shape.rank();
        let axes: Dims = (first as i64..dims.len() as i64).collect();
        self.broadcast_in_dim(operand, dims, &axes)
    }

    /// Repeats two values to common extents by numpy's rules. INVALID_ARGUMENT when there are none.
    pub fn implicit_broadcast(&mut self, lhs: Op, rhs: Op) -> Result<(Op, Op)> {
        let (a, b) = (self.array_shape(lhs)?, self.array_shape(rhs)?);
        if a.dims == b.dims {
            return Ok((lhs, rhs));
        }
        let dims = broadcast_dims(&a.dims, &b.dims)?;
        Ok((self.broadcast_to(lhs, &dims)?, self.broadcast_to(rhs, &dims)?))
    }

    /// A binary opcode after [`Builder::implicit_broadcast`].
    pub fn binary_broadcast(&mut self, opcode: Opcode, lhs: Op, rhs: Op) -> Result<Op> {
        let (lhs, rhs) = self.implicit_broadcast(lhs, rhs)?;
        self.binary(opcode, lhs, rhs)
    }

    /// A comparison after [`Builder::implicit_broadcast`].
    pub fn compare_broadcast(&mut self, direction: Direction, lhs: Op, rhs: Op) -> Result<Op> {
        let (lhs, rhs) = self.implicit_broadcast(lhs, rhs)?;
        self.compare(direction, lhs, rhs)
    }

    /// `a + b` with broadcasting; logical or for pred.
    pub fn add(&mut self, a: Op, b: Op) -> Result<Op> {
        self.binary_broadcast(Opcode::Add, a, b)
    }

    /// `a - b` with broadcasting.
    pub fn subtract(&mut self, a: Op, b: Op) -> Result<Op> {
        self.binary_broadcast(Opcode::Subtract, a, b)
    }

    /// `a * b` with broadcasting; logical and for pred.
    pub fn multiply(&mut self, a: Op, b: Op) -> Result<Op> {
        self.binary_broadcast(Opcode::Multiply, a, b)
    }

    /// `a / b` with broadcasting; integers are cut towards zero.
    pub fn divide(&mut self, a: Op, b: Op) -> Result<Op> {
        self.binary_broadcast(Opcode::Divide, a, b)
    }

    /// The larger of each two, with broadcasting; NaN when either is.
    pub fn maximum(&mut self, a: Op, b: Op) -> Result<Op> {
        self.binary_broadcast(Opcode::Maximum, a, b)
    }

    /// The smaller of each two, with broadcasting; NaN when either is.
    pub fn minimum(&mut self, a: Op, b: Op) -> Result<Op> {
        self.binary_broadcast(Opcode::Minimum, a, b)
    }

    /// The computation of two scalars by a binary opcode; made once per builder.
    pub fn reducer(&mut self, opcode: Opcode, dtype: DataType) -> Result<ComputationId> {
        let name = reducer_name(opcode, dtype);
        if let Some(index) = self.computations().iter().position(|known| known.name == name) {
            return Ok(ComputationId(index as u32));
        }
        self.computation(name, |b| {
            let lhs = b.parameter(0, ArrayShape::scalar(dtype), "lhs")?;
            let rhs = b.parameter(1, ArrayShape::scalar(dtype), "rhs")?;
            b.binary(opcode, lhs, rhs)
        })
    }

    /// The value from which a reduction by this opcode starts, as a scalar. INVALID_ARGUMENT when there is none.
    pub fn identity(&mut self, opcode: Opcode, dtype: DataType) -> Result<Op> {
        self.constant(identity_tensor(opcode, dtype)?)
    }

    /// Reduces by a binary opcode along these axes, which go.
    pub fn reduce_by(&mut self, opcode: Opcode, operand: Op, axes: &[i64]) -> Result<Op> {
        let dtype = self.array_shape(operand)?.dtype;
        let init = self.identity(opcode, dtype)?;
        let computation = self.reducer(opcode, dtype)?;
        self.reduce(&[operand], &[init], computation, axes)
    }

    /// The sum along these axes, which go.
    pub fn reduce_sum(&mut self, operand: Op, axes: &[i64]) -> Result<Op> {
        self.reduce_by(Opcode::Add, operand, axes)
    }

    /// The largest along these axes, which go.
    pub fn reduce_max(&mut self, operand: Op, axes: &[i64]) -> Result<Op> {
        self.reduce_by(Opcode::Maximum, operand, axes)
    }

    /// The smallest along these axes, which go.
    pub fn reduce_min(&mut self, operand: Op, axes: &[i64]) -> Result<Op> {
        self.reduce_by(Opcode::Minimum, operand, axes)
    }

    /// The product along these axes, which go.
    pub fn reduce_prod(&mut self, operand: Op, axes: &[i64]) -> Result<Op> {
        self.reduce_by(Opcode::Multiply, operand, axes)
    }

    /// A reduced value with the axes that went as extents of 1, repeated to `dims`.
    pub fn broadcast_reduced(&mut self, reduced: Op, dims: &[i64], axes: &[i64]) -> Result<Op> {
        let kept: Dims = (0..dims.len() as i64)
            .filter(|axis| !axes.contains(axis))
            .collect();
        self.broadcast_in_dim(reduced, dims, &kept)
    }

    /// `max(x, 0)`.
    pub fn relu(&mut self, x: Op) -> Result<Op> {
        let zero = self.scalar_like(0.0, x)?;
        self.maximum(x, zero)
    }

    /// `1 / (1 + exp(-x))`.
    pub fn logistic(&mut self, x: Op) -> Result<Op> {
        self.unary(Opcode::Logistic, x)
    }

    /// `x * x`.
    pub fn square(&mut self, x: Op) -> Result<Op> {
        self.binary(Opcode::Multiply, x, x)
    }

    /// `1 / x`.
    pub fn reciprocal(&mut self, x: Op) -> Result<Op> {
        let one = self.scalar_like(1.0, x)?;
        self.binary(Opcode::Divide, one, x)
    }

    /// `log(1 + exp(x))`, without overflow.
    pub fn softplus(&mut self, x: Op) -> Result<Op> {
        let zero = self.scalar_like(0.0, x)?;
        let positive = self.maximum(x, zero)?;
        let magnitude = self.unary(Opcode::Abs, x)?;
        let negated = self.unary(Opcode::Negate, magnitude)?;
        let exponential = self.unary(Opcode::Exponential, negated)?;
        let tail = self.unary(Opcode::LogPlusOne, exponential)?;
        self.add(positive, tail)
    }

    /// The complex conjugate; real values as they are.
    pub fn conjugate(&mut self, x: Op) -> Result<Op> {
        if !self.array_shape(x)?.dtype.is_complex() {
            return Ok(x);
        }
        let real = self.unary(Opcode::Real, x)?;
        let imag = self.unary(Opcode::Imag, x)?;
        let imag = self.unary(Opcode::Negate, imag)?;
        self.binary(Opcode::Complex, real, imag)
    }
}

/// The extents to which both are repeated by numpy's rules. INVALID_ARGUMENT when there are none.
pub fn broadcast_dims(a: &[i64], b: &[i64]) -> Result<Dims> {
    let rank = a.len().max(b.len());
    let extent = |dims: &[i64], i: usize| -> i64 {
        let missing = rank - dims.len();
        if i < missing { 1 } else { dims[i - missing] }
    };
    (0..rank)
        .map(|i| match (extent(a, i), extent(b, i)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            _ => Err(status!(
                InvalidArgument,
                "Incompatible shapes: {} vs. {}",
                Extents(a),
                Extents(b)
            )),
        })
        .collect()
}

struct Extents<'a>(&'a [i64]);

/// `[2,3]`.
impl std::fmt::Display for Extents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<String> = self.0.iter().map(i64::to_string).collect();
        write!(f, "[{}]", texts.join(","))
    }
}
