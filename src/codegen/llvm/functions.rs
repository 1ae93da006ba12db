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
            _ => return Err(no_code(opcode, self.dtype)),
        })
    }

    /// Powers; squares and cubes are products, as the passes write them.
    pub fn power(&self, x: Val, y: Val) -> Val {
        let (ir, lanes) = (self.ir, self.lanes);
        let many = Double { ir, lanes };
        let any = if self.kind == Kind::F64 {
            double::pow(many, x, y)
        } else {
            let wide = |x: Val| ir.fpext(x, Kind::F64, lanes);
            ir.fptrunc(double::pow_single(many, wide(x), wide(y)), Kind::F32, lanes)
        };
        let square = ir.fmul(x, x);
        let is = |number: f64| ir.fcmp(LLVMRealOEQ, y, self.float(number));
        let any = ir.select(is(3.0), ir.fmul(square, x), any);
        ir.select(is(2.0), square, any)
    }

    /// Sine and cosine: large arguments are rare and go to the library, all lanes together.
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
        let (quick, large) = if self.kind == Kind::F32 {
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
