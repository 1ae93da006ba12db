//! Gradients of functions: a function becomes two, a forward one that also returns what the gradient needs, and the
//! gradient.
//!
//! The body is instantiated as a graph and differentiated in place. Nodes that the forward results need stay forward;
//! the others are the gradient. Forward values that the gradient reads become added results, except for constants, which
//! the gradient function has copies of.

use crate::gradients::{Host, Walk, is_trainable, reach};
use crate::{FunctionBody, FunctionSource, Graph, NodeId, graph_to_function};
use ff_op::{Attrs, Differentiated, FunctionRef, GradientHost, OutputRef};
use ff_tensor::{Result, ensure};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{Cell, RefCell};

/// How deep calls within a function are differentiated.
const DEEPEST: usize = 50;

/// How many functions are differentiated for one call, those within it included.
const MOST_FUNCTIONS: usize = 2000;

thread_local! {
    /// The functions that are being differentiated, the outermost first.
    static WITHIN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// How many were, since the outermost began.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// Marks a function as being differentiated, so that recursion is noticed.
struct Within;

impl Within {
    /// UNIMPLEMENTED for a function within itself; RESOURCE_EXHAUSTED when there are too many.
    fn enter(name: &str) -> Result<Within> {
        WITHIN.with_borrow_mut(|within| {
            ensure!(
                !within.iter().any(|outer| outer == name),
                Unimplemented,
                "The gradient of the recursive function {name}"
            );
            if within.is_empty() {
                COUNT.set(0);
            }
            COUNT.set(COUNT.get() + 1);
            ensure!(
                within.len() < DEEPEST && COUNT.get() <= MOST_FUNCTIONS,
                ResourceExhausted,
                "The gradient of {name} needs too many functions"
            );
            within.push(name.to_string());
            Ok(Within)
        })
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.with_borrow_mut(|within| within.pop());
    }
}

/// See [`GradientHost::differentiate`].
pub fn differentiate(host: &mut Host, function: &FunctionRef) -> Result<Differentiated> {
    let _within = Within::enter(&function.name)?;
    let body = FunctionBody::instantiate(host.graph.registry(), host.graph.functions(), function)?;
    let mut graph = body.graph().clone();
    let of_types = |outputs: &[OutputRef]| -> Vec<usize> {
        let trainable = |output: &OutputRef| graph.output_type(*output).is_ok_and(is_trainable);
        (0..outputs.len())
            .filter(|&index| trainable(&outputs[index]))
            .collect()
    };
    let (results, arguments) = (of_types(body.results()), of_types(body.arguments()));
    let forward_len = graph.len();
    let incoming = add_incoming(&mut graph, &body, &results)?;
    let wanted: Vec<OutputRef> = arguments.iter().map(|&index| body.arguments()[index]).collect();
    let gradients = add_body_gradients(host, &mut graph, &body, &results, &wanted, &incoming)?;
    let (arguments, gradients): (Vec<usize>, Vec<OutputRef>) = arguments
        .into_iter()
        .zip(gradients)
        .filter_map(|(argument, gradient)| Some((argument, gradient?)))
        .unzip();

    let split = Split::of(&mut graph, forward_len, &gradients)?;
    let forward = graph_to_function(&graph, split.forward(&body, &function.name))?;
    let added = split.added.iter().map(|output| graph.output_type(*output));
    let added = added.collect::<Result<Vec<_>>>()?;
    let gradient = graph_to_function(
        &graph,
        split.gradient(&function.name, &incoming, &split.moved(&gradients)),
    )?;
    Ok(Differentiated {
        forward: host.add_function(&format!("{}_forward", function.name), forward)?,
        added,
        gradient: host.add_function(&format!("{}_gradient", function.name), gradient)?,
        results,
        arguments,
    })
}

/// Adds an argument for the gradient of each result.
fn add_incoming(graph: &mut Graph, body: &FunctionBody, results: &[usize]) -> Result<Vec<OutputRef>> {
    let first = body.arguments().len();
    let mut incoming = Vec::with_capacity(results.len());
    for (number, &result) in results.iter().enumerate() {
        let dtype = graph.output_type(body.results()[result])?.base();
        let attrs = Attrs::new()
            .with("T", dtype)
            .with("index", (first + number) as i64);
        let name = free_name(graph, &format!("gradient_{result}"));
        let node = graph.add_checked("_Arg", &name, "", attrs, Vec::new(), Vec::new())?;
        incoming.push(OutputRef { node, index: 0 });
    }
    Ok(incoming)
}

fn free_name(graph: &Graph, name: &str) -> String {
    let mut free = name.to_string();
    while graph.find(&free).is_some() {
        free.push('_');
    }
    free
}

/// Differentiates the body in place. Functions that are made on the way belong to the outer host.
fn add_body_gradients(
    outer: &mut Host,
    graph: &mut Graph,
    body: &FunctionBody,
    results: &[usize],
    wanted: &[OutputRef],
    incoming: &[OutputRef],
) -> Result<Vec<Option<OutputRef>>> {
    let outputs: Vec<OutputRef> = results.iter().map(|&index| body.results()[index]).collect();
    let needed = reach(graph, outputs.iter().map(|output| output.node), |node, next| {
        next.extend(node.inputs.iter().map(|input| input.node));
    });
    let (reached, places): (Vec<OutputRef>, Vec<usize>) = wanted
        .iter()
        .enumerate()
        .filter(|(_, input)| needed[input.node as usize])
        .map(|(place, input)| (*input, place))
        .unzip();
    let scope = free_name(graph, "gradients");
    let mut host = Host::new(graph, &scope);
    let walk = Walk::new(&host, &outputs, &reached)?;
    let found = walk.run(&mut host, &outputs, incoming);
    outer.adopt_functions(host);
    let mut gradients = vec![None; wanted.len()];
    for (place, gradient) in places.into_iter().zip(found?) {
        gradients[place] = gradient;
    }
    Ok(gradients)
}

/// A body with its gradient beside it: the graph, an argument for the gradient of each result, and the gradients of the
/// arguments.
pub fn gradient_graph(body: &FunctionBody) -> Result<(Graph, Vec<OutputRef>, Vec<OutputRef>)> {
    let mut graph = body.graph().clone();
    let all: Vec<usize> = (0..body.results().len()).collect();
    let incoming = add_incoming(&mut graph, body, &all)?;
    let scope = free_name(&graph, "symbolic");
    // A host of its own for functions that are made on the way: they stay in the library.
    let mut copy = graph.clone();
    let mut outer = Host::new(&mut copy, &scope);
    let found = add_body_gradients(&mut outer, &mut graph, body, &all, body.arguments(), &incoming)?;
    let mut host = Host::new(&mut graph, &scope);
    let mut gradients = Vec::with_capacity(found.len());
    for (argument, gradient) in body.arguments().iter().zip(found) {
        gradients.push(match gradient {
            Some(gradient) => gradient,
            None => OutputRef {
                node: host.add_node("ZerosLike", "ZerosLike", &[*argument], Attrs::new())?,
                index: 0,
            },
        });
    }
    Ok((graph, incoming, gradients))
}

/// A differentiated body taken apart.
struct Split {
    /// Nodes of the forward function, without its arguments.
    forward: Vec<NodeId>,
    /// Nodes of the gradient function.
    gradient: Vec<NodeId>,
    /// Forward values that the gradient reads.
    added: Vec<OutputRef>,
    /// Copies of constants, by the original.
    copies: FxHashMap<OutputRef, OutputRef>,
}

impl Split {
    /// Takes a body apart of which the first `forward_len` nodes are the original ones.
    fn of(graph: &mut Graph, forward_len: usize, gradients: &[OutputRef]) -> Result<Split> {
        // Forward nodes that were replaced may read nodes that were added for them.
        let is_forward = reach(graph, 0..forward_len as NodeId, |node, next| {
            next.extend(node.inputs.iter().map(|input| input.node));
            next.extend(&node.control_inputs);
        });
        // What gradients compute for inputs that are not asked for is left out, and captures nothing.
        let is_wanted = reach(
            graph,
            gradients.iter().map(|gradient| gradient.node),
            |node, next| {
                next.extend(node.inputs.iter().map(|input| input.node));
                next.extend(&node.control_inputs);
            },
        );
        let ids = (0..graph.len() as NodeId).filter(|&id| is_forward[id as usize] || is_wanted[id as usize]);
        let is_argument = |graph: &Graph, id: NodeId| graph.node(id).info.op_name() == "_Arg";
        let mut split = Split {
            forward: Vec::new(),
            gradient: Vec::new(),
            added: Vec::new(),
            copies: FxHashMap::default(),
        };
        for id in ids.filter(|&id| !is_argument(graph, id)) {
            let part = if is_forward[id as usize] {
                &mut split.forward
            } else {
                &mut split.gradient
            };
            part.push(id);
        }
        let mut seen = FxHashSet::default();
        for id in split.gradient.clone() {
            for index in 0..graph.node(id).inputs.len() {
                let input = graph.node(id).inputs[index];
                if is_forward[input.node as usize] {
                    let copy = split.capture(graph, input, &mut seen)?;
                    if copy != input {
                        graph.replace_input(id, index, copy)?;
                    }
                }
            }
        }
        for gradient in gradients
            .iter()
            .filter(|gradient| is_forward[gradient.node as usize])
        {
            split.capture(graph, *gradient, &mut seen)?;
        }
        Ok(split)
    }

    /// Makes a forward value known to the gradient: a constant by a copy, any other as an added result.
    fn capture(
        &mut self,
        graph: &mut Graph,
        value: OutputRef,
        seen: &mut FxHashSet<OutputRef>,
    ) -> Result<OutputRef> {
        if let Some(copy) = self.copies.get(&value) {
            return Ok(*copy);
        }
        let info = graph.node(value.node).info.clone();
        if info.op_name() == "Const" {
            let name = free_name(graph, &format!("{}_copy", info.name));
            let node = graph.add_checked(
                "Const",
                &name,
                &info.device,
                info.attrs.clone(),
                Vec::new(),
                Vec::new(),
            )?;
            let copy = OutputRef { node, index: 0 };
            self.gradient.push(node);
            self.copies.insert(value, copy);
            return Ok(copy);
        }
        if seen.insert(value) {
            self.added.push(value);
        }
        Ok(value)
    }

    /// Values as the gradient function has them.
    fn moved(&self, values: &[OutputRef]) -> Vec<OutputRef> {
        values
            .iter()
            .map(|value| self.copies.get(value).copied().unwrap_or(*value))
            .collect()
    }

    fn forward(&self, body: &FunctionBody, name: &str) -> FunctionSource {
        FunctionSource {
            name: format!("{name}_forward"),
            body: Some(self.forward.clone()),
            inputs: body.arguments().to_vec(),
            outputs: body.results().iter().chain(&self.added).copied().collect(),
            control_outputs: body.targets().to_vec(),
            ..FunctionSource::default()
        }
    }

    fn gradient(&self, name: &str, incoming: &[OutputRef], gradients: &[OutputRef]) -> FunctionSource {
        FunctionSource {
            name: format!("{name}_gradient"),
            body: Some(self.gradient.clone()),
            inputs: self.added.iter().chain(incoming).copied().collect(),
            outputs: gradients.to_vec(),
            ..FunctionSource::default()
        }
    }
}
