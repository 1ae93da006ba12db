//! Lowerings that call the op's own kernel: for ops whose HLO form would be a long loop, or that are computed in double
//! precision. A cluster that holds such an op stays one program.
//!
//! The call's target is `op`, its configuration the node as a text NodeDef. Output shapes come from the shape function; where
//! they depend on values that are not known when lowering, there is no such call.

use crate::registry;
use ff_hlo::HloShape;
use ff_hlo::evaluator::{HostFunction, set_host_functions};
use ff_kernels::ThreadPool;
use ff_op::{
    AttrValue, Attrs, Cancellation, Executable, FunctionHost, KernelHost, LowerContext, NodeInfo,
    ResourceManager, RunOneHost, ShapeContext, ShapeHost, Value,
};
use ff_proto::NodeDef;
use ff_tensor::{Code, PartialShape, Result, Shape, Status, Tensor, ensure, status};
use std::any::Any;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

const TARGET: &str = "op";

/// Makes the calls known to whoever runs modules.
pub fn install() {
    set_host_functions(find);
}

/// Lowers an op to a call of its kernel. UNIMPLEMENTED where the shape of an output is not known.
pub fn lower(context: &mut LowerContext) -> Result<()> {
    let operands = (0..context.num_inputs())
        .map(|index| context.input(index))
        .collect::<Result<Vec<_>>>()?;
    let shapes = operands
        .iter()
        .map(|&operand| PartialShape::new(context.builder.dims(operand)))
        .collect::<Vec<_>>();
    let outputs = output_shapes(context, &shapes)?;
    let config = config_of(context.node())?;
    let declared: Vec<HloShape> = outputs
        .iter()
        .enumerate()
        .map(|(index, shape)| HloShape::array(context.output_type(index), shape.dims()))
        .collect();
    let builder = &mut *context.builder;
    if let [one] = &declared[..] {
        let result = builder.custom_call(TARGET, &operands, one.clone(), &config)?;
        context.set_output(0, result);
        return Ok(());
    }
    let call = builder.custom_call(TARGET, &operands, HloShape::Tuple(declared), &config)?;
    for index in 0..outputs.len() {
        let element = context.builder.get_tuple_element(call, index)?;
        context.set_output(index, element);
    }
    Ok(())
}

/// Values that are known when lowering; looking at one makes the program depend on it.
struct Known<'a, 'b>(RefCell<&'a mut LowerContext<'b>>);

impl ShapeHost for Known<'_, '_> {
    fn input_value(&self, index: usize) -> Option<Tensor> {
        self.0.borrow_mut().constant(index).ok()
    }
}

fn output_shapes(context: &mut LowerContext, inputs: &[PartialShape]) -> Result<Vec<Shape>> {
    let node = context.node();
    let known = Known(RefCell::new(context));
    let mut shapes = ShapeContext::new(node, inputs, &known);
    (node.op.shape)(&mut shapes)?;
    let outputs = shapes.finish().0;
    let full = outputs.iter().map(|shape| {
        shape.to_shape().ok_or_else(|| {
            status!(
                Unimplemented,
                "{} has outputs whose shapes depend on values",
                node.describe()
            )
        })
    });
    full.collect()
}

fn config_of(node: &NodeInfo) -> Result<String> {
    let def = NodeDef {
        name: node.name.clone(),
        op: node.op_name().to_string(),
        attr: node
            .attrs
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_proto()))
            .collect(),
        ..NodeDef::default()
    };
    ff_proto::text::print(&def).map_err(|error| status!(Internal, "{}: {error}", node.describe()))
}

/// A node ready to run.
struct Call(Executable);

fn find(target: &str, config: &str) -> Result<Arc<dyn HostFunction>> {
    ensure!(
        target == TARGET,
        NotFound,
        "Custom call {target} is not known to the evaluator"
    );
    let def: NodeDef = ff_proto::text::parse(config)
        .map_err(|error| Status::new(Code::InvalidArgument, format!("custom call: {error}")))?;
    let record = registry().find(&def.op)?;
    let mut attrs = Attrs::new();
    for (name, value) in &def.attr {
        attrs.set(name.as_str(), AttrValue::from_proto(value)?);
    }
    let node = Arc::new(NodeInfo::new(def.name, record, String::new(), attrs)?);
    let constants = vec![None; node.input_types.len()];
    let executable = Executable::new(node, "CPU", &constants, base())?;
    ensure!(
        !executable.is_asynchronous(),
        Unimplemented,
        "custom call: {} may wait",
        def.op
    );
    Ok(Arc::new(Call(executable)))
}

fn base() -> &'static RunOneHost {
    static BASE: OnceLock<RunOneHost> = OnceLock::new();
    BASE.get_or_init(RunOneHost::new)
}

/// The step that a call is part of: its threads, and nothing else, as the ops are pure.
struct Step<'a>(&'a ThreadPool);

impl KernelHost for Step<'_> {
    fn pool(&self) -> &ThreadPool {
        self.0
    }

    fn resources(&self) -> &Arc<ResourceManager> {
        base().resources()
    }

    fn functions(&self) -> &dyn FunctionHost {
        base().functions()
    }

    fn cancellation(&self) -> &Cancellation {
        base().cancellation()
    }

    fn step_id(&self) -> u64 {
        0
    }

    fn device_name(&self) -> &str {
        base().device_name()
    }

    fn node_state(
        &self,
        node: &str,
        make: &mut dyn FnMut() -> Result<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<dyn Any + Send + Sync>> {
        base().node_state(node, make)
    }

    fn share(&self) -> Option<Arc<dyn KernelHost>> {
        None
    }
}

impl HostFunction for Call {
    fn call(&self, pool: &ThreadPool, inputs: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let Call(executable) = self;
        let host = Step(pool);
        let mut inputs: Vec<Value> = inputs.into_iter().map(Value::Tensor).collect();
        let specialization = executable.specialize(&inputs, &host)?;
        let mut outputs = vec![Value::Absent; executable.node().output_types.len()];
        executable.run(&specialization, &mut inputs, &mut outputs, &host)?;
        let tensor = |value| match value {
            Value::Tensor(tensor) => Ok(tensor),
            _ => Err(status!(
                Internal,
                "{} has an output that is not a tensor",
                executable.node().describe()
            )),
        };
        outputs.into_iter().map(tensor).collect()
    }
}
