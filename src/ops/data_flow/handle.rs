//! Handles of this folder's resources: resource tensors in the newer ops; in the first versions references to a vector of
//! container and name.

use ff_op::{AsyncKernelContext, KernelContext, KernelHost, RefVariable, Value};
use ff_tensor::{DataType, HandleInfo, ResourceHandle, Result, Shape, TString, Tensor, bail, status};
use std::any::Any;
use std::sync::Arc;

/// Where a node keeps its resource, and what the resource is called in messages.
pub struct Place {
    /// The container.
    pub container: String,
    /// The name in it: `shared_name`, or else the node's.
    pub name: String,
    /// The name for messages.
    pub shown: String,
}

impl Place {
    /// The place that a node's attributes say.
    pub fn of(context: &KernelContext) -> Result<Place> {
        let attrs = context.attrs();
        let shared = attrs.string("shared_name")?;
        let container = context.resources().container(attrs.string("container")?);
        let node = &context.node().name;
        let (name, shown) = match shared {
            "" => (node.clone(), ff_op::unique_resource_name(node)),
            shared => (shared.to_string(), shared.to_string()),
        };
        Ok(Place {
            container: container.to_string(),
            name,
            shown,
        })
    }
}

/// The node's resource, made on first use (`make` is given its name for messages); its handle becomes output 0.
pub fn find_or_create<T: Any + Send + Sync>(
    context: &mut KernelContext,
    type_name: &str,
    make: impl FnOnce(&KernelContext, &str) -> Result<T>,
) -> Result<Arc<T>> {
    let place = Place::of(context)?;
    let manager = context.resources().clone();
    let found = manager.find_or_create(&place.container, &place.name, || make(context, &place.shown))?;
    give(context, &place.container, &place.name, type_name, None)?;
    Ok(found)
}

/// Sets output 0 to the handle of a named resource, or of one that lives as long as its handles.
pub fn give(
    context: &mut KernelContext,
    container: &str,
    name: &str,
    type_name: &str,
    object: Option<Arc<dyn Any + Send + Sync>>,
) -> Result<()> {
    let output = context.node().output_types[0];
    if output.base() == DataType::STRING {
        let names = vec![TString::from(container), TString::from(name)];
        let names = Tensor::from_strings(Shape::vector(2), names)?;
        if !output.is_ref() {
            return context.set_output(0, names);
        }
        let variable = RefVariable::new(name, DataType::STRING);
        variable.assign(names)?;
        context.set_output_ref(0, Arc::new(variable));
        return Ok(());
    }
    let handle = ResourceHandle::new(HandleInfo {
        device: context.host().device_name().to_string(),
        container: container.to_string(),
        name: name.to_string(),
        type_name: type_name.to_string(),
        object,
        ..HandleInfo::default()
    });
    context.set_output(0, Tensor::from_resources(Shape::scalar(), vec![handle])?)
}

/// The resource that a value is a handle of.
pub fn resolve<T: Any + Send + Sync>(value: Option<&Value>, host: &dyn KernelHost) -> Result<Arc<T>> {
    let names = match value {
        Some(Value::Ref(variable)) => variable.read()?,
        Some(Value::Tensor(tensor)) if tensor.dtype() == DataType::RESOURCE => match tensor.resources()? {
            [handle] => return host.find_by_handle(handle),
            _ => bail!(
                InvalidArgument,
                "a handle must be a scalar, got {}",
                tensor.shape()
            ),
        },
        Some(Value::Tensor(tensor)) => tensor.clone(),
        _ => bail!(Internal, "a handle is missing"),
    };
    match names.strings()? {
        [container, name] => host.resources().find(text(container)?, text(name)?),
        _ => bail!(
            InvalidArgument,
            "Resource handle must have 2 elements, but had shape: {}",
            names.shape()
        ),
    }
}

fn text(name: &TString) -> Result<&str> {
    std::str::from_utf8(name.as_bytes())
        .map_err(|_| status!(InvalidArgument, "a resource has a name that is not UTF-8"))
}

/// The resource at an input.
pub fn at<T: Any + Send + Sync>(context: &KernelContext, index: usize) -> Result<Arc<T>> {
    resolve(context.value(index), context.host())
}

/// The resource at an input of a kernel that may wait.
pub fn at_waiting<T: Any + Send + Sync>(context: &AsyncKernelContext, index: usize) -> Result<Arc<T>> {
    resolve(context.inputs.get(index), &*context.host)
}

/// Runs `start`, which hands the context on; ends the node where it fails.
pub fn or_fail<T>(
    context: AsyncKernelContext,
    prepare: impl FnOnce(&AsyncKernelContext) -> Result<T>,
    start: impl FnOnce(AsyncKernelContext, T),
) {
    match prepare(&context) {
        Ok(prepared) => start(context, prepared),
        Err(error) => context.finish(Err(error)),
    }
}
