//! Blocks, and loops that count.

use super::{Block, Ir, Kind, NO_NAME, Val};
use llvm_sys::LLVMIntPredicate;
use llvm_sys::core::*;

/// The body of a loop: from the index and the carried values to those of the next turn.
pub type Body<'b> = &'b mut dyn FnMut(Val, &[Val]) -> ff_tensor::Result<Vec<Val>>;

impl Ir<'_> {
    /// A new block at the end of the function.
    pub fn block(&self) -> Block {
        // SAFETY: the function belongs to the context.
        Block(unsafe { LLVMAppendBasicBlockInContext(self.context, self.function, NO_NAME) })
    }

    /// Instructions go to the end of this block from now on.
    pub fn go(&self, block: Block) {
        // SAFETY: the block belongs to the function.
        unsafe { LLVMPositionBuilderAtEnd(self.builder, block.0) }
    }

    /// The block that instructions go to.
    pub fn here(&self) -> Block {
        // SAFETY: the builder stands in a block.
        Block(unsafe { LLVMGetInsertBlock(self.builder) })
    }

    /// Ends the block with a jump.
    pub fn jump(&self, to: Block) {
        // SAFETY: as for `binary`.
        unsafe { LLVMBuildBr(self.builder, to.0) };
    }

    /// Ends the block with a jump to one of two.
    pub fn branch(&self, condition: Val, yes: Block, no: Block) {
        // SAFETY: as for `binary`.
        unsafe { LLVMBuildCondBr(self.builder, condition.0, yes.0, no.0) };
    }

    /// Ends the function.
    pub fn ret(&self) {
        // SAFETY: as for `binary`.
        unsafe { LLVMBuildRetVoid(self.builder) };
    }

    /// A value that depends on the block before; [`Ir::incoming`] says how.
    pub fn phi(&self, kind: Kind, lanes: u32) -> Val {
        // SAFETY: as for `binary`.
        Val(unsafe { LLVMBuildPhi(self.builder, self.ty(kind, lanes), NO_NAME) })
    }

    /// The value of a phi when control comes from a block.
    pub fn incoming(&self, phi: Val, value: Val, from: Block) {
        let (mut value, mut block) = (value.0, from.0);
        // SAFETY: one pair is passed.
        unsafe { LLVMAddIncoming(phi.0, &mut value, &mut block, 1) }
    }

    /// `for (i = start; i < end; i += step) body(i, carried)` for signed integers: `body` gives the carried values of
    /// the next turn. Returns those after the last turn; instructions go on after the loop.
    pub fn count_loop(
        &self,
        (start, end, step): (Val, Val, i64),
        carried: &[(Val, Kind, u32)],
        body: Body,
    ) -> ff_tensor::Result<Vec<Val>> {
        let before = self.here();
        let (turn, after) = (self.block(), self.block());
        let any = self.icmp(LLVMIntPredicate::LLVMIntSLT, start, end);
        self.branch(any, turn, after);
        self.go(turn);
        let index = self.phi(Kind::I64, 1);
        self.incoming(index, start, before);
        let mut phis = Vec::with_capacity(carried.len());
        for &(first, kind, lanes) in carried {
            let phi = self.phi(kind, lanes);
            self.incoming(phi, first, before);
            phis.push(phi);
        }
        let results = body(index, &phis)?;
        let next = self.add(index, self.int(Kind::I64, 1, step));
        let last = self.here();
        self.incoming(index, next, last);
        for (phi, result) in phis.iter().zip(&results) {
            self.incoming(*phi, *result, last);
        }
        let more = self.icmp(LLVMIntPredicate::LLVMIntSLT, next, end);
        self.branch(more, turn, after);
        self.go(after);
        let mut finals = Vec::with_capacity(carried.len());
        for (&(first, kind, lanes), result) in carried.iter().zip(&results) {
            let phi = self.phi(kind, lanes);
            self.incoming(phi, first, before);
            self.incoming(phi, *result, last);
            finals.push(phi);
        }
        Ok(finals)
    }
}
