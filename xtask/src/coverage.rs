//! `cargo xtask coverage`: writes `COVERAGE.md`, which ops have a kernel, a lowering, a gradient.
//!
//! The figures come from the op library itself, so the page cannot drift from it.

use crate::tools;
#[cfg(feature = "coverage")]
use ff_op::{Gradient, KernelBody, Op};

/// Runs the command.
#[cfg(feature = "coverage")]
pub fn run(arguments: &[String]) -> Result<(), String> {
    let check = arguments.iter().any(|argument| argument == "--check");
    let path = tools::root().join("COVERAGE.md");
    let text = page();
    if !check {
        return tools::write(&path, &text);
    }
    match tools::read(&path) {
        Ok(found) if found == text => Ok(()),
        _ => Err("COVERAGE.md is out of date: run `cargo xtask coverage`".into()),
    }
}

/// Stands in where the op library was not built in; `main` builds it in before it gets here.
#[cfg(not(feature = "coverage"))]
pub fn run(_arguments: &[String]) -> Result<(), String> {
    Err(format!(
        "{} was built without the feature `coverage`",
        tools::root().join("xtask").display()
    ))
}

#[cfg(feature = "coverage")]
fn page() -> String {
    let mut ops: Vec<&Op> = ff_ops::DOMAINS
        .iter()
        .copied()
        .flatten()
        .copied()
        .flatten()
        .copied()
        .collect();
    ops.sort_by_key(|op| op.name);
    let count = |has: fn(&Op) -> bool| ops.iter().filter(|op| has(op)).count();
    let mut text = format!(
        "# Coverage\n\nWritten by `cargo xtask coverage`. Of the {} ops that have a schema, {} have a kernel, {} a lowering, \
         {} a gradient. An op that is not listed can be imported; running it is an error that names it.\n\n\
         | op | kernel | lowering | gradient |\n|---|---|---|---|\n",
        ff_op::schema::COUNT,
        count(|op| !op.kernels.is_empty()),
        count(|op| op.lower.is_some()),
        count(|op| matches!(op.gradient, Gradient::Fn(_))),
    );
    for op in ops {
        text += &row(op);
    }
    text
}

#[cfg(feature = "coverage")]
fn row(op: &Op) -> String {
    let has = |kind: fn(&KernelBody) -> bool| op.kernels.iter().any(|kernel| kind(&kernel.body));
    let mut kernels = Vec::new();
    if has(|body| matches!(body, KernelBody::Native(_))) {
        kernels.push("native");
    }
    if has(|body| matches!(body, KernelBody::Asynchronous(_))) {
        kernels.push("asynchronous");
    }
    if has(|body| matches!(body, KernelBody::FromLowering)) {
        kernels.push("from lowering");
    }
    let lowering = if op.lower.is_some() { "yes" } else { "" };
    let gradient = match op.gradient {
        Gradient::Fn(_) => "yes",
        Gradient::NotDifferentiable => "none by definition",
        Gradient::Missing => "",
    };
    format!(
        "| {} | {} | {lowering} | {gradient} |\n",
        op.name,
        kernels.join(", ")
    )
}
