//! `FF_RunMetadataToTrace`, `FF_WriteProfile`: the record of a run for people to look at. They start no profiler of a
//! plug-in, and neither does a run: upstream, the profiler session of its Python package does.

use crate::TF_Status;
use crate::buffer::{TF_Buffer, decode, fill_bytes};
use crate::ffi::{Text, given};
use crate::guard::guard;
use ff_platform::{environment, files, time};
use ff_proto::{RunMetadata, StepStats};
use ff_runtime::{profile, xplane};
use ff_tensor::{Result, ensure, status};

/// The step stats of a serialized RunMetadata.
fn record(run_metadata: Option<&TF_Buffer>) -> Result<StepStats> {
    let metadata: RunMetadata = decode(
        given(run_metadata, "run_metadata")?.bytes()?,
        "Unparseable RunMetadata",
    )?;
    metadata.step_stats.ok_or_else(|| {
        status!(
            FailedPrecondition,
            "The run was not traced: its metadata has no step_stats"
        )
    })
}

/// Writes the record of a run as a trace that Perfetto and `chrome://tracing` open: JSON, one process for each device, one
/// row for each thread, one event for each node.
///
/// `run_metadata` is what `TF_SessionRun` gave for options with a trace level. The JSON goes into `trace`, an empty buffer
/// of the caller's. Any thread may call this; the buffers are used during the call only.
///
/// INVALID_ARGUMENT for NULL, a buffer that is not empty, and bytes that are no RunMetadata; FAILED_PRECONDITION for a run
/// that was not traced.
#[unsafe(no_mangle)]
pub extern "C" fn FF_RunMetadataToTrace(
    run_metadata: Option<&TF_Buffer>,
    trace: Option<&mut TF_Buffer>,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let stats = record(run_metadata)?;
        fill_bytes(trace, profile::chrome_trace(&stats).as_bytes())
    });
}

/// Writes the record of a run where TensorBoard's profiler looks: `LOGDIR/plugins/profile/RUN/HOST.xplane.pb`. Folders are made, a file of that name is replaced.
///
/// `logdir` may be on any file system that the library knows. `run` is one name, without `/`; NULL or empty for the
/// time in microseconds. Any thread may call this; the arguments are used during the call only.
///
/// INVALID_ARGUMENT for NULL, bytes that are no RunMetadata, and a wrong `run`; FAILED_PRECONDITION for a run that was not
/// traced; the file system's own error when writing fails.
#[unsafe(no_mangle)]
pub extern "C" fn FF_WriteProfile(
    run_metadata: Option<&TF_Buffer>,
    logdir: Text,
    run: Text,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let stats = record(run_metadata)?;
        let logdir = logdir.text("logdir")?;
        ensure!(!logdir.is_empty(), InvalidArgument, "logdir is empty");
        let run = match run.or_empty() {
            empty if empty.is_empty() => time::now_microseconds().to_string(),
            run => run.into_owned(),
        };
        let is_name = !run.contains(['/', '\\']) && run != "." && run != "..";
        ensure!(is_name, InvalidArgument, "not the name of a run: {run}");
        let host = environment::host_name();
        let space = xplane::x_space(&stats, &host);
        let folder = format!("{}/plugins/profile/{run}", logdir.trim_end_matches('/'));
        files::create_directories(&folder)?;
        files::write_atomically(&format!("{folder}/{host}.xplane.pb"), &space)
    });
}
