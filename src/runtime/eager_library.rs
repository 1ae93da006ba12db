//! What an eager context has beside kernels: devices that are added, functions, and the record of what ran.

use crate::device::Device;
use crate::eager::EagerContext;
use crate::eager_device::DeviceName;
use crate::eager_kernel::EagerOp;
use crate::functions::Functions;
use crate::step::Trace;
use ff_op::{CompileRequest, FunctionRef};
use ff_proto::run_metadata::FunctionGraphs;
use ff_proto::{FunctionDef, RunMetadata};
use ff_tensor::{Result, bail, ensure, status};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl EagerContext {
    /// Calls `visit` with each device.
    pub fn each_device(&self, mut visit: impl FnMut(&Device)) {
        let state = self.state();
        state.devices.iter().for_each(&mut visit);
        state.added.read().iter().for_each(&mut visit);
    }

    /// Names of all devices.
    pub fn device_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.each_device(|device| names.push(device.name.clone()));
        names
    }

    /// The device that a name means: full, or in part such as `CPU:0` or `/device:CPU:0`. INVALID_ARGUMENT when there is
    /// none.
    pub fn device(&self, name: &str) -> Result<DeviceName> {
        let unknown = || status!(InvalidArgument, "{name} unknown device.");
        let state = self.state();
        if let Some(found) = crate::placement::find_device(&state.devices, name) {
            return Ok(DeviceName::of(&state.devices[found].name));
        }
        let added = state.added.read();
        let found = crate::placement::find_device(&added, name).ok_or_else(unknown)?;
        Ok(DeviceName::of(&added[found].name))
    }

    /// Adds the CPU devices with the numbers 1 to `count - 1` of the job, replica and task in `prefix`. INVALID_ARGUMENT
    /// when there is one of these already; then none is added.
    pub fn add_cpu_devices(&self, count: usize, prefix: &str) -> Result<()> {
        let present = self.device_names();
        let state = self.state();
        let mut added = state.added.write();
        let mut new = Vec::new();
        for number in 1..count {
            let device = Device {
                name: format!("{prefix}/device:CPU:{number}"),
                ..Device::cpu(number)
            };
            ensure!(
                !present.contains(&device.name),
                InvalidArgument,
                "Trying to add device {} to manager but its name conflicts with an existing device.",
                device.name
            );
            new.push(device);
        }
        added.extend(new);
        Ok(())
    }

    /// Adds a function. INVALID_ARGUMENT when another has its name.
    pub fn add_function(&self, function: Arc<FunctionDef>) -> Result<()> {
        let name = function
            .signature
            .as_ref()
            .map(|signature| signature.name.clone())
            .unwrap_or_default();
        self.library.add(function)?;
        self.ops.write().remove(name.as_str());
        *self.additions.lock().entry(name).or_insert(0) += 1;
        Ok(())
    }

    /// Takes back one addition of a function; with the last the function goes. INVALID_ARGUMENT when there is none with
    /// this name.
    pub fn remove_function(&self, name: &str) -> Result<()> {
        let mut additions = self.additions.lock();
        let Some(count) = additions.get_mut(name) else {
            bail!(InvalidArgument, "Tried to remove non-existent function '{name}'.");
        };
        *count -= 1;
        if *count > 0 {
            return Ok(());
        }
        additions.remove(name);
        self.library.remove(name);
        self.ops.write().clear();
        *self.functions.write() = Arc::new(Functions::new(self.registry.clone(), self.library.clone()));
        Ok(())
    }

    /// Whether there is a function with this name.
    pub fn has_function(&self, name: &str) -> bool {
        self.library.find_op(name).is_some()
    }

    /// The function with this name. NOT_FOUND when there is none.
    pub fn function(&self, name: &str) -> Result<Arc<FunctionDef>> {
        self.library.find(name)
    }

    /// Whether there is a function with this name that must be compiled.
    pub(crate) fn asks_to_be_compiled(&self, name: &str) -> bool {
        let function = self.library.find(name);
        function.is_ok_and(|function| CompileRequest::of_function(&function) == CompileRequest::Must)
    }

    /// Starts to record what runs.
    pub fn enable_metadata(&self) {
        self.trace.write().get_or_insert_default();
        self.tracing.store(true, Ordering::Relaxed);
    }

    /// Stops that, and forgets what was recorded.
    pub fn disable_metadata(&self) {
        self.tracing.store(false, Ordering::Relaxed);
        *self.trace.write() = None;
    }

    /// Starts or stops to collect the graphs of functions that are made ready to run.
    pub fn collect_graphs(&self, enable: bool) {
        self.collecting.store(enable, Ordering::Relaxed);
    }

    /// Collects the graph of a function that is made ready, if that is asked for.
    pub(crate) fn collect(&self, op: &EagerOp) {
        let name = &op.record.def.name;
        if !self.collecting.load(Ordering::Relaxed) || !self.has_function(name) {
            return;
        }
        let function = FunctionRef {
            name: name.clone(),
            ..FunctionRef::default()
        };
        // A function that cannot be built is an error where it is run.
        if let Ok(body) = ff_graph::FunctionBody::instantiate(&self.registry, &self.library, &function) {
            let graph = ff_graph::export_graph_def(body.graph());
            self.collected.lock().push(graph);
        }
    }

    /// What ran and what was collected since the last call, or since the start.
    pub fn take_metadata(&self) -> RunMetadata {
        let taken = self.trace.write().as_mut().map(std::mem::take);
        let graphs = std::mem::take(&mut *self.collected.lock());
        let functions = graphs.iter().map(|graph| FunctionGraphs {
            partition_graphs: vec![graph.clone()],
            pre_optimization_graph: Some(graph.clone()),
            post_optimization_graph: Some(graph.clone()),
        });
        RunMetadata {
            step_stats: taken.map(|trace: Trace| trace.into_step_stats(&self.state().devices[0].name)),
            function_graphs: functions.collect(),
            partition_graphs: graphs,
            ..RunMetadata::default()
        }
    }
}
