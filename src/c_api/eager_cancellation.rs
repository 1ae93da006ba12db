//! `TFE_CancellationManager`: ends calls early, and calls back functions of the program.

use crate::ffi::{Handle, Text, given, given_box};
use crate::guard::quiet;
use ff_op::Cancellation;
use ff_tensor::status;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::ffi::c_void;

/// Ends calls early, once. Any thread may use it at any time.
pub struct TFE_CancellationManager {
    /// What calls listen to.
    pub cancellation: Cancellation,
    state: Mutex<State>,
    done: Condvar,
}

/// Names a callback of a manager.
pub type TFE_CancellationToken = i64;

/// A function to call upon cancellation, and what to pass to it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TFE_CancelCallback {
    /// The function.
    pub callback: Option<unsafe extern "C" fn(context: *mut c_void)>,
    /// What is passed to it.
    pub context: *mut c_void,
}

// SAFETY: the program vouches that the function may be called from the thread that cancels.
unsafe impl Send for TFE_CancelCallback {}

#[derive(Default)]
struct State {
    phase: Phase,
    next: TFE_CancellationToken,
    callbacks: BTreeMap<TFE_CancellationToken, TFE_CancelCallback>,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Phase {
    #[default]
    Idle,
    Cancelling,
    Cancelled,
}

/// A new manager. Free it with `TFE_DeleteCancellationManager`.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_NewCancellationManager() -> Box<TFE_CancellationManager> {
    Box::new(TFE_CancellationManager {
        cancellation: Cancellation::default(),
        state: Mutex::default(),
        done: Condvar::new(),
    })
}

fn phase(manager: Handle<TFE_CancellationManager>) -> Phase {
    quiet(Phase::Idle, || Ok(given(manager, "manager")?.state.lock().phase))
}

/// Whether it has cancelled, its callbacks done. False for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_CancellationManagerIsCancelled(manager: Handle<TFE_CancellationManager>) -> bool {
    phase(manager) == Phase::Cancelled
}

/// Whether it is cancelling right now. False for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_CancellationManagerIsCancelling(manager: Handle<TFE_CancellationManager>) -> bool {
    phase(manager) == Phase::Cancelling
}

/// Cancels: calls that listen to it end with CANCELLED, and callbacks are called on this thread. Only the first time.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_CancellationManagerStartCancel(manager: Handle<TFE_CancellationManager>) {
    quiet((), || {
        let manager = given(manager, "manager")?;
        let callbacks = {
            let mut state = manager.state.lock();
            if state.phase != Phase::Idle {
                return Ok(());
            }
            state.phase = Phase::Cancelling;
            std::mem::take(&mut state.callbacks)
        };
        manager
            .cancellation
            .cancel(status!(Cancelled, "Operation was cancelled"));
        for callback in callbacks.into_values() {
            if let Some(function) = callback.callback {
                // SAFETY: the program's own function with what came with it.
                unsafe { function(callback.context) };
            }
        }
        manager.state.lock().phase = Phase::Cancelled;
        manager.done.notify_all();
        Ok(())
    });
}

/// A token that no other callback of the manager has: 0, 1, 2 and so on.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_CancellationManagerGetToken(
    manager: Handle<TFE_CancellationManager>,
) -> TFE_CancellationToken {
    quiet(-1, || {
        let mut state = given(manager, "manager")?.state.lock();
        state.next += 1;
        Ok(state.next - 1)
    })
}

/// Has a function called upon cancellation; it is copied. False, and nothing is registered, when that has begun, or for NULL.
/// `callback_name` is not used.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_CancellationManagerRegisterCallback(
    manager: Handle<TFE_CancellationManager>,
    token: TFE_CancellationToken,
    c_callback: Option<&TFE_CancelCallback>,
    _callback_name: Text,
) -> bool {
    quiet(false, || {
        let callback = *given(c_callback, "c_callback")?;
        let mut state = given(manager, "manager")?.state.lock();
        let register = state.phase == Phase::Idle;
        if register {
            state.callbacks.insert(token, callback);
        }
        Ok(register)
    })
}

/// Takes a callback back: after this it is not called. False when it was called, or is being called, which this waits for.
/// Must not be called from a callback.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_CancellationManagerDeregisterCallback(
    manager: Handle<TFE_CancellationManager>,
    token: TFE_CancellationToken,
) -> bool {
    quiet(false, || {
        let manager = given(manager, "manager")?;
        let mut state = manager.state.lock();
        if state.phase == Phase::Idle {
            state.callbacks.remove(&token);
            return Ok(true);
        }
        while state.phase == Phase::Cancelling {
            manager.done.wait(&mut state);
        }
        Ok(false)
    })
}

/// As `TFE_CancellationManagerDeregisterCallback`, without waiting.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_CancellationManagerTryDeregisterCallback(
    manager: Handle<TFE_CancellationManager>,
    token: TFE_CancellationToken,
) -> bool {
    quiet(false, || {
        let mut state = given(manager, "manager")?.state.lock();
        let removed = state.phase == Phase::Idle;
        if removed {
            state.callbacks.remove(&token);
        }
        Ok(removed)
    })
}

/// Frees a manager, cancelling first if it has callbacks; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TFE_DeleteCancellationManager(manager: Option<Box<TFE_CancellationManager>>) {
    quiet((), || {
        let manager = given_box(manager, "manager")?;
        if !manager.state.lock().callbacks.is_empty() {
            TFE_CancellationManagerStartCancel(Some(&manager));
        }
        Ok(())
    });
}
