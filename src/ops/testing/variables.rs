//! Cases whose first inputs are variables, of the kind that the op takes: behind handles or behind reference edges.

use ff_op::{Executable, KernelHost, NodeInfo, RefVariable, RunOneHost, Value, Variable};
use ff_tensor::{DataType, Result, Shape, Tensor, bail};
use std::sync::Arc;

/// The types of a case's inputs as the op sees them.
pub fn input_types(op: &str, inputs: &[Tensor], variables: usize) -> Vec<DataType> {
    let def = crate::registry().find(op).map(|record| record.def.clone());
    let is_handle = |index: usize| {
        let argument = def.as_ref().ok().and_then(|def| def.input_arg.get(index));
        index < variables && argument.is_some_and(|argument| argument.r#type == DataType::RESOURCE.0)
    };
    let type_of = |(index, tensor): (usize, &Tensor)| match is_handle(index) {
        true => DataType::RESOURCE,
        false => tensor.dtype(),
    };
    inputs.iter().enumerate().map(type_of).collect()
}

enum Kind {
    Resource(Arc<Variable>),
    Reference(Arc<RefVariable>),
}

/// Makes the variable at an input, and what travels along the edge.
fn make(node: &NodeInfo, index: usize, value: &Tensor, host: &dyn KernelHost) -> Result<(Kind, Value)> {
    let name = format!("variable{index}");
    if node.input_types[index] != DataType::RESOURCE {
        let variable = Arc::new(RefVariable::new(name, value.dtype()));
        variable.assign(value.clone())?;
        return Ok((Kind::Reference(variable.clone()), Value::Ref(variable)));
    }
    let variable = Arc::new(Variable::new(name.clone(), value.dtype()));
    variable.assign(value.clone())?;
    host.resources().create("", &name, variable.clone())?;
    let handle = host
        .resources()
        .make_handle::<Variable>(host.device_name(), "", &name);
    let handle = Tensor::from_resources(Shape::scalar(), vec![handle])?;
    Ok((Kind::Resource(variable), Value::Tensor(handle)))
}

/// Runs a node; gives the variables' values afterwards, then those of its outputs that are no references.
pub fn run(node: &Arc<NodeInfo>, inputs: &[Tensor], variables: usize) -> Result<Vec<Tensor>> {
    let host = RunOneHost::new();
    let mut kinds = Vec::new();
    let mut values = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        if index < variables {
            let (kind, value) = make(node, index, input, &host)?;
            kinds.push(kind);
            values.push(value);
        } else {
            values.push(Value::Tensor(input.clone()));
        }
    }
    let executable = Executable::new(node.clone(), "CPU", &vec![None; inputs.len()], &host)?;
    let specialization = executable.specialize(&values, &host)?;
    let mut outputs = vec![Value::Absent; node.output_types.len()];
    executable.run(&specialization, &mut values, &mut outputs, &host)?;
    let mut results = Vec::new();
    for kind in kinds {
        results.push(match kind {
            Kind::Resource(variable) => variable.read()?,
            Kind::Reference(variable) => variable.read()?,
        });
    }
    for output in outputs {
        match output {
            Value::Tensor(tensor) => results.push(tensor),
            Value::Ref(_) => {}
            Value::Absent => bail!(Internal, "no value"),
        }
    }
    Ok(results)
}
