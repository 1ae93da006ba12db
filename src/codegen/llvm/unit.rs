//! Objects of whole programs: one module with the code of all fusions, and the table that leads to it.

use super::fusion::{self, HOST_PARAMETERS};
use super::ir::Ir;
use super::machine::Machine;
use super::widest;
use crate::layout::Layout;
use crate::target::ObjectTarget;
use crate::unit::Entry;
use ff_hlo::fusion::FusionPlan;
use ff_tensor::{Result, ensure, status};
use inkwell::context::{AsContextRef, Context};
use inkwell::module::Module;
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMLinkage, LLVMUnnamedAddr};
use std::ffi::CString;

/// Bytes that data is aligned to.
const ALIGNMENT: u32 = 64;

/// A relocatable object for a target that defines `symbol`, the table, and the functions of fusions, which only the
/// table names.
///
/// INVALID_ARGUMENT for a name that is none, UNIMPLEMENTED when a fusion has no code or this build has no code generator
/// for the target, INTERNAL when LLVM refuses something.
pub fn compile_unit(
    target: &ObjectTarget,
    symbol: &str,
    fusions: &[(String, &FusionPlan)],
    table: &[Entry],
) -> Result<Vec<u8>> {
    let machine = Machine::of_target(target)?;
    let context = Context::create();
    let mut unit = Unit {
        context: &context,
        functions: Vec::new(),
    };
    let mut module = context.create_module(symbol);
    for (name, plan) in fusions {
        let ir = Ir::within(&context, module, &c_name(name)?, HOST_PARAMETERS);
        let lanes = machine.vector_lanes(widest(plan));
        let made = fusion::host_in(ir, plan, &Layout::of_plan(plan), lanes)?;
        let function;
        (module, function) = made.into_module();
        // SAFETY: the function belongs to the module, which lives.
        unsafe { LLVMSetLinkage(function, LLVMLinkage::LLVMInternalLinkage) };
        unit.functions.push(function);
    }
    let value = unit.table(&module, table)?;
    let name = CString::new(c_name(symbol)?).unwrap_or_default();
    // SAFETY: the value is a global of this module.
    unsafe {
        LLVMSetValueName2(value, name.as_ptr(), name.as_bytes().len());
        LLVMSetLinkage(value, LLVMLinkage::LLVMExternalLinkage);
        LLVMSetUnnamedAddress(value, LLVMUnnamedAddr::LLVMNoUnnamedAddr);
    }
    machine.compile(&module)
}

/// Whether a fusion has code for a target: UNIMPLEMENTED if not.
pub fn check_unit(target: &ObjectTarget, plan: &FusionPlan) -> Result<()> {
    let machine = Machine::of_target(target)?;
    let context = Context::create();
    let lanes = machine.vector_lanes(widest(plan));
    fusion::host(&context, "check", plan, &Layout::of_plan(plan), lanes).map(drop)
}

/// The name, if it can be one in C.
fn c_name(name: &str) -> Result<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    ensure!(
        !name.is_empty() && name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit()),
        InvalidArgument,
        "{name:?} is no name of a C object"
    );
    Ok(name.to_string())
}

struct Unit<'c> {
    context: &'c Context,
    functions: Vec<LLVMValueRef>,
}

impl Unit<'_> {
    fn value(&self, module: &Module, entry: &Entry) -> Result<LLVMValueRef> {
        let raw = self.context.as_ctx_ref();
        // SAFETY: types and values are of one context, which lives; lengths are those of the slices.
        unsafe {
            Ok(match entry {
                Entry::Number(number) => LLVMConstInt(LLVMInt64TypeInContext(raw), *number, 0),
                Entry::Function(number) => *self
                    .functions
                    .get(*number)
                    .ok_or_else(|| status!(Internal, "a table names a function that does not exist"))?,
                Entry::Bytes([]) | Entry::Table([]) => LLVMConstNull(LLVMPointerTypeInContext(raw, 0)),
                Entry::Bytes(bytes) => {
                    let value = LLVMConstStringInContext2(raw, bytes.as_ptr().cast(), bytes.len(), 1);
                    constant(module, value)
                }
                Entry::Table(entries) => self.table(module, entries)?,
            })
        }
    }

    /// A private table.
    fn table(&self, module: &Module, entries: &[Entry]) -> Result<LLVMValueRef> {
        let mut values = Vec::with_capacity(entries.len());
        for entry in entries {
            values.push(self.value(module, entry)?);
        }
        // SAFETY: as for `value`.
        unsafe {
            let value = LLVMConstStructInContext(
                self.context.as_ctx_ref(),
                values.as_mut_ptr(),
                values.len() as u32,
                0,
            );
            Ok(constant(module, value))
        }
    }
}

/// A private constant with this value.
///
/// # Safety
/// The value is a constant of the module's context.
unsafe fn constant(module: &Module, value: LLVMValueRef) -> LLVMValueRef {
    // SAFETY: passed on to the caller.
    unsafe {
        let global = LLVMAddGlobal(module.as_mut_ptr(), LLVMTypeOf(value), c"".as_ptr());
        LLVMSetInitializer(global, value);
        LLVMSetGlobalConstant(global, 1);
        LLVMSetLinkage(global, LLVMLinkage::LLVMPrivateLinkage);
        LLVMSetAlignment(global, ALIGNMENT);
        global
    }
}
