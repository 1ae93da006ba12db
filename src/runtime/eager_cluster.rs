//! An eager context as a task of a cluster: its devices get the names of the task.
//!
//! The cluster may have one task only, this process; more need a distributed runtime, which there is not. No port is opened,
//! as nobody else could call. What a `ServerDef` must say is checked in the order in which a server would.

use crate::coordination::Coordination;
use crate::device::Task;
use crate::eager::EagerContext;
use crate::eager_device::DeviceName;
use crate::functions::Functions;
use crate::options::SessionOptions;
use crate::session::SessionState;
use ff_proto::{ConfigProto, JobDef, ServerDef};
use ff_tensor::{Result, Status, bail, ensure, status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a context has as a task of a cluster.
pub(crate) struct Membership {
    joining: Joining,
    /// Tells the views of a cluster apart; 0 where only collective ops were enabled.
    view: u64,
    coordination: Option<Arc<Coordination>>,
}

/// How a context becomes a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Joining {
    /// To execute ops on the devices of the cluster.
    Cluster,
    /// To execute ops on its own devices, as a task of the cluster.
    Locally,
    /// To take part in collective ops.
    ForCollectives,
}

static NEXT_VIEW: AtomicU64 = AtomicU64::new(1);

/// Whether a job may have this name: letters, digits and underscores, a letter first.
fn is_job_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a port is known: the server's own, or that at the end of the task's address.
fn check_port(server: &ServerDef, address: &str) -> Result<()> {
    let port = address.rsplit(':').next().unwrap_or_default();
    ensure!(
        server.port != 0 || port.parse::<i32>().is_ok(),
        InvalidArgument,
        "Could not parse port for local server from \"{address}\"."
    );
    ensure!(
        server.replica <= 0 || server.port != 0,
        InvalidArgument,
        "An explicit server port must be specified when using jobs with multiple replicas"
    );
    Ok(())
}

/// UNIMPLEMENTED for a cluster of several tasks.
fn check_alone(jobs: &[JobDef]) -> Result<()> {
    let count: usize = jobs.iter().map(|job| job.tasks.len()).sum();
    ensure!(
        count == 1,
        Unimplemented,
        "A cluster of {count} tasks needs a distributed runtime, which this library does not have"
    );
    Ok(())
}

/// INVALID_ARGUMENT when a changed cluster is without this task; UNIMPLEMENTED when it has others.
fn check_change(server: &ServerDef, job: &str, number: i32) -> Result<()> {
    let jobs = server.cluster.as_ref().map_or(&[][..], |cluster| &cluster.job);
    let mut own = jobs.iter().filter(|its| its.name == job);
    ensure!(
        own.any(|job| job.tasks.contains_key(&number)),
        InvalidArgument,
        "The master (current machine) is not included in the provided cluster_def."
    );
    check_alone(jobs)
}

/// The task that a server is. NOT_FOUND for a protocol that there is not, INTERNAL for a task that is not in the cluster,
/// INVALID_ARGUMENT for names, numbers and addresses of other forms, UNIMPLEMENTED for a cluster of several tasks.
fn task_of(server: &ServerDef) -> Result<Task> {
    ensure!(
        server.protocol == "grpc",
        NotFound,
        "No server factory registered for the protocol \"{}\" of the given ServerDef. The available server factories are: [ GRPC_SERVER ]",
        server.protocol
    );
    let jobs = server.cluster.as_ref().map_or(&[][..], |cluster| &cluster.job);
    let (name, number) = (&server.job_name, server.task_index);
    let Some(job) = jobs.iter().find(|job| job.name == *name) else {
        bail!(Internal, "Job \"{name}\" was not defined in cluster");
    };
    let address = job.tasks.get(&number);
    let address =
        address.ok_or_else(|| status!(Internal, "Task {number} was not defined in job \"{name}\""))?;
    check_port(server, address)?;
    ensure!(
        is_job_name(name) && number >= 0 && server.replica >= 0,
        InvalidArgument,
        "\"{name}\" with replica {} and task {number} is no name of a task",
        server.replica
    );
    for (index, job) in jobs.iter().enumerate() {
        ensure!(
            jobs[..index].iter().all(|other| other.name != job.name),
            InvalidArgument,
            "Duplicate job ID in cluster specification: {}",
            job.name
        );
    }
    check_alone(jobs)?;
    Ok(Task {
        job: name.clone(),
        replica: server.replica,
        number,
    })
}

