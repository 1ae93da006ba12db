//! Tests of values and shapes that are known before anything runs.

use crate::testing::{add_op, constant, graph, placeholder};
use crate::{Graph, NodeBuilder, constant_value, value_as_shape};
use ff_op::OutputRef;
use ff_tensor::{DataType, PartialShape, Tensor};

fn ints(graph: &mut Graph, name: &str, values: &[i32]) -> OutputRef {
    constant(graph, name, Tensor::vector(values).unwrap())
}

fn slice(graph: &mut Graph, name: &str, x: OutputRef, begin: i32, end: i32, shrink: i64) -> OutputRef {
    let begin = ints(graph, &format!("{name}/begin"), &[begin]);
    let end = ints(graph, &format!("{name}/end"), &[end]);
    let strides = ints(graph, &format!("{name}/strides"), &[1]);
    let node = NodeBuilder::new("StridedSlice", name).attr("shrink_axis_mask", shrink);
    let node = [x, begin, end, strides]
        .iter()
        .fold(node, |node, input| node.input(*input));
    crate::testing::output(node.finish(graph).unwrap())
}

#[test]
fn values_follow_from_constants_and_shapes() {
    let mut graph = graph();
    let a = constant(&mut graph, "a", Tensor::vector(&[1.0f32, 2.0]).unwrap());
    let sum = add_op(&mut graph, "AddV2", "sum", &[a, a]);
    let again = add_op(&mut graph, "Mul", "again", &[sum, a]);
    let value = constant_value(&graph, again).unwrap();
    assert_eq!(value.as_slice::<f32>().unwrap(), [2.0, 8.0]);
    let x = placeholder(&mut graph, "x", &[2, 3]);
    let shape = add_op(&mut graph, "Shape", "shape", &[x]);
    assert_eq!(
        constant_value(&graph, shape).unwrap().to_i64_vec().unwrap(),
        [2, 3]
    );
    assert!(constant_value(&graph, x).is_none());
    let unknown = placeholder(&mut graph, "unknown", &[-1]);
    let shape = add_op(&mut graph, "Shape", "shape_2", &[unknown]);
    assert!(constant_value(&graph, shape).is_none());
}

#[test]
fn shapes_follow_element_by_element() {
    let mut graph = graph();
    let x = placeholder(&mut graph, "x", &[-1, 3, 5]);
    let shape = add_op(&mut graph, "Shape", "shape", &[x]);
    assert_eq!(
        value_as_shape(&graph, shape).unwrap(),
        PartialShape::new(&[-1, 3, 5])
    );
    let tail = slice(&mut graph, "tail", shape, 1, 3, 0);
    assert_eq!(value_as_shape(&graph, tail).unwrap(), PartialShape::new(&[3, 5]));

    // reshape(x, [shape(x)[0], 15])
    let batch = slice(&mut graph, "batch", shape, 0, 1, 1);
    let rest = constant(&mut graph, "rest", Tensor::scalar(15i32).unwrap());
    let pack = NodeBuilder::new("Pack", "pack")
        .input_list([batch, rest])
        .finish(&mut graph)
        .unwrap();
    let pack = crate::testing::output(pack);
    graph.refine_shape(pack, &PartialShape::new(&[2])).unwrap();
    let flat = add_op(&mut graph, "Reshape", "flat", &[x, pack]);
    assert_eq!(graph.output_shape(flat), PartialShape::new(&[-1, 15]));

    let axis = constant(&mut graph, "axis", Tensor::scalar(0i32).unwrap());
    let both = NodeBuilder::new("ConcatV2", "both")
        .input_list([tail, shape])
        .input(axis);
    let both = crate::testing::output(both.finish(&mut graph).unwrap());
    assert_eq!(
        value_as_shape(&graph, both).unwrap(),
        PartialShape::new(&[3, 5, -1, 3, 5])
    );

    // Nothing is known of the elements, but their number.
    let node = NodeBuilder::new("Placeholder", "extents")
        .attr("dtype", DataType::INT32)
        .attr("shape", PartialShape::new(&[2]));
    let extents = crate::testing::output(node.finish(&mut graph).unwrap());
    assert_eq!(value_as_shape(&graph, extents).unwrap(), PartialShape::of_rank(2));
}

#[test]
fn questions_are_bounded() {
    let mut graph = graph();
    let start = ints(&mut graph, "start", &[1]);
    let axis = constant(&mut graph, "axis", Tensor::scalar(0i32).unwrap());
    let mut wide = start;
    for number in 0..30 {
        let node = NodeBuilder::new("ConcatV2", format!("wide{number}"))
            .input_list([wide, wide])
            .input(axis);
        wide = crate::testing::output(node.finish(&mut graph).unwrap());
    }
    assert_eq!(value_as_shape(&graph, wide).unwrap(), PartialShape::unknown());
}
