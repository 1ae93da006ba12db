//! What the kernel of one eager call can reach.
//!
//! Most kernels ask for nothing but threads, so all else is made when it is first asked for: a call of a small op makes
//! no step, no cancellation, and takes no lock.

use crate::eager::EagerContext;
use crate::eager_device::DeviceName;
use crate::functions::Functions;
use crate::session::SessionState;
use crate::step::Step;
use ff_kernels::ThreadPool;
use ff_op::{Cancellation, Collectives, FunctionHost, KernelHost, Rendezvous, ResourceManager};
use ff_proto::ConfigProto;
use ff_tensor::{ResourceHandle, Result};
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// The host of one call, which outlives it.
pub struct EagerHost<'a> {
    context: &'a EagerContext,
    state: &'a Arc<SessionState>,
    /// Number of the kernel, which tells its state from that of others.
    kernel: u64,
    device: DeviceName,
    cancellation: OnceLock<Cancellation>,
    functions: OnceLock<Arc<Functions>>,
    id: OnceLock<u64>,
    step: OnceLock<Arc<Step>>,
    /// Resources of the device, unless it is the first.
    resources: OnceLock<Arc<ResourceManager>>,
}

impl<'a> EagerHost<'a> {
    /// The host of a call, on a device in `state`, of the kernel with this number.
    pub fn new(
        context: &'a EagerContext,
        state: &'a Arc<SessionState>,
        kernel: u64,
        device: DeviceName,
        cancellation: Option<Cancellation>,
    ) -> EagerHost<'a> {
        EagerHost {
            context,
            state,
            kernel,
            device,
            cancellation: cancellation.map(OnceLock::from).unwrap_or_default(),
            functions: OnceLock::new(),
            id: OnceLock::new(),
            step: OnceLock::new(),
            resources: OnceLock::new(),
        }
    }

    fn shared_functions(&self) -> &Arc<Functions> {
        self.functions.get_or_init(|| self.context.current_functions())
    }

    /// The call as a step, for kernels that outlive it.
    pub fn step(&self) -> &Arc<Step> {
        self.step.get_or_init(|| {
            Step::of_kernel(
                self.step_id(),
                self.state.clone(),
                self.shared_functions().clone(),
                self.kernel,
                (self.device, self.resources().clone()),
                self.cancellation().clone(),
            )
        })
    }
}

impl Drop for EagerHost<'_> {
    fn drop(&mut self) {
        // A step ends by itself.
        if let (Some(id), None) = (self.id.get(), self.step.get()) {
            for device in &self.state.devices {
                device.resources.end_step(*id);
            }
            if let Some(resources) = self.resources.get() {
                resources.end_step(*id);
            }
        }
    }
}

impl KernelHost for EagerHost<'_> {
    fn pool(&self) -> &ThreadPool {
        &self.state.pool
    }

    fn resources(&self) -> &Arc<ResourceManager> {
        if self.device == DeviceName::host() {
            return &self.state.devices[0].resources;
        }
        self.resources.get_or_init(|| {
            let found = self.state.resources_of(self.device.as_str());
            found.unwrap_or_else(|| self.state.devices[0].resources.clone())
        })
    }

    fn resources_elsewhere(&self, handle: &ResourceHandle) -> Option<Arc<ResourceManager>> {
        // Functions may be given handles of any device.
        if self.device.as_c().to_bytes() == handle.device.as_bytes() {
            return None;
        }
        self.state.resources_of(&handle.device)
    }

    fn functions(&self) -> &dyn FunctionHost {
        &**self.shared_functions()
    }

    fn cancellation(&self) -> &Cancellation {
        self.cancellation.get_or_init(Cancellation::default)
    }

    fn collectives(&self) -> Option<&Arc<Collectives>> {
        Some(&self.state.collectives)
    }

    fn step_id(&self) -> u64 {
        *self.id.get_or_init(|| self.context.next_number())
    }

    fn device_name(&self) -> &str {
        self.device.as_str()
    }

    fn node_state(
        &self,
        node: &str,
        make: &mut dyn FnMut() -> Result<Arc<dyn Any + Send + Sync>>,
    ) -> Result<Arc<dyn Any + Send + Sync>> {
        self.state.node_state(self.kernel, node, make)
    }

    fn config(&self) -> ConfigProto {
        self.state.config.clone()
    }

    fn device_names(&self) -> Vec<String> {
        let devices = self.state.devices.iter();
        devices.map(|device| device.name.clone()).collect()
    }

    fn on_device(&self, device: usize) -> Option<&dyn KernelHost> {
        self.step().on_device(device)
    }

    fn rendezvous(&self) -> Option<&Arc<Rendezvous>> {
        self.step().rendezvous()
    }

    fn share(&self) -> Option<Arc<dyn KernelHost>> {
        let step: Arc<dyn KernelHost> = self.step().clone();
        Some(step)
    }
}
