//! Device names: parsing, comparing, merging, and how messages write them.
//!
//! A name may leave parts out (`/cpu:0`, `/job:worker`); a part that is left out, or is `*`, fits any.
//! Not here: which devices exist.

use ff_tensor::{Result, bail};
use std::fmt;

/// The parts of a device name; none fits any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSpec {
    /// `/job:`
    pub job: Option<String>,
    /// `/replica:`
    pub replica: Option<u32>,
    /// `/task:`
    pub task: Option<u32>,
    /// `CPU` of `/device:CPU:0`, in capitals.
    pub kind: Option<String>,
    /// `0` of `/device:CPU:0`.
    pub id: Option<u32>,
}

/// A number, or `*` for any. None when it is neither.
fn number(text: &str) -> Option<Option<u32>> {
    match text {
        "*" => Some(None),
        text => text.parse().ok().map(Some),
    }
}

impl DeviceSpec {
    /// Parses `/job:a/replica:0/task:0/device:CPU:0`, `/cpu:0`, `/device:GPU:*` and the like. None for other texts.
    pub fn parse(text: &str) -> Option<DeviceSpec> {
        let mut spec = DeviceSpec::default();
        for part in text.split('/').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once(':')?;
            match key {
                "job" => spec.job = (value != "*").then(|| value.to_string()),
                "replica" => spec.replica = number(value)?,
                "task" => spec.task = number(value)?,
                "device" => {
                    let (kind, id) = value.split_once(':').unwrap_or((value, "*"));
                    spec.kind = (kind != "*").then(|| kind.to_uppercase());
                    spec.id = number(id)?;
                }
                "cpu" | "CPU" | "gpu" | "GPU" => {
                    spec.kind = Some(key.to_uppercase());
                    spec.id = number(value)?;
                }
                _ => return None,
            }
        }
        Some(spec)
    }

    /// Whether nothing is asked for.
    pub fn is_any(&self) -> bool {
        *self == DeviceSpec::default()
    }

    /// Whether a device with the full name `device` is one of those meant.
    pub fn fits(&self, device: &DeviceSpec) -> bool {
        fn any<T: PartialEq>(wanted: &Option<T>, have: &Option<T>) -> bool {
            wanted.is_none() || wanted == have
        }
        any(&self.job, &device.job)
            && any(&self.replica, &device.replica)
            && any(&self.task, &device.task)
            && any(&self.kind, &device.kind)
            && any(&self.id, &device.id)
    }

    /// Whether some device could be meant by both.
    pub fn is_compatible(&self, other: &DeviceSpec) -> bool {
        self.clone().merge(other, false).is_ok()
    }

    /// Takes over what `other` says and this does not. INVALID_ARGUMENT when they contradict each other; with `soft`,
    /// types and numbers that do are dropped.
    pub fn merge(&mut self, other: &DeviceSpec, soft: bool) -> Result<()> {
        let conflict = |what: &str, a: &DeviceSpec| {
            ff_tensor::status!(
                InvalidArgument,
                "Cannot merge devices with incompatible {what}: '{a}' and '{other}'"
            )
        };
        fn differ<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            a.is_some() && b.is_some() && a != b
        }
        if differ(&self.job, &other.job) {
            return Err(conflict("jobs", self));
        }
        if differ(&self.replica, &other.replica) {
            return Err(conflict("replicas", self));
        }
        if differ(&self.task, &other.task) {
            return Err(conflict("tasks", self));
        }
        let mut merged = self.clone();
        merged.job = merged.job.or_else(|| other.job.clone());
        merged.replica = merged.replica.or(other.replica);
        merged.task = merged.task.or(other.task);
        if differ(&self.kind, &other.kind) {
            if !soft {
                return Err(conflict("types", self));
            }
            (merged.kind, merged.id) = (None, None);
        } else {
            merged.kind = merged.kind.or_else(|| other.kind.clone());
            if differ(&self.id, &other.id) {
                if !soft {
                    bail!(
                        InvalidArgument,
                        "Cannot merge devices with incompatible ids: '{self}' and '{other}'"
                    );
                }
                merged.id = None;
            } else {
                merged.id = merged.id.or(other.id);
            }
        }
        *self = merged;
        Ok(())
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "/job:{job}")?;
        }
        if let Some(replica) = self.replica {
            write!(f, "/replica:{replica}")?;
        }
        if let Some(task) = self.task {
            write!(f, "/task:{task}")?;
        }
        match (&self.kind, self.id) {
            (Some(kind), Some(id)) => write!(f, "/device:{kind}:{id}"),
            (Some(kind), None) => write!(f, "/device:{kind}:*"),
            (None, Some(id)) => write!(f, "/device:*:{id}"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_full_and_in_part() {
        let cpu = DeviceSpec::parse("/job:localhost/replica:0/task:0/device:CPU:0").unwrap();
        for text in [
            "/cpu:0",
            "/device:CPU:0",
            "/device:CPU:*",
            "",
            "/task:0",
            "/job:*/CPU:0",
        ] {
            assert!(DeviceSpec::parse(text).unwrap().fits(&cpu), "{text}");
        }
        for text in [
            "/gpu:0",
            "/device:GPU:0",
            "/job:worker/cpu:0",
            "/cpu:1",
            "/task:1",
        ] {
            assert!(!DeviceSpec::parse(text).unwrap().fits(&cpu), "{text}");
        }
        for text in ["nonsense", "/device:CPU:x", "/job"] {
            assert_eq!(DeviceSpec::parse(text), None, "{text}");
        }
        assert_eq!(DeviceSpec::parse("/cpu:3").unwrap().to_string(), "/device:CPU:3");
    }

    #[test]
    fn merging_keeps_what_both_say() {
        let mut spec = DeviceSpec::parse("/job:a").unwrap();
        spec.merge(&DeviceSpec::parse("/cpu:1").unwrap(), false).unwrap();
        assert_eq!(spec.to_string(), "/job:a/device:CPU:1");
        let error = spec
            .merge(&DeviceSpec::parse("/cpu:0").unwrap(), false)
            .unwrap_err();
        assert_eq!(
            error.message(),
            "Cannot merge devices with incompatible ids: '/job:a/device:CPU:1' and '/device:CPU:0'"
        );
        spec.merge(&DeviceSpec::parse("/gpu:0").unwrap(), true).unwrap();
        assert_eq!(spec.to_string(), "/job:a");
    }
}
