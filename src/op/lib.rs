//! The model of an op: what an op *is* to the graph, the compiler and the runtime; no particular op.
//!
//! - [`Op`]: the record that an op's file states. [`OpRecord`], [`Registry`]: what is looked up by name.
//! - [`NodeInfo`], [`Attrs`]: a node as its op sees it.
//! - [`ShapeContext`], [`KernelContext`], [`LowerContext`], [`GradientContext`]: the four views. Each wraps a small
//!   host trait that graph, compiler and runtime implement; this is the only inversion of layers.
//! - [`Executable`], [`run_one`]: one node made ready for concrete shapes, and run without a session.
//! - [`Value`], [`Variable`], [`RefVariable`], [`ResourceManager`], [`Cancellation`]: what a step works on.
//! - [`Rendezvous`], [`Collectives`], [`StepTensors`]: where steps leave values for others, and meet.

mod attr;
mod attr_equal;
mod attr_proto;
mod cancellation;
mod collectives;
mod compile_request;
mod function_host;
mod function_op;
mod gradient_context;
mod kernel_context;
#[cfg(all(test, loom))]
mod loom_tests;
mod lower_context;
mod mailbox;
mod monitor;
mod node;
mod op_def_builder;
mod record;
mod registry;
mod rendezvous;
mod resource;
mod run_one;
pub mod schema;
mod session_tensors;
mod shape_context;
pub mod shapes;
mod specialize;
mod sync;
mod tensor_list;
mod value;

pub use attr::{AttrValue, Attrs, FunctionRef};
pub use cancellation::Cancellation;
pub use collectives::{CollectiveCall, Collectives, Combine};
pub use compile_request::CompileRequest;
pub use function_host::{Callable, FunctionHost, FunctionSignature, Returned, Runner};
pub use gradient_context::{Differentiated, GradientContext, GradientHost, OutputRef};
pub use kernel_context::{AsyncKernelContext, KernelContext, KernelHost};
pub use lower_context::LowerContext;
pub use mailbox::{Ended, Mailbox, Relay, Work};
pub use monitor::{Done, Monitor, Outcome};
pub use node::{NodeInfo, Types};
pub use op_def_builder::OpDefBuilder;
pub use record::{
    AsyncFn, AttemptFn, CalledFn, DynKernel, DynShapeFn, Effects, Gradient, GradientFn, InputNames, Kernel,
    KernelBody, KernelInstance, KernelRecord, LowerFn, NativeFn, Op, OpRecord, PrepareContext, PrepareFn,
    Prepared, ShapeFn,
};
pub use registry::Registry;
pub use rendezvous::{Received, Rendezvous};
pub use resource::{DEFAULT_CONTAINER, ResourceManager, unique_resource_name};
pub use run_one::{RunOneHost, run_one};
pub use session_tensors::{SessionTensors, StepTensors};
pub use shape_context::{HandleShapes, ShapeContext, ShapeHost, Shapes, shape_from_value};
pub use specialize::{Executable, Specialization};
pub use tensor_list::TensorList;
pub use value::{RefVariable, Value, Variable};
