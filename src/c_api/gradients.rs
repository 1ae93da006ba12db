//! Gradients added to a graph.

use crate::TF_Status;
use crate::ffi::{Handle, Room, Text};
use crate::graph::{TF_Graph, state};
use crate::guard::guard;
use crate::operation::TF_Output;
use ff_graph::add_gradients;
use ff_tensor::Result;
use std::ffi::c_int;

/// Adds operations that compute the gradients of the sum of the outputs `y` with respect to each output `x`, and writes
/// those to `dy`, which has room for `nx`. `dx` gives a gradient for each `y`; NULL for ones. Where nothing flows the result
/// has no operation.
///
/// NOT_FOUND for an op that has no gradient, INVALID_ARGUMENT for outputs that are not of the graph or do not depend on
/// each other.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AddGradients(
    g: Handle<TF_Graph>,
    y: Room<TF_Output>,
    ny: c_int,
    x: Room<TF_Output>,
    nx: c_int,
    dx: Room<TF_Output>,
    status: Option<&mut TF_Status>,
    dy: Room<TF_Output>,
) {
    guard(status, || add(g, None, [(y, ny), (x, nx)], dx, dy));
}

/// As `TF_AddGradients`, with names that start with `prefix` and a slash. INVALID_ARGUMENT also for a prefix that is in use.
/// NULL is for a prefix that the library chooses.
#[unsafe(no_mangle)]
pub extern "C" fn TF_AddGradientsWithPrefix(
    g: Handle<TF_Graph>,
    prefix: Text,
    y: Room<TF_Output>,
    ny: c_int,
    x: Room<TF_Output>,
    nx: c_int,
    dx: Room<TF_Output>,
    status: Option<&mut TF_Status>,
    dy: Room<TF_Output>,
) {
    guard(status, || {
        let prefix = prefix
            .bytes()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        add(g, prefix.as_deref(), [(y, ny), (x, nx)], dx, dy)
    });
}

fn add(
    graph: Handle<TF_Graph>,
    prefix: Option<&str>,
    [(y, ny), (x, nx)]: [(Room<TF_Output>, c_int); 2],
    dx: Room<TF_Output>,
    dy: Room<TF_Output>,
) -> Result<()> {
    let state = state(graph)?;
    let outputs = state.outputs_of(y.of(ny, "y")?)?;
    let inputs = state.outputs_of(x.of(nx, "x")?)?;
    let incoming = if dx.is_null() {
        Vec::new()
    } else {
        state.outputs_of(dx.of(ny, "dx")?)?
    };
    let gradients = add_gradients(&mut state.lock(), &outputs, &inputs, &incoming, prefix)?;
    let results = gradients.into_iter().map(|gradient| match gradient {
        Some(output) => state.output(output),
        None => TF_Output {
            index: -1,
            ..TF_Output::NONE
        },
    });
    dy.write_all(nx, results.collect(), "dy")
}
