//! Settings of just-in-time compilation, and configurations that bindings ask for.
//!
//! The settings of the process are [`ff_jit::flags`]: plans that are made later follow them.

use crate::buffer::TF_Buffer;
use crate::ffi::{Text, given_mut};
use crate::guard::quiet;
use crate::session_options::TF_SessionOptions;
use ff_jit::flags;
use ff_proto::optimizer_options::GlobalJitLevel;
use ff_proto::run_options::TraceLevel;
use ff_proto::{ConfigProto, GpuOptions, RunOptions};
use std::ffi::{c_int, c_uchar, c_uint};
use std::sync::atomic::Ordering::Relaxed;

fn set_jit_level(config: &mut ConfigProto, enable: bool) {
    let level = if enable {
        GlobalJitLevel::On1
    } else {
        GlobalJitLevel::Off
    };
    let options = config.graph_options.get_or_insert_default();
    let options = options.optimizer_options.get_or_insert_default();
    options.global_jit_level = level as i32;
    if enable {
        flags().cpu_global_jit.store(true, Relaxed);
        flags().min_cluster_size.store(1, Relaxed);
    }
}

/// Sets the level of just-in-time compilation in the configuration of a session: 0 for none. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_EnableXLACompilation(options: Option<&mut TF_SessionOptions>, enable: c_uchar) {
    quiet((), || {
        set_jit_level(&mut given_mut(options, "options")?.options.config, enable != 0);
        Ok(())
    });
}

/// Says whether compilation may wait until code has run some times. Returns what was said before.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetXlaEnableLazyCompilation(enable: c_uchar) -> c_uchar {
    c_uchar::from(flags().lazy.swap(enable != 0, Relaxed))
}

/// Says whether the level of the process holds for processors too; what a session asks for always does. Returns what was said before.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetTfXlaCpuGlobalJit(enable: c_uchar) -> c_uchar {
    c_uchar::from(flags().cpu_global_jit.swap(enable != 0, Relaxed))
}

/// Sets the level for sessions that state none: a number, `single-gpu(number)` or `fusible`. Other texts are ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetXlaAutoJitMode(mode: Text) {
    quiet((), || {
        flags().set_auto_jit(&mode.text("mode")?);
        Ok(())
    });
}

/// Whether such a level is above 0.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetXlaAutoJitEnabled() -> c_uchar {
    c_uchar::from(flags().auto_jit.iter().any(|level| level.load(Relaxed) > 0))
}

/// Sets how many operations a part must have to be compiled.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetXlaMinClusterSize(size: c_int) {
    flags().min_cluster_size.store(size, Relaxed);
}

/// Whether constants are to be left as they are.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetXlaConstantFoldingDisabled() -> c_uchar {
    c_uchar::from(flags().folding_disabled.load(Relaxed))
}

/// Says whether constants are to be left as they are.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetXlaConstantFoldingDisabled(should_enable: c_uchar) {
    flags().folding_disabled.store(should_enable != 0, Relaxed);
}

/// A serialized `ConfigProto`: compilation on or off, so many processor devices, one thread between operations. The caller
/// deletes the buffer. NULL when memory is out.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CreateConfig(
    enable_xla_compilation: c_uchar,
    gpu_memory_allow_growth: c_uchar,
    num_cpu_devices: c_uint,
) -> Option<Box<TF_Buffer>> {
    quiet(None, || {
        let mut config = ConfigProto {
            inter_op_parallelism_threads: 1,
            gpu_options: Some(GpuOptions {
                allow_growth: gpu_memory_allow_growth != 0,
                ..GpuOptions::default()
            }),
            ..ConfigProto::default()
        };
        let devices = i32::try_from(num_cpu_devices).unwrap_or(i32::MAX);
        config.device_count.insert("CPU".to_string(), devices);
        set_jit_level(&mut config, enable_xla_compilation != 0);
        Ok(Some(Box::new(TF_Buffer::of_message(&config)?)))
    })
}

/// A serialized `RunOptions` that asks for a full trace, or for none. The caller deletes the buffer. NULL when memory is out.
#[unsafe(no_mangle)]
pub extern "C" fn TF_CreateRunOptions(enable_full_trace: c_uchar) -> Option<Box<TF_Buffer>> {
    quiet(None, || {
        let level = if enable_full_trace != 0 {
            TraceLevel::FullTrace
        } else {
            TraceLevel::NoTrace
        };
        let options = RunOptions {
            trace_level: level as i32,
            ..RunOptions::default()
        };
        Ok(Some(Box::new(TF_Buffer::of_message(&options)?)))
    })
}
