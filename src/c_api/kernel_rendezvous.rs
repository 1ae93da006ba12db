//! `TF_GetRendezvous`: where kernels of one step leave tensors for each other, as functions that a plug-in can call.

use crate::TF_Status;
use crate::ffi::given_mut;
use crate::guard::quiet;
use crate::kernel_context::TF_OpKernelContext;
use crate::tensor::TF_Tensor;
use ff_op::{Cancellation, Rendezvous, Value};
use ff_tensor::{Result, Status, status};
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// `TF_RendezvousParsedKey` of tf_rendezvous_c_api.h.
#[repr(C)]
pub struct RendezvousKey {
    full_key: *mut c_char,
    full_key_size: u32,
}

/// `TF_RendezvousSend_Params`.
#[repr(C)]
pub struct SendParams {
    key: *const RendezvousKey,
    args: *const c_void,
    tensor: *mut TF_Tensor,
    is_dead: bool,
    status: *mut TF_Status,
}

/// `TF_RendezvousDoneCallback_Params`.
#[repr(C)]
pub struct ReceivedParams {
    context: *mut c_void,
    status: *const TF_Status,
    tensor: *const TF_Tensor,
    is_dead: bool,
}

/// `TF_RendezvousDoneCallbackImpl`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ReceivedCallback {
    context: *mut c_void,
    callback: Option<unsafe extern "C" fn(*mut c_void, *mut ReceivedParams)>,
}

// SAFETY: the interface says that it may be called on any thread.
unsafe impl Send for ReceivedCallback {}

/// `TF_RendezvousAsyncRecv_Params`.
#[repr(C)]
pub struct ReceiveParams {
    context: *mut c_void,
    key: *const RendezvousKey,
    args: *const c_void,
    on_done: ReceivedCallback,
}

/// The place where kernels of one step leave tensors for each other, and what can be done there.
#[repr(C)]
pub struct TF_RendezvousThunk {
    /// The first argument of the functions; NULL where there is no such place.
    pub rendezvous: *mut c_void,
    /// Leaves a tensor.
    pub send_func: Option<unsafe extern "C" fn(*mut c_void, *mut SendParams)>,
    /// Asks for a tensor.
    pub async_recv_func: Option<unsafe extern "C" fn(*mut c_void, *mut ReceiveParams)>,
    /// Ends the step with an error.
    pub start_abort_func: Option<unsafe extern "C" fn(*mut c_void, *const TF_Status)>,
}

impl TF_RendezvousThunk {
    const NONE: TF_RendezvousThunk = TF_RendezvousThunk {
        rendezvous: null_mut(),
        send_func: None,
        async_recv_func: None,
        start_abort_func: None,
    };
}

/// What the first argument of the functions points to. It belongs to the context.
pub(crate) struct Meeting {
    place: Arc<Rendezvous>,
    cancellation: Cancellation,
}

/// The text of a key. INVALID_ARGUMENT for NULL.
///
/// # Safety
/// `key` is NULL or as the interface says.
unsafe fn text_of(key: *const RendezvousKey) -> Result<String> {
    // SAFETY: passed on to the caller.
    let key = unsafe { key.as_ref() }.filter(|key| !key.full_key.is_null());
    let key = key.ok_or_else(|| status!(InvalidArgument, "the key is NULL"))?;
    // SAFETY: a key has so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(key.full_key.cast::<u8>(), key.full_key_size as usize) };
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

unsafe extern "C" fn send(meeting: *mut c_void, params: *mut SendParams) {
    // SAFETY: the plug-in passes what it was given, and parameters of its own.
    let (meeting, Some(params)) = (unsafe { meeting.cast::<Meeting>().as_ref() }, unsafe {
        params.as_mut()
    }) else {
        return;
    };
    // SAFETY: NULL, or a status of the caller's.
    let status = unsafe { params.status.as_mut() };
    crate::guard(status, || {
        let meeting = meeting.ok_or_else(|| status!(InvalidArgument, "the rendezvous is NULL"))?;
        // SAFETY: as the interface says.
        let key = unsafe { text_of(params.key) }?;
        // SAFETY: NULL, or a tensor of the caller's.
        let value = match unsafe { params.tensor.as_ref() } {
            Some(tensor) if !params.is_dead => Value::Tensor(tensor.tensor()?),
            _ => Value::Absent,
        };
        meeting.place.send(&key, value);
        Ok(())
    });
}

/// Tells a plug-in what was received, or why nothing was.
fn tell(callback: ReceivedCallback, outcome: Result<Value>) {
    let Some(function) = callback.callback else { return };
    let tensor = match outcome {
        Ok(Value::Tensor(tensor)) => TF_Tensor::boxed(tensor).map(Some),
        Ok(_) => Ok(None),
        Err(error) => Err(error),
    };
    let mut status = TF_Status::default();
    let (tensor, error) = match tensor {
        Ok(tensor) => (tensor, None),
        Err(error) => (None, Some(error)),
    };
    let is_dead = tensor.is_none() && error.is_none();
    status.set(error);
    let mut params = ReceivedParams {
        context: callback.context,
        status: &raw const status,
        tensor: tensor.as_deref().map_or(null(), |tensor| &raw const *tensor),
        is_dead,
    };
    // SAFETY: the plug-in's function, called once, with what lives for the call.
    unsafe { function(callback.context, &raw mut params) };
}

unsafe extern "C" fn receive(meeting: *mut c_void, params: *mut ReceiveParams) {
    // SAFETY: the plug-in passes what it was given, and parameters of its own.
    let (meeting, Some(params)) = (unsafe { meeting.cast::<Meeting>().as_ref() }, unsafe {
        params.as_ref()
    }) else {
        return;
    };
    quiet((), || {
        let callback = params.on_done;
        // SAFETY: as the interface says.
        match (meeting, unsafe { text_of(params.key) }) {
            (Some(meeting), Ok(key)) => meeting.place.receive(
                &key,
                &meeting.cancellation,
                Box::new(move |outcome| tell(callback, outcome)),
            ),
            (None, _) => tell(callback, Err(status!(InvalidArgument, "the rendezvous is NULL"))),
            (_, Err(error)) => tell(callback, Err(error)),
        }
        Ok(())
    });
}

unsafe extern "C" fn start_abort(meeting: *mut c_void, status: *const TF_Status) {
    // SAFETY: the plug-in passes what it was given, and NULL or a status of its own.
    let (meeting, status) = unsafe { (meeting.cast::<Meeting>().as_ref(), status.as_ref()) };
    quiet((), || {
        if let (Some(meeting), Some(error)) = (meeting, status.and_then(TF_Status::error)) {
            meeting.cancellation.cancel(Status::clone(error));
        }
        Ok(())
    });
}

/// The place where kernels of this step leave tensors for each other, as functions to call with its `rendezvous`; valid as
/// long as the context. All NULL where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn TF_GetRendezvous(ctx: Option<&mut TF_OpKernelContext>) -> TF_RendezvousThunk {
    quiet(TF_RendezvousThunk::NONE, || {
        let ctx = given_mut(ctx, "ctx")?;
        let host = ctx.context().host();
        let Some(place) = host.rendezvous() else {
            return Ok(TF_RendezvousThunk::NONE);
        };
        let meeting = Meeting {
            place: place.clone(),
            cancellation: host.cancellation().clone(),
        };
        Ok(TF_RendezvousThunk {
            rendezvous: ctx.keep(meeting),
            send_func: Some(send),
            async_recv_func: Some(receive),
            start_abort_func: Some(start_abort),
        })
    })
}
