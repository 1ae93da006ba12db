//! Operations of double precision in many lanes, from which the functions of `ff_kernels::math::double` become code.

use super::ir::{Ir, Kind, Val};
use ff_kernels::math::Arithmetic;
use llvm_sys::LLVMIntPredicate::LLVMIntEQ;
use llvm_sys::LLVMRealPredicate::{LLVMRealOEQ, LLVMRealOLT};

/// Code in so many lanes.
#[derive(Clone, Copy)]
pub struct Double<'a, 'c> {
    pub ir: &'a Ir<'c>,
    pub lanes: u32,
}

impl Double<'_, '_> {
    fn call(self, name: &str, arguments: &[Val]) -> Val {
        self.ir.call(name, Kind::F64, self.lanes, arguments)
    }
}

impl Arithmetic for Double<'_, '_> {
    type F = Val;
    type I = Val;
    type B = Val;

    fn number(self, value: f64) -> Val {
        self.ir.float(Kind::F64, self.lanes, value)
    }
    fn integer(self, value: i64) -> Val {
        self.ir.int(Kind::I64, self.lanes, value)
    }
    fn add(self, x: Val, y: Val) -> Val {
        self.ir.fadd(x, y)
    }
    fn sub(self, x: Val, y: Val) -> Val {
        self.ir.fsub(x, y)
    }
    fn mul(self, x: Val, y: Val) -> Val {
        self.ir.fmul(x, y)
    }
    fn div(self, x: Val, y: Val) -> Val {
        self.ir.fdiv(x, y)
    }
    fn fma(self, x: Val, y: Val, z: Val) -> Val {
        self.call("llvm.fma", &[x, y, z])
    }
    fn neg(self, x: Val) -> Val {
        self.ir.fneg(x)
    }
    fn abs(self, x: Val) -> Val {
        self.call("llvm.fabs", &[x])
    }
    fn copysign(self, x: Val, sign: Val) -> Val {
        self.call("llvm.copysign", &[x, sign])
    }
    fn sqrt(self, x: Val) -> Val {
        self.call("llvm.sqrt", &[x])
    }
    fn floor(self, x: Val) -> Val {
        self.call("llvm.floor", &[x])
    }
    fn less(self, x: Val, y: Val) -> Val {
        self.ir.fcmp(LLVMRealOLT, x, y)
    }
    fn equal(self, x: Val, y: Val) -> Val {
        self.ir.fcmp(LLVMRealOEQ, x, y)
    }
    fn both(self, x: Val, y: Val) -> Val {
        self.ir.and(x, y)
    }
    fn not(self, x: Val) -> Val {
        self.ir.not(x)
    }
    fn choose(self, condition: Val, x: Val, y: Val) -> Val {
        self.ir.select(condition, x, y)
    }
    fn bits(self, x: Val) -> Val {
        self.ir.bitcast(x, Kind::I64, self.lanes)
    }
    fn of_bits(self, x: Val) -> Val {
        self.ir.bitcast(x, Kind::F64, self.lanes)
    }
    fn plus(self, x: Val, y: Val) -> Val {
        self.ir.add(x, y)
    }
    fn minus(self, x: Val, y: Val) -> Val {
        self.ir.sub(x, y)
    }
    fn mask(self, x: Val, y: Val) -> Val {
        self.ir.and(x, y)
    }
    fn flip(self, x: Val, y: Val) -> Val {
        self.ir.xor(x, y)
    }
    fn up(self, x: Val, by: u32) -> Val {
        self.ir.shl(x, self.integer(i64::from(by)))
    }
    fn down(self, x: Val, by: u32) -> Val {
        self.ir.lshr(x, self.integer(i64::from(by)))
    }
    fn is_zero(self, x: Val) -> Val {
        self.ir.icmp(LLVMIntEQ, x, self.integer(0))
    }
}