impl EagerContext {
    /// Ends all collective ops for this cause, also those that are yet to be called.
    pub fn abort_collectives(&self, cause: Status) {
        self.state().collectives.abort(cause);
    }

    /// Makes the context the task that a server is. Its devices and all that was on them go, unless they are of that task
    /// already and were configured alike; functions stay. Errors: those of the `ServerDef`, and then nothing has changed.
    pub fn join(&self, server: &ServerDef, joining: Joining) -> Result<()> {
        if joining == Joining::ForCollectives && self.membership.lock().is_some() {
            return check_change(server, &server.job_name, server.task_index);
        }
        let task = task_of(server)?;
        let default = ConfigProto::default();
        let config = server.default_session_config.as_ref().unwrap_or(&default);
        let coordination = Coordination::of(config, &task)?;
        self.drain();
        let mut membership = self.membership.lock();
        let state = self.state();
        if state.task != task || state.config != *config {
            self.move_to(task, config, &state);
        }
        let view = match joining {
            Joining::ForCollectives => 0,
            Joining::Cluster | Joining::Locally => NEXT_VIEW.fetch_add(1, Ordering::Relaxed),
        };
        let left = membership.replace(Membership {
            joining,
            view,
            coordination,
        });
        if let Some(service) = left.and_then(|left| left.coordination) {
            service.stop();
        }
        Ok(())
    }

    /// Replaces the devices by those of a task.
    fn move_to(&self, task: Task, config: &ConfigProto, state: &SessionState) {
        let options = SessionOptions {
            config: config.clone(),
            ..SessionOptions::default()
        };
        let moved = SessionState::eager(task, options.cpu_devices(), state.pool.clone(), &state.config);
        *self.state.write() = Arc::new(moved);
        *self.functions.write() = Arc::new(Functions::new(self.registry.clone(), self.library.clone()));
        let ops = std::mem::take(&mut *self.ops.write());
        ops.values().for_each(|op| op.forget_kernels());
        self.joined.store(true, Ordering::Release);
    }

    /// Takes note of a change of the cluster, which can be none that matters: it has this one task.
    /// FAILED_PRECONDITION before it joined one; INVALID_ARGUMENT when it did so in another way than
    /// [`Joining::Cluster`], or when the context's task is not in it; UNIMPLEMENTED for several tasks.
    pub fn update_cluster(&self, server: &ServerDef) -> Result<()> {
        let mut membership = self.membership.lock();
        let Some(membership) = membership.as_mut() else {
            bail!(
                FailedPrecondition,
                "The context is not part of a cluster that could be updated"
            );
        };
        ensure!(
            membership.joining == Joining::Cluster,
            InvalidArgument,
            "Updating context with an invalid set of remote devices."
        );
        let here = self.state().task.clone();
        check_change(server, &here.job, here.number)?;
        membership.view = NEXT_VIEW.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Whether a task of the cluster answers: this one does. INVALID_ARGUMENT for others.
    pub fn is_alive(&self, task: &str) -> Result<bool> {
        let here = self.state().task.clone();
        let first = Task {
            replica: 0,
            ..here.clone()
        };
        let known = [here.to_string(), first.to_string()]
            .iter()
            .any(|name| name == task);
        ensure!(
            known && self.membership.lock().is_some(),
            InvalidArgument,
            "Unable to find worker interface corresponding to task {task}"
        );
        Ok(true)
    }

    /// The number of the context among those of the cluster; 0 without a cluster.
    pub fn cluster_view(&self) -> u64 {
        self.membership
            .lock()
            .as_ref()
            .map_or(0, |membership| membership.view)
    }

    /// The coordination service, where the cluster has one.
    pub fn coordination(&self) -> Option<Arc<Coordination>> {
        self.membership.lock().as_ref()?.coordination.clone()
    }

    /// An error when a device of before the context joined a cluster is not there any more: INVALID_ARGUMENT in a cluster,
    /// where it might be another task's; else NOT_FOUND.
    pub(crate) fn check_is_there(&self, state: &SessionState, device: DeviceName) -> Result<()> {
        if !self.joined.load(Ordering::Acquire) || state.resources_of(device.as_str()).is_some() {
            return Ok(());
        }
        let device = device.as_str();
        match &*self.membership.lock() {
            Some(membership) if membership.joining == Joining::Cluster => {
                let task = device.split("/device:").next().unwrap_or_default();
                Err(status!(InvalidArgument, "Client for target {task} not found."))
            }
            _ => Err(status!(
                NotFound,
                "Unable to find a FunctionLibraryRuntime corresponding to device {device}"
            )),
        }
    }
}
