//! Elementwise opcodes in IR, with the meaning that `ff_hlo::evaluator::scalar` gives them.
//!
//! Truth values are single bits in registers; `f16` and `bf16` are computed in `f32` and rounded after each
//! instruction. What has no code here is called in the evaluator's own functions, see [`Library`].

use super::ir::{Ir, Kind, Val};
use crate::stages::is_library;
use ff_hlo::fusion::Node;
use ff_hlo::{Attributes, Direction, Opcode};
use ff_tensor::{DataType, Result, Status, bail};
use llvm_sys::LLVMIntPredicate::{self, *};
use llvm_sys::LLVMRealPredicate::{self, *};

/// Calls functions that have no code here.
pub trait Library<'c> {
    /// The results of the function that `node` stands for on lanes of operands.
    fn call(&self, ir: &Ir<'c>, node: usize, operands: &[Val], lanes: u32) -> Result<Val>;
}

/// The kind of register that elements of a type are computed in.
pub fn computed(dtype: DataType) -> Result<Kind> {
    use DataType as T;
    Ok(match dtype {
        T::BOOL => Kind::I1,
        T::INT8 | T::UINT8 => Kind::I8,
        T::INT16 | T::UINT16 => Kind::I16,
        T::INT32 | T::UINT32 => Kind::I32,
        T::INT64 | T::UINT64 => Kind::I64,
        T::HALF | T::BFLOAT16 | T::FLOAT => Kind::F32,
        T::DOUBLE => Kind::F64,
        other => bail!(Unimplemented, "no code for elements of type {other}"),
    })
}

/// The kind of memory that elements of a type are stored in.
pub fn stored(dtype: DataType) -> Result<Kind> {
    Ok(match dtype {
        DataType::BOOL => Kind::I8,
        DataType::HALF | DataType::BFLOAT16 => Kind::I16,
        other => computed(other)?,
    })
}

/// Whether integers of a type have a sign.
pub fn is_signed(dtype: DataType) -> bool {
    use DataType as T;
    matches!(dtype, T::INT8 | T::INT16 | T::INT32 | T::INT64)
}

/// From memory to register.
pub fn widen(ir: &Ir, dtype: DataType, raw: Val, lanes: u32) -> Val {
    match dtype {
        DataType::BOOL => ir.icmp(LLVMIntNE, raw, ir.int(Kind::I8, lanes, 0)),
        DataType::HALF => ir.fpext(ir.bitcast(raw, Kind::F16, lanes), Kind::F32, lanes),
        DataType::BFLOAT16 => {
            let bits = ir.shl(ir.zext(raw, Kind::I32, lanes), ir.int(Kind::I32, lanes, 16));
            ir.bitcast(bits, Kind::F32, lanes)
        }
        _ => raw,
    }
}

/// From register to memory.
pub fn narrow(ir: &Ir, dtype: DataType, value: Val, lanes: u32) -> Val {
    match dtype {
        DataType::BOOL => ir.zext(value, Kind::I8, lanes),
        DataType::HALF => ir.bitcast(ir.fptrunc(value, Kind::F16, lanes), Kind::I16, lanes),
        DataType::BFLOAT16 => {
            let int = |value: i64| ir.int(Kind::I32, lanes, value);
            let bits = ir.bitcast(value, Kind::I32, lanes);
            let odd = ir.and(ir.lshr(bits, int(16)), int(1));
            let rounded = ir.lshr(ir.add(bits, ir.add(odd, int(0x7fff))), int(16));
            let quiet = ir.or(ir.lshr(bits, int(16)), int(0x40));
            let nan = ir.fcmp(LLVMRealUNO, value, value);
            ir.trunc(ir.select(nan, quiet, rounded), Kind::I16, lanes)
        }
        _ => value,
    }
}

/// The value rounded to what its type can store.
pub fn rounded(ir: &Ir, dtype: DataType, value: Val, lanes: u32) -> Val {
    match dtype {
        DataType::HALF | DataType::BFLOAT16 => widen(ir, dtype, narrow(ir, dtype, value, lanes), lanes),
        _ => value,
    }
}

