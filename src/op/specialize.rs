//! One node made ready to run: its kernel chosen, then fitted to the extents it meets.
//!
//! [`Executable`] holds what depends on the node; [`Specialization`] what depends on input shapes, and on the values
//! of those inputs that shape function or lowering asked for. A steady step only compares shapes
//! ([`Specialization::fits`]) and runs.

use crate::{
    AsyncFn, AsyncKernelContext, AttemptFn, FunctionHost, HandleShapes, InputNames, KernelBody,
    KernelContext, KernelHost, KernelInstance, KernelRecord, LowerContext, LowerFn, NativeFn, NodeInfo,
    PrepareContext, Prepared, Relay, ShapeContext, ShapeHost, Value,
};
use ff_hlo::{ArrayShape, Builder, Program};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, status};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

enum Body {
    Native(NativeFn),
    Asynchronous(AsyncFn, Option<AttemptFn>),
    Lowered(LowerFn),
    Instance(Arc<dyn KernelInstance>),
}

/// A node with its kernel for one type of device. Immutable; shared by threads.
pub struct Executable {
    node: Arc<NodeInfo>,
    prepared: Option<Prepared>,
    body: Body,
}

/// What was worked out for certain input shapes and values. Immutable; shared by threads.
pub struct Specialization {
    /// Shape of each input; none for references.
    input_shapes: SmallVec<[Option<Shape>; 3]>,
    /// Values that the result depends on.
    input_values: SmallVec<[(usize, Tensor); 1]>,
    output_shapes: SmallVec<[Option<Shape>; 1]>,
    program: Option<Program>,
}

impl Specialization {
    /// Elements of the largest input or output, of those with a known shape.
    pub fn most_elements(&self) -> usize {
        let known = self.input_shapes.iter().chain(&self.output_shapes).flatten();
        known.map(Shape::num_elements).max().unwrap_or(0)
    }
}

impl Executable {
    /// Chooses and prepares the kernel of a node. `constants` has one entry per input: its value if it is a
    /// constant. NOT_FOUND, naming the op, when no kernel applies.
    pub fn new(
        node: Arc<NodeInfo>,
        device: &str,
        constants: &[Option<Tensor>],
        host: &dyn KernelHost,
    ) -> Result<Executable> {
        let inputs = || vec!["dummy_input".to_string(); constants.len()];
        Executable::with_input_names(node, device, constants, &inputs, host)
    }

    /// As [`Executable::new`], for a node of a graph, whose inputs have names.
    pub fn with_input_names(
        node: Arc<NodeInfo>,
        device: &str,
        constants: &[Option<Tensor>],
        inputs: InputNames,
        host: &dyn KernelHost,
    ) -> Result<Executable> {
        let kernel = node
            .op
            .kernel_for(&node, device)
            .ok_or_else(|| no_kernel(&node, device))?;
        let body = match kernel {
            KernelRecord::Static(kernel) => match kernel.body {
                KernelBody::Native(run) => Body::Native(run),
                KernelBody::Asynchronous { start, attempt } => Body::Asynchronous(start, attempt),
                KernelBody::Calls {
                    run,
                    start,
                    functions,
                } => match functions(&node)
                    .iter()
                    .any(|called| host.functions().may_wait(called))
                {
                    true => Body::Asynchronous(start, None),
                    false => Body::Native(run),
                },
                KernelBody::FromLowering => {
                    Body::Lowered(node.op.lower.ok_or_else(|| no_kernel(&node, device))?)
                }
            },
            KernelRecord::Dynamic { kernel, .. } if !kernel.keeps_state() => {
                Body::Instance(kernel.create(&node, inputs)?)
            }
            KernelRecord::Dynamic { kernel, .. } => {
                let mut make = || {
                    let instance: Arc<dyn Any + Send + Sync> =
                        Arc::new(Instance(kernel.create(&node, inputs)?));
                    Ok(instance)
                };
                let state = host.node_state(&node.name, &mut make)?;
                let instance = state.downcast_ref::<Instance>();
                let instance =
                    instance.ok_or_else(|| status!(Internal, "{} changed its op", node.describe()))?;
                Body::Instance(instance.0.clone())
            }
        };
        let prepare = node.op.prepare;
        let context = PrepareContext {
            node: &node,
            constant_inputs: constants,
        };
        let prepared = prepare.map(|prepare| prepare(&context)).transpose()?;
        Ok(Executable { node, prepared, body })
    }

    /// The node.
    pub fn node(&self) -> &Arc<NodeInfo> {
        &self.node
    }

