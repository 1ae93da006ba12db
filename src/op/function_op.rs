//! A function of a graph's library as an op: a node whose op is the function's name calls it.

use crate::{
    AsyncKernelContext, FunctionRef, Kernel, KernelBody, KernelContext, KernelRecord, NodeInfo, OpRecord,
    ShapeContext,
};
use ff_proto::OpDef;
use ff_tensor::Result;
use std::sync::Arc;

impl OpRecord {
    /// The record of a function with this signature: shapes and values are those that its body gives.
    pub fn of_function(signature: Arc<OpDef>) -> OpRecord {
        OpRecord {
            shape: Arc::new(shape),
            kernels: vec![KernelRecord::Static(KERNEL)],
            ..OpRecord::schema_only(signature)
        }
    }
}

/// The function that a node of its name calls: all attributes but the internal ones are the function's.
fn called(node: &NodeInfo) -> FunctionRef {
    let attrs = node.attrs.iter().filter(|(name, _)| !name.starts_with('_'));
    FunctionRef {
        name: node.op_name().to_string(),
        attrs: attrs
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect(),
    }
}

const KERNEL: Kernel = Kernel {
    body: KernelBody::Calls {
        run: call,
        start,
        functions: |node| vec![called(node)],
    },
    ..Kernel::native(call)
};

fn shape(context: &mut ShapeContext) -> Result<()> {
    let Some(functions) = context.functions() else {
        return Ok(());
    };
    let handles: Vec<_> = (0..context.num_inputs())
        .map(|index| context.input_handle(index))
        .collect();
    let (shapes, handles) = functions.infer(&called(context.node()), context.inputs(), &handles)?;
    for (index, shape) in shapes.into_iter().enumerate() {
        context.set_output(index, shape);
    }
    for (index, handle) in handles.into_iter().enumerate() {
        if let Some(handle) = handle {
            context.set_output_handle(index, handle);
        }
    }
    Ok(())
}

fn call(context: &mut KernelContext) -> Result<()> {
    let host = context.host();
    let callable = host.functions().instantiate(&called(context.node()))?;
    let arguments = (0..context.num_inputs()).map(|index| context.take_input(index));
    let arguments = arguments.collect::<Result<Vec<_>>>()?;
    let results = callable.run(host, arguments)?;
    for (index, result) in results.into_iter().enumerate() {
        context.set_output(index, result)?;
    }
    Ok(())
}

fn start(context: AsyncKernelContext) {
    let prepare = |context: &AsyncKernelContext| {
        let callable = context.host.functions().instantiate(&called(&context.node))?;
        Ok((callable, context.tensors_from(0)?))
    };
    match prepare(&context) {
        Ok((callable, arguments)) => {
            let (host, relay) = (context.host.clone(), context.relay.clone());
            callable.start(host, relay, arguments, Box::new(|results| context.give(results)));
        }
        Err(error) => context.finish(Err(error)),
    }
}