/// Whether an opcode on values that can be stored gives a value that can.
fn is_exact(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Abs | Ceil
            | Clamp
            | Compare
            | Floor
            | IsFinite
            | Maximum
            | Minimum
            | RoundNearestAfz
            | RoundNearestEven
            | Select
            | Sign
            | Real
    )
}

/// The value of a `Map` node.
pub fn map<'c>(
    ir: &Ir<'c>,
    library: &dyn Library<'c>,
    (number, node): (usize, &Node),
    (opcode, attributes): (Opcode, &Attributes),
    operands: &[Val],
    lanes: u32,
) -> Result<Val> {
    let unit = Unit {
        ir,
        lanes,
        dtype: node.operand_dtype,
        kind: computed(node.operand_dtype)?,
    };
    let value = match (opcode, attributes, operands) {
        _ if is_library(opcode, node.operand_dtype) => library.call(ir, number, operands, lanes)?,
        (Opcode::Sine | Opcode::Cosine | Opcode::Tan, _, [x]) => {
            unit.trigonometric(library, number, opcode, *x)?
        }
        (Opcode::Select, _, [condition, a, b]) => ir.select(*condition, *a, *b),
        (Opcode::Clamp, _, [min, x, max]) => {
            let bounded = unit.larger(*min, *x);
            unit.smaller(*max, bounded)
        }
        (Opcode::Compare, Attributes::Compare(direction), [a, b]) => unit.compare(*direction, *a, *b),
        (Opcode::Convert, _, [x]) => unit.convert(*x, node.dtype)?,
        (_, _, [x]) => unit.unary(opcode, *x)?,
        (_, _, [a, b]) => unit.binary(opcode, *a, *b)?,
        _ => return Err(no_code(opcode, node.operand_dtype)),
    };
    Ok(if is_exact(opcode) {
        value
    } else {
        rounded(ir, node.dtype, value, lanes)
    })
}

/// Zeros.
pub fn zero(ir: &Ir, dtype: DataType, lanes: u32) -> Result<Val> {
    let kind = computed(dtype)?;
    Ok(if kind.is_float() {
        ir.float(kind, lanes, 0.0)
    } else {
        ir.int(kind, lanes, 0)
    })
}

/// Two partial results of a reduction as one.
pub fn combine(ir: &Ir, opcode: Opcode, dtype: DataType, a: Val, b: Val, lanes: u32) -> Result<Val> {
    let unit = Unit {
        ir,
        lanes,
        dtype,
        kind: computed(dtype)?,
    };
    unit.binary(opcode, a, b)
}

