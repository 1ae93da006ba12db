//! A function of a graph's library as an op: a node whose op is the function's name calls it.

use crate::{
    AsyncKernelContext, Attrs, CompileRequest, FunctionRef, Kernel, KernelBody, KernelContext, KernelRecord,
    NodeInfo, OpRecord, ShapeContext,
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

impl NodeInfo {
    /// The function that a node whose op is a function calls: all attributes but the internal ones are the function's, and
    /// the request to compile it.
    pub fn function_of_its_name(&self) -> FunctionRef {
        let attrs = self.attrs.iter().filter(|(name, _)| !name.starts_with('_'));
        let mut attrs: Attrs = attrs
            .map(|(name, value)| (name.to_string(), value.clone()))
            .collect();
        CompileRequest::of(&self.attrs).write(&mut attrs);
        FunctionRef {
            name: self.op_name().to_string(),
            attrs,
        }
    }
}

const KERNEL: Kernel = Kernel {
    body: KernelBody::Calls {
        run: call,
        start,
        functions: |node| vec![node.function_of_its_name()],
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
    let (shapes, handles) =
        functions.infer(&context.node().function_of_its_name(), context.inputs(), &handles)?;
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
    let callable = host
        .functions()
        .instantiate(&context.node().function_of_its_name())?;
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
        let callable = context
            .host
            .functions()
            .instantiate(&context.node.function_of_its_name())?;
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
