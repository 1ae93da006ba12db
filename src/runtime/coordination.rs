//! The coordination service of a cluster of one task: values by key, barriers, and the error that the task has reported.
//!
//! Keys are paths: slashes at the ends do not count, and several in a row are one. All functions may be called from any
//! thread.

use crate::device::Task;
use ff_proto::ConfigProto;
use ff_tensor::{Code, Result, Status, bail, ensure};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// See the module.
pub struct Coordination {
    task: Task,
    values: Mutex<Values>,
    /// Told of new values and of the end.
    changed: Condvar,
    /// What the task has reported; code OK is a report, too.
    error: Mutex<Option<(Code, String)>>,
}

#[derive(Default)]
struct Values {
    by_key: BTreeMap<String, Vec<u8>>,
    stopped: bool,
}

/// A key as it is kept.
fn normalized(key: &str) -> String {
    let parts: Vec<&str> = key.split('/').filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

impl Coordination {
    /// The service that a configuration asks for, if it does. INVALID_ARGUMENT when the task is not among those that are to
    /// be coordinated; UNIMPLEMENTED when others are.
    pub fn of(config: &ConfigProto, task: &Task) -> Result<Option<Arc<Coordination>>> {
        let config = config.experimental.as_ref();
        let Some(config) = config.and_then(|config| config.coordination_config.as_ref()) else {
            return Ok(None);
        };
        if config.service_type.is_empty() || config.force_disable {
            return Ok(None);
        }
        let jobs = &config.coordinated_job_list;
        let others = jobs
            .iter()
            .filter(|job| job.name != task.job && job.num_tasks > 0);
        let own = jobs.iter().find(|job| job.name == task.job);
        ensure!(
            jobs.is_empty() || own.is_some_and(|job| job.num_tasks > task.number),
            InvalidArgument,
            "{task} is not among the jobs that the coordination service coordinates"
        );
        ensure!(
            others.count() == 0 && own.is_none_or(|job| job.num_tasks == 1),
            Unimplemented,
            "To coordinate several tasks needs a distributed runtime, which this library does not have"
        );
        let leader = &config.service_leader;
        ensure!(
            leader.is_empty() || *leader == task.to_string(),
            InvalidArgument,
            "{leader}, which would lead the coordination service, is not in the cluster"
        );
        Ok(Some(Arc::new(Coordination {
            task: task.clone(),
            values: Mutex::default(),
            changed: Condvar::new(),
            error: Mutex::default(),
        })))
    }

    /// Keeps a value. ALREADY_EXISTS when the key has one.
    pub fn insert(&self, key: &str, value: &[u8]) -> Result<()> {
        let key = normalized(key);
        let mut values = self.values.lock();
        ensure!(
            !values.by_key.contains_key(&key),
            AlreadyExists,
            "key {key} already exists."
        );
        values.by_key.insert(key, value.to_vec());
        self.changed.notify_all();
        Ok(())
    }

    /// The value of a key, once it has one. DEADLINE_EXCEEDED when that takes longer than `timeout`; CANCELLED when the
    /// service ends first.
    pub fn get(&self, key: &str, timeout: Option<Duration>) -> Result<Vec<u8>> {
        let wanted = normalized(key);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut values = self.values.lock();
        loop {
            if let Some(value) = values.by_key.get(&wanted) {
                return Ok(value.clone());
            }
            ensure!(!values.stopped, Cancelled, "The coordination service has ended");
            match deadline {
                None => self.changed.wait(&mut values),
                Some(deadline) if self.changed.wait_until(&mut values, deadline).timed_out() => bail!(
                    DeadlineExceeded,
                    "GetKeyValue() timed out with key: {key} and duration: {}ms",
                    timeout.unwrap_or_default().as_millis()
                ),
                Some(_) => {}
            }
        }
    }

    /// Forgets the value of a key, and of all keys below it. Fine when there is none.
    pub fn delete(&self, key: &str) {
        let key = normalized(key);
        let below = format!("{key}/");
        let mut values = self.values.lock();
        values
            .by_key
            .retain(|its, _| *its != key && !its.starts_with(&below));
    }

    /// Waits until all tasks are here, which they are. FAILED_PRECONDITION after an error was reported.
    pub fn wait_at_barrier(&self) -> Result<()> {
        ensure!(
            self.error.lock().is_none(),
            FailedPrecondition,
            "Agent must be in CONNECTED state. It is currently in ERROR."
        );
        Ok(())
    }

    /// Reports that the task has failed. FAILED_PRECONDITION when it has done so before.
    pub fn report(&self, code: Code, message: &str) -> Result<()> {
        let mut reported = self.error.lock();
        ensure!(
            reported.is_none(),
            FailedPrecondition,
            "Coordination service agent is already in error state."
        );
        *reported = Some((code, message.to_string()));
        Ok(())
    }

    /// The error that a task has reported, or OK. INVALID_ARGUMENT for a task that there is not.
    pub fn state_of(&self, job: &str, number: i32) -> Result<Result<()>> {
        ensure!(
            (job, number) == (&*self.task.job, self.task.number),
            InvalidArgument,
            "Unexpected task request with task_name=/job:{job}/replica:0/task:{number}"
        );
        Ok(match &*self.error.lock() {
            None | Some((Code::Ok, _)) => Ok(()),
            Some((code, message)) => Err(Status::new(*code, message)),
        })
    }

    /// Ends what waits.
    pub fn stop(&self) {
        self.values.lock().stopped = true;
        self.changed.notify_all();
    }
}
