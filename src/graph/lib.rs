//! Graphs: building, import and export, functions, shape inference, optimizer passes. Nothing here runs a graph.

mod builder;
mod compilable;
mod device_spec;
mod export;
mod full_types;
mod function_text;
mod functions;
mod gradient_functions;
mod gradients;
mod graph;
mod graph_to_function;
mod import;
mod import_links;
mod import_source;
mod library;
mod library_host;
mod loop_constants;
mod loop_gradients;
mod lower_body;
mod name_index;
mod names;
mod order;
mod partition;
pub mod passes;
mod placer;
mod refiner;
mod summary;
#[cfg(test)]
mod testing;
mod validate;
mod values;
mod while_loop;

pub use builder::{NodeBuilder, called_by_name, lone_node};
pub use device_spec::DeviceSpec;
pub use export::{export_attr, export_graph_def, export_library, export_node_def, input_names};
pub use function_text::function_text;
pub use functions::{FunctionBody, signature_of};
pub use gradients::add_gradients;
pub use graph::{Consumers, Graph, Inputs, Node, NodeId};
pub use graph_to_function::{FunctionSource, graph_to_function};
pub use import::{ImportOptions, ImportResults, TensorId, import_graph_bytes, import_graph_def};
pub use library::FunctionLibrary;
pub use library_host::LibraryHost;
pub use loop_constants::constant_behind;
pub use names::{CONTROL, is_node_name};
pub use partition::{TransferEnds, partition, transfer_attrs};
pub use placer::{PlacementDevice, place};
pub use refiner::describe;
pub use summary::{node as node_summary, op as op_summary};
pub use values::{constant_value, value_as_shape};
pub use while_loop::{LoopPart, add_while_loop};

/// The GraphDef version that this library produces: that of TensorFlow 2.21.
pub const GRAPH_DEF_VERSION: i32 = 2474;
