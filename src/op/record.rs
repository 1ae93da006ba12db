//! The record of an op: everything that the op does, in one value.
//!
//! [`Op`] is what an op's file states as a `static`: plain data and function pointers. [`OpRecord`] is what
//! registries hold: the schema with the behaviour, made from a static or at run time.

use crate::{
    AsyncKernelContext, FunctionRef, GradientContext, KernelContext, LowerContext, NodeInfo, ShapeContext,
};
use ff_proto::OpDef;
use ff_tensor::{DataType, Result, Tensor, status};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What running an op can do beyond computing its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effects {
    /// Outputs depend on inputs and attributes only: may be folded, merged, dropped.
    Pure,
    /// Reads state that other ops write.
    Reads,
    /// Writes state, or does something that is seen outside: never dropped, never merged.
    Writes,
    /// Keeps state of its own (random streams, queues).
    Stateful,
}

/// What a node computes once from its attributes and constant inputs, for its kernel to use in every step.
pub type Prepared = Arc<dyn Any + Send + Sync>;

/// What `prepare` sees: the node, and those of its inputs that are constants.
pub struct PrepareContext<'a> {
    /// The node.
    pub node: &'a NodeInfo,
    /// One entry per input: its value if it is a constant.
    pub constant_inputs: &'a [Option<Tensor>],
}

/// Infers output shapes and validates input shapes; the only place that does.
pub type ShapeFn = fn(&mut ShapeContext) -> Result<()>;
/// Computes what a node keeps for its kernel.
pub type PrepareFn = fn(&PrepareContext) -> Result<Prepared>;
/// Runs a node.
pub type NativeFn = fn(&mut KernelContext) -> Result<()>;
/// Starts a node that may wait; it finishes through its context.
pub type AsyncFn = fn(AsyncKernelContext);
/// Runs a node that may wait if it does not have to. Whether it did; if not, nothing has changed and nothing was taken.
pub type AttemptFn = fn(&mut KernelContext) -> Result<bool>;
/// The functions that a node may call.
pub type CalledFn = fn(&NodeInfo) -> Vec<FunctionRef>;
/// Emits HLO for concrete shapes.
pub type LowerFn = fn(&mut LowerContext) -> Result<()>;
/// Adds the nodes of an op's gradient.
pub type GradientFn = fn(&mut GradientContext) -> Result<()>;

/// How a kernel runs.
#[derive(Clone, Copy)]
pub enum KernelBody {
    /// On the calling thread.
    Native(NativeFn),
    /// May wait for something outside; holds no thread meanwhile.
    Asynchronous {
        /// Starts it.
        start: AsyncFn,
        /// Runs it on the calling thread where it need not wait, which is cheaper.
        attempt: Option<AttemptFn>,
    },
    /// Calls functions: on the calling thread, or, where one of them may wait, without holding it.
    Calls {
        /// Runs it on the calling thread.
        run: NativeFn,
        /// Starts it.
        start: AsyncFn,
        /// Which functions.
        functions: CalledFn,
    },
    /// The op's lowering, run by the HLO evaluator.
    FromLowering,
}

/// A kernel of an op: where it applies and how it runs.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// Device type, `CPU` unless said otherwise.
    pub device: &'static str,
    /// Attributes and the types they may have; an attribute not listed may have any.
    pub types: &'static [(&'static str, &'static [DataType])],
    /// Value of the node's `_kernel` attribute that selects this kernel.
    pub label: &'static str,
    /// The highest priority wins among kernels that apply.
    pub priority: i32,
    /// Arguments that stay in host memory on other devices.
    pub host_memory: &'static [&'static str],
    /// How it runs.
    pub body: KernelBody,
}

impl Kernel {
    const fn of(body: KernelBody) -> Kernel {
        Kernel {
            device: "CPU",
            types: &[],
            label: "",
            priority: 0,
            host_memory: &[],
            body,
        }
    }

    /// A kernel that runs on the calling thread, for any types.
    pub const fn native(run: NativeFn) -> Kernel {
        Kernel::of(KernelBody::Native(run))
    }

    /// A kernel that may wait, for any types.
    pub const fn asynchronous(start: AsyncFn) -> Kernel {
        Kernel::of(KernelBody::Asynchronous { start, attempt: None })
    }

