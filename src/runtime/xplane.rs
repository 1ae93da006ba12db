//! Profiles as TensorBoard reads them: step stats as a serialized `XSpace` of xplane.proto.
//!
//! One plane for the processors and one for each other device; a line for each thread of a device, an event for each
//! node, named `node:Op`.

use ff_proto::{DeviceStepStats, NodeExecStats, StepStats};
use prost::Message;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The plane of everything that runs on processors.
const HOST_PLANE: &str = "/host:CPU";
/// What the planes of other devices start with.
const DEVICE_PLANE: &str = "/device:CUSTOM:";
/// The one statistic of events: bytes of the outputs.
const BYTES: i64 = 1;

#[derive(Clone, PartialEq, Message)]
struct Space {
    #[prost(message, repeated, tag = "1")]
    planes: Vec<Plane>,
    #[prost(string, repeated, tag = "4")]
    hostnames: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Plane {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "3")]
    lines: Vec<Line>,
    #[prost(btree_map = "int64, message", tag = "4")]
    event_metadata: BTreeMap<i64, Named>,
    #[prost(btree_map = "int64, message", tag = "5")]
    stat_metadata: BTreeMap<i64, Named>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(int64, tag = "3")]
    timestamp_ns: i64,
    #[prost(message, repeated, tag = "4")]
    events: Vec<Event>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int64, tag = "1")]
    metadata_id: i64,
    /// Its member of a oneof, so 0 is written, too.
    #[prost(int64, optional, tag = "2")]
    offset_ps: Option<i64>,
    #[prost(int64, tag = "3")]
    duration_ps: i64,
    #[prost(message, repeated, tag = "4")]
    stats: Vec<Stat>,
}

#[derive(Clone, PartialEq, Message)]
struct Stat {
    #[prost(int64, tag = "1")]
    metadata_id: i64,
    #[prost(int64, optional, tag = "4")]
    int64_value: Option<i64>,
}

/// `XEventMetadata` or `XStatMetadata`: their first two members are the same.
#[derive(Clone, PartialEq, Message)]
struct Named {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(string, tag = "2")]
    name: String,
}

/// The stats of a step as a serialized `XSpace` of the machine `host`.
pub fn x_space(stats: &StepStats, host: &str) -> Vec<u8> {
    let mut planes: Vec<Plane> = Vec::new();
    for device in &stats.dev_stats {
        let name = plane_name(&device.device);
        let at = planes
            .iter()
            .position(|plane| plane.name == name)
            .unwrap_or_else(|| {
                planes.push(new_plane(planes.len() as i64, name));
                planes.len() - 1
            });
        add_device(&mut planes[at], device);
    }
    let space = Space {
        planes,
        hostnames: vec![host.to_string()],
    };
    space.encode_to_vec()
}

fn new_plane(id: i64, name: String) -> Plane {
    let bytes = Named {
        id: BYTES,
        name: "allocation_bytes".to_string(),
    };
    Plane {
        id,
        name,
        stat_metadata: BTreeMap::from([(BYTES, bytes)]),
        ..Plane::default()
    }
}

/// `device:TYPE:N` of a full device name; the whole name where there is none.
fn short_name(device: &str) -> &str {
    device.rsplit('/').next().unwrap_or(device)
}

fn plane_name(device: &str) -> String {
    let short = short_name(device);
    match short.strip_prefix("device:").unwrap_or(short) {
        cpu if cpu.to_ascii_uppercase().starts_with("CPU") => HOST_PLANE.to_string(),
        other => format!("{DEVICE_PLANE}{other}"),
    }
}

fn add_device(plane: &mut Plane, device: &DeviceStepStats) {
    let mut threads: BTreeMap<u32, Vec<&NodeExecStats>> = BTreeMap::new();
    for node in &device.node_stats {
        threads.entry(node.thread_id).or_default().push(node);
    }
    let known = plane.event_metadata.values();
    let mut ids: FxHashMap<String, i64> = known.map(|it| (it.name.clone(), it.id)).collect();
    for (thread, mut nodes) in threads {
        nodes.sort_by_key(|node| node.all_start_nanos);
        let start = nodes.first().map_or(0, |node| node.all_start_nanos);
        let mut line = Line {
            id: plane.lines.len() as i64 + 1,
            name: format!("{} thread {thread}", short_name(&device.device)),
            timestamp_ns: start,
            events: Vec::with_capacity(nodes.len()),
        };
        for node in nodes {
            let name = event_name(node);
            let next = ids.len() as i64 + 1;
            let id = *ids.entry(name.clone()).or_insert_with(|| {
                plane.event_metadata.insert(next, Named { id: next, name });
                next
            });
            line.events.push(event(node, id, start));
        }
        plane.lines.push(line);
    }
}

/// `node:Op`; the op is in the label, `node = Op(..)`.
fn event_name(node: &NodeExecStats) -> String {
    let label = node.timeline_label.split_once(" = ");
    match label.and_then(|(_, call)| call.split_once('(')) {
        Some((op, _)) => format!("{}:{op}", node.node_name),
        None => node.node_name.clone(),
    }
}

fn event(node: &NodeExecStats, id: i64, line_start: i64) -> Event {
    let bytes = node.memory.iter().map(|memory| memory.total_bytes).sum();
    Event {
        metadata_id: id,
        offset_ps: Some((node.all_start_nanos - line_start).saturating_mul(1000)),
        duration_ps: node.all_end_rel_nanos.saturating_mul(1000),
        stats: vec![Stat {
            metadata_id: BYTES,
            int64_value: Some(bytes),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_become_lines_and_processors_one_plane() {
        let node = |name: &str, thread, start| NodeExecStats {
            node_name: name.to_string(),
            thread_id: thread,
            all_start_nanos: start,
            all_end_rel_nanos: 7,
            timeline_label: format!("{name} = Add(x, y)"),
            ..NodeExecStats::default()
        };
        let device = |device: &str, node_stats| DeviceStepStats {
            device: device.to_string(),
            node_stats,
            ..DeviceStepStats::default()
        };
        let job = "/job:localhost/replica:0/task:0";
        let stats = StepStats {
            dev_stats: vec![
                device(
                    &format!("{job}/device:CPU:0"),
                    vec![node("a", 2, 150), node("b", 2, 100), node("a", 1, 90)],
                ),
                device(&format!("{job}/device:CPU:1"), vec![node("a", 2, 300)]),
                device(&format!("{job}/device:MINE:1"), vec![]),
            ],
        };
        let space = Space::decode(x_space(&stats, "h").as_slice()).unwrap();
        let names: Vec<_> = space.planes.iter().map(|plane| plane.name.as_str()).collect();
        assert_eq!(names, ["/host:CPU", "/device:CUSTOM:MINE:1"]);
        let plane = &space.planes[0];
        let lines: Vec<_> = plane.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(
            lines,
            [
                "device:CPU:0 thread 1",
                "device:CPU:0 thread 2",
                "device:CPU:1 thread 2"
            ]
        );
        let events = &plane.lines[1].events;
        assert_eq!(plane.lines[1].timestamp_ns, 100);
        assert_eq!(plane.event_metadata[&events[1].metadata_id].name, "a:Add");
        assert_eq!(
            (events[1].offset_ps, events[1].duration_ps),
            (Some(50_000), 7_000)
        );
        assert_eq!(plane.event_metadata.len(), 2);
    }
}
