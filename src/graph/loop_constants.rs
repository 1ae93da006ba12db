//! Constants that v1 loops are given.

use crate::{Graph, Node};
use ff_op::OutputRef;

/// The constant that a value always is: itself, or what a loop, or one loop within the other, is given and never changes.
/// None where anything has to be waited for on the way from the constant into the loop.
///
/// The value may be dead where the constant is not.
pub fn constant_behind(graph: &Graph, value: OutputRef) -> Option<OutputRef> {
    let mut at = value;
    loop {
        let node = graph.node(at.node);
        at = match node.info.op_name() {
            "Const" if at == value || node.control_inputs.is_empty() => return Some(at),
            "Enter" if node.info.attrs.bool("is_constant") == Ok(true) => entered(node)?,
            "Merge" if at.index == 0 => unchanged(graph, at)?,
            "Switch" => unchanged(graph, *node.inputs.first()?)?,
            _ => return None,
        }
    }
}

/// What an `Enter` hands on, if it does not wait.
fn entered(enter: &Node) -> Option<OutputRef> {
    let waits = !enter.control_inputs.is_empty();
    enter.inputs.first().copied().filter(|_| !waits)
}

/// What a variable of a loop, a `Merge`, starts with, if every turn hands it on as it is.
fn unchanged(graph: &Graph, merge: OutputRef) -> Option<OutputRef> {
    let named = |value: OutputRef, name: &str| -> Option<&Node> {
        let node = graph.node(value.node);
        (node.info.op_name() == name).then_some(node)
    };
    let [start, next] = named(merge, "Merge")?.inputs[..] else {
        return None;
    };
    let mut at = *named(next, "NextIteration")?.inputs.first()?;
    while let Some(identity) = named(at, "Identity") {
        at = *identity.inputs.first()?;
    }
    let handed_on = named(at, "Switch")?.inputs.first() == Some(&merge) && at.index == 1;
    if handed_on {
        entered(named(start, "Enter")?)
    } else {
        None
    }
}
