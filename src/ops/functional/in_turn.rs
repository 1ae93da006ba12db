//! Functions that may wait, run one after the other by a node that holds no thread meanwhile.
//!
//! The node is a *script*: given the results of the function that it called last, it says which one to call next, or what
//! its outputs are. A function that ends at once is a turn of a loop here; after one that waits, the loop goes on where
//! the step is driven. Nothing nests from turn to turn.

use ff_op::{AsyncKernelContext, Callable, FunctionRef};
use ff_tensor::{Result, Tensor};
use parking_lot::Mutex;
use std::sync::Arc;

/// What a script wants.
pub enum Next {
    /// The results of a function.
    Call(Arc<dyn Callable>, Vec<Tensor>),
    /// To end, with the node's outputs.
    End(Vec<Tensor>),
}

/// Says what comes next; first with the node's inputs, then with the results of what it has called.
pub trait Script: FnMut(&AsyncKernelContext, Vec<Tensor>) -> Result<Next> + Send + 'static {}

impl<F: FnMut(&AsyncKernelContext, Vec<Tensor>) -> Result<Next> + Send + 'static> Script for F {}

struct Turns {
    context: AsyncKernelContext,
    script: Box<dyn Script>,
}

/// Where a function's end and the loop that called it meet: whoever is second goes on.
enum Meeting {
    Open,
    Ended(Result<Vec<Tensor>>),
    Left(Turns),
    Past,
}

/// Starts a node with the script that `make` gives.
pub fn start<S: Script>(context: AsyncKernelContext, make: impl FnOnce(&AsyncKernelContext) -> Result<S>) {
    let inputs = context.tensors_from(0);
    match make(&context) {
        Ok(script) => Turns {
            context,
            script: Box::new(script),
        }
        .go_on(inputs),
        Err(error) => context.finish(Err(error)),
    }
}

/// Starts a node that calls one function, with its inputs from `first` on.
pub fn call(
    context: AsyncKernelContext,
    first: usize,
    function: impl FnOnce(&AsyncKernelContext) -> Result<FunctionRef>,
) {
    let prepare = |context: &AsyncKernelContext| {
        let function = function(context)?;
        let callable = context.host.functions().instantiate(&function)?;
        Ok((callable, context.tensors_from(first)?))
    };
    match prepare(&context) {
        Ok((callable, arguments)) => {
            let (host, relay) = (context.host.clone(), context.relay.clone());
            callable.start(host, relay, arguments, Box::new(|results| context.give(results)));
        }
        Err(error) => context.finish(Err(error)),
    }
}

impl Turns {
    fn go_on(mut self, mut results: Result<Vec<Tensor>>) {
        loop {
            let next = results.and_then(|results| {
                self.context.host.cancellation().check()?;
                (self.script)(&self.context, results)
            });
            let (callable, arguments) = match next {
                Ok(Next::Call(callable, arguments)) => (callable, arguments),
                Ok(Next::End(outputs)) => return self.context.give(Ok(outputs)),
                Err(error) => return self.context.finish(Err(error)),
            };
            let meeting = Arc::new(Mutex::new(Meeting::Open));
            let theirs = meeting.clone();
            let returned = move |ended| {
                let mut meeting = theirs.lock();
                match std::mem::replace(&mut *meeting, Meeting::Past) {
                    Meeting::Left(turns) => {
                        drop(meeting);
                        turns.go_on(ended);
                    }
                    _ => *meeting = Meeting::Ended(ended),
                }
            };
            let (host, relay) = (self.context.host.clone(), self.context.relay.clone());
            callable.start(host, relay, arguments, Box::new(returned));
            let mut meeting = meeting.lock();
            match std::mem::replace(&mut *meeting, Meeting::Past) {
                Meeting::Ended(ended) => results = ended,
                _ => {
                    *meeting = Meeting::Left(self);
                    return;
                }
            }
        }
    }
}
