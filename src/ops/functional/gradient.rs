//! Gradients of functional ops. Each differentiates the functions that its node names ([`ff_op::GradientHost::differentiate`])
//! and replaces the forward node by one that also returns what the gradient needs:
//!
//! - a call returns the added results;
//! - a choice returns the added results of all branches, those of branches not taken as empty tensors;
//! - a loop collects them in one tensor list each, turn by turn, and counts its turns; the gradient is a loop that takes
//!   them from the lists again.
//!
//! Gradients do not flow through handles of resources that a function returns or a loop carries.

use super::function_builder::FunctionBuilder;
use ff_op::{Attrs, Differentiated, FunctionRef, GradientContext, OutputRef};
use ff_tensor::{DataType, PartialShape, Result, Shape, Tensor, ensure, status};

fn named(name: &str) -> FunctionRef {
    FunctionRef {
        name: name.to_string(),
        attrs: Attrs::new(),
    }
}

/// The types of a function's results.
fn result_types(context: &GradientContext, function: &str) -> Result<Vec<DataType>> {
    let def = context.host.function(function)?;
    let signature = def.signature.as_ref();
    let signature = signature.ok_or_else(|| status!(Internal, "Function {function} has no signature"))?;
    Ok(signature
        .output_arg
        .iter()
        .map(|arg| DataType(arg.r#type))
        .collect())
}

/// The call op for functions of this node: one with effects if the node may have any.
fn call_op(context: &GradientContext) -> &'static str {
    match context.node().op_name() {
        "PartitionedCall" | "StatelessIf" | "StatelessCase" | "StatelessWhile" => "PartitionedCall",
        _ => "StatefulPartitionedCall",
    }
}

fn output(node: u32, index: usize) -> OutputRef {
    OutputRef {
        node,
        index: index as u32,
    }
}

/// The gradients that come in for some results, zeros where none does.
fn incoming(context: &mut GradientContext, results: &[usize]) -> Result<Vec<OutputRef>> {
    let mut gradients = Vec::with_capacity(results.len());
    for &result in results {
        let dtype = context.node().output_types.get(result).copied();
        ensure!(
            dtype.is_some(),
            InvalidArgument,
            "{} has fewer outputs than its function",
            context.node().describe()
        );
        ensure!(
            dtype.is_none_or(|dtype| dtype.base() != DataType::RESOURCE)
                || context.incoming(result).is_some(),
            Unimplemented,
            "{} returns a handle: gradients do not flow through it",
            context.node().describe()
        );
        gradients.push(context.incoming_or_zeros(result)?);
    }
    Ok(gradients)
}

/// The node's inputs and attributes, for a replacement.
fn forward_inputs(context: &GradientContext) -> Result<Vec<OutputRef>> {
    (0..context.num_inputs())
        .map(|index| context.input(index))
        .collect()
}

/// Gradient of PartitionedCall and StatefulPartitionedCall.
pub fn call(context: &mut GradientContext) -> Result<()> {
    let function = context.attrs().func("f")?.clone();
    let made = context.host.differentiate(&function)?;
    let outputs = context.node().output_types.clone();
    let op = context.node().op_name().to_string();
    let types: Vec<DataType> = outputs.iter().chain(&made.added).copied().collect();
    let attrs = context
        .attrs()
        .clone()
        .with("f", named(&made.forward))
        .with("Tout", types);
    let (inputs, number) = (forward_inputs(context)?, context.node_number());
    context.host.replace_node(number, &op, &inputs, attrs)?;

    let mut values: Vec<OutputRef> = (0..made.added.len())
        .map(|i| output(number, outputs.len() + i))
        .collect();
    values.extend(incoming(context, &made.results)?);
    let attrs = Attrs::new()
        .with("f", named(&made.gradient))
        .with("Tout", result_types(context, &made.gradient)?);
    let node = context.node_of(&op, &values, attrs)?;
    for (index, argument) in made.arguments.into_iter().enumerate() {
        context.set(argument, output(node, index));
    }
    Ok(())
}

/// Gradient of If and StatelessIf.
pub fn conditional(context: &mut GradientContext) -> Result<()> {
    let branches = ["then_branch", "else_branch"].map(|name| context.attrs().func(name).cloned());
    let [then_branch, else_branch] = branches;
    let set = |attrs: Attrs, branches: Vec<FunctionRef>| match <[FunctionRef; 2]>::try_from(branches) {
        Ok([then_branch, else_branch]) => attrs
            .with("then_branch", then_branch)
            .with("else_branch", else_branch),
        Err(_) => attrs,
    };
    choice(context, vec![then_branch?, else_branch?], set)
}

/// Gradient of Case and StatelessCase.
pub fn case(context: &mut GradientContext) -> Result<()> {
    let branches = context.attrs().funcs("branches")?.to_vec();
    choice(context, branches, |attrs, branches| {
        attrs.with("branches", branches)
    })
}

/// A choice between branches: its first input chooses, the others are the branches' arguments.
fn choice(
    context: &mut GradientContext,
    branches: Vec<FunctionRef>,
    set: impl Fn(Attrs, Vec<FunctionRef>) -> Attrs,
) -> Result<()> {
    let made: Vec<Differentiated> = branches
        .iter()
        .map(|branch| context.host.differentiate(branch))
        .collect::<Result<_>>()?;
    let added: Vec<DataType> = made.iter().flat_map(|made| made.added.iter().copied()).collect();
    let (op, outputs) = (
        context.node().op_name().to_string(),
        context.node().output_types.clone(),
    );
    let forward: Vec<FunctionRef> = (0..made.len())
        .map(|taken| forward_branch(context, &made, taken))
        .collect::<Result<_>>()?;
    let types: Vec<DataType> = outputs.iter().chain(&added).copied().collect();
    let attrs = extended_shapes(context.attrs().clone(), outputs.len(), added.len())?;
    let attrs = set(attrs.with("Tout", types), forward);
    let (inputs, number) = (forward_inputs(context)?, context.node_number());
    context.host.replace_node(number, &op, &inputs, attrs)?;

    // The gradient's inputs: added results, gradients of results, and arguments that some branch makes zeros for.
    let mut arguments: Vec<usize> = made
        .iter()
        .flat_map(|made| made.arguments.iter().copied())
        .collect();
    arguments.sort_unstable();
    arguments.dedup();
    let results = made.first().map(|made| made.results.clone()).unwrap_or_default();
    let mut values = vec![inputs[0]];
    values.extend((0..added.len()).map(|index| output(number, outputs.len() + index)));
    values.extend(incoming(context, &results)?);
    values.extend(arguments.iter().map(|&argument| inputs[1 + argument]));
    let types: Vec<DataType> = values[1..].iter().map(|value| context.dtype(*value)).collect();
    let gradient_types = gradient_types(context, &made, &arguments)?;
    let mut gradients = Vec::with_capacity(made.len());
    for taken in 0..made.len() {
        gradients.push(gradient_branch(
            context,
            &made,
            taken,
            &types,
            &arguments,
            &gradient_types,
        )?);
    }
    let attrs = set(Attrs::new().with("Tout", gradient_types), gradients);
    let node = context.node_of(&op, &values, attrs)?;
    for (index, argument) in arguments.into_iter().enumerate() {
        context.set(1 + argument, output(node, index));
    }
    Ok(())
}

/// A node's `output_shapes`, if it has any, with unknown ones for added outputs.
fn extended_shapes(attrs: Attrs, outputs: usize, added: usize) -> Result<Attrs> {
    let mut shapes = attrs.shapes("output_shapes").unwrap_or(&[]).to_vec();
    if shapes.len() != outputs {
        return Ok(attrs);
    }
    shapes.resize(outputs + added, PartialShape::unknown());
    Ok(attrs.with("output_shapes", shapes))
}

/// The type of each argument's gradient, from whichever branch has one.
fn gradient_types(
    context: &GradientContext,
    made: &[Differentiated],
    arguments: &[usize],
) -> Result<Vec<DataType>> {
    let mut types = Vec::with_capacity(arguments.len());
    for argument in arguments {
        for made in made {
            if let Some(place) = made.arguments.iter().position(|its| its == argument) {
                types.push(result_types(context, &made.gradient)?[place]);
                break;
            }
        }
    }
    Ok(types)
}

/// A forward branch that returns its own added results, and empty tensors for those of the others.
fn forward_branch(
    context: &mut GradientContext,
    made: &[Differentiated],
    taken: usize,
) -> Result<FunctionRef> {
    let mut body = FunctionBuilder::new();
    let types: Vec<DataType> = (1..context.num_inputs())
        .map(|index| context.input_type(index))
        .collect();
    let arguments = body.arguments(&types).into_iter().zip(types).collect();
    let outputs: Vec<DataType> = context
        .node()
        .output_types
        .iter()
        .map(|dtype| dtype.base())
        .collect();
    let all: Vec<DataType> = outputs.iter().chain(&made[taken].added).copied().collect();
    let results = body.call(call_op(context), &named(&made[taken].forward), arguments, &all);
    let (own, own_added) = results.split_at(outputs.len());
    for (value, dtype) in own.iter().zip(outputs) {
        body.result(value.clone(), dtype);
    }
    for (branch, made) in made.iter().enumerate() {
        for (index, &dtype) in made.added.iter().enumerate() {
            let value = if branch == taken {
                own_added[index].clone()
            } else {
                let attrs = Attrs::new()
                    .with("dtype", dtype)
                    .with("shape", PartialShape::new(&[0]));
                body.value("FakeParam", &[], attrs, "output")
            };
            body.result(value, dtype);
        }
    }
    let hint = format!("{}_with_captures", made[taken].forward);
    Ok(named(&context.host.add_function(&hint, body.finish())?))
}

/// A gradient branch of the common arguments; zeros for arguments that this branch does not depend on.
fn gradient_branch(
    context: &mut GradientContext,
    made: &[Differentiated],
    taken: usize,
    types: &[DataType],
    arguments: &[usize],
    gradient_types: &[DataType],
) -> Result<FunctionRef> {
    let its = &made[taken];
    let mut body = FunctionBuilder::new();
    let values = body.arguments(types);
    let before: usize = made[..taken].iter().map(|made| made.added.len()).sum();
    let all_added: usize = made.iter().map(|made| made.added.len()).sum();
    let mut inputs: Vec<(String, DataType)> = (0..its.added.len())
        .map(|i| (values[before + i].clone(), its.added[i]))
        .collect();
    inputs.extend((0..its.results.len()).map(|i| (values[all_added + i].clone(), types[all_added + i])));
    let results = result_types(context, &its.gradient)?;
    let gradients = body.call(call_op(context), &named(&its.gradient), inputs, &results);
    let first_argument = all_added + its.results.len();
    for (place, argument) in arguments.iter().enumerate() {
        let value = match its.arguments.iter().position(|own| own == argument) {
            Some(index) => gradients[index].clone(),
            None => {
                let value = values[first_argument + place].clone();
                let attrs = Attrs::new().with("T", types[first_argument + place]);
                body.value("ZerosLike", &[value], attrs, "y")
            }
        };
        body.result(value, gradient_types[place]);
    }
    let hint = format!("{}_of_captures", its.gradient);
    Ok(named(&context.host.add_function(&hint, body.finish())?))
}

/// Gradient of While and StatelessWhile.
pub fn while_loop(context: &mut GradientContext) -> Result<()> {
    let (condition, body) = (
        context.attrs().func("cond")?.clone(),
        context.attrs().func("body")?.clone(),
    );
    let made = context.host.differentiate(&body)?;
    let state: Vec<DataType> = context
        .node()
        .output_types
        .iter()
        .map(|dtype| dtype.base())
        .collect();
    let gradients = incoming(context, &made.results)?;
    let op = context.node().op_name().to_string();

    // Forward: the state, a counter of turns, and a list for each value that the gradient needs of a turn.
    let mut types = state.clone();
    types.push(DataType::INT32);
    types.resize(types.len() + made.added.len(), DataType::VARIANT);
    let attrs = extended_shapes(context.attrs().clone(), state.len(), 1 + made.added.len())?
        .with("T", types.clone())
        .with("cond", forward_condition(context, &condition, &state, &types)?)
        .with("body", forward_body(context, &made, &state, &types)?);
    let mut inputs = forward_inputs(context)?;
    inputs.push(context.int32(0)?);
    for &dtype in &made.added {
        let (any, unlimited) = (context.int32(-1)?, context.int32(-1)?);
        inputs.push(context.op(
            "EmptyTensorList",
            &[any, unlimited],
            Attrs::new().with("element_dtype", dtype),
        )?);
    }
    let number = context.node_number();
    context.host.replace_node(number, &op, &inputs, attrs)?;

    // Backward: the counter, the lists, and a gradient for each part of the state.
    let mut values: Vec<OutputRef> = (0..=made.added.len())
        .map(|index| output(number, state.len() + index))
        .collect();
    values.extend(&gradients);
    let types: Vec<DataType> = values.iter().map(|value| context.dtype(*value)).collect();
    let attrs = Attrs::new()
        .with("T", types.clone())
        .with("cond", backward_condition(context, &made, &types)?)
        .with("body", backward_body(context, &made, &types)?);
    let node = context.node_of(&op, &values, attrs)?;
    for (index, &part) in made.results.iter().enumerate() {
        context.set(part, output(node, 1 + made.added.len() + index));
    }
    Ok(())
}

fn scalar_constant(body: &mut FunctionBuilder, value: i32) -> Result<String> {
    let attrs = Attrs::new()
        .with("dtype", DataType::INT32)
        .with("value", Tensor::from_slice(Shape::scalar(), &[value])?);
    Ok(body.value("Const", &[], attrs, "output"))
}

/// The loop's condition on the state alone.
fn forward_condition(
    context: &mut GradientContext,
    condition: &FunctionRef,
    state: &[DataType],
    types: &[DataType],
) -> Result<FunctionRef> {
    let mut body = FunctionBuilder::new();
    let arguments = body
        .arguments(types)
        .into_iter()
        .zip(state.iter().copied())
        .collect();
    let results = context.host.function(&condition.name)?;
    let result = results
        .signature
        .as_ref()
        .and_then(|signature| signature.output_arg.first());
    let dtype = result.map_or(DataType::BOOL, |result| DataType(result.r#type));
    let answer = body.call(call_op(context), condition, arguments, &[dtype]);
    body.result(answer[0].clone(), dtype);
    Ok(named(&context.host.add_function(
        &format!("{}_with_lists", condition.name),
        body.finish(),
    )?))
}

/// The loop's body, which also counts the turn and pushes the added results onto the lists.
fn forward_body(
    context: &mut GradientContext,
    made: &Differentiated,
    state: &[DataType],
    types: &[DataType],
) -> Result<FunctionRef> {
    let mut body = FunctionBuilder::new();
    let arguments = body.arguments(types);
    let results: Vec<DataType> = state.iter().chain(&made.added).copied().collect();
    let inputs = arguments.iter().cloned().zip(state.iter().copied()).collect();
    let values = body.call(call_op(context), &named(&made.forward), inputs, &results);
    for (value, &dtype) in values.iter().zip(state) {
        body.result(value.clone(), dtype);
    }
    let one = scalar_constant(&mut body, 1)?;
    let attrs = Attrs::new().with("T", DataType::INT32);
    let count = body.value("AddV2", &[arguments[state.len()].clone(), one], attrs, "z");
    body.result(count, DataType::INT32);
    for (index, &dtype) in made.added.iter().enumerate() {
        let inputs = [
            arguments[state.len() + 1 + index].clone(),
            values[state.len() + index].clone(),
        ];
        let attrs = Attrs::new().with("element_dtype", dtype);
        let list = body.value("TensorListPushBack", &inputs, attrs, "output_handle");
        body.result(list, DataType::VARIANT);
    }
    Ok(named(&context.host.add_function(
        &format!("{}_with_lists", made.forward),
        body.finish(),
    )?))
}

/// Whether turns are left to be taken back.
fn backward_condition(
    context: &mut GradientContext,
    made: &Differentiated,
    types: &[DataType],
) -> Result<FunctionRef> {
    let mut body = FunctionBuilder::new();
    let arguments = body.arguments(types);
    let zero = scalar_constant(&mut body, 0)?;
    let attrs = Attrs::new().with("T", DataType::INT32);
    let answer = body.value("Greater", &[arguments[0].clone(), zero], attrs, "z");
    body.result(answer, DataType::BOOL);
    Ok(named(&context.host.add_function(
        &format!("{}_cond", made.gradient),
        body.finish(),
    )?))
}

/// One turn back: takes what the turn needs from the lists and asks the body's gradient.
fn backward_body(
    context: &mut GradientContext,
    made: &Differentiated,
    types: &[DataType],
) -> Result<FunctionRef> {
    let mut body = FunctionBuilder::new();
    let arguments = body.arguments(types);
    let (lists, gradients) = arguments[1..].split_at(made.added.len());
    let one = scalar_constant(&mut body, 1)?;
    let attrs = Attrs::new().with("T", DataType::INT32);
    let count = body.value("Sub", &[arguments[0].clone(), one], attrs, "z");
    body.result(count, DataType::INT32);
    let mut inputs = Vec::new();
    for (list, &dtype) in lists.iter().zip(&made.added) {
        let any = scalar_constant(&mut body, -1)?;
        let node = body.node(
            "TensorListPopBack",
            &[list.clone(), any],
            Attrs::new().with("element_dtype", dtype),
        );
        body.result(format!("{node}:output_handle:0"), DataType::VARIANT);
        inputs.push((format!("{node}:tensor:0"), dtype));
    }
    let of_state = &types[1 + made.added.len()..];
    inputs.extend(gradients.iter().cloned().zip(of_state.iter().copied()));
    let results = result_types(context, &made.gradient)?;
    let values = body.call(call_op(context), &named(&made.gradient), inputs, &results);
    for (index, part) in made.results.iter().enumerate() {
        let value = match made.arguments.iter().position(|argument| argument == part) {
            Some(place) => {
                ensure!(
                    results[place] == of_state[index],
                    Unimplemented,
                    "{} carries a handle: gradients do not flow through it",
                    context.node().describe()
                );
                values[place].clone()
            }
            None => {
                let attrs = Attrs::new().with("T", of_state[index]);
                body.value("ZerosLike", &[gradients[index].clone()], attrs, "y")
            }
        };
        body.result(value, of_state[index]);
    }
    Ok(named(&context.host.add_function(
        &format!("{}_body", made.gradient),
        body.finish(),
    )?))
}
