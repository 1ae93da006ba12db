//! The resource manager of a device: variables, queues, tables and iterators by container, type and name.

use ff_tensor::{HandleInfo, ResourceHandle, Result, bail, ensure, status};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::any::{Any, TypeId, type_name};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Container of resources that name none, on devices of a process by itself.
pub const DEFAULT_CONTAINER: &str = "localhost";

type Object = Arc<dyn Any + Send + Sync>;
/// By name; few resources of different types have the same.
type Container = FxHashMap<String, SmallVec<[(TypeId, Object); 1]>>;

/// The resource of this type and name in a container.
fn find_in<T: Any + Send + Sync>(container: &Container, name: &str) -> Option<Arc<T>> {
    let (_, object) = container
        .get(name)?
        .iter()
        .find(|(its, _)| *its == TypeId::of::<T>())?;
    object.clone().downcast().ok()
}

/// Resources of one device. All operations may be called from any thread.
pub struct ResourceManager {
    default_container: Box<str>,
    /// Whether any step ever had resources of its own.
    step_containers: AtomicBool,
    containers: RwLock<FxHashMap<String, Container>>,
}

/// The last part of a Rust type's path, for messages and handles.
fn short_type_name<T>() -> &'static str {
    type_name::<T>().rsplit("::").next().unwrap_or("")
}

/// Types whose handles say another name than the Rust type's.
const TYPE_NAMES: &[(&str, &str)] = &[
    ("Accumulator", "tensorflow::ConditionalAccumulatorBase"),
    ("Barrier", "tensorflow::barrier::Barrier"),
    ("Mutex", "tensorflow::Mutex"),
    ("Queue", "tensorflow::QueueInterface"),
    ("Reader", "tensorflow::ReaderInterface"),
    ("Stack", "tensorflow::Stack"),
    ("Table", "tensorflow::lookup::LookupInterface"),
    ("TensorArray", "tensorflow::TensorArray"),
    ("Variable", "tensorflow::Var"),
];
const NAMESPACE: &str = "tensorflow::";

#[cold]
fn wrong_type(handle: &ResourceHandle, wanted: &str) -> ff_tensor::Status {
    status!(
        InvalidArgument,
        "Trying to access a handle's resource using the wrong type. The handle points to a resource (name '{}') of type '{}' but you are trying to access the resource as type '{wanted}'",
        handle.name,
        handle.type_name
    )
}

/// The name by which messages call a resource of a node that gives it none: a number of this process and the node.
pub fn unique_resource_name(node: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("_{}_{node}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Default for ResourceManager {
    fn default() -> ResourceManager {
        ResourceManager::new(DEFAULT_CONTAINER)
    }
}

impl ResourceManager {
    /// No resources. Those that name no container will be in the one given here: the job that the device is of.
    pub fn new(default_container: &str) -> ResourceManager {
        ResourceManager {
            default_container: default_container.into(),
            step_containers: AtomicBool::new(false),
            containers: RwLock::default(),
        }
    }

    /// The container that a name means, which is empty for none in particular.
    pub fn container<'a>(&'a self, name: &'a str) -> &'a str {
        if name.is_empty() {
            &self.default_container
        } else {
            name
        }
    }

    /// A handle that names a resource of type `T`.
    pub fn make_handle<T: Any>(&self, device: &str, container: &str, name: &str) -> ResourceHandle {
        ResourceHandle::new(HandleInfo {
            device: device.to_string(),
            container: self.container(container).to_string(),
            name: name.to_string(),
            type_name: short_type_name::<T>().to_string(),
            ..HandleInfo::default()
        })
    }

    /// The resource of this type and name. NOT_FOUND when there is none.
    pub fn find<T: Any + Send + Sync>(&self, container: &str, name: &str) -> Result<Arc<T>> {
        let container = self.container(container);
        let containers = self.containers.read();
        let map = containers.get(container).ok_or_else(|| {
            status!(
                NotFound,
                "Container {container} does not exist. (Could not find resource: {container}/{name})"
            )
        })?;
        find_in(map, name).ok_or_else(|| {
            status!(
                NotFound,
                "Resource {container}/{name}/{} does not exist.",
                short_type_name::<T>()
            )
        })
    }

    /// The resource that a handle holds or names. NOT_FOUND when it does not exist, INVALID_ARGUMENT when the
    /// handle holds one of another type.
    pub fn find_by_handle<T: Any + Send + Sync>(&self, handle: &ResourceHandle) -> Result<Arc<T>> {
        match &handle.object {
            Some(object) => object.clone().downcast().map_err(|_| {
                let wanted = short_type_name::<T>();
                let known = TYPE_NAMES.iter().find(|(its, _)| *its == wanted);
                wrong_type(handle, known.map_or(wanted, |(_, named)| named))
            }),
            None => self.find(&handle.container, &handle.name).map_err(|error| {
                let wanted = short_type_name::<T>();
                let known = TYPE_NAMES.iter().find(|(its, _)| *its == wanted);
                match known {
                    Some((_, named))
                        if handle.type_name != *named && handle.type_name.starts_with(NAMESPACE) =>
                    {
                        wrong_type(handle, named)
                    }
                    _ => error,
                }
            }),
        }
    }

    /// Adds a resource. ALREADY_EXISTS when the name is taken.
    pub fn create<T: Any + Send + Sync>(&self, container: &str, name: &str, resource: Arc<T>) -> Result<()> {
        let container = self.container(container);
        let mut containers = self.containers.write();
        let map = containers.entry(container.to_string()).or_default();
        let objects = map.entry(name.to_string()).or_default();
        ensure!(
            objects.iter().all(|(its, _)| *its != TypeId::of::<T>()),
            AlreadyExists,
            "Resource {container}/{name}/{} already exists.",
            short_type_name::<T>()
        );
        objects.push((TypeId::of::<T>(), resource));
        Ok(())
    }

    /// The resource of this type and name, made if there is none.
    pub fn find_or_create<T: Any + Send + Sync>(
        &self,
        container: &str,
        name: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        if let Ok(found) = self.find::<T>(container, name) {
            return Ok(found);
        }
        let mut containers = self.containers.write();
        let map = containers
            .entry(self.container(container).to_string())
            .or_default();
        if let Some(found) = find_in(map, name) {
            return Ok(found);
        }
        let resource = Arc::new(make()?);
        let objects = map.entry(name.to_string()).or_default();
        objects.push((TypeId::of::<T>(), resource.clone()));
        Ok(resource)
    }

    /// Removes the resources with this name, of any type. NOT_FOUND when there is none.
    pub fn delete(&self, container: &str, name: &str) -> Result<()> {
        let container = self.container(container);
        let removed = {
            let mut containers = self.containers.write();
            containers.get_mut(container).and_then(|map| map.remove(name))
        };
        if removed.is_none() {
            bail!(NotFound, "Resource {container}/{name} does not exist.");
        }
        Ok(())
    }

    /// Removes all resources of a container.
    pub fn clear_container(&self, container: &str) {
        let removed = self.containers.write().remove(self.container(container));
        drop(removed);
    }

    /// The container of a step's own resources, which [`ResourceManager::end_step`] removes.
    pub fn step_container(&self, step: u64) -> String {
        self.step_containers.store(true, Ordering::Release);
        format!("__per_step_{step}")
    }

    /// Removes the resources of a step.
    pub fn end_step(&self, step: u64) {
        if self.step_containers.load(Ordering::Acquire) {
            self.clear_container(&format!("__per_step_{step}"));
        }
    }

    /// Removes everything.
    pub fn clear(&self) {
        let removed = std::mem::take(&mut *self.containers.write());
        drop(removed);
    }
}
