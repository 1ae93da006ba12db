//! Functions of a graph's library as ops see them.

use crate::{FunctionRef, HandleShapes, KernelHost, Relay};
use ff_hlo::{Builder, Op as HloOp};
use ff_proto::FunctionDefLibrary;
use ff_tensor::{DataType, PartialShape, Result, Tensor};
use std::sync::Arc;

/// The types of a function's arguments and results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSignature {
    /// Argument types.
    pub inputs: Vec<DataType>,
    /// Result types.
    pub outputs: Vec<DataType>,
}

/// Called once with a function's results or an error, by the thread that drives the step.
pub type Returned = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// A function made ready to run, with the values of its attributes.
pub trait Callable: Send + Sync {
    /// Its types.
    fn signature(&self) -> &FunctionSignature;

    /// Runs it to the end on the calling thread, as part of the step that `host` belongs to.
    fn run(&self, host: &dyn KernelHost, arguments: Vec<Tensor>) -> Result<Vec<Tensor>>;

    /// Starts it as part of the step that `host` belongs to, and returns when it has ended or when all that is left of it
    /// waits; it then goes on through `relay`. `returned` may be called before this returns.
    fn start(
        self: Arc<Self>,
        host: Arc<dyn KernelHost>,
        relay: Arc<dyn Relay>,
        arguments: Vec<Tensor>,
        returned: Returned,
    ) {
        let _ = relay;
        returned(self.run(&*host, arguments));
    }

    /// Prepares for many runs in one step, as a loop makes them.
    fn runner<'a>(&'a self, host: &'a dyn KernelHost) -> Result<Box<dyn Runner + 'a>>;
}

/// Runs a function again and again as part of one step.
pub trait Runner {
    /// Runs it once: takes all of `arguments`, and puts its results into `results`, which is empty.
    fn run(&mut self, arguments: &mut Vec<Tensor>, results: &mut Vec<Tensor>) -> Result<()>;
}

/// Looks functions up and does with them what ops need. The graph, a session and the compiler implement it.
pub trait FunctionHost: Send + Sync {
    /// A function's types. NOT_FOUND when the library has no such function.
    fn signature(&self, function: &FunctionRef) -> Result<FunctionSignature>;

    /// Makes a function ready to run; hosts keep the result. The gradient of a function is called `SymbolicGradient`, with
    /// the function as its attribute `f`. UNIMPLEMENTED where nothing can run.
    fn instantiate(&self, function: &FunctionRef) -> Result<Arc<dyn Callable>>;

    /// The result shapes for these argument shapes, and what handles among the results hold.
    fn infer(
        &self,
        function: &FunctionRef,
        arguments: &[PartialShape],
        handles: &[Option<HandleShapes>],
    ) -> Result<(Vec<PartialShape>, Vec<Option<HandleShapes>>)>;

    /// Whether something in the function, or in one that it calls, may wait for others: such a function is started rather
    /// than run. False where nothing runs for long.
    fn may_wait(&self, _function: &FunctionRef) -> bool {
        false
    }

    /// All functions as a message.
    fn library(&self) -> FunctionDefLibrary {
        FunctionDefLibrary::default()
    }

    /// Emits a function's body. UNIMPLEMENTED where something in it has no lowering.
    fn lower(&self, function: &FunctionRef, builder: &mut Builder, arguments: &[HloOp])
    -> Result<Vec<HloOp>>;
}
