//! `TF_DeviceList`: the devices of a session.

use crate::TF_Status;
use crate::ffi::{c_count, c_string, given};
use crate::guard::{guard_or, quiet};
use ff_runtime::Device;
use ff_tensor::{Result, status};
use std::ffi::{CString, c_char, c_int};
use std::ptr::null;

/// Devices as they were when the list was made. Threads may read one list at the same time.
pub struct TF_DeviceList {
    devices: Vec<Row>,
}

struct Row {
    name: CString,
    kind: CString,
    memory: i64,
    incarnation: u64,
}

impl TF_DeviceList {
    /// The list of these devices.
    pub fn of(devices: &[Device]) -> Box<TF_DeviceList> {
        TF_DeviceList::of_each(|visit| devices.iter().for_each(visit))
    }

    /// The list of the devices that `each` visits.
    pub fn of_each(each: impl FnOnce(&mut dyn FnMut(&Device))) -> Box<TF_DeviceList> {
        let mut devices = Vec::new();
        each(&mut |device| {
            devices.push(Row {
                name: c_string(&device.name),
                kind: c_string(device.kind),
                memory: device.memory_limit,
                incarnation: device.incarnation,
            });
        });
        Box::new(TF_DeviceList { devices })
    }
}

fn at(list: Option<&TF_DeviceList>, index: c_int) -> Result<&Row> {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    given(list, "list")?
        .devices
        .get(index)
        .ok_or_else(|| status!(InvalidArgument, "index out of bounds"))
}

/// Frees a list; NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeleteDeviceList(list: Option<Box<TF_DeviceList>>) {
    quiet((), || {
        drop(list);
        Ok(())
    });
}

/// The number of devices; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeviceListCount(list: Option<&TF_DeviceList>) -> c_int {
    list.map_or(0, |list| c_count(list.devices.len()))
}

/// The full name of a device, such as `/job:localhost/replica:0/task:0/device:CPU:0`. The string lives as long as the
/// list. NULL with INVALID_ARGUMENT when there is no such device.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeviceListName(
    list: Option<&TF_DeviceList>,
    index: c_int,
    status: Option<&mut TF_Status>,
) -> *const c_char {
    guard_or(status, null(), || Ok(at(list, index)?.name.as_ptr()))
}

/// The type of a device, such as `CPU`. The string lives as long as the list. NULL with INVALID_ARGUMENT when there is no
/// such device.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeviceListType(
    list: Option<&TF_DeviceList>,
    index: c_int,
    status: Option<&mut TF_Status>,
) -> *const c_char {
    guard_or(status, null(), || Ok(at(list, index)?.kind.as_ptr()))
}

/// The bytes of memory of a device. -1 with INVALID_ARGUMENT when there is no such device.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeviceListMemoryBytes(
    list: Option<&TF_DeviceList>,
    index: c_int,
    status: Option<&mut TF_Status>,
) -> i64 {
    guard_or(status, -1, || Ok(at(list, index)?.memory))
}

/// A number that is another one after a device was started again. 0 with INVALID_ARGUMENT when there is no such device.
#[unsafe(no_mangle)]
pub extern "C" fn TF_DeviceListIncarnation(
    list: Option<&TF_DeviceList>,
    index: c_int,
    status: Option<&mut TF_Status>,
) -> u64 {
    guard_or(status, 0, || Ok(at(list, index)?.incarnation))
}
