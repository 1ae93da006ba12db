//! Graphs: building, import and export, functions, shape inference, optimizer passes. Nothing here runs a graph.

mod builder;
mod export;
mod functions;
mod graph;
mod import;
mod library;
pub mod passes;
mod refiner;
mod schema_text;
mod values;

pub use builder::{NodeBuilder, called_by_name, is_node_name};
pub use export::{export_graph_def, export_library, export_node_def};
pub use functions::{FunctionBody, LibraryHost, signature_of};
pub use graph::{Graph, Node, NodeId};
pub use import::{CONTROL, ImportOptions, ImportResults, TensorId, import_graph_def};
pub use library::FunctionLibrary;
pub use schema_text::op_summary;
pub use values::{constant_value, value_as_shape};

/// The GraphDef version that this library produces: that of TensorFlow 2.21.
pub const GRAPH_DEF_VERSION: i32 = 2474;
