//! Ahead-of-time compilation: a signature of a SavedModel, or part of a graph, becomes an object file and a header.
//!
//! [`Source`] is what is compiled: [`Source::saved_model`] or [`Source::graph_def`]. [`compile`] makes an [`Artifact`]:
//! 1. `freeze`: the part of the graph between inputs and outputs, calls inlined, variables replaced by their values;
//! 2. `lower`: every op in HLO for fixed extents, then the passes of the compiler;
//! 3. `object`: machine code for the fusions; instructions as text and weights beside it; `header`: C and C++ for it.
//!
//! The object links with the runtime of `src/aot_runtime`.
//!
//! Contract: what cannot be compiled is refused with a status that names the node: strings, state that is written,
//! shapes that depend on data, ops without a lowering. Damaged models are errors, never crashes.
//!
//! What it does not do: it runs nothing, but for what reads the variables of a SavedModel.

mod freeze;
mod header;
mod lower;
mod names;
mod object;
mod options;
mod source;

pub use options::Options;
pub use source::{Source, Value};

use ff_hlo::buffers::Assignment;
use ff_tensor::Result;

/// The files of a compiled model.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// The relocatable object.
    pub object: Vec<u8>,
    /// The C and C++ header.
    pub header: String,
    /// The weights, where they are not in the object.
    pub weights: Option<Vec<u8>>,
    /// For people: the instructions after all passes, and where their results would lie in one block of memory.
    pub report: String,
    /// How many fusions have machine code.
    pub num_fusions: usize,
}

/// Compiles a model.
///
/// INVALID_ARGUMENT for inputs whose extents are not fixed, UNIMPLEMENTED (naming the node) for what has no lowering,
/// and in a build without LLVM.
pub fn compile(source: &Source, options: &Options) -> Result<Artifact> {
    let shapes = options.shapes_of(&source.inputs)?;
    let body = freeze::freeze(source)?;
    let module = lower::lower(source, &body, &shapes, &options.name)?;
    let made = object::make(&module, options)?;
    let entry = module.entry_computation();
    let buffers = Assignment::of(&module, entry)?.report(entry);
    let header = header::header(source, &module, options)?;
    Ok(Artifact {
        header,
        report: format!("{}\n{buffers}", made.text),
        object: made.object,
        weights: made.weights,
        num_fusions: made.num_fusions,
    })
}

/// Compiles a model and writes `PREFIX.o`, `PREFIX.h`, and `PREFIX.weights` where weights have a file of their own.
pub fn compile_to(source: &Source, options: &Options, prefix: &str) -> Result<Artifact> {
    let artifact = compile(source, options)?;
    ff_platform::files::write_atomically(&format!("{prefix}.o"), &artifact.object)?;
    ff_platform::files::write_atomically(&format!("{prefix}.h"), artifact.header.as_bytes())?;
    if let Some(weights) = &artifact.weights {
        ff_platform::files::write_atomically(&format!("{prefix}.weights"), weights)?;
    }
    Ok(artifact)
}

#[cfg(test)]
mod tests;
