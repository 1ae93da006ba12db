//! Addresses, reads and writes, and calls of functions by address.

use super::{Ir, Kind, NO_NAME, Val};
use llvm_sys::core::*;
use llvm_sys::prelude::*;
use std::ffi::c_uint;

impl Ir<'_> {
    /// The address `bytes` after another.
    pub fn offset(&self, pointer: Val, bytes: Val) -> Val {
        let mut index = bytes.0;
        // SAFETY: as for `binary`; one index is passed.
        Val(unsafe {
            LLVMBuildGEP2(
                self.builder,
                self.ty(Kind::I8, 1),
                pointer.0,
                &mut index,
                1,
                NO_NAME,
            )
        })
    }

    /// Reads lanes of a kind; addresses are aligned for one element.
    pub fn load(&self, pointer: Val, kind: Kind, lanes: u32) -> Val {
        // SAFETY: as for `binary`.
        unsafe {
            let value = LLVMBuildLoad2(self.builder, self.ty(kind, lanes), pointer.0, NO_NAME);
            LLVMSetAlignment(value, kind.bytes());
            Val(value)
        }
    }

    /// Writes lanes of a kind; addresses are aligned for one element.
    pub fn store(&self, value: Val, pointer: Val, kind: Kind) {
        // SAFETY: as for `binary`.
        unsafe {
            let store = LLVMBuildStore(self.builder, value.0, pointer.0);
            LLVMSetAlignment(store, kind.bytes());
        }
    }

    /// Reads the lanes of the mask; zeros in the others.
    pub fn masked_load(&self, pointer: Val, mask: Val, kind: Kind, lanes: u32) -> Val {
        let ty = self.ty(kind, lanes);
        // SAFETY: the types are alive.
        let zero = Val(unsafe { LLVMConstNull(ty) });
        let types = [ty, self.ty(Kind::Pointer, 1)];
        self.intrinsic("llvm.masked.load", &types, &[pointer, mask, zero])
    }

    /// Writes the lanes of the mask.
    pub fn masked_store(&self, value: Val, pointer: Val, mask: Val, kind: Kind, lanes: u32) {
        let types = [self.ty(kind, lanes), self.ty(Kind::Pointer, 1)];
        self.intrinsic("llvm.masked.store", &types, &[value, pointer, mask]);
    }

    /// Memory of the function for `count` elements, aligned to 64 bytes. Only in the first block.
    pub fn stack(&self, kind: Kind, count: u32) -> Val {
        // SAFETY: as for `binary`.
        unsafe {
            let ty = LLVMArrayType2(self.ty(kind, 1), u64::from(count));
            let place = LLVMBuildAlloca(self.builder, ty, NO_NAME);
            LLVMSetAlignment(place, 64);
            Val(place)
        }
    }

    /// Calls a function of pointers and 64-bit integers that returns nothing.
    pub fn call_pointer(&self, function: Val, arguments: &[(Val, Kind)]) {
        let mut types: Vec<LLVMTypeRef> = arguments.iter().map(|&(_, kind)| self.ty(kind, 1)).collect();
        let mut values: Vec<LLVMValueRef> = arguments.iter().map(|(value, _)| value.0).collect();
        let count = values.len() as c_uint;
        // SAFETY: the arrays have the length that is passed.
        unsafe {
            let void = LLVMVoidTypeInContext(self.context);
            let signature = LLVMFunctionType(void, types.as_mut_ptr(), count, 0);
            LLVMBuildCall2(
                self.builder,
                signature,
                function.0,
                values.as_mut_ptr(),
                count,
                NO_NAME,
            );
        }
    }
}
