//! Transcendental functions of elements of one type: which of [`Math`] (single precision) and
//! [`ff_kernels::math::double`] an opcode is.

use super::double::Double;
use super::elementwise::{Library, Unit, no_code};
use super::ir::{Kind, Val};
use super::math::Math;
use ff_hlo::Opcode;
use ff_kernels::math::double;
use ff_tensor::Result;
use llvm_sys::LLVMRealPredicate::LLVMRealOEQ;

impl<'c> Unit<'_, 'c> {
    pub fn transcendental(&self, opcode: Opcode, x: Val) -> Result<Val> {
        use Opcode::*;
        let (ir, lanes) = (self.ir, self.lanes);
        let (single, many) = (Math { ir, lanes }, Double { ir, lanes });
        let is_single = self.kind == Kind::F32;
        Ok(match opcode {
            Exponential if is_single => single.exp(x),
            Exponential => double::exp(many, x),
            ExponentialMinusOne if is_single => single.expm1(x),
            ExponentialMinusOne => double::expm1(many, x),
            Log if is_single => single.log(x),
            Log => double::log(many, x),
            LogPlusOne if is_single => single.log1p(x),
            LogPlusOne => double::log1p(many, x),
            Logistic if is_single => single.logistic(x),
            Logistic => double::sigmoid(many, x),
            Tanh if is_single => single.tanh(x),
            Tanh => double::tanh(many, x),
            Erf if is_single => single.erf(x),
            Erf => double::erf(many, x),
            Asin => self.through_double(|many, x| double::asin(many, x), x),
            Acos => self.through_double(|many, x| double::acos(many, x), x),
            Atan => self.through_double(|many, x| double::atan(many, x), x),
            Sinh => self.through_double(|many, x| double::sinh(many, x), x),
            Cosh => self.through_double(|many, x| double::cosh(many, x), x),
            Asinh => self.through_double(|many, x| double::asinh(many, x), x),
            Acosh => self.through_double(|many, x| double::acosh(many, x), x),
            Atanh => self.through_double(|many, x| double::atanh(many, x), x),
            _ => return Err(no_code(opcode, self.dtype)),
        })
    }

    /// In double precision.
    fn wide(&self, x: Val) -> Val {
        if self.kind == Kind::F64 {
            x
        } else {
            self.ir.fpext(x, Kind::F64, self.lanes)
        }
    }

    /// A function of double precision; single precision is widened for it and rounded after it.
    fn through_double(&self, function: impl Fn(Double<'_, 'c>, Val) -> Val, x: Val) -> Val {
        let (ir, lanes) = (self.ir, self.lanes);
        let y = function(Double { ir, lanes }, self.wide(x));
        if self.kind == Kind::F64 {
            y
        } else {
            ir.fptrunc(y, Kind::F32, lanes)
        }
    }

    /// The angle of a point.
    pub fn angle(&self, y: Val, x: Val) -> Val {
        let x = self.wide(x);
        self.through_double(|many, y| double::atan2(many, y, x), y)
    }

    /// Powers; squares and cubes are products, as the passes write them.
    pub fn power(&self, x: Val, y: Val) -> Val {
        let (ir, lanes) = (self.ir, self.lanes);
        let many = Double { ir, lanes };
        let any = if self.kind == Kind::F64 {
            double::pow(many, x, y)
        } else {
            let exponent = self.wide(y);
            self.through_double(|many, x| double::pow_single(many, x, exponent), x)
        };
        let square = ir.fmul(x, x);
        let is = |number: f64| ir.fcmp(LLVMRealOEQ, y, self.float(number));
        let any = ir.select(is(3.0), ir.fmul(square, x), any);
        ir.select(is(2.0), square, any)
    }

    /// Sine, cosine and tangent: large arguments are rare and go to the library, all lanes together.
    pub fn trigonometric(
        &self,
        library: &dyn Library<'c>,
        number: usize,
        opcode: Opcode,
        x: Val,
    ) -> Result<Val> {
        let ir = self.ir;
        let lanes = self.lanes;
        let quarter = i64::from(opcode == Opcode::Cosine);
        let (quick, large) = if opcode == Opcode::Tan {
            let many = Double { ir, lanes };
            let wide = self.wide(x);
            let tangent = self.through_double(|many, x| double::tan(many, x), x);
            (tangent, double::is_trig_large(many, wide))
        } else if self.kind == Kind::F32 {
            let math = Math { ir, lanes };
            (math.quarter_turned(x, quarter), math.is_trig_large(x))
        } else {
            let math = Double { ir, lanes };
            (
                double::quarter_turned(math, x, quarter),
                double::is_trig_large(math, x),
            )
        };
        let any = if self.lanes == 1 {
            large
        } else {
            ir.any_lane(large, self.lanes)
        };
        let (slow, after) = (ir.block(), ir.block());
        let before = ir.here();
        ir.branch(any, slow, after);
        ir.go(slow);
        let exact = library.call(ir, number, &[x], self.lanes)?;
        let slow = ir.here();
        ir.jump(after);
        ir.go(after);
        let value = ir.phi(self.kind, self.lanes);
        ir.incoming(value, quick, before);
        ir.incoming(value, exact, slow);
        Ok(value)
    }
}
