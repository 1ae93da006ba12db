//! What a kernel sees while a step runs.

use crate::{
    Cancellation, Collectives, FunctionHost, NodeInfo, Prepared, RefVariable, Relay, Rendezvous,
    ResourceManager, StepTensors, Value,
};
use ff_kernels::ThreadPool;
use ff_proto::ConfigProto;
use ff_tensor::{DataType, Element, ResourceHandle, Result, Shape, Tensor, bail, ensure, status};
use std::any::Any;
use std::sync::Arc;

/// What a step offers to its kernels. Sessions, eager contexts and [`crate::run_one`] implement it.
pub trait KernelHost: Send + Sync {
    /// Threads for work within an op.
    fn pool(&self) -> &ThreadPool;

    /// Resources of the device.
    fn resources(&self) -> &Arc<ResourceManager>;

    /// Resources of the device that a handle names, where that is another than this and is reached all the same.
    fn resources_elsewhere(&self, _handle: &ResourceHandle) -> Option<Arc<ResourceManager>> {
        None
    }

    /// Functions that nodes can name. UNIMPLEMENTED errors come from its methods where there are none.
    fn functions(&self) -> &dyn FunctionHost;

    /// The step's cancellation.
    fn cancellation(&self) -> &Cancellation;

    /// Number of the step, unique in its session.
    fn step_id(&self) -> u64;

    /// The v1 loop around the kernel, and its turn, for the few kinds of kernels that may ask: 0 and 0 outside of loops.
    fn loop_turn(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Full name of the device.
    fn device_name(&self) -> &str;

    /// State of a stateful node (random streams, plug-in instances): belongs to the session, by node name, and
    /// is made when first asked for.
    fn node_state(
        &self,
        node: &str,
        make: &mut dyn FnMut() -> Result<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<dyn Any + Send + Sync>>;

    /// The same host for kernels that outlive the call; none where nothing may outlive it.
    fn share(&self) -> Option<Arc<dyn KernelHost>>;

    /// What the session was configured with; the default where there is none.
    fn config(&self) -> ConfigProto {
        ConfigProto::default()
    }

    /// Full names of the devices, by number.
    fn device_names(&self) -> Vec<String> {
        vec![self.device_name().to_string()]
    }

    /// The same step as kernels of the device with this number see it; none for this device.
    fn on_device(&self, _device: usize) -> Option<&dyn KernelHost> {
        None
    }

    /// Where values of this step wait for who receives them. None where a step is a single node.
    fn rendezvous(&self) -> Option<&Arc<Rendezvous>> {
        None
    }

    /// What the step can leave to its session, and what steps before have left; none outside of sessions.
    fn session_tensors(&self) -> Option<&StepTensors> {
        None
    }

    /// Where the devices of the process meet for collective ops; none where a step is a single node.
    fn collectives(&self) -> Option<&Arc<Collectives>> {
        None
    }

    /// Where the host notes what runs, for plans of functions; of a type that the host knows.
    fn trace(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }

    /// Threads for independent branches of a function.
    fn branch_pool(&self) -> Option<&ThreadPool> {
        None
    }
}

impl dyn KernelHost + '_ {
    /// The resources among which a handle's is.
    pub fn resources_of(&self, handle: &ResourceHandle) -> Arc<ResourceManager> {
        let elsewhere = self.resources_elsewhere(handle);
        elsewhere.unwrap_or_else(|| self.resources().clone())
    }

    /// The resource that a handle means.
    pub fn find_by_handle<T: Any + Send + Sync>(&self, handle: &ResourceHandle) -> Result<Arc<T>> {
        match self.resources_elsewhere(handle) {
            Some(resources) => resources.find_by_handle(handle),
            None => self.resources().find_by_handle(handle),
        }
    }
}

/// The view that a kernel has of its node in a step.
///
/// Shapes are checked before the kernel runs: inputs fit the op's shape function, and
/// [`KernelContext::output_shape`] gives what it inferred.
pub struct KernelContext<'a> {
    node: &'a NodeInfo,
    prepared: Option<&'a Prepared>,
    inputs: &'a mut [Value],
    outputs: &'a mut [Value],
    output_shapes: &'a [Option<Shape>],
    host: &'a dyn KernelHost,
}