    /// A kernel that may wait and is first tried on the calling thread, for any types.
    pub const fn attempted(attempt: AttemptFn, start: AsyncFn) -> Kernel {
        Kernel::of(KernelBody::Asynchronous {
            start,
            attempt: Some(attempt),
        })
    }

    /// A kernel that calls the functions among its attributes, for any types: `run` where none of them may wait.
    pub const fn calls(run: NativeFn, start: AsyncFn) -> Kernel {
        Kernel::of(KernelBody::Calls {
            run,
            start,
            functions: NodeInfo::functions,
        })
    }

    /// The op's lowering as its kernel, for any types.
    pub const FROM_LOWERING: Kernel = Kernel::of(KernelBody::FromLowering);

    /// The same kernel for these types of attributes only: `Kernel::native(f).for_types(&[("T", FLOATS)])`.
    pub const fn for_types(self, types: &'static [(&'static str, &'static [DataType])]) -> Kernel {
        Kernel { types, ..self }
    }
}

/// How an op is differentiated.
#[derive(Clone, Copy)]
pub enum Gradient {
    /// No gradient is known: asking for it is an error.
    Missing,
    /// The op has no gradient: gradients stop here.
    NotDifferentiable,
    /// Adds the gradient's nodes.
    Fn(GradientFn),
}

/// What an op does, as its file states it.
#[derive(Clone, Copy)]
pub struct Op {
    /// Name in the schemas.
    pub name: &'static str,
    /// What running it can do.
    pub effects: Effects,
    /// Infers and validates shapes.
    pub shape: ShapeFn,
    /// Computes what a node keeps for its kernel.
    pub prepare: Option<PrepareFn>,
    /// Kernels.
    pub kernels: &'static [Kernel],
    /// Emits HLO.
    pub lower: Option<LowerFn>,
    /// Gradient.
    pub gradient: Gradient,
}

impl Op {
    const fn of(effects: Effects) -> Op {
        Op {
            name: "",
            effects,
            shape: crate::shapes::unknown,
            prepare: None,
            kernels: &[],
            lower: None,
            gradient: Gradient::Missing,
        }
    }

    /// Base of records of pure ops.
    pub const PURE: Op = Op::of(Effects::Pure);
    /// Base of records of ops that read state.
    pub const READS: Op = Op::of(Effects::Reads);
    /// Base of records of ops that write state or act outside.
    pub const WRITES: Op = Op::of(Effects::Writes);
    /// Base of records of ops with state of their own.
    pub const STATEFUL: Op = Op::of(Effects::Stateful);
}

/// A shape function given at run time.
pub type DynShapeFn = Arc<dyn Fn(&mut ShapeContext) -> Result<()> + Send + Sync>;

/// Gives the names of a node's inputs and control inputs, as its message has them.
pub type InputNames<'a> = &'a dyn Fn() -> Vec<String>;

/// A kernel given at run time: an instance is made for each node and lives as long as its session.
pub trait DynKernel: Send + Sync {
    /// Makes the instance for a node. `inputs` gives the names of what it reads and waits for, as its message has them.
    fn create(&self, node: &NodeInfo, inputs: InputNames) -> Result<Arc<dyn KernelInstance>>;

    /// Whether instances keep state, which then belongs to the session under the node's name. One that does not is made
    /// anew for each plan.
    fn keeps_state(&self) -> bool {
        true
    }

    /// Whether instances may wait.
    fn may_wait(&self) -> bool {
        false
    }
}

/// A node's instance of a kernel given at run time.
pub trait KernelInstance: Send + Sync {
    /// Runs it to its end.
    fn run(&self, context: &mut KernelContext) -> Result<()>;

    /// Whether it may wait: then it is started where the step can go on meanwhile.
    fn may_wait(&self) -> bool {
        false
    }

    /// Starts it; it finishes through its context.
    fn start(&self, context: AsyncKernelContext) {
        let error = status!(Internal, "{} cannot wait", context.node.describe());
        context.finish(Err(error));
    }
}

/// A kernel as registries hold it.
#[derive(Clone)]
pub enum KernelRecord {
    /// From an op's file.
    Static(Kernel),
    /// Given at run time.
    Dynamic {
        /// Device type.
        device: String,
        /// Attributes and the types they may have.
        types: Vec<(String, Vec<DataType>)>,
        /// Value of `_kernel` that selects it.
        label: String,
        /// The highest priority wins.
        priority: i32,
        /// Makes instances.
        kernel: Arc<dyn DynKernel>,
    },
}

