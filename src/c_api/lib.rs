//! The shell: the C functions, their handles, and the guard between C and Rust.
//!
//! Contract
//! * Every exported function runs its body in [`guard`] (or [`guard::quiet`] without a status), unless it only reads
//!   a field: a panic becomes INTERNAL, a `Result` becomes a status, nothing unwinds into C.
//! * Signatures state ownership: `Option<&T>` borrows, `Option<Box<T>>` takes over, [`ffi::Handle`] is what threads
//!   share; all accept NULL. The C headers are generated from them, one header from the files of its family.
//! * Memory that C code frees or grows comes from `malloc`.
//! * Every exported name starts with `TF_`, `TFE_`, `TSL_` or `FF_`; the link step exports exactly those.
//!
//! What it does not do: it contains no algorithm.

// Exported functions are called from C, which cannot mark them unsafe; their headers state the contract.
#![allow(clippy::not_unsafe_ptr_arg_deref)]
// Each handle is a box of its own, because C gives them back one by one.
#![allow(clippy::vec_box)]
// The names are those of the C interface.
#![allow(non_camel_case_types, non_snake_case)]

pub mod ffi;

mod aot;
mod api_def;
mod attr_get;
mod attr_set;
mod attr_type;
mod buffer;
mod checkpoint_reader;
mod codegen;
mod datatype;
mod deprecated_session;
mod device_list;
mod eager_attr;
mod eager_cancellation;
mod eager_cluster;
mod eager_collectives;
mod eager_context;
mod eager_coordination;
mod eager_counters;
mod eager_custom_device;
mod eager_execute;
mod eager_executor;
mod eager_gauges;
mod eager_memory;
mod eager_metric;
mod eager_op;
mod eager_op_attrs;
mod eager_samplers;
mod eager_settings;
mod eager_shapes;
mod eager_string_gauges;
mod eager_tensor;
mod env;
mod env_system;
mod experimental;
mod file_system_plugin;
mod file_system_tables;
mod function;
mod gradients;
mod graph;
mod graph_mutation;
mod grappler;
mod guard;
mod handle_data;
mod import;
mod kernel_builder;
mod kernel_construction;
mod kernel_context;
mod kernel_deferred;
mod kernel_rendezvous;
mod kernel_step;
mod kernel_waiting;
mod library;
mod op_definition;
mod op_list;
mod operation;
mod operation_builder;
mod partial_run;
mod pluggable_device;
mod plugged_device;
mod profile;
mod server;
mod session;
mod session_options;
mod shape_inference;
mod shape_list;
mod status;
mod stream_executor;
mod string_view;
mod tensor;
mod tensor_cache;
mod tensor_proto;
mod tsl_status;
mod tstring;
mod unified;
mod unified_op;
mod unified_tracing;
mod version;
mod while_loop;
mod xla_settings;

pub use aot::{FF_CompileGraphDef, FF_CompileSavedModel};
pub use api_def::*;
pub use attr_get::*;
pub use attr_set::*;
pub use attr_type::*;
pub use buffer::*;
pub use checkpoint_reader::*;
pub use codegen::FF_CodegenSelfTest;
pub use datatype::*;
pub use deprecated_session::*;
pub use device_list::*;
pub use eager_attr::*;
pub use eager_cancellation::*;
pub use eager_cluster::*;
pub use eager_collectives::*;
pub use eager_context::*;
pub use eager_coordination::*;
pub use eager_counters::*;
pub use eager_custom_device::*;
pub use eager_executor::*;
pub use eager_gauges::*;
pub use eager_memory::*;
pub use eager_op::*;
pub use eager_op_attrs::*;
pub use eager_samplers::*;
pub use eager_settings::*;
pub use eager_shapes::*;
pub use eager_string_gauges::*;
pub use eager_tensor::*;
pub use env::*;
pub use env_system::*;
pub use experimental::*;
pub use file_system_plugin::*;
pub use function::*;
pub use gradients::*;
pub use graph::*;
pub use graph_mutation::*;
pub use grappler::*;
pub use guard::guard;
pub use handle_data::*;
pub use import::*;
pub use kernel_builder::*;
pub use kernel_construction::*;
pub use kernel_context::*;
pub use kernel_deferred::{TF_DecNumDeferredOps, TF_IncNumDeferredOps};
pub use kernel_rendezvous::TF_GetRendezvous;
pub use kernel_step::*;
pub use library::*;
pub use op_definition::*;
pub use op_list::*;
pub use operation::*;
pub use operation_builder::*;
pub use partial_run::*;
pub use pluggable_device::*;
pub use profile::{FF_RunMetadataToTrace, FF_WriteProfile};
pub use server::*;
pub use session::*;
pub use session_options::*;
pub use shape_inference::*;
pub use shape_list::*;
pub use status::*;
pub use string_view::*;
pub use tensor::*;
pub use tensor_proto::*;
pub use tsl_status::*;
pub use tstring::*;
pub use unified::*;
pub use unified_op::*;
pub use version::TF_Version;
pub use while_loop::*;
pub use xla_settings::*;