/// The value from which a reduction starts.
pub fn neutral(ir: &Ir, opcode: Opcode, dtype: DataType, lanes: u32) -> Result<Val> {
    let kind = computed(dtype)?;
    let bits = kind.bits();
    let (low, high) = match (is_signed(dtype), bits) {
        (true, bits) => (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
        (false, _) => (0, -1),
    };
    let number = match opcode {
        Opcode::Add | Opcode::Or => 0,
        Opcode::Multiply | Opcode::And => 1,
        Opcode::Maximum => low,
        Opcode::Minimum => high,
        other => return Err(no_code(other, dtype)),
    };
    if !kind.is_float() {
        return Ok(ir.int(kind, lanes, number));
    }
    let number = match opcode {
        Opcode::Maximum => f64::NEG_INFINITY,
        Opcode::Minimum => f64::INFINITY,
        _ => number as f64,
    };
    Ok(ir.float(kind, lanes, number))
}

pub(super) fn no_code(opcode: Opcode, dtype: DataType) -> Status {
    ff_tensor::status!(Unimplemented, "no code for {opcode} on elements of type {dtype}")
}

/// Instructions on elements of one type.
pub(super) struct Unit<'a, 'c> {
    pub ir: &'a Ir<'c>,
    pub lanes: u32,
    pub dtype: DataType,
    pub kind: Kind,
}

impl<'c> Unit<'_, 'c> {
    fn int(&self, value: i64) -> Val {
        self.ir.int(self.kind, self.lanes, value)
    }

    pub fn float(&self, value: f64) -> Val {
        self.ir.float(self.kind, self.lanes, value)
    }

    fn call(&self, name: &str, arguments: &[Val]) -> Val {
        self.ir.call(name, self.kind, self.lanes, arguments)
    }

    fn is_nan(&self, x: Val) -> Val {
        self.ir.fcmp(LLVMRealUNO, x, x)
    }

    fn unary(&self, opcode: Opcode, x: Val) -> Result<Val> {
        match self.kind {
            Kind::I1 if opcode == Opcode::Not => Ok(self.ir.not(x)),
            Kind::F32 | Kind::F64 => self.float_unary(opcode, x),
            Kind::I1 => Err(no_code(opcode, self.dtype)),
            _ => self.integer_unary(opcode, x),
        }
    }

    fn float_unary(&self, opcode: Opcode, x: Val) -> Result<Val> {
        use Opcode::*;
        let ir = self.ir;
        Ok(match opcode {
            Abs => self.call("llvm.fabs", &[x]),
            Negate => ir.fneg(x),
            Real => x,
            Imag => self.float(0.0),
            Sign => {
                let unit = self.call("llvm.copysign", &[self.float(1.0), x]);
                let keep = ir.fcmp(LLVMRealUEQ, x, self.float(0.0));
                ir.select(keep, x, unit)
            }
            Floor => self.call("llvm.floor", &[x]),
            Ceil => self.call("llvm.ceil", &[x]),
            RoundNearestEven => self.call("llvm.roundeven", &[x]),
            RoundNearestAfz => self.call("llvm.round", &[x]),
            Sqrt => self.call("llvm.sqrt", &[x]),
            Rsqrt => ir.fdiv(self.float(1.0), self.call("llvm.sqrt", &[x])),
            IsFinite => {
                let magnitude = self.call("llvm.fabs", &[x]);
                ir.fcmp(LLVMRealOLT, magnitude, self.float(f64::INFINITY))
            }
            _ => return self.transcendental(opcode, x),
        })
    }

    fn integer_unary(&self, opcode: Opcode, x: Val) -> Result<Val> {
        use Opcode::*;
        let ir = self.ir;
        let signed = is_signed(self.dtype);
        let negative = || ir.icmp(LLVMIntSLT, x, self.int(0));
        Ok(match opcode {
            Abs if signed => ir.select(negative(), ir.sub(self.int(0), x), x),
            Abs | Real => x,
            Negate => ir.sub(self.int(0), x),
            Not => ir.not(x),
            Sign => {
                let some = ir.zext(ir.icmp(LLVMIntNE, x, self.int(0)), self.kind, self.lanes);
                if signed {
                    ir.select(negative(), self.int(-1), some)
                } else {
                    some
                }
            }
            Popcnt => self.call("llvm.ctpop", &[x]),
            CountLeadingZeros => ir.leading_zeros(x, self.kind, self.lanes),
            _ => return Err(no_code(opcode, self.dtype)),
        })
    }

    fn binary(&self, opcode: Opcode, a: Val, b: Val) -> Result<Val> {
        use Opcode::*;
        let ir = self.ir;
        Ok(match (self.kind, opcode) {
            (Kind::I1, And | Multiply | Minimum) => ir.and(a, b),
            (Kind::I1, Or | Add | Maximum) => ir.or(a, b),
            (Kind::I1, Xor) => ir.xor(a, b),
            (Kind::I1, _) => return Err(no_code(opcode, self.dtype)),
            (_, Maximum) => self.larger(a, b),
            (_, Minimum) => self.smaller(a, b),
            (Kind::F32 | Kind::F64, Add) => ir.fadd(a, b),
            (Kind::F32 | Kind::F64, Subtract) => ir.fsub(a, b),
            (Kind::F32 | Kind::F64, Multiply) => ir.fmul(a, b),
            (Kind::F32 | Kind::F64, Divide) => ir.fdiv(a, b),
            (Kind::F32 | Kind::F64, Power) => self.power(a, b),
            (Kind::F32 | Kind::F64, Atan2) => self.angle(a, b),
            (Kind::F32 | Kind::F64, _) => return Err(no_code(opcode, self.dtype)),
            (_, Add) => ir.add(a, b),
            (_, Subtract) => ir.sub(a, b),
            (_, Multiply) => ir.mul(a, b),
            (_, And) => ir.and(a, b),
            (_, Or) => ir.or(a, b),
            (_, Xor) => ir.xor(a, b),
            (_, Divide | Remainder) => self.divide(opcode, a, b),
            (_, ShiftLeft | ShiftRightLogical | ShiftRightArithmetic) => self.shift(opcode, a, b),
            _ => return Err(no_code(opcode, self.dtype)),
        })
    }

    /// Quotient or remainder; all ones and the dividend for a divisor of zero, and no trap for the lowest by minus one.
    fn divide(&self, opcode: Opcode, a: Val, b: Val) -> Val {
        let ir = self.ir;
        let quotient = opcode == Opcode::Divide;
        let zero = ir.icmp(LLVMIntEQ, b, self.int(0));
        if !is_signed(self.dtype) {
            let safe = ir.select(zero, self.int(1), b);
            return if quotient {
                ir.select(zero, self.int(-1), ir.udiv(a, safe))
            } else {
                ir.select(zero, a, ir.urem(a, safe))
            };
        }
        let minus_one = ir.icmp(LLVMIntEQ, b, self.int(-1));
        let safe = ir.select(ir.or(zero, minus_one), self.int(1), b);
        if quotient {
            let by_minus_one = ir.select(minus_one, ir.sub(self.int(0), a), ir.sdiv(a, safe));
            ir.select(zero, self.int(-1), by_minus_one)
        } else {
            let by_minus_one = ir.select(minus_one, self.int(0), ir.srem(a, safe));
            ir.select(zero, a, by_minus_one)
        }
    }

    fn shift(&self, opcode: Opcode, a: Val, b: Val) -> Val {
        let ir = self.ir;
        let bits = i64::from(self.kind.bits());
        let inside = ir.icmp(LLVMIntULT, b, self.int(bits));
        let by = ir.select(inside, b, self.int(0));
        match opcode {
            Opcode::ShiftLeft => ir.select(inside, ir.shl(a, by), self.int(0)),
            Opcode::ShiftRightLogical => ir.select(inside, ir.lshr(a, by), self.int(0)),
            _ => ir.ashr(a, ir.select(inside, b, self.int(bits - 1))),
        }
    }

    /// The larger one; floating-point: not-a-number when either is, the second of equal ones.
    fn larger(&self, a: Val, b: Val) -> Val {
        self.extreme((LLVMRealOGT, LLVMIntSGT, LLVMIntUGT), a, b)
    }

    fn smaller(&self, a: Val, b: Val) -> Val {
        self.extreme((LLVMRealOLT, LLVMIntSLT, LLVMIntULT), a, b)
    }

    fn extreme(
        &self,
        (real, signed, unsigned): (LLVMRealPredicate, LLVMIntPredicate, LLVMIntPredicate),
        a: Val,
        b: Val,
    ) -> Val {
        let ir = self.ir;
        if self.kind == Kind::I1 {
            return if signed == LLVMIntSGT {
                ir.or(a, b)
            } else {
                ir.and(a, b)
            };
        }
        let first = if self.kind.is_float() {
            ir.or(ir.fcmp(real, a, b), self.is_nan(a))
        } else {
            ir.icmp(if is_signed(self.dtype) { signed } else { unsigned }, a, b)
        };
        ir.select(first, a, b)
    }

    fn compare(&self, direction: Direction, a: Val, b: Val) -> Val {
        let ir = self.ir;
        if self.kind.is_float() {
            let predicate = match direction {
                Direction::Eq => LLVMRealOEQ,
                Direction::Ne => LLVMRealUNE,
                Direction::Lt => LLVMRealOLT,
                Direction::Le => LLVMRealOLE,
                Direction::Gt => LLVMRealOGT,
                Direction::Ge => LLVMRealOGE,
            };
            return ir.fcmp(predicate, a, b);
        }
        let signed = is_signed(self.dtype);
        let predicate = match (direction, signed) {
            (Direction::Eq, _) => LLVMIntEQ,
            (Direction::Ne, _) => LLVMIntNE,
            (Direction::Lt, true) => LLVMIntSLT,
            (Direction::Le, true) => LLVMIntSLE,
            (Direction::Gt, true) => LLVMIntSGT,
            (Direction::Ge, true) => LLVMIntSGE,
            (Direction::Lt, false) => LLVMIntULT,
            (Direction::Le, false) => LLVMIntULE,
            (Direction::Gt, false) => LLVMIntUGT,
            (Direction::Ge, false) => LLVMIntUGE,
        };
        ir.icmp(predicate, a, b)
    }

    fn convert(&self, x: Val, to: DataType) -> Result<Val> {
        let (ir, lanes) = (self.ir, self.lanes);
        let kind = computed(to)?;
        Ok(match (self.kind, kind) {
            (from, to) if from == to => x,
            (Kind::F32, Kind::F64) => ir.fpext(x, kind, lanes),
            (Kind::F64, Kind::F32) => ir.fptrunc(x, kind, lanes),
            (Kind::F32 | Kind::F64, Kind::I1) => ir.fcmp(LLVMRealUNE, x, self.float(0.0)),
            (Kind::F32 | Kind::F64, _) => self.float_to_integer(x, to, kind),
            (_, Kind::I1) => ir.icmp(LLVMIntNE, x, self.int(0)),
            (_, Kind::F32 | Kind::F64) if is_signed(self.dtype) => ir.sitofp(x, kind, lanes),
            (_, Kind::F32 | Kind::F64) => ir.uitofp(x, kind, lanes),
            (from, to) if from.bits() > to.bits() => ir.trunc(x, kind, lanes),
            _ if is_signed(self.dtype) => ir.sext(x, kind, lanes),
            _ => ir.zext(x, kind, lanes),
        })
    }

    /// Cut towards zero; what does not fit becomes the lowest signed value.
    fn float_to_integer(&self, x: Val, to: DataType, kind: Kind) -> Val {
        let (ir, lanes) = (self.ir, self.lanes);
        let long = |value: i64| ir.int(Kind::I64, lanes, value);
        let below = |limit: f64| ir.fcmp(LLVMRealOLT, x, self.float(limit));
        let from = |limit: f64| ir.fcmp(LLVMRealOGE, x, self.float(limit));
        let to_i64 = || {
            let fits = ir.and(from(-9223372036854775808.0), below(9223372036854775808.0));
            ir.select(fits, ir.fptosi(x, Kind::I64, lanes), long(i64::MIN))
        };
        match to {
            DataType::INT64 => to_i64(),
            DataType::UINT64 => {
                let low = below(9223372036854775808.0);
                let high = ir.select(
                    below(18446744073709551616.0),
                    ir.fptoui(x, Kind::I64, lanes),
                    long(i64::MIN),
                );
                ir.select(low, to_i64(), high)
            }
            DataType::UINT32 => {
                let fits = ir.and(from(-9223372036854775808.0), below(4294967296.0));
                let value = ir.trunc(ir.fptosi(x, Kind::I64, lanes), Kind::I32, lanes);
                ir.select(fits, value, ir.int(Kind::I32, lanes, i64::from(i32::MIN)))
            }
            _ => {
                let above = ir.fcmp(LLVMRealOGT, x, self.float(-2147483649.0));
                let fits = ir.and(above, below(2147483648.0));
                let value = ir.fptosi(x, Kind::I32, lanes);
                let value = ir.select(fits, value, ir.int(Kind::I32, lanes, i64::from(i32::MIN)));
                if kind == Kind::I32 {
                    value
                } else {
                    ir.trunc(value, kind, lanes)
                }
            }
        }
    }
}