impl<'a> KernelContext<'a> {
    /// A context for one run of a node. `inputs` may be taken by the kernel; `outputs` start absent.
    pub fn new(
        node: &'a NodeInfo,
        prepared: Option<&'a Prepared>,
        inputs: &'a mut [Value],
        outputs: &'a mut [Value],
        output_shapes: &'a [Option<Shape>],
        host: &'a dyn KernelHost,
    ) -> KernelContext<'a> {
        KernelContext {
            node,
            prepared,
            inputs,
            outputs,
            output_shapes,
            host,
        }
    }

    /// The node.
    pub fn node(&self) -> &'a NodeInfo {
        self.node
    }

    /// The node's attributes; prefer [`KernelContext::prepared`] to reading them in every step.
    pub fn attrs(&self) -> &'a crate::Attrs {
        &self.node.attrs
    }

    /// What the op's `prepare` made for this node. INTERNAL when it made nothing of this type.
    pub fn prepared<T: Any>(&self) -> Result<&'a T> {
        let prepared = self.prepared.and_then(|prepared| prepared.downcast_ref());
        prepared.ok_or_else(|| status!(Internal, "{} was not prepared", self.node.describe()))
    }

    /// The step.
    pub fn host(&self) -> &'a dyn KernelHost {
        self.host
    }

    /// Threads for work within the op.
    pub fn pool(&self) -> &'a ThreadPool {
        self.host.pool()
    }

    /// Resources of the device.
    pub fn resources(&self) -> &'a Arc<ResourceManager> {
        self.host.resources()
    }

    /// Number of inputs.
    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// An input tensor. INTERNAL when it was taken or is a reference.
    pub fn input(&self, index: usize) -> Result<&Tensor> {
        match self.inputs.get(index) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            _ => Err(status!(
                Internal,
                "{} has no tensor at input {index}",
                self.node.describe()
            )),
        }
    }

    /// An input tensor, taken out: if nobody else holds it, its memory can be written.
    pub fn take_input(&mut self, index: usize) -> Result<Tensor> {
        match self.inputs.get_mut(index).map(std::mem::take) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            _ => Err(status!(
                Internal,
                "{} has no tensor at input {index}",
                self.node.describe()
            )),
        }
    }

    /// All input tensors of a range.
    pub fn input_tensors(&self, range: std::ops::Range<usize>) -> Result<Vec<&Tensor>> {
        range.map(|index| self.input(index)).collect()
    }

    /// The elements of an input. INVALID_ARGUMENT when they are of another type.
    pub fn input_slice<T: Element>(&self, index: usize) -> Result<&[T]> {
        self.input(index)?.as_slice()
    }

    /// The elements of an int32 or int64 input.
    pub fn input_i64s(&self, index: usize) -> Result<Vec<i64>> {
        self.input(index)?.to_i64_vec()
    }

    /// The value of an int32 or int64 input with a single element.
    pub fn input_i64(&self, index: usize) -> Result<i64> {
        match self.input_i64s(index)?[..] {
            [value] => Ok(value),
            _ => Err(status!(
                InvalidArgument,
                "input {index} of {} must be a scalar",
                self.node.describe()
            )),
        }
    }

    /// What is at an input, tensor or reference.
    pub fn value(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index)
    }

    /// The variable at a reference input. INTERNAL when there is none.
    pub fn ref_input(&self, index: usize) -> Result<&Arc<RefVariable>> {
        match self.inputs.get(index) {
            Some(Value::Ref(variable)) => Ok(variable),
            _ => Err(status!(
                Internal,
                "{} has no reference at input {index}",
                self.node.describe()
            )),
        }
    }

    /// The handle in a resource input with one element.
    pub fn handle(&self, index: usize) -> Result<&ResourceHandle> {
        match self.input(index)?.resources()? {
            [handle] => Ok(handle),
            _ => Err(status!(
                InvalidArgument,
                "input {index} of {} must be one handle",
                self.node.describe()
            )),
        }
    }

    /// The resource that the handle at an input means.
    pub fn resource<T: Any + Send + Sync>(&self, index: usize) -> Result<Arc<T>> {
        self.host.find_by_handle(self.handle(index)?)
    }

    /// Element type of an output.
    pub fn output_type(&self, index: usize) -> DataType {
        self.node.output_types[index].base()
    }

    /// The shape that was inferred for an output. INVALID_ARGUMENT when extents stayed unknown.
    pub fn output_shape(&self, index: usize) -> Result<&'a Shape> {
        let shape = self.output_shapes.get(index).and_then(|shape| shape.as_ref());
        shape.ok_or_else(|| {
            status!(
                InvalidArgument,
                "{} has no inferred shape for output {index}",
                self.node.describe()
            )
        })
    }

    /// A tensor of an output's type and inferred shape, of unspecified values, to be filled and given to
    /// [`KernelContext::set_output`].
    pub fn allocate_output(&self, index: usize) -> Result<Tensor> {
        self.allocate(self.output_type(index), self.output_shape(index)?.clone())
    }

    /// A tensor of unspecified values. RESOURCE_EXHAUSTED, naming the node, when memory is out.
    pub fn allocate(&self, dtype: DataType, shape: Shape) -> Result<Tensor> {
        Tensor::allocate(dtype, shape)
            .map_err(|error| error.suffixed(&format!(" at {}", self.node.describe())))
    }

    /// Whether this node is the last reader of an input of the output's type and shape.
    fn can_forward(&self, input: usize, output: usize) -> Result<bool> {
        let shape = self.output_shape(output)?;
        Ok(matches!(self.inputs.get(input), Some(Value::Tensor(tensor))
            if tensor.dtype() == self.output_type(output) && tensor.shape() == shape && tensor.is_writable()))
    }

    /// The input's own memory, its elements in it, if this node is its last reader and type and shape are those of
    /// the output.
    pub fn try_forward(&mut self, input: usize, output: usize) -> Result<Option<Tensor>> {
        if self.can_forward(input, output)? {
            return Ok(Some(self.take_input(input)?));
        }
        Ok(None)
    }

    /// As [`KernelContext::try_forward`], but sets the output at once, the input's elements in it. Whether it did:
    /// [`KernelContext::output_and_input`] then gives the output for writing.
    #[inline]
    pub fn forward_in_place(&mut self, input: usize, output: usize) -> Result<bool> {
        let can = self.can_forward(input, output)?;
        if can {
            std::mem::swap(&mut self.inputs[input], &mut self.outputs[output]);
        }
        Ok(can)
    }

    /// An output that has been set, for writing, and an input. INTERNAL when either is not there.
    #[inline]
    pub fn output_and_input(&mut self, output: usize, input: usize) -> Result<(&mut Tensor, &Tensor)> {
        match (self.outputs.get_mut(output), self.inputs.get(input)) {
            (Some(Value::Tensor(output)), Some(Value::Tensor(input))) => Ok((output, input)),
            _ => Err(status!(
                Internal,
                "{} lacks output {output} or input {input}",
                self.node.describe()
            )),
        }
    }

    /// [`KernelContext::try_forward`], or else a new tensor; whether it was the input's.
    pub fn forward_or_allocate(&mut self, input: usize, output: usize) -> Result<(Tensor, bool)> {
        match self.try_forward(input, output)? {
            Some(tensor) => Ok((tensor, true)),
            None => Ok((self.allocate_output(output)?, false)),
        }
    }

    /// The input's own memory as a tensor of another shape, if this node is its last reader and the type and the
    /// number of elements fit. The elements of the input are in it.
    pub fn forward_as(&mut self, input: usize, dtype: DataType, shape: &Shape) -> Option<Tensor> {
        if let Value::Tensor(tensor) = self.inputs.get_mut(input)?
            && tensor.dtype() == dtype
            && tensor.num_elements() == shape.num_elements()
            && tensor.is_writable()
        {
            return self.take_input(input).ok()?.into_shape(shape.clone()).ok();
        }
        None
    }

    /// Sets an output. INTERNAL for another type than the node's.
    pub fn set_output(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        if tensor.dtype() != self.output_type(index) {
            bail!(
                Internal,
                "Output {index} of type {} does not match declared output type {} for node {}",
                tensor.dtype(),
                self.node.output_types[index],
                self.node.describe()
            );
        }
        self.outputs[index] = Value::Tensor(tensor);
        Ok(())
    }

    /// Passes an input on as an output, tensor or reference, whatever it is; an absent one makes the output dead.
    pub fn forward(&mut self, input: usize, output: usize) {
        self.outputs[output] = std::mem::take(&mut self.inputs[input]);
    }

    /// Whether there is a value at an input: in graphs with v1 control flow it can be dead.
    pub fn has_input(&self, index: usize) -> bool {
        !matches!(self.inputs.get(index), None | Some(Value::Absent))
    }

    /// Sets a reference output.
    pub fn set_output_ref(&mut self, index: usize, variable: Arc<RefVariable>) {
        self.outputs[index] = Value::Ref(variable);
    }

    /// Leaves an output dead: nodes that need it do not run (only in graphs with v1 control flow).
    pub fn set_output_dead(&mut self, index: usize) {
        self.outputs[index] = Value::Absent;
    }
}

