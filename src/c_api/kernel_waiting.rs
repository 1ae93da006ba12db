//! A run of an asynchronous kernel of C: what its context points at, kept until the kernel says that it is done.

use crate::kernel_context::{OfNode, TF_OpKernelContext};
use crate::kernel_deferred::Deferred;
use ff_op::{AsyncKernelContext, KernelContext, KernelHost, NodeInfo, Prepared, Value};
use ff_tensor::{Result, Tensor};
use std::sync::Arc;

/// Called once with the outputs or an error.
type Done = Box<dyn FnOnce(Result<Vec<Value>>) + Send>;

/// What a context borrows.
struct Owned {
    node: Arc<NodeInfo>,
    prepared: Option<Prepared>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    host: Arc<dyn KernelHost>,
}

/// A run under way. Fields are dropped in this order: what borrows comes first.
pub struct Waiting {
    view: Box<TF_OpKernelContext>,
    context: Box<KernelContext<'static>>,
    owned: Box<Owned>,
    done: Done,
}

impl Waiting {
    /// Takes a node's run over.
    pub fn new(run: AsyncKernelContext, of_node: OfNode) -> Waiting {
        let outputs = (0..run.node.output_types.len())
            .map(|_| Value::default())
            .collect();
        let mut owned = Box::new(Owned {
            node: run.node,
            prepared: run.prepared,
            inputs: run.inputs,
            outputs,
            host: run.host,
        });
        let borrowed: *mut Owned = &raw mut *owned;
        // SAFETY: `owned` lives in its box, which is dropped after the context and is not used but through it.
        let borrowed: &'static mut Owned = unsafe { &mut *borrowed };
        let mut context = Box::new(KernelContext::new(
            &borrowed.node,
            borrowed.prepared.as_ref(),
            &mut borrowed.inputs,
            &mut borrowed.outputs,
            &[],
            &*borrowed.host,
        ));
        Waiting {
            view: Box::new(TF_OpKernelContext::new(&raw mut *context, of_node)),
            context,
            owned,
            done: run.done,
        }
    }

    /// What C sees; it stays where it is.
    pub fn view(&mut self) -> *mut TF_OpKernelContext {
        &raw mut *self.view
    }

    /// The work that the kernel announced.
    pub fn deferred(&self) -> Arc<Deferred> {
        self.view.deferred().clone()
    }

    /// Ends the run with what the kernel has set.
    pub fn finish(mut self) {
        let results = self.view.results().and_then(|tensors| self.checked(tensors));
        let Waiting {
            view,
            context,
            owned,
            done,
        } = self;
        drop((view, context));
        done(results);
        drop(owned);
    }

    fn checked(&mut self, tensors: Vec<Tensor>) -> Result<Vec<Value>> {
        for (index, tensor) in tensors.iter().enumerate() {
            self.context.set_output(index, tensor.clone())?;
        }
        Ok(tensors.into_iter().map(Value::Tensor).collect())
    }
}
