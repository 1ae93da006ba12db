//! `TF_SessionOptions`: how a session is configured.

use crate::TF_Status;
use crate::buffer::decode;
use crate::ffi::{Blob, Text, given_mut};
use crate::guard::{guard, quiet};
use ff_runtime::SessionOptions;

/// How sessions are configured. One thread at a time may change it; sessions keep copies.
#[derive(Default)]
pub struct TF_SessionOptions {
    /// The options themselves.
    pub options: SessionOptions,
}

/// New options with default values. Free them with `TF_DeleteSessionOptions`.
#[unsafe(no_mangle)]
pub extern "C" fn TF_NewSessionOptions() -> Box<TF_SessionOptions> {
    Box::default()
}

/// Says where sessions run: empty or `local` for this process, else the address of a server.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetTarget(options: Option<&mut TF_SessionOptions>, target: Text) {
    quiet((), || {
        given_mut(options, "options")?.options.target = target.or_empty().into_owned();
        Ok(())
    });
}

/// Sets the configuration: a serialized `ConfigProto` of `proto_len` bytes. INVALID_ARGUMENT for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn TF_SetConfig(
    options: Option<&mut TF_SessionOptions>,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        let config = decode(proto.bytes(proto_len, "proto")?, "Unparseable ConfigProto")?;
        given_mut(options, "options")?.options.config = config;
        Ok(())
    });
}

/// Frees options; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteSessionOptions(options: Option<Box<TF_SessionOptions>>) {
    quiet((), || {
        drop(options);
        Ok(())
    });
}
