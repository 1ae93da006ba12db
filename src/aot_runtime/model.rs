//! A compiled model with its arguments and results.

use crate::program::{Program as Table, VERSION, items};
use crate::weights;
use ff_codegen::LinkedFusions;
use ff_hlo::{ArrayShape, HloShape, Program};
use ff_kernels::ThreadPool;
use ff_tensor::{Buffer, Result, Shape, Status, Tensor, ensure, status};
use std::ffi::{CString, c_void};

/// Bytes that memory of clients must be aligned to for being read in place.
pub const ALIGNMENT: usize = 64;

/// See the module. `FF_AotModel` in C.
pub struct Model {
    state: Result<Ready>,
    /// What the last call that failed said.
    error: Option<(Status, CString)>,
}

/// A model that can run.
struct Ready {
    program: Program,
    pool: Option<ThreadPool>,
    arguments: Vec<Argument>,
    results: Vec<ArrayShape>,
    values: Vec<Tensor>,
    fusions: usize,
}

struct Argument {
    /// Memory of the model's own.
    own: Tensor,
    /// Memory of the client, read in each run.
    client: Option<*const u8>,
}

// SAFETY: the pointers are read in runs only, which are the client's own calls.
unsafe impl Send for Argument {}

impl Model {
    /// A model of a program, with so many threads (1: the caller's only), and weights from a file where the program has
    /// none. If that fails, so does every run, with the same message.
    ///
    /// # Safety
    /// The program's table is as its compiler wrote it.
    pub unsafe fn new(program: &'static Table, threads: usize, weights_file: Option<&str>) -> Model {
        // SAFETY: passed on to the caller.
        let state = unsafe { Ready::new(program, threads, weights_file) };
        let error = state.as_ref().err().map(kept);
        Model { state, error }
    }

    /// Runs the model on its arguments.
    pub fn run(&mut self) -> Result<()> {
        let result = match &mut self.state {
            Ok(ready) => ready.run(),
            Err(error) => Err(error.clone()),
        };
        self.error = result.as_ref().err().map(kept);
        result
    }

    /// The number and message of what failed last, 0 for nothing.
    pub fn error(&self) -> (i32, Option<&CString>) {
        match &self.error {
            Some((status, message)) => (status.code() as i32, Some(message)),
            None => (0, None),
        }
    }

    /// The number of arguments, 0 for a model that failed.
    pub fn num_arguments(&self) -> usize {
        self.state.as_ref().map_or(0, |ready| ready.arguments.len())
    }

    /// The number of results, 0 for a model that failed.
    pub fn num_results(&self) -> usize {
        self.state.as_ref().map_or(0, |ready| ready.results.len())
    }

    /// How many fusions run as the machine code of the object.
    pub fn num_fusions(&self) -> usize {
        self.state.as_ref().map_or(0, |ready| ready.fusions)
    }

    /// Memory for the elements of an argument. From now on runs read it from there. Null where there is none.
    pub fn argument(&mut self, index: usize) -> *mut u8 {
        let Ok(ready) = &mut self.state else {
            return std::ptr::null_mut();
        };
        match ready.arguments.get_mut(index) {
            Some(argument) => {
                argument.client = None;
                argument.own.data_ptr()
            }
            None => std::ptr::null_mut(),
        }
    }

    /// Lets runs read an argument from memory of the client's, in place where it is aligned to [`ALIGNMENT`].
    pub fn set_argument(&mut self, index: usize, data: *const u8) -> bool {
        let argument = self
            .state
            .as_mut()
            .ok()
            .and_then(|ready| ready.arguments.get_mut(index));
        match argument {
            Some(argument) if !data.is_null() => {
                argument.client = Some(data);
                true
            }
            _ => false,
        }
    }

    /// The elements of a result of the last run that succeeded, until the next run. Null where there are none.
    pub fn result(&self, index: usize) -> *const u8 {
        let values = self
            .state
            .as_ref()
            .map(|ready| &ready.values[..])
            .unwrap_or_default();
        values
            .get(index)
            .map_or(std::ptr::null(), |value| value.data_ptr().cast_const())
    }