/// What an asynchronous kernel owns: it keeps the context until it calls [`AsyncKernelContext::finish`].
pub struct AsyncKernelContext {
    /// The node.
    pub node: Arc<NodeInfo>,
    /// What the op's `prepare` made for this node.
    pub prepared: Option<Prepared>,
    /// Its inputs.
    pub inputs: Vec<Value>,
    /// The step.
    pub host: Arc<dyn KernelHost>,
    /// Where what goes on later is handed to, so that no other thread has to do it.
    pub relay: Arc<dyn Relay>,
    /// Called once with the outputs or an error, from any thread.
    pub done: Box<dyn FnOnce(Result<Vec<Value>>) + Send>,
}

impl AsyncKernelContext {
    /// Ends the node's run. INTERNAL when outputs are missing or of other types than the node's.
    pub fn finish(self, result: Result<Vec<Value>>) {
        let types = &self.node.output_types;
        let fits = |values: &Vec<Value>| {
            for (index, dtype) in types.iter().enumerate() {
                match values.get(index) {
                    None => bail!(
                        Internal,
                        "Missing {index}-th output from {}",
                        self.node.describe()
                    ),
                    Some(Value::Tensor(tensor)) if tensor.dtype() != dtype.base() => bail!(
                        Internal,
                        "Output {index} of type {} does not match declared output type {dtype} for node {}",
                        tensor.dtype(),
                        self.node.describe()
                    ),
                    Some(_) => {}
                }
            }
            Ok(())
        };
        let result = result.and_then(|values| fits(&values).map(|()| values));
        (self.done)(result);
    }

