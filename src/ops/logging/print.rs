//! `Print` and `PrintV2` write text to a stream or the log; `Timestamp` gives the time.

use ff_op::{Gradient, Kernel, KernelContext, Op};
use ff_platform::log::{Severity, send, send_to_listeners};
use ff_platform::{files, time};
use ff_tensor::{Result, Tensor, ensure, status};
use std::any::Any;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Every op of this file.
pub static OPS: &[&Op] = &[
    &Op {
        name: "Print",
        shape: ff_op::shapes::unchanged,
        kernels: &[Kernel::native(print)],
        gradient: Gradient::Fn(|context| {
            let incoming = context.incoming_or_zeros(0)?;
            context.set(0, incoming);
            Ok(())
        }),
        ..Op::WRITES
    },
    &Op {
        name: "PrintV2",
        shape: |context| {
            context.input_with_rank(0, 0)?;
            Ok(())
        },
        kernels: &[Kernel::native(print_v2)],
        gradient: Gradient::NotDifferentiable,
        ..Op::WRITES
    },
    &Op {
        name: "Timestamp",
        shape: ff_op::shapes::scalar,
        kernels: &[Kernel::native(timestamp)],
        gradient: Gradient::NotDifferentiable,
        ..Op::STATEFUL
    },
];

/// Writes the message and summaries of the data, `first_n` times at most, and passes the input on.
fn print(context: &mut KernelContext) -> Result<()> {
    let first = context.attrs().int("first_n")?;
    if first < 0 || times_run(context)? < first {
        let summarize = context.attrs().int("summarize")?;
        let mut text = String::from_utf8_lossy(context.attrs().bytes("message")?).into_owned();
        for index in 1..context.num_inputs() {
            text.push_str(&format!("[{}]", context.input(index)?.summarize(summarize)));
        }
        text.push('\n');
        // An output stream that is closed does not end the step.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    context.forward(0, 0);
    Ok(())
}

/// How often this node was asked before.
fn times_run(context: &KernelContext) -> Result<i64> {
    let mut make = || Ok(Arc::new(AtomicI64::new(0)) as Arc<dyn Any + Send + Sync>);
    let state = context.host().node_state(&context.node().name, &mut make)?;
    let counter: &AtomicI64 = state.downcast_ref().ok_or_else(|| {
        status!(
            Internal,
            "{} has state of another kind",
            context.node().describe()
        )
    })?;
    Ok(counter.fetch_add(1, Ordering::Relaxed))
}

/// Listeners, where there are any, get the text instead of the stream.
fn print_v2(context: &mut KernelContext) -> Result<()> {
    let input = context.input(0)?;
    ensure!(
        input.rank() == 0,
        InvalidArgument,
        "Input is expected to be scalar, but got {}",
        input.shape()
    );
    let (text, attrs) = (&input.strings()?[0], context.attrs());
    let mut ended = text.as_bytes().to_vec();
    ended.extend_from_slice(attrs.bytes("end")?);
    let stream = attrs.string("output_stream")?;
    let known = ["stdout", "stderr", "log(info)", "log(warning)", "log(error)"];
    if let Some(path) = stream.strip_prefix("file://") {
        let mut file = files::append(path)?;
        file.append(&ended)?;
        return file.close();
    }
    ensure!(
        known.contains(&stream),
        InvalidArgument,
        "Unknown output stream: {stream}, Valid streams are: {}",
        known.join(" ")
    );
    if send_to_listeners(&String::from_utf8_lossy(&ended)) {
        return Ok(());
    }
    let line = text.to_str_lossy();
    let place = (file!(), line!());
    let severity = match stream {
        "log(info)" => Some(Severity::Info),
        "log(warning)" => Some(Severity::Warning),
        "log(error)" => Some(Severity::Error),
        _ => None,
    };
    if let Some(severity) = severity {
        send(severity, place, format_args!("{line}"));
        return Ok(());
    }
    // An output stream that is closed does not end the step.
    let _ = match stream {
        "stdout" => std::io::stdout()
            .write_all(&ended)
            .and_then(|()| std::io::stdout().flush()),
        _ => std::io::stderr().write_all(&ended),
    };
    Ok(())
}

/// Seconds since the first of January 1970.
fn timestamp(context: &mut KernelContext) -> Result<()> {
    let seconds = time::now_microseconds() as f64 / 1e6;
    context.set_output(0, Tensor::scalar(seconds)?)
}

crate::op_cases! {
    passes_on: Case::op("Print").attr("first_n", 0i64).input(vector(&[1, 2])).input(scalar(1)).gives(vector(&[1, 2]));
    unknown_stream: Case::op("PrintV2").attr("output_stream", "foo").input(strings(&[], &["a"]))
        .fails(Code::InvalidArgument);
    prints_a_scalar: Case::op("PrintV2").input(strings(&[1], &["a"])).fails(Code::InvalidArgument);
    without_data: Case::op("Print").attr("first_n", 0i64).attr("U", Vec::<DataType>::new()).input(scalar(1.5f32))
        .gives(scalar(1.5f32));
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpRunner, strings};
    use ff_op::Attrs;

    #[test]
    fn lines_go_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let runner = OpRunner::new();
        for text in ["one", "two"] {
            let attrs = Attrs::new().with("output_stream", &*format!("file://{}", path.display()));
            runner.run("PrintV2", &[strings(&[], &[text])], attrs).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn time_goes_on() {
        let now = OpRunner::new().run("Timestamp", &[], Attrs::new()).unwrap();
        assert!(now[0].single::<f64>().unwrap() > 1.6e9);
    }
}
