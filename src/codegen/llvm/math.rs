//! Mathematical functions in IR: the polynomials of `ff_kernels::math`, from its table of coefficients and in its order
//! of operations, so that results have the same bits.

use super::ir::{Ir, Kind, Val};
use ff_kernels::math::coefficients as table;
use llvm_sys::LLVMIntPredicate::*;
use llvm_sys::LLVMRealPredicate::*;

/// Functions of `f32` in so many lanes.
#[derive(Clone, Copy)]
pub struct Math<'a, 'c> {
    pub ir: &'a Ir<'c>,
    pub lanes: u32,
}

/// The parts of an exponential: `exp(r) - 1` and two powers of two.
struct Reduced(Val, Val, Val);

impl Math<'_, '_> {
    /// A constant.
    pub fn f32(&self, value: f32) -> Val {
        self.ir.float(Kind::F32, self.lanes, f64::from(value))
    }

    fn f64(&self, value: f64) -> Val {
        self.ir.float(Kind::F64, self.lanes, value)
    }

    fn i32(&self, value: i32) -> Val {
        self.ir.int(Kind::I32, self.lanes, i64::from(value))
    }

    fn fma(&self, a: Val, b: Val, c: Val) -> Val {
        self.ir.call("llvm.fma", Kind::F32, self.lanes, &[a, b, c])
    }

    fn fma64(&self, a: Val, b: Val, c: Val) -> Val {
        self.ir.call("llvm.fma", Kind::F64, self.lanes, &[a, b, c])
    }

    /// The magnitude.
    pub fn abs(&self, x: Val) -> Val {
        self.ir.call("llvm.fabs", Kind::F32, self.lanes, &[x])
    }

    fn copysign(&self, x: Val, sign: Val) -> Val {
        self.ir.call("llvm.copysign", Kind::F32, self.lanes, &[x, sign])
    }

    /// `x` where it is not a number, else `y`.
    fn keep_nan(&self, x: Val, y: Val) -> Val {
        let ir = self.ir;
        ir.select(ir.fcmp(LLVMRealUNO, x, x), x, y)
    }

    /// `c[0] + c[1] x + ..`, by multiply-adds from the last coefficient on.
    fn polynomial(&self, coefficients: &[f32], x: Val) -> Val {
        let mut rest = coefficients.iter().rev();
        let mut sum = self.f32(rest.next().copied().unwrap_or(0.0));
        for &coefficient in rest {
            sum = self.fma(sum, x, self.f32(coefficient));
        }
        sum
    }

    fn polynomial64(&self, coefficients: &[f64], x: Val) -> Val {
        let mut rest = coefficients.iter().rev();
        let mut sum = self.f64(rest.next().copied().unwrap_or(0.0));
        for &coefficient in rest {
            sum = self.fma64(sum, x, self.f64(coefficient));
        }
        sum
    }

    fn power_of_two(&self, n: Val) -> Val {
        let ir = self.ir;
        let bits = ir.shl(ir.add(n, self.i32(127)), self.i32(23));
        ir.bitcast(bits, Kind::F32, self.lanes)
    }

    fn reduce(&self, x: Val) -> Reduced {
        let ir = self.ir;
        let (lowest, highest) = (self.f32(table::EXP_LOWEST), self.f32(table::EXP_HIGHEST));
        let x = ir.select(ir.fcmp(LLVMRealOLT, x, lowest), lowest, x);
        let x = ir.select(ir.fcmp(LLVMRealOGT, x, highest), highest, x);
        let round = self.f32(table::ROUND);
        let shifted = self.fma(x, self.f32(table::LOG2_E), round);
        let n = ir.fsub(shifted, round);
        let high = self.fma(n, self.f32(-table::LN_2_HIGH), x);
        let r = self.fma(n, self.f32(-table::LN_2_LOW), high);
        let p = self.polynomial(&table::EXP, r);
        let q = self.fma(ir.fmul(r, r), p, r);
        let bits = ir.bitcast(shifted, Kind::I32, self.lanes);
        let n = ir.sub(bits, self.i32(table::ROUND.to_bits() as i32));
        let half = ir.ashr(n, self.i32(1));
        Reduced(q, self.power_of_two(half), self.power_of_two(ir.sub(n, half)))
    }