    /// Whether the kernel may wait and must be run by [`Executable::start`].
    pub fn is_asynchronous(&self) -> bool {
        match &self.body {
            Body::Asynchronous(..) => true,
            Body::Instance(instance) => instance.may_wait(),
            _ => false,
        }
    }

    /// Infers output shapes for these inputs, and lowers and compiles if the kernel is a lowering.
    pub fn specialize(&self, inputs: &[Value], host: &dyn KernelHost) -> Result<Specialization> {
        let shapes: SmallVec<[PartialShape; 3]> = inputs.iter().map(partial_shape).collect();
        let step = StepShapes {
            inputs,
            functions: host.functions(),
        };
        let mut context = ShapeContext::new(&self.node, &shapes, &step);
        (self.node.op.shape)(&mut context)?;
        let mut read = context.values_read();
        let (outputs, _) = context.finish();
        let output_shapes = outputs.iter().map(|shape| self.output_shape(shape));
        let output_shapes = output_shapes.collect::<Result<_>>()?;
        let program = match self.body {
            Body::Lowered(lower) => Some(self.compile(lower, inputs, host, &mut read)?),
            _ => None,
        };
        let is_read = |index: usize| read >> index.min(63) & 1 == 1;
        let values = inputs.iter().enumerate().filter(|(index, _)| is_read(*index));
        Ok(Specialization {
            input_shapes: inputs.iter().map(full_shape).collect(),
            input_values: values
                .filter_map(|(index, value)| Some((index, tensor(value)?.clone())))
                .collect(),
            output_shapes,
            program,
        })
    }

    /// A full shape, if all of it is known. INVALID_ARGUMENT when its elements cannot be counted.
    fn output_shape(&self, shape: &PartialShape) -> Result<Option<Shape>> {
        let dims = shape.dims().filter(|_| shape.is_fully_known());
        dims.map(Shape::new)
            .transpose()
            .map_err(|error| error.suffixed(&format!(" at {}", self.node.describe())))
    }

    fn compile(
        &self,
        lower: LowerFn,
        inputs: &[Value],
        host: &dyn KernelHost,
        read: &mut u64,
    ) -> Result<Program> {
        let mut builder = Builder::new(&self.node.name);
        let mut operands = Vec::with_capacity(inputs.len());
        for (index, value) in inputs.iter().enumerate() {
            let value = tensor(value).ok_or_else(|| {
                status!(
                    Internal,
                    "{} has no tensor at input {index}",
                    self.node.describe()
                )
            })?;
            let shape = ArrayShape::new(value.dtype(), value.dims());
            operands.push(builder.parameter(index, shape, "")?);
        }
        let constants: Vec<Option<Tensor>> = inputs.iter().map(|value| tensor(value).cloned()).collect();
        let functions = Some(host.functions());
        let mut context = LowerContext::new(&self.node, &mut builder, &operands, &constants, functions);
        lower(&mut context)?;
        *read |= context.constants_read();
        let outputs = context.finish()?;
        let root = builder.tuple(&outputs)?;
        Program::compile(&builder.finish(root)?)
    }

    /// Runs the node to its end. `inputs` may be consumed.
    pub fn run(
        &self,
        specialization: &Specialization,
        inputs: &mut [Value],
        outputs: &mut [Value],
        host: &dyn KernelHost,
    ) -> Result<()> {
        let shapes = &specialization.output_shapes;
        let mut context =
            KernelContext::new(&self.node, self.prepared.as_ref(), inputs, outputs, shapes, host);
        match &self.body {
            Body::Native(run) => run(&mut context),
            Body::Instance(instance) => instance.run(&mut context),
            Body::Lowered(_) => self.run_program(specialization, inputs, outputs, host),
            Body::Asynchronous(..) => Err(status!(
                Internal,
                "{} cannot run synchronously",
                self.node.describe()
            )),
        }
    }

    fn run_program(
        &self,
        specialization: &Specialization,
        inputs: &mut [Value],
        outputs: &mut [Value],
        host: &dyn KernelHost,
    ) -> Result<()> {
        let program = specialization.program.as_ref();
        let program =
            program.ok_or_else(|| status!(Internal, "{} was not compiled", self.node.describe()))?;
        let mut arguments = Vec::with_capacity(inputs.len());
        for input in inputs.iter_mut() {
            match std::mem::take(input) {
                Value::Tensor(tensor) => arguments.push(tensor),
                _ => return Err(status!(Internal, "{} lacks an input", self.node.describe())),
            }
        }
        let results = program.run(host.pool(), arguments)?;
        for (slot, result) in outputs.iter_mut().zip(results) {
            *slot = Value::Tensor(result);
        }
        Ok(())
    }

