//! Machine code from kernel descriptions, by LLVM. The only crate that sees LLVM.
//!
//! One path for every use: description -> IR with explicit vectors ([`Elementwise`] so far) -> the code generator of
//! LLVM -> a relocatable object. The just-in-time compiler loads that object into memory ([`CompiledKernel`]),
//! an ahead-of-time compiler can write it to a file, and for NVPTX the object is PTX text.
//!
//! Contract
//! * Nothing happens before the first request: no constructor, no target, no memory.
//! * Without the cargo feature `llvm` the same functions exist and answer UNIMPLEMENTED.
//! * Compiling is safe from several threads at once.
//!
//! What it does not do: it knows nothing of TensorFlow's ops, and it keeps no cache of kernels.

mod elementwise;
#[cfg(feature = "llvm")]
mod llvm;
mod loader;
mod self_test;
#[cfg(not(feature = "llvm"))]
mod without_llvm;

pub use elementwise::{Elementwise, Instruction};
pub use loader::LoadedObject;
pub use self_test::self_test;

#[cfg(feature = "llvm")]
pub use llvm::{compile_object, compile_ptx, version};
#[cfg(not(feature = "llvm"))]
pub use without_llvm::{compile_object, compile_ptx, version};

use ff_tensor::{Result, ensure, status};

/// A kernel in executable memory.
pub struct CompiledKernel {
    code: LoadedObject,
    inputs: usize,
    function: KernelFunction,
}

/// `(output, inputs, elements)`: how a compiled elementwise kernel is called.
type KernelFunction = unsafe extern "C" fn(*mut f32, *const *const f32, u64);

impl CompiledKernel {
    /// Compiles `kernel` for this machine and loads it.
    pub fn new(kernel: &Elementwise) -> Result<CompiledKernel> {
        let code = LoadedObject::load(&compile_object(kernel)?)?;
        let address = code
            .symbol(&kernel.name)
            .ok_or_else(|| status!(Internal, "the compiled object does not define {}", kernel.name))?;
        // SAFETY: the emitter gives every elementwise kernel this signature.
        let function = unsafe { std::mem::transmute::<*const u8, KernelFunction>(address) };
        Ok(CompiledKernel {
            code,
            inputs: kernel.inputs,
            function,
        })
    }

    /// Runs the kernel on arrays of equal length. INVALID_ARGUMENT when their number or lengths differ.
    pub fn run(&self, output: &mut [f32], inputs: &[&[f32]]) -> Result<()> {
        ensure!(
            inputs.len() == self.inputs && inputs.iter().all(|input| input.len() == output.len()),
            InvalidArgument,
            "the kernel takes {} arrays of the output's length {}",
            self.inputs,
            output.len()
        );
        let pointers: Vec<*const f32> = inputs.iter().map(|input| input.as_ptr()).collect();
        // SAFETY: the code lives as long as `self`; it reads and writes `output.len()` elements of each array.
        unsafe { (self.function)(output.as_mut_ptr(), pointers.as_ptr(), output.len() as u64) };
        Ok(())
    }

    /// Bytes of executable memory that the kernel holds.
    pub fn code_bytes(&self) -> usize {
        self.code.len()
    }
}