    /// `e^x`.
    pub fn exp(&self, x: Val) -> Val {
        let Reduced(q, first, second) = self.reduce(x);
        let y = self.ir.fmul(self.fma(q, first, first), second);
        self.keep_nan(x, y)
    }

    /// `e^x - 1`.
    pub fn expm1(&self, x: Val) -> Val {
        let ir = self.ir;
        let Reduced(q, first, second) = self.reduce(x);
        let inverse = ir.fdiv(self.f32(1.0), second);
        let y = ir.fmul(self.fma(q, first, ir.fsub(first, inverse)), second);
        let tiny = ir.fcmp(LLVMRealOLT, self.abs(x), self.f32(1e-10));
        let keep = ir.or(ir.fcmp(LLVMRealUNO, x, x), tiny);
        ir.select(keep, x, y)
    }

    /// `1 / (1 + e^-x)`.
    pub fn logistic(&self, x: Val) -> Val {
        let ir = self.ir;
        let one = self.f32(1.0);
        let e = self.exp(ir.fneg(self.abs(x)));
        let top = ir.select(ir.fcmp(LLVMRealOLT, x, self.f32(0.0)), e, one);
        self.keep_nan(x, ir.fdiv(top, ir.fadd(one, e)))
    }

    /// The hyperbolic tangent.
    pub fn tanh(&self, x: Val) -> Val {
        let ir = self.ir;
        let (ten, two) = (self.f32(10.0), self.f32(2.0));
        let magnitude = self.abs(x);
        let bounded = ir.select(ir.fcmp(LLVMRealOGT, magnitude, ten), ten, magnitude);
        let e = self.expm1(ir.fmul(two, bounded));
        let y = self.copysign(ir.fdiv(e, ir.fadd(e, two)), x);
        self.keep_nan(x, y)
    }

    fn log_normal(&self, m: Val, shift: Val, correction: Val) -> Val {
        let ir = self.ir;
        let first = self.i32(table::LOG_FIRST_BITS as i32);
        let bits = ir.sub(ir.bitcast(m, Kind::I32, self.lanes), first);
        let exponent = ir.sitofp(ir.ashr(bits, self.i32(23)), Kind::F32, self.lanes);
        let exponent = ir.fadd(exponent, shift);
        let mantissa = ir.add(ir.and(bits, self.i32(0x007f_ffff)), first);
        let f = ir.fsub(ir.bitcast(mantissa, Kind::F32, self.lanes), self.f32(1.0));
        let p = self.polynomial(&table::LOG, f);
        let square = ir.fmul(f, f);
        let tail = ir.fmul(square, ir.fmul(f, p));
        let low = ir.fadd(self.fma(exponent, self.f32(table::LN_2_LOW), tail), correction);
        let tail = ir.fadd(self.fma(square, self.f32(-0.5), low), f);
        self.fma(exponent, self.f32(table::LN_2_HIGH), tail)
    }

    fn log_special(&self, x: Val, y: Val) -> Val {
        let ir = self.ir;
        let y = ir.select(ir.fcmp(LLVMRealOEQ, x, self.f32(f32::INFINITY)), x, y);
        let y = ir.select(
            ir.fcmp(LLVMRealOEQ, x, self.f32(0.0)),
            self.f32(f32::NEG_INFINITY),
            y,
        );
        let y = ir.select(ir.fcmp(LLVMRealOLT, x, self.f32(0.0)), self.f32(f32::NAN), y);
        self.keep_nan(x, y)
    }

