//! `cargo xtask coverage`: writes `COVERAGE.md`, which ops have a kernel, for which types, a lowering, a gradient.
//!
//! The figures come from the op library itself, so the page cannot drift from it. With `--cases` it runs the library's unit
//! tests instead, and prints the ops that no test ran, a line for each folder, and the gradients that no finite difference was
//! compared with; those of `UNCHECKED_GRADIENTS` are known. It fails on such a gradient.

use crate::tools;
#[cfg(feature = "coverage")]
use ff_op::{Gradient, Kernel, KernelBody, Op};
#[cfg(feature = "coverage")]
use ff_proto::attr_value;
#[cfg(feature = "coverage")]
use ff_tensor::DataType;
#[cfg(feature = "coverage")]
use std::collections::BTreeSet;
#[cfg(feature = "coverage")]
use std::path::{Path, PathBuf};

/// Runs the command.
#[cfg(feature = "coverage")]
pub fn run(arguments: &[String]) -> Result<(), String> {
    if arguments.iter().any(|argument| argument == "--cases") {
        return cases();
    }
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

/// What the unit tests recorded beside their dump of cases, name by name.
#[cfg(feature = "coverage")]
fn recorded(dump: &Path, kind: &str) -> Result<BTreeSet<String>, String> {
    let text = tools::read(&PathBuf::from(format!("{}.{kind}", dump.display())))?;
    Ok(text.lines().map(str::to_string).collect())
}

#[cfg(feature = "coverage")]
fn cases() -> Result<(), String> {
    let folder = tools::root().join("target/cases");
    let _ = std::fs::remove_dir_all(&folder);
    tools::create_folder(&folder)?;
    let dump = folder.join("cases.tsv");
    let mut tests = tools::cargo();
    tests
        .args(["test", "--quiet", "-p", "ff-ops"])
        .env("FF_CASES_DUMP", &dump);
    tools::output(&mut tests)?;
    let (run, checked) = (recorded(&dump, "ops")?, recorded(&dump, "gradients")?);
    let excepted = |op: &Op| {
        ff_ops::UNCHECKED_GRADIENTS
            .iter()
            .any(|(name, _)| *name == op.name)
    };
    for (op, file) in ff_ops::CASES_ELSEWHERE {
        if !tools::read(&tools::root().join(file))?.contains(&format!("\"{op}\"")) {
            return Err(format!("{file} does not name {op}"));
        }
    }
    let runs_elsewhere = |name: &str| ff_ops::CASES_ELSEWHERE.iter().any(|(op, _)| *op == name);
    let mut unchecked = Vec::new();
    let mut missing = 0;
    for lists in ff_ops::DOMAINS {
        let ops = || lists.iter().copied().flatten().copied();
        let not_run: Vec<&str> = ops()
            .map(|op| op.name)
            .filter(|name| !run.contains(*name) && !runs_elsewhere(name))
            .collect();
        if !not_run.is_empty() {
            println!("without cases: {}", not_run.join(" "));
        }
        missing += not_run.len();
        let has_gradient = |op: &&Op| matches!(op.gradient, Gradient::Fn(_));
        let is_unchecked = |op: &&Op| !checked.contains(op.name) && !excepted(op);
        unchecked.extend(ops().filter(has_gradient).filter(is_unchecked).map(|op| op.name));
    }
    println!(
        "{missing} ops without cases; {} gradients compared with finite differences, {} listed as checked elsewhere, {} unchecked",
        checked.len(),
        ff_ops::UNCHECKED_GRADIENTS.len(),
        unchecked.len()
    );
    match unchecked.is_empty() {
        true => Ok(()),
        false => Err(format!("gradients that nothing checks: {}", unchecked.join(" "))),
    }
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
         {} a gradient ({} of them out of reach of finite differences). An op that is not listed can be imported; running it is an error that names it. \
         Types are those of the schema, or fewer where the kernels list theirs; nothing where any will do.\n\n\
         | op | kernel | types | lowering | gradient |\n|---|---|---|---|---|\n",
        ff_op::schema::COUNT,
        count(|op| !op.kernels.is_empty()),
        count(|op| op.lower.is_some()),
        count(|op| matches!(op.gradient, Gradient::Fn(_))),
        ff_ops::UNCHECKED_GRADIENTS.len(),
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
    if has(|body| matches!(body, KernelBody::Asynchronous { .. })) {
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
        "| {} | {} | {} | {lowering} | {gradient} |\n",
        op.name,
        kernels.join(", "),
        types(op)
    )
}

/// What each type attribute of an op may be for one of its kernels to apply; nothing where it may be anything.
#[cfg(feature = "coverage")]
fn types(op: &Op) -> String {
    let Some(def) = ff_op::schema::find(op.name) else {
        return String::new();
    };
    let mut all = Vec::new();
    for attr in def.attr.iter().filter(|attr| attr.r#type.contains("type")) {
        let allowed = attr
            .allowed_values
            .as_ref()
            .and_then(|value| value.value.as_ref());
        let allowed: Option<Vec<DataType>> = match allowed {
            Some(attr_value::Value::List(list)) => {
                Some(list.r#type.iter().map(|&number| DataType(number)).collect())
            }
            _ => None,
        };
        let of_kernel = |kernel: &Kernel| {
            let own = kernel.types.iter().find(|(name, _)| *name == attr.name);
            own.map(|(_, types)| types.to_vec()).or_else(|| allowed.clone())
        };
        let mut taken = BTreeSet::new();
        let restricted = op.kernels.iter().all(|kernel| match of_kernel(kernel) {
            Some(types) => {
                let fits = |dtype: &&DataType| allowed.as_ref().is_none_or(|allowed| allowed.contains(dtype));
                taken.extend(types.iter().filter(fits).map(DataType::to_string));
                true
            }
            None => false,
        });
        if restricted && !taken.is_empty() {
            let taken: Vec<String> = taken.into_iter().collect();
            all.push(format!("{}: {}", attr.name, taken.join(" ")));
        }
    }
    all.join("; ")
}