    /// Runs a kernel that may wait to its end, if it need not wait. Whether it did; if not, [`Executable::start`] can be
    /// called with the same inputs.
    #[inline]
    pub fn attempt(
        &self,
        inputs: &mut [Value],
        outputs: &mut [Value],
        host: &dyn KernelHost,
    ) -> Result<bool> {
        let Body::Asynchronous(_, Some(attempt)) = self.body else {
            return Ok(false);
        };
        let prepared = self.prepared.as_ref();
        attempt(&mut KernelContext::new(
            &self.node,
            prepared,
            inputs,
            outputs,
            &[],
            host,
        ))
    }

    /// Starts a kernel that may wait. It calls `done` once, possibly before this returns.
    pub fn start(
        &self,
        inputs: Vec<Value>,
        host: Arc<dyn KernelHost>,
        relay: Arc<dyn Relay>,
        done: Box<dyn FnOnce(Result<Vec<Value>>) + Send>,
    ) {
        let context = AsyncKernelContext {
            node: self.node.clone(),
            prepared: self.prepared.clone(),
            inputs,
            host,
            relay,
            done,
        };
        match &self.body {
            Body::Asynchronous(start, _) => start(context),
            Body::Instance(instance) => instance.start(context),
            _ => {
                let error = status!(Internal, "{} cannot wait", self.node.describe());
                context.finish(Err(error));
            }
        }
    }
}

/// A node's kernel instance as session state.
struct Instance(Arc<dyn KernelInstance>);

fn no_kernel(node: &NodeInfo, device: &str) -> ff_tensor::Status {
    status!(
        NotFound,
        "No registered '{}' OpKernel for {device} devices compatible with node {}",
        node.op_name(),
        node.describe()
    )
}

impl Specialization {
    /// Whether it holds for these inputs.
    pub fn fits(&self, inputs: &[Value]) -> bool {
        self.input_shapes.len() == inputs.len()
            && self
                .input_shapes
                .iter()
                .zip(inputs)
                .all(|(shape, value)| match (shape, value) {
                    (Some(shape), Value::Tensor(tensor)) => shape == tensor.shape(),
                    (None, Value::Tensor(_)) => false,
                    (shape, _) => shape.is_none(),
                })
            && self
                .input_values
                .iter()
                .all(|(index, value)| tensor(&inputs[*index]).is_some_and(|now| same(value, now)))
    }

    /// The shape inferred for an output; none where it depends on data.
    pub fn output_shape(&self, index: usize) -> Option<&Shape> {
        self.output_shapes.get(index)?.as_ref()
    }
}

/// Whether two tensors of one shape hold the same bytes.
fn same(a: &Tensor, b: &Tensor) -> bool {
    if a.data_ptr() == b.data_ptr() && a.shares_buffer(b) {
        return true;
    }
    a.dtype() == b.dtype()
        && match a.dtype() {
            DataType::STRING => a.strings().ok() == b.strings().ok(),
            dtype => dtype.is_plain() && a.bytes() == b.bytes(),
        }
}

fn tensor(value: &Value) -> Option<&Tensor> {
    match value {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    }
}

fn full_shape(value: &Value) -> Option<Shape> {
    tensor(value).map(|tensor| tensor.shape().clone())
}

fn partial_shape(value: &Value) -> PartialShape {
    tensor(value).map_or_else(PartialShape::unknown, Tensor::partial_shape)
}

/// Answers a shape function's questions from the values of a step.
struct StepShapes<'a> {
    inputs: &'a [Value],
    functions: &'a dyn FunctionHost,
}

impl ShapeHost for StepShapes<'_> {
    fn input_value(&self, index: usize) -> Option<Tensor> {
        self.inputs.get(index).and_then(tensor).cloned()
    }

    fn input_handle(&self, index: usize) -> Option<HandleShapes> {
        let value = self.inputs.get(index).and_then(tensor)?;
        match value.resources() {
            Ok([handle]) if !handle.dtypes_and_shapes.is_empty() => Some(handle.dtypes_and_shapes.clone()),
            _ => None,
        }
    }

    fn functions(&self) -> Option<&dyn FunctionHost> {
        Some(self.functions)
    }

    fn in_step(&self) -> bool {
        true
    }
}
