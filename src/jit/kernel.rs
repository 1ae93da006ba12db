//! The kernel of a cluster: op by op at first, then one program for each set of input shapes.

use crate::compiler;
use crate::policy::Policy;
use crate::watch::Watch;
use ff_graph::FunctionBody;
use ff_hlo::{ArrayShape, Builder, Program};
use ff_op::{
    Callable, DynKernel, FunctionHost, InputNames, KernelContext, KernelHost, KernelInstance, KernelRecord,
    NodeInfo, OpRecord, RunOneHost,
};
use ff_platform::vlog;
use ff_proto::OpDef;
use ff_proto::op_def::{ArgDef, AttrDef};
use ff_tensor::{DataType, Result, Shape, Tensor};
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Name of the op of nodes that stand for clusters. Such nodes are never in a client's graph.
pub const OP_NAME: &str = "_Cluster";

/// Programs that clusters of this process run as.
static PROGRAMS: AtomicU64 = AtomicU64::new(0);

/// How many programs were made of clusters in this process.
pub fn num_programs() -> u64 {
    PROGRAMS.load(Relaxed)
}

/// Sets of shapes that a cluster remembers.
const KEPT: usize = 32;

/// See the module. Shared by all threads that run the plan.
pub struct ClusterKernel(Arc<Shared>);

pub(crate) struct Shared {
    body: Arc<FunctionBody>,
    op_by_op: Arc<dyn Callable>,
    policy: Policy,
    pub(crate) watch: Arc<Watch>,
    /// Elements of the largest constant in the body.
    largest_constant: usize,
    known: RwLock<Vec<Arc<Known>>>,
}

/// What is known for one set of input shapes.
pub(crate) struct Known {
    shapes: SmallVec<[Shape; 4]>,
    runs: AtomicU32,
    /// None when there is no program and never will be.
    program: OnceLock<Option<Program>>,
}

impl ClusterKernel {
    pub(crate) fn new(
        body: Arc<FunctionBody>,
        op_by_op: Arc<dyn Callable>,
        policy: Policy,
        watch: Arc<Watch>,
    ) -> ClusterKernel {
        let constants = body.graph().nodes();
        let constants = constants.filter_map(|(_, node)| node.info.attrs.tensor("value").ok());
        ClusterKernel(Arc::new(Shared {
            largest_constant: constants.map(Tensor::num_elements).max().unwrap_or(0),
            body,
            op_by_op,
            policy,
            watch,
            known: RwLock::default(),
        }))
    }
}

/// The op of one cluster's node: any inputs, any outputs.
pub(crate) fn record(kernel: ClusterKernel) -> OpRecord {
    let argument = |list: &str| ArgDef {
        name: list.to_lowercase(),
        type_list_attr: list.to_string(),
        ..ArgDef::default()
    };
    let attr = |name: &str| AttrDef {
        name: name.to_string(),
        r#type: "list(type)".to_string(),
        has_minimum: true,
        ..AttrDef::default()
    };
    let def = OpDef {
        name: OP_NAME.to_string(),
        input_arg: vec![argument("Tin")],
        output_arg: vec![argument("Tout")],
        attr: vec![attr("Tin"), attr("Tout")],
        ..OpDef::default()
    };
    OpRecord {
        kernels: vec![KernelRecord::Dynamic {
            device: "CPU".to_string(),
            types: Vec::new(),
            label: String::new(),
            priority: 0,
            kernel: Arc::new(kernel),
        }],
        ..OpRecord::schema_only(Arc::new(def))
    }
}

impl DynKernel for ClusterKernel {
    fn create(&self, _node: &NodeInfo, _inputs: InputNames) -> Result<Arc<dyn KernelInstance>> {
        Ok(Arc::new(ClusterKernel(self.0.clone())))
    }

    fn keeps_state(&self) -> bool {
        false
    }
}

impl KernelInstance for ClusterKernel {
    fn run(&self, context: &mut KernelContext) -> Result<()> {
        let cluster = &self.0;
        let inputs = (0..context.num_inputs()).map(|index| context.take_input(index));
        let inputs = inputs.collect::<Result<Vec<Tensor>>>()?;
        let known = cluster.known(&inputs);
        let program = match known.program.get() {
            Some(program) => program.as_ref(),
            None => cluster.try_compile(&known, context.host().functions()),
        };
        let outputs = match program {
            Some(program) => program.run(context.pool(), inputs),
            None => cluster.op_by_op.run(context.host(), inputs),
        }?;
        for (index, output) in outputs.into_iter().enumerate() {
            context.set_output(index, output)?;
        }
        Ok(())
    }
}

impl Shared {
    /// What is known for these inputs' shapes.
    fn known(&self, inputs: &[Tensor]) -> Arc<Known> {
        let fits = |known: &Arc<Known>| known.shapes.iter().eq(inputs.iter().map(Tensor::shape));
        if let Some(known) = self.known.read().iter().find(|known| fits(known)) {
            return known.clone();
        }
        let made = Arc::new(Known {
            shapes: inputs.iter().map(|input| input.shape().clone()).collect(),
            runs: AtomicU32::new(0),
            program: OnceLock::new(),
        });
        let inputs = inputs.iter().map(Tensor::num_elements);
        let largest = inputs.fold(self.largest_constant, usize::max);
        if largest < self.policy.least_elements {
            let _ = made.program.set(None);
        }
        let mut all = self.known.write();
        all.truncate(KEPT - 1);
        all.insert(0, made.clone());
        made
    }

    /// Counts a run without a program, and sees to it that there is one when it is time.
    fn try_compile<'a>(
        self: &Arc<Shared>,
        known: &'a Arc<Known>,
        functions: &dyn FunctionHost,
    ) -> Option<&'a Program> {
        let before = known.runs.fetch_add(1, Relaxed);
        if self.policy.runs_before == 0 {
            return known
                .program
                .get_or_init(|| self.compile(known, functions))
                .as_ref();
        }
        if before + 1 == self.policy.runs_before {
            compiler::enqueue(self, known);
        }
        self.watch.ran_unready();
        None
    }

    /// Compiles for these shapes, called by the compiler's thread.
    pub(crate) fn compile_without_functions(&self, known: &Known) {
        let host = RunOneHost::new();
        let _ = known.program.set(self.compile(known, host.functions()));
    }

    fn compile(&self, known: &Known, functions: &dyn FunctionHost) -> Option<Program> {
        let program = self.lower(known, functions);
        match &program {
            Ok(_) => drop(PROGRAMS.fetch_add(1, Relaxed)),
            Err(error) => vlog!(1, "not compilable: {error}"),
        }
        program.ok()
    }

    fn lower(&self, known: &Known, functions: &dyn FunctionHost) -> Result<Program> {
        let mut builder = Builder::new("cluster");
        let types: Vec<DataType> = self.body.signature().inputs;
        let mut arguments = Vec::with_capacity(types.len());
        for (index, (dtype, shape)) in types.iter().zip(&known.shapes).enumerate() {
            arguments.push(builder.parameter(index, ArrayShape::new(*dtype, shape.dims()), "")?);
        }
        let results = self.body.lower(&mut builder, &arguments, functions)?;
        let root = builder.tuple(&results)?;
        ff_codegen::compile(&builder.finish(root)?, ff_codegen::Compiler::host())
    }
}
