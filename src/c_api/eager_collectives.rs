//! Collective ops of eager contexts: their groups have one task, this process.

use crate::TF_Status;
use crate::buffer::TF_Buffer;
use crate::eager_cluster::join;
use crate::eager_context::{TFE_Context, context};
use crate::ffi::{Blob, Handle, Text};
use crate::guard::{guard, guard_or, quiet};
use ff_proto::ServerDef;
use ff_runtime::Joining;
use ff_tensor::status;

/// A serialized `ServerDef` of one in text form. Free it with `TF_DeleteBuffer`. NULL with INTERNAL for other text.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_GetServerDef(
    text_proto: Text,
    status: Option<&mut TF_Status>,
) -> Option<Box<TF_Buffer>> {
    guard_or(status, None, || {
        let text = text_proto.text("text_proto")?;
        let parsed = ff_proto::text::parse::<ServerDef>(&text);
        let server = parsed.map_err(|_| status!(Internal, "Invalid text proto for ServerDef: {text}"))?;
        Ok(Some(Box::new(TF_Buffer::of_message(&server)?)))
    })
}

/// Makes the context the task that a serialized `ServerDef` says, as `TFE_ContextSetServerDef` does, so that its collective
/// ops have their group there. It has no effect on a context that is a task already.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_EnableCollectiveOps(
    ctx: Handle<TFE_Context>,
    proto: Blob,
    proto_len: usize,
    status: Option<&mut TF_Status>,
) {
    guard(status, || join(ctx, proto, proto_len, Joining::ForCollectives));
}

/// Ends the collective ops that wait for others, and all later ones, with the error in `status`, which is left as it is. The
/// first error stays, until the context becomes another task. An OK status ends none.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_AbortCollectiveOps(ctx: Handle<TFE_Context>, status: Option<&mut TF_Status>) {
    quiet((), || {
        if let (Ok(context), Some(cause)) = (context(ctx), status.and_then(|status| status.error())) {
            context.abort_collectives(cause.clone());
        }
        Ok(())
    });
}

/// Whether a process that takes part in collective ops answers. INTERNAL, as none does.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_CollectiveOpsCheckPeerHealth(
    ctx: Handle<TFE_Context>,
    task: Text,
    _timeout_in_ms: i64,
    status: Option<&mut TF_Status>,
) {
    guard(status, || {
        context(ctx)?;
        task.given("task")?;
        Err::<(), _>(status!(
            Internal,
            "CheckPeerHealth is not supposed to be called for local collectives"
        ))
    });
}