    /// Ends the node's run with a function's results. INVALID_ARGUMENT when there are not as many as outputs, INTERNAL
    /// when one is of another type.
    pub fn give(self, results: Result<Vec<Tensor>>) {
        let checked = results.and_then(|results| {
            let types = &self.node.output_types;
            ensure!(
                results.len() == types.len(),
                Internal,
                "{} has {} outputs, its function returned {}",
                self.node.describe(),
                types.len(),
                results.len()
            );
            for (index, (result, dtype)) in results.iter().zip(types).enumerate() {
                ensure!(
                    result.dtype() == dtype.base(),
                    Internal,
                    "{} made {} for output {index}",
                    self.node.describe(),
                    result.dtype()
                );
            }
            Ok(results.into_iter().map(Value::Tensor).collect())
        });
        self.finish(checked);
    }

    /// An input tensor. INTERNAL when there is none.
    pub fn input(&self, index: usize) -> Result<&Tensor> {
        match self.inputs.get(index) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            _ => Err(status!(
                Internal,
                "{} has no tensor at input {index}",
                self.node.describe()
            )),
        }
    }

    /// All tensors from an input on.
    pub fn tensors_from(&self, start: usize) -> Result<Vec<Tensor>> {
        (start..self.inputs.len())
            .map(|index| self.input(index).cloned())
            .collect()
    }

    /// The resource that the handle at an input means.
    pub fn resource<T: Any + Send + Sync>(&self, index: usize) -> Result<Arc<T>> {
        match self.input(index)?.resources()? {
            [handle] => self.host.find_by_handle(handle),
            _ => Err(status!(
                InvalidArgument,
                "input {index} of {} must be one handle",
                self.node.describe()
            )),
        }
    }
}