    /// The natural logarithm.
    pub fn log(&self, x: Val) -> Val {
        let ir = self.ir;
        let denormal = ir.fcmp(LLVMRealOLT, x, self.f32(f32::MIN_POSITIVE));
        let scaled = ir.select(denormal, ir.fmul(x, self.f32(8_388_608.0)), x);
        let shift = ir.select(denormal, self.f32(-23.0), self.f32(0.0));
        self.log_special(x, self.log_normal(scaled, shift, self.f32(0.0)))
    }

    /// `log(1 + x)`.
    pub fn log1p(&self, x: Val) -> Val {
        let ir = self.ir;
        let (one, zero) = (self.f32(1.0), self.f32(0.0));
        let sum = ir.fadd(one, x);
        let small = ir.fsub(x, ir.fsub(sum, one));
        let large = ir.fsub(one, ir.fsub(sum, x));
        let lost = ir.select(ir.fcmp(LLVMRealOLT, x, one), small, large);
        let y = self.log_special(sum, self.log_normal(sum, zero, ir.fdiv(lost, sum)));
        let y = ir.select(ir.fcmp(LLVMRealOEQ, sum, self.f32(f32::INFINITY)), sum, y);
        let y = ir.select(ir.fcmp(LLVMRealOEQ, sum, zero), self.f32(f32::NEG_INFINITY), y);
        let tiny = ir.fcmp(LLVMRealOLT, self.abs(x), self.f32(1e-10));
        ir.select(tiny, x, y)
    }

    /// The error function.
    pub fn erf(&self, x: Val) -> Val {
        let ir = self.ir;
        let a = self.abs(x);
        let t = ir.fmul(a, a);
        let small = self.fma(self.polynomial(&table::ERF_SMALL, t), a, a);
        let exponent = ir.fsub(self.polynomial(&table::ERF_LARGE, a), a);
        let one = self.f32(1.0);
        let large = ir.fsub(one, self.exp(exponent));
        let beyond = ir.select(ir.fcmp(LLVMRealOLT, a, self.f32(table::ERF_ONE)), large, one);
        let y = ir.select(ir.fcmp(LLVMRealOLT, a, self.f32(table::ERF_SPLIT)), small, beyond);
        self.keep_nan(x, self.copysign(y, x))
    }

    /// Sine of `x` plus so many quarter turns; right up to `TRIG_LARGE`.
    pub fn quarter_turned(&self, x: Val, quarter: i64) -> Val {
        let (ir, lanes) = (self.ir, self.lanes);
        let long = |value: i64| ir.int(Kind::I64, lanes, value);
        let x = ir.fpext(x, Kind::F64, lanes);
        let round = self.f64(table::ROUND_F64);
        let shifted = self.fma64(x, self.f64(table::TWO_OVER_PI), round);
        let n = ir.fsub(shifted, round);
        let high = self.fma64(n, self.f64(-table::HALF_PI_HIGH), x);
        let r = self.fma64(n, self.f64(-table::HALF_PI_LOW), high);
        let t = ir.fmul(r, r);
        let sine = ir.fmul(r, self.fma64(t, self.polynomial64(&table::SIN, t), self.f64(1.0)));
        let cosine = self.fma64(self.polynomial64(&table::COS, t), t, self.f64(1.0));
        let turn = ir.add(ir.bitcast(shifted, Kind::I64, lanes), long(quarter));
        let even = ir.icmp(LLVMIntEQ, ir.and(turn, long(1)), long(0));
        let y = ir.bitcast(ir.select(even, sine, cosine), Kind::I64, lanes);
        let sign = ir.shl(ir.and(turn, long(2)), long(62));
        let y = ir.bitcast(ir.xor(y, sign), Kind::F64, lanes);
        ir.fptrunc(y, Kind::F32, lanes)
    }

    /// Where an argument is beyond what [`Math::quarter_turned`] reduces, or not a number.
    pub fn is_trig_large(&self, x: Val) -> Val {
        self.ir
            .fcmp(LLVMRealUGT, self.abs(x), self.f32(table::TRIG_LARGE))
    }
}
