//! The element of a resource tensor: a handle that names a variable, table, queue or iterator, or holds it.

use crate::{DataType, PartialShape};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What a handle says about its resource. Fields are those of `ResourceHandleProto`.
#[derive(Clone, Default)]
pub struct HandleInfo {
    /// Full name of the device that holds the resource.
    pub device: String,
    /// Container in the device's resource manager; empty means the default one.
    pub container: String,
    /// Name within the container.
    pub name: String,
    /// Hash of the resource's type name, as on the wire.
    pub hash_code: u64,
    /// The resource's type name, for error messages.
    pub type_name: String,
    /// Element type and shape of what the resource holds, where that is known.
    pub dtypes_and_shapes: Vec<(DataType, PartialShape)>,
    /// The resource itself, for a handle that owns it; none for a handle that names it.
    pub object: Option<Arc<dyn Any + Send + Sync>>,
}

/// A shared, immutable handle. Cloning is cheap.
#[derive(Clone, Default)]
pub struct ResourceHandle(Arc<HandleInfo>);

impl ResourceHandle {
    /// A handle with this content.
    pub fn new(info: HandleInfo) -> ResourceHandle {
        ResourceHandle(Arc::new(info))
    }

    /// Whether both are the same handle object.
    pub fn same_object(&self, other: &ResourceHandle) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::ops::Deref for ResourceHandle {
    type Target = HandleInfo;

    fn deref(&self) -> &HandleInfo {
        &self.0
    }
}

impl fmt::Debug for ResourceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ResourceHandle({}/{} on {})",
            self.container, self.name, self.device
        )
    }
}
