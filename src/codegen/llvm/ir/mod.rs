//! A thin layer over LLVM's IR builder: values of any number of lanes by one set of methods.
//!
//! inkwell gives scalars and vectors types of their own; emitters that write each function once, for one lane and for
//! sixteen, would be written twice. So this layer calls LLVM's C functions on untyped values. Operands must have the
//! types that an instruction asks for; `Machine::compile` lets LLVM verify the module before it is compiled.

mod flow;
mod memory;

use inkwell::context::{AsContextRef, Context};
use inkwell::module::Module;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMIntPredicate, LLVMRealPredicate};
use std::ffi::c_uint;

/// A value in a function being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Val(LLVMValueRef);

/// A basic block of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block(LLVMBasicBlockRef);

/// The type of an element in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the definition
pub enum Kind {
    I1,
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    Pointer,
}

impl Kind {
    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            Kind::I1 => 1,
            Kind::I8 => 8,
            Kind::I16 | Kind::F16 => 16,
            Kind::I32 | Kind::F32 => 32,
            Kind::I64 | Kind::F64 | Kind::Pointer => 64,
        }
    }

    /// Bytes of an element in memory.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether elements are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Kind::F16 | Kind::F32 | Kind::F64)
    }
}

type Unary = unsafe extern "C" fn(LLVMBuilderRef, LLVMValueRef, *const i8) -> LLVMValueRef;
type Binary = unsafe extern "C" fn(LLVMBuilderRef, LLVMValueRef, LLVMValueRef, *const i8) -> LLVMValueRef;
type Cast = unsafe extern "C" fn(LLVMBuilderRef, LLVMValueRef, LLVMTypeRef, *const i8) -> LLVMValueRef;

const NO_NAME: *const i8 = c"".as_ptr();

/// A function of a module being built.
pub struct Ir<'c> {
    context: LLVMContextRef,
    module: Module<'c>,
    builder: LLVMBuilderRef,
    function: LLVMValueRef,
}

impl Drop for Ir<'_> {
    fn drop(&mut self) {
        // SAFETY: the builder was made by `new` and is used by this value only.
        unsafe { LLVMDisposeBuilder(self.builder) }
    }
}

