//! Whether functions may wait for others, so that they are started rather than run.

use crate::device::kind_for;
use ff_graph::{FunctionLibrary, Graph};
use ff_op::{FunctionRef, KernelBody, KernelRecord, Registry};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// Whether a node of a body may wait itself, and the functions that its nodes may call.
#[derive(Default)]
pub struct Calls {
    /// Whether a kernel of it may wait.
    pub waits: bool,
    /// What it calls.
    pub functions: Vec<FunctionRef>,
}

impl Calls {
    /// Those of a body.
    pub fn of(body: &Graph) -> Calls {
        let mut calls = Calls::default();
        for (_, node) in body.nodes() {
            let info = &node.info;
            let Some(kernel) = info.op.kernel_for(info, kind_for(info)) else {
                continue;
            };
            calls.waits |= kernel.may_wait();
            if let KernelRecord::Static(kernel) = kernel
                && let KernelBody::Calls { functions, .. } = kernel.body
            {
                calls.functions.append(&mut functions(info));
            }
        }
        calls
    }
}

/// Whether any function of a library has a node that may wait: most have none, and then no body has to be looked at.
#[derive(Default)]
pub struct AnyWaits(Mutex<Option<(usize, bool)>>);

impl AnyWaits {
    /// Of a library as it is now.
    pub fn of(&self, library: &FunctionLibrary, registry: &Registry) -> bool {
        let mut known = self.0.lock();
        let count = library.len();
        match *known {
            Some((its, waits)) if its == count => waits,
            _ => {
                let waits = look(library, registry);
                *known = Some((count, waits));
                waits
            }
        }
    }
}

fn look(library: &FunctionLibrary, registry: &Registry) -> bool {
    let functions = library.functions();
    let mut ops: FxHashMap<&str, ()> = FxHashMap::default();
    functions.iter().any(|function| {
        function.node_def.iter().any(|node| {
            let is_new = ops.insert(&node.op, ()).is_none();
            let record = is_new.then(|| registry.find(&node.op).ok()).flatten();
            record.is_some_and(|record| record.kernels.iter().any(KernelRecord::may_wait))
        })
    })
}
