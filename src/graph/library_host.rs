//! The functions of a library as shape functions of calls see them: nothing runs.

use crate::functions::signature_of;
use crate::{FunctionBody, FunctionLibrary};
use ff_hlo::{Builder, Op as HloOp};
use ff_op::{Callable, FunctionHost, FunctionRef, FunctionSignature, HandleShapes, OutputRef, Registry};
use ff_platform::threads;
use ff_tensor::{PartialShape, Result, status};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// How deep shapes are inferred through calls; beyond, they are unknown.
const DEEPEST: usize = 20;

/// The functions of a library for shape inference: nothing runs.
pub struct LibraryHost<'a> {
    registry: &'a Arc<Registry>,
    library: &'a Arc<FunctionLibrary>,
}

impl<'a> LibraryHost<'a> {
    /// A host over these ops and functions.
    pub fn new(registry: &'a Arc<Registry>, library: &'a Arc<FunctionLibrary>) -> LibraryHost<'a> {
        LibraryHost { registry, library }
    }
}

impl FunctionHost for LibraryHost<'_> {
    fn signature(&self, function: &FunctionRef) -> Result<FunctionSignature> {
        signature_of(self.library, function)
    }

    fn instantiate(&self, function: &FunctionRef) -> Result<Arc<dyn Callable>> {
        Err(status!(
            Unimplemented,
            "Function {} cannot run while a graph is built",
            function.name
        ))
    }

    fn infer(
        &self,
        function: &FunctionRef,
        arguments: &[PartialShape],
        handles: &[Option<HandleShapes>],
    ) -> Result<(Vec<PartialShape>, Vec<Option<HandleShapes>>)> {
        let key = (function.clone(), arguments.to_vec(), handles.to_vec());
        if let Some(known) = self.library.inferred(&key) {
            return Ok(known);
        }
        let depth = DEPTH.get();
        if depth >= DEEPEST {
            return Ok((
                vec![PartialShape::unknown(); self.signature(function)?.outputs.len()],
                Vec::new(),
            ));
        }
        let body = threads::with_stack(|| {
            let before = DEPTH.replace(depth + 1);
            let body = FunctionBody::with_shapes(self.registry, self.library, function, arguments, handles);
            DEPTH.set(before);
            body
        })?;
        let shapes = body
            .results()
            .iter()
            .map(|result| body.graph().output_shape(*result))
            .collect();
        let handle = |result: &OutputRef| {
            let handles = &body.graph().node(result.node).handles;
            handles.get(result.index as usize).cloned().flatten()
        };
        let inferred = (shapes, body.results().iter().map(handle).collect());
        self.library.set_inferred(key, &inferred);
        Ok(inferred)
    }

    fn lower(
        &self,
        function: &FunctionRef,
        builder: &mut Builder,
        arguments: &[HloOp],
    ) -> Result<Vec<HloOp>> {
        let body = FunctionBody::instantiate(self.registry, self.library, function)?;
        body.lower(builder, arguments, self)
    }
}
