//! Graphs: building, import and export, functions, shape inference, optimizer passes. Nothing here runs a graph.

mod functions;
mod graph;
mod library;
pub mod passes;

pub use functions::FunctionBody;
pub use graph::{Graph, Node, NodeId};
pub use library::FunctionLibrary;

/// The GraphDef version that this library produces: that of TensorFlow 2.21.
pub const GRAPH_DEF_VERSION: i32 = 2474;
