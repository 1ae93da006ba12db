//! Target `graph`: GraphDefs, imported, looked at, differentiated and run.

use super::graph_use::{buffer, is_ok, look, no_room, outputs, run_some};
use super::{Form, Target, change_message};
use crate::random::Choices;
use ff_c_api::ffi::Room;
use ff_c_api::*;

/// GraphDefs.
pub static GRAPH: Target = Target {
    name: "graph",
    about: "GraphDefs: import, inference, export, gradients, runs",
    form: Form::Message,
    from: &["graph"],
    make: change_message,
    run,
};

/// Choices that depend on the input: its last bytes, so that a smaller input keeps them.
fn tail(bytes: &[u8]) -> Choices<'_> {
    Choices::new(&bytes[bytes.len().saturating_sub(16)..])
}

fn run(bytes: &[u8]) {
    let mut status = TF_NewStatus();
    let graph = TF_NewGraph();
    let def = buffer(bytes);
    TF_GraphImportGraphDef(graph.as_deref(), def.as_deref(), None, Some(&mut status));
    if let Some(graph) = graph.as_deref().filter(|_| is_ok(&status)) {
        look(graph);
        run_some(graph, &mut tail(bytes));
        differentiate(graph, &mut tail(bytes));
    }
    TF_DeleteBuffer(def);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(Some(status));
}

/// The gradient of some floating-point output by another, and a run with it.
fn differentiate(graph: &TF_Graph, choices: &mut Choices) {
    let outputs = outputs(graph);
    let floating: Vec<TF_Output> = outputs
        .iter()
        .filter(|(_, dtype)| dtype.is_floating())
        .map(|(output, _)| *output)
        .collect();
    if floating.is_empty() {
        return;
    }
    let mut status = TF_NewStatus();
    let mut y = [floating[floating.len() - 1 - choices.below(2).min(floating.len() - 1)]];
    let mut x = [*choices.pick(&floating)];
    let mut dx = [TF_Output::NONE];
    TF_AddGradients(
        Some(graph),
        Room::new(&mut y),
        1,
        Room::new(&mut x),
        1,
        no_room(),
        Some(&mut status),
        Room::new(&mut dx),
    );
    if is_ok(&status) {
        run_some(graph, choices);
    }
    TF_DeleteStatus(Some(status));
}
