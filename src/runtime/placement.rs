//! Which device of a session each node runs on, and whether the functions that nodes call are there.

use crate::device::Device;
use ff_graph::{DeviceSpec, Graph, PlacementDevice, place};
use ff_op::NodeInfo;
use ff_tensor::{Result, ensure};
use std::sync::Arc;

/// Whether a text is of the form of a device name, in full or in part.
pub fn is_device_name(text: &str) -> bool {
    DeviceSpec::parse(text).is_some()
}

/// The number of the device that a name means; what it leaves out fits any. None when there is no such device.
pub fn find_device(devices: &[Device], name: &str) -> Option<usize> {
    let spec = DeviceSpec::parse(name)?;
    let mut full = devices.iter().map(|device| DeviceSpec::parse(&device.name));
    full.position(|device| device.is_some_and(|device| spec.fits(&device)))
}

/// The device of each node. INVALID_ARGUMENT when a node calls a function that is not there, or asks for a device that is
/// not there, unless placement is `soft`.
pub fn place_graph(graph: &Graph, devices: &[Device], soft: bool) -> Result<Vec<u32>> {
    for (_, node) in graph.nodes() {
        check_function(graph, &node.info)?;
    }
    let devices: Vec<PlacementDevice> = devices
        .iter()
        .map(|device| PlacementDevice::new(&device.name))
        .collect();
    place(graph, &devices, soft)
}

/// The graph with the full names of devices in its nodes. None when all nodes run on the first, and need not say so.
pub fn placed(graph: &Graph, placement: &[u32], devices: &[Device]) -> Result<Option<Graph>> {
    if placement.iter().all(|device| *device == 0) {
        return Ok(None);
    }
    let mut placed = graph.clone();
    for (id, node) in graph.nodes() {
        let device = &devices[placement[id as usize] as usize].name;
        if node.info.device != *device {
            let mut info = (*node.info).clone();
            info.device.clone_from(device);
            placed.replace_info(id, Arc::new(info))?;
        }
    }
    Ok(Some(placed))
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