    /// Bytes of an argument, 0 where there is none.
    pub fn argument_size(&self, index: usize) -> usize {
        let arguments = self
            .state
            .as_ref()
            .map(|ready| &ready.arguments[..])
            .unwrap_or_default();
        arguments
            .get(index)
            .map_or(0, |argument| argument.own.byte_size())
    }

    /// Bytes of a result, 0 where there is none.
    pub fn result_size(&self, index: usize) -> usize {
        let results = self
            .state
            .as_ref()
            .map(|ready| &ready.results[..])
            .unwrap_or_default();
        results.get(index).map_or(0, ArrayShape::byte_size)
    }
}

fn kept(error: &Status) -> (Status, CString) {
    let text = error.message().replace('\0', " ");
    (error.clone(), CString::new(text).unwrap_or_default())
}

/// Whether this processor has what code of a level asks for.
fn has_level(level: u64) -> bool {
    level <= ff_kernels::cpu::level() as u64
}

impl Ready {
    /// # Safety
    /// As for [`Model::new`].
    unsafe fn new(table: &'static Table, threads: usize, weights_file: Option<&str>) -> Result<Ready> {
        ensure!(
            table.version == VERSION,
            FailedPrecondition,
            "The model was compiled for version {} of the runtime; this is version {VERSION}",
            table.version
        );
        // SAFETY: passed on to the caller.
        let (text, fusions, weights) = unsafe {
            (
                items(table.text, table.text_size),
                items(table.fusions, table.num_fusions),
                weights::load(table, weights_file)?,
            )
        };
        let text = std::str::from_utf8(text).map_err(|_| status!(DataLoss, "The model is no text"))?;
        let mut module = ff_hlo::parse(text)?;
        weights::place(&mut module, &weights)?;
        let functions: Vec<_> = fusions
            .iter()
            .filter(|_| has_level(table.level))
            .map(|fusion| (fusion.structure, fusion.function))
            .collect();
        // SAFETY: passed on to the caller; the processor was asked.
        let linked = unsafe { LinkedFusions::new(&functions) };
        let program = Program::compile_with(&module, &linked)?;
        let leaves = |shapes: &[HloShape]| -> Vec<ArrayShape> {
            shapes.iter().flat_map(|shape| shape.leaves()).cloned().collect()
        };
        let mut arguments = Vec::new();
        for array in leaves(&program.shape().parameters) {
            arguments.push(Argument {
                own: Tensor::zeros(array.dtype, Shape::new(&array.dims)?)?,
                client: None,
            });
        }
        let results = leaves(std::slice::from_ref(&program.shape().result));
        Ok(Ready {
            program,
            pool: (threads > 1).then(|| ThreadPool::new(threads)),
            arguments,
            results,
            values: Vec::new(),
            fusions: linked.num_found(),
        })
    }

    fn run(&mut self) -> Result<()> {
        let mut inputs = Vec::with_capacity(self.arguments.len());
        for argument in &mut self.arguments {
            inputs.push(argument.tensor()?);
        }
        // The memory of the results before goes back to the allocator, for this run.
        self.values.clear();
        let pool = self.pool.as_ref().unwrap_or(ThreadPool::serial());
        self.values = self.program.run(pool, inputs)?;
        Ok(())
    }
}

impl Argument {
    /// The argument for a run, which does not write it: somebody else owns it, too.
    fn tensor(&mut self) -> Result<Tensor> {
        let Some(data) = self.client else {
            return Ok(self.own.clone());
        };
        let len = self.own.byte_size();
        if (data as usize).is_multiple_of(ALIGNMENT) {
            // SAFETY: the client keeps the memory until it names another; a run ends before its call does.
            let buffer = unsafe { Buffer::shared(data, len, Box::new(())) };
            return Tensor::view_of(self.own.dtype(), self.own.shape().clone(), buffer);
        }
        // SAFETY: both have that many bytes, and the own memory is no client's.
        unsafe { std::ptr::copy_nonoverlapping(data.cast::<c_void>(), self.own.data_ptr().cast(), len) };
        Ok(self.own.clone())
    }
}

#[cfg(test)]
mod tests;