impl KernelRecord {
    /// Device type that it runs on.
    pub fn device(&self) -> &str {
        match self {
            KernelRecord::Static(kernel) => kernel.device,
            KernelRecord::Dynamic { device, .. } => device,
        }
    }

    /// The highest priority wins.
    pub fn priority(&self) -> i32 {
        match self {
            KernelRecord::Static(kernel) => kernel.priority,
            KernelRecord::Dynamic { priority, .. } => *priority,
        }
    }

    /// Whether the kernel itself may wait, whatever the functions that it calls do.
    pub fn may_wait(&self) -> bool {
        match self {
            KernelRecord::Static(kernel) => matches!(kernel.body, KernelBody::Asynchronous { .. }),
            KernelRecord::Dynamic { kernel, .. } => kernel.may_wait(),
        }
    }

    /// Whether the kernel applies to a node on this type of device.
    pub fn applies(&self, node: &NodeInfo, device: &str) -> bool {
        let label = node.attrs.string("_kernel").unwrap_or("");
        match self {
            KernelRecord::Static(kernel) => {
                kernel.device == device
                    && kernel.label == label
                    && kernel
                        .types
                        .iter()
                        .all(|(attr, allowed)| type_fits(node, attr, allowed))
            }
            KernelRecord::Dynamic {
                device: its_device,
                types,
                label: its_label,
                ..
            } => {
                its_device == device
                    && its_label == label
                    && types.iter().all(|(attr, allowed)| type_fits(node, attr, allowed))
            }
        }
    }
}

fn type_fits(node: &NodeInfo, attr: &str, allowed: &[DataType]) -> bool {
    match node.attrs.dtype(attr) {
        Ok(dtype) => allowed.contains(&dtype),
        Err(_) => node
            .attrs
            .types(attr)
            .is_ok_and(|list| list.iter().all(|dtype| allowed.contains(dtype))),
    }
}

/// An op as registries hold it: schema and behaviour.
#[derive(Clone)]
pub struct OpRecord {
    /// The schema.
    pub def: Arc<OpDef>,
    /// What running it can do.
    pub effects: Effects,
    /// Infers and validates shapes.
    pub shape: DynShapeFn,
    /// Whether `shape` was given; if not, nothing is known of the outputs.
    pub has_shape_function: bool,
    /// Computes what a node keeps for its kernel.
    pub prepare: Option<PrepareFn>,
    /// Kernels; empty for an op that can be imported but not run.
    pub kernels: Vec<KernelRecord>,
    /// Emits HLO.
    pub lower: Option<LowerFn>,
    /// Gradient.
    pub gradient: Gradient,
}

impl OpRecord {
    /// The record of a static op with its schema.
    pub fn from_static(def: Arc<OpDef>, op: &'static Op) -> OpRecord {
        OpRecord {
            def,
            effects: op.effects,
            shape: Arc::new(op.shape),
            has_shape_function: true,
            prepare: op.prepare,
            kernels: op
                .kernels
                .iter()
                .map(|kernel| KernelRecord::Static(*kernel))
                .collect(),
            lower: op.lower,
            gradient: op.gradient,
        }
    }

    /// The record of an op of which only the schema is known: shapes unknown, no kernel.
    pub fn schema_only(def: Arc<OpDef>) -> OpRecord {
        let effects = if def.is_stateful {
            Effects::Stateful
        } else {
            Effects::Pure
        };
        OpRecord {
            def,
            effects,
            shape: Arc::new(crate::shapes::unknown),
            // The reference has one, which is not known here.
            has_shape_function: true,
            prepare: None,
            kernels: Vec::new(),
            lower: None,
            gradient: Gradient::Missing,
        }
    }

    /// The kernel with the highest priority that applies to a node on this type of device.
    pub fn kernel_for(&self, node: &NodeInfo, device: &str) -> Option<&KernelRecord> {
        // Of equal priorities the first listed wins.
        self.kernels
            .iter()
            .rev()
            .filter(|kernel| kernel.applies(node, device))
            .max_by_key(|kernel| kernel.priority())
    }
}

impl fmt::Debug for OpRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpRecord({})", self.def.name)
    }
}
