//! Time per node of building and importing graphs, on one thread.

use ff_graph::{Graph, ImportOptions, NodeBuilder, add_gradients, export_graph_def, import_graph_def};
use ff_op::{Gradient, GradientContext, Op, OutputRef, Registry, shapes};
use ff_proto::{Bytes, GraphDef, Message};
use ff_tensor::{DataType, PartialShape, Result};
use std::sync::Arc;
use std::time::Instant;

const NODES: usize = 10_000;

static OPS: &[&Op] = &[
    &Op {
        name: "Placeholder",
        shape: shapes::from_shape_attr,
        ..Op::PURE
    },
    &Op {
        name: "AddV2",
        shape: shapes::broadcast_binary,
        gradient: Gradient::Fn(add_gradient),
        ..Op::PURE
    },
];

fn add_gradient(context: &mut GradientContext) -> Result<()> {
    let gradient = context.incoming_or_zeros(0)?;
    context.set(0, gradient);
    context.set(1, gradient);
    Ok(())
}

fn measure(name: &str, mut run: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!(
        "{name:10} {:.3} ms, {:.3} us per node",
        best * 1e3,
        best * 1e6 / NODES as f64
    );
}

/// A chain of additions.
fn build(registry: &Arc<Registry>) -> (Graph, OutputRef, OutputRef) {
    let mut graph = Graph::new(registry.clone());
    let output = |node| OutputRef { node, index: 0 };
    let first = NodeBuilder::new("Placeholder", "x")
        .attr("dtype", DataType::FLOAT)
        .attr("shape", PartialShape::new(&[2]));
    let x = output(first.finish(&mut graph).expect("a placeholder"));
    let mut y = x;
    for number in 1..NODES {
        let node = NodeBuilder::new("AddV2", format!("add_{number}"))
            .input(y)
            .input(x);
        y = output(node.finish(&mut graph).expect("an addition"));
    }
    (graph, x, y)
}

fn main() {
    let registry = Arc::new(Registry::new(&[OPS]));
    measure("build", || drop(build(&registry)));
    let (graph, x, y) = build(&registry);
    let message = Bytes::from(export_graph_def(&graph).encode_to_vec());
    println!("message of {} bytes", message.len());
    measure("decode", || {
        std::hint::black_box(GraphDef::decode(message.clone()).is_ok());
    });
    measure("import", || {
        let def = GraphDef::decode(message.clone()).expect("a message");
        let mut graph = Graph::new(registry.clone());
        import_graph_def(&mut graph, def, &ImportOptions::default()).expect("a graph");
    });
    measure("export", || drop(export_graph_def(&graph)));
    measure("gradients", || {
        let mut graph = graph.clone();
        add_gradients(&mut graph, &[y], &[x], &[], None).expect("gradients");
    });
}
