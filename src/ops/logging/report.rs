//! Assert, Print and PrintV2.

use ff_op::{Gradient, GradientContext, Kernel, KernelContext, Op, shapes};
use ff_tensor::{Result, bail, ensure, status};
use std::any::Any;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The ops of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Assert",
        shape: |context| context.input_with_rank(0, 0).map(drop),
        kernels: &[Kernel::native(assert)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
    &Op {
        name: "Print",
        shape: shapes::unchanged,
        kernels: &[Kernel::native(print)],
        gradient: Gradient::Fn(print_gradient),
        ..Op::WRITES
    },
    &Op {
        name: "PrintV2",
        shape: shapes::none,
        kernels: &[Kernel::native(print_text)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
];

fn assert(context: &mut KernelContext) -> Result<()> {
    if context.input(0)?.to_bool()? {
        return Ok(());
    }
    let summarize = context.attrs().int("summarize")?;
    let mut message = "assertion failed: ".to_string();
    for index in 1..context.num_inputs() {
        message.push_str(&format!("[{}] ", context.input(index)?.summarize(summarize)));
    }
    bail!(InvalidArgument, "{}", message.trim_end())
}

/// Whether this run is among the first `first_n` of its node; a negative number means all.
fn still_prints(context: &KernelContext, first_n: i64) -> Result<bool> {
    if first_n < 0 {
        return Ok(true);
    }
    let state = context.host().node_state(&context.node().name, &mut || {
        let state: Arc<dyn Any + Send + Sync> = Arc::new(AtomicI64::new(0));
        Ok(state)
    })?;
    let count = state.downcast_ref::<AtomicI64>();
    let count = count.ok_or_else(|| status!(Internal, "{} changed its op", context.node().describe()))?;
    Ok(count.fetch_add(1, Ordering::Relaxed) < first_n)
}

fn print(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    if still_prints(context, attrs.int("first_n")?)? {
        let mut text = String::from_utf8_lossy(attrs.bytes("message")?).into_owned();
        for index in 1..context.num_inputs() {
            text.push_str(&format!(
                "[{}]",
                context.input(index)?.summarize(attrs.int("summarize")?)
            ));
        }
        text.push('\n');
        // A log that cannot be written stops no step.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    context.forward(0, 0);
    Ok(())
}

fn print_gradient(context: &mut GradientContext) -> Result<()> {
    if let Some(gradient) = context.incoming(0) {
        context.set(0, gradient);
    }
    Ok(())
}

fn print_text(context: &mut KernelContext) -> Result<()> {
    let attrs = context.attrs();
    let input = context.input(0)?;
    ensure!(
        input.rank() == 0,
        InvalidArgument,
        "Input is expected to be scalar, but got {}",
        input.shape()
    );
    let mut text = input.strings()?[0].as_bytes().to_vec();
    text.extend(attrs.bytes("end")?);
    let stream = attrs.string("output_stream")?;
    let written = match stream.strip_prefix("file://") {
        Some(path) => ff_platform::files::append(path).and_then(|mut file| {
            file.append(&text)?;
            file.close()
        }),
        None if stream == "stdout" => {
            let _ = std::io::stdout().write_all(&text);
            Ok(())
        }
        None if ["stderr", "log(info)", "log(warning)", "log(error)"].contains(&stream) => {
            let _ = std::io::stderr().write_all(&text);
            Ok(())
        }
        None => bail!(InvalidArgument, "Unknown output stream: {stream}"),
    };
    written.map_err(|error| error.prefixed("PrintV2: "))
}

crate::op_cases! {
    holds: Case::op("Assert").inputs([bools(&[], &[true]), scalar(1)]);
    fails: Case::op("Assert").inputs([bools(&[], &[false]), strings(&[], &["why"]), vector(&[1, 2, 3, 4])])
        .fails(Code::InvalidArgument);
    no_scalar: Case::op("Assert").inputs([bools(&[1], &[true]), scalar(1)]).fails(Code::InvalidArgument);
    printed: Case::op("Print").inputs([scalar(1.5f32), vector(&[1, 2])]).gives(scalar(1.5f32));
    text: Case::op("PrintV2").input(strings(&[], &["printed by a case"]));
    texts: Case::op("PrintV2").input(strings(&[1], &["a"])).fails(Code::InvalidArgument);
    text_nowhere: Case::op("PrintV2").input(strings(&[], &["a"])).attr("output_stream", "nowhere").fails(Code::InvalidArgument);
}
