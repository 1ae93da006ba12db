//! Work of a kernel that goes on after it has returned: the step does not end before it does.
//!
//! Contract: the context of a kernel lives until all work that it announced has ended. A kernel that computes at once is
//! waited for on its thread; the run of an asynchronous one is put aside, and the last work to end ends it.

use crate::ffi::given;
use crate::guard::quiet;
use crate::kernel_context::TF_OpKernelContext;
use crate::kernel_waiting::Waiting;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// The work that a kernel announced.
#[derive(Default)]
pub(crate) struct Deferred {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    under_way: usize,
    /// A run that is done but for this work.
    aside: Option<Waiting>,
}

impl Deferred {
    fn begin(&self) {
        self.state.lock().under_way += 1;
    }

    /// An end without a beginning is ignored.
    fn end(&self) {
        let mut state = self.state.lock();
        state.under_way = state.under_way.saturating_sub(1);
        if state.under_way > 0 {
            return;
        }
        let aside = state.aside.take();
        drop(state);
        self.ended.notify_all();
        if let Some(run) = aside {
            run.finish();
        }
    }

    /// Waits until all work has ended.
    pub fn wait(&self) {
        let mut state = self.state.lock();
        while state.under_way > 0 {
            self.ended.wait(&mut state);
        }
    }

    /// Ends a run, now or when the work has ended.
    pub fn finish(&self, run: Waiting) {
        let mut state = self.state.lock();
        if state.under_way > 0 {
            state.aside = Some(run);
            return;
        }
        drop(state);
        run.finish();
    }
}

/// The work of a context; it may outlive the context. None for NULL.
fn deferred_of(context: *mut TF_OpKernelContext) -> Option<Arc<Deferred>> {
    // SAFETY: NULL, or a context that lives; only what threads may share is looked at.
    let context = unsafe { context.as_ref() };
    quiet(None, || Ok(Some(given(context, "context")?.deferred().clone())))
}

/// Announces work that goes on after the kernel has returned. The step ends, and the context lives, until as many calls of
/// `TF_DecNumDeferredOps` have said that such work has ended. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_IncNumDeferredOps(context: *mut TF_OpKernelContext) {
    if let Some(deferred) = deferred_of(context) {
        deferred.begin();
    }
}

/// Says that work that was announced has ended; the context must not be used after the last. Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DecNumDeferredOps(context: *mut TF_OpKernelContext) {
    if let Some(deferred) = deferred_of(context) {
        quiet((), || {
            deferred.end();
            Ok(())
        });
    }
}
