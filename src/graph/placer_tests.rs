//! Texts and places are those of the reference with three CPU devices.

use super::*;
use crate::testing::{add_op, graph, placeholder};
use crate::{Graph, NodeBuilder};
use ff_op::OutputRef;
use ff_tensor::Code;

fn devices() -> Vec<PlacementDevice> {
    (0..3)
        .map(|number| PlacementDevice::new(&format!("/job:localhost/replica:0/task:0/device:CPU:{number}")))
        .collect()
}

fn node(graph: &mut Graph, name: &str, input: OutputRef, device: &str, class: &str) -> OutputRef {
    let mut builder = NodeBuilder::new("AddV2", name).input(input).input(input);
    builder.set_device(device);
    if !class.is_empty() {
        builder = builder.attr("_class", AttrValue::Strings(vec![format!("loc:@{class}").into()]));
    }
    OutputRef {
        node: builder.finish(graph).unwrap(),
        index: 0,
    }
}

#[test]
fn nodes_go_where_they_ask_and_data_to_its_readers() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[2]);
    let a = node(&mut graph, "a", x, "/cpu:1", "");
    let b = node(&mut graph, "b", a, "", "");
    node(&mut graph, "c", b, "", "a");
    assert_eq!(place(&graph, &devices(), false).unwrap(), [1, 1, 0, 1]);
}

#[test]
fn a_device_that_is_not_there() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[2]);
    node(&mut graph, "b", x, "/device:CPU:7", "");
    let error = place(&graph, &devices(), false).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(
        error.message(),
        "Cannot assign a device for operation b: {{node b}} was explicitly assigned to /device:CPU:7 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0, /job:localhost/replica:0/task:0/device:CPU:1, /job:localhost/replica:0/task:0/device:CPU:2 ]. Make sure the device specification refers to a valid device.\n\t [[b]]"
    );
    assert_eq!(place(&graph, &devices(), true).unwrap(), [0, 0]);
}

#[test]
fn nodes_that_belong_together_but_ask_for_different_devices() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[2]);
    let a = node(&mut graph, "a", x, "/device:CPU:0", "");
    node(&mut graph, "b", a, "/device:CPU:1", "a");
    let error = place(&graph, &devices(), false).unwrap_err();
    assert_eq!(
        error.message(),
        "Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot merge devices with incompatible ids: '/device:CPU:1' and '/device:CPU:0'\n\t [[{{node b}}]]"
    );
    assert!(place(&graph, &devices(), true).is_ok());
}

#[test]
fn another_job_is_not_there_even_softly() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[2]);
    add_op(&mut graph, "AddV2", "y", &[x, x]);
    node(&mut graph, "b", x, "/job:worker/device:CPU:0", "");
    assert!(
        place(&graph, &devices(), true)
            .unwrap_err()
            .message()
            .contains("was explicitly assigned to /job:worker")
    );
}
