//! Checks that the devices that nodes ask for exist. Placing nodes on several devices is not done here.

use crate::device::Device;
use crate::options::SessionOptions;
use crate::plan::Signature;
use ff_graph::Graph;
use ff_op::NodeInfo;
use ff_tensor::{Result, bail, ensure};

/// The number that the reference gives to the first node of a graph, after source and sink.
const FIRST_NODE: u32 = 2;

/// A device as a node asks for it; what is not said fits any.
#[derive(Default, Debug, PartialEq)]
struct DeviceSpec<'a> {
    job: Option<&'a str>,
    replica: Option<&'a str>,
    task: Option<&'a str>,
    kind: Option<String>,
    number: Option<&'a str>,
}

/// Parses `/job:a/replica:0/task:0/device:CPU:0`, `/cpu:0`, `/device:GPU:*`. None when it is not of that form.
fn parse(text: &str) -> Option<DeviceSpec<'_>> {
    let mut spec = DeviceSpec::default();
    for part in text.split('/').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once(':')?;
        match key {
            "job" => spec.job = Some(value),
            "replica" => spec.replica = Some(value),
            "task" => spec.task = Some(value),
            "device" => match value.split_once(':') {
                Some((kind, number)) => (spec.kind, spec.number) = (Some(kind.to_uppercase()), Some(number)),
                None => spec.kind = Some(value.to_uppercase()),
            },
            "cpu" | "CPU" | "gpu" | "GPU" => {
                (spec.kind, spec.number) = (Some(key.to_uppercase()), Some(value))
            }
            _ => return None,
        }
    }
    Some(spec)
}

impl DeviceSpec<'_> {
    fn fits(&self, kind: &str, number: usize) -> bool {
        let any =
            |wanted: Option<&str>, have: &str| wanted.is_none_or(|wanted| wanted == "*" || wanted == have);
        any(self.job, "localhost")
            && any(self.replica, "0")
            && any(self.task, "0")
            && any(self.kind.as_deref(), kind)
            && any(self.number, &number.to_string())
    }
}

/// Whether a text is of the form of a device name, in full or in part.
pub fn is_device_name(text: &str) -> bool {
    parse(text).is_some()
}

/// The number of the device that a name means; what it leaves out fits any. None when there is no such device.
pub fn find_device(devices: &[Device], name: &str) -> Option<usize> {
    let spec = parse(name)?;
    let mut all = devices.iter().enumerate();
    all.position(|(number, device)| spec.fits(device.kind, number))
}

/// INVALID_ARGUMENT when a node calls a function that is not there, or asks for a device that is not there, unless placement is soft.
pub fn check(
    graph: &Graph,
    _signature: &Signature,
    devices: &[Device],
    options: &SessionOptions,
) -> Result<()> {
    for (id, node) in graph.nodes() {
        check_function(graph, &node.info)?;
        let wanted = &node.info.device;
        if wanted.is_empty() {
            continue;
        }
        let name = &node.info.name;
        let Some(spec) = parse(wanted) else {
            bail!(
                InvalidArgument,
                "Malformed device specification '{wanted}' in node: {{name:'{name}' id:{} op device:{{requested: '{wanted}', assigned: ''}} def:{{{}}}}}\n\t [[{name}]]",
                id + FIRST_NODE,
                ff_graph::describe(graph, id)
            );
        };
        let found = devices
            .iter()
            .enumerate()
            .any(|(number, device)| spec.fits(device.kind, number));
        if !found && !options.config.allow_soft_placement {
            let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
            bail!(
                InvalidArgument,
                "Cannot assign a device for operation {name}: {} was explicitly assigned to {wanted} but available devices are [ {} ]. Make sure the device specification refers to a valid device.{}\n\t [[{name}]]",
                node.info.describe(),
                names.join(", "),
                match spec.kind.as_deref() {
                    Some("GPU") => " The requested device appears to be a GPU, but CUDA is not enabled.",
                    _ => "",
                }
            );
        }
    }
    Ok(())
}

/// INVALID_ARGUMENT for a call of a function that the library does not have.
fn check_function(graph: &Graph, info: &NodeInfo) -> Result<()> {
    if !matches!(info.op_name(), "PartitionedCall" | "StatefulPartitionedCall") {
        return Ok(());
    }
    let Ok(function) = info.attrs.func("f") else {
        return Ok(());
    };
    ensure!(
        graph.functions().find(&function.name).is_ok(),
        InvalidArgument,
        "Failed to find function \"{}\" in function library: ",
        function.name
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_in_all_forms() {
        for text in [
            "/cpu:0",
            "/device:CPU:0",
            "/job:localhost/replica:0/task:0/device:CPU:0",
            "/device:CPU:*",
            "",
        ] {
            assert!(parse(text).unwrap().fits("CPU", 0), "{text}");
        }
        for text in ["/gpu:0", "/device:GPU:0", "/job:worker/cpu:0", "/cpu:1"] {
            assert!(!parse(text).unwrap().fits("CPU", 0), "{text}");
        }
        assert_eq!(parse("nonsense"), None);
    }
}