/// Methods with two operands of one type.
macro_rules! binaries {
    ($($(#[$doc:meta])* $name:ident $function:ident;)*) => {
        $($(#[$doc])* pub fn $name(&self, a: Val, b: Val) -> Val { self.binary($function, a, b) })*
    };
}

/// Methods that change the type of a value.
macro_rules! casts {
    ($($(#[$doc:meta])* $name:ident $function:ident;)*) => {
        $($(#[$doc])* pub fn $name(&self, a: Val, kind: Kind, lanes: u32) -> Val {
            self.cast($function, a, kind, lanes)
        })*
    };
}

impl<'c> Ir<'c> {
    /// A module with a function of this name, of pointers and 64-bit integers to nothing, and its first block.
    pub fn new(context: &'c Context, name: &str, parameters: &[Kind]) -> Ir<'c> {
        Ir::within(context, context.create_module(name), name, parameters)
    }

    /// As [`Ir::new`], with the function added to a module; [`Ir::into_module`] gives it back.
    pub fn within(context: &'c Context, module: Module<'c>, name: &str, parameters: &[Kind]) -> Ir<'c> {
        let raw = context.as_ctx_ref();
        let text = std::ffi::CString::new(name).unwrap_or_default();
        // SAFETY: the context and the module live as long as the result; arrays have the lengths that are passed.
        unsafe {
            let mut types: Vec<LLVMTypeRef> = parameters.iter().map(|&kind| scalar_type(raw, kind)).collect();
            let signature = LLVMFunctionType(
                LLVMVoidTypeInContext(raw),
                types.as_mut_ptr(),
                types.len() as c_uint,
                0,
            );
            let function = LLVMAddFunction(module.as_mut_ptr(), text.as_ptr(), signature);
            let ir = Ir {
                context: raw,
                module,
                builder: LLVMCreateBuilderInContext(raw),
                function,
            };
            let entry = ir.block();
            ir.go(entry);
            ir
        }
    }

    /// The module, once its function is complete.
    pub fn module(&self) -> &Module<'c> {
        &self.module
    }

    /// The module, and the function in it.
    pub fn into_module(self) -> (Module<'c>, LLVMValueRef) {
        let kept = std::mem::ManuallyDrop::new(self);
        // SAFETY: the value is not dropped, so the module is moved out of it once; its builder is disposed of here.
        unsafe {
            LLVMDisposeBuilder(kept.builder);
            (std::ptr::read(&kept.module), kept.function)
        }
    }

    /// Makes the function an entry for GPUs.
    pub fn set_calling_convention(&self, number: u32) {
        // SAFETY: the function belongs to the module.
        unsafe { LLVMSetFunctionCallConv(self.function, number) }
    }

    fn binary(&self, function: Binary, a: Val, b: Val) -> Val {
        // SAFETY: values and builder belong to one function; their types are checked when the module is verified.
        Val(unsafe { function(self.builder, a.0, b.0, NO_NAME) })
    }

    fn unary(&self, function: Unary, a: Val) -> Val {
        // SAFETY: as for `binary`.
        Val(unsafe { function(self.builder, a.0, NO_NAME) })
    }

    fn cast(&self, function: Cast, a: Val, kind: Kind, lanes: u32) -> Val {
        // SAFETY: as for `binary`.
        Val(unsafe { function(self.builder, a.0, self.ty(kind, lanes), NO_NAME) })
    }

    binaries! {
        /// Sum of integers.
        add LLVMBuildAdd;
        /// Difference of integers.
        sub LLVMBuildSub;
        /// Product of integers.
        mul LLVMBuildMul;
        /// Quotient of signed integers; undefined for zero and overflow.
        sdiv LLVMBuildSDiv;
        /// Quotient of unsigned integers; undefined for zero.
        udiv LLVMBuildUDiv;
        /// Remainder of signed integers; undefined for zero and overflow.
        srem LLVMBuildSRem;
        /// Remainder of unsigned integers; undefined for zero.
        urem LLVMBuildURem;
        /// Bitwise and.
        and LLVMBuildAnd;
        /// Bitwise or.
        or LLVMBuildOr;
        /// Bitwise exclusive or.
        xor LLVMBuildXor;
        /// Bits moved up; undefined for as many bits as there are.
        shl LLVMBuildShl;
        /// Bits moved down, zeros after them.
        lshr LLVMBuildLShr;
        /// Bits moved down, the sign after them.
        ashr LLVMBuildAShr;
        /// Sum of floating-point numbers.
        fadd LLVMBuildFAdd;
        /// Difference of floating-point numbers.
        fsub LLVMBuildFSub;
        /// Product of floating-point numbers.
        fmul LLVMBuildFMul;
        /// Quotient of floating-point numbers.
        fdiv LLVMBuildFDiv;
    }

    casts! {
        /// Fewer bits of integers.
        trunc LLVMBuildTrunc;
        /// More bits of integers, zeros.
        zext LLVMBuildZExt;
        /// More bits of integers, the sign.
        sext LLVMBuildSExt;
        /// A narrower floating-point type, rounded to nearest even.
        fptrunc LLVMBuildFPTrunc;
        /// A wider floating-point type.
        fpext LLVMBuildFPExt;
        /// Signed integer from a floating-point number; undefined where it does not fit.
        fptosi LLVMBuildFPToSI;
        /// Unsigned integer from a floating-point number; undefined where it does not fit.
        fptoui LLVMBuildFPToUI;
        /// Floating-point number from a signed integer.
        sitofp LLVMBuildSIToFP;
        /// Floating-point number from an unsigned integer.
        uitofp LLVMBuildUIToFP;
        /// The same bits as another type.
        bitcast LLVMBuildBitCast;
    }

    /// The negative, also of zero.
    pub fn fneg(&self, a: Val) -> Val {
        self.unary(LLVMBuildFNeg, a)
    }

    /// The bitwise complement.
    pub fn not(&self, a: Val) -> Val {
        self.unary(LLVMBuildNot, a)
    }

    /// A comparison of floating-point numbers.
    pub fn fcmp(&self, predicate: LLVMRealPredicate, a: Val, b: Val) -> Val {
        // SAFETY: as for `binary`.
        Val(unsafe { LLVMBuildFCmp(self.builder, predicate, a.0, b.0, NO_NAME) })
    }

    /// A comparison of integers.
    pub fn icmp(&self, predicate: LLVMIntPredicate, a: Val, b: Val) -> Val {
        // SAFETY: as for `binary`.
        Val(unsafe { LLVMBuildICmp(self.builder, predicate, a.0, b.0, NO_NAME) })
    }

    /// `if condition { a } else { b }`, lane by lane.
    pub fn select(&self, condition: Val, a: Val, b: Val) -> Val {
        // SAFETY: as for `binary`.
        Val(unsafe { LLVMBuildSelect(self.builder, condition.0, a.0, b.0, NO_NAME) })
    }

    fn ty(&self, kind: Kind, lanes: u32) -> LLVMTypeRef {
        // SAFETY: the context is alive.
        unsafe {
            let scalar = scalar_type(self.context, kind);
            if lanes == 1 {
                scalar
            } else {
                LLVMVectorType(scalar, lanes)
            }
        }
    }

    /// An integer constant in all lanes.
    pub fn int(&self, kind: Kind, lanes: u32, value: i64) -> Val {
        // SAFETY: the type is an integer type of the context.
        let scalar = unsafe { LLVMConstInt(self.ty(kind, 1), value as u64, 1) };
        self.constant_vector(&vec![scalar; lanes as usize])
    }

    /// A floating-point constant in all lanes.
    pub fn float(&self, kind: Kind, lanes: u32, value: f64) -> Val {
        // SAFETY: the type is a floating-point type of the context.
        let scalar = unsafe { LLVMConstReal(self.ty(kind, 1), value) };
        self.constant_vector(&vec![scalar; lanes as usize])
    }

    /// 0, 1, 2... in the lanes.
    pub fn steps(&self, kind: Kind, lanes: u32) -> Val {
        // SAFETY: the type is an integer type of the context.
        let constant = |lane: u32| unsafe { LLVMConstInt(self.ty(kind, 1), u64::from(lane), 0) };
        self.constant_vector(&(0..lanes).map(constant).collect::<Vec<_>>())
    }

    fn constant_vector(&self, lanes: &[LLVMValueRef]) -> Val {
        if let [only] = lanes {
            return Val(*only);
        }
        let mut lanes = lanes.to_vec();
        // SAFETY: as many constants as are said, of one type.
        Val(unsafe { LLVMConstVector(lanes.as_mut_ptr(), lanes.len() as c_uint) })
    }

    /// A scalar in all lanes.
    pub fn splat(&self, a: Val, kind: Kind, lanes: u32) -> Val {
        if lanes == 1 {
            return a;
        }
        // SAFETY: as for `binary`; the indices are constants of the context.
        unsafe {
            let poison = LLVMGetPoison(self.ty(kind, lanes));
            let zero = self.int(Kind::I32, 1, 0);
            let first = LLVMBuildInsertElement(self.builder, poison, a.0, zero.0, NO_NAME);
            let zeros = self.int(Kind::I32, lanes, 0);
            Val(LLVMBuildShuffleVector(
                self.builder,
                first,
                poison,
                zeros.0,
                NO_NAME,
            ))
        }
    }

    /// Lanes `from..from + count` of a vector.
    pub fn part(&self, a: Val, from: u32, count: u32) -> Val {
        let index = |lane: u32| self.int(Kind::I32, 1, i64::from(lane)).0;
        // SAFETY: as for `binary`.
        unsafe {
            if count == 1 {
                return Val(LLVMBuildExtractElement(self.builder, a.0, index(from), NO_NAME));
            }
            let lanes: Vec<LLVMValueRef> = (from..from + count).map(index).collect();
            let mask = self.constant_vector(&lanes);
            Val(LLVMBuildShuffleVector(
                self.builder,
                a.0,
                LLVMGetPoison(LLVMTypeOf(a.0)),
                mask.0,
                NO_NAME,
            ))
        }
    }

    /// Lanes of two vectors of `lanes` lanes in turns.
    pub fn interleaved(&self, a: Val, b: Val, lanes: u32) -> Val {
        if lanes == 1 {
            return self.vector(Kind::I64, &[a, b]);
        }
        let index = |lane: u32| self.int(Kind::I32, 1, i64::from(lane)).0;
        let order: Vec<LLVMValueRef> = (0..lanes)
            .flat_map(|lane| [index(lane), index(lanes + lane)])
            .collect();
        let mask = self.constant_vector(&order);
        // SAFETY: as for `binary`.
        Val(unsafe { LLVMBuildShuffleVector(self.builder, a.0, b.0, mask.0, NO_NAME) })
    }

    /// A vector of scalars.
    pub fn vector(&self, kind: Kind, lanes: &[Val]) -> Val {
        if let [only] = lanes {
            return *only;
        }
        // SAFETY: as for `binary`.
        unsafe {
            let mut vector = LLVMGetPoison(self.ty(kind, lanes.len() as u32));
            for (lane, value) in lanes.iter().enumerate() {
                let index = self.int(Kind::I32, 1, lane as i64);
                vector = LLVMBuildInsertElement(self.builder, vector, value.0, index.0, NO_NAME);
            }
            Val(vector)
        }
    }

    /// Calls an intrinsic that is overloaded by the types of `overloads`.
    fn intrinsic(&self, name: &str, overloads: &[LLVMTypeRef], arguments: &[Val]) -> Val {
        let mut overloads = overloads.to_vec();
        let mut arguments: Vec<LLVMValueRef> = arguments.iter().map(|value| value.0).collect();
        // SAFETY: the arrays have the lengths that are passed; the verifier checks the types.
        unsafe {
            let id = LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            let count = overloads.len();
            let callee =
                LLVMGetIntrinsicDeclaration(self.module.as_mut_ptr(), id, overloads.as_mut_ptr(), count);
            let signature = LLVMIntrinsicGetType(self.context, id, overloads.as_mut_ptr(), count);
            let wanted = LLVMCountParamTypes(signature) as usize;
            arguments.truncate(wanted);
            Val(LLVMBuildCall2(
                self.builder,
                signature,
                callee,
                arguments.as_mut_ptr(),
                arguments.len() as c_uint,
                NO_NAME,
            ))
        }
    }

    /// An intrinsic on values of one type, which is also that of the result.
    pub fn call(&self, name: &str, kind: Kind, lanes: u32, arguments: &[Val]) -> Val {
        self.intrinsic(name, &[self.ty(kind, lanes)], arguments)
    }

    /// The number of leading zero bits.
    pub fn leading_zeros(&self, x: Val, kind: Kind, lanes: u32) -> Val {
        let zero_is_fine = self.int(Kind::I1, 1, 0);
        self.call("llvm.ctlz", kind, lanes, &[x, zero_is_fine])
    }

    /// Whether any lane of a mask of several lanes is set.
    pub fn any_lane(&self, mask: Val, lanes: u32) -> Val {
        // SAFETY: as for `binary`.
        unsafe {
            let bits = LLVMIntTypeInContext(self.context, lanes);
            let all = LLVMBuildBitCast(self.builder, mask.0, bits, NO_NAME);
            let none = LLVMConstInt(bits, 0, 0);
            Val(LLVMBuildICmp(
                self.builder,
                LLVMIntPredicate::LLVMIntNE,
                all,
                none,
                NO_NAME,
            ))
        }
    }

    /// A register of a GPU.
    pub fn register(&self, name: &str) -> Val {
        self.intrinsic(&format!("llvm.nvvm.read.ptx.sreg.{name}"), &[], &[])
    }

    /// A parameter of the function.
    pub fn parameter(&self, number: u32) -> Val {
        // SAFETY: callers ask for parameters that they declared.
        Val(unsafe { LLVMGetParam(self.function, number) })
    }
}

/// # Safety
/// The context must be alive.
unsafe fn scalar_type(context: LLVMContextRef, kind: Kind) -> LLVMTypeRef {
    // SAFETY: passed on to the caller.
    unsafe {
        match kind {
            Kind::I1 => LLVMInt1TypeInContext(context),
            Kind::I8 => LLVMInt8TypeInContext(context),
            Kind::I16 => LLVMInt16TypeInContext(context),
            Kind::I32 => LLVMInt32TypeInContext(context),
            Kind::I64 => LLVMInt64TypeInContext(context),
            Kind::F16 => LLVMHalfTypeInContext(context),
            Kind::F32 => LLVMFloatTypeInContext(context),
            Kind::F64 => LLVMDoubleTypeInContext(context),
            Kind::Pointer => LLVMPointerTypeInContext(context, 0),
        }
    }
}
